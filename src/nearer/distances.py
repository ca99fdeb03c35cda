"""Distances from a head, computed the same way every time; docs/architecture.md says why.

Each pair's distance comes from one routine. Nothing of size n × n is ever built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from nearer import checks
from nearer.errors import InvalidInput

_ROW_BYTES = 256 << 20  # how much memory rows of recent heads may take
_METRIC = "'euclidean', 'precomputed' or a metric of SciPy's cdist"


class Distances:
    """Distances between points, by head."""

    def __init__(self, X: ArrayLike | Any, metric: Any = "euclidean") -> None:
        self.points: Any = checks.as_points(X)
        self.metric: Any = checks.one("metric", metric, str | Callable, _METRIC)
        self.n_objects: int = self.points.shape[0]
        self._rows: dict[int, NDArray[np.float64]] = {}  # the latest last
        self._most_rows = max(4, _ROW_BYTES // (8 * max(1, self.n_objects)))
        self._sparse = sparse.issparse(self.points)
        if metric == "precomputed":
            if self._sparse or self.points.shape[0] != self.points.shape[1]:
                rule = "distances must be a dense square matrix, one row and one column an object"
                shape = f"an array of shape {self.points.shape}"
                raise InvalidInput(f"metric='precomputed' with {shape}: {rule}")
        elif self._sparse:
            if metric not in ("euclidean", "cosine"):
                remedy = "use 'euclidean' or 'cosine', or pass X.toarray()"
                raise InvalidInput(f"metric={metric!r} with sparse points: {remedy}")
            self._norms = np.asarray(self.points.multiply(self.points).sum(axis=1)).ravel()
            if metric == "cosine":
                self._norms = np.maximum(self._norms, np.finfo(np.float64).tiny)
        elif self.n_objects:
            try:
                cdist(self.points[:1], self.points[:1], metric)
            except (TypeError, ValueError) as error:
                raise InvalidInput(f"metric={metric!r}: {error}; use {_METRIC}") from error

    def row(self, head: int) -> NDArray[np.float64]:
        """Distances from one object to all."""
        row = self._rows.pop(head, None)
        self._rows[head] = row = self.compute(head) if row is None else row
        if len(self._rows) > self._most_rows:
            del self._rows[next(iter(self._rows))]
        return row

    def between(self, heads: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
        """Distances of pairs, ``heads[i]`` to ``others[i]``."""
        if self.metric == "euclidean" and not self._sparse and self.points.shape[1] <= 16:
            difference = self.points[heads] - self.points[others]
            squared: NDArray[np.float64] = np.einsum("ij,ij->i", difference, difference)
            return np.sqrt(squared)
        out = np.empty(len(heads))
        order = np.argsort(heads, kind="stable")
        starts = np.flatnonzero(np.diff(heads[order], prepend=-1))
        for rows in np.split(order, starts[1:]):
            if not len(rows):
                continue
            head, wanted = int(heads[rows[0]]), others[rows]
            if head in self._rows or 8 * len(rows) >= self.n_objects:
                out[rows] = self.row(head)[wanted]
            else:
                out[rows] = self.compute(head, wanted)
        return out

    def compute(self, head: int, others: NDArray[Any] | slice = slice(None)) -> NDArray[np.float64]:
        """Distances from one object to some or all, which are not stored."""
        if self.metric == "precomputed":
            return np.array(self.points[head, others])
        if self._sparse:
            rows = self.points if isinstance(others, slice) else self.points[others]
            products = rows @ self.points[[head]].toarray().ravel()
            if self.metric == "cosine":
                scale = self._norms[others] * self._norms[head]
                return np.asarray(1.0 - products / np.sqrt(scale))
            squared = self._norms[others] + self._norms[head] - 2.0 * products
            return np.asarray(np.sqrt(np.maximum(squared, 0.0)))
        of_head = self.points[head : head + 1]
        return np.asarray(cdist(of_head, self.points[others], self.metric)[0])
