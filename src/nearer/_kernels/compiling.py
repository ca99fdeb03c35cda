"""How kernels are compiled.

Kernels are compiled once on each machine, in seconds. To save time they have no whole-array
expressions, which bring loops and errors of their own; one type of arguments each; no interface to
Python for helpers; and no check for division by zero (the result is NumPy's). Numba's parallel
loops would be compiled twice: instead kernels release the interpreter's lock, and each thread calls
them for a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba.core import event

COMPILING = "compiling, once for this machine: some seconds"

_Function = TypeVar("_Function", bound=Callable[..., Any])
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
