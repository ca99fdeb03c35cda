"""`nearer fit`: a file of answers in; positions, their dimension and uncertainty out.

docs/scale.md shows how it fits very many answers.
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
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.markup import escape

from nearer import __version__, _fit, files
from nearer.asking.progress import step_progress
from nearer.checks import amount
from nearer.cli import output
from nearer.cli.output import GivenPath, json_option, option, seed_option
from nearer.embedding import Embedding
from nearer.errors import AnswersWarning, DroppedRows, InvalidInput, visible
from nearer.fitting.solver import using
from nearer.triplets import read_triplets

if TYPE_CHECKING:
    from nearer.scale.blocks import BlockSource
    from nearer.scale.fit_in_blocks import Checkpoint

_FILES = ("dimension.png", "embedding.csv", "fit.json", "map.png", "people.csv")
_READING = ("columns", "kind", "no_header", "objects", "first", "drop_bad_rows")


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
            form = "part=column, such as head=ref,near=same,far=other"
            raise InvalidInput(f"--columns {text}: {one!r} is not of the form {form}")
        parts[part] = int(column) if column.isdecimal() else column
    return parts or None


def _dimension(_: Any, __: Any, dim: str) -> int | str:
    if dim != "auto" and not (dim.isascii() and dim.isdigit() and int(dim)):
        raise InvalidInput(f"--dim {dim}: must be auto or a whole number from 1")
    return dim if dim == "auto" else int(dim)


_methods = click.Choice(["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"])
_kinds = click.Choice(["auto", "triplets", "answers", "odd-one-out", "most-central"])
_devices = click.Choice(["auto", "cpu", "cuda"])
_above_0 = output.Number(min=0, min_open=True)


@click.command("fit", cls=_AsTyped)
@click.argument("triplets", callback=lambda _, __, path: files.as_path(path))
@option("--method", type=_methods, default="auto", help="noisy expects wrong answers, soe none.")
@option("--dim", "n_components", default="auto", callback=_dimension, help="Dimensions, or auto.")
@option("--kind", type=_kinds, default="auto", help="The kind of rows in the file.")
@click.option("--columns", callback=_columns, help="Such as head=ref,near=same,far=other.")
@click.option("--no-header", is_flag=True, help="The first row is an answer.")
@click.option("--names", "objects", flag_value="names", help="Numbers are names of objects.")
@click.option("--first", type=click.IntRange(0, 1), help="The number of the first place shown.")
@click.option("--drop-bad-rows", is_flag=True, help="Leave out rows with faults.")
@option("--max-iter", type=click.IntRange(1), default=1000, help="Steps of the last fit.")
@option("--tol", type=_above_0, default=1e-8, help="Gain of a step that ends it.")
@option("--device", type=_devices, default="auto", help="auto: a GPU if it is faster.")
@seed_option
@option("--out", type=GivenPath(), default="out/fit", help="Folder for the results.")
@output.drawing_options
@click.option("--picture-size", type=_above_0, help="Points or pixels; 40 if there is room.")
@json_option
@output.scheduler_option
def command(triplets: Path, as_json: bool, out: Path, **options: Any) -> None:
    """Find positions from the answers in the file TRIPLETS.

    The file is read in any of the common forms: head, winner, loser; questions with answers;
    odd-one-out and most-central-of-three by --kind; screens (some of many are chosen), votes,
    jsPsych and psiz; .csv, .tsv, .txt, .npy, .npz, .json, .jsonl, .h5, compressed or not; .parquet,
    or a folder of such files. More than four million triplets in .parquet or .npy are fitted in
    blocks, also if memory cannot hold them. Ctrl-C saves the positions so far, and torchrun divides
    the work among processes: torchrun --nproc-per-node=2 -m nearer fit big.parquet

    \b
    The table says:
      objects    how many there are
      answers    how many were read and used
      dimension  how many dimensions the map has; "not determined" where the
                 answers leave other numbers possible, which are then listed
      held-out   share of answers predicted by fits that had not seen them
      95 %       the interval that holds that share 95 times in 100
      noise      share of answers that contradict the map
      seconds    how long reading and fitting took

    Below it: people who contradict all others ("contrary") or seem to guess.
    The files written to --out: embedding.csv with the positions, people.csv
    if the file says who answered, fit.json with all figures, the version,
    the source and the command, map.png, dimension.png.
    """  # noqa: D301 - the backspace keeps the lines of the list apart
    from nearer.parallel import scheduler as sent_to

    drawings = {name: options.pop(name) for name in ("map", "report")}
    pictures, size = options.pop("pictures"), options.pop("picture_size")
    reads = [triplets, *files.parquet_files(triplets), *(pictures.iterdir() if pictures else ())]
    output.check_folder(out, _FILES, reads)
    output.check_files(reads, **drawings)
    with using(options["device"]):
        pass  # a missing device is refused before a long file is read
    start, reading = time.perf_counter(), {name: options.pop(name) for name in _READING}
    reading = {name: x for name, x in reading.items() if x not in (None, "auto") and x is not False}
    typed = ["nearer", "fit", *click.get_current_context().meta["typed"]]
    if options["seed"] is None:
        options["seed"] = secrets.randbits(31)
        typed[2:2] = ["--seed", str(options["seed"])]
    scheduler, source = options.pop("scheduler"), _in_blocks(triplets, reading.get("columns"))
    if source is None:
        checkpoint: Checkpoint | None = None
        with sent_to(scheduler):
            embedding, counts = _fit_file(triplets, reading, **options)
        out.mkdir(parents=True, exist_ok=True)
    else:
        if scheduler or set(reading) - {"columns"}:
            rule = "is read in blocks, by this machine or torchrun; of the options that say how to "
            raise InvalidInput(f"{triplets}: {rule}read it, only --columns may be there")
        fitted = _fit_blocks(source, triplets, out, **options)
        if fitted is None:  # the process that shares out the work has the result
            return
        embedding, counts, checkpoint = fitted
    sums = [files.sha256(file) for file in files.parquet_files(triplets) or [triplets]]
    whole = sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()
    figures = {
        **_summary(embedding),
        **counts,
        "seconds": round(time.perf_counter() - start, 3),
        "seed": options["seed"],
        "version": __version__,
        "source": {"file": str(triplets), "sha256": whole},
        "command": shlex.join(typed),
        "out": str(out),
    }
    names = list(map(str, embedding.object_names))
    look = {"pictures": output.picture_files(names, pictures, triplets), "picture_size": size}
    figures["files"] = _write(out, embedding, figures, look)
    origin = {name: figures[name] for name in ("command", "source")}
    output.draw_files(embedding, triplets.name, drawings, look, **origin)
    lines = [*_remarks(embedding), f"in {out}: {', '.join(figures['files'])}"]
    lines += [f"written: {file}" for file in drawings.values() if file is not None]
    title = f"{triplets}, {figures['method']}"
    output.show(figures, _columns_shown(figures), lines, as_json=as_json, title=title)
    if checkpoint is not None:
        checkpoint.remove()  # what an interrupted fit would need


# --- fitting -------------------------------------------------------------------------------------


def _fit_file(
    path: Path, reading: dict[str, Any], *, seed: int, **options: Any
) -> tuple[Embedding, dict[str, int | None]]:
    """Fit the answers of a file, after printing what was read and left out."""
    if reading.pop("no_header", False):
        reading["header"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # the report names them
        answers = read_triplets(path, **reading)
    output.say(str(answers.report), err=True)
    with step_progress() as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswersWarning)  # the table says it
        step(f"fitting {amount(len(answers), 'answer')}")
        embedding = _fit.fit(answers, random_state=seed, **options)
    clash = answers.report.contradictions
    return embedding, {"n_triplets": len(answers), "contradictions": clash}


def _in_blocks(path: Path, columns: dict[str, str | int] | None) -> BlockSource | None:
    """The file in blocks, if it has very many answers or several processes fit it."""
    from nearer.scale.blocks import as_source, is_one_of_many

    source = as_source(path, columns)
    if is_one_of_many():
        if source is None:
            rule = "several processes share .parquet and .npy files; write it as one of them"
            raise InvalidInput(f"{path}: {rule}")
        return source
    return source if source is not None and source.n_rows > _fit.MANY else None


def _fit_blocks(
    source: BlockSource,
    path: Path,
    out: Path,
    *,
    n_components: int | str,
    method: str,
    device: str,
    seed: int,
    **steps: Any,
) -> tuple[Embedding, dict[str, int | None], Checkpoint] | None:
    """Fit the answers of a large file; no result in processes that only help."""
    from nearer.scale.blocks import Processes, is_one_of_many, lay_out, store
    from nearer.scale.fit_in_blocks import Checkpoint, fit_many

    others = Processes(device) if is_one_of_many() else None
    with using(device), step_progress() as step:
        if others is not None and others.rank:
            others.serve(store(source, share=others.share, sampled=False))
            return None
        out.mkdir(parents=True, exist_ok=True)
        file = out / output.INTERRUPTED

        def after_ctrl_c() -> str:
            if not file.is_file():
                return "interrupted before there were positions; repeat the command to begin again"
            return f"interrupted; positions so far are in {file}; repeat the command to continue"

        with output.stopped_by_ctrl_c(after_ctrl_c):
            step(escape(visible(f"reading {path}")))
            share = (0, 1) if others is None else others.share
            answers = store(source, share=share, sampled=n_components == "auto")
            n, count = answers.n_objects, amount(answers.n_rows, "triplet")
            output.say(f"{count} over {n:,} objects, fitted in blocks", err=True)
            if answers.unread:
                output.say(f"columns not used: {', '.join(answers.unread)}", err=True)
            goal = _fit.make_goal(n, n_components, method, **steps)
            checkpoint = Checkpoint(file, step)
            if checkpoint.take_up(answers, goal):
                output.say(f"continuing from {file}, left by an interrupted fit", err=True)
            layout, rng = lay_out if others is None else others.layout, np.random.default_rng(seed)
            embedding = fit_many(answers, goal, rng, layout=layout, checkpoint=checkpoint)
            if others is not None:
                others.dismiss()
    # very many answers are not searched for contradictions
    return embedding, {"n_triplets": answers.n_rows, "contradictions": None}, checkpoint


# --- the result ----------------------------------------------------------------------------------


def _summary(e: Embedding) -> dict[str, Any]:
    """The figures of a fit, as ``--json`` prints them."""
    held, estimate, curve = e.held_out, e.details["estimate"], None
    if estimate is not None:
        tried = estimate.dimensions.tolist()
        curve = {
            "method": estimate.method,
            "determined": estimate.determined,
            "dimensions": tried,
            "scores": estimate.scores.tolist(),
            "errors": estimate.errors.tolist(),
            "probabilities": [estimate.evidence.get(d, {}).get("probability") for d in tried],
        }
    shares = {"held_out": held, "new_people": None if held is None else held.new_people}
    return {
        "n_objects": len(e.positions),
        "n_answers": e.n_comparisons,
        "method": e.details["method"],
        **output.dimension_figures(e),
        "dimension_curve": curve,
        **{
            f"{name}_{end}": getattr(share, end, None)
            for name, share in shares.items()
            for end in ("accuracy", "low", "high")
        },
        "held_out_answers": 0 if held is None else held.n_trials,
        "noise": e.error_rate,
        "contrary_people": _flagged(e, "contrary"),
        "guessing_people": _flagged(e, "guessing"),
        "loss": float(e.details["loss"]),
        "agreement": {kind: asdict(x) for kind, x in e.details["agreement"].items()},
    }


def _flagged(embedding: Embedding, which: str) -> list[str] | None:
    people = embedding.people
    if people is None or np.isnan(people["sensitivity"]).any():
        return None
    return [str(name) for name in people["id"][people["flag"] == which]]


def _write(folder: Path, e: Embedding, figures: dict[str, Any], look: dict[str, Any]) -> list[str]:
    """Write the files, and remove those of an earlier fit; their names."""
    from nearer.plotting import as_png, plot_dimension

    names = list(map(str, e.object_names))
    contents: dict[str, str | bytes] = {
        "embedding.csv": files.positions_text(e.positions, names, e.covariances),
        "map.png": as_png(e.plot(labels=names, **look)),
    }
    if e.details["estimate"] is not None:
        contents["dimension.png"] = as_png(plot_dimension(e.details["estimate"]))
    if e.people is not None:
        weights = () if e.weights is None else e.weights.T
        header = ["person", *list(e.people)[1:]]
        header += [f"weight{k + 1}" for k in range(len(weights))]
        columns = [*(e.people[name] for name in e.people), *weights]
        contents["people.csv"] = files.table_text(header, zip(*columns, strict=True))
    written = sorted([*contents, "fit.json"])
    contents["fit.json"] = files.json_text({**figures, "files": written}, indent=1) + "\n"
    earlier = set()
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        earlier = set(json.loads((folder / "fit.json").read_text(encoding="utf-8"))["files"])
    files.write_files(folder, contents)
    for file in earlier.intersection(_FILES) - set(contents):
        (folder / file).unlink(missing_ok=True)
    return written


def _columns_shown(figures: dict[str, Any]) -> dict[str, list[Any]]:
    """A table of one row and at most 80 letters."""
    known = {True: "", False: " (not determined)", None: " (given)"}[figures["determined"]]
    low, high = figures["held_out_low"], figures["held_out_high"]
    return {
        "objects": [figures["n_objects"]],
        "answers": [figures["n_answers"]],
        "dimension": [f"{figures['dimension']}{known}"],
        "held-out": [figures["held_out_accuracy"]],
        "95 %": [None if low is None else f"{low:.3g}–{high:.3g}"],
        "noise": [figures["noise"]],
        "seconds": [figures["seconds"]],
    }


def _remarks(e: Embedding) -> Iterator[str]:
    if e.held_out is not None and e.held_out.is_guessing:
        yield "these answers are predicted no better than by guessing: the map may be chance alone"
    yield from output.undetermined(e)
    if (others := e.details["agreement"].get("others")) is not None:
        yield f"two people agree on {others.share:.3f} of the questions that both answered"
    flags = {"contrary": "contradict all others", "guessing": "seem to guess"}
    flags |= {"one side": "keep to one side", "too fast": "answer faster than one can look"}
    for flag, words in flags.items():
        if flagged := _flagged(e, flag):
            yield f"{words} ({flag}): {', '.join(flagged)}"
