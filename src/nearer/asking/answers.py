"""Answers in the one form that is used inside, and the order in which options are shown.

One answer for each comparison, or one row of them for each screen. Certain answers are plain
booleans. "Don't know" (None, NaN, `nearer.UNSURE`, masked) is masked; a number from 0 to 1 is a
graded answer, how much speaks for a.

`OptionOrder` draws which of two objects a judge is shown first, and `turned` gives the answer about
a whichever was first: no other module swaps options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nearer import checks
from nearer.errors import InvalidInput, OracleError
from nearer.questions import Answers, Objects, Questions, Said

__all__ = [
    "OptionOrder",
    "PricedAnswers",
    "RoundAnswers",
    "Shown",
    "as_answers",
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
        width = questions.shape[1]
        self._values = np.full((len(questions), width - 1)[: 1 + (width > 3)], np.nan)
        self.known = np.zeros(len(questions), dtype=np.bool_)

    def fill(self, rows: Objects, answers: Said) -> None:
        """Put in the answers of these rows."""
        self._values[rows] = np.ma.filled(np.ma.asarray(answers).astype(np.float64), np.nan)
        self.known[rows] = True

    def first(self, count: int | None = None) -> Said:
        """The answers of the first `count` rows, in the form used inside."""
        return as_answers(self._values[:count], self.questions[:count])


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
    width = questions.shape[1]
    shape = (len(questions),) if width == 3 else (len(questions), width - 1)
    answers = said if isinstance(said, np.ma.MaskedArray) else _as_array(said)
    if answers.shape != shape and answers.size:
        answers = _rows_of_none(said, shape)
    if answers.shape != shape:
        if answers.ndim == 0:  # most often a forgotten `return`
            raise OracleError(
                f"the oracle returned {said!r:.80} for {len(questions)} questions: it must return "
                f"one answer for each, a list or an array of shape {shape}"
            )
        raise OracleError(
            f"answers of shape {answers.shape} for {len(questions)} questions: there must be one "
            f"answer for each, an array of shape {shape}"
        )
    if answers.dtype == object:
        answers = _from_objects(answers)
    if answers.dtype.kind == "f":
        answers = _graded(answers)
    if answers.dtype != np.bool_ and answers.dtype.kind != "f":
        example = answers.ravel()[0].item() if answers.size else None
        raise OracleError(
            f"answers are {answers.dtype} ({example!r}, …): they must be booleans, True where a is "
            "nearer; None for don't know; or numbers with a point from 0.0 to 1.0, how much speaks "
            "for a. Convert 0 and 1 with .astype(bool)"
        )
    if isinstance(answers, np.ma.MaskedArray) and not np.ma.getmaskarray(answers).any():
        return np.asarray(answers.data)
    return answers


def partly_known(answers: Said, known: Answers) -> Said:
    """Answers with those that are not known masked."""
    if known.all():
        return answers
    mask = ~known if answers.ndim == 1 else np.repeat(~known[:, None], answers.shape[1], axis=1)
    return np.ma.MaskedArray(answers, mask=mask)


def _as_array(said: Any) -> Any:
    try:
        return np.asarray(said)
    except ValueError:  # rows of different lengths, None among them
        return np.array([None, *said], dtype=object)[1:]


def _rows_of_none(said: Any, shape: tuple[int, ...]) -> Any:
    """Screens where "don't know" stands for a whole row."""
    if len(shape) < 2 or not np.iterable(said) or len(rows := list(said)) != shape[0]:
        return _as_array(said)
    return np.array([[None] * shape[1] if row is None else list(row) for row in rows], dtype=object)


def _from_objects(answers: Any) -> Any:
    """Booleans, numbers and None, mixed."""
    data = np.asarray(answers)
    flat = data.ravel()
    unsure = np.array([x is None or x is np.ma.masked or _is_nan(x) for x in flat], dtype=np.bool_)
    values = [0.5 if gone else x for x, gone in zip(flat, unsure, strict=True)]
    known = [x for x, gone in zip(flat, unsure, strict=True) if not gone]
    for x in known:
        if not isinstance(x, bool | np.bool_ | float | np.floating):
            raise OracleError(
                f"an answer is {x!r}: answers must be booleans, None for don't know, or numbers "
                "with a point from 0.0 to 1.0"
            )
    kind = np.bool_ if all(isinstance(x, bool | np.bool_) for x in known) else np.float64
    mask = unsure.reshape(data.shape)
    if isinstance(answers, np.ma.MaskedArray):
        mask = mask | np.ma.getmaskarray(answers)
    return np.ma.MaskedArray(np.array(values).astype(kind).reshape(data.shape), mask=mask)


def _is_nan(x: Any) -> bool:
    return isinstance(x, float | np.floating) and bool(np.isnan(x))


def _graded(answers: Any) -> Any:
    """Numbers from 0 to 1; NaN is "don't know"; where all are certain, booleans."""
    mask = np.ma.getmaskarray(answers) | np.isnan(np.ma.getdata(answers))
    p = np.where(mask, 0.5, np.ma.getdata(answers)).astype(np.float64)
    if ((p < 0) | (p > 1)).any():
        worst = p[(p < 0) | (p > 1)].ravel()[0]
        raise OracleError(
            f"an answer is {worst}: a graded answer must be from 0.0 to 1.0, how much speaks for a"
        )
    certain = ((p == 0) | (p == 1) | mask).all()
    data = (p == 1) if certain else p
    return np.ma.MaskedArray(data, mask=mask) if mask.any() else data


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
