"""What `nearer fit` computes with the library, writes and prints."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer._dimension import DimensionEstimate
from nearer._fit import fit
from nearer.cli.output import check_folder
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.files import json_text, positions_text, table_text, written_whole
from nearer.metrics import triplet_accuracy
from nearer.running.progress import step_progress
from nearer.triplets import Triplets

__all__ = ["Fitted", "fit_file", "report_fit", "wanted_dimension"]

_MOST_DRAWN = 1000  # objects with names and ellipses; more of them hide each other and take minutes


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
    contradictions: int | None = None  # nobody counts those of very many answers

    @property
    def estimate(self) -> DimensionEstimate | None:
        """How the dimension was found; None where it was given."""
        found: DimensionEstimate | None = self.embedding.details["estimate"]
        return found

    @property
    def names(self) -> list[str]:
        """What the objects on the map are called."""
        return [str(name) for name in self.embedding.names or self.labels]

    def summary(self) -> dict[str, Any]:
        """The figures of the fit, as ``--json`` prints them."""
        e, held, found = self.embedding, self.embedding.held_out, self.estimate
        return {
            "n_objects": len(e.positions),
            "n_triplets": self.n_answers,
            "contradictions": self.contradictions,
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
            "accuracy": triplet_accuracy(e.triplets, e.positions)
            if len(e.triplets)
            else 1 - (e.error_rate or 0.0),
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
    max_iter: int,
    tol: float,
    device: Any,
    seed: int | None,
) -> Fitted:
    """Fit the answers of a file."""
    wanted = wanted_dimension(dim, len(np.unique(answers.triplets)))
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
            max_iter=max_iter,
            tol=tol,
            device=device,
            random_state=seed,
        )
    return Fitted(
        source,
        folder,
        embedding,
        time.perf_counter() - start,
        seed,
        len(answers),
        answers.labels,
        answers.report.contradictions,
    )


def wanted_dimension(dim: str, n: int) -> Any:
    """What ``--dim`` says: auto, or how many of n objects."""
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
        e = fitted.embedding
        text = positions_text(e.positions, labels=fitted.names, covariances=e.covariances)
        (part / "embedding.csv").write_text(text, encoding="utf-8")
        if e.people is not None:
            (part / "people.csv").write_text(_people_text(e), encoding="utf-8")
        (part / "fit.json").write_text(json_text(summary, indent=1) + "\n", encoding="utf-8")
        _draw(part, fitted)
    if as_json:
        click.echo(json_text(summary))
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


def _people_text(embedding: Embedding) -> str:
    people, rated = embedding.people, embedding.details["reliability"]
    assert people is not None
    header = ["person", "reliability", "error", "answers", "agreement", "low", "high", "flag"]
    errors = np.full(len(people), np.nan) if rated is None else rated.errors
    columns = [people["id"], people["reliability"], errors, people["n_trials"]]
    columns += [people[name] for name in header[4:]]
    return table_text(header, zip(*columns, strict=True))


def _draw(part: Path, fitted: Fitted) -> None:
    from nearer.plotting import plot_dimension, plot_positions, save

    few = len(fitted.names) <= _MOST_DRAWN
    pictures = [fitted.source.parent / label for label in fitted.names] if few else []
    ax = plot_positions(
        fitted.embedding.positions,
        labels=fitted.names if few else None,
        covariances=fitted.embedding.covariances if few else None,
        pictures=pictures if pictures and all(p.is_file() for p in pictures) else None,
    )
    save(ax, part / "map.png")
    if fitted.estimate is not None:
        save(plot_dimension(fitted.estimate), part / "dimension.png")
