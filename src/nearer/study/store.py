"""The study's file: SQLite with one writer and group commit.

Everything that changes the file is a function handed to one thread, which runs all that wait in one
transaction, syncs the disk once, and only then tells each caller. A function that refuses a
request raises `Refusal` or `InvalidInput` before it has touched anything. The board, the state in
memory, belongs to that thread. What was erased is overwritten in the file at once
(``secure_delete``), and in the write-ahead log as soon as no reader needs an older state.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import nearer
from nearer.errors import InvalidInput
from nearer.files import cannot_be_written, lock_file, one_message
from nearer.questions import share_interval
from nearer.study.board import Board, Ledger, OwnQuestion, Refusal, StoreTrouble, read_rows
from nearer.study.config import Config

if TYPE_CHECKING:
    from nearer.study.items import Item

FORMAT = "3"  # of the tables, which `schema.sql` describes


def read_header(db: sqlite3.Connection) -> dict[str, str]:
    """The header's lines: format, version, name, the configuration a study was made with."""
    return dict(db.execute("SELECT key, value FROM header").fetchall())


def read_config(db: sqlite3.Connection) -> Config:
    """The settings as they are now: the first ones, and every change."""
    config = Config.of(json.loads(read_header(db)["config"]))
    for (detail,) in db.execute("SELECT detail FROM events WHERE kind = 'settings' ORDER BY id"):
        config = config.changed(json.loads(detail))
    return config


def replay(db: sqlite3.Connection) -> Board:
    """Build the board that the file's rows describe."""
    board = Board(Config.of(json.loads(read_header(db)["config"])), stored_items(db))
    gc.disable()  # nothing here becomes garbage, and collecting it would take most of the time
    try:
        for row in read_rows(db):
            board.apply(row)
    finally:
        gc.enable()
    return board


def stored_items(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """The things that are compared, as a page shows them."""
    rows = db.execute(
        "SELECT id, kind, name, text, iif(alt = '', name, alt), '/media/' || media"
        " FROM items ORDER BY id"
    )
    names = ("id", "kind", "name", "text", "alt", "src")
    return [dict(zip(names, row, strict=True)) for row in rows]


def latest_map(db: sqlite3.Connection, *, positions: bool = True) -> dict[str, Any] | None:
    """The newest map, and how its accuracy developed."""
    names = ("at", "seen", "n_triplets", "dimension", "accuracy", "n_holdout", "seconds")
    rows = db.execute(f"SELECT {', '.join(names)} FROM maps ORDER BY id").fetchall()
    if not rows:
        return None
    history = [dict(zip(names, row, strict=True)) for row in rows]
    newest: dict[str, Any] = {**history[-1], "accuracy_interval": None}
    if newest["n_holdout"]:
        newest["accuracy_interval"] = share_interval(newest["accuracy"], newest["n_holdout"])
    if positions:
        sql = "SELECT positions FROM maps ORDER BY id DESC LIMIT 1"
        newest |= {"positions": json.loads(db.execute(sql).fetchone()[0]), "history": history}
    return newest


def new_study(
    path: Path, items: Sequence[Item], config: Config, questions: Sequence[OwnQuestion] = ()
) -> None:
    """Write a study file, whole or not at all; an existing file is not replaced."""
    config.check_items(len(items))
    late = [q.position for q in questions if (q.position or 0) > config.questions]
    if late:
        rule = f"a person answers {config.questions} questions; raise `questions` or choose earlier"
        raise InvalidInput(f"position={late[0]} of an own question: {rule}")
    header = {"format": FORMAT, "version": nearer.__version__, "study": secrets.token_hex(8)}
    header["config"] = config.model_dump_json()
    with _created(Path(path)) as part, closing(sqlite3.connect(part, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript((files("nearer.study") / "schema.sql").read_text(encoding="utf-8"))
        db.execute("BEGIN")
        db.executemany("INSERT INTO header VALUES (?, ?)", header.items())
        db.execute("INSERT INTO secrets VALUES ('sign', ?)", (secrets.token_bytes(32),))
        insert_items(db, items)
        db.executemany(
            "INSERT INTO questions (task, query, shown, purpose, position, expected)"
            " VALUES ('two', ?, json_array(?, ?), 'own', ?, ?)",
            questions,
        )
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _created(path: Path) -> Iterator[Path]:
    """A temporary name for a new database, which takes the file's place when it is complete."""
    if path.exists():
        raise InvalidInput(f"{path}: exists already; choose another name or delete it")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        part.touch(mode=0o600)  # it holds people's names, and the key that signs
        yield part
        part.replace(path)
    except (OSError, sqlite3.Error) as error:
        raise cannot_be_written(path, error) from error
    finally:
        for left in (part, Path(f"{part}-wal"), Path(f"{part}-shm")):
            left.unlink(missing_ok=True)


def insert_items(db: sqlite3.Connection, items: Iterable[Item]) -> None:
    """Add things to compare, numbered after those in the study."""
    first = db.execute("SELECT count(*) FROM items").fetchone()[0]
    for i, item in enumerate(items, start=first):
        sha = None
        if item.content:
            sha = hashlib.sha256(item.content).hexdigest()
            sql = "INSERT OR IGNORE INTO media VALUES (?, ?, ?)"
            db.execute(sql, (sha, item.mime, item.content))
        row = (i, item.name, item.kind, item.text, item.alt, sha)
        db.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", row)


def back_up(path: Path, copy: Path) -> None:
    """Copy a study while it is being served; the copy is one consistent moment of it."""
    with reading(path) as source, _created(Path(copy)) as part:
        with closing(sqlite3.connect(part)) as target:
            source.backup(target)
            problems = target.execute("PRAGMA integrity_check").fetchone()[0]
            target.execute("PRAGMA journal_mode = WAL")
        if problems != "ok":
            raise InvalidInput(f"{path}: is damaged: {problems}; continue from a backup")


T = TypeVar("T")
Change = Callable[[Ledger], T]
Waiting = tuple[Change[Any], "Future[Any]"]

AGAIN = 1.0  # seconds until a step that failed, or was of no use, is repeated


@dataclass(frozen=True)
class Facts:
    """The parts of a study's state that every thread may read."""

    config: Config
    state: str
    items: list[dict[str, Any]]
    full: bool


class Store:
    """An open study file with its writer; one that is not `durable` does not wait for the disk."""

    facts: Facts
    _board: Board

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
        durable: bool = True,
    ) -> None:
        self.path = Path(path)
        self.trouble: str | None = None
        self._clock = clock
        self._rng = rng or np.random.default_rng()
        self._version: int | None = None  # of the file from which the board was built
        self._watchers: list[Callable[[Board], None]] = []
        self._ahead = 0.0  # how far the clock was set back
        self.erased = True  # the log may still hold rows that another process erased
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._readers = threading.local()
        self._db = connect(self.path)
        newest = "SELECT coalesce(max(issued), 0.0) FROM leases"  # the clock may be set back since
        with one_message(self.path, *_DAMAGED):
            self._latest = float(self._db.execute(newest).fetchone()[0])
            self._refresh()
        if not durable:
            self._db.execute("PRAGMA synchronous = OFF")
        self._thread = threading.Thread(target=self._work, name="study-writer", daemon=True)
        self._thread.start()

    def submit(self, change: Change[T]) -> Future[T]:
        """Queue a change; the future is done when the change is on the disk, or refused."""
        future: Future[T] = Future()
        if not self._thread.is_alive():
            future.set_exception(StoreTrouble(f"{self.path.name} is closed"))
        else:
            self._waiting.put((change, future))
        return future

    def write(self, change: Change[T]) -> T:
        """Make a change and wait for it."""
        return self.submit(change).result()

    def watch(self, watcher: Callable[[Board], None]) -> None:
        """Call a function with the board after every commit, in the writer's thread."""
        self._watchers.append(watcher)

    def close(self) -> None:
        """Make all waiting changes, then close the file."""
        self._waiting.put(None)
        self._thread.join()
        if self.erased:
            self._scrub(_PATIENCE)
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
            group: list[Waiting] = []
            with contextlib.suppress(queue.Empty):
                first = self._waiting.get(timeout=AGAIN if self.erased else None)
                taken = [first, *(self._waiting.get() for _ in range(self._waiting.qsize()))]
                running = None not in taken
                # From here on a caller can no longer cancel: the change is made or refused.
                group = [x for x in taken if x and x[1].set_running_or_notify_cancel()]
            if group:
                self._commit(group)
            if self.erased:
                self._scrub()

    def _commit(self, group: list[Waiting]) -> None:
        """Make a group of changes in one transaction, then tell every caller."""
        settled: list[tuple[Callable[[Any], None], Any]] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._refresh()
            before = self._db.total_changes
            ledger = Ledger(self._db, self._board, self._now(), self._rng)
            for change, future in group:
                try:
                    settled.append((future.set_result, change(ledger)))
                except (Refusal, InvalidInput) as refusal:
                    settled.append((future.set_exception, refusal))
            self._db.execute("COMMIT")
        except Exception as error:
            self._give_up(group, error)
            return
        if self._db.total_changes > before:  # reading alone does not show that the disk works
            self.trouble = None
        self.erased |= ledger.erased
        self._publish()
        for settle, result in settled:
            settle(result)

    def _give_up(self, group: list[Waiting], error: Exception) -> None:
        """Roll a group back; if one change has a fault, each is made again by itself."""
        self._version = None
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        fault = isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)
        if not fault and isinstance(error, sqlite3.DatabaseError | OSError):
            self.trouble = f"{self.path.name} cannot be written: {error}"
            error = StoreTrouble(self.trouble)
        elif len(group) > 1:
            for one in group:
                self._commit([one])
            return
        for _, future in group:
            future.set_exception(error)

    def _refresh(self) -> None:
        """Build the board again if a group was rolled back or another process wrote."""
        version = self._db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._board, self._version = replay(self._db), version
            self.erased = True
            self._publish()

    def _now(self) -> float:
        """Seconds since the epoch, which never decrease, even if the clock is set back."""
        now = self._clock() + self._ahead
        self._ahead += max(self._latest - now, 0.0)
        self._latest = max(self._latest, now)
        return self._latest

    def _publish(self) -> None:
        board = self._board
        self.facts = Facts(board.config, board.state, board.items, board.full)
        for watcher in self._watchers:
            watcher(board)

    def _scrub(self, patience: int = 0) -> None:
        """Empty the write-ahead log; later, if others read it for more than `patience` seconds."""
        self._db.execute(f"PRAGMA busy_timeout = {patience * 1000}")
        with contextlib.suppress(sqlite3.Error):
            self.erased = bool(self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        self._db.execute(f"PRAGMA busy_timeout = {_PATIENCE * 1000}")


_DAMAGED = ("a study", "if it is damaged, continue from a backup")
_PATIENCE = 10  # seconds to wait for another process that writes


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a study file; one that is missing, no study, or of another format is refused."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such study; make one with `nearer study new`")
    if path.stat().st_nlink > 1:  # SQLite has a log of changes beside each name
        rule = "has a second name, a hard link, under which answers could be lost"
        raise InvalidInput(f"{path}: {rule}; delete one, and copy with `nearer study backup`")
    with one_message(path, *_DAMAGED):
        db = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rw'}",
            uri=True,
            isolation_level=None,
            timeout=_PATIENCE,
            check_same_thread=False,  # the writer's is opened by one thread and used by another
        )
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA synchronous = FULL")
        version = read_header(db).get("format")
    if version != FORMAT:
        db.close()
        rule = f"this version of nearer reads {FORMAT}"
        raise InvalidInput(f"{path}: has study format {version}; {rule}")
    return db


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A study file to read from; damage of any kind is one message."""
    with closing(connect(path, read_only=True)) as db, one_message(path, *_DAMAGED):
        yield db


@contextmanager
def serving(path: Path) -> Iterator[None]:
    """Hold the right to serve a study; a second server of the same file is refused.

    The file itself is locked, so that another name of it is locked, too.
    """
    connect(path, read_only=True).close()
    try:
        held = lock_file(path)
    except OSError as error:
        why = "another server is already serving this study"
        raise InvalidInput(f"{path}: {why}; stop it first") from error
    with held:
        yield
