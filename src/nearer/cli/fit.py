"""`nearer fit`: a file of answers in; positions, their dimension and how sure they are, out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from nearer.errors import DroppedRows

__all__ = ["command"]


@click.command("fit")
@click.argument("triplets", type=click.Path(path_type=Path))
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
    "--bootstrap",
    type=click.IntRange(min=0),
    default=None,
    help="Fits to answers drawn again, for the uncertainty of each position; 0 leaves it out. "
    "Default: 20; none where the fit expects wrong answers, it knows how sure it is.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Makes the fit repeatable.")
@click.option("--out", default="out/fit", show_default=True, help="Folder for the results.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(triplets: Path, kind: Any, as_json: bool, out: str, **options: Any) -> None:
    """Find positions from the answers in the file TRIPLETS.

    The file is read in any of the common forms: head, winner, loser; questions with answers;
    odd-one-out and most-central-of-three by --kind; .csv, .tsv, .npy, .npz, compressed or not.
    """
    from nearer.cli.fitted import fit_file, report_fit
    from nearer.triplets import read_triplets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # the report names them
        answers = read_triplets(triplets, kind=kind)
    click.echo(str(answers.report), err=True)
    result = fit_file(answers, triplets, out, **options)
    report_fit(result, as_json=as_json)
