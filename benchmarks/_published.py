"""Published points: digits, e-mails and posts, for the paper's tables and the benchmarks.

Files are looked for where `nearer data` says. If one is not there, scikit-learn downloads the same
version into the cache folder and checks its checksum.
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
from nearer.datasets.loaders import DataFile, Entry, find, folders
from nearer.errors import MissingData
from nearer.files import read_bytes, read_numpy

DIGITS = Entry(
    name="digits",
    what="handwritten digits, 28 × 28 pixels, the first of the MNIST training set",
    objects=1000,
    holds="points",
    licence="CC BY-SA 3.0",
    source="MNIST, LeCun, Cortes and Burges; OpenML mnist_784",
    loader="load_digits_mnist()",
    files=(
        DataFile(
            "mnist_5000.npz",
            823523,
            "bb6d2c61a4c70e740c499aec3630098257dfb3b9f128984c4f0afdbefeb5f947",
        ),
    ),
)
SPAMBASE = Entry(
    name="spambase",
    what="e-mails by 57 word and letter counts, spam or not",
    objects=1000,
    holds="points",
    licence="CC BY 4.0",
    source="UCI Spambase, Hopkins, Reeber, Forman and Suermondt 1999; OpenML spambase",
    loader="load_spambase()",
    files=(
        DataFile(
            "spambase.csv.gz",
            121848,
            "40d162cbe60605a0f2a535cb75d5b0430d50e3d1fc2d312098e4afb56c2ff7a0",
        ),
    ),
)
NEWSGROUPS = Entry(
    name="newsgroups",
    what="Usenet posts by the words they use, in 20 groups",
    objects=2000,
    holds="points",
    licence="none stated",
    source="20 Newsgroups, bydate training part, collected by K. Lang",
    loader="load_newsgroups()",
    files=(
        DataFile(
            "newsgroups_train_clean.jsonl.xz",
            4264224,
            "07a6a6d19e69ad87a4358a08b8dd4c39c0fa3b0c3c1928973b6c4e623c07f1ff",
        ),
    ),
)


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
    data = DIGITS
    source = fetch(data, "fetch_openml", name="mnist_784", version=1, as_frame=False)
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
    data = SPAMBASE
    source = fetch(data, "fetch_openml", name="spambase", version=1, as_frame=False)
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
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    checks.one_of("terms", terms, ("all", "content"))
    data = NEWSGROUPS
    parts = ("headers", "footers", "quotes")
    source = fetch(data, "fetch_20newsgroups", subset="train", remove=parts)
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


def fetch(data: Entry, download: str, **options: Any) -> Any:
    """The path of the file of a data set, else what that function of scikit-learn downloads."""
    try:
        return find(data)[0]
    except MissingData as error:
        missing = error
    from sklearn import datasets  # slow to import

    home = str(folders()[-1] / "scikit-learn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # retries and stale caches
            return getattr(datasets, download)(**options, data_home=home, n_retries=1)
    except (OSError, ValueError) as error:  # no network, no such host, a broken answer
        reason = f"{download} of scikit-learn could not download it ({error})"
        raise MissingData(f"{missing}; {reason}") from error
