"""Oracles: points, distances, recorded triplets, and noise over any of them.

Any callable from ``(m, 3)`` questions to ``(m,)`` booleans is an oracle; these are the ones that
come with the library. They answer screens, too, and choose the `choose` objects that cost least:
with a query, an object costs its distance from the query; without one (query −1) the odd one out is
wanted, and an object costs minus the sum of its distances to the others shown.

*Ties.* Two objects at the same distance from a head are put in the order of their numbers. That is
a total order, so a sort never loops and never contradicts itself, whatever is duplicated.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.asking.answers import put
from nearer.asking.protocol import Oracle
from nearer.asking.record import Memory
from nearer.distances import Distances
from nearer.errors import ContradictoryAnswers, InvalidInput, MissingAnswer
from nearer.questions import Answers, Floats, Questions, pack

__all__ = [
    "DistanceOracle",
    "NoisyOracle",
    "PointOracle",
    "RecordedOracle",
    "cheapest",
    "costs",
    "hash_to_unit",
    "screen_chances",
]

_CHUNK = 1 << 16  # questions answered at a time, so that memory stays small
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd multiplier that scatters object numbers


class PointOracle:
    """Answers from known positions.

    Parameters
    ----------
    X
        ``(n, d)`` points, dense or sparse.
    metric
        ``"euclidean"``, any metric of `scipy.spatial.distance.cdist`, or a callable of two points.
    choose
        On a screen, how many of the shown are chosen.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = PointOracle(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]))
    >>> oracle(np.array([[0, 1, 2], [0, 2, 1]]))
    array([ True, False])
    """

    def __init__(self, X: ArrayLike | Any, metric: Any = "euclidean", *, choose: int = 1) -> None:
        self.distances: Distances = Distances(X, metric)
        self.n_objects: int = self.distances.n_objects
        self._choose = checks.whole("choose", choose)

    def __call__(self, questions: Questions) -> Answers:
        """Whether a is nearer to head than b is, for each row ``(head, a, b)``."""
        q = np.asarray(questions)
        if q.shape[1] > 3:
            return cheapest(costs(self.distances, q), q, self._choose)
        answers = np.empty(len(q), dtype=np.bool_)
        for start in range(0, len(q), _CHUNK):
            head, a, b = q[start : start + _CHUNK].T
            to_a = self.distances.between(head, a)
            to_b = self.distances.between(head, b)
            answers[start : start + _CHUNK] = (to_a < to_b) | ((to_a == to_b) & (a < b))
        return answers


class DistanceOracle(PointOracle):
    """Answers from a square matrix of distances; row ``h`` holds the distances from head ``h``.

    The matrix need not be symmetric: only rows are compared.

    Examples
    --------
    >>> import numpy as np
    >>> DistanceOracle(np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]]))(np.array([[2, 0, 1]]))
    array([ True])
    """

    def __init__(self, D: ArrayLike, *, choose: int = 1) -> None:
        super().__init__(D, metric="precomputed", choose=choose)


class RecordedOracle:
    """Answers from a record of triplets; a question without an answer raises `MissingAnswer`.

    Parameters
    ----------
    triplets
        Rows ``(head, near, far)``. The same question answered both ways is refused.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = RecordedOracle(np.array([[0, 1, 2], [3, 5, 4]]))
    >>> oracle(np.array([[0, 2, 1], [3, 5, 4]]))
    array([False,  True])
    >>> oracle.knows(np.array([[0, 2, 1], [7, 8, 9]]))
    array([ True, False])
    """

    def __init__(self, triplets: ArrayLike) -> None:
        rows = np.asarray(triplets)
        if rows.ndim != 2 or rows.shape[1] != 3 or not np.issubdtype(rows.dtype, np.integer):
            raise InvalidInput(
                f"triplets of shape {rows.shape} and type {rows.dtype}: must be (m, 3) integers "
                "(head, near, far)"
            )
        self._memory = Memory(rows)
        agreed = self._memory.recall(rows)[0]
        if not agreed.all():
            head, near, far = rows[np.argmin(agreed)].tolist()
            raise ContradictoryAnswers(
                f"{int((~agreed).sum())} of {len(rows)} triplets contradict an earlier one, the "
                f"first is (head={head}, near={near}, far={far}): an oracle needs one answer a "
                "question; keep the majority's answer, or fit the triplets instead"
            )

    def __call__(self, questions: Questions) -> Answers:
        """The recorded answers."""
        answers, known = self._memory.recall(questions)
        if not known.all():
            head, a, b = np.asarray(questions)[np.argmin(known)].tolist()
            raise MissingAnswer(
                f"no answer is recorded for {int((~known).sum())} of {len(known)} questions, the "
                f"first is (head={head}, a={a}, b={b}): add it to the record, or ask only what "
                ".knows(questions) allows"
            )
        return answers

    def knows(self, questions: Questions) -> Answers:
        """Which questions have an answer, asked this way round or mirrored."""
        return self._memory.recall(questions)[1]


class NoisyOracle:
    """Another oracle's answers, each wrong with a given probability.

    Parameters
    ----------
    oracle
        Gives the right answers.
    flip
        Probability of a wrong answer, from 0 to 1; of a blind one to a screen.
    noise
        ``"fixed"``: a question gets the same answer whenever it is asked, mirrored or not, in any
        order and any round. ``"fresh"``: every asking of it is another draw.
    random_state
        Seed or generator. Two oracles with the same seed are wrong about the same questions.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = NoisyOracle(PointOracle(np.arange(10.0)), flip=0.3, random_state=0)
    >>> q = np.array([[0, 1, 2], [0, 2, 1]])
    >>> bool(oracle(q)[0] != oracle(q)[1])
    True
    """

    def __init__(
        self,
        oracle: Oracle,
        flip: float,
        *,
        noise: Literal["fixed", "fresh"] = "fixed",
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self._oracle = checks.oracle(oracle)
        self._flip = checks.probability("flip", flip)
        self._noise = checks.one_of("noise", noise, ("fixed", "fresh"))
        self._rng = np.random.default_rng(random_state)
        self._salt = self._rng.integers(1 << 63, dtype=np.uint64)

    def __call__(self, questions: Questions) -> Answers:
        """The oracle's answers, some of them wrong."""
        q = np.asarray(questions)
        truth = put(q, self._oracle)
        if q.shape[1] > 3:
            return self._confused(q, truth)
        wrong = self._uniform(q) < self._flip
        return np.logical_xor(truth, wrong)

    def _confused(self, screens: Questions, truth: Answers) -> Answers:
        """Some screens are answered by as many objects, drawn blindly."""
        if self._noise == "fresh":
            chance = self._rng.random(truth.shape)
            wrong = self._rng.random(len(truth)) < self._flip
        else:
            chance = screen_chances(screens, self._salt)
            wrong = screen_chances(screens, ~self._salt).min(axis=1) < self._share(truth.shape[1])
        blind = np.argsort(np.argsort(chance, axis=1), axis=1) < truth.sum(axis=1, keepdims=True)
        return np.where(wrong[:, None], blind, truth)

    def _share(self, m: int) -> float:
        """The least of m uniform numbers is below this as often as answers are wrong."""
        return float(1 - (1 - self._flip) ** (1 / m))

    def _uniform(self, questions: Questions) -> NDArray[np.float64]:
        if self._noise == "fresh":
            return self._rng.random(len(questions))
        keys, _ = pack(questions)
        return hash_to_unit(keys.astype(np.uint64) ^ self._salt)


def costs(distances: Distances, screens: Questions) -> Floats:
    """What choosing each shown object costs, one row a screen."""
    rows = np.asarray(screens)
    shown = rows[:, 1:]
    m = shown.shape[1]
    out = np.empty(shown.shape)
    with_query = rows[:, 0] >= 0
    heads = np.repeat(rows[with_query, 0], m)
    out[with_query] = distances.between(heads, shown[with_query].ravel()).reshape(-1, m)
    odd = shown[~with_query]
    first, second = np.triu_indices(m, 1)
    apart = distances.between(odd[:, first].ravel(), odd[:, second].ravel())
    apart = apart.reshape(len(odd), len(first))
    sums = np.zeros(odd.shape)
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        sums[:, i] += apart[:, pair]
        sums[:, j] += apart[:, pair]
    out[~with_query] = -sums
    return out


def cheapest(cost: Floats, screens: Questions, choose: int) -> Answers:
    """Choose so many of the shown that cost least; ties go by object number."""
    order = np.lexsort((np.asarray(screens)[:, 1:], cost), axis=1)
    chosen = np.zeros(cost.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order[:, :choose], True, axis=1)
    return chosen


def screen_chances(screens: Questions, salt: np.uint64) -> Floats:
    """A number in [0, 1) for each shown object, the same whenever that screen is shown."""
    rows = np.asarray(screens).astype(np.uint64)
    code = rows[:, 0].copy()
    for column in np.sort(rows[:, 1:], axis=1).T:
        code = (code + column) * _SPREAD
    return hash_to_unit((code[:, None] + rows[:, 1:] * _SPREAD) ^ salt)


def hash_to_unit(keys: NDArray[np.uint64]) -> Floats:
    """Integers to numbers in [0, 1) that look independent (the finaliser of SplitMix64)."""
    z = keys + _SPREAD
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
