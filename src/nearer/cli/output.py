"""What a run leaves: a table or a JSON object on the screen, files in a folder.

All files are written into a hidden folder beside the target first and moved when they are all
there, so that nothing is ever half-written.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from nearer import metrics
from nearer.algorithms.basis import Basis
from nearer.embedding import Embedding
from nearer.errors import InvalidInput

__all__ = ["Outcome", "check_folder", "report", "written_whole"]


@dataclass
class Outcome:
    """A finished run, ready to be reported."""

    data: str
    method: str
    folder: Path
    truth: Any
    metric: str
    embedding: Embedding
    seconds: float
    seed: int

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


def check_folder(out: str) -> Path:
    """The output folder, made if it is not there; refused before any work is done."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--out {out}: cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInput(f"--out {out}: is not writable; choose another folder")
    return folder


def report(outcome: Outcome, *, as_json: bool) -> None:
    """Write the files, then print the figures."""
    summary = outcome.summary()
    with written_whole(outcome.folder) as part:
        _write_files(part, outcome)
    if as_json:
        click.echo(json.dumps(summary))
    else:
        print_table(outcome, summary)


def print_table(outcome: Outcome, summary: dict[str, Any]) -> None:
    """One table with one row."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{outcome.data}, {outcome.method}", title_justify="left")
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
    console = Console()
    console.print(table)
    for phase in outcome.embedding.history:
        console.print(f"{phase.name}: {phase.n_comparisons:,} comparisons; {phase.note}")
    names = ", ".join(sorted(path.name for path in outcome.folder.iterdir()))
    console.print(f"in {outcome.folder}: {names}", soft_wrap=True)


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder to write files into; they are moved to `folder` when all of them are there."""
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
    try:
        yield part
        for file in part.iterdir():
            file.replace(folder / file.name)
    except OSError as error:
        raise InvalidInput(f"--out {folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_files(part: Path, outcome: Outcome) -> None:
    _write_embedding(part / "embedding.csv", outcome.embedding.positions)
    _write_triplets(part / "triplets.csv", outcome.embedding.triplets)
    if outcome.basis is not None:
        text = json.dumps(_basis_as_json(outcome.basis), indent=1)
        (part / "basis.json").write_text(text + "\n", encoding="utf-8")
    _picture(outcome).savefig(part / "map.png", dpi=130)


def _write_embedding(path: Path, positions: NDArray[np.float64]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["object", *(f"x{j + 1}" for j in range(positions.shape[1]))])
        writer.writerows([i, *row] for i, row in enumerate(positions.tolist()))


def _write_triplets(path: Path, triplets: NDArray[np.int64]) -> None:
    header = "head,winner,loser"
    np.savetxt(path, triplets, fmt="%d", delimiter=",", header=header, comments="")


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


def _picture(outcome: Outcome) -> Any:
    from nearer.datasets import load_cities
    from nearer.plotting import plot_basis, plot_positions, plot_world

    positions = outcome.embedding.positions
    if outcome.data == "cities":
        return plot_world(positions, load_cities())
    dense = isinstance(outcome.truth, np.ndarray)
    if outcome.basis is not None:
        ax = plot_basis(outcome.basis, outcome.truth if dense else positions)
    else:
        ax = plot_positions(positions)
    ax.set_title(f"{outcome.data}, {outcome.method}")
    return ax.figure
