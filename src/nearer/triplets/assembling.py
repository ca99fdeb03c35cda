"""What a reader found, put together: what says nothing is left out, loudly, and reported."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nearer.errors import DroppedRows
from nearer.trials import Trials
from nearer.triplets.collection import Triplets
from nearer.triplets.forms import Answered
from nearer.triplets.report import examine

__all__ = ["assemble", "reported"]

_ASSUMED = (
    "there is no header: each row is taken as head, near, far. Where the third is the odd one out, "
    "as in files of THINGS, SPoSE and VICE, say so: kind='odd-one-out', or --kind odd-one-out"
)


def assemble(
    answered: Answered,
    labels: tuple[str, ...],
    *,
    kind: str,
    lines: NDArray[np.int64],
    persons: NDArray[np.int64] | None,
    person_labels: tuple[str, ...],
    weights: NDArray[np.float64] | None,
    unread: Sequence[str],
) -> Triplets:
    """Leave out what says nothing, loudly, and put the rest together."""
    head, near, far = answered.triplets.T
    good = (head != near) & (head != far) & (near != far)
    degenerate = np.unique(lines[answered.row[~good]]).tolist()
    undecided = lines[answered.undecided].tolist()
    for dropped, why in ((degenerate, "name an object twice"), (undecided, "have no decision")):
        if dropped:
            warnings.warn(
                f"{len(dropped)} of {len(lines)} answers {why} and are left out, the first on line "
                f"{dropped[0]}; the report lists them",
                DroppedRows,
                stacklevel=4,
            )
    row = answered.row[good]
    triplets = np.ascontiguousarray(answered.triplets[good])
    weight = None if answered.weights is None else answered.weights[good]
    if weights is not None:
        weight = weights[row] if weight is None else weight * weights[row]
    who = None if persons is None else persons[row]
    return Triplets(
        triplets,
        labels,
        weights=weight,
        persons=who,
        person_labels=person_labels,
        choices=_choices(kind, triplets, labels, who, person_labels),
        report=examine(
            triplets,
            labels,
            rows=len(lines),
            persons=len(person_labels),
            degenerate=degenerate,
            undecided=undecided,
            unread_columns=unread,
        ),
    )


def _choices(
    kind: str,
    triplets: NDArray[np.int64],
    labels: tuple[str, ...],
    persons: NDArray[np.int64] | None,
    person_labels: tuple[str, ...],
) -> Trials | None:
    """What people chose, where each answer became two triplets."""
    if kind not in ("odd-one-out", "most-central") or not len(triplets):
        return None
    rows = triplets[::2]
    people = None
    if persons is not None:
        people = np.array(person_labels, dtype=object)[persons[::2]].astype(np.str_)
    shown = np.sort(rows, axis=1)
    if kind == "odd-one-out":
        return Trials.odd_one_out(shown, rows[:, 2], names=labels, people=people)
    return Trials.most_central(shown, rows[:, 1], names=labels, people=people)


def reported(read: Triplets, bad: Sequence[int], guessed: bool) -> Triplets:
    """The same with what only the reader of the whole file knows in its report."""
    assumed = _ASSUMED if guessed else ""
    return replace(read, report=replace(read.report, bad=tuple(sorted(bad)), assumed=assumed))
