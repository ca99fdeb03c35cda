"""Where every question and every person stands: the state that a replay of the log gives.

The board holds no connection and reads no clock. It is told what was written (a person joined, a
question was posed, a lease issued, an answer stored) and answers what may happen next. Everything
on it is a function of the log's rows and of the time, so a board built row by row as the study
ran equals a board built from the finished file; `snapshot` is what is compared.

Leases end by the clock, looked at when somebody needs a question: a closed tab blocks nobody. An
answer that comes after its lease ended is kept like any other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nearer.study.votes import Verdict, tally

__all__ = ["Board", "Lease", "Person", "Question", "fact"]

_BITS = 21
_OPEN = Verdict(None, 1, False)


def fact(head: int, a: int, b: int) -> int:
    """One number for a question and its mirror image."""
    low, high = (a, b) if a < b else (b, a)
    return head << 2 * _BITS | low << _BITS | high


@dataclass(slots=True)
class Question:
    """A question that was posed, and who has it."""

    id: int
    head: int
    a: int
    b: int
    purpose: str
    person: int | None = None
    repeats: int | None = None
    closed: bool = False
    live: int = 0  # leases that have neither ended nor been answered
    votes: list[tuple[int, bool | None]] = field(default_factory=list)
    verdict: Verdict = _OPEN
    counted_as: str = ""

    @property
    def fact(self) -> int:
        """The question without its direction."""
        return fact(self.head, self.a, self.b)


@dataclass(slots=True)
class Lease:
    """A question in somebody's hands."""

    id: int
    question: int
    person: int
    a_left: bool
    expires: float
    live: bool = True
    choice: str | None = None


@dataclass(slots=True)
class Person:
    """What a person has answered and holds."""

    id: int
    excluded: bool = False
    withdrawn: bool = False
    answered: int = 0
    seen: set[int] = field(default_factory=set)
    holds: dict[int, None] = field(default_factory=dict)
    #: questions this person answered, oldest first, that could be repeated
    repeatable: list[int] = field(default_factory=list)
    repeated: set[int] = field(default_factory=set)


class Board:
    """The state of a study.

    Parameters
    ----------
    rule
        How many people a real question is put to, see `nearer.study.votes`.
    """

    def __init__(self, rule: str = "1") -> None:
        self.rule = rule
        self.people: dict[int, Person] = {}
        self.questions: dict[int, Question] = {}
        self.leases: dict[int, Lease] = {}
        self.asked: dict[int, int] = {}  # fact: the question that asks it, for main and holdout
        self.mains = 0  # answers to real questions that count
        self._free: dict[int | None, dict[int, None]] = {}  # real questions somebody could take
        self._free_holdouts: dict[int, None] = {}
        self._ending: list[tuple[float, int]] = []
        self._active: dict[int, int] = {}  # person: live leases
        self._counts = dict.fromkeys(("open", "leased", "decided", "given_up", "dropped"), 0)

    # What was written ----------------------------------------------------------------------

    def add_person(self, person: int, excluded: bool = False, withdrawn: bool = False) -> None:
        """Somebody joined."""
        self.people[person] = Person(person, excluded, withdrawn)

    def add_question(self, question: Question) -> None:
        """A question was posed."""
        self.questions[question.id] = question
        question.verdict = tally(self._rule_of(question), ())
        if question.purpose in ("main", "holdout"):
            self.asked[question.fact] = question.id
        if question.purpose == "repeat" and question.repeats is not None:
            person = self.people[question.person or 0]
            person.repeated.add(question.repeats)
            if question.repeats in person.repeatable:
                person.repeatable.remove(question.repeats)
        self._shelve(question)

    def promote(self, question_id: int) -> None:
        """A hold-out has become a real question; the answers it has are votes on it."""
        question = self.questions[question_id]
        self._free_holdouts.pop(question_id, None)
        question.purpose = "main"
        self.mains += sum(
            vote is not None and not self.people[who].excluded for who, vote in question.votes
        )
        self._count(question)

    def close_question(self, question: int) -> None:
        """The method no longer needs a question; it is not handed out again."""
        self.questions[question].closed = True
        self._shelve(self.questions[question])

    def add_lease(self, lease: Lease) -> None:
        """A person was given a question."""
        self.leases[lease.id] = lease
        person = self.people[lease.person]
        person.holds[lease.id] = None
        question = self.questions[lease.question]
        question.live += 1
        heapq.heappush(self._ending, (lease.expires, lease.id))
        self._active[lease.person] = self._active.get(lease.person, 0) + 1
        self._shelve(question)

    def add_answer(self, lease_id: int, choice: str, near: int | None) -> None:
        """An answer was stored."""
        lease = self.leases[lease_id]
        question = self.questions[lease.question]
        person = self.people[lease.person]
        lease.choice = choice
        self._end(lease)
        person.answered += 1
        vote = None if near is None else near == question.a
        question.votes.append((lease.person, vote))
        if question.purpose in ("main", "holdout"):
            person.seen.add(question.fact)
            if vote is not None and question.id not in person.repeated:
                person.repeatable.append(question.id)
        if question.purpose == "main":
            self.mains += vote is not None and not person.excluded
        self._count(question)

    def mark_person(self, person_id: int, *, excluded: bool | None = None) -> None:
        """Leave a person's votes out, or count them again."""
        person = self.people[person_id]
        if excluded is not None and excluded != person.excluded:
            person.excluded = excluded
            for question in self.questions.values():
                mine = [vote for who, vote in question.votes if who == person_id]
                if mine:
                    cast = sum(vote is not None for vote in mine)
                    if question.purpose == "main":
                        self.mains += -cast if excluded else cast
                    self._count(question)

    # What may happen next ------------------------------------------------------------------

    def expire(self, now: float) -> None:
        """End the leases whose time is over."""
        while self._ending and self._ending[0][0] <= now:
            self._end(self.leases[heapq.heappop(self._ending)[1]])

    def held(self, person: int) -> list[Lease]:
        """The live leases of a person, oldest first."""
        return [self.leases[i] for i in self.people[person].holds]

    def next_main(self, person: int) -> Question | None:
        """The first real question that this person may answer now, own ones before others'."""
        own = next(iter(self._free.get(person, ())), None)
        if own is not None:
            return self.questions[own]
        return self._first(person, self._free.get(None, ()))

    def next_holdout(self, person: int) -> Question | None:
        """A hold-out question that was handed out and came back."""
        return self._first(person, self._free_holdouts)

    def next_repeat(self, person: int, gap: int = 5) -> Question | None:
        """The oldest own question that was not repeated yet and is at least `gap` answers old."""
        mine = self.people[person].repeatable
        return self.questions[mine[0]] if len(mine) > gap else None

    def stock(self, person: int | None = None) -> int:
        """How many real questions could be handed out now."""
        return len(self._free.get(person, ()))

    @property
    def active(self) -> list[int]:
        """The people who hold a question now."""
        return list(self._active)

    def decided(self) -> Iterator[tuple[Question, bool]]:
        """Real questions that are closed by votes, with the answer; a tie people gave up on too."""
        for question in self.questions.values():
            if question.purpose == "main" and question.verdict.wanted == 0:
                answer = question.verdict.answer
                # A sort cannot go on without an answer; one nobody could decide goes either way.
                yield (
                    question,
                    (question.fact * 0x9E3779B97F4A7C15 >> 40 & 1 == 1)
                    if (answer is None)
                    else answer,
                )

    def counts(self) -> dict[str, int]:
        """Real questions by where they stand."""
        return dict(self._counts)

    def summary(self, now: float) -> dict[str, Any]:
        """What an overview needs of the board, without looking at every question."""
        self.expire(now)
        return {"questions": self.counts(), "mains": self.mains, "active": len(self._active)}

    def snapshot(self, now: float) -> dict[str, Any]:
        """Everything on the board, in a form that can be compared."""
        self.expire(now)
        return {
            "mains": self.mains,
            "people": {
                p.id: (p.excluded, p.withdrawn, p.answered, sorted(p.seen), sorted(p.holds))
                for p in self.people.values()
            },
            "repeatable": {p.id: list(p.repeatable) for p in self.people.values()},
            "questions": {
                q.id: (q.fact, q.purpose, q.closed, q.live, tuple(q.votes), q.verdict)
                for q in self.questions.values()
            },
            "leases": {x.id: (x.person, x.live, x.choice) for x in self.leases.values()},
            "free": {k: sorted(v) for k, v in self._free.items() if v},
            "free_holdouts": sorted(self._free_holdouts),
            "active": dict(sorted(self._active.items())),
            "counts": self.counts(),
        }

    # How it is kept ------------------------------------------------------------------------

    def _rule_of(self, question: Question) -> str:
        return self.rule if question.purpose == "main" else "1"

    def _count(self, question: Question) -> None:
        votes = (vote for who, vote in question.votes if not self.people[who].excluded)
        question.verdict = tally(self._rule_of(question), votes)
        self._shelve(question)

    def _shelve(self, question: Question) -> None:
        """Put a question where `next_main` or `next_holdout` finds it, or take it away."""
        if question.purpose == "main":
            shelf = self._free.setdefault(question.person, {})
            if question.counted_as:
                self._counts[question.counted_as] -= 1
            question.counted_as = _standing(question)
            self._counts[question.counted_as] += 1
        elif question.purpose == "holdout":
            shelf = self._free_holdouts
        else:
            return
        if question.verdict.wanted > question.live and not question.closed:
            shelf[question.id] = None
        else:
            shelf.pop(question.id, None)

    def _end(self, lease: Lease) -> None:
        if not lease.live:
            return
        lease.live = False
        self.people[lease.person].holds.pop(lease.id, None)
        self._active[lease.person] -= 1
        if not self._active[lease.person]:
            del self._active[lease.person]
        question = self.questions[lease.question]
        question.live -= 1
        self._shelve(question)

    def _first(self, person: int, candidates: Iterable[int]) -> Question | None:
        seen = self.people[person].seen
        holds = {self.leases[i].question for i in self.people[person].holds}
        for i in candidates:
            if i not in holds and self.questions[i].fact not in seen:
                return self.questions[i]
        return None


def _standing(question: Question) -> str:
    if question.verdict.given_up:
        return "given_up"
    if question.verdict.wanted == 0:
        return "decided"
    if question.closed:
        return "dropped"
    return "leased" if question.live else "open"
