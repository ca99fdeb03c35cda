"""The changes of a study: people join, answer and leave; researchers decide.

Every function here is a change (see `nearer.study.store`): it checks first and raises `Refusal`
before anything has changed, then writes rows. How fast a person answers is judged by the server's
clock: answers that arrive together after a lost connection share the time since the last one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearer.study.auth import hashed
from nearer.study.board import Answer, Lease, Ledger, Participant, Question, Refusal, Reply, fact
from nearer.study.config import CHANGEABLE, Short, parse
from nearer.study.items import Item
from nearer.study.store import insert_items, stored_items
from nearer.trials import Trials

#: panel: (its parameter for the person, further parameters that are stored)
PANELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prolific": ("PROLIFIC_PID", ("STUDY_ID", "SESSION_ID")),
    "mturk": ("workerId", ("assignmentId", "hitId")),
    "sona": ("survey_code", ()),
    "link": ("participant", ()),
}
FEWEST_CATCH = 2  # catch trials that the flag needs
FEWEST_REPEATS = 4  # repeats decided both times that the flag needs
GAP = 5  # questions between one and its repeat, at least
#: questions a person holds at a time: the one on the page and the one that is being loaded
AHEAD = 2
_TRIES = 64  # random questions, of which the first or best that fits is asked


class Identity(NamedTuple):
    """A name from outside."""

    panel: str = ""
    external: str = ""
    details: str = "{}"

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Identity:
        """The panel that sent a person, the name there, and the panel's other parameters."""
        for panel, (parameter, more) in PANELS.items():
            if external := parse(Short, parameters.get(parameter, ""), f"{parameter}: "):
                details = {key: parameters[key][:200] for key in more if key in parameters}
                return cls(panel, external, json.dumps(details))
        return cls()


def join(
    ledger: Ledger,
    *,
    consent: str,
    identity: Identity | None = None,
    browser: str = "",
    proved: int | None = None,
) -> int:
    """A person agrees and takes part, or continues as before; returns their number.

    An id in a panel's link is a name, not a proof: the person who began in a `browser` has its
    secret. `proved` is the person whose personal link was used.
    """
    board, identity = ledger.board, identity or Identity()
    _check_consent(ledger, consent)
    by_name = "SELECT person FROM identities WHERE panel = ? AND external = ?"
    (known,) = ledger.db.execute(by_name, identity[:2]).fetchone() or (None,)
    same = proved
    if same is None and browser:
        by_key = "SELECT person FROM browsers WHERE key = ?"
        (same,) = ledger.db.execute(by_key, (hashed(browser),)).fetchone() or (None,)
    # A browser in which another person began, as in a lab, proves nothing about this id.
    if same is not None and (proved is not None or known == same or not identity.external):
        agree(ledger, same, consent)
        return same
    if board.state != "running":  # one message for all, so that no id can be tested
        raise Refusal(409, "the study is not open at the moment; please come back later")
    if known is not None:
        remedy = "in the browser in which you began, or with your personal link"
        other = "if you have neither, write to the researcher"
        raise Refusal(409, f"a person with this id takes part already. Continue {remedy}; {other}")
    if board.full:
        raise Refusal(409, "the study has all the answers it needs; thank you for coming")
    pseudonym = f"p{ledger.rng.integers(1 << 40):010x}"
    person = ledger.add(Participant(0, pseudonym, ledger.now)).id
    if identity.external:
        ledger.db.execute("INSERT INTO identities VALUES (?, ?, ?, ?)", (person, *identity))
    if browser and same is None:
        ledger.db.execute("INSERT INTO browsers VALUES (?, ?)", (hashed(browser), person))
    ledger.event("consent", person, version=consent)
    return person


def _check_consent(ledger: Ledger, consent: str) -> None:
    current = ledger.board.config.consent_version
    if consent != current:
        why = f"consent version {consent!r} is not the current one, {current!r}"
        raise Refusal(409, f"{why}: the consent text has changed; load the page again")


def agree(ledger: Ledger, person: int, consent: str) -> None:
    """A known person agrees to the current consent text."""
    _check_consent(ledger, consent)
    if present(ledger, person).consent != consent:
        ledger.event("consent", person, version=consent)


def get_ready(ledger: Ledger, person: int) -> None:
    """A person has read the instructions and done the practice."""
    if stage(ledger, person)[0] in ("page", "screened"):
        raise Refusal(409, "there is a page to fill in first; load the page again")
    if not present(ledger, person).ready:
        ledger.event("ready", person)


def stage(ledger: Ledger, person: int) -> tuple[str, str | None]:
    """What a person should see now, and the page of a questionnaire that is due, if one is."""
    participant, config = present(ledger, person), ledger.board.config
    if not participant.finished and participant.consent != config.consent_version:
        return "consent", None
    if participant.finished or not participant.ready:
        if any(participant.pages.values()):
            return "screened", None
        when = "after" if participant.finished else "before"
        due = (
            page for page in config.pages if page.startswith(when) and page not in participant.pages
        )
        if page := next(due, None):
            return "page", page
        return "finished" if participant.finished else "instructions", None
    return "trials" if ledger.board.state == "running" else "paused", None


def fill_in(ledger: Ledger, person: int, page: str, replies: Mapping[str, Any], out: bool) -> None:
    """Store what a person put on a page, once; `out` says that it screens them out."""
    _, due = stage(ledger, person)
    if page in present(ledger, person).pages:
        return
    if page != due:
        raise Refusal(409, f"page {page} is not the one to fill in now; load it again")
    ledger.add(Reply(0, ledger.now, person, page, {"replies": dict(replies), "screened_out": out}))


def present(ledger: Ledger, person: int) -> Participant:
    """A person who takes part; all others are refused."""
    participant = ledger.board.people.get(person)
    if participant is None:
        raise Refusal(404, f"person {person}: is not known here; open the study's link again")
    if participant.withdrawn:
        raise Refusal(410, f"person {person}: withdrew from this study; the answers were erased")
    return participant


def exclude(ledger: Ledger, person: int, excluded: bool) -> None:
    """Leave a person's answers out of votes and maps, or count them again."""
    present(ledger, person)
    ledger.event("exclude" if excluded else "include", person)


def withdraw(ledger: Ledger, person: int) -> int:
    """Erase a person: identity, replies, answers and leases; returns how many answers are gone."""
    if person in ledger.board.people and ledger.board.people[person].withdrawn:
        return 0
    answers = present(ledger, person).answered
    ledger.event("withdraw", person, answers=answers)
    for table in ("identities", "browsers", "replies", "answers", "leases"):
        ledger.db.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
    ledger.erased = True
    return answers


def checks_due(ledger: Ledger, person: int, number: int) -> list[str]:
    """The kinds of check that are due as a person's question of this number (from 0).

    The first that is possible is asked. A person's questions are divided into as many parts as
    there are checks of a kind, and one is due at a random place of each part.
    """
    board, config = ledger.board, ledger.board.config
    # One repeat more than the flag needs, since it may meet an answer that was skipped.
    kinds = {
        "catch": (config.catch_share, FEWEST_CATCH, 0),
        "repeat": (config.repeat_share, FEWEST_REPEATS + 1, 2 * GAP),
        "holdout": (config.holdout_share, 0, 0),
        "own": (config.own_share if board.own else 0.0, 0, 0),
    }
    due = []
    for k, (kind, (share, fewest, earliest)) in enumerate(kinds.items()):
        least = fewest if share and config.questions >= 20 else 0  # enough room for them
        count = max(round(share * config.questions), least)
        j = board.people[person].given[kind]
        if j < count:
            first = min(earliest, config.questions // 2)
            # Nothing is planned for the last places, where checks that are due together still fit.
            piece = (config.questions - len(kinds) - first) / count
            place = np.random.default_rng([config.seed, person, k, j]).random()
            if number >= first + (j + place) * piece:
                due.append(kind)
    return due


class Trial(NamedTuple):
    """A question as one person is shown it."""

    lease: int
    number: int
    task: str
    query: int | None
    shown: tuple[int, ...]
    choose: int = 1


def hand_out(ledger: Ledger, person: int) -> list[Trial]:
    """The questions that a person should see now and next; without any, the person has finished."""
    participant, board = present(ledger, person), ledger.board
    board.expire(ledger.now)
    left = board.config.questions - participant.answered
    held = list(participant.holds.values())[: max(left, 0)]
    running = board.state == "running"
    while running and len(held) < min(AHEAD, left):
        question = _next_question(ledger, person, participant.answered + len(held))
        if question is None:
            break
        held.append(lease(ledger, person, question))
    if running and not held and not participant.finished:
        ledger.event("finish", person, answered=participant.answered)
    return [trial_of(ledger, x, participant.answered + k + 1) for k, x in enumerate(held)]


def trial_of(ledger: Ledger, lease: Lease, number: int) -> Trial:
    """A lease in the form that is shown."""
    question = ledger.board.questions[lease.question]
    return Trial(lease.id, number, question.task, question.query, lease.shown, question.choose)


def lease(ledger: Ledger, person: int, question: Question) -> Lease:
    """Give a question to a person, its things in random order."""
    shown = question.shown
    if len(shown) > 2:
        shown = tuple(shown[k] for k in ledger.rng.permutation(len(shown)))
    elif ledger.rng.random() < 0.5:
        shown = shown[::-1]
    if question.repeats is not None:
        mine = ledger.board.people[person].leases
        shown = next(x.shown for x in mine if x.question == question.repeats and x.answer)[::-1]
    expires = ledger.now + ledger.board.config.lease_seconds
    return ledger.add(Lease(0, question.id, person, shown, ledger.now, expires))


def pose(
    ledger: Ledger,
    questions: Sequence[Sequence[int]],
    *,
    seen: int,
    seconds: float,
    odds: Sequence[float | None] | None = None,
    person: int | None = None,
    done: bool = False,
) -> int:
    """Add the questions that a method chose, rows ``(head, a, b)``; returns how many are new."""
    asked, new = ledger.board.asked.get(person, {}), {}
    for (h, a, b), chance in zip(questions, odds or [None] * len(questions), strict=True):
        head, shown = int(h), (int(a), int(b))
        if (key := fact(head, shown)) not in asked:
            new[key] = head, shown, chance
    if done and person is None and not new:
        all_asked(ledger)
    if new:
        batch = ledger.batch(ledger.board.config.method, person, seen, seconds)
        for head, shown, chance in new.values():
            ledger.add(Question(0, "two", head, shown, "main", 1, person, batch, odds=chance))
    return len(new)


def all_asked(ledger: Ledger) -> None:
    """The method has no more questions."""
    if not ledger.board.all_asked:
        ledger.event("all_asked")


def _next_question(ledger: Ledger, person: int, number: int) -> Question | None:
    """The question of a person's next trial; None if there are enough answers."""
    board = ledger.board
    if board.enough:
        return None
    places = [(i, board.questions[i].position) for i in board.own]
    fixed = (i for i, place in places if place is not None and place <= number + 1)
    if question := board.first(person, fixed):
        return question
    listed = (i for i, place in places if place is None)
    came_back = board.free["holdout"]
    makers: dict[str, Callable[[], Question | None]] = {
        "own": lambda: board.first(person, listed),
        "holdout": lambda: board.first(person, came_back) or _random(ledger, person, "holdout"),
        "repeat": lambda: _repeat(ledger, person),
        "catch": lambda: _catch(ledger, person),
        "main": lambda: board.next_main(person),
        "extra": lambda: _random(ledger, person, "extra"),
    }
    config, n = board.config, len(board.items)
    for purpose in (*checks_due(ledger, person, number), "main", "extra"):
        if question := makers[purpose]():
            return question
    heads = 1 if config.task == "odd" else n - config.things  # for every choice of things
    if config.task != "two" and len(board.asked[None]) >= heads * math.comb(n, config.things):
        all_asked(ledger)  # larger screens are drawn only here; for comparisons the method decides
    return _further_vote(ledger, person)


def _further_vote(ledger: Ledger, person: int) -> Question | None:
    """The question about which one more vote of this person is most informative."""
    board = ledger.board
    ids: Sequence[int] = board.counted
    if len(ids) > _TRIES:
        ids = [ids[k] for k in ledger.rng.integers(len(ids), size=_TRIES)]
    seen = board.people[person].seen
    questions = (board.questions[i] for i in ids)
    able = [q for q in questions if q.person in (None, person) and q.fact not in seen]
    return min(able, key=lambda q: q.contested, default=None)


def _random(ledger: Ledger, person: int, purpose: str) -> Question | None:
    """A random question that was not asked before; no method will choose it."""
    board = ledger.board
    config, mine = board.config, board.asked.get(person, {})
    has_query = config.task != "odd"
    if purpose == "holdout" and not board.counted:
        return None  # only the first counts: hold-outs must not use up a small number of questions
    for _ in range(_TRIES):
        drawn = _distinct(ledger, config.things + has_query)
        query, shown = (drawn[0], drawn[1:]) if has_query else (None, drawn)
        if (key := fact(query, shown)) not in board.asked[None] and key not in mine:
            asked = (config.task, query, tuple(shown), purpose, config.choose)
            return ledger.add(Question(0, *asked))
    return None


def _repeat(ledger: Ledger, person: int) -> Question | None:
    """A question this person answered before; it will be shown with the sides swapped."""
    repeatable = ledger.board.people[person].repeatable
    if len(repeatable) <= GAP:
        return None
    first = ledger.board.questions[repeatable[0]]
    again = (first.task, first.query, first.shown, "repeat", first.choose)
    return ledger.add(Question(0, *again, person=person, repeats=first.id))


def _catch(ledger: Ledger, person: int) -> Question | None:
    """A question with an obvious answer: one of the choices is the head itself."""
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


def elapsed(ledger: Ledger, person: int, leases: Sequence[int]) -> float | None:
    """The longest time in milliseconds that each of some answers sent together can have taken."""
    board, last = ledger.board, present(ledger, person).last
    mine = (lease for i in leases if (lease := board.leases.get(i)) and lease.person == person)
    if not (issued := [lease.issued for lease in mine]):
        return None
    begins = max(min(issued), last.received if last else 0.0)
    return max(1000 * (ledger.now - begins), 0.0) / len(leases)


def may_take_back(person: Participant) -> bool:
    """Whether a person's last answer can still be replaced, which must not fill the disk."""
    last, often = person.last, person.replaced > person.answered
    return bool(last and not (person.finished or often or last.question in person.repeated))


def answer(
    ledger: Ledger,
    person: int,
    number: int,
    choice: str,
    response_ms: float | None = None,
    *,
    chosen: tuple[int, ...] | None = None,
    instead: bool = False,
    elapsed_ms: float | None = None,
) -> bool:
    """Store the answer to a lease; False when the very same answer was stored before.

    With `instead` it replaces the person's last answer.
    """
    participant, board, now = present(ledger, person), ledger.board, ledger.now
    lease = board.leases.get(number)
    if lease is None or lease.person != person:
        raise Refusal(403, f"question {number} was not given to you; load the page again")
    choice, chosen = _chosen(ledger, lease, choice, chosen)
    supersedes = None
    if lease.answer is not None:
        if (lease.answer.choice, lease.answer.chosen) == (choice, chosen):
            return False
        if not instead:
            raise Refusal(409, f"question {number} was answered before; that stays")
        if lease.answer is not participant.last or not may_take_back(participant):
            raise Refusal(409, f"question {number}: only the last answer can be taken back")
        supersedes = lease.answer.id
    elif any(vote.person == person for vote in board.questions[lease.question].votes.values()):
        raise Refusal(409, f"question {number} was answered before; that stays")
    agreed = participant.consent == board.config.consent_version
    beyond = supersedes is None and participant.answered >= board.config.questions
    if participant.finished or beyond or not agreed or board.state != "running":
        raise Refusal(409, f"question {number} came too late; load the page again")
    offered = {"skip": board.config.can_skip, "undecided": board.config.can_be_undecided}
    if not offered.get(choice, True):
        raise Refusal(422, f"choice={choice!r}: this study does not offer it")
    if elapsed_ms is None:
        elapsed_ms = elapsed(ledger, person, [number])
    if elapsed_ms is not None and elapsed_ms < board.config.fastest_ms:
        raise Refusal(429, "that was too fast to have looked; wait a moment, then continue")
    if board.config.refuse_false_times and is_false(response_ms, lease.issued, now):
        out = f"the question was handed out only {1000 * (now - lease.issued):.0f} ms ago"
        raise Refusal(422, f"response_ms={response_ms}: {out}")
    row = (number, lease.question, person, choice, chosen, response_ms, elapsed_ms, now, supersedes)
    ledger.add(Answer(0, *row))
    if participant.answered >= board.config.questions and not participant.finished:
        ledger.event("finish", person, answered=participant.answered)
    return True


def is_false(response_ms: Any, issued: Any, received: Any) -> Any:
    """Whether a response time exceeds the time since the question was sent; also of columns."""
    out = 1000 * (received - issued)
    # A browser's clock may run a little faster than the server's.
    return response_ms is not None and response_ms > 1.01 * out + 50


def _chosen(
    ledger: Ledger, lease: Lease, choice: str, chosen: tuple[int, ...] | None
) -> tuple[str, tuple[int, ...] | None]:
    """The choice as stored: which of the things were chosen."""
    if choice in ("undecided", "skip"):
        return choice, None
    if choice in ("left", "right"):
        if len(lease.shown) != 2:
            raise Refusal(422, f"choice={choice!r}: {len(lease.shown)} things were shown")
        return "chosen", (lease.shown[choice == "right"],)
    chosen, wanted = chosen or (), ledger.board.questions[lease.question].choose
    if len(set(chosen)) != wanted or len(chosen) != wanted or not set(chosen) <= set(lease.shown):
        raise Refusal(422, f"chosen: {len(chosen)} things; must be {wanted} of those shown")
    return "chosen", chosen


def set_state(ledger: Ledger, state: str) -> None:
    """Start or pause."""
    if state == "running":
        ledger.board.config.check_items(len(ledger.board.items))
    if state != ledger.board.state:
        ledger.event("state", state=state)


def change_settings(ledger: Ledger, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Change settings of a study, also while people answer; returns those that differ now."""
    old = ledger.board.config
    fixed = [name for name in settings if name not in CHANGEABLE and hasattr(old, name)]
    if fixed:
        remedy = "make a new one, and bring the answers over with `nearer study import`"
        raise Refusal(409, f"setting {fixed[0]!r}: is fixed when the study is made; {remedy}")
    new, before = (one.model_dump(mode="json") for one in (old.changed(settings), old))
    changes = {name: new[name] for name in settings if new[name] != before[name]}
    if changes:
        ledger.event("settings", **changes)
    return changes


def add_items(ledger: Ledger, items: Iterable[Item]) -> int:
    """Add things to compare, before the first question is asked."""
    board, items = ledger.board, list(items)
    if board.questions:
        raise Refusal(409, "people have been asked already; items cannot be added any more")
    taken = {item["name"] for item in board.items}
    for item in items:
        if item.name in taken:
            raise Refusal(409, f"an item called {item.name!r} is there already; rename the file")
        taken.add(item.name)
    insert_items(ledger.db, items)
    board.items = stored_items(ledger.db)
    return len(items)


def import_answers(ledger: Ledger, answers: Trials) -> int:
    """Add earlier answers, under people of their own; they count like all others."""
    board, now = ledger.board, ledger.now
    if board.config.scope == "person":
        raise Refusal(409, "in this study people have questions of their own; nothing to add to")
    people: dict[str, int] = {}
    batch = ledger.batch("import", None, 0, 0.0)
    names = [""] * len(answers) if answers.people is None else answers.people.tolist()
    seconds = np.full(len(answers), np.nan) if answers.seconds is None else answers.seconds
    rows = answers.triplets()[0].tolist()
    for name, time, (head, *shown) in zip(names, seconds.tolist(), rows, strict=True):
        if name not in people:
            pseudonym = f"i{ledger.rng.integers(1 << 40):010x}"
            people[name] = ledger.add(Participant(0, pseudonym, now)).id
        person, key = people[name], fact(head, shown)
        there = board.asked[None].get(key)
        if there is None:
            asked = Question(0, "two", head, tuple(shown), "extra", 1, None, batch)
            there = ledger.add(asked).id
        lease = ledger.add(Lease(0, there, person, tuple(shown), now, now)).id
        ms = None if math.isnan(time) else 1000 * time
        ledger.add(Answer(0, lease, there, person, "chosen", (shown[0],), ms, None, now))
    for person in people.values():
        ledger.event("finish", person, imported=True)
    return len(answers)


def add_map(ledger: Ledger, drawn: Mapping[str, Any]) -> None:
    """Store a map that the worker drew, and its expected τ."""
    columns = ("seen", "n_triplets", "dimension", "accuracy", "n_holdout", "seconds")
    values = (ledger.now, *(drawn[c] for c in columns), json.dumps(drawn["positions"]))
    sql = f"INSERT INTO maps (at, {', '.join(columns)}, positions) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    ledger.db.execute(sql, values)
    ledger.event("map", expected_tau=drawn["expected_tau"])
