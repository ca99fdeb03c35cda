"""The map of the objects from the answers so far, and how far it can be trusted.

Positions, their dimension and people's noise are what `nearer.fitting.belief` makes of all answers
to real questions; a further map goes on from the last one. The hold-out questions, which no method
chose and no fit saw, say how often the map predicts what people answer.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.belief import Belief

__all__ = ["FEWEST", "Draughtsman", "accuracy"]

FEWEST = 10  # answers below which no map is drawn


def accuracy(X: NDArray[np.float64], triplets: NDArray[np.int64]) -> float | None:
    """Share of the answers that the positions predict; None without answers."""
    if not len(triplets):
        return None
    head, near, far = X[triplets.T]
    to_near = np.linalg.norm(head - near, axis=1)
    to_far = np.linalg.norm(head - far, axis=1)
    return float((to_near < to_far).mean())


class Draughtsman:
    """Draws the maps of one study, one after the other.

    Parameters
    ----------
    n_objects
        How many objects there are.
    n_components
        Dimension of the map; None estimates it.
    seed
        Where the fits begin.
    """

    def __init__(self, n_objects: int, *, n_components: int | None = None, seed: int = 0) -> None:
        self._belief = Belief(n_objects, n_components, np.random.default_rng(seed))

    def draw(
        self,
        triplets: NDArray[np.int64],
        holdout: NDArray[np.int64],
        *,
        seen: int,
        last: bool = False,
    ) -> dict[str, Any] | None:
        """What the dashboard shows; None while there are too few answers.

        The columns of the positions are the directions in which the objects differ, strongest
        first. With `last`, everything is looked at once more, as after the end of a study.
        """
        if len(triplets) < FEWEST:
            return None
        began = time.perf_counter()
        self._belief.learn(triplets)
        if last:
            self._belief.conclude()
        X = self._belief.fit.positions - self._belief.fit.positions.mean(axis=0)
        _, _, axes = np.linalg.svd(X, full_matrices=False)
        X = X @ axes.T
        return {
            "seen": seen,
            "n_triplets": len(triplets),
            "dimension": X.shape[1],
            "accuracy": accuracy(X, holdout),
            "n_holdout": len(holdout),
            "seconds": time.perf_counter() - began,
            "positions": np.round(X, 4).tolist(),
        }
