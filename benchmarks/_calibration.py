"""Whether predicted probabilities come true.

Predictions are put into bins by their probability, from one half to one. In a calibrated bin the
share of predictions that come true is their mean probability. The expected calibration error is
the mean distance between the two, each bin counting by its predictions. It is never zero: in m
predictions even perfect probabilities miss by about √(2 p (1 − p) · bins / (π m)), .01 for ten
bins and 10,000 predictions of .8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.errors import InvalidInput
from nearer.fitting.solver import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityDiagram", "reliability_diagram"]


@dataclass(frozen=True)
class ReliabilityDiagram:
    """Predicted probabilities beside what came true, bin by bin.

    Attributes
    ----------
    predicted, observed
        Mean probability of the likelier answer, and how often it was given, for each bin.
    counts
        Predictions in each bin; empty bins are left out.
    """

    predicted: Floats
    observed: Floats
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.counts))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw observed shares over predicted probabilities; calibrated is the diagonal."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(4, 4), layout="constrained").subplots()
        ax.plot([0.5, 1], [0.5, 1], color="0.7")
        ax.plot(self.predicted, self.observed, marker="o")
        ax.set(
            xlabel="predicted probability",
            ylabel="share that came true",
            title=f"calibration error {self.error:.3f}",
        )
        return ax


def reliability_diagram(
    probability: ArrayLike,
    came_true: ArrayLike,
    *,
    n_bins: int = 10,
    equal: Literal["width", "mass"] = "width",
) -> ReliabilityDiagram:
    """Compare predicted probabilities with what came true.

    Parameters
    ----------
    probability
        The predicted probability of each answer.
    came_true
        Whether that answer was given.
    n_bins
        Bins between one half and one.
    equal
        ``"width"``: bins are equally wide; ``"mass"``: they hold equally many predictions.

    Examples
    --------
    >>> diagram = reliability_diagram([0.8] * 10, [True] * 7 + [False] * 3)
    >>> round(diagram.error, 3)
    0.1
    """
    p, hit = np.asarray(probability, dtype=np.float64), np.asarray(came_true, dtype=np.bool_)
    if p.shape != hit.shape or p.ndim != 1 or not len(p) or not ((p >= 0) & (p <= 1)).all():
        raise InvalidInput(
            f"probabilities of shape {p.shape} and outcomes of shape {hit.shape}: give one "
            "probability from 0 to 1 and one boolean for each prediction"
        )
    sure = np.maximum(p, 1 - p)
    right = np.where(p >= 0.5, hit, ~hit)
    place = (sure - 0.5) * 2 if equal == "width" else np.argsort(np.argsort(sure)) / len(sure)
    bins = np.minimum((place * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    seen = counts > 0
    predicted = np.bincount(bins, sure, n_bins)[seen] / counts[seen]
    observed = np.bincount(bins, right, n_bins)[seen] / counts[seen]
    return ReliabilityDiagram(predicted, observed, counts[seen])
