"""Cells: pure functions computed once, several at a time, and stored as JSON lines.

A cell is the unit of an experiment: its name holds everything that its figures depend on, beside
the version of the code. A finished cell is therefore not computed again, hours of work survive
Ctrl-C, and a page is made of the finished cells. `paper` and the benchmarks are lists of
cells, and pages made of them.

Every cell runs in a worker process. Workers ignore Ctrl-C; the main process handles it and ends
them, and they end by themselves if the main process is killed. Only the main process writes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nearer.errors import InvalidInput, MissingData

__all__ = ["VERSION", "Computable", "Figures", "FinishedCells", "compute_cells"]

Figures = dict[str, Any]

#: The version of the code in the key of every cell. Raise it when a change may move figures.
VERSION = "0.3"

_THREADS = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Computable(Protocol):
    """What a cell has. It is sent to other processes, so it must be picklable."""

    @property
    def name(self) -> str:
        """Everything that the figures depend on, beside the code, in one line."""

    @property
    def data(self) -> str:
        """The data set it needs. If that is missing, all cells that need it are left out."""

    def compute(self) -> Figures:
        """The figures, values that JSON can hold."""


class FinishedCells:
    """The finished cells of one file, one JSON line each, appended as they end.

    Parameters
    ----------
    path
        A file of JSON lines; it need not exist.
    version
        The version of the code whose figures count as finished; None accepts any version, and
        takes the last line of each cell.
    """

    def __init__(self, path: Path, version: str | None = VERSION) -> None:
        self.path = path
        self.versions: set[str] = set()
        self.missing: dict[str, str] = {}  # data set → why it cannot be loaded, in this run
        self._figures: dict[str, Figures] = {}
        for record in self.records():
            if version in (None, record["version"]):
                self._figures[record["cell"]] = record["figures"]
                self.versions.add(record["version"])

    def records(self) -> Iterator[dict[str, Any]]:
        """The lines of the file: cell, version and figures, of any version."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        except OSError as error:
            raise InvalidInput(f"{self.path}: cannot be read ({error.strerror})") from error
        for line in text.splitlines():
            try:
                record = json.loads(line)
                record["cell"], record["version"], record["figures"]
            except (ValueError, KeyError, TypeError):
                continue  # A crash cut the line off: its cell is computed again.
            yield record

    def figures(self, cell: Computable) -> Figures | None:
        """The figures of a cell, or None if this version of the code has not computed it."""
        return self._figures.get(cell.name)

    def add(self, cell: Computable, figures: Figures) -> None:
        """Store the figures of a finished cell."""
        record = {"cell": cell.name, "version": VERSION, "figures": figures}
        line = (json.dumps(record) + "\n").encode()
        try:
            with self.path.open("a+b") as file:
                file.seek(max(0, file.tell() - 1))
                if file.read(1) not in (b"", b"\n"):
                    line = b"\n" + line  # after a line that a crash cut off
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidInput(
                f"{self.path}: cannot be written ({error.strerror}); finished cells stay valid"
            ) from error
        self._figures[cell.name] = figures


def compute_cells(
    cells: Sequence[Computable],
    finished: FinishedCells,
    *,
    jobs: int,
    scheduler: str | None = None,
) -> None:
    """Compute the cells that are not finished, and store each as it ends.

    Parameters
    ----------
    cells
        The cells wanted, in the order of computing.
    finished
        The finished cells; new figures are stored there, and so is the reason if a data set is
        missing.
    jobs
        The number of worker processes. With more than one, each has one thread: threads that wait
        for each other on a busy machine take several times as long.
    scheduler
        The address of a Dask scheduler whose workers compute the cells instead.
    """
    waiting = [cell for cell in reversed(cells) if finished.figures(cell) is None]
    if not waiting:
        return
    pool_of = _workers(min(jobs, len(waiting))) if scheduler is None else _cluster(scheduler)
    with _progress(len(cells), len(cells) - len(waiting)) as step, pool_of as pool:
        running = dict[Future[Figures], Computable]()
        while waiting or running:
            while waiting and len(running) < 2 * jobs:  # one in each worker, one in its queue
                cell = waiting.pop()
                if cell.data in finished.missing:
                    step(cell)
                    continue
                with _ctrl_c_held():
                    running[pool.submit(_compute, cell)] = cell
            for future in wait(running, return_when=FIRST_COMPLETED)[0] if running else ():
                cell = running.pop(future)
                _take(future, cell, finished)
                step(cell)


def _compute(cell: Computable) -> Figures:
    return cell.compute()


def _take(future: Future[Figures], cell: Computable, finished: FinishedCells) -> None:
    try:
        finished.add(cell, future.result())
    except MissingData as error:
        finished.missing[cell.data] = str(error)
    except BrokenProcessPool as error:
        raise InvalidInput(
            f"{cell.name}: its process was killed, often because memory ran out; the cells before "
            "it are stored: run the same command with a smaller --jobs"
        ) from error


@contextmanager
def _progress(cells: int, finished: int) -> Iterator[Any]:
    """A progress bar on a terminal's standard error; yields a function called with each cell."""
    console = Console(stderr=True)
    if finished:
        print(f"{finished} of {cells} cells are there already", file=sys.stderr)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[cell]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=cells, completed=finished, cell="")
        yield lambda cell: bar.update(task, advance=1, cell=cell.name)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask cluster."""
    from nearer.parallel import scheduler  # an extra

    with scheduler(address) as client:
        yield client.get_executor(pure=False)


@contextmanager
def _workers(jobs: int) -> Iterator[Executor]:
    """A pool of new processes, which are ended, busy or not, when the block is left."""
    before = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")  # A fork would share numba's threads.
    environment = {name: os.environ.get(name) for name in _THREADS}
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
        for name, value in environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    pool.shutdown()


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back, so that a process that starts meanwhile ignores it from its beginning."""
    if not hasattr(signal, "pthread_sigmask"):  # The initializer has to do on such systems.
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Ignore Ctrl-C, and end when the main process ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
