"""Ask and tell: a strategy whose answers arrive late, out of order, from many places.

`run` holds an oracle and drives a strategy to its end. A `Session` does the opposite: it shows the
questions that are open now, takes answers in any order, and goes on when a round is complete. A
strategy cannot be pickled and need not be: its state is the same strategy, made again from its
seed, with the answers so far. A new session that is told the answers of an old one is in the same
state, wherever the old one was interrupted.

With a journal, answers are kept as they are told, and no process needs to run in between: that is
how endpoints are asked that take a day.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from nearer.asking.journal import Call, Journal
from nearer.asking.oracles import Memory
from nearer.asking.protocol import (
    RoundAnswers,
    Strategy,
    Ties,
    as_answers,
    forced_choice,
    partly_known,
    takes_uncertain,
)
from nearer.errors import InvalidInput
from nearer.questions import Objects, Questions, unsure_rows

__all__ = ["Session"]

T = TypeVar("T")


class Session(Generic[T]):
    """A strategy that waits for its answers.

    Parameters
    ----------
    strategy
        The algorithm, made from its seed.
    triplets
        Answers of an earlier session, rows ``(head, near, far)``; the new one goes on from there.
    journal
        A journal that `nearer.asking.run.open_journal` has opened for the strategy.

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

    def __init__(
        self,
        strategy: Strategy[T],
        triplets: Questions | None = None,
        *,
        journal: Journal | None = None,
    ) -> None:
        self.ties: Ties = Ties()
        self._strategy = (
            strategy if takes_uncertain(strategy) else forced_choice(strategy, self.ties)
        )
        self._memory = Memory(triplets)
        self._journal = journal
        self._sheet = RoundAnswers(np.empty((0, 3), dtype=np.int64))
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
        return Memory().unknown(self._sheet.open_rows()[1])

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
        rows = unsure_rows(answers)
        unsure = Memory()  # questions answered by "don't know"; the side noted here means nothing
        unsure.add(questions[rows], np.zeros_like(np.ma.getdata(answers)[rows]))
        self._memory.add(questions, answers)
        self._fill(unsure)
        if not self._result and self._sheet.known.all():
            self._advance(partial(self._strategy.send, self._sheet.first()))

    def _fill(self, unsure: Memory) -> None:
        """Answer the open questions of the round that are known, or known to be uncertain."""
        rows, asked = self._sheet.open_rows()
        if not len(rows):
            return
        answers, known = self._memory.recall(asked)
        settled = known | unsure.recall(asked)[1]
        if not settled.any():
            return
        said = as_answers(partly_known(answers, known)[settled], asked[settled])
        self._sheet.fill(rows[settled], said)
        if self._journal is not None:
            self._journal.write(self.n_rounds - 1, [Call(rows[settled], asked[settled], said)])

    def _advance(self, step: Callable[[], Questions]) -> None:
        """Go on to the next round that is not complete."""
        while True:
            try:
                self._sheet = RoundAnswers(step())
            except StopIteration as stop:
                self._sheet = RoundAnswers(self._sheet.questions[:0])
                self._result.append(stop.value)
                return
            if self._journal is not None:
                rows, answers = self._journal.known(self.n_rounds, self._sheet.questions)
                self._sheet.fill(rows, answers)
            self.n_rounds += 1
            self._fill(Memory())
            if not self._sheet.known.all():
                return
            step = partial(self._strategy.send, self._sheet.first())
