"""`nearer fit`: a file of answers in; positions, their dimension and how sure they are, out.

Very many answers are fitted block by block, with a bar, interruptible and resumable. Where
``torchrun`` has started several processes, each of them keeps its share of the answers, and process
0 alone prints and writes.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource
from rich.markup import escape

from nearer import __version__, _fit
from nearer.asking.progress import bar_progress, step_progress
from nearer.checks import amount
from nearer.cli.output import (
    INTERRUPTED,
    GivenPath,
    check_files,
    check_folder,
    dimension_figures,
    make_folder,
    print_summary,
    say,
    scheduler_option,
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
from nearer.fitting.likelihood import MarginForecast
from nearer.fitting.solver import margins, using
from nearer.trials import Report, Triplets
from nearer.triplets import read_triplets

if TYPE_CHECKING:
    from nearer.scale.blocks import BlockSource
    from nearer.scale.fit_in_blocks import Checkpoint

__all__ = ["command"]

_MOST = 12  # dimensions tried in blocks, as in nearer.fit
_MOST_DRAWN = 1000  # objects with ellipses, pictures and printed names; more hide each other
_MOST_NAMED = 10  # people in a line; the others are in people.csv
_FILES = ("dimension.png", "embedding.csv", "fit.json", "map.png", "people.csv")


@click.command("fit")
@click.argument("triplets", callback=lambda _, __, path: as_path(path))
@click.option(
    "--method",
    type=click.Choice(["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"]),
    default="auto",
    show_default=True,
    help="auto: soe where positions satisfy all answers, else a fit that expects wrong answers.",
)
@click.option("--dim", default="auto", show_default=True, help="A number of dimensions, or auto.")
@click.option(
    "--kind",
    type=click.Choice(["auto", "triplets", "answers", "odd-one-out", "most-central"]),
    default="auto",
    show_default=True,
    help="What the rows of the file say.",
)
@click.option(
    "--columns",
    help="Which column, by name or position from 0, is what: head=ref,near=same,far=other.",
)
@click.option("--no-header", is_flag=True, help="The first row is an answer, not a header.")
@click.option(
    "--names", is_flag=True, help="Objects are names, also where these look like numbers."
)
@click.option(
    "--first",
    type=click.Choice(["0", "1"]),
    help="Where a choice is a place among what was shown: whether places begin with 0 or 1.",
)
@click.option(
    "--drop-bad-rows", is_flag=True, help="Leave out rows that cannot be read; they are listed."
)
@click.option(
    "--bootstrap",
    type=click.IntRange(min=0),
    default=None,
    help="Fits to answers drawn again, for the uncertainty of each position; 0 leaves it out. "
    "Default: 20; none where the fit expects wrong answers, it knows how sure it is.",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Steps of the optimiser in the last fit.",
)
@click.option(
    "--tol",
    type=click.FloatRange(min=0, min_open=True),
    default=1e-8,
    show_default=True,
    help="Gain of a step that ends it.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="auto: a GPU where there is one and the file is large enough to gain.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Makes the fit repeatable.")
@click.option("--out", default="out/fit", show_default=True, help="Folder for the results.")
@click.option(
    "--map",
    "map_file",
    type=GivenPath(),
    help="Also draw the map to this file: .svg, .pdf, .png, or .html to explore it.",
)
@click.option(
    "--report",
    "report_file",
    type=GivenPath(),
    help="Also write a report for a paper to this file, .html or .md.",
)
@click.option(
    "--pictures",
    type=GivenPath(exists=True, file_okay=False),
    help="Draw objects as the pictures in this folder that are named after them.",
)
@click.option(
    "--picture-size",
    type=click.FloatRange(min=0, min_open=True),
    help="Points (1/72 inch) of a picture on printed maps. Default: 36, less where it is crowded.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@scheduler_option
def command(
    triplets: Path,
    columns: str | None,
    as_json: bool,
    out: str,
    scheduler: str | None,
    map_file: Path | None,
    report_file: Path | None,
    pictures: Path | None,
    picture_size: float | None,
    dim: str,
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
      noise      share of answers that depart from the map, people counted by reliability
      seconds    how long the fit took

    Below it: people who contradict all others ("contrary") or seem to guess.
    The files written to --out: embedding.csv with the positions, people.csv
    where the file says who answered, fit.json with all figures, the version,
    the source and the command, map.png, dimension.png.
    """  # noqa: D301 - the backspace keeps the lines of the list apart
    from nearer.scale.cluster import scheduler as sent_to

    reads = [triplets, *parquet_files(triplets), *(pictures.iterdir() if pictures else ())]
    check_folder(out, _FILES, reads)
    check_files(map_file, report_file, reads)
    wanted = _dimension(dim)
    if options["bootstrap"] == 1:
        raise InvalidInput("--bootstrap 1: a spread needs at least 2 draws; 0 leaves it out")
    with using(options["device"]):
        pass  # a device that is not there is refused before a long file is read
    named = None if columns is None else _columns(columns)
    source = _in_blocks(triplets, named)
    parts = ("kind", "no_header", "names", "first", "drop_bad_rows")
    reading = {name: options.pop(name) for name in parts}
    if source is not None:
        reading |= {"kind": reading["kind"] not in ("auto", "triplets"), "scheduler": scheduler}
        if given := [f"--{name.replace('_', '-')}" for name, value in reading.items() if value]:
            raise InvalidInput(
                f"{triplets}: is read in blocks, by this machine or torchrun, and every row is "
                f"a triplet; leave out {', '.join(given)}"
            )
        kept, result = _fit_blocks(source, triplets, out, wanted, **options)
    else:
        answers = _read(triplets, named, **reading)
        with sent_to(scheduler):
            kept, result = None, _fit_file(answers, triplets, out, wanted, **options)
    if result is not None:
        result.command = _as_typed(click.get_current_context(), result.seed)
        result.picture_folder, result.picture_size = pictures, picture_size
        _report(result, as_json=as_json, map_file=map_file, report_file=report_file)
    if kept is not None:
        kept.remove()  # what an interrupted fit would need


def _read(
    path: Path,
    columns: Mapping[str, str | int] | None,
    *,
    kind: Any,
    no_header: bool,
    names: bool,
    first: str | None,
    drop_bad_rows: bool,
) -> Triplets:
    """The answers of a file, after saying what was read and what was left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # the report names them
        answers = read_triplets(
            path,
            kind=kind,
            header=False if no_header else "auto",
            objects="names" if names else "auto",
            columns=columns,
            drop_bad_rows=drop_bad_rows,
            first=None if first is None else int(first),
        )
    say(str(answers.report), err=True)
    return answers


def _as_typed(context: click.Context, seed: int) -> str:
    """The command that gives the same again: what was typed, and the seed that was drawn."""
    words = ["nearer", "fit"]
    for parameter in context.command.params:
        name = parameter.name or ""
        value = seed if name == "seed" else context.params.get(name)
        typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if isinstance(parameter, click.Argument):
            path = str(value)  # one that begins with - would be taken for an option
            words.append(f"./{path}" if path.startswith("-") else path)
        elif typed or name == "seed":
            words += [parameter.opts[0]] if value is True else [parameter.opts[0], str(value)]
    return shlex.join(words)


def _columns(text: str) -> dict[str, str | int]:
    """Parts and their columns from ``head=ref,near=1``."""
    parts: dict[str, str | int] = {}
    for one in text.split(","):
        part, equals, column = (x.strip() for x in one.partition("="))
        if not (part and equals and column):
            raise InvalidInput(
                f"--columns {text}: {one!r} is not of the form part=column, such as "
                "head=ref,near=same,far=other"
            )
        parts[part] = int(column) if column.isdecimal() else column
    return parts


def _dimension(dim: str) -> int | None:
    """What ``--dim`` says: a number of dimensions; None for auto."""
    if dim == "auto":
        return None
    if not (dim.isascii() and dim.isdigit() and int(dim)):
        raise InvalidInput(f"--dim {dim}: must be auto or a whole number from 1")
    return int(dim)


def _check_dimension(d: int | None, n: int) -> None:
    if d is not None and d >= n:
        raise InvalidInput(
            f"--dim {d}: must be auto or a whole number from 1 to {n - 1}, one fewer than there "
            "are objects"
        )


# --- fitting -------------------------------------------------------------------------------------


@dataclass
class Fitted:
    """A finished fit, ready to be reported."""

    source: Path
    folder: Path
    embedding: Embedding
    seconds: float
    seed: int
    n_answers: int
    labels: Sequence[str]
    contradictions: int | None = None  # not counted for very many answers
    command: str = ""
    picture_folder: Path | None = None
    picture_size: float | None = None

    @property
    def names(self) -> list[str]:
        """What the objects on the map are called."""
        return [str(name) for name in self.embedding.names or self.labels]

    @property
    def origin(self) -> dict[str, str]:
        """Which file it was made from, so that another version of it is noticed."""
        files = parquet_files(self.source) or [self.source]
        sums = [sha256(file) for file in files]
        whole = sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()
        return {"file": str(self.source), "sha256": whole}

    @property
    def pictures(self) -> list[Path | None] | None:
        """Picture files by the objects' names: of --pictures, or beside the source if all are.

        A name must not lead to another folder.
        """
        from nearer.plotting.map_inputs import PICTURES

        folder = self.picture_folder or self.source.parent
        ends = ["", *PICTURES] if self.picture_folder else [""]
        files: list[Path | None] = []
        for name in self.names:
            tried = [folder / f"{name}{end}" for end in ends]
            there = (
                file
                for file in tried
                if file.suffix.lower() in PICTURES
                and os.path.isfile(file)
                and file.resolve().is_relative_to(folder.resolve())
            )
            files.append(next(there, None))
        return None if self.picture_folder is None and None in files else files


def _fit_file(
    answers: Triplets, source: Path, out: str, d: int | None, *, seed: int | None, **options: Any
) -> Fitted:
    """Fit the answers of a file."""
    if not len(answers):
        raise InvalidInput(f"{source}: no answer is left, {_why_none(answers.report)}")
    _check_dimension(d, len(np.unique(answers.triplets)))
    folder = make_folder(out)
    seed = secrets.randbits(31) if seed is None else seed
    start = time.perf_counter()
    with step_progress() as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswersWarning)  # the table says it
        step(f"fitting {amount(len(answers), 'answer')}")
        embedding = _fit.fit(answers, n_components=d or "auto", random_state=seed, **options)
    seconds, clash = time.perf_counter() - start, answers.report.contradictions
    return Fitted(source, folder, embedding, seconds, seed, len(answers), answers.labels, clash)


def _why_none(report: Report) -> str:
    """The reasons why no answer can be used."""
    found = {
        "names an object twice": report.degenerate,
        "is undecided": (*report.undecided, *report.ties),
        "could not be read": report.bad,
        "is another page": report.others,
    }
    reasons = [why for why, lines in found.items() if lines]
    return f"since every one {' or '.join(reasons)}; a fit needs at least one answer"


def _in_blocks(path: Path, columns: Mapping[str, str | int] | None) -> BlockSource | None:
    """The file in blocks where it has very many answers, or many processes to fit them."""
    from nearer.scale.blocks import as_source
    from nearer.scale.torchrun import is_one_of_many

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
    out: str,
    d: int | None,
    *,
    device: str,
    method: str,
    bootstrap: int | None,
    max_iter: int,
    tol: float,
    seed: int | None,
) -> tuple[Checkpoint | None, Fitted | None]:
    """Fit the answers of a large file; no result in processes that only help."""
    from nearer.scale.blocks import store
    from nearer.scale.fit_in_blocks import Checkpoint, fit_many, lay_out
    from nearer.scale.torchrun import Processes, is_one_of_many

    if bootstrap:
        raise InvalidInput(
            f"--bootstrap {bootstrap}: answers that are fitted in blocks are not drawn again; "
            "leave it out"
        )
    others = Processes(device) if is_one_of_many() else None
    with using(device), bar_progress() as (step, share):
        if others is not None and others.rank:
            others.serve(store(source, share=others.share, sampled=False))
            return None, None
        seed = secrets.randbits(31) if seed is None else seed
        folder, start = make_folder(out), time.perf_counter()
        file = folder / INTERRUPTED
        with stopped_by_ctrl_c(partial(_where_it_is, file)):
            step(escape(visible(f"reading {path}")))
            shown = replace(source, blocks=_watched(source, share))
            whose = (0, 1) if others is None else others.share
            answers = store(shown, share=whose, sampled=d is None)
            n = answers.n_objects
            say(
                f"{amount(answers.n_rows, 'triplet')} over {n:,} objects, fitted in blocks",
                err=True,
            )
            if answers.unread:
                say(f"columns not used: {', '.join(answers.unread)}", err=True)
            _check_dimension(d, n)
            goal = _fit.Goal(method, d, min(_MOST, n - 1), max_iter, tol)
            kept = Checkpoint(file, step)
            if kept.take_up(answers, goal):
                say(f"going on from {file}, which an interrupted fit has left", err=True)
            layout = partial(lay_out if others is None else others.layout, watch=share)
            rng = np.random.default_rng(seed)
            embedding = fit_many(answers, goal, rng, layout=layout, kept=kept)
            if others is not None:
                others.dismiss()
    seconds, labels = time.perf_counter() - start, [str(i) for i in range(n)]
    return kept, Fitted(path, folder, embedding, seconds, seed, answers.n_rows, labels)


def _watched(source: BlockSource, share: Callable[[float], object]) -> Iterator[Any]:
    """The blocks, while the bar shows how many of their rows were read."""
    done = 0
    for block in source.blocks:
        yield block
        done += len(block)
        share(done / max(source.n_rows or done, 1))


def _where_it_is(file: Path) -> str:
    """What is kept after Ctrl-C, and how to go on."""
    if not file.is_file():
        return "interrupted; nothing was reached yet; the same command begins anew"
    return f"interrupted; what was reached is kept in {file}; the same command goes on from there"


# --- the result ----------------------------------------------------------------------------------


def _summary(fitted: Fitted) -> dict[str, Any]:
    """The figures of a fit, as ``--json`` prints them."""
    e = fitted.embedding
    held, found = e.held_out, e.details["estimate"]
    return {
        "n_objects": len(e.positions),
        "n_answers": e.n_comparisons,
        "n_triplets": fitted.n_answers,
        "contradictions": fitted.contradictions,
        "method": e.details["method"],
        **dimension_figures(e),
        "dimension_curve": None
        if found is None
        else {
            "method": found.method,
            "determined": found.determined,
            "dimensions": found.dimensions.tolist(),
            "scores": found.scores.tolist(),
            "errors": found.errors.tolist(),
            "probabilities": [
                found.evidence.get(d, {}).get("probability") for d in found.dimensions.tolist()
            ],
        },
        "held_out_accuracy": None if held is None else held.accuracy,
        "held_out_low": None if held is None else held.low,
        "held_out_high": None if held is None else held.high,
        "held_out_answers": 0 if held is None else held.n_trials,
        "accuracy": float(MarginForecast(margins(e.positions, e.triplets)).right.mean())
        if len(e.triplets)
        else 1 - (e.error_rate or 0.0),
        "noise": e.error_rate,
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
    if people is None or embedding.details["reliability"] is None:
        return None
    return [str(name) for name in people["id"][people["flag"] == which]]


def _report(
    fitted: Fitted, *, as_json: bool, map_file: Path | None, report_file: Path | None
) -> None:
    """Write the files, then print the figures."""
    from nearer.plotting import as_png, plot_dimension, save

    e, contents = fitted.embedding, dict[str, str | bytes]()
    contents["embedding.csv"] = positions_text(e.positions, fitted.names, e.covariances)
    contents["map.png"] = as_png(_draw_map(fitted, ".png"))
    if e.details["estimate"] is not None:
        contents["dimension.png"] = as_png(plot_dimension(e.details["estimate"]))
    if e.people is not None:
        contents["people.csv"] = _people_text(e)
    summary = {**_summary(fitted), "files": sorted([*contents, "fit.json"])}
    contents["fit.json"] = json_text(summary, indent=1) + "\n"
    stale = _earlier(fitted.folder) - set(contents)
    write_files(fitted.folder, contents)
    for name in stale:
        (fitted.folder / name).unlink(missing_ok=True)
    if map_file is not None:
        save(_draw_map(fitted, map_file.suffix.lower()), map_file)
    if report_file is not None:
        e.report(
            report_file,
            title=f"Report on {fitted.source.name}",
            command=fitted.command,
            source=fitted.origin,
            pictures=fitted.pictures,
        )
    if as_json:
        click.echo(json_text(summary))
    else:
        _print(fitted, summary, [file for file in (map_file, report_file) if file is not None])


def _earlier(folder: Path) -> set[str]:
    """The files that an earlier fit wrote there, by its fit.json; other files stay."""
    try:
        written = json.loads((folder / "fit.json").read_text(encoding="utf-8"))["files"]
        return {name for name in _FILES if name in written}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _print(fitted: Fitted, summary: dict[str, Any], also: list[Path]) -> None:
    """One table of 80 columns, and what it does not say."""
    known = {True: "", False: "\nnot determined", None: "\ngiven"}[summary["determined"]]
    low, high = summary["held_out_low"], summary["held_out_high"]
    accuracy, noise = (
        "–" if value is None else f"{value:.3f}"
        for value in (summary["held_out_accuracy"], summary["noise"])
    )
    cells = {
        "objects": summary["n_objects"],
        "answers": summary["n_answers"],
        "dimension": f"{summary['dimension']}{known}",
        "held-out": accuracy,
        "95 %": "–" if low is None else f"{low:.3f}–{high:.3f}",
        "noise": noise,
        "seconds": summary["seconds"],
    }
    files = f"in {fitted.folder}: {', '.join(summary['files'])}"
    lines = [*_remarks(fitted, summary), files, *(f"written: {file}" for file in also)]
    # seven columns fit a terminal of 80 characters without borders
    print_summary(f"{fitted.source}, {summary['method']}", cells, lines, boxed=False)


def _remarks(fitted: Fitted, summary: dict[str, Any]) -> Iterator[str]:
    """Remarks below the table."""
    held = fitted.embedding.held_out
    if held is not None and held.is_guessing:
        yield "these answers are predicted no better than by guessing: the map may be chance alone"
    yield from undetermined(fitted.embedding)
    if fitted.picture_folder is not None:
        n_drawn = sum(file is not None for file in fitted.pictures or [])
        n = len(fitted.names)
        yield f"{n_drawn:,} of {n:,} objects have a picture in {fitted.picture_folder}"
    others = fitted.embedding.details["agreement"].get("others")
    if others is not None:
        yield f"two people agree on {others.share:.3f} of the questions that both answered"
    said = {"contrary": "contradict all others", "guessing": "seem to guess"}
    for which, words in said.items():
        if flagged := summary[f"{which}_people"]:
            more = f" and {len(flagged) - _MOST_NAMED} more, see people.csv"
            listed = ", ".join(flagged[:_MOST_NAMED]) + (more if len(flagged) > _MOST_NAMED else "")
            yield f"{words} ({which}): {listed}"


def _people_text(embedding: Embedding) -> str:
    people, rated = embedding.people, embedding.details["reliability"]
    assert people is not None
    header = ["person", "reliability", "error", "answers", "agreement", "low", "high", "flag"]
    errors = np.full(len(people), np.nan) if rated is None else rated.errors
    columns = [people["id"], people["reliability"], errors, people["n_trials"]]
    columns += [people[name] for name in header[4:]]
    return table_text(header, zip(*columns, strict=True))


def _draw_map(fitted: Fitted, kind: str) -> Any:
    """The map, to be printed or to be explored."""
    many = len(fitted.names) > _MOST_DRAWN
    options: dict[str, Any] = {"labels": fitted.names, "pictures": fitted.pictures}
    if many:
        options |= {"covariances": None, "pictures": None}
    if kind == ".html":
        options |= {"interactive": True, "title": f"Map of {fitted.source.name}"}
    else:
        options |= {"picture_size": fitted.picture_size} | ({"labels": None} if many else {})
    return fitted.embedding.plot(**options)
