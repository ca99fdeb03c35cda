"""Counting who is above how many, in rank vectors.

Inputs are prepared by `nearer.algorithms.dominance`: `ranks` is ``(n, k)``, one row an object;
`short` and `bound` name, for each object, the ranking in which it has the fewest members below it,
and how many. Only those members need be looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel

__all__ = ["count_below", "most_below"]

Ints = NDArray[np.int64]


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
