"""What the next answers will bring: a curve through the accuracy so far.

Accuracy on questions the fit has not seen grows towards a ceiling like a power of the number of
answers, a(m) = ceiling − gap · (m/m₁)^(−power), m₁ the first point's m. The three numbers are those
that make the counts of right predictions most likely (binomial), weakly held to a power of 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats

__all__ = ["LearningCurve", "fit_learning_curve"]


@dataclass(frozen=True)
class LearningCurve:
    """Accuracy as a function of the number of answers.

    Attributes
    ----------
    ceiling
        What no number of answers exceeds.
    gap, power, first
        How far below the ceiling the curve is at `first` answers, and how fast it rises.
    """

    ceiling: float
    gap: float
    power: float
    first: float

    def accuracy(self, n_answers: ArrayLike) -> Floats:
        """Predicted share of unseen answers that will be predicted rightly."""
        m = np.maximum(np.asarray(n_answers, dtype=np.float64), 1.0)
        return np.asarray(np.maximum(self.ceiling - self.gap * (m / self.first) ** -self.power, 0))


def fit_learning_curve(
    n_answers: ArrayLike, n_predicted: ArrayLike, n_right: ArrayLike
) -> LearningCurve:
    """Fit a learning curve to counts of right predictions.

    Parameters
    ----------
    n_answers
        How many answers a fit had seen, for each point.
    n_predicted, n_right
        How many unseen answers it predicted, and how many rightly.

    Examples
    --------
    >>> import numpy as np
    >>> m = np.arange(500, 6000, 250)
    >>> curve = fit_learning_curve(m, np.full(len(m), 1000), 1000 * (0.88 - 2 / np.sqrt(m)))
    >>> round(float(curve.accuracy(10_000)), 2)
    0.86
    """
    m, tried, right = (np.asarray(x, dtype=np.float64) for x in (n_answers, n_predicted, n_right))
    if m.ndim != 1 or m.shape != tried.shape or m.shape != right.shape or len(m) < 3:
        raise InvalidInput(
            f"points of shapes {m.shape}, {tried.shape}, {right.shape}: a learning curve needs "
            "three equally long lists of at least 3 points"
        )
    first = float(m.min())

    def cost(x: Floats) -> float:
        p = np.clip(LearningCurve(x[0], x[1], x[2], first).accuracy(m), 1e-6, 1 - 1e-6)
        likelihood = right @ np.log(p) + (tried - right) @ np.log(1 - p)
        return float(-likelihood + 2 * (x[2] - 0.5) ** 2)

    overall = float(right.sum() / max(1.0, tried.sum()))
    start = np.array([min(0.99, overall + 0.05), 0.1, 0.5])
    found = minimize(cost, start, method="L-BFGS-B", bounds=[(0.5, 1.0), (0.0, 0.5), (0.1, 1.5)])
    ceiling, gap, power = (float(value) for value in found.x)
    return LearningCurve(ceiling, gap, power, first)
