"""How many answers a map needs, and which task gives most for people's time.

*Forecast.* What `nearer.embed` is expected to ask, from the formula of its limit and measured
figures (`nearer.algorithms.choose_questions`).

*Simulation.* Objects are drawn from a Gaussian in the wanted dimension, people answer by a
psychometric curve whose scale makes the wanted share of answers to random questions wrong, and the
questions are those that `nearer.adaptive` chooses. The fit is then asked random questions that it
has not seen, and its predictions are compared with the truth and with what people say. Tasks are
compared in the same time: a screen takes as long as people took who were recorded (`nearer.Pace`).
All tasks are tried on the same objects, so that their differences are known better than their
figures; how sure the best is comes from these differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from nearer import checks
from nearer.algorithms.adaptive import TOGETHER, adaptive
from nearer.algorithms.choose_questions import (
    FIRST,
    GROWTH,
    Candidates,
    draw_round,
    expected_questions,
    most_questions,
)
from nearer.asking.oracles import PsychometricOracle
from nearer.asking.protocol import Record, as_answers
from nearer.distances import Distances
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.people import Pace
from nearer.fitting.posterior import QUESTIONS
from nearer.metrics import mean_kendall_tau
from nearer.parallel import parallel_map
from nearer.questions import Questions, random_questions
from nearer.trials import Task

__all__ = [
    "TASKS_TRIED",
    "Forecast",
    "StudyPlan",
    "TaskPlan",
    "forecast",
    "plan_study",
    "plan_tasks",
    "scale_of",
]

TASKS_TRIED = ("1 of 2", "odd-one-out", "1 of 4", "2 of 8", "4 of 12", "4 of 16")
_POINTS = 10  # sizes of study: time against a smooth curve
_SURE = 2.0  # standard errors by which a task must be better to be called so: 5 %

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """What `nearer.embed` is expected to ask: about so many comparisons in so many rounds."""

    n_comparisons: int
    n_rounds: int


def forecast(
    n_objects: int,
    n_components: int,
    *,
    noise: float = 0.0,
    quality: float = 0.99,
    budget: int | None = None,
) -> Forecast:
    """How many comparisons and rounds `nearer.embed` is expected to need.

    Parameters
    ----------
    n_objects, n_components
        How many objects there are, and in how many dimensions they differ.
    noise
        Share of answers that are wrong.
    quality, budget
        As for `nearer.embed`.

    Examples
    --------
    >>> forecast(60, 2)
    Forecast(n_comparisons=1436, n_rounds=19)
    """
    n, d = n_objects, n_components
    if n > TOGETHER:  # as good as the core, see `nearer.algorithms.adaptive`
        quality = (1 + quality) / 2
    each = expected_questions(n, d, noise, quality)
    if budget is not None and budget <= each * n:
        return Forecast(budget, min(20, budget))
    rounds = 1 - FIRST + _rounds(each, 1.0)
    if n > TOGETHER:  # the last objects to be placed take twice the limit
        rounds += _rounds(2 * most_questions(n, d, noise), d + 1)
    return Forecast(int(np.ceil(each * n)), int(np.ceil(rounds)))


def _rounds(each: float, least: float) -> float:
    """Rounds of questions about an object: `least` a round, later a share of those so far."""
    steady = min(each, least / GROWTH)
    return steady / least + float(np.log(each / steady) / np.log1p(GROWTH))


@dataclass(frozen=True)
class StudyPlan:
    """Accuracy that a study of a given size reaches, one entry a size.

    Attributes
    ----------
    n_answers
        Sizes.
    accuracy
        Share of random questions whose true answer is predicted, median over the repeats.
    agreement
        Share of people's answers to random questions that is predicted.
    tau
        Mean Kendall's τ of predicted and true distances from a head.
    ceiling
        The agreement that perfect knowledge would reach.
    """

    n_answers: NDArray[np.int64]
    accuracy: Floats
    agreement: Floats
    tau: Floats
    ceiling: float

    def needed(self, accuracy: float) -> int | None:
        """The smallest size tried that reaches this accuracy; None where none does."""
        enough = np.flatnonzero(self.accuracy >= accuracy)
        return int(self.n_answers[enough[0]]) if len(enough) else None


def plan_study(
    n_objects: int,
    n_components: int,
    noise: float,
    *,
    most: int | None = None,
    n_repeats: int = 3,
    random_state: int | np.random.Generator | None = None,
) -> StudyPlan:
    """Simulate studies of growing size.

    Parameters
    ----------
    n_objects, n_components
        What is studied: how many objects, and in how many dimensions they differ.
    noise
        Share of people's answers to random questions that are wrong, below 0.5.
    most
        The largest size; None: sixty answers for every coordinate.
    n_repeats
        How many studies are simulated.
    random_state
        Seed or generator.

    Examples
    --------
    >>> plan = plan_study(20, 2, 0.1, most=600, n_repeats=1, random_state=0)
    >>> bool(plan.accuracy[-1] > plan.accuracy[0]), round(plan.ceiling, 1)
    (True, 0.9)
    """
    n = _check(n_objects, n_components, noise, n_repeats)
    every = n * (n - 1) * (n - 2) // 2
    most = min(60 * n * n_components if most is None else most, every)
    checks.whole("most", most, least=_POINTS, rule="answers of the largest study")
    sizes = np.unique(np.geomspace(max(1, most // 32), most, _POINTS).astype(np.int64))
    rng = checks.generator(random_state)
    studies = [(n, n_components, noise, sizes, one) for one in rng.spawn(n_repeats)]
    runs = parallel_map(_study, studies)
    accuracy, agreement, tau = np.median([run[:3] for run in runs], axis=0)
    return StudyPlan(sizes, accuracy, agreement, tau, float(np.median([run[3][0] for run in runs])))


def _study(
    n: int, d: int, noise: float, sizes: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Rows: accuracy, agreement, tau and (repeated) the ceiling, at each size."""
    X = rng.normal(size=(n, d))
    people, test, truth = _simulate(X, noise, 1, rng)
    p = people.probability(test)
    belief, candidates, record = Belief(n, d, rng), Candidates(n), Record()
    rows = []
    for size in sizes:
        while record.n_comparisons < size:
            count = min(max(20, 3 * n), int(size) - record.n_comparisons)
            questions, _ = draw_round(belief, candidates, count, rng)
            record.add(questions, people(questions))
            candidates.exclude(questions)
            belief.learn(record.triplets)
        predicted = belief.fit.margins(test)[0] > 0
        agreement = np.mean(np.where(predicted, p, 1 - p))
        tau = mean_kendall_tau(X, belief.fit.positions)
        rows.append((np.mean(predicted == truth), agreement, tau, np.mean(np.maximum(p, 1 - p))))
    return np.array(rows).T


@dataclass(frozen=True)
class TaskPlan:
    """What each task reaches in the same time.

    Attributes
    ----------
    tasks, n_screens
        What was tried, and how many screens of it fit into the time.
    accuracy, tau
        ``(repeats, tasks)``: share of random questions whose true answer is predicted; mean
        Kendall's τ of predicted and true distances from a head.
    """

    tasks: tuple[str, ...]
    n_screens: NDArray[np.int64]
    accuracy: Floats
    tau: Floats

    @property
    def best(self) -> int:
        """Which task predicted most on average."""
        return int(self.accuracy.mean(axis=0).argmax())

    @property
    def level(self) -> tuple[str, ...]:
        """The other tasks that cannot be told apart from the best: within two standard errors."""
        gaps = self.accuracy[:, [self.best]] - self.accuracy
        repeats = len(gaps)
        error = gaps.std(axis=0, ddof=1) / np.sqrt(repeats) if repeats > 1 else np.inf
        near = gaps.mean(axis=0) <= _SURE * error
        return tuple(t for i, t in enumerate(self.tasks) if near[i] and i != self.best)


def plan_tasks(
    n_objects: int,
    n_components: int,
    noise: float,
    hours: float,
    *,
    tasks: Sequence[str] = TASKS_TRIED,
    pace: Pace | None = None,
    n_repeats: int = 3,
    random_state: int | np.random.Generator | None = None,
) -> TaskPlan:
    """Simulate studies of each task that take the same time.

    Parameters
    ----------
    n_objects, n_components, noise, n_repeats, random_state
        As in `plan_study`.
    hours
        People's time, all of them together.
    tasks
        What to try; those that show more objects than there are, are left out.
    pace
        How long screens take; None: as recorded for dishes of food.

    Examples
    --------
    >>> plan = plan_tasks(15, 2, 0.15, 0.2, tasks=["1 of 2", "2 of 8"], n_repeats=1, random_state=0)
    >>> plan.n_screens.tolist()
    [187, 100]
    """
    n = _check(n_objects, n_components, noise, n_repeats)
    if not hours > 0:
        raise InvalidInput(f"hours={hours}: must be above 0")
    pace, rng = pace or Pace(), checks.generator(random_state)
    wanted = [Task.parse(task) for task in tasks]
    wanted = [task for task in wanted if task.shown + (task.kind == "near") <= n]
    if not wanted:
        raise InvalidInput(f"tasks={list(tasks)}: all show more than the {n} objects there are")
    screens = [max(1, int(3600 * hours / pace.seconds(task))) for task in wanted]
    studies = []
    for _ in range(n_repeats):
        X, seed = rng.normal(size=(n, n_components)), int(rng.integers(1 << 32))
        studies += [(X, noise, task, m, seed) for task, m in zip(wanted, screens, strict=True)]
    runs = np.array(parallel_map(_try, studies)).reshape(n_repeats, len(wanted), 2)
    accuracy, tau = runs.transpose(2, 0, 1)
    return TaskPlan(tuple(map(str, wanted)), np.array(screens), accuracy, tau)


def _try(X: Floats, noise: float, task: Task, n_screens: int, seed: int) -> tuple[float, float]:
    """Accuracy and τ of one simulated study."""
    rng = np.random.default_rng(seed)
    people, test, truth = _simulate(X, noise, task.choose, rng)
    n, d = X.shape
    strategy = adaptive(n, budget=n_screens, n_components=d, quality=1, task=task, random_state=rng)
    found: Embedding
    try:
        questions = next(strategy)
        while True:
            questions = strategy.send(as_answers(people(questions), questions))
    except StopIteration as done:
        found = done.value
    accuracy = np.mean(found.predict(test) == truth)
    return float(accuracy), float(mean_kendall_tau(X, found.positions))


def _simulate(
    X: Floats, noise: float, choose: int, rng: np.random.Generator
) -> tuple[PsychometricOracle, Questions, NDArray[np.bool_]]:
    """People who know these positions, random questions, and their true answers."""
    test = random_questions(len(X), QUESTIONS, rng)
    head, a, b = test.T
    distances = Distances(X)
    margins = distances.between(head, b) - distances.between(head, a)
    scale = scale_of(margins, noise)
    people = PsychometricOracle(X, scale=scale, noise="fresh", choose=choose, random_state=rng)
    return people, test, margins > 0


def scale_of(margins: Floats, noise: float) -> float:
    """The scale of the psychometric curve at which this share of answers is wrong."""
    size = np.abs(margins)
    typical = float(np.median(size))
    if noise < 1e-3:
        return 1e-6 * typical

    def excess(log_scale: float) -> float:
        return float(expit(-size / np.exp(log_scale)).mean()) - noise

    low, high = np.log(typical) - 14, np.log(typical) + 14
    return float(np.exp(brentq(excess, low, high)))


def _check(n_objects: int, n_components: int, noise: float, n_repeats: int) -> int:
    n = checks.n_objects(n_objects, least=4)
    checks.n_components(n_components, n)
    checks.rate("noise", noise)
    checks.whole("n_repeats", n_repeats)
    return n
