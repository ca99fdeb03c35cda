"""Objects on the wrong side: found by the answers they break, moved to where those hold best.

A fit ends in a bad optimum mostly because a few objects sit behind others that would have to be
passed. Such an object breaks many of its own answers while nearly all others hold, so it is worth
looking for another place for it alone. Tried are the places of all other objects, and mirror
images: answers from few heads say little about the side of a plane through heads on which an
object lies, so its own place is reflected at planes through some of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nearer.fitting.losses import Floats

__all__ = ["mirrored", "relocate"]

# Time against objects left on the wrong side; `python -m benchmarks starts` counts fits that are
# stuck, and `sensitivity` halves and doubles the first two.
_SHARE = 0.1  # of an object's answers broken that makes it suspect
_MIRRORS = 30  # planes tried
_SUSPECTS = 3  # objects mirrored one at a time
_IMAGES = 4  # images of each, from the farthest to the nearest
_MOST = 50  # objects moved at a time, the most suspect first
_CELLS = 1 << 20  # distances held at a time


def relocate(
    X: Floats,
    triplets: NDArray[np.int32],
    wrong: NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    logistic: bool = False,
) -> Floats:
    """Positions with the objects that break many of their answers moved to better places.

    Examples
    --------
    Object 3 belongs between 0 and 1, not beyond 2:

    >>> import numpy as np
    >>> X = np.array([[0.0], [10.0], [20.0], [30.0]])
    >>> T = np.array([[0, 1, 2], [0, 3, 1], [0, 3, 2], [2, 1, 3]], dtype=np.int32)
    >>> moved = relocate(X, T, np.array([False, True, True, False]), np.random.default_rng(0))
    >>> bool(abs(moved[3, 0]) < 10)
    True
    """
    n = len(X)
    asked = triplets if logistic else triplets[:, 1:]  # a head's place decides by how much, too
    broken = np.bincount(asked[wrong].ravel(), minlength=n)
    answers = np.bincount(asked.ravel(), minlength=n)
    suspects = np.flatnonzero(broken > _SHARE * answers)
    moved = X.copy()
    for x in suspects[np.argsort(-broken[suspects])][:_MOST]:
        mine = triplets[(triplets == x).any(axis=1)]
        near_others = moved + 0.05 * moved.std() * rng.standard_normal(X.shape)
        near_others[x] = moved[x]
        places = np.concatenate([near_others, _mirror_images(moved, mine, x, rng)])
        moved[x] = places[np.argmin(_loss_at(places, moved, mine, x, logistic))]
    return moved


def mirrored(
    X: Floats, triplets: NDArray[np.int32], wrong: NDArray[np.bool_], rng: np.random.Generator
) -> Iterator[Floats]:
    """Positions with one suspect object each on the other side of some heads.

    Where its neighbours have settled around a misplaced object, no other place looks better until
    they have moved, too: each of these positions has to be fitted to be judged.
    """
    broken = np.bincount(triplets[wrong, 1:].ravel(), minlength=len(X))
    for x in np.argsort(-broken, kind="stable")[:_SUSPECTS]:
        mine = triplets[(triplets == x).any(axis=1)]
        images = _mirror_images(X, mine, int(x), rng)
        far = np.argsort(-np.linalg.norm(images - X[x], axis=1), kind="stable")
        for image in images[far[:: max(1, len(far) // _IMAGES)]]:
            other = X.copy()
            other[x] = image
            yield other


def _mirror_images(X: Floats, mine: NDArray[np.int32], x: int, rng: np.random.Generator) -> Floats:
    """The place of x reflected at planes through heads that speak of it."""
    heads = np.setdiff1d(mine[:, 0], [x])
    d = X.shape[1]
    if len(heads) < d:
        return np.empty((0, d))
    corners = X[np.array([rng.choice(heads, d, replace=False) for _ in range(_MIRRORS)])]
    spans = corners[:, 1:] - corners[:, :1]
    # the last right singular vector of the span is normal to the plane
    normals = np.linalg.svd(np.concatenate([spans, np.zeros((_MIRRORS, 1, d))], axis=1))[2][:, -1]
    height = np.einsum("ij,ij->i", X[x] - corners[:, 0], normals)
    return np.asarray(X[x] - 2 * height[:, None] * normals)


def _loss_at(places: Floats, X: Floats, mine: NDArray[np.int32], x: int, logistic: bool) -> Floats:
    """The soe or logistic loss of x's answers with x at each place, some places at a time."""
    head, near, far = mine.T
    ahead = head == x
    one, other = np.where(ahead, near, head), np.where(ahead, far, head)
    # where x is not the head, one of the two distances does not depend on its place
    from_head = np.linalg.norm(X[head] - X[np.where(near == x, far, near)], axis=1)
    block = max(1, _CELLS // max(len(mine), len(X)))
    loss = np.empty(len(places))
    for begin in range(0, len(places), block):
        away = cdist(places[begin : begin + block], X)
        to_near = np.where(far == x, from_head, away[:, one])
        to_far = np.where(near == x, from_head, away[:, other])
        gap = to_far - to_near
        each = np.logaddexp(0.0, -gap) if logistic else np.square(np.maximum(1.0 - gap, 0.0))
        loss[begin : begin + block] = each.mean(axis=1)
    return loss
