"""How often the 95 % regions of `Embedding.draws` hold the truth.

Points are drawn, questions answered by a rule, and the answers fitted in the true dimension. The
truth is aligned with the mean of 100 draws by the best motion and scale; an object is held if it is
inside the ellipse of 95 % of further Gaussian draws (Hotelling's T², for a covariance from 100
draws). Beside it, the same for the covariances with the other objects fixed, around the positions.

Rules: *logistic*, the fit's own, with points of standard deviation 1, 2 or 4 in units of its noise;
*flips*, every tenth answer is wrong; *ratio*, the probability depends on the ratio of the
distances; *exact*.

Short: 6 seeds. Full: 30.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import chi2, f

import nearer
from benchmarks.harness import Cell, Rows, cell, distinct, pick, table
from nearer.distances import Distances
from nearer.metrics import procrustes
from nearer.questions import answered, random_questions

SETTINGS = (  # rule, spread of the points, objects, dimension, answers
    ("logistic", 1.0, 30, 2, 1000),
    ("logistic", 2.0, 30, 2, 1000),
    ("logistic", 4.0, 30, 2, 1000),
    ("logistic", 2.0, 30, 2, 4000),
    ("logistic", 2.0, 30, 1, 1000),
    ("logistic", 2.0, 30, 3, 2000),
    ("flips", 1.0, 30, 2, 1000),
    ("flips", 1.0, 60, 2, 6000),
    ("ratio", 1.0, 30, 2, 1000),
    ("ratio", 1.0, 30, 2, 4000),
    ("exact", 1.0, 30, 2, 600),
    ("exact", 1.0, 30, 2, 1500),
    ("exact", 1.0, 30, 1, 1000),
    ("exact", 1.0, 30, 3, 3000),
)
DRAWS = 100


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    for rule, spread, n, d, m in SETTINGS:
        for seed in range(seeds or (30 if full else 6)):
            yield cell("held", held, rule=rule, spread=spread, n=n, d=d, m=m, seed=seed)


def answers(X: Any, m: int, rule: str, rng: np.random.Generator) -> Any:
    """Answers to random questions about points, by a rule."""
    questions = random_questions(len(X), m, rng)
    head, a, b = questions.T
    to_a, to_b = (Distances(X).between(head, other) for other in (a, b))
    sure = {
        "logistic": lambda: expit(to_b - to_a),
        "ratio": lambda: expit(3 * np.log(to_b / to_a)),
        "flips": lambda: np.where(to_a < to_b, 0.9, 0.1),
        "exact": lambda: (to_a < to_b) * 1.0,
    }[rule]()
    return answered(questions, rng.random(m) < sure)


def held(rule: str, spread: float, n: int, d: int, m: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    truth = spread * rng.normal(size=(n, d))
    rows = answers(truth, m, rule, rng)
    embedding = nearer.fit(rows, n_components=d, n_objects=n, random_state=seed)
    draws = embedding.draws(DRAWS, seed)
    middle = draws.mean(axis=0)
    away = draws - middle
    covariances = np.einsum("kni,knj->nij", away, away) / (DRAWS - 1)
    fixed = np.nan
    if embedding.covariances is not None:
        fixed = _share(truth, embedding.positions, embedding.covariances, chi2.ppf(0.95, d))
    further = d * (DRAWS**2 - 1) / (DRAWS * (DRAWS - d)) * f.ppf(0.95, d, DRAWS - d)
    return {"draws": _share(truth, middle, covariances, further), "fixed": fixed}


def _share(truth: Any, positions: Any, covariances: Any, most: float) -> float:
    """The share of objects whose squared error is below that, in units of their covariance."""
    error = procrustes(positions, truth).aligned - positions
    squared = np.einsum("ni,nij,nj->n", error, np.linalg.pinv(covariances), error)
    return float(np.mean(squared < most))


def page(rows: Rows, folder: Path) -> str:
    lines = []
    for rule, spread, n, d, m in distinct(rows, "rule", "spread", "n", "d", "m"):
        some = pick(rows, "held", rule=rule, spread=spread, n=n, d=d, m=m)
        shares = [
            f"{np.mean(values):.3f} ± {np.std(values) / np.sqrt(len(values)):.3f}"
            for values in ([row[key] for row in some] for key in ("draws", "fixed"))
        ]
        lines.append([rule, f"{spread:g}", n, d, f"{m:,}", len(some), *shares])
    head = ["answers", "spread", "objects", "d", "answers", "seeds", "draws", "others fixed"]
    return "# Regions of 95 %\n\n" + table(head, lines)
