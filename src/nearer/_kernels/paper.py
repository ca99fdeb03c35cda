"""Two loops of the paper's methods: objects above others, and questions by expected information.

*Dominance.* Inputs are prepared by `nearer.algorithms.dominance`: `ranks` is ``(n, k)``, one row an
object; `short` and `bound` name, for each object, the ranking in which it has the fewest members
below it, and their number. Only those members need be compared with it.

*Information.* Of some questions about a head, the one expected to tell most about the position of
the head (Tamuz et al. 2011).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel, side_by_side

__all__ = ["count_below", "most_below", "most_informative"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PART = 64  # heads that make a second thread worth waking: some milliseconds


@helper
def _count(ranks: Ints, members: Ints, x: int, column: int, bound: int, needed: int) -> int:
    """How many of the first `bound` members, in the order of that column, x is above.

    Gives up with less than `needed` as soon as that many are out of reach.
    """
    k = ranks.shape[1]
    total = 0
    for i in range(bound):
        if total + bound - i < needed:
            break
        y = members[column, i]
        below = True
        for j in range(k):
            if ranks[y, j] >= ranks[x, j]:
                below = False
                break
        if below:
            total += 1
    return total


@kernel
def count_below(ranks: Ints, members: Ints, short: Ints, bound: Ints) -> Ints:
    """For each object, how many members it is above."""
    n = ranks.shape[0]
    counts = np.zeros(n, dtype=np.int64)
    for x in range(n):
        counts[x] = _count(ranks, members, x, short[x], bound[x], 0)
    return counts


@kernel
def most_below(
    ranks: Ints, members: Ints, short: Ints, bound: Ints, order: Ints
) -> tuple[int, int]:
    """The first object, in `order` of falling bound, that is above most members; and how many."""
    best, most = order[0], -1
    for x in order:
        if bound[x] <= most:
            break
        count = _count(ranks, members, x, short[x], bound[x], most + 1)
        if count > most:
            best, most = x, count
    return best, most


@helper
def _squared_distance(X: Floats, i: int, j: int) -> float:
    total = 0.0
    for k in range(X.shape[1]):
        total += (X[i, k] - X[j, k]) ** 2
    return total


@helper
def _entropy(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)


@kernel
def _most_informative(
    X: Floats,
    mu: float,
    places: Ints,
    starts: Ints,
    answered: Ints,
    candidates: Ints,
    belief: Floats,
    best: Ints,
) -> None:
    for i in range(len(places)):
        greatest = -math.inf
        for s in range(len(belief)):
            belief[s] = 0.0
            for t in range(starts[i], starts[i + 1]):
                near = _squared_distance(X, places[i, s], answered[t, 0])
                far = _squared_distance(X, places[i, s], answered[t, 1])
                belief[s] += math.log((mu + far) / (2.0 * mu + near + far))
            greatest = max(greatest, belief[s])
        total = 0.0
        for s in range(len(belief)):
            belief[s] = math.exp(belief[s] - greatest)
            total += belief[s]
        most = -1.0
        for c in range(candidates.shape[1]):
            mean, doubt = 0.0, 0.0
            for s in range(len(belief)):
                share = belief[s] / total
                if share > 1e-9:
                    a = _squared_distance(X, places[i, s], candidates[i, c, 0])
                    b = _squared_distance(X, places[i, s], candidates[i, c, 1])
                    p = (mu + b) / (2.0 * mu + a + b)
                    mean += share * p
                    doubt += share * _entropy(p)
            gain = _entropy(mean) - doubt
            if gain > most:
                most, best[i] = gain, c


def most_informative(
    X: Floats, mu: float, places: Ints, starts: Ints, answered: Ints, candidates: Ints
) -> Ints:
    """For each head, the index of the candidate pair with the greatest expected information.

    Parameters
    ----------
    X, mu
        Positions, and μ of the crowd-kernel probability (μ + Δ²)/(2μ + δ² + Δ²).
    places
        ``(h, s)`` objects whose positions are where the head might be.
    starts, answered
        ``answered[starts[i] : starts[i + 1]]`` are the pairs (near, far) that head i has.
    candidates
        ``(h, c, 2)`` pairs that might be asked.
    """
    best = np.zeros(len(places), dtype=np.int64)

    def choose(_: int, rows: slice) -> None:
        starts_ = starts[rows.start : rows.stop + 1]
        belief = np.empty(places.shape[1])
        _most_informative(
            X, mu, places[rows], starts_, answered, candidates[rows], belief, best[rows]
        )

    side_by_side(choose, len(places), 1 + len(places) // _PART)
    return best
