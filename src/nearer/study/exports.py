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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.files import positions_text
from nearer.study.actions import is_false
from nearer.study.board import COUNTED, trials_of, triplets_of
from nearer.study.rows import decode
from nearer.trials import Trials

__all__ = [
    "EVERY_KIND",
    "EXPORTS",
    "Collected",
    "asked_facts",
    "collected",
    "comparisons",
    "completions_csv",
    "export_csv",
    "last_answer",
    "positions_csv",
    "replies_csv",
    "triplets",
]

#: purposes whose answers say something about the objects; a catch trial does not
EVERY_KIND = (*COUNTED, "holdout", "repeat")


_ANSWERS = """FROM standing a JOIN posed q ON q.id = a.question
    WHERE q.purpose IN (SELECT value FROM json_each(?))
    AND (a.choice = 'chosen' OR a.choice = ?)
    AND a.person NOT IN (SELECT person FROM excluded) AND coalesce(a.person = ?, 1)"""


@dataclass(frozen=True)
class Collected:
    """Answers in the order they came, as `nearer.fit` takes them, near ties among them."""

    answers: NDArray[np.int64] | Trials
    people: NDArray[np.int64]
    odds: NDArray[np.float64] | None  # with which their questions were chosen
    seen: int  # the number of the newest answer in the file

    @property
    def decided(self) -> int:
        """How many of them are no ties."""
        rows = self.answers
        return int(rows.decided.sum()) if isinstance(rows, Trials) else len(rows)

    def first(self, m: int) -> Collected:
        """Only so many of them."""
        odds = None if self.odds is None else self.odds[:m]
        return Collected(self.answers[:m], self.people[:m], odds, self.seen)


def collected(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> Collected:
    """Answers with who gave them and why they were asked for, excluded people left out.

    "Can't decide" is an answer, too: what was shown is about a tie. A skipped question is none.
    """
    seen = last_answer(db)
    if _all_of_two(db):
        rows, people, odds, unsure = comparisons(db, purposes)
        odds = np.nan_to_num(odds, nan=1.0)
        if not unsure.any():
            return Collected(rows, people, odds, seen)
        said = np.ma.MaskedArray(np.ones(len(rows), dtype=np.bool_), mask=unsure)
        return Collected(Trials.from_screens(rows, said), people, odds, seen)
    found = db.execute(
        f"SELECT q.task, q.query, q.shown, a.chosen, q.choose, a.person {_ANSWERS} ORDER BY a.id",
        (json.dumps(list(purposes)), "undecided", None),
    ).fetchall()
    people = np.array([row[5] for row in found], dtype=np.int64)
    given = [
        (task, q, decode(shown), None if chosen is None else decode(chosen))
        for task, q, shown, chosen, *_ in found
    ]
    trials = trials_of(given, [row[4] for row in found])
    if trials is not None:
        return Collected(trials, people, None, seen)
    # Tasks of several kinds have no other form than triplets, which say nothing of ties.
    told = [[] if one[3] is None else triplets_of(*one[:3], one[3]) for one in given]
    rows = np.array([row for rows in told for row in rows], dtype=np.int64).reshape(-1, 3)
    return Collected(rows, np.repeat(people, [len(rows) for rows in told]), None, seen)


def triplets(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> NDArray[np.int64]:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
    if _all_of_two(db):
        rows, _, _, unsure = comparisons(db, purposes)
        return rows[~unsure]
    answers = collected(db, purposes).answers
    return answers.triplets()[0] if isinstance(answers, Trials) else answers


def _all_of_two(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM questions WHERE task != 'two' LIMIT 1").fetchone() is None


def comparisons(
    db: sqlite3.Connection, purposes: Sequence[str] = COUNTED, person: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Which of two, as ``(head, near, far)``: with people, odds, and where nobody could decide.

    SQLite takes the JSON apart ten times as fast.
    """
    found = db.execute(
        "SELECT query, near, first + second - near, person, odds, tie FROM (SELECT a.id AS id,"
        " a.person AS person, q.query AS query, q.odds AS odds, a.chosen IS NULL AS tie,"
        " coalesce(json_extract(a.chosen, '$[0]'), json_extract(q.shown, '$[0]')) AS near,"
        " json_extract(q.shown, '$[0]') AS first,"
        f" json_extract(q.shown, '$[1]') AS second {_ANSWERS}) ORDER BY id",
        (json.dumps(list(purposes)), "undecided", person),
    ).fetchall()
    table = np.array(found, dtype=np.float64).reshape(-1, 6)  # objects are below 2^21
    rows, people = table[:, :3].astype(np.int64), table[:, 3].astype(np.int64)
    return rows, people, table[:, 4], table[:, 5] > 0


def asked_facts(
    db: sqlite3.Connection, person: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The questions that a method must not choose again, its own and everybody else's; their odds.

    Odds are nan where a question was not chosen, or nobody knows how.
    """
    rows = db.execute(
        """SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]'), odds FROM posed
           WHERE task = 'two'
           AND (purpose IN ('holdout', 'extra', 'own') OR (purpose = 'main' AND person IS ?))""",
        (person,),
    ).fetchall()
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return table[:, :3].astype(np.int64), table[:, 3]


def last_answer(db: sqlite3.Connection) -> int:
    """The number of the newest answer, 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])


_SQL = """
SELECT a.id, p.pseudonym, q.purpose, q.task, q.query, q.shown, l.shown, a.choice, a.chosen,
       a.response_ms, a.elapsed_ms, a.received, l.issued, l.expires,
       a.person IN (SELECT person FROM excluded), b.method, i.panel, i.external,
       EXISTS (SELECT 1 FROM answers c WHERE c.supersedes = a.id)
FROM answers a JOIN posed q ON q.id = a.question JOIN leases l ON l.id = a.lease
JOIN people p ON p.id = a.person
LEFT JOIN batches b ON b.id = q.batch LEFT JOIN identities i ON i.person = a.person
ORDER BY a.id
"""


_RUN = ("=", "+", "-", "@")  # what makes a spreadsheet take a text for a formula


class _Row:
    """One stored answer, with the words that exports need."""

    def __init__(self, row: tuple[Any, ...], names: list[str]) -> None:
        (self.id, self.pseudonym, self.purpose, self.task, self.head, shown, on_screen) = row[:7]
        (self.choice, chosen, self.ms, self.elapsed, self.received) = row[7:12]
        (self.issued, self.expires, excluded, method, panel, external, replaced) = row[12:]
        self.shown: list[int] = json.loads(on_screen)
        self.chosen: list[int] = json.loads(chosen) if chosen else []
        self.triplets = triplets_of(self.task, self.head, json.loads(shown), self.chosen)
        self.excluded, self.replaced = bool(excluded), bool(replaced)
        self.method, self.panel, self.external = method or "", panel or "", external or ""
        self.names = names
        self.left, self.right = self.shown[:2]
        if self.task == "two" and self.chosen:
            self.choice = "left" if self.chosen[0] == self.left else "right"

    @property
    def fits(self) -> bool:
        """Whether the answer belongs to the triplets of the study."""
        return self.stands and self.purpose in (*COUNTED, "holdout")

    @property
    def stands(self) -> bool:
        """Whether something was chosen, not taken back, by somebody who counts."""
        return bool(self.chosen) and not self.excluded and not self.replaced

    @property
    def kind(self) -> str:
        """What other programs tell apart: fitted, or held out."""
        return "main" if self.purpose in COUNTED else self.purpose

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.received, UTC).isoformat(timespec="milliseconds")


def _triplets(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    for r in rows:
        for head, near, far in r.triplets if r.fits else ():
            yield {"head": head, "winner": near, "loser": far, "person": r.pseudonym,
                   "purpose": r.kind}  # fmt: skip


def _salmon(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    start: float | None = None
    done: dict[str, int] = {}
    for n, r in enumerate((r for r in rows if r.fits and r.task == "two"), start=1):
        ((head, near, far),) = r.triplets
        start = r.received if start is None else start
        done[r.pseudonym] = done.get(r.pseudonym, 0) + 1
        spots = {"head": head, "winner": near, "loser": far, "left": r.left, "right": r.right}
        yield {
            **spots,
            "puid": r.external if identities and r.external else r.pseudonym,
            "response_time": "" if r.ms is None else r.ms / 1000,
            "network_latency": -1,
            "time_received": r.received,
            "sampler": (r.method or r.purpose) if r.kind == "main" else "Validation",
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
        if not r.stands or r.task != "two":
            continue
        ((head, near, far),) = r.triplets
        yield {
            "worker_id": r.external if identities and r.external else r.pseudonym,
            "rt": "" if r.ms is None else round(r.ms),
            "Center": r.names[head],
            "Left": r.names[r.left],
            "Right": r.names[r.right],
            "Answer": r.names[near],
            "sampleAlg": algorithm[r.kind],
            "sampleSet": "train" if r.kind == "main" else "test",
            "head": head,
            "winner": near,
            "loser": far,
        }


def _answers(rows: Iterator[_Row], identities: bool) -> Iterable[dict[str, Any]]:
    for r in rows:
        two = r.triplets[0] if r.task == "two" and r.triplets else ("", "", "")
        row = {
            "answer": r.id,
            "person": r.pseudonym,
            "purpose": r.purpose,
            "method": r.method,
            "task": r.task,
            "head": "" if r.head is None else r.head,
            "left": r.left,
            "right": r.right,
            "shown": " ".join(map(str, r.shown)),
            "choice": r.choice,
            "chosen": " ".join(map(str, r.chosen)),
            "winner": two[1],
            "loser": two[2],
            "response_ms": "" if r.ms is None else r.ms,
            "elapsed_ms": "" if r.elapsed is None else round(r.elapsed, 1),
            "received": r.when,
            "late": int(r.received > r.expires),
            "false_time": int(is_false(r.ms, r.issued, r.received)),
            "taken_back": int(r.replaced),
            "excluded": int(r.excluded),
            "head_name": "" if r.head is None else r.names[r.head],
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


def export_csv(db: sqlite3.Connection, name: str, *, identities: bool = False) -> str:
    """A table as CSV text; one without rows has its header all the same."""
    names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    rows = (_Row(row, names) for row in db.execute(_SQL))
    header = next(iter(EXPORTS[name](iter([_sample()]), identities)))
    return _csv(EXPORTS[name](rows, identities), list(header))


def _sample() -> _Row:
    """An answer that was never given, whose columns are those of every answer."""
    told = (0, "", "main", "two", 0, "[1,2]", "[1,2]", "chosen", "[1]", 0.0, 0.0, 0.0)
    return _Row((*told, 0.0, 0.0, 0, "", "", "", 0), ["", "", ""])


def completions_csv(db: sqlite3.Connection, code: Callable[[int], str]) -> str:
    """Who finished, for paying them: outside names and codes, no answers."""
    rows = (
        {"panel": panel, "external": external, "finished": int(finished is not None),
         "answers": answers, "code": code(person) if finished is not None else ""}
        for person, panel, external, finished, answers in db.execute(
            """SELECT p.id, coalesce(i.panel, ''), coalesce(i.external, p.pseudonym), p.finished,
                      (SELECT count(*) FROM standing a WHERE a.person = p.id)
               FROM persons p LEFT JOIN identities i ON i.person = p.id
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
    """Positions, one object a line, as all of the library writes them."""
    return positions_text(list(positions), [_tame(name) for name in names])


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
    r"""A text that a spreadsheet would run is quoted, and one that would break the line made flat.

    Examples
    --------
    >>> _tame("=1+1"), _tame("-2+3"), _tame("a\r\nb"), _tame(-1.5)
    ("'=1+1", "'-2+3", 'a  b', -1.5)
    """
    if not isinstance(value, str):
        return value
    flat = "".join(c if c.isprintable() else " " for c in value)
    return f"'{flat}" if value.lstrip()[:1] in _RUN or value[:1] in ("\t", "\r") else flat
