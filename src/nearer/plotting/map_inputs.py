"""What printed and interactive maps take: positions, names, covariances, colours, pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from nearer.checks import as_points
from nearer.errors import InvalidInput

Floats = NDArray[np.float64]

#: suffixes of picture files
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")

MANY = 500  # objects; more have no room for all names and regions, and tables for all rows
PICTURE = 40.0  # points, or pixels of a page, of a picture where there is room


@dataclass(frozen=True)
class MapInputs:
    """What a map shows, checked: of each object what is known, along the directions shown."""

    places: Floats
    axes: list[str]  # what to write on them
    labels: list[str] | None
    covariances: Floats | None
    pictures: Sequence[str | os.PathLike[str] | None] | None
    colours: Floats | None  # values, or numbers of classes; nan where none is known
    classes: list[str] | None  # the names of the classes


def read_inputs(
    positions: ArrayLike,
    labels: Sequence[object] | None = None,
    covariances: ArrayLike | None = None,
    pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    colour: ArrayLike | None = None,
    most: int | None = None,
) -> MapInputs:
    """Check what a map takes.

    Positions in more than two dimensions are seen along the `most` directions of greatest variance,
    all of them where None; others stay as they are.

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
    for name, values in {"labels": labels, "pictures": pictures, "colour": colour}.items():
        if values is not None:
            _check_length(n, name, values)
    regions = None
    if covariances is not None:
        known = _read_covariances(covariances, n, d)
        regions = np.einsum("di,ndk,kj->nij", directions, known, directions)
    colours, classes = (None, None) if colour is None else _read_colours(colour)
    names = None if labels is None else list(map(str, labels))
    return MapInputs(places, axes, names, regions, pictures, colours, classes)


def _check_length(n: int, name: str, values: Any) -> None:
    """Refuse what is no list in order, or not as long as there are objects."""
    rule = f"must be a list, one for each of the {n} objects in their order"
    is_list = np.iterable(values) and not isinstance(values, str | bytes | Set | Mapping)
    length = len(values) if is_list else None
    if length is None:
        raise InvalidInput(f"{name}={repr(values)[:60]}: {rule}")
    if length != n:
        raise InvalidInput(f"{name}: {length} for {n} objects; there must be one for each")


def _read_covariances(covariances: Any, n: int, d: int) -> Floats:
    """A matrix of finite numbers for each object."""
    try:
        values = np.asarray(covariances, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n, d, d) or not np.isfinite(values).all():
        raise InvalidInput(
            f"covariances={' '.join(repr(covariances).split())[:60]}: must be ({n}, {d}, {d}) "
            "finite numbers, a matrix for each object; None draws none"
        )
    return values


def _read_colours(colour: Any) -> tuple[Floats, list[str] | None]:
    """Numbers and None; or numbers of classes and their names.

    Examples
    --------
    >>> _read_colours(["b", None, "a"])
    (array([ 1., nan,  0.]), ['a', 'b'])
    """
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
        raise InvalidInput(
            f"colour={repr(colour)[:60]}: must be a class or a number for each object, and "
            "no lists within the list; rescale numbers that are too large"
        ) from error
    classes = [str(name) if str(name).strip() else "(empty)" for name in names]
    return np.where(number < 0, np.nan, number), classes


def read_thumbnail(file: str | os.PathLike[str], size: float) -> Image.Image:
    """A picture, upright, sharp enough to be shown at a size in points or pixels of a page."""
    pixels = max(1, round(4 * size))  # four to each: fine screens have two or three
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
