"""One round after the other, each in blocks, many at once, every answer noted as it comes.

A round is cut into blocks of questions; so many blocks are under way as the crew allows. Whatever
has come is written to the journal before another block goes out. A block whose call failed in a way
that the caller has named goes out again, after a pause that doubles each time. The answers of a
round are put together by row, so neither the order in which they come nor the size of the blocks
changes what the algorithm sees.

*Ends.* A call that fails for good stops the sending; what is under way has been paid for, so it is
waited for and kept before the failure is raised. Out of money, the same, and the algorithm is
thrown `BudgetSpent` with the answers to the first part of its round. Ctrl-C waits for nobody: what
has come is kept, the rest is given up.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures import CancelledError as GivenUp
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearer.asking.answers import as_answers
from nearer.asking.costs import Costs
from nearer.asking.journal import Journal, JournalRow
from nearer.asking.names import Names
from nearer.asking.workers import Crew, Here
from nearer.errors import BudgetSpent, InvalidInput
from nearer.questions import Objects, Questions, Said, unsure_rows

__all__ = ["Patience", "Rounds", "Sheet"]

_PAUSE = 1.0  # seconds before the first retry


@dataclass(frozen=True)
class Patience:
    """How long a call may take, and what is tried again.

    Attributes
    ----------
    retry
        Exceptions after which a call is made again; a time-out counts as `TimeoutError` and is
        always among them.
    retries
        How often, for one block.
    pause
        Seconds before the first retry; each further pause is twice as long. A random part keeps
        calls that failed together from coming back together.
    timeout
        Seconds that one call may take; None: for ever.
    """

    retry: tuple[type[BaseException], ...] = ()
    retries: int = 5
    pause: float = _PAUSE
    timeout: float | None = None

    def __post_init__(self) -> None:
        kinds = self.retry if isinstance(self.retry, tuple) else (self.retry,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise InvalidInput(
                f"retry={self.retry!r}: must be exceptions, such as (ConnectionError, TimeoutError)"
            )
        if not (isinstance(self.pause, int | float) and self.pause >= 0):
            raise InvalidInput(f"pause={self.pause!r}: must be a number of seconds from 0")
        timed = () if self.timeout is None else (TimeoutError,)
        object.__setattr__(self, "retry", (*kinds, *timed))

    def pause_after(self, tries: int) -> float:
        """How long to wait after so many tries."""
        return float(self.pause * 2 ** (tries - 1) * random.uniform(0.5, 1.5))


@dataclass
class _Block:
    """Questions that go out together."""

    rows: Objects
    price: float | None = None
    cost: float = 0.0  # of all tries
    tries: int = 0
    due: float = 0.0  # not before
    deadline: float = np.inf


class Sheet:
    """The answers of a round, filled in as they come."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        width = questions.shape[1]
        shape = (len(questions),) if width == 3 else (len(questions), width - 1)
        self._values = np.full(shape, np.nan)
        self.have = np.zeros(len(questions), dtype=np.bool_)

    def fill(self, rows: Objects, answers: Said) -> None:
        """Take in the answers of these rows."""
        self._values[rows] = np.ma.filled(np.ma.asarray(answers).astype(np.float64), np.nan)
        self.have[rows] = True

    def first(self, count: int | None = None) -> Said:
        """The answers of the first so many rows, in the form used inside."""
        return as_answers(self._values[:count], self.questions[:count])


class Rounds:
    """Puts the rounds of a run to an oracle.

    Parameters
    ----------
    crew
        Who carries questions to the oracle.
    names
        What the oracle calls the objects; None: by their numbers.
    block_size
        How many questions go out together; None: the whole round.
    journal, costs, patience, progress
        What is kept, spent, borne and shown.
    """

    def __init__(
        self,
        crew: Crew,
        *,
        names: Names | None,
        block_size: int | None,
        journal: Journal | None,
        costs: Costs,
        patience: Patience,
        progress: Callable[..., object] | None,
    ) -> None:
        self._crew, self._names, self._block_size = crew, names, block_size
        self._journal, self._costs, self._patience = journal, costs, patience
        self._progress = progress
        self.n_comparisons = self.n_rounds = self.n_unsure = 0
        # a formula answers at once: nothing to keep, to spend or to bear
        self._plain = (
            isinstance(crew, Here)
            and journal is None
            and block_size is None
            and not costs.limited
            and not patience.retry
        )

    def put(self, questions: Questions) -> Said:
        """Have a round answered; out of money, `BudgetSpent` holds the first part of it."""
        if self._plain:
            return self._put_plainly(questions)
        sheet = Sheet(questions)
        if self._journal is not None:
            rows, answers = self._journal.known(self.n_rounds, questions)
            if len(rows):
                sheet.fill(rows, answers)
                self._count(len(rows), answers)
        before = self.n_comparisons
        _Errand(self, sheet).run()
        self.n_rounds += 1
        if self.n_comparisons == before:  # nobody was asked: the round was known, or is empty
            self._show(self.n_rounds)
        if not sheet.have.all():
            first = int(np.argmin(sheet.have))
            raise BudgetSpent(self._costs.limit or "", sheet.first(first))
        return sheet.first()

    def _put_plainly(self, questions: Questions) -> Said:
        asked = questions if self._names is None else self._names.tuples(questions)
        said = self._crew.oracle(asked)
        answers = as_answers(said, questions)
        self._costs.start(None)
        self._costs.end(None, getattr(said, "cost", None))
        self._count(len(questions), answers)
        self.n_rounds += 1
        self._show(self.n_rounds)
        return answers

    def _count(self, n: int, answers: Said) -> None:
        self.n_comparisons += n
        self.n_unsure += len(unsure_rows(answers))

    def _show(self, rounds: int) -> None:
        if self._progress is None:
            return
        paid = (self._costs.spent, self._costs.calls) if self._costs.counted else ()
        self._progress(self.n_comparisons, rounds, *paid)


class _Errand:
    """The blocks of one round: waiting, under way, come."""

    def __init__(self, desk: Rounds, sheet: Sheet) -> None:
        self._desk, self._sheet = desk, sheet
        rows = np.flatnonzero(~sheet.have)
        size = desk._block_size or max(1, len(rows))
        self._waiting = deque(_Block(rows[i : i + size]) for i in range(0, len(rows), size))
        self._again: list[_Block] = []
        self._flying: dict[Future[Any], _Block] = {}
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self._send()
                if not self._flying and not self._again:
                    break
                self._land(self._wait())
        except BaseException:  # Ctrl-C among them: keep what has come, give up the rest
            come = {future for future in self._flying if future.done()}
            for future in self._flying:
                future.cancel()
            self._land(come)
            raise
        if self._failure is not None:
            raise self._failure

    def _send(self) -> None:
        """Put blocks under way while there are any, somebody is free, and there is money."""
        desk, now = self._desk, time.monotonic()
        while len(self._flying) < desk._crew.limit:
            ready = [block for block in self._again if block.due <= now]
            if ready:
                block = ready[0]
                self._again.remove(block)
            elif self._waiting and self._failure is None:
                block = self._waiting[0]
                block.price = desk._costs.price(self._ask(block))
                if not desk._costs.allow(block.price):
                    self._waiting.clear()
                    return
                self._waiting.popleft()
            else:
                return
            self._fly(block)

    def _fly(self, block: _Block) -> None:
        desk = self._desk
        desk._costs.start(block.price)
        block.tries += 1
        if desk._patience.timeout is not None:
            block.deadline = time.monotonic() + desk._patience.timeout
        self._flying[desk._crew.submit(self._ask(block))] = block

    def _ask(self, block: _Block) -> Any:
        questions = self._sheet.questions[block.rows]
        return questions if self._desk._names is None else self._desk._names.tuples(questions)

    def _wait(self) -> set[Future[Any]]:
        """What has come by the time that something has, or something is due."""
        moments = [block.due for block in self._again if len(self._flying) < self._desk._crew.limit]
        moments += [block.deadline for block in self._flying.values()]
        until = min(moments, default=np.inf)
        timeout = None if until == np.inf else max(0.0, until - time.monotonic())
        if not self._flying:
            time.sleep(timeout or 0.0)
            return set()
        come = wait(self._flying, timeout, return_when=FIRST_COMPLETED).done
        now = time.monotonic()
        late = {f for f, block in self._flying.items() if block.deadline <= now and f not in come}
        for future in late:
            future.cancel()
        return come | late

    def _land(self, come: set[Future[Any]]) -> None:
        """Note what has come: on the disk first, then for the algorithm."""
        entries = []
        for future in [f for f in self._flying if f in come]:  # in the order they were sent
            block = self._flying.pop(future)
            try:
                entries.append(self._entry(future, block))
            except Exception as error:
                self._fail(block, error)
        if not entries:
            return
        desk = self._desk
        if desk._journal is not None:
            desk._journal.write(desk.n_rounds, entries)
        for entry in entries:
            self._sheet.fill(entry.rows, entry.answers)
            desk._count(len(entry.rows), entry.answers)
        desk._show(desk.n_rounds + 1)

    def _entry(self, future: Future[Any], block: _Block) -> JournalRow:
        cost = None
        try:
            if future.cancelled() or not future.done():
                seconds = self._desk._patience.timeout
                raise TimeoutError(
                    f"the oracle has not answered within timeout={seconds} seconds, "
                    f"{block.tries} times; allow more time, or more retries"
                )
            try:
                said = future.result()
            except GivenUp as error:  # by whoever runs the calls
                raise RuntimeError("the call was cancelled before it had an answer") from error
            cost = getattr(said, "cost", None)
            questions = self._sheet.questions[block.rows]
            answers = as_answers(said, questions)
        finally:
            block.cost += self._desk._costs.end(block.price, cost)
        by = getattr(said, "by", None)
        return JournalRow(block.rows, questions, answers, by, block.tries, block.cost)

    def _fail(self, block: _Block, error: Exception) -> None:
        patience = self._desk._patience
        if isinstance(error, patience.retry) and block.tries <= patience.retries:
            if self._failure is None:
                block.due = time.monotonic() + patience.pause_after(block.tries)
                block.deadline = np.inf
                self._again.append(block)
            return
        if self._failure is None:
            self._failure = error
            self._again.clear()
