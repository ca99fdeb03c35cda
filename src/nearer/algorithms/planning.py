"""How many answers a study needs, from simulation.

Objects are drawn from a Gaussian in the wanted dimension, people answer by a psychometric curve
whose scale makes the wanted share of answers to random questions wrong, and the questions are those
`nearer.adaptive` chooses. At several sizes the fit is asked random questions it has not
seen, and its predictions are compared with the truth and with what people say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from nearer import checks
from nearer.algorithms.candidates import Candidates
from nearer.algorithms.choose_questions import draw_round
from nearer.asking.answers import Record
from nearer.asking.oracles import PsychometricOracle
from nearer.distances import Distances
from nearer.fitting.belief import Belief
from nearer.metrics import mean_kendall_tau
from nearer.parallel import parallel_map
from nearer.questions import random_questions

__all__ = ["StudyPlan", "plan_study", "scale_of"]

_TEST = 4000  # random questions that measure accuracy, to .8 % (a standard error)
_POINTS = 10  # sizes of study: time against a smooth curve


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
    accuracy: NDArray[np.float64]
    agreement: NDArray[np.float64]
    tau: NDArray[np.float64]
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
    n_objects = checks.n_objects(n_objects, least=4)
    checks.n_components(n_components, n_objects)
    checks.rate("noise", noise)
    checks.whole("n_repeats", n_repeats)
    every = n_objects * (n_objects - 1) * (n_objects - 2) // 2
    most = min(60 * n_objects * n_components if most is None else most, every)
    checks.whole("most", most, least=_POINTS, rule="answers of the largest study")
    sizes = np.unique(np.geomspace(max(1, most // 32), most, _POINTS).astype(np.int64))
    rng = checks.generator(random_state)
    runs = parallel_map(
        _simulate,
        [(n_objects, n_components, noise, sizes, one) for one in rng.spawn(n_repeats)],
    )
    accuracy, agreement, tau = np.median([run[:3] for run in runs], axis=0)
    return StudyPlan(sizes, accuracy, agreement, tau, float(np.median([run[3][0] for run in runs])))


def _simulate(
    n: int, d: int, noise: float, sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows: accuracy, agreement, tau and (repeated) the ceiling, at each size."""
    X = rng.normal(size=(n, d))
    test = random_questions(n, _TEST, rng)
    head, a, b = test.T
    distances = Distances(X)
    margins = distances.between(head, b) - distances.between(head, a)
    people = PsychometricOracle(X, scale=scale_of(margins, noise), random_state=rng)
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
        said = belief.fit.margins(test)[0] > 0
        rows.append(
            (
                np.mean(said == (margins > 0)),
                np.mean(np.where(said, p, 1 - p)),
                mean_kendall_tau(X, belief.fit.positions),
                np.mean(np.maximum(p, 1 - p)),
            )
        )
    return np.array(rows).T


def scale_of(margins: NDArray[np.float64], noise: float) -> float:
    """The scale of the psychometric curve at which this share of answers is wrong."""
    size = np.abs(margins)
    typical = float(np.median(size))
    if noise < 1e-3:
        return 1e-6 * typical

    def excess(log_scale: float) -> float:
        return float(expit(-size / np.exp(log_scale)).mean()) - noise

    low, high = np.log(typical) - 14, np.log(typical) + 14
    return float(np.exp(brentq(excess, low, high)))
