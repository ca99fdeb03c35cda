"""Answers and positions as tables, in the columns that other tools read.

``triplets``: head, winner, loser, the plain form. ``salmon``: the columns of Salmon's
``/responses``. ``triplettools``: those of the R package tripletTools. ``answers``: everything that
was stored. People appear under their pseudonyms; only ``completions``, which holds no answers,
and answers exported with ``identities`` on purpose, say who somebody is.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

__all__ = ["EXPORTS", "export_csv", "positions_csv", "replies_csv"]

_SQL = """
SELECT a.id, p.pseudonym, a.person, q.purpose, q.head, a.near, a.far, a.choice, l.a_left,
       q.a, q.b, a.response_ms, a.received, l.issued, l.expires, p.excluded, b.method,
       ih.name, ia.name, ib.name, i.panel, i.external
FROM answers a JOIN posed q ON q.id = a.question JOIN leases l ON l.id = a.lease
JOIN people p ON p.id = a.person JOIN items ih ON ih.id = q.head
JOIN items ia ON ia.id = q.a JOIN items ib ON ib.id = q.b
LEFT JOIN batches b ON b.id = q.batch LEFT JOIN identities i ON i.person = a.person
ORDER BY a.id
"""


class _Row:
    """One stored answer, with the words that exports need."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        (self.id, self.pseudonym, self.person, self.purpose, self.head, self.near, self.far) = row[
            :7
        ]
        (self.choice, a_left, a, b, self.ms, self.received, self.issued, self.expires) = row[7:15]
        self.excluded = bool(row[15])
        self.method = row[16] or ""
        self.names = {self.head: row[17], a: row[18], b: row[19]}
        self.left, self.right = (a, b) if a_left else (b, a)
        self.panel, self.external = row[20] or "", row[21] or ""

    @property
    def fits(self) -> bool:
        """Whether the answer belongs to the triplets of the study."""
        return self.near is not None and not self.excluded and self.purpose in ("main", "holdout")

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.received, UTC).isoformat(timespec="milliseconds")


def _triplets(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    for r in rows:
        if r.fits:
            yield {"head": r.head, "winner": r.near, "loser": r.far, "person": r.pseudonym,
                   "purpose": r.purpose}  # fmt: skip


def _salmon(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    start: float | None = None
    done: dict[str, int] = {}
    for n, r in enumerate((r for r in rows if r.fits), start=1):
        start = r.received if start is None else start
        done[r.pseudonym] = done.get(r.pseudonym, 0) + 1
        spots = {"head": r.head, "winner": r.near, "loser": r.far, "left": r.left, "right": r.right}
        yield {
            **spots,
            "puid": r.external if identities and r.external else r.pseudonym,
            "response_time": "" if r.ms is None else r.ms / 1000,
            "network_latency": -1,
            "time_received": r.received,
            "sampler": r.method if r.purpose == "main" else "Validation",
            "score": 0,
            **{f"{key}_html": r.names[value] for key, value in spots.items()},
            **{f"{key}_filename": r.names[value] for key, value in spots.items()},
            "time_received_since_start": r.received - start,
            "datetime_received": r.when,
            "start_time": start,
            "puid_num_responses": done[r.pseudonym],
            "num_responses": n,
        }


def _triplettools(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    algorithm = {"main": "random", "holdout": "validation", "repeat": "check", "catch": "check"}
    for r in rows:
        if r.near is None or r.excluded:
            continue
        yield {
            "worker_id": r.external if identities and r.external else r.pseudonym,
            "rt": "" if r.ms is None else round(r.ms),
            "Center": r.names[r.head],
            "Left": r.names[r.left],
            "Right": r.names[r.right],
            "Answer": r.names[r.near],
            "sampleAlg": algorithm[r.purpose],
            "sampleSet": "train" if r.purpose == "main" else "test",
            "head": r.head,
            "winner": r.near,
            "loser": r.far,
        }


def _answers(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    for r in rows:
        row = {
            "answer": r.id,
            "person": r.pseudonym,
            "purpose": r.purpose,
            "method": r.method,
            "head": r.head,
            "left": r.left,
            "right": r.right,
            "choice": r.choice,
            "winner": "" if r.near is None else r.near,
            "loser": "" if r.far is None else r.far,
            "response_ms": "" if r.ms is None else r.ms,
            "received": r.when,
            "late": int(r.received > r.expires),
            "excluded": int(r.excluded),
            "head_name": r.names[r.head],
            "left_name": r.names[r.left],
            "right_name": r.names[r.right],
        }
        yield {**row, "panel": r.panel, "external": r.external} if identities else row


#: name: how its rows are made
EXPORTS: dict[str, Callable[[Iterator[_Row], bool], Iterable[dict[str, Any]]]] = {
    "triplets": _triplets,
    "salmon": _salmon,
    "triplettools": _triplettools,
    "answers": _answers,
}
#: what a table without rows has for a header
_HEADERS = {"triplets": ["head", "winner", "loser", "person", "purpose"]}


def export_csv(db: sqlite3.Connection, name: str, *, identities: bool = False) -> str:
    """A table as CSV text."""
    rows = (_Row(row) for row in db.execute(_SQL))
    return _csv(EXPORTS[name](rows, identities), _HEADERS.get(name, []))


def completions_csv(db: sqlite3.Connection, code: Callable[[int], str]) -> str:
    """Who finished, for paying them: outside names and codes, no answers."""
    rows = (
        {"panel": panel, "external": external, "finished": int(finished is not None),
         "answers": answers, "code": code(person) if finished is not None else ""}
        for person, panel, external, finished, answers in db.execute(
            """SELECT p.id, coalesce(i.panel, ''), coalesce(i.external, p.pseudonym), p.finished,
                      (SELECT count(*) FROM answers a WHERE a.person = p.id)
               FROM people p LEFT JOIN identities i ON i.person = p.id
               WHERE NOT p.withdrawn ORDER BY p.id"""
        )
    )  # fmt: skip
    return _csv(rows, ["panel", "external", "finished", "answers", "code"])


def replies_csv(db: sqlite3.Connection, *, identities: bool = False) -> str:
    """What people wrote on pages of a questionnaire, one field a line."""
    rows = (
        {"person": external if identities and external else pseudonym, "page": page,
         "name": name, "reply": reply, "screened_out": int(told["screened_out"]),
         "received": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")}
        for pseudonym, external, page, at, text in db.execute(
            """SELECT p.pseudonym, i.external, r.page, r.at, r.reply
               FROM replies r JOIN people p ON p.id = r.person
               LEFT JOIN identities i ON i.person = r.person ORDER BY r.id"""
        )
        for told in [json.loads(text)]
        for name, reply in told["replies"].items()
    )  # fmt: skip
    return _csv(rows, ["person", "page", "name", "reply", "screened_out", "received"])


def positions_csv(names: list[str], positions: Iterable[Iterable[float]]) -> str:
    """Positions, one object a line."""
    rows = (
        {"item": name, **{f"dim_{k}": round(float(x), 6) for k, x in enumerate(row)}}
        for name, row in zip(names, positions, strict=True)
    )
    return _csv(rows, ["item"])


def _csv(rows: Iterable[dict[str, Any]], header: list[str]) -> str:
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(out, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({key: _tame(value) for key, value in row.items()})
    return out.getvalue() if writer else ",".join(header) + "\n"


def _tame(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "@", "\t") else value
