"""Loops over rankings: Kendall's τ-b of many pairs at once, and how many objects one is above.

*Above.* Inputs are prepared by `nearer.algorithms.dominance`: `ranks` is ``(n, k)``, one row an
object; `short` and `bound` name, for each object, the ranking in which it has the fewest members
below it, and their number. Only those members need be compared with it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel, parts, side_by_side

__all__ = ["count_below", "kendall_tau_rows", "most_below"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@helper
def _tied_pairs(values: Floats) -> int:
    """Pairs of equal values in a sorted array."""
    pairs, run = 0, 1
    for i in range(1, len(values)):
        if values[i] == values[i - 1]:
            run += 1
        else:
            pairs += run * (run - 1) // 2
            run = 1
    return pairs + run * (run - 1) // 2


@helper
def _sort_counting_swaps(values: Floats) -> tuple[int, Floats]:
    """Merge sort, which uses up its argument; the number of pairs that stood in the wrong order."""
    n = len(values)
    swaps = 0
    for start in range(0, n, 8):  # short stretches by insertion, the rest by merging
        for i in range(start + 1, min(start + 8, n)):
            value, j = values[i], i
            while j > start and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
            swaps += i - j
    other = np.empty_like(values)
    width = 8
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or values[i] <= values[j]):
                    other[k] = values[i]
                    i += 1
                else:
                    other[k] = values[j]
                    swaps += middle - i
                    j += 1
        values, other = other, values
        width *= 2
    return swaps, values


@helper
def _kendall_tau(x: Floats, y: Floats) -> float:
    order = np.argsort(x)
    xs, ys = x[order], y[order]
    n = len(xs)
    both = 0
    start = 0
    for i in range(1, n + 1):  # inside a run of equal x, sort by y, so that it counts no swap
        if i == n or xs[i] != xs[start]:
            if i - start > 1:
                ys[start:i] = np.sort(ys[start:i])
                both += _tied_pairs(ys[start:i])
            start = i
    tied_x = _tied_pairs(xs)
    swaps, ys = _sort_counting_swaps(ys)
    tied_y = _tied_pairs(ys)
    pairs = n * (n - 1) // 2
    if pairs in (tied_x, tied_y):
        return np.nan
    score = pairs - tied_x - tied_y + both - 2 * swaps
    return score / (math.sqrt(pairs - tied_x) * math.sqrt(pairs - tied_y))


@kernel
def _tau_rows(x: Floats, y: Floats, out: Floats) -> None:
    for i in range(len(x)):
        out[i] = _kendall_tau(x[i], y[i])


def kendall_tau_rows(x: Floats, y: Floats) -> Floats:
    """τ-b between each row of x and the same row of y; NaN where a row is constant."""
    x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    out = np.empty(len(x))
    side_by_side(lambda _, rows: _tau_rows(x[rows], y[rows], out[rows]), len(x), parts(x.size))
    return out


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
