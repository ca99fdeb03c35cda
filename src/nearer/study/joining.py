"""People come, agree, finish, and go: what may happen to a person.

Every function here is a change (see `nearer.study.store`): it checks first and raises `Refusal`
before anything has changed, then writes rows.
"""

from __future__ import annotations

from typing import NamedTuple

from nearer.study import identities
from nearer.study.identities import Identity
from nearer.study.pieces import Participant
from nearer.study.refusals import Refusal
from nearer.study.rows import Joined, Ledger

__all__ = ["Admission", "agree", "exclude", "get_ready", "join", "present", "stage", "withdraw"]


class Admission(NamedTuple):
    """Who somebody is here, and whether they have proved to be that person."""

    person: int
    proved: bool = True


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

    Parameters
    ----------
    browser
        A secret of the browser; whoever has it is the person who began there.
    proved
        The person whose personal link was used.
    """
    board, identity = ledger.board, identity or Identity()
    if consent != board.config.consent_version:
        raise Refusal(
            409,
            f"consent version {consent!r} is not the current one, "
            f"{board.config.consent_version!r}: load the page again",
        )
    known = identities.find(ledger.db, identity)
    same = proved if proved is not None else identities.of_browser(ledger.db, browser)
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
    person = ledger.add(Joined(0, pseudonym, ledger.now, language[:35])).id
    identities.keep(ledger.db, person, identity, "" if same is not None else browser)
    ledger.event("consent", person, version=consent)
    return Admission(person)


def agree(ledger: Ledger, person: int, consent: str) -> None:
    """A known person agrees to the current consent text."""
    if consent != ledger.board.config.consent_version:
        raise Refusal(409, "the consent text has changed; load the page again")
    if present(ledger, person).consent != consent:
        ledger.event("consent", person, version=consent)


def get_ready(ledger: Ledger, person: int) -> None:
    """A person has read the instructions and done the practice."""
    if not present(ledger, person).ready:
        ledger.event("ready", person)


def stage(ledger: Ledger, person: int) -> str:
    """What a person should see now."""
    found, board = present(ledger, person), ledger.board
    if found.finished:
        return "finished"
    if found.consent != board.config.consent_version:
        return "consent"
    if not found.ready:
        return "instructions"
    return "trials" if board.state == "running" else "paused"


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
    identities.erase(ledger.db, person)
    for table in ("answers", "leases"):
        ledger.db.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
    ledger.erased = True
    return answers


def _known(ledger: Ledger, person: int) -> Participant:
    found = ledger.board.people.get(person)
    if found is None:
        raise Refusal(404, f"person {person}: nobody of that number takes part")
    return found


def present(ledger: Ledger, person: int) -> Participant:
    """Somebody who takes part, or a refusal."""
    found = ledger.board.people.get(person)
    if found is None:
        raise Refusal(404, "you are not known here; open the study's link again")
    if found.withdrawn:
        raise Refusal(410, "you withdrew from this study and your answers were erased")
    return found
