"""The log read back: into a board, and into triplets."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.study.board import Board
from nearer.study.config import Config
from nearer.study.pieces import COUNTED
from nearer.study.rows import read_rows
from nearer.study.task_kinds import triplets_of

__all__ = [
    "EVERY_KIND",
    "asked_facts",
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
    WHERE q.purpose IN (SELECT value FROM json_each(?)) AND a.chosen IS NOT NULL
    AND a.person NOT IN (SELECT person FROM excluded)"""


def triplets(
    db: sqlite3.Connection,
    purposes: Sequence[str] = COUNTED,
    *,
    person: int | None = None,
) -> NDArray[np.int64]:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
    where, values = _ANSWERS, [json.dumps(list(purposes))]
    if person is not None:
        where += " AND a.person = ?"
        values.append(str(person))
    wide = db.execute("SELECT 1 FROM questions WHERE task != 'two' LIMIT 1").fetchone()
    if wide is None:  # SQLite takes the JSON apart ten times as fast
        rows = db.execute(
            "SELECT query, near, first + second - near FROM (SELECT a.id AS id, q.query AS query,"
            " json_extract(a.chosen, '$[0]') AS near, json_extract(q.shown, '$[0]') AS first,"
            f" json_extract(q.shown, '$[1]') AS second {where}) ORDER BY id",
            values,
        ).fetchall()
    else:
        found = db.execute(
            f"SELECT q.task, q.query, q.shown, a.chosen {where} ORDER BY a.id", values
        )
        rows = [
            row
            for task, query, shown, chosen in found
            for row in triplets_of(task, query, json.loads(shown), json.loads(chosen))
        ]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def asked_facts(db: sqlite3.Connection, person: int | None = None) -> NDArray[np.int64]:
    """The questions that a method must not choose again: its own and everybody else's."""
    rows = db.execute(
        """SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]') FROM posed
           WHERE task = 'two'
           AND (purpose IN ('holdout', 'extra', 'own') OR (purpose = 'main' AND person IS ?))""",
        (person,),
    ).fetchall()
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def last_answer(db: sqlite3.Connection) -> int:
    """The number of the newest answer, 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])
