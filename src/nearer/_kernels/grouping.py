"""Answers in the order of their heads: what a pass reads next then lies in the cache already.

Heads are small numbers, so they are counted instead of compared: two walks over the rows, and
nothing is held beside the result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import kernel

__all__ = ["by_head"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]


def by_head(triplets: Rows, weights: Floats | None, n: int) -> tuple[Rows, Floats | None]:
    """Triplets of n objects, and their weights, sorted by head; equal heads stay in their order.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[2, 0, 1], [0, 2, 1], [2, 1, 0]], dtype=np.int32)
    >>> by_head(rows, None, 3)[0].tolist()
    [[0, 2, 1], [2, 0, 1], [2, 1, 0]]
    """
    if (triplets[1:, 0] >= triplets[:-1, 0]).all():
        return triplets, weights
    given = np.empty(0) if weights is None else weights
    rows, moved = np.empty_like(triplets), np.empty_like(given)
    _scatter(triplets, given, np.zeros(n + 1, dtype=np.int64), rows, moved)
    return rows, None if weights is None else moved


@kernel
def _scatter(
    triplets: Rows, weights: Floats, next_place: NDArray[np.int64], rows: Rows, moved: Floats
) -> None:
    """Put each row behind those of smaller heads and earlier ones of its own."""
    for t in range(len(triplets)):
        next_place[triplets[t, 0] + 1] += 1
    for head in range(1, len(next_place)):
        next_place[head] += next_place[head - 1]
    for t in range(len(triplets)):
        place = next_place[triplets[t, 0]]
        next_place[triplets[t, 0]] += 1
        for column in range(3):
            rows[place, column] = triplets[t, column]
        if len(weights) > 0:
            moved[place] = weights[t]
