"""What is on the board: a question with its votes, a lease, a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from nearer.study.rows import Responded
from nearer.study.task_kinds import fact
from nearer.study.votes import Verdict

__all__ = ["COUNTED", "EitherSet", "Lease", "Participant", "Question"]

#: purposes whose answers make the map; hold-outs, repeats and catch trials judge it and people
COUNTED = ("main", "extra", "own")
_OPEN = Verdict(None, 1, False)


@dataclass(slots=True)
class Question:
    """A question that was posed, and who has it."""

    id: int
    task: str
    query: int | None
    shown: tuple[int, ...]
    purpose: str
    choose: int = 1
    person: int | None = None
    repeats: int | None = None
    position: int | None = None
    closed: bool = False
    live: int = 0  # leases that have neither ended nor been answered
    #: lease: who voted, and whether for the first of what is shown
    votes: dict[int, tuple[int, bool | None]] = field(default_factory=dict)
    verdict: Verdict = _OPEN
    counted_as: str = ""
    fact: Hashable = None
    posed_as: str = ""  # a hold-out may become a real question; people were given a hold-out

    def __post_init__(self) -> None:
        self.fact = fact(self.query, self.shown)
        self.posed_as = self.purpose

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
        votes = [vote for _, vote in self.votes.values() if vote is not None]
        return len(votes) + self.live, abs(2 * sum(votes) - len(votes))

    def snapshot(self) -> tuple[Any, ...]:
        """For comparing."""
        votes = tuple(self.votes.items())
        return self.fact, self.purpose, self.closed, self.live, votes, self.verdict


@dataclass(slots=True)
class Lease:
    """A question in somebody's hands."""

    id: int
    question: int
    person: int
    shown: tuple[int, ...]
    issued: float
    expires: float
    live: bool = True
    choice: str | None = None
    chosen: tuple[int, ...] | None = None


@dataclass(slots=True)
class Participant:
    """What a person has answered and holds."""

    id: int
    consent: str | None = None
    ready: bool = False
    finished: bool = False
    excluded: bool = False
    withdrawn: bool = False
    answered: int = 0
    last: Responded | None = None
    seen: set[Hashable] = field(default_factory=set)
    holds: dict[int, None] = field(default_factory=dict)
    leases: list[int] = field(default_factory=list)
    #: purpose: questions answered or in hand
    given: Counter[str] = field(default_factory=Counter)
    #: questions this person answered, oldest first, that could be repeated
    repeatable: list[int] = field(default_factory=list)
    repeated: set[int] = field(default_factory=set)

    def snapshot(self) -> tuple[Any, ...]:
        """For comparing."""
        told = (self.consent, self.ready, self.finished, self.excluded, self.withdrawn)
        did = (self.answered, self.last, sorted(map(str, self.seen)), list(self.leases))
        return (*told, *did, sorted(self.holds), list(self.repeatable), +self.given)


class EitherSet:
    """What is in one of two sets, without building a third of many."""

    def __init__(self, many: set[Hashable], few: set[Hashable]) -> None:
        self._sets = (many, few)

    def __contains__(self, fact: object) -> bool:
        return fact in self._sets[0] or fact in self._sets[1]
