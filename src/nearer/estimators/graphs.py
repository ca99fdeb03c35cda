"""Positions from neighbour lists alone: who is among the k nearest of whom.

`LOE` asks that neighbours be nearer than the rest, a soft ordinal embedding of (object,
neighbour, other) triplets (Terada and von Luxburg 2014). `KNNGraphEmbedding` never optimises:
a random walk on the directed graph reaches near objects sooner, and minus the logarithm of the
Laplace transform of the hitting time, E[exp(−βT)], grows in proportion to the distance
(Hashimoto, Sun and Jaakkola 2015). With P the walk and Λ the discount of a step,
E[exp(−βT_ij)] = G_ij/G_jj for G = (I − ΛP)⁻¹. A step is as long as the neighbourhood is wide, and
the walk's stationary distribution tells how wide: π ∝ p/ε² and p ∝ ε^−d give ε ∝ π^(−1/(d+2)),
so a step from x counts ε(x)² of time.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.decomposition import KernelPCA

from nearer import checks
from nearer.errors import InvalidInput
from nearer.estimators.embedders import PositionsEstimator, as_generator
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.questions import Floats

__all__ = ["LOE", "KNNGraphEmbedding"]


@dataclass(eq=False, repr=False)
class LOE(PositionsEstimator):
    """Local ordinal embedding: positions in which the given neighbours are the nearest.

    Parameters
    ----------
    n_components
        Dimension of the positions.
    n_far
        With how many objects outside its list each neighbour is compared, drawn at random; None:
        with all, k·(n − k) triplets an object.
    max_iter, tol
        Steps of the optimiser, and the gain of a step that ends it.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.

    Attributes
    ----------
    embedding_, stress_, n_iter_, converged_
        As in `nearer.SOE`.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> lists = [[1, 2], [0, 2], [1, 3], [2, 4], [3, 5], [4, 3]]
    >>> nearer.LOE(n_components=1, random_state=0).fit(lists).embedding_.shape
    (6, 1)
    """

    n_components: int = 2
    _: KW_ONLY
    n_far: int | None = 50
    max_iter: int = 1000
    tol: float = 1e-7
    random_state: Any = None

    def fit(self, neighbours: ArrayLike | Any, y: object = None) -> Self:
        """Find positions from ``(n, k)`` lists of neighbours, or an adjacency matrix."""
        graph = as_graph(neighbours)
        n = graph.shape[0]
        d = checks.n_components(self.n_components, n)
        if self.n_far is not None:
            checks.whole("n_far", self.n_far, rule="so many others; None: all")
        max_iter, tol = checks.whole("max_iter", self.max_iter), checks.positive("tol", self.tol)
        rng = as_generator(self.random_state)
        rows = self._triplets(graph, rng)
        fit = fit_from_more_dimensions(rows, n, d, max_iter=max_iter, tol=tol, rng=rng)
        return self._keep(fit)

    def _triplets(self, graph: Any, rng: np.random.Generator) -> NDArray[np.int64]:
        n = graph.shape[0]
        parts = []
        for head in range(n):
            near = graph.indices[graph.indptr[head] : graph.indptr[head + 1]]
            far = np.setdiff1d(np.arange(n), np.append(near, head))
            if not len(near) or not len(far):
                continue
            many = len(far) if self.n_far is None else min(self.n_far, len(far))
            drawn = np.array([rng.choice(far, many, replace=False) for _ in near])
            rows = np.empty((drawn.size, 3), dtype=np.int64)
            rows[:, 0], rows[:, 1], rows[:, 2] = head, np.repeat(near, many), drawn.ravel()
            parts.append(rows)
        if not parts:
            raise InvalidInput("every list names all other objects: nothing is compared; shorten k")
        return np.concatenate(parts)


@dataclass(eq=False, repr=False)
class KNNGraphEmbedding(PositionsEstimator):
    """Metric recovery from a directed neighbour graph by random walks, then classical scaling.

    Parameters
    ----------
    n_components
        Dimension of the positions.
    reach
        How far a walk gets before it is discounted away, in typical steps.

    Attributes
    ----------
    embedding_
        ``(n, n_components)`` positions; their unit is arbitrary.
    distances_
        ``(n, n)`` estimated distances.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> lists = np.argsort(np.abs(X - X.T), axis=1)[:, 1:7]
    >>> found = nearer.KNNGraphEmbedding(n_components=1).fit(lists).embedding_
    >>> bool(abs(np.corrcoef(found[:, 0], X[:, 0])[0, 1]) > 0.99)
    True
    """

    n_components: int = 2
    _: KW_ONLY
    reach: float = 1.0

    def fit(self, neighbours: ArrayLike | Any, y: object = None) -> Self:
        """Find positions from ``(n, k)`` lists of neighbours, or an adjacency matrix."""
        if not self.reach > 0:
            raise InvalidInput(f"reach={self.reach}: must be above 0")
        graph = as_graph(neighbours)
        d = checks.n_components(self.n_components, graph.shape[0])
        pieces, label = connected_components(graph, connection="strong")
        if pieces > 1:
            size = np.bincount(label)
            stray = np.flatnonzero(label != np.argmax(size))
            raise InvalidInput(
                f"{pieces} pieces: walks from some objects never return, such as "
                f"{stray[:10].tolist()}; "
                "give longer lists, or drop these objects"
            )
        self.distances_: Floats = _hitting_distances(graph, d, self.reach)
        # classical scaling: KernelPCA centres the rows and the columns of a precomputed kernel
        scaling = KernelPCA(d, kernel="precomputed", eigen_solver="dense")
        self.embedding_ = scaling.fit_transform(-0.5 * self.distances_**2)
        return self


def as_graph(neighbours: ArrayLike | Any) -> Any:
    """Neighbour lists or an adjacency matrix as a sparse 0-1 matrix without a diagonal."""
    if sparse.issparse(neighbours) or _is_adjacency(neighbours):
        given: Any = neighbours
        graph: Any = sparse.csr_array(given, dtype=np.float64)
        if graph.shape[0] != graph.shape[1]:
            raise InvalidInput(f"adjacency of shape {graph.shape}: must be square")
    else:
        lists = np.asarray(neighbours)
        if lists.ndim != 2 or not np.issubdtype(lists.dtype, np.integer) or lists.size == 0:
            raise InvalidInput(
                f"neighbours of shape {lists.shape} and type {lists.dtype}: must be (n, k) "
                "objects, or a square adjacency matrix of zeros and ones"
            )
        n, k = lists.shape
        if lists.min() < 0 or lists.max() >= n:
            raise InvalidInput(
                f"neighbours name object {int(lists.max())}: must be from 0 to {n - 1}"
            )
        where = (np.repeat(np.arange(n), k), lists.ravel())
        graph = sparse.csr_array((np.ones(n * k), where), shape=(n, n))
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.data[:] = 1.0
    lonely = np.flatnonzero(np.diff(graph.indptr) == 0)
    if len(lonely):
        raise InvalidInput(f"objects {lonely[:10].tolist()} have no neighbours; list at least one")
    return graph


def _is_adjacency(neighbours: Any) -> bool:
    values = np.asarray(neighbours)
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    return bool(square and np.isin(values, (0, 1)).all())


def _hitting_distances(graph: Any, d: int, reach: float) -> Floats:
    n = graph.shape[0]
    walk = graph.toarray()
    walk /= walk.sum(axis=1, keepdims=True)
    # π = πP and Σπ = 1 in one equation, whose solution is unique if the graph is connected
    stationary = np.linalg.solve(np.eye(n) - walk.T + 1, np.ones(n))
    width = stationary ** (-2 / (d + 2))
    discount = np.exp(-(width / width.mean()) / reach**2)
    green = np.linalg.inv(np.eye(n) - discount[:, None] * walk)
    transform = np.maximum(green / np.diag(green), np.finfo(float).tiny)
    distances = -np.log(np.minimum(transform, 1.0))
    return np.asarray(0.5 * (distances + distances.T))
