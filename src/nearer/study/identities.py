"""Who somebody is outside the study, and how they show that they are the same person again.

A panel sends people with an id in the link. An id is a name, not a proof: anyone can type one. So
an id that is taken opens nothing. The person goes on from the browser in which they began, which
has a token and a key of its own that never leave it; from elsewhere only by the way that the
researcher chose in the setting `returning`:

``browser``  not at all (a researcher can still make a personal link for one person),
``link``     with a personal link, which people are shown when they join,
``visit``    everybody with the id goes on as the same person and can add answers, but is told
             nothing of the earlier ones and cannot erase them.

A stranger who tries ids learns only of a running study that one is taken, and joins are limited.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from nearer.study.auth import hashed
from nearer.study.refusals import Refusal

__all__ = ["PANELS", "Identity", "erase", "find", "keep", "of_browser"]

#: panel: (its parameter for the person, further parameters that are kept)
PANELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prolific": ("PROLIFIC_PID", ("STUDY_ID", "SESSION_ID")),
    "mturk": ("workerId", ("assignmentId", "hitId")),
    "sona": ("survey_code", ()),
    "link": ("participant", ()),
}
_LONGEST = 200


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
                raise Refusal(
                    422,
                    f"{parameter} has {len(external)} characters; at most {_LONGEST} are taken",
                )
            if external:
                details = {key: parameters[key][:_LONGEST] for key in more if key in parameters}
                return cls(panel, external, json.dumps(details))
        return cls()


def of_browser(db: sqlite3.Connection, key: str) -> int | None:
    """The person who began in the browser with this key."""
    if not key:
        return None
    row = db.execute("SELECT person FROM browsers WHERE key = ?", (hashed(key),)).fetchone()
    return None if row is None else int(row[0])


def find(db: sqlite3.Connection, identity: Identity) -> int | None:
    """The person who has an identity."""
    if not identity.external:
        return None
    row = db.execute(
        "SELECT person FROM identities WHERE panel = ? AND external = ?", identity[:2]
    ).fetchone()
    return None if row is None else int(row[0])


def keep(db: sqlite3.Connection, person: int, identity: Identity, key: str) -> None:
    """Remember who a new person is and where they began."""
    if identity.external:
        db.execute("INSERT INTO identities VALUES (?, ?, ?, ?)", (person, *identity))
    if key:
        db.execute("INSERT INTO browsers VALUES (?, ?)", (hashed(key), person))


def erase(db: sqlite3.Connection, person: int) -> None:
    """Forget who somebody is, and what they wrote about themselves."""
    for table in ("identities", "browsers", "replies"):
        db.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
