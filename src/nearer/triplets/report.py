"""What a set of triplets is like: repeats, contradictions, which objects are compared.

Two objects are connected when a chain of triplets links them. Objects in different groups were
never set against a common one, so their mutual distances are unknown; an object in no
triplet at all can be anywhere.

*Disagreement* is what repeated questions say about noise: of all answers to questions that were
asked more than once, the share that goes against the majority (half of them in a tie). No
embedding can agree with more than the rest of those answers.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nearer.checks import amount
from nearer.questions import Floats, Objects, pack
from nearer.trials import Trials

__all__ = ["Report", "Triplets", "examine"]

_SHOWN = 10  # how many of a kind a text names before it goes on with "and N more"


@dataclass(frozen=True)
class Report:
    """What was read, what was left out, and what the triplets are like.

    Attributes
    ----------
    rows
        Answers in the source. One answer gives one triplet, or two where it was "which is the odd
        one?" or "which is the most central?".
    triplets
        Triplets kept.
    objects
        Objects, those never compared included.
    persons, nameless
        Participants, 0 where the source does not say, and answers that name nobody.
    duplicates
        Triplets that repeat an earlier one: same question, same answer.
    contradictions
        Questions answered both ways.
    disagreement
        Share of the answers to repeated questions that go against the majority; None where no
        question was repeated.
    degenerate
        Lines left out because an object occurs twice in the question.
    undecided
        Lines left out because nobody decided: no answer, or "equal".
    ties
        Screens on which nobody decided; a fit takes them as about a tie.
    never_compared
        Objects that occur in no triplet.
    groups
        Objects that triplets connect, the largest group first. One group is what a fit
        needs.
    untimed
        Lines with a time that is no number; it is taken as not known.
    unread_columns
        Columns of the source that were not used.
    bad
        Lines left out because they could not be read, where that was asked for.
    excluded
        Lines left out because the source marks them as excluded.
    others
        Records left out because they are no answers but pages of something else.
    alike
        Names that differ only in case, blanks or how their letters are encoded.
    assumed
        What was taken to be so where the source does not say, and how to say otherwise.
    unit
        What lines are: lines of a file, records, rows of a frame.
    """

    rows: int
    triplets: int
    objects: int
    persons: int
    duplicates: int
    contradictions: int
    disagreement: float | None
    never_compared: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    labels: tuple[str, ...]
    degenerate: tuple[int, ...] = ()
    undecided: tuple[int, ...] = ()
    ties: tuple[int, ...] = ()
    nameless: int = 0
    untimed: tuple[int, ...] = ()
    unread_columns: tuple[str, ...] = ()
    bad: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    alike: tuple[tuple[str, ...], ...] = ()
    assumed: str = ""
    unit: str = "line"

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, fit for JSON."""
        plain = asdict(self)
        del plain["labels"]
        return plain

    def __str__(self) -> str:
        people = f" from {amount(self.persons, 'participant')}" if self.persons else ""
        lines = [
            f"{amount(self.rows, 'answer')}{people}, {amount(self.triplets, 'triplet')} over "
            f"{amount(self.objects, 'object')}"
        ]
        if self.duplicates:
            repeats = amount(self.duplicates, "triplet repeats", "triplets repeat")
            lines.append(f"{repeats} an earlier one")
        if self.contradictions:
            both = amount(self.contradictions, "question is", "questions are")
            lines.append(f"{both} answered both ways")
        if self.disagreement is not None:
            share = f"{100 * self.disagreement:.1f} %"
            lines.append(f"{share} of the answers to repeated questions are against the majority")
        if self.nameless:
            said = ("answer names nobody and rates", "answers name nobody and rate")
            lines.append(f"{amount(self.nameless, *said)} no participant")
        for what, where in (
            ("left out, an object twice in the question", self.degenerate),
            ("left out, nobody decided", self.undecided),
            ("nobody decided, taken as about a tie", self.ties),
            ("left out, could not be read", self.bad),
            ("left out, marked as excluded", self.excluded),
            ("left out, no answers but other pages", self.others),
            ("times that are no numbers, taken as not known", self.untimed),
        ):
            if where:
                lines.append(f"{what}: {_at(where, self.unit)}")
        if self.never_compared:
            lines.append(f"never compared: {_some(self._named(self.never_compared))}")
        if len(self.groups) > 1:
            sizes = ", ".join(f"{len(group):,}" for group in self.groups[:_SHOWN])
            lines.append(
                f"{len(self.groups):,} groups of objects that no triplet links, of {sizes} "
                f"objects; the smallest: {_some(self._named(self.groups[-1]))}"
            )
        if self.unread_columns:
            lines.append(f"columns not used: {_some(self.unread_columns)}")
        return "\n".join([*lines, *self.assumptions()])

    def assumptions(self) -> list[str]:
        """What the user should check: what was assumed, and names that may mean one object."""
        found = []
        if self.alike:
            pairs = _some([" and ".join(map(repr, names)) for names in self.alike])
            fewer = self.objects - sum(len(names) - 1 for names in self.alike)
            found.append(
                f"names that differ only in case, blanks or how letters are encoded: {pairs}; are "
                f"there {fewer:,} objects or {self.objects:,}?"
            )
        return [*found, self.assumed] if self.assumed else found

    def _named(self, objects: Sequence[int]) -> list[str]:
        return [self.labels[i] for i in objects]


@dataclass(frozen=True, eq=False)
class Triplets:
    """Answered questions, as `nearer.read_triplets` returns them: a view of the trials read.

    It stands for its ``(m, 3)`` array wherever an array is expected: an estimator fits it as it is.

    Attributes
    ----------
    trials
        The `nearer.Trials` that the triplets stand for; a fit takes these.
    report
        What was read and left out, and what the triplets are like; print it.

    Examples
    --------
    >>> import nearer
    >>> answers = Triplets.of(nearer.Trials.from_triplets([[0, 1, 2], [2, 1, 0]]))
    >>> len(answers), answers.n_objects, np.asarray(answers).shape
    (2, 3, (2, 3))
    """

    trials: Trials
    report: Report = field(repr=False)

    @classmethod
    def of(cls, trials: Trials) -> Triplets:
        """The triplets of some trials, with a report on them."""
        labels = tuple(map(str, trials.names or range(trials.n_objects)))
        return cls(trials, examine(trials.triplets()[0], labels))

    @cached_property
    def _rows(self) -> tuple[Objects, Objects]:
        return self.trials.triplets()

    @property
    def triplets(self) -> Objects:
        """``(m, 3)`` integers, rows ``(head, near, far)``."""
        return self._rows[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """What objects 0 … n−1 are called."""
        return tuple(map(str, self.trials.names or range(self.n_objects)))

    @property
    def n_objects(self) -> int:
        """How many objects there are, those never compared included."""
        return self.trials.n_objects

    @property
    def weights(self) -> Floats | None:
        """How much each triplet counts, or None where all count the same."""
        return None if self.trials.weights is None else self.trials.weights[self._rows[1]]

    @property
    def people(self) -> NDArray[Any] | None:
        """Who gave each answer; "" where nobody is named, None where the source does not say."""
        return None if self.trials.people is None else self.trials.people[self._rows[1]]

    @property
    def seconds(self) -> Floats | None:
        """How long each answer took, nan where that is not known; None: the source is silent."""
        return None if self.trials.seconds is None else self.trials.seconds[self._rows[1]]

    def __len__(self) -> int:
        return len(self.triplets)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.triplets, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<{amount(len(self), 'triplet')} over {amount(self.n_objects, 'object')}>"


def examine(
    triplets: NDArray[np.int64],
    labels: Sequence[str],
    *,
    rows: int | None = None,
    persons: int = 0,
    **known: Any,
) -> Report:
    """Report on triplets; what only their reader can know is passed in.

    Examples
    --------
    >>> import numpy as np
    >>> print(examine(np.array([[0, 1, 2], [0, 2, 1], [3, 4, 5]]), "abcdefg"))
    3 answers, 3 triplets over 7 objects
    1 question is answered both ways
    50.0 % of the answers to repeated questions are against the majority
    never compared: g
    2 groups of objects that no triplet links, of 3, 3 objects; the smallest: d, e, f
    """
    keys, mirrored = pack(triplets)
    _, question, asked = np.unique(keys, return_inverse=True, return_counts=True)
    against = np.bincount(question, weights=mirrored, minlength=len(asked)).astype(np.int64)
    minority = np.minimum(against, asked - against)
    repeated = asked > 1
    kinds_of_answer = (against > 0).astype(np.int64) + (against < asked)
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
    never, groups = _groups(triplets, len(labels))
    return Report(
        rows=len(triplets) if rows is None else rows,
        triplets=len(triplets),
        objects=len(labels),
        persons=persons,
        duplicates=len(triplets) - int(kinds_of_answer.sum()),
        contradictions=int((minority > 0).sum()),
        disagreement=(
            float(minority[repeated].sum() / asked[repeated].sum()) if repeated.any() else None
        ),
        never_compared=never,
        groups=groups,
        labels=tuple(labels),
        alike=_alike(labels),
        **plain,
    )


def _alike(labels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Labels that are the same but for letter case, blanks and the encoding of letters."""
    found: dict[str, list[str]] = {}
    for label in labels:
        plain = unicodedata.normalize("NFKC", label).casefold()  # é is one character or two
        found.setdefault("".join(plain.split()), []).append(label)
    return tuple(tuple(same) for same in found.values() if len(same) > 1)


def _groups(
    triplets: NDArray[np.int64], n: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The objects in no triplet, and the others by connected component, largest first."""
    head, near, far = triplets.T
    links = (np.ones(2 * len(triplets), dtype=np.bool_), (np.r_[head, head], np.r_[near, far]))
    _, component = connected_components(coo_array(links, shape=(n, n)), directed=False)
    compared = np.bincount(triplets.ravel(), minlength=n) > 0
    members: dict[int, list[int]] = {}
    for i in np.flatnonzero(compared).tolist():
        members.setdefault(int(component[i]), []).append(i)
    groups = sorted(map(tuple, members.values()), key=lambda group: (-len(group), group[0]))
    return tuple(np.flatnonzero(~compared).tolist()), tuple(groups)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _at(lines: Sequence[int], unit: str) -> str:
    word = unit if len(lines) == 1 else f"{unit}s"
    return f"{len(lines):,} ({word} {_some([str(line) for line in lines])})"
