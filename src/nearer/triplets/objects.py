"""Names and numbers of objects: what a file calls them, and the 0 … n−1 that the rest works with.

*Numbers* are kept: object 7 of the file is object 7 here, so that results line up with whatever
else the user has about it, and a number that never occurs is an object never compared. *Names* are
put in alphabetical order, or in numerical order where all of them are whole numbers. What R, pandas
and JSON write for nothing (``NA``, ``nan``, ``null`` …) is no object, unless labels say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.questions import MAX_OBJECTS

__all__ = [
    "EMPTY",
    "Coding",
    "Fault",
    "Numbering",
    "beyond",
    "distinct_labels",
    "number_objects",
    "sorted_names",
]

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")
# nothing, as R, pandas, SQL, Excel and JSON write it
EMPTY = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"})

Fault = Callable[[int, str], InvalidInput]


class Coding:
    """Codes for values in order of appearance; remembers where each was first seen."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.first_row: list[int] = []

    def encode(self, values: Sequence[str]) -> NDArray[np.int64]:
        """One code for each value."""
        known = self.codes
        for row, value in enumerate(values):
            if value not in known:
                known[value] = len(known)
                self.first_row.append(row)
        return np.fromiter(map(known.__getitem__, values), dtype=np.int64, count=len(values))


@dataclass(frozen=True)
class Numbering:
    """The number of each code, −1 for an empty field, and the labels of objects 0 … n−1."""

    numbers: NDArray[np.int64]
    labels: tuple[str, ...]
    are_numbers: bool


def number_objects(
    coding: Coding, objects: str, labels: Sequence[str] | None, fault: Fault
) -> Numbering:
    """Decide whether values are numbers or names, and number them; `fault` says where a row is."""
    values = list(coding.codes)
    listed = set() if labels is None else set(labels)
    whole = {value: number for value in values if (number := _whole(value)) is not None}
    names = [v for v in values if v not in whole and (v not in EMPTY or v in listed)]

    def wrong(value: str, what: str) -> InvalidInput:
        return fault(coding.first_row[coding.codes[value]], what)

    comma = next((v for v in names if _DECIMAL_COMMA.fullmatch(v) and v not in listed), None)
    if comma is not None and objects != "names":
        raise wrong(comma, f"object {comma!r} has a decimal comma; write numbers with a point")
    if objects == "auto":
        told = bool(listed) and listed.issuperset([*whole, *names])
        if whole and names and not told:
            is_, rest = ("not ", names) if len(names) <= len(whole) else ("", list(whole))
            raise wrong(
                rest[0],
                f"object {rest[0]!r} is {is_}a whole number, but {len(values) - len(rest)} of "
                f"{len(values)} objects are{'' if is_ else ' not'}; mend it, or pass "
                'objects="names" (--names)',
            )
        objects = "names" if told or names else "numbers"
    if objects == "numbers":
        if names:
            raise wrong(names[0], f"object {names[0]!r}: numbers must be whole numbers")
        return _numbered(coding, whole, labels, wrong)
    return _named(coding, [*whole, *names], labels, wrong)


Wrong = Callable[[str, str], InvalidInput]


def _numbered(
    coding: Coding, whole: dict[str, int], labels: Sequence[str] | None, wrong: Wrong
) -> Numbering:
    n = max(whole.values(), default=-1) + 1 if labels is None else len(labels)
    for value, number in whole.items():
        if number < 0:
            raise wrong(value, f"object {value}: numbers start at 0")
        if number >= MAX_OBJECTS or (labels is not None and number >= n):
            raise wrong(value, beyond(value, None if labels is None else n))
    numbers = np.array([whole.get(value, -1) for value in coding.codes], dtype=np.int64)
    return Numbering(numbers, distinct_labels(labels, [str(i) for i in range(n)]), are_numbers=True)


def beyond(value: object, n_labels: int | None = None) -> str:
    """What is wrong with a number that no object can have."""
    rule = f"there are {n_labels} labels" if n_labels is not None else f"at most {MAX_OBJECTS:,}"
    return (
        f"object {value}: numbers run from 0 and {rule}; pass "
        'objects="names" if these are names (also where they start at 1)'
    )


def _named(
    coding: Coding, names: Sequence[str], labels: Sequence[str] | None, wrong: Wrong
) -> Numbering:
    if labels is None:
        labels = sorted_names(names)
    place = {name: i for i, name in enumerate(distinct_labels(labels, labels))}
    for name in names:
        if name not in place:
            raise wrong(name, f"object {name!r} is not among the {len(place)} labels given")
    numbers = np.array([place.get(value, -1) for value in coding.codes], dtype=np.int64)
    return Numbering(numbers, tuple(place), are_numbers=False)


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names in alphabetical order, or in numerical order where all of them are whole numbers.

    Examples
    --------
    >>> sorted_names(["10", "9"]), sorted_names(["10", "9", "nine"])
    (['9', '10'], ['10', '9', 'nine'])
    """
    wholes = {name: _whole(name) for name in names}
    if any(number is None for number in wholes.values()):
        return sorted(wholes)
    return sorted(wholes, key=lambda name: (wholes[name] or 0, name))


def distinct_labels(labels: Sequence[str] | None, otherwise: Sequence[str]) -> tuple[str, ...]:
    """The labels given, or else the others, as a tuple without repeats."""
    chosen = tuple(str(label) for label in (otherwise if labels is None else labels))
    if len(set(chosen)) < len(chosen):
        twice = next(label for i, label in enumerate(chosen) if label in chosen[:i])
        raise InvalidInput(
            f"label {twice!r} occurs twice; every object needs its own; "
            "pass labels= with names that differ"
        )
    return chosen


def _whole(value: str) -> int | None:
    """The whole number that a text is, also as 3.0 or 3e0, or None."""
    if not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    if not number.is_integer():
        return None
    return int(value) if value.lstrip("+-").isdecimal() else int(number)
