"""The map of the objects from the answers so far, and how far it can be trusted.

Positions are fitted to all answers to real questions; the hold-out questions, which no method
chose and no fit saw, say how often the map predicts what people answer.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.solver import fit_positions

__all__ = ["accuracy", "draw_map", "fit_answers"]

_DIMENSIONS = (1, 2, 3, 4)
_SPREAD = 2.0  # prior standard deviation of a coordinate, in units of the answers' noise
_FEWEST = 10  # answers below which no map is drawn


def fit_answers(
    triplets: NDArray[np.int64],
    n_objects: int,
    n_components: int,
    *,
    seed: int = 0,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Positions under a logistic model of people's noise, with a weak pull to the middle."""
    ridge = 1.0 / (len(triplets) * _SPREAD**2)
    rng = np.random.default_rng([seed, n_components])
    fits = [
        fit_positions(
            triplets,
            n_objects,
            n_components,
            loss="logistic",
            ridge=ridge,
            start=begin,
            rng=rng,
            max_iter=300,
        )
        for begin in ([None, None] if start is None else [start])
    ]
    X = min(fits, key=lambda fit: fit.loss).positions
    centred: NDArray[np.float64] = X - X.mean(axis=0)
    return centred


def accuracy(X: NDArray[np.float64], triplets: NDArray[np.int64]) -> float | None:
    """Share of the answers that the positions predict; None without answers."""
    if not len(triplets):
        return None
    head, near, far = X[triplets.T]
    to_near = np.linalg.norm(head - near, axis=1)
    to_far = np.linalg.norm(head - far, axis=1)
    return float((to_near < to_far).mean())


def choose_dimension(triplets: NDArray[np.int64], n_objects: int, seed: int) -> int:
    """The fewest dimensions that predict held-back answers about as well as any (one error)."""
    rng = np.random.default_rng([seed, len(triplets)])
    back = rng.random(len(triplets)) < 0.2
    kept, held = triplets[~back], triplets[back]
    if len(kept) < _FEWEST or len(held) < _FEWEST:
        return 2
    scores = [
        accuracy(fit_answers(kept, n_objects, d, seed=seed), held) or 0.0
        for d in _DIMENSIONS
        if d < n_objects
    ]
    best = max(scores)
    error = float(np.sqrt(best * (1 - best) / len(held)))
    return _DIMENSIONS[next(i for i, score in enumerate(scores) if score >= best - error)]


def draw_map(
    triplets: NDArray[np.int64],
    holdout: NDArray[np.int64],
    n_objects: int,
    *,
    n_components: int | None,
    seed: int,
    seen: int,
) -> dict[str, Any] | None:
    """What the dashboard shows; None while there are too few answers.

    Shown are the two directions in which the objects differ most.
    """
    if len(triplets) < _FEWEST:
        return None
    began = time.perf_counter()
    dimension = n_components or choose_dimension(triplets, n_objects, seed)
    X = fit_answers(triplets, n_objects, dimension, seed=seed)
    _, _, axes = np.linalg.svd(X, full_matrices=False)
    X = X @ axes.T
    return {
        "seen": seen,
        "n_triplets": len(triplets),
        "dimension": dimension,
        "accuracy": accuracy(X, holdout),
        "n_holdout": len(holdout),
        "seconds": time.perf_counter() - began,
        "positions": np.round(X, 4).tolist(),
    }
