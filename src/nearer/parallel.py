"""Coarse work in parallel, where the user asked for it.

Restarts, bootstrap draws, folds and simulated studies are pure functions of their arguments. They
go through joblib: inside ``joblib.parallel_config(...)`` they run as it says, in processes or on a
Dask cluster. Elsewhere they run one after the other, because passes over answers use all cores
already. A caller whose pieces take less than a second asks `is_parallel` first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def parallel_map(work: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """What a function returns for each tuple of arguments."""
    if "joblib" not in sys.modules:  # then the user cannot have configured it
        return [work(*args) for args in arguments]
    from joblib import Parallel, delayed  # noqa: PLC0415 - slow to import

    return list(Parallel()(delayed(work)(*args) for args in arguments))


def is_parallel() -> bool:
    """True if the user asked for several jobs at a time."""
    if "joblib" not in sys.modules:
        return False
    from joblib import effective_n_jobs  # noqa: PLC0415 - slow to import

    return bool(effective_n_jobs(None) > 1)
