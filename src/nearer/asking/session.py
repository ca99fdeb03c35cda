"""Ask and tell: a strategy whose answers arrive late, out of order, from many places.

`run` holds an oracle and drives a strategy to its end. A `Session` turns that inside out: it shows
the questions that are open now, takes answers in any order, and moves on when a round is complete.
A strategy cannot be pickled and need not be: the same strategy, made anew from its seed, together
with the answers so far, is the state. Telling a new session the log of an old one rebuilds it
exactly, at any cut.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from nearer.asking.answers import as_answers, partly_known
from nearer.asking.memory import Memory
from nearer.asking.protocol import Strategy, Ties, forced_choice, takes_uncertain
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
        self._shrugs = Memory()  # questions of this round that nobody could answer
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
        """The questions of this round that nobody has answered yet."""
        return self._shrugs.unknown(self._memory.unknown(self._round))

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
        self._shrugs.add(questions[unsure], np.zeros_like(np.asarray(answers)[unsure]))
        self._settle()

    def _settle(self) -> None:
        while not self._result and not len(self.open):
            answers, known = self._memory.recall(self._round)
            self._shrugs = Memory()
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
