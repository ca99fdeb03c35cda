"""The map of the objects from the answers so far, and how far it can be trusted.

Positions, their dimension and people's noise are what `nearer.fitting.belief` makes of the answers
that count; a further map goes on from the last one. While a study runs, the hold-out questions,
which no method chose and no fit saw, say how often the map predicts what people answer.

At the end nothing is held back: the final map is fitted to answers of every kind, and how far it
can be trusted comes from folds. A fold leaves out whole questions, with all answers to them: two
answers to the same question on both sides would make a map that only remembers look good.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.belief import Belief
from nearer.questions import pack

__all__ = ["FEWEST", "MapMaker", "accuracy", "final_map"]

FEWEST = 10  # answers below which no map is drawn
_FOLDS = 5


def accuracy(X: NDArray[np.float64], triplets: NDArray[np.int64]) -> float | None:
    """Share of the answers that the positions predict; None without answers."""
    if not len(triplets):
        return None
    head, near, far = X[triplets.T]
    to_near = np.linalg.norm(head - near, axis=1)
    to_far = np.linalg.norm(head - far, axis=1)
    return float((to_near < to_far).mean())


class MapMaker:
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


def final_map(
    triplets: NDArray[np.int64],
    n_objects: int,
    *,
    seen: int,
    n_components: int | None = None,
    seed: int = 0,
) -> dict[str, Any] | None:
    """The map of all answers, with the accuracy that folds by question give it.

    Parameters
    ----------
    triplets
        Answers of every kind, see `nearer.study.log.EVERY_KIND`.
    """

    def fitted(rows: NDArray[np.int64], held: NDArray[np.int64]) -> dict[str, Any] | None:
        maker = MapMaker(n_objects, n_components=n_components, seed=seed)
        return maker.draw(rows, held, seen=seen, last=True)

    whole = fitted(triplets, triplets[:0])
    if whole is None:
        return None
    asked, question = np.unique(pack(triplets)[0], return_inverse=True)
    fold_of = np.random.default_rng(seed).permutation(len(asked)) % _FOLDS
    right, held = 0.0, 0
    for fold in range(_FOLDS):
        out = fold_of[question.ravel()] == fold
        part = fitted(triplets[~out], triplets[out])
        if part is not None and part["accuracy"] is not None:
            right += part["accuracy"] * int(out.sum())
            held += int(out.sum())
    return {**whole, "accuracy": right / held if held else None, "n_holdout": held}
