"""Near ties: questions whose answers the positions so far cannot tell.

Sorted by their distance from a head, neighbours are nearly tied: where the positions are off by
more than the gap between the two, the answer is a coin toss to them, and tells one bit. Any object
can be the head. Heads all over, with pairs of all distances, mend the shape as a whole; pairs among
the nearest of each head mend who is whose neighbour.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.questions import Questions

__all__ = ["near_ties"]

_BLOCK = 1 << 20  # distances held at a time


def near_ties(
    positions: NDArray[np.float64],
    n_local: int,
    n_global: int,
    rng: np.random.Generator,
    *,
    reach: int | None = None,
) -> Questions:
    """Pairs next to each other in the predicted ranking of every object.

    Parameters
    ----------
    positions
        ``(n, d)``.
    n_local
        For each head, so many pairs among its `reach` nearest objects.
    n_global
        For each head, so many pairs anywhere.
    rng
        Source of the choice.
    reach
        None: twice ⌈log2 n⌉.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> questions = near_ties(X, 0, 2, np.random.default_rng(0))
    >>> sorted(map(tuple, questions[questions[:, 0] == 0].tolist()))
    [(0, 1, 2), (0, 2, 3)]
    """
    n = len(positions)
    if n < 3:
        return np.empty((0, 3), dtype=np.int64)
    pairs = n - 2  # in each ranking
    near = min(2 * int(np.ceil(np.log2(n))) if reach is None else reach, pairs)
    squares = (positions**2).sum(axis=1)
    parts = []
    for start in range(0, n, max(1, _BLOCK // n)):
        heads = np.arange(start, min(n, start + max(1, _BLOCK // n)))
        d2 = squares - 2 * positions[heads] @ positions.T
        d2[np.arange(len(heads)), heads] = -np.inf
        order = np.argsort(d2, axis=1)[:, 1:]
        chosen = np.hstack(
            [
                _draw(len(heads), near, min(n_local, near), rng),
                _draw(len(heads), pairs, min(n_global, pairs), rng),
            ]
        )
        rows = np.arange(len(heads))[:, None]
        a, b = order[rows, chosen], order[rows, chosen + 1]
        h = np.broadcast_to(heads[:, None], a.shape)
        parts.append(np.stack([h, a, b], axis=2).reshape(-1, 3))
    return np.concatenate(parts)


def _draw(rows: int, n: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """In each row, k different numbers below n."""
    if k in (0, n):
        return np.tile(np.arange(k), (rows, 1))
    if 4 * k > n or n < 64:
        return np.argsort(rng.random((rows, n)), axis=1)[:, :k]
    # one from each of k equal stretches
    edges = np.arange(k + 1) * n // k
    low, high = edges[:-1], edges[1:]
    return low + (rng.random((rows, k)) * (high - low)).astype(np.int64)
