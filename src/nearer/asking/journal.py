"""The journal: every answer that was paid for, on disk before the next question is asked.

A journal is one SQLite file. Answers are stored by their *place in the run*, the round and the row
in it, and not by question, because a strategy may ask a question twice on purpose. The journal also
stores the seed, the method, its options and the version, so that the same call makes the same
strategy again, which asks the same questions in the same places. Those in the journal are answered
from it and the others by the oracle: the call gives the result that it would have given without an
interruption, and nothing is paid for twice.

All answers that have arrived by the time of writing go into one transaction, which ends when the
disk is synchronised. A process killed at any moment loses only the answers in flight. During a run
SQLite keeps the latest answers in a second file (``-wal``), which takes one synchronisation instead
of four and lets other processes read meanwhile; it disappears when the run ends.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearer.asking.answers import as_answers
from nearer.errors import InvalidInput, JournalError
from nearer.files import lock_file
from nearer.questions import Floats, Objects, Questions, Said, answered, unsure_rows, weighted
from nearer.trials import Trials

if TYPE_CHECKING:
    from nearer.triplets import Triplets

__all__ = ["Call", "Journal", "journal_seed", "load_journal"]

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
class Call:
    """The answers of one call of an oracle, with the rows of the round that they belong to."""

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
        The file; it is made if there is none.
    run
        What identifies the run, in values that JSON can hold.
    names
        The names of the objects, if they have any.
    """

    def __init__(
        self, path: str | os.PathLike[str], run: Mapping[str, Any], names: Iterable[Any] = ()
    ) -> None:
        self.path = Path(path)
        self._lock = _lock(self.path)
        try:
            self._db = _connect(self.path)
            if not _tables(self._db):
                self._create(run, names)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._run = _read_header(self.path, self._db)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the file; all answers are then in it alone, unless another process reads it."""
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()
        self._lock.close()

    def check(self, run: Mapping[str, Any]) -> None:
        """Refuse the journal of another run, with what differs."""
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
        """The seed of the run."""
        seed: int | None = self._run.get("seed")
        return seed

    @property
    def spent(self) -> float:
        """What all answers in the journal have cost."""
        return float(self._db.execute("SELECT coalesce(sum(cost), 0) FROM calls").fetchone()[0])

    @property
    def calls(self) -> int:
        """How many calls of the oracle they took."""
        return int(self._db.execute("SELECT coalesce(sum(tries), 0) FROM calls").fetchone()[0])

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def known(self, number: int, questions: Questions) -> tuple[Objects, Said]:
        """The rows of a round that have answers in the journal, and these answers."""
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

    def write(self, number: int, calls: list[Call]) -> None:
        """Write answers of a round; they are on the disk when this returns."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for call in calls:
                number_of_call = self._db.execute(
                    "INSERT INTO calls (at, tries, cost) VALUES (?, ?, ?)",
                    (time.time(), call.tries, call.cost),
                ).lastrowid
                self._db.executemany(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        (number, row, json.dumps(question), json.dumps(answer), by, number_of_call)
                        for row, question, answer, by in zip(
                            call.rows.tolist(),
                            call.questions.tolist(),
                            _to_json(call.answers),
                            map(json.dumps, call.by) if call.by else [None] * len(call.rows),
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


def _lock(path: Path) -> IO[bytes]:
    """Lock a journal, so that no second run pays for the same answers."""
    if path.is_dir():
        raise InvalidInput(f"{path}: is a folder; a journal is a file, such as answers.db")
    try:
        return lock_file(path)
    except BlockingIOError as error:
        raise InvalidInput(
            f"{path}: another run is writing this journal; wait for it or name another file"
        ) from error
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be opened ({error.strerror}); the folder must exist and be writable"
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
    """Open the SQLite file of a journal; other files are refused."""
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such journal; check the path")
    if 0 < path.stat().st_size < 100:  # SQLite takes a file this short for an empty one
        raise InvalidInput(f"{path}: is not a journal; name another file")
    mode = "rw" if os.access(path, os.W_OK) else "ro"
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


def _read_header(path: Path, db: sqlite3.Connection) -> dict[str, Any]:
    """What a journal says about its run."""
    rows = db.execute("SELECT key, value FROM header").fetchall() if _tables(db) else []
    header = {key: json.loads(value) for key, value in rows}
    if header.get("format") != FORMAT:
        raise InvalidInput(
            f"{path}: has journal format {header.get('format')}; this version reads {FORMAT}"
        )
    return header


def _tables(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


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


def load_journal(path: str | os.PathLike[str]) -> Triplets:
    """Read the answers in a journal of a run that has ended or is still going on.

    Parameters
    ----------
    path
        The file given as ``journal=``.

    Returns
    -------
    answers
        `Triplets`, with weights where answers were uncertain: "don't know" is a near tie, one half
        for each side. Where there were several judges, the judge of each answer.

    Examples
    --------
    >>> import nearer, numpy as np, tempfile, pathlib
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "answers.db"
    ...     found = nearer.embed(nearer.PointOracle(X), 20, journal=file, progress=False)
    ...     answers = nearer.load_journal(file)
    >>> len(answers) == found.n_comparisons, answers.n_objects
    (True, 20)
    """
    from nearer.triplets import Triplets  # noqa: PLC0415 - a run needs no reader

    file = Path(path)
    with closing(_connect(file)) as db:
        header = _read_header(file, db)
        try:
            names = [name for (name,) in db.execute("SELECT name FROM objects ORDER BY id")]
            kept = db.execute(
                "SELECT question, answer, said_by FROM answers ORDER BY round, row"
            ).fetchall()
        except sqlite3.Error as error:
            raise InvalidInput(f"{file}: is not a whole journal ({error})") from error
    rows, weights, people = _votes(kept)
    n = len(names) or header.get("n_objects") or int(rows.max(initial=-1)) + 1
    named = any(person is not None for person in people)
    trials = Trials.from_triplets(
        rows,
        names=tuple(names) or tuple(map(str, range(n))),
        people=[person or "" for person in people] if named else None,
        weights=None if (weights == 1).all() else weights,
    )
    return Triplets.of(trials)


def journal_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of a journal's run, given or drawn."""
    with closing(_connect(Path(path))) as db:
        seed: int | None = _read_header(Path(path), db).get("seed")
        return seed


def _votes(kept: list[tuple[str, str, str | None]]) -> tuple[Objects, Floats, list[str | None]]:
    """Triplets, their weights and the judge of each; every vote on a question is one triplet."""
    ballots = [
        (json.loads(question), person, said)
        for question, answer, by in kept
        for person, said in _ballots(answer, by)
    ]
    rows: list[Objects] = [np.empty((0, 3), dtype=np.int64)]
    weights: list[Floats] = [np.empty(0)]
    people: list[str | None] = []
    # neighbours of one width and one person are taken together, in the order they were given
    for (width, person), some in groupby(ballots, key=lambda ballot: (len(ballot[0]), ballot[1])):
        group = list(some)
        unsure = np.nan if width == 3 else [np.nan] * (width - 1)
        said = np.array([unsure if x is None else x for *_, x in group], dtype=np.float64)
        questions = np.array([question for question, *_ in group], dtype=np.int64)
        answers = as_answers(said, questions)
        if answers.dtype == np.bool_ and not len(unsure_rows(answers)):
            triplets = answered(questions, answers)  # in the order they were given
            count = np.ones(len(triplets))
        else:
            triplets, count = weighted(questions, answers)
        rows.append(triplets)
        weights.append(count)
        people.extend([person] * len(count))
    return np.concatenate(rows), np.concatenate(weights), people


def _ballots(answer: str, by: str | None) -> list[tuple[str | None, Any]]:
    who = None if by is None else json.loads(by)
    return list(who.items()) if isinstance(who, dict) else [(who, json.loads(answer))]
