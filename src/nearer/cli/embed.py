"""`nearer embed`: points or an oracle's data in, positions, answers and a picture out."""

from __future__ import annotations

from typing import Any

import click

from nearer.algorithms.methods import METHODS
from nearer.cli.output import print_run
from nearer.cli.running import run_method

__all__ = ["command"]


@click.command("embed")
@click.argument("data")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="adaptive",
    show_default=True,
    help="How to choose questions and find positions.",
)
@click.option("--metric", default="euclidean", show_default=True, help="Distance that answers.")
@click.option(
    "--names",
    default="auto",
    show_default=True,
    metavar="COLUMN",
    help="Column of DATA that names the objects; none: all columns of numbers are coordinates.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Makes the run repeatable.")
@click.option("--budget", type=click.IntRange(min=1), help="Ask at most so many comparisons.")
@click.option(
    "--dim",
    "n_components",
    type=click.IntRange(min=1),
    help="Fit in so many dimensions; as many as the answers call for by default.",
)
@click.option(
    "--endpoints",
    type=click.Choice(["above", "farthest-rank"]),
    help="How a basis chooses the ends of its axes: above (default), the paper's way.",
)
@click.option(
    "--order",
    type=click.Choice(["fewest-comparisons", "fewest-rounds"]),
    help="What the sorts of a basis save: fewest-comparisons (default) or rounds.",
)
@click.option(
    "--locate",
    type=click.Choice(["median", "linear", "binary"]),
    help="Method basis: how objects are placed on the axes; median (default) asks nothing.",
)
@click.option(
    "--extra",
    type=click.Choice(["sort", "select"]),
    help="Method extra+soe: sort (default) or select the neighbours of every object.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    help="Keep every answer in this file; the same command goes on from it.",
)
@click.option("--out", default="out/embed", show_default=True, help="Folder for the results.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(data: str, out: str, as_json: bool, **options: Any) -> None:
    """Embed the objects of DATA from comparisons alone.

    DATA is a file of points (.csv, .npy, .npz, .parquet), from which every comparison is answered,
    or the name of a built-in data set: 3dgmm, 5dgmm, 5dcube, cities.
    """
    print_run(run_method(data, out, **options), as_json=as_json)
