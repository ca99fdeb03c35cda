"""Embedders of answered triplets as scikit-learn estimators; the mathematics is in `fitting`.

All of them take ``(m, 3)`` rows (head, near, far), or questions (head, a, b) with ``y`` that says
whether a is nearer, so `sklearn.model_selection.cross_val_score` works with either.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state

from nearer import checks
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.solver import Fit, disobeyed, fit_positions
from nearer.fitting.starts import fit_from_above, random_start, ranking_start, triplet_ranks

__all__ = ["CKL", "GNMDS", "SOE", "STE", "TSTE", "OrdinalEmbedding", "TripletEstimator"]


class TripletEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What all embedders of triplets share."""

    embedding_: Floats

    def fit(
        self,
        triplets: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        init: ArrayLike | None = None,
        n_objects: int | None = None,
    ) -> Self:
        """Find positions.

        Parameters
        ----------
        triplets
            ``(m, 3)`` rows (head, near, far), or questions (head, a, b) when `y` is given.
        y
            One answer a question: True or 1 where a is nearer, False, 0 or -1 where b is.
        sample_weight
            One non-negative number a triplet.
        init, n_objects
            Where given, they go before the constructor's.
        """
        rows = answered(triplets, y)
        rows, n = checks.triplets(rows, n_objects if n_objects is not None else self.n_objects)
        d = checked_components(self.n_components, n)
        weights = checks.weights(sample_weight, len(rows))
        self.n_contradictions_ = warn_about(rows, n)
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        fit = self._embed(rows, n, d, weights, generator, self.init if init is None else init)
        self.embedding_ = fit.positions
        self.stress_ = fit.loss
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self.n_features_in_ = 3
        if fit.interrupted:
            warnings.warn(
                f"interrupted after {fit.n_iter} steps: the best positions so far are kept",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif not fit.converged:
            warnings.warn(
                f"max_iter={self.max_iter} steps were not enough; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _embed(
        self,
        rows: NDArray[np.int32],
        n: int,
        d: int,
        weights: Floats,
        rng: np.random.Generator,
        init: Any,
    ) -> Fit:
        raise NotImplementedError

    def fit_transform(
        self, triplets: ArrayLike, y: ArrayLike | None = None, **options: Any
    ) -> Floats:
        """Find positions and return them."""
        return self.fit(triplets, y, **options).embedding_

    def transform(self, triplets: ArrayLike | None = None) -> Floats:
        """Return the positions found; triplets are not looked at, pipelines pass them."""
        check_is_fitted(self, "embedding_")
        return self.embedding_

    def predict(self, questions: ArrayLike) -> NDArray[np.bool_]:
        """Answer questions (head, a, b) by the positions: True where a is nearer."""
        check_is_fitted(self, "embedding_")
        rows, _ = checks.triplets(questions, len(self.embedding_))
        return ~disobeyed(self.embedding_, rows)

    def score(
        self,
        triplets: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Share of answers that the positions obey."""
        rows = answered(triplets, y)
        weights = checks.weights(sample_weight, len(rows))
        return float(weights @ self.predict(rows) / weights.sum())


class _LossEstimator(TripletEstimator):
    """An embedder that minimises one loss."""

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_init: int = 1,
        init: ArrayLike | str = "above",
        max_iter: int = 2000,
        tol: float = 1e-9,
        random_state: Any = None,
        n_objects: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_objects = n_objects
        self.verbose = verbose

    def _loss(self) -> Loss:
        return Loss(type(self).__name__.lower())

    def _embed(
        self,
        rows: NDArray[np.int32],
        n: int,
        d: int,
        weights: Floats,
        rng: np.random.Generator,
        init: Any,
    ) -> Fit:
        if self.n_init < 1:
            raise InvalidInput(f"n_init={self.n_init}: must be at least 1")
        options: dict[str, Any] = {
            "loss": self._loss(),
            "weights": weights,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "callback": _report if self.verbose else None,
        }
        fits = []
        for start_rng in rng.spawn(self.n_init):
            if isinstance(init, str) and init == "above":
                fits.append(fit_from_above(rows, n, d, rng=start_rng, **options))
            else:
                start = _start(init, rows, n, d, start_rng)
                fits.append(fit_positions(rows, n, start=start, **options))
            if fits[-1].interrupted or not isinstance(init, str):
                break  # the same array again would give the same positions again
        return min(fits, key=lambda fit: fit.loss)


_COMMON = """
    Parameters
    ----------
    n_components
        Dimension of the positions.
    n_init
        How many starts; the one with the smallest loss is kept.
    init
        ``"above"`` comes down from a few dimensions more, ``"random"`` starts from a random
        cloud, ``"rankings"`` from the rankings that the answers suggest; or an array.
    max_iter, tol
        Steps of the optimiser, and the gain of a step, relative to the loss, that ends it.
    random_state
        Seed, `numpy.random.RandomState` or None.
    n_objects
        How many objects there are; None: the largest index plus one.
    verbose
        Print the loss after every hundredth step.

    Attributes
    ----------
    embedding_
        ``(n_objects, n_components)`` positions.
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


class CKL(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Crowd kernel: odds are ratios of squared distances (Tamuz et al. 2011).

    ``mu`` is added to both squared distances.
{_COMMON}{_example("CKL")}"""

    def __init__(
        self,
        n_components: int = 2,
        *,
        mu: float = 0.05,
        n_init: int = 1,
        init: ArrayLike | str = "above",
        max_iter: int = 2000,
        tol: float = 1e-9,
        random_state: Any = None,
        n_objects: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_components,
            n_init=n_init,
            init=init,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            n_objects=n_objects,
            verbose=verbose,
        )
        self.mu = mu

    def _loss(self) -> Loss:
        return Loss("ckl", self.mu)


class GNMDS(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Generalised non-metric MDS, on squared distances (Agarwal et al. 2007).
{_COMMON}{_example("GNMDS")}"""


class STE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Stochastic triplet embedding (van der Maaten, Weinberger 2012).
{_COMMON}{_example("STE")}"""


class TSTE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Stochastic triplet embedding with Student's t (van der Maaten, Weinberger 2012).

    ``alpha`` is the degrees of freedom.
{_COMMON}{_example("TSTE")}"""

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        n_init: int = 1,
        init: ArrayLike | str = "above",
        max_iter: int = 2000,
        tol: float = 1e-9,
        random_state: Any = None,
        n_objects: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_components,
            n_init=n_init,
            init=init,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            n_objects=n_objects,
            verbose=verbose,
        )
        self.alpha = alpha

    def _loss(self) -> Loss:
        return Loss("tste", self.alpha)


class OrdinalEmbedding(TripletEstimator):
    """Positions from any answers, exact or noisy, with nothing to choose but the dimension.

    How answers get wrong, how often, and how widely objects spread is chosen by held-out answers
    (`nearer.fitting.belief`).

    Parameters
    ----------
    n_components
        Dimension of the positions.
    max_iter, tol
        Steps of the optimiser in the last fit, and the gain that ends it.
    random_state
        Seed, `numpy.random.RandomState` or None.
    n_objects
        How many objects there are; None: the largest index plus one.

    Attributes
    ----------
    embedding_, stress_, n_iter_, converged_, n_contradictions_
        As in `SOE`; `stress_` is the mean negative log-likelihood.
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

    def __init__(
        self,
        n_components: int = 2,
        *,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: Any = None,
        n_objects: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_objects = n_objects

    init = None  # positions are always found by coming down from above

    def _embed(
        self,
        rows: NDArray[np.int32],
        n: int,
        d: int,
        weights: Floats,
        rng: np.random.Generator,
        init: Any,
    ) -> Fit:
        if init is not None:
            raise InvalidInput("init: OrdinalEmbedding finds its own start; use SOE for yours")
        rows, weights = rows[weights > 0], weights[weights > 0]
        belief = Belief(n, d, rng)
        belief.learn(rows, weights=weights)
        noise, held_out = belief.fit.noise, belief.held_out
        fit = fit_positions(
            rows,
            n,
            loss=noise.loss,
            start=belief.fit.positions,
            weights=weights,
            ridge=noise.ridge(float(weights.sum())),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.fit_ = replace(belief.fit, positions=fit.positions)
        self.noise_ = noise.lapse
        self.held_out_accuracy_ = np.nan if held_out is None else held_out.accuracy
        return fit

    def predict_proba(self, questions: ArrayLike) -> Floats:
        """Probabilities of "b is nearer" and "a is nearer", one row a question."""
        check_is_fitted(self, "fit_")
        rows, _ = checks.triplets(questions, len(self.embedding_))
        p = self.fit_.probability(rows)
        return np.stack([1 - p, p], axis=1)


def answered(triplets: ArrayLike, y: ArrayLike | None) -> NDArray[Any]:
    """Rows (head, near, far) from triplets, or from questions and answers."""
    rows = np.asarray(triplets)
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


def checked_components(d: Any, n: int) -> int:
    """Insist on a dimension that n objects can span."""
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
        raise InvalidInput(f"n_components={d!r}: must be a whole number, at least 1")
    if d > n - 1:
        raise InvalidInput(
            f"n_components={d}: {n} objects span at most {n - 1} dimensions; lower n_components"
        )
    return int(d)


def warn_about(rows: NDArray[np.int32], n: int) -> int:
    """Warn of contradictions and objects never compared; return how many contradict."""
    contradictions = _count_contradictions(rows, n)
    if contradictions:
        warnings.warn(
            f"{contradictions} questions have both answers; the fit weighs one against the other",
            AnswersWarning,
            stacklevel=3,
        )
    unseen = np.flatnonzero(np.bincount(rows.ravel(), minlength=n) == 0)
    if len(unseen):
        some = ", ".join(map(str, unseen[:10])) + (", …" if len(unseen) > 10 else "")
        warnings.warn(
            f"objects never compared: {some} ({len(unseen)} in all); their positions mean "
            "nothing; add triplets or drop them",
            AnswersWarning,
            stacklevel=3,
        )
    return contradictions


def _count_contradictions(rows: NDArray[np.int32], n: int) -> int:
    """How many questions, either way round, have both answers."""
    head, near, far = (rows[:, c].astype(np.int64) for c in range(3))
    swapped = near > far
    key = 2 * ((head * n + np.minimum(near, far)) * n + np.maximum(near, far)) + swapped
    key = np.unique(key)
    return int(np.sum((key[1:] ^ key[:-1]) == 1))


def _start(init: Any, rows: NDArray[np.int32], n: int, d: int, rng: np.random.Generator) -> Floats:
    if not isinstance(init, str):
        start = np.asarray(init, dtype=np.float64)
        if start.shape != (n, d):
            raise InvalidInput(f"init of shape {start.shape}: must be ({n}, {d})")
        return start
    if init == "random":
        return random_start(n, d, rng)
    if init == "rankings":
        return ranking_start(triplet_ranks(rows, n), d)
    raise InvalidInput(f"init={init!r}: must be 'above', 'random', 'rankings' or an array")


def _report(step: int, loss: float) -> None:
    if step % 100 == 0:
        print(f"step {step}: loss {loss:.3e}")  # noqa: T201 - what verbose asks for
