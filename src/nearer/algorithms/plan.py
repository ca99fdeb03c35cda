"""How many answers a map needs, and which task gives most for people's time.

Objects are Gaussian, people answer by a psychometric curve whose scale makes a wanted
share of answers wrong, and the questions are those of `nearer.adaptive`. Predictions of random
questions are compared with the truth and with what people say. Studies of several sizes or tasks
are about the same objects, so that their differences are known better than their figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.special import expit, stdtrit

from nearer import checks
from nearer.algorithms.adaptive import TOGETHER, adaptive
from nearer.algorithms.choose_questions import FIRST, GROWTH, expected_questions, most_questions
from nearer.asking.oracles import PsychometricOracle
from nearer.asking.run import run
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.fitting.draws import draw_populations
from nearer.fitting.likelihood import Answers, Noise, as_answers
from nearer.fitting.people import Crowd, Pace
from nearer.fitting.posterior import QUESTIONS, Posterior, fit_posterior
from nearer.fitting.solver import margins
from nearer.metrics import mean_kendall_tau
from nearer.parallel import parallel_map
from nearer.questions import Floats, Objects, answered, random_questions
from nearer.trials import Task, Trials

TASKS_TRIED = ("1 of 2", "odd-one-out", "1 of 4", "2 of 8", "4 of 12", "4 of 16")
_FURTHER = 50  # people whose answers are predicted


def expected_cost(
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
    """Predict what comparisons by more people, or more of them, are worth, from a pilot.

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
    # every tenth, since neighbours in the chain are alike
    drawn = list(draw_populations(posterior, _answers_of(pilot), 10 * n_repeats, rng))[9::10]
    jobs = [(pilot, *each, people, sizes, rng.spawn(1)[0]) for each in drawn]
    runs = parallel_map(_like_pilot, jobs)
    limits = np.quantile(runs, [0.1, 0.5, 0.9], axis=0, method="weibull")  # one more run is inside
    return PilotPlan(people, sizes, *np.moveaxis(limits, 0, -1))


def _answers_of(pilot: Embedding) -> Answers | Crowd:
    """The answers of a pilot; those of a crowd if something can be said of others."""
    people: Any = pilot.people
    known: Any = pilot.details
    several = people is not None and known.get("between_people") is not None
    rows, weights, who = map(known.get, ("trials", "weights", "answered_by"))
    if rows is None:  # comparisons; by the t curve they have no lapses, unless they are trials
        tail = known["posterior"].noise.tail
        rows = Trials.from_triplets(pilot.triplets) if tail else pilot.triplets
    elif several:  # a trial that is decided has triplets
        whole, first = np.unique(rows.triplets()[1], return_index=True)
        rows, weights, who = rows[whole], weights[whole], who[first]
    if several:
        rows, weights, who = (each[who >= 0] for each in (rows, weights, who))
    answers: Answers = as_answers(rows, len(pilot.positions), weights)
    if not several:
        return answers
    axes = np.ones((len(people), 1)) if pilot.weights is None else np.sqrt(pilot.weights)
    factors = people["sensitivity"].to_numpy()[:, None] * axes
    return Crowd(rows, who, answers, weights, None, factors, known["posterior"].noise)


def _like_pilot(
    pilot: Embedding, X: Floats, noise: Noise, people: Objects, sizes: Objects, rng: Generator
) -> Floats:
    """Accuracy and τ of one simulated study, for each number of people and of answers.

    Each person has a map around the common one, and the sensitivity and weights of one of the
    pilot's people, who are drawn with replacement first, since they are themselves a sample.
    """
    (n, d), known = X.shape, replace(pilot.details["posterior"].noise, bias=False)
    shares = np.empty((2, len(people), len(sizes)))
    for i, count in enumerate(people.tolist()):
        maps = np.tile(X, (count + _FURTHER, 1, 1))
        if noise.apart and pilot.people is not None:
            maps += noise.apart * noise.prior * rng.normal(size=maps.shape)
            who = rng.integers(len(pilot.people), size=len(pilot.people))
            who = rng.choice(who, len(maps))
            sensitivity, error = pilot.people[["sensitivity", "error"]].to_numpy()[who].T
            sensitivity = np.maximum(sensitivity + error * rng.normal(size=len(maps)), 0.0)
            axes = 1.0 if pilot.weights is None else np.sqrt(pilot.weights[who, None])
            maps *= sensitivity[:, None, None] * axes
        crowd = Posterior(maps.reshape(-1, d), np.zeros((maps[..., 0].size, d, d)), noise)
        who = np.append(np.arange(sizes[-1]) % count, count + np.arange(QUESTIONS) % _FURTHER)
        questions = random_questions(n, len(who), rng)
        clear = expit(crowd.margins(who[:, None] * n + questions)[0])
        near = rng.random(len(who)) < noise.lapse + (1 - 2 * noise.lapse) * clear
        rows, test = np.split(answered(questions, near), [sizes[-1]])
        for j, size in enumerate(sizes.tolist()):
            fit = fit_posterior(as_answers(rows[:size], n), d, known, rng=rng)
            shares[:, i, j] = (fit.margins(test)[0] > 0).mean(), mean_kendall_tau(X, fit.positions)
    return shares


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
    embedding = run(strategy, people)
    predicted, p = embedding.predict(test), people.probability(test)
    return (
        float(np.mean(predicted == (truth > 0))),
        float(np.mean(np.where(predicted, p, 1 - p))),
        float(mean_kendall_tau(X, embedding.positions)),
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
