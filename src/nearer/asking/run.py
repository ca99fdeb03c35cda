"""Run a strategy with an oracle: carry questions to it and bring back the answers.

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

*Names.* Objects are what the user has: names, texts, paths. Inside, they are numbers. An oracle
that says how many objects it knows (``n_objects``, as `PointOracle` does) speaks of numbers, and
only the result carries the names.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import random
import secrets
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np

import nearer
from nearer import checks
from nearer.asking.answers import RoundAnswers, as_answers
from nearer.asking.journal import Call, Journal
from nearer.asking.protocol import (
    Oracle,
    Repeatable,
    Strategy,
    Ties,
    forced_choice,
    limited,
    remembered,
    takes_uncertain,
    wrapped,
)
from nearer.asking.record import Memory
from nearer.errors import AnswersWarning, BudgetSpent, InvalidInput
from nearer.questions import Answers, Objects, Questions, Said, unsure_rows

__all__ = ["Dispatch", "Names", "as_names", "is_async", "open_journal", "refuse_unknown", "run"]

T = TypeVar("T")

_CLOSING = 5.0  # seconds that cancelled calls have to end
_IN_FLIGHT = 16  # calls at once to an async oracle or an executor, unless the caller says how many


class Dispatch(TypedDict, total=False):
    """Options of `nearer.run` about how the oracle is called."""

    workers: int | Executor | None
    max_in_flight: int | None
    block_size: int | None
    retry: type[BaseException] | tuple[type[BaseException], ...]
    retries: int
    pause: float
    timeout: float | None
    cost: Callable[[Any], float] | None
    max_cost: float | None
    max_calls: int | None


def refuse_unknown(how: Mapping[str, Any], door: Callable[..., Any]) -> None:
    """Refuse options that neither `Dispatch` nor the function itself has."""
    own = [p.name for p in inspect.signature(door).parameters.values() if p.kind is p.KEYWORD_ONLY]
    if unknown := sorted(set(how) - set(Dispatch.__annotations__)):
        raise InvalidInput(
            f"{unknown[0]}={how[unknown[0]]!r}: there is no such option; there are "
            f"{', '.join([*own, *Dispatch.__annotations__])}"
        )


def run(
    strategy: Strategy[T],
    oracle: Oracle | Callable[..., Any],
    *,
    objects: Sequence[Any] | None = None,
    budget: int | None = None,
    memory: Memory | None = None,
    journal: str | os.PathLike[str] | Journal | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Callable[..., object] | None = None,
    **how: Unpack[Dispatch],
) -> T:
    """Answer every question of a strategy with an oracle and return its result.

    Parameters
    ----------
    strategy
        A generator of questions, such as `nearer.choose_basis` or `nearer.rank_objects` makes.
    oracle
        Any callable from ``(m, 3)`` questions to ``(m,)`` booleans, also an ``async def``. None,
        NaN or `nearer.UNSURE` in place of a boolean is "don't know"; a number from 0.0 to 1.0 is
        a graded answer. A strategy that needs to know puts such a question again; what stays open
        goes to the object of the lower number, with a warning.
    objects
        What the objects are: names, texts, paths. The oracle then gets a list of tuples
        ``(head, a, b)`` of them.
    budget
        How many comparisons may be put to the oracle. An algorithm that runs out returns its
        best so far, or `nearer.errors.BudgetSpent` is raised where it has nothing.
    memory
        Answers that need not be asked again. New answers are added as they come, so that after
        an interruption the same call with the same memory goes on where it stopped.
    journal
        A file in which every answer is kept as it arrives. After an interruption the same call
        goes on where it stopped, pays for nothing twice, and gives the uninterrupted result. So
        does a call with a larger budget, other limits or other workers.
    about
        What else identifies the run, in words and numbers: a journal that was begun with other
        values is refused.
    progress
        Called whenever answers have arrived, with the number of comparisons and of rounds so far;
        where calls cost anything or are limited, also with the money spent and the calls made.
    workers
        How many threads call the oracle at the same time; or a `concurrent.futures.Executor`.
    max_in_flight
        How many calls may be in flight at once; 16 for async oracles and executors.
    block_size
        How many questions go into one call. None: one if several calls are made at once, the
        whole round otherwise.
    retry, retries, pause
        Exceptions after which a call is made again, how often (5), and the seconds before the
        first time (1); each further pause is twice as long.
    timeout
        Seconds that one call may take before it is abandoned and made again.
    cost, max_cost
        A function from the questions of a call to its price, and what may be spent in all. Out of
        money, an algorithm returns its best so far. What a journal says was spent counts.
    max_calls
        How many calls may be made in all, retries included.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.rank_objects(0, 4), oracle)
    array([0, 2, 1, 3])
    >>> longer = lambda questions: [abs(len(h) - len(a)) < abs(len(h) - len(b))
    ...                             for h, a, b in questions]
    >>> nearer.run(nearer.rank_objects(0, 3), longer, objects=["ox", "beaver", "cat"])
    array([0, 2, 1])
    """
    checks.oracle(oracle)
    refuse_unknown(how, run)
    if progress is not None and not callable(progress):
        raise InvalidInput(
            f"progress={progress!r}: must be a function of the comparisons and rounds so far; "
            "nearer.embed also takes True and False"
        )
    if journal is not None and memory is not None:
        raise InvalidInput("memory= and journal= are both given: a journal remembers; give one")
    names = None if objects is None else as_names(list(objects))[1]
    identity = {**getattr(oracle, "about", {}), **(about or {})}
    ties = Ties()
    with open_journal(strategy, journal, names, identity) as (made, book):
        inner = made if takes_uncertain(made) else forced_choice(made, ties)
        if memory is not None:
            inner = remembered(inner, memory)
        if budget is not None:
            inner = limited(inner, budget)
        with closing(_Workers(oracle, how)) as workers:
            spoken = None if hasattr(oracle, "n_objects") else names
            dispatcher = _Dispatcher(workers, _Costs(how, book), spoken, book, progress, how)
            result = _drive(inner, dispatcher)
    if ties.n_broken:
        warnings.warn(str(ties), AnswersWarning, stacklevel=2)
    return _with_details(result, names, dispatcher, ties, oracle)


@contextmanager
def open_journal(
    strategy: Strategy[T],
    journal: str | os.PathLike[str] | Journal | None,
    names: Names | None,
    about: Mapping[str, Any],
) -> Iterator[tuple[Strategy[T], Journal | None]]:
    """The strategy, made from the journal's seed, and the journal, new or continued."""
    if journal is None:
        yield strategy, None
        return
    if not isinstance(journal, str | os.PathLike | Journal):
        raise InvalidInput(f"journal={journal!r}: must be the path of a file, such as answers.db")
    identity: dict[str, Any] = {"version": nearer.__version__, **about}
    if names is not None:
        identity["objects"] = names.digest
    drawn: dict[str, Any] = {}
    if isinstance(strategy, Repeatable):
        identity |= {"method": strategy.method, **strategy.options}
        seed = strategy.random_state
        if seed is None:
            drawn = {"seed": secrets.randbits(32)}
        elif isinstance(seed, int | np.integer):
            identity["seed"] = int(seed)
        else:
            raise InvalidInput(
                f"random_state is a {type(seed).__name__}: a journal must be able to begin again, "
                "so it takes a whole number, or None to draw one"
            )
    else:
        identity["method"] = getattr(strategy, "__name__", type(strategy).__name__)
    with closing(journal if isinstance(journal, Journal) else Journal(journal)) as book:
        book.begin(identity, drawn, names.objects if names else ())
        if isinstance(strategy, Repeatable):
            strategy = strategy.remade(random_state=book.seed, begun_with=book.budgets)
        try:
            yield strategy, book
        except (Exception, KeyboardInterrupt) as error:
            if len(book) and book.path is not None:
                error.add_note(
                    f"{len(book):,} answers are kept in {book.path}; the same call goes on"
                )
            raise


def _drive(strategy: Strategy[T], dispatcher: _Dispatcher) -> T:
    def answer(questions: Questions) -> Strategy[Answers]:
        yield from ()  # the dispatcher has every question answered: none is passed on
        return dispatcher.answer(questions)

    try:
        next(wrapped(strategy, answer))
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a round was left unanswered")


def _with_details(
    result: T, names: Names | None, dispatcher: _Dispatcher, ties: Ties, oracle: Any
) -> T:
    """The result with the names of objects, the number of uncertain answers, the judge's report."""
    if not is_dataclass(result) or not isinstance(getattr(result, "details", None), dict):
        return result
    details = dict(result.details)  # type: ignore[union-attr]
    if dispatcher.n_unsure:
        details["n_unsure"] = dispatcher.n_unsure
    if ties.n_broken:
        details["n_ties_broken"] = ties.n_broken
    if callable(getattr(oracle, "report", None)):
        details["judge"] = oracle.report()
    known = {} if names is None else {"names": names.objects}
    return replace(result, details=details, **known)  # type: ignore[type-var]


# --- names ---------------------------------------------------------------------------------------


class Names:
    """The objects of a run, by number."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self.objects = tuple(objects)
        first: dict[Any, int] = {}
        for number, thing in enumerate(self.objects):
            if isinstance(thing, Hashable) and first.setdefault(thing, number) != number:
                raise InvalidInput(
                    f"objects {first[thing]} and {number} are both {thing!r}: each must be there "
                    "once; list(dict.fromkeys(objects)) drops repeats"
                )

    @property
    def digest(self) -> str:
        """A few letters that other objects, or the same in another order, do not have."""
        words = "\0".join(map(str, self.objects))
        return f"{len(self.objects)} objects, {hashlib.sha256(words.encode()).hexdigest()[:16]}"

    def tuples(self, questions: Questions) -> list[tuple[Any, ...]]:
        """Questions as the oracle gets them; the query of a screen that has none is None."""
        things = self.objects
        return [
            tuple(things[i] if i >= 0 else None for i in row)
            for row in np.asarray(questions).tolist()
        ]


def as_names(objects: Any) -> tuple[int, Names | None]:
    """How many objects there are, and their names where they have some.

    Examples
    --------
    >>> as_names(40)
    (40, None)
    >>> n, names = as_names(["cat", "dog", "eel"])
    >>> n, names.tuples([[0, 2, 1]])
    (3, [('cat', 'eel', 'dog')])
    """
    if isinstance(objects, str | bytes) or not hasattr(objects, "__len__"):
        return checks.n_objects(objects), None
    if isinstance(objects, set | frozenset) or hasattr(objects, "columns"):
        raise InvalidInput(
            f"objects is a {type(objects).__name__}: list what the objects are, one for each, in "
            "an order; of a table pass one column"
        )
    if isinstance(objects, np.ndarray) and objects.ndim != 1:
        raise InvalidInput(
            f"objects is an array of shape {objects.shape}: say how many objects there are, or "
            "list what they are, one for each"
        )
    things = objects.tolist() if hasattr(objects, "tolist") else list(objects)
    if len(things) < 3:
        raise InvalidInput(
            f"objects holds {len(things)}: at least 3 objects are needed, a head and 2 to compare"
        )
    return len(things), Names(things)


# --- workers -------------------------------------------------------------------------------------


def is_async(oracle: Any) -> bool:
    """Whether an oracle is an ``async def``, or an object that is called like one."""
    return inspect.iscoroutinefunction(oracle) or inspect.iscoroutinefunction(
        getattr(type(oracle), "__call__", None)  # noqa: B004 - what it is, not whether it is
    )


class _Workers:
    """Call an oracle: here, in a thread for each call, in an executor or on an event loop.

    Threads are daemons, so that a call that hangs does not keep the process alive.
    """

    def __init__(self, oracle: Callable[[Any], Any], how: Dispatch) -> None:
        workers, limit = how.get("workers"), how.get("max_in_flight")
        if limit is not None:
            checks.whole("max_in_flight", limit)
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
        self.inline = not shared and limit is None and how.get("timeout") is None
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


class _Costs:
    """What was spent, by a journal before this run too, and whether another call may be made."""

    def __init__(self, how: Dispatch, journal: Journal | None) -> None:
        self._price, self._max_cost = how.get("cost"), how.get("max_cost")
        self._max_calls = how.get("max_calls")
        for name, limit in {"max_cost": self._max_cost, "max_calls": self._max_calls}.items():
            if limit is not None:
                checks.not_negative(name, limit)
        if self._price is not None and not callable(self._price):
            raise InvalidInput(
                f"cost={self._price!r}: must be a function from a block of questions to its price, "
                "such as lambda block: 0.01 * len(block)"
            )
        self.spent = 0.0 if journal is None else journal.spent
        self.calls = 0 if journal is None else journal.calls
        self.limit: str | None = None  # the limit that was reached, in words
        self._reserved = 0.0  # for calls in flight whose price is known
        self._in_flight = 0

    @property
    def counted(self) -> bool:
        """Whether calls cost anything or are limited."""
        limited = (self._price, self._max_cost, self._max_calls) != (None, None, None)
        return limited or self.spent > 0

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


# --- rounds --------------------------------------------------------------------------------------


@dataclass
class _Block:
    """Questions of one call."""

    rows: Objects
    questions: Any  # as the oracle gets them
    price: float | None = None
    cost: float = 0.0  # of all tries
    tries: int = 0
    due: float = 0.0  # the call is not made before this time
    deadline: float = np.inf


class _Dispatcher:
    """Has the rounds of a run answered by an oracle.

    Parameters
    ----------
    workers, costs
        They call the oracle; what that may cost.
    names
        What the oracle calls the objects; None: by their numbers.
    journal, progress, how
        Where answers are kept, what is shown, and the options of `nearer.run`.
    """

    def __init__(
        self,
        workers: _Workers,
        costs: _Costs,
        names: Names | None,
        journal: Journal | None,
        progress: Callable[..., object] | None,
        how: Dispatch,
    ) -> None:
        self.workers, self.costs, self.names, self.journal = workers, costs, names, journal
        self._progress = progress
        size = how.get("block_size")
        if size is None:
            size = getattr(workers.oracle, "block_size", None if workers.inline else 1)
        self._block_size = None if size is None else checks.whole("block_size", size)
        self._retries = checks.whole("retries", how.get("retries", 5), least=0)
        self._pause = checks.not_negative("pause", how.get("pause", 1.0))
        self._timeout = how.get("timeout")
        retry = how.get("retry", ())
        self._retry = retry if isinstance(retry, tuple) else (retry,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in self._retry):
            raise InvalidInput(
                f"retry={retry!r}: must be exceptions, such as (ConnectionError, TimeoutError)"
            )
        if self._timeout is not None:
            checks.positive("timeout", self._timeout)
            self._retry += (TimeoutError,)
        self.n_comparisons = self.n_rounds = self.n_unsure = 0

    def answer(self, questions: Questions) -> Said:
        """Have a round answered; `BudgetSpent` holds the first part if a limit is reached."""
        sheet = RoundAnswers(questions)
        if self.journal is not None:
            rows, known = self.journal.known(self.n_rounds, questions)
            self._take(sheet, rows, known)
        before = self.n_comparisons
        self._begin(sheet)
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
        self.n_rounds += 1
        if self.n_comparisons == before:  # nothing was asked: the round was known, or is empty
            self._show(self.n_rounds)
        if not sheet.known.all():
            raise BudgetSpent(self.costs.limit or "", sheet.first(int(np.argmin(sheet.known))))
        return sheet.first()

    def _begin(self, sheet: RoundAnswers) -> None:
        rows = np.flatnonzero(~sheet.known)
        size = self._block_size or max(1, len(rows))
        cut = (rows[i : i + size] for i in range(0, len(rows), size))
        self._sheet = sheet
        self._failure: Exception | None = None
        self._waiting = deque(_Block(some, self._named(sheet.questions[some])) for some in cut)
        self._again: list[_Block] = []
        self._in_flight: dict[Future[Any], _Block] = {}

    def _named(self, questions: Questions) -> Any:
        return questions if self.names is None else self.names.tuples(questions)

    def _take(self, sheet: RoundAnswers, rows: Questions, answers: Said) -> None:
        """Count answers that have arrived, and put them into their rows."""
        sheet.fill(rows, answers)
        self.n_comparisons += len(rows)
        self.n_unsure += len(unsure_rows(answers))

    def _show(self, rounds: int) -> None:
        if self._progress is not None:
            paid = (self.costs.spent, self.costs.calls) if self.costs.counted else ()
            self._progress(self.n_comparisons, rounds, *paid)

    def _send(self) -> None:
        """Make calls while there are blocks, free workers and money."""
        now = time.monotonic()
        while len(self._in_flight) < self.workers.limit:
            ready = next((block for block in self._again if block.due <= now), None)
            if ready is not None:
                self._again.remove(ready)
            elif self._waiting and self._failure is None:
                ready = self._waiting.popleft()
                ready.price = self.costs.price(ready.questions)
                if not self.costs.allow(ready.price):
                    self._waiting.clear()
                    return
            else:
                return
            self.costs.start(ready.price)
            ready.tries += 1
            if self._timeout is not None:
                ready.deadline = time.monotonic() + self._timeout
            self._in_flight[self.workers.submit(ready.questions)] = ready

    def _wait(self) -> set[Future[Any]]:
        """The calls that have returned or are too late, once there are any or a block is due."""
        free = len(self._in_flight) < self.workers.limit
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
        """Keep the answers that have arrived: in the journal first, then for the strategy."""
        calls = []
        for future in [f for f in self._in_flight if f in arrived]:  # in the order of sending
            block = self._in_flight.pop(future)
            try:
                calls.append(self._returned(future, block))
            except Exception as error:
                self._failed(block, error)
        if not calls:
            return
        if self.journal is not None:
            self.journal.write(self.n_rounds, calls)
        for call in calls:
            self._take(self._sheet, call.rows, call.answers)
        self._show(self.n_rounds + 1)

    def _returned(self, future: Future[Any], block: _Block) -> Call:
        charged = None
        try:
            if future.cancelled() or not future.done():
                raise TimeoutError(
                    f"the oracle has not answered within timeout={self._timeout} seconds, "
                    f"{block.tries} times; allow more time, or more retries"
                )
            try:
                returned = future.result()
            except CancelledError as error:  # by the executor
                raise RuntimeError("the call was cancelled before it had an answer") from error
            charged = getattr(returned, "cost", None)
            questions = self._sheet.questions[block.rows]
            answers = as_answers(returned, questions)
        finally:
            block.cost += self.costs.end(block.price, charged)
        by = getattr(returned, "by", None)
        return Call(block.rows, questions, answers, by, block.tries, block.cost)

    def _failed(self, block: _Block, error: Exception) -> None:
        """Make the call again after a pause, or end the round."""
        if self._failure is not None:
            return
        if isinstance(error, self._retry) and block.tries <= self._retries:
            # A random factor keeps calls that failed together from being repeated together.
            pause = self._pause * 2 ** (block.tries - 1) * random.uniform(0.5, 1.5)
            block.due = time.monotonic() + pause
            self._again.append(block)
        else:
            self._failure = error
            self._again.clear()
