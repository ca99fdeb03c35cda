"""Answers in the one form that is used inside, records of them, and the order of options.

One answer for each comparison, or one row of them for each screen. Certain answers are plain
booleans. "Don't know" (None, NaN, `nearer.UNSURE`, masked) is masked; a number from 0 to 1 is a
graded answer, how much speaks for a.

`OptionOrder` draws which of two objects a judge is shown first, and `turned` gives the answer about
a whichever was first: no other module swaps options.

A `Record` holds what was asked and answered in order, with what it cost; a `Memory` holds it as
facts to look up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import InvalidInput, OracleError
from nearer.questions import (
    Answers,
    Floats,
    Objects,
    Questions,
    Said,
    answered,
    find,
    pack,
    unpack,
    unsure_rows,
    weighted,
)

__all__ = [
    "Memory",
    "OptionOrder",
    "PricedAnswers",
    "Record",
    "RoundAnswers",
    "Shown",
    "as_answers",
    "no_answers",
    "partly_known",
    "put",
    "turned",
]


class PricedAnswers(list[Any]):
    """Answers of one call, with what they cost and who gave them.

    An oracle may return this instead of a list.

    Parameters
    ----------
    answers
        One for each question of the call.
    cost
        What the call has cost; None if that is not known.
    by
        The judge of each answer; a dictionary of votes by judge where several voted on a
        question. None where there is only one judge.

    Examples
    --------
    >>> reply = PricedAnswers([True, None], cost=0.002)
    >>> list(reply), reply.cost
    ([True, None], 0.002)
    """

    def __init__(
        self, answers: Iterable[Any], *, cost: float | None = None, by: list[Any] | None = None
    ) -> None:
        super().__init__(answers)
        self.cost = cost
        self.by = by


class RoundAnswers:
    """The answers of one round, by row, as they arrive."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.known = np.zeros(len(questions), dtype=np.bool_)
        self._values: Said | None = None

    def fill(self, rows: Questions, answers: Said) -> None:
        """Put in the answers of these rows."""
        if not len(rows):
            return
        self.known[rows] = True
        if len(rows) == len(self.known) and (np.diff(rows) == 1).all():
            self._values = answers
            return
        if self._values is None:
            self._values = np.full((len(self.known), *answers.shape[1:]), np.nan)
        self._values[rows] = np.ma.filled(np.ma.asarray(answers).astype(np.float64), np.nan)

    def open_rows(self) -> tuple[Objects, Questions]:
        """The rows that have no answer yet, and their questions."""
        rows = np.flatnonzero(~self.known)
        return rows, self.questions if len(rows) == len(self.known) else self.questions[rows]

    def first(self, count: int | None = None) -> Said:
        """The answers of the first `count` rows, in the form used inside."""
        if self._values is None:
            return no_answers(self.questions)
        return as_answers(self._values[:count], self.questions[:count])


def no_answers(questions: Questions) -> Answers:
    """Answers to none of these questions."""
    width = questions.shape[1]
    return np.empty(0 if width == 3 else (0, width - 1), dtype=np.bool_)


def put(questions: Questions, oracle: Any) -> Said:
    """Put questions to an oracle and insist on one answer for each."""
    return as_answers(oracle(questions), questions)


def as_answers(said: Any, questions: Questions) -> Said:
    """What an oracle said, in the form used inside.

    Examples
    --------
    >>> import numpy as np
    >>> as_answers([True, None], np.array([[0, 1, 2], [0, 2, 3]]))
    masked_array(data=[True, --],
                 mask=[False,  True],
           fill_value=True)
    """
    array: Said = _as_array(said, questions)
    if array.dtype == np.bool_ and not isinstance(said, np.ma.MaskedArray):
        return array
    if array.dtype.kind not in "bfO":
        example = array.ravel()[0].item() if array.size else None
        raise OracleError(
            f"answers are {array.dtype} ({example!r}, …): they must be booleans, True where a is "
            "nearer; None for don't know; or numbers with a point from 0.0 to 1.0, how much speaks "
            "for a. Convert 0 and 1 with .astype(bool)"
        )
    if array.dtype == object:
        array = np.array([_as_number(x) for x in array.ravel()]).reshape(array.shape)
    p = array.astype(np.float64)
    unsure = np.ma.getmaskarray(said) if isinstance(said, np.ma.MaskedArray) else np.False_
    unsure = unsure | np.isnan(p)
    p[unsure] = 0.5
    if ((p < 0) | (p > 1)).any():
        raise OracleError(
            f"an answer is {p[(p < 0) | (p > 1)][0]}: a graded answer must be from 0.0 to 1.0, how "
            "much speaks for a"
        )
    certain = ((p == 0) | (p == 1) | unsure).all()
    data = p > 0 if certain else p
    return np.ma.MaskedArray(data, mask=unsure) if unsure.any() else data


def partly_known(answers: Said, known: Answers) -> Said:
    """Answers with those that are not known masked."""
    if known.all():
        return answers
    mask = ~known if answers.ndim == 1 else np.repeat(~known[:, None], answers.shape[1], axis=1)
    return np.ma.MaskedArray(answers, mask=mask)


def _as_array(said: Any, questions: Questions) -> Said:
    """One element for each comparison, one row for each screen; None stands for a whole row."""
    m, width = questions.shape
    shape = (m,) if width == 3 else (m, width - 1)
    if width > 3 and isinstance(said, Sequence) and any(row is None for row in said):
        said = [[None] * (width - 1) if row is None else list(row) for row in said]
    try:
        array = np.asarray(said)
    except ValueError:  # rows of different lengths
        array = np.array([*said, None], dtype=object)[:-1]
    if array.ndim == 0:  # most often a forgotten `return`
        raise OracleError(
            f"the oracle returned {said!r:.80} for {m} questions: it must return one answer for "
            f"each, a list or an array of shape {shape}"
        )
    if array.shape != shape:
        raise OracleError(
            f"answers of shape {array.shape} for {m} questions: there must be one answer for each, "
            f"an array of shape {shape}"
        )
    return array


def _as_number(answer: Any) -> float:
    """One answer as a number, NaN for don't know."""
    if answer is None or answer is np.ma.masked:
        return np.nan
    if isinstance(answer, bool | np.bool_ | float | np.floating):
        return float(answer)
    raise OracleError(
        f"an answer is {answer!r}: answers must be booleans, None for don't know, or numbers "
        "with a point from 0.0 to 1.0"
    )


def turned(answers: Said, swapped: Answers) -> Said:
    """Answers to questions ``(head, a, b)`` from those to ``(head, b, a)`` where swapped.

    Examples
    --------
    >>> turned(np.array([True, True]), np.array([True, False]))
    array([False,  True])
    >>> turned(np.array([0.25, 0.5]), np.array([True, False]))
    array([0.75, 0.5 ])
    """
    if answers.dtype == np.bool_:
        return answers ^ swapped
    return np.asanyarray(np.abs(answers - swapped))


@dataclass(frozen=True)
class Shown:
    """A question as it is shown: a and b are exchanged if `swapped`."""

    head: Any
    first: Any
    second: Any
    swapped: bool

    def answer(self, first: float) -> float | bool:
        """The answer about a, from how much speaks for the option shown first."""
        about_a = float(turned(np.array([float(first)]), np.array([self.swapped]))[0])
        return bool(about_a) if about_a in (0.0, 1.0) else about_a


class OptionOrder:
    """Draws which object of each question is shown first.

    A judge that prefers one position then adds noise and no bias.

    Parameters
    ----------
    order
        ``"random"``: which object is first is drawn each time a question is asked.
        ``"fixed"``: a is first.
    seed
        Of the draw.
    """

    def __init__(self, order: Literal["random", "fixed"] = "random", seed: int = 0) -> None:
        self.order = checks.one_of("order", order, ("random", "fixed"))
        self._seed = seed
        self._times: dict[str, int] = {}

    def show(self, question: Sequence[Any]) -> Shown:
        """A question with its two options in the order drawn for it."""
        if len(question) != 3:
            raise InvalidInput(
                f"a question of {len(question)} objects: this judge is asked about a head and two "
                "others"
            )
        head, a, b = question
        if self.order == "fixed":
            return Shown(head, a, b, False)
        key = repr((str(head), *sorted((str(a), str(b)))))
        times = self._times[key] = self._times.get(key, -1) + 1
        drawn = hashlib.blake2b(f"{self._seed} {times} {key}".encode(), digest_size=1).digest()[0]
        swapped = bool(drawn & 1) ^ (str(a) > str(b))
        return Shown(head, b, a, True) if swapped else Shown(head, a, b, False)


# --- records -------------------------------------------------------------------------------------


class Record:
    """Every answer of a run as triplets, and the two costs: comparisons (rows) and rounds.

    Parameters
    ----------
    keep
        False: the costs only. Triplets take 12 bytes each while they are collected, and 24 in the
        end.

    Examples
    --------
    >>> import nearer
    >>> record = nearer.asking.Record()
    >>> ranking = nearer.asking.recorded(nearer.rank_objects(0, 4), record)
    >>> _ = nearer.run(ranking, nearer.PointOracle([[0.0], [3.0], [1.0], [7.0]]))
    >>> record.n_comparisons == len(record.triplets)
    True
    """

    def __init__(self, *, keep: bool = True) -> None:
        self._keep = keep
        self._rounds: list[NDArray[np.int32]] = []
        self._weights: list[Floats] = []  # empty while all answers are certain
        self.n_comparisons: int = 0
        self.n_rounds: int = 0
        self.n_unsure: int = 0
        self.n_told: int = 0  # answers that take a side: neither "don't know" nor one half

    def add(self, questions: Questions, answers: Said) -> None:
        """Note one answered round; an empty one costs nothing and is not kept."""
        if not len(questions):
            return
        self.n_comparisons += len(questions)
        self.n_rounds += 1
        n_unsure = len(unsure_rows(answers))
        self.n_unsure += n_unsure
        certain = answers.dtype == np.bool_
        halves = 0 if certain else int(np.count_nonzero(np.ma.filled(answers == 0.5, False)))
        self.n_told += len(questions) - n_unsure - halves
        if not self._keep:
            return
        uncertain = isinstance(answers, np.ma.MaskedArray) or not certain
        if uncertain and not self._weights:
            self._weights = [np.ones(len(rows)) for rows in self._rounds]
        if self._weights or uncertain:
            rows, weights = weighted(questions, answers)
            self._weights.append(weights)
        else:
            rows = answered(questions, answers)
        self._rounds.append(rows.astype(np.int32))

    @property
    def triplets(self) -> Objects:
        """All answers so far as ``(head, near, far)``, in the order in which they came."""
        rows, weights = self._all()
        return (rows if weights is None else rows[weights > 0.5]).astype(np.int64)

    @property
    def weighted(self) -> tuple[Objects, Floats | None]:
        """The same with weights where answers were uncertain, see `nearer.questions.weighted`."""
        rows, weights = self._all()
        return rows.astype(np.int64), weights

    def _all(self) -> tuple[NDArray[np.int32], Floats | None]:
        if len(self._rounds) != 1:
            self._rounds = [np.concatenate([np.empty((0, 3), dtype=np.int32), *self._rounds])]
            self._weights = [np.concatenate(self._weights)] if self._weights else []
        return self._rounds[0], self._weights[0] if self._weights else None


class Memory:
    """A set of answered questions, for `run(..., memory=)`: what need not be asked again.

    A comparison and its mirror image, ``(head, a, b)`` and ``(head, b, a)``, are one fact. Facts
    are kept as sorted keys (`nearer.questions.pack`) with their answers, 12 bytes a fact; screens
    by the query and the set of objects shown. "Don't know" is no fact: it is not kept, and the
    question may be asked again.

    Examples
    --------
    >>> import numpy as np
    >>> memory = Memory(np.array([[0, 1, 2]]))          # 1 is nearer to 0 than 2 is
    >>> answers, known = memory.recall(np.array([[0, 2, 1], [0, 1, 3]]))
    >>> answers, known
    (array([False, False]), array([ True, False]))
    """

    def __init__(self, triplets: Questions | None = None) -> None:
        self._keys: Objects = np.empty(0, dtype=np.int64)
        self._values: NDArray[np.float32] = np.empty(0, dtype=np.float32)
        self._screens: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        if triplets is not None:
            self.add(triplets, np.ones(len(triplets), dtype=np.bool_))

    def __len__(self) -> int:
        return len(self._keys) + len(self._screens)

    def add(self, questions: Questions, answers: Said) -> None:
        """Remember answers; of several to one question the first is kept."""
        unsure = unsure_rows(answers)
        questions, answers = np.delete(questions, unsure, 0), np.delete(answers, unsure, 0)
        if np.shape(questions)[1] > 3:
            keys, order = _screen_keys(questions)
            for name, row in zip(keys, np.take_along_axis(answers, order, axis=1), strict=True):
                self._screens.setdefault(name, np.asarray(row))
            return
        key, mirrored = pack(questions)
        key, first = np.unique(key, return_index=True)
        values = turned(np.asarray(answers, dtype=np.float32)[first], mirrored[first])
        new = ~find(self._keys, key)[1]
        place = np.searchsorted(self._keys, key[new])
        self._keys = np.insert(self._keys, place, key[new])
        self._values = np.insert(self._values, place, values[new])

    def recall(self, questions: Questions) -> tuple[Said, Answers]:
        """Answers to questions (False where there is none), and which of them are known."""
        if np.shape(questions)[1] > 3:
            keys, order = _screen_keys(questions)
            answers = np.zeros(order.shape, dtype=np.bool_)
            known = np.array([key in self._screens for key in keys], dtype=np.bool_)
            for row in np.flatnonzero(known):
                answers[row, order[row]] = self._screens[keys[row]]
            return answers, known
        key, mirrored = pack(questions)
        place, known = find(self._keys, key)
        values = np.zeros(len(key), dtype=np.float32)
        values[known] = turned(self._values[place[known]], mirrored[known])
        plain = values == 1
        return (values if ((values > 0) & ~plain).any() else plain), known

    def unknown(self, questions: Questions) -> Questions:
        """The questions to which no answer is known, each once, in their order."""
        rows = np.flatnonzero(~self.recall(questions)[1])
        if np.shape(questions)[1] > 3:
            keys = np.array(_screen_keys(questions)[0])[rows]
        else:
            keys = pack(questions)[0][rows]
        earliest = np.unique(keys, axis=0, return_index=True)[1]
        return questions[rows[np.sort(earliest)]]

    @property
    def triplets(self) -> Objects:
        """Everything known, as rows ``(head, near, far)``."""
        parts = [answered(unpack(self._keys), self._values)]
        for key, chosen in self._screens.items():
            parts.append(answered(np.array([key]), chosen[None]))
        return np.concatenate(parts)


def _screen_keys(questions: Questions) -> tuple[list[tuple[int, ...]], Objects]:
    """For each screen its query and shown objects in ascending order, and that order."""
    shown = np.asarray(questions)[:, 1:]
    order = np.argsort(shown, axis=1, kind="stable")
    rows = np.column_stack([np.asarray(questions)[:, 0], np.take_along_axis(shown, order, axis=1)])
    return [tuple(row) for row in rows.tolist()], order
