"""How many dimensions answers need: one search, two judges.

*All answers can be obeyed.* In too few dimensions no positions obey all answers; in enough, soe
loss zero is reached. So come down (`nearer.fitting.descent`) and stop at the first dimension whose
fit disobeys; the one before is the smallest. With few answers anything can be obeyed, so this
counts only with several answers a coordinate, and only where answers that no fit has seen are
obeyed, too (`is_exact`).

*Answers held out are predicted.* Each dimension gives every held-out answer a score, and two
dimensions are compared by the differences: their mean in standard errors, z. Answers about the same
three objects are one piece of evidence. With d the truth, z of d − 1 against d is large, that of d
against d + 1 about nothing or negative; so the odds of d + 1 to d are taken to be
exp(_SLOPE · (z − _WORTHWHILE)), and the odds of neighbours make the probability of each
dimension. Both numbers are the ones under which the true dimensions of simulated answers are most
likely; ``python -m benchmarks dimension`` shows that the probabilities hold on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.fitting.descent import HasPositions, descend, principal_axes
from nearer.fitting.losses import Floats
from nearer.fitting.solver import Fit, disobeyed, fit_positions
from nearer.fitting.starts import come_down, fit_from_above, random_start

__all__ = [
    "HeldOutJudge",
    "advantage",
    "fit_onwards",
    "fit_smallest",
    "is_exact",
    "lowest",
    "obeys",
    "settle",
    "smallest_obeyed",
]

_SLOPE = 1.0  # of the log-odds of one dimension more, see above
_WORTHWHILE = 1.0  # standard errors that one dimension more must gain, see above
_SURE = 0.95  # probability of the range of dimensions that is reported
_WORTH = 2e-4  # mean differences of scores below this are none

_EXACT = 5  # answers a coordinate from which on perfect obedience is no accident
_OBEYED = 1e-3  # share of disobeyed answers that a few stuck objects explain
_NEARLY = 1e-2  # … that still lets a longer fit obey all
# Of k parameters that obey m random answers, the error on further ones is .62·k/m: the learning
# curve of a consistent student (Seung, Sompolinsky and Tishby 1992)
_CONSISTENT = 0.62

_HELD_OUT = 0.1
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
    """Whether positions obey all answers, or all but what a few stuck objects explain."""
    return _share(fit, rows) <= _OBEYED


def smallest_obeyed(
    rows: NDArray[np.int32], n: int, most: int, rng: np.random.Generator
) -> tuple[Fit | None, dict[int, float]]:
    """A fit in the smallest dimension in which all answers are obeyed, and what was tried.

    Parameters
    ----------
    rows
        ``(m, 3)`` triplets.
    n
        How many objects there are.
    most
        The most dimensions to try; fewer where there are fewer than five answers a coordinate.
    rng
        Source of the start.

    Returns
    -------
    fit
        None where answers are too few to tell, or no dimension obeys them.
    shares
        Dimension → share of answers that its fit disobeys.
    """
    d, shares = min(most, len(rows) // (_EXACT * n)), dict[int, float]()
    if d < 1:
        return None, shares

    def fit(start: Floats) -> Fit:
        if start.shape[1] > d:
            found = fit_from_above(rows, n, d, rng=rng, max_iter=1000)
        else:
            found = come_down(rows, n, start, start.shape[1], rng=rng, middle=False)
        shares[found.positions.shape[1]] = _share(found, rows)
        return found

    found = lowest(descend(fit, np.empty((n, d + 1)), 1), lambda fit: obeys(fit, rows))
    if found is not None:
        found = come_down(rows, n, found.positions, found.positions.shape[1], rng=rng)
    return found, shares


def is_exact(n_wrong: int, n_held_out: int, n_fitted: int, n_parameters: int) -> bool:
    """Whether so few held-out answers are disobeyed as where answers without errors were obeyed.

    Three standard errors more than expected are allowed.

    Examples
    --------
    >>> is_exact(10, 500, 2000, 100), is_exact(100, 500, 2000, 100)
    (True, False)
    """
    if n_fitted < _EXACT * n_parameters or not n_held_out:
        return False
    rate = min(_CONSISTENT * n_parameters / n_fitted, 0.5)
    error = np.sqrt(rate * (1 - rate) / n_held_out)
    return bool(n_wrong <= n_held_out * (rate + 3 * error))


def _share(fit: HasPositions, rows: NDArray[np.integer]) -> float:
    return float(disobeyed(fit.positions, rows).mean())


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
    return 0.0 if abs(gain) <= _WORTH else gain / max(error, _WORTH)


@dataclass(frozen=True)
class HeldOutJudge:
    """Which dimension predicts answers best that no fit has seen.

    Attributes
    ----------
    scores
        Dimension → score of each piece of evidence, such as the log-likelihood of the held-out
        answers about the same three objects; pieces in the same order for all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line, plane, space = rng.normal(0, 1, 400), rng.normal(1, 1, 400), rng.normal(0.7, 1, 400)
    >>> judge = HeldOutJudge({1: line, 2: plane, 3: space})
    >>> judge.best, judge.span()
    (2, (2, 2))
    """

    scores: Mapping[int, Floats]

    def probabilities(self) -> dict[int, float]:
        """How probable each dimension is, of those tried."""
        tried = sorted(self.scores)
        logits = [0.0]
        for d, more in pairwise(tried):
            z = advantage(self.scores[more], self.scores[d])
            logits.append(logits[-1] + _SLOPE * (z - _WORTHWHILE * (more - d)))
        weight = np.exp(np.array(logits) - max(logits))
        return dict(zip(tried, (weight / weight.sum()).tolist(), strict=True))

    @property
    def best(self) -> int:
        """The most probable dimension."""
        chances = self.probabilities()
        return max(chances, key=lambda d: (chances[d], -d))

    def span(self) -> tuple[int, int]:
        """The dimensions that cannot be told apart from the best: 95 % of the probability."""
        chances = self.probabilities()
        low = high = self.best
        while sum(chances[d] for d in range(low, high + 1) if d in chances) < _SURE:
            below, above = chances.get(low - 1, 0.0), chances.get(high + 1, 0.0)
            if not below and not above:
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
    for found in descend(fit, start, at_least):
        d = found.positions.shape[1]
        if d > at_most:
            continue
        fits[d], scores[d] = found, -disobeyed(found.positions, held).astype(np.float64)
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
        steps = {"max_iter": _MOST_STEPS} if e == d else {}
        return come_down(rows, n, start, e, rng=rng, middle=False, **steps)

    fits = descend(fit, first.positions, at_least)
    found = next(fits)
    if obeys(found, rows):
        found = lowest(fits, lambda fit: obeys(fit, rows)) or found
    return come_down(rows, n, found.positions, found.positions.shape[1], rng=rng, rescues=0)
