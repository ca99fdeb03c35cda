r"""People as oracles: uncertain near a tie, with lapses, a favourite side, and differences.

A person with reliability r who looks at the question says "a" with probability
1/(1 + exp(−r (δ_b − δ_a)/scale)), δ the distances from the head: the psychometric curve. With
probability `lapse` the person does not look and says "a" with probability `side`. A person of
negative reliability answers the opposite question.

On a screen a person chooses what costs least (`nearer.asking.oracles`) after each cost, over the
scale and times r, has lost a Gumbel variable: with one to choose, a softmax.

`NoisyOracle` of `nearer.asking.oracles` is the other model, a wrong answer at a rate that does not
depend on the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from nearer import checks
from nearer.asking.oracles import cheapest, costs, hash_to_unit, screen_chances
from nearer.distances import Distances
from nearer.errors import InvalidInput
from nearer.questions import Answers, Floats, Questions, pack

__all__ = ["CrowdOracle", "Person", "PsychometricOracle"]


@dataclass(frozen=True)
class Person:
    """How a person answers.

    Attributes
    ----------
    reliability
        Steepness of the psychometric curve relative to others; 0 guesses, below 0 contradicts.
    lapse
        Probability of answering without looking at the question.
    side
        Probability of saying "a" then.

    Examples
    --------
    >>> Person(reliability=0.5, lapse=0.1)
    Person(reliability=0.5, lapse=0.1, side=0.5)
    """

    reliability: float = 1.0
    lapse: float = 0.0
    side: float = 0.5

    def __post_init__(self) -> None:
        checks.probability("lapse", self.lapse)
        checks.probability("side", self.side)
        if not np.isfinite(self.reliability):
            raise InvalidInput(f"reliability={self.reliability}: must be a finite number")


class _Margins:
    """Differences of true distances in units of a scale."""

    def __init__(self, X: ArrayLike | Any, scale: float, metric: Any) -> None:
        if not scale > 0:
            raise InvalidInput(
                f"scale={scale}: must be above 0, the difference of distances that is told apart "
                "with odds e : 1"
            )
        self._distances = Distances(X, metric)
        self._scale = scale
        self.n_objects = self._distances.n_objects

    def __call__(self, questions: Questions) -> NDArray[np.float64]:
        head, a, b = np.asarray(questions).T
        to_a, to_b = self._distances.between(head, a), self._distances.between(head, b)
        return np.asarray((to_b - to_a) / self._scale)

    def choices(
        self, screens: Questions, choose: int, reliability: Floats, chance: Floats
    ) -> Answers:
        """What is chosen on screens by people of these reliabilities, from numbers in [0, 1)."""
        cost = costs(self._distances, screens) / self._scale
        gumbel = -np.log(-np.log(np.clip(chance, 1e-300, 1 - 1e-16)))
        return cheapest(reliability[:, None] * cost - gumbel, screens, choose)


class PsychometricOracle:
    """Answers that are the more often right the more the two distances differ.

    Parameters
    ----------
    X
        ``(n, d)`` points, or distances with ``metric="precomputed"``.
    scale
        The difference of distances that is told apart with odds e : 1.
    lapse
        Probability of a guess, whatever the question.
    noise
        ``"fixed"``: a question gets the same answer whenever it is asked, mirrored or not.
        ``"fresh"``: every asking of it is another draw.
    metric, choose
        As in `PointOracle`.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = PsychometricOracle(np.array([0.0, 1.0, 9.0]), scale=0.5, random_state=0)
    >>> oracle(np.array([[0, 1, 2], [0, 2, 1]]))
    array([ True, False])
    """

    def __init__(
        self,
        X: ArrayLike | Any,
        *,
        scale: float,
        lapse: float = 0.0,
        noise: Literal["fixed", "fresh"] = "fixed",
        metric: Any = "euclidean",
        choose: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self._margins = _Margins(X, scale, metric)
        self._lapse = checks.probability("lapse", lapse)
        self._noise = checks.one_of("noise", noise, ("fixed", "fresh"))
        self._choose = checks.whole("choose", choose)
        self._rng = checks.generator(random_state)
        self._salt = self._rng.integers(1 << 63, dtype=np.uint64)
        self.n_objects: int = self._margins.n_objects

    def probability(self, questions: Questions) -> NDArray[np.float64]:
        """How likely "a is nearer" is, for each question."""
        return np.asarray(self._lapse / 2 + (1 - self._lapse) * expit(self._margins(questions)))

    def __call__(self, questions: Questions) -> Answers:
        """Whether a is nearer to head than b is, in this person's eyes."""
        q = np.asarray(questions)
        if q.shape[1] > 3:
            return self._chosen(q)
        p = self.probability(q)
        if self._noise == "fresh":
            return np.asarray(self._rng.random(len(q)) < p)
        keys, mirrored = pack(q)
        chance = hash_to_unit(keys.astype(np.uint64) ^ self._salt)
        return np.asarray(np.where(mirrored, 1 - chance, chance) < p)

    def _chosen(self, screens: Questions) -> Answers:
        if self._noise == "fresh":
            chance = self._rng.random((len(screens), screens.shape[1] - 1))
            looks = self._rng.random(len(screens)) >= self._lapse
        else:
            chance = screen_chances(screens, self._salt)
            looks = hash_to_unit((chance[:, 0] * 2**53).astype(np.uint64)) >= self._lapse
        return self._margins.choices(screens, self._choose, looks.astype(np.float64), chance)


class CrowdOracle:
    """Answers from several people, each question put to one of them at random.

    Parameters
    ----------
    X
        ``(n, d)`` points, or distances with ``metric="precomputed"``.
    people
        The people who answer.
    scale
        The difference of distances that a person of reliability 1 tells apart with odds e : 1.
    metric, choose
        As in `PointOracle`.
    random_state
        Seed or generator of the choice of people and of their answers.

    Attributes
    ----------
    answered_by
        For every question so far, in order, the number of the person who answered.

    Examples
    --------
    >>> import numpy as np
    >>> crowd = CrowdOracle(np.arange(9.0), [Person(), Person(lapse=1, side=1)], scale=0.1,
    ...                     random_state=0)
    >>> answers = crowd(np.array([[0, 8, 1]] * 100))
    >>> bool(answers[crowd.answered_by == 1].all()), bool(answers[crowd.answered_by == 0].any())
    (True, False)
    """

    def __init__(
        self,
        X: ArrayLike | Any,
        people: Sequence[Person],
        *,
        scale: float,
        metric: Any = "euclidean",
        choose: int = 1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        if not people:
            raise InvalidInput("people is empty: pass at least one Person")
        self.people: tuple[Person, ...] = tuple(people)
        self._margins = _Margins(X, scale, metric)
        self._choose = checks.whole("choose", choose)
        self._rng = checks.generator(random_state)
        self._log: list[NDArray[np.int64]] = []
        self.n_objects: int = self._margins.n_objects

    @property
    def answered_by(self) -> NDArray[np.int64]:
        """For every question so far, in order, the number of the person who answered."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._log])

    def __call__(self, questions: Questions) -> Answers:
        """What the people who are asked say."""
        who = self._rng.integers(len(self.people), size=len(questions))
        self._log.append(who)
        reliability, lapse, side = (
            np.array([getattr(person, name) for person in self.people])[who]
            for name in ("reliability", "lapse", "side")
        )
        if np.shape(questions)[1] > 3:
            looks = self._rng.random(len(who)) >= lapse
            chance = self._rng.random((len(who), np.shape(questions)[1] - 1))
            return self._margins.choices(questions, self._choose, looks * reliability, chance)
        p = lapse * side + (1 - lapse) * expit(reliability * self._margins(questions))
        return np.asarray(self._rng.random(len(who)) < p)
