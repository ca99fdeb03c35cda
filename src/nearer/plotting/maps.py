"""Maps to print, and pages with a map to explore: dots or pictures, names, regions, colours.

On a printed map each name is tried beside its object, on eight sides, then a little farther off
with a line to it. The name is written at the first place that covers no other name, dot or picture.
Isolated objects come first, because they have room and readers look them up. Occupied places are
marked on a raster of the page, so that hundreds of thousands of marks cost no more than a few.
Lengths are in points (1/72 inch). ``explore.html`` beside this module is the page to explore.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import maximum_filter
from scipy.spatial import cKDTree
from scipy.stats import chi2

from nearer import checks
from nearer.files import data_url, json_text
from nearer.plotting import canvas
from nearer.plotting.canvas import COLOURS, GREY, MANY, PICTURE, Floats, MapInputs

_MARKERS = "osD^vP"  # with the colours, for classes beyond the sixth
_FEW = 60  # objects up to which dots and pictures are drawn at full size
_DARKEST = 0.3  # opacity of overlapping regions
_SIDES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1], [1, -1], [-1, -1]])


def plot_positions(
    positions: ArrayLike,
    *,
    labels: Sequence[object] | None = None,
    covariances: Floats | None = None,
    pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    picture_size: float | None = None,
    colour: ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw positions as a map.

    One dimension is drawn from left to right, the objects in their order from bottom to top. Of
    three and more, pairs of the (up to five) directions of greatest variance are drawn in a grid.

    Parameters
    ----------
    positions
        ``(n, d)``.
    labels
        The name of each object, written if there is room.
    covariances
        ``(n, d, d)`` uncertainty of each position, drawn as a 95 % region.
    pictures
        An image file for each object, drawn at its position; None for no image.
    picture_size
        Points (1/72 inch) of a picture's longer side; None: 40, less where objects are crowded.
    colour
        A class or a number for each object: classes get a colour each and a legend, numbers
        (fractions) a scale. Missing values (None, nan) are grey.
    title
        Written above.
    ax
        Where to draw, the first two directions alone; a new figure by default.

    Returns
    -------
    ax
        The axes; of a grid, those of the first two directions.

    Examples
    --------
    >>> import nearer
    >>> ax = plot_positions(nearer.datasets.make_cube(50, 3, random_state=0))
    >>> print(ax.get_ylabel(), len(ax.figure.axes))
    direction 2 of 3
    (39 % of the spread) 3
    """
    # the pairs of five directions are ten small maps; more are too small to read
    most, title = 5 if ax is None else 2, checks.title(title)
    shown = canvas.read_inputs(positions, labels, covariances, pictures, colour, most)
    written = canvas.drawable([*(shown.labels or []), *(shown.classes or []), title or ""])
    shown = replace(
        shown,
        labels=shown.labels and [written[text] for text in shown.labels],
        classes=shown.classes and [written[text] for text in shown.classes],
    )
    with mpl.rc_context({"font.family": list(canvas.font_families())}):
        drawn = _PrintedMap(shown, picture_size).draw(ax, written[title or ""])
    if ax is None:  # a notebook shows axes that can draw themselves
        drawn._repr_png_ = partial(canvas.as_png, drawn)  # type: ignore[attr-defined]
    return drawn


class _PrintedMap:
    """One map, or a grid of them."""

    def __init__(self, shown: MapInputs, picture_size: float | None) -> None:
        self.shown, self.picture_size = shown, picture_size
        checks.positive("picture_size", PICTURE if picture_size is None else picture_size)
        self.n, self.k = shown.places.shape
        self.on_a_line = self.k == 1
        few = min(1.0, _FEW / max(self.n, 1))
        self.dots: dict[str, Any] = {  # small and light where there are many
            "s": max(20 * few**0.6, 1.0),
            "alpha": max(0.85 * few**0.15, 0.2),
            "linewidths": 0,
            "rasterized": self.n > MANY,  # a vector file with many dots is slow to open
        }
        self.scale: Any = None  # the dots that a colour bar explains
        self.classes: list[tuple[Any, str]] = []  # the dots that a legend explains, and their names
        self.every = max(1, -(-self.n // MANY))  # the region of every n-th object is drawn

    def draw(self, axes: Axes | None, title: str) -> Axes:
        is_one = axes is not None or self.k <= 2
        panels = {(0, 1): canvas.axes_on(axes, *self._size())} if is_one else self._grid()
        ax = panels[0, 1]
        figure = canvas.figure_of(ax)
        if is_one:
            ax.set_title(title, parse_math=False)
        elif title:
            figure.suptitle(title, parse_math=False)
        for (i, j), panel in panels.items():
            self._draw_objects(panel, i, j)
        self._label(panels)
        self._explain(ax, list(panels.values()))
        figure.draw_without_rendering()  # fixes layout and limits before names are placed
        if self.n > MANY and axes is None:
            figure.set_layout_engine("none")  # another layout would draw everything twice
        for (i, j), panel in panels.items():
            self._name_objects(panel, self._places(i, j))
        return ax

    def _places(self, i: int, j: int) -> Floats:
        """Where objects are on the map of two directions; on a line, each on its row."""
        places = self.shown.places
        if not self.on_a_line:
            return places[:, [i, j]]
        rows = np.argsort(np.argsort(places[:, 0], kind="stable"))
        return np.stack([places[:, 0], rows.astype(np.float64)], axis=1)

    def _size(self) -> tuple[float, float]:
        """Width and height of the figure that one map needs."""
        wide = np.ptp(self._places(0, 1), axis=0)
        size = 6.0 if self.shown.labels is None and self.shown.pictures is None else 8.0
        if self.on_a_line:
            # a row needs the height of what is on it; beyond a page, names are left out
            row = 0.135 if self.shown.pictures is None else (self.picture_size or PICTURE) / 72
            return size, min(max(1.5, 0.8 + row * self.n), 11.0)
        return size, size * float(np.clip(wide[1] / max(wide[0], 1e-300), 0.5, 1.1))

    def _grid(self) -> dict[tuple[int, int], Axes]:
        """Axes for each pair of directions: one below the other as y, from left to right as x."""
        k, wide = self.k, np.ptp(self.shown.places, axis=0)
        room = np.maximum(wide, 0.45 * wide.max() if wide.max() > 0 else 1.0)  # wide enough to read
        side = 9.0 + 1.5 * (k - 3)
        height = side * room[1:].sum() / room[:-1].sum()
        figure = Figure(figsize=(side, max(height, 0.4 * side)), layout="constrained")
        grid = figure.add_gridspec(k - 1, k - 1, width_ratios=room[:-1], height_ratios=room[1:])
        pairs = [(i, j) for j in range(1, k) for i in range(j)]
        return {(i, j): figure.add_subplot(grid[j - 1, i]) for i, j in pairs}

    def _label(self, panels: dict[tuple[int, int], Axes]) -> None:
        """Say which directions are shown, of a grid at its left and lower edges."""
        last, names = max(j for _, j in panels), self.shown.axes
        if len(panels) > 1:
            names = [name.replace(" (", "\n(") for name in names]
        for (i, j), panel in panels.items():
            if j == last:
                panel.set_xlabel(names[i], fontsize=8)
            if i == 0 and not self.on_a_line:
                panel.set_ylabel(names[j], fontsize=8)

    def _draw_objects(self, ax: Axes, i: int, j: int) -> None:
        """Dots and their uncertainty, along two directions."""
        places, covariances = self._places(i, j), self.shown.covariances
        if covariances is not None and self.on_a_line:
            half, (x, y) = _half_bars(covariances), places.T
            ax.hlines(y, x - half, x + half, color=COLOURS[1], alpha=0.3, lw=3)
        elif covariances is not None:
            some = slice(None, None, self.every)
            _ellipses(ax, places[some], covariances[some][:, [i, j]][:, :, [i, j]])
        self._draw_dots(ax, places)
        ax.margins(0.06 if self.shown.pictures is None else 0.1)  # whole pictures are in the frame
        canvas.bare(ax)
        if self.on_a_line:
            ax.set_aspect("auto")
            ax.set_ylim(-0.8, self.n - 0.2)

    def _draw_dots(self, ax: Axes, places: Floats) -> None:
        values, (x, y) = self.shown.colours, places.T
        if values is None:
            ax.scatter(x, y, color=COLOURS[1], **self.dots)
            return
        known = np.isfinite(values)
        classes: list[tuple[Any, str]] = []
        if self.shown.classes is None and known.any():
            scale: dict[str, Any] = {"c": values[known], "cmap": "viridis"} | self.dots
            self.scale = ax.scatter(x[known], y[known], **scale)
        for i, name in enumerate(self.shown.classes or []):
            turn, which = divmod(i, len(COLOURS))
            look = {"color": COLOURS[which], "marker": _MARKERS[turn % len(_MARKERS)]} | self.dots
            mine = values == i
            classes.append((ax.scatter(x[mine], y[mine], label=name, **look), name))
        if not known.all():
            missing = ax.scatter(x[~known], y[~known], color=GREY, **self.dots)
            classes.append((missing, "no value"))
        self.classes = self.classes or classes  # those of the first map

    def _explain(self, ax: Axes, panels: list[Axes]) -> None:
        """A legend of classes and regions; a scale of numbers."""
        figure = canvas.figure_of(ax)
        if self.scale is not None:
            figure.colorbar(self.scale, ax=panels, shrink=0.6)
        # All classes, also those whose names Matplotlib would omit: empty ones, or with _ first.
        drawn = {id(handle) for handle, _ in self.classes}
        others = zip(*ax.get_legend_handles_labels(), strict=True)  # of axes that were given
        listed = [(handle, name) for handle, name in others if id(handle) not in drawn]
        listed += self.classes
        looks = len(COLOURS) * len(_MARKERS)
        if len(listed) > looks:
            more = f"and {len(listed) - looks + 1} more"
            listed = [*listed[: looks - 1], (listed[looks - 1][0], more)]
        if self.shown.covariances is not None:
            one_in = 1 if self.on_a_line else self.every
            name = "95 %" if one_in == 1 else f"95 %, 1 object in {one_in}"
            listed.append((Patch(facecolor=COLOURS[1], alpha=_DARKEST, linewidth=0), name))
        if not listed:
            return
        handles, names = zip(*listed, strict=True)
        if len(panels) > 1:  # the corner above the diagonal is free
            where: dict[str, Any] = {"loc": "upper right", "ncols": 1 + len(names) // 12}
        else:
            columns = max(1, min(6, 90 // (max(map(len, names)) + 4)))
            # The label has room below the axes for this many letters, whatever their height.
            where = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 2.5}
            where |= {"ncols": columns}
        where |= {"frameon": False, "fontsize": 8, "markerscale": 1.3}
        place = figure if len(panels) > 1 else ax
        legend = place.legend(handles, ["-"] * len(names), **where)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set(text=name, parse_math=False)  # without interpreting it

    def _name_objects(self, ax: Axes, places: Floats) -> None:
        """Draw pictures, smaller where objects are crowded, then the names."""
        unit = 72 / canvas.figure_of(ax).dpi
        page = (ax.transData.transform(places) - ax.bbox.p0) * unit  # in points from the corner
        alone = cKDTree(page).query(page, k=2)[0][:, 1]  # how far each is from the next
        half = float(np.sqrt(self.dots["s"])) / 2
        if self.shown.pictures is not None:
            room = np.clip(np.median(alone), 0.3 * PICTURE, PICTURE)
            size = self.picture_size or float(room)
            self._place_pictures(ax, places, size)
            half = size / 2
        if self.shown.labels is None:
            return
        clear = np.full(self.n, half)  # from the middle of an object to its name
        order, sides = np.argsort(-alone, kind="stable")[:MANY], _SIDES
        if self.on_a_line:
            order, sides = np.argsort(page[:, 1])[:: self.every], _SIDES[:2]
            if self.shown.covariances is not None:  # names stand beside the bars
                scale = unit * ax.bbox.width / float(np.ptp(ax.get_xlim()))
                clear = np.maximum(clear, scale * _half_bars(self.shown.covariances))
        raster = _Raster(page, half, unit * np.array(ax.bbox.size))
        letters = FontProperties(size=7.5 if self.n <= _FEW else 6.0)
        style: dict[str, Any] = {
            "textcoords": "offset points",
            "fontsize": letters.get_size_in_points(),
            "parse_math": False,  # a dollar in a name is a dollar
            "path_effects": [withStroke(linewidth=1.5, foreground="white", alpha=0.8)],
        }
        written = 0
        for x in order.tolist():
            text = " ".join(self.shown.labels[x].split())
            text = text if len(text) <= 40 else text[:40] + "…"
            where = raster.find(page[x], clear[x], _extent(text, letters), sides) if text else None
            if where is not None:
                note = ax.annotate(text, places[x], **style, **where)
                note.set_in_layout(False)  # it is inside the axes, which need no room for it
                written += 1
        if written < self.n:
            says = f"{written:,} of {self.n:,} names, as far as there is room"
            corner: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
            ax.annotate(says, (1, 0), (-3, 3), ha="right", fontsize=5.5, color="0.45", **corner)

    def _place_pictures(self, ax: Axes, places: Floats, size: float) -> None:
        for place, file in zip(places.tolist(), self.shown.pictures or [], strict=True):
            if file is not None:
                image = np.asarray(canvas.read_thumbnail(file, size))
                drawn = OffsetImage(image, zoom=size / max(image.shape[:2]))
                box = AnnotationBbox(drawn, (place[0], place[1]), frameon=False, pad=0)
                box.set_in_layout(False)
                ax.add_artist(box)


def _half_bars(covariances: Floats) -> Floats:
    """Half the lengths of the intervals on a line that hold 95 % of each position."""
    return np.asarray(np.sqrt(chi2.ppf(0.95, 1) * covariances[:, 0, 0]))


def _ellipses(ax: Axes, places: Floats, covariances: Floats) -> None:
    """Regions that hold 95 % of each position: lighter where many overlap."""
    size, turn = np.linalg.eigh(covariances)
    half = np.sqrt(chi2.ppf(0.95, 2) * np.maximum(size, 0))
    around = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    edges = list(places[:, None] + np.einsum("nij,nj,vj->nvi", turn, half, circle))
    some = places[:: len(places) // 100 + 1]
    # how many regions there are at a place
    layers = sum(Path(edge).contains_points(some).mean() for edge in edges)
    alpha = _DARKEST / max(layers, 2.0)
    ax.add_collection(PolyCollection(edges, facecolors=COLOURS[1], edgecolors="none", alpha=alpha))


class _Raster:
    """The occupied cells of the page, each one point wide."""

    def __init__(self, page: Floats, half: float, size: Floats) -> None:
        self._size = size
        shape = (np.ceil(size) + 1).astype(np.int64)
        taken = np.zeros(shape, dtype=np.bool_)
        taken[tuple(np.clip(page.astype(np.int64), 0, shape - 1).T)] = True
        self._taken = maximum_filter(taken, size=2 * min(int(half), int(shape.max())) + 1)

    def find(
        self, middle: Floats, clear: float, extent: Floats, sides: NDArray[np.int64]
    ) -> dict[str, Any] | None:
        """Take a place for a name beside an object: how an annotation is put there.

        It is `clear` and a little more away from the middle of the object; farther with a line.
        """
        line = {"arrowstyle": "-", "lw": 0.4, "color": "0.6", "shrinkA": 0, "shrinkB": 1}
        for gap, arrow in ((1.5, None), (11.0, line)):
            for side in sides:
                # on a corner the gap is that of a circle
                away = side * (clear + gap) / (np.sqrt(2) if side.all() else 1.0)
                low = middle + away + (side - 1) / 2 * extent
                if self._take(low, low + extent):
                    ha = ("center", "left", "right")[side[0]]
                    va = ("center", "bottom", "top")[side[1]]
                    return {"xytext": tuple(away.tolist()), "ha": ha, "va": va, "arrowprops": arrow}
        return None

    def _take(self, low: Floats, high: Floats) -> bool:
        """Reserve a rectangle if it is on the page and free."""
        if (low < 0).any() or (high > self._size).any():
            return False
        left, bottom = np.floor(low).astype(np.int64)
        right, top = np.ceil(high).astype(np.int64)
        cells = self._taken[left:right, bottom:top]
        if cells.any():
            return False
        cells[...] = True
        return True


def _extent(text: str, letters: FontProperties) -> Floats:
    """Width and height of a text; letters that are fitted to pixels grow a little."""
    width, height, _ = text_to_path.get_text_width_height_descent(text, letters, ismath=False)
    _, line, _ = text_to_path.get_text_width_height_descent("lp", letters, ismath=False)
    return np.array([1.03 * width, max(height, line) + 1])


# --- maps to explore ------------------------------------------------------------------------------


@dataclass(frozen=True)
class InteractiveMap:
    """A page with a map to explore; notebooks show it, `nearer.plotting.save` writes it.

    Attributes
    ----------
    html
        The whole page.
    """

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="map of the objects" '
            'style="width:100%;height:640px;border:0"></iframe>'
        )


def explore_positions(
    positions: ArrayLike,
    *,
    labels: Sequence[object] | None = None,
    covariances: Floats | None = None,
    pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    picture_size: float | None = None,
    colour: ArrayLike | None = None,
    title: str | None = None,
) -> InteractiveMap:
    """Make a page with a map to explore; it takes what `plot_positions` takes.

    Parameters
    ----------
    positions
        ``(n, d)``; of more than two dimensions the reader chooses which directions to see.
    labels, covariances, pictures, colour
        As in `plot_positions`; pictures are made small and stored in the page.
    picture_size
        Pixels of a picture's longer side; None: 40, less where objects are crowded.
    title
        The title of the page.

    Examples
    --------
    >>> import nearer
    >>> page = explore_positions([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], labels=["ape", "bee", "cat"])
    >>> "cat" in page.html, "http" in page.html
    (True, False)
    """
    shown = canvas.read_inputs(positions, labels, covariances, pictures, colour)
    size = checks.positive("picture_size", PICTURE if picture_size is None else picture_size)
    data: dict[str, Any] = {
        "names": shown.labels or [str(i) for i in range(len(shown.places))],
        "places": _rounded(shown.places),
        "axes": shown.axes,
        "regions": _rounded(shown.covariances),
        "pictures": None if pictures is None else [_embedded(file, size) for file in pictures],
        "size": [size, picture_size is not None],
        "colour": _rounded(shown.colours),
        "classes": shown.classes,
        "palette": COLOURS,
    }
    text = json_text(data, separators=(",", ":")).replace("<", "\\u003c")
    page = files("nearer.plotting").joinpath("explore.html").read_text(encoding="utf-8")
    parts = {"title": escape(checks.title(title) or "Map of the objects"), "data": text}
    return InteractiveMap(re.sub(r"{{(title|data)}}", lambda mark: parts[mark[1]], page))


def _embedded(file: str | os.PathLike[str] | None, size: float) -> str | None:
    if file is None:
        return None
    sink = io.BytesIO()
    canvas.read_thumbnail(file, size).save(sink, "WEBP", quality=80)
    return data_url(sink.getvalue(), "image/webp")


def _rounded(values: Floats | None) -> Any:
    """Numbers with five digits, more than any screen shows."""
    if values is None:
        return None
    rounded = [float(f"{x:.5g}") for x in values.ravel().tolist()]
    return np.reshape(rounded, values.shape).tolist()
