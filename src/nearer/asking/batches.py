"""A run that waits: the questions that are open now, and answers that come a day later.

The journal is the state. `open_batch` makes the strategy again, answers it from the journal as far
as that goes, and stops at the first round that is not complete; `add_answers` puts answers there by
their place. Between the two nothing runs, so a batch endpoint may take as long as it likes. It is
what `nearer.asking.Session` does, by place in the run in the stead of by question.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from nearer.asking.answers import as_answers
from nearer.asking.journal import Journal, JournalRow
from nearer.asking.names import Names, as_names
from nearer.asking.protocol import Strategy, Ties, forced_choice, takes_uncertain
from nearer.asking.rounds import Sheet
from nearer.asking.run import begun
from nearer.errors import InvalidInput
from nearer.questions import Objects, Questions

__all__ = ["Batch", "add_answers", "open_batch"]

T = TypeVar("T")


@dataclass(frozen=True)
class Batch(Generic[T]):
    """The questions that are open now; none where the run is complete.

    Attributes
    ----------
    number
        The round they belong to.
    rows, questions
        Their rows in it, and what they are.
    result
        What the strategy returned; None while questions are open.
    """

    number: int
    rows: Objects
    questions: Questions
    result: T | None = None


def open_batch(
    strategy: Strategy[T],
    journal: str | os.PathLike[str],
    objects: Sequence[Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Batch[T]:
    """The open questions of the first round that the journal does not know the whole of."""
    names: Names | None = None if objects is None else as_names(list(objects))[1]
    with begun(strategy, journal, names, dict(about or {})) as (made, book):
        assert book is not None
        inner = made if takes_uncertain(made) else forced_choice(made, Ties())
        number = 0
        try:
            questions = next(inner)
            while True:
                sheet = Sheet(questions)
                rows, answers = book.known(number, questions)
                if len(rows):
                    sheet.fill(rows, answers)
                if not sheet.have.all():
                    missing = np.flatnonzero(~sheet.have)
                    return Batch(number, missing, questions[missing])
                number += 1
                questions = inner.send(sheet.first())
        except StopIteration as done:
            none = np.empty(0, dtype=np.int64)
            return Batch(number, none, none.reshape(0, 3), done.value)


def add_answers(
    journal: str | os.PathLike[str], batch: Batch[Any], answers: dict[int, Any], cost: float = 0.0
) -> None:
    """Put answers to questions of a batch in the journal, by their row."""
    place = {int(row): i for i, row in enumerate(batch.rows)}
    foreign = sorted(set(answers) - set(place))
    if foreign:
        raise InvalidInput(
            f"row {foreign[0]} of round {batch.number} is not open: answers must be to questions "
            "of the batch that was asked for last"
        )
    if not answers:
        return
    chosen = np.array([place[row] for row in answers], dtype=np.int64)
    questions = batch.questions[chosen]
    entry = JournalRow(
        batch.rows[chosen], questions, as_answers(list(answers.values()), questions), cost=cost
    )
    with closing(Journal(Path(journal), {})) as book:
        book.write(batch.number, [entry])
