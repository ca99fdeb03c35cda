"""Triplets with all that belongs to them: labels, participants, weights, and a report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.trials import Trials
from nearer.triplets.report import Report
from nearer.wording import amount

__all__ = ["Triplets"]


@dataclass(frozen=True, eq=False)
class Triplets:
    """Answered questions, as `nearer.read_triplets` returns them.

    It stands for its ``(m, 3)`` array wherever an array is expected: an estimator fits it as it is.

    Attributes
    ----------
    triplets
        ``(m, 3)`` integers, rows ``(head, near, far)``.
    labels
        What objects 0 … n−1 are called.
    weights
        How much each triplet counts, or None where all count the same.
    persons
        Who gave each answer, as a position in `person_labels`, −1 where nobody is named; None
        where the source does not say.
    person_labels
        What the participants are called.
    seconds
        How long each answer took, nan where that is not known; None where the source does not say.
    choices
        The `Trials` that the triplets stand for, where answers said more than a triplet does; a
        fit then takes these.
    report
        What was read and left out, and what the triplets are like; print it.

    Examples
    --------
    >>> import numpy as np
    >>> from nearer.triplets import Triplets, examine
    >>> rows = np.array([[0, 1, 2], [2, 1, 0]])
    >>> answers = Triplets(rows, ("ape", "bee", "cat"), report=examine(rows, ("ape", "bee", "cat")))
    >>> len(answers), answers.n_objects, np.asarray(answers).shape
    (2, 3, (2, 3))
    """

    triplets: NDArray[np.int64]
    labels: tuple[str, ...]
    report: Report = field(repr=False)
    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    persons: NDArray[np.int64] | None = field(default=None, repr=False)
    person_labels: tuple[str, ...] = field(default=(), repr=False)
    seconds: NDArray[np.float64] | None = field(default=None, repr=False)
    choices: Trials | None = field(default=None, repr=False)

    @property
    def n_objects(self) -> int:
        """How many objects there are, those never compared included."""
        return len(self.labels)

    @property
    def people(self) -> NDArray[np.str_] | None:
        """Who gave each answer, by name; "" where nobody is named."""
        if self.persons is None:
            return None
        return np.array([*self.person_labels, ""])[self.persons]

    def trials(self) -> Trials:
        """The answers as `Trials`: those that were read, or else one comparison a triplet.

        Trials have no weights: an answer that counts twice is there twice.
        """
        found = self._comparisons() if self.choices is None else self.choices
        if self.weights is None or not len(found):
            return found
        times = self.weights[:: len(self) // len(found)]
        if (times != np.round(times)).any():
            strange = float(times[np.argmax(times != np.round(times))])
            raise InvalidInput(
                f"weight {strange}: trials have none but whole ones, as copies; fit the triplets, "
                "or take the weights out"
            )
        return found[np.repeat(np.arange(len(found)), times.astype(np.int64))]

    def _comparisons(self) -> Trials:
        numbers = self.labels == tuple(map(str, range(self.n_objects)))
        return Trials.from_triplets(
            self.triplets,
            names=None if numbers else self.labels,
            people=self.people,
            seconds=self.seconds,
        )

    def with_choices(self, kind: str) -> Triplets:
        """The same with what people chose, where each answer became two triplets."""
        if not len(self.triplets):
            return self
        rows, one = self.triplets[::2], self._comparisons()[::2]
        make = Trials.odd_one_out if kind == "odd-one-out" else Trials.most_central
        chosen = rows[:, 2] if kind == "odd-one-out" else rows[:, 1]
        choices = make(
            np.sort(rows, axis=1), chosen, names=one.names, people=one.people, seconds=one.seconds
        )
        return replace(self, choices=choices)

    def __len__(self) -> int:
        return len(self.triplets)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.triplets, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<{amount(len(self), 'triplet')} over {amount(self.n_objects, 'object')}>"
