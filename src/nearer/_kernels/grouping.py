"""Answers in an order in which what a pass reads next lies in the cache already.

Up to some hundred thousand objects that is the order of their heads: near and far objects may be
anywhere, the cache holds all. Of more objects it does not, and most of a pass is waiting for
memory: there answers are grouped by blocks of near and of far objects, two of which the cache does
hold with their gradients, and inside a group go along the heads. Both orders depend on the answers
and on how many objects there are alone.

Objects are small numbers, so they are counted instead of compared: two walks over the rows, and
little is held beside the result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import kernel

__all__ = ["for_passes"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]

# Of 10^6 objects in the plane and 76 M random triplets a pass over answers by head takes 1.3 times
# as long as one over blocks of 2^16 or 2^17 objects. Blocks of 2^13 are slower than heads alone.
_BLOCK = 16  # binary digits of the least block of objects
_MOST_BLOCKS = 4  # … and of the most blocks: their pairs and the heads inside are counted
_FEW = 1 << 18  # objects that a cache holds
_HEADS = 10  # … of how many heads go in one group: what they need fits the nearest cache


def for_passes(triplets: Rows, weights: Floats | None, n: int) -> tuple[Rows, Floats | None]:
    """Triplets of n objects, and their weights, in an order that passes like.

    What is equal in that order stays as it was.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[2, 0, 1], [0, 2, 1], [2, 1, 0]], dtype=np.int32)
    >>> for_passes(rows, None, 3)[0].tolist()
    [[0, 2, 1], [2, 0, 1], [2, 1, 0]]
    """
    if n <= _FEW:
        if (triplets[1:, 0] >= triplets[:-1, 0]).all():
            return triplets, weights
        block, heads = 31, 0
    else:
        block, heads = max(_BLOCK, (n - 1).bit_length() - _MOST_BLOCKS), _HEADS
    blocks, spans = ((n - 1) >> block) + 1, ((n - 1) >> heads) + 1
    next_place = np.zeros(blocks * blocks * spans + 1, dtype=np.int64)
    given = np.empty(0) if weights is None else weights
    rows, moved = np.empty_like(triplets), np.empty_like(given)
    _scatter(triplets, given, block, heads, blocks, spans, next_place, rows, moved)
    return rows, None if weights is None else moved


@kernel
def _scatter(
    triplets: Rows,
    weights: Floats,
    block: int,
    heads: int,
    blocks: int,
    spans: int,
    next_place: NDArray[np.int64],
    rows: Rows,
    moved: Floats,
) -> None:
    """Put each row behind those of earlier groups and earlier ones of its own."""
    for t in range(len(triplets)):
        pair = (triplets[t, 1] >> block) * blocks + (triplets[t, 2] >> block)
        next_place[pair * spans + (triplets[t, 0] >> heads) + 1] += 1
    for group in range(1, len(next_place)):
        next_place[group] += next_place[group - 1]
    for t in range(len(triplets)):
        pair = (triplets[t, 1] >> block) * blocks + (triplets[t, 2] >> block)
        group = pair * spans + (triplets[t, 0] >> heads)
        place = next_place[group]
        next_place[group] += 1
        for column in range(3):
            rows[place, column] = triplets[t, column]
        if len(weights) > 0:
            moved[place] = weights[t]
