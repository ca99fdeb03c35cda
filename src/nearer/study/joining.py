"""People come, agree, finish, and go: what may happen to a person.

Every function here is a change (see `nearer.study.store`): it checks first and raises `Refusal`
before anything has changed, then writes rows.
"""

from __future__ import annotations

from typing import NamedTuple

from nearer.study import identities
from nearer.study.identities import Identity
from nearer.study.pieces import Person
from nearer.study.refusals import Refusal
from nearer.study.rows import Joined, Journal

__all__ = ["Entry", "agree", "exclude", "get_ready", "join", "present", "stage", "withdraw"]


class Entry(NamedTuple):
    """Who somebody is here, and whether they have proved to be that person."""

    person: int
    proved: bool = True


def join(
    journal: Journal,
    *,
    consent: str,
    identity: Identity | None = None,
    browser: str = "",
    proved: int | None = None,
    language: str = "",
) -> Entry:
    """A person agrees and takes part, or goes on as who they are.

    Parameters
    ----------
    browser
        A secret of the browser; whoever has it is the person who began there.
    proved
        The person whose personal link was used.
    """
    board, identity = journal.board, identity or Identity()
    if consent != board.config.consent_version:
        raise Refusal(
            409,
            f"consent version {consent!r} is not the current one, "
            f"{board.config.consent_version!r}: load the page again",
        )
    known = identities.find(journal.db, identity)
    same = proved if proved is not None else identities.of_browser(journal.db, browser)
    # A browser in which somebody else began, as in a lab, does not speak for this id.
    if same is not None and (proved is not None or known == same or not identity.external):
        agree(journal, same, consent)
        return Entry(same)
    if board.state != "running":  # said to everybody alike, so that no id can be tried out
        raise Refusal(409, "the study is not open at the moment; please come back later")
    if known is not None:
        if board.config.returning != "visit" or board.people[known].withdrawn:
            raise Refusal(
                409,
                "somebody with this id takes part already. Go on in the browser in which you "
                "began, or with your personal link; if you have neither, write to the researcher",
            )
        agree(journal, known, consent)
        return Entry(known, proved=False)
    if board.full:
        raise Refusal(409, "the study has all the answers it needs; thank you for coming")
    pseudonym = f"p{journal.rng.integers(1 << 40):010x}"
    person = journal.add(Joined(0, pseudonym, journal.now, language[:35])).id
    identities.keep(journal.db, person, identity, "" if same is not None else browser)
    journal.event("consent", person, version=consent)
    return Entry(person)


def agree(journal: Journal, person: int, consent: str) -> None:
    """A known person agrees to the current consent text."""
    if consent != journal.board.config.consent_version:
        raise Refusal(409, "the consent text has changed; load the page again")
    if present(journal, person).consent != consent:
        journal.event("consent", person, version=consent)


def get_ready(journal: Journal, person: int) -> None:
    """A person has read the instructions and done the practice."""
    if not present(journal, person).ready:
        journal.event("ready", person)


def stage(journal: Journal, person: int) -> str:
    """What a person should see now."""
    found, board = present(journal, person), journal.board
    if found.finished:
        return "finished"
    if found.consent != board.config.consent_version:
        return "consent"
    if not found.ready:
        return "instructions"
    return "trials" if board.state == "running" else "paused"


def exclude(journal: Journal, person: int, excluded: bool, why: str = "") -> None:
    """Leave a person's answers out of votes and maps, or count them again."""
    if _known(journal, person).withdrawn:
        raise Refusal(409, f"person {person}: withdrew and has no answers")
    journal.event("exclude" if excluded else "include", person, why=why)


def withdraw(journal: Journal, person: int) -> int:
    """Erase a person: identity, replies, answers and leases. How many answers are gone."""
    if _known(journal, person).withdrawn:
        return 0
    answers = journal.board.people[person].answered
    journal.event("withdraw", person, answers=answers)
    identities.erase(journal.db, person)
    for table in ("answers", "leases"):
        journal.db.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
    journal.erased = True
    return answers


def _known(journal: Journal, person: int) -> Person:
    found = journal.board.people.get(person)
    if found is None:
        raise Refusal(404, f"person {person}: nobody of that number takes part")
    return found


def present(journal: Journal, person: int) -> Person:
    """Somebody who takes part, or a refusal."""
    found = journal.board.people.get(person)
    if found is None:
        raise Refusal(404, "you are not known here; open the study's link again")
    if found.withdrawn:
        raise Refusal(410, "you withdrew from this study and your answers were erased")
    return found
