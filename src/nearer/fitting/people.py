r"""How far each person can be believed.

Each answer of a person was predicted by a fit that had not seen it (`nearer.fitting.heldout`). With
t the predicted margin, positive where the prediction agrees with the person, the person's
*reliability* r makes Π 1/(1 + exp(−r β t)) greatest, β the sharpness for everybody. It is 1 for the
average person, 0 for one who guesses, negative for one who contradicts. A Gaussian belief around 1
with standard deviation 1 keeps people with few answers near the average.

Answers then weigh as much as their person's reliability, at least 0 and at most 2: near a tie this
is the gradient that a curve of that steepness would have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from nearer.errors import InvalidInput
from nearer.fitting.heldout import HeldOut
from nearer.fitting.losses import Floats
from nearer.fitting.posterior import Evidence

__all__ = ["Reliability", "rate_people"]

_MOST_WEIGHT = 2.0
_STEPS = 30


@dataclass(frozen=True)
class Reliability:
    """What was found about each person.

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
        """How much an answer of each of these people counts; 1 for somebody not seen."""
        who = np.asarray(people)
        place = np.minimum(np.searchsorted(self.people, who), len(self.people) - 1)
        known = self.people[place] == who
        trust = np.clip(self.reliability, 0, _MOST_WEIGHT)[place]
        return np.where(known, trust, 1.0)


def rate_people(evidence: Evidence, held_out: HeldOut, people: ArrayLike) -> Reliability:
    """Compare each person's answers with predictions that had not seen them.

    Parameters
    ----------
    evidence, held_out
        All answers, and the predictions that `tune` made of them.
    people
        Who gave each answer, in the order in which answers were given to `as_evidence`.
    """
    who = np.asarray(people)
    if who.shape != evidence.row.shape:
        raise InvalidInput(
            f"people of shape {who.shape}: must name one person for each of the "
            f"{len(evidence.row)} answers"
        )
    margin = np.full(len(evidence), np.nan)
    margin[held_out.rows] = held_out.margins
    names, index = np.unique(who, return_inverse=True)
    t = margin[evidence.row] * max(held_out.noise.sharpness, 1e-9)
    index, t = index[np.isfinite(t)], t[np.isfinite(t)]
    rating = np.ones(len(names))
    for _ in range(_STEPS):  # Newton's method, for all people side by side
        wrong = expit(-rating[index] * t)
        slope = np.bincount(index, wrong * t, len(names)) - (rating - 1)
        curvature = np.bincount(index, wrong * (1 - wrong) * t * t, len(names)) + 1
        rating = np.clip(rating + np.clip(slope / curvature, -0.5, 0.5), -5, 5)
    counts = np.bincount(index, minlength=len(names))
    return Reliability(names, rating, 1 / np.sqrt(curvature), counts)
