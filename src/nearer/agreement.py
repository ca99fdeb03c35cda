"""Agreement of answers to the same question, and calibration of predicted probabilities.

*Agreement.* Two answers to the same question agree with probability p² + (1 − p)², where p is the
probability that a is said to be nearer. The best prediction of one answer is right with probability
q = max(p, 1 − p). With A the mean agreement over questions, the mean of q is at least A and, since
the square root is concave, at most (1 + √(2A − 1))/2: no map can be expected to predict more than
this *ceiling* of the questions that were asked twice. A is estimated, so the ceiling has an
interval, too. Pairs of answers of one person measure how well people repeat themselves; pairs of
different people measure how well one person predicts another.

*Calibration.* Held-out answers were predicted with a probability; of those with about the same
probability, that share should have come true. The curve from distances to probabilities has two
parameters, which were fitted to the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.heldout import HeldOut
from nearer.fitting.likelihood import MarginForecast
from nearer.metrics import share_interval
from nearer.questions import pack
from nearer.trials import Trials

__all__ = ["MOST_SORTED", "Agreement", "Calibration", "calibrated", "measure_agreement"]

Floats = NDArray[np.float64]
_BINS = 8
MOST_SORTED = 10_000_000  # sorting more would take longer than a fit on a GPU


@dataclass(frozen=True)
class Agreement:
    """How often two answers to the same question are the same, with a 95 % interval.

    Attributes
    ----------
    share, low, high
        The share of pairs that agree.
    n_questions
        Questions with two such answers or more.
    ceiling, ceiling_interval
        The largest share of answers to such questions that any map can be expected to predict, and
        its interval, computed from that of `share`; None for answers that are not a choice of two.
    """

    share: float
    low: float
    high: float
    n_questions: int
    ceiling: float | None
    ceiling_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities and observed shares, in bins of about equally many answers.

    Attributes
    ----------
    predicted, observed
        Mean probability of the likelier answer, and how often it was given.
    counts
        Answers in each bin, repeated ones included.
    """

    predicted: Floats
    observed: Floats
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The mean absolute difference of the two."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.counts))


def measure_agreement(
    answers: NDArray[np.integer] | Trials,
    people: NDArray[np.generic] | None,
    weights: Floats | None = None,
) -> dict[str, Agreement]:
    """Agreement of answers to the same question: of the ``"same"`` person, of ``"others"``.

    Without people, all pairs are ``"unknown"``. The result is empty for more than ten million
    answers. A weight of 2 is the same answer given twice; with weights that are not counts,
    agreement is not known.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 0, 2]])
    >>> found = measure_agreement(rows, np.array(["ann", "ann", "bob", "bob"]))
    >>> found["same"].share, found["others"].share
    (1.0, 0.0)
    """
    if weights is not None and len(np.unique(weights[weights > 0])) == 1 and (weights % 1).any():
        weights = np.sign(weights)  # not counts, but all the same
    if weights is not None and (weights != 1).any():
        if (weights % 1).any() or weights.sum() > MOST_SORTED:
            return {}
        each = np.repeat(np.arange(len(answers)), weights.astype(np.int64))
        answers, people = answers[each], None if people is None else people[each]
    if len(answers) > MOST_SORTED:
        return {}
    if people is not None and people.dtype.kind == "U":  # "" is not a person
        answers, people = answers[people != ""], people[people != ""]
    import pandas as pd  # noqa: PLC0415 - slow to import

    frame = pd.DataFrame(dict(zip(("question", "answer"), _coded(answers), strict=True)))
    pairs = _count_pairs(frame, ["question"])
    by_kind = {"unknown": pairs}
    if people is not None:
        same = _count_pairs(frame.assign(person=people), ["question", "person"])
        by_kind = {"same": same, "others": pairs - same}
    found = {kind: _share(counts, answers) for kind, counts in by_kind.items()}
    return {kind: share for kind, share in found.items() if share is not None}


def _coded(
    answers: NDArray[np.integer] | Trials,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each question, from 0, and one for each answer."""
    if isinstance(answers, Trials):
        order = np.argsort(answers.shown, axis=1, kind="stable")
        shown = np.take_along_axis(answers.shown, order, axis=1)
        said = answers.chosen
        if answers.kind == "pairs":  # the pairs stay in their order, which is part of the question
            shown = answers.shown
        else:
            said = np.take_along_axis(answers.chosen, order, axis=1)
        asked = np.column_stack([answers.query, shown])
        question = np.unique(asked, axis=0, return_inverse=True)[1].ravel()
        return question, np.unique(said, axis=0, return_inverse=True)[1].ravel()
    keys, mirrored = pack(answers)
    return np.unique(keys, return_inverse=True)[1], mirrored.astype(np.int64)


def _count_pairs(frame: Any, by: list[str]) -> Any:
    """How many pairs of answers with the same values of `by` agree, by question, and how many are.

    x answers make x(x − 1)/2 pairs.
    """

    def count(columns: list[str]) -> Any:
        x = frame.groupby(columns).size()
        return (x * (x - 1) / 2).groupby(level="question").sum()

    return count([*by, "answer"]).to_frame("agree").assign(all=count(by))


def _share(pairs: Any, answers: NDArray[np.integer] | Trials) -> Agreement | None:
    """The share over all questions, each weighted by the number of answers in its pairs."""
    pairs = pairs[pairs["all"] > 0]
    if not len(pairs):
        return None
    weight = (1 + np.sqrt(1 + 8 * pairs["all"].to_numpy())) / 2
    share = float(np.average(pairs["agree"] / pairs["all"], weights=weight))
    low, high = share_interval(share, float(weight.sum() ** 2 / (weight**2).sum()))
    if isinstance(answers, Trials):
        return Agreement(share, low, high, len(pairs), None, None)
    ceiling, *interval = ((1 + max(2 * x - 1, 0.0) ** 0.5) / 2 for x in (share, low, high))
    return Agreement(share, low, high, len(pairs), ceiling, (interval[0], interval[1]))


def calibrated(held_out: HeldOut | None, times: NDArray[np.int64]) -> Calibration | None:
    """The calibration of held-out predictions; None for answers that are not a choice of two.

    `times` is the number of answers that each row of the evidence stands for.
    """
    if held_out is None or not isinstance(held_out.forecast, MarginForecast):
        return None
    times = times[held_out.rows]
    curve = held_out.curve  # the curve of `predict_proba`
    p = np.exp(held_out.forecast.along(curve.sharpness, curve.lapse)[0])
    sure, right = np.maximum(p, 1 - p), (p > 0.5).astype(np.float64)
    # Sorted by margin: where the curve is flat, rounding would sort right from wrong answers.
    order = np.argsort(np.abs(held_out.forecast.margins), kind="stable")
    order = order[times[order] > 0]  # the others have no weight
    if not len(order):
        return None
    # Equal answers stay in one bin, the one of their middle.
    middle = np.cumsum(times[order]) - times[order] / 2
    which = (_BINS * middle / times[order].sum()).astype(np.int64)
    bins = [order[which == k] for k in np.unique(which)]
    weights = held_out.weights
    return Calibration(
        np.array([np.average(sure[rows], weights=weights[rows]) for rows in bins]),
        np.array([np.average(right[rows], weights=weights[rows]) for rows in bins]),
        np.array([times[rows].sum() for rows in bins]),
    )
