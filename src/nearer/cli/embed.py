"""`nearer embed`: points in; positions, answers and a picture out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer import metrics
from nearer.algorithms.basis import Basis
from nearer.algorithms.methods import METHODS
from nearer.checks import amount
from nearer.cli.output import print_lines, print_table
from nearer.embedding import Embedding
from nearer.files import json_text, positions_text, table_text, write_files

__all__ = ["WRITTEN", "MethodRun", "command", "print_run", "undetermined", "write_run"]

#: the files that a run may write
WRITTEN = ("basis.json", "embedding.csv", "map.png", "triplets.csv")


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
    from nearer.cli.running import run_method

    print_run(run_method(data, out, **options), as_json=as_json)


@dataclass
class MethodRun:
    """A finished run of a method, ready to be written and printed."""

    data: str
    method: str
    folder: Path
    truth: Any
    metric: str
    embedding: Embedding
    seconds: float
    seed: int
    names: tuple[str, ...] | None = None
    files: list[str] = field(default_factory=list)  # that `write_run` wrote

    @property
    def basis(self) -> Basis | None:
        """The axes, for methods that find some."""
        basis: Basis | None = self.embedding.details.get("basis")
        return basis

    def summary(self) -> dict[str, Any]:
        """The figures of one run, as ``--json`` prints them."""
        positions, details = self.embedding.positions, self.embedding.details
        against: dict[str, Any] = {"metric": self.metric, "random_state": self.seed}
        fitted = {key: value for key, value in details.items() if key in ("loss", "n_starts")}
        return {
            "n_objects": len(positions),
            "method": self.method,
            "dimension": self.embedding.dimension,
            "dimension_low": self.embedding.dimension_low,
            "dimension_high": self.embedding.dimension_high,
            "determined": self.embedding.determined,
            "n_comparisons": self.embedding.n_comparisons,
            "n_rounds": self.embedding.n_rounds,
            "seconds": round(self.seconds, 4),
            "tau": metrics.mean_kendall_tau(self.truth, positions, **against),
            "knn_precision": metrics.knn_precision(self.truth, positions, **against),
            "rmse": metrics.distance_rmse(self.truth, positions, **against),
            **fitted,
            "n_components": self.embedding.dimension,
            "seed": self.seed,
            "out": str(self.folder),
        }


def write_run(run: MethodRun) -> None:
    """Write all files of a run, or none; axes of an earlier run do not stay beside them."""
    contents = _files(run)
    write_files(run.folder, contents)
    run.files = sorted(contents)
    if "basis.json" not in contents and _holds_axes(run.folder / "basis.json"):
        (run.folder / "basis.json").unlink()


def _holds_axes(file: Path) -> bool:
    """True if a run wrote this file; another file of that name stays."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"axes", "rankings"} <= set(found)


def undetermined(embedding: Embedding) -> list[str]:
    """The line about a dimension that the answers do not determine."""
    if embedding.determined is not False:
        return []
    span = f"{embedding.dimension_low} to {embedding.dimension_high}"
    return [f"dimension not determined: these answers do not distinguish {span}"]


def print_run(run: MethodRun, *, as_json: bool) -> None:
    """Print the figures: one JSON object, or a table with one row."""
    summary = run.summary()
    if as_json:
        click.echo(json_text(summary))
        return
    heads = {
        "n": "n_objects",
        "dimension": "dimension",
        "comparisons": "n_comparisons",
        "rounds": "n_rounds",
        "seconds": "seconds",
        "τ": "tau",
        "kNN": "knn_precision",
        "RMSE": "rmse",
    }
    columns = {head: [_cell(summary[key])] for head, key in heads.items()}
    print_table(f"{run.data}, {run.method}", columns)
    phases = (
        f"{phase.name}: {amount(phase.n_comparisons, 'comparison')}; {phase.note}"
        for phase in run.embedding.history
    )
    files = f"in {run.folder}: {', '.join(run.files)}"
    print_lines([*phases, *undetermined(run.embedding), files])


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _files(run: MethodRun) -> dict[str, str | bytes]:
    from nearer.plotting import as_png

    embedding, basis = run.embedding, run.basis
    contents: dict[str, str | bytes] = {
        "embedding.csv": positions_text(embedding.positions, run.names),
        "triplets.csv": table_text(["head", "winner", "loser"], embedding.triplets.tolist()),
        "map.png": as_png(_picture(run)),
    }
    if basis is not None:
        contents["basis.json"] = json_text(_basis_as_json(basis), indent=1) + "\n"
    return contents


def _basis_as_json(basis: Basis) -> dict[str, Any]:
    return {
        "n_objects": basis.n_objects,
        "dimension": basis.dimension,
        "stopped": basis.stopped,
        "n_comparisons": basis.n_comparisons,
        "n_rounds": basis.n_rounds,
        "axes": [
            {"endpoints": axis.endpoints, "members": axis.members.tolist()} for axis in basis.axes
        ],
        "rankings": {str(head): ranking.tolist() for head, ranking in basis.rankings.items()},
    }


def _picture(run: MethodRun) -> Any:
    from nearer.datasets import load_cities
    from nearer.plotting import plot_basis, plot_positions, plot_world

    positions = run.embedding.positions
    if run.data == "cities":
        return plot_world(positions, load_cities())
    dense = isinstance(run.truth, np.ndarray)
    if run.basis is not None:
        ax = plot_basis(run.basis, run.truth if dense else positions)
    else:
        ax = plot_positions(positions, labels=run.names)
    ax.set_title(f"{run.data}, {run.method}", parse_math=False)
    return ax.figure
