"""Where a fit begins, which decides where it ends.

Triplet losses have bad optima: from a random start in d dimensions an object, or half of them,
gets stuck on the wrong side of others, and nothing in d dimensions leads around. In more
dimensions there is a way around. So the default comes *from above*: a tiny random cloud in a few
dimensions too many is fitted for a few steps, turned to its principal axes, stripped of its
weakest axis, fitted again, and so on down to d. What is still on the wrong side afterwards is
lifted once more: an extra coordinate, a short fit, and down again (`fit_from_above`).

Exact answers leave a region of positions at soe loss zero, and L-BFGS stops where it enters.
A short fit of the logistic loss, which pays for every bit of margin, moves to the middle of the
region: rankings that were not asked for come out better. Where there are very many answers it
ends where it slows down: after that, loss is gained by blowing the map up, and the few narrowest
answers decide.

The other starts are kept for comparison and for users who want them: `random_start`;
`ranking_start`, principal axes of the squared ranks, since the squared distance to a head is
linear in the position but for one term that all heads share. ``python -m benchmarks starts``
measures all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.fitting.descent import descend, principal_axes
from nearer.fitting.losses import Floats, Loss, as_loss
from nearer.fitting.misplaced import mirrored, relocate
from nearer.fitting.solver import Callback, Fit, Passes, fit_positions, prepare

__all__ = [
    "ENOUGH",
    "EXTRA",
    "ROUGH",
    "come_down",
    "fit_from_above",
    "random_start",
    "ranking_start",
    "triplet_ranks",
]

# Time against fits that are stuck; `python -m benchmarks starts` counts them, `sensitivity` halves
# and doubles those that fits of few answers depend on.
EXTRA = 3  # dimensions too many at the start
ROUGH = 1e-6  # gain of a step that ends a fit that another goes on from
_TINY = 0.1  # spread of the random cloud, in units of soe's margin
_WIDEST = 1e6  # factor by which positions may be scaled to keep soe's margin
# Share of disobeyed answers that a few misplaced objects can explain. Where answers are wrong more
# often than that, looking for them takes many times the steps and makes nothing better.
_RESCUE_BELOW = 0.05
_MANY = 1_000_000  # answers from which on the way down takes only some of them:
ENOUGH = 10  # … so many a coordinate; fewer answers are all needed, as a graph's are;
# … and on which the way to the middle ends at steps that gain less than this share of the loss:
# time, and errors on answers not seen, which grow again after that where answers are random and
# many (`python -m benchmarks scale` has both). Fewer answers take all steps: those of whole
# rankings gain by them
_SLOW = 0.001
_MOST_SEARCHED = 1 << 22  # answers: a misplaced object is looked for in all of them


def random_start(n: int, d: int, rng: np.random.Generator) -> Floats:
    """A tiny random cloud: all objects in one place, but for symmetry."""
    return _TINY * rng.standard_normal((n, checks.n_components(d)))


def ranking_start(rankings: Mapping[int, ArrayLike], d: int, *, spread: float = 3.0) -> Floats:
    """Positions at the principal axes of the squared ranks.

    Parameters
    ----------
    rankings
        Head → ``(n,)`` ranks of all objects, or estimates of them.
    d
        Dimension; where there are fewer heads than that, the last coordinates are tiny.
    spread
        Standard deviation of the result.
    """
    ranks = np.array([rankings[h] for h in sorted(rankings)], dtype=np.float64).T
    axes = min(d, ranks.shape[1])
    X = principal_axes((ranks / len(ranks)) ** 2, axes)
    X *= spread / max(float(X.std()), np.finfo(float).tiny)
    missing = d - axes
    if missing > 0:  # deterministic, and different for every object
        phase = np.outer(np.arange(1, len(X) + 1), np.arange(1, missing + 1)) * np.sqrt(2)
        X = np.hstack([X, _TINY * np.sin(phase)])
    return X


def triplet_ranks(triplets: ArrayLike, n_objects: int | None = None) -> dict[int, Floats]:
    """Estimate the ranking from every head that answers speak of.

    An object's rank is the share of its comparisons with that head that it lost, drawn to one
    half by one imaginary win and loss; unseen objects stay in the middle.
    """
    rows, n = checks.triplets(triplets, n_objects)
    ranks = {}
    for head in np.unique(rows[:, 0]):
        mine = rows[rows[:, 0] == head]
        wins = np.bincount(mine[:, 1], minlength=n)
        losses = np.bincount(mine[:, 2], minlength=n)
        ranks[int(head)] = n * (losses + 1.0) / (wins + losses + 2.0)
        ranks[int(head)][head] = 0.0
    return ranks


def fit_from_above(
    triplets: ArrayLike | Passes,
    n_objects: int | None = None,
    n_components: int = 2,
    *,
    loss: str | Loss = "soe",
    weights: ArrayLike | None = None,
    ridge: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-9,
    rng: np.random.Generator,
    rescues: int = 3,
    callback: Callback | None = None,
) -> Fit:
    """Fit positions, coming down from a few dimensions more.

    Parameters are those of `nearer.fitting.solver.fit_positions`, and `rescues`: how often
    misplaced objects may be lifted. None is spent where all answers are obeyed, or where so
    many are not that misplaced objects cannot be the reason (noise, too low a dimension).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> fit_from_above([[0, 1, 2], [1, 0, 2], [2, 1, 0]], 3, 1, rng=rng).loss
    0.0
    """
    passes = prepare(triplets, n_objects, weights)
    fit = partial(fit_positions, ridge=ridge)
    search = _Search(passes, fit, as_loss(loss), max_iter, tol, callback)
    start = random_start(passes.n_objects, n_components + EXTRA, rng)
    return search.rescued(start, n_components, rescues, rng)


def come_down(
    triplets: NDArray[np.int32],
    n: int,
    positions: Floats,
    d: int,
    *,
    max_iter: int = 500,
    tol: float = 1e-9,
    rng: np.random.Generator,
    rescues: int = 3,
    middle: bool = True,
) -> Fit:
    """Fit soe in d dimensions, from positions in as many or more."""
    search = _Search(prepare(triplets, n), fit_positions, Loss("soe"), max_iter, tol)
    return search.rescued(positions, d, rescues, rng, middle)


def apart(fit: Fit, passes: Passes) -> Fit:
    """Scale positions that obey all answers until soe's margin is kept, so that its loss is 0."""
    gap = passes.least_margin(fit.positions)
    if fit.loss == 0 or gap * _WIDEST < 1:
        return fit
    return replace(fit, positions=fit.positions * (1 + 1e-9) / gap, loss=0.0)


class _Search:
    """Fits of the same answers, one after the other, with their steps counted."""

    def __init__(
        self,
        passes: Passes,
        fit: Callable[..., Fit],
        loss: Loss,
        max_iter: int,
        tol: float,
        callback: Callback | None = None,
    ) -> None:
        self._passes, self._fit, self.loss = passes, fit, loss
        self._max_iter, self._tol, self._callback = max_iter, tol, callback
        self.steps = 0

    def fit(self, X: Floats, steps: int, tol: float) -> Fit:
        return self._fit_to(self._passes, X, steps, tol)

    def _fit_to(self, passes: Passes, X: Floats, steps: int, tol: float) -> Fit:
        how = {"loss": self.loss, "callback": self._callback}
        done = self._fit(passes, start=X, max_iter=steps, tol=tol, **how)
        self.steps += done.n_iter
        return done

    def down(self, X: Floats, d: int, rng: np.random.Generator) -> Fit:
        """Strip one axis after the other, each after a short fit; then fit to the end."""
        few = self._few(X.size, rng) if X.shape[1] > d else self._passes

        def fit(start: Floats) -> Fit:
            if start.shape[1] > d:
                return self._fit_to(few, start, self._max_iter, ROUGH)
            if few is not self._passes:
                start = self._fit_to(few, start, self._max_iter, ROUGH).positions
            return self.fit(start, self._max_iter, self._tol)

        *_, last = descend(fit, X, d)
        return last

    def _few(self, coordinates: int, rng: np.random.Generator) -> Passes:
        """As many answers as the way down needs; the last fit takes all."""
        enough = ENOUGH * coordinates
        if len(self._passes) < max(_MANY, 2 * enough):
            return self._passes
        return self._passes.few(enough, rng)

    def rescued(
        self, X: Floats, d: int, rescues: int, rng: np.random.Generator, middle: bool = True
    ) -> Fit:
        """Come down, help what is misplaced; then to the middle, if asked, and apart."""
        best = self.down(X, d, rng)
        wrong = self._passes.violated(best.positions)
        for _ in range(rescues if len(self._passes) <= _MOST_SEARCHED else 0):
            if not 0 < wrong.mean() < _RESCUE_BELOW:
                break
            best, wrong = self.moved(best, wrong, rng)
            if not wrong.any():
                break
            lift = rng.standard_normal((len(X), 1)) * 0.3 * best.positions.std()
            again = self.down(np.hstack([best.positions, lift]), d, rng)
            best = min(best, again, key=lambda f: f.loss)
            wrong = self._passes.violated(best.positions)
        if self.loss.name == "soe" and not wrong.any():
            if middle:
                centred = self.centre(best)
                if not self._passes.violated(centred.positions).any():
                    best = centred
            best = apart(best, self._passes)
        return replace(best, n_iter=self.steps)

    def moved(
        self, best: Fit, wrong: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Fit, NDArray[np.bool_]]:
        """Try other places for the objects that break most of their answers."""
        rows = self._passes.rows
        places = relocate(best.positions, rows, wrong, rng)
        best = min(best, self.fit(places, self._max_iter, self._tol), key=lambda f: f.loss)
        for places in mirrored(best.positions, rows, wrong, rng):
            again = self.fit(places, self._max_iter, ROUGH)
            if again.loss < best.loss:
                best = self.fit(again.positions, self._max_iter, self._tol)
                if not self._passes.violated(best.positions).any():
                    break
        return best, self._passes.violated(best.positions)

    def centre(self, fit: Fit) -> Fit:
        """Move to the middle of what the answers allow."""
        how: dict[str, Any] = {"loss": Loss("logistic"), "callback": self._callback}
        if len(self._passes) >= _MANY:
            how["callback"] = _until_slow(self._callback)
        smooth = self._fit(self._passes, start=fit.positions, max_iter=100, tol=self._tol, **how)
        self.steps += smooth.n_iter
        return self.fit(smooth.positions, self._max_iter, self._tol)


def _until_slow(callback: Callback | None) -> Callback:
    """A callback that ends a fit whose steps gain little of the loss."""
    last = math.inf

    def after_step(step: int, loss: float, positions: Any) -> None:
        nonlocal last
        if callback is not None:
            callback(step, loss, positions)
        if last - loss < _SLOW * loss:
            raise StopIteration
        last = loss

    return after_step
