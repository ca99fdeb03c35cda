"""How kernels are compiled and run in parallel.

Kernels are compiled once on each machine, in seconds. To save time they have no whole-array
expressions, which bring loops and errors of their own; one type of arguments each; no interface to
Python for helpers; and no check for division by zero (the result is NumPy's). Numba's parallel
loops would be compiled twice: instead kernels release the interpreter's lock, and each thread calls
them for a part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar, cast

import numba
from numba.core import event

# Answers, distances or candidates for each thread: with half as many, two threads take as long as
# one.
PART = 1 << 15
COMPILING = "compiling, once for this machine: some seconds"

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CORES: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
_compiled = partial(numba.njit, nogil=True, error_model="numpy")
_INTERNAL: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls."""
    return cast(_Function, _compiled(function, cache=True))


def helper(function: _Function) -> _Function:
    """Compile a function that only kernels call.

    Kernels of other modules are not compiled again until their own module changes.
    """
    return cast(_Function, _compiled(function, **_INTERNAL))


def in_any_order(function: _Function) -> _Function:
    """Compile a helper whose sums may be added in any order, so that they can be vectorised."""
    return cast(_Function, _compiled(function, fastmath={"reassoc", "contract"}, **_INTERNAL))


def parts(work: int) -> int:
    """The number of parts into which so much work is divided."""
    return 1 + work // PART


def side_by_side(work: Callable[[int, slice], object], n_rows: int, n_parts: int) -> None:
    """Call work(part, rows) for each part, on as many cores as ``NUMBA_NUM_THREADS`` allows.

    The caller works, too, and does not wait for a thread that has not begun: waking one takes some
    50 µs, in which a small problem is done.
    """
    ends = [part * n_rows // n_parts for part in range(n_parts + 1)]
    rows = list(map(slice, ends[:-1], ends[1:]))
    left = iter(range(n_parts))  # a free thread takes the next one

    def take() -> None:
        for part in left:
            work(part, rows[part])

    others = [_threads().submit(take) for _ in range(min(n_parts, _CORES) - 1)]
    try:
        take()
    finally:
        for _ in left:  # after an error the rest is not done
            pass
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


@contextmanager
def when_compiling(say: Callable[[], object]) -> Iterator[None]:
    """Inside this context, `say` is called once if one of our kernels must be compiled."""
    with event.install_listener("numba:compile", _Compiling(say)):
        yield


class _Compiling(event.Listener):
    def __init__(self, say: Callable[[], object]) -> None:
        self._unsaid = [say]

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].py_func.__module__.startswith(__package__)
        if ours and self._unsaid:
            self._unsaid.pop()()

    def on_end(self, event: Any) -> None:
        pass


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_CORES, thread_name_prefix="nearer")


if hasattr(os, "register_at_fork"):  # a child has no threads but the one that forked it
    os.register_at_fork(after_in_child=_threads.cache_clear)
