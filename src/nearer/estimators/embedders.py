"""Embedders of triplets as scikit-learn estimators: one for each loss, and one that expects noise.

Each is a dataclass: its fields are scikit-learn's parameters, written once for all of them, and a
loss with a number of its own adds that one field.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nearer import checks
from nearer._fit import fit
from nearer.errors import InvalidInput
from nearer.estimators.base import TripletEstimator, number_questions
from nearer.fitting.device import Device
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.solver import Fit, Passes, fit_positions
from nearer.fitting.starts import fit_from_above, random_start, ranking_start, triplet_ranks
from nearer.parallel import parallel_map

__all__ = ["CKL", "GNMDS", "SOE", "STE", "TSTE", "OrdinalEmbedding"]


@dataclass(eq=False, repr=False)
class _LossEstimator(TripletEstimator):
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
        above = isinstance(init, str) and init == "above"

        def once(start_rng: np.random.Generator) -> Fit:
            if above:
                return fit_from_above(passes, n_components=d, rng=start_rng, **options)
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
        Weighted mean loss.
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
class OrdinalEmbedding(TripletEstimator):
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
        As in `SOE`; `stress_` is the mean negative log-likelihood.
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
        check_is_fitted(self, "fit_")
        rows, _ = checks.triplets(number_questions(questions, self.objects_), len(self.embedding_))
        p = self.fit_.probability(rows)
        return np.stack([1 - p, p], axis=1)
