"""Answers that are given, in whatever form: rows, objects, people, weights, trials.

*Objects* are the distinct ids in the answers, ascending; what occurs in no answer is no object. A
*trial* is one answer of a person, which may say several things: an odd-one-out or a most-central
choice becomes two triplets.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.embedding import HeldOutAccuracy
from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats
from nearer.metrics import share_interval
from nearer.questions import Objects
from nearer.triplets import Triplets, read_triplets

__all__ = ["Given", "gather"]


@dataclass(frozen=True)
class Given:
    """Answers in the form that the inside works with."""

    rows: NDArray[np.int32]
    n: int
    names: tuple[Any, ...] | None
    weights: Floats
    people: NDArray[Any] | None
    trials: Objects  # one number an answer, the same for triplets that are one answer

    def by_trial(self, margins: Floats) -> tuple[Objects, Floats, Floats]:
        """First answer, weight and share predicted rightly of each trial that was held out.

        `margins` are those of the answers, positive where a prediction agrees, nan where there is
        none.
        """
        held = np.isfinite(margins) & (self.weights > 0)
        _, first, which = np.unique(self.trials[held], return_index=True, return_inverse=True)
        weight = np.bincount(which, self.weights[held]).astype(np.float64)
        right = np.bincount(which, self.weights[held] * (margins[held] > 0))
        return np.flatnonzero(held)[first], weight, right / weight

    def accuracy(self, margins: Floats) -> HeldOutAccuracy | None:
        """How many trials were predicted rightly; None where none was."""
        _, weight, right = self.by_trial(margins)
        if not len(weight):
            return None
        share = float(np.average(right, weights=weight))
        low, high = share_interval(share, float(weight.sum() ** 2 / (weight**2).sum()))
        return HeldOutAccuracy(share, low, high, len(weight))


def gather(
    answers: Any,
    people: ArrayLike | None,
    weights: ArrayLike | None,
    n_objects: int | None,
    objects: str,
) -> Given:
    """Answers in the form that the inside works with; see `nearer.fit` for the parameters."""
    checks.one_of("objects", objects, ("auto", "numbers"))
    if isinstance(answers, str | os.PathLike):
        answers = read_triplets(answers)
    elif hasattr(answers, "columns") and not isinstance(answers, np.ndarray):
        answers = _from_frame(answers)
    labels: Sequence[Any] | None = None
    if isinstance(answers, Triplets):
        labels = answers.labels
        people = _persons(answers) if people is None else people
        weights = answers.weights if weights is None else weights
    keep = objects == "numbers" or n_objects is not None
    count = n_objects if n_objects is not None or labels is None else len(labels)
    rows, n = checks.triplets(getattr(answers, "triplets", answers), count)
    names = None if labels is None else tuple(labels)
    if not keep:
        ids, compact = np.unique(rows, return_inverse=True)
        if len(ids) < n:
            names = tuple(ids.tolist() if labels is None else (labels[i] for i in ids))
        rows, n = compact.reshape(-1, 3).astype(np.int32), len(ids)
    who = None if people is None else np.asarray(people)
    if who is not None and who.shape != (len(rows),):
        raise InvalidInput(
            f"people of shape {who.shape}: must be ({len(rows)},), who gave each of the answers"
        )
    trials = getattr(answers, "trials", None)
    return Given(
        rows,
        n,
        names,
        checks.weights(weights, len(rows)),
        who,
        _trials(rows) if trials is None else np.asarray(trials),
    )


def _from_frame(frame: Any) -> Triplets:
    """A frame is read like the file it would be written to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "frame.csv")
        if hasattr(frame, "write_csv"):
            frame.write_csv(path)
        else:
            frame.to_csv(path, index=False)
        return read_triplets(path)


def _persons(answers: Triplets) -> NDArray[Any] | None:
    if answers.persons is None:
        return None
    return np.asarray(answers.person_labels)[answers.persons] if answers.person_labels else None


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
