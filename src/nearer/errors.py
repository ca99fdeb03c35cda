"""The errors and warnings of the package, one type for each situation.

Every message shows the value, the rule and the remedy. The command line turns any
`NearerError` into one line and exit code 2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# control characters except tab and line feed, and lone surrogates
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    """A text with its control characters written out."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


class NearerError(Exception):
    """An error that the user can understand and fix; its text can be printed anywhere."""

    def __str__(self) -> str:
        """The message, shortened if it names a value of very many letters."""
        text = visible(super().__str__())
        return text if len(text) <= 1000 else f"{text[:500]} … {text[-500:]}"


class InvalidInput(NearerError, ValueError):
    """An argument, an array or a file that breaks a stated rule."""


class BadRow(InvalidInput):
    """Rows of a file that cannot be read; the others may be good."""

    def __init__(self, message: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = rows


class DroppedRows(UserWarning):
    """Rows of a file hold no answer and were left out; the report lists them."""


class OracleError(NearerError, ValueError):
    """An oracle answered in a form that is not one boolean a question."""


class WorkerDied(NearerError, RuntimeError):
    """One of several processes that share a fit has died; the message names it."""


class JournalError(NearerError, OSError):
    """A journal that cannot be read or written; its answers are not lost."""


class JudgeError(NearerError, ConnectionError):
    """A remote judge cannot be reached, refuses, or needs a key that is missing."""


class MissingAnswer(NearerError, LookupError):
    """A recorded oracle was asked a question that it has no answer to."""


class MissingData(NearerError, FileNotFoundError):
    """The files of a data set are missing."""


class ContradictoryAnswers(NearerError, ValueError):
    """The same question has two different answers where only one is allowed."""


class BudgetSpent(NearerError):
    """No more questions may be asked.

    It is thrown *into* a strategy at the `yield` whose round no longer fits, so that the
    algorithm can return its best result so far; if it is not caught, it reaches the caller.

    Attributes
    ----------
    budget
        How many comparisons were allowed, or the words for another limit, such as ``max_cost=5``.
    answers
        Answers to the first questions of the round that was cut, in order; may be empty.
    """

    def __init__(self, budget: int | str, answers: Any) -> None:
        limit = f"budget={budget}" if isinstance(budget, int) else budget
        super().__init__(
            f"{limit}: it is spent before the algorithm had a result; allow more of it"
        )
        self.budget = budget
        self.answers = answers


class AnswersWarning(UserWarning):
    """Answers contradict each other, leave an object out, or have no clear form."""
