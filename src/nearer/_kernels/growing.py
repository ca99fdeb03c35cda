"""Screens built one object at a time: whichever adds most to what the answer will tell.

With a query, the utility of a shown object is minus its distance, and the covariance of two
utilities is what the query's own doubt makes of them, plus, of one with itself, the object's doubt.
So ½ tr(J·Cov(u)) of a growing set needs no more than a table of these and J, the covariance of
which objects would be chosen. While fewer than k + 1 objects are there, fewer are chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel
from nearer._kernels.telling import fisher

__all__ = ["grow"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


@helper
def _value(
    u: Floats, C: Floats, chosen: Ints, m: int, k: int, lapse: float, steep: Floats,
    share: Floats, w: Floats, before: Floats, after: Floats, J: Floats,
) -> float:  # fmt: skip
    """½ tr(J·Cov(u)) of the first m of the chosen."""
    for i in range(m):
        steep[i] = u[chosen[i]]
    log_ways = 0.0
    for a in range(k):
        log_ways += np.log((m - a) / (k - a))
    fisher(steep, m, k, False, log_ways, lapse, share, w, before, after, J)
    total = 0.0
    for i in range(m):
        for j in range(m):
            total += J[i, j] * C[chosen[i], chosen[j]]
    return 0.5 * total


@kernel
def grow(
    u: Floats, C: Floats, first: int, size: int, choose: int, lapse: float
) -> tuple[Ints, float]:
    """Places of `size` objects of a pool, the first given, and what the answer will tell.

    Parameters
    ----------
    u, C
        Utilities of the objects of the pool and their covariance, in units of the answers' noise.
    first
        The object to begin with.
    size, choose
        How many are shown, and how many of them are to be chosen.
    lapse
        Rate of wrong answers whatever is asked.
    """
    p, k = len(u), choose
    steep, share, w = np.empty(size), np.empty(size), np.empty(size)
    before, after = np.empty((size + 1, k + 1)), np.empty((size + 1, k + 1))
    J = np.empty((size, size))
    chosen, free = np.empty(size, np.int64), np.ones(p, np.bool_)
    chosen[0], free[first] = first, False
    best = 0.0
    for m in range(1, size):
        best, found = -1.0, -1
        for candidate in range(p):
            if not free[candidate]:
                continue
            chosen[m] = candidate
            told = _value(
                u, C, chosen, m + 1, min(k, m), lapse, steep, share, w, before, after, J
            )  # fmt: skip
            if told > best:
                best, found = told, candidate
        chosen[m] = found
        free[found] = False
    return chosen, best
