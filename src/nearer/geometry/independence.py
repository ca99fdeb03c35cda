"""Is a candidate affinely independent of the endpoints so far? The test behind the dimension.

By Carathéodory's theorem every point of a hull in d dimensions lies in the hull of d + 1 of its
vertices. So when the heads in P, |P| = d̂ + 2, span no more than d̂ dimensions, the hulls of P with
one head left out cover the hull of P; when they span d̂ + 1, those smaller hulls are only the faces
of a simplex and its inside is left over (Section 2.1 of the paper; Algorithm 1, lines 19–20).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nearer.geometry.dominance import hull_estimate

__all__ = ["affinely_independent"]


def affinely_independent(rankings: ArrayLike) -> bool:
    """Whether some object of the hull estimate is in none of the estimates with one head fewer.

    Parameters
    ----------
    rankings
        ``(k, n)``, one row for each head of P, the candidate among them.

    Examples
    --------
    The corners of a triangle full of objects are independent, three objects on a line are not:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> triangle = np.concatenate([[[0, 0], [1, 0], [0, 1]], rng.dirichlet([1, 1, 1], 200)[:, :2]])
    >>> line = np.linspace(0, 1, 100)[:, None] * [1, 2]
    >>> def rank(X, heads):
    ...     return np.linalg.norm(X[heads, None] - X, axis=2).argsort(1).argsort(1)
    >>> affinely_independent(rank(triangle, [0, 1, 2]))
    True
    >>> affinely_independent(rank(line, [0, 40, 99]))
    False
    """
    r = np.asarray(rankings)
    inside = hull_estimate(r)
    for left_out in range(len(r)):
        inside &= ~hull_estimate(np.delete(r, left_out, axis=0))
        if not inside.any():
            return False
    return True
