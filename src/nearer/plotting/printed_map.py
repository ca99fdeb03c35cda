"""Maps to print: dots or pictures, names, what is not known of each place, colours.

Two dimensions are drawn as they are. One is drawn from left to right, each object on a row of its
own. More are drawn as a small grid of maps, one for each pair of the directions of greatest spread,
each as large as it can be.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.stats import chi2

from nearer.plotting.alphabets import all_letters, drawable
from nearer.plotting.canvas import COLOURS, GREY, bare, figure_of, new_axes
from nearer.plotting.given import (
    NO_VALUE,
    check_axes,
    check_given,
    check_title,
    read_colours,
    read_covariances,
)
from nearer.plotting.lettering import write_names
from nearer.plotting.projection import Projection, project
from nearer.plotting.thumbnails import read_thumbnail

__all__ = ["plot_positions"]

Floats = NDArray[np.float64]

_MARKERS = "osD^vP"  # with the colours, for classes beyond the sixth
_LISTED = 24  # classes in a legend; of more, the others are counted
_FEW = 60  # objects up to which dots and pictures are drawn at full size
_PICTURE = 36.0  # points
_LIGHT, _DARKEST = 0.15, 0.3  # how dark one region is, and all that lie over a place together
_TURN = np.linspace(0, 2 * np.pi, 48, endpoint=False)
_CIRCLE = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=1)


def plot_positions(
    positions: ArrayLike,
    *,
    labels: Sequence[object] | None = None,
    covariances: Floats | None = None,
    pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    colour: ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw positions as a map.

    One dimension is drawn from left to right, the objects in their order from bottom to top. Of
    three and more, pairs of the (up to five) directions of greatest spread are drawn side by
    side. The axes say which directions these are, and how much of the spread each carries.

    Parameters
    ----------
    positions
        ``(n, d)``.
    labels
        What to write beside each object, as far as there is room.
    covariances
        ``(n, d, d)`` uncertainty of each position, drawn as an ellipse (on a line, a bar) that
        holds 95 % of it.
    pictures
        An image file for each object, drawn at its place; None where there is none.
    colour
        A class or a number for each object: classes get a colour each and a legend, numbers
        (fractions) a scale. What is missing (None, nan) is grey.
    title
        Written above.
    ax
        Where to draw, the first two directions alone; a new figure by default.

    Returns
    -------
    ax
        What was drawn on: of a grid, the map of the first two directions. `nearer.plotting.save`
        writes the whole figure.

    Examples
    --------
    >>> import nearer
    >>> ax = plot_positions(nearer.datasets.make_cube(50, 3, random_state=0))
    >>> print(ax.get_ylabel(), len(ax.figure.axes))
    direction 2 of 3
    (39 % of the spread) 3
    """
    seen = project(positions)
    n = len(seen.places)
    d = len(seen.directions)
    check_given(n, labels=labels, pictures=pictures)
    covariances = read_covariances(covariances, n, d)
    check_title(title)
    check_axes(ax)
    paint = _Paint(colour, n)
    texts = [[] if labels is None else list(map(str, labels)), paint.kinds or [], [title or ""]]
    drawn = iter(drawable([text for part in texts for text in part]))
    written, kinds, (head,) = ([next(drawn) for _ in part] for part in texts)
    paint.kinds = None if paint.kinds is None else kinds
    things = _Things(seen, None if labels is None else written, covariances, pictures, paint)
    with all_letters():
        return _drawn(things, head, ax)


def _drawn(things: _Things, title: str, ax: Axes | None) -> Axes:
    """The whole map, below its title."""
    seen, k = things.seen, things.seen.places.shape[1]
    if ax is not None or k <= 2:
        ax = _one_map(things, ax)
        panels = {(0, 1): ax}
        if title:
            ax.set_title(title, parse_math=False)
    else:
        panels = _grid(seen)
        ax = panels[0, 1]
        if title:
            figure_of(ax).suptitle(title, parse_math=False)
        for (i, j), panel in panels.items():
            _draw(panel, things, i, j)
            if j == k - 1:
                panel.set_xlabel(seen.names[i].replace(" (", "\n("), fontsize=8)
            if i == 0:
                panel.set_ylabel(seen.names[j].replace(" (", "\n("), fontsize=8)
    _explain(ax, list(panels.values()), things)
    figure_of(ax).draw_without_rendering()  # settles layout and limits, by which names are placed
    for (i, j), panel in panels.items():
        _name(panel, things, i, j)
    return ax


@dataclass(frozen=True)
class _Things:
    """What is to be drawn, whichever directions are looked along."""

    seen: Projection
    labels: Sequence[object] | None
    covariances: Floats | None
    pictures: Sequence[str | os.PathLike[str] | None] | None
    paint: _Paint

    def places(self, i: int, j: int) -> Floats:
        """Where objects are on the map of two directions; on a line, each on its row."""
        places = self.seen.places
        if places.shape[1] > 1:
            return places[:, [i, j]]
        rows = np.argsort(np.argsort(places[:, 0], kind="stable"))
        return np.stack([places[:, 0], rows.astype(np.float64)], axis=1)

    @property
    def on_a_line(self) -> bool:
        """Whether there is only one dimension."""
        return bool(self.seen.places.shape[1] == 1)


def _one_map(things: _Things, ax: Axes | None) -> Axes:
    if ax is None:
        n, wide = len(things.seen.places), np.ptp(things.places(0, 1), axis=0)
        spoken = things.labels is not None or things.pictures is not None
        size = 8.0 if spoken else 6.0
        if things.on_a_line:
            # a row needs the height of what is on it; beyond a page, names are left out
            row = 0.135 if things.pictures is None else _PICTURE / 72
            height = min(max(1.5, 0.8 + row * n), 11.0)
        else:
            height = size * float(np.clip(wide[1] / max(wide[0], 1e-300), 0.5, 1.1))
        ax = new_axes(size, height)
    _draw(ax, things, 0, 1)
    ax.set_xlabel(things.seen.names[0], fontsize=8)
    if not things.on_a_line:
        ax.set_ylabel(things.seen.names[1], fontsize=8)
    return ax


def _grid(seen: Projection) -> dict[tuple[int, int], Axes]:
    """Axes for each pair of directions: one below the other as y, from left to right as x."""
    k = seen.places.shape[1]
    wide = np.ptp(seen.places, axis=0)
    room = np.maximum(wide, 0.45 * wide.max() if wide.max() > 0 else 1.0)  # none too slim to read
    side = 9.0 + 1.5 * (k - 3)
    height = side * room[1:].sum() / room[:-1].sum()
    figure = Figure(figsize=(side, max(height, 0.4 * side)), layout="constrained")
    grid = figure.add_gridspec(k - 1, k - 1, width_ratios=room[:-1], height_ratios=room[1:])
    return {(i, j): figure.add_subplot(grid[j - 1, i]) for j in range(1, k) for i in range(j)}


def _draw(ax: Axes, things: _Things, i: int, j: int) -> None:
    """Dots or pictures, and what is not known of them, along two directions."""
    seen, places = things.seen, things.places(i, j)
    if things.covariances is not None:
        spread = seen.seen(things.covariances)
        if things.on_a_line:
            _bars(ax, places, spread[:, 0, 0])
        else:
            _ellipses(ax, places, spread[:, [i, j]][:, :, [i, j]])
    things.paint.dots(ax, places)
    ax.margins(0.06)
    bare(ax)
    if things.on_a_line:
        ax.set_aspect("auto")
        ax.set_ylim(-0.8, len(places) - 0.2)


def _name(ax: Axes, things: _Things, i: int, j: int) -> None:
    """Pictures, whose size goes by the room there is, then the names."""
    places = things.places(i, j)
    half = things.paint.half
    if things.pictures is not None:
        half = _place_pictures(ax, places, things.pictures) / 2
    if things.labels is None:
        return
    n = len(places)
    size = 7.5 if n <= _FEW else 6.0
    clear = np.full(n, half)
    if things.on_a_line and things.covariances is not None:  # names stand beside the bars
        unit = ax.bbox.width / float(np.ptp(ax.get_xlim())) * 72 / figure_of(ax).dpi
        clear = np.maximum(clear, unit * _half_bars(things.covariances[:, 0, 0]))
    written = write_names(ax, places, things.labels, half, size, clear, rows=things.on_a_line)
    if written < n:
        ax.annotate(
            f"{written:,} of {n:,} names, as far as there is room",
            (1, 0),
            xycoords="axes fraction",
            xytext=(-3, 3),
            textcoords="offset points",
            ha="right",
            fontsize=5.5,
            color="0.45",
        )


class _Paint:
    """Colours of dots, and their size: small and light where there are many."""

    def __init__(self, colour: ArrayLike | None, n: int) -> None:
        self._colour: NDArray[Any] | None = None
        self.kinds: list[str] | None = None
        if colour is not None:
            self._colour, self.kinds = read_colours(colour, n)
        few = min(1.0, _FEW / max(n, 1))
        self._look: dict[str, Any] = {
            "s": max(20 * few**0.6, 1.0),
            "alpha": max(0.85 * few**0.15, 0.2),
            "linewidths": 0,
            "rasterized": n > 5000,  # a vector file of so many dots is slow to open
        }
        self.half = float(np.sqrt(self._look["s"])) / 2
        self.scale: Any = None  # the dots that a colour bar explains
        self.classes: list[tuple[Any, str]] = []  # the dots that a legend explains, and their names

    def dots(self, ax: Axes, places: Floats) -> None:
        """Draw all of them."""
        values, (x, y) = self._colour, places.T
        classes: list[tuple[Any, str]] = []
        if values is None:
            ax.scatter(x, y, color=COLOURS[1], **self._look)
            return
        if self.kinds is None:
            known = np.isfinite(values)
            if known.any():
                self.scale = ax.scatter(
                    x[known], y[known], c=values[known], cmap="viridis", **self._look
                )
        else:
            known = values >= 0
            for i, kind in enumerate(self.kinds):
                mine = values == i
                turn, which = divmod(i, len(COLOURS))
                look = {
                    "color": COLOURS[which],
                    "marker": _MARKERS[turn % len(_MARKERS)],
                } | self._look
                classes.append((ax.scatter(x[mine], y[mine], label=kind, **look), kind))
        if not known.all():
            missing = ax.scatter(x[~known], y[~known], color=GREY, label=NO_VALUE, **self._look)
            classes.append((missing, NO_VALUE))
        self.classes = self.classes or classes  # those of the first map


def _explain(ax: Axes, panels: list[Axes], things: _Things) -> None:
    """A legend of classes and regions; a scale of numbers."""
    figure = figure_of(ax)
    if things.paint.scale is not None:
        figure.colorbar(things.paint.scale, ax=panels, shrink=0.6)
    # of classes all, also those whose names Matplotlib leaves out: empty, or with _ before them
    ours = things.paint.classes
    others = zip(*ax.get_legend_handles_labels(), strict=True)  # of axes that were given
    drawn = {id(handle) for handle, _ in ours}
    listed = [(handle, name) for handle, name in others if id(handle) not in drawn] + ours
    handles, names = [handle for handle, _ in listed], [name for _, name in listed]
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"and {len(names) - _LISTED + 1} more"]
        handles = handles[:_LISTED]
    if things.covariances is not None:
        handles.append(Patch(facecolor=COLOURS[1], alpha=2 * _LIGHT, linewidth=0))
        names.append("95 %")
    if not names:
        return
    how: dict[str, Any] = {"frameon": False, "fontsize": 8, "markerscale": 1.3}
    if len(panels) > 1:  # the corner above the diagonal is free
        how |= {"loc": "upper right", "ncols": 1 + len(names) // 12}
        legend = figure.legend(handles, ["-"] * len(names), **how)
    else:
        columns = max(1, min(6, 90 // (max(map(len, names)) + 4)))
        # so many letters below the axes, however high these are, there is room for their label
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 2.5}
        legend = ax.legend(handles, ["-"] * len(names), ncols=columns, **(how | below))
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)  # as it is, whatever it begins with


def _bars(ax: Axes, places: Floats, variances: Floats) -> None:
    half = _half_bars(variances)
    x, y = places.T
    ax.hlines(y, x - half, x + half, color=COLOURS[1], alpha=0.3, lw=3)


def _half_bars(variances: Floats) -> Floats:
    return np.asarray(np.sqrt(chi2.ppf(0.95, 1) * variances))


def _ellipses(ax: Axes, places: Floats, covariances: Floats) -> None:
    """What holds 95 % of each position: lighter where many lie over each other."""
    size, turn = np.linalg.eigh(covariances)
    half = np.sqrt(chi2.ppf(0.95, 2) * np.maximum(size, 0))
    edges = places[:, None] + np.einsum("nij,nj,vj->nvi", turn, half, _CIRCLE)
    some = places[:: len(places) // 100 + 1]
    away = np.einsum("nji,snj->sni", turn, some[:, None] - places)
    slim = 1e-9 * float(np.ptp(edges)) or 1.0  # what is known all but exactly has no area
    inside = np.sum((away / np.maximum(half, slim)) ** 2, axis=2) <= 1
    layers = float(inside.sum(axis=1).mean())  # of regions over an object
    regions = PolyCollection(
        list(edges),
        facecolors=COLOURS[1],
        edgecolors="none",
        alpha=float(np.clip(_DARKEST / max(layers, 1.0), 0.004, _LIGHT)),
        rasterized=len(places) > 5000,
    )
    ax.add_collection(regions)


def _place_pictures(
    ax: Axes, places: Floats, files: Sequence[str | os.PathLike[str] | None]
) -> float:
    """Draw pictures; their size in points: as large as the distance to the next mostly allows."""
    page = ax.transData.transform(places) * 72 / figure_of(ax).dpi
    room = _PICTURE
    if len(page) > 1:
        apart = float(np.median(cKDTree(page).query(page, k=2)[0][:, 1]))
        room = float(np.clip(apart, 0.3 * _PICTURE, _PICTURE))
    for place, file in zip(places.tolist(), files, strict=True):
        if file is None:
            continue
        image = np.asarray(read_thumbnail(file, 160))
        drawn = OffsetImage(image, zoom=room / max(image.shape[:2]))
        box = AnnotationBbox(drawn, (place[0], place[1]), frameon=False, pad=0)
        box.set_in_layout(False)
        ax.add_artist(box)
    return room
