"""The dispatcher: carries the questions of each round to an oracle and brings back the answers.

A round is cut into blocks of questions, one call of the oracle for each. Workers make several calls
at once: in threads, in an executor or on an event loop. Every answer that has arrived is written to
the journal before another call is made. A call that failed with an exception named by the caller is
made again after a pause, which doubles each time. The answers of a round are put together by row,
so that neither their order of arrival nor the size of the blocks changes what a strategy sees.

*Ends.* A call that fails for good stops the sending. The calls in flight have been paid for: they
are waited for and kept before the failure is raised. When the money is spent the same happens, and
the strategy is thrown `BudgetSpent` with the answers to the first part of its round. Ctrl-C waits
for no call: what has arrived is kept, the rest is cancelled.

*Costs.* The price of a call may be known before it (`cost`, a function of the block) or only after
it (`PricedAnswers`, as for a language model). A price known before is reserved when the call is
made, so that the limit is never exceeded; an unknown one is expected to be the average so far.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearer import checks
from nearer.asking.answers import RoundAnswers, as_answers
from nearer.asking.journal import Call, Journal
from nearer.asking.names import Names
from nearer.errors import BudgetSpent, InvalidInput
from nearer.questions import Objects, Questions, Said, unsure_rows

__all__ = ["Costs", "Dispatcher", "Retries", "Workers", "is_async"]

_CLOSING = 5.0  # seconds that cancelled calls have to end
_IN_FLIGHT = 16  # calls at once to an async oracle or an executor, unless the caller says how many


def is_async(oracle: Any) -> bool:
    """Whether an oracle is an ``async def``, or an object that is called like one."""
    return inspect.iscoroutinefunction(oracle) or inspect.iscoroutinefunction(
        getattr(type(oracle), "__call__", None)  # noqa: B004 - what it is, not whether it is
    )


class Workers:
    """Call an oracle: here, in a thread for each call, in an executor or on an event loop.

    Threads are daemons, so that a call that hangs does not keep the process alive.

    Parameters
    ----------
    oracle, workers, max_in_flight, timeout
        As in `nearer.run`.

    Attributes
    ----------
    limit
        How many calls may be in flight at once.
    inline
        Whether calls are made in the thread that asks, one after the other.
    """

    def __init__(
        self,
        oracle: Callable[[Any], Any],
        workers: int | Executor | None = None,
        max_in_flight: int | None = None,
        timeout: float | None = None,
    ) -> None:
        limit = None if max_in_flight is None else checks.whole("max_in_flight", max_in_flight)
        self.oracle = oracle
        self._executor = workers if isinstance(workers, Executor) else None
        self._loop: asyncio.AbstractEventLoop | None = None
        if is_async(oracle):
            if workers is not None:
                raise InvalidInput(
                    f"workers={workers!r}: an async oracle needs none; say max_in_flight= for how "
                    "many calls may be under way at once"
                )
            self._loop = asyncio.new_event_loop()
            self._thread = self._start(self._loop.run_forever)
        elif workers is not None and self._executor is None:
            if limit is not None:
                raise InvalidInput(
                    f"workers={workers!r} and max_in_flight={limit}: each thread has one call "
                    "under way; give one of them"
                )
            limit = checks.whole("workers", workers)
        shared = self._loop is not None or self._executor is not None
        # Only a call in another thread can be abandoned after its time is up.
        self.inline = not shared and limit is None and timeout is None
        self.limit = limit or (_IN_FLIGHT if shared else 1)

    def submit(self, questions: Any) -> Future[Any]:
        """Make one call; the future holds what the oracle returns."""
        if self._loop is not None:
            return asyncio.run_coroutine_threadsafe(self.oracle(questions), self._loop)
        if self._executor is not None:
            return self._executor.submit(self.oracle, questions)
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        if self.inline:
            self._call(future, questions)
        else:
            self._start(self._call, future, questions)
        return future

    def close(self) -> None:
        """Cancel the calls in flight. An executor stays open: it belongs to the caller."""
        if self._loop is None:
            return
        with suppress(TimeoutError):  # a call blocks the loop: its thread is left behind
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_CLOSING)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING)
        if not self._thread.is_alive():
            self._loop.close()

    def _start(self, target: Callable[..., Any], *args: Any) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, name="oracle", daemon=True)
        thread.start()
        return thread

    def _call(self, future: Future[Any], questions: Any) -> None:
        try:
            future.set_result(self.oracle(questions))
        except Exception as error:
            future.set_exception(error)

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if hasattr(self.oracle, "aclose"):
            await self.oracle.aclose()
        await asyncio.sleep(0)  # transports close in the next turn
        await asyncio.get_running_loop().shutdown_asyncgens()


@dataclass(frozen=True)
class Retries:
    """Which calls are made again, how often, and how long one may take; see `nearer.run`."""

    retry: tuple[type[BaseException], ...] = ()
    retries: int = 5
    pause: float = 1.0
    timeout: float | None = None

    def __post_init__(self) -> None:
        checks.whole("retries", self.retries, least=0)
        kinds = self.retry if isinstance(self.retry, tuple) else (self.retry,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise InvalidInput(
                f"retry={self.retry!r}: must be exceptions, such as (ConnectionError, TimeoutError)"
            )
        if not (isinstance(self.pause, int | float) and self.pause >= 0):
            raise InvalidInput(f"pause={self.pause!r}: must be a number of seconds from 0")
        if self.timeout is not None and not (
            isinstance(self.timeout, int | float) and self.timeout > 0
        ):
            raise InvalidInput(f"timeout={self.timeout!r}: must be a number of seconds above 0")
        timed = () if self.timeout is None else (TimeoutError,)
        object.__setattr__(self, "retry", (*kinds, *timed))

    def pause_after(self, tries: int) -> float:
        """Seconds to wait after so many tries.

        A random factor keeps calls that failed together from being repeated together.
        """
        return float(self.pause * 2 ** (tries - 1) * random.uniform(0.5, 1.5))


class Costs:
    """What was spent, and whether another call may be made.

    Parameters
    ----------
    cost, max_cost, max_calls
        As in `nearer.run`.
    spent, calls
        What was spent before, according to a journal.
    """

    def __init__(
        self,
        cost: Callable[[Any], float] | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        *,
        spent: float = 0.0,
        calls: int = 0,
    ) -> None:
        for name, limit in {"max_cost": max_cost, "max_calls": max_calls}.items():
            number = isinstance(limit, int | float | np.number) and not isinstance(limit, bool)
            if limit is not None and not (number and limit >= 0):
                raise InvalidInput(f"{name}={limit!r}: must be a number from 0")
        if cost is not None and not callable(cost):
            raise InvalidInput(
                f"cost={cost!r}: must be a function from a block of questions to its price, such "
                "as lambda block: 0.01 * len(block)"
            )
        self._price, self._max_cost, self._max_calls = cost, max_cost, max_calls
        self.spent, self.calls = spent, calls
        self.limit: str | None = None  # the limit that was reached, in words
        self._reserved = 0.0  # for calls in flight whose price is known
        self._in_flight = 0

    @property
    def limited(self) -> bool:
        """Whether a call has a price or a limit that must be looked at before it is made."""
        return not (self._price is None and self._max_cost is None and self._max_calls is None)

    def price(self, block: Any) -> float | None:
        """The price of a call for this block; None if it is not known before the call."""
        if self._price is None:
            return None
        price = self._price(block)
        try:
            return float(price)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"cost returned {price!r} for a block: it must return its price, a number"
            ) from None

    def allow(self, price: float | None) -> bool:
        """Whether a call of this price may be made; after the first refusal none may."""
        if self.limit is not None:
            return False
        average = self.spent / self.calls if self.calls else 0.0
        expected = self._reserved + price if price is not None else average * (self._in_flight + 1)
        if self._max_calls is not None and self.calls + self._in_flight >= self._max_calls:
            self.limit = f"max_calls={self._max_calls}"
        # Sums of prices such as 0.01 are too large by rounding errors.
        elif self._max_cost is not None and self.spent + expected > self._max_cost * (1 + 1e-9):
            self.limit = f"max_cost={self._max_cost:g}"
        return self.limit is None

    def start(self, price: float | None) -> None:
        """Count a call that is made now."""
        self._reserved += price or 0.0
        self._in_flight += 1

    def end(self, price: float | None, charged: float | None) -> float:
        """Count a call that returned or failed; returns what it cost."""
        self._reserved -= price or 0.0
        self._in_flight -= 1
        cost = charged if charged is not None else (price or 0.0)
        self.spent += cost
        self.calls += 1
        return cost


@dataclass
class _Block:
    """Questions of one call."""

    rows: Objects
    price: float | None = None
    cost: float = 0.0  # of all tries
    tries: int = 0
    due: float = 0.0  # the call is not made before this time
    deadline: float = np.inf


class Dispatcher:
    """Has the rounds of a run answered by an oracle.

    Parameters
    ----------
    workers
        They call the oracle.
    names
        What the oracle calls the objects; None: by their numbers.
    block_size
        How many questions go into one call; None: the whole round.
    journal, costs, retries, progress
        Where answers are kept, what they may cost, which calls are repeated, what is shown.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        names: Names | None,
        block_size: int | None,
        journal: Journal | None,
        costs: Costs,
        retries: Retries,
        progress: Callable[..., object] | None,
    ) -> None:
        self.workers, self.names, self.block_size = workers, names, block_size
        self.journal, self.costs, self.retries = journal, costs, retries
        self._progress = progress
        self.n_comparisons = self.n_rounds = self.n_unsure = 0
        # A formula answers at once: such a round is one plain call.
        self._plain = (
            workers.inline
            and journal is None
            and block_size is None
            and not costs.limited
            and not retries.retry
        )

    def answer(self, questions: Questions) -> Said:
        """Have a round answered; `BudgetSpent` holds the first part if a limit is reached."""
        if self._plain:
            returned = self.workers.oracle(self.named(questions))
            answers = as_answers(returned, questions)
            self.costs.start(None)
            self.costs.end(None, getattr(returned, "cost", None))
            self.count(answers)
            self.n_rounds += 1
            self.show(self.n_rounds)
            return answers
        sheet = RoundAnswers(questions)
        if self.journal is not None:
            rows, known = self.journal.known(self.n_rounds, questions)
            if len(rows):
                sheet.fill(rows, known)
                self.count(known)
        before = self.n_comparisons
        _Round(self, sheet).run()
        self.n_rounds += 1
        if self.n_comparisons == before:  # nothing was asked: the round was known, or is empty
            self.show(self.n_rounds)
        if not sheet.known.all():
            raise BudgetSpent(self.costs.limit or "", sheet.first(int(np.argmin(sheet.known))))
        return sheet.first()

    def named(self, questions: Questions) -> Any:
        """Questions as the oracle gets them."""
        return questions if self.names is None else self.names.tuples(questions)

    def count(self, answers: Said) -> None:
        """Count answers that have arrived."""
        self.n_comparisons += len(answers)
        self.n_unsure += len(unsure_rows(answers))

    def show(self, rounds: int) -> None:
        """Report progress."""
        if self._progress is not None:
            counted = self.costs.limited or self.costs.spent > 0
            paid = (self.costs.spent, self.costs.calls) if counted else ()
            self._progress(self.n_comparisons, rounds, *paid)


class _Round:
    """The blocks of one round: waiting, to be repeated, in flight."""

    def __init__(self, dispatcher: Dispatcher, sheet: RoundAnswers) -> None:
        self._dispatcher, self._sheet = dispatcher, sheet
        rows = np.flatnonzero(~sheet.known)
        size = dispatcher.block_size or max(1, len(rows))
        self._waiting = deque(_Block(rows[i : i + size]) for i in range(0, len(rows), size))
        self._again: list[_Block] = []
        self._in_flight: dict[Future[Any], _Block] = {}
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self._send()
                if not self._in_flight and not self._again:
                    break
                self._collect(self._wait())
        except BaseException:  # Ctrl-C among them: keep what has arrived, cancel the rest
            arrived = {future for future in self._in_flight if future.done()}
            for future in self._in_flight:
                future.cancel()
            self._collect(arrived)
            raise
        if self._failure is not None:
            raise self._failure

    def _send(self) -> None:
        """Make calls while there are blocks, free workers and money."""
        costs, now = self._dispatcher.costs, time.monotonic()
        while len(self._in_flight) < self._dispatcher.workers.limit:
            ready = [block for block in self._again if block.due <= now]
            if ready:
                block = ready[0]
                self._again.remove(block)
            elif self._waiting and self._failure is None:
                block = self._waiting[0]
                block.price = costs.price(self._questions(block))
                if not costs.allow(block.price):
                    self._waiting.clear()
                    return
                self._waiting.popleft()
            else:
                return
            costs.start(block.price)
            block.tries += 1
            timeout = self._dispatcher.retries.timeout
            block.deadline = np.inf if timeout is None else time.monotonic() + timeout
            self._in_flight[self._dispatcher.workers.submit(self._questions(block))] = block

    def _questions(self, block: _Block) -> Any:
        return self._dispatcher.named(self._sheet.questions[block.rows])

    def _wait(self) -> set[Future[Any]]:
        """The calls that have returned or are too late, once there are any or a block is due."""
        free = len(self._in_flight) < self._dispatcher.workers.limit
        moments = [block.due for block in self._again if free]
        moments += [block.deadline for block in self._in_flight.values()]
        until = min(moments, default=np.inf)
        timeout = None if until == np.inf else max(0.0, until - time.monotonic())
        if not self._in_flight:
            time.sleep(timeout or 0.0)
            return set()
        arrived = wait(self._in_flight, timeout, return_when=FIRST_COMPLETED).done
        now = time.monotonic()
        late = {f for f, b in self._in_flight.items() if b.deadline <= now and f not in arrived}
        for future in late:
            future.cancel()
        return arrived | late

    def _collect(self, arrived: set[Future[Any]]) -> None:
        """Keep the answers that have arrived: on the disk first, then for the strategy."""
        calls = []
        for future in [f for f in self._in_flight if f in arrived]:  # in the order of sending
            block = self._in_flight.pop(future)
            try:
                calls.append(self._returned(future, block))
            except Exception as error:
                self._failed(block, error)
        if not calls:
            return
        dispatcher = self._dispatcher
        if dispatcher.journal is not None:
            dispatcher.journal.write(dispatcher.n_rounds, calls)
        for call in calls:
            self._sheet.fill(call.rows, call.answers)
            dispatcher.count(call.answers)
        dispatcher.show(dispatcher.n_rounds + 1)

    def _returned(self, future: Future[Any], block: _Block) -> Call:
        charged = None
        try:
            if future.cancelled() or not future.done():
                raise TimeoutError(
                    f"the oracle has not answered within timeout="
                    f"{self._dispatcher.retries.timeout} seconds, {block.tries} times; allow more "
                    "time, or more retries"
                )
            try:
                returned = future.result()
            except CancelledError as error:  # by the executor
                raise RuntimeError("the call was cancelled before it had an answer") from error
            charged = getattr(returned, "cost", None)
            questions = self._sheet.questions[block.rows]
            answers = as_answers(returned, questions)
        finally:
            block.cost += self._dispatcher.costs.end(block.price, charged)
        by = getattr(returned, "by", None)
        return Call(block.rows, questions, answers, by, block.tries, block.cost)

    def _failed(self, block: _Block, error: Exception) -> None:
        if self._failure is not None:
            return
        retries = self._dispatcher.retries
        if isinstance(error, retries.retry) and block.tries <= retries.retries:
            block.due = time.monotonic() + retries.pause_after(block.tries)
            self._again.append(block)
        else:
            self._failure = error
            self._again.clear()
