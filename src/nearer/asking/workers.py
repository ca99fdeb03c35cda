"""Who carries questions to an oracle: this thread, others, somebody's executor, an event loop.

All of them look the same from outside: `submit` hands over one block and returns a future, `limit`
says how many blocks may be under way at once. Threads and the event loop's thread are daemons, so
that a call that hangs keeps nobody from going home.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Protocol

from nearer import checks
from nearer.errors import InvalidInput

__all__ = ["Crew", "Here", "crew_for", "is_async"]

_LEAVE = 5.0  # seconds that calls under way have to end when they are given up
_IN_FLIGHT = 16  # calls at once, where nobody says how many an endpoint bears


class Crew(Protocol):
    """Whoever carries questions to an oracle."""

    limit: int
    oracle: Callable[[Any], Any]

    def submit(self, questions: Any) -> Future[Any]:
        """Put one block; the future holds what the oracle said."""

    def close(self) -> None:
        """Let go of everything; calls under way are given up."""


def is_async(oracle: Any) -> bool:
    """Whether an oracle is an ``async def``, or an object that is called like one."""
    return inspect.iscoroutinefunction(oracle) or inspect.iscoroutinefunction(
        getattr(type(oracle), "__call__", None)  # noqa: B004 - what it is, not whether it is
    )


def crew_for(
    oracle: Callable[[Any], Any],
    workers: int | Executor | None,
    max_in_flight: int | None,
    timeout: float | None,
) -> Crew:
    """Who carries questions to this oracle, as the caller wishes."""
    if max_in_flight is not None:
        max_in_flight = checks.whole("max_in_flight", max_in_flight)
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise InvalidInput(f"timeout={timeout!r}: must be a number of seconds above 0")
    if is_async(oracle):
        if workers is not None:
            raise InvalidInput(
                f"workers={workers!r}: an async oracle needs none; say max_in_flight= for how many "
                "calls may be under way at once"
            )
        return _Loop(oracle, max_in_flight or _IN_FLIGHT)
    if isinstance(workers, Executor):
        return _Lent(oracle, workers, max_in_flight or _IN_FLIGHT)
    if workers is not None and max_in_flight is not None:
        raise InvalidInput(
            f"workers={workers!r} and max_in_flight={max_in_flight}: each thread has one call "
            "under way; give one of them"
        )
    if workers is not None:
        return _Threads(oracle, checks.whole("workers", workers))
    if max_in_flight is not None:
        return _Threads(oracle, max_in_flight)
    if timeout is not None:  # only another thread can be given up
        return _Threads(oracle, 1)
    return Here(oracle)


class Here:
    """The thread that asks, one call after the other."""

    limit = 1

    def __init__(self, oracle: Callable[[Any], Any]) -> None:
        self.oracle = oracle

    def submit(self, questions: Any) -> Future[Any]:
        """Put one block and wait for the oracle."""
        return _call(Future(), self.oracle, questions)

    def close(self) -> None:
        """Nothing is held."""


class _Threads:
    """A thread for each call: one that hangs is left behind and blocks no other."""

    def __init__(self, oracle: Callable[[Any], Any], limit: int) -> None:
        self.oracle = oracle
        self.limit = limit

    def submit(self, questions: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        threading.Thread(
            target=_call, args=(future, self.oracle, questions), name="oracle", daemon=True
        ).start()
        return future

    def close(self) -> None:
        pass


class _Lent:
    """Somebody's executor: a process pool, a cluster. It stays theirs."""

    def __init__(self, oracle: Callable[[Any], Any], executor: Executor, limit: int) -> None:
        self.oracle = oracle
        self._executor = executor
        self.limit = limit

    def submit(self, questions: Any) -> Future[Any]:
        return self._executor.submit(self.oracle, questions)

    def close(self) -> None:
        pass


class _Loop:
    """An event loop in a thread of its own, so that it runs beside one that runs already."""

    def __init__(self, oracle: Callable[[Any], Any], limit: int) -> None:
        self.oracle = oracle
        self.limit = limit
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="oracle", daemon=True)
        self._thread.start()

    def submit(self, questions: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(self.oracle(questions), self._loop)

    def close(self) -> None:
        with suppress(TimeoutError):  # somebody blocks the loop: the thread is left behind
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_LEAVE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LEAVE)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        with suppress(AttributeError):  # an oracle that holds connections may say how they end
            await self.oracle.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)  # transports close in the next turn
        await self._loop.shutdown_asyncgens()


def _call(future: Future[Any], oracle: Callable[[Any], Any], questions: Any) -> Future[Any]:
    try:
        result = oracle(questions)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future
