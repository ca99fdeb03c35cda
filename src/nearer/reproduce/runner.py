"""Compute the cells that are not there yet, several at a time.

Every cell runs in a worker process. Workers do not see Ctrl-C (a fit would take it for a wish to
stop early and return what it has); the one process that does ends them. Only that process writes,
so a cell is either in the store or not begun. There are many cells, so a worker has one thread:
two that wait for each other on a busy machine take several times as long as one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from nearer.errors import InvalidInput, MissingData
from nearer.reproduce.cells import Cell, Figures, compute
from nearer.reproduce.store import Store

__all__ = ["run_cells"]

_THREADS = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int,
    progress: Callable[[Cell], object] | None = None,
) -> None:
    """Compute what the store lacks, and keep each cell as it ends.

    Parameters
    ----------
    cells
        What is wanted, in order.
    store
        What is there, and where new figures go. A data set that is not to be had is noted there.
    jobs
        How many worker processes.
    progress
        Called with every cell that is finished or turns out to be impossible.
    """
    if jobs < 1:
        raise InvalidInput(f"jobs={jobs}: must be at least 1")
    todo = [cell for cell in cells if store.figures(cell) is None]
    if not todo:
        return
    with _workers(min(jobs, len(todo))) as pool:
        waiting, running = iter(todo), dict[Future[Figures], Cell]()
        _refill(pool, running, waiting, jobs, store, progress)
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                cell = running.pop(future)
                _take(future, cell, store)
                if progress is not None:
                    progress(cell)
            _refill(pool, running, waiting, jobs, store, progress)


def _refill(
    pool: ProcessPoolExecutor,
    running: dict[Future[Figures], Cell],
    waiting: Iterator[Cell],
    jobs: int,
    store: Store,
    progress: Callable[[Cell], object] | None,
) -> None:
    """Keep every worker busy and one cell for each in its queue."""
    while len(running) < 2 * jobs:
        cell = next(waiting, None)
        if cell is None:
            return
        if store.missing(cell.data) is None:
            with _ctrl_c_held():
                running[pool.submit(compute, cell)] = cell
        elif progress is not None:
            progress(cell)


def _take(future: Future[Figures], cell: Cell, store: Store) -> None:
    try:
        store.add(cell, future.result())
    except MissingData as error:
        store.lacks(cell.data, str(error))
    except BrokenProcessPool as error:
        raise InvalidInput(
            f"{cell.name}: its process was ended from outside, often for want of memory; the cells "
            "before it are kept: run the same command with a smaller --jobs"
        ) from error


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh processes that is gone, busy or not, when the block is left."""
    before = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")  # a fork would share numba's threads
    kept = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_deaf_to_ctrl_c)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    pool.shutdown()


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back: a process that starts meanwhile is deaf to it from the beginning."""
    if not hasattr(signal, "pthread_sigmask"):  # there its initializer has to do
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _deaf_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
