"""Compute the cells that are not there yet, several at a time.

Every cell runs in a worker process. Workers do not see Ctrl-C; the one process that does ends them,
and where it is killed they end by themselves. Only that process writes, so a cell is either kept
whole or not begun. Where several work at a time each has one thread: two that wait for each other
on a busy machine take several times as long as one. With a scheduler the workers are those of a
Dask cluster instead (`scheduler`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from nearer import checks
from nearer.cells.finished import Computable, Figures, FinishedCells
from nearer.cells.scheduler import scheduler as scheduled
from nearer.errors import InvalidInput, MissingData
from nearer.jobs import each_as_it_ends

__all__ = ["compute_cells"]

CellT = TypeVar("CellT", bound=Computable)

_THREADS = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def compute_cells(
    cells: Sequence[CellT],
    finished: FinishedCells,
    *,
    jobs: int,
    scheduler: str | None = None,
    progress: Callable[[CellT], object] | None = None,
) -> None:
    """Compute what is not finished, and keep each cell as it ends.

    Parameters
    ----------
    cells
        What is wanted, in order.
    finished
        What is there, and where new figures go. A data set that is not to be had is noted there.
    jobs
        How many worker processes.
    scheduler
        The address of a Dask scheduler that has the cells computed instead.
    progress
        Called with every cell that is finished or turns out to be impossible.
    """
    checks.whole("jobs", jobs)
    waiting = [cell for cell in reversed(cells) if finished.figures(cell) is None]
    if not waiting:
        return
    if scheduler is not None:
        _compute_elsewhere(waiting[::-1], finished, scheduler, progress)
        return
    with _workers(min(jobs, len(waiting))) as pool:
        running = dict[Future[Figures], CellT]()
        while waiting or running:
            while waiting and len(running) < 2 * jobs:  # one for each worker, one in its queue
                cell = waiting.pop()
                if finished.missing(cell.data) is None:
                    with _ctrl_c_held():
                        running[pool.submit(_compute, cell)] = cell
                elif progress is not None:
                    progress(cell)
            done = wait(running, return_when=FIRST_COMPLETED)[0] if running else ()
            for future in done:
                cell = running.pop(future)
                _take(future, cell, finished)
                if progress is not None:
                    progress(cell)


def _compute(cell: Computable) -> Figures:
    return cell.compute()


def _compute_elsewhere(
    cells: Sequence[CellT],
    finished: FinishedCells,
    address: str,
    progress: Callable[[CellT], object] | None,
) -> None:
    with scheduled(address):
        for i, figures in each_as_it_ends(_attempt, [(cell,) for cell in cells]):
            if isinstance(figures, MissingData):
                finished.lacks(cells[i].data, str(figures))
            else:
                finished.add(cells[i], figures)
            if progress is not None:
                progress(cells[i])


def _attempt(cell: Computable) -> Figures | MissingData:
    """The figures, or what is missing: an error would end all others."""
    try:
        return cell.compute()
    except MissingData as error:
        return error


def _take(future: Future[Figures], cell: Computable, finished: FinishedCells) -> None:
    try:
        finished.add(cell, future.result())
    except MissingData as error:
        finished.lacks(cell.data, str(error))
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
    if jobs > 1:
        os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_begin_worker)
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


def _begin_worker() -> None:
    """Deaf to Ctrl-C, and gone when the process that writes is, however that one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
