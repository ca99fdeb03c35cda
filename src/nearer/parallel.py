"""Coarse work in parallel, if the user asked for it: see docs/scale.md.

Restarts, bootstrap draws and simulated studies are pure functions of their arguments, which go
through joblib. Outside of ``joblib.parallel_config(...)`` they run one after the other, because
passes over answers use all cores already.
"""

from __future__ import annotations

import sys
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from nearer.errors import InvalidInput
from nearer.files import one_message

T = TypeVar("T")

_SECONDS = 10  # for an answer of the scheduler, and for workers to appear


def parallel_map(work: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """What a function returns for each tuple of arguments."""
    if "joblib" not in sys.modules:  # then the user cannot have configured it
        return [work(*args) for args in arguments]
    from joblib import Parallel, delayed  # noqa: PLC0415 - slow to import

    return list(Parallel()(delayed(work)(*args) for args in arguments))


@contextmanager
def scheduler(address: str | None) -> Iterator[Any]:
    """Send coarse work to the Dask scheduler at this address, and yield its client; None: here."""
    if address is None:
        yield None
        return
    with one_message(f"--scheduler {address}", "a Dask cluster"):
        from distributed import Client  # noqa: PLC0415 - an extra
        from joblib import parallel_config  # noqa: PLC0415
    client = _connect(Client, address)
    lost, over = list[str](), threading.Event()
    watch = threading.Thread(target=_watch, args=(client, lost, over), daemon=True)
    watch.start()
    try:
        with parallel_config("dask", client=client, wait_for_workers_timeout=_SECONDS):
            yield client
    except (Exception, KeyboardInterrupt) as error:
        if not lost:
            raise
        rule = f"the worker at {lost[0]} died; give workers more memory and run it again"
        raise InvalidInput(f"--scheduler {address}: {rule}") from error
    finally:
        over.set()
        watch.join()
        client.close()


def _connect(client: Any, address: str) -> Any:
    class Connected(client):  # type: ignore[misc]
        """A client that is closed only if it was connected: closing others takes 20 s."""

        def __del__(self) -> None:
            if self.status == "running":
                super().__del__()

    try:
        connected = Connected(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError, MemoryError) as error:  # other servers may send absurd lengths
        rule = "no Dask scheduler answers there; `dask scheduler` starts one and prints its address"
        raise InvalidInput(f"--scheduler {address}: {rule}") from error
    try:
        connected.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError as error:
        connected.close()
        rule = f"it has no workers; start some with `dask worker {address}`"
        raise InvalidInput(f"--scheduler {address}: {rule}") from error
    return connected


def _watch(client: Any, lost: list[str], over: threading.Event) -> None:
    """Interrupt the main thread when a worker dies, since joblib would wait for ever."""
    known = _workers(client)
    while not over.wait(1.0):
        lost += known - _workers(client)
        if lost:
            interrupt_main()
            return
        known = _workers(client)


def _workers(client: Any) -> set[str]:
    try:
        return set(client.scheduler_info(n_workers=-1)["workers"])
    except Exception:  # The scheduler is gone, and its workers with it.
        return set()
