"""What `nearer fit` computes with the library, writes and prints."""

from __future__ import annotations

import csv
import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer._dimension import DimensionEstimate
from nearer._fit import fit
from nearer.cli.output import check_folder
from nearer.cli.progress import step_progress
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.files import written_whole
from nearer.metrics import triplet_accuracy
from nearer.triplets import Triplets

__all__ = ["Fitted", "fit_file", "report_fit"]


@dataclass
class Fitted:
    """A finished fit, ready to be reported."""

    answers: Triplets
    source: Path
    folder: Path
    embedding: Embedding
    seconds: float
    seed: int

    @property
    def estimate(self) -> DimensionEstimate | None:
        """How the dimension was found; None where it was given."""
        found: DimensionEstimate | None = self.embedding.details["estimate"]
        return found

    @property
    def names(self) -> list[str]:
        """What the objects on the map are called."""
        return [str(name) for name in self.embedding.names or self.answers.labels]

    def summary(self) -> dict[str, Any]:
        """The figures of the fit, as ``--json`` prints them."""
        e, held, found = self.embedding, self.embedding.held_out, self.estimate
        return {
            "n_objects": len(e.positions),
            "n_triplets": len(self.answers),
            "contradictions": self.answers.report.contradictions,
            "method": e.details["method"],
            "dimension": e.dimension,
            "dimension_low": e.dimension_low,
            "dimension_high": e.dimension_high,
            "determined": e.determined,
            "dimension_curve": None
            if found is None
            else {
                "method": found.method,
                "determined": found.determined,
                "dimensions": found.dimensions.tolist(),
                "scores": found.scores.tolist(),
                "errors": found.errors.tolist(),
                "probabilities": [_chance(found, d) for d in found.dimensions.tolist()],
            },
            "held_out_accuracy": None if held is None else held.accuracy,
            "held_out_low": None if held is None else held.low,
            "held_out_high": None if held is None else held.high,
            "held_out_answers": 0 if held is None else held.n_trials,
            "accuracy": triplet_accuracy(e.triplets, e.positions),
            "noise": e.error_rate,
            "contrary_people": self._flagged("contrary"),
            "guessing_people": self._flagged("guessing"),
            "loss": float(e.details["loss"]),
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "out": str(self.folder),
        }

    def _flagged(self, which: str) -> list[str] | None:
        people = self.embedding.people
        if people is None or self.embedding.details["reliability"] is None:
            return None
        return [str(name) for name in people["id"][people["flag"] == which]]


def _chance(found: DimensionEstimate, d: int) -> float | None:
    chance: float | None = found.evidence.get(d, {}).get("probability")
    return chance


def fit_file(
    answers: Triplets,
    source: Path,
    out: str,
    *,
    method: Any,
    dim: str,
    bootstrap: int | None,
    seed: int | None,
) -> Fitted:
    """Fit the answers of a file."""
    wanted = _wanted_dimension(dim, len(np.unique(answers.triplets)))
    if bootstrap == 1:
        raise InvalidInput("--bootstrap 1: a spread needs at least 2 draws; 0 leaves it out")
    folder = check_folder(out)
    seed = secrets.randbits(31) if seed is None else seed
    start = time.perf_counter()
    with step_progress() as step:
        step(f"fitting {len(answers):,} answers")
        embedding = fit(
            answers,
            n_components=wanted,
            method=method,
            bootstrap=bootstrap,
            random_state=seed,
        )
    return Fitted(answers, source, folder, embedding, time.perf_counter() - start, seed)


def _wanted_dimension(dim: str, n: int) -> Any:
    if dim == "auto":
        return dim
    if not (dim.isascii() and dim.isdigit()) or not 1 <= int(dim) < n:
        raise InvalidInput(
            f"--dim {dim}: must be auto or a whole number from 1 to {n - 1}, one fewer than there "
            "are objects"
        )
    return int(dim)


def report_fit(fitted: Fitted, *, as_json: bool) -> None:
    """Write the files, then print the figures."""
    summary = fitted.summary()
    with written_whole(fitted.folder) as part:
        _write_positions(part / "embedding.csv", fitted)
        if fitted.embedding.people is not None:
            _write_people(part / "people.csv", fitted.embedding)
        (part / "fit.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        _draw(part, fitted)
    if as_json:
        click.echo(json.dumps(summary))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{fitted.source}, {summary['method']}", title_justify="left")
    low, high = _number(summary["held_out_low"]), _number(summary["held_out_high"])
    cells = {
        "objects": f"{summary['n_objects']:,}",
        "answers": f"{summary['n_triplets']:,}",
        "dimension": str(summary["dimension"]),
        "held-out accuracy": _number(summary["held_out_accuracy"]),
        "95 % interval": f"{low} – {high}",
        "noise": _number(summary["noise"]),
        "seconds": f"{summary['seconds']:.3g}",
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    console = Console()
    console.print(table)
    if summary["determined"] is False:
        span = f"{summary['dimension_low']} to {summary['dimension_high']}"
        console.print(f"{span} dimensions cannot be told apart by these answers")
    if summary["contrary_people"]:
        console.print(f"contradict all others: {', '.join(summary['contrary_people'])}")
    names = ", ".join(sorted(path.name for path in fitted.folder.iterdir()))
    console.print(f"in {fitted.folder}: {names}", soft_wrap=True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _write_positions(path: Path, fitted: Fitted) -> None:
    positions, spread = fitted.embedding.positions, fitted.embedding.covariances
    d = positions.shape[1]
    header = ["object", "label", *(f"x{j + 1}" for j in range(d))]
    columns = [np.arange(len(positions)), fitted.names, *positions.T]
    if spread is not None:
        header += [f"sd{j + 1}" for j in range(d)]
        columns += [np.sqrt(spread[:, j, j]) for j in range(d)]
    _write_table(path, header, columns)


def _write_people(path: Path, embedding: Embedding) -> None:
    people, rated = embedding.people, embedding.details["reliability"]
    assert people is not None
    header = ["person", "reliability", "error", "answers", "agreement", "low", "high", "flag"]
    errors = np.full(len(people), np.nan) if rated is None else rated.errors
    columns = [people["id"], people["reliability"], errors, people["n_trials"]]
    columns += [people[name] for name in header[4:]]
    _write_table(path, header, columns)


def _write_table(path: Path, header: list[str], columns: list[Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*columns, strict=True))


def _draw(part: Path, fitted: Fitted) -> None:
    from nearer.plotting import plot_dimension, plot_positions, save

    pictures = [fitted.source.parent / label for label in fitted.names]
    ax = plot_positions(
        fitted.embedding.positions,
        labels=fitted.names,
        covariances=fitted.embedding.covariances,
        pictures=pictures if all(p.is_file() for p in pictures) else None,
    )
    save(ax, part / "map.png")
    if fitted.estimate is not None:
        save(plot_dimension(fitted.estimate), part / "dimension.png")
