"""Measures of embeddings: those of the paper's Section 3, and some of ours.

All of them compare distances from heads in the truth and in the embedding, a block of heads at a
time, so that memory stays O(n). With more than 5,000 objects a random sample of heads is taken
instead of all; ``return_error=True`` gives the standard error of the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.distances import Distances, as_points
from nearer.errors import InvalidInput

__all__ = [
    "Procrustes",
    "distance_rmse",
    "knn_precision",
    "mean_kendall_tau",
    "procrustes",
    "share_interval",
    "triplet_accuracy",
]

Seed = int | np.random.Generator | None
Rows = NDArray[np.float64]

_ALL_HEADS = 5_000  # up to so many objects every one is a head
_BLOCK = 1 << 21  # distances held at a time


@overload
def mean_kendall_tau(
    truth: Any,
    embedding: ArrayLike,
    *,
    metric: Any = ...,
    n_heads: int | None = ...,
    random_state: Seed = ...,
    return_error: Literal[False] = ...,
) -> float: ...
@overload
def mean_kendall_tau(
    truth: Any,
    embedding: ArrayLike,
    *,
    metric: Any = ...,
    n_heads: int | None = ...,
    random_state: Seed = ...,
    return_error: Literal[True],
) -> tuple[float, float]: ...
def mean_kendall_tau(
    truth: Any,
    embedding: ArrayLike,
    *,
    metric: Any = "euclidean",
    n_heads: int | None = None,
    random_state: Seed = None,
    return_error: bool = False,
) -> float | tuple[float, float]:
    """Kendall's τ between true and embedded distances from a head, averaged over heads.

    Parameters
    ----------
    truth
        ``(n, d)`` true points, dense or sparse, or distances with ``metric="precomputed"``.
    embedding
        ``(n, d′)`` positions, compared by Euclidean distance.
    metric
        The true metric.
    n_heads
        How many heads to average over. By default all up to 5,000 objects, beyond that a random
        sample of about 25 million distances, but at least 100 heads.
    random_state
        Seed of that sample.
    return_error
        Also return the standard error that comes from taking a sample; 0 when all are taken.

    Notes
    -----
    τ-b, so that ties count for neither side; a head from which all objects are equally far in the
    truth or in the embedding counts 0.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> mean_kendall_tau(X, 3 * X)
    1.0
    """
    blocks = _blocks(truth, embedding, metric, n_heads, random_state)
    from nearer._kernels.kendall import kendall_tau_rows  # noqa: PLC0415 - a GPU needs no Numba

    values = np.concatenate([kendall_tau_rows(x, y) for x, y in blocks])
    return _summary(np.nan_to_num(values), len(as_points(embedding)), return_error)


@overload
def knn_precision(
    truth: Any,
    embedding: ArrayLike,
    k: int | None = ...,
    *,
    metric: Any = ...,
    n_heads: int | None = ...,
    random_state: Seed = ...,
    return_error: Literal[False] = ...,
) -> float: ...
@overload
def knn_precision(
    truth: Any,
    embedding: ArrayLike,
    k: int | None = ...,
    *,
    metric: Any = ...,
    n_heads: int | None = ...,
    random_state: Seed = ...,
    return_error: Literal[True],
) -> tuple[float, float]: ...
def knn_precision(
    truth: Any,
    embedding: ArrayLike,
    k: int | None = None,
    *,
    metric: Any = "euclidean",
    n_heads: int | None = None,
    random_state: Seed = None,
    return_error: bool = False,
) -> float | tuple[float, float]:
    """The share of an object's k nearest neighbours in the embedding that truly are.

    Parameters
    ----------
    k
        How many neighbours; ⌈log2 n⌉ by default, as in the paper.
    truth, embedding, metric, n_heads, random_state, return_error
        As for `mean_kendall_tau`.

    Notes
    -----
    A neighbour counts when its true distance is at most the k-th smallest, so that of several at
    that distance (duplicate objects) any will do.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> knn_precision(X, 2 * X)
    1.0
    """
    n = len(as_points(embedding))
    if k is None:
        k = int(np.ceil(np.log2(n)))
    k = checks.whole("k", k, most=n - 1, rule="so many other objects there are")
    shares = []
    for x, y in _blocks(truth, embedding, metric, n_heads, random_state):
        reach = np.partition(x, k - 1, axis=1)[:, k - 1]
        chosen = np.argpartition(y, k - 1, axis=1)[:, :k]
        hits = np.take_along_axis(x, chosen, axis=1) <= reach[:, None]
        shares.append(hits.mean(axis=1))
    return _summary(np.concatenate(shares), n, return_error)


def distance_rmse(
    truth: Any,
    embedding: ArrayLike,
    *,
    metric: Any = "euclidean",
    n_heads: int | None = None,
    random_state: Seed = None,
) -> float:
    """Root mean squared error of the embedded distances at their best scale, over pairs.

    The paper's formula divides by n; its figures fit the mean over pairs, which this is.

    Parameters
    ----------
    truth, embedding, metric, n_heads, random_state
        As for `mean_kendall_tau`.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> bool(distance_rmse(X, 3 * X) < 1e-9)
    True
    """
    rng = checks.generator(random_state)
    heads = list(_head_blocks(len(as_points(embedding)), n_heads, rng))
    xy = yy = error = 0.0
    count = 0
    for x, y in _distance_blocks(truth, embedding, metric, heads):
        xy += float(np.vdot(x, y))
        yy += float(np.vdot(y, y))
        count += x.size
    scale = xy / yy if yy > 0 else 0.0
    for x, y in _distance_blocks(truth, embedding, metric, heads):  # again: x² − y² would cancel
        error += float(np.square(x - scale * y).sum())
    return float(np.sqrt(error / count))


def triplet_accuracy(triplets: ArrayLike, embedding: ArrayLike) -> float:
    """The share of triplets ``(head, near, far)`` that the positions agree with.

    Examples
    --------
    >>> triplet_accuracy([[0, 1, 2], [0, 2, 1]], [[0.0], [1.0], [3.0]])
    0.5
    """
    distances = Distances(embedding)
    rows, _ = checks.triplets(triplets, distances.n_objects)
    head, near, far = rows.T
    return float(np.mean(distances.between(head, near) < distances.between(head, far)))


def share_interval(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share that was seen in n cases (Wilson 1927).

    Examples
    --------
    >>> [round(limit, 3) for limit in share_interval(0.9, 100)]
    [0.826, 0.945]
    """
    z = 1.959964
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


@dataclass(frozen=True)
class Procrustes:
    """An embedding laid over the truth.

    Attributes
    ----------
    aligned
        The embedding, moved, turned, mirrored and scaled onto the truth.
    disparity
        The share of the truth's variance that is left unexplained: 0 is perfect.
    scale, turn, centre, onto
        What did it: ``scale * (points - centre) @ turn + onto``.
    """

    aligned: NDArray[np.float64]
    disparity: float
    scale: float
    turn: NDArray[np.float64]
    centre: NDArray[np.float64]
    onto: NDArray[np.float64]

    def move(self, points: ArrayLike) -> NDArray[np.float64]:
        """Move other points in the same way."""
        y = as_points(points)
        y = np.pad(y, [(0, 0), (0, len(self.centre) - y.shape[1])])
        return np.asarray(self.scale * (y - self.centre) @ self.turn + self.onto)


def procrustes(truth: ArrayLike, embedding: ArrayLike) -> Procrustes:
    """Lay an embedding over the truth by the best motion and scale.

    The one with fewer dimensions is filled up with zeros; `aligned` has as many as the larger.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> fit = procrustes(X, 5 - 2 * X[:, ::-1])
    >>> bool(abs(fit.aligned - X).max() < 1e-9), bool(fit.disparity < 1e-12)
    (True, True)
    """
    x, y = as_points(truth), as_points(embedding)
    if len(x) != len(y):
        raise InvalidInput(f"{len(x)} true points and {len(y)} embedded ones: must be as many")
    width = max(x.shape[1], y.shape[1])
    x, y = (np.pad(p, [(0, 0), (0, width - p.shape[1])]) for p in (x, y))
    onto, centre = x.mean(axis=0), y.mean(axis=0)
    x, y = x - onto, y - centre
    u, s, vt = np.linalg.svd(y.T @ x)
    spread = float(np.vdot(y, y))
    scale = s.sum() / spread if spread > 0 else 0.0
    turn = u @ vt
    aligned = scale * y @ turn
    total = float(np.vdot(x, x))
    left = float(np.vdot(x - aligned, x - aligned))
    left = left / total if total > 0 else 0.0
    return Procrustes(aligned + onto, left, float(scale), turn, centre, onto)


def _summary(values: Rows, n: int, return_error: bool) -> float | tuple[float, float]:
    mean = float(values.mean())
    if not return_error:
        return mean
    if len(values) >= n:
        return mean, 0.0
    return mean, float(values.std(ddof=1) / np.sqrt(len(values)))


def _blocks(
    truth: Any, embedding: ArrayLike, metric: Any, n_heads: int | None, random_state: Seed
) -> Iterator[tuple[Rows, Rows]]:
    heads = _head_blocks(len(as_points(embedding)), n_heads, random_state)
    return _distance_blocks(truth, embedding, metric, heads)


def _distance_blocks(
    truth: Any, embedding: ArrayLike, metric: Any, blocks: Iterable[NDArray[np.int64]]
) -> Iterator[tuple[Rows, Rows]]:
    """Distances from heads to all others, in the truth and in the embedding, block by block."""
    true, embedded = Distances(truth, metric), Distances(embedding)
    n = true.n_objects
    if n != embedded.n_objects:
        raise InvalidInput(
            f"{n} true objects and {embedded.n_objects} embedded ones: must be as many"
        )
    if n < 3:
        raise InvalidInput(f"{n} objects: at least 3 are needed to compare rankings")
    for heads in blocks:
        others = ~(heads[:, None] == np.arange(n))
        x, y = (
            np.stack([d.fresh_row(head) for head in heads.tolist()])[others].reshape(-1, n - 1)
            for d in (true, embedded)
        )
        yield x, y


def _head_blocks(n: int, n_heads: int | None, random_state: Seed) -> Iterator[NDArray[np.int64]]:
    if n_heads is None:
        n_heads = n if n <= _ALL_HEADS else max(100, _ALL_HEADS**2 // n)
    checks.whole("n_heads", n_heads)
    heads = np.arange(n)
    if n_heads < n:
        heads = np.sort(checks.generator(random_state).choice(n, n_heads, replace=False))
    size = max(1, _BLOCK // n)
    for start in range(0, len(heads), size):
        yield heads[start : start + size]
