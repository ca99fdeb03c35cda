"""The log of a study: its rows, and the state of questions and people after them.

A row is an object whose first fields are the columns of its table. Fields that no constructor takes
are set by later rows. `Ledger.add` writes a row and applies it to the board as `replay`
does. docs/study.md explains leases. An answer is the list of chosen things, best first; for the
task ``odd``, which has no query, the odd one out.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nearer.errors import NearerError
from nearer.study.config import Config

#: purposes whose answers are fitted; hold-outs, repeats and catch trials test the map and people
COUNTED = ("main", "extra", "own")


class Refusal(NearerError):
    """A request that the study turns down with an HTTP `status`; nothing was changed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StoreTrouble(NearerError):
    """The study's file cannot be written: disk full, read-only, gone. Nothing was acknowledged."""

    status = 503


def fact(query: int | None, shown: Sequence[int]) -> Hashable:
    """One key for a question however its things are ordered."""
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
    """A person who takes part."""

    id: int
    pseudonym: str
    joined: float
    consent: str | None = field(init=False, default=None)
    ready: bool = field(init=False, default=False)
    finished: bool = field(init=False, default=False)
    excluded: bool = field(init=False, default=False)
    withdrawn: bool = field(init=False, default=False)
    answered: int = field(init=False, default=0)
    replaced: int = field(init=False, default=0)
    last: Answer | None = field(init=False, default=None)
    #: pages of a questionnaire that were filled in, and whether that screened the person out
    pages: dict[str, bool] = field(init=False, default_factory=dict)
    leases: list[Lease] = field(init=False, default_factory=list)
    holds: dict[int, Lease] = field(init=False, default_factory=dict)
    #: questions answered or leased: by their content, and by their purpose
    seen: Counter[Hashable] = field(init=False, default_factory=Counter)
    given: Counter[str] = field(init=False, default_factory=Counter)
    #: questions this person answered, oldest first, that could be repeated
    repeatable: list[int] = field(init=False, default_factory=list)
    repeated: set[int] = field(init=False, default_factory=set)


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
    live: int = field(init=False, default=0)  # leases neither ended nor answered
    votes: dict[int, Answer] = field(init=False, default_factory=dict)  # by lease
    #: how many more people should be asked now; None: too many could not decide
    wanted: int | None = field(init=False, default=1)
    counted_as: str = field(init=False, default="")
    fact: Hashable = field(init=False)

    def __post_init__(self) -> None:
        self.fact = fact(self.query, self.shown)

    def vote(self, answer: Answer) -> bool | None:
        """Whether an answer is for the first thing shown; None: undecided, or skipped."""
        return None if answer.chosen is None else answer.chosen[0] == self.shown[0]

    @property
    def contested(self) -> tuple[int, int]:
        """Smaller if one more vote is worth more: for few votes, then for votes that disagree."""
        votes = [vote for a in self.votes.values() if (vote := self.vote(a)) is not None]
        return len(votes) + self.live, abs(2 * sum(votes) - len(votes))


@dataclass(slots=True)
class Lease:
    """A question given to a person, in the order of their screen."""

    id: int
    question: int
    person: int
    shown: tuple[int, ...]
    issued: float
    expires: float
    live: bool = field(init=False, default=True)
    answer: Answer | None = field(init=False, default=None)


@dataclass(slots=True)
class Answer:
    """The choice of a person; it replaces an earlier answer if `supersedes` names one."""

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
    """The replies of a person on a page of a questionnaire."""

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


Row = Participant | Question | Lease | Answer | Reply | Event
R = TypeVar("R", bound=Row)

#: table of each kind, in the order of a replay: rows that a row refers to come before it
_TABLES: dict[type[Row], str] = {
    Participant: "people", Question: "questions", Lease: "leases", Answer: "answers",
    Reply: "replies", Event: "events",
}  # fmt: skip
_COLUMNS: dict[type[Any], list[str]] = {
    kind: [f.name for f in fields(kind) if f.init and f.name != "id"] for kind in _TABLES
}
_JSON = ("shown", "chosen", "detail", "reply")
_INSERT = {
    kind: f"INSERT INTO {_TABLES[kind]} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    for kind, names in _COLUMNS.items()
}
_encode = json.JSONEncoder(separators=(",", ":")).encode


def decode(text: str) -> Any:
    """What a column of JSON holds: mostly a list of numbers."""
    return _numbers(text) if text[0] == "[" else json.loads(text)


@lru_cache(maxsize=1 << 16)  # the same screens occur many times
def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text[1:-1].split(","))) if len(text) > 2 else ()


def read_rows(db: sqlite3.Connection) -> Iterator[Row]:
    """All rows of the log."""
    for kind, names in _COLUMNS.items():
        coded = [k for k, name in enumerate(names, 1) if name in _JSON]
        for stored in db.execute(f"SELECT id, {', '.join(names)} FROM {_TABLES[kind]} ORDER BY id"):
            values = list(stored)
            for k in coded:
                if values[k] is not None:
                    values[k] = decode(values[k])
            yield kind(*values)


@dataclass
class Ledger:
    """The tools of a change: the transaction, the board, the time, a random generator."""

    db: sqlite3.Connection
    board: Board
    now: float  # seconds since the epoch
    rng: np.random.Generator
    erased: bool = False  # whether something that must leave no trace was deleted

    def add(self, row: R) -> R:
        """Write a row, which then has its number, and apply it."""
        values = [getattr(row, name) for name in _COLUMNS[type(row)]]
        for k, name in enumerate(_COLUMNS[type(row)]):
            if name in _JSON and values[k] is not None:
                values[k] = _encode(values[k])
        row.id = self.db.execute(_INSERT[type(row)], values).lastrowid or 0
        self.board.apply(row)
        return row

    def batch(self, method: str, person: int | None, seen: int, seconds: float) -> int | None:
        """Record that a method chose questions from the answers up to number `seen`."""
        sql = "INSERT INTO batches (at, person, method, seen, seconds) VALUES (?, ?, ?, ?, ?)"
        return self.db.execute(sql, (self.now, person, method, seen, seconds)).lastrowid

    def event(self, kind: str, person: int | None = None, **detail: Any) -> None:
        """Record an event and apply it."""
        self.add(Event(0, self.now, kind, person, detail))


def votes_wanted(rule: str, votes: Iterable[bool | None]) -> int | None:
    """How many more people should be asked: 0 if it is decided, None if it is abandoned."""
    first, most = int(rule[0]), sum(map(int, rule.split("+")))
    votes = list(votes)
    yes, cast = votes.count(True), len(votes) - votes.count(None)
    if cast >= first and max(yes, cast - yes) > most // 2:
        return 0
    if len(votes) - cast > max(first, 2):
        return None
    # After two that disagree comes a third; before, all people of the rule are asked.
    return (first if cast < first else most) - cast


class Board:
    """The state of a study, from the settings that it was made with; later changes are rows."""

    def __init__(self, config: Config, items: list[dict[str, Any]]) -> None:
        self.config = config
        self.items = items
        self.state = "draft"
        self.people: dict[int, Participant] = {}
        self.questions: dict[int, Question] = {}
        self.leases: dict[int, Lease] = {}
        #: facts asked already: of all people (None) or of one person
        self.asked: dict[int | None, dict[Hashable, int]] = {None: {}}
        self.counted: list[int] = []  # questions whose answers are fitted
        self.own: list[int] = []  # the researcher's questions, in their order
        self.answers = 0  # answers that count
        self.all_asked = False  # a method said that it has no more questions
        self.expected_tau = 0.0  # of the newest map
        #: questions to hand out: real ones of all people (None) or one person, hold-outs
        self.free: dict[int | str | None, dict[int, None]] = {None: {}, "holdout": {}}
        self.active: dict[int, None] = {}  # people who hold a question
        self._ending: list[tuple[float, int]] = []
        self._counts = dict.fromkeys(("open", "leased", "decided", "given_up"), 0)

    def apply(self, row: Row) -> None:
        """Take in a row that was written."""
        getattr(self, f"_{type(row).__name__.lower()}")(row)

    def _participant(self, person: Participant) -> None:
        self.people[person.id] = person

    def _question(self, question: Question) -> None:
        self.questions[question.id] = question
        if question.purpose in (*COUNTED, "holdout"):
            asked_of = question.person if question.purpose == "main" else None
            self.asked.setdefault(asked_of, {})[question.fact] = question.id
        if question.purpose in COUNTED:
            self.counted.append(question.id)
        if question.purpose == "own":
            self.own.append(question.id)
        if question.repeats is not None:
            person = self.people[question.person or 0]
            person.repeated.add(question.repeats)
            if question.repeats in person.repeatable:
                person.repeatable.remove(question.repeats)
        self._count(question)

    def _lease(self, lease: Lease) -> None:
        self.leases[lease.id] = lease
        person, question = self.people[lease.person], self.questions[lease.question]
        person.leases.append(lease)
        person.holds[lease.id] = lease
        self._give(person, question, 1)
        question.live += 1
        heapq.heappush(self._ending, (lease.expires, lease.id))
        self.active[lease.person] = None
        self._list_if_open(question)

    def _answer(self, answer: Answer) -> None:
        lease = self.leases[answer.lease]
        question, person = self.questions[lease.question], self.people[lease.person]
        lease.answer = person.last = answer
        if answer.supersedes is None:
            if not lease.live:  # it came late, and counts all the same
                self._give(person, question, 1)
            for held in [x for x in person.holds.values() if x.question == question.id]:
                self._release(held)  # after a lease ended, the question may have another
            person.answered += 1
        else:  # the earlier one no longer counts; the order of votes stays
            person.replaced += 1
            self.answers -= self._counts_as_answer(question.votes[lease.id])
            if question.id in person.repeatable:
                person.repeatable.remove(question.id)
        question.votes[lease.id] = answer
        again = question.purpose in (*COUNTED, "holdout") and question.id not in person.repeated
        if again and answer.chosen is not None:
            person.repeatable.append(question.id)
        self.answers += self._counts_as_answer(answer)
        self._count(question)

    def _reply(self, reply: Reply) -> None:
        self.people[reply.person].pages[reply.page] = reply.reply["screened_out"]

    def _event(self, event: Event) -> None:
        detail, person = event.detail, self.people.get(event.person or 0)
        match event.kind:
            case "state":
                self.state = detail["state"]
            case "settings":
                self.config = self.config.changed(detail)
            case "all_asked":
                self.all_asked = True
            case "map":
                self.expected_tau = detail["expected_tau"]
            case "consent" if person:
                person.consent = detail["version"]
            case "ready" if person:
                person.ready = True
            case "finish" if person:
                person.finished = True
            case "exclude" | "include" if person:
                self._exclude(person, event.kind == "exclude")
            case "withdraw" if person:
                self._withdraw(person)

    def _exclude(self, person: Participant, excluded: bool) -> None:
        """Leave a person's votes out, or count them again."""
        if excluded == person.excluded:
            return
        answers = [lease.answer for lease in person.leases if lease.answer is not None]
        before = sum(map(self._counts_as_answer, answers))
        person.excluded = excluded
        self.answers += sum(map(self._counts_as_answer, answers)) - before
        for answer in answers:
            self._count(self.questions[answer.question])

    def _withdraw(self, person: Participant) -> None:
        """Forget a person's leases and votes; the work grows with that person's rows only."""
        self._exclude(person, True)
        for lease in person.leases:
            self._release(lease)
            question = self.questions[lease.question]
            question.votes.pop(lease.id, None)
            self._count(question)
            del self.leases[lease.id]
        gone = Participant(person.id, person.pseudonym, person.joined)
        gone.excluded = gone.withdrawn = True
        gone.repeated = person.repeated
        self.people[person.id] = gone

    def expire(self, now: float) -> None:
        """End the leases whose time is over."""
        while self._ending and self._ending[0][0] <= now:
            lease = self.leases.get(heapq.heappop(self._ending)[1])
            if lease is not None and lease.live:
                self._release(lease)
                self._list_if_open(self.questions[lease.question])

    def next_main(self, person: int) -> Question | None:
        """The first real question that this person may answer now, own ones before others'."""
        own = next(iter(self.free.get(person, ())), None)
        return self.first(person, self.free[None]) if own is None else self.questions[own]

    def first(self, person: int, candidates: Iterable[int]) -> Question | None:
        """The first of some questions that this person has not had."""
        seen = self.people[person].seen
        questions = (self.questions[i] for i in candidates)
        return next((q for q in questions if q.fact not in seen), None)

    def stock(self, person: int | None = None) -> int:
        """How many real questions could be handed out now."""
        return len(self.free.get(person, ()))

    @property
    def full(self) -> bool:
        """Whether the study has the answers it wants: the quota is met, or the map good enough."""
        good = self.config.quality < 1 and self.expected_tau >= self.config.quality
        return good or (bool(self.config.quota) and self.answers >= self.config.quota)

    @property
    def exhausted(self) -> bool:
        """Whether every question has its votes."""
        return self.all_asked and not self._counts["open"] and not self._counts["leased"]

    @property
    def enough(self) -> bool:
        """Whether no further question is asked."""
        return self.full or (self.exhausted and self.config.when_all_asked == "finish")

    def summary(self, now: float) -> dict[str, Any]:
        """The figures of the board for an overview, without a look at every question."""
        self.expire(now)
        return {
            "questions": dict(self._counts),
            "answers": self.answers,
            "active": len(self.active),
            "state": self.state,
            "quota": self.config.quota,
            "enough": self.enough,
            "exhausted": self.exhausted,
            "quality": {"wanted": self.config.quality, "expected": self.expected_tau},
        }

    def _counts_as_answer(self, answer: Answer) -> bool:
        """Whether an answer is fitted."""
        counted = self.questions[answer.question].purpose in COUNTED
        return counted and answer.chosen is not None and not self.people[answer.person].excluded

    def _count(self, question: Question) -> None:
        """Count the votes on a question, then list it to be handed out or not."""
        voters = (a for a in question.votes.values() if not self.people[a.person].excluded)
        rule = self.config.votes if question.purpose == "main" else "1"
        question.wanted = votes_wanted(rule, map(question.vote, voters))
        self._list_if_open(question)

    def _list_if_open(self, question: Question) -> None:
        """List a question among those that can be handed out, or remove it."""
        real = question.purpose in ("main", "extra")
        if not real and question.purpose != "holdout":
            return
        if real:
            if question.counted_as:
                self._counts[question.counted_as] -= 1
            settled = "given_up" if question.wanted is None else "decided"
            unsettled = "leased" if question.live else "open"
            question.counted_as = unsettled if question.wanted else settled
            self._counts[question.counted_as] += 1
        shelf = self.free.setdefault(question.person if real else "holdout", {})
        if (question.wanted or 0) > question.live:
            shelf[question.id] = None
        else:
            shelf.pop(question.id, None)

    def _give(self, person: Participant, question: Question, change: int) -> None:
        """Note that a person got a question (1), or gave it back unanswered (−1)."""
        person.given[question.purpose] += change
        person.seen[question.fact] += change
        if not person.seen[question.fact]:
            del person.seen[question.fact]

    def _release(self, lease: Lease) -> None:
        if not lease.live:
            return
        lease.live = False
        person, question = self.people[lease.person], self.questions[lease.question]
        del person.holds[lease.id]
        if lease.answer is None:
            self._give(person, question, -1)
        if not person.holds:
            del self.active[person.id]
        question.live -= 1
