"""`nearer.fit` as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nearer import checks
from nearer._fit import fit
from nearer.errors import InvalidInput
from nearer.estimators.naming import number_questions
from nearer.estimators.triplet_estimator import TripletEstimator
from nearer.fitting.device import Device
from nearer.fitting.losses import Floats
from nearer.fitting.on_gpu import GpuPasses
from nearer.fitting.solver import Fit, Passes

__all__ = ["OrdinalEmbedding"]


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
        passes: Passes | GpuPasses,
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
