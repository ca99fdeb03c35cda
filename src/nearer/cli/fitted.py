"""What `nearer fit` computes with the library, writes and prints."""

from __future__ import annotations

import csv
import json
import secrets
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from nearer.cli.output import check_folder
from nearer.cli.progress import step_progress
from nearer.errors import AnswersWarning, InvalidInput
from nearer.estimators.triplets import CKL, GNMDS, SOE, STE, TSTE, OrdinalEmbedding
from nearer.files import written_whole
from nearer.fitting.belief import Belief
from nearer.fitting.bootstrap import bootstrap_covariances
from nearer.fitting.dimension import DimensionEstimate, estimate_dimension
from nearer.fitting.reliability import Reliability
from nearer.fitting.solver import fit_positions
from nearer.questions import pack
from nearer.triplets import Triplets

__all__ = ["Fitted", "fit_file", "report_fit"]

_ESTIMATORS = {
    "soe": SOE,
    "ckl": CKL,
    "gnmds": GNMDS,
    "ste": STE,
    "tste": TSTE,
    "noisy": OrdinalEmbedding,
}
_HELD_OUT = 0.2
_DRAWS = 20


@dataclass
class Fitted:
    """A finished fit, ready to be reported."""

    answers: Triplets
    source: Path
    folder: Path
    model: Any
    method: str
    dimension: DimensionEstimate | None
    held_out: tuple[int, int]
    covariances: NDArray[np.float64] | None
    people: Reliability | None
    seconds: float
    seed: int

    def summary(self) -> dict[str, Any]:
        """The figures of the fit, as ``--json`` prints them."""
        right, asked = self.held_out
        interval = binomtest(right, asked).proportion_ci(method="wilson")
        found = self.dimension
        return {
            "n_objects": self.answers.n_objects,
            "n_triplets": len(self.answers),
            "contradictions": self.answers.report.contradictions,
            "method": self.method,
            "dimension": int(self.model.embedding_.shape[1]),
            "dimension_curve": None
            if found is None
            else {
                "method": found.method,
                "determined": found.determined,
                "dimensions": found.dimensions.tolist(),
                "scores": found.scores.tolist(),
                "errors": found.errors.tolist(),
            },
            "held_out_accuracy": right / asked,
            "held_out_low": interval.low,
            "held_out_high": interval.high,
            "held_out_answers": asked,
            "accuracy": self.model.score(self.answers.triplets),
            "noise": getattr(self.model, "noise_", None),
            "contrary_people": self._named("contrary"),
            "guessing_people": self._named("guessing"),
            "loss": float(self.model.stress_),
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "out": str(self.folder),
        }

    def _named(self, which: str) -> list[str] | None:
        if self.people is None:
            return None
        return [self.answers.person_labels[i] for i in getattr(self.people, which).tolist()]


def fit_file(
    answers: Triplets,
    source: Path,
    out: str,
    *,
    method: str,
    dim: str,
    bootstrap: int | None,
    seed: int | None,
) -> Fitted:
    """Choose the dimension, fit, judge by answers held out, draw again."""
    n, rows = answers.n_objects, answers.triplets
    wanted = _wanted_dimension(dim, n)
    if bootstrap == 1:
        raise InvalidInput("--bootstrap 1: a spread needs at least 2 draws; 0 leaves it out")
    folder = check_folder(out)
    seed = secrets.randbits(31) if seed is None else seed
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    with step_progress() as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswersWarning)  # the report counts them
        found = None
        if wanted is None:
            step("how many dimensions?")
            found = estimate_dimension(rows, n, random_state=rng)
            wanted = found.dimension
        if method == "auto":
            exact = found is not None and found.method == "exact"
            method = "soe" if exact or _is_exact(rows, n, wanted, rng) else "noisy"
        people, weights = None, answers.weights
        if method == "noisy" and answers.persons is not None:
            step("how far each person can be believed")
            people, weights = _rated(answers, np.ones(len(rows), dtype=bool), wanted, seed)
        step(f"fitting in {wanted} dimensions")
        model = _fit(method, rows, n, wanted, weights, seed)
        step("answers held out")
        held_out = _held_out(method, answers, wanted, seed, rng)
        covariances = None
        if bootstrap is None and method == "noisy":
            covariances = model.fit_.covariances
        elif bootstrap != 0:
            step("drawing answers again")
            covariances = _bootstrap(model, answers, bootstrap or _DRAWS, rng)
    seconds = time.perf_counter() - start
    return Fitted(
        answers, source, folder, model, method, found, held_out, covariances, people, seconds, seed
    )


def _wanted_dimension(dim: str, n: int) -> int | None:
    if dim == "auto":
        return None
    if not dim.isdigit() or not 1 <= int(dim) < n:
        raise InvalidInput(
            f"--dim {dim}: must be auto or a whole number from 1 to {n - 1}, one fewer than there "
            "are objects"
        )
    return int(dim)


def _is_exact(rows: NDArray[np.int64], n: int, d: int, rng: np.random.Generator) -> bool:
    """Whether positions in d dimensions can obey every answer."""
    fit = SOE(d, n_objects=n, random_state=int(rng.integers(2**31)), max_iter=500, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is an answer here
        return bool(fit.fit(rows).score(rows) == 1.0)


def _fit(method: str, rows: NDArray[np.int64], n: int, d: int, weights: Any, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = _ESTIMATORS[method](d, n_objects=n, random_state=seed % 2**32)
        return estimator.fit(rows, sample_weight=weights)


def _rated(
    answers: Triplets, some: NDArray[np.bool_], d: int, seed: int
) -> tuple[Reliability | None, NDArray[np.float64] | None]:
    """What some answers tell about people, and how much each of these answers counts by that."""
    weights = None if answers.weights is None else answers.weights[some]
    people = None if answers.persons is None else answers.persons[some]
    belief = Belief(answers.n_objects, d, np.random.default_rng(seed))
    belief.learn(answers.triplets[some], people, weights)
    if belief.reliability is None or people is None:
        return None, weights
    trust = belief.reliability.weights(people)
    counts = trust if weights is None else trust * weights
    return belief.reliability, counts if counts.any() else weights


def _held_out(
    method: str, answers: Triplets, d: int, seed: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Right predictions and all, for questions of which the fit has seen no answer."""
    rows = answers.triplets
    keys, question = np.unique(pack(rows)[0], return_inverse=True)
    out = (rng.random(len(keys)) < _HELD_OUT)[question]
    if not out.any() or out.all():
        out[0], out[1:] = True, False
    weights = None if answers.weights is None else answers.weights[~out]
    if method == "noisy" and answers.persons is not None:
        _, weights = _rated(answers, ~out, d, seed)
    model = _fit(method, rows[~out], answers.n_objects, d, weights, seed)
    return int(np.sum(model.predict(rows[out]))), int(out.sum())


def _bootstrap(
    model: Any, answers: Triplets, n_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    rows = answers.triplets
    noise = model.fit_.noise if isinstance(model, OrdinalEmbedding) else None
    loss = type(model).__name__.lower() if noise is None else noise.loss

    def refit(weights: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
        ridge = 0.0 if noise is None else noise.ridge(float(weights.sum()))
        fit = fit_positions(
            rows, len(start), start=start, weights=weights, loss=loss, ridge=ridge, max_iter=200
        )
        return fit.positions

    return bootstrap_covariances(
        model.embedding_, rows, refit, weights=answers.weights, n_draws=n_draws, rng=rng
    )


def report_fit(fitted: Fitted, *, as_json: bool) -> None:
    """Write the files, then print the figures."""
    summary = fitted.summary()
    with written_whole(fitted.folder) as part:
        _write_positions(part / "embedding.csv", fitted)
        if fitted.people is not None:
            _write_people(part / "people.csv", fitted.answers, fitted.people)
        (part / "fit.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        _draw(part, fitted)
    if as_json:
        click.echo(json.dumps(summary))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{fitted.source}, {fitted.method}", title_justify="left")
    cells = {
        "objects": f"{summary['n_objects']:,}",
        "answers": f"{summary['n_triplets']:,}",
        "dimension": str(summary["dimension"]),
        "held-out accuracy": f"{summary['held_out_accuracy']:.3f}",
        "95 % interval": f"{summary['held_out_low']:.3f} – {summary['held_out_high']:.3f}",
        "noise": "–" if summary["noise"] is None else f"{summary['noise']:.3f}",
        "seconds": f"{summary['seconds']:.3g}",
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    console = Console()
    console.print(table)
    if summary["contrary_people"]:
        console.print(f"contradict all others: {', '.join(summary['contrary_people'])}")
    names = ", ".join(sorted(path.name for path in fitted.folder.iterdir()))
    console.print(f"in {fitted.folder}: {names}", soft_wrap=True)


def _write_positions(path: Path, fitted: Fitted) -> None:
    positions, spread = fitted.model.embedding_, fitted.covariances
    d = positions.shape[1]
    header = ["object", "label", *(f"x{j + 1}" for j in range(d))]
    columns = [np.arange(len(positions)), fitted.answers.labels, *positions.T]
    if spread is not None:
        header += [f"sd{j + 1}" for j in range(d)]
        columns += [np.sqrt(spread[:, j, j]) for j in range(d)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*columns, strict=True))


def _write_people(path: Path, answers: Triplets, people: Reliability) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["person", "reliability", "error", "answers"])
        names = [answers.person_labels[i] for i in people.people.tolist()]
        columns = (names, people.reliability, people.errors, people.n_answers)
        writer.writerows(zip(*columns, strict=True))


def _draw(part: Path, fitted: Fitted) -> None:
    from nearer.plotting import plot_positions, save

    labels = fitted.answers.labels
    pictures = [fitted.source.parent / label for label in labels]
    ax = plot_positions(
        fitted.model.embedding_,
        labels=labels,
        covariances=fitted.covariances,
        pictures=pictures if all(p.is_file() for p in pictures) else None,
    )
    save(ax, part / "map.png")
    if fitted.dimension is not None:
        save(fitted.dimension.plot(), part / "dimension.png")
