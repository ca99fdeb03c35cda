"""Write triplets so that they are read back as they were, here and by the tools people have.

Text has the columns ``head,winner,loser`` with the objects' numbers, as Salmon and tripletTools
read them; then, where objects have names of their own, ``head_name,winner_name,loser_name``; then
``weight``, ``participant`` and ``seconds`` where these are known. ``.npz`` holds all of it but the
seconds, objects that no triplet names included; ``.npy`` holds the array alone.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.errors import InvalidInput
from nearer.files import content_suffix, table_text, write_bytes
from nearer.triplets.collection import Triplets
from nearer.triplets.objects import distinct_labels
from nearer.triplets.report import examine

__all__ = ["write_triplets"]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}


def write_triplets(
    path: str | os.PathLike[str],
    triplets: Triplets | ArrayLike,
    *,
    labels: Sequence[str] | None = None,
) -> None:
    """Write triplets to a file: ``.csv``, ``.tsv``, ``.txt``, ``.npy`` or ``.npz``.

    Parameters
    ----------
    path
        Where to. ``.gz``, ``.xz`` or ``.bz2`` after the suffix compresses. An existing file is
        replaced when the new one is complete.
    triplets
        ``(m, 3)`` integers, rows ``(head, near, far)``, or what `read_triplets` returned.
    labels
        What objects 0 … n−1 are called, where `triplets` is an array.

    Examples
    --------
    >>> import nearer, numpy as np, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> nearer.write_triplets(file, np.array([[0, 1, 2]]), labels=["ape", "bee", "cat"])
    >>> print(file.read_text())
    head,winner,loser,head_name,winner_name,loser_name
    0,1,2,ape,bee,cat
    >>> nearer.read_triplets(file).labels
    ('ape', 'bee', 'cat')
    """
    answers = _collected(triplets, labels)
    for label in (*answers.labels, *answers.person_labels):
        if "\0" in label:
            raise InvalidInput(f"label {label!r}: holds a NUL, which no file keeps; take it out")
    suffix = content_suffix(path)
    if suffix in _SEPARATORS:
        data = _text(answers, _SEPARATORS[suffix]).encode()
    elif suffix == ".npy":
        data = _npy(answers)
    elif suffix == ".npz":
        data = _npz(answers)
    else:
        raise InvalidInput(
            f"{os.fspath(path)}: cannot write {suffix or 'a file without suffix'}; use "
            f"{', '.join(_SEPARATORS)}, .npy or .npz"
        )
    write_bytes(path, data)


def _collected(triplets: Triplets | ArrayLike, labels: Sequence[str] | None) -> Triplets:
    if isinstance(triplets, Triplets):
        if labels is not None:
            raise InvalidInput("labels: these triplets have their own; pass an array with labels")
        return triplets
    rows = np.asarray(triplets)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise InvalidInput(
            f"triplets of shape {rows.shape} and type {rows.dtype}: must be (m, 3) integers "
            "(head, near, far)"
        )
    n = int(rows.max(initial=-1)) + 1
    called = distinct_labels(labels, [str(i) for i in range(n)])
    if rows.min(initial=0) < 0 or len(called) < n:
        raise InvalidInput(
            f"object {rows.min() if rows.min() < 0 else n - 1}: objects run from 0, each with a "
            f"label; there are {len(called)} labels"
        )
    for label in called:
        if not label or label != label.strip():
            raise InvalidInput(
                f"label {label!r}: is empty or has white space around it, which no table keeps; "
                "strip it"
            )
    rows = rows.astype(np.int64)
    return Triplets(rows, called, report=examine(rows, called))


def _text(answers: Triplets, separator: str) -> str:
    header = ["head", "winner", "loser"]
    columns: list[Iterable[Any]] = [column.tolist() for column in answers.triplets.T]
    if answers.labels != tuple(map(str, range(answers.n_objects))):
        header += ["head_name", "winner_name", "loser_name"]
        columns += [_named(answers.labels, column) for column in answers.triplets.T]
    if answers.weights is not None:
        header.append("weight")
        columns.append(answers.weights.tolist())
    if answers.people is not None:
        header.append("participant")
        columns.append(answers.people.tolist())
    if answers.seconds is not None:
        header.append("seconds")
        columns.append(answers.seconds.tolist())
    return table_text(header, zip(*columns, strict=True), separator)


def _named(labels: Sequence[str], numbers: NDArray[np.int64]) -> list[str]:
    return [labels[i] for i in numbers.tolist()]


def _npy(answers: Triplets) -> bytes:
    sink = io.BytesIO()
    np.save(sink, answers.triplets)
    return sink.getvalue()


def _npz(answers: Triplets) -> bytes:
    held: dict[str, Any] = {
        "triplets": answers.triplets,
        "labels": np.array(answers.labels, dtype=np.str_),
    }
    if answers.weights is not None:
        held["weights"] = answers.weights
    if answers.persons is not None:
        held["persons"] = answers.persons
        held["person_labels"] = np.array(answers.person_labels, dtype=np.str_)
    sink = io.BytesIO()
    np.savez_compressed(sink, **held)
    return sink.getvalue()
