"""Points by name or from a file: CSV, NPY, NPZ, Parquet.

CSV may have a header line. Columns that hold no numbers (names, classes) are left aside, but a
column that is numbers in some rows and something else in others is an error with its place.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.datasets.cities import load_cities
from nearer.datasets.synthetic import make_cube, make_mixture
from nearer.distances import as_points
from nearer.errors import InvalidInput

__all__ = ["BUILT_IN", "load_points", "read_points"]

Points = NDArray[np.float64]

BUILT_IN: dict[str, Callable[[int | None], Points]] = {
    "3dgmm": lambda seed: make_mixture(500, 3, random_state=seed),
    "5dgmm": lambda seed: make_mixture(500, 5, random_state=seed),
    "5dcube": lambda seed: make_cube(500, 5, random_state=seed),
    "cities": lambda _: load_cities().points,
}


def load_points(name: str | Path, *, random_state: int | None = None) -> Points:
    """Points of a built-in data set, or of a file.

    Parameters
    ----------
    name
        ``"3dgmm"``, ``"5dgmm"``, ``"5dcube"``, ``"cities"``, or the path of a file that
        `read_points` understands. An existing file wins over a built-in name.
    random_state
        Seed of the built-in sets that are drawn at random.

    Examples
    --------
    >>> load_points("5dcube", random_state=0).shape
    (500, 5)
    """
    path = Path(name)
    if path.exists():
        return read_points(path)
    if str(name) in BUILT_IN:
        return BUILT_IN[str(name)](random_state)
    close = difflib.get_close_matches(str(name), BUILT_IN, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidInput(
        f"{str(name)!r} is neither a file nor a built-in data set: {hint}built in are "
        f"{', '.join(BUILT_IN)}"
    )


def read_points(path: str | Path) -> Points:
    r"""Read ``(n, d)`` points from a .csv, .npy, .npz or .parquet file.

    Of an .npz file the only array, or the one named ``X``, is read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = file.write_text("name,x,y\na,1,2\nb,3,4.5\n")
    >>> read_points(file)
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    path = Path(path)
    readers = {
        ".csv": _read_csv,
        ".npy": _read_numpy,
        ".npz": _read_numpy,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(
            f"{path}: files of points are {', '.join(readers)}; this one ends in "
            f"{path.suffix or 'nothing'}"
        )
    try:
        values = reader(path)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        points: Points = as_points(values)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return points


def _read_numpy(path: Path) -> Any:
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            names = loaded.files
            if len(names) != 1 and "X" not in names:
                raise InvalidInput(f"{path}: holds {names}; name the array of points X")
            loaded = loaded["X" if "X" in names else names[0]]
    except (ValueError, EOFError, KeyError) as error:
        raise InvalidInput(f"{path}: is no readable NumPy file of numbers: {error}") from error
    return loaded


def _read_parquet(path: Path) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            f"{path}: reading Parquet needs pyarrow; pip install 'nearer[parquet]'"
        ) from error
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{path}: is no readable Parquet file: {error}") from error
    numbers = [
        column.to_numpy()
        for column in table.columns
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    ]
    if not numbers:
        raise InvalidInput(f"{path}: has no column of numbers")
    return np.stack(numbers, axis=1)


def _read_csv(path: Path) -> Any:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [(i, row) for i, row in enumerate(csv.reader(file), start=1) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path}: is no readable CSV file in UTF-8: {error}") from error
    if not lines:
        raise InvalidInput(f"{path}: is empty; one line an object is needed")
    width = len(lines[0][1])
    for number, row in lines:
        if len(row) != width:
            raise InvalidInput(
                f"{path}, line {number}: has {len(row)} values where the first line has {width}; "
                "every line must have as many"
            )
    if len(lines) > 1 and not any(_is_number(cell) for cell in lines[0][1]):
        lines = lines[1:]
    columns = [j for j in range(width) if any(_is_number(row[j]) for _, row in lines)]
    if not columns:
        raise InvalidInput(f"{path}: has no column of numbers")
    for number, row in lines:
        for j in columns:
            if not _is_number(row[j]):
                raise InvalidInput(
                    f"{path}, line {number}, column {j + 1}: {row[j]!r} is not a number, as other "
                    "values of that column are"
                )
    return np.array([[float(row[j]) for j in columns] for _, row in lines])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
