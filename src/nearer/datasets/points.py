"""Points drawn at random, built in, or read from a file.

A table may have a header. The objects' names are the first column of texts that differ from row to
row; other columns of texts are ignored, which `NamedPoints` says. Numbers can be names, too: a
column of distinct whole numbers that is called id, index, label, name or object, or a first column
that counts the rows from 0 or 1, is taken for names with a warning, unless the caller says
otherwise. A column with numbers in some rows and other texts in others is an error.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.datasets.published import load_cities
from nearer.distances import as_points
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import content_suffix, read_numpy
from nearer.triplets.table import load_table

__all__ = [
    "BUILT_IN",
    "NamedPoints",
    "load_named_points",
    "load_points",
    "make_ball",
    "make_cube",
    "make_gaussian",
    "make_mixture",
    "make_sphere",
    "read_points",
]

Seed = int | np.random.Generator | None
Points = NDArray[np.float64]

BUILT_IN: dict[str, Callable[[int | None], Points]] = {
    "3dgmm": lambda seed: make_mixture(500, 3, random_state=seed),
    "5dgmm": lambda seed: make_mixture(500, 5, random_state=seed),
    "5dcube": lambda seed: make_cube(500, 5, random_state=seed),
    "cities": lambda _: load_cities().points,
}

_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_IDENTIFIERS = ("id", "index", "label", "name", "object")


@dataclass(frozen=True)
class NamedPoints:
    """Points of a file, the objects' names where the file has some, and the columns not used.

    `assumed` is the column of numbers that was taken for names without being asked to.
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
        `read_points` understands. An existing file has priority over a built-in name.
    names
        As in `read_points`.
    random_state
        Seed of the built-in sets that are drawn at random.

    Examples
    --------
    >>> load_points("5dcube", random_state=0).shape
    (500, 5)
    """
    loaded = load_named_points(name, names=names, random_state=random_state)
    if loaded.assumed is not None:
        warnings.warn(
            f"{name}: {loaded.assumed!r} numbers the objects, and is taken for their names and not "
            "for a coordinate; names='none' makes it one",
            AnswersWarning,
            stacklevel=2,
        )
    return loaded.points


def load_named_points(
    name: str | Path, *, names: str = "auto", random_state: int | None = None
) -> NamedPoints:
    """The same as `load_points`, with the names of the objects."""
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
    r"""Read ``(n, d)`` points from a file: a table of any format, or a NumPy array.

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
    if not Path(path).exists():
        raise InvalidInput(f"{path}: there is no such file")
    return load_points(path, names=names)


def _read(path: Path, names: str) -> NamedPoints:
    is_numpy = content_suffix(path) in (".npy", ".npz")
    values, columns, texts = _read_numpy(path) if is_numpy else _read_table(path)
    named_by, numbering = _name_columns(path, values, columns, texts, names)
    if numbering is not None:
        j = columns.index(numbering)
        texts[numbering] = [np.format_float_positional(x, trim="-") for x in values[:, j]]
        values = np.delete(values, j, axis=1)
    try:
        points: Points = as_points(values)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    unread = tuple(column for column in texts if column not in (named_by, numbering))
    assumed = numbering if names == "auto" else None
    called = None if named_by is None else tuple(texts[named_by])
    return NamedPoints(points, called, unread, assumed)


Texts = dict[str, list[str]]  # columns that hold no numbers


def _read_numpy(path: Path) -> tuple[Any, list[str], Texts]:
    arrays = read_numpy(path)
    if len(arrays) != 1 and "X" not in arrays:
        raise InvalidInput(f"{path}: holds {', '.join(arrays)}; name the array of points X")
    return arrays.get("X", next(iter(arrays.values()))), [], {}


def _read_table(path: Path) -> tuple[Any, list[str], Texts]:
    table = load_table(path)
    table.refuse_ragged()
    if table.has_header is None and len(table) > 1 and not any(map(_is_number, table.first_row())):
        table = table.with_header()
    blank = [f"column {j + 1}" for j in range(table.width)]
    header = [name or b for name, b in zip(table.header or blank, blank, strict=True)]
    cells = [table.column(j) for j in range(table.width)]
    numbers: dict[str, list[float]] = {}
    texts: Texts = {}
    for j, (name, column) in enumerate(zip(header, cells, strict=True)):
        wrong = [i for i, cell in enumerate(column) if not _is_number(cell)]
        if len(wrong) == len(column) and not all(map(_DECIMAL_COMMA.fullmatch, column)):
            texts[name] = column
        elif wrong:
            raise table.fault(
                wrong[0],
                f"column {j + 1}: {column[wrong[0]]!r} is not a number; fill it in, write decimals "
                "with a point, or take the row out",
            )
        else:
            numbers[name] = [float(cell) for cell in column]
    if not numbers:
        raise InvalidInput(f"{path}: has no column of numbers")
    return np.stack([*numbers.values()], axis=1), [*numbers], texts


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _name_columns(
    path: Path, values: Any, columns: list[str], texts: Texts, names: str
) -> tuple[str | None, str | None]:
    """The column that names the objects, and the column of numbers that is no coordinate."""
    if names not in ("auto", "none"):
        if names not in (*texts, *columns):
            there = ", ".join([*texts, *columns][:8]) or "none, as an array has no columns"
            raise InvalidInput(f"{path}: no column is called {names!r}; there are {there}")
        named = texts[names] if names in texts else values[:, columns.index(names)].tolist()
        if len(set(named)) < len(named):
            raise InvalidInput(f"{path}: {names!r} has the same name twice: each needs its own")
        return names, names if names in columns else None
    named_by = next((c for c, v in texts.items() if all(v) and len(set(v)) == len(v)), None)
    if names == "none" or len(columns) < 2:
        return named_by, None
    for j, column in enumerate(columns):
        numbers = values[:, j]
        distinct = np.array_equal(np.unique(numbers), np.sort(np.round(numbers)))
        counts = j == 0 and len(numbers) > 2 and numbers[0] in (0, 1)
        if (distinct and column.strip().lower() in _IDENTIFIERS) or (
            counts and np.array_equal(numbers, numbers[0] + np.arange(len(numbers)))
        ):
            return named_by or column, column
    return named_by, None


def make_ball(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform in the unit ball.

    Examples
    --------
    >>> X = make_ball(100, 3, random_state=0)
    >>> X.shape, bool((X**2).sum(axis=1).max() <= 1)
    ((100, 3), True)
    """
    _check(n_objects, dimension)
    rng = checks.generator(random_state)
    radius = rng.random((n_objects, 1)) ** (1 / dimension)
    return make_sphere(n_objects, dimension, random_state=rng) * radius


def make_cube(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform in the unit cube.

    Examples
    --------
    >>> make_cube(100, 5, random_state=0).shape
    (100, 5)
    """
    _check(n_objects, dimension)
    return checks.generator(random_state).random((n_objects, dimension))


def make_gaussian(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points from the standard normal distribution.

    Examples
    --------
    >>> make_gaussian(100, 2, random_state=0).shape
    (100, 2)
    """
    _check(n_objects, dimension)
    return checks.generator(random_state).normal(size=(n_objects, dimension))


def make_sphere(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform on the unit sphere of a space of this dimension.

    Examples
    --------
    >>> X = make_sphere(100, 3, random_state=0)
    >>> bool(abs((X**2).sum(axis=1) - 1).max() < 1e-12)
    True
    """
    _check(n_objects, dimension)
    X: Points = checks.generator(random_state).normal(size=(n_objects, dimension))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def make_mixture(
    n_objects: int, dimension: int, *, n_centres: int = 3, random_state: Seed = None
) -> Points:
    """Points from a mixture of isotropic unit Gaussians whose centres are standard normal.

    Examples
    --------
    >>> make_mixture(500, 3, random_state=0).shape
    (500, 3)
    """
    _check(n_objects, dimension)
    rng = checks.generator(random_state)
    centres = rng.normal(size=(n_centres, dimension))
    return centres[rng.integers(n_centres, size=n_objects)] + rng.normal(
        size=(n_objects, dimension)
    )


def _check(n_objects: int, dimension: int) -> None:
    checks.whole("n_objects", n_objects)
    checks.whole("dimension", dimension)
