"""The rows of a table, once it is known which column is what: made into triplets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from nearer.triplets import columns as parts_of
from nearer.triplets.assembling import Beside, assemble
from nearer.triplets.collection import Triplets
from nearer.triplets.forms import (
    UNDERSTOOD,
    Verdicts,
    decided,
    named,
    read_answers,
    to_triplets,
)
from nearer.triplets.objects import EMPTY, Coding, Numbering, distinct_labels, number_objects
from nearer.triplets.table import TextTable

__all__ = ["read_rows"]

_OBJECTS = ("head", "near", "far", "a", "b", "chosen", "odd", "central", "item1", "item2", "item3")
_MAY_BE_EMPTY = ("chosen", "odd", "central")  # nobody decided


def read_rows(
    table: TextTable,
    names: Sequence[str],
    parts: Mapping[str, int],
    kind: str,
    *,
    objects: str,
    labels: Sequence[str] | None,
    strict: bool,
    first: int | None,
) -> Triplets:
    """Triplets from a table whose columns `names` play the `parts`.

    `strict`: an answer is yes or no, and no object. `first`: where places of an odd one begin.
    """
    coding = Coding()
    columns = {part: table.column(parts[part]) for part in _OBJECTS if part in parts}
    named_one = [part for part in _MAY_BE_EMPTY if part in columns]
    if named_one and ("b" in columns or "item3" in columns):  # all that can be named are shown
        things = {x for part in columns if part not in named_one for x in columns[part]}
        columns |= {part: decided(columns[part], repeat(things)) for part in named_one}
    if "answer" in parts and kind in ("odd-one-out", "most-central"):
        shown = list(zip(*(columns[f"item{i}"] for i in (1, 2, 3)), strict=True))
        which = "odd" if kind == "odd-one-out" else "central"
        columns[which] = named(shown, table.column(parts["answer"]), first, table.error)
    codes = {part: coding.encode(column) for part, column in columns.items()}
    verdicts = None
    if kind == "answers" and "answer" in parts and strict:
        verdicts = read_answers(table.column(parts["answer"]), table.error)
    elif kind == "answers" and "answer" in parts:
        verdicts, chosen = _answers(table, parts["answer"], coding, codes)
        if chosen is not None:
            codes["chosen"] = chosen
    numbering = number_objects(coding, objects, labels, table.error)
    numbered = {part: numbering.numbers[code] for part, code in codes.items()}
    _refuse_gaps(table, columns, numbered)
    answered = to_triplets(kind, numbered, verdicts, table.error)
    names_read: set[int] = set()
    if labels is None and numbering.are_numbers and kind == "triplets" and names:
        numbering, names_read = _named_beside(table, names, numbered, numbering)
    return assemble(
        answered,
        numbering.labels,
        kind=kind,
        lines=np.array(table.lines),
        beside=Beside.of_columns(table, parts),
        unread=[n for i, n in enumerate(names) if n and i not in names_read | set(parts.values())],
    )


def _refuse_gaps(
    table: TextTable,
    columns: Mapping[str, Sequence[str]],
    numbered: Mapping[str, NDArray[np.int64]],
) -> None:
    """A row without one of its objects cannot be read."""
    for part in numbered:
        gaps = np.flatnonzero(numbered[part] < 0).tolist() if part not in _MAY_BE_EMPTY else []
        if gaps:
            value = columns[part][gaps[0]]
            raise table.error(
                gaps[0],
                f"{part} is {repr(value) + ', which stands for nothing' if value else 'empty'}; "
                "fill it in, leave such rows out with drop_bad_rows=True (--drop-bad-rows), or "
                "list it in labels= where it is a name",
                gaps,
            )


def _answers(
    table: TextTable, column: int, coding: Coding, codes: Mapping[str, NDArray[np.int64]]
) -> tuple[Verdicts | None, NDArray[np.int64] | None]:
    """A column that says which was nearer: by naming it, or by yes and no."""
    values = decided(table.column(column), repeat(coding.codes))
    unknown = len(coding.codes)
    chosen = np.array([coding.codes.get(value, unknown) for value in values])
    names_one = (chosen == codes["a"]) | (chosen == codes["b"])
    empty = np.array([value in EMPTY for value in values]) & ~names_one
    clear = names_one | empty
    if not clear.all():
        if 2 * names_one.sum() > (~empty).sum() and not set(values) <= {"-1", "0", "1", *EMPTY}:
            rows = np.flatnonzero(~clear).tolist()
            raise table.error(
                rows[0],
                f"answer {values[rows[0]]!r} is neither of the two that were compared; "
                f"{UNDERSTOOD}",
                rows,
            )
        return read_answers(values, table.error), None
    if names_one.any() and set(values) <= {"0", "1", *EMPTY}:
        raise table.unclear(
            0,
            f"answer {values[0]!r} may be the object chosen, or whether the first is nearer; "
            'say which with columns={"head": …, "a": …, "b": …, "chosen" or "answer": …}',
        )
    return None, np.where(empty, coding.encode([""])[0], chosen)


def _named_beside(
    table: TextTable,
    names: Sequence[str],
    numbered: Mapping[str, NDArray[np.int64]],
    numbering: Numbering,
) -> tuple[Numbering, set[int]]:
    """Labels for numbered objects from columns beside the numbers, and which columns these are."""
    beside: list[tuple[NDArray[np.int64], list[str]]] = []
    used: set[int] = set()
    for part in ("head", "near", "far"):
        column = parts_of.name_columns(names, part)
        if column is not None:
            used.add(column)
            beside.append((numbered[part], table.column(column)))
    spoken = parts_of.spoken_columns(names)  # tripletTools: Center, Left, Right, Answer
    if not beside and spoken is not None:
        used.update(spoken)
        center, left, right, answer = (table.column(i) for i in spoken)
        loser = [r if w == x else x for x, r, w in zip(left, right, answer, strict=True)]
        beside = [
            (numbered["head"], center),
            (numbered["near"], answer),
            (numbered["far"], loser),
        ]
    found: dict[int, str] = {}
    for numbers, called in beside:
        for row, (number, name) in enumerate(zip(numbers.tolist(), called, strict=True)):
            if number >= 0 and name and found.setdefault(number, name) != name:
                raise table.error(
                    row,
                    f"object {number} is called {name!r}, and {found[number]!r} elsewhere; mend "
                    "the names, or pass labels=",
                )
    taken = set(found.values())  # an object without a name may have another's name as its number
    spare = [f"number {x}" if x in taken else x for x in numbering.labels]
    labels = [found.get(i, label) for i, label in enumerate(spare)]
    return Numbering(numbering.numbers, distinct_labels(labels, ()), True), used
