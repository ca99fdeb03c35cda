"""Ask and tell: a strategy whose answers arrive late, out of order, from many places.

`run` holds an oracle and drives a strategy to its end. A `Session` does the opposite: it shows the
questions that are open now, takes answers in any order, and goes on when a round is complete. A
strategy cannot be pickled and need not be: its state is the same strategy, made again from its
seed, with the answers so far. A new session that is told the answers of an old one is in the same
state, wherever the old one was interrupted.

A `Batch` is the same with a journal on disk, for endpoints that take a day: `open_batch` makes the
strategy again, answers it from the journal and stops at the first round that is not complete;
`add_answers` puts answers into the journal. No process runs in between.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from nearer.asking.answers import RoundAnswers, as_answers, partly_known
from nearer.asking.journal import Call, Journal
from nearer.asking.memory import Memory
from nearer.asking.names import as_names
from nearer.asking.protocol import Strategy, Ties, forced_choice, takes_uncertain
from nearer.asking.run import open_journal
from nearer.errors import InvalidInput
from nearer.questions import Objects, Questions, unsure_rows

__all__ = ["Batch", "Session", "add_answers", "open_batch"]

T = TypeVar("T")


class Session(Generic[T]):
    """A strategy that waits for its answers.

    Parameters
    ----------
    strategy
        The algorithm, made from its seed.
    triplets
        Answers of an earlier session, rows ``(head, near, far)``; the new one goes on from there.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> session = nearer.asking.Session(nearer.rank_objects(0, 4, random_state=0))
    >>> while not session.done:
    ...     question = session.open[-1:]               # any open question, in any order
    ...     session.tell(question, oracle(question))
    >>> session.result
    array([0, 2, 1, 3])
    >>> again = nearer.asking.Session(nearer.rank_objects(0, 4, random_state=0), session.triplets)
    >>> again.done
    True
    """

    def __init__(self, strategy: Strategy[T], triplets: Questions | None = None) -> None:
        self.ties: Ties = Ties()
        self._strategy = (
            strategy if takes_uncertain(strategy) else forced_choice(strategy, self.ties)
        )
        self._memory = Memory(triplets)
        self._unsure = Memory()  # questions of this round answered "don't know"
        self._round: Questions = np.empty((0, 3), dtype=np.int64)
        self._result: list[T] = []
        self.n_rounds: int = 0
        self._advance(partial(next, self._strategy))

    @property
    def done(self) -> bool:
        """Whether the strategy has returned."""
        return bool(self._result)

    @property
    def result(self) -> T:
        """What the strategy returned."""
        if not self._result:
            raise InvalidInput(
                f"the session has {len(self.open)} open questions: tell their answers first"
            )
        return self._result[0]

    @property
    def open(self) -> Questions:
        """The questions of this round that have no answer yet."""
        return self._unsure.unknown(self._memory.unknown(self._round))

    @property
    def triplets(self) -> Objects:
        """All answers told so far, as ``(head, near, far)``."""
        return self._memory.triplets

    def tell(self, questions: Questions, answers: Any) -> None:
        """Take answers, open ones or others; the first answer to a question is kept.

        Answers that complete the round move the strategy on to its next one. Answers to questions
        that were not asked are kept too, and used if the strategy comes to need them. "Don't know"
        answers a question for this round; a strategy that needs to know puts it again.
        """
        questions = np.asarray(questions)
        if questions.ndim != 2 or questions.shape[1] < 3:
            raise InvalidInput(
                f"questions of shape {questions.shape}: tell (m, 3) questions with (m,) booleans"
            )
        answers = as_answers(answers, questions)
        unsure = unsure_rows(answers)
        self._memory.add(questions, answers)
        self._unsure.add(questions[unsure], np.zeros_like(np.asarray(answers)[unsure]))
        self._settle()

    def _settle(self) -> None:
        while not self._result and not len(self.open):
            answers, known = self._memory.recall(self._round)
            self._unsure = Memory()
            self._advance(partial(self._strategy.send, partly_known(answers, known)))

    def _advance(self, step: Callable[[], Questions]) -> None:
        try:
            self._round = step()
            self.n_rounds += 1
        except StopIteration as stop:
            self._round = self._round[:0]
            self._result.append(stop.value)
            return
        self._settle()


@dataclass(frozen=True)
class Batch(Generic[T]):
    """The questions that are open now; none if the run is complete.

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
    """The open questions of the first round that is not complete in the journal."""
    names = None if objects is None else as_names(list(objects))[1]
    with open_journal(strategy, journal, names, dict(about or {})) as (made, book):
        assert book is not None
        inner = made if takes_uncertain(made) else forced_choice(made, Ties())
        number = 0
        try:
            questions = next(inner)
            while True:
                answers = RoundAnswers(questions)
                answers.fill(*book.known(number, questions))
                if not answers.known.all():
                    missing = np.flatnonzero(~answers.known)
                    return Batch(number, missing, questions[missing])
                number += 1
                questions = inner.send(answers.first())
        except StopIteration as done:
            none = np.empty(0, dtype=np.int64)
            return Batch(number, none, none.reshape(0, 3), done.value)


def add_answers(
    journal: str | os.PathLike[str], batch: Batch[Any], answers: dict[int, Any], cost: float = 0.0
) -> None:
    """Put answers to questions of a batch into the journal, by their row."""
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
    said = as_answers(list(answers.values()), questions)
    with closing(Journal(journal, {})) as book:
        book.write(batch.number, [Call(batch.rows[chosen], questions, said, cost=cost)])
