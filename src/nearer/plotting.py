"""Pictures: the axes of a basis on a map, and a map beside the true one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from nearer.algorithms.basis import Basis
from nearer.distances import as_points
from nearer.errors import InvalidInput
from nearer.metrics import procrustes

__all__ = ["plot_basis", "plot_positions", "plot_world"]

_GREY = "#b9bec6"
_COLOURS = ["#d1495b", "#2e6f9e", "#3f8f5b", "#e09f3e", "#7d5ba6", "#4f5d75"]
_CONTINENTS = {
    "AF": ("Africa", "#e09f3e"),
    "AN": ("Antarctica", "#9aa5b1"),
    "AS": ("Asia", "#d1495b"),
    "EU": ("Europe", "#2e6f9e"),
    "NA": ("North America", "#3f8f5b"),
    "OC": ("Oceania", "#7d5ba6"),
    "SA": ("South America", "#1b998b"),
}
_NAMED = ("London", "New York City", "São Paulo", "Lagos", "Moscow", "Beijing", "Tokyo", "Sydney")


def plot_positions(
    positions: ArrayLike, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw positions as a map: their two directions of greatest spread.

    Examples
    --------
    >>> import nearer
    >>> ax = plot_positions(nearer.datasets.make_cube(50, 3, random_state=0))
    >>> len(ax.collections)
    1
    """
    ax = _axes(ax)
    flat = _flatten(as_points(positions))
    ax.scatter(flat[:, 0], flat[:, 1], s=14, color=_COLOURS[1], alpha=0.75, linewidths=0)
    for (x, y), label in zip(flat, labels or (), strict=False):
        ax.annotate(label, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=7)
    return _bare(ax)


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
    ax = _axes(ax)
    flat = _flatten(as_points(positions))
    ax.scatter(flat[:, 0], flat[:, 1], s=10, color=_GREY, linewidths=0)
    for i, axis in enumerate(basis.axes):
        colour = _COLOURS[i % len(_COLOURS)]
        x, y = flat[axis.members].T
        ax.plot(x, y, "o-", color=colour, ms=4, lw=1, alpha=0.85, label=f"axis {i + 1}")
        ends = [0, -1]
        ax.scatter(x[ends], y[ends], s=70, marker="s", color=colour, edgecolors="white", zorder=3)
    if basis.axes:
        ax.legend(frameon=False, fontsize=9, loc="best")
    return _bare(ax)


def plot_world(positions: ArrayLike, cities: Any, *, title: str = "") -> Figure:
    """The map of `nearer.datasets.load_cities` and, beside it, the one that positions give.

    Three dimensions or more are laid over the globe and read as latitude and longitude; two are
    laid over the flat map.

    Examples
    --------
    >>> import nearer
    >>> cities = nearer.datasets.load_cities()
    >>> figure = plot_world(cities.points, cities)
    >>> [ax.get_title() for ax in figure.axes]
    ['the world', 're-drawn from comparisons alone']
    """
    embedded = as_points(positions)
    if len(embedded) != len(cities.points):
        raise InvalidInput(f"{len(embedded)} positions: the map has {len(cities.points)} cities")
    truth = np.stack([cities.longitude, cities.latitude], axis=1)
    if embedded.shape[1] >= 3:
        x, y, z = procrustes(cities.points, embedded).aligned[:, :3].T
        redrawn = np.degrees(np.stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))], axis=1))
    else:
        redrawn = procrustes(truth, embedded).aligned[:, :2]
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_world(left, truth, cities)
    _draw_world(right, redrawn, cities)
    for ax in (left, right) if embedded.shape[1] >= 3 else (left,):
        ax.set(xlim=(-182, 182), ylim=(-92, 92), aspect="equal", adjustable="box")
    left.set_title("the world")
    right.set_title("re-drawn from comparisons alone")
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=7, frameon=False)
    if title:
        figure.suptitle(title)
    return figure


def _draw_world(ax: Axes, where: NDArray[np.float64], cities: Any) -> None:
    continents = np.array(cities.continents)
    for code, (name, colour) in _CONTINENTS.items():
        x, y = where[continents == code].T
        ax.scatter(x, y, s=12, color=colour, alpha=0.8, linewidths=0, label=name)
    for name in _NAMED:
        if name in cities.names:
            ax.annotate(
                name,
                where[cities.names.index(name)],
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=8,
            )
    _bare(ax)


def _flatten(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two columns: the points themselves, or their two principal directions."""
    if points.shape[1] == 1:
        return np.concatenate([points, np.zeros_like(points)], axis=1)
    if points.shape[1] == 2:
        return points
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ directions[:2].T)


def _axes(ax: Axes | None) -> Axes:
    return Figure(figsize=(6, 6), layout="constrained").subplots() if ax is None else ax


def _bare(ax: Axes) -> Axes:
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color("#d9dce1")
    return ax
