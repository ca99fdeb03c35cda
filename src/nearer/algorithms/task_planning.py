"""Which task is best for so many hours of people's time, from simulation.

Objects are drawn from a Gaussian, people answer by a psychometric curve, as in
`nearer.algorithms.planning`, and take as long for a screen as people took who were recorded
(`nearer.Pace`). Each task gets as many screens as fit into the hours, chosen by
`nearer.adaptive`. All tasks are tried on the same simulated objects, so their differences are
known better than their figures; how sure the best is comes from these differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.algorithms.adaptive import adaptive
from nearer.algorithms.planning import scale_of
from nearer.asking.answers import put
from nearer.asking.oracles import PsychometricOracle
from nearer.distances import Distances
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.fitting.people import Pace
from nearer.metrics import mean_kendall_tau
from nearer.parallel import parallel_map
from nearer.questions import random_questions
from nearer.trials import Task

__all__ = ["TASKS_TRIED", "TaskPlan", "plan_tasks"]

TASKS_TRIED = ("1 of 2", "odd-one-out", "1 of 4", "2 of 8", "4 of 12", "4 of 16")
_TEST = 4000  # random questions that measure accuracy, to .8 % (a standard error)
_SURE = 2.0  # standard errors by which a task must be better to be called so: 5 %


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
    accuracy: NDArray[np.float64]
    tau: NDArray[np.float64]

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
    n = checks.n_objects(n_objects, least=4)
    checks.n_components(n_components, n)
    checks.rate("noise", noise)
    checks.whole("n_repeats", n_repeats)
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


def _try(
    X: NDArray[np.float64], noise: float, task: Task, n_screens: int, seed: int
) -> tuple[float, float]:
    """Accuracy and τ of one simulated study."""
    rng = np.random.default_rng(seed)
    test = random_questions(len(X), _TEST, rng)
    head, a, b = test.T
    distances = Distances(X)
    margins = distances.between(head, b) - distances.between(head, a)
    people = PsychometricOracle(
        X, scale=scale_of(margins, noise), noise="fresh", choose=task.choose, random_state=rng
    )
    d = X.shape[1]
    strategy = adaptive(
        len(X), budget=n_screens, n_components=d, quality=1, task=task, random_state=rng
    )
    found: Embedding
    try:
        questions = next(strategy)
        while True:
            questions = strategy.send(put(questions, people))
    except StopIteration as done:
        found = done.value
    said = found.predict(test)
    return float(np.mean(said == (margins > 0))), float(mean_kendall_tau(X, found.positions))
