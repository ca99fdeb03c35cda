"""Maps to explore: one HTML file that needs no other and no network.

``explore.html`` beside this file is the page; the figures are put into it as JSON.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.files import json_text
from nearer.plotting.canvas import COLOURS, PICTURE, data_url, read_inputs, read_thumbnail


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
    covariances: NDArray[np.float64] | None = None,
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
        As in `plot_positions`; pictures are made small and held by the page.
    picture_size
        Pixels of a picture's longer side; None: 40, less where objects are crowded.
    title
        Of the page.

    Examples
    --------
    >>> import nearer
    >>> page = explore_positions([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], labels=["ape", "bee", "cat"])
    >>> "cat" in page.html, "http" in page.html
    (True, False)
    """
    shown = read_inputs(positions, labels, covariances, pictures, colour)
    size = picture_size or PICTURE
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
    parts = {"title": escape("Map of the objects" if title is None else title), "data": text}
    return InteractiveMap(re.sub(r"{{(title|data)}}", lambda mark: parts[mark[1]], page))


def _embedded(file: str | os.PathLike[str] | None, size: float) -> str | None:
    if file is None:
        return None
    sink = io.BytesIO()
    read_thumbnail(file, size).save(sink, "WEBP", quality=80)
    return data_url(sink.getvalue(), "image/webp")


def _rounded(values: NDArray[np.float64] | None) -> Any:
    """Numbers with five digits, which no screen can tell from more."""
    if values is None:
        return None
    rounded = [float(f"{x:.5g}") for x in values.ravel().tolist()]
    return np.reshape(rounded, values.shape).tolist()
