"""Where names go on a map, so that none covers another, a dot or a picture.

Each name is tried beside its object, on eight sides, then a little farther off with a line to it.
The first place that is free is taken; a name for which none is free is left out, and the map says
how many are. Objects that stand alone come first: they have the room, and are what a reader looks
up. Nothing is moved again afterwards, so that a name stays close to what it names; programs that
push names about until they fit (the usual way) carry them off where objects are many, and take
minutes where this takes a fraction of a second.

All is reckoned in points (1/72 inch) on the finished page. Marks are counted on a grid of points
whose sums over rectangles are known beforehand, so that hundreds of thousands cost no more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nearer.plotting.canvas import figure_of

__all__ = ["shortened", "write_names"]

Floats = NDArray[np.float64]

_TRIED = 1000  # names; a page has room for a few hundred
_LONGEST = 40  # letters
_SIDES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1], [1, -1], [-1, -1]])
_BESIDE, _OFF = 1.5, 11.0  # points between a mark and its name; the second with a line


def shortened(name: object) -> str:
    """A name on one line, cut where it is long.

    Examples
    --------
    >>> shortened("a colour  between teal and a grey that has no name of its own")
    'a colour between teal and a grey that ha…'
    """
    line = " ".join(str(name).split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"


def write_names(
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
    texts = [shortened(name) for name in names]
    if rows:
        chosen = np.argsort(page[:, 1])[:: len(page) // _TRIED + 1]
    else:
        chosen = np.argsort(-_alone(page), kind="stable")[:_TRIED]
    order = [i for i in chosen.tolist() if texts[i]]
    marks = _Marks(page, half, width, height)
    taken = np.empty((len(order), 4))
    written = 0
    for i in order:
        boxes, sides = _candidates(page[i], _extent(texts[i], size), clear[i], rows)
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


def _extent(text: str, size: float) -> tuple[float, float]:
    """Width and height of a line, which is as high as its letters may be: those of "lp"."""
    font = FontProperties(size=size)
    width, height, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    _, line, _ = text_to_path.get_text_width_height_descent("lp", font, ismath=False)
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
