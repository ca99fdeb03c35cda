"""Maps to print: dots or pictures, names, regions of uncertainty, colours.

Two dimensions are drawn as they are. One is drawn from left to right, each object on a row of its
own. More are drawn as a small grid of maps, one for each pair of the directions of greatest spread.

*Names.* Each name is tried beside its object, on eight sides, then a little farther off with a line
to it. The first place is taken that covers no other name, dot or picture; a name for which there is
none is left out, and the map says how many are. Isolated objects come first, because they have the
room and are the ones that a reader looks up. No name is moved again afterwards, so that it stays
close to its object. Lengths are in points (1/72 inch) on the finished page. Marks are counted on a
grid of points with cumulative sums, so that hundreds of thousands of marks cost no more than a few.
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
from matplotlib.font_manager import FontProperties
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.stats import chi2

from nearer.plotting.canvas import (
    COLOURS,
    GREY,
    bare,
    check_axes,
    drawable,
    figure_of,
    fonts_of_all_scripts,
    new_axes,
)
from nearer.plotting.map_inputs import (
    NO_VALUE,
    Projection,
    check_lengths,
    check_title,
    project,
    read_colours,
    read_covariances,
    read_thumbnail,
)

__all__ = ["plot_positions"]

Floats = NDArray[np.float64]

_MARKERS = "osD^vP"  # with the colours, for classes beyond the sixth
_MOST_CLASSES = 24  # in a legend; of more, the others are counted
_MOST_REGIONS = 1000  # of uncertainty; more take seconds to draw and merge into one shade
_FEW = 60  # objects up to which dots and pictures are drawn at full size
_PICTURE = 36.0  # points
_LIGHT, _DARKEST = 0.15, 0.3  # opacity of one region, and of all that overlap at a place
_MOST_NAMES = 500  # that are tried; a page has room for a few hundred
_LONGEST_NAME = 40  # letters
_SIDES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1], [1, -1], [-1, -1]])
_BESIDE, _OFF = 1.5, 11.0  # points between a mark and its name, the second with a line
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
    check_lengths(n, labels=labels, pictures=pictures)
    covariances = read_covariances(covariances, n, d)
    check_title(title)
    check_axes(ax)
    paint = _Paint(colour, n)
    texts = [[] if labels is None else list(map(str, labels)), paint.kinds or [], [title or ""]]
    drawn = iter(drawable([text for part in texts for text in part]))
    written, kinds, (head,) = ([next(drawn) for _ in part] for part in texts)
    paint.kinds = None if paint.kinds is None else kinds
    things = _Things(seen, None if labels is None else written, covariances, pictures, paint)
    with fonts_of_all_scripts():
        return _drawn(things, head, ax)


def _drawn(things: _Things, title: str, ax: Axes | None) -> Axes:
    """The whole map, below its title."""
    seen, k = things.seen, things.seen.places.shape[1]
    is_given = ax is not None
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
    figure = figure_of(ax)
    figure.draw_without_rendering()  # settles layout and limits, by which names are placed
    if len(things.seen.places) > _MOST_REGIONS and not is_given:
        figure.set_layout_engine("none")  # to lay it out again would draw everything twice more
    for (i, j), panel in panels.items():
        _name(panel, things, i, j)
    return ax


@dataclass(frozen=True)
class _Things:
    """What is drawn, whichever two directions are shown."""

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
    written = _write_names(ax, places, things.labels, half, size, clear, rows=things.on_a_line)
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
    if len(names) > _MOST_CLASSES:
        names = [*names[: _MOST_CLASSES - 1], f"and {len(names) - _MOST_CLASSES + 1} more"]
        handles = handles[:_MOST_CLASSES]
    if things.covariances is not None:
        handles.append(Patch(facecolor=COLOURS[1], alpha=2 * _LIGHT, linewidth=0))
        step = _every(len(things.seen.places))
        names.append("95 %" if step == 1 or things.on_a_line else f"95 %, 1 object in {step}")
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
    """Regions that hold 95 % of each position: lighter where many overlap."""
    step = _every(len(places))
    places, covariances = places[::step], covariances[::step]
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
    )
    ax.add_collection(regions)


def _every(n: int) -> int:
    """Of how many objects one has its region drawn."""
    return -(-n // _MOST_REGIONS)


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


# --- names --------------------------------------------------------------------------------------


def _shortened(name: object) -> str:
    """A name on one line, cut where it is long.

    Examples
    --------
    >>> _shortened("a colour  between teal and a grey that has no name of its own")
    'a colour between teal and a grey that ha…'
    """
    line = " ".join(str(name).split())
    return line if len(line) <= _LONGEST_NAME else line[:_LONGEST_NAME] + "…"


def _write_names(
    ax: Axes,
    places: Floats,
    names: Sequence[object],
    half: float,
    size: float,
    clear: Floats,
    *,
    rows: bool = False,
) -> int:
    """Write names beside objects as far as there is room; return how many were written.

    Parameters
    ----------
    ax
        What the objects are drawn on already, in a figure whose layout is settled.
    places, names
        ``(n, 2)`` where they are, in data coordinates, and what they are called.
    half
        Half the width of their marks, in points.
    size
        Of the letters, in points.
    clear
        ``(n,)`` how far from the middle of its object a name begins, in points.
    rows
        Whether each object has a row of its own: names then stand to its right or left.
    """
    page, width, height = _page(ax, places)
    texts = [_shortened(name) for name in names]
    if rows:
        chosen = np.argsort(page[:, 1])[:: len(page) // _MOST_NAMES + 1]
    else:
        chosen = np.argsort(-_alone(page), kind="stable")[:_MOST_NAMES]
    order = [i for i in chosen.tolist() if texts[i]]
    marks = _Marks(page, half, width, height)
    font = FontProperties(size=size)
    _, line, _ = text_to_path.get_text_width_height_descent("lp", font, ismath=False)
    taken = np.empty((len(order), 4))
    written = 0
    for i in order:
        boxes, sides = _candidates(page[i], _extent(texts[i], font, line), clear[i], rows)
        inside = np.all((boxes >= 0) & (boxes <= [width, height, width, height]), axis=1)
        met = _overlapping(boxes, taken[:written]).any(axis=1)
        free = inside & ~met & (marks.under(boxes) == 0)
        if not free.any():
            continue
        best = int(np.argmax(free))
        taken[written] = boxes[best]
        written += 1
        _write(ax, places[i], texts[i], sides[best], clear[i], size, off=best >= len(boxes) // 2)
    return written


def _page(ax: Axes, places: Floats) -> tuple[Floats, float, float]:
    """Places on the page in points from the corner of the axes, and its width and height."""
    unit = 72 / figure_of(ax).dpi
    page = (ax.transData.transform(places) - ax.bbox.p0) * unit
    return np.asarray(page), ax.bbox.width * unit, ax.bbox.height * unit


def _alone(page: Floats) -> Floats:
    """How far each object is from the next."""
    if len(page) < 2:
        return np.zeros(len(page))
    return np.asarray(cKDTree(page).query(page, k=2)[0][:, 1])


def _extent(text: str, font: FontProperties, line: float) -> tuple[float, float]:
    """Width and height of a text, at least the height of a line."""
    width, height, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return 1.03 * width, max(height, line) + 1  # letters that are fitted to pixels grow a little


def _candidates(
    place: Floats, extent: tuple[float, float], clear: float, rows: bool
) -> tuple[Floats, NDArray[np.int64]]:
    """Rectangles (left, bottom, right, top) that a name may fill, the best first; their sides."""
    sides = _SIDES[:2] if rows else _SIDES
    size = np.array(extent)
    boxes = []
    for gap in (_BESIDE, _OFF):
        # on a corner the gap is that of a circle
        away = sides * (clear + gap) / np.where(sides.all(axis=1), np.sqrt(2), 1.0)[:, None]
        low = place + away + np.where(sides > 0, 0, np.where(sides < 0, -size, -size / 2))
        boxes.append(np.hstack([low, low + size]))
    return np.concatenate(boxes), np.concatenate([sides, sides])


def _overlapping(boxes: Floats, others: Floats) -> NDArray[np.bool_]:
    """Which of the boxes overlap which of the others."""
    a, b = boxes[:, None], others[None]
    return np.asarray((a[..., :2] < b[..., 2:]).all(axis=2) & (b[..., :2] < a[..., 2:]).all(axis=2))


class _Marks:
    """How many marks lie under a rectangle."""

    def __init__(self, page: Floats, half: float, width: float, height: float) -> None:
        self._half = half
        self._shape = np.array([int(width) + 2, int(height) + 2])
        cells = np.clip(page.astype(np.int64), 0, self._shape - 2)
        self._sums = np.zeros(self._shape, dtype=np.int64)
        np.add.at(self._sums, tuple((cells + 1).T), 1)
        self._sums = self._sums.cumsum(axis=0).cumsum(axis=1)

    def under(self, boxes: Floats) -> NDArray[np.int64]:
        """Marks whose rectangle meets each box; whose middle is in the box grown by half a mark."""
        low = np.ceil(boxes[:, :2] - self._half).astype(np.int64)
        high = np.floor(boxes[:, 2:] + self._half).astype(np.int64)
        low, high = (np.clip(x, 0, self._shape - 1) for x in (low, high))
        (left, bottom), (right, top) = low.T, high.T
        s = self._sums
        return np.asarray(s[right, top] - s[left, top] - s[right, bottom] + s[left, bottom])


def _write(
    ax: Axes,
    place: Floats,
    text: str,
    side: NDArray[np.int64],
    clear: float,
    size: float,
    off: bool,
) -> None:
    gap = clear + (_OFF if off else _BESIDE)
    reach = gap / np.sqrt(2) if side.all() else gap
    x, y = side.tolist()
    note = ax.annotate(
        text,
        (float(place[0]), float(place[1])),
        xytext=(x * reach, y * reach),
        textcoords="offset points",
        fontsize=size,
        ha={1: "left", 0: "center", -1: "right"}[x],
        va={1: "bottom", 0: "center", -1: "top"}[y],
        parse_math=False,  # a dollar in a name is a dollar
        path_effects=[withStroke(linewidth=1.5, foreground="white", alpha=0.8)],
        arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "0.6", "shrinkA": 0, "shrinkB": 1}
        if off
        else None,
    )
    note.set_in_layout(False)  # it is inside the axes, which need not be laid out for it
