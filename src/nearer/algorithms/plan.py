"""How many answers a map needs, and which task gives most for people's time.

*Forecast.* What `nearer.embed` is expected to ask, from the formula of its limit and measured
figures (`nearer.algorithms.choose_questions`).

*Simulation.* Objects are drawn from a Gaussian in the wanted dimension, people answer by a
psychometric curve whose scale makes the wanted share of answers to random questions wrong, and the
questions are those that `nearer.adaptive` chooses. The fit is then asked random questions that it
has not seen, and its predictions are compared with the truth and with what people say. Studies of
several sizes, and of several tasks, are about the same objects, so that their differences are known
better than their figures. Tasks are compared in the same time: a screen takes as long as people
took who were recorded (`nearer.Pace`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, stdtrit

from nearer import checks
from nearer.algorithms.adaptive import TOGETHER, adaptive
from nearer.algorithms.choose_questions import FIRST, GROWTH, expected_questions, most_questions
from nearer.asking.oracles import PsychometricOracle
from nearer.asking.run import run
from nearer.errors import InvalidInput
from nearer.fitting.people import Pace
from nearer.fitting.posterior import QUESTIONS
from nearer.fitting.solver import margins
from nearer.metrics import mean_kendall_tau
from nearer.parallel import parallel_map
from nearer.questions import random_questions
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
        """The size that reaches this accuracy, between those tried; None where none does."""
        best = np.maximum.accumulate(self.accuracy)
        if best[-1] < accuracy:
            return None
        return int(np.exp(np.interp(accuracy, best, np.log(self.n_answers))))


def plan_study(
    n_objects: int,
    n_components: int,
    noise: float,
    *,
    most: int | None = None,
    n_repeats: int = 3,
    random_state: int | np.random.Generator | None = None,
) -> StudyPlan:
    """Simulate studies, each of twice as many answers as the one before.

    Parameters
    ----------
    n_objects, n_components
        What is studied: how many objects, and in how many dimensions they differ.
    noise
        Share of people's answers to random questions that are wrong, below 0.5.
    most
        The largest size; None: where `nearer.embed` ends.
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
    if most is None:
        most = int(n * most_questions(n, n_components, noise))
    most = checks.whole("most", min(most, n * (n - 1) * (n - 2) // 2), rule="answers")
    # halves, down to an answer an object
    sizes = most // 2 ** np.arange(max(1, (most // n).bit_length()))[::-1]
    pair, rng = Task.parse("1 of 2"), checks.generator(random_state)
    runs = _simulations(n, n_components, noise, [(pair, m) for m in sizes.tolist()], n_repeats, rng)
    accuracy, agreement, tau, ceiling = np.median(runs, axis=0).T
    return StudyPlan(sizes, accuracy, agreement, tau, float(ceiling[-1]))


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
        """The other tasks that are not worse than the best at a level of 95 %."""
        gaps = self.accuracy[:, [self.best]] - self.accuracy
        repeats = len(gaps)
        error = gaps.std(axis=0, ddof=1) / np.sqrt(repeats) if repeats > 1 else np.inf
        near = gaps.mean(axis=0) <= stdtrit(max(1, repeats - 1), 0.975) * error
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
    tried = list(zip(wanted, screens, strict=True))
    runs = _simulations(n, n_components, noise, tried, n_repeats, rng)
    return TaskPlan(tuple(map(str, wanted)), np.array(screens), runs[:, :, 0], runs[:, :, 2])


def _simulations(
    n: int, d: int, noise: float, studies: list[tuple[Task, int]], repeats: int, rng: Generator
) -> Floats:
    """What `_simulate` returns of each repeat and study; studies of a repeat have its objects."""
    pieces: list[tuple[Any, ...]] = []
    for _ in range(repeats):
        X, seed = rng.normal(size=(n, d)), int(rng.integers(1 << 32))
        pieces += [(X, noise, task, size, seed) for task, size in studies]
    return np.array(parallel_map(_simulate, pieces)).reshape(repeats, len(studies), -1)


def _simulate(X: Floats, noise: float, task: Task, size: int, seed: int) -> tuple[float, ...]:
    """Accuracy, agreement, τ and ceiling of a study with so many questions."""
    rng, (n, d) = np.random.default_rng(seed), X.shape
    test = random_questions(n, QUESTIONS, rng)
    truth = margins(X, test)
    people = PsychometricOracle(
        X, scale=scale_of(truth, noise), noise="fresh", choose=task.choose, random_state=rng
    )
    strategy = adaptive(n, budget=size, n_components=d, quality=1, task=task, random_state=rng)
    found = run(strategy, people)
    predicted, p = found.predict(test), people.probability(test)
    return (
        float(np.mean(predicted == (truth > 0))),
        float(np.mean(np.where(predicted, p, 1 - p))),
        float(mean_kendall_tau(X, found.positions)),
        float(np.mean(np.maximum(p, 1 - p))),
    )


def scale_of(sizes: Floats, noise: float) -> float:
    """The scale of the psychometric curve at which this share of answers is wrong."""
    size = np.abs(sizes)

    def excess(log_scale: float) -> float:
        return float(expit(-size / np.exp(log_scale)).mean()) - noise

    typical, room = np.log(np.median(size)), -np.log(np.finfo(np.float64).eps)
    if excess(typical - room) >= 0:  # all but no answer is wrong
        return float(np.exp(typical - room))
    return float(np.exp(brentq(excess, typical - room, typical + room)))


def _check(n_objects: int, n_components: int, noise: float, n_repeats: int) -> int:
    n = checks.n_objects(n_objects, least=4)
    checks.n_components(n_components, n)
    checks.rate("noise", noise)
    checks.whole("n_repeats", n_repeats)
    return n
