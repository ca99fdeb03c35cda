"""How well each number of dimensions explained the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from nearer.plotting.canvas import new_axes

if TYPE_CHECKING:
    from nearer._dimension import DimensionEstimate

__all__ = ["SCORES", "plot_dimension"]

SCORES = {  # what the scores of a dimension estimate are, by its method
    "exact": "log-loss of held-out answers",
    "held-out": "log-loss of held-out answers",
    "cross-validated test": "accuracy on held-out answers",
    "low-rank": "size of the direction",
}


def plot_dimension(estimate: DimensionEstimate, ax: Axes | None = None) -> Axes:
    """Draw the score of every dimension tried, with two standard errors.

    The dimensions that cannot be told apart are shaded.
    """
    if ax is None:
        ax = new_axes(5, 3.5)
    tried, d = estimate.dimensions, estimate.dimension
    low, high = estimate.dimension_low, min(estimate.dimension_high, int(tried[-1]))
    ax.errorbar(tried, estimate.scores, 2 * estimate.errors, marker="o", capsize=3)
    ax.axvspan(low - 0.5, max(low, high) + 0.5, color="0.93", zorder=-1)
    ax.axvline(d, linestyle="--", color="0.5")
    span = f"{d}" if estimate.determined else f"{low} to {estimate.dimension_high}"
    ax.set(xlabel="dimensions", ylabel=SCORES[estimate.method], title=f"estimate: {span}")
    ax.set_xticks(tried)
    return ax
