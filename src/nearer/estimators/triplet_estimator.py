"""What all embedders of answered triplets share; the mathematics is in `fitting`.

All of them take ``(m, 3)`` rows (head, near, far), or questions (head, a, b) with ``y`` that says
whether a is nearer, so `sklearn.model_selection.cross_val_score` works with either.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state

from nearer import checks
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.losses import Floats
from nearer.fitting.solver import Fit, disobeyed
from nearer.questions import pack

__all__ = ["TripletEstimator", "answered", "warn_about"]


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
        d = checks.n_components(self.n_components, n)
        weights = checks.weights(sample_weight, len(rows))
        self.n_contradictions_ = warn_about(rows, n)
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        start = getattr(self, "init", None) if init is None else init
        fit = self._embed(rows, n, d, weights, generator, start)
        self.embedding_ = fit.positions
        self.stress_ = fit.loss
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self.n_features_in_ = 3
        if not fit.converged:
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


def warn_about(rows: NDArray[np.int32], n: int) -> int:
    """Warn of contradictions and objects never compared; return how many contradict."""
    keys, mirrored = pack(rows)
    seen = np.unique(2 * keys + mirrored)
    contradictions = int(np.sum((seen[1:] ^ seen[:-1]) == 1))
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
