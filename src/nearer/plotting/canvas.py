"""The common parts of all pictures: inputs, figures, colours, fonts and files."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from nearer import checks
from nearer.checks import as_points
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import content_suffix, one_message, write_bytes

if TYPE_CHECKING:
    from nearer.plotting.maps import InteractiveMap

Floats = NDArray[np.float64]

COLOURS = ["#d1495b", "#2e6f9e", "#3f8f5b", "#e09f3e", "#7d5ba6", "#4f5d75"]
GREY = "#b9bec6"

#: suffixes of picture files
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")

MANY = 500  # objects; more have no room for all names and regions, and tables for all rows
PICTURE = 40.0  # points, or pixels of a page, of a picture where there is room

# Metadata without time and program, so that the same picture is the same file.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# Fonts of many scripts; matplotlib looks for a letter in one after the other.
_LINUX = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans", "WenQuanYi Zen Hei")
_MACOS = ("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Arial Unicode MS")
_WINDOWS = ("Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Nirmala UI")


def axes_on(ax: Any, size: float = 6, height: float | None = None) -> Axes:
    """The axes to draw on: those given, or those of a new figure of `size` inches."""
    if ax is None:
        return Figure(figsize=(size, height or size), layout="constrained").subplots()
    rule = "one Matplotlib Axes; of a figure give figure.subplots(), of an array one of its axes"
    axes: Axes = checks.one("ax", ax, Axes, rule)
    return axes


def figure_of(drawn: Axes | Figure) -> Figure:
    """The figure that holds some axes."""
    checks.one("drawn", drawn, Axes | Figure, "the Axes or the Figure that a plot returned")
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    assert figure is not None
    return figure


def bare(ax: Axes) -> Axes:
    """No ticks, a light frame, and the same scale in both directions."""
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("#d9dce1")
    return ax


def as_picture(drawn: Axes | Figure, kind: str) -> bytes:
    """A figure as a file of a kind, ``"png"``, ``"svg"`` or ``"pdf"``: same picture, same file."""
    sink = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "nearer"}):
        figure_of(drawn).savefig(sink, format=kind, dpi=130, metadata=_METADATA[kind])
    return sink.getvalue()


def as_png(drawn: Axes | Figure) -> bytes:
    """A figure, or the one that holds some axes, as a PNG file: the same picture, the same file."""
    return as_picture(drawn, "png")


def save(drawn: Axes | Figure | InteractiveMap, path: str | os.PathLike[str]) -> None:
    """Write a picture to a file, as its name says.

    Drawings become ``.png``, ``.svg`` or ``.pdf``; maps to explore, ``.html``.

    Examples
    --------
    >>> import nearer, tempfile
    >>> ax = nearer.plotting.plot_positions([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nearer.plotting.save(ax, f"{folder}/map.pdf")
    """
    page = getattr(drawn, "html", None)
    what, kinds = ("a drawing", [*_METADATA]) if page is None else ("a map to explore", ["html"])
    if page is None and not isinstance(drawn, Axes | Figure):
        rule = "is no picture; give the axes or figure that were drawn on, or a map to explore"
        raise InvalidInput(f"{checks.shown(drawn)}: {rule}")
    kind = content_suffix(path).removeprefix(".")
    if kind not in kinds:
        allowed = " or ".join(f".{known}" for known in kinds)
        raise InvalidInput(f"{path}: {what} is written to {allowed}; end the name so")
    if isinstance(drawn, Axes | Figure):
        write_bytes(path, as_picture(drawn, kind))
    else:
        write_bytes(path, drawn.html.encode())


def font_families() -> tuple[str, ...]:
    """The user's fonts first, then those for other scripts that are installed."""
    installed = set(fontManager.get_font_names())
    others = (name for name in (*_LINUX, *_MACOS, *_WINDOWS) if name in installed)
    return tuple(dict.fromkeys((*mpl.rcParams["font.family"], *others)))


@cache
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    """Code points of the letters that one of the fonts has."""
    files = {findfont(FontProperties(family=[name])) for name in families}
    return frozenset().union(*(get_font(file).get_charmap() for file in files))


def drawable(texts: Sequence[str]) -> dict[str, str]:
    """Each text with boxes for letters that no font has; one warning names such texts.

    Matplotlib would warn of each letter at every drawing.
    """
    known = _letters(font_families())
    drawn = {t: "".join(x if ord(x) in known or x.isspace() else "□" for x in t) for t in texts}
    if lost := [text for text, shown in drawn.items() if text != shown]:
        some = ", ".join(map(repr, lost[:3])) + (", …" if len(lost) > 3 else "")
        message = (
            f"no installed font has all letters of {some} ({len(lost)} in all), which are drawn as "
            "boxes; install Noto Sans CJK, or make a map to explore (interactive=True, --map .html)"
        )
        warnings.warn(message, AnswersWarning, stacklevel=3)
    return drawn


# --- inputs of pictures ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MapInputs:
    """The checked inputs of a map, along the directions that it shows."""

    places: Floats
    axes: list[str]  # their labels
    labels: list[str] | None
    covariances: Floats | None
    pictures: Sequence[str | os.PathLike[str] | None] | None
    colours: Floats | None  # values, or numbers of classes; nan if not known
    classes: list[str] | None  # the names of the classes


def read_inputs(
    positions: ArrayLike,
    labels: Sequence[object] | None = None,
    covariances: ArrayLike | None = None,
    pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    colour: ArrayLike | None = None,
    most: int | None = None,
) -> MapInputs:
    """Check the inputs of a map.

    Positions in more than two dimensions are seen along the `most` directions of greatest variance,
    all of them if None; others are unchanged.
    """
    points = as_points(positions)
    n, d = points.shape
    if not n:
        raise InvalidInput(f"positions of shape {points.shape}: a map needs at least one object")
    directions = np.eye(d)
    if d > 2:
        directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:most].T
        if directions.shape[1] < 2:
            directions = np.eye(d, 2)  # fewer than two objects have no variance
    places, total = points @ directions, float(points.var(axis=0).sum())
    axes = [f"direction {j + 1} of {d}" if d > 2 else f"dimension {j + 1}" for j in range(d)]
    if total > 0:
        shares = (100 * places.var(axis=0) / total).tolist()
        axes = [f"{a} ({s:.0f} % of the spread)" for a, s in zip(axes, shares, strict=False)]
    for name, values in {"labels": labels, "pictures": pictures, "colour": colour}.items():
        if values is not None:
            _check_length(n, name, values)
    regions = None
    if covariances is not None:
        known = checks.array("covariances", covariances, (n, d, d), "a matrix for each object")
        regions = np.einsum("di,ndk,kj->nij", directions, known, directions)
    colours, classes = (None, None) if colour is None else _read_colours(colour)
    names = None if labels is None else list(map(str, labels))
    return MapInputs(places, axes, names, regions, pictures, colours, classes)


def _check_length(n: int, name: str, values: Any) -> None:
    """Refuse anything but an ordered list with one entry for each object."""
    is_list = isinstance(values, Sized) and not isinstance(values, str | bytes | Set | Mapping)
    # an array without dimensions has no length
    if not is_list or getattr(values, "shape", None) == ():
        rule = f"must be a list, one for each of the {n} objects in their order"
        raise InvalidInput(f"{name}={checks.shown(values)}: {rule}")
    if (length := len(values)) != n:
        raise InvalidInput(f"{name}: {length} for {n} objects; there must be one for each")


def _read_colours(colour: Any) -> tuple[Floats, list[str] | None]:
    """Numbers and None; or numbers of classes and their names."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    values = pd.Series(list(colour), dtype=object)
    kinds = {type(value) for value in values.dropna()}
    try:
        if kinds <= {int, float, np.float64, np.float32} and not kinds <= {int}:
            numbers = values.to_numpy(np.float64)
            known = numbers[np.isfinite(numbers)].tolist() or [0.0]
            if np.isinf(max(known) - min(known)):
                raise OverflowError
            return numbers, None
        number, names = pd.factorize(values, sort=True)
    except (TypeError, OverflowError) as error:
        rule = "must be a class or a number for each object, and no lists within the list"
        remedy = "rescale numbers that are too large"
        raise InvalidInput(f"colour={checks.shown(colour)}: {rule}; {remedy}") from error
    classes = [str(name) if str(name).strip() else "(empty)" for name in names]
    return np.where(number < 0, np.nan, number), classes


def read_thumbnail(file: str | os.PathLike[str], size: float) -> Image.Image:
    """A picture, upright, sharp enough to be shown at a size in points or pixels of a page."""
    pixels = max(1, round(4 * size))  # four to each point: fine screens show two or three
    remedy = "give the path of an image file, or None for an object that has none"
    path = Path(checks.one("pictures", file, str | os.PathLike, f"paths: {remedy}"))
    with one_message(path, "a picture", remedy), Image.open(path) as picture:
        picture.draft("RGB", (2 * pixels, 2 * pixels))  # a large photograph is read coarsely
        small = ImageOps.exif_transpose(picture).convert("RGBA")
    small.thumbnail((pixels, pixels))
    return small
