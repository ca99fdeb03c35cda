"""The journal: every answer that was paid for, on disk before the next question goes out.

One SQLite file. Answers are kept by their *place in the run*, the round and the row in it, and not
by question: a question that is put twice on purpose, to see whether answers are exact or to be
surer, is two rows. With the seed, the method, its options and the version, which are kept too, an
asking can be made again and asks the same questions in the same places. Those that the file knows
are answered from it, the others go to the oracle; so the same call again gives the result that it
would have given without an interruption, and pays for nothing twice.

All answers that have come by the time the file is written go into one transaction, and the disk is
synced before it ends. Killed at any moment, the file holds every answer but those in flight. While
a run is under way SQLite keeps the latest of them in a file beside it (``-wal``), which takes one
sync where the other ways take four and lets others read meanwhile; it goes when the run ends.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.asking.answers import as_answers
from nearer.errors import InvalidInput, JournalError
from nearer.questions import Objects, Questions, Said

__all__ = ["Journal", "JournalRow", "connect"]

FORMAT = 1
_MARK = 0x6E656172  # "near": how an SQLite file says whose it is

_SCHEMA = f"""
PRAGMA application_id = {_MARK};
CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE calls (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, tries INTEGER NOT NULL, cost REAL NOT NULL
);
CREATE TABLE answers (
  round INTEGER NOT NULL, row INTEGER NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL,
  said_by TEXT, call INTEGER NOT NULL REFERENCES calls (id), PRIMARY KEY (round, row)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class JournalRow:
    """What one call has brought."""

    rows: Objects
    questions: Questions
    answers: Said
    by: list[Any] | None = None
    tries: int = 1
    cost: float = 0.0


class Journal:
    """An open journal of one run.

    Parameters
    ----------
    path
        The file; made where there is none.
    run
        What makes this run this one and no other, in words of JSON. A file of another run is
        refused.
    names
        What the objects are called, where they have names.
    """

    def __init__(
        self, path: str | os.PathLike[str], run: Mapping[str, Any], names: Iterable[Any] = ()
    ) -> None:
        self.path = Path(path)
        self._lock = _Lock(self.path)
        try:
            new = not self.path.exists() or not self.path.stat().st_size
            self._db = connect(self.path, new=new)
            if new or not _tables(self._db):
                self._create(run, names)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._run = _header(self._db)
            _check_format(self.path, self._run)
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Let go of the file, which then is whole by itself."""
        with suppress(sqlite3.Error):  # somebody reads it: it is whole with its -wal beside it
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()
        self._lock.release()

    def check(self, run: Mapping[str, Any]) -> None:
        """Refuse a file of another run, with what differs."""
        differs = [
            f"{name} was {_short(kept)} and is {_short(value)}"
            for name, value in run.items()
            if (kept := self._run.get(name)) != json.loads(json.dumps(value))
        ]
        if differs:
            raise InvalidInput(
                f"{self.path}: is the journal of another run: {'; '.join(differs)}. Make the call "
                "it was begun with to go on, or name another file; nearer.load_journal reads the "
                "answers in it"
            )

    @property
    def seed(self) -> int | None:
        """The seed of the run, given or drawn."""
        seed: int | None = self._run.get("seed")
        return seed

    @property
    def spent(self) -> float:
        """What all answers in it have cost."""
        return float(self._db.execute("SELECT coalesce(sum(cost), 0) FROM calls").fetchone()[0])

    @property
    def calls(self) -> int:
        """How many calls they took."""
        return int(self._db.execute("SELECT coalesce(sum(tries), 0) FROM calls").fetchone()[0])

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def known(self, number: int, questions: Questions) -> tuple[Objects, Said]:
        """The rows of a round that were answered before, and their answers."""
        found = self._db.execute(
            "SELECT row, question, answer FROM answers WHERE round = ? ORDER BY row", (number,)
        ).fetchall()
        rows = np.array([row for row, _, _ in found], dtype=np.int64)
        for row, question, _ in found:
            now = questions[row].tolist() if row < len(questions) else "nothing"
            if now != json.loads(question):
                raise InvalidInput(
                    f"{self.path}: is the journal of another run: question {row} of round {number} "
                    f"was {question} and is {now}. Make the strategy from the seed and with the "
                    "options it was begun with, or name another file"
                )
        said = [json.loads(answer) for _, _, answer in found]
        if not len(rows):
            return rows, np.empty(0, dtype=np.bool_)
        return rows, as_answers(_from_json(said, questions.shape[1]), questions[rows])

    def write(self, number: int, entries: list[JournalRow]) -> None:
        """Put answers of a round on the disk; they are there when this returns."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for entry in entries:
                call = self._db.execute(
                    "INSERT INTO calls (at, tries, cost) VALUES (?, ?, ?)",
                    (time.time(), entry.tries, entry.cost),
                ).lastrowid
                self._db.executemany(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        (number, row, json.dumps(question), json.dumps(answer), by, call)
                        for row, question, answer, by in zip(
                            entry.rows.tolist(),
                            entry.questions.tolist(),
                            _to_json(entry.answers),
                            map(json.dumps, entry.by) if entry.by else [None] * len(entry.rows),
                            strict=True,
                        )
                    ),
                )
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise JournalError(
                f"{self.path}: cannot be written ({error}); the answers before are safe in it. "
                "Make room or mend the disk, then make the same call again"
            ) from error

    def _create(self, run: Mapping[str, Any], names: Iterable[Any]) -> None:
        header = {"format": FORMAT, **run}
        try:
            self._db.execute("BEGIN EXCLUSIVE")
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.executemany(
                "INSERT INTO header VALUES (?, ?)", ((k, json.dumps(v)) for k, v in header.items())
            )
            self._db.executemany("INSERT INTO objects VALUES (?, ?)", enumerate(map(str, names)))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise JournalError(
                f"{self.path}: a journal cannot be begun there ({error}); nothing was asked"
            ) from error


def connect(path: Path, *, new: bool = False) -> sqlite3.Connection:
    """Open the file of a journal; one that is something else is refused."""
    if path.is_dir():
        raise InvalidInput(f"{path}: is a folder; a journal is a file, such as answers.db")
    if not new and not path.is_file():
        raise InvalidInput(f"{path}: there is no such journal; check the path")
    if path.is_file() and 0 < path.stat().st_size < 100:  # SQLite takes what it cannot read for new
        raise InvalidInput(f"{path}: is not a journal; name another file")
    mode = "rwc" if new else "rw" if os.access(path, os.W_OK) else "ro"
    try:
        db = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10
        )
        db.execute("PRAGMA synchronous = FULL")
        mark = int(db.execute("PRAGMA application_id").fetchone()[0])
        tables = _tables(db)
    except sqlite3.OperationalError as error:
        raise JournalError(
            f"{path}: cannot be opened ({error}); the folder must exist and be writable"
        ) from error
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path}: is not a journal ({error}); name another file") from error
    if tables and mark != _MARK:
        db.close()
        raise InvalidInput(f"{path}: is not a journal but another SQLite file; name another file")
    return db


def read_header(path: Path, db: sqlite3.Connection) -> dict[str, Any]:
    """What a journal says of its run."""
    header = _header(db) if _tables(db) else {}
    _check_format(path, header)
    return header


def _header(db: sqlite3.Connection) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM header")}


def _tables(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _check_format(path: Path, header: Mapping[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise InvalidInput(
            f"{path}: has journal format {header.get('format')}; this version reads {FORMAT}"
        )


def _to_json(answers: Said) -> list[Any]:
    """Answers as numbers, lists of them for screens, None for don't know."""
    masked: NDArray[np.bool_] = np.ma.getmaskarray(answers)
    data = np.ma.getdata(answers)
    values = data.astype(np.int64) if data.dtype == np.bool_ else data
    if masked.ndim == 2:
        masked = np.asarray(masked.any(axis=1))
    pairs = zip(values.tolist(), masked.tolist(), strict=True)
    return [None if gone else value for value, gone in pairs]


def _from_json(said: list[Any], width: int) -> Any:
    if width == 3:
        return np.array([np.nan if x is None else x for x in said], dtype=np.float64)
    unsure = [np.nan] * (width - 1)
    return np.array([unsure if x is None else x for x in said], dtype=np.float64)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 200 else text[:200] + "…"


class _Lock:
    """Nobody else writes the same journal at the same time, and pays for the same answers."""

    def __init__(self, path: Path) -> None:
        self._path = Path(f"{path}-lock")
        try:
            self._file = self._path.open("w", encoding="ascii")
        except OSError as error:
            raise JournalError(
                f"{path}: cannot be opened ({error.strerror}); the folder must exist and be "
                "writable"
            ) from error
        try:
            import fcntl  # noqa: PLC0415 - not on every system

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError as error:
            self._file.close()
            raise InvalidInput(
                f"{path}: another run is writing this journal; wait for it or name another file"
            ) from error

    def release(self) -> None:
        with suppress(OSError):  # some systems keep a file while it is open
            self._path.unlink(missing_ok=True)
        self._file.close()
