"""Fit in the smallest number of dimensions that the answers call for, for answers without noise.

*Come down.* Fit in many dimensions, strip the weakest axis, fit again from there, and so on, and
judge each fit by answers that were held out. Answers about few dimensions are predicted well as
long as there are enough of them, and badly at once when one is missing; answers from few heads
about data of high dimension are predicted best somewhere between. The smallest dimension within a
standard error, of the paired difference, of the best is taken. Short fits are enough to tell.

*Go on.* Fit all answers there. Where nearly all are obeyed, a few misplaced objects may be what is
left, so the fit takes its time; and where all are, they may be in fewer dimensions still, which
short fits of data with many bad optima (the surface of a globe) can miss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.fitting.losses import Floats
from nearer.fitting.solver import Fit, disobeyed, fit_positions
from nearer.fitting.starts import come_down, principal_axes, random_start

__all__ = ["fit_onwards", "fit_smallest"]

_HELD_OUT = 0.1
_EXTRA = 3  # dimensions too many at the start
_STEPS = 60  # of the optimiser in each dimension on the way down
_MORE_STEPS = 500  # with all answers
_MOST_STEPS = 2000  # where nearly all of them are obeyed
_ANSWERS = 3  # a coordinate; fewer do not tell whether a dimension is one too many
_PATIENCE = 2  # dimensions in a row that predict clearly worse, and coming down ends
_CLEARLY = 3.0  # standard errors
_OBEYED = 1e-3  # share of answers disobeyed that still counts as all obeyed
_NEARLY = 1e-2  # … as nearly all


def fit_smallest(
    triplets: NDArray[np.integer],
    n_objects: int,
    *,
    at_least: int = 1,
    at_most: int = 16,
    rng: np.random.Generator,
) -> tuple[Fit, dict[int, dict[str, float]]]:
    """Fit in the smallest dimension that predicts held-out answers as well as any larger one.

    Parameters
    ----------
    triplets
        ``(m, 3)`` rows (head, near, far).
    n_objects
        How many objects there are.
    at_least, at_most
        Dimensions to choose from; there must be fewer than objects, and a few answers for every
        coordinate.
    rng
        Source of the random start, and of which answers are held out.

    Returns
    -------
    fit
        In the dimension chosen, to all triplets.
    evidence
        For each dimension tried: the loss of the answers fitted, the accuracy on those held out.
    """
    rows, n = checks.triplets(triplets, n_objects)
    out = rng.random(len(rows)) < _HELD_OUT
    kept, held = rows[~out], rows[out]
    if not len(held) or not len(kept):
        kept = held = rows
    at_least = min(at_least, n - 1)
    at_most = max(at_least, min(at_most, n - 1, len(rows) // (_ANSWERS * n)))
    way = _Way(kept, held)
    way.down(random_start(n, at_most + _EXTRA, rng), at_most, at_least)
    fit = fit_onwards(rows, way.fits[way.chosen()].positions, at_least=at_least, rng=rng)
    return fit, way.evidence()


def fit_onwards(
    rows: NDArray[np.int32], positions: Floats, *, at_least: int, rng: np.random.Generator
) -> Fit:
    """Fit all answers from positions that are about right, in fewer dimensions if all are obeyed.

    Parameters
    ----------
    rows
        ``(m, 3)`` triplets.
    positions
        Where to begin.
    at_least
        The fewest dimensions.
    rng
        Source of the places that are tried for misplaced objects.
    """
    n, d = positions.shape
    fit = fit_positions(rows, n, start=positions, max_iter=_MORE_STEPS)
    if _share(fit, rows) >= _NEARLY:
        return fit
    fit = come_down(rows, n, fit.positions, d, max_iter=_MOST_STEPS, rng=rng, middle=False)
    while d > at_least and _share(fit, rows) <= _OBEYED:
        lower = come_down(rows, n, fit.positions, d - 1, rng=rng, middle=False)
        if _share(lower, rows) > _OBEYED:
            break
        fit, d = lower, d - 1
    return come_down(rows, n, fit.positions, d, rng=rng, rescues=0)


def _share(fit: Fit, rows: NDArray[np.int32]) -> float:
    return float(disobeyed(fit.positions, rows).mean())


class _Way:
    """Fits of the kept answers on the way down, and which of the held-out ones each gets wrong."""

    def __init__(self, kept: NDArray[np.int32], held: NDArray[np.int32]) -> None:
        self._kept, self._held = kept, held
        self.fits: dict[int, Fit] = {}
        self._wrong: dict[int, NDArray[np.bool_]] = {}

    def down(self, X: Floats, most: int, least: int) -> None:
        """Fit in fewer and fewer dimensions, and note those from `most` to `least`."""
        worse = 0
        for d in range(X.shape[1], least - 1, -1):
            start = principal_axes(X, d)
            fit = fit_positions(self._kept, len(X), start=start, max_iter=_STEPS, tol=1e-6)
            X = fit.positions
            if d > most:
                continue
            self.fits[d], self._wrong[d] = fit, disobeyed(X, self._held)
            worse = worse + 1 if self._worse_than_best(d, _CLEARLY) else 0
            if worse == _PATIENCE:
                break

    def chosen(self) -> int:
        """The smallest dimension within a standard error of the best."""
        return min(d for d in self.fits if not self._worse_than_best(d, 1.0))

    def evidence(self) -> dict[int, dict[str, float]]:
        return {
            d: {"loss": fit.loss, "held_out_accuracy": 1.0 - float(self._wrong[d].mean())}
            for d, fit in sorted(self.fits.items())
        }

    def _worse_than_best(self, d: int, errors: float) -> bool:
        """Whether d predicts worse than the best by more than so many standard errors."""
        best = min(self._wrong, key=lambda d: (self._wrong[d].mean(), d))
        difference = self._wrong[d].astype(np.float64) - self._wrong[best]
        error = float(difference.std() / np.sqrt(len(difference)))
        return float(difference.mean()) > errors * error
