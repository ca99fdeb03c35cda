"""Counting who is above how many, in rank vectors.

Inputs are prepared by `nearer.geometry.dominance`: `ranks` is ``(n, k)``, one row an object;
`short` and `bound` name, for each object, the ranking in which it has the fewest members below it,
and how many. Only those members need be looked at.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

__all__ = ["count_below", "most_below"]


@njit(cache=True, nogil=True)
def _count(ranks, members, x, column, bound, needed):  # type: ignore[no-untyped-def]
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


@njit(cache=True, parallel=True, nogil=True)
def count_below(
    ranks: NDArray[np.int64],
    members: NDArray[np.int64],
    short: NDArray[np.int64],
    bound: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For each object, how many members it is above."""
    n = ranks.shape[0]
    counts = np.zeros(n, dtype=np.int64)
    for x in prange(n):
        counts[x] = _count(ranks, members, x, short[x], bound[x], 0)
    return counts


@njit(cache=True, nogil=True)
def most_below(
    ranks: NDArray[np.int64],
    members: NDArray[np.int64],
    short: NDArray[np.int64],
    bound: NDArray[np.int64],
    order: NDArray[np.int64],
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
