"""How well each number of dimensions explained the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from nearer.plotting.canvas import new_axes
from nearer.plotting.given import check_axes

if TYPE_CHECKING:
    from nearer._dimension import DimensionEstimate

__all__ = ["SCORES", "plot_dimension"]

SCORES = {  # what the scores of a dimension estimate are, by its method
    "exact": "log-loss of held-out answers",
    "held-out": "log-loss of held-out answers",
}

_SHADE = "0.93"


def plot_dimension(estimate: DimensionEstimate, ax: Axes | None = None) -> Axes:
    """Draw the score of every dimension tried, with two standard errors.

    The dimensions that cannot be told apart are shaded; where some of them were not tried, the
    shade goes on to the edge and the title says so. Where nothing was held out there is no score.
    """
    check_axes(ax)
    if ax is None:
        ax = new_axes(5, 3.5)
    tried, d = estimate.dimensions, estimate.dimension
    low, high, last = estimate.dimension_low, estimate.dimension_high, max(int(tried[-1]), d)
    ax.set(xlabel="dimensions", ylabel=SCORES[estimate.method])
    if np.isfinite(estimate.scores).any():
        ax.errorbar(tried, estimate.scores, 2 * estimate.errors, marker="o", capsize=3)
    else:
        told = ax.text(0.5, 0.5, "nothing was held out", transform=ax.transAxes, ha="center")
        told.set_backgroundcolor(_SHADE)
        ax.set(yticks=[], ylabel="")
    ax.axvspan(low - 0.5, min(high, last) + 0.5, color=_SHADE, zorder=-1)
    ax.axvline(d, linestyle="--", color="0.5")
    span = f"{d}" if estimate.determined else f"{low} to {high}"
    if high > last:
        span += f", above {last} not tried"
        ax.set_xlim(right=last + 0.5)
    ax.set_title(f"estimate: {span}")
    ax.set_xticks(tried)
    return ax
