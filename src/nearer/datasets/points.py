"""Points by name or from a file: CSV, NPY, NPZ, Parquet.

CSV may have a header line. Columns that hold no numbers are the objects' names, the first of them
that has another text in every row, or else left aside, which `NamedPoints` says; a column that is
numbers in some rows and something else in others is an error with its place.

Numbers can be names, too: where a column is called id, index, label, name or object and has another
whole number in every row, or the first one counts the rows from 0 or 1, it is taken for no
coordinate, which is said, and can be said otherwise.
"""

from __future__ import annotations

import difflib
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.datasets.cities import load_cities
from nearer.datasets.synthetic import make_cube, make_mixture
from nearer.distances import as_points
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import content_suffix, read_bytes, read_numpy
from nearer.triplets.table import read_table

__all__ = ["BUILT_IN", "NamedPoints", "load_named_points", "load_points", "read_points"]

Points = NDArray[np.float64]

BUILT_IN: dict[str, Callable[[int | None], Points]] = {
    "3dgmm": lambda seed: make_mixture(500, 3, random_state=seed),
    "5dgmm": lambda seed: make_mixture(500, 5, random_state=seed),
    "5dcube": lambda seed: make_cube(500, 5, random_state=seed),
    "cities": lambda _: load_cities().points,
}


_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")  # a number as half the world writes it
_IDENTIFIERS = ("id", "index", "label", "name", "object")  # what columns of names are called


@dataclass(frozen=True)
class NamedPoints:
    """Points, what their objects are called where the file says, and the columns not used.

    `assumed` is the column of numbers that nobody called names and that were taken for them.
    """

    points: Points
    names: tuple[str, ...] | None = None
    unread: tuple[str, ...] = ()
    assumed: str | None = None


def load_points(
    name: str | Path, *, names: str = "auto", random_state: int | None = None
) -> Points:
    """Points of a built-in data set, or of a file.

    Parameters
    ----------
    name
        ``"3dgmm"``, ``"5dgmm"``, ``"5dcube"``, ``"cities"``, or the path of a file that
        `read_points` understands. An existing file wins over a built-in name.
    names
        As in `read_points`.
    random_state
        Seed of the built-in sets that are drawn at random.

    Examples
    --------
    >>> load_points("5dcube", random_state=0).shape
    (500, 5)
    """
    return _said(name, load_named_points(name, names=names, random_state=random_state))


def load_named_points(
    name: str | Path, *, names: str = "auto", random_state: int | None = None
) -> NamedPoints:
    """The same with what a file says beside the points; see `load_points`."""
    path = Path(name)
    if str(name) and path.exists():
        return _read(path, names)
    if str(name) in BUILT_IN:
        return NamedPoints(BUILT_IN[str(name)](random_state))
    close = difflib.get_close_matches(str(name), BUILT_IN, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidInput(
        f"{str(name)!r} is neither a file nor a built-in data set: {hint}built in are "
        f"{', '.join(BUILT_IN)}"
    )


def read_points(path: str | Path, *, names: str = "auto") -> Points:
    r"""Read ``(n, d)`` points from a .csv, .npy, .npz or .parquet file.

    Parameters
    ----------
    path
        Of the file. Of an .npz file the only array, or the one named ``X``, is read.
    names
        The column that names the objects, and is no coordinate: its heading, or ``"column 1"``
        where there is no heading. ``"auto"``: a column of texts, or one of numbers that is called
        id, index, label, name or object, or the first one where it counts the rows, with a warning.
        ``"none"``: every column of numbers is a coordinate.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = file.write_text("name,x,y\na,1,2\nb,3,4.5\n")
    >>> read_points(file)
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    return _said(path, _read(Path(path), names))


def _said(path: str | Path, given: NamedPoints) -> Points:
    """The points, with a warning where a column was taken for names."""
    if given.assumed is not None:
        warnings.warn(
            f"{path}: {given.assumed!r} numbers the objects, and is taken for their names and not "
            "for a coordinate; names='none' makes it one",
            AnswersWarning,
            stacklevel=3,
        )
    return given.points


def _read(path: Path, names: str) -> NamedPoints:
    readers = {
        ".csv": _read_csv,
        ".npy": _read_numpy,
        ".npz": _read_numpy,
        ".parquet": _read_parquet,
    }
    suffix = content_suffix(path)
    if suffix not in readers:
        raise InvalidInput(
            f"{path}: files of points are {', '.join(readers)}; this one ends in "
            f"{suffix or 'nothing'}"
        )
    values, columns, texts = readers[suffix](path)
    called, numbering = _names(path, values, columns, texts, names)
    if numbering is not None:
        j = columns.index(numbering)
        texts[numbering] = [np.format_float_positional(x, trim="-") for x in values[:, j]]
        values = np.delete(values, j, axis=1)
    try:
        points: Points = as_points(values)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    unread = tuple(column for column in texts if column not in (called, numbering))
    assumed = numbering if names == "auto" else None
    return NamedPoints(points, None if called is None else tuple(texts[called]), unread, assumed)


def _names(
    path: Path, values: Any, columns: list[str], texts: Texts, names: str
) -> tuple[str | None, str | None]:
    """The column that names the objects, and the column of numbers that is no coordinate."""
    if names not in ("auto", "none"):
        if names not in (*texts, *columns):
            there = ", ".join([*texts, *columns][:8]) or "none, as an array has no columns"
            raise InvalidInput(f"{path}: no column is called {names!r}; there are {there}")
        held = texts[names] if names in texts else values[:, columns.index(names)].tolist()
        if len(set(held)) < len(held):
            raise InvalidInput(f"{path}: {names!r} has the same name twice: each needs its own")
        return names, names if names in columns else None
    called = next((c for c, v in texts.items() if all(v) and len(set(v)) == len(v)), None)
    if names == "none" or len(columns) < 2:
        return called, None
    for j, column in enumerate(columns):
        numbers = values[:, j]
        distinct = np.array_equal(np.unique(numbers), np.sort(np.round(numbers)))
        counts = j == 0 and len(numbers) > 2 and numbers[0] in (0, 1)
        if (distinct and column.strip().lower() in _IDENTIFIERS) or (
            counts and np.array_equal(numbers, numbers[0] + np.arange(len(numbers)))
        ):
            return called or column, column
    return called, None


Texts = dict[str, list[str]]  # columns that hold no numbers


def _read_numpy(path: Path) -> tuple[Any, list[str], Texts]:
    held = read_numpy(path)
    if len(held) != 1 and "X" not in held:
        raise InvalidInput(f"{path}: holds {', '.join(held)}; name the array of points X")
    return held.get("X", next(iter(held.values()))), [], {}


def _read_parquet(path: Path) -> tuple[Any, list[str], Texts]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            f"{path}: reading Parquet needs pyarrow; pip install 'nearer[parquet]'"
        ) from error
    try:
        table = pq.read_table(io.BytesIO(read_bytes(path)))
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{path}: is no readable Parquet file: {error}") from error
    numbers: dict[str, Any] = {}
    texts = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers[name] = column.to_numpy()
        else:
            texts[name] = ["" if x is None else str(x) for x in column.to_pylist()]
    if not numbers:
        raise InvalidInput(f"{path}: has no column of numbers")
    return np.stack([*numbers.values()], axis=1), [*numbers], texts


def _read_csv(path: Path) -> tuple[Any, list[str], Texts]:
    table = read_table(path)
    header = [f"column {j + 1}" for j in range(table.width)]
    if len(table.rows) > 1 and not any(map(_is_number, table.rows[0])):
        header = [cell or blank for cell, blank in zip(table.rows[0], header, strict=True)]
        table = table.below()
    columns = [j for j in range(table.width) if any(map(_is_number, table.column(j)))]
    for j in set(range(table.width)) - set(columns):
        if all(map(_WITH_COMMA.fullmatch, cells := table.column(j))):  # no names, as texts are
            raise table.error(
                0, f"column {j + 1}: {cells[0]!r} has a comma; write decimals with a point, as 0.5"
            )
    if not columns:
        raise InvalidInput(f"{path}: has no column of numbers")
    for i, row in enumerate(table.rows):
        for j in columns:
            if not _is_number(row[j]):
                raise table.error(
                    i,
                    f"column {j + 1}: {row[j]!r} is not a number, as others of that column are; "
                    "fill it in, or take the row out",
                )
    texts = {header[j]: table.column(j) for j in range(table.width) if j not in columns}
    values = np.array([[float(row[j]) for j in columns] for row in table.rows])
    return values, [header[j] for j in columns], texts


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
