"""What a map is given beside positions, checked once for maps to print and maps to explore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from nearer.errors import InvalidInput

__all__ = [
    "EMPTY",
    "NO_VALUE",
    "check_axes",
    "check_given",
    "check_title",
    "read_colours",
    "read_covariances",
]

NO_VALUE = "no value"  # what a legend calls the objects whose colour is missing
EMPTY = "(empty)"  # … and the class whose name is no letter
_LARGEST = 1e300  # of numbers on a scale: their span, and room beside it, are numbers still


def check_given(n: int, **lists: Any) -> None:
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


def check_axes(ax: Any) -> None:
    """Refuse what cannot be drawn on."""
    if ax is not None and not isinstance(ax, Axes):
        raise InvalidInput(
            f"ax={_shown(ax)}: must be one Matplotlib Axes; of a figure give figure.subplots(), "
            "of an array of axes one of them"
        )


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
