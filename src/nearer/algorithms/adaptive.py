r"""`nearer.adaptive`: positions and dimension from as few comparisons as they take.

A few random questions an object come first. Then one loop: the posterior of the positions given all
answers (`nearer.fitting.belief`), the questions whose answers are expected to tell most about them
(`nearer.algorithms.choose_questions`), and a new fit, until Kendall's τ is expected to be
`quality`, or the limit is reached. Exact answers are noisy answers without noise: how far answers
can be trusted is inferred from them, like the dimension.

*Rounds.* A round is as large as there are objects, or a share of the answers so far, so that the
number of rounds grows with the logarithm of the number of answers.

*The limit* without a budget. Positions in d dimensions hold about d·log2 n bits an object, and no
answer carries more than the capacity of a channel with as many errors. So at most
2·(d + 1)·n·log2 n comparisons are asked for each bit of that capacity, with d counted up to seven:
where answers ask for more and more dimensions, none may fit.

*Many objects.* Of more than `TOGETHER` a random core is treated so, and the others are placed among
it, side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.algorithms.choose_questions import (
    FIRST,
    GROWTH,
    MOST_WRONG,
    Askable,
    Candidates,
    draw_round,
    most_questions,
)
from nearer.algorithms.place import Placed, place_among
from nearer.algorithms.screens import ScreenSource
from nearer.asking.protocol import (
    Record,
    Strategy,
    accepts_uncertain,
    renumbered,
    repeatable,
)
from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.likelihood import as_answers
from nearer.fitting.posterior import Posterior, expected_tau
from nearer.fitting.solver import violated
from nearer.questions import Objects, answered, share_interval
from nearer.trials import Task, Trials

__all__ = ["Expected", "adaptive"]

Expected = float | Literal["auto"]

# `python -m benchmarks sensitivity` halves and doubles these.
# Up to so many objects are fitted together, so many of more: the time that a fit takes, against the
# accuracy of what is placed among fewer. `python -m benchmarks scale` shows both.
TOGETHER = 1000
CORE = 500


@repeatable
@accepts_uncertain
def adaptive(
    n_objects: int,
    *,
    budget: int | None = None,
    noise: Expected = "auto",
    n_components: int | None = None,
    quality: float = 0.99,
    task: str | Task = "1 of 2",
    askable: Askable | None = None,
    known: ArrayLike | None = None,
    round_size: int | None = None,
    keep_triplets: bool = True,
    begun_with: Sequence[int | None] = (),
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """Find the dimension and the positions of objects: `nearer.embed` as a strategy.

    Parameters
    ----------
    n_objects
        How many objects there are, at least 3.
    budget
        At most so many questions: comparisons, or screens. None: as many as it takes, at most
        2·(d + 1)·n·log2 n comparisons in d dimensions, counted up to seven, for each bit that an
        answer carries.
    noise
        How often answers are thought to be wrong; where the search begins, the answers decide.
        ``"auto"``: never.
    n_components
        Dimension of the positions; None chooses it from held-out answers.
    quality
        Stop when Kendall's τ between predicted and true distances from a head is expected to be
        this; 1: never, the budget is spent.
    task
        What is asked: ``"1 of 2"`` comparisons; ``"2 of 8"`` and the like screens, rows (query,
        eight shown) answered by rows of booleans, two of them true; ``"odd-one-out"`` screens with
        query −1. See `nearer.Task`.
    askable
        A function from ``(m, 3)`` questions to ``(m,)`` booleans: which may be asked, such as
        `RecordedOracle.knows`. None: all.
    known
        Answers to random questions that are there already, rows (head, near, far): they are learned
        and not asked again, and are no part of the budget or of the result's triplets.
    round_size
        How many questions are asked at a time. None: as many as there are objects, or 6 % of the
        answers so far where that is more; of a budget at most a twentieth; of screens one for every
        two objects.
    keep_triplets
        False: where objects are placed among a core, the answers about them are not kept.
    begun_with
        The budgets that a run had before, where `budget` is another one now. They set the size of
        rounds, so that the run goes on with the questions that were asked.
    random_state
        Seed or generator.

    Returns
    -------
    strategy
        Its result is an `Embedding`. No question is asked twice. "Don't know" counts as a near
        tie, a graded answer as much for either side as it says. ``details`` holds the
        `Posterior`, its ``covariances``, the ``noise``, the ``learning_curve`` of predictions of
        random questions, the ``expected_tau``, and the objects that no question was about.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = nearer.run(nearer.adaptive(60, random_state=0), nearer.PointOracle(X))
    >>> found.dimension, found.n_comparisons < 2000
    (2, True)
    """
    n = checks.n_objects(n_objects)
    budget = None if budget is None else checks.budget(budget)
    if n_components is not None:
        n_components = checks.n_components(n_components, n)
    checks.probability("quality", quality)
    rate = 0.0 if noise == "auto" else min(checks.rate("noise", noise), MOST_WRONG)
    if round_size is not None:
        checks.whole("round_size", round_size, rule="questions a round")
    task, rng = Task.parse(task), checks.generator(random_state)
    if not task.is_comparison:
        budget = int(n * most_questions(n, 0, 0.0)) if budget is None else budget
        before = tuple(filter(None, begun_with))
        size = round_size or max(5, min(n // 2, (before[0] if before else budget) // 20))
        belief = Belief(n, n_components, rng, noise=rate)
        screens = ScreenSource(n, task, askable)
        limits = _Limits(budget, size, quality, before)
        return _ask_screens(belief, screens, limits, known, rng)
    told = np.empty((0, 3), dtype=np.int64)
    if known is not None and len(np.asarray(known)):
        told = checks.triplets(known, n)[0].astype(np.int64)
    how = _How(n_components, rate, quality, askable, round_size, begun_with, rng)
    if n > TOGETHER and askable is None and n_components is None:
        return _core_and_others(n, budget, told, how, keep_triplets)
    return _together(n, budget, told, how)


@dataclass(frozen=True)
class _How:
    """What was asked for, and the source of all choices."""

    n_components: int | None
    noise: float
    quality: float
    askable: Askable | None
    round_size: int | None
    begun_with: Sequence[int | None]
    rng: np.random.Generator

    def size(self, n: int, asked: int, budget: int | None) -> int:
        """How many questions the next round has; as many as before while earlier budgets last."""
        begun = [most for most in self.begun_with if most is None or most > asked]
        paced = begun[0] if begun else budget
        grown = max(n, int(GROWTH * asked))
        if paced is None:
            return self.round_size or (grown if asked else FIRST * n)
        size = self.round_size or max(20, min(grown, paced // 20))
        return min(size, paced - asked) if begun else size


def _limit(belief: Belief) -> int:
    """Comparisons that are enough in as many dimensions and with as many errors as it seems."""
    n, d = belief.fit.positions.shape
    wrong = 0.0
    if belief.held_out is not None and not belief.is_exact:
        wrong = float(np.clip(1 - belief.held_out.accuracy, 1e-6, 0.5))
    if wrong > MOST_WRONG:  # hardly better than a coin: more answers would tell no more
        wrong = 0.0
    return int(n * most_questions(n, d, wrong))


def _together(
    n: int, budget: int | None, known: NDArray[np.int64], how: _How
) -> Strategy[Embedding]:
    """Embed objects that are few enough to be fitted together."""
    rng, record, curve = how.rng, Record(), _LearningCurve()
    belief = Belief(n, how.n_components, rng, noise=how.noise)
    candidates = Candidates(n, how.askable)
    stopped, spent = "the budget is spent", False
    if len(known):
        belief.learn(known)
        candidates.exclude(known)
    while not spent:
        asked = record.n_comparisons
        limit = _limit(belief) if budget is None else budget
        if budget is None and asked >= limit:
            belief.review()  # the dimension may have been too small, and the limit with it
            limit = _limit(belief)
        if asked >= limit:
            stopped = "the budget is spent" if budget is not None else "the limit is reached"
            break
        size = min(how.size(n, asked, budget), limit - asked)
        questions, random = draw_round(belief, candidates, size, rng)
        if not len(questions):
            stopped = "no further question that may be asked was found"
            break
        try:
            answers = yield questions
        except BudgetSpent as cut:
            answers, spent = cut.answers, True
            questions, random = questions[: len(answers)], random[: len(answers)]
        if not len(questions):
            break
        if asked:
            p = belief.fit.probability(answered(questions[random], answers[random]))
            possible = np.maximum(p, np.finfo(np.float64).tiny)  # after few answers a fit is sure
            curve.add(asked, p > 0.5, np.log(possible))
            belief.predict(answered(questions, answers))
        record.add(questions, answers)
        candidates.exclude(questions)
        rows, weights = record.weighted
        told = None if weights is None else np.concatenate([np.ones(len(known)), weights])
        belief.learn(np.concatenate([known, rows]), weights=told)
        if not spent and how.quality < 1 and belief.is_good_enough(how.quality):
            stopped = f"τ is expected to be {belief.expected_tau:.3f}"
            break
    if record.n_comparisons or len(known):
        belief.conclude()
    seen = np.concatenate([known, record.weighted[0]])  # also what nobody could answer
    phase = Phase("adaptive", record.n_comparisons, record.n_rounds, stopped)
    found = _believed(belief, record.triplets, seen, curve, phase)
    if record.n_decided or len(known):
        return found
    # where no answer takes a side, or none was asked for, nothing is determined
    return replace(
        found,
        determined=False,
        dimension_low=1,
        dimension_high=n - 1,
        details={**found.details, "n_decided": 0},
    )


def _core_and_others(
    n: int, budget: int | None, known: Objects, how: _How, keep_triplets: bool
) -> Strategy[Embedding]:
    """Embed a random core, which holds the objects of known answers, then place the others."""
    objects = how.rng.permutation(n)
    objects = objects[np.argsort(~np.isin(objects, known), kind="stable")]  # the core first
    places = np.argsort(objects)
    inside = places[known]
    inside = inside[(inside < CORE).all(axis=1)]
    first = how.begun_with[0] if how.begun_with else budget
    half = None if first is None else max(1, first // 2)
    # Half of the budget is the core's whole one. Its errors and those of the objects placed among
    # it add up, so that each gets half of what the quality allows.
    paced = replace(how, begun_with=(), quality=(1 + how.quality) / 2)
    core = yield from renumbered(_together(CORE, half, inside, paced), objects)
    if budget is None:
        held_out = None if core.details["exact"] else core.held_out
        wrong = 0.0 if held_out is None else 1 - held_out.accuracy
        budget = core.n_comparisons + int((n - CORE) * most_questions(n, core.dimension, wrong))
    fit: Posterior = core.details["posterior"]
    asked = np.setdiff1d(np.arange(CORE), core.details["never_asked"])  # others have no position
    placing = place_among(
        replace(fit, positions=fit.positions[asked], covariances=fit.covariances[asked], bias=None),
        np.arange(CORE, n),
        ids=asked,
        budget=max(1, budget - core.n_comparisons),
        until_spent=how.quality >= 1,
        keep_triplets=keep_triplets,
        rng=how.rng,
    )
    placed = yield from renumbered(placing, objects)
    return _all_of(core, placed, places, objects)


def _all_of(core: Embedding, placed: Placed, places: Objects, objects: Objects) -> Embedding:
    """The core and the others as one embedding, in the order in which they came."""
    old: Posterior = core.details["posterior"]
    fit = replace(
        old,
        positions=np.concatenate([old.positions, placed.positions])[places],
        covariances=np.concatenate([old.covariances, placed.covariances])[places],
    )
    triplets = objects[np.concatenate([core.triplets, placed.triplets])]
    never = np.concatenate([core.details["never_asked"], placed.never_asked])
    wrong = float(violated(fit.positions, triplets).mean()) if len(triplets) else 0.5
    tau = core.details["expected_tau"]
    if not core.details["exact"]:  # others are placed no better than the core is
        tau = min(tau, expected_tau(fit, fit.curve.sharpness))
    note = f"{len(placed.positions)} objects among a core of {len(old.positions)}"
    if placed.uncertain:
        note += f", all but {placed.uncertain} as certain as it"
    return replace(
        core,
        positions=fit.positions,
        triplets=triplets,
        n_comparisons=core.n_comparisons + placed.n_comparisons,
        n_rounds=core.n_rounds + placed.n_rounds,
        history=(*core.history, Phase("place", placed.n_comparisons, placed.n_rounds, note)),
        covariances=fit.covariances,
        error_rate=wrong,
        details=core.details
        | {
            "posterior": fit,
            "covariances": fit.covariances,
            "error_rate": wrong,
            "expected_tau": tau,
            "never_asked": np.sort(objects[never]),
        },
    )


@dataclass(frozen=True)
class _Limits:
    """How much may be asked, how much at a time, and the expected τ that is enough."""

    budget: int
    round_size: int
    quality: float
    begun_with: tuple[int, ...] = ()  # earlier budgets of the run, in ascending order

    def next_size(self, asked: int) -> int:
        """How many are asked next; rounds end where an earlier budget ended."""
        until = next((most for most in self.begun_with if most > asked), self.budget)
        return min(self.round_size, until - asked, self.budget - asked)


class _LearningCurve:
    """Predictions of random questions made before their answers were seen."""

    def __init__(self) -> None:
        self._points: list[tuple[int, int, float, float]] = []

    def add(self, asked: int, right: NDArray[Any], logs: NDArray[np.float64]) -> None:
        """Note how far answers were predicted after so many, and their log-likelihoods."""
        if len(logs):
            self._points.append((asked, len(logs), float(right.sum()), float(logs.sum())))

    def table(self) -> NDArray[np.void]:
        """One row a round."""
        kinds: list[tuple[str, Any]] = [
            ("n_answers", np.int64),
            ("n_predicted", np.int64),
            ("n_right", np.float64),
            ("log_likelihood", np.float64),
        ]
        return np.array(self._points, dtype=kinds)


def _believed(
    belief: Belief,
    triplets: Objects,
    seen: Objects,
    curve: _LearningCurve,
    phase: Phase,
    **details: Any,
) -> Embedding:
    """The embedding that a belief has come to; `seen` are all objects that were asked about."""
    fit = belief.fit
    asked = np.isin(np.arange(len(fit.positions)), seen)
    low, high = belief.span
    return Embedding(
        positions=fit.positions,
        triplets=triplets,
        n_comparisons=phase.n_comparisons,
        n_rounds=phase.n_rounds,
        history=(phase,),
        evidence=belief.evidence,
        determined=low == high,
        dimension_low=low,
        dimension_high=high,
        covariances=fit.covariances,
        held_out=_held_out(belief),
        error_rate=belief.error_rate,
        details={
            "posterior": fit,
            "covariances": fit.covariances,
            "noise": fit.noise,
            "error_rate": belief.error_rate,
            "expected_tau": belief.expected_tau,
            "exact": belief.is_exact,
            "learning_curve": curve.table(),
            "never_asked": np.flatnonzero(~asked),
            **details,
        },
    )


def _held_out(belief: Belief) -> HeldOutAccuracy | None:
    """How well fits to a part predict the other answers, as if questions had been random."""
    held = belief.held_out
    if held is None:
        return None
    decided = int(np.isfinite(held.right).sum())
    low, high = share_interval(held.accuracy, held.effective_share * decided)
    return HeldOutAccuracy(held.accuracy, low, high, decided, chance=held.forecast.chance)


def _ask_screens(
    belief: Belief,
    source: ScreenSource,
    limits: _Limits,
    known: ArrayLike | None,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    """Ask screens of one task in rounds; the parameters are those of `nearer.adaptive`."""
    told = _known(known, source, len(belief.fit.positions))
    trials, curve, n_rounds = told, _LearningCurve(), 0
    n_told = 0 if told is None else len(told)
    if told is not None:
        belief.learn(told)
    stopped, spent, asked = "the budget is spent", False, 0
    while asked < limits.budget and not spent:
        screens, random = source.draw(belief.fit, limits.next_size(asked), rng)
        if not len(screens):
            stopped = "no further screen that may be asked was found"
            break
        try:
            answers = yield screens
        except BudgetSpent as cut:
            answers, spent = cut.answers, True
            screens, random = screens[: len(answers)], random[: len(answers)]
        if not len(screens):
            break
        new = Trials.from_screens(screens, answers, wanted=source.task.choose)
        if asked and random.any():
            forecast = as_answers(new[random], len(belief.fit.positions)).forecast(belief.fit)
            logs = forecast.along(belief.fit.curve.sharpness, belief.fit.curve.lapse)[0]
            curve.add(asked, np.nan_to_num(forecast.right, nan=0.5), logs)
        trials = new if trials is None else Trials.joined([trials, new])
        asked, n_rounds = asked + len(screens), n_rounds + 1
        belief.learn(trials)
        if not spent and limits.quality < 1 and belief.is_good_enough(limits.quality):
            stopped = f"τ is expected to be {belief.expected_tau:.3f}"
            break
    if trials is None:
        none = np.empty((0, 3), dtype=np.int64)
        return _believed(
            belief, none, none, curve, Phase("screens", 0, 0, stopped), task=str(source.task)
        )
    belief.conclude()
    own = trials[n_told:]
    phase = Phase("screens", asked, n_rounds, f"{source.task}: {stopped}")
    more = {"trials": own, "task": str(source.task)}
    return _believed(belief, own.triplets()[0], trials.questions, curve, phase, **more)


def _known(known: ArrayLike | None, source: ScreenSource, n: int) -> Trials | None:
    """Answers to comparisons that are there already, learned with screens that have a query."""
    if known is None or not len(np.asarray(known)):
        return None
    if source.task.kind != "near":
        raise InvalidInput(
            f"known: comparisons cannot be joined with the task '{source.task}'; leave them out, "
            "or ask for a task with a query, such as '2 of 8'"
        )
    return Trials.from_triplets(known)
