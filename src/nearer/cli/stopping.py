"""Ctrl-C: one line and the exit code that shells use for it.

Where it meets compiled code it comes out as a SystemError, "returned a result with an exception
set", whose cause is the KeyboardInterrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nearer.cli.saying import Ended

__all__ = ["Stopped", "is_ctrl_c", "stopped_by_ctrl_c"]


class Stopped(Ended):
    """Ended by Ctrl-C; the message says what is kept."""

    exit_code = 130


def is_ctrl_c(error: BaseException) -> bool:
    """Whether an error is Ctrl-C, met by Python or by compiled code.

    Examples
    --------
    >>> met = SystemError("CPUDispatcher(f) returned a result with an exception set")
    >>> met.__cause__ = KeyboardInterrupt()
    >>> is_ctrl_c(KeyboardInterrupt()), is_ctrl_c(met), is_ctrl_c(SystemError())
    (True, True, False)
    """
    if isinstance(error, SystemError):
        return isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def stopped_by_ctrl_c(say: Callable[[], str] = lambda: "interrupted") -> Iterator[None]:
    """On Ctrl-C end the command with what `say` then says; it may keep what there is."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if not is_ctrl_c(error):
            raise
        raise Stopped(say()) from None
