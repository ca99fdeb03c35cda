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

from nearer.study.joining import present
from nearer.study.pieces import Lease, Participant
from nearer.study.refusals import Refusal
from nearer.study.rows import Ledger, Responded

__all__ = ["GivenAnswer", "answer", "elapsed", "is_false", "may_take_back"]

_SLACK = 1.01  # clocks of browser and server may differ in speed, though never by so much
_SLACK_MS = 50.0


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


def is_false(response_ms: float | None, issued: float, received: float) -> bool:
    """Whether a response time is longer than the question was out."""
    return response_ms is not None and response_ms > (
        1000 * (received - issued) * _SLACK + _SLACK_MS
    )


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
    lease = board.leases.get(given.lease)
    if lease is None or lease.person != person:
        raise Refusal(403, f"question {given.lease} was not given to you; load the page again")
    choice, chosen = _chosen(ledger, lease, given)
    supersedes = None
    if lease.choice is not None:
        if (lease.choice, lease.chosen) == (choice, chosen):
            return False
        last = found.last
        if not given.instead:
            raise Refusal(409, f"question {lease.id} was answered before; that stays")
        if last is None or last.lease != lease.id or not may_take_back(ledger, found):
            raise Refusal(409, f"question {lease.id}: only the last answer can be taken back")
        supersedes = last.id
    if (choice == "skip" and not board.config.can_skip) or (
        choice == "undecided" and not board.config.can_be_undecided
    ):
        raise Refusal(422, f"choice={choice!r}: this study does not offer it")
    now = ledger.now
    if elapsed_ms is None:
        elapsed_ms = elapsed(ledger, person, [lease.id])
    _check_time(ledger, given, lease, elapsed_ms, now)
    ledger.add(
        Responded(
            0, lease.id, lease.question, person, choice, chosen, given.response_ms, elapsed_ms,
            now, supersedes,
        )
    )  # fmt: skip
    if found.answered >= board.config.questions and not found.finished:
        ledger.event("finish", person, answered=found.answered)
    return True


def _check_time(
    ledger: Ledger, given: GivenAnswer, lease: Lease, elapsed_ms: float | None, now: float
) -> None:
    config = ledger.board.config
    if elapsed_ms is not None and elapsed_ms < config.fastest_ms:
        raise Refusal(429, "that was faster than anybody can look; wait a moment, then go on")
    if config.refuse_false_times and is_false(given.response_ms, lease.issued, now):
        raise Refusal(
            422,
            f"response_ms={given.response_ms}: the question was handed out only "
            f"{1000 * (now - lease.issued):.0f} ms ago",
        )


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
