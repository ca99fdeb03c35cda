"""Questions find people: what is posed, and what somebody is handed next.

A person's next question is what the plan of checks says (see `checks_due`), and mostly a real
one: the first that the method posed and they have not answered. When the method has none in
stock they do not wait and are not given hold-outs, which no map uses until the end, but something
that counts: a question drawn at random that nobody was asked, and when all have been asked one more
vote where it teaches most. Somebody for whom nothing is left has done enough and is finished, with
thanks and code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from nearer.study.actions import present
from nearer.study.config import Config
from nearer.study.rows import Batch, Lease, Ledger, Promotion, Question, fact

FEWEST_CATCH = 2  # catch trials that the flag needs
FEWEST_REPEATS = 4  # repeats that both times were decided, which the flag needs
_LONG_ENOUGH = 20  # questions below which there is no room for so many checks
_BLOCK = 50  # questions in which so many checks are wanted
GAP = 5  # questions between one and its repeat, at least


def checks_due(
    config: Config, person: int, number: int, given: Mapping[str, int], own: bool
) -> list[str]:
    """The kinds of check of which one should be a person's question of this number (from 0).

    What comes first is due first; another one is where there can be none of that kind, as no catch
    trial among odd ones out. Without any, it should be a real one. A person's questions are cut
    into as many pieces as there are checks of a kind, and one is due at a random place of each.
    `given` counts what the person has had of each kind; `own`: the researcher brought questions.
    """
    # One repeat more than the flag needs, since it may meet an answer that was skipped.
    kinds = {
        "catch": (config.catch_share, FEWEST_CATCH, 0),
        "repeat": (config.repeat_share, FEWEST_REPEATS + 1, 2 * GAP),
        "holdout": (config.holdout_share, 0, 0),
        "own": (config.own_share if own else 0.0, 0, 0),
    }
    blocks = max(round(config.questions / _BLOCK), 1)
    due = []
    for k, (kind, (share, fewest, earliest)) in enumerate(kinds.items()):
        least = fewest if share and config.questions >= _LONG_ENOUGH else 0
        count = blocks * max(round(share * config.questions / blocks), least)
        j = given.get(kind, 0)
        if j < count:
            first = min(earliest, config.questions // 2)
            # Nothing is planned for the last places, where checks that are due together still fit.
            piece = (config.questions - len(kinds) - first) / count
            place = np.random.default_rng([config.seed, person, k, j]).random()
            if number >= first + (j + place) * piece:
                due.append(kind)
    return due


#: questions a person holds at a time: the one on the page and the one that is being loaded
AHEAD = 2
_TRIES = 64  # draws for a random question nobody was asked, before another purpose is tried
_SAMPLE = 256  # questions among which the one is found where a vote teaches most


@dataclass(frozen=True)
class Trial:
    """A question as one person is shown it."""

    lease: int
    number: int
    task: str
    query: int | None
    shown: tuple[int, ...]
    choose: int = 1


def hand_out(ledger: Ledger, person: int) -> list[Trial]:
    """The questions that a person should see now and next.

    Empty when there are no more; then the person has finished.
    """
    found, board = present(ledger, person), ledger.board
    board.expire(ledger.now)
    held = list(found.holds.values())
    while (
        board.state == "running"
        and len(held) < AHEAD
        and found.answered + len(held) < board.config.questions
    ):
        question = _next_question(ledger, person, found.answered + len(held), bool(held))
        if question is None:
            break
        held.append(lease(ledger, person, question))
    if not held and board.state == "running" and not found.finished:
        ledger.event("finish", person, answered=found.answered)
    return [trial_of(ledger, x, found.answered + k + 1) for k, x in enumerate(held)]


def trial_of(ledger: Ledger, lease: Lease, number: int) -> Trial:
    """A lease as it is shown."""
    question = ledger.board.questions[lease.question]
    return Trial(lease.id, number, question.task, question.query, lease.shown, question.choose)


def lease(ledger: Ledger, person: int, question: Question) -> Lease:
    """Give a question to a person, its things in an order that is drawn."""
    shown = question.shown
    if len(shown) > 2:
        shown = tuple(shown[k] for k in ledger.rng.permutation(len(shown)))
    elif ledger.rng.random() < 0.5:
        shown = shown[::-1]
    if question.repeats is not None:
        mine = ledger.board.people[person].leases
        shown = next(x.shown for x in mine if x.question == question.repeats and x.answer)[::-1]
    now = ledger.now
    expires = now + ledger.board.config.lease_seconds
    return ledger.add(Lease(0, question.id, person, shown, now, expires))


def pose(
    ledger: Ledger,
    questions: Sequence[Sequence[int]],
    *,
    seen: int,
    seconds: float,
    odds: Sequence[float] | None = None,
    person: int | None = None,
    whole_round: bool = False,
    done: bool = False,
) -> int:
    """Add the questions that a method chose, rows ``(head, a, b)``; how many of them are new.

    `odds` says how much likelier than at random the method was to choose each of them, and `done`
    that it has no more.

    With `whole_round` they are all the method needs: open ones it no longer does are closed
    (the votes of somebody who was excluded can lead a sort another way), and hold-outs among
    them become real, since a sort cannot go on without their answers.
    """
    board = ledger.board
    chances: Sequence[float | None] = odds or [None] * len(questions)
    rows = {
        fact(int(h), (int(a), int(b))): (int(h), int(a), int(b), chance)
        for (h, a, b), chance in zip(questions, chances, strict=True)
    }
    closes = [
        q.id
        for q in board.questions.values()
        if whole_round
        and q.purpose == "main"
        and not q.closed
        and q.verdict.wanted
        and q.person == person
        and q.fact not in rows
    ]
    there = {key: _asks(ledger, key, person) for key in rows}
    new = [row for key, row in rows.items() if there[key] is None]
    needed = [q.id for q in there.values() if whole_round and q and q.purpose != "main"]
    if done and person is None and not new and not needed:
        all_asked(ledger)
    if not new and not closes and not needed:
        return 0
    method = board.config.method
    batch = ledger.add(Batch(0, ledger.now, person, method, seen, seconds)).id
    if closes:
        ledger.event("close", questions=closes)
    for question in needed:
        ledger.add(Promotion(0, question, batch))
    for head, a, b, chance in new:
        ledger.add(Question(0, "two", head, (a, b), "main", 1, person, batch, odds=chance))
    return len(new) + len(needed)


def all_asked(ledger: Ledger) -> None:
    """The method has no more questions."""
    if not ledger.board.all_asked:
        ledger.event("all_asked")


def _asks(ledger: Ledger, key: Hashable, person: int | None) -> Question | None:
    """The question that asks this already, of this person or of everybody."""
    earlier = ledger.board.asked.get(person, {}).get(key)
    found = None if earlier is None else ledger.board.questions[earlier]
    return None if found is None or found.closed else found


def _next_question(ledger: Ledger, person: int, number: int, ahead: bool) -> Question | None:
    """What is due for a person's next trial; None when they have done enough.

    With `ahead` they have another one to answer first. Where a sort has fewer questions than there
    are people they are then given nothing yet: somebody else can answer it sooner, and the round
    of a sort ends when its slowest question is decided.
    """
    board = ledger.board
    if board.enough:
        return None
    shared = board.config.in_rounds and board.config.scope == "pooled"
    if ahead and shared and board.stock() <= len(board.active):
        return None
    fixed = next((i for i in board.own if board.questions[i].position == number + 1), None)
    if fixed is not None and board.questions[fixed].fact not in board.people[person].seen:
        return board.questions[fixed]
    makers: dict[str, Callable[[], Question | None]] = {
        "main": lambda: board.next_main(person) or board.next_spare(person),
        "own": lambda: board.next_own(person),
        "holdout": lambda: board.next_holdout(person) or _random(ledger, person, "holdout"),
        "repeat": lambda: _repeat(ledger, person),
        "catch": lambda: _catch(ledger, person),
    }
    given = board.people[person].given
    due = checks_due(board.config, person, number, given, bool(board.own))
    for purpose in (*due, "main"):
        question = makers[purpose]()
        if question is not None:
            return question
    question = _random(ledger, person, "extra")
    if question is None and board.config.task != "two" and _all_posed(ledger):
        all_asked(ledger)  # larger screens are drawn here alone; of two, who chooses says it
    return question or _further_vote(ledger, person)


def _all_posed(ledger: Ledger) -> bool:
    """Whether every screen that there can be was put to somebody."""
    config, n = ledger.board.config, len(ledger.board.items)
    odd = config.task == "odd"
    screens = comb(n, config.things) if odd else n * comb(n - 1, config.things)
    return len(ledger.board.asked[None]) >= screens


def _further_vote(ledger: Ledger, person: int) -> Question | None:
    """The question where one more vote of this person teaches most."""
    board = ledger.board
    ids: Sequence[int] = board.counted
    if len(ids) > _SAMPLE:
        ids = [ids[k] for k in ledger.rng.integers(len(ids), size=_SAMPLE)]
    seen = board.people[person].seen
    questions = (board.questions[i] for i in ids)
    able = [q for q in questions if q.person in (None, person) and q.fact not in seen]
    return min(able, key=lambda q: q.contested, default=None)


def _random(ledger: Ledger, person: int, purpose: str) -> Question | None:
    """A random question that nobody was asked; no method will choose it.

    The first one counts: where there are few, hold-outs must not be all of them.
    """
    board = ledger.board
    config, mine = board.config, board.asked.get(person, {})
    has_query = config.task != "odd"
    if purpose == "holdout" and not board.counted:
        return None
    for _ in range(_TRIES):
        drawn = _distinct(ledger, config.things + has_query)
        query, shown = (drawn[0], drawn[1:]) if has_query else (None, drawn)
        key = fact(query, shown)
        if key not in board.asked[None] and key not in mine:
            asked = (config.task, query, tuple(shown), purpose, config.choose)
            return ledger.add(Question(0, *asked))
    return None


def _repeat(ledger: Ledger, person: int) -> Question | None:
    """A question this person answered before; it will be shown with the sides swapped."""
    first = ledger.board.next_repeat(person, GAP)
    if first is None:
        return None
    again = (first.task, first.query, first.shown, "repeat", first.choose)
    return ledger.add(Question(0, *again, person=person, repeats=first.id))


def _catch(ledger: Ledger, person: int) -> Question | None:
    """A question whose answer is plain: one of the choices is the head itself."""
    config = ledger.board.config
    if config.task == "odd":  # there is no head
        return None
    head, *others = _distinct(ledger, config.things)
    plain = (config.task, head, (head, *others), "catch", config.choose)
    return ledger.add(Question(0, *plain, person=person, expected=head))


def _distinct(ledger: Ledger, k: int) -> list[int]:
    n = len(ledger.board.items)
    drawn: dict[int, None] = {}
    while len(drawn) < k:  # far faster than drawing without replacement
        drawn[int(ledger.rng.random() * n)] = None
    return list(drawn)
