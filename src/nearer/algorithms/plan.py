"""How many answers a map needs, and which task gives most for people's time.

Objects are Gaussian, people answer by a psychometric curve whose scale makes a wanted
share of answers wrong, and the questions are those of `nearer.adaptive`. Predictions of random
questions are compared with the truth and with what people say. Studies of several sizes or tasks
are about the same objects, so that their differences are known better than their figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri, stdtrit

from nearer import checks
from nearer.algorithms.adaptive import TOGETHER, adaptive
from nearer.algorithms.choose_questions import FIRST, GROWTH, expected_questions, most_questions
from nearer.asking.oracles import PsychometricOracle
from nearer.asking.run import run
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.fitting.likelihood import as_answers
from nearer.fitting.people import Pace, effective_people
from nearer.fitting.posterior import QUESTIONS, fit_posterior
from nearer.fitting.solver import margins
from nearer.metrics import mean_kendall_tau
from nearer.parallel import parallel_map
from nearer.questions import Floats, Objects, Questions, answered, random_questions
from nearer.trials import Task

TASKS_TRIED = ("1 of 2", "odd-one-out", "1 of 4", "2 of 8", "4 of 12", "4 of 16")
_FURTHER = 50  # people whose answers are predicted


def forecast(
    n_objects: int,
    n_components: int,
    *,
    noise: float = 0.0,
    quality: float = 0.99,
    budget: int | None = None,
) -> tuple[int, int]:
    """How many comparisons and rounds `nearer.embed` is expected to need."""
    n, d = checks.n_objects(n_objects), n_components
    if n > TOGETHER:  # as good as the core, see `nearer.algorithms.adaptive`
        quality = (1 + quality) / 2
    each = expected_questions(n, d, noise, quality)
    if budget is not None and budget <= each * n:
        return budget, min(20, budget)
    rounds = 1 - FIRST + _rounds(each, 1.0)
    if n > TOGETHER:  # the last objects to be placed take twice the limit
        rounds += _rounds(2 * most_questions(n, d, noise), d + 1)
    return int(np.ceil(each * n)), int(np.ceil(rounds))


def _rounds(each: float, least: float) -> float:
    """Rounds of questions about an object: `least` a round, later a share of those so far."""
    steady = min(each, least / GROWTH)
    return steady / least + float(np.log(each / steady) / np.log1p(GROWTH))


@dataclass(frozen=True)
class StudyPlan:
    """Medians over simulated studies, one entry a size.

    `accuracy` and `agreement` are shares of the truth and of people's answers that are predicted,
    `tau` that of distances from a head, `ceiling` the agreement that perfect knowledge reaches.
    """

    n_answers: Objects
    accuracy: Floats
    agreement: Floats
    tau: Floats
    ceiling: float


def needed(target: float, sizes: Objects, values: Floats) -> int | None:
    """The size at which values reach a target, between those tried; None where none does."""
    best = np.maximum.accumulate(values)
    if best[-1] < target:
        return None
    return round(float(np.exp(np.interp(target, best, np.log(sizes)))))


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

    `noise` is the share of people's answers to random questions that are wrong, `most` the largest
    size; None: where `nearer.embed` ends.
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
class PilotPlan:
    """What further studies like a pilot reach, against numbers of people and of all their answers.

    Arrays ``(people, answers, 3)`` of the limits of 80 % intervals, with the median between them,
    for answers of further people that are predicted and for distances in the common map.
    """

    n_people: Objects
    n_answers: Objects
    accuracy: Floats
    tau: Floats


def plan_pilot(
    pilot: Embedding,
    *,
    n_people: Sequence[int] | None = None,
    most: int | None = None,
    n_repeats: int = 40,
    random_state: int | np.random.Generator | None = None,
) -> PilotPlan:
    """Forecast what comparisons by more people, or more of them, are worth, from a pilot.

    Each repeat takes one of the maps that the pilot leaves possible and people like those of the
    pilot, whose answers to random questions are fitted. None: as many people as in the pilot, twice
    and four times that, and up to eight times its answers.
    """
    posterior = pilot.details.get("posterior")
    if posterior is None or not posterior.noise.prior or pilot.held_out is None:
        rule = "too few answers, or not by nearer.fit"
        raise InvalidInput(f"this pilot has no noise to plan with: {rule}")
    asked = 1 if pilot.people is None else len(pilot.people)
    people = np.array([asked, 2 * asked, 4 * asked] if n_people is None else n_people)
    most = checks.whole("most", 8 * pilot.n_comparisons if most is None else most, least=100)
    sizes = np.unique(np.geomspace(most / 32, most, 5).astype(np.int64))
    rng = checks.generator(random_state)
    maps = pilot.draws(n_repeats, rng)
    given = [
        (pilot, X, people, sizes, one) for X, one in zip(maps, rng.spawn(n_repeats), strict=True)
    ]
    runs = np.array(parallel_map(_like_pilot, given))
    limits = np.quantile(runs, [0.1, 0.5, 0.9], axis=0, method="weibull")  # one more run is inside
    limits = np.moveaxis(limits, 0, -1)
    return PilotPlan(people, sizes, limits[0], limits[1])


def _like_pilot(
    pilot: Embedding, X: Floats, people: Objects, sizes: Objects, rng: np.random.Generator
) -> Floats:
    """Accuracy and τ of one simulated study, for each number of people and of answers."""
    (n, d), posterior = X.shape, pilot.details["posterior"]
    noise = replace(posterior.noise, bias=False)
    found = np.empty((2, len(people), len(sizes)))
    for i, count in enumerate(people.tolist()):
        answer = _people_like(pilot, X, count + _FURTHER, rng)
        questions = random_questions(n, int(sizes[-1]), rng)
        rows = answer(np.arange(len(questions)) % count, questions)
        test = answer(count + np.arange(QUESTIONS) % _FURTHER, random_questions(n, QUESTIONS, rng))
        for j, size in enumerate(sizes.tolist()):
            some = as_answers(rows[:size], n)
            fit = fit_posterior(some, d, noise, start=pilot.positions)
            right = fit.margins(test)[0] > 0
            found[:, i, j] = right.mean(), mean_kendall_tau(X, fit.positions)
    return found


def _people_like(
    pilot: Embedding, X: Floats, count: int, rng: np.random.Generator
) -> Callable[[Objects, Questions], Objects]:
    """How people answer who are like those of a pilot, each from an own copy of the map.

    Axes, sensitivity and lapses are those of a person drawn by lot; objects lie elsewhere by as
    much as explains how the map moves with the people. The fit took that for noise, so the curves
    are as sharp as lets people agree with the common map as often as it says.
    """
    posterior = pilot.details["posterior"]
    maps, sensitivity = np.tile(X, (count, 1, 1)), np.ones(count)
    lapse = np.full(count, posterior.curve.lapse)
    if pilot.people is not None and np.isfinite(pilot.people["sensitivity"]).all():
        who = rng.integers(len(pilot.people), size=count)
        sensitivity, lapse = pilot.people[["sensitivity", "lapse"]].to_numpy()[who].T
        if pilot.weights is not None:
            maps *= pilot.weights[who, None] ** 0.5
        between = pilot.details.get("between_people")
        if between is not None:  # their sum is the variance of a mean of so many people
            alike = effective_people(pilot.people["n_trials"])
            variance = np.square(between).sum(axis=0).mean() * (alike - 3)
            freedom = alike - 1
            variance *= freedom / rng.chisquare(freedom)
            maps += np.sqrt(variance) * rng.normal(size=maps.shape)

    def near(who: Objects, questions: Questions, sharpness: float) -> Floats:
        head, a, b = (maps[who, column] for column in questions.T)
        margins = np.linalg.norm(head - b, axis=1) - np.linalg.norm(head - a, axis=1)
        right = expit(sharpness * sensitivity[who] * margins)
        return np.asarray(lapse[who] + (1 - 2 * lapse[who]) * right)

    questions, asked = random_questions(len(X), QUESTIONS, rng), np.arange(QUESTIONS) % count
    # A draw was shrunk onto the positions; by itself it is wider than they are, by its variance.
    wide = np.square(posterior.positions).sum() + np.einsum("nii->", posterior.covariances)
    Y = X * np.sqrt(wide / np.square(X).sum())
    common = replace(posterior, positions=Y, covariances=np.zeros_like(posterior.covariances))
    p = common.probability(questions)
    assert pilot.held_out is not None
    held = pilot.held_out.new_people or pilot.held_out  # the agreement is as sure as this is
    low, high = np.clip([held.low, held.high], 1e-3, 1 - 1e-3)
    doubt = (logit(high) - logit(low)) / (2 * ndtri(0.975)) * rng.normal()
    agreement = expit(logit(np.maximum(p, 1 - p).mean()) + doubt)

    def excess(log_sharpness: float) -> float:
        said = near(asked, questions, float(np.exp(log_sharpness)))
        return float(np.where(p > 0.5, said, 1 - said).mean() - agreement)

    low, high = (np.log(posterior.curve.sharpness / X.std()) + by for by in (-7.0, 7.0))
    best = brentq(excess, low, high) if excess(low) < 0 < excess(high) else high
    sharpness = float(np.exp(best))

    def answer(who: Objects, questions: Questions) -> Objects:
        return answered(questions, rng.random(len(who)) < near(who, questions, sharpness))

    return answer


@dataclass(frozen=True)
class TaskPlan:
    """What each task reaches in the same time, in arrays ``(repeats, tasks)``."""

    tasks: tuple[str, ...]
    n_screens: Objects
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
    """Simulate studies of each task that take the same time, in hours of all people together."""
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
