r"""Choose the questions whose answers are expected to tell most about the positions.

Every answer shifts a posterior (`nearer.fitting.posterior`), and the next questions are drawn with
probability proportional to the square of

    F(t) · v,     v = Σ gᵢᵀ Σᵢ gᵢ  over the three objects i,

where t is the predicted margin, F(t) the Fisher information that an answer carries about it
(greatest at a tie, zero where the answer is certain), and v the variance of the margin: gᵢ is its
gradient in the position of object i, Σᵢ that object's covariance. To first order F·v/2 is the
information, in nats, that the answer gives about the positions. *Drawing* questions, rather than
taking the best, keeps the many questions of a round from all asking the same thing.

While positions are mostly guesses, questions are drawn at random; after five of them an object, one
question in ten still is. What the fit predicts about questions before it sees their answers is an
honest test of it, and random ones keep the fit from learning only what it looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit

from nearer import checks
from nearer.algorithms.candidates import Askable, Candidates
from nearer.fitting.belief import Belief
from nearer.fitting.posterior import Posterior
from nearer.questions import Questions

__all__ = ["FIRST", "choose_questions", "draw_round", "information_of"]

# `python -m benchmarks sensitivity` halves and doubles them.
_RANDOM_SHARE = 0.1  # honest predictions against questions that teach more
FIRST = 5  # questions an object that are random before any is chosen by what are guesses
_CANDIDATES = 200  # drawn for each question that is asked: time against what it tells
_POWER = 2.0  # of the information: what a question tells against many that tell the same


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
    n_random = min(count, max(1, first, round(_RANDOM_SHARE * count)))
    pool = candidates.draw(count if n_random == count else _CANDIDATES * count, rng)
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
