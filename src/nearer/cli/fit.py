"""`nearer fit`: a file of answers in; positions, their dimension and how sure they are, out."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nearer.cli.output import GivenPath, say, scheduler_option
from nearer.errors import DroppedRows, InvalidInput
from nearer.files import as_path

__all__ = ["command"]


@click.command("fit")
@click.argument("triplets", callback=lambda _, __, path: as_path(path))
@click.option(
    "--method",
    type=click.Choice(["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"]),
    default="auto",
    show_default=True,
    help="auto: soe where all answers can be obeyed, else a fit that expects wrong answers.",
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@scheduler_option
def command(
    triplets: Path,
    kind: Any,
    columns: str | None,
    no_header: bool,
    names: bool,
    first: str | None,
    drop_bad_rows: bool,
    as_json: bool,
    out: str,
    scheduler: str | None,
    map_file: Path | None,
    report_file: Path | None,
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
    from nearer.cli.fitted import check_destinations, check_options, fit_file, report_fit
    from nearer.cli.fitted_blocks import fit_blocks, in_blocks
    from nearer.scale.cluster import scheduler as sent_to
    from nearer.triplets import read_triplets

    check_destinations(triplets, out, map_file, report_file)
    check_options(options["dim"], options["device"], options["bootstrap"])
    named = None if columns is None else _columns(columns)
    source = in_blocks(triplets, named)
    if source is not None:
        ignored = {
            "--kind": kind not in ("auto", "triplets"),
            "--no-header": no_header,
            "--names": names,
            "--first": first is not None,
            "--drop-bad-rows": drop_bad_rows,
            "--scheduler": scheduler is not None,
        }
        if given := [option for option, is_given in ignored.items() if is_given]:
            raise InvalidInput(
                f"{triplets}: is read in blocks, by this machine or torchrun, and every row is "
                f"a triplet; leave out {', '.join(given)}"
            )
        with fit_blocks(source, triplets, out, **options) as result:
            if result is not None:
                result.command = _as_typed(click.get_current_context(), result.seed)
                report_fit(result, as_json=as_json, map_file=map_file, report_file=report_file)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # the report names them
        answers = read_triplets(
            triplets,
            kind=kind,
            header=False if no_header else "auto",
            objects="names" if names else "auto",
            columns=named,
            drop_bad_rows=drop_bad_rows,
            first=None if first is None else int(first),
        )
    say(str(answers.report), err=True)
    with sent_to(scheduler):
        result = fit_file(answers, triplets, out, **options)
    result.command = _as_typed(click.get_current_context(), result.seed)
    report_fit(result, as_json=as_json, map_file=map_file, report_file=report_file)


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
