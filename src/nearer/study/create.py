"""A new study file, and a consistent copy of one."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import nearer
from nearer.errors import InvalidInput
from nearer.study.config import Config
from nearer.study.imports import Item
from nearer.study.researcher_lists import OwnQuestion, check_positions, insert_questions
from nearer.study.schema import FORMAT, SCHEMA
from nearer.study.store import connect

__all__ = ["back_up", "copy_checked", "drafted", "insert_items", "new_study"]


def new_study(
    path: Path, items: Sequence[Item], config: Config, questions: Sequence[OwnQuestion] = ()
) -> None:
    """Write a study file; it appears whole or not at all, and replaces nothing."""
    path = Path(path)
    if path.exists():
        raise InvalidInput(f"{path}: exists already; choose another name or delete it")
    config.check_items(len(items))
    check_positions(questions, config.questions)
    header = {
        "format": str(FORMAT),
        "study": secrets.token_hex(8),
        "version": nearer.__version__,
        "seed": str(config.seed),
        "method": config.method,
        "config": config.to_json(),
    }
    with drafted(path) as draft, closing(sqlite3.connect(draft, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA)
        db.execute("BEGIN")
        db.executemany("INSERT INTO header VALUES (?, ?)", header.items())
        db.execute("INSERT INTO secrets VALUES ('sign', ?)", (secrets.token_bytes(32),))
        insert_items(db, items)
        insert_questions(db, questions)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def drafted(path: Path, trouble: str = "cannot be written") -> Iterator[Path]:
    """A name beside a file to make a database under; it takes the file's place when it is whole."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield draft
        draft.replace(path)
    except (OSError, sqlite3.Error) as error:
        raise InvalidInput(f"{path}: {trouble}: {error}") from error
    finally:
        for left in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
            left.unlink(missing_ok=True)


def copy_checked(source: sqlite3.Connection, copy: Path) -> None:
    """Copy a database as it is at this moment; one that is damaged is refused."""
    with closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        problems = target.execute("PRAGMA integrity_check").fetchone()[0]
    if problems != "ok":
        study = source.execute("PRAGMA database_list").fetchone()[2]
        raise InvalidInput(f"{study}: is damaged: {problems}; go on from a backup")


def insert_items(db: sqlite3.Connection, items: Iterable[Item]) -> None:
    """Add things to compare, numbered on from those that are there."""
    first = db.execute("SELECT count(*) FROM items").fetchone()[0]
    for i, item in enumerate(items, start=first):
        sha = None
        if item.content:
            sha = hashlib.sha256(item.content).hexdigest()
            db.execute(
                "INSERT OR IGNORE INTO media VALUES (?, ?, ?)", (sha, item.mime, item.content)
            )
        db.execute(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)",
            (i, item.name, item.kind, item.text, item.alt, sha),
        )


def back_up(path: Path, copy: Path) -> None:
    """Copy a study while it is being served; the copy is one consistent moment of it."""
    copy = Path(copy)
    if copy.exists():
        raise InvalidInput(f"{copy}: exists already; choose another name or delete it")
    with closing(connect(path, read_only=True)) as source, drafted(copy) as draft:
        copy_checked(source, draft)
        with closing(sqlite3.connect(draft)) as target:
            target.execute("PRAGMA journal_mode = WAL")
