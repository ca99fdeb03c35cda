"""What printed and interactive maps take: positions, names, covariances, colours, pictures."""

from __future__ import annotations

import base64
import io
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from nearer.distances import as_points
from nearer.errors import InvalidInput

__all__ = ["NO_VALUE", "PICTURES", "MapInputs", "as_data_url", "read_inputs", "read_thumbnail"]

Floats = NDArray[np.float64]

#: suffixes of picture files
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")

NO_VALUE = "no value"  # the legend's name of objects whose colour is missing
_LARGEST = 1e300  # of numbers on a scale of colours: their span must not overflow


@dataclass(frozen=True)
class MapInputs:
    """What a map shows, checked.

    Attributes
    ----------
    places
        ``(n, k)``: where objects are along each direction shown.
    axes
        What to write on the axes: which directions these are, and the variance that each carries.
    labels
        What to write beside each object, or None.
    covariances
        ``(n, k, k)`` along the directions, or None.
    pictures
        An image file for each object, None where it has none; or None.
    colours, classes
        A number for each object, nan where it is missing, and None; or the number of its class, -1
        where it is missing, and the names of the classes.
    title
        Written above; may be empty.
    """

    places: Floats
    axes: list[str]
    labels: list[str] | None
    covariances: Floats | None
    pictures: Sequence[str | os.PathLike[str] | None] | None
    colours: NDArray[Any] | None
    classes: list[str] | None
    title: str


def read_inputs(
    positions: ArrayLike,
    *,
    labels: Sequence[object] | None = None,
    covariances: ArrayLike | None = None,
    pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    colour: ArrayLike | None = None,
    title: str | None = None,
    most: int | None = None,
) -> MapInputs:
    """Check what a map takes; positions in more than two dimensions are turned.

    Positions with one or two dimensions stay as they are, others are seen along the `most`
    directions of greatest variance; None: all.

    Examples
    --------
    >>> read_inputs([[0.0, 0.0, 1.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]], most=2).axes
    ['direction 1 of 3 (93 % of the spread)', 'direction 2 of 3 (7 % of the spread)']
    """
    points = as_points(positions)
    n, d = points.shape
    directions = np.eye(d)
    if d > 2:
        directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:most].T
        if directions.shape[1] < 2:
            directions = np.eye(d, 2)  # fewer than two objects have no spread to look along
    places, total = points @ directions, float(points.var(axis=0).sum())
    axes = [f"direction {j + 1} of {d}" if d > 2 else f"dimension {j + 1}" for j in range(d)]
    if total > 0:
        shares = (100 * places.var(axis=0) / total).tolist()
        axes = [f"{a} ({s:.0f} % of the spread)" for a, s in zip(axes, shares, strict=False)]
    for name, values in (("labels", labels), ("pictures", pictures)):
        _check_length(n, name, values)
    if title is not None and not isinstance(title, str):
        raise InvalidInput(f"title={title!r}: must be text; write it in quotes")
    regions = _read_covariances(covariances, n, d)
    if regions is not None:
        regions = np.einsum("di,ndk,kj->nij", directions, regions, directions)
    colours, classes = (None, None) if colour is None else _read_colours(colour, n)
    names = None if labels is None else list(map(str, labels))
    return MapInputs(places, axes, names, regions, pictures, colours, classes, title or "")


def _check_length(n: int, name: str, values: Any) -> None:
    """Refuse what is no list in order, or not as long as there are objects."""
    if values is None:
        return
    try:
        length = len(values)
    except TypeError:
        length = None
    if length is None or isinstance(values, str | bytes | set | frozenset | Mapping):
        raise InvalidInput(
            f"{name}={_shown(values)}: must be a list, one for each of the {n} objects in "
            "their order"
        )
    if length != n:
        raise InvalidInput(f"{name}: {length} for {n} objects; there must be one for each")


def _read_covariances(covariances: Any, n: int, d: int) -> Floats | None:
    """A matrix of finite numbers for each object, or None."""
    if covariances is None:
        return None
    rule = f"must be ({n}, {d}, {d}) numbers, a matrix for each object; None draws none"
    try:
        values = np.asarray(covariances, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"covariances={_shown(covariances)}: {rule}") from error
    if values.shape != (n, d, d):
        raise InvalidInput(f"covariances of shape {values.shape}: {rule}")
    if not np.isfinite(values).all():
        which = int(np.argmin(np.isfinite(values).all(axis=(1, 2))))
        raise InvalidInput(f"covariances[{which}] = {values[which].tolist()}: {rule}")
    return values


def _read_colours(colour: Any, n: int) -> tuple[NDArray[Any], list[str] | None]:
    """Numbers, nan where one is missing, and None; or numbers of classes, -1, and their names.

    Examples
    --------
    >>> _read_colours(["b", None, "a"], 3)
    (array([ 1, -1,  0]), ['a', 'b'])
    >>> _read_colours([0.5, None], 2)
    (array([0.5, nan]), None)
    """
    rule = f"must be one class or number for each of the {n} objects"
    try:
        values = np.asarray(colour)
    except ValueError as error:
        raise InvalidInput(
            f"colour={_shown(colour)}: {rule}, and no lists within the list"
        ) from error
    if values.shape != (n,):
        raise InvalidInput(f"colour of shape {values.shape}: {rule}")
    each = [None if _is_missing(x) else x for x in values.tolist()]
    there = [x for x in each if x is not None]
    are_numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in there)
    if values.dtype.kind == "f" or (are_numbers and any(isinstance(x, float) for x in there)):
        return _on_a_scale([np.nan if x is None else x for x in each]), None
    try:
        kinds = sorted(set(there))
    except TypeError:  # of several types, which have no order
        each = [None if x is None else str(x) for x in each]
        kinds = sorted({x for x in each if x is not None})
    number = {kind: i for i, kind in enumerate(kinds)}
    which = np.array([-1 if x is None else number[x] for x in each])
    return which, [str(kind) if str(kind).strip() else "(empty)" for kind in kinds]


def _on_a_scale(values: list[float]) -> Floats:
    """Numbers that a scale of colours can hold."""
    large = max((abs(x) for x in values if not isinstance(x, float) or math.isfinite(x)), default=0)
    if large > _LARGEST:
        raise InvalidInput(
            f"colour as large as {min(large, sys.float_info.max):.3g}: must be at most "
            f"{_LARGEST:g} for a scale of colours; rescale the numbers"
        )
    return np.array(values, dtype=np.float64)


def _shown(value: Any) -> str:
    """What was given, on one line that ends."""
    return " ".join(repr(value).split())[:60]


def _is_missing(x: Any) -> bool:
    return x is None or (not isinstance(x, str) and str(x) in ("nan", "<NA>", "NaT"))


def read_thumbnail(file: str | os.PathLike[str], pixels: int) -> Image.Image:
    """A picture of at most so many pixels on its longer side, upright."""
    if not isinstance(file, str | os.PathLike):
        raise InvalidInput(
            f"pictures: {repr(file)[:60]} is no path; give the path of an image file, or None for "
            "an object that has none"
        )
    try:
        with Image.open(Path(file)) as picture:
            picture.draft("RGB", (2 * pixels, 2 * pixels))  # a large photograph is read coarsely
            small = ImageOps.exif_transpose(picture).convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InvalidInput(
            f"{file}: is no picture that can be read: {error}; give the path of a file in a common "
            "format such as .png, or None for an object that has none"
        ) from error
    small.thumbnail((pixels, pixels))
    return small


def as_data_url(picture: Image.Image) -> str:
    """The picture as text that a page can hold."""
    sink = io.BytesIO()
    picture.save(sink, "WEBP", quality=80)
    return "data:image/webp;base64," + base64.b64encode(sink.getvalue()).decode("ascii")
