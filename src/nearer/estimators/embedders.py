"""scikit-learn estimators of positions from triplets.

One estimator for each loss, and `OrdinalEmbedding`, which expects noise. They take
``(m, 3)`` rows (head, near, far), or questions (head, a, b) with ``y`` that says whether a is
nearer, so that `sklearn.model_selection.cross_val_score` works with either; and the sparse arrays
of cblearn. Objects are numbers or names, rows an array or a frame. An estimator that was fitted to
names takes questions about names. Positions come out as an array, or as a frame after
``set_output``.

Each is a dataclass: its fields are scikit-learn's parameters, and a loss with a number of its own
adds that one field. The mathematics of fits is in `nearer.fitting`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nearer import checks
from nearer._fit import fit, load_answers
from nearer.checks import amount
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.initial import (
    fit_from_more_dimensions,
    random_start,
    ranking_start,
    triplet_ranks,
)
from nearer.fitting.solver import (
    Device,
    Fit,
    Loss,
    Passes,
    fit_positions,
    gpu,
    is_tensor,
    prepare,
    using,
    violated,
)
from nearer.parallel import parallel_map
from nearer.questions import Floats, Objects
from nearer.trials import MOST_SORTED, examine

__all__ = [
    "CKL",
    "GNMDS",
    "SOE",
    "STE",
    "TSTE",
    "OrdinalEmbedding",
    "PositionsEstimator",
    "as_generator",
]


def as_generator(random_state: Any) -> np.random.Generator:
    """Whatever scikit-learn calls a random state, or a generator, as a generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return checks.generator(random_state)


class PositionsEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds one position for each object: an array or, after ``set_output``, a frame.

    scikit-learn's own way takes the rows of what comes out for those of what went in; here the ones
    are objects, the others answers.
    """

    embedding_: Floats
    objects_: NDArray[Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Choose what ``transform`` and ``fit_transform`` return.

        Parameters
        ----------
        transform
            ``"pandas"`` or ``"polars"``: a frame, by pandas with the objects as its index;
            ``"default"``: an array; None: as it was.
        """
        if transform is not None:
            checks.one_of("transform", transform, ("default", "pandas", "polars"))
            self._sklearn_output_config = {"transform": transform}  # what sklearn.clone copies
        return self

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the coordinates: the estimator's name and a number."""
        check_is_fitted(self, "embedding_")
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{j}" for j in range(self.embedding_.shape[1])], dtype=object)

    def fit_transform(self, answers: Any, y: Any = None, **options: Any) -> Any:
        """Find positions and return them: an array, or a frame after ``set_output``."""
        return self.fit(answers, y, **options)._returned()

    def _returned(self) -> Any:
        """The positions as the user wants them."""
        columns = self.get_feature_names_out().tolist()
        chosen: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        wanted = chosen.get("transform", get_config()["transform_output"])
        if wanted == "pandas":
            import pandas as pd  # noqa: PLC0415 - only here

            return pd.DataFrame(self.embedding_, columns=columns, index=self.objects_)
        if wanted == "polars":
            import polars as pl  # noqa: PLC0415 - only here, and no dependency

            return pl.DataFrame(self.embedding_, schema=columns)
        return self.embedding_

    def _keep(self, found: Fit, total: float) -> Self:
        """The result of a fit to answers of this total weight, as attributes."""
        self.embedding_ = found.positions
        self.stress_: float = found.loss * total
        self.n_iter_: int = found.n_iter
        self.converged_: bool = found.converged
        return self


class _TripletEstimator(PositionsEstimator):
    """What all embedders of triplets share."""

    _rates_people = False
    n_contradictions_: int | None
    device: str = "cpu"
    _embed: Callable[..., Fit]  # passes, dimensions, generator, start, people

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
            numbers or of names, which `objects_` then lists in the order of the positions. A
            pandas or polars frame is read as `nearer.fit` does. A sparse ``(n, n, n)`` array
            counts at (i, j, k) the answers that j is nearer to i than k is, less those that k is.
        y
            One answer a question: True or 1 where a is nearer, False, 0 or -1 where b is.
        sample_weight
            One non-negative number a triplet.
        people
            Who gave each answer, for `nearer.OrdinalEmbedding`, which rates them.
        init, n_objects
            Where given, they go before the constructor's.
        """
        if people is not None and not self._rates_people:
            raise InvalidInput(
                f"people: {type(self).__name__} counts everybody's answers the same; "
                "nearer.OrdinalEmbedding rates people"
            )
        generator = as_generator(self.random_state)
        start = getattr(self, "init", None) if init is None else init
        n = n_objects if n_objects is not None else self.n_objects
        with using(self.device):
            passes, own = self._prepared(triplets, y, sample_weight, n)
            d = checks.n_components(self.n_components, passes.n_objects)
            found = self._embed(passes, d, generator, start, own if people is None else people)
        self.n_features_in_ = 3
        if not found.converged:
            warnings.warn(
                f"max_iter={self.max_iter} steps were not enough; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._keep(found, passes.total)

    def _prepared(
        self, triplets: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, n: int | None
    ) -> tuple[Passes, ArrayLike | None]:
        """Answers, checked and laid out for passes over them, and who a frame says gave them."""
        self.objects_ = self.n_contradictions_ = None
        if is_tensor(triplets) and y is None:  # what lies on the device already is not sorted
            return gpu().GpuPasses.of_tensor(triplets, sample_weight, n), None
        counted = _is_sparse(triplets)
        if counted and n is None:
            n = _side(triplets)
        answers = _answered(triplets, y) if counted or y is not None else triplets
        loaded = load_answers(answers, n_objects=n, objects="numbers").split()
        names = loaded.trials.names
        if names is not None and not isinstance(names[0], int):
            self.objects_ = np.array(names)
        self.n_contradictions_ = _warn_about(loaded.rows, loaded.n)
        weights = loaded.weights if sample_weight is None else sample_weight
        return prepare(loaded.rows, loaded.n, weights), loaded.trials.people

    def transform(self, triplets: ArrayLike | None = None) -> Any:
        """Return the positions found; triplets are not looked at, pipelines pass them."""
        return self._returned()

    def predict(self, questions: ArrayLike) -> NDArray[np.bool_]:
        """Answer questions (head, a, b) by the positions: True where a is nearer."""
        return ~violated(self.embedding_, self._numbered(questions))

    def _numbered(self, questions: ArrayLike) -> Objects:
        """Questions about names, or numbers, as questions about numbers."""
        check_is_fitted(self, "embedding_")
        names = None if self.objects_ is None else tuple(self.objects_.tolist())
        return checks.questions(questions, len(self.embedding_), names)

    def score(
        self,
        triplets: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
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
        raise InvalidInput(
            f"y of shape {answers.shape}: must be ({len(rows)},), one answer for each question"
        )
    if not np.isin(answers, (-1, 0, 1)).all():
        odd = answers[~np.isin(answers, (-1, 0, 1))][0]
        raise InvalidInput(
            f"y holds {odd!r}: answers must be True or 1 (a is nearer), or False, 0 or -1"
        )
    if (answers == 0).any() and (answers == -1).any():
        raise InvalidInput("y holds both 0 and -1: write 'b is nearer' in one way, 0 or -1")
    return np.where((answers == 1)[:, None], rows, rows[:, [0, 2, 1]])


def _is_sparse(answers: Any) -> bool:
    """True for sparse arrays of SciPy and of the package ``sparse``, which cblearn uses."""
    return sparse.issparse(answers) or (hasattr(answers, "coords") and hasattr(answers, "nnz"))


def _side(counts: Any) -> int:
    """The number of objects of a sparse array with an entry for each three of them."""
    size = math.prod(map(int, counts.shape))
    n: int = round(size ** (1 / 3))
    if n**3 != size:
        raise InvalidInput(
            f"sparse answers of shape {counts.shape}: must be (n, n, n), or a matrix of as many "
            "entries; number the objects from 0 to n - 1"
        )
    return n


def _from_counts(counts: Any) -> Objects:
    """A row (head, near, far) for each answer that a sparse array counts."""
    counts = counts.tocoo() if sparse.issparse(counts) else counts
    n, at = _side(counts), np.zeros(counts.nnz, dtype=np.int64)
    for length, places in zip(counts.shape, counts.coords, strict=True):
        at = at * length + places
    head, near, far = np.unravel_index(at, (n, n, n))
    rows = np.stack([head, near, far], axis=1)
    rows = np.where((counts.data > 0)[:, None], rows, rows[:, [0, 2, 1]])
    return np.repeat(rows, np.abs(counts.data).astype(np.int64), axis=0)


def _warn_about(rows: NDArray[np.int32], n: int) -> int | None:
    """Warn of contradictions and objects never compared; return how many contradict.

    Very many answers are not sorted just for that: None.
    """
    if len(rows) > MOST_SORTED:
        return None
    report = examine(rows.astype(np.int64), tuple(map(str, range(n))))
    said = []
    if report.contradictions:
        both = amount(report.contradictions, "question has", "questions have")
        said.append(f"{both} both answers; the fit weighs one against the other")
    if unseen := report.never_compared:
        some = ", ".join(map(str, unseen[:10])) + (", …" if len(unseen) > 10 else "")
        said.append(
            f"objects never compared: {some} ({len(unseen)} in all); their positions mean nothing; "
            "add triplets or drop them"
        )
    for what in said:
        warnings.warn(what, AnswersWarning, stacklevel=4)
    return report.contradictions


@dataclass(eq=False, repr=False)
class _LossEstimator(_TripletEstimator):
    """An embedder that minimises one loss."""

    n_components: int = 2
    _: KW_ONLY
    n_init: int = 1
    init: ArrayLike | str = "above"
    max_iter: int = 2000
    tol: float = 1e-9
    random_state: Any = None
    n_objects: int | None = None
    device: str = "auto"
    verbose: bool = False

    def _loss(self) -> Loss:
        return Loss(type(self).__name__.lower())

    def _embed(
        self,
        passes: Passes,
        d: int,
        rng: np.random.Generator,
        init: Any,
        people: ArrayLike | None,  # a loss counts all answers the same
    ) -> Fit:
        options: dict[str, Any] = {
            "loss": self._loss(),
            "max_iter": checks.whole("max_iter", self.max_iter),
            "tol": checks.positive("tol", self.tol),
            "callback": _report if self.verbose else None,
        }

        def once(start_rng: np.random.Generator) -> Fit:
            if isinstance(init, str) and init == "above":
                return fit_from_more_dimensions(passes, n_components=d, rng=start_rng, **options)
            return fit_positions(passes, start=_start(init, passes, d, start_rng), **options)

        starts = rng.spawn(checks.whole("n_init", self.n_init))
        if not isinstance(init, str):
            starts = starts[:1]  # the same array again would give the same positions again
        if passes.on_gpu:  # answers on a device stay there
            fits = [once(start_rng) for start_rng in starts]
        else:
            fits = parallel_map(once, [(start_rng,) for start_rng in starts])
        return min(fits, key=lambda fit: fit.loss)


_COMMON = """
    Parameters
    ----------
    n_components
        Dimension of the positions.
    n_init
        How many starts; the one with the smallest loss is kept.
    init
        ``"above"`` starts in a few more dimensions and reduces them, ``"random"`` starts from a
        random cloud, ``"rankings"`` from rankings that the answers suggest; or an array.
    max_iter, tol
        Steps of the optimiser, and the gain of a step, relative to the loss, that ends it.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.
    n_objects
        How many objects there are; None: the largest index plus one.
    device
        ``"cuda"``: fit on a GPU (needs ``nearer[gpu]``). ``"auto"``: where there is one and the
        problem is large enough to gain. ``"cpu"``: never.
    verbose
        Print the loss after every hundredth step.

    Attributes
    ----------
    embedding_
        ``(n_objects, n_components)`` positions.
    objects_
        What the objects are called, where answers were about names; else None.
    stress_
        The sum of the losses of all answers, each times its weight, as in cblearn (whose STE and
        TSTE report their mean).
    n_iter_, converged_
        Steps of the optimiser, of all stages, and whether it ended by itself.
    n_contradictions_
        How many questions have both answers.
"""


def _example(name: str) -> str:
    """An example that suits every estimator of one loss."""
    return f"""
    Examples
    --------
    >>> import nearer
    >>> model = nearer.{name}(1, tol=1e-3, random_state=0).fit([[0, 1, 2], [2, 1, 0]])
    >>> model.embedding_.shape, model.predict([[0, 2, 1]])
    ((3, 1), array([False]))
    """


class SOE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Soft ordinal embedding: distances differ by a unit (Terada, von Luxburg 2014).
{_COMMON}{_example("SOE")}"""


@dataclass(eq=False, repr=False)
class CKL(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Crowd kernel: odds are ratios of squared distances (Tamuz et al. 2011).

    ``mu`` is added to both squared distances.
{_COMMON}{_example("CKL")}"""

    _: KW_ONLY
    mu: float = 0.05

    def _loss(self) -> Loss:
        return Loss("ckl", checks.positive("mu", self.mu))


class GNMDS(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Generalised non-metric MDS, on squared distances (Agarwal et al. 2007).
{_COMMON}{_example("GNMDS")}"""


class STE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Stochastic triplet embedding (van der Maaten, Weinberger 2012).
{_COMMON}{_example("STE")}"""


@dataclass(eq=False, repr=False)
class TSTE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Stochastic triplet embedding with Student's t (van der Maaten, Weinberger 2012).

    ``alpha`` is the degrees of freedom.
{_COMMON}{_example("TSTE")}"""

    _: KW_ONLY
    alpha: float = 1.0

    def _loss(self) -> Loss:
        return Loss("tste", checks.positive("alpha", self.alpha))


def _start(init: Any, passes: Passes, d: int, rng: np.random.Generator) -> Floats:
    n = passes.n_objects
    if not isinstance(init, str):
        start = np.asarray(init, dtype=np.float64)
        if start.shape != (n, d):
            raise InvalidInput(f"init of shape {start.shape}: must be ({n}, {d})")
        return start
    if init == "random":
        return random_start(n, d, rng)
    if init == "rankings":
        return ranking_start(triplet_ranks(passes.rows, n), d)
    raise InvalidInput(f"init={init!r}: must be 'above', 'random', 'rankings' or an array")


def _report(step: int, loss: float, _: Any) -> None:
    if step % 100 == 0:
        print(f"step {step}: loss {loss:.3e}")  # noqa: T201 - what verbose asks for


@dataclass(eq=False, repr=False)
class OrdinalEmbedding(_TripletEstimator):
    """Positions from any answers, exact or noisy, with nothing to choose but the dimension.

    How answers get wrong, how often, and how widely objects spread is chosen by held-out answers;
    this is ``nearer.fit(..., method="noisy")``.

    Parameters
    ----------
    n_components
        Dimension of the positions.
    max_iter, tol
        Steps of the optimiser in the last fit, and the gain that ends it.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.
    n_objects
        How many objects there are; None: the largest index plus one.
    device
        As in `SOE`.

    Attributes
    ----------
    embedding_, objects_, stress_, n_iter_, converged_, n_contradictions_
        As in `SOE`; `stress_` is the negative log-likelihood.
    people_
        Where it is known who answered, a table of them: see `nearer.Embedding`.
    noise_
        Estimated share of answers that are wrong for no reason the distances give.
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
    >>> 0.05 < model.noise_ < 0.15
    True
    >>> model.score(questions, nearer.PointOracle(X)(questions)) > 0.95
    True
    """

    _rates_people = True

    n_components: int = 2
    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-7
    random_state: Any = None
    n_objects: int | None = None
    device: Device = "auto"

    def _embed(
        self,
        passes: Passes,
        d: int,
        rng: np.random.Generator,
        init: Any,
        people: ArrayLike | None,
    ) -> Fit:
        if init is not None:
            raise InvalidInput("init: OrdinalEmbedding finds its own start; use SOE for yours")
        found = fit(
            passes.rows,
            n_components=d,
            people=people,
            weights=passes.weights,
            method="noisy",
            n_objects=passes.n_objects,
            device=self.device,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=rng,
        )
        posterior = found.details["posterior"]
        self.fit_ = posterior
        self.people_ = found.people
        self.noise_: float = posterior.noise.lapse
        self.held_out_accuracy_: float = (
            np.nan if found.held_out is None else found.held_out.accuracy
        )
        return Fit(posterior.positions, posterior.loss, posterior.n_iter, posterior.converged)

    def predict_proba(self, questions: ArrayLike) -> Floats:
        """Probabilities of "b is nearer" and "a is nearer", one row a question."""
        p = self.fit_.probability(self._numbered(questions))
        return np.stack([1 - p, p], axis=1)
