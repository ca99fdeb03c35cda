r"""Choose the questions whose answers are expected to tell most about the positions.

Questions are drawn with probability proportional to (F·v)², F the Fisher information that an answer
carries about the margin and v the margin's variance under the posterior: to first order F·v/2 is
what the answer tells about the positions, in nats (docs/adaptive.md). *Drawing* questions, rather
than taking the best, keeps the many questions of a round from all asking the same thing. One
question in ten is random: what the fit predicts about those before it sees their answers is an
honest test of it.

*How many.* An answer of which a share ε is wrong carries at most the capacity of such a channel,
c = 1 + ε log2 ε + (1 − ε) log2(1 − ε) bits. Positions of n objects in d dimensions that can be told
apart hold d·log2 n bits each. *At most* twice that is asked, for d + 1 dimensions, which pays for
questions that are worth less than a bit. *Expected* are as many as positions that reach Kendall's τ
hold: about log2 1/(1 − τ) bits a coordinate, whatever n is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.posterior import Posterior
from nearer.questions import Answers, Questions, find, pack, random_questions

__all__ = [
    "CANDIDATES",
    "FIRST",
    "GROWTH",
    "MOST_WRONG",
    "RANDOM_SHARE",
    "Askable",
    "Candidates",
    "choose_questions",
    "default_budget",
    "draw_round",
    "expected_questions",
    "information_of",
    "most_questions",
]

Askable = Callable[[Questions], Answers]

# `python -m benchmarks sensitivity` halves and doubles them.
RANDOM_SHARE = 0.1  # honest predictions against questions that teach more
FIRST = 5  # questions an object that are random before any is chosen by what are guesses
CANDIDATES = 200  # drawn for each question that is asked: time against what it tells
_POWER = 2.0  # of the information: what a question tells against many that tell the same
GROWTH = 0.06  # the next round as a share of the questions so far: comparisons against rounds
MOST_WRONG = 0.35  # more errors count as so many: the limit is 15 times that without
_COUNTED = 7  # dimensions that the limit grows with: time where no dimension fits
_MOST = 2.0  # questions for each bit that positions hold in d + 1 dimensions: the limit
# The same for what is expected: 1.1 where objects are fitted together, 1.5 where they are placed
_EXPECTED = 1.2
# Time and memory alone
_AT_ONCE = 1 << 18  # candidates drawn, and kept
_WORTHWHILE = 0.02  # share of new questions below which drawing more is not worth the time


def choose_questions(
    triplets: ArrayLike,
    n_objects: int,
    n_questions: int,
    *,
    n_components: int | None = None,
    askable: Askable | None = None,
    random_state: int | np.random.Generator | None = None,
    belief: Belief | None = None,
) -> NDArray[np.int64]:
    """Given all answers so far, choose the questions to ask next.

    Parameters
    ----------
    triplets
        Answers so far, ``(m, 3)`` rows (head, near, far); may be empty.
    n_objects, n_components, askable, random_state
        As in `nearer.adaptive`.
    n_questions
        How many questions to choose.
    belief
        What earlier calls have learned; it learns the answers and fits on from where it was, which
        is quicker than a new one. `n_components` is then the belief's.

    Returns
    -------
    questions
        ``(k, 3)`` rows (head, a, b), none of them answered yet; fewer than asked for only where
        no more may be asked.

    Examples
    --------
    >>> from nearer.algorithms import choose_questions
    >>> choose_questions([[0, 1, 2], [3, 4, 0]], 10, 5, n_components=2, random_state=0).shape
    (5, 3)
    """
    n_objects = checks.n_objects(n_objects)
    checks.whole("n_questions", n_questions, least=0)
    rng = checks.generator(random_state)
    if belief is None:
        belief = Belief(n_objects, n_components, rng)
    candidates = Candidates(n_objects, askable)
    rows = np.asarray(triplets, dtype=np.int64).reshape(-1, 3)
    if len(rows):
        belief.learn(rows)
        candidates.exclude(rows)
    return draw_round(belief, candidates, int(n_questions), rng)[0]


def information_of(fit: Posterior, questions: Questions) -> NDArray[np.float64]:
    """Fisher information about the margin times its variance, for each question."""
    mean, variance = fit.margins(questions)
    beta, lapse = fit.curve.sharpness, fit.curve.lapse
    right = expit(beta * mean)
    slope = (1 - 2 * lapse) * beta * right * (1 - right)
    p = lapse + (1 - 2 * lapse) * right
    return np.asarray(slope**2 * variance / np.maximum(p * (1 - p), 1e-300))


def draw_round(
    belief: Belief, candidates: Candidates, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Questions for a round, which the belief then expects, and which of them are purely random."""
    first = max(0, FIRST * len(belief.fit.positions) - candidates.n_asked)
    n_random = min(count, max(1, first, round(RANDOM_SHARE * count)))
    pool = candidates.draw(count if n_random == count else CANDIDATES * count, rng)
    n_random = min(n_random, len(pool))
    scores = np.maximum(information_of(belief.fit, pool), 1e-75) ** _POWER
    keys = np.log(scores[n_random:]) + rng.gumbel(size=len(pool) - n_random)
    best = np.argsort(-keys, kind="stable")[: count - n_random]  # a draw without replacement
    taken = np.concatenate([np.arange(n_random), n_random + best])
    odds = _odds(scores, n_random, len(best))[taken]
    order = rng.permutation(len(taken))
    questions = pool[taken[order]]
    belief.expect(questions, odds[order])
    return questions, (order < n_random)


def _odds(scores: NDArray[np.float64], n_random: int, n_chosen: int) -> NDArray[np.float64]:
    """How many times likelier than at random each candidate was to be drawn.

    A draw without replacement takes those whose exponential clocks of these rates ring first, so
    a candidate is among them with probability 1 − exp(−time · rate) when enough have rung.
    """
    m = len(scores)
    if n_chosen == 0 or n_random + n_chosen >= m:
        return np.ones(m)
    rates = scores / scores.mean()

    def missing(log_time: float) -> float:
        return float(-np.expm1(-np.exp(log_time) * rates).mean()) - n_chosen / m

    time = np.exp(brentq(missing, -40.0, 400.0))
    chance = n_random / m - np.expm1(-time * rates)
    return np.asarray(chance * m / (n_random + n_chosen))


class Candidates:
    """A source of questions that may be asked and were not.

    Parameters
    ----------
    n_objects
        How many objects there are.
    askable
        Says which questions may be asked; None: all.
    """

    def __init__(self, n_objects: int, askable: Askable | None = None) -> None:
        self._n = n_objects
        self._askable = askable
        self._asked = np.empty(0, dtype=np.int64)
        self._pool = np.empty((0, 3), dtype=np.int64)

    @property
    def n_asked(self) -> int:
        """How many questions were asked."""
        return len(self._asked)

    def exclude(self, questions: Questions) -> None:
        """Never offer these questions again."""
        self._asked = np.union1d(self._asked, pack(questions)[0])

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """About `count` different questions in random order; fewer where there are no more."""
        found, size = self._fresh(self._pool), min(_AT_ONCE, 2 * count + 64)
        while True:
            before = len(found)
            found = np.concatenate([found, self._fresh(random_questions(self._n, size, rng))])
            found = found[np.sort(np.unique(pack(found)[0], return_index=True)[1])]
            if len(found) >= count or len(found) - before <= _WORTHWHILE * len(found):
                break
            size = _AT_ONCE
        found = found[rng.permutation(len(found))]
        # What is hard to find is kept; elsewhere new questions are as good.
        self._pool = found[:0] if self._askable is None else found[:_AT_ONCE]
        return found[:count]

    def _fresh(self, questions: NDArray[np.int64]) -> NDArray[np.int64]:
        keys, _ = pack(questions)
        questions = questions[~find(self._asked, keys)[1]]
        if self._askable is None or not len(questions):
            return questions
        allowed = np.asarray(self._askable(questions))
        if allowed.shape != (len(questions),) or allowed.dtype != np.bool_:
            raise InvalidInput(
                f"askable returned {allowed.dtype} of shape {allowed.shape} for {len(questions)} "
                "questions: it must return one boolean for each"
            )
        return questions[allowed]


def most_questions(n: int, d: int, wrong: float) -> float:
    """Comparisons that are enough for an object among n in d dimensions, with errors.

    Examples
    --------
    >>> round(most_questions(1000, 2, 0.0)), round(most_questions(1000, 2, 0.1))
    (60, 113)
    """
    return float(_MOST * (min(d, _COUNTED) + 1) * np.log2(n) / _capacity(wrong))


def expected_questions(n: int, d: int, wrong: float, quality: float) -> float:
    """Comparisons that an object among n in d dimensions is expected to take.

    Examples
    --------
    >>> round(expected_questions(1000, 2, 0.0, 0.99)), round(expected_questions(1000, 2, 0.1, 0.99))
    (24, 45)
    """
    bits = -np.log2(max(1 - quality, 1 / n**2))
    return min(most_questions(n, d, wrong), _EXPECTED * (d + 1) * float(bits) / _capacity(wrong))


def default_budget(n_objects: int) -> int:
    """Comparisons for methods that know no end of their own: 8.5·n·log2 n, as the paper spends.

    Examples
    --------
    >>> default_budget(500)
    38104
    """
    return int(8.5 * n_objects * np.log2(n_objects))


def _capacity(wrong: float) -> float:
    """The bits that an answer carries at most."""
    p = np.array([min(wrong, MOST_WRONG), 1 - min(wrong, MOST_WRONG)])
    return 1 + float(np.sum(p * np.log2(np.maximum(p, 1e-12))))
