"""How kernels are compiled, and run side by side.

Compiling costs seconds and is done once a machine. Much of that is avoidable: whole-array
expressions and assignments bring loops of their own, and errors that format shapes; every type of
arguments is another compilation; a helper needs no door to Python; a check for zero at each
division is code, too (here it gives what NumPy gives). Numba's own way to run a loop on all cores
compiles the loop once more: instead kernels let go of the interpreter, and each thread calls them
for a part.
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

# Answers, distances or candidates that make a second thread worth waking: with half as many, two
# threads take as long as one.
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

    Kernels of other modules keep what they were compiled with until their own module changes.
    """
    return cast(_Function, _compiled(function, **_INTERNAL))


def in_any_order(function: _Function) -> _Function:
    """Compile a helper whose sums may be added in any order, so that they can be vectorised."""
    return cast(_Function, _compiled(function, fastmath={"reassoc", "contract"}, **_INTERNAL))


def parts(work: int) -> int:
    """Into how many parts so many answers, distances or candidates are worth cutting."""
    return 1 + work // PART


def side_by_side(work: Callable[[int, slice], object], n_rows: int, n_parts: int) -> None:
    """Call work(part, rows) for each part, on as many cores as ``NUMBA_NUM_THREADS`` allows.

    The caller works, too, and does not wait for a thread that has not begun: waking one takes some
    50 µs, in which a small problem is done.
    """
    ends = [part * n_rows // n_parts for part in range(n_parts + 1)]
    rows = list(map(slice, ends[:-1], ends[1:]))
    left = iter(range(n_parts))  # a thread that is free takes the next one

    def take() -> None:
        for part in left:
            work(part, rows[part])

    others = [_threads().submit(take) for _ in range(min(n_parts, _CORES) - 1)]
    try:
        take()
    finally:
        for _ in left:  # something went wrong: the rest need not be done
            pass
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


@contextmanager
def when_compiling(say: Callable[[], object]) -> Iterator[None]:
    """While this lasts, `say` is called once if one of our kernels must be compiled."""
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
