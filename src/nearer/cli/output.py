"""What a run leaves: a table or a JSON object on the screen, files in a folder, whole or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer import metrics
from nearer.algorithms.basis import Basis
from nearer.embedding import Embedding
from nearer.files import json_text, positions_text, table_text, write_files
from nearer.wording import amount

__all__ = ["WRITTEN", "MethodRun", "print_run", "said_of_dimension", "write_run"]

WRITTEN = ("basis.json", "embedding.csv", "map.png", "triplets.csv")


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
    files: list[str] = field(default_factory=list)  # what `write_run` has written

    @property
    def basis(self) -> Basis | None:
        """The axes, where the method has found some."""
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
    """Whether a run has written this file; somebody else's of that name is none of its business."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"axes", "rankings"} <= set(found)


def said_of_dimension(embedding: Embedding) -> Iterator[str]:
    """The sentence that a dimension needs where the answers leave others possible."""
    if embedding.determined is False:
        span = f"{embedding.dimension_low} to {embedding.dimension_high}"
        yield f"dimension not determined: {span} cannot be told apart by these answers"


def print_run(run: MethodRun, *, as_json: bool) -> None:
    """Print the figures: one JSON object, or one table with one row."""
    summary = run.summary()
    if as_json:
        click.echo(json_text(summary))
        return
    from rich.table import Table

    from nearer.cli.console import PlainConsole

    table = Table(title=f"{run.data}, {run.method}", title_justify="left")
    heads = {
        "n_objects": "n",
        "dimension": "dimension",
        "n_comparisons": "comparisons",
        "n_rounds": "rounds",
        "seconds": "seconds",
        "tau": "τ",
        "knn_precision": "kNN",
        "rmse": "RMSE",
    }
    for name in heads.values():
        table.add_column(name, justify="right")
    table.add_row(*(_cell(summary[key]) for key in heads))
    console = PlainConsole()
    console.print(table)
    for phase in run.embedding.history:
        console.print(f"{phase.name}: {amount(phase.n_comparisons, 'comparison')}; {phase.note}")
    for line in said_of_dimension(run.embedding):
        console.print(line, soft_wrap=True, highlight=False)
    console.print(f"in {run.folder}: {', '.join(run.files)}", soft_wrap=True)


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
