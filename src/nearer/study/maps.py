"""The map of the objects from the answers so far, and how far it can be trusted.

Positions are fitted to all answers to real questions (`nearer.fitting.noise`); the hold-out
questions, which no method chose and no fit saw, say how often the map predicts what people answer.
How many dimensions the answers need, and how noisy they are, changes slowly and costs most of the
time: a live map looks for both again only when there are half as many answers more.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.dimension import estimate_dimension
from nearer.fitting.noise import NoisyFit, Setting, fit_noisy

__all__ = ["Draughtsman", "accuracy", "fit_answers"]

FEWEST = 10  # answers below which no map is drawn
_MOST_DIMENSIONS = 6
_AGAIN = 1.5  # growth of the answers after which dimension and noise are estimated anew


def fit_answers(
    triplets: NDArray[np.int64],
    n_objects: int,
    n_components: int,
    *,
    seed: int = 0,
    setting: Setting | None = None,
) -> NoisyFit:
    """Positions that allow for people's noise."""
    rng = np.random.default_rng([seed, n_components])
    return fit_noisy(triplets, n_objects, n_components, setting=setting, rng=rng)


def accuracy(X: NDArray[np.float64], triplets: NDArray[np.int64]) -> float | None:
    """Share of the answers that the positions predict; None without answers."""
    if not len(triplets):
        return None
    head, near, far = X[triplets.T]
    to_near = np.linalg.norm(head - near, axis=1)
    to_far = np.linalg.norm(head - far, axis=1)
    return float((to_near < to_far).mean())


class Draughtsman:
    """Draws the maps of one study, one after the other."""

    def __init__(self, n_objects: int, *, n_components: int | None = None, seed: int = 0) -> None:
        self._n = n_objects
        self._wanted = n_components
        self._seed = seed
        self._dimension = n_components or 2
        self._setting: Setting | None = None
        self._estimated_at = 0

    def draw(
        self, triplets: NDArray[np.int64], holdout: NDArray[np.int64], *, seen: int
    ) -> dict[str, Any] | None:
        """What the dashboard shows; None while there are too few answers.

        Positions have at least two columns unless one was asked for, strongest direction first.
        """
        if len(triplets) < FEWEST:
            return None
        began = time.perf_counter()
        if len(triplets) >= _AGAIN * self._estimated_at:
            self._setting = None
            self._estimated_at = len(triplets)
            if self._wanted is None:
                self._dimension = self._estimate(triplets)
        shown = self._wanted or max(2, self._dimension)
        fit = fit_answers(triplets, self._n, shown, seed=self._seed, setting=self._setting)
        self._setting = fit.setting
        X = fit.positions - fit.positions.mean(axis=0)
        _, _, axes = np.linalg.svd(X, full_matrices=False)
        X = X @ axes.T
        return {
            "seen": seen,
            "n_triplets": len(triplets),
            "dimension": self._dimension,
            "accuracy": accuracy(X, holdout),
            "n_holdout": len(holdout),
            "seconds": time.perf_counter() - began,
            "positions": np.round(X, 4).tolist(),
        }

    def _estimate(self, triplets: NDArray[np.int64]) -> int:
        most = min(_MOST_DIMENSIONS, self._n - 1)
        found = estimate_dimension(
            triplets,
            self._n,
            method="held-out",
            max_dimension=most,
            random_state=np.random.default_rng([self._seed, len(triplets)]),
        )
        return found.dimension
