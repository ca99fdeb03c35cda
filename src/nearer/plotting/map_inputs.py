"""What printed and interactive maps take: positions, names, covariances, colours, pictures."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from nearer.distances import as_points
from nearer.errors import InvalidInput

__all__ = [
    "EMPTY",
    "NO_VALUE",
    "PICTURES",
    "Projection",
    "as_data_url",
    "check_lengths",
    "check_title",
    "project",
    "read_colours",
    "read_covariances",
    "read_thumbnail",
]

Floats = NDArray[np.float64]

#: suffixes of picture files
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")

NO_VALUE = "no value"  # the legend's name of objects whose colour is missing
EMPTY = "(empty)"  # the legend's name of a class without a name
_LARGEST = 1e300  # of numbers on a scale of colours: their span must not overflow
_MOST_DIRECTIONS = 5  # their pairs are ten small maps; more are too small to read


def check_lengths(n: int, **lists: Any) -> None:
    """Refuse what is no list in order, and lists that are not as long as there are objects."""
    for name, values in lists.items():
        if values is None:
            continue
        try:
            ordered = not isinstance(values, str | bytes | set | frozenset | Mapping)
            length = len(values)
        except TypeError:
            ordered = False
        if not ordered:
            raise InvalidInput(
                f"{name}={_shown(values)}: must be a list, one for each of the {n} objects in "
                "their order"
            )
        if length != n:
            raise InvalidInput(f"{name}: {length} for {n} objects; there must be one for each")


def read_covariances(covariances: Any, n: int, d: int) -> NDArray[np.float64] | None:
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


def check_title(title: Any) -> None:
    """Refuse what is no text."""
    if title is not None and not isinstance(title, str):
        raise InvalidInput(f"title={title!r}: must be text; write it in quotes")


def read_colours(colour: Any, n: int) -> tuple[NDArray[Any], list[str] | None]:
    """Numbers, nan where one is missing, and None; or numbers of classes, -1, and their names.

    Examples
    --------
    >>> read_colours(["b", None, "a"], 3)
    (array([ 1, -1,  0]), ['a', 'b'])
    >>> read_colours([0.5, None], 2)
    (array([0.5, nan]), None)
    """
    try:
        values = np.asarray(colour)
    except ValueError as error:
        raise InvalidInput(
            f"colour={_shown(colour)}: must be one class or number for each of the {n} objects, "
            "and no lists within the list"
        ) from error
    if values.shape != (n,):
        raise InvalidInput(
            f"colour of shape {values.shape}: must be one class or number for each of the "
            f"{n} objects"
        )
    if values.dtype.kind == "f":
        return _on_a_scale(values), None
    each = values.tolist()
    missing = [_is_missing(x) for x in each]
    there = [x for x, none in zip(each, missing, strict=True) if not none]
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in there)
    if plain and any(isinstance(x, float) for x in there):
        filled = [np.nan if none else x for x, none in zip(each, missing, strict=True)]
        return _on_a_scale(np.array(filled, dtype=object)), None
    try:
        kinds = sorted(set(there))
    except TypeError:  # of several types, which have no order
        each, kinds = [str(x) for x in each], sorted({str(x) for x in there})
    number = {kind: i for i, kind in enumerate(kinds)}
    which = [-1 if none else number[x] for x, none in zip(each, missing, strict=True)]
    return np.array(which), [str(kind) if str(kind).strip() else EMPTY for kind in kinds]


def _on_a_scale(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers that a scale can hold; their span must be a number, too."""
    try:
        numbers = values.astype(np.float64)
    except OverflowError:
        numbers = np.array([np.finfo(np.float64).max])
    large = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    if large > _LARGEST:
        raise InvalidInput(
            f"colour as large as {large:.3g}: must be at most {_LARGEST:g} for a scale of colours; "
            "rescale the numbers"
        )
    return numbers


def _shown(value: Any) -> str:
    """What was given, on one line that ends."""
    return " ".join(repr(value).split())[:60]


def _is_missing(x: Any) -> bool:
    return x is None or (not isinstance(x, str) and str(x) in ("nan", "<NA>", "NaT"))


@dataclass(frozen=True)
class Projection:
    """Positions along a few directions.

    Attributes
    ----------
    places
        ``(n, k)``: where objects are along each direction shown.
    directions
        ``(d, k)``, orthonormal: which directions these are.
    shares
        ``(k,)``: how much of the variance each carries; nan where nothing varies.
    """

    places: Floats
    directions: Floats
    shares: Floats

    @property
    def names(self) -> list[str]:
        """What to write on the axes."""
        d, k = self.directions.shape
        which = [f"direction {j + 1} of {d}" if d > 2 else f"dimension {j + 1}" for j in range(k)]
        return [
            name if np.isnan(share) else f"{name} ({100 * share:.0f} % of the spread)"
            for name, share in zip(which, self.shares.tolist(), strict=True)
        ]

    def seen(self, covariances: Floats) -> Floats:
        """Covariances along the directions, ``(n, k, k)``."""
        return np.asarray(
            np.einsum("di,ndk,kj->nij", self.directions, covariances, self.directions)
        )


def project(positions: ArrayLike, most: int | None = _MOST_DIRECTIONS) -> Projection:
    """Positions with one or two dimensions as they are, others along their first directions.

    Parameters
    ----------
    positions
        ``(n, d)``.
    most
        How many directions at most; None: all.

    Examples
    --------
    >>> project([[0.0, 0.0, 1.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]], most=2).names
    ['direction 1 of 3 (93 % of the spread)', 'direction 2 of 3 (7 % of the spread)']
    """
    points = as_points(positions)
    d = points.shape[1]
    directions = np.eye(d)
    if d > 2:
        directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:most].T
        if directions.shape[1] < 2:
            directions = np.eye(d, 2)  # fewer than two objects have no spread to look along
    places = points @ directions
    total = float(points.var(axis=0).sum())
    shares = places.var(axis=0) / total if total > 0 else np.full(places.shape[1], np.nan)
    return Projection(places, np.asarray(directions), shares)


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
