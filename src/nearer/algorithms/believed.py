"""Strategies that update a belief: when they end, how well they predict, what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.fitting.belief import Belief
from nearer.metrics import share_interval
from nearer.questions import Objects

__all__ = ["LearningCurve", "Limits", "believed"]


@dataclass(frozen=True)
class Limits:
    """How much may be asked, how much at a time, and the expected τ that is enough."""

    budget: int
    round_size: int
    quality: float
    begun_with: tuple[int, ...] = ()  # earlier budgets of the run, in ascending order

    def next_size(self, asked: int) -> int:
        """How many are asked next; rounds end where an earlier budget ended."""
        until = next((most for most in self.begun_with if most > asked), self.budget)
        return min(self.round_size, until - asked, self.budget - asked)

    def good_enough(self, belief: Belief) -> bool:
        """Whether the expected τ is reached, in a dimension that is probably right."""
        good = self.quality < 1 and belief.expected_tau >= self.quality
        return good and not belief.may_lack_dimensions


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
    low, high = belief.span
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
        held_out=_held_out(belief),
        error_rate=belief.error_rate,
        details={
            "posterior": fit,
            "choices": belief.choices,
            "covariances": fit.covariances,
            "noise": fit.noise,
            "error_rate": belief.error_rate,
            "expected_tau": belief.expected_tau,
            "exact": belief.is_exact,
            "learning_curve": curve.table(),
            "never_asked": np.flatnonzero(~asked),
            **details,
        },
    )


def _held_out(belief: Belief) -> HeldOutAccuracy | None:
    """How well fits to a part predict the other answers, as if questions had been random."""
    held = belief.held_out
    if held is None:
        return None
    decided = int(np.isfinite(held.right).sum())
    low, high = share_interval(held.accuracy, held.effective_share * decided)
    return HeldOutAccuracy(held.accuracy, low, high, decided)
