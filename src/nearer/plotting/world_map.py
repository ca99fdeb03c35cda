"""The map of the world beside the one that positions give."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from nearer.distances import as_points
from nearer.errors import InvalidInput
from nearer.metrics import procrustes
from nearer.plotting.canvas import bare

__all__ = ["plot_world"]

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
        figure.suptitle(title, parse_math=False)
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
    bare(ax)
