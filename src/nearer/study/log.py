"""The log read back: into a board, and into triplets."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.study.board import Board
from nearer.study.config import Config
from nearer.study.pieces import COUNTED
from nearer.study.rows import decode, read_rows
from nearer.study.task_kinds import trials_of, triplets_of
from nearer.trials import Trials

__all__ = [
    "EVERY_KIND",
    "Collected",
    "asked_facts",
    "collected",
    "comparisons",
    "last_answer",
    "read_config",
    "read_header",
    "read_items",
    "replay",
    "triplets",
]

#: purposes whose answers say something about the objects; a catch trial does not
EVERY_KIND = (*COUNTED, "holdout", "repeat")


def read_header(db: sqlite3.Connection) -> dict[str, str]:
    """The header's lines: format, version, seed, the configuration a study was made with."""
    return dict(db.execute("SELECT key, value FROM header").fetchall())


def read_config(db: sqlite3.Connection) -> Config:
    """The settings as they are now: the first ones, and every change."""
    config = Config.from_json(read_header(db)["config"])
    for (detail,) in db.execute("SELECT detail FROM events WHERE kind = 'settings' ORDER BY id"):
        config = config.changed(json.loads(detail))
    return config


def replay(db: sqlite3.Connection) -> Board:
    """Build the board that the file's rows describe."""
    board = Board(Config.from_json(read_header(db)["config"]), read_items(db))
    collects = gc.isenabled()
    gc.disable()  # nothing here becomes garbage, and looking for it takes most of the time
    try:
        for row in read_rows(db):
            board.apply(row)
    finally:
        if collects:
            gc.enable()
    return board


def read_items(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """The things that are compared, as a page shows them."""
    return [
        {
            "id": i,
            "kind": kind,
            "name": name,
            "text": text,
            "alt": alt or name,
            "src": None if media is None else f"/media/{media}",
        }
        for i, name, kind, text, alt, media in db.execute(
            "SELECT id, name, kind, text, alt, media FROM items ORDER BY id"
        )
    ]


_ANSWERS = """FROM standing a JOIN posed q ON q.id = a.question
    WHERE q.purpose IN (SELECT value FROM json_each(?))
    AND (a.choice = 'chosen' OR a.choice = ?)
    AND a.person NOT IN (SELECT person FROM excluded) AND coalesce(a.person = ?, 1)"""


@dataclass(frozen=True)
class Collected:
    """Answers in the order they came, as `nearer.fit` takes them, near ties among them."""

    answers: NDArray[np.int64] | Trials
    people: NDArray[np.int64]
    odds: NDArray[np.float64] | None  # with which their questions were chosen
    seen: int  # the number of the newest answer in the file

    @property
    def decided(self) -> int:
        """How many of them are no ties."""
        rows = self.answers
        return int(rows.decided.sum()) if isinstance(rows, Trials) else len(rows)

    def first(self, m: int) -> Collected:
        """Only so many of them."""
        odds = None if self.odds is None else self.odds[:m]
        return Collected(self.answers[:m], self.people[:m], odds, self.seen)


def collected(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> Collected:
    """Answers with who gave them and why they were asked for, excluded people left out.

    "Can't decide" is an answer, too: what was shown is about a tie. A skipped question is none.
    """
    seen = last_answer(db)
    if _all_of_two(db):
        rows, people, odds, unsure = comparisons(db, purposes)
        odds = np.nan_to_num(odds, nan=1.0)
        if not unsure.any():
            return Collected(rows, people, odds, seen)
        said = np.ma.MaskedArray(np.ones(len(rows), dtype=np.bool_), mask=unsure)
        return Collected(Trials.from_screens(rows, said), people, odds, seen)
    found = db.execute(
        f"SELECT q.task, q.query, q.shown, a.chosen, q.choose, a.person {_ANSWERS} ORDER BY a.id",
        (json.dumps(list(purposes)), "undecided", None),
    ).fetchall()
    people = np.array([row[5] for row in found], dtype=np.int64)
    given = [
        (task, q, decode(shown), None if chosen is None else decode(chosen))
        for task, q, shown, chosen, *_ in found
    ]
    trials = trials_of(given, [row[4] for row in found])
    if trials is not None:
        return Collected(trials, people, None, seen)
    # Tasks of several kinds have no other form than triplets, which say nothing of ties.
    told = [[] if one[3] is None else triplets_of(*one[:3], one[3]) for one in given]
    rows = np.array([row for rows in told for row in rows], dtype=np.int64).reshape(-1, 3)
    return Collected(rows, np.repeat(people, [len(rows) for rows in told]), None, seen)


def triplets(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> NDArray[np.int64]:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
    if _all_of_two(db):
        rows, _, _, unsure = comparisons(db, purposes)
        return rows[~unsure]
    answers = collected(db, purposes).answers
    return answers.triplets()[0] if isinstance(answers, Trials) else answers


def _all_of_two(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM questions WHERE task != 'two' LIMIT 1").fetchone() is None


def comparisons(
    db: sqlite3.Connection, purposes: Sequence[str] = COUNTED, person: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Which of two, as ``(head, near, far)``: with people, odds, and where nobody could decide.

    SQLite takes the JSON apart ten times as fast.
    """
    found = db.execute(
        "SELECT query, near, first + second - near, person, odds, tie FROM (SELECT a.id AS id,"
        " a.person AS person, q.query AS query, q.odds AS odds, a.chosen IS NULL AS tie,"
        " coalesce(json_extract(a.chosen, '$[0]'), json_extract(q.shown, '$[0]')) AS near,"
        " json_extract(q.shown, '$[0]') AS first,"
        f" json_extract(q.shown, '$[1]') AS second {_ANSWERS}) ORDER BY id",
        (json.dumps(list(purposes)), "undecided", person),
    ).fetchall()
    table = np.array(found, dtype=np.float64).reshape(-1, 6)  # objects are below 2^21
    rows, people = table[:, :3].astype(np.int64), table[:, 3].astype(np.int64)
    return rows, people, table[:, 4], table[:, 5] > 0


def asked_facts(
    db: sqlite3.Connection, person: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The questions that a method must not choose again, its own and everybody else's; their odds.

    Odds are nan where a question was not chosen, or nobody knows how.
    """
    rows = db.execute(
        """SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]'), odds FROM posed
           WHERE task = 'two'
           AND (purpose IN ('holdout', 'extra', 'own') OR (purpose = 'main' AND person IS ?))""",
        (person,),
    ).fetchall()
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return table[:, :3].astype(np.int64), table[:, 3]


def last_answer(db: sqlite3.Connection) -> int:
    """The number of the newest answer, 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])
