"""Names and numbers of objects: what a file calls them, and the 0 … n−1 that the rest works with.

*Numbers* are kept: object 7 of the file is object 7 here, so that results line up with whatever
else the user has about it, and a number that never occurs is an object never compared. *Names* are
put in alphabetical order, or in numerical order where all of them are whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.questions import MAX_OBJECTS
from nearer.triplets.table import TextTable

__all__ = ["EMPTY", "Coding", "Numbering", "distinct_labels", "number_objects", "sorted_names"]

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
EMPTY = frozenset({"", "NA", "NaN", "nan", "None", "null"})  # as R, pandas and JSON write it


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
    coding: Coding, objects: str, labels: Sequence[str] | None, table: TextTable
) -> Numbering:
    """Decide whether values are numbers or names, and number them."""
    values = list(coding.codes)
    whole = {value: number for value in values if (number := _whole(value)) is not None}
    empty = {value for value in values if value in EMPTY and value not in whole}
    names = [value for value in values if value not in whole and value not in empty]
    if objects == "auto":
        listed = labels is not None and all(v in set(labels) for v in [*whole, *names])
        if whole and names and not listed:
            raise _fault(
                coding,
                table,
                names[0],
                f"object {names[0]!r} is not a whole number, but {len(whole)} of "
                f'{len(whole) + len(names)} objects are; mend it, or pass objects="names"',
            )
        objects = "names" if listed or names else "numbers"
    if objects == "numbers":
        if names:
            raise _fault(
                coding, table, names[0], f"object {names[0]!r}: numbers must be whole numbers"
            )
        return _numbered(coding, whole, labels, table)
    # "NA" may well be a name; among names only an empty field is none
    return _named(coding, [value for value in values if value], labels, table)


def _numbered(
    coding: Coding, whole: dict[str, int], labels: Sequence[str] | None, table: TextTable
) -> Numbering:
    n = max(whole.values(), default=-1) + 1 if labels is None else len(labels)
    for value, number in whole.items():
        if number < 0:
            raise _fault(coding, table, value, f"object {value}: numbers start at 0")
        if number >= MAX_OBJECTS or (labels is not None and number >= n):
            rule = f"there are {n} labels" if labels is not None else f"at most {MAX_OBJECTS:,}"
            raise _fault(
                coding,
                table,
                value,
                f"object {value}: numbers run from 0 and {rule}; pass "
                'objects="names" if these are names (also where they start at 1)',
            )
    numbers = np.array([whole.get(value, -1) for value in coding.codes], dtype=np.int64)
    return Numbering(numbers, distinct_labels(labels, [str(i) for i in range(n)]), are_numbers=True)


def _named(
    coding: Coding, names: Sequence[str], labels: Sequence[str] | None, table: TextTable
) -> Numbering:
    if labels is None:
        labels = sorted_names(names)
    place = {name: i for i, name in enumerate(distinct_labels(labels, labels))}
    for name in names:
        if name not in place:
            raise _fault(
                coding, table, name, f"object {name!r} is not among the {len(place)} labels given"
            )
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


def _fault(coding: Coding, table: TextTable, value: str, what: str) -> InvalidInput:
    return table.error(coding.first_row[coding.codes[value]], what)
