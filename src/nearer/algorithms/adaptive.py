"""`nearer.adaptive`: positions and dimension from few comparisons.

docs/adaptive.md describes the method: random questions first, then in each round the most
informative questions given the posterior (`nearer.fitting.belief`,
`nearer.algorithms.choose_questions`), until Kendall's τ is expected to be `quality`, or a limit is
reached. With more than `TOGETHER` objects a random core is embedded, the others are placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.algorithms.choose_questions import (
    FIRST,
    GROWTH,
    MOST_WRONG,
    Askable,
    Candidates,
    ScreenSource,
    draw_round,
    most_questions,
)
from nearer.algorithms.place import Placed, place_among
from nearer.asking.protocol import Record, Strategy, accepts_uncertain, renumbered, repeatable
from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.likelihood import as_answers
from nearer.fitting.posterior import Posterior, expected_tau
from nearer.fitting.solver import violated
from nearer.questions import Answers, Objects, Said, answered, share_interval
from nearer.trials import Task, Trials

Expected = float | Literal["auto"]

# Up to this many objects are fitted together; with more, the core has half as many. A larger core
# takes more time, a smaller one is less accurate: `python -m benchmarks scale` shows both.
TOGETHER = 1000
# A point of the learning curve: answers so far, predictions, right ones, their log-likelihood.
_Point = tuple[int, int, float, float]


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
        The largest number of questions: comparisons, or screens. None: as many as `quality` needs,
        at most 2·(d + 1)·n·log2 n / C comparisons in d ≤ 7 dimensions, with C the bits that an
        answer carries.
    noise
        Where the estimate of the share of wrong answers begins. ``"auto"``: no first guess.
    n_components
        Dimension of the positions; None chooses it from held-out answers.
    quality
        The run stops when the expected Kendall's τ between predicted and true distances from a head
        reaches this; 1: only when the budget is spent.
    task
        ``"1 of 2"`` are comparisons; ``"2 of 8"`` and the like are screens, rows (query, eight
        shown) answered by rows of booleans; ``"odd-one-out"`` has query −1. See `nearer.Task`.
    askable
        A function from ``(m, 3)`` questions to ``(m,)`` booleans: which may be asked, such as
        `RecordedOracle.knows`. None: all.
    known
        Existing answers to random questions, rows (head, near, far). They are learned and not asked
        again, but are not part of the budget and of the result's triplets.
    round_size
        How many questions are asked at a time. None: as many as there are objects, or 4 % of the
        answers so far; of a budget at most a twentieth; of screens one for every two objects.
    keep_triplets
        False: if objects are placed among a core, the answers about them are not stored.
    begun_with
        Earlier budgets of the run: they determine the size of its rounds, so that it repeats the
        questions that were asked.
    random_state
        Seed or generator.

    Returns
    -------
    strategy
        Its result is an `Embedding`. No question is asked twice. "Don't know" counts as a near
        tie, a graded answer counts for both sides. ``details`` holds the
        `Posterior`, the ``learning_curve`` of predictions of random questions, the
        ``expected_tau``, and the objects that no question was about.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).normal(size=(60, 2)))
    >>> nearer.run(adaptive(60, random_state=0), oracle).dimension
    2
    """
    n = checks.n_objects(n_objects)
    budget = None if budget is None else checks.budget(budget)
    if n_components is not None:
        n_components = checks.n_components(n_components, n)
    checks.probability("quality", quality)
    checks.askable(askable)
    checks.flag("keep_triplets", keep_triplets)
    is_free = isinstance(noise, str) and noise == "auto"
    rate = 0.0 if is_free else min(checks.rate("noise", noise), MOST_WRONG)
    if round_size is not None:
        checks.whole("round_size", round_size, rule="questions a round")
    task, rng = Task.parse(task), checks.generator(random_state)
    known_triplets = np.empty((0, 3), dtype=np.int64)
    if known is not None and checks.as_array(known).size:
        known_triplets = checks.triplets(known, n)[0].astype(np.int64)
    how = _How(n_components, rate, quality, round_size, begun_with, rng)
    if not task.is_comparison:
        budget = int(n * most_questions(n, 0, 0.0)) if budget is None else budget
        return (yield from _ask(n, _Screens(n, task, askable), known_triplets, budget, how))
    if n > TOGETHER and askable is None and n_components is None:
        return (yield from _core_and_others(n, budget, known_triplets, how, keep_triplets))
    return (yield from _ask(n, _Comparisons(n, askable), known_triplets, budget, how))


@dataclass(frozen=True)
class _How:
    """The options of a run, and its source of randomness."""

    n_components: int | None
    noise: float
    quality: float
    round_size: int | None
    begun_with: Sequence[int | None]
    rng: np.random.Generator

    def size(self, source: _Comparisons | _Screens, asked: int, budget: int | None) -> int:
        """The size of the next round; the same as before while earlier budgets last."""
        begun = [most for most in self.begun_with if most is None or most > asked]
        paced = begun[0] if begun else budget
        most = source.most(asked)
        if paced is None:
            return self.round_size or (most if asked else FIRST * most)
        size = self.round_size or max(source.least, min(most, paced // 20))
        return min(size, paced - asked)


class _Comparisons:
    """Comparisons that may be asked, and the answers so far."""

    name, least, note = "adaptive", 20, ""

    def __init__(self, n: int, askable: Askable | None) -> None:
        self._n, self._record, self._candidates = n, Record(), Candidates(n, askable)
        self._n_known = 0

    def start(self, known: Objects, belief: Belief) -> None:
        """Let a belief learn existing answers."""
        self._n_known = len(known)
        self.add(known, np.ones(len(known), dtype=np.bool_), belief)

    def most(self, asked: int) -> int:
        """The size of a round if the budget is large."""
        return max(self._n, int(GROWTH * asked))

    def draw(self, belief: Belief, count: int, rng: np.random.Generator) -> tuple[Objects, Answers]:
        """Questions for a round, and which of them are random."""
        return draw_round(belief, self._candidates, count, rng)

    def read(self, questions: Objects, answers: Said) -> Objects:
        """Answers as fits take them."""
        return answered(questions, answers)

    def add(self, questions: Objects, answers: Said, belief: Belief) -> None:
        """Let a belief learn the answers of a round, and those before."""
        if self._record.n_comparisons:
            belief.predict(answered(questions, answers))
        self._record.add(questions, answers)
        self._candidates.exclude(questions)
        rows, weights = self._record.weighted
        belief.learn(rows, weights=weights)

    def results(self) -> tuple[Objects, Objects, dict[str, Any]]:
        """The triplets, all objects that were asked about, and details."""
        seen, triplets = self._record.weighted[0], self._record.triplets  # "don't know", too
        return triplets[self._n_known :], seen, {} if len(triplets) else {"n_decided": 0}


class _Screens:
    """Screens of one task that may be asked, and the answers so far; otherwise `_Comparisons`."""

    name, least = "screens", 5

    def __init__(self, n: int, task: Task, askable: Askable | None) -> None:
        self._n, self._task, self.note = n, task, f"{task}: "
        self._source, self._parts, self._n_known = ScreenSource(n, task, askable), list[Trials](), 0

    def start(self, known: Objects, belief: Belief) -> None:
        if self._task.kind != "near":
            rule = "leave them out, or ask for a task with a query, such as '2 of 8'"
            raise InvalidInput(f"known: no comparisons go with the task '{self._task}'; {rule}")
        self._n_known, self._parts = len(known), [Trials.from_triplets(known)]
        belief.learn(self._parts[0])

    def most(self, asked: int) -> int:
        return self._n // 2

    def draw(self, belief: Belief, count: int, rng: np.random.Generator) -> tuple[Objects, Answers]:
        return self._source.draw(belief, count, rng)

    def read(self, screens: Objects, answers: Said) -> Trials:
        return Trials.from_screens(screens, answers, wanted=self._task.choose)

    def add(self, screens: Objects, answers: Said, belief: Belief) -> None:
        self._parts = [Trials.joined([*self._parts, self.read(screens, answers)])]
        belief.learn(self._parts[0])

    def results(self) -> tuple[Objects, Objects, dict[str, Any]]:
        details: dict[str, Any] = {"task": str(self._task)}
        for trials in self._parts:
            own = trials[self._n_known :]
            return own.triplets()[0], trials.questions, details | {"trials": own}
        return np.empty((0, 3), dtype=np.int64), np.empty((0, 3), dtype=np.int64), details


def _limit(belief: Belief) -> int:
    """The number of comparisons that is enough for the estimated dimension and error rate."""
    n, d = belief.fit.positions.shape
    wrong = 0.0
    if belief.held_out is not None and not belief.is_exact:
        wrong = float(np.clip(1 - belief.held_out.accuracy, 1e-6, 0.5))
    if wrong > MOST_WRONG:  # hardly better than a coin: more answers would not help
        wrong = 0.0
    return int(n * most_questions(n, d, wrong))


def _ask(
    n: int, source: _Comparisons | _Screens, known: Objects, budget: int | None, how: _How
) -> Strategy[Embedding]:
    """Embed objects that are few enough to be fitted together."""
    belief = Belief(n, how.n_components, how.rng, noise=how.noise, every_fold=False)
    curve = list[_Point]()
    if len(known):
        source.start(known, belief)
    asked, n_rounds, stopped, spent = 0, 0, "the budget is spent", False
    while not spent:
        limit = _limit(belief) if budget is None else budget
        if budget is None and asked >= limit:
            belief.review()  # the dimension may have been too small, and the limit with it
            limit = _limit(belief)
        if asked >= limit:
            stopped = "the budget is spent" if budget is not None else "the limit is reached"
            break
        size = min(how.size(source, asked, budget), limit - asked)
        questions, random = source.draw(belief, size, how.rng)
        if not len(questions):
            stopped = "no further question may be asked"
            break
        try:
            answers = yield questions
        except BudgetSpent as cut:
            answers, spent = cut.answers, True
            questions, random = questions[: len(answers)], random[: len(answers)]
        if not len(questions):
            break
        if asked and len(tested := source.read(questions[random], answers[random])):
            predictions = as_answers(tested, n).predictions(belief.fit)
            logs = belief.fit.curve.log_likelihood(predictions)
            right = float(np.nan_to_num(predictions.right, nan=0.5).sum())
            curve.append((asked, len(logs), right, float(logs.sum())))
        source.add(questions, answers, belief)
        asked, n_rounds = asked + len(questions), n_rounds + 1
        if not spent and how.quality < 1 and belief.is_good_enough(how.quality):
            stopped = f"τ is expected to be {belief.expected_tau:.3f}"
            break
    triplets, seen, details = source.results()
    if len(seen):
        belief.conclude()
    phase = Phase(source.name, asked, n_rounds, source.note + stopped)
    return _believed(belief, triplets, seen, curve, phase, details)


def _core_and_others(
    n: int, budget: int | None, known: Objects, how: _How, keep_triplets: bool
) -> Strategy[Embedding]:
    """Embed a random core, which holds the objects of known answers, then place the others."""
    size, objects = TOGETHER // 2, how.rng.permutation(n)
    objects = objects[np.argsort(~np.isin(objects, known), kind="stable")]  # the core first
    inside = np.argsort(objects)[known]
    inside = inside[(inside < size).all(axis=1)]
    first = how.begun_with[0] if how.begun_with else budget
    half = None if first is None else max(1, first // 2)
    # The core gets half of the budget. Its errors and those of the objects placed among it add up,
    # so each may have half of the errors that the quality allows.
    paced = replace(how, begun_with=(), quality=(1 + how.quality) / 2)
    core = yield from renumbered(_ask(size, _Comparisons(size, None), inside, half, paced), objects)
    if budget is None:
        held_out = None if core.details["exact"] else core.held_out
        wrong = 0.0 if held_out is None else 1 - held_out.accuracy
        budget = core.n_comparisons + int((n - size) * most_questions(n, core.dimension, wrong))
    fit: Posterior = core.details["posterior"]
    asked = np.setdiff1d(np.arange(size), core.details["never_asked"])  # others have no position
    placing = place_among(
        replace(fit, positions=fit.positions[asked], covariances=fit.covariances[asked], bias=None),
        np.arange(size, n),
        ids=asked,
        budget=max(1, budget - core.n_comparisons),
        until_spent=how.quality >= 1,
        keep_triplets=keep_triplets,
        rng=how.rng,
    )
    placed = yield from renumbered(placing, objects)
    return _all_of(core, placed, objects)


def _all_of(core: Embedding, placed: Placed, objects: Objects) -> Embedding:
    """The core and the others as one embedding, in the order in which they came."""
    places = np.argsort(objects)
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
    if not core.details["exact"]:  # errors of the core limit the others
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
        | {"posterior": fit, "expected_tau": tau, "never_asked": np.sort(objects[never])},
    )


def _believed(
    belief: Belief,
    triplets: Objects,
    seen: Objects,
    curve: list[_Point],
    phase: Phase,
    details: dict[str, Any],
) -> Embedding:
    """The embedding of a belief; `seen` are all objects that were asked about."""
    fit, (low, high), held = belief.fit, belief.span, belief.held_out
    n, held_out = len(fit.positions), None
    if held is not None:
        decided = int(np.isfinite(held.right).sum())
        limits = share_interval(held.accuracy, held.effective_share * decided)
        held_out = HeldOutAccuracy(held.accuracy, *limits, decided, chance=held.predictions.chance)
    if details.get("n_decided") == 0:  # no answer was decided, or no question was asked
        low, high = 1, n - 1
    columns: list[tuple[str, Any]] = [("n_answers", np.int64), ("n_predicted", np.int64)]
    columns += [("n_right", np.float64), ("log_likelihood", np.float64)]
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
        held_out=held_out,
        error_rate=belief.error_rate,
        details={
            "posterior": fit,
            "noise": fit.noise,
            "expected_tau": belief.expected_tau,
            "exact": belief.is_exact,
            "learning_curve": np.array(curve, dtype=columns),
            "never_asked": np.setdiff1d(np.arange(n), seen),
            **details,
        },
    )
