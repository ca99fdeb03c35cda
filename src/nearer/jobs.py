"""Coarse work, several pieces at a time where somebody asked for it.

Restarts, draws of a bootstrap, folds, simulated studies, cells and blocks of new objects are pure
functions of their arguments. They go through joblib: inside ``joblib.parallel_config(...)`` they
run as that says, in processes or on a Dask cluster (``parallel_config("dask")``); elsewhere one
after the other, since passes over answers use all cores already. Results come in the order of the
arguments, the same anywhere.

A piece that travels should take a second or more: who has pieces of any size asks `several` and
keeps the small ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["each", "several"]

T = TypeVar("T")


def each(work: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """What a function returns for each of some arguments.

    Examples
    --------
    >>> each(pow, [(2, 3), (3, 2)])
    [8, 9]
    >>> import joblib
    >>> with joblib.parallel_config("threading", n_jobs=2):
    ...     each(pow, [(2, 3), (3, 2)])
    [8, 9]
    """
    if "joblib" not in sys.modules:  # nobody can have told it anything
        return [work(*given) for given in arguments]
    from joblib import Parallel, delayed  # noqa: PLC0415 - takes a while, and may be missing

    sent = delayed(_by_value(work))
    return list(Parallel()(sent(*given) for given in arguments))


def _by_value(work: Callable[..., T]) -> Callable[..., T]:
    """The same function where it can be sent: one made inside another has no name to be found by.

    The other backends know what to do with it, and send what it holds only once.
    """
    from joblib import wrap_non_picklable_objects  # noqa: PLC0415
    from joblib.parallel import get_active_backend  # noqa: PLC0415

    if type(get_active_backend()[0]).__name__ != "MultiprocessingBackend":
        return work
    wrapped: Callable[..., T] = wrap_non_picklable_objects(work)
    return wrapped


def several() -> bool:
    """Whether somebody asked for several pieces at a time.

    Examples
    --------
    >>> import joblib
    >>> with joblib.parallel_config("threading", n_jobs=2):
    ...     several()
    True
    >>> several()
    False
    """
    if "joblib" not in sys.modules:
        return False
    from joblib import effective_n_jobs  # noqa: PLC0415 - takes a while, and may be missing

    return bool(effective_n_jobs(None) > 1)
