r"""Near ties: questions whose answers the positions so far can hardly tell, and what they tell.

Sorted by their distance from a head, neighbours are nearly tied: where the positions are off by
more than the gap between the two, the answer is a coin toss to them, and tells one bit. Any object
can be the head. Heads all over, with pairs of all distances, mend the shape as a whole; pairs among
the nearest of each head mend who is whose neighbour.

*How good are the positions?* They have not seen the answers, so the wrong predictions measure them.
Let predicted distances from a head be off by an error of standard deviation σ, counted in gaps
between neighbours, whose lengths are exponential where objects lie at random. Then of neighbours
½ − ½ erfcx(σ/√2) are in the wrong order, and of all pairs D = σ/√(2π) for each object: what
Kendall's τ counts, 1 − τ = 4·D/(n − 2). Errors are not the same everywhere, which makes D larger.
So a part of the pairs is drawn ℓ places apart with a probability p(ℓ) that falls as
(2·D + ℓ)⁻². Counting each answer 1/p(ℓ) gives D without any model, if less exactly; the ratio
of both sums over some rounds corrects the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erfcx

from nearer.questions import Questions

__all__ = ["NearTies", "RankingErrors", "near_ties"]

# `python -m benchmarks sensitivity` halves and doubles those that a run depends on.
_BLOCK = 1 << 20  # distances held at a time: memory
_TRIES = 4  # pairs drawn to find one with the head between them: one in sixteen tries is given up
# Of the pairs from anywhere, not of neighbours: exactness of the expected τ against answers that
# tell less. All of them made positions improve half as fast.
_APART = 0.25
_FIRST_TAU = 0.95  # what rankings and searches usually come to: sets how far apart pairs are first
# Share of wrong neighbours that is allowed for each of wrong pairs: kNN against comparisons, where
# there are many objects, whose τ is high long before it is known who is whose neighbour
_NEIGHBOURS = 3.0
# Compared with as many before, where distances are equal: comparisons against the last bit of τ
_ROUNDS = 3


@dataclass(frozen=True)
class NearTies:
    """Questions about pairs that are near each other in a predicted ranking.

    Attributes
    ----------
    questions
        ``(m, 3)``; the first of the pair is predicted to be nearer.
    local
        ``(m,)``: whether the pair is among the nearest of the head.
    apart
        ``(m,)``: how many places.
    counts
        ``(m,)``: how many pairs of the ranking each stands for, for each object of it.
    share
        Of the pairs of neighbours, that may be asked about.
    """

    questions: Questions
    local: NDArray[np.bool_]
    apart: NDArray[np.int64]
    counts: NDArray[np.float64]
    share: float

    def __getitem__(self, rows: NDArray[np.int64] | slice) -> NearTies:
        return NearTies(
            self.questions[rows], self.local[rows], self.apart[rows], self.counts[rows], self.share
        )


def near_ties(
    positions: NDArray[np.float64],
    n_local: int,
    n_global: int,
    rng: np.random.Generator,
    *,
    scale: float = 1.0,
) -> NearTies:
    """Pairs near each other in the predicted ranking of every object, in random order.

    On a line two objects on the same side of the head are left out: their order is known.

    Parameters
    ----------
    positions
        ``(n, d)``.
    n_local
        For each head, so many neighbours among the 2·⌈log2 n⌉ objects nearest to it.
    n_global
        For each head, so many pairs anywhere, a quarter of them some places apart.
    rng
        Source of the choice.
    scale
        How far apart: half of those are within so many places.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> found = near_ties(X, 1, 2, np.random.default_rng(0))
    >>> found.questions.shape, int(found.local.sum())
    ((150, 3), 50)
    """
    n = len(positions)
    nearest = min(2 * int(np.ceil(np.log2(max(n, 2)))), n - 1)
    squares = (positions**2).sum(axis=1)
    none = np.empty((0, 1), dtype=np.int64)
    parts = [_draw(positions, none[:, 0], none, 0, np.ones(1), rng)]
    for start in range(0, n if n > 2 else 0, max(1, _BLOCK // n)):
        heads = np.arange(start, min(n, start + max(1, _BLOCK // n)))
        d2 = squares - 2 * positions[heads] @ positions.T
        d2[np.arange(len(heads)), heads] = -np.inf
        order = np.argsort(d2, axis=1)[:, 1:]
        chances = (scale + np.arange(1.0, n - 1)) ** -2
        chances *= _APART / chances.sum()
        chances[0] += 1 - _APART
        parts.append(_draw(positions, heads, order[:, :nearest], n_local, np.ones(1), rng))
        parts.append(_draw(positions, heads, order, n_global, chances, rng))
    local = [np.full(len(part[0]), i % 2 == 1) for i, part in enumerate(parts)]
    questions, apart, counts, shares = map(np.concatenate, zip(*parts, strict=True))
    share = float(shares[apart == 1].mean()) if len(shares) else 1.0
    ties = NearTies(questions, np.concatenate(local), apart, counts, share)
    return ties[rng.permutation(len(questions))]


def _draw(
    positions: NDArray[np.float64],
    heads: NDArray[np.int64],
    order: NDArray[np.int64],
    each: int,
    chances: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[Questions, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """So many pairs of each ranking, 1, 2, … places apart with these chances."""
    length, line = order.shape[1], positions.shape[1] == 1
    rows = np.repeat(np.arange(len(heads)), each)[:, None]
    shape = (len(rows), _TRIES if line else 1)
    chances = chances[: length - 1]
    step = np.searchsorted(np.cumsum(chances), rng.random(shape) * chances.sum())
    apart = np.minimum(step, length - 2) + 1
    first = (rng.random(shape) * (length - apart)).astype(np.int64)
    a, b = order[rows, first], order[rows, first + apart]
    open_ = np.ones(shape, dtype=np.bool_)
    if line:
        x, h = positions[:, 0], heads[rows]
        open_ = (x[a] < x[h]) != (x[b] < x[h])
    share = float(open_.mean()) if len(rows) else 1.0
    counts = share * (length - apart) / (chances[apart - 1] * length)
    row = np.flatnonzero(open_.any(axis=1))
    at = row, open_[row].argmax(axis=1)
    questions = np.stack([heads[rows[row, 0]], a[at], b[at]], axis=1)
    return questions, apart[at], counts[at], np.full(len(row), share)


class RankingErrors:
    """How far rankings by the positions are wrong, as near ties show round by round.

    Parameters
    ----------
    n_objects
        How many objects there are.
    """

    def __init__(self, n_objects: int) -> None:
        self._n = n_objects
        self._modelled: list[float] = []
        self._counted: list[float] = []
        self._nearby = float("inf")

    def add(self, ties: NearTies, wrong: NDArray[np.bool_]) -> None:
        """Note which of the near ties were predicted wrongly, before a fit has seen them."""
        anywhere = ~ties.local
        if not anywhere.any():
            return
        self._modelled.append(_errors(wrong[anywhere & (ties.apart == 1)]) * ties.share)
        self._counted.append(float((wrong * ties.counts)[anywhere].mean()))
        self._nearby = _errors(wrong[ties.local])

    @property
    def _each(self) -> list[float]:
        """Pairs in the wrong order for each object of a ranking, round by round."""
        last = slice(-_ROUNDS, None)  # objects on the wrong side of others are mended on the way
        more = sum(self._counted[last]) / max(sum(self._modelled[last]), 1e-12)
        return [max(1.0, more) * modelled for modelled in self._modelled]

    @property
    def scale(self) -> float:
        """How far apart pairs are worth asking about."""
        each = self._each[-1] if self._modelled else (1 - _FIRST_TAU) * self._n / 4
        return 2 * each

    @property
    def tau(self) -> float:
        """Kendall's τ to expect, a little less than it is: the last answers have improved it."""
        each = self._each[-1] if self._modelled else np.inf
        return max(0.0, 1 - 4 * each / max(1, self._n - 2))

    @property
    def neighbours(self) -> float:
        """The share to expect of the ⌈log2 n⌉ nearest objects that truly are."""
        return 1 - self._nearby / float(np.ceil(np.log2(self._n)))

    def good_enough(self, quality: float) -> bool:
        """Whether τ is expected to reach a quality, and neighbours to be as right as it asks.

        Twice in a row: some hundred answers, of which one in ten is wrong, are right by chance.
        """
        if len(self._modelled) < 2:
            return False
        twice = 1 - 2 * sum(self._each[-2:]) / max(1, self._n - 2)
        return twice >= quality and 1 - self.neighbours <= _NEIGHBOURS * (1 - quality)

    @property
    def stuck(self) -> bool:
        """Whether the last rounds have brought nothing, as where distances are equal."""
        each = self._each
        if len(each) < 2 * _ROUNDS:
            return False
        before, last = each[-2 * _ROUNDS : -_ROUNDS], each[-_ROUNDS:]
        return bool(sum(last) >= sum(before))


def _errors(wrong: NDArray[np.bool_]) -> float:
    """D, from which neighbours are in the wrong order; with Jeffreys' prior for their share."""
    share = min((wrong.sum() + 0.5) / (len(wrong) + 1), 0.49)
    root = brentq(lambda x: erfcx(x) - (1 - 2 * share), 0.0, 1e3)
    return float(root / np.sqrt(np.pi))
