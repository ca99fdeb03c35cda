"""The axes of a basis on a map of the objects."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from nearer.algorithms.basis import Basis
from nearer.plotting.canvas import COLOURS, GREY, bare, new_axes
from nearer.plotting.given import check_axes
from nearer.plotting.projection import project

__all__ = ["plot_basis"]


def plot_basis(basis: Basis, positions: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw the axes of a basis on a map of the objects, as in the paper's Figure 1.

    Parameters
    ----------
    basis
        What `nearer.choose_basis` returned.
    positions
        Where to draw the objects: true points if they are known, else coordinates. More than two
        dimensions are shown from the side of their greatest spread.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import nearer
    >>> X = nearer.datasets.make_cube(200, 2, random_state=0)
    >>> basis = nearer.run(nearer.choose_basis(200, random_state=0), nearer.PointOracle(X))
    >>> ax = plot_basis(basis, X)
    >>> len(ax.lines)
    2
    """
    check_axes(ax)
    ax = new_axes() if ax is None else ax
    flat = project(positions, most=2).places
    if flat.shape[1] == 1:
        flat = np.pad(flat, [(0, 0), (0, 1)])
    ax.scatter(flat[:, 0], flat[:, 1], s=10, color=GREY, linewidths=0)
    for i, axis in enumerate(basis.axes):
        colour = COLOURS[i % len(COLOURS)]
        x, y = flat[axis.members].T
        ax.plot(x, y, "o-", color=colour, ms=4, lw=1, alpha=0.85, label=f"axis {i + 1}")
        ends = [0, -1]
        ax.scatter(x[ends], y[ends], s=70, marker="s", color=colour, edgecolors="white", zorder=3)
    if basis.axes:
        ax.legend(frameon=False, fontsize=9, loc="best")
    return bare(ax)
