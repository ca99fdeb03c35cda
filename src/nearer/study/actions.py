"""What may happen to a study: people join, answer and go; researchers decide.

Every function here is a change (see `nearer.study.store`): it checks first and raises `Refusal`
before anything has changed, then writes rows.

*Who somebody is.* A panel sends people with an id in the link. An id is a name, not a proof: anyone
can type one. So an id that is taken opens nothing. The person goes on from the browser in which
they began, which has a key of its own that never leaves it; from elsewhere only by the way that the
researcher chose in the setting `returning`: not at all, with a personal link, or, where visits are
allowed, with the id alone, which shows nothing of earlier answers and cannot erase them.

*Times.* The browser says how long a person looked; the server knows when it handed the question out
and when the answer came. Nobody can have looked longer than a question was out, so a longer time is
not true, and it is kept and shown as what it is, or refused. How fast somebody answers is judged by
the server's clock: several answers that come together after a pause without network share the time
since the last one that came before them.

The last answer can be taken back until the next one: the new answer is a row of its own that
*supersedes* the old. An answer that a sort has already gone on from stays.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nearer.errors import InvalidInput
from nearer.study.auth import hashed
from nearer.study.config import CHANGEABLE
from nearer.study.items import Item
from nearer.study.rows import Answer, Lease, Ledger, Participant, Refusal, Reply
from nearer.study.store import insert_items, stored_items

#: panel: (its parameter for the person, further parameters that are kept)
PANELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prolific": ("PROLIFIC_PID", ("STUDY_ID", "SESSION_ID")),
    "mturk": ("workerId", ("assignmentId", "hitId")),
    "sona": ("survey_code", ()),
    "link": ("participant", ()),
}
_LONGEST = 200
# A browser's clock may run a little faster than the server's.
_SLACK, _SLACK_MS = 1.01, 50.0


class Identity(NamedTuple):
    """A name from outside."""

    panel: str = ""
    external: str = ""
    details: str = "{}"

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Identity:
        """Which panel sent a person, as whom, and what else it said; the rest is left alone."""
        for panel, (parameter, more) in PANELS.items():
            external = parameters.get(parameter, "")
            if len(external) > _LONGEST:
                raise Refusal(422, f"{parameter}: at most {_LONGEST} characters are taken")
            if external:
                details = {key: parameters[key][:_LONGEST] for key in more if key in parameters}
                return cls(panel, external, json.dumps(details))
        return cls()


class Admission(NamedTuple):
    """Who somebody is here, and whether they have proved to be that person."""

    person: int
    proved: bool = True


# People come and go ----------------------------------------------------------------------------


def join(
    ledger: Ledger,
    *,
    consent: str,
    identity: Identity | None = None,
    browser: str = "",
    proved: int | None = None,
    language: str = "",
) -> Admission:
    """A person agrees and takes part, or goes on as who they are.

    `browser` is a secret of the browser: whoever has it is the person who began there. `proved` is
    the person whose personal link was used.
    """
    board, identity = ledger.board, identity or Identity()
    _check_consent(ledger, consent)
    known = _one(
        ledger.db, "SELECT person FROM identities WHERE panel = ? AND external = ?", identity[:2]
    )
    same = proved
    if same is None and browser:
        same = _one(ledger.db, "SELECT person FROM browsers WHERE key = ?", (hashed(browser),))
    # A browser in which somebody else began, as in a lab, does not speak for this id.
    if same is not None and (proved is not None or known == same or not identity.external):
        agree(ledger, same, consent)
        return Admission(same)
    if board.state != "running":  # said to everybody alike, so that no id can be tried out
        raise Refusal(409, "the study is not open at the moment; please come back later")
    if known is not None:
        if board.config.returning != "visit" or board.people[known].withdrawn:
            raise Refusal(
                409,
                "somebody with this id takes part already. Go on in the browser in which you "
                "began, or with your personal link; if you have neither, write to the researcher",
            )
        agree(ledger, known, consent)
        return Admission(known, proved=False)
    if board.full:
        raise Refusal(409, "the study has all the answers it needs; thank you for coming")
    pseudonym = f"p{ledger.rng.integers(1 << 40):010x}"
    person = ledger.add(Participant(0, pseudonym, ledger.now, language)).id
    if identity.external:
        ledger.db.execute("INSERT INTO identities VALUES (?, ?, ?, ?)", (person, *identity))
    if browser and same is None:
        ledger.db.execute("INSERT INTO browsers VALUES (?, ?)", (hashed(browser), person))
    ledger.event("consent", person, version=consent)
    return Admission(person)


def _one(db: sqlite3.Connection, sql: str, values: Sequence[Any]) -> int | None:
    row = db.execute(sql, values).fetchone()
    return None if row is None else int(row[0])


def _check_consent(ledger: Ledger, consent: str) -> None:
    current = ledger.board.config.consent_version
    if consent != current:
        raise Refusal(
            409,
            f"consent version {consent!r} is not the current one, {current!r}: the consent text "
            "has changed; load the page again",
        )


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
    """What a person should see now, and the page of a questionnaire that is due, if one is.

    Pages before come ahead of the instructions, pages after ahead of the end; somebody who was
    screened out is not asked further.
    """
    found, config = present(ledger, person), ledger.board.config
    if not found.finished and found.consent != config.consent_version:
        return "consent", None
    if found.finished or not found.ready:
        if any(found.pages.values()):
            return "screened", None
        when = "after" if found.finished else "before"
        due = (page for page in config.pages if page.startswith(when) and page not in found.pages)
        if page := next(due, None):
            return "page", page
        return "finished" if found.finished else "instructions", None
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
    """Somebody who takes part, or a refusal."""
    found = ledger.board.people.get(person)
    if found is None:
        raise Refusal(404, "you are not known here; open the study's link again")
    if found.withdrawn:
        raise Refusal(410, "you withdrew from this study and your answers were erased")
    return found


def exclude(ledger: Ledger, person: int, excluded: bool, why: str = "") -> None:
    """Leave a person's answers out of votes and maps, or count them again."""
    if _known(ledger, person).withdrawn:
        raise Refusal(409, f"person {person}: withdrew and has no answers")
    ledger.event("exclude" if excluded else "include", person, why=why)


def withdraw(ledger: Ledger, person: int) -> int:
    """Erase a person: identity, replies, answers and leases. How many answers are gone."""
    if _known(ledger, person).withdrawn:
        return 0
    answers = ledger.board.people[person].answered
    ledger.event("withdraw", person, answers=answers)
    for table in ("identities", "browsers", "replies", "answers", "leases"):
        ledger.db.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
    ledger.erased = True
    return answers


def _known(ledger: Ledger, person: int) -> Participant:
    found = ledger.board.people.get(person)
    if found is None:
        raise Refusal(404, f"person {person}: nobody of that number takes part")
    return found


# Answers ---------------------------------------------------------------------------------------


class GivenAnswer(NamedTuple):
    """What came from a person."""

    lease: int
    choice: str  # left, right, undecided, skip; or chosen, with the things
    response_ms: float | None = None
    chosen: tuple[int, ...] | None = None
    instead: bool = False


def elapsed(ledger: Ledger, person: int, leases: Sequence[int]) -> float | None:
    """Milliseconds that a person can have spent on each of the answers that came together."""
    board, last = ledger.board, present(ledger, person).last
    issued = [board.leases[i].issued for i in leases if i in board.leases]
    if not issued:
        return None
    begins = max(min(issued), last.received if last else 0.0)
    return max(1000 * (ledger.now - begins), 0.0) / len(leases)


def may_take_back(ledger: Ledger, person: Participant) -> bool:
    """Whether a person's last answer can still be replaced."""
    last, board = person.last, ledger.board
    if last is None or person.finished:
        return False
    repeated = last.question in person.repeated
    return not repeated and not (board.config.in_rounds and board.used >= last.id)


def answer(
    ledger: Ledger, person: int, given: GivenAnswer, elapsed_ms: float | None = None
) -> bool:
    """Store an answer; False when the very same answer was stored before."""
    found, board = present(ledger, person), ledger.board
    lease, now, ms = board.leases.get(given.lease), ledger.now, given.response_ms
    if lease is None or lease.person != person:
        raise Refusal(403, f"question {given.lease} was not given to you; load the page again")
    choice, chosen = _chosen(ledger, lease, given)
    supersedes = None
    if lease.answer is not None:
        if (lease.answer.choice, lease.answer.chosen) == (choice, chosen):
            return False
        if not given.instead:
            raise Refusal(409, f"question {lease.id} was answered before; that stays")
        if lease.answer is not found.last or not may_take_back(ledger, found):
            raise Refusal(409, f"question {lease.id}: only the last answer can be taken back")
        supersedes = lease.answer.id
    offered = {"skip": board.config.can_skip, "undecided": board.config.can_be_undecided}
    if not offered.get(choice, True):
        raise Refusal(422, f"choice={choice!r}: this study does not offer it")
    if elapsed_ms is None:
        elapsed_ms = elapsed(ledger, person, [lease.id])
    if elapsed_ms is not None and elapsed_ms < board.config.fastest_ms:
        raise Refusal(429, "that was faster than anybody can look; wait a moment, then go on")
    if board.config.refuse_false_times and is_false(ms, lease.issued, now):
        out = 1000 * (now - lease.issued)
        raise Refusal(422, f"response_ms={ms}: the question was handed out only {out:.0f} ms ago")
    row = (lease.id, lease.question, person, choice, chosen, ms, elapsed_ms, now, supersedes)
    ledger.add(Answer(0, *row))
    if found.answered >= board.config.questions and not found.finished:
        ledger.event("finish", person, answered=found.answered)
    return True


def is_false(response_ms: Any, issued: Any, received: Any) -> Any:
    """Whether a response time is longer than the question was out; of numbers, or of columns."""
    out = 1000 * (received - issued)
    return response_ms is not None and response_ms > out * _SLACK + _SLACK_MS


def _chosen(ledger: Ledger, lease: Lease, given: GivenAnswer) -> tuple[str, tuple[int, ...] | None]:
    """The choice as the file keeps it: which of the things were chosen."""
    if given.choice in ("undecided", "skip"):
        return given.choice, None
    if given.choice in ("left", "right"):
        if len(lease.shown) != 2:
            raise Refusal(422, f"choice={given.choice!r}: {len(lease.shown)} things were shown")
        return "chosen", (lease.shown[given.choice == "right"],)
    chosen, wanted = given.chosen or (), ledger.board.questions[lease.question].choose
    if len(set(chosen)) != wanted or len(chosen) != wanted or not set(chosen) <= set(lease.shown):
        raise Refusal(422, f"chosen: {len(chosen)} things; must be {wanted} of those shown")
    return "chosen", chosen


# What a researcher decides ---------------------------------------------------------------------


def set_state(ledger: Ledger, state: str) -> None:
    """Start or pause."""
    if state == "running":
        try:
            ledger.board.config.check_items(len(ledger.board.items))
        except InvalidInput as error:
            raise Refusal(409, str(error)) from error
    if state != ledger.board.state:
        ledger.event("state", state=state)


def change_settings(ledger: Ledger, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Change settings of a study, also while people answer; those that really changed."""
    old = ledger.board.config
    fixed = [name for name in settings if name not in CHANGEABLE and hasattr(old, name)]
    if fixed:
        raise Refusal(
            409,
            f"setting {fixed[0]!r}: is fixed when the study is made; make a new one, and bring "
            "the answers over with `nearer study import`",
        )
    try:
        new = old.changed(settings).model_dump(mode="json")
    except InvalidInput as error:
        raise Refusal(422, str(error)) from error
    before = old.model_dump(mode="json")
    changes = {name: new[name] for name in settings if new[name] != before[name]}
    if changes:
        ledger.event("settings", **changes)
    return changes


def add_items(ledger: Ledger, items: Iterable[Item]) -> int:
    """Add things to compare, while nobody has been asked yet."""
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


def add_map(ledger: Ledger, found: Mapping[str, Any]) -> None:
    """Keep a map that the worker drew, and what is expected of it."""
    columns = ("seen", "n_triplets", "dimension", "accuracy", "n_holdout", "seconds")
    ledger.db.execute(
        f"INSERT INTO maps (at, {', '.join(columns)}, positions) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (ledger.now, *(found[c] for c in columns), json.dumps(found["positions"])),
    )
    ledger.event("map", expected_tau=found["expected_tau"])
