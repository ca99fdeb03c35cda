"""Published data: the paper's digits, e-mails and posts, and six sets of people's answers.

Each loader of points reads the file of the catalogue where there is one and lets scikit-learn
download the same version of the data otherwise, whose checksum that compares.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nearer import checks
from nearer.datasets.catalogue import CATALOGUE, Entry, entry, fetch, find
from nearer.errors import DroppedRows, InvalidInput
from nearer.files import read_bytes, read_numpy
from nearer.trials import Triplets
from nearer.triplets import read_table, read_triplets

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
