"""What an asking that updates a belief returns: positions, and how well it predicted on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.embedding import Embedding, Phase
from nearer.fitting.belief import Belief
from nearer.questions import Objects

__all__ = ["LearningCurve", "believed"]


class LearningCurve:
    """Predictions of random questions made before their answers were seen."""

    def __init__(self) -> None:
        self._points: list[tuple[int, int, float, float]] = []

    def add(self, asked: int, right: NDArray[Any], logs: NDArray[np.float64]) -> None:
        """Note how far answers were predicted after so many, and their log-likelihoods."""
        if len(logs):
            self._points.append((asked, len(logs), float(right.sum()), float(logs.sum())))

    def table(self) -> NDArray[np.void]:
        """One row a round."""
        kinds: list[tuple[str, Any]] = [
            ("n_answers", np.int64),
            ("n_predicted", np.int64),
            ("n_right", np.float64),
            ("log_likelihood", np.float64),
        ]
        return np.array(self._points, dtype=kinds)


def believed(
    belief: Belief,
    triplets: Objects,
    seen: Objects,
    curve: LearningCurve,
    phase: Phase,
    **details: Any,
) -> Embedding:
    """The embedding that a belief has come to; `seen` are all objects that were asked about."""
    fit = belief.fit
    asked = np.isin(np.arange(len(fit.positions)), seen)
    low, high = belief.judge.span() if belief.held_out is not None else (1, len(asked) - 1)
    return Embedding(
        positions=fit.positions,
        triplets=triplets,
        n_comparisons=phase.n_comparisons,
        n_rounds=phase.n_rounds,
        history=(phase,),
        evidence=belief.evidence,
        determined=low == high,
        dimension_low=low,
        dimension_high=high,
        covariances=fit.covariances,
        error_rate=belief.error_rate,
        details={
            "posterior": fit,
            "covariances": fit.covariances,
            "noise": fit.noise,
            "error_rate": belief.error_rate,
            "learning_curve": curve.table(),
            "never_asked": np.flatnonzero(~asked),
            **details,
        },
    )
