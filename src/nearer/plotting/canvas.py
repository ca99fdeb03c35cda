"""What all pictures share: figures, colours, axes without ticks, and the files they end in."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nearer.errors import InvalidInput
from nearer.files import content_suffix, write_bytes

if TYPE_CHECKING:
    from nearer.plotting.interactive_map import InteractiveMap

__all__ = ["COLOURS", "GREY", "as_picture", "as_png", "bare", "figure_of", "new_axes", "save"]

COLOURS = ["#d1495b", "#2e6f9e", "#3f8f5b", "#e09f3e", "#7d5ba6", "#4f5d75"]
GREY = "#b9bec6"

# what a format would say of the hour or the program: the same picture is the same file
_TIMELESS: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def new_axes(size: float = 6, height: float | None = None) -> Axes:
    """Axes of a new figure, so many inches wide."""
    return Figure(figsize=(size, height or size), layout="constrained").subplots()


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
        figure_of(drawn).savefig(sink, format=kind, dpi=130, metadata=_TIMELESS[kind])
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
    if not isinstance(drawn, Axes | Figure) and not hasattr(drawn, "html"):
        raise InvalidInput(
            f"{repr(drawn)[:60]}: is no picture; give the axes or figure that were drawn on, or "
            "a map to explore"
        )
    kind = content_suffix(path).removeprefix(".")
    kinds = list(_TIMELESS) if isinstance(drawn, Axes | Figure) else ["html"]
    if kind not in kinds:
        what = "a drawing" if len(kinds) > 1 else "a map to explore"
        allowed = " or ".join(f".{known}" for known in kinds)
        raise InvalidInput(f"{path}: {what} is written to {allowed}; end the name so")
    if isinstance(drawn, Axes | Figure):
        write_bytes(path, as_picture(drawn, kind))
    else:
        write_bytes(path, drawn.html.encode())
