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

from nearer.errors import InvalidInput
from nearer.questions import MAX_OBJECTS

__all__ = ["EMPTY", "Numbering", "distinct_labels", "number_objects", "option", "sorted_names"]

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")
# nothing, as R, pandas, SQL, Excel and JSON write it
EMPTY = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"})

Wrong = Callable[[str, str], InvalidInput]


def option(python: str, flag: str) -> str:
    """How messages name an option of reading: for whoever calls the library, or the command."""
    return f"nearer.read_triplets(…, {python}) or {flag}"


_AS_NAMES = option('objects="names"', "--names")


@dataclass(frozen=True)
class Numbering:
    """The number of each value, −1 for an empty one, and the labels of objects 0 … n−1."""

    numbers: dict[str, int]
    labels: tuple[str, ...]
    are_numbers: bool


def number_objects(
    values: Sequence[str], objects: str, labels: Sequence[str] | None, wrong: Wrong
) -> Numbering:
    """Decide whether distinct values are numbers or names, and number them.

    `wrong` makes an error that says where a value stands.
    """
    listed = set() if labels is None else set(labels)
    whole = {value: number for value in values if (number := _whole(value)) is not None}
    names = [v for v in values if v not in whole and (v not in EMPTY or v in listed)]
    comma = next((v for v in names if _DECIMAL_COMMA.fullmatch(v) and v not in listed), None)
    if comma is not None and objects != "names":
        raise wrong(comma, f"object {comma!r} has a decimal comma; write numbers with a point")
    if objects == "auto":
        all_listed = bool(listed) and listed.issuperset([*whole, *names])
        if whole and names and not all_listed:
            is_, rest = ("not ", names) if len(names) <= len(whole) else ("", list(whole))
            raise wrong(
                rest[0],
                f"object {rest[0]!r} is {is_}a whole number, but {len(values) - len(rest)} of "
                f"{len(values)} objects are{'' if is_ else ' not'}; mend it, or say that all are "
                f"names: {_AS_NAMES}",
            )
        objects = "names" if all_listed or names else "numbers"
    if objects == "numbers":
        if names:
            raise wrong(names[0], f"object {names[0]!r}: numbers must be whole numbers")
        return _numbered(values, whole, labels, wrong)
    if labels is None:
        labels = sorted_names([*whole, *names])
    place = {name: i for i, name in enumerate(distinct_labels(labels))}
    for name in (*whole, *names):
        if name not in place:
            raise wrong(name, f"object {name!r} is not among the {len(place)} labels given")
    return Numbering({v: place.get(v, -1) for v in values}, tuple(place), are_numbers=False)


def _numbered(
    values: Sequence[str], whole: dict[str, int], labels: Sequence[str] | None, wrong: Wrong
) -> Numbering:
    n = max(whole.values(), default=-1) + 1 if labels is None else len(labels)
    most = MAX_OBJECTS if labels is None else n
    rule = f"at most {MAX_OBJECTS:,}" if labels is None else f"there are {n} labels"
    for value, number in whole.items():
        if number < 0:
            raise wrong(value, f"object {value}: numbers start at 0")
        if number >= most:
            raise wrong(
                value,
                f"object {value}: numbers run from 0 and {rule}; if these are names (also where "
                f"they start at 1), say so: {_AS_NAMES}",
            )
    called = distinct_labels(range(n) if labels is None else labels)
    return Numbering({v: whole.get(v, -1) for v in values}, called, are_numbers=True)


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


def distinct_labels(labels: Iterable[object]) -> tuple[str, ...]:
    """Labels as texts; two that are the same are refused."""
    texts = tuple(str(label) for label in labels)
    if len(set(texts)) < len(texts):
        twice = next(text for i, text in enumerate(texts) if text in texts[:i])
        raise InvalidInput(
            f"label {twice!r} occurs twice; every object needs its own; pass labels= with names "
            "that differ"
        )
    return texts


def _whole(value: str) -> int | None:
    """The whole number that a text is, also as 3.0 or 3e0, or None."""
    if not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    if not number.is_integer():
        return None
    return int(value) if value.lstrip("+-").isdecimal() else int(number)
