"""Triplets in NumPy's own files.

``.npy`` holds an ``(m, 3)`` array of triplets, or an ``(m, 4)`` one of questions with the answer
in the last column. ``.npz`` holds ``triplets``, or ``questions`` and ``answers`` (cblearn's
``query`` or ``triplet`` and ``response`` are the same thing), and optionally ``labels``,
``weights``, ``persons`` and ``person_labels``. Answers are booleans, 1 and 0, or 1 and −1.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.files import content_suffix, read_numpy
from nearer.triplets.assembling import coded

__all__ = ["Arrays", "read_arrays"]

_NAMES = {
    "triplets": ("triplets", "triplet", "questions", "queries", "query", "X", "arr_0"),
    "answers": ("answers", "responses", "response", "y", "arr_1"),
    "weights": ("weights", "sample_weight"),
    "labels": ("labels", "names"),
    "persons": ("persons", "participants", "workers"),
    "person_labels": ("person_labels",),
}
_MOST_FLOAT = 1 << 53  # above it not every whole number is a float


@dataclass(frozen=True)
class Arrays:
    """Rows of three columns or more, answers beside them, and what else the file holds."""

    columns: NDArray[np.int64]
    answers: list[str] | None
    weights: NDArray[np.float64] | None
    labels: tuple[str, ...] | None
    persons: NDArray[np.int64] | None
    person_labels: tuple[str, ...]
    unread: tuple[str, ...]
    plain: bool  # nothing says what the columns are


def read_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Read a ``.npy`` or ``.npz`` file, compressed or not."""
    name = os.fspath(path)
    held = read_numpy(path)
    keys = {part: next((k for k in known if k in held), None) for part, known in _NAMES.items()}
    if keys["triplets"] is None:
        raise InvalidInput(
            f"{name}: holds {', '.join(held) or 'nothing'}; it needs an array called 'triplets', "
            "or 'questions' and 'answers'"
        )
    rows = held[keys["triplets"]]
    columns, last = _columns(name, rows)
    answers = last if keys["answers"] is None else held[keys["answers"]]
    if answers is None and keys["triplets"] in ("questions", "queries", "query"):
        raise InvalidInput(f"{name}: holds questions without 'answers'; add them")
    part = {name: None if key is None else held[key] for name, key in keys.items()}
    weights, labels, persons = part["weights"], part["labels"], part["persons"]
    for what, values in (("weights", weights), ("persons", persons)):
        if values is not None and values.shape != (len(columns),):
            raise InvalidInput(
                f"{name}: {what} of shape {values.shape} for {len(columns)} rows; one is needed "
                "for each"
            )
    who, named = (None, ()) if persons is None else _persons(name, persons, part["person_labels"])
    return Arrays(
        columns=columns,
        answers=None if answers is None else _answers(name, answers, len(columns)),
        weights=None if weights is None else _weights(name, weights),
        labels=None if labels is None else _texts(name, "labels", labels),
        persons=who,
        person_labels=named,
        unread=tuple(k for k in held if k not in keys.values()),
        plain=content_suffix(path) == ".npy",
    )


def _columns(name: str, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    if rows.ndim != 2 or rows.shape[1] not in (3, 4) or rows.dtype.kind not in "iuf":
        raise InvalidInput(
            f"{name}: an array of shape {rows.shape} and type {rows.dtype}; it must hold whole "
            "numbers, three a row (head, near, far), or four (head, a, b, answer)"
        )
    objects = rows[:, :3]
    most = _MOST_FLOAT if rows.dtype.kind == "f" else np.iinfo(np.int64).max
    if rows.dtype.kind == "f":
        objects = objects.astype(np.float64)
    whole = (objects == np.trunc(objects)) & (objects >= 0) & (objects <= most)
    if not whole.all():
        row = int(np.argmin(whole.all(axis=1)))
        raise InvalidInput(
            f"{name}, row {row}: {rows[row].tolist()}: objects are whole numbers from 0 to {most}; "
            "number them from 0"
        )
    return objects.astype(np.int64), rows[:, 3] if rows.shape[1] == 4 else None


def _answers(name: str, answers: NDArray[Any], m: int) -> list[str]:
    if answers.shape != (m,):
        raise InvalidInput(
            f"{name}: answers of shape {answers.shape} for {m} questions; one is needed for each"
        )
    return list(_texts(name, "answers", answers))


def _weights(name: str, weights: NDArray[Any]) -> NDArray[np.float64]:
    if weights.dtype.kind not in "biuf":
        raise InvalidInput(f"{name}: weights of type {weights.dtype}; they must be numbers")
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise InvalidInput(
            f"{name}, row {row}: weight {weights[row]}: must be a number of at least 0; mend it"
        )
    return weights.astype(np.float64)


def _persons(
    name: str, persons: NDArray[Any], labels: NDArray[Any] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """People as places among their labels; where there are none, as what they are called."""
    if labels is None or persons.dtype.kind not in "iuf":
        return coded(_texts(name, "persons", persons))
    named = _texts(name, "person_labels", labels)
    good = (persons == np.trunc(persons)) & (persons >= -1) & (persons < len(named))
    if not good.all():
        row = int(np.argmin(good))
        raise InvalidInput(
            f"{name}, row {row}: person {persons[row]}, but there are {len(named)} person_labels; "
            "persons are counted from 0, and -1 is nobody"
        )
    return persons.astype(np.int64), named


def _texts(name: str, part: str, values: NDArray[Any]) -> tuple[str, ...]:
    """A list of texts or numbers as texts; bytes are UTF-8."""
    if values.ndim != 1 or values.dtype.kind not in "USbiuf":
        raise InvalidInput(
            f"{name}: {part} of shape {values.shape} and type {values.dtype}; they must be a list "
            "of texts or numbers"
        )
    try:
        texts = tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist())
        "".join(texts).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"{name}: {part} cannot be written as UTF-8 ({error.reason}); save them as texts"
        ) from error
    return texts
