"""What all pictures share: figures, colours, fonts, axes without ticks, and files."""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import content_suffix, write_bytes

if TYPE_CHECKING:
    from nearer.plotting.interactive_map import InteractiveMap

COLOURS = ["#d1495b", "#2e6f9e", "#3f8f5b", "#e09f3e", "#7d5ba6", "#4f5d75"]
GREY = "#b9bec6"

# Metadata without time and program, so that the same picture is the same file.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# Fonts of many scripts on Linux, macOS and Windows; matplotlib looks for a letter in one after the
# other.
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Nirmala UI",
)


def axes_on(ax: Any, size: float = 6, height: float | None = None) -> Axes:
    """The axes to draw on: those that were given, or those of a new figure, so many inches wide."""
    if ax is None:
        return Figure(figsize=(size, height or size), layout="constrained").subplots()
    if not isinstance(ax, Axes):
        raise InvalidInput(
            f"ax={' '.join(repr(ax).split())[:60]}: must be one Matplotlib Axes; of a figure give "
            "figure.subplots(), of an array of axes one of them"
        )
    return ax


def figure_of(drawn: Axes | Figure) -> Figure:
    """The figure that holds some axes."""
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    assert figure is not None
    return figure


def bare(ax: Axes) -> Axes:
    """No ticks, a light frame, and the same scale in both directions."""
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color("#d9dce1")
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


def data_url(content: bytes, kind: str) -> str:
    """A file as text that a page can hold; `kind` is its media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


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
    is_drawn = isinstance(drawn, Axes | Figure)
    if not is_drawn and not hasattr(drawn, "html"):
        raise InvalidInput(
            f"{repr(drawn)[:60]}: is no picture; give the axes or figure that were drawn on, or "
            "a map to explore"
        )
    what, kinds = ("a drawing", list(_METADATA)) if is_drawn else ("a map to explore", ["html"])
    kind = content_suffix(path).removeprefix(".")
    if kind not in kinds:
        allowed = " or ".join(f".{known}" for known in kinds)
        raise InvalidInput(f"{path}: {what} is written to {allowed}; end the name so")
    if isinstance(drawn, Axes | Figure):
        write_bytes(path, as_picture(drawn, kind))
    else:
        write_bytes(path, drawn.html.encode())


def _families() -> tuple[str, ...]:
    """The user's fonts first, then those for other scripts that are installed."""
    installed = set(fontManager.get_font_names())
    others = (name for name in _FAMILIES if name in installed)
    return tuple(dict.fromkeys((*mpl.rcParams["font.family"], *others)))


@contextmanager
def fonts_of_all_scripts() -> Iterator[None]:
    """Text that is written inside falls back on all fonts that there are."""
    with mpl.rc_context({"font.family": list(_families())}):
        yield


@cache
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    """Code points of the letters that one of the fonts has."""
    files = {findfont(FontProperties(family=[name])) for name in families}
    return frozenset().union(*(get_font(file).get_charmap() for file in files))


def drawable(texts: Sequence[str]) -> dict[str, str]:
    """Each text with boxes for letters that no font has; one warning names such texts.

    Matplotlib would warn of each letter at every drawing.
    """
    known = _letters(_families())
    drawn = {t: "".join(x if ord(x) in known or x.isspace() else "□" for x in t) for t in texts}
    lost = [text for text, shown in drawn.items() if text != shown]
    if lost:
        some = ", ".join(map(repr, lost[:3])) + (", …" if len(lost) > 3 else "")
        warnings.warn(
            f"no installed font has all letters of {some} ({len(lost)} in all), which are drawn as "
            "boxes; install one, such as Noto Sans CJK, or make a map to explore "
            "(interactive=True, --map map.html)",
            AnswersWarning,
            stacklevel=3,
        )
    return drawn
