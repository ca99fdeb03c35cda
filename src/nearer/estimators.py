"""scikit-learn estimators of positions: from triplets, neighbour lists, points or an oracle.

Triplets may be questions (head, a, b) with ``y`` that says whether a is nearer, so that
`sklearn.model_selection.cross_val_score` works with either. Each estimator is a dataclass: its
fields are scikit-learn's parameters.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from nearer import checks
from nearer._fit import LoadedAnswers, fit, load_answers
from nearer.algorithms.basis import Basis, Endpoints, choose_basis
from nearer.algorithms.dominance import Axis
from nearer.asking.oracles import DistanceOracle, PointOracle
from nearer.asking.run import run
from nearer.asking.sort import Order
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting import solver
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.fitting.solver import Device, Fit, Loss
from nearer.parallel import parallel_map
from nearer.questions import Floats, Objects, answered, near_first
from nearer.trials import MOST_SORTED, examine


def _generator(random_state: Any) -> np.random.Generator:
    """Whatever scikit-learn calls a random state, or a generator, as a generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return checks.generator(random_state)


class _PositionsEstimator(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Finds one position for each object: an array or, after ``set_output``, a frame."""

    embedding_: Floats
    objects_: NDArray[Any] | None = None

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Find positions and return them: an array, or a frame after ``set_output``."""
        return self.fit(X, y, **options)._returned()

    def _returned(self) -> Any:
        """The positions; in a frame by pandas, rows are objects, not the rows of the answers."""
        chosen: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        if chosen.get("transform", get_config()["transform_output"]) == "pandas":
            import pandas as pd  # noqa: PLC0415 - slow to import

            return pd.DataFrame(self.embedding_, index=self.objects_)
        return self.embedding_

    def _store(self, fitted: Fit, total: float) -> Self:
        """The result of a fit to answers of this total weight, as attributes."""
        self.embedding_ = fitted.positions
        self.stress_: float = fitted.loss * total
        self.n_iter_: int = fitted.n_iter
        self.converged_: bool = fitted.converged
        return self


# --- triplets ------------------------------------------------------------------------------------


class _TripletEstimator(_PositionsEstimator):
    _rates_people = False
    n_contradictions_: int | None
    device: str = "cpu"
    _embed: Callable[..., Fit]  # answers, dimensions, generator, start

    def fit(
        self,
        triplets: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        people: ArrayLike | None = None,
        init: ArrayLike | None = None,
        n_objects: int | None = None,
    ) -> Self:
        """Find positions.

        Parameters
        ----------
        triplets
            ``(m, 3)`` rows (head, near, far), or questions (head, a, b) when `y` is given: of
            numbers or of names, which `objects_` then lists; or a frame. A sparse ``(n, n, n)``
            array, as of cblearn, counts at (i, j, k) the answers that j is nearer to i than k is,
            less those that k is.
        y
            One answer for each question: True or 1 if a is nearer, False, 0 or -1 if b is.
        sample_weight
            One non-negative number for each triplet.
        people
            The person of each answer, for `nearer.OrdinalEmbedding`, which rates people.
        init, n_objects
            They replace those of the constructor.
        """
        if people is not None and not self._rates_people:
            rule = f"{type(self).__name__} gives the answers of all people the same weight"
            raise InvalidInput(f"people: {rule}; nearer.OrdinalEmbedding rates people")
        rng = _generator(self.random_state)
        start = getattr(self, "init", None) if init is None else init
        n = n_objects if n_objects is not None else self.n_objects
        if _is_sparse(triplets) and n is None:
            n = _side(triplets)
        answers = triplets if y is None and not _is_sparse(triplets) else _answered(triplets, y)
        loaded = load_answers(answers, people, sample_weight, n, "numbers").split()
        names = loaded.trials.names
        are_numbers = names is None or isinstance(names[0], int)
        self.objects_ = None if are_numbers else np.array(names)
        self.n_contradictions_ = _warn_about(loaded)
        with solver.using(self.device):
            d = checks.n_components(self.n_components, loaded.n)
            fitted = self._embed(loaded, d, rng, start)
        self.n_features_in_ = 3
        if not fitted.converged:
            message = f"max_iter={self.max_iter} steps were not enough; raise max_iter or tol"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self._store(fitted, float(loaded.weights.sum()))

    def transform(self, triplets: ArrayLike) -> Any:
        """Return the positions; `triplets` are ignored, but pipelines pass them."""
        check_is_fitted(self, "embedding_")
        return self._returned()

    def predict(self, questions: ArrayLike) -> NDArray[np.bool_]:
        """Answer questions (head, a, b) by the positions: True if a is nearer."""
        rows = self._numbered(questions)
        return ~solver.violated(self.embedding_, rows)

    def _numbered(self, questions: ArrayLike) -> Objects:
        """Questions about names, or numbers, as questions about numbers."""
        check_is_fitted(self, "embedding_")
        names = None if self.objects_ is None else tuple(self.objects_.tolist())
        return checks.questions(questions, len(self.embedding_), names)

    def score(self, triplets: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Share of answers that the positions satisfy."""
        rows = _answered(triplets, y)
        weights = checks.weights(sample_weight, len(rows))
        return float(weights @ self.predict(rows) / weights.sum())


def _answered(triplets: Any, y: ArrayLike | None) -> NDArray[Any]:
    """Rows (head, near, far) from triplets, from questions and answers, or from sparse counts."""
    if _is_sparse(triplets):
        if y is not None:
            raise InvalidInput("y with sparse answers: they say themselves which object is nearer")
        return _from_counts(triplets)
    rows = checks.rows_of_three("triplets", triplets, "(head, near, far)")
    if y is None:
        return rows
    answers = np.asarray(y)
    if answers.shape != (len(rows),):
        rule = f"must be ({len(rows)},), one answer for each question"
        raise InvalidInput(f"y of shape {answers.shape}: {rule}")
    if not any(np.isin(answers, (no, 1)).all() for no in (0, -1)):
        values = ", ".join(map(repr, dict.fromkeys(answers.tolist())))
        rule = "answers must be True or 1 (a is nearer), and False, 0 or -1 (b is)"
        raise InvalidInput(f"y holds {values[:60]}: {rule}")
    return near_first(rows, answers == 1)


def _is_sparse(answers: Any) -> bool:
    """True for sparse arrays of SciPy and of the package ``sparse``, which cblearn uses."""
    return sparse.issparse(answers) or (hasattr(answers, "coords") and hasattr(answers, "nnz"))


def _side(counts: Any) -> int:
    """The number of objects of a sparse array with an entry for each three of them."""
    size = math.prod(map(int, counts.shape))
    n: int = round(size ** (1 / 3))
    if n**3 != size:
        rule = "must be (n, n, n), or a matrix of as many entries"
        raise InvalidInput(f"sparse answers of shape {counts.shape}: {rule}")
    return n


def _from_counts(counts: Any) -> Objects:
    """A row (head, near, far) for each answer that a sparse array counts."""
    counts = counts.tocoo() if sparse.issparse(counts) else counts
    n, at = _side(counts), np.zeros(counts.nnz, dtype=np.int64)
    for length, places in zip(counts.shape, counts.coords, strict=True):
        at = at * length + places
    rows = np.stack(np.unravel_index(at, (n, n, n)), axis=1)
    return np.repeat(answered(rows, counts.data > 0), np.abs(counts.data).astype(np.int64), axis=0)


def _warn_about(loaded: LoadedAnswers) -> int | None:
    """Warn of contradictions and objects never compared; return the number of contradictions.

    It is None for very many answers, since sorting them would take too long.
    """
    if len(loaded.rows) > MOST_SORTED:
        return None
    labels = tuple(map(str, loaded.trials.names or range(loaded.n)))
    report = examine(loaded.rows.astype(np.int64), labels)
    if report.contradictions or report.never_compared:
        meaning = (
            "the fit weighs contradictions against each other, and positions of objects never "
            "compared mean nothing; add triplets or drop them"
        )
        warnings.warn(f"{report}\n{meaning}", AnswersWarning, stacklevel=3)
    return report.contradictions


_DOCUMENTATION = """{summary}

    Parameters
    ----------
    n_components
        Dimension of the positions.
    n_init
        How many starts; the fit with the smallest loss is the result.
    init
        ``"above"`` starts in a few more dimensions and reduces them, ``"random"`` starts from a
        random cloud; or an array.
    max_iter, tol
        Steps of the optimiser, and the gain of a step, relative to the loss, that ends it.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.
    n_objects
        How many objects there are; None: the largest index plus one.
    device
        ``"cuda"``: fit on a GPU (needs ``nearer[gpu]``). ``"auto"``: if there is one and the
        problem is large enough to gain. ``"cpu"``: never.

    Attributes
    ----------
    embedding_
        ``(n_objects, n_components)`` positions.
    objects_
        The names of the objects, if answers were about names; else None.
    stress_
        The sum of the losses of all answers, each times its weight.
    n_iter_, converged_
        Steps of the optimiser in all stages, and whether it converged before `max_iter`.
    n_contradictions_
        How many questions have both answers.

    Examples
    --------
    >>> import nearer
    >>> model = nearer.{name}(1, tol=1e-3, random_state=0).fit([[0, 1, 2], [2, 1, 0]])
    >>> model.embedding_.shape, model.predict([[0, 2, 1]])
    ((3, 1), array([False]))
    """


@dataclass(eq=False, repr=False)
class _LossEstimator(_TripletEstimator):
    """An estimator that minimises one loss; a loss with a parameter adds that field."""

    n_components: int = 2
    _: KW_ONLY
    n_init: int = 1
    init: ArrayLike | str = "above"
    max_iter: int = 2000
    tol: float = 1e-9
    random_state: Any = None
    n_objects: int | None = None
    device: str = "auto"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = _DOCUMENTATION.format(summary=(cls.__doc__ or "").rstrip(), name=cls.__name__)

    def _loss(self) -> Loss:
        return Loss(type(self).__name__.lower())

    def _embed(self, loaded: LoadedAnswers, d: int, rng: np.random.Generator, init: Any) -> Fit:
        passes = solver.prepare(loaded.rows, loaded.n, loaded.weights)
        options: dict[str, Any] = {
            "loss": self._loss(),
            "max_iter": checks.whole("max_iter", self.max_iter),
            "tol": checks.positive("tol", self.tol),
        }

        def once(rng: np.random.Generator) -> Fit:
            if isinstance(init, str) and init == "above":
                return fit_from_more_dimensions(passes, n_components=d, rng=rng, **options)
            start = solver.random_start(loaded.n, d, rng) if isinstance(init, str) else init
            return solver.fit_positions(passes, start=start, **options)

        if not isinstance(init, str):
            init = checks.array("init", init, (loaded.n, d), "or 'above' or 'random'")
        elif init not in ("above", "random"):
            raise InvalidInput(f"init={init!r}: must be 'above', 'random' or an array")
        n_init = checks.whole("n_init", self.n_init)
        # The same array again would give the same positions again.
        starts = rng.spawn(n_init if isinstance(init, str) else 1)
        # Answers on a GPU stay in this process.
        fits = map(once, starts) if passes.on_gpu else parallel_map(once, zip(starts, strict=True))
        return min(fits, key=lambda fit: fit.loss)


class SOE(_LossEstimator):
    """Soft ordinal embedding: distances differ by a unit (Terada, von Luxburg 2014)."""


@dataclass(eq=False, repr=False)
class CKL(_LossEstimator):
    """Crowd kernel: odds are ratios of squared distances (Tamuz et al. 2011).

    ``mu`` is added to both squared distances.
    """

    _: KW_ONLY
    mu: float = 0.05

    def _loss(self) -> Loss:
        return Loss("ckl", checks.positive("mu", self.mu))


class GNMDS(_LossEstimator):
    """Generalised non-metric MDS, on squared distances (Agarwal et al. 2007)."""


class STE(_LossEstimator):
    """Stochastic triplet embedding (van der Maaten, Weinberger 2012)."""


@dataclass(eq=False, repr=False)
class TSTE(_LossEstimator):
    """Stochastic triplet embedding with Student's t (van der Maaten, Weinberger 2012).

    ``alpha`` is the degrees of freedom.
    """

    _: KW_ONLY
    alpha: float = 1.0

    def _loss(self) -> Loss:
        return Loss("tste", checks.positive("alpha", self.alpha))


@dataclass(eq=False, repr=False)
class OrdinalEmbedding(_TripletEstimator):
    """Positions from any answers, exact or noisy; the dimension is the only choice to make.

    This is ``nearer.fit(..., method="noisy")``.

    Parameters
    ----------
    n_components, max_iter, tol, random_state, n_objects, device
        As in `SOE`.

    Attributes
    ----------
    embedding_, objects_, stress_, n_iter_, converged_, n_contradictions_
        As in `SOE`; `stress_` is the negative log-likelihood.
    people_
        A table of the people, if they are known: see `nearer.Embedding`.
    noise_
        Estimated lapse rate: the share of wrong answers that near ties do not explain.
    fit_
        The `nearer.fitting.posterior.Posterior`: positions, covariances, noise.
    held_out_accuracy_
        Share of answers predicted by fits that had not seen them; nan with too few answers.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> questions = np.array([rng.choice(30, 3, replace=False) for _ in range(3000)])
    >>> oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)
    >>> model = nearer.OrdinalEmbedding(2, random_state=0).fit(questions, oracle(questions))
    >>> 0.05 < model.noise_ < 0.15, model.score(questions, nearer.PointOracle(X)(questions)) > 0.95
    (True, True)
    """

    _rates_people = True

    n_components: int = 2
    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-7
    random_state: Any = None
    n_objects: int | None = None
    device: Device = "auto"

    def _embed(self, loaded: LoadedAnswers, d: int, rng: np.random.Generator, init: Any) -> Fit:
        if init is not None:
            raise InvalidInput("init: OrdinalEmbedding finds its own start; use SOE for yours")
        how: dict[str, Any] = {"device": self.device, "max_iter": self.max_iter, "tol": self.tol}
        how |= {"people": loaded.trials.people, "weights": loaded.weights, "random_state": rng}
        fitted = fit(loaded.rows, n_components=d, method="noisy", n_objects=loaded.n, **how)
        posterior = self.fit_ = fitted.details["posterior"]
        self.people_ = fitted.people
        self.noise_: float = posterior.noise.lapse
        held_out = fitted.held_out
        self.held_out_accuracy_: float = np.nan if held_out is None else held_out.accuracy
        return Fit(posterior.positions, posterior.loss, posterior.n_iter, posterior.converged)

    def predict_proba(self, questions: ArrayLike) -> Floats:
        """Probabilities of "b is nearer" and "a is nearer", one row a question."""
        p = self.fit_.probability(self._numbered(questions))
        return np.stack([1 - p, p], axis=1)


# --- neighbour lists -----------------------------------------------------------------------------


class _GraphEstimator(_PositionsEstimator):
    """The common part of estimators from neighbour lists; `_embed` gets graph and dimension."""

    n_components: int
    _embed: Callable[..., None]

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
            rule = "must be (n, k) objects, or a square adjacency matrix of zeros and ones"
            raise InvalidInput(f"neighbours of shape {lists.shape} and type {lists.dtype}: {rule}")
        n, k = lists.shape
        if lists.min() < 0 or lists.max() >= n:
            most = int(lists.max())
            raise InvalidInput(f"neighbours name object {most}: must be from 0 to {n - 1}")
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
    n_far
        The number of random objects outside the list with which each neighbour is compared; None:
        all, which are k·(n − k) triplets per object.
    n_components, max_iter, tol, random_state
        As in `nearer.SOE`.

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
            checks.whole("n_far", self.n_far, rule="the number of other objects; None: all")
        max_iter, tol = checks.whole("max_iter", self.max_iter), checks.positive("tol", self.tol)
        rng = _generator(self.random_state)
        rows = self._triplets(graph, rng)
        how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "rng": rng}
        fitted = fit_from_more_dimensions(rows, graph.shape[0], d, **how)
        self._store(fitted, float(len(rows)))

    def _triplets(self, graph: Any, rng: np.random.Generator) -> NDArray[np.int64]:
        n = graph.shape[0]
        parts = []
        for head in range(n):
            near = graph.indices[graph.indptr[head] : graph.indptr[head + 1]]
            far = np.setdiff1d(np.arange(n), np.append(near, head))
            many = len(far) if self.n_far is None else min(self.n_far, len(far))
            for neighbour in near if many else ():
                drawn = rng.choice(far, many, replace=False)
                parts.append(np.column_stack(np.broadcast_arrays(head, neighbour, drawn)))
        if not parts:
            raise InvalidInput("every list names all other objects: nothing is compared; shorten k")
        return np.concatenate(parts)


@dataclass(eq=False, repr=False)
class KNNGraphEmbedding(_GraphEstimator):
    """Metric recovery from a directed neighbour graph by random walks, then classical scaling.

    The walk reaches near objects sooner (Hashimoto, Sun and Jaakkola 2015).

    Parameters
    ----------
    n_components
        Dimension of the positions.
    reach
        How far a walk gets before it is discounted away, in typical steps.

    Attributes
    ----------
    embedding_, distances_
        ``(n, n_components)`` positions, and ``(n, n)`` estimated distances, in no unit.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> lists = np.argsort(np.abs(X - X.T), axis=1)[:, 1:7]
    >>> line = nearer.KNNGraphEmbedding(n_components=1).fit(lists).embedding_
    >>> bool(abs(np.corrcoef(line[:, 0], X[:, 0])[0, 1]) > 0.99)
    True
    """

    n_components: int = 2
    _: KW_ONLY
    reach: float = 1.0

    def _embed(self, graph: Any, d: int) -> None:
        from sklearn.decomposition import KernelPCA  # noqa: PLC0415 - slow to import

        if checks.positive("reach", self.reach) > 1e6:
            rule = "must be at most 1,000,000, since rounding hides longer walks"
            raise InvalidInput(f"reach={self.reach}: {rule}; give a smaller number")
        pieces, label = connected_components(graph, connection="strong")
        if pieces > 1:
            size = np.bincount(label)
            stray = np.flatnonzero(label != np.argmax(size))
            why = f"walks from {stray[:10].tolist()} never return"
            raise InvalidInput(f"{pieces} pieces: {why}; give longer lists, or drop objects")
        self.distances_: Floats = _hitting_distances(graph, d, self.reach)
        # classical scaling: KernelPCA centres the rows and the columns of a precomputed kernel
        scaling = KernelPCA(d, kernel="precomputed", eigen_solver="dense")
        self.embedding_ = scaling.fit_transform(-0.5 * self.distances_**2)


def _hitting_distances(graph: Any, d: int, reach: float) -> Floats:
    """Distances as −log E[exp(−βT)], to which they are proportional, T the hitting time of a walk.

    With P the walk and Λ the discount of a step, E[exp(−βT_ij)] = G_ij/G_jj for G = (I − ΛP)⁻¹. A
    step is as long as the neighbourhood is wide, ε, and counts ε² of time. The walk's stationary
    distribution π tells how wide: π ∝ p/ε² and a density p ∝ ε^−d give ε ∝ π^(−1/(d+2)).
    """
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


# --- points or an oracle -------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class OrdinalBasis(_PositionsEstimator):
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
        As in `nearer.SOE`.

    Attributes
    ----------
    embedding_, dimension_, axes_
        ``(n, dimension_)`` coordinates; the axes, each with its members in order.
    basis_
        The whole `nearer.algorithms.Basis`: rankings, triplets, why it stopped.
    n_comparisons_, n_rounds_
        The number of questions, and of rounds.

    Examples
    --------
    >>> import nearer
    >>> X = nearer.datasets.make_cube(300, 2, random_state=0)
    >>> model = nearer.OrdinalBasis(random_state=0).fit(X)
    >>> model.dimension_, model.embedding_.shape
    (2, (300, 2))
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
        y, n_objects
            Ignored; the number of objects, for an oracle.
        """
        if callable(X) == (n_objects is None):
            raise InvalidInput(f"n_objects={n_objects}: is needed with an oracle, and only then")
        if callable(X):
            oracle, n = X, checks.n_objects(n_objects)
        else:
            rules: dict[str, Any] = {"accept_sparse": "csr", "ensure_min_samples": 3}
            points = validate_data(self, X, dtype=np.float64, **rules)
            precomputed = str(self.metric) == "precomputed"
            oracle = DistanceOracle(points) if precomputed else PointOracle(points, self.metric)
            n = points.shape[0]
            self.objects_ = X.index if hasattr(X, "iloc") else None  # of a frame by pandas
        rng, ends = _generator(self.random_state), self.endpoints
        strategy = choose_basis(n, random_state=rng, endpoints=ends, order=self.order)
        self.basis_: Basis = run(strategy, oracle)
        self.embedding_ = self.basis_.coordinates()
        self.dimension_: int = self.basis_.dimension
        self.axes_: tuple[Axis, ...] = self.basis_.axes
        self.n_comparisons_: int = self.basis_.n_comparisons
        self.n_rounds_: int = self.basis_.n_rounds
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = str(self.metric) == "precomputed"
        tags.input_tags.sparse = str(self.metric) in ("euclidean", "cosine")
        tags.non_deterministic = self.random_state is None
        return tags
