"""Sort a short list for each of many heads, all side by side.

Binary insertion in lockstep: in step j every head inserts the j-th object of its list into those
before it. For n heads with K objects each that is about n·log2(K!) comparisons in K·log2 K rounds,
and a round is one array operation whatever n is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.asking.protocol import Strategy
from nearer.errors import InvalidInput

__all__ = ["sort_lists"]


def sort_lists(heads: ArrayLike, lists: ArrayLike) -> Strategy[NDArray[np.int64]]:
    """Sort each row of `lists` by the distance from its head, nearest first.

    Parameters
    ----------
    heads
        ``(h,)`` objects.
    lists
        ``(h, k)`` objects; row i is sorted from ``heads[i]``. The order of a row changes what the
        sort costs, so rows that mean something are best shuffled.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.arange(10.0))
    >>> nearer.run(sort_lists([0, 9], [[5, 2, 7], [5, 2, 7]]), oracle)
    array([[2, 5, 7],
           [7, 5, 2]])
    """
    from_heads, rows = np.asarray(heads, dtype=np.int64), np.asarray(lists, dtype=np.int64)
    if rows.ndim != 2 or from_heads.shape != rows.shape[:1]:
        raise InvalidInput(
            f"heads of shape {from_heads.shape} and lists of shape {rows.shape}: must be (h,) and "
            "(h, k)"
        )
    return _sort_lists(from_heads, rows.copy())


def _sort_lists(heads: NDArray[np.int64], rows: NDArray[np.int64]) -> Strategy[NDArray[np.int64]]:
    for step in range(1, rows.shape[1]):
        item = rows[:, step]
        low = np.zeros(len(rows), dtype=np.int64)
        high = np.full(len(rows), step)
        active = np.arange(len(rows))
        while len(active):
            middle = (low[active] + high[active]) // 2
            nearer = yield np.stack([heads[active], item[active], rows[active, middle]], axis=1)
            high[active[nearer]] = middle[nearer]
            low[active[~nearer]] = middle[~nearer] + 1
            active = active[low[active] < high[active]]
        place = np.arange(step + 1)
        source = np.where(place == low[:, None], step, place - (place > low[:, None]))
        rows[:, : step + 1] = np.take_along_axis(rows, source, axis=1)
    return rows
