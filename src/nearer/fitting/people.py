r"""People: how reliable each is, and how long a screen takes.

*Reliability.* Each answer of a person was predicted by a fit that had not seen it
(`nearer.fitting.heldout`). With t the predicted margin, positive where the prediction agrees with
the person, an answer of a person with *reliability* r has probability ε + (1 − 2ε)/(1 + exp(−r β
t)), β and ε the sharpness and the lapse rate of all people. So r is 1 for the average person, 0 for
one who guesses, negative for one who contradicts. A Gaussian prior around 1 keeps people with few
answers near the average; its variance is the one under which all answers together are most likely
(empirical Bayes). Ratings are means, and their errors standard deviations, of the posterior of r,
on a grid. An answer then weighs as much as its person's reliability, at least 0 and at most 2: near
a tie this is the gradient that a curve of that steepness would have. Fits that weigh answers so
predict better, and rate people better in turn: the first fit takes people who guess for average
ones, and its ratings are too much alike (`nearer.fitting.belief`).

*Pace.* Seconds are a + b·k + c·m: some to begin with, some for each of the k choices, some for each
of the m objects looked at. The numbers are least squares over recorded times, each cut at half a
minute, because people look away. The default was fitted to 9,904 screens of Wilber, Kwak and
Belongie (2014), dishes of food, k of 1, 2, 4 and m of 2 to 16. It misses the mean of a task by
0.8 s (root mean square over their twelve tasks) and by 1.5 s at most (``python -m benchmarks
choices``). Odd-one-out screens were not among them: they are taken to last as long as choosing one
of as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp, softmax

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.heldout import HeldOut
from nearer.fitting.likelihood import Answers
from nearer.questions import Floats, find
from nearer.trials import Task, Trials

__all__ = ["Pace", "Reliability", "rate_people"]

_MOST_WEIGHT = 2.0  # of one person's answer against the average: a guess
_GRID = np.linspace(-2.0, 3.0, 51)  # of r, finer than most people's standard errors: time
_VARIANCES = (0.01, 0.03, 0.1, 0.3, 1.0)
_LONGEST = 30.0  # seconds of a screen; beyond that people were looking away


@dataclass(frozen=True)
class Reliability:
    """How far each person agrees with what the others' answers predict.

    Attributes
    ----------
    people
        Who answered, sorted.
    reliability
        1 for the average person, 0 for one who guesses, negative for one who contradicts.
    errors
        Standard error of each.
    n_answers
        How many answers of each were predicted.
    """

    people: NDArray[np.generic]
    reliability: Floats
    errors: Floats
    n_answers: NDArray[np.int64]

    @property
    def contrary(self) -> NDArray[np.generic]:
        """People who contradict the others by more than three standard errors."""
        return self.people[self.reliability < -3 * self.errors]

    @property
    def guessing(self) -> NDArray[np.generic]:
        """People who are three standard errors below half of the average reliability."""
        low = self.reliability + 3 * self.errors < 0.5
        return self.people[low & (self.reliability >= -3 * self.errors)]

    def weights(self, people: ArrayLike) -> Floats:
        """How much an answer of each of these people counts; 1 for a person not rated."""
        who = np.asarray(people)
        place, known = find(self.people, who)
        weight = np.clip(self.reliability, 0, _MOST_WEIGHT)[place]
        return np.where(known, weight, 1.0)


def rate_people(
    evidence: Answers,
    held_out: HeldOut,
    people: ArrayLike,
    weights: ArrayLike | None = None,
) -> Reliability:
    """Compare each person's answers with predictions that had not seen them.

    Parameters
    ----------
    evidence, held_out
        All answers, and the predictions that `hold_out` made of them.
    people
        Who gave each answer, in the order in which answers were given to `as_answers`; "" is
        not rated.
    weights
        How much each of them counts; None: all the same.
    """
    who = np.asarray(people)
    if who.shape != evidence.row.shape:
        raise InvalidInput(
            f"people of shape {who.shape}: must name one person for each of the "
            f"{len(evidence.row)} answers"
        )
    place = np.full(len(evidence), -1)
    place[held_out.rows] = np.arange(len(held_out.rows))
    place = place[evidence.row]
    names, index = np.unique(who, return_inverse=True)
    counts = checks.weights(weights, len(who))
    seen = (place >= 0) & (counts > 0)
    if names.dtype.kind == "U" and names[0] == "":  # sorts first
        names, index = names[1:], index - 1
        seen &= index >= 0
    index, place, counts = index[seen], place[seen], counts[seen]
    rating, errors = _posterior(_log_likelihood(index, place, counts, len(names), held_out))
    return Reliability(names, rating, errors, np.bincount(index, minlength=len(names)))


def _log_likelihood(
    index: NDArray[np.int64],
    place: NDArray[np.int64],
    counts: Floats,
    n_people: int,
    held_out: HeldOut,
) -> Floats:
    """Of each person's answers, for every reliability of the grid."""
    table = np.empty((n_people, len(_GRID)))
    curve = held_out.curve
    for k, r in enumerate(_GRID):
        logs = held_out.forecast.along(r * curve.sharpness, curve.lapse)[0]
        table[:, k] = np.bincount(index, counts * logs[place], n_people)
    return table


def _posterior(log_likelihood: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each person's reliability."""
    tried = []
    for variance in _VARIANCES:
        prior = log_softmax(-((_GRID - 1) ** 2) / (2 * variance))
        tried.append(log_likelihood + prior)
    best = max(tried, key=lambda logs: float(logsumexp(logs, axis=1).sum()))
    weight = softmax(best, axis=1)
    mean = weight @ _GRID
    spread = np.sqrt(np.maximum(weight @ _GRID**2 - mean**2, (_GRID[1] - _GRID[0]) ** 2 / 12))
    return np.asarray(mean), np.asarray(spread)


@dataclass(frozen=True)
class Pace:
    """Seconds that a screen takes.

    Attributes
    ----------
    start, choice, look
        Seconds to begin with, for each object to choose, for each object shown.

    Examples
    --------
    >>> import nearer
    >>> round(nearer.Pace().seconds("2 of 8"), 1)
    7.2
    """

    start: float = 1.68
    choice: float = 1.58
    look: float = 0.29

    def seconds(self, task: Task | str) -> float:
        """How long one screen of a task takes."""
        task = Task.parse(task)
        return self.start + self.choice * task.choose + self.look * task.shown

    @classmethod
    def fit(cls, trials: Trials) -> Pace:
        """The pace of people whose times were recorded, from screens of at least three tasks."""
        if trials.seconds is None:
            raise InvalidInput("the trials have no seconds: a pace is fitted to recorded times")
        known = np.isfinite(trials.seconds) & (trials.seconds > 0)
        k, m = trials.wanted[known], trials.n_shown[known]
        table = np.column_stack([np.ones(len(k)), k, m])
        if np.linalg.matrix_rank(table) < 3:
            raise InvalidInput(
                "the trials are too much alike: their numbers of choices and of objects shown must "
                "both vary, else pass Pace(start, choice, look)"
            )
        seconds = np.minimum(trials.seconds[known], _LONGEST)
        start, choice, look = np.linalg.lstsq(table, seconds, rcond=None)[0].tolist()
        return cls(start, choice, look)
