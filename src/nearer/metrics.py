"""Measures of embeddings, those of the paper's Section 3 and some of ours, and of answers.

Embeddings are compared a block of heads at a time, so that memory stays O(n).

*Agreement.* Two answers to the same question agree with probability p² + (1 − p)², where p is the
probability that a is said to be nearer; the best prediction is right with max(p, 1 − p). The square
root is concave, which makes the ceiling in docs/results.md an upper bound of the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit

from nearer import checks
from nearer.checks import as_points
from nearer.distances import Distances
from nearer.errors import InvalidInput
from nearer.questions import Floats, Objects, pack, share_interval
from nearer.trials import MOST_SORTED, Trials

Seed = int | np.random.Generator | None

_ALL_HEADS = 5_000  # with at most this many objects, every one is a head
_BLOCK = 1 << 21  # distances held at a time


def mean_kendall_tau(
    truth: Any,
    embedding: ArrayLike,
    *,
    metric: Any = "euclidean",
    n_heads: int | None = None,
    random_state: Seed = None,
) -> float:
    """Kendall's τ between true and embedded distances from a head, averaged over heads.

    Parameters
    ----------
    truth
        ``(n, d)`` true points, dense or sparse, or distances with ``metric="precomputed"``.
    embedding
        ``(n, d′)`` positions, compared by Euclidean distance.
    metric
        The true metric.
    n_heads, random_state
        How many heads to average over, and the seed that draws them. By default all up to 5,000
        objects, beyond that as many as have about 25 million distances, but at least 100.

    Notes
    -----
    τ-b, so that ties count for neither side; a head with equal distances to all objects, in
    the truth or in the embedding, counts 0.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> mean_kendall_tau(X, 3 * X)
    1.0
    """
    from scipy.stats import kendalltau  # noqa: PLC0415 - half a second to import

    heads = _Heads(truth, embedding, metric, n_heads, random_state)
    rows = (pair for x, y in heads.distances() for pair in zip(x, y, strict=True))
    taus = [kendalltau(x, y, method="asymptotic").statistic for x, y in rows]
    return float(np.nan_to_num(taus).mean())


def knn_precision(
    truth: Any,
    embedding: ArrayLike,
    k: int | None = None,
    *,
    metric: Any = "euclidean",
    n_heads: int | None = None,
    random_state: Seed = None,
) -> float:
    """The share of an object's k nearest neighbours in the embedding that truly are.

    Parameters
    ----------
    k
        How many neighbours; ⌈log2 n⌉ by default, as in the paper.
    truth, embedding, metric, n_heads, random_state
        As for `mean_kendall_tau`.

    Notes
    -----
    A neighbour counts when its true distance is at most the k-th smallest, so that any of several
    objects at that distance counts.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> knn_precision(X, 2 * X)
    1.0
    """
    heads = _Heads(truth, embedding, metric, n_heads, random_state)
    k = int(np.ceil(np.log2(heads.n))) if k is None else k
    k = checks.whole("k", k, most=heads.n - 1, rule="there are no more other objects")
    shares = []
    for x, y in heads.distances():
        reach = np.partition(x, k - 1, axis=1)[:, k - 1]
        chosen = np.argpartition(y, k - 1, axis=1)[:, :k]
        hits = np.take_along_axis(x, chosen, axis=1) <= reach[:, None]
        shares.append(hits.mean(axis=1))
    return float(np.concatenate(shares).mean())


def distance_rmse(
    truth: Any,
    embedding: ArrayLike,
    *,
    metric: Any = "euclidean",
    n_heads: int | None = None,
    random_state: Seed = None,
) -> float:
    """Root mean squared error of the embedded distances at their best scale, over pairs.

    The paper's formula divides by n; its figures fit the mean over pairs, which this is.

    The arguments are those of `mean_kendall_tau`.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> bool(distance_rmse(X, 3 * X) < 1e-9)
    True
    """
    heads = _Heads(truth, embedding, metric, n_heads, random_state)
    sums = sum(np.array([np.vdot(x, y), np.vdot(y, y), x.size]) for x, y in heads.distances())
    xy, yy, count = np.asarray(sums).tolist()
    scale = xy / yy if yy > 0 else 0.0
    # a second pass, since the difference of sums of squares would cancel
    error = sum(float(np.square(x - scale * y).sum()) for x, y in heads.distances())
    return float(np.sqrt(error / count))


def triplet_accuracy(triplets: ArrayLike, embedding: ArrayLike) -> float:
    """The share of triplets ``(head, near, far)`` that the positions agree with.

    Examples
    --------
    >>> triplet_accuracy([[0, 1, 2], [0, 2, 1]], [[0.0], [1.0], [3.0]])
    0.5
    """
    distances = Distances(embedding)
    rows, _ = checks.triplets(triplets, distances.n_objects)
    head, near, far = rows.T
    return float(np.mean(distances.between(head, near) < distances.between(head, far)))


def share_interval_over_people(
    right: ArrayLike, asked: ArrayLike
) -> tuple[float, tuple[float, float]]:
    """A share, and its 95 % interval for further people, from what each person got right.

    The share is a mean over people. Each counts by the inverse of the variance between people,
    estimated as by Paule and Mandel (1982), plus that of the person's answers. The interval is that
    of the number of independent answers with the same variance, widened by Student's t. The
    variance between people counts twice in it: each person is predicted from the others, so the
    similarity of two people affects both (Bates, Hastie and Tibshirani 2024).

    Examples
    --------
    >>> share, (low, high) = share_interval_over_people([90, 80, 70, 80, 80], np.full(5, 100))
    >>> round(share, 2), round(low, 2), round(high, 2)
    (0.8, 0.67, 0.89)
    """
    right = checks.array("right", right, (np.size(asked),), "one for each of the people")
    asked = checks.array("asked", asked, (len(right),), "one for each of the people")
    if (right < 0).any() or (right > asked).any() or np.count_nonzero(asked) < 2:
        raise InvalidInput("right must be from 0 to asked, and asked above 0 for two people")
    right, asked = right[asked > 0], asked[asked > 0]
    each, alone, people = right / asked, 1 / asked, len(asked)

    def excess(between: float) -> float:  # variances in units of that of one answer
        weights = 1 / (between + alone)
        share = np.average(each, weights=weights)
        return float(weights @ (each - share) ** 2 - share * (1 - share) * (people - 1))

    between = float(brentq(excess, 0.0, people)) if excess(0.0) > 0 else 0.0
    weights = 1 / (between + alone)
    weights /= weights.sum()
    share, variance = float(weights @ each), float(np.square(weights) @ (alone + 2 * between))
    wider = (float(stdtrit(people - 1, 0.975)) / 1.959964) ** 2
    return share, share_interval(share, 1 / (wider * variance))


@dataclass(frozen=True)
class Procrustes:
    """An embedding aligned with the truth.

    Attributes
    ----------
    aligned
        The embedding, moved, turned, mirrored and scaled onto the truth.
    disparity
        The share of the truth's variance that is left unexplained: 0 is perfect.
    scale, turn, centre, onto
        The motion: ``scale * (points - centre) @ turn + onto``.
    """

    aligned: NDArray[np.float64]
    disparity: float
    scale: float
    turn: NDArray[np.float64]
    centre: NDArray[np.float64]
    onto: NDArray[np.float64]

    def move(self, points: ArrayLike) -> NDArray[np.float64]:
        """Move other points in the same way."""
        y = as_points(points)
        if y.shape[1] > (most := len(self.centre)):
            raise InvalidInput(f"points of shape {y.shape}: must be (n, {most}) at most, as before")
        y = np.pad(y, [(0, 0), (0, len(self.centre) - y.shape[1])])
        return np.asarray(self.scale * (y - self.centre) @ self.turn + self.onto)


def procrustes(truth: ArrayLike, embedding: ArrayLike) -> Procrustes:
    """Align an embedding with the truth by the best motion and scale.

    The one with fewer dimensions is padded with zeros; `aligned` has as many as the larger.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> fit = procrustes(X, 5 - 2 * X[:, ::-1])
    >>> bool(abs(fit.aligned - X).max() < 1e-9), bool(fit.disparity < 1e-12)
    (True, True)
    """
    x, y = as_points(truth), as_points(embedding)
    if len(x) != len(y):
        raise InvalidInput(f"{len(x)} true points and {len(y)} embedded ones: must be as many")
    x, y = (np.pad(p, [(0, 0), (0, max(x.shape[1], y.shape[1]) - p.shape[1])]) for p in (x, y))
    scale, turn, centre, onto = best_motions(x, y)
    aligned = scale * (y - centre) @ turn + onto
    left, total = (float(np.square(x - z).sum()) for z in (aligned, onto))
    return Procrustes(aligned, left / total if total else 0.0, float(scale), turn, centre, onto)


def best_motions(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Scale, rotation, centre and destination that align y with x, ``(…, n, d)``, for each map."""
    onto, centre = x.mean(axis=-2), y.mean(axis=-2)
    x, y = x - onto[..., None, :], y - centre[..., None, :]
    left, sizes, right = np.linalg.svd(np.swapaxes(y, -1, -2) @ x)  # Schönemann 1966
    spread = np.square(y).sum(axis=(-2, -1))
    return sizes.sum(axis=-1) / np.where(spread > 0, spread, 1.0), left @ right, centre, onto


class _Heads:
    """Some objects, and their distances to all others in the truth and in the embedding."""

    def __init__(
        self, truth: Any, embedding: ArrayLike, metric: Any, n_heads: int | None, seed: Seed
    ) -> None:
        self._both = Distances(truth, metric), Distances(embedding)
        self.n, embedded = (distances.n_objects for distances in self._both)
        if self.n != embedded:
            many = f"{self.n} true objects and {embedded} embedded ones"
            raise InvalidInput(f"{many}: must be as many")
        if self.n < 3:
            raise InvalidInput(f"{self.n} objects: at least 3 are needed to compare rankings")
        if n_heads is None:
            n_heads = self.n if self.n <= _ALL_HEADS else max(100, _ALL_HEADS**2 // self.n)
        self._heads = np.arange(self.n)
        if checks.whole("n_heads", n_heads) < self.n:
            rng = checks.generator(seed)
            self._heads = np.sort(rng.choice(self.n, n_heads, replace=False))

    def distances(self) -> Iterator[tuple[Floats, Floats]]:
        """From a block of heads to all other objects."""
        size = max(1, _BLOCK // self.n)
        for start in range(0, len(self._heads), size):
            heads = self._heads[start : start + size]
            others = heads[:, None] != np.arange(self.n)
            rows = ([d.compute(head) for head in heads.tolist()] for d in self._both)
            x, y = (np.stack(row)[others].reshape(-1, self.n - 1) for row in rows)
            yield x, y


# --- agreement of answers ------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreement:
    """How often two answers to the same question are the same, with a 95 % interval.

    Attributes
    ----------
    share, low, high
        The share of pairs that agree.
    n_questions
        Questions with two such answers or more.
    ceiling, ceiling_interval
        The largest share of answers to such questions that any map can be expected to predict, and
        its interval, computed from that of `share`; None for answers that are not a choice of two.
    """

    share: float
    low: float
    high: float
    n_questions: int
    ceiling: float | None
    ceiling_interval: tuple[float, float] | None = None


def measure_agreement(
    answers: ArrayLike | Trials, people: ArrayLike | None, weights: ArrayLike | None = None
) -> dict[str, Agreement]:
    """Agreement of answers to the same question: of the ``"same"`` person, of ``"others"``.

    Without people, all pairs are ``"unknown"``. The result is empty for more than ten million
    answers. A weight of 2 is the same answer given twice; with weights that are not counts,
    agreement is not known.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 0, 2]])
    >>> agreement = measure_agreement(rows, np.array(["ann", "ann", "bob", "bob"]))
    >>> agreement["same"].share, agreement["others"].share
    (1.0, 0.0)
    """
    answers = answers if isinstance(answers, Trials) else checks.triplet_rows(answers)
    people = checks.people(people, len(answers))
    weights = checks.weights(weights, len(answers))
    if len(np.unique(weights[weights > 0])) == 1 and (weights % 1).any():
        weights = np.sign(weights)  # not counts, but all the same
    if (weights % 1).any() or len(answers) > MOST_SORTED:
        return {}
    import pandas as pd  # noqa: PLC0415 - slow to import

    question, answer = _coded(answers)
    frame = pd.DataFrame({"question": question, "answer": answer, "weight": weights})
    by_kind = {"unknown": _count_pairs(frame, ["question"])}
    if people is not None:
        frame = frame.assign(person=people)
        if people.dtype.kind == "U":
            frame = frame[people != ""]
        same = _count_pairs(frame, ["question", "person"])
        by_kind = {"same": same, "others": _count_pairs(frame, ["question"]) - same}
    shares = {kind: _share(counts, answers) for kind, counts in by_kind.items()}
    return {kind: share for kind, share in shares.items() if share is not None}


def _coded(answers: NDArray[np.integer] | Trials) -> tuple[Objects, Objects]:
    """A number for each question, from 0, and one for each answer."""
    if isinstance(answers, Trials):
        shown, said = answers.shown, answers.chosen
        if answers.kind != "pairs":  # which stay in their order, a part of the question
            order = np.argsort(shown, axis=1, kind="stable")
            shown, said = (np.take_along_axis(rows, order, axis=1) for rows in (shown, said))
        asked = np.column_stack([answers.query, shown])
        question = np.unique(asked, axis=0, return_inverse=True)[1].ravel()
        return question, np.unique(said, axis=0, return_inverse=True)[1].ravel()
    keys, mirrored = pack(answers)
    return np.unique(keys, return_inverse=True)[1], mirrored.astype(np.int64)


def _count_pairs(frame: Any, by: list[str]) -> Any:
    """How many pairs of answers with the same values of `by` agree, by question, and how many are.

    x answers make x(x − 1)/2 pairs.
    """

    def count(columns: list[str]) -> Any:
        x = frame.groupby(columns)["weight"].sum()
        return (x * (x - 1) / 2).groupby(level="question").sum()

    return count([*by, "answer"]).to_frame("agree").assign(all=count(by))


def _share(pairs: Any, answers: NDArray[np.integer] | Trials) -> Agreement | None:
    """The share over all questions, each weighted by the number of answers in its pairs."""
    pairs = pairs[pairs["all"] > 0]
    if not len(pairs):
        return None
    weight = (1 + np.sqrt(1 + 8 * pairs["all"].to_numpy())) / 2
    share = float(np.average(pairs["agree"] / pairs["all"], weights=weight))
    low, high = share_interval(share, float(weight.sum() ** 2 / (weight**2).sum()))
    if isinstance(answers, Trials):
        return Agreement(share, low, high, len(pairs), None, None)
    ceiling, *interval = ((1 + max(2 * x - 1, 0.0) ** 0.5) / 2 for x in (share, low, high))
    return Agreement(share, low, high, len(pairs), ceiling, (interval[0], interval[1]))
