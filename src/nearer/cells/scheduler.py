"""Coarse work on a Dask cluster: `nearer.jobs` sends it there while this lasts.

A cluster can go wrong in ways that a pool of processes cannot: nobody listens at the address, no
worker is there, a worker dies and takes its work along. Each is one message. Workers must stay to
the end: one that is taken away counts as dead.
"""

from __future__ import annotations

import re
import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nearer.errors import InvalidInput

__all__ = ["scheduler"]

_ADDRESS = re.compile(r"(tcp|tls)://(\[[\w:.%]+\]|[\w.-]+):\d{1,5}")
_PATIENCE = 10  # seconds for an answer of the scheduler, and for workers to be there, or back


@contextmanager
def scheduler(address: str | None) -> Iterator[None]:
    """Send coarse work to the Dask scheduler at this address; None: nothing changes.

    Examples
    --------
    >>> with scheduler("tcp://127.0.0.1:9"):
    ...     pass
    Traceback (most recent call last):
      ...
    nearer.errors.InvalidInput: --scheduler tcp://127.0.0.1:9: no Dask scheduler answers there; ...
    """
    if address is None:
        yield
        return
    if _ADDRESS.fullmatch(address) is None:
        raise InvalidInput(
            f"--scheduler {address}: must be tcp://host:port or tls://host:port, as `dask "
            "scheduler` prints it"
        )
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
        from joblib import parallel_config  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            f"--scheduler {address}: needs Dask ({error}); install nearer[dask], or leave it out"
        ) from error
    client = _connected(Client, address)
    watch = _Watch(client)
    try:
        with parallel_config("dask", client=client, wait_for_workers_timeout=_PATIENCE):
            yield
    except (Exception, KeyboardInterrupt) as error:
        if watch.lost is None:
            raise
        raise InvalidInput(
            f"--scheduler {address}: the worker at {watch.lost} died, often for want of memory; "
            "start workers with more of it, and run the same command again"
        ) from error
    finally:
        watch.end()
        client.close()


def _connected(client: Any, address: str) -> Any:
    class Reached(client):  # type: ignore[misc]
        """A client that is closed only where it has come to run: else that takes 20 s, in vain."""

        def __del__(self) -> None:
            if self.status == "running":
                super().__del__()

    try:
        found = Reached(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, MemoryError) as error:  # what is no Dask may say absurd lengths
        raise InvalidInput(
            f"--scheduler {address}: no Dask scheduler answers there; start one with `dask "
            "scheduler`, mend the address, or leave the option out"
        ) from error
    try:
        found.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        found.close()
        raise InvalidInput(
            f"--scheduler {address}: it has no workers; start some with `dask worker {address}`"
        ) from error
    return found


class _Watch:
    """Looks whether all workers are still there, and interrupts the main thread where one is not.

    The scheduler would give its work to others, three times, and joblib would not hear of the end.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._over = client, threading.Event()
        self._known = self._workers()
        self.lost: str | None = None
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(1.0):
            workers = self._workers()
            if lost := self._known - workers:
                self.lost = min(lost)
                interrupt_main()
                return
            self._known = workers

    def _workers(self) -> set[str]:
        try:
            return set(self._client.scheduler_info(n_workers=-1)["workers"])
        except Exception:  # the scheduler is gone, and its workers with it
            return set()
