"""Pictures: the axes of a basis on a map, and a map beside the true one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike, NDArray

from nearer.algorithms.basis import Basis
from nearer.distances import as_points
from nearer.errors import InvalidInput
from nearer.files import write_bytes
from nearer.metrics import procrustes

if TYPE_CHECKING:
    from nearer._dimension import DimensionEstimate

__all__ = ["plot_basis", "plot_dimension", "plot_positions", "plot_world", "save"]

_95_OF_A_LINE = 1.96  # standard deviations that hold 95 % of a Gaussian on a line,
_95_OF_A_PLANE = 2.448  # and in the plane: the root of 5.991, of χ² with two degrees of freedom
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


_SCORES = {  # what the scores of a dimension estimate are, by its method
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
        ax = Figure(figsize=(5, 3.5), layout="constrained").subplots()
    tried, d = estimate.dimensions, estimate.dimension
    low, high = estimate.dimension_low, min(estimate.dimension_high, int(tried[-1]))
    ax.errorbar(tried, estimate.scores, 2 * estimate.errors, marker="o", capsize=3)
    ax.axvspan(low - 0.5, max(low, high) + 0.5, color="0.93", zorder=-1)
    ax.axvline(d, linestyle="--", color="0.5")
    span = f"{d}" if estimate.determined else f"{low} to {estimate.dimension_high}"
    ax.set(xlabel="dimensions", ylabel=_SCORES[estimate.method], title=f"estimate: {span}")
    ax.set_xticks(tried)
    return ax


def plot_positions(
    positions: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    covariances: NDArray[np.float64] | None = None,
    pictures: Sequence[str | Path] | None = None,
    colour: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw positions as a map: their two directions of greatest spread.

    One dimension is drawn from left to right, the objects in their order from bottom to top.

    The axes say which directions these are, and how much of the spread each carries.

    Parameters
    ----------
    positions
        ``(n, d)``.
    labels
        What to write beside each object.
    covariances
        ``(n, d, d)`` uncertainty of each position, drawn as an ellipse (on a line, a bar) that
        holds 95 % of it.
    pictures
        An image file for each object, drawn at its place in the stead of a dot and a label.
    colour
        A class or a number for each object: classes get a colour each and a legend, numbers
        (fractions) a scale.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import nearer
    >>> ax = plot_positions(nearer.datasets.make_cube(50, 3, random_state=0))
    >>> len(ax.collections), ax.get_xlabel()
    (1, 'direction 1 of 3 (43 % of the spread)')
    """
    ax = _axes(ax, size=8 if labels is not None or pictures is not None else 6)
    points = as_points(positions)
    directions = _directions(points)
    flat = points @ directions
    if points.shape[1] == 1:  # each at a height of its own, so that none covers another
        flat[:, 1] = np.argsort(np.argsort(flat[:, 0], kind="stable"))
    _dots(ax, flat, colour)
    if covariances is not None:
        spread = np.einsum("di,ndk,kj->nij", directions, covariances, directions)
        _draw_doubt(ax, flat, spread, points.shape[1])
    if pictures is not None:
        for place, file in zip(flat, pictures, strict=True):
            _place_picture(ax, place, file)
    else:
        for place, label in zip(flat, labels or (), strict=False):
            how: dict[str, Any] = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 7}
            ax.annotate(label, place, **how)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8)
    _name_axes(ax, points, flat)
    _bare(ax)
    if points.shape[1] == 1:
        ax.set_aspect("auto")
    return ax


def _dots(ax: Axes, flat: NDArray[np.float64], colour: ArrayLike | None) -> None:
    look: dict[str, Any] = {"s": 14, "alpha": 0.75, "linewidths": 0}
    if colour is None:
        ax.scatter(flat[:, 0], flat[:, 1], color=_COLOURS[1], **look)
        return
    values = np.asarray(colour)
    if values.shape != (len(flat),):
        raise InvalidInput(
            f"colour of shape {values.shape}: must be one class or number for each of the "
            f"{len(flat)} objects"
        )
    if values.dtype.kind == "f":
        drawn = ax.scatter(flat[:, 0], flat[:, 1], c=values, cmap="viridis", **look)
        figure = ax.get_figure(root=True)
        assert figure is not None
        figure.colorbar(drawn, ax=ax, shrink=0.6)
        return
    for i, kind in enumerate(np.unique(values).tolist()):
        x, y = flat[values == kind].T
        ax.scatter(x, y, color=_COLOURS[i % len(_COLOURS)], label=str(kind), **look)


def _draw_doubt(ax: Axes, flat: NDArray[np.float64], spread: NDArray[np.float64], d: int) -> None:
    """What holds 95 % of each position, with a line in the legend that says so."""
    if d == 1:
        half = _95_OF_A_LINE * np.sqrt(spread[:, 0, 0])
        x = flat[:, 0]
        ax.hlines(flat[:, 1], x - half, x + half, color=_COLOURS[1], alpha=0.3, lw=3, label="95 %")
        return
    for i, (centre, covariance) in enumerate(zip(flat, spread, strict=True)):
        ellipse = _ellipse(centre, covariance)
        if i == 0:
            ellipse.set_label("95 %")
        ax.add_patch(ellipse)


def _name_axes(ax: Axes, points: NDArray[np.float64], flat: NDArray[np.float64]) -> None:
    """Say which directions are shown, and the share of the variance that each carries."""
    d, total = points.shape[1], float(points.var(axis=0).sum())
    for axis, variance in zip((ax.xaxis, ax.yaxis), flat.var(axis=0).tolist()[:d], strict=False):
        number = 1 if axis is ax.xaxis else 2
        name = f"direction {number} of {d}" if d > 2 else f"dimension {number}"
        share = f" ({variance / total:.0%} of the spread)" if total > 0 else ""
        axis.set_label_text(name + share.replace("%", " %"), fontsize=8)


def _ellipse(centre: NDArray[np.float64], covariance: NDArray[np.float64]) -> Ellipse:
    variance, turn = np.linalg.eigh(covariance)
    width, height = 2 * _95_OF_A_PLANE * np.sqrt(np.maximum(variance, 0))
    angle = float(np.degrees(np.arctan2(turn[1, 0], turn[0, 0])))
    x, y = centre
    return Ellipse((x, y), width, height, angle=angle, color=_COLOURS[1], alpha=0.12, linewidth=0)


def _place_picture(ax: Axes, place: NDArray[np.float64], file: str | Path) -> None:
    try:
        image = imread(file)
    except (OSError, ValueError, SyntaxError) as error:  # the last is how PNG readers complain
        raise InvalidInput(f"{file}: is no picture that can be read: {error}") from error
    zoom = 40 / max(image.shape[:2])
    box = AnnotationBbox(OffsetImage(image, zoom=zoom), (place[0], place[1]), frameon=False)
    ax.add_artist(box)


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
    points = as_points(positions)
    flat = points @ _directions(points)
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


def _directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(d, 2)``: what shows the points on a plane, those with two dimensions as they are."""
    d = points.shape[1]
    if d <= 2:
        return np.eye(d, 2)
    _, _, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    return np.asarray(directions[:2].T)


def as_png(drawn: Axes | Figure) -> bytes:
    """A figure, or the one that holds some axes, as a PNG file: the same picture, the same file."""
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    assert figure is not None
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=130, metadata={"Software": None})
    return sink.getvalue()


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure that holds some axes."""
    write_bytes(path, as_png(ax))


def _axes(ax: Axes | None, size: float = 6) -> Axes:
    return Figure(figsize=(size, size), layout="constrained").subplots() if ax is None else ax


def _bare(ax: Axes) -> Axes:
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color("#d9dce1")
    return ax
