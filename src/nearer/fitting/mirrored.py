"""Objects on the wrong side of others, and where they belong.

A fit moves every object a little at a time. One that sits at the mirror image of its place, behind
a plane that many of its answers do not see through, stays there; yet the answers that do see it
contradict the place loudly. Such an object is tried at the place of every other object, which costs
nothing but arithmetic, and moved to where it contradicts the fewest answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.solver import disobeyed

__all__ = ["put_right"]

Floats = NDArray[np.float64]
Triplets = NDArray[np.int64]

_LOUD = 0.04  # share of its answers that a misplaced object contradicts
_MOST = 64  # objects moved at a time, the loudest first


def put_right(X: Floats, triplets: Triplets) -> Floats:
    """Positions with misplaced objects moved to better places.

    Examples
    --------
    Objects on a line, the last one on the wrong side:

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [-1.0]])
    >>> triplets = np.array([[3, 4, 2], [3, 4, 1], [2, 3, 1], [0, 3, 4], [2, 1, 0], [4, 3, 0]])
    >>> float(put_right(X, triplets)[4, 0]) > 2.5
    True
    """
    n = len(X)
    wrong = disobeyed(X, triplets)
    total = np.bincount(triplets.ravel(), minlength=n)
    bad = np.bincount(triplets[wrong].ravel(), minlength=n)
    share = bad / np.maximum(total, 1)
    loud = np.flatnonzero((share > _LOUD) & (bad > 1))
    loud = loud[np.argsort(-share[loud], kind="stable")][:_MOST]
    moved = X.copy()
    for x in loud.tolist():
        moved[x] = _best_place(X, x, triplets[(triplets == x).any(axis=1)])
    return moved


def _best_place(X: Floats, x: int, triplets: Triplets) -> Floats:
    """The place, of all objects', where x contradicts the fewest of its answers."""
    contradicted = np.zeros(len(X))
    places = X + 1e-3 * (X[x] - X)  # beside the object that is there

    def to(objects: Triplets) -> Floats:
        """(places, objects) squared distances, by the expansion of the square."""
        product: Floats = places @ X[objects].T
        squares = (places**2).sum(axis=1)[:, None] + (X[objects] ** 2).sum(axis=1)
        return np.asarray(squares - 2 * product)

    def between(a: Triplets, b: Triplets) -> Floats:
        return np.asarray(((X[a] - X[b]) ** 2).sum(axis=1))

    head, near, far = triplets.T
    as_head, as_near, as_far = head == x, near == x, far == x
    contradicted += (to(near[as_head]) >= to(far[as_head])).sum(axis=1)
    contradicted += (to(head[as_near]) >= between(head[as_near], far[as_near])).sum(axis=1)
    contradicted += (between(head[as_far], near[as_far]) >= to(head[as_far])).sum(axis=1)
    contradicted[x] -= 0.5  # of equals, stay
    return np.asarray(places[int(np.argmin(contradicted))])
