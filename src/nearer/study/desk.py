"""Everything that may happen to a study, one method each.

All of them run in the writer's thread (see `nearer.study.store`): they check first and raise
`Refusal` before anything has changed, then write rows and tell the board the same. The clock and
the randomness come from outside.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearer.study.board import Board, Lease, Question, fact
from nearer.study.config import Config
from nearer.study.errors import Refusal
from nearer.study.log import read_items, replay
from nearer.study.store import read_header

__all__ = ["AHEAD", "CHOICES", "Desk", "Trial"]

CHOICES = ("left", "right", "undecided", "skip")
#: questions a person holds at a time: the one on the page and the one that is being loaded
AHEAD = 2
_TRIES = 64  # draws for a random question nobody was asked, before another purpose is tried


@dataclass(frozen=True)
class Trial:
    """A question as one person is shown it."""

    lease: int
    number: int
    head: int
    left: int
    right: int
    expires: float


class Desk:
    """The operations on a study, and the state they share.

    Parameters
    ----------
    clock
        Seconds since the epoch.
    rng
        Sides, hold-out questions and catch trials are drawn from it.
    """

    config: Config
    board: Board
    state: str
    quota: int
    n_objects: int
    items: list[dict[str, Any]]

    def __init__(self, clock: Callable[[], float], rng: np.random.Generator) -> None:
        self._clock = clock
        self._rng = rng

    def reload(self, db: sqlite3.Connection) -> None:
        """Forget the state and read it from the file."""
        header = read_header(db)
        self.config = Config.from_json(header["config"])
        self.state = header["state"]
        self.quota = int(header["quota"])
        self.items = read_items(db)
        self.n_objects = len(self.items)
        self.board = replay(db, self.config.rule)

    # A person ------------------------------------------------------------------------------

    def join(
        self,
        db: sqlite3.Connection,
        *,
        consent: str,
        panel: str = "",
        external: str = "",
        details: Mapping[str, str] | None = None,
    ) -> int:
        """A person agrees and takes part; one whom the panel sent before goes on as the same."""
        if consent != self.config.consent_version:
            raise Refusal(
                409,
                f"consent version {consent!r} is not the current one, "
                f"{self.config.consent_version!r}: load the page again",
            )
        now = self._clock()
        known = (
            external
            and db.execute(
                "SELECT person FROM identities WHERE panel = ? AND external = ?", (panel, external)
            ).fetchone()
        )
        if known:
            person = int(known[0])
            self.agree(db, person, consent)
            return person
        if self.state != "running":
            raise Refusal(409, "the study is not open at the moment; please come back later")
        if self.full:
            raise Refusal(409, "the study has all the answers it needs; thank you for coming")
        pseudonym = f"p{self._rng.integers(1 << 40):010x}"
        person = _insert(
            db,
            "INSERT INTO people (pseudonym, joined, consent, consented) VALUES (?, ?, ?, ?)",
            (pseudonym, now, consent, now),
        )
        if external:
            db.execute(
                "INSERT INTO identities VALUES (?, ?, ?, ?)",
                (person, panel, external, json.dumps(dict(details or {}))),
            )
        self._event(db, "consent", person, version=consent)
        self.board.add_person(person)
        return person

    def agree(self, db: sqlite3.Connection, person: int, consent: str) -> None:
        """A known person agrees to the current consent text."""
        self._present(person)
        row = db.execute("SELECT consent FROM people WHERE id = ?", (person,)).fetchone()
        if row[0] != consent:
            db.execute(
                "UPDATE people SET consent = ?, consented = ? WHERE id = ?",
                (consent, self._clock(), person),
            )
            self._event(db, "consent", person, version=consent)

    def get_ready(self, db: sqlite3.Connection, person: int) -> None:
        """A person has read the instructions and done the practice."""
        self._present(person)
        db.execute(
            "UPDATE people SET ready = coalesce(ready, ?) WHERE id = ?", (self._clock(), person)
        )

    def stage(self, db: sqlite3.Connection, person: int) -> str:
        """What a person should see now."""
        found = self._present(person)
        consent, ready = db.execute(
            "SELECT consent, ready FROM people WHERE id = ?", (person,)
        ).fetchone()
        if found.answered >= self.config.questions:
            return "finished"
        if consent != self.config.consent_version:
            return "consent"
        if ready is None:
            return "instructions"
        return "trials" if self.state == "running" else "paused"

    def hand_out(self, db: sqlite3.Connection, person: int) -> list[Trial]:
        """The questions that a person should see now and next; empty when there are no more."""
        found = self._present(person)
        self.board.expire(self._clock())
        held = self.board.held(person)
        while (
            self.state == "running"
            and len(held) < AHEAD
            and found.answered + len(held) < self.config.questions
        ):
            number = found.answered + len(held)
            held.append(self._lease(db, person, self._next_question(db, person, number)))
        return [self._trial(lease, found.answered + k + 1) for k, lease in enumerate(held)]

    def answer(
        self,
        db: sqlite3.Connection,
        person: int,
        lease_id: int,
        choice: str,
        response_ms: float | None = None,
    ) -> bool:
        """Store an answer; False when the very same answer was stored before."""
        self._present(person)
        lease = self.board.leases.get(lease_id)
        if lease is None or lease.person != person:
            raise Refusal(403, f"question {lease_id} was not given to you; load the page again")
        if lease.choice is not None:
            if lease.choice != choice:
                raise Refusal(
                    409,
                    f"question {lease_id} was answered {lease.choice!r} before; that stays",
                )
            return False
        if (choice == "skip" and not self.config.can_skip) or (
            choice == "undecided" and not self.config.can_be_undecided
        ):
            raise Refusal(422, f"choice={choice!r}: this study does not offer it")
        question = self.board.questions[lease.question]
        near: int | None = None
        far: int | None = None
        if choice in ("left", "right"):
            chose_a = (choice == "left") == lease.a_left
            near, far = (question.a, question.b) if chose_a else (question.b, question.a)
        now = self._clock()
        db.execute(
            "INSERT INTO answers (lease, question, person, choice, near, far, response_ms,"
            " received) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (lease_id, question.id, person, choice, near, far, response_ms, now),
        )
        self.board.add_answer(lease_id, choice, near)
        if self.board.people[person].answered == self.config.questions:
            db.execute("UPDATE people SET finished = ? WHERE id = ?", (now, person))
        return True

    # The researcher ------------------------------------------------------------------------

    def set_state(self, db: sqlite3.Connection, state: str) -> None:
        """Start or pause."""
        if state == "running" and self.n_objects < 3:
            raise Refusal(409, f"the study has {self.n_objects} items; comparing needs at least 3")
        db.execute("UPDATE header SET value = ? WHERE key = 'state'", (state,))
        self._event(db, state)
        self.state = state

    def set_quota(self, db: sqlite3.Connection, quota: int) -> None:
        """Say how many answers the whole study wants; 0 for no limit."""
        db.execute("UPDATE header SET value = ? WHERE key = 'quota'", (str(quota),))
        self._event(db, "quota", quota=quota)
        self.quota = quota

    def exclude(self, db: sqlite3.Connection, person: int, excluded: bool, why: str = "") -> None:
        """Leave a person's answers out of votes and maps, or count them again."""
        self._known(person)
        db.execute("UPDATE people SET excluded = ? WHERE id = ?", (int(excluded), person))
        self._event(db, "exclude" if excluded else "include", person, why=why)
        self.board.mark_person(person, excluded=excluded)

    def withdraw(self, db: sqlite3.Connection, person: int) -> int:
        """Erase a person: identity, answers and leases. How many answers are gone."""
        self._known(person)
        db.execute("DELETE FROM identities WHERE person = ?", (person,))
        db.execute("DELETE FROM replies WHERE person = ?", (person,))
        db.execute(
            "UPDATE people SET withdrawn = 1, excluded = 1, consent = NULL WHERE id = ?", (person,)
        )
        erased = db.execute("DELETE FROM answers WHERE person = ?", (person,)).rowcount
        db.execute("DELETE FROM leases WHERE person = ?", (person,))
        self._event(db, "withdraw", person, answers=erased)
        self.reload(db)
        return int(erased)

    # The method ----------------------------------------------------------------------------

    def pose(
        self,
        db: sqlite3.Connection,
        questions: np.ndarray[Any, np.dtype[np.int64]],
        *,
        seen: int,
        seconds: float,
        person: int | None = None,
        whole_round: bool = False,
    ) -> int:
        """Add the questions that a method chose; how many of them are new.

        With `whole_round` they are all the method needs: open ones it no longer does are closed
        (the votes of somebody who was excluded can lead a sort another way), and hold-outs among
        them become real, since a sort cannot go on without their answers.
        """
        rows = [(int(h), int(a), int(b)) for h, a, b in questions]
        wanted = {fact(*row) for row in rows}
        closes = [
            q.id
            for q in self.board.questions.values()
            if whole_round
            and q.purpose == "main"
            and not q.closed
            and q.verdict.wanted
            and q.fact not in wanted
        ]
        new = [row for row in rows if person is not None or self._asks(fact(*row)) is None]
        needed = [q.id for row in rows if (q := self._asks(fact(*row))) and q.purpose == "holdout"]
        promoted = needed if whole_round else []
        if not new and not closes and not promoted:
            return 0
        batch = _insert(
            db,
            "INSERT INTO batches (at, person, method, seen, seconds, closes)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (self._clock(), person, self.config.method, seen, seconds, json.dumps(closes)),
        )
        for question in closes:
            self.board.close_question(question)
        for question in promoted:
            db.execute("INSERT INTO promoted VALUES (?, ?)", (question, batch))
            self.board.promote(question)
        for head, a, b in new:
            self._pose(db, head, a, b, "main", person=person, batch=batch)
        return len(new) + len(promoted)

    def add_map(self, db: sqlite3.Connection, found: Mapping[str, Any]) -> None:
        """Keep a map that the worker drew."""
        db.execute(
            "INSERT INTO maps (at, seen, n_triplets, dimension, accuracy, n_holdout, seconds,"
            " positions) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._clock(),
                found["seen"],
                found["n_triplets"],
                found["dimension"],
                found["accuracy"],
                found["n_holdout"],
                found["seconds"],
                json.dumps(found["positions"]),
            ),
        )

    @property
    def full(self) -> bool:
        """Whether the quota is met."""
        return bool(self.quota) and self.board.mains >= self.quota

    # How it is done ------------------------------------------------------------------------

    def _asks(self, key: int) -> Question | None:
        """The question that asks this already, for a method or as a hold-out."""
        earlier = self.board.asked.get(key)
        if earlier is None or self.board.questions[earlier].closed:
            return None
        return self.board.questions[earlier]

    def _known(self, person: int) -> None:
        if person not in self.board.people:
            raise Refusal(404, f"person {person}: nobody of that number takes part")

    def _present(self, person: int) -> Any:
        found = self.board.people.get(person)
        if found is None:
            raise Refusal(404, "you are not known here; open the study's link again")
        if found.withdrawn:
            raise Refusal(410, "you withdrew from this study and your answers were erased")
        return found

    def _next_question(self, db: sqlite3.Connection, person: int, number: int) -> Question:
        """What is due for a person's next trial; something always is."""
        config = self.config
        draw = np.random.default_rng([config.seed, person, number]).random()
        makers: dict[str, Callable[[], Question | None]] = {
            "main": lambda: None if self.full else self.board.next_main(person),
            "holdout": lambda: self.board.next_holdout(person) or self._new_holdout(db, person),
            "repeat": lambda: self._new_repeat(db, person),
            "catch": lambda: self._new_catch(db, person),
        }
        due = "main"
        for purpose in ("catch", "repeat", "holdout"):
            draw -= getattr(config, f"{purpose}_share")
            if draw < 0:
                due = purpose
                break
        for purpose in dict.fromkeys([due, "main", "holdout", "repeat", "catch"]):
            question = makers[purpose]()
            if question is not None:
                return question
        raise Refusal(409, "there is nothing to compare; the study has no items")

    def _new_holdout(self, db: sqlite3.Connection, person: int) -> Question | None:
        """A random question that nobody was asked and no method will choose."""
        if self.n_objects < 3:
            return None
        for _ in range(_TRIES):
            head, a, b = self._distinct(3)
            if fact(head, a, b) not in self.board.asked:
                return self._pose(db, head, a, b, "holdout")
        return None

    def _new_repeat(self, db: sqlite3.Connection, person: int) -> Question | None:
        """A question this person answered before; it will be shown with the sides swapped."""
        first = self.board.next_repeat(person)
        if first is None:
            return None
        return self._pose(
            db, first.head, first.a, first.b, "repeat", person=person, repeats=first.id
        )

    def _new_catch(self, db: sqlite3.Connection, person: int) -> Question | None:
        """A question whose answer is plain: one of the two choices is the head itself."""
        head, other = self._distinct(2)
        return self._pose(db, head, head, other, "catch", person=person)

    def _distinct(self, k: int) -> list[int]:
        return [int(i) for i in self._rng.choice(self.n_objects, size=k, replace=False)]

    def _pose(
        self,
        db: sqlite3.Connection,
        head: int,
        a: int,
        b: int,
        purpose: str,
        *,
        person: int | None = None,
        batch: int | None = None,
        repeats: int | None = None,
    ) -> Question:
        i = _insert(
            db,
            "INSERT INTO questions (head, a, b, purpose, person, batch, repeats)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (head, a, b, purpose, person, batch, repeats),
        )
        question = Question(i, head, a, b, purpose, person, repeats)
        self.board.add_question(question)
        return question

    def _lease(self, db: sqlite3.Connection, person: int, question: Question) -> Lease:
        a_left = bool(self._rng.integers(2))
        if question.repeats is not None:
            a_left = not db.execute(
                "SELECT a_left FROM leases WHERE question = ? AND person = ?",
                (question.repeats, person),
            ).fetchone()[0]
        now = self._clock()
        expires = now + self.config.lease_seconds
        i = _insert(
            db,
            "INSERT INTO leases (question, person, a_left, issued, expires) VALUES (?, ?, ?, ?, ?)",
            (question.id, person, int(a_left), now, expires),
        )
        lease = Lease(i, question.id, person, a_left, expires)
        self.board.add_lease(lease)
        return lease

    def _trial(self, lease: Lease, number: int) -> Trial:
        q = self.board.questions[lease.question]
        left, right = (q.a, q.b) if lease.a_left else (q.b, q.a)
        return Trial(lease.id, number, q.head, left, right, lease.expires)

    def _event(
        self, db: sqlite3.Connection, kind: str, person: int | None = None, **detail: object
    ) -> None:
        db.execute(
            "INSERT INTO events (at, kind, person, detail) VALUES (?, ?, ?, ?)",
            (self._clock(), kind, person, json.dumps(detail)),
        )


def _insert(db: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> int:
    row = db.execute(sql, values).lastrowid
    assert row is not None  # SQLite numbers every inserted row
    return row
