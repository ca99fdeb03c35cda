"""scikit-learn estimators of positions from neighbour lists, and from points or an oracle.

*Neighbour lists.* `LOE` asks that neighbours be nearer than the rest, a soft ordinal embedding of
(object, neighbour, other) triplets (Terada and von Luxburg 2014). `KNNGraphEmbedding` never
optimises: a random walk on the directed graph reaches near objects sooner, and minus the logarithm
of the Laplace transform of the hitting time, E[exp(−βT)], grows in proportion to the distance
(Hashimoto, Sun and Jaakkola 2015). With P the walk and Λ the discount of a step,
E[exp(−βT_ij)] = G_ij/G_jj for G = (I − ΛP)⁻¹. A step is as long as the neighbourhood is wide, and
the walk's stationary distribution tells how wide: π ∝ p/ε² and p ∝ ε^−d give ε ∝ π^(−1/(d+2)),
so a step from x counts ε(x)² of time.

*Points or an oracle.* `OrdinalBasis` is the paper's algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import validate_data

from nearer import checks
from nearer.algorithms.basis import Basis, Endpoints, choose_basis
from nearer.algorithms.dominance import Axis
from nearer.asking.oracles import DistanceOracle, PointOracle
from nearer.asking.protocol import Oracle
from nearer.asking.run import run
from nearer.asking.sort import Order
from nearer.errors import InvalidInput
from nearer.estimators.embedders import PositionsEstimator, as_generator
from nearer.fitting.initial import (
    fit_from_more_dimensions,
)
from nearer.questions import Floats

__all__ = ["LOE", "KNNGraphEmbedding", "OrdinalBasis"]


class _GraphEstimator(PositionsEstimator):
    """What both embedders of neighbour lists share."""

    n_components: int
    _embed: Callable[..., None]  # graph, dimensions

    def fit(self, neighbours: ArrayLike | Any, y: object = None) -> Self:
        """Find positions from ``(n, k)`` lists of neighbours, or an adjacency matrix."""
        graph = _as_graph(neighbours)
        self._embed(graph, checks.n_components(self.n_components, graph.shape[0]))
        return self


def _as_graph(neighbours: ArrayLike | Any) -> Any:
    """Neighbour lists or an adjacency matrix as a sparse 0-1 matrix without a diagonal."""
    lists: Any = neighbours if sparse.issparse(neighbours) else np.asarray(neighbours)
    square = lists.ndim == 2 and lists.shape[0] == lists.shape[1]
    if sparse.issparse(lists) or (square and np.isin(lists, (0, 1)).all()):
        if not square:
            raise InvalidInput(f"adjacency of shape {lists.shape}: must be square")
        graph = sparse.csr_array(lists, dtype=np.float64)
    else:
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


@dataclass(eq=False, repr=False)
class LOE(_GraphEstimator):
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

    def _embed(self, graph: Any, d: int) -> None:
        if self.n_far is not None:
            checks.whole("n_far", self.n_far, rule="so many others; None: all")
        max_iter, tol = checks.whole("max_iter", self.max_iter), checks.positive("tol", self.tol)
        rng = as_generator(self.random_state)
        rows = self._triplets(graph, rng)
        found = fit_from_more_dimensions(
            rows, graph.shape[0], d, max_iter=max_iter, tol=tol, rng=rng
        )
        self._keep(found, float(len(rows)))

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
class KNNGraphEmbedding(_GraphEstimator):
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

    def _embed(self, graph: Any, d: int) -> None:
        from sklearn.decomposition import KernelPCA  # noqa: PLC0415 - slow to import

        checks.positive("reach", self.reach)
        pieces, label = connected_components(graph, connection="strong")
        if pieces > 1:
            size = np.bincount(label)
            stray = np.flatnonzero(label != np.argmax(size))
            raise InvalidInput(
                f"{pieces} pieces: walks from some objects never return, such as "
                f"{stray[:10].tolist()}; give longer lists, or drop these objects"
            )
        self.distances_: Floats = _hitting_distances(graph, d, self.reach)
        # classical scaling: KernelPCA centres the rows and the columns of a precomputed kernel
        scaling = KernelPCA(d, kernel="precomputed", eigen_solver="dense")
        self.embedding_ = scaling.fit_transform(-0.5 * self.distances_**2)


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


@dataclass(eq=False, repr=False)
class OrdinalBasis(PositionsEstimator):
    """Embed objects by the axes that their rankings reveal (the paper's ``Basis``).

    Parameters
    ----------
    metric
        How distances between the rows of X are computed: ``"euclidean"``, any metric of
        `scipy.spatial.distance.cdist`, or ``"precomputed"`` when X holds distances.
    endpoints
        ``"above"``, the paper's way to choose endpoints, or ``"farthest-rank"``.
    order
        ``"fewest-comparisons"`` or ``"fewest-rounds"``.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.

    Attributes
    ----------
    embedding_
        ``(n, dimension_)`` coordinates.
    dimension_
        The estimated dimension.
    axes_
        The axes, each with its endpoints and its members in order.
    basis_
        The whole `nearer.algorithms.Basis`: rankings, triplets, why it stopped.
    n_comparisons_, n_rounds_
        What was asked, and in how many rounds.

    Examples
    --------
    >>> import nearer
    >>> X = nearer.datasets.make_cube(300, 2, random_state=0)
    >>> model = nearer.OrdinalBasis(random_state=0).fit(X)
    >>> model.dimension_, model.embedding_.shape
    (2, (300, 2))

    Any oracle will do in place of X:

    >>> model = nearer.OrdinalBasis(random_state=0).fit(nearer.PointOracle(X), n_objects=300)
    >>> model.dimension_
    2
    """

    _: KW_ONLY
    metric: Any = "euclidean"
    endpoints: Endpoints = "above"
    order: Order = "fewest-comparisons"
    random_state: Any = None

    def fit(self, X: Any, y: object = None, *, n_objects: int | None = None) -> Self:
        """Rank, find axes, place all objects on them.

        Parameters
        ----------
        X
            ``(n, d)`` features, ``(n, n)`` distances with ``metric="precomputed"``, or an oracle.
        y
            Ignored; there for scikit-learn's sake.
        n_objects
            How many objects there are; needed with an oracle, and only there.
        """
        if callable(X):
            if n_objects is None:
                raise InvalidInput("fit(oracle) needs n_objects=, the number of objects")
            oracle: Oracle = X
            n = checks.n_objects(n_objects)
        else:
            if n_objects is not None:
                raise InvalidInput(f"n_objects={n_objects}: only goes with an oracle; X has rows")
            points = validate_data(
                self, X, accept_sparse="csr", ensure_min_samples=3, dtype=np.float64
            )
            precomputed = self.metric == "precomputed"
            oracle = DistanceOracle(points) if precomputed else PointOracle(points, self.metric)
            n = points.shape[0]
            self.objects_ = X.index if hasattr(X, "iloc") else None  # of a frame by pandas
        strategy = choose_basis(
            n,
            random_state=as_generator(self.random_state),
            endpoints=self.endpoints,
            order=self.order,
        )
        self.basis_: Basis = run(strategy, oracle)
        self.embedding_ = self.basis_.coordinates()
        self.dimension_: int = self.basis_.dimension
        self.axes_: tuple[Axis, ...] = self.basis_.axes
        self.n_comparisons_: int = self.basis_.n_comparisons
        self.n_rounds_: int = self.basis_.n_rounds
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = self.metric in ("euclidean", "cosine")
        tags.non_deterministic = self.random_state is None
        return tags
