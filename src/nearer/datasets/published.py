"""Published data: the paper's digits, e-mails and posts, and six sets of people's answers.

``catalogue.json`` lists the data sets. Files are looked for in the folder that the environment
variable ``NEARER_DATA`` names, where it is set, then in the cache folder, which is ``NEARER_CACHE``
or else ``nearer`` in the user's cache (``XDG_CACHE_HOME``, ``~/.cache``). If the file of a set of
points is not there, scikit-learn downloads the same version into the cache folder and checks its
checksum.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, field
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nearer import checks
from nearer.errors import DroppedRows, InvalidInput, MissingData
from nearer.files import read_bytes, read_numpy, sha256
from nearer.trials import Triplets
from nearer.triplets import read_table, read_triplets


@dataclass(frozen=True)
class DataFile:
    """A file by its name, its size in bytes and its SHA-256 sum."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A data set: what ``nearer data`` says of it, and how it is loaded."""

    name: str
    what: str
    objects: int  # or as many as the loader takes by default
    holds: str  # "points" or "answers"
    licence: str
    source: str
    loader: str  # the function of `nearer.datasets` that returns it
    files: tuple[DataFile, ...] = ()  # none where it comes with the package
    download: str | None = None  # the function of scikit-learn that can get it
    read_options: dict[str, Any] = field(default_factory=dict)  # of `nearer.read_triplets`


#: every data set, with its files and where they come from
CATALOGUE = tuple(
    Entry(**row | {"files": tuple(DataFile(**file) for file in row["files"])})
    for row in json.loads((files("nearer.datasets") / "catalogue.json").read_text("utf-8"))
)


def entry(name: str, holds: str = "") -> Entry:
    """The entry of that name, among those that hold points or answers where that is said."""
    entries = {data.name: data for data in CATALOGUE if holds in ("", data.holds)}
    if name not in entries:
        what = f"set of {holds}" if holds else "data set"
        raise InvalidInput(f"{name!r} is no {what}; there are {', '.join(entries)}")
    return entries[name]


def folders() -> list[Path]:
    """Where data files are looked for, in this order."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("NEARER_CACHE") or Path(user) / "nearer")
    own = os.environ.get("NEARER_DATA")
    return [Path(own), cache] if own else [cache]


def locate(file: DataFile) -> Path | None:
    """The path of a data file, or None where there is none; the content is not checked."""
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


def fetch(data: Entry, **options: Any) -> Any:
    """The path of the file of a data set, else what scikit-learn downloads with these options."""
    try:
        return find(data)[0]
    except MissingData as error:
        missing = error
    from sklearn import datasets  # noqa: PLC0415 - slow to import

    home = str(folders()[-1] / "scikit-learn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # retries and stale caches
            return getattr(datasets, data.download or "")(**options, data_home=home, n_retries=1)
    except (OSError, ValueError) as error:  # no network, no such host, a broken answer
        reason = f"{data.download} of scikit-learn could not download it ({error})"
        raise MissingData(f"{missing}; {reason}") from error


#: names of the data sets that hold answers of people
HUMAN = tuple(data.name for data in CATALOGUE if data.holds == "answers")


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
    """

    points: NDArray[np.float64] | csr_array
    labels: NDArray[Any]
    rows: NDArray[np.int64]


def load_digits_mnist(n_objects: int = 1000) -> PointData:
    """Handwritten digits as 784 pixels from 0 to 255: the first of MNIST's training images.

    Parameters
    ----------
    n_objects
        How many, at most 5,000.
    """
    data = entry("digits")
    source = fetch(data, name="mnist_784", version=1, as_frame=False)
    if isinstance(source, Path):
        pixels, classes = itemgetter("X", "y")(read_numpy(source))
    else:
        pixels, classes = source.data[:5000], source.target[:5000]
    rows = np.arange(_at_most(n_objects, len(pixels), data))
    points, labels = pixels[rows].astype(np.float64), classes[rows].astype(np.int64)
    return PointData(points, labels, rows)


def load_spambase(
    n_objects: int = 1000, *, random_state: int | np.random.Generator | None = 0
) -> PointData:
    """E-mails as 57 counts and run lengths: random rows, since the source is sorted by class.

    The source has 394 repeated rows, so some objects have the same position.

    Parameters
    ----------
    n_objects
        How many, at most 4,601.
    random_state
        Which.
    """
    data = entry("spambase")
    source = fetch(data, name="spambase", version=1, as_frame=False)
    if isinstance(source, Path):
        values = pd.read_csv(source).to_numpy(np.float64)
    else:
        values = np.column_stack([source.data, source.target.astype(np.float64)])
    n = _at_most(n_objects, len(values), data)
    rows = checks.generator(random_state).choice(len(values), n, replace=False)
    points, labels = values[rows, :-1], values[rows, -1].astype(np.int64)
    return PointData(points, labels, rows)


def load_newsgroups(
    n_objects: int = 2000,
    *,
    terms: Literal["all", "content"] = "all",
    random_state: int | np.random.Generator | None = None,
) -> PointData:
    """Posts as TF-IDF vectors of their words, sparse; headers, footers and quotes removed.

    Parameters
    ----------
    n_objects
        How many posts, all with 50 different terms or more.
    terms
        ``"all"``: every word, weighed by how rare it is in the chosen posts. ``"content"``: words
        of at least two posts that are no English stop words, weighed by how rare they are in all
        11,314 posts; 2,000 posts then have 33,873 terms, where "Revealing the Basis" has 34,072.
    random_state
        Which; by default the first such posts in the order of scikit-learn's loader, which is a
        shuffled one.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow to import

    checks.one_of("terms", terms, ("all", "content"))
    data = entry("newsgroups")
    parts = ("headers", "footers", "quotes")
    source = fetch(data, subset="train", remove=parts)
    if isinstance(source, Path):
        posts = [json.loads(line) for line in read_bytes(source).decode().split("\n") if line]
        texts, groups = [post["text"] for post in posts], [post["group"] for post in posts]
    else:
        texts, groups = list(source.data), [source.target_names[i] for i in source.target]
    order = np.arange(len(texts))
    if random_state is not None:
        order = checks.generator(random_state).permutation(order)
    content = {"stop_words": "english", "min_df": 2} if terms == "content" else {}
    weights = TfidfVectorizer(**content)
    vectors = csr_array(weights.fit_transform(texts))
    rows = order[np.diff(vectors.indptr)[order] >= 50][:n_objects]
    _at_most(n_objects, len(rows), data)
    if terms == "content":
        chosen = csr_array(vectors[rows])
        chosen = csr_array(chosen[:, np.unique(chosen.indices)])
    else:
        chosen = csr_array(weights.fit_transform([texts[row] for row in rows.tolist()]))
    labels = np.array(groups)[rows]
    return PointData(chosen, labels, rows)


def _at_most(n_objects: int, there_are: int, data: Entry) -> int:
    rule = f"{data.name} has {there_are} such objects"
    return checks.whole("n_objects", n_objects, most=there_are, rule=rule)


def load_human(name: str) -> Triplets:
    """Answers of people: zappos85, alieneggs30, alieneggs300, musicians, cars or things.

    Rows that say nothing (17 of the musicians') are left out and listed in the report.

    Parameters
    ----------
    name
        Which set; ``nearer data`` lists them and says where their files are looked for.
    """
    data = entry(name, "answers")
    options = dict(data.read_options)
    if options.get("objects") != "names" and len(data.files) > 1:
        options["labels"] = list(_second_file(data).values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # said above
        return read_triplets(find(data)[0], **options)


def load_classes(name: str) -> dict[str, str]:
    """The class of each object of the musicians (genres with ``;`` between them) or the cars."""
    data = entry(name, "answers")
    if data.read_options.get("objects") != "names" or len(data.files) < 2:
        raise InvalidInput(f"{name}: has no classes; musicians and cars have")
    return _second_file(data)


def _second_file(data: Entry) -> dict[str, str]:
    """The name or the class of each object."""
    table = read_table(find(data)[1])
    return dict(zip(table.iloc[:, 0], table.iloc[:, 1], strict=True))
