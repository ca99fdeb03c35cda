"""What people answer: stored once, with times that were looked at.

The browser says how long a person looked; the server knows when it handed the question out and
when the answer came. Nobody can have looked longer than a question was out, so a longer time is
not true, and it is kept and shown as what it is (see `nearer.study.statistics`) or refused. How
fast somebody answers is judged by the server's clock: several answers that come together after a
pause without network share the time since the last one that came before them.

The last answer can be taken back until the next one: the new answer is a row of its own that
*supersedes* the old. An answer that a sort has already gone on from stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nearer.study.config import SORTS
from nearer.study.joining import present
from nearer.study.pieces import Lease, Person
from nearer.study.refusals import Refusal
from nearer.study.rows import Answered, Journal

__all__ = ["Given", "answer", "elapsed", "is_false", "may_take_back"]

_SLACK = 1.01  # clocks of browser and server may differ in speed, though never by so much
_SLACK_MS = 50.0


class Given(NamedTuple):
    """What came from a person."""

    lease: int
    choice: str  # left, right, undecided, skip; or chosen, with the things
    response_ms: float | None = None
    chosen: tuple[int, ...] | None = None
    instead: bool = False


def elapsed(journal: Journal, person: int, leases: Sequence[int]) -> float | None:
    """Milliseconds that a person can have spent on each of the answers that came together."""
    board, last = journal.board, present(journal, person).last
    issued = [board.leases[i].issued for i in leases if i in board.leases]
    if not issued:
        return None
    begins = max(min(issued), last.received if last else 0.0)
    return max(1000 * (journal.now - begins), 0.0) / len(leases)


def is_false(response_ms: float | None, issued: float, received: float) -> bool:
    """Whether a response time is longer than the question was out."""
    return response_ms is not None and response_ms > (
        1000 * (received - issued) * _SLACK + _SLACK_MS
    )


def may_take_back(journal: Journal, person: Person) -> bool:
    """Whether a person's last answer can still be replaced."""
    last, board = person.last, journal.board
    if last is None or person.finished:
        return False
    repeated = last.question in person.repeated
    sorts = board.config.method in SORTS
    return not repeated and not (sorts and board.used >= last.id)


def answer(journal: Journal, person: int, given: Given, elapsed_ms: float | None = None) -> bool:
    """Store an answer; False when the very same answer was stored before."""
    found, board = present(journal, person), journal.board
    lease = board.leases.get(given.lease)
    if lease is None or lease.person != person:
        raise Refusal(403, f"question {given.lease} was not given to you; load the page again")
    choice, chosen = _chosen(journal, lease, given)
    supersedes = None
    if lease.choice is not None:
        if (lease.choice, lease.chosen) == (choice, chosen):
            return False
        last = found.last
        if not given.instead:
            raise Refusal(409, f"question {lease.id} was answered before; that stays")
        if last is None or last.lease != lease.id or not may_take_back(journal, found):
            raise Refusal(409, f"question {lease.id}: only the last answer can be taken back")
        supersedes = last.id
    if (choice == "skip" and not board.config.can_skip) or (
        choice == "undecided" and not board.config.can_be_undecided
    ):
        raise Refusal(422, f"choice={choice!r}: this study does not offer it")
    now = journal.now
    if elapsed_ms is None:
        elapsed_ms = elapsed(journal, person, [lease.id])
    _check_time(journal, given, lease, elapsed_ms, now)
    journal.add(
        Answered(
            0, lease.id, lease.question, person, choice, chosen, given.response_ms, elapsed_ms,
            now, supersedes,
        )
    )  # fmt: skip
    if found.answered >= board.config.questions and not found.finished:
        journal.event("finish", person, answered=found.answered)
    return True


def _check_time(
    journal: Journal, given: Given, lease: Lease, elapsed_ms: float | None, now: float
) -> None:
    config = journal.board.config
    if elapsed_ms is not None and elapsed_ms < config.fastest_ms:
        raise Refusal(429, "that was faster than anybody can look; wait a moment, then go on")
    if config.refuse_false_times and is_false(given.response_ms, lease.issued, now):
        raise Refusal(
            422,
            f"response_ms={given.response_ms}: the question was handed out only "
            f"{1000 * (now - lease.issued):.0f} ms ago",
        )


def _chosen(journal: Journal, lease: Lease, given: Given) -> tuple[str, tuple[int, ...] | None]:
    """The choice as the file keeps it: which of the things were chosen."""
    if given.choice in ("undecided", "skip"):
        return given.choice, None
    if given.choice in ("left", "right"):
        if len(lease.shown) != 2:
            raise Refusal(422, f"choice={given.choice!r}: {len(lease.shown)} things were shown")
        return "chosen", (lease.shown[given.choice == "right"],)
    chosen, wanted = given.chosen or (), journal.board.questions[lease.question].choose
    if len(set(chosen)) != wanted or len(chosen) != wanted or not set(chosen) <= set(lease.shown):
        raise Refusal(422, f"chosen: {len(chosen)} things; must be {wanted} of those shown")
    return "chosen", chosen
