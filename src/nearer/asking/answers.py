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
from nearer.questions import Answers, Questions, Said

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

    def fill(self, rows: Questions, answers: Said) -> None:
        """Put in the answers of these rows."""
        if not len(rows):
            return
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
