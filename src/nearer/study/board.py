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
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from nearer.study.config import RULES, Config
from nearer.study.rows import (
    Answer,
    Batch,
    Event,
    Lease,
    Participant,
    Promotion,
    Question,
    Reply,
    Row,
    Verdict,
)

#: purposes whose answers make the map; hold-outs, repeats and catch trials judge it and people
COUNTED = ("main", "extra", "own")


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


class Board:
    """The state of a study, from the settings that it was made with; later changes are rows."""

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
        self._active: dict[int, None] = {}  # people who hold a question
        self._counts = dict.fromkeys(("open", "leased", "decided", "given_up", "dropped"), 0)
        kinds = (Participant, Batch, Question, Promotion, Lease, Answer, Reply, Event)
        self._apply: dict[type[Row], Callable[[Any], None]] = {
            kind: getattr(self, f"_{kind.__name__.lower()}") for kind in kinds
        }

    def apply(self, row: Row) -> None:
        """Take in a row that was written."""
        self._apply[type(row)](row)

    # What a row does -----------------------------------------------------------------------

    def _participant(self, person: Participant) -> None:
        self.people[person.id] = person

    def _batch(self, batch: Batch) -> None:
        if self.config.in_rounds:
            self.used = max(self.used, batch.seen)

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

    def _promotion(self, row: Promotion) -> None:
        question = self.questions[row.question]
        if question.purpose == "holdout":
            self._free_holdouts.pop(question.id, None)
            self.counted.append(question.id)
        before = sum(self._counts_as_answer(a) for a in question.votes.values())
        question.purpose = "main"
        self.answers += sum(self._counts_as_answer(a) for a in question.votes.values()) - before
        self._count(question)

    def _lease(self, lease: Lease) -> None:
        self.leases[lease.id] = lease
        person, question = self.people[lease.person], self.questions[lease.question]
        person.leases.append(lease)
        person.holds[lease.id] = lease
        self._give(person, question, 1)
        question.live += 1
        heapq.heappush(self._ending, (lease.expires, lease.id))
        self._active[lease.person] = None
        self._shelve(question)

    def _answer(self, answer: Answer) -> None:
        self.news += 1
        lease = self.leases[answer.lease]
        question, person = self.questions[lease.question], self.people[lease.person]
        if answer.supersedes is None:
            if not lease.live:  # it came late, and is given all the same
                self._give(person, question, 1)
            lease.answer = answer
            self._release(lease)
            person.answered += 1
        else:  # the earlier one no longer counts; its place among the votes stays
            self.answers -= self._counts_as_answer(question.votes[lease.id])
            if question.id in person.repeatable:
                person.repeatable.remove(question.id)
        lease.answer = person.last = question.votes[lease.id] = answer
        if (
            question.purpose in (*COUNTED, "holdout")
            and answer.chosen is not None
            and question.id not in person.repeated
        ):
            person.repeatable.append(question.id)
        self.answers += self._counts_as_answer(answer)
        self._count(question)

    def _reply(self, reply: Reply) -> None:
        self.people[reply.person].pages[reply.page] = reply.reply["screened_out"]

    def _event(self, event: Event) -> None:
        detail = event.detail
        match event.kind:
            case "state":
                self.state = detail["state"]
            case "settings":
                self.config = self.config.changed(detail)
            case "close":
                for question in detail["questions"]:
                    self.questions[question].closed = True
                    self._shelve(self.questions[question])
            case "all_asked":
                self.all_asked = True
            case "map":
                self.expected_tau = detail["expected_tau"]
        if event.person is None:
            return
        person = self.people[event.person]
        match event.kind:
            case "consent":
                person.consent = detail["version"]
            case "ready":
                person.ready = True
            case "finish":
                person.finished = True
            case "exclude" | "include":
                self._exclude(person, event.kind == "exclude")
            case "withdraw":
                self._withdraw(person)

    def _exclude(self, person: Participant, excluded: bool) -> None:
        """Leave a person's votes out, or count them again."""
        if excluded == person.excluded:
            return
        answers = [lease.answer for lease in person.leases if lease.answer is not None]
        self.news += 1
        before = sum(map(self._counts_as_answer, answers))
        person.excluded = excluded
        self.answers += sum(map(self._counts_as_answer, answers)) - before
        for answer in answers:
            self._count(self.questions[answer.question])

    def _withdraw(self, person: Participant) -> None:
        """Forget a person's leases and votes; costs what that person did, not what all did."""
        self._exclude(person, True)
        for lease in person.leases:
            self._release(lease)
            question = self.questions[lease.question]
            question.votes.pop(lease.id, None)
            self._count(question)
            del self.leases[lease.id]
        gone = Participant(person.id, person.pseudonym, person.joined, person.language)
        gone.excluded = gone.withdrawn = True
        gone.repeated = person.repeated
        self.people[person.id] = gone

    # What may happen next ------------------------------------------------------------------

    def expire(self, now: float) -> None:
        """End the leases whose time is over."""
        while self._ending and self._ending[0][0] <= now:
            lease = self.leases.get(heapq.heappop(self._ending)[1])
            if lease is not None and lease.live:
                self._release(lease)
                self._shelve(self.questions[lease.question])

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
        most, seen = RULES[self.config.rule][1], self.people[person].seen
        waiting = (self.questions[i] for i in self._handed)
        able = [
            (len(q.votes) + q.live, q.id)
            for q in waiting
            if q.person is None and len(q.votes) + q.live < most and q.fact not in seen
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

    @property
    def enough(self) -> bool:
        """Whether nobody is asked further."""
        return self.full or (self.exhausted and self.config.when_all_asked == "finish")

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
            "enough": self.enough,
            "exhausted": self.exhausted,
            "quality": {"wanted": self.config.quality, "expected": self.expected_tau},
        }

    # How it is kept ------------------------------------------------------------------------

    def _counts_as_answer(self, answer: Answer) -> bool:
        """Whether an answer is one of those that make the map."""
        counted = self.questions[answer.question].purpose in COUNTED
        return counted and answer.chosen is not None and not self.people[answer.person].excluded

    def _count(self, question: Question) -> None:
        """Count the votes on a question, and put it where it belongs then."""
        voters = (a for a in question.votes.values() if not self.people[a.person].excluded)
        rule = self.config.rule if question.purpose == "main" else "1"
        question.verdict = tally(rule, map(question.vote, voters))
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
        _put(shelf, question.id, wanted > question.live)
        handed = question.purpose == "main" and 0 < wanted <= question.live
        _put(self._handed, question.id, handed)

    def _give(self, person: Participant, question: Question, change: int) -> None:
        """A person was given a question, or it was taken back unanswered."""
        person.given[question.posed_as] += change
        person.seen[question.fact] += change
        if not person.seen[question.fact]:
            del person.seen[question.fact]

    def _release(self, lease: Lease) -> None:
        """Take a question out of a person's hands."""
        if not lease.live:
            return
        lease.live = False
        person, question = self.people[lease.person], self.questions[lease.question]
        del person.holds[lease.id]
        if lease.answer is None:
            self._give(person, question, -1)
        if not person.holds:
            del self._active[person.id]
        question.live -= 1

    def _first(self, person: int, candidates: Iterable[int]) -> Question | None:
        seen = self.people[person].seen
        questions = (self.questions[i] for i in candidates)
        return next((q for q in questions if q.fact not in seen), None)


def _put(shelf: dict[int, None], number: int, there: bool) -> None:
    if there:
        shelf[number] = None
    else:
        shelf.pop(number, None)
