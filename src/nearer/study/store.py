"""The study's file: SQLite with one writer and group commit.

Many threads that each commit for themselves wait for each other's disk. Here everything that
changes the file is a function handed to one thread. That thread takes all functions that are
waiting, runs them in one transaction, syncs the disk once, and only then tells each caller; so an
acknowledged answer is on the disk, and the cost of the sync is shared by all who wait for it.

A function that turns a request down raises `Refusal` before it has touched anything, and the
others go on. A function that fails in any other way is taken out and the rest of its group is run
again. When the file itself cannot be written, the whole group gets `StoreTrouble`, nobody is told
"stored", and `Store.trouble` says why until a later group succeeds.

The state in memory belongs to the writer's thread as well. It is rebuilt from the file whenever a
group was rolled back, or another process changed the file (SQLite's ``data_version`` says so).
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from nearer.errors import InvalidInput
from nearer.study.errors import Refusal, StoreTrouble
from nearer.study.schema import FORMAT

__all__ = ["Store", "connect", "read_header"]

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], T]

_GROUP = 512  # changes in one transaction at most, so that nobody waits for a long one
_CACHE_KIB = 16_384


class State(Protocol):
    """What is rebuilt from the file."""

    def reload(self, db: sqlite3.Connection) -> None:
        """Forget everything and read the file."""


class Store:
    """An open study file with its writer.

    Parameters
    ----------
    path
        A file that `nearer.study.create.new_study` made.
    state
        Rebuilt from the file when it is opened and whenever it may have come apart from it.
    """

    def __init__(self, path: Path, state: State) -> None:
        self.path = Path(path)
        self.trouble: str | None = None
        self._state = state
        self._stale = False
        self._waiting: queue.SimpleQueue[tuple[Change[Any], Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._readers = threading.local()
        self._db = connect(self.path, check_same_thread=False)
        self._version = self._data_version()
        state.reload(self._db)
        self._thread = threading.Thread(target=self._work, name="study-writer", daemon=True)
        self._thread.start()

    def submit(self, change: Change[T]) -> Future[T]:
        """Have a change made; the future is done when it is on the disk, or refused."""
        future: Future[T] = Future()
        if not self._thread.is_alive():
            future.set_exception(StoreTrouble(f"{self.path.name} is closed"))
        else:
            self._waiting.put((change, future))
        return future

    def write(self, change: Change[T]) -> T:
        """Have a change made and wait for it."""
        return self.submit(change).result()

    def close(self) -> None:
        """Make all waiting changes, then close the file."""
        self._waiting.put(None)
        self._thread.join()
        self._db.close()

    def reader(self) -> sqlite3.Connection:
        """A read-only connection of this thread, which sees all that is committed."""
        if not hasattr(self._readers, "db"):
            self._readers.db = connect(self.path, read_only=True)
        db: sqlite3.Connection = self._readers.db
        return db

    def _work(self) -> None:
        running = True
        while running:
            group: list[tuple[Change[Any], Future[Any]]] = []
            first = True
            while first or (len(group) < _GROUP and not self._waiting.empty()):
                first = False
                taken = self._waiting.get()
                if taken is None:
                    running = False
                    break
                # From here on a caller who went away can no longer cancel: it is made or not.
                if taken[1].set_running_or_notify_cancel():
                    group.append(taken)
            self._commit(group)

    def _commit(self, group: list[tuple[Change[Any], Future[Any]]]) -> None:
        """Run a group until all that remains of it is committed, then tell everyone."""
        while group:
            results: list[tuple[Future[Any], Any, Refusal | None]] = []
            current: Future[Any] | None = None
            try:
                self._begin()
                before = self._db.total_changes
                for change, future in group:
                    current = future
                    try:
                        results.append((future, change(self._db), None))
                    except Refusal as refusal:
                        results.append((future, None, refusal))
                current = None
                self._db.execute("COMMIT")
            except (sqlite3.OperationalError, sqlite3.DatabaseError, OSError) as error:
                if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                    group = self._without(group, current, error)
                    continue
                self._roll_back()
                self.trouble = f"{self.path.name} cannot be written: {error}"
                for _, future in group:
                    future.set_exception(StoreTrouble(self.trouble))
                return
            except Exception as error:  # a fault in one change must not cost the others theirs
                group = self._without(group, current, error)
                continue
            if self._db.total_changes > before:  # reading alone proves nothing about the disk
                self.trouble = None
            for future, result, refused in results:
                if refused is None:
                    future.set_result(result)
                else:
                    future.set_exception(refused)
            return

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        version = self._data_version()
        if self._stale or version != self._version:
            self._state.reload(self._db)
            self._stale = False
            self._version = version

    def _without(
        self,
        group: list[tuple[Change[Any], Future[Any]]],
        culprit: Future[Any] | None,
        error: Exception,
    ) -> list[tuple[Change[Any], Future[Any]]]:
        self._roll_back()
        for _, future in group:
            if culprit is None or future is culprit:
                future.set_exception(error)
        return [] if culprit is None else [pair for pair in group if pair[1] is not culprit]

    def _roll_back(self) -> None:
        self._stale = True
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _data_version(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])


def connect(
    path: Path, *, read_only: bool = False, check_same_thread: bool = True
) -> sqlite3.Connection:
    """Open a study file; one that is missing, no study, or of another format is refused."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such study; make one with `nearer study new`")
    mode = "ro" if read_only else "rw"
    try:
        db = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=10,
            check_same_thread=check_same_thread,
        )
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        found = read_header(db).get("format")
    except sqlite3.Error as error:
        raise InvalidInput(f"{path}: is not a study that can be opened: {error}") from error
    if found != str(FORMAT):
        raise InvalidInput(
            f"{path}: has study format {found}; this version of nearer reads {FORMAT}"
        )
    return db


def read_header(db: sqlite3.Connection) -> dict[str, str]:
    """The header's lines: format, version, seed, configuration."""
    return dict(db.execute("SELECT key, value FROM header").fetchall())


@contextmanager
def serving(path: Path) -> Iterator[None]:
    """Hold the right to serve a study; a second server of the same file is refused."""
    lock = Path(f"{path}-serving")
    try:
        held = lock.open("w", encoding="ascii")
    except OSError as error:
        raise InvalidInput(f"{lock}: cannot be written: {error.strerror}") from error
    with held:
        try:
            import fcntl  # noqa: PLC0415 - not on every system

            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError as error:
            raise InvalidInput(
                f"{path}: another server is already serving this study; stop it first"
            ) from error
        held.write(str(os.getpid()))
        held.flush()
        yield
    lock.unlink(missing_ok=True)
