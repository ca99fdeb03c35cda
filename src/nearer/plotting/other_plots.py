"""The axes of a basis, the world beside its embedding, the evidence for a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.algorithms.basis import Basis
from nearer.checks import as_points
from nearer.dimension import DimensionEstimate
from nearer.errors import InvalidInput
from nearer.metrics import procrustes
from nearer.plotting.canvas import COLOURS, GREY, axes_on, bare, read_inputs

_SHADE = "0.93"

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


def plot_basis(basis: Basis, positions: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw the axes of a basis on a map of the objects, as in the paper's Figure 1.

    Parameters
    ----------
    basis
        What `nearer.choose_basis` returned.
    positions
        Where to draw the objects: true points if they are known, else coordinates. More than two
        dimensions are shown along the two directions of greatest variance.
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
    checks.one("basis", basis, "axes", "what nearer.choose_basis finds")
    ax, flat = axes_on(ax), _flat(positions)
    checks.whole("n_objects", len(flat), least=basis.n_objects, rule="as many as the basis has")
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


def _flat(positions: ArrayLike) -> NDArray[np.float64]:
    """Positions along the two directions of their greatest variance."""
    places = read_inputs(positions, most=2).places
    return np.pad(places, [(0, 0), (0, 2 - places.shape[1])])


def plot_dimension(estimate: DimensionEstimate, ax: Axes | None = None) -> Axes:
    """Draw the score of every dimension tried, with two standard errors.

    The dimensions that the answers do not distinguish are shaded. If some of them were not tried,
    the shade ends at the edge and the title says so. If nothing was held out, there is no score.
    """
    ax = axes_on(ax, 5, 3.5)
    rule = "what nearer.estimate_dimension returns"
    checks.one("estimate", estimate, DimensionEstimate, rule)
    tried, d = estimate.dimensions, estimate.dimension
    low, high, last = estimate.dimension_low, estimate.dimension_high, max(int(tried[-1]), d)
    ax.set(xlabel="dimensions", ylabel="log-loss of held-out answers")
    if np.isfinite(estimate.scores).any():
        ax.errorbar(tried, estimate.scores, 2 * estimate.errors, marker="o", capsize=3)
    else:
        style: Any = {"transform": ax.transAxes, "ha": "center", "backgroundcolor": _SHADE}
        ax.text(0.5, 0.5, "nothing was held out", **style)
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


def plot_world(positions: ArrayLike, cities: Any) -> Figure:
    """Draw the map of `nearer.datasets.load_cities` and, beside it, that of the positions.

    Three dimensions or more are aligned with the globe and drawn by latitude and longitude; two are
    aligned with the flat map.

    Examples
    --------
    >>> import nearer
    >>> cities = nearer.datasets.load_cities()
    >>> figure = plot_world(cities.points, cities)
    >>> [ax.get_title() for ax in figure.axes]
    ['the world', 're-drawn from comparisons alone']
    """
    checks.one("cities", cities, "longitude", "what nearer.datasets.load_cities returns")
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
    left.set_title("the world")
    right.set_title("re-drawn from comparisons alone")
    for ax, where in ((left, truth), (right, redrawn)):
        for code, (name, colour) in _CONTINENTS.items():
            x, y = where[np.array(cities.continents) == code].T
            ax.scatter(x, y, s=12, color=colour, alpha=0.8, linewidths=0, label=name)
        for i in [cities.names.index(name) for name in _NAMED if name in cities.names]:
            style: Any = {"textcoords": "offset points", "fontsize": 8}
            ax.annotate(cities.names[i], where[i], (4, 4), **style)
        bare(ax)
    for ax in (left, right) if embedded.shape[1] >= 3 else (left,):
        ax.set(xlim=(-182, 182), ylim=(-92, 92), aspect="equal", adjustable="box")
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=7, frameon=False)
    return figure


def plot_comparison(comparison: Any, ax: Axes | None = None) -> Axes:
    """Draw two maps in one frame; arrows lead from the first to the second.

    Objects that moved (below 0.05) are in colour. More than two dimensions are shown along the two
    directions of greatest variance.
    """
    checks.one("comparison", comparison, "moved", "what nearer.compare returns")
    ax, n = axes_on(ax), len(comparison.first)
    flat = _flat(np.concatenate([comparison.first, comparison.second]))
    for i, (p, name) in enumerate(zip(comparison.moved, comparison.names, strict=True)):
        colour = COLOURS[0] if p <= 0.05 else GREY
        ax.annotate("", flat[n + i], flat[i], arrowprops={"arrowstyle": "->", "color": colour})
        ax.annotate(str(name), flat[i], fontsize=8, color=colour)
    ax.scatter(flat[:n, 0], flat[:n, 1], s=10, color=GREY, linewidths=0)
    if np.isfinite(comparison.p_differ):
        ax.set_title(f"the groups differ: p = {comparison.p_differ:.3f}", fontsize=10)
    return bare(ax)


def plot_people(weights: ArrayLike, names: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw how much the first two axes count for each person, as INDSCAL does.

    On the diagonal both count as much as for the average person. Scales are logarithmic.

    Examples
    --------
    >>> plot_people([[2.0, 0.5], [0.5, 2.0]], ["Ann", "Bea"]).get_xlabel()
    'weight of axis 1'
    """
    ax = axes_on(ax)
    shown, names = as_points(weights)[:, :2], np.atleast_1d(checks.as_array(names))
    if len(names) != len(shown):
        raise InvalidInput(f"{len(names)} names of {len(shown)} people; give one for each")
    has_two = shown.shape[1] == 2
    shown = shown if has_two else np.pad(shown, [(0, 0), (0, 1)], constant_values=1)
    ax.scatter(shown[:, 0], shown[:, 1], s=14, color=COLOURS[0])
    for name, place in zip(names.tolist(), shown, strict=True):
        ax.annotate(f" {name}", place, fontsize=8)
    ax.axline((1, 1), (2, 2), color=GREY, lw=1)
    ax.set(xlabel="weight of axis 1", ylabel="weight of axis 2" if has_two else "no second axis")
    ax.set(xscale="log", yscale="log")
    return ax
