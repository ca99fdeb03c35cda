"""The rows of the log: what each holds, how it is written into the file, and how it is read back.

A row is an object whose first fields are the columns of its table. Some have further fields, which
say what later rows made of it: who voted on a question, what a person has in hand. These belong to
the board. A row is written and applied by the same code: `Ledger.add` puts it into the file and
gives it to the board, `read_rows` reads every row from the file for a board in the same way. So one
place says what a row does, `nearer.study.board.Board.apply`, and a server that was killed goes on
as if nothing had happened.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
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


class Verdict(NamedTuple):
    """What the votes on a question say so far."""

    #: True or False once decided; None while open, and when people gave it up
    answer: bool | None
    #: how many more people should be asked now; 0 when it is closed
    wanted: int
    #: enough people could not decide: it is asked no more
    given_up: bool


_OPEN = Verdict(None, 1, False)


def fact(query: int | None, shown: Sequence[int]) -> Hashable:
    """One key for a question however its things are ordered.

    Examples
    --------
    >>> fact(3, (1, 2)) == fact(3, (2, 1)) != fact(1, (3, 2))
    True
    """
    return (query, *sorted(shown))


class OwnQuestion(NamedTuple):
    """A question of the researcher's."""

    head: int
    a: int
    b: int
    position: int | None = None
    expected: int | None = None


@dataclass(slots=True)
class Participant:
    """Somebody who takes part."""

    id: int
    pseudonym: str
    joined: float
    language: str = ""
    # What later rows say.
    consent: str | None = None
    ready: bool = False
    finished: bool = False
    excluded: bool = False
    withdrawn: bool = False
    answered: int = 0
    last: Answer | None = None
    #: pages of a questionnaire that were filled in, and whether that screened the person out
    pages: dict[str, bool] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    holds: dict[int, Lease] = field(default_factory=dict)
    #: questions answered or in hand: by what they ask, and by their purpose
    seen: Counter[Hashable] = field(default_factory=Counter)
    given: Counter[str] = field(default_factory=Counter)
    #: questions this person answered, oldest first, that could be repeated
    repeatable: list[int] = field(default_factory=list)
    repeated: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Batch:
    """A method chose questions, having seen the answers up to `seen`."""

    id: int
    at: float
    person: int | None
    method: str
    seen: int
    seconds: float


@dataclass(slots=True)
class Question:
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
    # What later rows say.
    closed: bool = False
    live: int = 0  # leases that have neither ended nor been answered
    votes: dict[int, Answer] = field(default_factory=dict)  # by lease
    verdict: Verdict = _OPEN
    counted_as: str = ""
    posed_as: str = ""  # a hold-out may become a real question; people were given a hold-out
    fact: Hashable = None

    def __post_init__(self) -> None:
        self.fact = fact(self.query, self.shown)
        self.posed_as = self.purpose

    def vote(self, answer: Answer) -> bool | None:
        """Whether an answer is for the first of what is shown; None: undecided, or skipped."""
        return None if answer.chosen is None else answer.chosen[0] == self.shown[0]

    @property
    def standing(self) -> str:
        """How an overview counts it."""
        if self.verdict.given_up:
            return "given_up"
        if self.verdict.wanted == 0:
            return "decided"
        if self.closed:
            return "dropped"
        return "leased" if self.live else "open"

    @property
    def contested(self) -> tuple[int, int]:
        """Smaller where one more vote teaches more: few votes, then votes that disagree."""
        votes = [vote for a in self.votes.values() if (vote := self.vote(a)) is not None]
        return len(votes) + self.live, abs(2 * sum(votes) - len(votes))


@dataclass(slots=True)
class Promotion:
    """A hold-out became a real question."""

    id: int
    question: int
    batch: int | None


@dataclass(slots=True)
class Lease:
    """A question in somebody's hands, in the order of their screen."""

    id: int
    question: int
    person: int
    shown: tuple[int, ...]
    issued: float
    expires: float
    # What later rows say.
    live: bool = True
    answer: Answer | None = None


@dataclass(slots=True)
class Answer:
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


@dataclass(slots=True)
class Reply:
    """What somebody wrote on a page of a questionnaire."""

    id: int
    at: float
    person: int
    page: str
    reply: dict[str, Any]  # the replies by field, and whether they screened the person out


@dataclass(slots=True)
class Event:
    """Anything else that happened."""

    id: int
    at: float
    kind: str
    person: int | None
    detail: dict[str, Any]


Row = Participant | Batch | Question | Promotion | Lease | Answer | Reply | Event
R = TypeVar("R", Participant, Batch, Question, Promotion, Lease, Answer, Reply, Event)

#: table and columns, in the order of a replay: what a row speaks of was read before it
_TABLES: dict[type[Row], tuple[str, list[str]]] = {
    kind: (table, columns.split())
    for kind, table, columns in (
        (Participant, "people", "pseudonym joined language"),
        (Batch, "batches", "at person method seen seconds"),
        (Question, "questions", "task query shown purpose choose person batch repeats position"
                                " expected odds"),
        (Promotion, "promoted", "question batch"),
        (Lease, "leases", "question person shown issued expires"),
        (Answer, "answers", "lease question person choice chosen response_ms elapsed_ms received"
                            " supersedes"),
        (Reply, "replies", "at person page reply"),
        (Event, "events", "at kind person detail"),
    )
}  # fmt: skip
_JSON = ("shown", "chosen", "detail", "reply")
_INSERT = {
    kind: f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    for kind, (table, names) in _TABLES.items()
}
_encode = json.JSONEncoder(separators=(",", ":")).encode


def decode(text: str) -> Any:
    """What a column of JSON holds: mostly a list of numbers."""
    return _numbers(text) if text[0] == "[" else json.loads(text)


@lru_cache(maxsize=1 << 16)  # the same screens come again and again
def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text[1:-1].split(","))) if len(text) > 2 else ()


def read_rows(db: sqlite3.Connection) -> Iterator[Row]:
    """All rows of the log."""
    for kind, (table, names) in _TABLES.items():
        coded = [k for k, name in enumerate(names, 1) if name in _JSON]
        for found in db.execute(f"SELECT id, {', '.join(names)} FROM {table} ORDER BY id"):
            values = list(found)
            for k in coded:
                if values[k] is not None:
                    values[k] = decode(values[k])
            yield kind(*values)


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
        """Write a row, which gets its number by that, and apply it."""
        values = (
            _encode(value) if name in _JSON and value is not None else value
            for name in _TABLES[type(row)][1]
            for value in [getattr(row, name)]
        )
        number = self.db.execute(_INSERT[type(row)], tuple(values)).lastrowid
        assert number is not None  # SQLite numbers every inserted row
        row.id = number
        self.board.apply(row)
        return row

    def event(self, kind: str, person: int | None = None, **detail: Any) -> None:
        """Write down that something happened, and apply it."""
        self.add(Event(0, self.now, kind, person, detail))
