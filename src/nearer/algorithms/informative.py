r"""Choose questions for people: those whose answers would teach most, in rounds.

People contradict themselves, so sorting from a head, whose every step trusts the last, wastes
their answers. Here every answer only shifts a posterior (`nearer.fitting.posterior`), and the
next questions are drawn with probability proportional to the square of

    F(t) · v,     v = Σ gᵢᵀ Σᵢ gᵢ  over the three objects i,

where t is the predicted margin, F(t) the Fisher information an answer carries about it (greatest
at a tie, nothing where the answer is certain), and v how unsure the margin is: gᵢ its gradient in
the position of object i, Σᵢ that object's covariance. To first order F·v/2 is the information, in
nats, that the answer gives about the positions. *Drawing* questions, rather than taking the best,
keeps the many questions of a round from all asking the same thing.

At first, while positions are mostly guesses, questions are drawn at random; after five of them an
object one question in ten still is. What the fit predicts about
those before it sees their answers is an honest held-out curve, and they keep the fit from trusting
only what it looked at. They are used in the fit afterwards like all others.

Screens, where one answer says more than a comparison, are chosen in the same spirit by
`nearer.algorithms.chosen_screens`.

Rounds are fitted from where the last one ended. Prior, lapse rate and dimension are looked at
again whenever there are half as many answers more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit

from nearer import checks
from nearer.algorithms.ask_screens import ask_screens
from nearer.algorithms.believed import LearningCurve, Limits, believed
from nearer.algorithms.candidates import Askable, Candidates
from nearer.algorithms.chosen_screens import ScreenSource
from nearer.asking.protocol import Strategy, accepts_uncertain, repeatable
from nearer.asking.record import Record
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent
from nearer.fitting.belief import Belief
from nearer.fitting.posterior import Posterior
from nearer.questions import Questions, answered
from nearer.trials import Task

__all__ = ["choose_questions", "information_of", "informative"]

# `python -m benchmarks sensitivity` halves and doubles them.
_RANDOM_SHARE = 0.1  # honest predictions against questions that teach more
_FIRST = 5  # questions an object that are random before any is chosen by what are guesses
_CANDIDATES = 200  # drawn for each question that is asked: time against what it tells
_POWER = 2.0  # of the information: what a question tells against many that tell the same


@repeatable
@accepts_uncertain
def informative(
    n_objects: int,
    *,
    budget: int,
    n_components: int | None = None,
    round_size: int | None = None,
    askable: Askable | None = None,
    noise: float = 0.0,
    known: ArrayLike | None = None,
    quality: float = 0.99,
    task: str | Task = "1 of 2",
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """Find positions from answers that may be wrong, asking what teaches most.

    Parameters
    ----------
    n_objects
        How many objects there are, at least 3.
    budget
        How many questions may be asked: comparisons, or screens.
    n_components
        Dimension of the positions; None chooses it from held-out answers.
    round_size
        How many questions are asked at a time; None: three an object (of screens one for every
        two objects), at most a twentieth of the budget.
    askable
        A function from ``(m, 3)`` questions to ``(m,)`` booleans: which may be asked, such as
        `RecordedOracle.knows`. None: all.
    noise
        How often answers are thought to be wrong; where the search begins, the answers decide.
    known
        Answers to random questions that are there already, rows (head, near, far): they are learned
        and not asked again, and are no part of the budget or of the result's triplets.
    quality
        Stop when Kendall's τ between predicted and true distances from a head is expected to be
        this; 1: never, the budget is spent.
    task
        What is asked: ``"1 of 2"`` comparisons; ``"2 of 8"`` and the like screens, rows (query,
        eight shown) answered by rows of booleans, two of them true; ``"odd-one-out"`` screens with
        query −1. See `nearer.Task`.
    random_state
        Seed or generator.

    Returns
    -------
    strategy
        Its result is an `Embedding`. No question is asked twice. "Don't know" counts as a near
        tie, a graded answer as much for either side as it says. ``details`` holds the
        `Posterior`, its ``covariances``, the ``noise``, the ``learning_curve`` of honest
        predictions, the ``expected_tau``, and the objects nobody was asked about.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> people = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)
    >>> found = nearer.run(nearer.informative(40, budget=1500, random_state=0), people)
    >>> found.dimension, found.n_comparisons
    (2, 1500)
    """
    n_objects, budget = checks.n_objects(n_objects), checks.budget(budget, least=1)
    task = Task.parse(task)
    if round_size is None and task.is_comparison:
        round_size = max(20, min(3 * n_objects, budget // 20))
    elif round_size is None:
        round_size = max(5, min(n_objects // 2, budget // 20))
    checks.whole("round_size", round_size, rule="questions a round")
    limits = Limits(budget, int(round_size), checks.probability("quality", quality))
    rng = checks.generator(random_state)
    belief = Belief(n_objects, n_components, rng, noise=noise)
    if not task.is_comparison:
        screens = ScreenSource(n_objects, task, askable)
        return ask_screens(belief, screens, limits, known, rng)
    candidates = Candidates(n_objects, askable)
    told = np.empty((0, 3), dtype=np.int64)
    if known is not None and len(np.asarray(known)):
        told = checks.triplets(known, n_objects)[0].astype(np.int64)
        candidates.exclude(told)
    return _informative(belief, told, limits, candidates, rng)


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
        As in `informative`.
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
    first = max(0, _FIRST * len(belief.fit.positions) - candidates.n_asked)
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


def _informative(
    belief: Belief,
    known: NDArray[np.int64],
    limits: Limits,
    candidates: Candidates,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    record, curve = Record(), LearningCurve()
    stopped = "the budget is spent"
    if len(known):
        belief.learn(known)
    while record.n_comparisons < limits.budget:
        size = min(limits.round_size, limits.budget - record.n_comparisons)
        questions, random = draw_round(belief, candidates, size, rng)
        if not len(questions):
            stopped = "no further question that may be asked was found"
            break
        spent = False
        try:
            answers = yield questions
        except BudgetSpent as cut:
            answers, spent = cut.answers, True
            questions, random = questions[: len(answers)], random[: len(answers)]
        if record.n_comparisons:
            p = belief.fit.probability(answered(questions[random], answers[random]))
            possible = np.maximum(p, np.finfo(np.float64).tiny)  # after few answers a fit is sure
            curve.add(record.n_comparisons, p > 0.5, np.log(possible))
        record.add(questions, answers)
        candidates.exclude(questions)
        if len(questions):
            triplets, weights = record.weighted
            told = None if weights is None else np.concatenate([np.ones(len(known)), weights])
            belief.learn(np.concatenate([known, triplets]), weights=told)
        if spent:
            break
        if limits.good_enough(belief):
            stopped = f"τ is expected to be {belief.expected_tau:.3f}"
            break
    if record.n_comparisons or len(known):
        belief.conclude()
    seen = np.concatenate([known, record.triplets])
    phase = Phase("informative", record.n_comparisons, record.n_rounds, stopped)
    return believed(belief, record.triplets, seen, curve, phase)
