"""A small map as a picture in text (SVG), for pages that show a result at a glance.

`nearer.plotting` draws the maps that are printed; this one needs nothing and is made in a
millisecond, whatever the number of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["small_map"]

_WIDTH, _HEIGHT, _EDGE = 320, 220, 14
_NAMED = 30  # objects; with more, names on so small a map are a blot and only show on hover
_DRAWN = 1000  # dots; more make the page heavy and the picture no clearer


def small_map(positions: NDArray[np.float64], names: Sequence[Any] | None = None) -> str:
    """Positions as an SVG: the two directions of greatest spread, names on hover.

    Examples
    --------
    >>> import numpy as np
    >>> small_map(np.eye(3), ["cat", "dog", "<eel>"]).count("<circle")
    3
    """
    shown = np.unique(np.linspace(0, len(positions) - 1, min(_DRAWN, len(positions))).astype(int))
    middle = np.nan_to_num(positions - positions.mean(axis=0))
    if middle.shape[1] > 2:
        middle = middle @ np.linalg.svd(middle, full_matrices=False)[2][:2].T
    flat = np.pad(middle, [(0, 0), (0, 2 - middle.shape[1])])[shown]
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = np.array([_WIDTH, _HEIGHT]) - 2 * _EDGE
    wide = high - low
    scale = min((room[wide > 0] / wide[wide > 0]).tolist(), default=1.0)  # the same for both
    places = (flat - (low + high) / 2) * scale * [1, -1] + np.array([_WIDTH, _HEIGHT]) / 2
    parts = []
    for number, (x, y) in zip(shown.tolist(), places.tolist(), strict=True):
        name = escape(str(number if names is None else names[number])[:40])
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="#2e6f9e" fill-opacity="0.75">'
            f"<title>{name}</title></circle>"
        )
        if names is not None and len(positions) <= _NAMED:
            side = 'text-anchor="end" dx="-4"' if x > _WIDTH / 2 else 'dx="4"'
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {side} dy="3" font-size="9">{name}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="map of the objects" '
        f'font-family="sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )
