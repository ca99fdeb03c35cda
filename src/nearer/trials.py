"""Trials: any choice that says which things are alike, the person who made it and the time it took.

docs/questions.md shows the four tasks. A trial in which the person could not decide has nothing
chosen: it is evidence of a near tie. `Triplets` are a view of trials as rows (head, near, far),
with a `Report` on the file and on the triplets.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nearer import checks
from nearer.checks import Shown, amount
from nearer.errors import InvalidInput
from nearer.files import one_message
from nearer.questions import Answers, Floats, Objects, Questions, Said, answered, pack, unsure_rows

TASKS = ("near", "odd-one-out", "most-central", "pairs")
_EACH = ("query", "shown", "chosen", "wanted", "people", "seconds", "weights")  # one a trial
_WRITTEN = re.compile(r"((?P<ranked>rank )?(?P<k>\d+) of (?P<m>\d+))|odd-one-out( of (?P<n>\d+))?")
A_TRIALS = "a nearer.Trials, such as nearer.read_trials returns"
_RULE = "objects must be whole numbers, one row a trial, seconds and weights numbers"
_READ = one_message("arguments", "trials", _RULE)
MOST_SORTED = 10_000_000  # answers; sorting more would take longer than a fit on a GPU


@dataclass(frozen=True)
class Task:
    """The task of a screen: how many objects are chosen of how many.

    Attributes
    ----------
    kind, choose, shown, ranked
        One of `TASKS`; how many are chosen of how many, and whether they are put in order.

    Examples
    --------
    >>> Task.parse("2 of 8")
    Task(kind='near', choose=2, shown=8, ranked=False)
    >>> str(Task.parse("odd-one-out"))
    'odd-one-out'
    """

    kind: str = "near"
    choose: int = 1
    shown: int = 2
    ranked: bool = False

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, TASKS)
        checks.flag("ranked", self.ranked)
        checks.whole("choose", self.choose, most=checks.whole("shown", self.shown, least=2) - 1)

    @classmethod
    def parse(cls, text: Any) -> Task:
        """A task from text such as ``"2 of 8"``, ``"rank 2 of 8"`` or ``"odd-one-out of 4"``."""
        if isinstance(text, Task):
            return text
        said = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        if said is not None and said["k"] and 1 <= int(said["k"]) < int(said["m"]):
            return cls("near", int(said["k"]), int(said["m"]), bool(said["ranked"]))
        if said is not None and not said["k"] and int(said["n"] or 3) >= 3:
            return cls("odd-one-out", 1, int(said["n"] or 3))
        forms = (
            "'K of M' with K below M, such as '2 of 8' or '1 of 2' (a comparison), 'rank K of M'"
        )
        last = "'odd-one-out' or 'odd-one-out of M' with M from 3"
        raise InvalidInput(f"task={text!r}: must be {forms}, {last}")

    def __str__(self) -> str:
        if self.kind != "near":
            return self.kind if self.shown == 3 else f"{self.kind} of {self.shown}"
        return f"{'rank ' if self.ranked else ''}{self.choose} of {self.shown}"

    @property
    def is_comparison(self) -> bool:
        """Whether the task is a comparison: which of two objects is nearer to the query."""
        return self.kind == "near" and self.shown == 2


@dataclass(frozen=True, eq=False, repr=False)
class Trials(Shown):
    """Choices that people made, one row each.

    Attributes
    ----------
    kind
        The task, one of ``"near"``, ``"odd-one-out"``, ``"most-central"``, ``"pairs"``.
    query
        ``(t,)`` the object that the shown ones are compared with; −1 if there is none.
    shown
        ``(t, m)`` objects, those of a shorter row followed by −1; for ``"pairs"`` two a pair.
    chosen
        ``(t, m)`` for each object shown (each pair): 0 if it was not chosen, else 1, or its
        rank 1, 2, … if the chosen were ranked.
    wanted
        ``(t,)`` how many were to be chosen, also in undecided trials; one number for all, or
        None: as many as were chosen.
    ranked
        Whether the order of the chosen counts.
    people, seconds, weights
        Of each choice the person, the duration and the weight: 2 is the same choice made twice.
    names
        The names of objects 0, 1, …; None: their numbers.

    Examples
    --------
    >>> import nearer
    >>> trials = nearer.Trials.near([0, 3], [[1, 2, 3], [0, 1, 2]], [[2], [0]], seconds=[4.1, 3.0])
    >>> len(trials), trials.n_objects, trials.task
    (2, 4, Task(kind='near', choose=1, shown=3, ranked=False))
    >>> trials.triplets()[0].tolist()
    [[0, 2, 1], [0, 2, 3], [3, 0, 1], [3, 0, 2]]
    """

    kind: str
    query: Objects
    shown: Objects
    chosen: NDArray[np.int64]
    wanted: NDArray[np.int64] = None  # type: ignore[assignment] # until it is made
    ranked: bool = False
    people: NDArray[Any] | None = None
    seconds: Floats | None = None
    names: tuple[Any, ...] | None = None
    weights: Floats | None = None

    @_READ
    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, TASKS)
        checks.flag("ranked", self.ranked)
        wanted: Any = self.wanted
        if wanted is None:
            count = (self.chosen > 0).sum(axis=1)
            usual = int(np.bincount(count[count > 0]).argmax()) if count.any() else 1
            wanted = np.where(count > 0, count, usual)
        columns = {
            "wanted": np.broadcast_to(np.asarray(wanted, dtype=np.int64), len(self.query)),
            "people": None if self.people is None else np.asarray(self.people),
            "seconds": None if self.seconds is None else np.asarray(self.seconds, np.float64),
            "weights": None if self.weights is None else np.asarray(self.weights, np.float64),
        }
        self.__dict__.update(columns)
        _check(self)

    # --- ways to make them ----------------------------------------------------------------------

    @classmethod
    @_READ
    def near(
        cls,
        query: ArrayLike,
        shown: Sequence[Sequence[int]] | ArrayLike,
        chosen: Sequence[Any] | ArrayLike,
        *,
        ranked: bool = False,
        **also: Any,
    ) -> Trials:
        """A query, the objects shown, and those chosen of them, in order if `ranked`.

        `chosen` are objects, or booleans, one for each object shown; None: undecided.
        """
        rows, places = _rows(shown, chosen, checks.flag("ranked", ranked))
        asked = np.asarray(query, dtype=np.int64)
        return cls("near", asked, rows, places, ranked=ranked, **also)

    @classmethod
    def odd_one_out(cls, shown: ArrayLike, odd: Any, **also: Any) -> Trials:
        """The objects shown, and the one that does not belong; None: undecided."""
        return cls._alone("odd-one-out", shown, odd, also)

    @classmethod
    def most_central(cls, shown: ArrayLike, central: Any, **also: Any) -> Trials:
        """The objects shown, and the one most like the others; None: undecided."""
        return cls._alone("most-central", shown, central, also)

    @classmethod
    @_READ
    def pairs(cls, shown: ArrayLike, chosen: ArrayLike, **also: Any) -> Trials:
        """Rows (a, b, c, d, …) of pairs, and which of the pairs is most alike, counted from 0."""
        rows = np.asarray(shown, dtype=np.int64)
        which = np.asarray(chosen, dtype=np.int64)
        places = (np.arange(rows.shape[1] // 2) == which[:, None]).astype(np.int64)
        return cls("pairs", np.full(len(rows), -1), rows, places, **also)

    @classmethod
    def from_triplets(cls, triplets: ArrayLike, **also: Any) -> Trials:
        """Answered comparisons, rows (head, near, far)."""
        rows: Any = checks.triplet_rows(triplets)
        if rows.dtype.kind != "i":
            rows = rows.astype(np.int64)
        # one row stands for all, so that very many triplets need no memory for it
        first = np.broadcast_to(np.array([1, 0]), (len(rows), 2))
        one = np.broadcast_to(np.int64(1), len(rows))
        return cls("near", rows[:, 0], rows[:, 1:], first, wanted=one, **also)

    @classmethod
    @_READ
    def from_screens(cls, questions: Questions, answers: Said, **also: Any) -> Trials:
        """Screens as strategies yield them, rows (query, shown…), and rows of booleans answered.

        With a query of −1 the chosen one is the odd one out. Comparisons are screens of two.
        """
        rows = np.asarray(questions, dtype=np.int64)
        said = np.ma.filled(np.ma.asarray(answers), False).astype(np.int64)
        if rows.shape[1] == 3:
            said = np.stack([said, 1 - said], axis=1)
        unsure = unsure_rows(answers)
        said[unsure] = 0
        kind = "odd-one-out" if (rows[:, 0] < 0).any() else "near"
        return cls(kind, rows[:, 0], rows[:, 1:], said, **also)

    @classmethod
    @_READ
    def joined(cls, parts: Sequence[Trials]) -> Trials:
        """Trials of one kind as one; people, seconds and weights remain if all have them."""
        first = parts[0]
        if any(
            (p.kind, p.ranked, p.names) != (first.kind, first.ranked, first.names) for p in parts
        ):
            raise InvalidInput("trials of different tasks or names cannot be joined")
        each: dict[str, Any] = {}
        for name in _EACH:
            values = [getattr(part, name) for part in parts]
            if name in ("shown", "chosen"):
                fill, most = -1 if name == "shown" else 0, max(v.shape[1] for v in values)
                values = [
                    np.pad(v, [(0, 0), (0, most - v.shape[1])], constant_values=fill)
                    for v in values
                ]
            each[name] = None if any(v is None for v in values) else np.concatenate(values)
        return replace(first, **each)

    @classmethod
    @_READ
    def _alone(cls, kind: str, shown: ArrayLike, one: Any, also: dict[str, Any]) -> Trials:
        listed = [None if x is None else [x] for x in np.asarray(one, dtype=object).tolist()]
        rows, places = _rows(shown, listed, False)
        return cls(kind, np.full(len(rows), -1), rows, places, **also)

    # --- their properties -----------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas frame, one row a trial: ``query``, ``shown``, ``chosen``, and known fields."""
        import pandas as pd  # noqa: PLC0415 - slow to import

        called = np.array([*(self.names or range(self.n_objects)), None], dtype=object)

        def named(objects: NDArray[Any]) -> list[list[Any]]:
            return [called[row[row >= 0]].tolist() for row in objects]

        columns = {"query": called[self.query], "shown": named(self.shown)}
        sides = self.shown.reshape(*self.chosen.shape, 2 if self.kind == "pairs" else 1)
        taken = np.where(self.chosen[:, :, None] > 0, sides, -1)
        columns["chosen"] = named(taken.reshape(self.shown.shape))
        for name in ("people", "seconds", "weights"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)
        return pd.DataFrame(columns)

    def _first(self) -> Any:
        return self[:10].to_frame()

    def _summary(self) -> list[str]:
        task = "several tasks" if self.task is None else f"task {self.task}"
        parts = [amount(len(self), "trial"), amount(self.n_objects, "object"), task]
        if self.people is not None:
            parts.append(amount(len(np.unique(self.people)), "person", "people"))
        return parts

    def __len__(self) -> int:
        return len(self.query)

    @property
    def n_objects(self) -> int:
        """The number of names, or one more than the largest number."""
        if self.names is not None:
            return len(self.names)
        return int(max(self.query.max(initial=-1), self.shown.max(initial=-1))) + 1

    @property
    def n_shown(self) -> NDArray[np.int64]:
        """How many objects (pairs) each trial had to choose from."""
        count = (self.shown >= 0).sum(axis=1)
        return np.asarray(count // 2 if self.kind == "pairs" else count, dtype=np.int64)

    @property
    def decided(self) -> Answers:
        """Which trials have a choice; the others are undecided."""
        return np.asarray(self.chosen.any(axis=1))

    @property
    def are_comparisons(self) -> bool:
        """Whether each asks which of two objects is nearer to the query."""
        shown = self.shown >= 0
        return self.kind == "near" and bool(shown[:, :2].all() and not shown[:, 2:].any())

    @property
    def task(self) -> Task | None:
        """The task of all trials; None if there are several."""
        sizes = np.unique(np.stack([self.wanted, self.n_shown], axis=1), axis=0)
        if len(sizes) != 1:
            return None
        return Task(self.kind, int(sizes[0, 0]), int(sizes[0, 1]), self.ranked)

    @property
    def questions(self) -> Objects:
        """Rows (query, shown…), as strategies yield them."""
        return np.column_stack([self.query, self.shown])

    def __getitem__(self, rows: Any) -> Trials:
        """Some of the trials, by a slice, numbers or booleans."""
        values = {name: getattr(self, name) for name in _EACH}
        return self.with_fields(**{k: None if v is None else v[rows] for k, v in values.items()})

    def with_fields(self, **fields: Any) -> Trials:
        """The same trials with other fields, which are not checked again."""
        other = copy.copy(self)
        other.__dict__.update(fields)
        return other

    def renumbered(self, objects: Objects) -> Trials:
        """The same trials about objects 0, 1, … instead of these, which are sorted."""
        names = None if self.names is None else tuple(self.names[i] for i in objects.tolist())
        query = np.where(self.query >= 0, np.searchsorted(objects, self.query), -1)
        shown = np.where(self.shown >= 0, np.searchsorted(objects, self.shown), -1)
        return self.with_fields(query=query, shown=shown, names=names)

    def triplets(self) -> tuple[Objects, Objects]:
        """All triplets that follow from the trials, and the trial that each comes from.

        A chosen object is nearer to the query than one that was not chosen, or was ranked after it.
        The two objects beside the odd one are nearer to each other than to it; the most central one
        is nearer to the others than they are to each other. Two pairs make a triplet if they share
        an object. Triplets of one trial are not independent, which a fit to the trials allows for.
        """
        if self.are_comparisons:
            rows, second, decided = self.questions[:, :3], self.chosen[:, 1] > 0, self.decided
            rows = answered(rows, ~second) if second.any() else rows
            return rows if decided.all() else rows[decided], np.flatnonzero(decided)
        items = self.shown.reshape(*self.chosen.shape, 2 if self.kind == "pairs" else 1)
        there = items[:, :, 0] >= 0
        if self.kind in ("near", "pairs"):
            place = np.where(self.chosen > 0, self.chosen, np.iinfo(np.int64).max)
            before = (place[:, :, None] < place[:, None, :]) & there[:, None, :]
            trial, near, far = np.nonzero(before)
            nearer, farther = items[trial, near], items[trial, far]
            if self.kind == "near":
                return np.column_stack([self.query[trial], nearer, farther]), trial
            # the object that both pairs share is the head
            same = nearer[:, :, None] == farther[:, None, :]
            share = same.sum(axis=(1, 2)) == 1
            trial, same = trial[share], same[share]
            ends = nearer[share][~same.any(axis=2)], farther[share][~same.any(axis=1)]
            return np.column_stack([nearer[share][same.any(axis=2)], *ends]), trial
        rest = (self.chosen == 0) & there & self.decided[:, None]
        two = rest[:, :, None] & rest[:, None, :] & ~np.eye(rest.shape[1], dtype=np.bool_)
        trial, one, other = np.nonzero(two)
        chosen = self.shown[trial, self.chosen[trial].argmax(axis=1)]
        columns = [self.shown[trial, one], self.shown[trial, other]]
        columns.insert(2 if self.kind == "odd-one-out" else 1, chosen)
        return np.stack(columns, axis=1), trial


def _rows(shown: Any, chosen: Any, ranked: bool) -> tuple[Objects, NDArray[np.int64]]:
    """Padded rows of the objects shown, and the rank of each among the chosen."""
    lists = [list(row) for row in shown]
    width = max(map(len, lists), default=0)
    rows = np.full((len(lists), width), -1, dtype=np.int64)
    places = np.zeros((len(lists), width), dtype=np.int64)
    picked = list(chosen)
    if len(picked) != len(lists):
        many = f"{len(picked)} choices for {len(lists)} screens"
        raise InvalidInput(f"{many}: there must be one for each")
    for t, (row, pick) in enumerate(zip(lists, picked, strict=True)):
        rows[t, : len(row)] = row
        said = [] if pick is None else np.asarray(pick).ravel().tolist()
        if said and isinstance(said[0], bool):
            said = [x for x, yes in zip(row, said, strict=True) if yes]
        for place, x in enumerate(said, start=1):
            if x not in row:
                rule = f"was chosen but not shown; shown were {row}: mend the row"
                raise InvalidInput(f"trial {t}: {x} {rule}")
            places[t, row.index(x)] = place if ranked else 1
    return rows, places


def _check(trials: Trials) -> None:
    query, shown, chosen = trials.query, trials.shown, trials.chosen
    sides = (len(shown), shown.shape[-1] // (1 + (trials.kind == "pairs")))
    if shown.ndim != 2 or query.shape != (len(shown),) or chosen.shape != sides:
        shapes = f"query of shape {query.shape}, shown {shown.shape}, chosen {chosen.shape}"
        rule = "there must be one query, one row of shown objects and one choice for each trial"
        raise InvalidInput(f"{shapes}: {rule}")
    for name in ("people", "seconds", "weights"):
        value = getattr(trials, name)
        if value is not None and value.shape != query.shape:
            rule = f"must be {query.shape}, one for each trial"
            raise InvalidInput(f"{name} of shape {value.shape}: {rule}")
    m, count, wanted = trials.n_shown, (chosen > 0).sum(axis=1), trials.wanted
    least = 2 if trials.kind in ("near", "pairs") else 3
    rows, step = (shown, 2) if trials.kind == "pairs" else (np.sort(trials.questions, axis=1), 1)
    again = ((rows[:, 1::step] == rows[:, :-1:step]) & (rows[:, 1::step] >= 0)).any(axis=1)
    for good, what in (
        (m >= least, f"at least {least} must be shown"),
        ((wanted >= 1) & (wanted < m), "at least one and not all must be chosen"),
        ((count == 0) | (count == wanted), "as many must be chosen as are wanted, or none"),
        ((query >= 0) == (trials.kind == "near"), "only the task 'near' has a query, from 0"),
        (~again, "an object occurs twice; a pair must be of two objects"),
        ((wanted == 1) | (trials.kind == "near"), f"of the task {trials.kind!r} one is chosen"),
    ):
        if not good.all():
            t = int(np.argmin(good))
            trial = f"query {query[t]}, shown {shown[t].tolist()}, {wanted[t]} of {m[t]} wanted"
            others = f"{int((~good).sum())} of {len(query)} are like it"
            raise InvalidInput(f"trial {t} ({trial}): {what}; {others}")


# --- triplets, and a report on them -------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """Counts of what was read and left out, and properties of the triplets.

    Attributes
    ----------
    rows, triplets, objects, persons, nameless
        How many: answers, triplets, objects, participants, and answers without a participant.
    duplicates, contradictions
        Triplets that repeat an earlier one, and questions answered both ways.
    disagreement
        Share of the answers to repeated questions that go against the majority, if there are any.
    degenerate, undecided, bad, excluded, others
        Lines left out: an object twice in the question; undecided; not readable; marked by the
        source as excluded or taken back; records of other pages.
    ties, untimed
        Undecided screens; lines with a time that is no number.
    never_compared, groups
        Objects in no triplet, and those that triplets connect, the largest group first. Distances
        between groups are unknown.
    times, assumed
        The unit of response times, and how it is known; assumptions, and options to change them.
    unread_columns, alike, labels, unit
        Columns that were not used; names that differ only in case, blanks or the encoding of
        letters; all names; what lines are, such as rows of a frame.
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
    times: str = ""
    untimed: tuple[int, ...] = ()
    unread_columns: tuple[str, ...] = ()
    bad: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    alike: tuple[tuple[str, ...], ...] = ()
    assumed: str = ""
    unit: str = "line"

    def __str__(self) -> str:
        people = f" from {amount(self.persons, 'participant')}" if self.persons else ""
        lines = [
            f"{amount(self.rows, 'answer')}{people}, {amount(self.triplets, 'triplet')} over "
            f"{amount(self.objects, 'object')}"
        ]
        for n, one, more, rest in (
            (self.duplicates, "triplet repeats", "triplets repeat", "an earlier one"),
            (self.contradictions, "question is", "questions are", "answered both ways"),
            (self.nameless, "answer names", "answers name", "no person, count for no participant"),
        ):
            if n:
                lines.append(f"{amount(n, one, more)} {rest}")
        if self.disagreement is not None:
            share = f"{100 * self.disagreement:.1f} %"
            lines.append(f"{share} of the answers to repeated questions are against the majority")
        for what, where in (
            ("left out, an object twice in the question", self.degenerate),
            ("left out, undecided", self.undecided),
            ("undecided, read as near ties", self.ties),
            ("left out, could not be read", self.bad),
            ("left out, marked as excluded or taken back", self.excluded),
            ("left out, other pages without an answer", self.others),
            ("times that are not numbers, treated as unknown", self.untimed),
        ):
            if where:
                unit = self.unit if len(where) == 1 else f"{self.unit}s"
                lines.append(f"{what}: {len(where):,} ({unit} {_some(where)})")
        if self.times:
            lines.append(self.times)
        if self.never_compared:
            lines.append(f"never compared: {_some([self.labels[i] for i in self.never_compared])}")
        if len(self.groups) > 1:
            sizes = [f"{len(group):,}" for group in self.groups]
            lines.append(
                f"{len(self.groups):,} groups of objects that no triplet links, of {_some(sizes)} "
                f"objects; the smallest: {_some([self.labels[i] for i in self.groups[-1]])}"
            )
        if self.unread_columns:
            lines.append(f"columns not used: {_some(self.unread_columns)}")
        return "\n".join([*lines, *self.assumptions()])

    def assumptions(self) -> list[str]:
        """Assumptions that the user should check, and names that may mean one object."""
        remarks = []
        if self.alike:
            pairs = _some([" and ".join(map(repr, names)) for names in self.alike])
            fewer = self.objects - sum(len(names) - 1 for names in self.alike)
            remarks.append(
                f"names that differ only in case, blanks or how letters are encoded: {pairs}; are "
                f"there {fewer:,} objects or {self.objects:,}?"
            )
        return [*remarks, self.assumed] if self.assumed else remarks


@dataclass(frozen=True, eq=False)
class Triplets:
    """Answered questions, as `nearer.read_triplets` returns them: a view of the trials read.

    It stands for its ``(m, 3)`` array wherever an array is expected.

    Attributes
    ----------
    trials
        The `nearer.Trials` behind the triplets; `nearer.fit` uses these.
    report
        The `Report` on the file and the triplets; print it.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> answers = Triplets.of(nearer.Trials.from_triplets([[0, 1, 2], [2, 1, 0]]))
    >>> len(answers), answers.n_objects, np.asarray(answers).shape
    (2, 3, (2, 3))
    """

    trials: Trials
    report: Report = field(repr=False)

    def __post_init__(self) -> None:
        checks.one("trials", self.trials, Trials, A_TRIALS)
        checks.one("report", self.report, Report, "a report, such as Triplets.of makes")

    @classmethod
    def of(cls, trials: Trials) -> Triplets:
        """The triplets of some trials, with a report on them."""
        checks.one("trials", trials, Trials, A_TRIALS)
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
        """The names of objects 0 … n−1, as texts."""
        return tuple(map(str, self.trials.names or range(self.n_objects)))

    @property
    def n_objects(self) -> int:
        """How many objects there are, those never compared included."""
        return self.trials.n_objects

    @property
    def weights(self) -> Floats | None:
        """The weight of each triplet, or None if all are equal."""
        return None if self.trials.weights is None else self.trials.weights[self._rows[1]]

    @property
    def people(self) -> NDArray[Any] | None:
        """The person of each answer, "" for an unknown one; None if the source has no people."""
        return None if self.trials.people is None else self.trials.people[self._rows[1]]

    @property
    def seconds(self) -> Floats | None:
        """How long each answer took, nan if unknown; None if the source has no times."""
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
    """Report on triplets; the reader of a file adds what it left out and assumed."""
    keys, mirrored = pack(triplets)
    _, question, asked = np.unique(keys, return_inverse=True, return_counts=True)
    against = np.bincount(question, weights=mirrored, minlength=len(asked)).astype(np.int64)
    minority, repeated = np.minimum(against, asked - against), asked > 1  # half of a tie
    kinds_of_answer = (against > 0).astype(np.int64) + (against < asked)
    share = float(minority.sum() / asked[repeated].sum()) if repeated.any() else None
    head, near, far = triplets.T
    links = (np.ones(2 * len(triplets), dtype=np.bool_), (np.r_[head, head], np.r_[near, far]))
    shape = (len(labels), len(labels))
    _, component = connected_components(coo_array(links, shape=shape), directed=False)
    compared = np.bincount(triplets.ravel(), minlength=len(labels)) > 0
    groups = defaultdict[int, list[int]](list)
    for i in np.flatnonzero(compared).tolist():
        groups[int(component[i])].append(i)
    alike = defaultdict[str, list[str]](list)
    for label in labels:
        text = unicodedata.normalize("NFKC", label).casefold()  # é is one character or two
        alike["".join(text.split())].append(label)
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
    return Report(
        rows=len(triplets) if rows is None else rows,
        triplets=len(triplets),
        objects=len(labels),
        persons=persons,
        duplicates=len(triplets) - int(kinds_of_answer.sum()),
        contradictions=int((minority > 0).sum()),
        disagreement=share,
        never_compared=tuple(np.flatnonzero(~compared).tolist()),
        groups=tuple(sorted(map(tuple, groups.values()), key=lambda g: (-len(g), g[0]))),
        labels=tuple(labels),
        alike=tuple(tuple(same) for same in alike.values() if len(same) > 1),
        **plain,
    )


def _some(names: Sequence[Any], most: int = 10) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
