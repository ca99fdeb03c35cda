"""`nearer fit`: a file of answers in; positions, their dimension and how sure they are, out.

Very many answers are fitted block by block, with a bar, interruptible and resumable. Where
``torchrun`` has started several processes, each of them keeps its share of the answers, and process
0 alone prints and writes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource
from rich.markup import escape

from nearer import __version__, _fit
from nearer.asking.progress import step_progress
from nearer.checks import amount
from nearer.cli.output import (
    INTERRUPTED,
    GivenPath,
    check_files,
    check_folder,
    dimension_figures,
    draw_files,
    json_option,
    make_folder,
    option,
    picture_files,
    print_table,
    say,
    scheduler_option,
    seed_option,
    stopped_by_ctrl_c,
    undetermined,
    visible,
)
from nearer.embedding import Embedding
from nearer.errors import AnswersWarning, DroppedRows, InvalidInput
from nearer.files import (
    as_path,
    json_text,
    parquet_files,
    positions_text,
    sha256,
    table_text,
    write_files,
)
from nearer.fitting.solver import using
from nearer.triplets import read_triplets

if TYPE_CHECKING:
    from nearer.scale.blocks import BlockSource
    from nearer.scale.fit_in_blocks import Checkpoint

__all__ = ["command"]

_FILES = ("dimension.png", "embedding.csv", "fit.json", "map.png", "people.csv")
_READING = ("kind", "no_header", "objects", "first", "drop_bad_rows")


class _AsTyped(click.Command):
    """A command that remembers what was typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["typed"] = list(args)
        return super().parse_args(ctx, args)


def _columns(_: Any, __: Any, text: str | None) -> dict[str, str | int] | None:
    """Parts and their columns from ``head=ref,near=1``."""
    parts: dict[str, str | int] = {}
    for one in [] if text is None else text.split(","):
        part, equals, column = (x.strip() for x in one.partition("="))
        if not (part and equals and column):
            raise InvalidInput(
                f"--columns {text}: {one!r} is not of the form part=column, such as "
                "head=ref,near=same,far=other"
            )
        parts[part] = int(column) if column.isdecimal() else column
    return parts or None


def _dimension(_: Any, __: Any, dim: str) -> int | None:
    """What ``--dim`` says: a number of dimensions; None for auto."""
    if dim == "auto":
        return None
    if not (dim.isascii() and dim.isdigit() and int(dim)):
        raise InvalidInput(f"--dim {dim}: must be auto or a whole number from 1")
    return int(dim)


_methods = click.Choice(["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"])
_kinds = click.Choice(["auto", "triplets", "answers", "odd-one-out", "most-central"])
_devices = click.Choice(["auto", "cpu", "cuda"])
_above_0 = click.FloatRange(min=0, min_open=True)
_folder = GivenPath(exists=True, file_okay=False)


@click.command("fit", cls=_AsTyped)
@click.argument("triplets", callback=lambda _, __, path: as_path(path))
@option("--method", type=_methods, default="auto", help="noisy expects wrong answers, soe none.")
@option("--dim", "d", default="auto", callback=_dimension, help="Number of dimensions, or auto.")
@option("--kind", type=_kinds, default="auto", help="What the rows of the file say.")
@click.option("--columns", callback=_columns, help="Which are what: head=ref,near=same,far=other.")
@click.option("--no-header", is_flag=True, help="The first row is an answer.")
@click.option("--names", "objects", flag_value="names", help="Numbers are names of objects.")
@click.option("--first", type=click.IntRange(0, 1), help="The number of the first place shown.")
@click.option("--drop-bad-rows", is_flag=True, help="Leave out rows with faults.")
@option("--max-iter", type=click.IntRange(1), default=1000, help="Steps of the last fit.")
@option("--tol", type=_above_0, default=1e-8, help="Gain of a step that ends it.")
@option("--device", type=_devices, default="auto", help="auto: a GPU where one gains.")
@seed_option
@option("--out", type=GivenPath(), default="out/fit", help="Folder for the results.")
@click.option("--map", "map_file", type=GivenPath(), help="A map, too: .svg, .pdf, .png or .html.")
@click.option("--report", "report_file", type=GivenPath(), help="A report, too: .html or .md.")
@click.option("--pictures", type=_folder, help="Folder of pictures that are named like objects.")
@click.option("--picture-size", type=_above_0, help="Points or pixels; 40 where there is room.")
@json_option
@scheduler_option
def command(
    triplets: Path,
    columns: dict[str, str | int] | None,
    as_json: bool,
    out: Path,
    scheduler: str | None,
    map_file: Path | None,
    report_file: Path | None,
    pictures: Path | None,
    picture_size: float | None,
    **options: Any,
) -> None:
    """Find positions from the answers in the file TRIPLETS.

    The file is read in any of the common forms: head, winner, loser; questions with answers;
    odd-one-out and most-central-of-three by --kind; screens of which some are chosen, votes,
    jsPsych and psiz; .csv, .tsv, .txt, .npy, .npz, .json, .jsonl, .h5, compressed or not; .parquet,
    or a folder of such files. More than four million triplets in .parquet or .npy are fitted in
    blocks that memory need not hold, Ctrl-C leaves what was reached, and torchrun shares them among
    processes: torchrun --nproc-per-node=2 -m nearer fit big.parquet

    \b
    The table says:
      objects    how many there are
      answers    how many were read and used
      dimension  how many dimensions the map has; "not determined" where the
                 answers leave other numbers possible, which are then listed
      held-out   share of answers predicted by fits that had not seen them
      95 %       the interval that holds that share 95 times in 100
      noise      share of answers that depart from the map
      seconds    how long the fit took

    Below it: people who contradict all others ("contrary") or seem to guess.
    The files written to --out: embedding.csv with the positions, people.csv
    where the file says who answered, fit.json with all figures, the version,
    the source and the command, map.png, dimension.png.
    """  # noqa: D301 - the backspace keeps the lines of the list apart
    from nearer.scale.cluster import scheduler as sent_to

    context = click.get_current_context()
    reads = [triplets, *parquet_files(triplets), *(pictures.iterdir() if pictures else ())]
    check_folder(out, _FILES, reads)
    check_files(map_file, report_file, reads)
    with using(options["device"]):
        pass  # a device that is not there is refused before a long file is read
    typed = {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    }
    given = {name: options.pop(name) for name in _READING}
    reading = {name: value for name, value in given.items() if name in typed}
    if reading.pop("no_header", False):
        reading["header"] = False
    source, kept = _in_blocks(triplets, columns), None
    fitted: _Fitted | None
    if source is None:
        with sent_to(scheduler):
            fitted = _fit_file(triplets, out, columns, reading, **options)
    else:
        if foreign := [typed[name] for name in (*_READING, "scheduler") if name in typed]:
            raise InvalidInput(
                f"{triplets}: is read in blocks, by this machine or torchrun, and every row is "
                f"a triplet; leave out {', '.join(foreign)}"
            )
        kept, fitted = _fit_blocks(source, triplets, out, **options)
    if fitted is not None:
        words = context.meta["typed"]
        seed = [] if "seed" in typed else ["--seed", str(fitted.seed)]
        fitted.command = shlex.join(["nearer", "fit", *seed, *words])
        fitted.look = {
            "pictures": picture_files(fitted.names, pictures, triplets),
            "picture_size": picture_size,
        }
        _report(fitted, map_file, report_file, as_json=as_json)
    if kept is not None:
        kept.remove()  # what an interrupted fit would need


# --- fitting -------------------------------------------------------------------------------------


@dataclass
class _Fitted:
    """A finished fit, ready to be reported."""

    source: Path
    folder: Path
    embedding: Embedding
    seconds: float
    seed: int
    n_answers: int
    contradictions: int | None = None  # not counted for very many answers
    command: str = ""
    look: dict[str, Any] = field(default_factory=dict)  # pictures, and their size

    @property
    def names(self) -> list[str]:
        """What the objects are called."""
        return list(map(str, self.embedding.object_names))

    @property
    def origin(self) -> dict[str, str]:
        """Which file it was made from, so that another version of it is noticed."""
        sums = [sha256(file) for file in parquet_files(self.source) or [self.source]]
        whole = sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()
        return {"file": str(self.source), "sha256": whole}


def _fit_file(
    source: Path,
    out: Path,
    columns: dict[str, str | int] | None,
    reading: dict[str, Any],
    *,
    d: int | None,
    seed: int | None,
    **options: Any,
) -> _Fitted:
    """Fit the answers of a file, after saying what was read and what was left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # the report names them
        answers = read_triplets(source, columns=columns, **reading)
    say(str(answers.report), err=True)
    seed = secrets.randbits(31) if seed is None else seed
    start = time.perf_counter()
    with step_progress() as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswersWarning)  # the table says it
        step(f"fitting {amount(len(answers), 'answer')}")
        embedding = _fit.fit(answers, n_components=d or "auto", random_state=seed, **options)
    seconds, clash = time.perf_counter() - start, answers.report.contradictions
    make_folder(out)
    return _Fitted(source, out, embedding, seconds, seed, len(answers), clash)


def _in_blocks(path: Path, columns: dict[str, str | int] | None) -> BlockSource | None:
    """The file in blocks where it has very many answers, or many processes to fit them."""
    from nearer.scale.blocks import as_source
    from nearer.scale.passes import is_one_of_many

    source = as_source(path, columns)
    if is_one_of_many():
        if source is None:
            raise InvalidInput(
                f"{path}: several processes share .parquet and .npy files; write it as one of them"
            )
        return source
    many = source is not None and source.n_rows is not None and source.n_rows > _fit.MANY
    return source if many else None


def _fit_blocks(
    source: BlockSource,
    path: Path,
    out: Path,
    *,
    d: int | None,
    device: str,
    method: str,
    max_iter: int,
    tol: float,
    seed: int | None,
) -> tuple[Checkpoint | None, _Fitted | None]:
    """Fit the answers of a large file; no result in processes that only help."""
    from nearer.scale.blocks import store
    from nearer.scale.fit_in_blocks import Checkpoint, fit_many
    from nearer.scale.passes import Processes, is_one_of_many, lay_out

    others = Processes(device) if is_one_of_many() else None
    with using(device), step_progress() as step:
        if others is not None and others.rank:
            others.serve(store(source, share=others.share, sampled=False))
            return None, None
        seed = secrets.randbits(31) if seed is None else seed
        make_folder(out)
        file, start = out / INTERRUPTED, time.perf_counter()
        with stopped_by_ctrl_c(partial(_where_it_is, file)):
            step(escape(visible(f"reading {path}")))
            whose = (0, 1) if others is None else others.share
            answers = store(source, share=whose, sampled=d is None)
            n = answers.n_objects
            count = amount(answers.n_rows, "triplet")
            say(f"{count} over {n:,} objects, fitted in blocks", err=True)
            if answers.unread:
                say(f"columns not used: {', '.join(answers.unread)}", err=True)
            goal = _fit.make_goal(n, d or "auto", method, max_iter=max_iter, tol=tol)
            kept = Checkpoint(file, step)
            if kept.take_up(answers, goal):
                say(f"going on from {file}, which an interrupted fit has left", err=True)
            layout, rng = lay_out if others is None else others.layout, np.random.default_rng(seed)
            embedding = fit_many(answers, goal, rng, layout=layout, kept=kept)
            if others is not None:
                others.dismiss()
    seconds = time.perf_counter() - start
    return kept, _Fitted(path, out, embedding, seconds, seed, answers.n_rows)


def _where_it_is(file: Path) -> str:
    """What is kept after Ctrl-C, and how to go on."""
    if not file.is_file():
        return "interrupted; nothing was reached yet; the same command begins anew"
    return f"interrupted; what was reached is kept in {file}; the same command goes on from there"


# --- the result ----------------------------------------------------------------------------------


def _summary(fitted: _Fitted) -> dict[str, Any]:
    """The figures of a fit, as ``--json`` prints them."""
    e = fitted.embedding
    held, found, curve = e.held_out, e.details["estimate"], None
    if found is not None:
        tried = found.dimensions.tolist()
        curve = {
            "method": found.method,
            "determined": found.determined,
            "dimensions": tried,
            "scores": found.scores.tolist(),
            "errors": found.errors.tolist(),
            "probabilities": [found.evidence.get(d, {}).get("probability") for d in tried],
        }
    new = None if held is None else held.new_people
    return {
        "n_objects": len(e.positions),
        "n_answers": e.n_comparisons,
        "n_triplets": fitted.n_answers,
        "contradictions": fitted.contradictions,
        "method": e.details["method"],
        **dimension_figures(e),
        "dimension_curve": curve,
        "held_out_accuracy": None if held is None else held.accuracy,
        "held_out_low": None if held is None else held.low,
        "held_out_high": None if held is None else held.high,
        "held_out_answers": 0 if held is None else held.n_trials,
        "noise": e.error_rate,
        "new_people_accuracy": None if new is None else new.accuracy,
        "new_people_low": None if new is None else new.low,
        "new_people_high": None if new is None else new.high,
        "contrary_people": _flagged(e, "contrary"),
        "guessing_people": _flagged(e, "guessing"),
        "loss": float(e.details["loss"]),
        "agreement": {kind: asdict(x) for kind, x in e.details["agreement"].items()},
        "seconds": round(fitted.seconds, 3),
        "seed": fitted.seed,
        "version": __version__,
        "source": fitted.origin,
        "command": fitted.command,
        "out": str(fitted.folder),
    }


def _flagged(embedding: Embedding, which: str) -> list[str] | None:
    people = embedding.people
    if people is None or np.isnan(people["sensitivity"]).any():
        return None
    return [str(name) for name in people["id"][people["flag"] == which]]


def _report(
    fitted: _Fitted, map_file: Path | None, report_file: Path | None, *, as_json: bool
) -> None:
    """Write the files, then print the figures."""
    from nearer.plotting import as_png, plot_dimension

    e, look, name = fitted.embedding, fitted.look, fitted.source.name
    contents: dict[str, str | bytes] = {
        "embedding.csv": positions_text(e.positions, fitted.names, e.covariances),
        "map.png": as_png(e.plot(labels=fitted.names, **look)),
    }
    if e.details["estimate"] is not None:
        contents["dimension.png"] = as_png(plot_dimension(e.details["estimate"]))
    if e.people is not None:
        contents["people.csv"] = _people_text(e)
    summary = {**_summary(fitted), "files": sorted([*contents, "fit.json"])}
    contents["fit.json"] = json_text(summary, indent=1) + "\n"
    stale = _earlier(fitted.folder) - set(contents)
    write_files(fitted.folder, contents)
    for file in stale:
        (fitted.folder / file).unlink(missing_ok=True)
    draw_files(e, name, map_file, report_file, look, command=fitted.command, source=fitted.origin)
    if as_json:
        click.echo(json_text(summary))
    else:
        _print(fitted, summary, [file for file in (map_file, report_file) if file is not None])


def _earlier(folder: Path) -> set[str]:
    """The files that an earlier fit wrote there, by its fit.json; other files stay."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        written = json.loads((folder / "fit.json").read_text(encoding="utf-8"))["files"]
        return {name for name in _FILES if name in written}
    return set()


def _print(fitted: _Fitted, summary: dict[str, Any], also: list[Path]) -> None:
    """One table of 80 columns, and what it does not say."""
    known = {True: "", False: " (not determined)", None: " (given)"}[summary["determined"]]
    low, high = summary["held_out_low"], summary["held_out_high"]
    cells = {
        "objects": summary["n_objects"],
        "answers": summary["n_answers"],
        "dimension": f"{summary['dimension']}{known}",
        "held-out": summary["held_out_accuracy"],
        "95 %": None if low is None else f"{low:.3g}–{high:.3g}",
        "noise": summary["noise"],
        "seconds": summary["seconds"],
    }
    title = f"{fitted.source}, {summary['method']}"
    print_table(title, {name: [cell] for name, cell in cells.items()})
    for line in _remarks(fitted, summary):
        say(line)
    say(f"in {fitted.folder}: {', '.join(summary['files'])}")
    for file in also:
        say(f"written: {file}")


def _remarks(fitted: _Fitted, summary: dict[str, Any]) -> Iterator[str]:
    """Remarks below the table."""
    held, pictures = fitted.embedding.held_out, fitted.look["pictures"]
    if held is not None and held.is_guessing:
        yield "these answers are predicted no better than by guessing: the map may be chance alone"
    yield from undetermined(fitted.embedding)
    if pictures is not None:
        n_drawn = sum(file is not None for file in pictures)
        yield f"{n_drawn:,} of {amount(len(pictures), 'object')} have a picture"
    others = fitted.embedding.details["agreement"].get("others")
    if others is not None:
        yield f"two people agree on {others.share:.3f} of the questions that both answered"
    said = {"contrary": "contradict all others", "guessing": "seem to guess"}
    said |= {"one side": "keep to one side", "too fast": "answer faster than one can look"}
    for which, words in said.items():
        if flagged := _flagged(fitted.embedding, which):
            yield f"{words} ({which}): {', '.join(flagged)}"


def _people_text(embedding: Embedding) -> str:
    people, weights = embedding.people, embedding.weights
    assert people is not None
    names = list(people.dtype.names or ())
    columns = [people[name] for name in names] + ([] if weights is None else list(weights.T))
    header = ["person", *names[1:]]
    header += [f"weight{k + 1}" for k in range(len(columns) - len(names))]
    return table_text(header, zip(*columns, strict=True))
