"""Triplets in NumPy's own files.

``.npy`` holds an ``(m, 3)`` array of triplets, or an ``(m, 4)`` one of questions with the answer
in the last column. ``.npz`` holds ``triplets``, or ``questions`` and ``answers`` (cblearn's
``query`` or ``triplet`` and ``response`` are the same thing), and optionally ``labels``,
``weights``, ``persons`` and ``person_labels``. Answers are booleans, 1 and 0, or 1 and −1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.files import content_suffix, read_numpy

__all__ = ["Arrays", "read_arrays"]

_NAMES = {
    "triplets": ("triplets", "triplet", "questions", "queries", "query", "X", "arr_0"),
    "answers": ("answers", "responses", "response", "y", "arr_1"),
    "weights": ("weights", "sample_weight"),
    "labels": ("labels", "names"),
    "persons": ("persons", "participants", "workers"),
    "person_labels": ("person_labels",),
}


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
    part = _parts(name, held, keys, len(columns))
    return Arrays(
        columns=columns,
        answers=None if answers is None else _answers(name, answers, len(columns)),
        weights=None if part["weights"] is None else part["weights"].astype(np.float64),
        labels=None if part["labels"] is None else tuple(map(str, part["labels"].tolist())),
        persons=part["persons"],
        person_labels=(
            () if part["person_labels"] is None else tuple(map(str, part["person_labels"].tolist()))
        ),
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
    whole = (objects == np.trunc(objects)) & (objects >= 0)
    if not whole.all():
        row = int(np.argmin(whole.all(axis=1)))
        raise InvalidInput(
            f"{name}, row {row}: {rows[row].tolist()}: objects are whole numbers from 0"
        )
    return objects.astype(np.int64), rows[:, 3] if rows.shape[1] == 4 else None


def _answers(name: str, answers: NDArray[Any], m: int) -> list[str]:
    if answers.shape != (m,):
        raise InvalidInput(
            f"{name}: answers of shape {answers.shape} for {m} questions; one is needed for each"
        )
    return [str(value) for value in answers.tolist()]


def _parts(
    name: str, held: Mapping[str, NDArray[Any]], keys: Mapping[str, str | None], m: int
) -> dict[str, NDArray[Any] | None]:
    parts = {part: None if key is None else held[key] for part, key in keys.items()}
    for part in ("weights", "persons"):
        values = parts[part]
        if values is not None and values.shape != (m,):
            raise InvalidInput(
                f"{name}: {part} of shape {values.shape} for {m} rows; one is needed for each"
            )
    persons = parts["persons"]
    if persons is not None and (persons.dtype.kind not in "iu" or parts["person_labels"] is None):
        names, codes = np.unique(persons.astype(np.str_), return_inverse=True)
        parts["persons"], parts["person_labels"] = codes, names
    return parts
