"""The rows of the log: how each is written into the file, and how it is read back.

A row is written and applied by the same code. `Ledger.add` puts it into the file and gives it to
the board; `replay` reads every row from the file and gives it to a board in the same way. So there
is one place that says what a row does, `nearer.study.board.Board.apply`, and a server that was
killed goes on as if nothing had happened.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from nearer.errors import NearerError

if TYPE_CHECKING:
    from nearer.study.board import Board


class Refusal(NearerError):
    """A request that the study turns down; nothing was changed.

    Attributes
    ----------
    status
        The HTTP status that says so on the web.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StoreTrouble(NearerError):
    """The study's file cannot be written: disk full, read-only, gone. Nothing was acknowledged."""


class Joined(NamedTuple):
    """Somebody takes part."""

    id: int
    pseudonym: str
    joined: float
    language: str = ""


class Proposed(NamedTuple):
    """A method chose questions, having seen the answers up to `seen`."""

    id: int
    at: float
    person: int | None
    method: str
    seen: int
    seconds: float


class Posed(NamedTuple):
    """A question that can be asked."""

    id: int
    task: str
    query: int | None
    shown: tuple[int, ...]
    purpose: str
    choose: int = 1
    person: int | None = None
    batch: int | None = None
    repeats: int | None = None
    position: int | None = None
    expected: int | None = None
    odds: float | None = None


class Promoted(NamedTuple):
    """A hold-out became a real question."""

    id: int
    question: int
    batch: int | None


class Leased(NamedTuple):
    """A question in somebody's hands, in the order of their screen."""

    id: int
    question: int
    person: int
    shown: tuple[int, ...]
    issued: float
    expires: float


class Responded(NamedTuple):
    """What somebody chose; in place of an earlier answer where `supersedes` names one."""

    id: int
    lease: int
    question: int
    person: int
    choice: str
    chosen: tuple[int, ...] | None
    response_ms: float | None
    elapsed_ms: float | None
    received: float
    supersedes: int | None = None


class Event(NamedTuple):
    """Anything else that happened."""

    id: int
    at: float
    kind: str
    person: int | None
    detail: dict[str, Any]


Row = Joined | Proposed | Posed | Promoted | Leased | Responded | Event
R = TypeVar("R", Joined, Proposed, Posed, Promoted, Leased, Responded, Event)

#: in the order in which a replay reads them: what a row speaks of has been read before it
_TABLES: dict[type[Row], str] = {
    Joined: "people",
    Proposed: "batches",
    Posed: "questions",
    Promoted: "promoted",
    Leased: "leases",
    Responded: "answers",
    Event: "events",
}
_JSON = ("shown", "chosen", "detail")
_INSERT = {
    kind: f"INSERT INTO {table} ({', '.join(kind._fields[1:])})"
    f" VALUES ({', '.join('?' * (len(kind._fields) - 1))})"
    for kind, table in _TABLES.items()
}
_CODED = {
    kind: tuple(k for k, name in enumerate(kind._fields) if name in _JSON) for kind in _TABLES
}


def decode(text: str) -> Any:
    """What a column of JSON holds: mostly a list of numbers."""
    if text[0] == "[":
        return tuple(map(int, text[1:-1].split(","))) if len(text) > 2 else ()
    return json.loads(text)


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _write(db: sqlite3.Connection, row: R) -> R:
    values: list[Any] = list(row)
    for k in _CODED[type(row)]:
        values[k] = None if values[k] is None else _encode(values[k])
    number = db.execute(_INSERT[type(row)], values[1:]).lastrowid
    assert number is not None  # SQLite numbers every inserted row
    return row._replace(id=number)


def read_rows(db: sqlite3.Connection) -> Iterator[Row]:
    """All rows of the log."""
    for kind, table in _TABLES.items():
        make = kind._make
        coded = _CODED[kind]
        for row in db.execute(f"SELECT {', '.join(kind._fields)} FROM {table} ORDER BY id"):
            values = list(row)
            for k in coded:
                if values[k] is not None:
                    values[k] = decode(values[k])
            yield make(values)


class Ledger:
    """What a change works with: the open transaction, the board, the time, and chance.

    Every change gets it from the writer (see `nearer.study.store`) and may use it only until it
    returns; nobody else sees the board.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        board: Board,
        clock: Callable[[], float],
        rng: np.random.Generator,
    ) -> None:
        self.db = db
        self.board = board
        self.rng = rng
        self.erased = False  # whether something was deleted that must leave no trace
        self._clock = clock

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock()

    def add(self, row: R) -> R:
        """Write a row and apply it; the row with its number."""
        written = _write(self.db, row)
        self.board.apply(written)
        return written

    def event(self, kind: str, person: int | None = None, **detail: Any) -> None:
        """Write down that something happened, and apply it."""
        self.add(Event(0, self.now, kind, person, detail))
