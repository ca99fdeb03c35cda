"""Answers that are given, in whatever form: rows, objects, people, weights, trials.

*Objects* are the distinct ids in the answers, ascending; what occurs in no answer is no object. A
*trial* is one answer of a person, which may say several things: an odd-one-out or a most-central
choice becomes two triplets.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.embedding import HeldOutAccuracy
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.losses import Floats
from nearer.fitting.reliability import Reliability
from nearer.metrics import share_interval
from nearer.questions import MAX_OBJECTS, Objects, Questions
from nearer.trials import Trials
from nearer.triplets import Triplets, read_triplets
from nearer.triplets.blocks import blocks_of
from nearer.triplets.report import Report
from nearer.trust import Agreement, measure_agreement
from nearer.wording import amount

__all__ = ["Given", "gather"]

_HEAVIEST = 1e9  # a weight counts answers; squares of far greater sums drown in rounding
_PERSON = [
    ("n_trials", np.int64),
    ("agreement", np.float64),
    ("low", np.float64),
    ("high", np.float64),
    ("reliability", np.float64),
    ("flag", "U8"),
]


@dataclass(frozen=True)
class Given:
    """Answers in the form that the inside works with.

    They are `answers`: the rows themselves, or trials of which the rows are the triplets.
    """

    rows: NDArray[np.int32]
    n: int
    names: tuple[Any, ...] | None
    answers: NDArray[np.int32] | Trials
    weights: Floats
    people: NDArray[Any] | None
    trials: Objects  # one number an answer, the same for triplets that are one answer
    odds: Floats | None = None  # how much likelier than at random each answer's question was
    read: Report | None = None  # what was read and left out, where there was a file

    @property
    def are_choices(self) -> bool:
        """Whether they are more than comparisons."""
        return isinstance(self.answers, Trials)

    @property
    def asked(self) -> Questions:
        """What each answer was given to, rows (query, shown…)."""
        return self.answers.questions if isinstance(self.answers, Trials) else self.rows

    def split(self) -> Given:
        """The same as triplets, each trial's sharing its weight."""
        if not isinstance(self.answers, Trials):
            return self
        rows, trial = self.answers.triplets()
        if not len(rows):
            raise InvalidInput(
                "none of these trials can be said by triplets; leave method and bootstrap alone"
            )
        weights = (self.weights / np.maximum(np.bincount(trial, minlength=len(self.weights)), 1))[
            trial
        ]
        people = None if self.people is None else self.people[trial]
        odds = None if self.odds is None else self.odds[trial]
        own = rows.astype(np.int32)
        said = replace(self, rows=own, answers=own, odds=odds)
        return replace(said, weights=weights, people=people, trials=trial)

    def by_trial(self, right: Floats) -> tuple[Objects, Floats, Floats]:
        """First answer, weight and share predicted rightly of each trial that was held out.

        `right` says how far each answer was predicted, nan where it was not.
        """
        held = np.isfinite(right) & (self.weights > 0)
        _, first, which = np.unique(self.trials[held], return_index=True, return_inverse=True)
        weight = np.bincount(which, self.weights[held]).astype(np.float64)
        share = np.bincount(which, self.weights[held] * right[held])
        return np.flatnonzero(held)[first], weight, share / weight

    def accuracy(self, right: Floats) -> HeldOutAccuracy | None:
        """How many trials were predicted rightly; None where none was."""
        first, weight, right = self.by_trial(right)
        if not len(weight):
            return None
        if self.odds is not None:
            weight = weight / self.odds[first]
        share = float(np.average(right, weights=weight))
        low, high = share_interval(share, float(weight.sum() ** 2 / (weight**2).sum()))
        return HeldOutAccuracy(share, low, high, len(weight))

    def agreement(self) -> dict[str, Agreement]:
        """How far those that count agree, where they answer the same question."""
        return measure_agreement(self.answers, self.people, self.weights)

    def rated(self, right: Floats, reliability: Reliability | None) -> NDArray[np.void] | None:
        """A table of the people, see `Embedding.people`; None where nobody says who answered."""
        if self.people is None:
            return None
        names, which = np.unique(self.people, return_inverse=True)
        nobody = int(names.dtype.kind == "U" and names[0] == "")  # sorts first, and is not rated
        table = np.zeros(len(names), dtype=[("id", names.dtype), *_PERSON])
        table["id"] = names
        trial = np.unique(self.trials, return_index=True)[1]
        table["n_trials"] = np.bincount(which[trial], minlength=len(names))
        first, _, share = self.by_trial(right)
        held = np.bincount(which[first], minlength=len(names))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nobody's answers held out: nan
            share = np.bincount(which[first], share, len(names)) / held
        table["agreement"] = share
        for k in np.flatnonzero(held == 0):
            table["low"][k], table["high"][k] = 0.0, 1.0
        for k in np.flatnonzero(held):
            table["low"][k], table["high"][k] = share_interval(float(share[k]), float(held[k]))
        table["reliability"] = np.nan
        if reliability is not None:
            table["reliability"][nobody:] = reliability.reliability
            table["flag"][np.isin(names, reliability.contrary)] = "contrary"
            table["flag"][np.isin(names, reliability.guessing)] = "guessing"
        return table[nobody:]


def gather(
    answers: Any,
    people: ArrayLike | None,
    weights: ArrayLike | None,
    n_objects: int | None,
    objects: str,
    odds: ArrayLike | None = None,
) -> Given:
    """Answers in the form that the inside works with; see `nearer.fit` for the parameters."""
    checks.one_of("objects", objects, ("auto", "numbers"))
    if isinstance(answers, str | os.PathLike):
        answers = _from_file(answers)
    elif hasattr(answers, "columns") and not isinstance(answers, np.ndarray):
        answers = _from_file(answers) if _has_header(answers) else _values(answers)
    elif (blocks := blocks_of(answers)) is not None:
        answers = _from_blocks(blocks, n_objects)
    read = answers.report if isinstance(answers, Triplets) else None
    return replace(_gathered(answers, people, weights, n_objects, objects, odds), read=read)


def _gathered(
    answers: Any,
    people: ArrayLike | None,
    weights: ArrayLike | None,
    n_objects: int | None,
    objects: str,
    odds: ArrayLike | None,
) -> Given:
    """Triplets, trials or rows in the form that the inside works with."""
    labels: Sequence[Any] | None = None
    if isinstance(answers, Triplets):
        labels = answers.trials.names or answers.labels
        if people is None and weights is None:
            answers = replace(answers.trials, names=labels)
        else:  # one for each triplet
            people = answers.people if people is None else people
            weights = answers.weights if weights is None else weights
    if isinstance(answers, Trials):
        weights = answers.weights if weights is None else weights
        return _of_trials(answers, people, weights, n_objects, objects, odds)
    keep = objects == "numbers" or n_objects is not None
    count = n_objects if n_objects is not None or labels is None else len(labels)
    if isinstance(n_objects, int):
        _few(n_objects)
    rows, n = checks.triplets(getattr(answers, "triplets", answers), count)
    names = None if labels is None else tuple(labels)
    if not keep:
        ids, rows = _numbered(rows)
        if len(ids) < n:
            names = tuple(ids.tolist() if labels is None else (labels[i] for i in ids))
        n = len(ids)
    counts = checks.weights(weights, len(rows), _HEAVIEST)
    who = checks.people(people, len(rows))
    likely = None if odds is None else checks.odds(odds, len(rows))
    return Given(rows, n, names, rows, counts, who, _trials(rows), likely)


def _few(n: int) -> int:
    """As many objects as fits know; each takes memory, also where no answer names it."""
    if n > MAX_OBJECTS:
        raise InvalidInput(
            f"n_objects={n}: nearer.fit knows at most {MAX_OBJECTS:,}; leave it out, and objects "
            "are those that the answers name"
        )
    return n


def _numbered(rows: NDArray[np.int32]) -> tuple[NDArray[np.integer], NDArray[np.int32]]:
    """The distinct ids, ascending, and the rows with each id's place among them."""
    high = int(rows.max())
    if high > rows.size:  # too far apart for a table
        ids, places = np.unique(rows, return_inverse=True)
        return ids, places.reshape(-1, 3).astype(np.int32)
    marks = np.zeros(high + 1, dtype=np.bool_)
    marks[rows.ravel()] = True
    if marks.all():
        return np.arange(high + 1), rows
    return np.flatnonzero(marks), (np.cumsum(marks) - 1).astype(np.int32)[rows]


def _from_blocks(blocks: Iterator[Any], n_objects: int | None) -> NDArray[np.int32]:
    """Blocks of ``(m, 3)`` rows, one after the other, without a copy in a wider type."""
    parts = []
    for number, block in enumerate(blocks):
        try:
            parts += [checks.triplets(block, n_objects)[0]] if len(block) else []
        except InvalidInput as error:
            raise InvalidInput(f"block {number}: {error}") from None
    if not parts:
        raise InvalidInput(
            "an iterator without a block of rows: must yield (m, 3) rows, at least once"
        )
    return np.concatenate(parts)


def _of_trials(
    answers: Trials,
    people: ArrayLike | None,
    weights: ArrayLike | None,
    n_objects: int | None,
    objects: str,
    odds: ArrayLike | None,
) -> Given:
    """Trials of any task; where all are decided comparisons, as triplets, which fit faster."""
    if not len(answers):
        raise InvalidInput("there are no trials: at least one is needed")
    if not answers.decided.any():
        raise InvalidInput(
            f"{amount(len(answers), 'trial')}, and nobody could decide: that says nothing of where "
            "objects are; at least one choice is needed"
        )
    people = answers.people if people is None else people
    n = answers.n_objects if n_objects is None else _few(checks.n_objects(n_objects))
    names = answers.names
    seen = np.unique(answers.questions[answers.questions >= 0])
    if n_objects is None and objects != "numbers" and len(seen) < n:
        names = tuple(seen.tolist() if names is None else (names[i] for i in seen))
        answers, n = answers.renumbered(seen), len(seen)
    if seen[-1] >= n and names is answers.names:
        raise InvalidInput(f"object {seen[-1]} of the trials: objects are from 0 to {n - 1}")
    who = checks.people(people, len(answers))
    rows = answers.triplets()[0].astype(np.int32)
    task = answers.task
    compared = task is not None and task.is_comparison
    if odds is not None and not compared:
        raise InvalidInput(
            "odds with trials that are no comparisons: they are known of those; leave them out"
        )
    likely = None if odds is None else checks.odds(odds, len(answers))
    own = rows if compared and bool(answers.decided.all()) else answers
    counts = checks.weights(weights, len(answers), _HEAVIEST)
    return Given(rows, n, names, own, counts, who, np.arange(len(answers)), likely)


def _has_header(frame: Any) -> bool:
    """Whether the columns of a frame have names; numbers are those of a frame made of an array."""
    return all(isinstance(name, str) for name in frame.columns)


def _values(frame: Any) -> NDArray[Any]:
    """The rows of a frame without names for its columns."""
    values = np.asarray(frame)
    if values.ndim != 2 or values.shape[1] != 3:
        raise InvalidInput(
            f"a frame of shape {values.shape} whose columns have no names: it must hold three "
            "columns (head, near, far), or name its columns head, winner and loser"
        )
    if values.dtype.kind in "iu":
        return values
    raise InvalidInput(
        f"a frame of {values.dtype} whose columns have no names: name them head, winner and loser"
    )


def _from_file(source: Any) -> Triplets:
    """A file or a frame, with a warning of what somebody should look at."""
    read = read_triplets(source)
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else "the frame"
    for doubt in read.report.doubts():
        what = f"{name}: {doubt} (fit what nearer.read_triplets returns, and this is not said)"
        warnings.warn(what, AnswersWarning, stacklevel=4)
    return read


def _trials(rows: NDArray[np.int32]) -> Objects:
    """Which rows are one answer: the two triplets of an odd-one-out or a most-central choice.

    Files of such choices hold nothing else, so it is all rows, two by two, or none.
    """
    numbers = np.arange(len(rows))
    if len(rows) % 2:
        return numbers
    (h, a, b), (h2, a2, b2) = rows[::2].T, rows[1::2].T
    odd = (h == a2) & (a == h2) & (b == b2)
    central = (h == b2) & (a == a2) & (b == h2)
    return numbers // 2 if odd.all() or central.all() else numbers
