"""Run a strategy with an oracle: carry questions to it and bring back the answers.

A round is cut into blocks of questions, and each block is one call of the oracle. Tasks, as many as
calls may be in flight, take blocks until none is left. Answers are put together by row, so that
neither their order of arrival nor the size of the blocks changes what a strategy sees. After a call
that fails for good no block is sent any more. The calls in flight have been paid for, so their
answers are awaited and stored before the failure is raised. The same happens when the money is
spent; the strategy then gets `BudgetSpent`. Ctrl-C waits for no call. A price that is known before
a call (`cost`) is reserved when the call is made, so that the limit is never exceeded. A price that
is known only afterwards (`PricedAnswers`) is expected to be the average so far.

The state of a `Session` is the strategy, made again from its seed, and the answers so far.
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
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from contextlib import closing, contextmanager, suppress
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import numpy as np

import nearer
from nearer import checks
from nearer.asking import protocol
from nearer.asking.journal import Call, Journal
from nearer.asking.oracles import Memory
from nearer.asking.protocol import Oracle, Strategy
from nearer.errors import AnswersWarning, BudgetSpent, InvalidInput
from nearer.questions import Answers, Objects, Questions, Said, unsure_rows

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


def refuse_unknown(how: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse options that neither `Dispatch` nor the function itself has."""
    parameters = inspect.signature(function).parameters.values()
    own = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if unknown := sorted(set(how) - set(Dispatch.__annotations__)):
        options = ", ".join([*own, *Dispatch.__annotations__])
        raise InvalidInput(f"{unknown[0]}={how[unknown[0]]!r}: no such option; there are {options}")


def run(
    strategy: Strategy[T],
    oracle: Oracle | Callable[..., Any],
    *,
    objects: Sequence[Any] | None = None,
    budget: int | None = None,
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
        NaN or `nearer.UNSURE` is "don't know"; a number from 0.0 to 1.0 is a graded answer. A
        strategy that needs to know puts such a question again, then breaks the tie by number.
    objects
        What the objects are: names, texts, paths. The oracle then gets tuples ``(head, a, b)``.
    budget
        The largest number of comparisons. A strategy that runs out of it returns its best result
        so far, or `nearer.errors.BudgetSpent` is raised if there is none.
    journal
        As in `nearer.embed`; a larger budget, other limits or other workers continue the run.
    about
        What else identifies the run: a journal begun with other values is refused.
    progress
        Called whenever answers have arrived, with the number of comparisons and of rounds so far;
        if calls have a price or a limit, also with the money spent and the calls made.
    workers
        How many threads call the oracle at the same time; or a `concurrent.futures.Executor`.
    max_in_flight
        The largest number of calls in flight; 16 for async oracles and executors.
    block_size
        The number of questions in one call. None: one if several calls are made at once, the
        whole round otherwise.
    retry, retries, pause
        Exceptions after which a call is made again, how often (5), and the seconds before the
        first time (1); each further pause is twice as long.
    timeout
        Seconds that one call may take before it is abandoned and made again.
    cost, max_cost
        A function from the questions of a call to its price, and what may be spent in all,
        including the costs stored in the journal.
    max_calls
        The largest number of calls, retries included.

    Examples
    --------
    >>> import nearer
    >>> nearer.run(nearer.rank_objects(0, 4), nearer.PointOracle([0.0, 3.0, 1.0, 7.0]))
    array([0, 2, 1, 3])
    >>> longer = lambda questions: [abs(len(h) - len(a)) < abs(len(h) - len(b))
    ...                             for h, a, b in questions]
    >>> nearer.run(nearer.rank_objects(0, 3), longer, objects=["ox", "beaver", "cat"])
    array([0, 2, 1])
    """
    checks.strategy(strategy)
    checks.oracle(oracle)
    refuse_unknown(how, run)
    rule = "a function of the comparisons and rounds so far; nearer.embed also takes True and False"
    checks.one("progress", progress, Callable | None, rule)
    checks.one("about", about, Mapping | None, "a mapping, such as {'model': 'small'}")
    checks.one("objects", objects, Iterable | None, "a list of what the objects are")
    names = None if objects is None else as_names(list(objects))[1]
    identity = {**getattr(oracle, "about", {}), **(about or {})}
    ties = Counter[str]()
    with open_journal(strategy, journal, names, identity) as (made, book):
        inner = made if protocol.takes_uncertain(made) else protocol.forced_choice(made, ties)
        if budget is not None:
            inner = protocol.limited(inner, budget)
        called = None if hasattr(oracle, "n_objects") else names
        if book is not None and len(book) and hasattr(oracle, "resume"):
            before = ((_named(q, called), said, by) for _, q, said, by in book.stored())
            oracle.resume(before, book.calls, book.spent)
        with closing(_Caller(oracle, how)) as caller:
            dispatcher = _Dispatcher(caller, _Costs(how, book), called, book, progress, how)
            result = dispatcher.drive(inner)
    if ties["broken"]:
        text = (
            f"{ties['again']} questions were asked again after the answer don't know; for "
            f"{ties['broken']} that stayed open the object of the lower number counts as nearer"
        )
        warnings.warn(text, AnswersWarning, stacklevel=2)
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
    kinds: Any = str | os.PathLike | Journal
    checks.one("journal", journal, kinds, "the path of a file, such as answers.db")
    identity: dict[str, Any] = {"version": nearer.__version__, **about}
    if names is not None:
        identity["objects"] = names.digest
    drawn: dict[str, Any] = {}
    if isinstance(strategy, protocol.Repeatable):
        identity |= {"method": strategy.method, **strategy.options}
        seed = strategy.random_state
        if seed is None:
            drawn = {"seed": secrets.randbits(32)}
        elif isinstance(seed, int | np.integer):
            identity["seed"] = int(seed)
        else:
            rule = "a journal must be able to begin again; pass a whole number or None"
            raise InvalidInput(f"random_state is a {type(seed).__name__}: {rule}")
    else:
        identity["method"] = getattr(strategy, "__name__", type(strategy).__name__)
    with closing(journal if isinstance(journal, Journal) else Journal(journal)) as book:
        book.begin(identity, drawn, names.objects if names else ())
        if isinstance(strategy, protocol.Repeatable):
            seed = book.header.get("seed")
            strategy = strategy.remade(random_state=seed, begun_with=book.header["budgets"])
        try:
            yield strategy, book
        except (Exception, KeyboardInterrupt) as error:
            if len(book):
                error.add_note(
                    f"{len(book):,} answers are stored in {book.path}; repeat the call to continue"
                )
            raise


def _with_details(
    result: T, names: Names | None, dispatcher: _Dispatcher, ties: Counter[str], oracle: Any
) -> T:
    """The result with the names of objects, the number of uncertain answers, the judge's report."""
    if not is_dataclass(result) or not isinstance(getattr(result, "details", None), dict):
        return result
    details = dict(result.details)  # type: ignore[union-attr]
    if dispatcher.n_unsure:
        details["n_unsure"] = dispatcher.n_unsure
    if ties["broken"]:
        details["n_ties_broken"] = ties["broken"]
    if callable(getattr(oracle, "report", None)):
        details["judge"] = oracle.report()
    known = {} if names is None else {"names": names.objects}
    return replace(result, details=details, **known)  # type: ignore[type-var]


class Names:
    """The objects of a run, by number."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self.objects = tuple(objects)
        checks.names("objects", self.objects)
        first: dict[Any, int] = {}
        for number, thing in enumerate(self.objects):
            if isinstance(thing, Hashable) and first.setdefault(thing, number) != number:
                what = f"objects {first[thing]} and {number} are both {thing!r}"
                raise InvalidInput(f"{what}: each must differ; list(dict.fromkeys(objects))")

    @property
    def digest(self) -> str:
        """A hash of the objects and their order."""
        words = "\0".join(map(str, self.objects))
        return f"{len(self.objects)} objects, {hashlib.sha256(words.encode()).hexdigest()[:16]}"

    def tuples(self, questions: Questions) -> list[tuple[Any, ...]]:
        """Questions as the oracle gets them; None stands for the query if a screen has none."""
        return [_named(row, self) for row in np.asarray(questions).tolist()]


def _named(question: Sequence[int], names: Names | None) -> tuple[Any, ...]:
    if names is None:
        return tuple(question)
    return tuple(names.objects[i] if i >= 0 else None for i in question)


def as_names(objects: Any) -> tuple[int, Names | None]:
    """How many objects there are, and their names if they have any."""
    if isinstance(objects, str | bytes) or not hasattr(objects, "__len__"):
        return checks.n_objects(objects), None
    if isinstance(objects, set | frozenset) or getattr(objects, "ndim", 1) != 1:
        rule = "must be a list, one for each object; of a table or wider array pass one column"
        raise InvalidInput(f"objects is a {type(objects).__name__}: {rule}")
    things = objects.tolist() if hasattr(objects, "tolist") else list(objects)
    return checks.n_objects(len(things)), Names(things)


def is_async(oracle: Any) -> bool:
    """Whether an oracle is an ``async def``, or an object that is called like one."""
    return inspect.iscoroutinefunction(oracle) or inspect.iscoroutinefunction(
        getattr(type(oracle), "__call__", None)  # noqa: B004 - what it is, not whether it is
    )


class _Caller:
    """Calls an oracle: here, in a thread for each call, in an executor or on an event loop."""

    def __init__(self, oracle: Callable[[Any], Any], how: Dispatch) -> None:
        workers, limit = how.get("workers"), how.get("max_in_flight")
        if limit is not None:
            checks.whole("max_in_flight", limit)
        self.oracle, self._is_async = oracle, is_async(oracle)
        self._executor = workers if isinstance(workers, Executor) else DaemonThreads()
        self._timeout = how.get("timeout")
        if self._timeout is not None:
            checks.positive("timeout", self._timeout)
        in_threads = workers is not None and workers is not self._executor
        if (self._is_async and workers is not None) or (in_threads and limit is not None):
            rule = (
                "workers= is for threads, max_in_flight= for async oracles and executors: give one"
            )
            raise InvalidInput(f"workers={workers!r} and max_in_flight={limit}: {rule}")
        if in_threads:
            limit = checks.whole("workers", workers)
        shared = self._is_async or workers is self._executor
        # Only a call in another thread can be abandoned after its time is up.
        self.inline = not shared and limit is None and self._timeout is None
        self.limit = limit or (_IN_FLIGHT if shared else 1)
        if not self.inline:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()

    async def call(self, questions: Any, tries: int) -> Any:
        if self.inline:
            return self.oracle(questions)
        if self._is_async:
            reply = self.oracle(questions)
        else:
            reply = asyncio.wrap_future(self._executor.submit(self.oracle, questions))
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await reply
        except TimeoutError as error:
            if not limit.expired():
                raise
            late = f"not answered within timeout={self._timeout} seconds, {tries} times"
            raise TimeoutError(f"the oracle has {late}; allow more, or more retries") from error

    async def pause(self, seconds: float) -> None:
        if self.inline:
            time.sleep(seconds)
        else:
            await asyncio.sleep(seconds)

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that makes calls to its end."""
        if self.inline:
            with suppress(StopIteration):
                while True:
                    work.send(None)
            return
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except CancelledError as error:  # by the executor
            raise RuntimeError("the call was cancelled before it had an answer") from error

    def close(self) -> None:
        """Cancel the calls in flight. An executor stays open, since the caller made it."""
        if self.inline:
            return
        with suppress(TimeoutError):  # a call blocks the loop: its thread is left behind
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_CLOSING)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if hasattr(self.oracle, "aclose"):
            await self.oracle.aclose()
        await asyncio.sleep(0)  # transports close in the next turn
        await asyncio.get_running_loop().shutdown_asyncgens()


class DaemonThreads(Executor):
    """A thread for each call, which does not keep the process alive."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Call a function."""
        future: Future[Any] = Future()

        def work() -> None:
            with suppress(InvalidStateError):  # the call was abandoned
                try:
                    future.set_result(fn(*args, **options))
                except Exception as error:
                    future.set_exception(error)

        threading.Thread(target=work, name="oracle", daemon=True).start()
        return future


class _Costs:
    """The money spent, with earlier costs in the journal; whether another call may be made."""

    def __init__(self, how: Dispatch, journal: Journal | None) -> None:
        self._price, self._max_cost = how.get("cost"), how.get("max_cost")
        self._max_calls = how.get("max_calls")
        for name, limit in {"max_cost": self._max_cost, "max_calls": self._max_calls}.items():
            if limit is not None:
                checks.not_negative(name, limit)
        rule = "a function from a block of questions to its price, lambda block: 0.01 * len(block)"
        checks.one("cost", self._price, Callable | None, rule)
        self.spent, self.calls = (0.0, 0) if journal is None else (journal.spent, journal.calls)
        limited = (self._price, self._max_cost, self._max_calls) != (None, None, None)
        self.counted = limited or self.spent > 0
        self.limit: str | None = None  # the limit that was reached, in words
        self._reserved = 0.0  # for calls in flight whose price is known
        self._in_flight = 0

    def price(self, block: Any) -> float | None:
        """The price of a call for this block; None if it is not known before the call."""
        return None if self._price is None else checks.not_negative("cost", self._price(block))

    def allow(self, price: float | None) -> bool:
        """Whether a call of this price may be made; after the first refusal none may."""
        average = self.spent / self.calls if self.calls else 0.0
        expected = self._reserved + price if price is not None else average * (self._in_flight + 1)
        if self._max_calls is not None and self.calls + self._in_flight >= self._max_calls:
            self.limit = self.limit or f"max_calls={self._max_calls}"
        # Sums of prices such as 0.01 are too large by rounding errors.
        elif self._max_cost is not None and self.spent + expected > self._max_cost * (1 + 1e-9):
            self.limit = self.limit or f"max_cost={self._max_cost:g}"
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
        self.counted |= cost > 0
        self.spent += cost
        self.calls += 1
        return cost


class _Dispatcher:
    """Carries the rounds of a run to an oracle, with the names of objects if they have any."""

    def __init__(
        self,
        caller: _Caller,
        costs: _Costs,
        names: Names | None,
        journal: Journal | None,
        progress: Callable[..., object] | None,
        how: Dispatch,
    ) -> None:
        self.caller, self.costs, self.names, self.journal = caller, costs, names, journal
        self._progress = progress
        size = how.get("block_size")
        if size is None:
            size = getattr(caller.oracle, "block_size", None if caller.inline else 1)
        self._block_size = None if size is None else checks.whole("block_size", size)
        self._retries = checks.whole("retries", how.get("retries", 5), least=0)
        self._pause = checks.not_negative("pause", how.get("pause", 1.0))
        retry = how.get("retry", ())
        kinds = retry if isinstance(retry, tuple) else (retry,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            rule = "must be exceptions, such as (ConnectionError, TimeoutError)"
            raise InvalidInput(f"retry={retry!r}: {rule}")
        self._retry = kinds if how.get("timeout") is None else (*kinds, TimeoutError)
        self.n_comparisons = self.n_rounds = self.n_unsure = 0

    def drive(self, strategy: Strategy[T]) -> T:
        """What a strategy returns when all its rounds are answered."""

        def answer(questions: Questions) -> Strategy[Answers]:
            yield from ()  # all questions are answered here: none is passed on
            return self.answer(questions)

        try:
            next(protocol.wrapped(strategy, answer))
        except StopIteration as done:
            result: T = done.value
            return result
        raise AssertionError("a round was left unanswered")

    def answer(self, questions: Questions) -> Said:
        """The answers of a round; `BudgetSpent` has the first of them if a limit is reached."""
        sheet = self._sheet = protocol.RoundAnswers(questions)
        self._arrived: list[Call] = []
        self._failure: Exception | None = None
        if self.journal is not None:
            self._take(*self.journal.known(self.n_rounds, questions))
        before = self.n_comparisons
        self.caller.finish(self._ask_all(*sheet.open_rows()))
        if self._failure is not None:
            raise self._failure
        self.n_rounds += 1
        if self.n_comparisons == before:  # nothing was asked: the round was known, or is empty
            self._show(self.n_rounds)
        if not sheet.known.all():
            raise BudgetSpent(self.costs.limit or "", sheet.first(int(np.argmin(sheet.known))))
        return sheet.first()

    async def _ask_all(self, rows: Objects, questions: Questions) -> None:
        """Cut a round into blocks, which tasks take until there are no more."""
        size = self._block_size or max(1, len(rows))
        starts = range(0, len(rows), size)
        blocks = ((rows[i : i + size], questions[i : i + size]) for i in starts)
        try:
            if self.caller.inline:
                await self._take_blocks(blocks)
            else:
                tasks = min(self.caller.limit, len(starts))
                await asyncio.gather(*(self._take_blocks(blocks) for _ in range(tasks)))
        finally:
            self._store_arrived()

    async def _take_blocks(self, blocks: Iterator[tuple[Objects, Questions]]) -> None:
        """Ask one block after the other while there are blocks and money, and no call failed."""
        for rows, questions in blocks:
            try:
                call = await self._ask(rows, questions)
            except Exception as error:
                self._failure = self._failure or error
                return
            if call is None:
                return
            self._arrived.append(call)
            await asyncio.sleep(0)  # what has arrived meanwhile is stored with it
            self._store_arrived()

    async def _ask(self, rows: Objects, questions: Questions) -> Call | None:
        """The answers to some questions, called again as `retries` allow; None: no money left."""
        named = questions if self.names is None else self.names.tuples(questions)
        price, total = self.costs.price(named), 0.0
        if self._failure is not None or not self.costs.allow(price):
            return None
        tries, failed = 0, True
        while failed:
            if tries:  # a random factor keeps calls that failed together from being made together
                await self.caller.pause(self._pause * 2 ** (tries - 1) * random.uniform(0.5, 1.5))
            tries, charged = tries + 1, None
            self.costs.start(price)
            try:
                returned = await self.caller.call(named, tries)
                if (cost := getattr(returned, "cost", None)) is not None:
                    charged = checks.not_negative("cost", cost)
                answers = protocol.as_answers(returned, questions)
                failed = False
            except Exception as error:
                again = isinstance(error, self._retry) and tries <= self._retries
                if not again or self._failure is not None:
                    raise
            finally:
                total += self.costs.end(price, charged)
        return Call(rows, questions, answers, getattr(returned, "by", None), tries, total)

    def _store_arrived(self) -> None:
        """Store the answers that have arrived in the journal, then hand them to the strategy."""
        calls, self._arrived = self._arrived, []
        if not calls:
            return
        if self.journal is not None:
            self.journal.write(self.n_rounds, calls)
        for call in calls:
            self._take(call.rows, call.answers)
        self._show(self.n_rounds + 1)

    def _take(self, rows: Questions, answers: Said) -> None:
        """Count answers that have arrived, and put them into their rows."""
        self._sheet.fill(rows, answers)
        self.n_comparisons += len(rows)
        self.n_unsure += len(unsure_rows(answers))

    def _show(self, rounds: int) -> None:
        if self._progress is not None:
            paid = (self.costs.spent, self.costs.calls) if self.costs.counted else ()
            self._progress(self.n_comparisons, rounds, *paid)


class Session(Generic[T]):
    """A strategy that waits for its answers.

    Parameters
    ----------
    strategy
        The algorithm, made from its seed.
    triplets
        Answers of an earlier session, rows ``(head, near, far)``; the new one continues from there.
    journal
        A journal that `open_journal` has opened for the strategy.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle([0.0, 3.0, 1.0, 7.0])
    >>> session = Session(nearer.rank_objects(0, 4, random_state=0))
    >>> while not session.done:
    ...     question = session.open[-1:]               # any open question, in any order
    ...     session.tell(question, oracle(question))
    >>> session.result
    array([0, 2, 1, 3])
    """

    def __init__(
        self,
        strategy: Strategy[T],
        triplets: Questions | None = None,
        *,
        journal: Journal | None = None,
    ) -> None:
        self._memory = Memory(triplets)
        if not protocol.takes_uncertain(strategy):
            strategy = protocol.forced_choice(strategy)
        self._strategy = protocol.remembered(strategy, self._memory)
        rule = "a nearer.asking.journal.Journal; nearer.run takes the path of a file"
        self._journal = checks.one("journal", journal, Journal | None, rule)
        self._sheet = protocol.RoundAnswers(np.empty((0, 3), dtype=np.int64))
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
            raise InvalidInput(f"{len(self.open)} open questions: answer them with tell() first")
        return self._result[0]

    @property
    def open(self) -> Questions:
        """The questions of this round that have no answer yet."""
        return self._sheet.open_rows()[1]

    @property
    def triplets(self) -> Objects:
        """All answers so far, as rows ``(head, near, far)``."""
        return self._memory.triplets

    def tell(self, questions: Questions, answers: Any) -> None:
        """Take answers to open questions or others; the first answer to a question counts.

        Answers to questions that were not asked are used if the strategy comes to need them.
        """
        questions = checks.one_round(questions)
        answers = protocol.as_answers(answers, questions)
        self._memory.add(questions, answers)
        unsure = Memory()  # questions answered by "don't know"; their stored side has no meaning
        unsure_too = unsure_rows(answers)
        unsure.add(questions[unsure_too], np.zeros_like(np.ma.getdata(answers)[unsure_too]))
        rows, asked = self._sheet.open_rows()
        said, known = self._memory.recall(asked)
        settled = known | unsure.recall(asked)[1]
        if not settled.any():
            return
        rows, asked = rows[settled], asked[settled]
        said = protocol.as_answers(protocol.partly_known(said, known)[settled], asked)
        self._sheet.fill(rows, said)
        if self._journal is not None:
            self._journal.write(self.n_rounds - 1, [Call(rows, asked, said)])
        if self._sheet.known.all():
            self._advance(partial(self._strategy.send, self._sheet.first()))

    def _advance(self, step: Callable[[], Questions]) -> None:
        """Continue to the next round that is not complete."""
        while True:
            try:
                self._sheet = protocol.RoundAnswers(step())
            except StopIteration as stop:
                self._sheet = protocol.RoundAnswers(self._sheet.questions[:0])
                self._result.append(stop.value)
                return
            if self._journal is not None:
                self._sheet.fill(*self._journal.known(self.n_rounds, self._sheet.questions))
            self.n_rounds += 1
            if not self._sheet.known.all():
                return
            step = partial(self._strategy.send, self._sheet.first())
