"""What a map is given beside positions, checked once for maps to print and maps to explore."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput

__all__ = ["NO_VALUE", "check_given", "check_title", "read_colours"]

NO_VALUE = "no value"  # what a legend calls the objects whose colour is missing


def check_given(n: int, d: int, *, covariances: Any = None, **lists: Any) -> None:
    """Refuse lists that are not as long as there are objects, and covariances that are none."""
    for name, values in {**lists, "covariances": covariances}.items():
        if values is None:
            continue
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise InvalidInput(
                f"{name}={values!r}: must be a list, one for each of the {n} objects"
            )
        if len(values) != n:
            raise InvalidInput(f"{name}: {len(values)} for {n} objects; there must be one for each")
    shape = None if covariances is None else np.shape(covariances)
    if shape is not None and shape != (n, d, d):
        raise InvalidInput(
            f"covariances of shape {shape}: must be ({n}, {d}, {d}), a matrix for each object; "
            "None draws none"
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
    values = np.asarray(colour)
    if values.shape != (n,):
        raise InvalidInput(
            f"colour of shape {values.shape}: must be one class or number for each of the "
            f"{n} objects"
        )
    if values.dtype.kind == "f":
        return values, None
    each = values.tolist()
    missing = [_is_missing(x) for x in each]
    there = [x for x, none in zip(each, missing, strict=True) if not none]
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in there)
    if plain and any(isinstance(x, float) for x in there):
        filled = [np.nan if none else x for x, none in zip(each, missing, strict=True)]
        return np.array(filled, dtype=np.float64), None
    try:
        kinds = sorted(set(there))
    except TypeError:  # of several types, which have no order
        each, kinds = [str(x) for x in each], sorted({str(x) for x in there})
    number = {kind: i for i, kind in enumerate(kinds)}
    which = [-1 if none else number[x] for x, none in zip(each, missing, strict=True)]
    return np.array(which), [str(kind) for kind in kinds]


def _is_missing(x: Any) -> bool:
    return x is None or (not isinstance(x, str) and str(x) in ("nan", "<NA>", "NaT"))
