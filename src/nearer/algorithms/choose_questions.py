"""Choose the most informative questions: comparisons or screens.

docs/adaptive.md gives the information F·v of a comparison. Questions are *drawn* in proportion to
its square: the best questions of a round would all give the same information. Screens with a query
are built object by object from a random pool: each time the one that adds most to ½ tr(J·Cov(u)),
the same information (`nearer._kernels.screens`). Several queries for each, or counting the
information of questions in flight, gave no better maps.

Every round has random questions, which are predicted before their answers are seen: an unbiased
test of the fit. Their share is the share of predictions that are guesses, since questions chosen by
positions that are mostly guesses, or of too few dimensions, are less informative than random ones.

*How many.* An answer of which a share ε is wrong carries at most c = 1 + ε log2 ε + (1 − ε) log2(1
− ε) bits; n distinguishable objects in d dimensions have d·log2 n bits each. *At most* twice that
is asked, for d + 1 dimensions. The *expected* number is that of the bits of positions that reach
Kendall's τ: about log2 1/(1 − τ) bits a coordinate, for any n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit

from nearer import checks
from nearer._kernels.screens import grow
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.likelihood import as_answers
from nearer.fitting.posterior import Posterior
from nearer.questions import (
    Answers,
    Floats,
    Objects,
    Questions,
    find,
    pack,
    random_questions,
    unpack,
)
from nearer.trials import Task, Trials

Askable = Callable[[Questions], Answers]

# `python -m benchmarks sensitivity` and `choices` show their effects.
RANDOM_SHARE = 0.03  # at least: honest predictions against more informative questions
FIRST = 5  # questions for each object in the first round
CANDIDATES = 200  # for each question that is asked: time against information
_POOL = 3  # times the size of a screen, from which it is built: similar against poor screens
GROWTH = 0.04  # the next round as a share of the questions so far: comparisons against rounds
MOST_WRONG = 0.35  # more errors count as so many: the limit is 15 times that without
_COUNTED = 5  # dimensions that the limit grows with: time where no dimension fits
_MOST = 2.0  # questions for each bit that positions hold in d + 1 dimensions: the limit
# Time and memory alone
_AT_ONCE = 1 << 18  # candidates that are drawn, and stored
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
) -> Objects:
    """Given all answers so far, choose the questions to ask next.

    Parameters
    ----------
    triplets
        Answers so far, ``(m, 3)`` rows (head, near, far); may be empty.
    n_questions
        How many questions to choose; fewer are returned if no more may be asked.
    n_objects, n_components, askable, random_state
        As in `nearer.adaptive`.
    belief
        The posterior of earlier calls, which is quicker than a new one; it learns the answers.

    Examples
    --------
    >>> choose_questions([[0, 1, 2], [3, 4, 0]], 10, 5, n_components=2, random_state=0).shape
    (5, 3)
    """
    n_objects = checks.n_objects(n_objects)
    checks.whole("n_questions", n_questions, least=0)
    rng = checks.generator(random_state)
    if belief is None:
        belief = Belief(n_objects, n_components, rng)
    checks.one("belief", belief, Belief, "a nearer.fitting.Belief")
    candidates = Candidates(n_objects, checks.askable(askable))
    if checks.as_array(triplets).size:
        rows = checks.triplets(triplets, n_objects)[0].astype(np.int64)
        belief.learn(rows)
        candidates.exclude(rows)
    return draw_round(belief, candidates, int(n_questions), rng)[0]


def information_of(fit: Posterior, questions: Questions) -> Floats:
    """Fisher information about the margin times its variance, for each question."""
    mean, variance = fit.margins(questions)
    beta, lapse = fit.curve.sharpness, fit.curve.lapse
    right = expit(beta * mean)
    slope = (1 - 2 * lapse) * beta * right * (1 - right)
    p = lapse + (1 - 2 * lapse) * right
    return np.asarray(slope**2 * variance / np.maximum(p * (1 - p), 1e-300))


def draw_round(
    belief: Belief, candidates: Candidates, count: int, rng: np.random.Generator
) -> tuple[Objects, Answers]:
    """Questions for a round, which the belief then expects, and which of them are purely random."""
    n_random = _random_ones(belief.share_guessed, count)
    most = count if n_random == count else max(count, min(CANDIDATES * count, _AT_ONCE))
    pool = candidates.draw(most, rng)
    n_random = min(n_random, len(pool))
    scores = np.maximum(information_of(belief.fit, pool), 1e-75) ** 2
    best = _draw_by(scores[n_random:], count - n_random, rng)
    taken = np.concatenate([np.arange(n_random), n_random + best])
    odds = _odds(scores, n_random, len(best))[taken]
    order = rng.permutation(len(taken))
    questions = pool[taken[order]]
    belief.expect(questions, odds[order])
    return questions, (order < n_random)


def _random_ones(share_guessed: float, count: int) -> int:
    """The number of random questions in a round: the share of predictions that are guesses."""
    return min(count, max(1, round(max(RANDOM_SHARE, share_guessed) * count)))


def _draw_by(scores: Floats, count: int, rng: np.random.Generator) -> Objects:
    """Draw without replacement, with probability proportional to scores."""
    keys = rng.gumbel(size=len(scores)) + np.log(scores)
    top = np.argpartition(-keys, count)[:count] if count < len(keys) else np.arange(len(keys))
    return top[np.argsort(-keys[top])]


def _odds(scores: Floats, n_random: int, n_chosen: int) -> Floats:
    """How many times likelier than at random each candidate was to be drawn.

    A draw without replacement takes the smallest of exponential variables with these rates.
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
    """Comparisons that may be asked and were not."""

    def __init__(self, n_objects: int, askable: Askable | None = None) -> None:
        self._n, self._askable = n_objects, askable
        self._asked = self._pool = np.empty(0, dtype=np.int64)  # as `pack` numbers them, sorted

    def exclude(self, questions: Questions) -> None:
        """Never offer these questions again."""
        self._asked = _distinct(self._asked, pack(questions)[0])

    def draw(self, count: int, rng: np.random.Generator) -> Objects:
        """About `count` different questions in random order; fewer if there are no more."""
        pool, size = self._fresh(self._pool), min(_AT_ONCE, count + count // 8 + 64)
        while True:
            before = len(pool)
            drawn = _distinct(pack(random_questions(self._n, size, rng))[0])
            pool = _distinct(pool, self._fresh(drawn))
            few = size == _AT_ONCE and len(pool) - before <= _WORTHWHILE * len(pool)
            if few or len(pool) >= count:
                break
            size = _AT_ONCE
        pool = rng.permutation(pool)
        # Questions that `askable` allows are stored, since they may be rare.
        self._pool = pool[:0] if self._askable is None else np.sort(pool[:_AT_ONCE])
        questions = unpack(pool[:count])
        mirrored = rng.random(len(questions)) < 0.5
        questions[mirrored] = questions[mirrored][:, [0, 2, 1]]
        return questions

    def _fresh(self, keys: Objects) -> Objects:
        keys = keys[~find(self._asked, keys)[1]]
        return keys[_allowed(self._askable, unpack(keys))]


def _distinct(*keys: Objects) -> Objects:
    """The keys in ascending order, each once; `np.unique` takes 30 times as long."""
    rows = np.sort(np.concatenate(keys))
    return rows[np.diff(rows, prepend=-1) > 0]


def _allowed(askable: Askable | None, questions: Questions) -> Answers:
    """Which questions may be asked."""
    if askable is None or not len(questions):
        return np.ones(len(questions), dtype=np.bool_)
    allowed = np.asarray(askable(questions))
    if allowed.shape != (len(questions),) or allowed.dtype != np.bool_:
        said = f"askable returned {allowed.dtype} of shape {allowed.shape}"
        raise InvalidInput(f"{said} for {len(questions)} questions: must be a boolean for each")
    return allowed


def most_questions(n: int, d: int, wrong: float) -> float:
    """The largest number of comparisons for each of n objects in d dimensions, with errors."""
    return float(_MOST * (min(d, _COUNTED) + 1) * np.log2(n) / _capacity(wrong))


def expected_questions(n: int, d: int, wrong: float, quality: float) -> float:
    """The expected number of comparisons for each of n objects in d dimensions, with errors."""
    bits = -float(np.log2(max(1 - quality, 1 / n**2)))
    # Measured: 1.1 for objects that are fitted together, 1.5 for objects that are placed.
    return min(most_questions(n, d, wrong), 1.2 * (d + 1) * bits / _capacity(wrong))


def default_budget(n_objects: int) -> int:
    """Comparisons for methods without a stopping rule: 8.5·n·log2 n, as in the paper."""
    return int(8.5 * n_objects * np.log2(n_objects))


def _capacity(wrong: float) -> float:
    """The most bits that an answer can carry."""
    p = np.array([min(wrong, MOST_WRONG), 1 - min(wrong, MOST_WRONG)])
    return 1 + float(np.sum(p * np.log2(np.maximum(p, 1e-12))))


# --- screens -------------------------------------------------------------------------------------


def expected_information(fit: Posterior, screens: Questions, task: Task) -> Floats:
    """The expected information of the answer to each screen, in nats."""
    rows = np.asarray(screens)
    said = np.zeros((len(rows), task.shown), dtype=np.bool_)
    said[:, : task.choose] = True
    trials = Trials.from_screens(rows, said)
    choices = as_answers(trials, len(fit.positions))
    gain, _ = choices.expected_information(
        fit.positions, fit.covariances, fit.noise.tail, fit.curve.sharpness, fit.curve.lapse
    )
    return gain[choices.row]


class ScreenSource:
    """Screens of one task that may be asked and were not."""

    def __init__(self, n_objects: int, task: Task, askable: Askable | None = None) -> None:
        needed = task.shown + (task.kind == "near")
        if n_objects < needed:
            rule = f"needs {needed} objects, there are {n_objects}; show fewer"
            raise InvalidInput(f"task '{task}' {rule}")
        self._n, self.task, self._askable = n_objects, task, askable
        self._asked: set[tuple[int, ...]] = set()
        self._queries = self._deck = np.empty(0, dtype=np.int64)

    def draw(self, belief: Belief, count: int, rng: np.random.Generator) -> tuple[Objects, Answers]:
        """Screens for a round, and which of them are random; fewer if there are no more."""
        n_random = _random_ones(belief.share_guessed, count)
        screens: list[Objects] = []
        random: list[bool] = []
        vain = 0  # draws since the last new screen
        while (missing := count - len(screens)) and vain < CANDIDATES:
            blind = n_random - sum(random)  # screens that may not be asked are replaced
            rows = [self._random(rng) for _ in range(blind)]
            rows += self._chosen(belief.fit, missing - blind, rng)
            new = self._new(rows)
            vain = 0 if new else vain + len(rows)
            screens += [rows[i] for i in new]
            random += [i < blind for i in new]
        questions = np.array(screens, dtype=np.int64).reshape(-1, self.task.shown + 1)
        order = rng.permutation(len(questions))
        return questions[order], np.array(random, dtype=np.bool_)[order]

    def _random(self, rng: np.random.Generator) -> Objects:
        """A random screen; all objects are queries, and are shown, about equally often."""
        query = self._next_query(rng) if self.task.kind == "near" else -1
        shown = self._deck[self._deck != query][: self.task.shown]
        left = self._deck[~np.isin(self._deck, shown)]
        if len(shown) < self.task.shown:
            others = rng.permutation(self._n)
            others = others[(others != query) & ~np.isin(others, shown)]
            more = self.task.shown - len(shown)
            shown, left = np.concatenate([shown, others[:more]]), np.sort(others[more:])
            left = rng.permutation(left)
        self._deck = left
        return np.concatenate([[query], rng.permutation(shown)])

    def _next_query(self, rng: np.random.Generator) -> int:
        if not len(self._queries):
            self._queries = rng.permutation(self._n)
        query, self._queries = int(self._queries[0]), self._queries[1:]
        return query

    def _chosen(self, fit: Posterior, count: int, rng: np.random.Generator) -> list[Objects]:
        if not count:
            return []
        if self.task.kind == "near":
            return [self._grown(fit, rng) for _ in range(count)]
        drawn = np.array([self._random(rng) for _ in range(CANDIDATES * count)])
        gains = expected_information(fit, drawn, self.task)
        return list(drawn[_draw_by(np.maximum(gains, 1e-75) ** 2, count, rng)])

    def _grown(self, fit: Posterior, rng: np.random.Generator) -> Objects:
        query = self._next_query(rng)
        others = np.delete(np.arange(self._n), query)
        pool = rng.permutation(others)[: _POOL * self.task.shown]
        u, covariance = _utilities(fit, query, pool)
        task, beta = self.task, fit.curve.sharpness
        places, _ = grow(
            beta * u, beta**2 * covariance, 0, task.shown, task.choose, fit.curve.lapse
        )
        return np.concatenate([[query], rng.permutation(pool[places])])

    def _new(self, rows: list[Objects]) -> list[int]:
        """The numbers of the rows that may be asked and were not, each once."""
        new = []
        for i in np.flatnonzero(_allowed(self._askable, np.array(rows))).tolist():
            key = (int(rows[i][0]), *sorted(rows[i][1:].tolist()))
            if key not in self._asked:
                self._asked.add(key)
                new.append(i)
        return new


def _utilities(fit: Posterior, query: int, pool: Objects) -> tuple[Floats, Floats]:
    """Utilities of the objects of a pool and their covariance."""
    X, tail = fit.positions, fit.noise.tail
    steps = X[pool] - X[query]
    squared = (steps**2).sum(axis=1)
    if tail:
        u = -(tail + 1) / 2 * np.log1p(squared / tail)
        slopes = steps * ((tail + 1) / (tail + squared))[:, None]
    else:
        distance = np.sqrt(squared)
        u, slopes = -distance, steps / np.maximum(distance, np.finfo(np.float64).tiny)[:, None]
    own = np.einsum("ic,ice,ie->i", slopes, fit.covariances[pool], slopes)
    return u, slopes @ fit.covariances[query] @ slopes.T + np.diag(own)
