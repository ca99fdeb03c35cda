"""The journal stores every answer on disk before the next question is asked.

docs/oracles.md says what it stores, docs/architecture.md why by position in the run. It is an
SQLite database. All answers that have arrived by the time of writing go into one transaction, which
ends when the disk is synchronised, so that a process killed at any moment loses only the answers in
flight. During a run the latest answers are in a second file (``-wal``), which takes one
synchronisation instead of four and lets other processes read meanwhile.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import IO, Any

import numpy as np

from nearer.asking.protocol import as_answers, as_shape
from nearer.errors import InvalidInput, JournalError
from nearer.files import as_path, lock_file, one_message, refuse_larger
from nearer.questions import Questions, Said, unsure_rows
from nearer.trials import Trials, Triplets

FORMAT = 1
_JOURNAL = ("a journal", "if it is damaged, continue from a copy")
_MARK = int.from_bytes(b"near")  # the SQLite application id of a journal
#: Options that may differ from call to call: when to stop, and what to return.
FREE = ("budget", "quality", "keep_triplets", "begun_with")


@dataclass(frozen=True)
class Call:
    """The answers of one call of an oracle, with the rows of the round that they belong to."""

    rows: Questions
    questions: Questions
    answers: Said
    by: list[Any] | None = None
    tries: int = 1
    cost: float = 0.0

    def ballots(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Rows to store: row in the round; question, answer (null: don't know), judge, as JSON."""
        data = np.ma.getdata(self.answers)
        values: list[Any] = (data.astype(np.int64) if data.dtype == np.bool_ else data).tolist()
        for row in unsure_rows(self.answers).tolist():
            values[row] = None
        who = self.by or [None] * len(self.rows)
        columns = (self.rows.tolist(), self.questions.tolist(), values, who)
        for row, question, answer, by in zip(*columns, strict=True):
            judge = None if by is None else json.dumps(by)
            yield row, json.dumps(question), json.dumps(answer), judge


class Journal:
    """The answers of one run, in a file that is made if there is none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = as_path(path)
        self.header: dict[str, Any] = {}
        self.spent, self.calls, self._length = 0.0, 0, 0
        self._lock = _lock(self.path)
        try:
            self._db = _connect(self.path)
            if _tables(self._db):
                costs = "SELECT coalesce(sum(cost), 0.0), coalesce(sum(tries), 0) FROM calls"
                with one_message(self.path, *_JOURNAL):
                    self.header = _header(self.path, self._db)
                    self._length = sum(1 for _ in self.stored())
                    self.spent, self.calls = self._db.execute(costs).fetchone()
                    self._db.execute("PRAGMA journal_mode = WAL")
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self._length

    def close(self) -> None:
        """Close the file; all answers are then in it alone, unless another process reads it."""
        if hasattr(self, "_db"):
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()
        self._lock.close()

    def begin(self, run: Mapping[str, Any], drawn: Mapping[str, Any], names: Iterable[Any]) -> None:
        """Begin a run, or continue the one in the file; a journal of another run is refused.

        `run` identifies the run, in values of JSON; a new journal also stores `drawn`.
        """
        now = json.loads(json.dumps(dict(run)))
        if not self.header:
            things = [str(name) for name in names]
            self.header = {"format": FORMAT, **drawn, **now, "names": things}
            stored = ((key, json.dumps(x)) for key, x in self.header.items() if key != "names")
            try:
                self._db.execute("BEGIN EXCLUSIVE")
                for statement in (files("nearer.asking") / "journal.sql").read_text().split(";"):
                    self._db.execute(statement)
                self._db.executemany("INSERT INTO header VALUES (?, ?)", stored)
                self._db.executemany("INSERT INTO objects VALUES (?, ?)", enumerate(things))
                self._db.execute("COMMIT")
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.Error as error:
                rule = f"no journal can be made there ({error}); nothing was asked"
                raise JournalError(f"{self.path}: {rule}") from error
        elif differs := [text for name, text in self._differing(now) if name not in FREE]:
            rule = "which changes the questions; budget, limits, workers and progress may change"
            remedy = "repeat the first call, or name another file"
            which = f"the journal of another run: {'; '.join(differs)}"
            raise InvalidInput(f"{self.path}: is {which}, {rule}; {remedy}")
        # The budgets of the run, each larger than the one before; None is no limit.
        budget, before = now.get("budget"), self.header.get("budgets", [])
        with one_message(self.path, *_JOURNAL):
            if not before or (before[-1] is not None and (budget is None or budget > before[-1])):
                self.header["budgets"] = [*before, budget]
                text = json.dumps(self.header["budgets"])
                self._db.execute("INSERT OR REPLACE INTO header VALUES ('budgets', ?)", (text,))
        self._changed = [text for name, text in self._differing(now) if name in FREE]

    def stored(self, number: int | None = None) -> Iterator[tuple[int, list[int], Any, Any]]:
        """The row, question, answer and judge of each answer, of one round or of all."""
        return _stored(self._db, number)

    def known(self, number: int, questions: Questions) -> tuple[Questions, Said]:
        """The rows of a round that have answers in the journal, and these answers."""
        stored, asked = list(self.stored(number)), dict(enumerate(questions.tolist()))
        before = {row: question for row, question, *_ in stored}
        later = "SELECT EXISTS (SELECT 1 FROM answers WHERE round = ?)"
        ended = self._db.execute(later, (number + 1,)).fetchone()[0]  # all questions were answered
        for row in before | asked if ended else before:
            if (old := before.get(row)) != (new := asked.get(row, "nothing")):
                why = "".join(f", since {text}" for text in self._changed[:1])
                what = f"question {row} of round {number} was {old} and is {new}{why}"
                remedy = "make the strategy with its first seed and options, or name another file"
                raise InvalidInput(f"{self.path}: is the journal of another run: {what}; {remedy}")
        rows = np.array([row for row, *_ in stored], dtype=np.int64)
        unsure = np.nan if questions.shape[1] == 3 else [np.nan] * (questions.shape[1] - 1)
        values = [unsure if answer is None else answer for _, _, answer, _ in stored]
        shape = as_shape(questions[rows])
        with one_message(self.path, *_JOURNAL):
            return rows, as_answers(np.array(values, float).reshape(shape), questions[rows])

    def write(self, number: int, calls: list[Call]) -> None:
        """Store answers of a round; they are on disk when this returns."""
        try:
            with self._db:  # Ctrl-C, too, ends the transaction
                self._db.execute("BEGIN IMMEDIATE")
                for call in calls:
                    paid = (time.time(), call.tries, call.cost)
                    into = "INSERT INTO calls (at, tries, cost) VALUES (?, ?, ?)"
                    stored = self._db.execute(into, paid).lastrowid
                    rows = ((number, *ballot, stored) for ballot in call.ballots())
                    self._db.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            remedy = "earlier answers are safe in it; make room, then repeat the call"
            raise JournalError(f"{self.path}: cannot be written ({error}); {remedy}") from error
        self._length += sum(len(call.rows) for call in calls)

    def _differing(self, now: dict[str, Any]) -> list[tuple[str, str]]:
        texts = []
        for name, value in now.items():
            if (before := self.header.get(name)) != value:
                old, new = (json.dumps(x, ensure_ascii=False)[:200] for x in (before, value))
                texts.append((name, f"{name} was {old} and is {new}"))
        return texts


def _lock(path: Path) -> IO[bytes]:
    """Lock a journal, so that no second run pays for the same answers."""
    if path.is_dir():
        raise InvalidInput(f"{path}: is a folder; a journal is a file, such as answers.db")
    try:
        return lock_file(path)
    except BlockingIOError as error:
        rule = "another run is writing this journal; wait for it or name another file"
        raise InvalidInput(f"{path}: {rule}") from error
    except OSError as error:
        rule = f"cannot be opened ({error.strerror}); the folder must exist and be writable"
        raise JournalError(f"{path}: {rule}") from error


def _connect(path: Path, *, write: bool = True) -> sqlite3.Connection:
    """Open the SQLite file of a journal; other files are refused."""
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such journal; check the path")
    if path.stat().st_nlink > 1:  # SQLite writes a log beside each name
        rule = "has a second name, a hard link, under which answers could be lost; delete one"
        raise InvalidInput(f"{path}: {rule}")
    if 0 < path.stat().st_size < 100:  # SQLite would treat so short a file as empty
        raise InvalidInput(f"{path}: is not a journal; name another file")
    mode = "rw" if write and os.access(path, os.W_OK) else "ro"  # a reader must empty no log
    where = f"{path.resolve().as_uri()}?mode={mode}"
    try:
        # Several threads use the connection, one at a time.
        db = sqlite3.connect(
            where, uri=True, isolation_level=None, timeout=10, check_same_thread=False
        )
        db.execute("PRAGMA synchronous = FULL")
        is_other = _tables(db) and db.execute("PRAGMA application_id").fetchone() != (_MARK,)
    except sqlite3.OperationalError as error:
        rule = f"cannot be opened ({error}); the folder must exist and be writable"
        raise JournalError(f"{path}: {rule}") from error
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path}: is not a journal ({error}); name another file") from error
    if is_other:
        db.close()
        raise InvalidInput(f"{path}: is not a journal but another SQLite file; name another file")
    return db


def _tables(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _header(path: Path, db: sqlite3.Connection) -> dict[str, Any]:
    """What a journal says about its run."""
    stored = db.execute("SELECT key, value FROM header").fetchall() if _tables(db) else []
    header = {key: json.loads(value) for key, value in stored}
    if header.get("format") != FORMAT:
        rule = f"has journal format {header.get('format')}; this version reads {FORMAT}"
        raise InvalidInput(f"{path}: {rule}")
    names = db.execute("SELECT name FROM objects ORDER BY id").fetchall()
    return {**header, "names": [thing for (thing,) in names]}


def _stored(db: sqlite3.Connection, number: int | None = None) -> Iterator[tuple[Any, ...]]:
    which = "" if number is None else "WHERE round = ? "
    wanted = f"SELECT row, question, answer, said_by FROM answers {which}ORDER BY round, row"
    for row, question, answer, by in db.execute(wanted, () if number is None else (number,)):
        yield row, json.loads(question), json.loads(answer), by and json.loads(by)


def load_journal(path: str | os.PathLike[str]) -> Triplets:
    """Read the answers in a journal of a run that has ended or is still going on.

    Parameters
    ----------
    path
        The file given as ``journal=``.

    Returns
    -------
    answers
        `Triplets`, with weights for uncertain answers: "don't know" is a near tie, one half
        for each side. Where there were several judges, the judge of each answer.

    Examples
    --------
    >>> import nearer, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     oracle, ranking = nearer.PointOracle([0.0, 3.0, 1.0, 7.0]), nearer.rank_objects(0, 4)
    ...     _ = nearer.run(ranking, oracle, journal=f"{folder}/answers.db")
    ...     len(load_journal(f"{folder}/answers.db")) in (2, 3)
    True
    """
    file = as_path(path)
    with closing(_connect(file, write=False)) as db, one_message(file, *_JOURNAL):
        header = _header(file, db)
        votes = [  # every vote on a question is one triplet
            (*sided, person)
            for _, question, answer, by in _stored(db)
            for person, said in (by.items() if isinstance(by, dict) else [(by, answer)])
            for sided in _sides(question, said)
        ]
        triplets, sure, people = zip(*votes, strict=True) if votes else ((), (), ())
        rows, weights = np.array(triplets, dtype=np.int64).reshape(-1, 3), np.array(sure)
        names = header["names"]
        n = len(names) or header.get("n_objects") or int(rows.max(initial=-1)) + 1
        refuse_larger(file, 64 * n)  # the names alone take more
        if rows.max(initial=-1) >= n:
            raise ValueError(f"an answer is about object {rows.max()} of {n}")
        trials = Trials.from_triplets(
            rows,
            names=tuple(names) or tuple(map(str, range(n))),
            people=[person or "" for person in people] if any(people) else None,
            weights=None if (weights == 1).all() else weights,
        )
        return Triplets.of(trials)


def _sides(question: list[int], said: Any) -> list[tuple[tuple[int, ...], float]]:
    """One answer as triplets with weights; an uncertain comparison counts for both sides."""
    query, *shown = question
    if len(shown) > 2:
        pairs = product(zip(shown, said or [], strict=False), repeat=2)
        chosen = [(near, far) for (near, is_in), (far, is_too) in pairs if is_in and not is_too]
        return [((query, *pair), 1.0) for pair in chosen if query >= 0]
    p = 0.5 if said is None else float(said)
    sides = ((question, p), ((query, *shown[::-1]), 1 - p))
    return [(tuple(row), weight) for row, weight in sides if weight]
