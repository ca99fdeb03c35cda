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
    "exact": "share of answers disobeyed",
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
    ax: Axes | None = None,
) -> Axes:
    """Draw positions as a map: their two directions of greatest spread.

    Parameters
    ----------
    positions
        ``(n, d)``.
    labels
        What to write beside each object.
    covariances
        ``(n, d, d)`` uncertainty of each position, drawn as an ellipse of one standard deviation.
    pictures
        An image file for each object, drawn at its place in the stead of a dot and a label.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import nearer
    >>> ax = plot_positions(nearer.datasets.make_cube(50, 3, random_state=0))
    >>> len(ax.collections)
    1
    """
    ax = _axes(ax, size=8 if labels is not None or pictures is not None else 6)
    points = as_points(positions)
    directions = _directions(points)
    flat = points @ directions
    ax.scatter(flat[:, 0], flat[:, 1], s=14, color=_COLOURS[1], alpha=0.75, linewidths=0)
    if covariances is not None:
        spread = np.einsum("di,ndk,kj->nij", directions, covariances, directions)
        for centre, covariance in zip(flat, spread, strict=True):
            ax.add_patch(_ellipse(centre, covariance))
    if pictures is not None:
        for place, file in zip(flat, pictures, strict=True):
            _place_picture(ax, place, file)
    else:
        for place, label in zip(flat, labels or (), strict=False):
            ax.annotate(label, place, xytext=(3, 3), textcoords="offset points", fontsize=7)
    return _bare(ax)


def _ellipse(centre: NDArray[np.float64], covariance: NDArray[np.float64]) -> Ellipse:
    variance, turn = np.linalg.eigh(covariance)
    width, height = 2 * np.sqrt(np.maximum(variance, 0))
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
