"""Oracles: points, distances, recorded triplets, noise over any of them, and simulated people.

On a screen they choose the `choose` objects of the least cost. With a query, the cost of an object
is its distance from the query; without one (query −1), minus the sum of its distances to the others
shown. Of objects at equal distances the lower number comes first.

*People.* A person of reliability r says "a" with probability 1/(1 + exp(−r (δ_b − δ_a)/scale)), δ
the distances from the head, and with probability `lapse` does not look. On a screen a Gumbel
variable is subtracted from each cost · r/scale; with one object to choose, this is a softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from nearer import checks
from nearer.asking.protocol import Oracle, as_answers
from nearer.distances import Distances
from nearer.errors import ContradictoryAnswers, InvalidInput, MissingAnswer
from nearer.questions import (
    SPREAD,
    Answers,
    Floats,
    Objects,
    Questions,
    Said,
    answered,
    find,
    hash_rows,
    pack,
    unsure_rows,
)

Noise = Literal["fixed", "fresh"]

_CHUNK = 1 << 16  # questions answered at a time, so that memory stays small


class PointOracle:
    """Answers from known positions.

    Parameters
    ----------
    X
        ``(n, d)`` points, dense or sparse.
    metric
        ``"euclidean"``, any metric of `scipy.spatial.distance.cdist`, or a callable of two points.
    choose
        How many objects are chosen on a screen.

    Examples
    --------
    >>> import numpy as np
    >>> PointOracle(np.array([0.0, 1.0, 9.0]))(np.array([[0, 1, 2], [0, 2, 1]]))
    array([ True, False])
    """

    def __init__(self, X: ArrayLike | Any, metric: Any = "euclidean", *, choose: int = 1) -> None:
        self.distances: Distances = Distances(X, metric)
        self.n_objects: int = self.distances.n_objects
        self._choose = checks.whole("choose", choose)

    def __call__(self, questions: Questions) -> Answers:
        """Whether a is nearer to head than b is, for each row ``(head, a, b)``."""
        q = self._checked(questions)
        parts = np.split(q, range(_CHUNK, len(q), _CHUNK))
        return np.concatenate([_cheapest(self._costs(part), part, self._choose) for part in parts])

    def _checked(self, questions: Questions) -> Questions:
        """Questions about objects that exist; those of a comparison must differ."""
        q = checks.one_round(questions)
        least = np.zeros(q.shape[1], dtype=np.int64)
        least[0] = -(q.shape[1] > 3)  # a screen may have no query
        bad = ((q < least) | (q >= self.n_objects)).any(axis=1)
        if q.shape[1] == 3:
            head, a, b = q.T
            bad |= (head == a) | (head == b) | (a == b)
        if bad.any():
            what = f"question {np.argmax(bad)} is {q[np.argmax(bad)].tolist()}"
            rule = f"its objects must differ and be from 0 to {self.n_objects - 1}"
            raise InvalidInput(f"{what}: {rule}; mend what asks it")
        return q

    def _costs(self, questions: Questions) -> Floats:
        """The cost of each object shown, one row for each question."""
        shown, m = questions[:, 1:], questions.shape[1] - 1
        with_query = questions[:, 0] >= 0
        heads = np.repeat(questions[with_query, 0], m)
        near = self.distances.between(heads, shown[with_query].ravel()).reshape(-1, m)
        if with_query.all():
            return near
        out, odd = np.zeros(shown.shape), shown[~with_query]
        out[with_query] = near
        for i, j in zip(*np.triu_indices(m, 1), strict=True):
            out[np.ix_(~with_query, [i, j])] -= self.distances.between(odd[:, i], odd[:, j])[
                :, None
            ]
        return out


class DistanceOracle(PointOracle):
    """Answers from a square matrix of distances; row ``h`` holds the distances from head ``h``.

    Examples
    --------
    >>> DistanceOracle([[0, 1, 2], [1, 0, 3], [2, 3, 0]])(np.array([[2, 0, 1]]))
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
    >>> oracle = RecordedOracle([[0, 1, 2], [3, 5, 4]])
    >>> oracle(np.array([[0, 2, 1]])), oracle.knows(np.array([[0, 2, 1], [7, 8, 9]]))
    (array([False]), array([ True, False]))
    """

    def __init__(self, triplets: ArrayLike) -> None:
        rows = checks.triplet_rows(triplets)
        self._memory = Memory(rows)
        agreed = self._memory.recall(rows)[0]
        if not agreed.all():
            head, near, far = rows[np.argmin(agreed)].tolist()
            what = f"{int((~agreed).sum())} of {len(rows)} triplets contradict an earlier one"
            rule = "keep one answer a question, or fit the triplets instead"
            raise ContradictoryAnswers(f"{what}, (head, near, far) = {(head, near, far)}: {rule}")

    def __call__(self, questions: Questions) -> Answers:
        """The recorded answers."""
        questions = checks.one_round(questions)
        answers, known = self._memory.recall(questions)
        if not known.all():
            head, a, b = questions[np.argmin(known)].tolist()
            what = f"{int((~known).sum())} of {len(known)} questions have no recorded answer"
            first = f"the first is (head={head}, a={a}, b={b})"
            raise MissingAnswer(f"{what}, {first}: ask only what .knows(questions) allows")
        return answers

    def knows(self, questions: Questions) -> Answers:
        """Which questions have an answer, asked this way round or mirrored."""
        return self._memory.recall(checks.one_round(questions))[1]


class Memory:
    """Answered questions, which `nearer.asking.remembered` does not ask again.

    A question is the same in whatever order its objects are shown. "Don't know" is no answer.

    Examples
    --------
    >>> memory = Memory(np.array([[0, 1, 2]]))
    >>> memory.recall(np.array([[0, 2, 1], [0, 1, 3]]))
    (array([False, False]), array([ True, False]))
    """

    def __init__(self, triplets: Questions | None = None) -> None:
        self._facts: dict[int, _Facts] = {}
        if triplets is not None:
            rows = checks.triplet_rows(triplets)
            self.add(rows, np.ones(len(rows), dtype=np.bool_))

    def __len__(self) -> int:
        return sum(len(facts.keys) for facts in self._facts.values())

    def add(self, questions: Questions, answers: Said) -> None:
        """Add answers; if a question has several, the first counts."""
        unsure = unsure_rows(answers)
        questions, answers = np.delete(questions, unsure, 0), np.delete(answers, unsure, 0)
        keys, rows, order = _in_order(questions)
        keys, first = np.unique(keys, return_index=True)
        said = np.asarray(answers, dtype=np.float32)
        said = np.stack([said, 1 - said], axis=1) if said.ndim == 1 else said
        said = np.take_along_axis(said, order, axis=1)[first]
        small = rows[first].astype(np.int32)
        old = self._facts.get(rows.shape[1]) or _Facts(keys[:0], small[:0], said[:0])
        new = ~find(old.keys, keys)[1]
        place = np.searchsorted(old.keys, keys[new])
        if not new.any():
            return
        self._facts[rows.shape[1]] = _Facts(
            np.insert(old.keys, place, keys[new]),
            np.insert(old.rows, place, small[new], axis=0),
            np.insert(old.said, place, said[new], axis=0),
        )

    def recall(self, questions: Questions) -> tuple[Said, Answers]:
        """Answers to questions (False if there is none), and which of them are known."""
        keys, _, order = _in_order(questions)
        said = np.zeros(order.shape, dtype=np.float32)
        known = np.zeros(len(order), dtype=np.bool_)
        if (facts := self._facts.get(order.shape[1] + 1)) is not None:
            place, known = find(facts.keys, keys)
            np.put_along_axis(said, order, facts.said[place] * known[:, None], axis=1)
        answers = said[:, 0] if order.shape[1] == 2 else said
        graded = ((answers > 0) & (answers < 1)).any()
        return (answers if graded else answers == 1), known

    def unknown(self, questions: Questions) -> Questions:
        """The questions without an answer, each once, in their order."""
        rows = np.flatnonzero(~self.recall(questions)[1])
        earliest = np.unique(_in_order(questions[rows])[0], return_index=True)[1]
        return questions[rows[np.sort(earliest)]]

    @property
    def triplets(self) -> Objects:
        """All answers, as rows ``(head, near, far)``."""
        parts = [np.empty((0, 3), dtype=np.int64)]
        for width, facts in self._facts.items():
            parts.append(answered(facts.rows, facts.said[:, 0] if width == 3 else facts.said))
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Facts:
    """Answered questions of one width, by sorted keys: the objects shown, the answer for each."""

    keys: NDArray[Any]
    rows: NDArray[np.int32]
    said: NDArray[np.float32]


def _in_order(questions: Questions) -> tuple[NDArray[Any], Objects, Objects]:
    """A key for each question, the question with its objects in ascending order, and that order."""
    rows = np.asarray(questions, dtype=np.int64)
    order = np.argsort(rows[:, 1:], axis=1, kind="stable")
    rows = np.column_stack([rows[:, 0], np.take_along_axis(rows[:, 1:], order, axis=1)])
    return pack(rows)[0] if rows.shape[1] == 3 else hash_rows(rows), rows, order


class _Draws:
    """Numbers in [0, 1) for questions: fixed for each question, or drawn each time."""

    def __init__(self, noise: Noise, random_state: int | np.random.Generator | None) -> None:
        self._fixed = checks.one_of("noise", noise, ("fixed", "fresh")) == "fixed"
        self._rng = checks.generator(random_state)
        self._salt = self._rng.integers(1 << 63, dtype=np.uint64)

    def comparisons(self, questions: Questions, *, mirror: bool = False) -> Floats:
        """One number for each; with `mirror`, u for a question and 1 − u for its mirror image."""
        if not self._fixed:
            return self._rng.random(len(questions))
        keys, mirrored = pack(questions)
        chance = _hash_to_unit(keys.astype(np.uint64) ^ self._salt)
        return np.where(mirrored, 1 - chance, chance) if mirror else chance

    def screens(self, screens: Questions, rate: float) -> tuple[Floats, Answers]:
        """One number for each object shown, and the screens that an event of this rate hits."""
        rows = np.asarray(screens).astype(np.uint64)
        if not self._fixed:
            chance = self._rng.random((len(rows), rows.shape[1] - 1))
            return chance, self._rng.random(len(rows)) < rate
        code = rows[:, 0].copy()
        for column in np.sort(rows[:, 1:], axis=1).T:
            code = (code + column) * SPREAD
        chance = _hash_to_unit((code[:, None] + rows[:, 1:] * SPREAD) ^ self._salt)
        return chance, _hash_to_unit(code ^ ~self._salt) < rate


class NoisyOracle:
    """Another oracle's answers, each wrong with a given probability.

    Parameters
    ----------
    oracle
        The oracle with the right answers.
    flip
        Probability of a wrong answer, from 0 to 1; for a screen, of a random choice.
    noise
        ``"fixed"``: a question gets the same answer whenever it is asked, mirrored or not.
        ``"fresh"``: its answer is drawn anew each time.
    random_state
        Seed or generator. Two oracles with the same seed are wrong about the same questions.

    Examples
    --------
    >>> NoisyOracle(PointOracle(np.arange(10.0)), flip=1.0)(np.array([[0, 1, 2], [0, 2, 1]]))
    array([False,  True])
    """

    def __init__(
        self,
        oracle: Oracle,
        flip: float,
        *,
        noise: Noise = "fixed",
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self._oracle = checks.oracle(oracle)
        self._flip = checks.probability("flip", flip)
        self._draws = _Draws(noise, random_state)

    def __call__(self, questions: Questions) -> Answers:
        """The oracle's answers, some of them wrong."""
        q = np.asarray(questions)
        truth = as_answers(self._oracle(q), q)
        if q.shape[1] == 3:
            return np.logical_xor(truth, self._draws.comparisons(q) < self._flip)
        chance, wrong = self._draws.screens(q, self._flip)  # as many objects, at random
        blind = np.argsort(np.argsort(chance, axis=1), axis=1) < truth.sum(axis=1, keepdims=True)
        return np.where(wrong[:, None], blind, truth)


@dataclass(frozen=True)
class Person:
    """How a person answers.

    Attributes
    ----------
    reliability
        Steepness of the psychometric curve relative to others; with 0 the person guesses, below 0
        contradicts.
    lapse, side
        Probability of answering without looking at the question, and of saying "a" then.
    """

    reliability: float = 1.0
    lapse: float = 0.0
    side: float = 0.5

    def __post_init__(self) -> None:
        checks.probability("lapse", self.lapse)
        checks.probability("side", self.side)
        checks.finite("reliability", self.reliability)


class PsychometricOracle(PointOracle):
    """Answers that are right more often if the two distances differ more.

    Parameters
    ----------
    X
        ``(n, d)`` points.
    scale
        The difference of distances at which the odds of the right answer are e : 1.
    lapse
        Probability of a guess, for any question.
    noise, choose, random_state
        As in `NoisyOracle` and `PointOracle`.

    Examples
    --------
    >>> PsychometricOracle(np.array([0.0, 1.0, 9.0]), scale=0.5)(np.array([[0, 1, 2]]))
    array([ True])
    """

    def __init__(
        self,
        X: ArrayLike | Any,
        *,
        scale: float,
        lapse: float = 0.0,
        noise: Noise = "fixed",
        choose: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(X, choose=choose)
        self._scale = checks.positive("scale", scale)
        self._lapse = checks.probability("lapse", lapse)
        self._draws = _Draws(noise, random_state)

    def probability(self, questions: Questions) -> Floats:
        """The probability that the answer is "a is nearer", for each question."""
        seen = expit(self._margins(self._checked(questions)))
        return np.asarray(self._lapse / 2 + (1 - self._lapse) * seen)

    def _margins(self, questions: Questions) -> Floats:
        to_a, to_b = self._costs(questions).T
        return np.asarray((to_b - to_a) / self._scale)

    def _choices(self, screens: Questions, reliability: Floats, chance: Floats) -> Answers:
        """Choices of people of these reliabilities on screens, from numbers in [0, 1)."""
        cost = self._costs(screens) / self._scale
        gumbel = -np.log(-np.log(np.clip(chance, 1e-300, 1 - 1e-16)))
        return _cheapest(reliability[:, None] * cost - gumbel, screens, self._choose)

    def __call__(self, questions: Questions) -> Answers:
        """Whether a is nearer to head than b is, as this person answers."""
        q = self._checked(questions)
        if q.shape[1] == 3:
            return np.asarray(self._draws.comparisons(q, mirror=True) < self.probability(q))
        chance, lapsed = self._draws.screens(q, self._lapse)
        return self._choices(q, (~lapsed).astype(np.float64), chance)


class CrowdOracle(PsychometricOracle):
    """Answers from several people, each question put to one of them at random.

    Parameters
    ----------
    people
        The people, one `Person` each.
    scale
        The difference of distances at which a person of reliability 1 is right with odds e : 1.
    X, choose, random_state
        As in `PsychometricOracle`.

    Examples
    --------
    >>> crowd = CrowdOracle(np.arange(9.0), [Person(), Person(lapse=1, side=1)], scale=0.1)
    >>> crowd(np.array([[0, 1, 8]])), len(crowd.answered_by)
    (array([ True]), 1)
    """

    def __init__(
        self,
        X: ArrayLike | Any,
        people: Sequence[Person],
        *,
        scale: float,
        choose: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(people, Sequence) or {type(each) for each in people} != {Person}:
            raise InvalidInput(f"people={people!r:.60}: must be a list of Person, at least one")
        self.people: tuple[Person, ...] = tuple(people)
        super().__init__(X, scale=scale, choose=choose)
        self._rng = checks.generator(random_state)
        self._log: list[Objects] = []

    @property
    def answered_by(self) -> Objects:
        """For every question so far, in order, the number of the person who answered."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._log])

    def __call__(self, questions: Questions) -> Answers:
        """The answers of randomly drawn people."""
        q = self._checked(questions)
        who = self._rng.integers(len(self.people), size=len(q))
        self._log.append(who)
        reliability, lapse, side = (
            np.array([getattr(person, name) for person in self.people])[who]
            for name in ("reliability", "lapse", "side")
        )
        if q.shape[1] > 3:
            looks = self._rng.random(len(who)) >= lapse
            chance = self._rng.random((len(who), q.shape[1] - 1))
            return self._choices(q, looks * reliability, chance)
        p = lapse * side + (1 - lapse) * expit(reliability * self._margins(q))
        return np.asarray(self._rng.random(len(who)) < p)


def _cheapest(cost: Floats, questions: Questions, choose: int) -> Answers:
    """Choose the objects of the least cost; of equal costs, the lowest object numbers."""
    shown = np.asarray(questions)[:, 1:]
    if shown.shape[1] == 2:
        (to_a, to_b), (a, b) = cost.T, shown.T
        return np.asarray((to_a < to_b) | ((to_a == to_b) & (a < b)))
    order = np.lexsort((shown, cost), axis=1)
    chosen = np.zeros(cost.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order[:, :choose], True, axis=1)
    return chosen


def _hash_to_unit(keys: NDArray[np.uint64]) -> Floats:
    """Pseudorandom numbers in [0, 1) from integers (the finaliser of SplitMix64)."""
    z = keys + SPREAD
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
