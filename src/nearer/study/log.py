"""The log read back: into a board, and into triplets."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.study.board import Board, Lease, Question

__all__ = ["asked_facts", "last_answer", "read_items", "replay", "triplets"]


def replay(db: sqlite3.Connection, rule: str) -> Board:
    """Build the board that the file's rows describe."""
    board = Board(rule)
    for person, excluded, withdrawn in db.execute(
        "SELECT id, excluded, withdrawn FROM people ORDER BY id"
    ):
        board.add_person(person, bool(excluded), bool(withdrawn))
    for row in db.execute("SELECT id, head, a, b, purpose, person, repeats FROM posed ORDER BY id"):
        board.add_question(Question(*row))
    for (closes,) in db.execute("SELECT closes FROM batches WHERE closes != '[]' ORDER BY id"):
        for question in json.loads(closes):
            board.close_question(question)
    for i, question, person, a_left, expires in db.execute(
        "SELECT id, question, person, a_left, expires FROM leases ORDER BY id"
    ):
        board.add_lease(Lease(i, question, person, bool(a_left), expires))
    for lease, choice, near in db.execute("SELECT lease, choice, near FROM answers ORDER BY id"):
        board.add_answer(lease, choice, near)
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


def triplets(
    db: sqlite3.Connection,
    purpose: str = "main",
    *,
    person: int | None = None,
    upto: int | None = None,
) -> NDArray[np.int64]:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
    sql = """SELECT q.head, a.near, a.far FROM answers a
             JOIN posed q ON q.id = a.question JOIN people p ON p.id = a.person
             WHERE q.purpose = ? AND a.near IS NOT NULL AND NOT p.excluded"""
    values: list[Any] = [purpose]
    if person is not None:
        sql += " AND a.person = ?"
        values.append(person)
    if upto is not None:
        sql += " AND a.id <= ?"
        values.append(upto)
    rows = db.execute(sql + " ORDER BY a.id", values).fetchall()
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def asked_facts(db: sqlite3.Connection, person: int | None = None) -> NDArray[np.int64]:
    """The questions that a method must not choose again: its own and all hold-outs."""
    rows = db.execute(
        """SELECT head, a, b FROM posed
           WHERE purpose = 'holdout' OR (purpose = 'main' AND person IS ?)""",
        (person,),
    ).fetchall()
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def last_answer(db: sqlite3.Connection) -> int:
    """The number of the newest answer, 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])
