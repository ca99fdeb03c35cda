"""A study file of an earlier format becomes one of today's: once, with a copy of the old beside it.

The new file is written apart and takes the place of the old one only when it is whole. What
format 1 kept in columns that changed (consent, ready, finished, excluded, withdrawn, state, quota)
becomes events, with the time it is known to have happened. Format 2 did not keep the odds with
which questions were chosen; nobody knows them any more, and they count as random ones. Neither
format knew of `quality`: such a study goes on until its quota is met.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from nearer.errors import InvalidInput
from nearer.study.create import copy_checked, drafted
from nearer.study.schema import FORMAT, POSED, SCHEMA
from nearer.study.words import read_words, shipped

__all__ = ["migrate"]

_TROUBLE = "cannot be brought up to date"
_SAME = ("media", "items", "identities", "maps", "secrets")
_FIELDS = """
INSERT INTO people SELECT id, pseudonym, joined, '' FROM old.people;
INSERT INTO batches SELECT id, at, person, method, seen, seconds FROM old.batches;
INSERT INTO questions
  SELECT id, 'two', head, json_array(a, b), 1, purpose, person, batch, repeats, NULL,
         CASE WHEN purpose = 'catch' THEN head END, NULL FROM old.questions;
INSERT INTO promoted (question, batch) SELECT question, batch FROM old.promoted ORDER BY question;
INSERT INTO leases
  SELECT l.id, l.question, l.person,
         CASE WHEN l.a_left THEN json_array(q.a, q.b) ELSE json_array(q.b, q.a) END,
         l.issued, l.expires
  FROM old.leases l JOIN old.questions q ON q.id = l.question;
INSERT INTO answers
  SELECT id, lease, question, person,
         CASE WHEN near IS NULL THEN choice ELSE 'chosen' END,
         CASE WHEN near IS NULL THEN NULL ELSE json_array(near) END,
         response_ms, NULL, received, NULL
  FROM old.answers;
INSERT INTO accounts SELECT id, name, password FROM old.accounts;
"""


def migrate(path: Path, found: str) -> Path:
    """Bring a file of an earlier format up to date; where the old one was kept."""
    copy = path.with_name(f"{path.name}.format-{found}")
    if copy.exists():
        raise InvalidInput(
            f"{copy}: exists already, and {path} is to be kept under that name before it is "
            "brought up to date; move the older copy away"
        )
    with drafted(path, _TROUBLE) as draft, drafted(copy, _TROUBLE) as kept:
        _settle(path)
        with closing(sqlite3.connect(path)) as source:
            copy_checked(source, kept)
        {"1": _convert, "2": _add_odds}[found](path, draft)
    return copy


def _settle(path: Path) -> None:
    """Put what is in the write-ahead log into the file; fails while somebody else has it open."""
    db = sqlite3.connect(path, isolation_level=None, timeout=2)
    try:
        db.execute("PRAGMA journal_mode = DELETE")
    finally:
        db.close()


def _convert(path: Path, draft: Path) -> None:
    db = sqlite3.connect(draft, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA)
        db.execute("ATTACH DATABASE ? AS old", (str(path),))
        db.execute("BEGIN")
        header = dict(db.execute("SELECT key, value FROM old.header"))
        state, quota = header.pop("state"), int(header.pop("quota"))
        config = json.loads(header["config"])
        db.executemany("INSERT INTO header VALUES (?, ?)", _header(header).items())
        for table in _SAME:
            db.execute(f"INSERT INTO {table} SELECT * FROM old.{table}")
        for statement in filter(str.strip, _FIELDS.split(";")):
            db.execute(statement)
        for at, kind, person, detail in sorted(_events(db, config, state, quota), key=_by_time):
            db.execute(
                "INSERT INTO events (at, kind, person, detail) VALUES (?, ?, ?, ?)",
                (at, kind, person, json.dumps(detail)),
            )
        wrong = db.execute("PRAGMA main.foreign_key_check").fetchone()
        if wrong is not None:
            raise sqlite3.IntegrityError(f"a row of {wrong[0]} speaks of one that is missing")
        db.execute("COMMIT")
        db.execute("DETACH DATABASE old")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


def _header(header: dict[str, str]) -> dict[str, str]:
    config = {**json.loads(header["config"]), "quality": 1.0}
    if config.get("language", "en") not in shipped():  # words that there were not yet are English
        config["words"] = {**read_words("en", {}), **config["words"]}
        del config["words"]["language"]
    return {**header, "format": str(FORMAT), "config": json.dumps(config, sort_keys=True)}


def _add_odds(path: Path, draft: Path) -> None:
    with closing(sqlite3.connect(path)) as source:
        copy_checked(source, draft)
    db = sqlite3.connect(draft, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN")
        db.execute("DROP VIEW posed")
        db.execute("ALTER TABLE questions ADD COLUMN odds REAL")
        db.execute(POSED)
        header = _header(dict(db.execute("SELECT key, value FROM header")))
        db.executemany("INSERT OR REPLACE INTO header VALUES (?, ?)", header.items())
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


def _by_time(event: tuple[Any, ...]) -> float:
    return float(event[0])


def _events(
    db: sqlite3.Connection, config: dict[str, Any], state: str, quota: int
) -> list[tuple[float, str, int | None, dict[str, Any]]]:
    """What happened, in today's words."""
    found: list[tuple[float, str, int | None, dict[str, Any]]] = []
    last = 0.0
    for at, kind, person, detail in db.execute(
        "SELECT at, kind, person, detail FROM old.events ORDER BY id"
    ):
        last = max(last, at)
        told = json.loads(detail)
        if kind in ("running", "paused"):
            found.append((at, "state", None, {"state": kind}))
        elif kind == "quota":
            found.append((at, "settings", None, {"quota": told["quota"]}))
        else:
            found.append((at, kind, person, told))
    states = [detail["state"] for _, kind, _, detail in found if kind == "state"]
    if state != (states[-1] if states else "draft"):
        found.append((last, "state", None, {"state": state}))
    quotas = [detail["quota"] for _, kind, _, detail in found if kind == "settings"]
    if quota != (quotas[-1] if quotas else config["quota"]):
        found.append((last, "settings", None, {"quota": quota}))
    for person, ready, finished in db.execute("SELECT id, ready, finished FROM old.people"):
        if ready is not None:
            found.append((ready, "ready", person, {}))
        if finished is not None:
            found.append((finished, "finish", person, {}))
    for at, closes in db.execute("SELECT at, closes FROM old.batches WHERE closes != '[]'"):
        found.append((at, "close", None, {"questions": json.loads(closes)}))
    return found
