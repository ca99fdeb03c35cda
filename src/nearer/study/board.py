"""Where every question and every person stands: what the rows of the log come to.

The board holds no connection and reads no clock. `apply` gets each row once, when it is written
and again in a replay, and the rest answers what may happen next. Everything on it is a function of
the rows and of the time, so a board built row by row as the study ran equals a board built from
the finished file.

Leases end by the clock, looked at when somebody needs a question: a closed tab blocks nobody. An
answer that comes after its lease ended is kept like any other.

*Tasks.*

==========  ====================================  =====================================
task        shown                                 chosen
==========  ====================================  =====================================
``two``     a query and two things                the one that is more like the query
``choose``  a query and m things                  the k that are most like it
``rank``    a query and m things                  the k most like it, best first
``odd``     three or more things                  the one that is least like the others
==========  ====================================  =====================================

*Votes.* One person's answer is noise; a rule says how many people a question is put to. Votes are
read in the order in which they were committed, and only as many of them as the rule asks for, so
a late answer never overturns a decision, and the decision is a function of the votes alone: leave
a person's votes out and the same function gives the new decision.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, NamedTuple

from nearer.study.config import RULES, Config
from nearer.study.rows import Event, Joined, Leased, Posed, Promoted, Proposed, Responded, Row

#: purposes whose answers make the map; hold-outs, repeats and catch trials judge it and people
COUNTED = ("main", "extra", "own")
_BITS = 21
_SLACK = 1.01  # clocks of browser and server may differ in speed, though never by so much
_SLACK_MS = 50.0


class Verdict(NamedTuple):
    """What the votes on a question say so far."""

    #: True or False once decided; None while open, and when people gave it up
    answer: bool | None
    #: how many more people should be asked now; 0 when it is closed
    wanted: int
    #: enough people could not decide: it is asked no more
    given_up: bool


def tally(rule: str, votes: Iterable[bool | None]) -> Verdict:
    """Count votes by a rule: True (a is nearer), False (b is), None (undecided, or skipped).

    Examples
    --------
    >>> tally("2+1", [True])
    Verdict(answer=None, wanted=1, given_up=False)
    >>> tally("2+1", [True, False, False])
    Verdict(answer=False, wanted=0, given_up=False)
    """
    first, most, majority = RULES[rule]
    yes = no = abstained = 0
    for vote in votes:
        if yes + no == most:
            break
        if vote is None:
            abstained += 1
        elif vote:
            yes += 1
        else:
            no += 1
    cast = yes + no
    if cast >= first and max(yes, no) >= majority:
        return Verdict(yes > no, 0, False)
    if abstained > max(first, 2):
        return Verdict(None, 0, True)
    # Two that disagree are joined by one more; before that, everyone the rule names is asked.
    return Verdict(None, first - cast if cast < first else most - cast, False)


def fact(query: int | None, shown: Sequence[int]) -> Hashable:
    """One key for a question however its things are ordered; a plain number for two of them.

    Examples
    --------
    >>> fact(3, (1, 2)) == fact(3, (2, 1)) != fact(1, (3, 2))
    True
    """
    if query is not None and len(shown) == 2:
        a, b = shown
        low, high = (a, b) if a < b else (b, a)
        return query << 2 * _BITS | low << _BITS | high
    return (query, tuple(sorted(shown)))


def triplets_of(
    task: str, query: int | None, shown: Sequence[int], chosen: Sequence[int]
) -> list[tuple[int, int, int]]:
    """What an answer says about distances, as rows ``(head, near, far)``.

    What was chosen is nearer to the query than what was not; the odd one is farther from each of
    the others than they are from each other.

    Examples
    --------
    >>> triplets_of("two", 7, [1, 2], [2])
    [(7, 2, 1)]
    >>> triplets_of("rank", 7, [1, 2, 3], [3, 1])
    [(7, 3, 1), (7, 3, 2), (7, 1, 2)]
    >>> triplets_of("odd", None, [1, 2, 3], [2])
    [(1, 3, 2), (3, 1, 2)]
    """
    rest = [i for i in shown if i not in chosen]
    if query is None:
        return [
            row for a, b in combinations(rest, 2) for o in chosen for row in ((a, b, o), (b, a, o))
        ]
    if task == "rank":
        return [
            (query, near, far) for k, near in enumerate(chosen) for far in [*chosen[k + 1 :], *rest]
        ]
    return [(query, near, far) for near, far in product(chosen, rest)]


def is_false(response_ms: float | None, issued: float, received: float) -> bool:
    """Whether a response time is longer than the question was out."""
    return response_ms is not None and response_ms > (
        1000 * (received - issued) * _SLACK + _SLACK_MS
    )


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


class _EitherSet:
    """What is in one of two sets, without building a third of many."""

    def __init__(self, many: set[Hashable], few: set[Hashable]) -> None:
        self._sets = (many, few)

    def __contains__(self, fact: object) -> bool:
        return fact in self._sets[0] or fact in self._sets[1]


class Board:
    """The state of a study.

    Parameters
    ----------
    config
        The settings it was made with; later changes are rows.
    items
        What is compared, as pages show it.
    """

    def __init__(self, config: Config, items: list[dict[str, Any]]) -> None:
        self.config = config
        self.items = items
        self.state = "draft"
        self.people: dict[int, Participant] = {}
        self.questions: dict[int, Question] = {}
        self.leases: dict[int, Lease] = {}
        #: what is asked already: for everybody (None) or of one person
        self.asked: dict[int | None, dict[Hashable, int]] = {None: {}}
        self.counted: list[int] = []  # questions whose answers make the map
        self.own: list[int] = []  # the researcher's questions, in their order
        self.answers = 0  # answers that count
        self.news = 0  # grows whenever a vote comes or goes
        self.all_asked = False  # a method said that it has no more questions
        self.used = 0  # the newest answer that a method has seen
        self.expected_tau = 0.0  # of the newest map
        self._free: dict[int | None, dict[int, None]] = {}  # real questions somebody could take
        self._free_holdouts: dict[int, None] = {}
        self._handed: dict[int, None] = {}  # real ones that wait for votes of people who hold them
        self._ending: list[tuple[float, int]] = []
        self._active: dict[int, int] = {}  # person: live leases
        self._counts = dict.fromkeys(("open", "leased", "decided", "given_up", "dropped"), 0)
        kinds = (Joined, Proposed, Posed, Promoted, Leased, Responded, Event)
        self._apply: dict[type[Row], Callable[[Any], None]] = {
            kind: getattr(self, f"_{kind.__name__.lower()}") for kind in kinds
        }

    def apply(self, row: Row) -> None:
        """Take in a row that was written."""
        self._apply[type(row)](row)

    # What a row does -----------------------------------------------------------------------

    def _joined(self, row: Joined) -> None:
        self.people[row.id] = Participant(row.id)

    def _proposed(self, row: Proposed) -> None:
        if self.config.in_rounds:
            self.used = max(self.used, row.seen)

    def _posed(self, row: Posed) -> None:
        question = Question(
            row.id, row.task, row.query, row.shown, row.purpose, row.choose, row.person,
            row.repeats, row.position,
        )  # fmt: skip
        self.questions[question.id] = question
        question.verdict = tally(self._rule_of(question), ())
        if row.purpose in (*COUNTED, "holdout"):
            asked_of = row.person if row.purpose == "main" else None
            self.asked.setdefault(asked_of, {})[question.fact] = question.id
        if row.purpose in COUNTED:
            self.counted.append(question.id)
        if row.purpose == "own":
            self.own.append(question.id)
        if row.repeats is not None:
            person = self.people[row.person or 0]
            person.repeated.add(row.repeats)
            if row.repeats in person.repeatable:
                person.repeatable.remove(row.repeats)
        self._shelve(question)

    def _promoted(self, row: Promoted) -> None:
        question = self.questions[row.question]
        if question.purpose == "holdout":
            self._free_holdouts.pop(question.id, None)
            self.counted.append(question.id)
            self.answers += sum(
                vote is not None and not self.people[who].excluded
                for who, vote in question.votes.values()
            )
        question.purpose = "main"
        self._count(question)

    def _leased(self, row: Leased) -> None:
        lease = Lease(row.id, row.question, row.person, row.shown, row.issued, row.expires)
        self.leases[lease.id] = lease
        person, question = self.people[lease.person], self.questions[lease.question]
        person.leases.append(lease.id)
        person.holds[lease.id] = None
        person.given[question.posed_as] += 1
        question.live += 1
        heapq.heappush(self._ending, (lease.expires, lease.id))
        self._active[lease.person] = self._active.get(lease.person, 0) + 1
        self._shelve(question)

    def _responded(self, row: Responded) -> None:
        self.news += 1
        lease = self.leases[row.lease]
        question, person = self.questions[lease.question], self.people[lease.person]
        if row.supersedes is None:
            if not lease.live:  # it came late, and is given all the same
                person.given[question.posed_as] += 1
            lease.choice = row.choice
            self._free_hands(lease)  # the question is counted below
            person.answered += 1
        else:
            self._take_back(question, person, lease.id)
        lease.choice, lease.chosen = row.choice, row.chosen
        person.last = row
        vote = None if row.chosen is None else row.chosen[0] == question.shown[0]
        question.votes[lease.id] = (lease.person, vote)
        if question.purpose in (*COUNTED, "holdout"):
            person.seen.add(question.fact)
            if vote is not None and question.id not in person.repeated:
                person.repeatable.append(question.id)
        if question.purpose in COUNTED:
            self.answers += vote is not None and not person.excluded
        self._count(question)

    def _take_back(self, question: Question, person: Participant, lease: int) -> None:
        """An answer no longer counts; its place among the votes stays."""
        vote = question.votes[lease][1]
        if question.purpose in COUNTED:
            self.answers -= vote is not None and not person.excluded
        if question.id in person.repeatable:
            person.repeatable.remove(question.id)

    def _event(self, row: Event) -> None:
        detail = row.detail
        if row.kind == "state":
            self.state = detail["state"]
        elif row.kind == "settings":
            self.config = self.config.changed(detail)
        elif row.kind == "close":
            for question in detail["questions"]:
                self.questions[question].closed = True
                self._shelve(self.questions[question])
        elif row.kind == "all_asked":
            self.all_asked = True
        elif row.kind == "map":
            self.expected_tau = detail["expected_tau"]
        if row.person is None:
            return
        person = self.people[row.person]
        if row.kind == "consent":
            person.consent = detail["version"]
        elif row.kind == "ready":
            person.ready = True
        elif row.kind == "finish":
            person.finished = True
        elif row.kind in ("exclude", "include"):
            self._exclude(person, row.kind == "exclude")
        elif row.kind == "withdraw":
            self._withdraw(person)

    def _exclude(self, person: Participant, excluded: bool) -> None:
        """Leave a person's votes out, or count them again."""
        if excluded == person.excluded:
            return
        person.excluded = excluded
        self.news += 1
        for i in person.leases:
            question = self.questions[self.leases[i].question]
            if i in question.votes:
                if question.purpose in COUNTED and question.votes[i][1] is not None:
                    self.answers += -1 if excluded else 1
                self._count(question)

    def _withdraw(self, person: Participant) -> None:
        """Forget a person's leases and votes; costs what that person did, not what all did."""
        self._exclude(person, True)
        for i in person.leases:
            lease = self.leases[i]
            self._end(lease)
            question = self.questions[lease.question]
            question.votes.pop(i, None)
            self._count(question)
            del self.leases[i]
        gone = Participant(person.id)
        gone.excluded = gone.withdrawn = True
        gone.repeated = person.repeated
        self.people[person.id] = gone

    # What may happen next ------------------------------------------------------------------

    def expire(self, now: float) -> None:
        """End the leases whose time is over."""
        while self._ending and self._ending[0][0] <= now:
            lease = self.leases.get(heapq.heappop(self._ending)[1])
            if lease is not None:
                self._end(lease)

    def held(self, person: int) -> list[Lease]:
        """The live leases of a person, oldest first."""
        return [self.leases[i] for i in self.people[person].holds]

    def next_main(self, person: int) -> Question | None:
        """The first real question that this person may answer now, own ones before others'."""
        own = next(iter(self._free.get(person, ())), None)
        if own is not None:
            return self.questions[own]
        return self._first(person, self._free.get(None, ()))

    def next_spare(self, person: int) -> Question | None:
        """A real question that others hold, where one vote more may decide it before they do.

        It is a vote that the rule would ask for if they disagreed. The round of a sort ends when
        its slowest question is decided, and until then nobody could be given another one.
        """
        if not self.config.in_rounds:
            return None
        most = RULES[self.config.rule][1]
        waiting = (self.questions[i] for i in self._handed)
        taken = self.taken(person)
        able = [
            (len(q.votes) + q.live, q.id)
            for q in waiting
            if q.person is None and len(q.votes) + q.live < most and q.fact not in taken
        ]
        return self.questions[min(able)[1]] if able else None

    def next_holdout(self, person: int) -> Question | None:
        """A hold-out question that was handed out and came back."""
        return self._first(person, self._free_holdouts)

    def next_own(self, person: int) -> Question | None:
        """The first question of the researcher's list that has no place of its own."""
        return self._first(person, (i for i in self.own if self.questions[i].position is None))

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

    @property
    def full(self) -> bool:
        """Whether the study has the answers it wants: the quota is met, or the map good enough."""
        good = self.config.quality < 1 and self.expected_tau >= self.config.quality
        return good or (bool(self.config.quota) and self.answers >= self.config.quota)

    @property
    def exhausted(self) -> bool:
        """Whether every question there is has its votes."""
        return self.all_asked and not self._counts["open"] and not self._counts["leased"]

    def decided(self) -> Iterator[tuple[Question, bool]]:
        """Real questions that are closed by votes, with the answer; a tie people gave up on too."""
        for question in self.questions.values():
            if question.purpose == "main" and question.verdict.wanted == 0:
                answer = question.verdict.answer
                if answer is None:
                    # A sort cannot go on without one; what nobody could decide goes either way.
                    answer = hash(question.fact) * 0x9E3779B97F4A7C15 >> 40 & 1 == 1
                yield question, answer

    def summary(self, now: float) -> dict[str, Any]:
        """What an overview needs of the board, without looking at every question."""
        self.expire(now)
        return {
            "questions": dict(self._counts),
            "answers": self.answers,
            "active": len(self._active),
            "state": self.state,
            "quota": self.config.quota,
            "enough": self.full or (self.exhausted and self.config.when_all_asked == "finish"),
            "exhausted": self.exhausted,
            "quality": {"wanted": self.config.quality, "expected": self.expected_tau},
        }

    # How it is kept ------------------------------------------------------------------------

    def _rule_of(self, question: Question) -> str:
        return self.config.rule if question.purpose == "main" else "1"

    def _count(self, question: Question) -> None:
        votes = (vote for who, vote in question.votes.values() if not self.people[who].excluded)
        question.verdict = tally(self._rule_of(question), votes)
        self._shelve(question)

    def _shelve(self, question: Question) -> None:
        """Put a question where `next_main` or `next_holdout` finds it, or take it away."""
        if question.purpose in ("main", "extra"):
            shelf = self._free.setdefault(question.person, {})
            if question.counted_as:
                self._counts[question.counted_as] -= 1
            question.counted_as = question.standing
            self._counts[question.counted_as] += 1
        elif question.purpose == "holdout":
            shelf = self._free_holdouts
        else:
            return
        wanted = 0 if question.closed else question.verdict.wanted
        if wanted > question.live:
            shelf[question.id] = None
        else:
            shelf.pop(question.id, None)
        if question.purpose == "main" and 0 < wanted <= question.live:
            self._handed[question.id] = None
        else:
            self._handed.pop(question.id, None)

    def _end(self, lease: Lease) -> None:
        if lease.live:
            self._free_hands(lease)
            self._shelve(self.questions[lease.question])

    def _free_hands(self, lease: Lease) -> None:
        if not lease.live:
            return
        lease.live = False
        person, question = self.people[lease.person], self.questions[lease.question]
        person.holds.pop(lease.id, None)
        if lease.choice is None:
            person.given[question.posed_as] -= 1
        self._active[lease.person] -= 1
        if not self._active[lease.person]:
            del self._active[lease.person]
        question.live -= 1

    def _first(self, person: int, candidates: Iterable[int]) -> Question | None:
        taken = self.taken(person)
        for i in candidates:
            if self.questions[i].fact not in taken:
                return self.questions[i]
        return None

    def taken(self, person: int) -> Container[Hashable]:
        """The questions that a person has answered or holds, by their facts."""
        who = self.people[person]
        holds = {self.questions[self.leases[i].question].fact for i in who.holds}
        return _EitherSet(who.seen, holds)
