"""How many dimensions answers need: one search, two judges.

*All answers can be obeyed.* In too few dimensions no positions obey all answers; in enough, soe
loss zero is reached. So come down (`nearer.fitting.initial`) and stop at the first dimension whose
fit disobeys; the one before is the smallest. With few answers anything can be obeyed, so this
counts only with several answers a coordinate, and only where answers that no fit has seen are
obeyed, too (`is_exact`).

*Answers held out are predicted.* Each dimension gives every held-out answer a score, and two
dimensions are compared by the differences: their mean in standard errors, z. Answers about the same
three objects are one piece of evidence. The dimension to fit in is the one from which on no further
one gains more than a standard error.

*How probable is each?* With d the truth, the steps up to d gain much and the step to d + 1 gains
nothing; but where answers tell little, a dimension that is there may not gain either. What the
answers tell about the positions, N nats for each of d + 1 coordinates, is what leaving out one that
is there loses, and standard errors grow as √N. So, if the truth is at least d, it is more than d
with probability σ(a + b·z + c·√N), z the gain of the step to d + 1; where that step was not tried,
σ(a' + c'·√N). The five numbers make the true dimensions of 160 files of simulated answers most
likely: Gaussian, Laplace and uneven points in 1 to 8 dimensions, 10 to 400 objects, 1.5 to 60
answers a coordinate, 0 to 30 % of them wrong. ``python -m benchmarks dimension_fit`` finds them,
and ``python -m benchmarks dimension`` shows on other points that what is said to hold 95 times in
100 does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nearer import checks
from nearer.fitting.initial import (
    HasPositions,
    fit_from_more_dimensions,
    principal_axes,
    random_start,
    reduce_dimensions,
)
from nearer.fitting.losses import Floats
from nearer.fitting.solver import Fit, fit_positions, violated

__all__ = [
    "MANY",
    "HeldOutJudge",
    "advantage",
    "fit_onwards",
    "fit_smallest",
    "is_exact",
    "lowest",
    "obeys",
    "settle",
]

_WORTHWHILE = 1.0  # standard errors that one dimension more must gain to be fitted
_TRIED = (2.63, 1.14, -0.12)  # a, b and c above
_UNTRIED = (0.64, -0.08)  # a' and c' above
# Where `dimension_fit` had answers to fit, and no farther:
_MOST_TOLD = 40.0  # √N; hardly any simulated answers told more
_CLEAREST = 15.0  # standard errors; a larger gain tells no more
_SURE = 0.95  # probability of the range of dimensions that is reported

# `python -m benchmarks sensitivity` halves and doubles the first of these.
# Answers a coordinate from which on perfect obedience is no accident: with fewer, errors can be
# obeyed, too, and positions that obey them are worse than those that doubt them.
MANY = 5
_NEARLY = 1e-2  # share of disobeyed answers that still lets a longer fit obey all

# Of the paper's pipelines: time against dimensions too many; `python -m paper` shows both.
_HELD_OUT = 0.1  # share of the answers
_EXTRA = 3  # dimensions too many at the start
_STEPS = 60  # of the optimiser in each dimension on the way down
_MORE_STEPS = 500  # with all answers
_MOST_STEPS = 2000  # where nearly all of them are obeyed
_ANSWERS = 3  # a coordinate; fewer do not tell whether a dimension is one too many
_PATIENCE = 2  # dimensions in a row that predict clearly worse, and coming down ends
_CLEARLY = 3.0  # standard errors

F = TypeVar("F", bound=HasPositions)


# --- all answers can be obeyed -------------------------------------------------------------------


def lowest(fits: Iterable[F], good: Callable[[F], bool]) -> F | None:
    """The last good one of fits that come down, up to the first that is not; None where none is.

    Examples
    --------
    >>> from nearer.fitting.solver import Fit
    >>> fits = [Fit(np.zeros((4, d)), 0.0 if d > 1 else 0.3, 1, True) for d in (3, 2, 1)]
    >>> lowest(fits, lambda fit: fit.loss < 0.1).positions.shape[1]
    2
    """
    best = None
    for fit in fits:
        if not good(fit):
            break
        best = fit
    return best


def obeys(fit: HasPositions, rows: NDArray[np.integer]) -> bool:
    """Whether positions obey all answers."""
    return not violated(fit.positions, rows).any()


def is_exact(n_wrong: int, n_held_out: int, n_fitted: int, n_parameters: int) -> bool:
    """Whether so few held-out answers are disobeyed as where answers without errors were obeyed.

    With k parameters that obey m answers, a share of about k/m of further ones is disobeyed: an
    answer left out is missed only if it was one of those that held the positions in place, and k
    of them do that. Three standard errors more are allowed. (The learning curve of Seung,
    Sompolinsky and Tishby 1992 is .62·k/m; exact simulated answers gave .4 to 1.1.)

    Examples
    --------
    >>> is_exact(10, 500, 2000, 100), is_exact(100, 500, 2000, 100)
    (True, False)
    """
    if n_fitted < MANY * n_parameters or not n_held_out:
        return False
    rate = n_parameters / n_fitted
    error = np.sqrt(rate * (1 - rate) / n_held_out)
    return bool(n_wrong <= n_held_out * (rate + 3 * error))


def _share(fit: HasPositions, rows: NDArray[np.integer]) -> float:
    return float(violated(fit.positions, rows).mean())


# --- answers held out are predicted --------------------------------------------------------------


def advantage(one: Floats, other: Floats) -> float:
    """By how many standard errors scores of the same answers are better than others.

    Examples
    --------
    >>> round(advantage(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 3.0])), 2)
    2.45
    """
    difference = one - other
    gain = float(difference.mean())
    error = float(difference.std()) / math.sqrt(max(1, len(difference)))
    return gain / max(error, float(np.finfo(np.float64).eps))


@dataclass(frozen=True)
class HeldOutJudge:
    """Which dimension predicts answers best that no fit has seen.

    Attributes
    ----------
    scores
        Dimension → score of each piece of evidence, such as the log-likelihood of the held-out
        answers about the same three objects; pieces in the same order for all.
    told
        Dimension → nats that the answers tell about the positions, in that many dimensions; none
        where it is not known.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line, plane, space = rng.normal(0, 1, 400), rng.normal(1, 1, 400), rng.normal(0.6, 1, 400)
    >>> judge = HeldOutJudge({1: line, 2: plane, 3: space}, {1: 200.0, 2: 400.0, 3: 350.0})
    >>> judge.best, judge.span(judge.probabilities(5))
    (2, (2, 2))
    """

    scores: Mapping[int, Floats]
    told: Mapping[int, float] = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The dimension to fit in: no further one gains more than a standard error."""
        tried = sorted(self.scores)
        worth = [0.0]
        for d, more in pairwise(tried):
            gain = advantage(self.scores[more], self.scores[d])
            worth.append(worth[-1] + gain - _WORTHWHILE * (more - d))
        return tried[int(np.argmax(worth))]

    def probabilities(self, most: int, least: int = 1) -> dict[int, float]:
        """How probable each dimension from `least` to `most` is."""
        chances, beyond = {}, 1.0
        for d in range(least, most):
            more = self._more_than(d)
            chances[d] = beyond * (1 - more)
            beyond *= more
        return {**chances, most: beyond}

    def _more_than(self, d: int) -> float:
        """How probable it is that the truth is more than d, if it is not less."""
        if self.scores and d < min(self.scores):
            return 1.0  # the search came from above and found nothing below worth trying
        z, told = self.step(d)
        if z is None:
            return float(expit(_UNTRIED[0] + _UNTRIED[1] * told))
        return float(expit(_TRIED[0] + _TRIED[1] * z + _TRIED[2] * told))

    def step(self, d: int) -> tuple[float | None, float]:
        """What d + 1 gains over d in standard errors, None if it was not tried, and √N."""
        known = min(d + 1, max(self.scores, default=d + 1))
        told = math.sqrt(max(self.told.get(known, 0.0), 0.0) / (d + 1))
        told = min(told, _MOST_TOLD)
        if d not in self.scores or d + 1 not in self.scores:
            return None, told
        gain = advantage(self.scores[d + 1], self.scores[d])
        return min(max(gain, -_CLEAREST), _CLEAREST), told

    def span(self, chances: Mapping[int, float]) -> tuple[int, int]:
        """The dimensions that cannot be told apart from the best: 95 % of the probability."""
        low = high = max(self.best if self.scores else 1, min(chances))
        while sum(chances[d] for d in range(low, high + 1)) < _SURE:
            below, above = chances.get(low - 1, 0.0), chances.get(high + 1, 0.0)
            if low == min(chances) and high == max(chances):
                break
            low, high = (low - 1, high) if below >= above else (low, high + 1)
        return low, high

    def smallest(self) -> int:
        """The smallest dimension within a standard error of the one with the best mean."""
        return min(d for d in self.scores if not self.worse(d, 1.0))

    def worse(self, d: int, errors: float) -> bool:
        """Whether d predicts worse than the best mean by more than so many standard errors."""
        best = max(self.scores, key=lambda d: (self.scores[d].mean(), -d))
        return advantage(self.scores[best], self.scores[d]) > errors


def settle(
    d: int, attempt: Callable[[int, int], Floats | None], scores: dict[int, Floats], most: int
) -> int:
    """The most probable dimension, by trying neighbours of the best until they are all worse.

    Parameters
    ----------
    d
        Where to begin; it is among the scores.
    attempt
        Given a dimension and the neighbour that is known, returns its scores; None: it has none.
    scores
        Of each dimension tried; filled.
    most
        The most dimensions.
    """
    while True:
        for e in (d + 1, d - 1):
            if 1 <= e <= most and e not in scores:
                found = attempt(e, d)
                if found is not None:
                    scores[e] = found
        best = HeldOutJudge(scores).best
        if best == d:
            return d
        d = best


# --- both: the smallest dimension for answers without noise --------------------------------------


def fit_smallest(
    triplets: NDArray[np.integer],
    n_objects: int,
    *,
    at_least: int = 1,
    at_most: int = 16,
    rng: np.random.Generator,
) -> tuple[Fit, dict[int, dict[str, float]]]:
    """Fit in the smallest dimension that predicts held-out answers as well as any larger one.

    Short fits on the way down are enough to tell. Answers about few dimensions are predicted well
    as long as there are enough of them, and badly at once when one is missing; answers from few
    heads about data of high dimension are predicted best somewhere between.

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

    def fit(start: Floats) -> Fit:
        return fit_positions(kept, n, start=start, max_iter=_STEPS, tol=1e-6)

    scores, fits, worse = dict[int, Floats](), dict[int, Fit](), 0
    judge = HeldOutJudge(scores)
    start = principal_axes(random_start(n, at_most + _EXTRA, rng), at_most + _EXTRA)
    for found in reduce_dimensions(fit, start, at_least):
        d = found.positions.shape[1]
        if d > at_most:
            continue
        fits[d], scores[d] = found, -violated(found.positions, held).astype(np.float64)
        worse = worse + 1 if judge.worse(d, _CLEARLY) else 0
        if worse == _PATIENCE:
            break
    evidence = {
        d: {"loss": fits[d].loss, "held_out_accuracy": 1.0 + float(scores[d].mean())}
        for d in sorted(fits)
    }
    return fit_onwards(rows, fits[judge.smallest()].positions, at_least=at_least, rng=rng), evidence


def fit_onwards(
    rows: NDArray[np.int32], positions: Floats, *, at_least: int, rng: np.random.Generator
) -> Fit:
    """Fit all answers from positions that are about right, in fewer dimensions if all are obeyed.

    Where nearly all answers are obeyed, a few misplaced objects may be what is left, so the fit
    takes its time; and where all are, they may be in fewer dimensions still, which short fits of
    data with many bad optima (the surface of a globe) can miss.

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
    first = fit_positions(rows, n, start=positions, max_iter=_MORE_STEPS)
    if _share(first, rows) >= _NEARLY:
        return first

    def fit(start: Floats) -> Fit:
        e = start.shape[1]
        steps = _MOST_STEPS if e == d else _MORE_STEPS
        how: Any = {"max_iter": steps, "rng": rng, "centre": False}
        return fit_from_more_dimensions(rows, n, e, start=start, **how)

    fits = reduce_dimensions(fit, first.positions, at_least)
    found = next(fits)
    if obeys(found, rows):
        found = lowest(fits, lambda fit: obeys(fit, rows)) or found
    X = found.positions
    return fit_from_more_dimensions(rows, n, X.shape[1], start=X, rng=rng, rescues=0)
