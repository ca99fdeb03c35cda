"""The paper's real data: digits, e-mails and posts as points.

Each loader reads the file of the catalogue where it is at hand and lets scikit-learn download the
same data where it is not. A download is compared by content: the digits and e-mails value for
value, the posts by the order of their groups, since their texts differ in a few odd characters
between copies.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nearer import checks
from nearer.datasets.catalogue import Entry, entry
from nearer.datasets.folders import fetch, look_up
from nearer.errors import InvalidInput
from nearer.files import read_bytes

__all__ = ["PointData", "load_digits_mnist", "load_newsgroups", "load_spambase"]

_DIGITS = "47d921ad3f2875ef61ee1565a06261eb42e205fa9b89340f349dbb60792ff55c"
_SPAMBASE = "706f0f74d9834f661de15274da6727d81955b258cdd7c50a4d80d15f15e5e5b4"
_GROUPS = "0458c7eaf44abdc595b0d3f9420738aa675215a542cdf56418c91863fb59bf59"


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
        What it is and whose.
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
        Whether the network may be used where no file is at hand.
    """
    data = entry("digits")
    path = look_up(data, data.files[0])
    if path is not None:
        with np.load(path) as held:
            pixels, digits = held["X"], held["y"]
    else:
        pixels, digits = fetch(data, download, _fetch_digits)
        _insist(data, _DIGITS, pixels, digits)
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
        Whether the network may be used where no file is at hand.
    """
    data = entry("spambase")
    path = look_up(data, data.files[0])
    if path is not None:
        lines = read_bytes(path).decode("ascii").splitlines()
        values = np.loadtxt(lines[1:], delimiter=",", dtype=np.float64)
    else:
        values = fetch(data, download, _fetch_spambase)
        _insist(data, _SPAMBASE, values)
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
        Whether the network may be used where no file is at hand.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow to import

    checks.one_of("terms", terms, ("all", "content"))
    data = entry("newsgroups")
    path = look_up(data, data.files[0])
    if path is not None:
        posts = [json.loads(line) for line in read_bytes(path).decode("utf-8").split("\n") if line]
        texts, groups = [post["text"] for post in posts], [post["group"] for post in posts]
    else:
        texts, groups, target = fetch(data, download, _fetch_newsgroups)
        _insist(data, _GROUPS, target)
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


def _insist(data: Entry, digest: str, *arrays: NDArray[Any]) -> None:
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
