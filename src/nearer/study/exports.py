"""Answers and positions read out of the file: as arrays for fits, as tables for other tools.

Tables: ``triplets``: head, winner, loser, the plain form. ``salmon``: the columns of Salmon's
``/responses``. ``triplettools``: those of the R package tripletTools. ``answers``: everything that
was stored. People appear under their pseudonyms; only ``completions``, which holds no answers,
and answers exported with ``identities`` on purpose, say who somebody is.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.files import positions_text, table_text
from nearer.study.actions import is_false
from nearer.study.board import COUNTED
from nearer.study.rows import decode
from nearer.trials import Trials

#: purposes whose answers say something about the objects; a catch trial does not
EVERY_KIND = (*COUNTED, "holdout", "repeat")
_ANSWERS = """FROM standing a JOIN posed q ON q.id = a.question
    WHERE q.purpose IN (SELECT value FROM json_each(?)) AND a.choice IN ('chosen', 'undecided')
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
        (json.dumps(list(purposes)), None),
    ).fetchall()
    people = np.array([row[5] for row in found], dtype=np.int64)
    shown = [decode(row[2]) for row in found]
    chosen = [None if row[3] is None else decode(row[3]) for row in found]
    tasks = {row[0] for row in found}
    if tasks == {"odd"}:
        odd = Trials.odd_one_out(shown, [None if one is None else one[0] for one in chosen])
        return Collected(odd, people, None, seen)
    if tasks <= {"two", "choose"} or tasks <= {"two", "rank"}:
        queries, wanted = [row[1] for row in found], [row[4] for row in found]
        near = Trials.near(queries, shown, chosen, ranked="rank" in tasks, wanted=wanted)
        return Collected(near, people, None, seen)
    # Tasks of several kinds have no other form than triplets, which say nothing of ties.
    per_answer = [
        triplets_of(row[0], row[1], on_screen, one) if one else []
        for row, on_screen, one in zip(found, shown, chosen, strict=True)
    ]
    rows = np.array([row for rows in per_answer for row in rows], dtype=np.int64).reshape(-1, 3)
    return Collected(rows, np.repeat(people, [len(rows) for rows in per_answer]), None, seen)


def triplets(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> NDArray[np.int64]:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
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
        (json.dumps(list(purposes)), person),
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


def triplets_of(
    task: str, query: int | None, shown: Sequence[int], chosen: Sequence[int]
) -> list[tuple[int, int, int]]:
    """What an answer says about distances, as rows ``(head, near, far)``.

    What was chosen is nearer to the query than what was not; the odd one is farther from each of
    the others than they are from each other.

    Examples
    --------
    >>> triplets_of("two", 7, [1, 2], [2])
    [(7, 2, 1)]
    >>> triplets_of("rank", 7, [1, 2, 3], [3, 1])
    [(7, 3, 1), (7, 3, 2), (7, 1, 2)]
    >>> triplets_of("odd", None, [1, 2, 3], [2])
    [(1, 3, 2), (3, 1, 2)]
    """
    rest = [i for i in shown if i not in chosen]
    if query is None:
        return [
            row for a, b in combinations(rest, 2) for o in chosen for row in ((a, b, o), (b, a, o))
        ]
    if task == "rank":
        return [
            (query, near, far) for k, near in enumerate(chosen) for far in [*chosen[k + 1 :], *rest]
        ]
    return [(query, near, far) for near, far in product(chosen, rest)]


# Tables ----------------------------------------------------------------------------------------

_SQL = """
SELECT a.id, p.pseudonym, q.purpose, q.task, q.query AS head, q.shown AS posed, l.shown, a.choice,
       a.chosen, a.response_ms AS ms, a.elapsed_ms AS elapsed, a.received, l.issued, l.expires,
       a.person IN (SELECT person FROM excluded) AS excluded, coalesce(b.method, '') AS method,
       coalesce(i.panel, '') AS panel, coalesce(i.external, '') AS external,
       EXISTS (SELECT 1 FROM answers c WHERE c.supersedes = a.id) AS replaced
FROM answers a JOIN posed q ON q.id = a.question JOIN leases l ON l.id = a.lease
JOIN people p ON p.id = a.person
LEFT JOIN batches b ON b.id = q.batch LEFT JOIN identities i ON i.person = a.person
ORDER BY a.id
"""
#: what makes a spreadsheet take a text for a formula, whatever it takes for a separator
_RUN = re.compile("(^|;)(\\s*)(?=[=+@＝＋＠－-])")


class _Stored:
    """One stored answer, with what exports need of it."""

    def __init__(self, row: dict[str, Any], names: Sequence[str], identities: bool) -> None:
        self.__dict__.update(row)
        self.names = names
        self.shown, self.chosen = decode(row["shown"]), decode(row["chosen"] or "[]")
        self.triplets = triplets_of(row["task"], row["head"], decode(row["posed"]), self.chosen)
        self.left, self.right = self.shown[:2]
        self.who = row["external"] if identities and row["external"] else row["pseudonym"]
        self.kind = "main" if row["purpose"] in COUNTED else row["purpose"]
        #: something was chosen, not taken back, by somebody who counts
        self.stands = bool(self.chosen) and not row["excluded"] and not row["replaced"]
        self.fits = self.stands and self.kind in ("main", "holdout")
        self.when = _time(row["received"])

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # columns of the query; here for the types alone


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _triplets(rows: Iterable[_Stored]) -> Iterator[list[Any]]:
    yield ["head", "winner", "loser", "person", "purpose"]
    for r in rows:
        for row in r.triplets if r.fits else ():
            yield [*row, r.pseudonym, r.kind]


def _salmon(rows: Iterable[_Stored]) -> Iterator[list[Any]]:
    spots = ("head", "winner", "loser", "left", "right")
    yield [
        *spots, "puid", "response_time", "network_latency", "time_received", "sampler", "score",
        *(f"{spot}_html" for spot in spots), *(f"{spot}_filename" for spot in spots),
        "time_received_since_start", "datetime_received", "start_time", "puid_num_responses",
        "num_responses",
    ]  # fmt: skip
    start: float | None = None
    done: Counter[str] = Counter()
    for n, r in enumerate((r for r in rows if r.fits and r.task == "two"), start=1):
        items = [*r.triplets[0], r.left, r.right]
        names = [r.names[item] for item in items]
        start = r.received if start is None else start
        done[r.pseudonym] += 1
        seconds = "" if r.ms is None else r.ms / 1000
        sampler = (r.method or r.purpose) if r.kind == "main" else "Validation"
        yield [
            *items, r.who, seconds, -1, r.received, sampler, 0, *names, *names,
            r.received - start, r.when, start, done[r.pseudonym], n,
        ]  # fmt: skip


def _triplettools(rows: Iterable[_Stored]) -> Iterator[list[Any]]:
    yield [
        "worker_id", "rt", "Center", "Left", "Right", "Answer", "sampleAlg", "sampleSet", "head",
        "winner", "loser",
    ]  # fmt: skip
    algorithm = {"main": "random", "holdout": "validation", "repeat": "check", "catch": "check"}
    for r in rows:
        if r.stands and r.task == "two":
            head, near, far = r.triplets[0]
            names = [r.names[item] for item in (head, r.left, r.right, near)]
            ms = "" if r.ms is None else round(r.ms)
            used = "train" if r.kind == "main" else "test"
            yield [r.who, ms, *names, algorithm[r.kind], used, head, near, far]


def _answers(rows: Iterable[_Stored]) -> Iterator[list[Any]]:
    yield [
        "answer", "person", "purpose", "method", "task", "head", "left", "right", "shown", "choice",
        "chosen", "winner", "loser", "response_ms", "elapsed_ms", "received", "late", "false_time",
        "taken_back", "excluded", "head_name", "left_name", "right_name", "panel", "external",
    ]  # fmt: skip
    for r in rows:
        _, near, far = r.triplets[0] if r.task == "two" and r.triplets else ("", "", "")
        choice = r.choice
        if r.task == "two" and r.chosen:
            choice = "left" if r.chosen[0] == r.left else "right"
        yield [
            r.id, r.pseudonym, r.purpose, r.method, r.task, "" if r.head is None else r.head,
            r.left, r.right, " ".join(map(str, r.shown)), choice, " ".join(map(str, r.chosen)),
            near, far, "" if r.ms is None else r.ms,
            "" if r.elapsed is None else round(r.elapsed, 1), r.when,
            int(r.received > r.expires), int(is_false(r.ms, r.issued, r.received)),
            int(r.replaced), int(r.excluded), "" if r.head is None else r.names[r.head],
            r.names[r.left], r.names[r.right], r.panel, r.external,
        ]  # fmt: skip


_EXPORTS: dict[str, Callable[[Iterable[_Stored]], Iterator[list[Any]]]] = {
    "triplets": _triplets,
    "salmon": _salmon,
    "triplettools": _triplettools,
    "answers": _answers,
}


def export_csv(db: sqlite3.Connection, name: str, *, identities: bool = False) -> str:
    """A table of answers as CSV; `name` is triplets, salmon, triplettools or answers."""
    names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    found = db.execute(_SQL)
    columns = [column[0] for column in found.description]
    rows = (_Stored(dict(zip(columns, row, strict=True)), names, identities) for row in found)
    header, *lines = _EXPORTS[name](rows)
    if name == "answers" and not identities:
        header, lines = header[:-2], [line[:-2] for line in lines]
    return _csv(header, lines)


def completions_csv(db: sqlite3.Connection, code: Callable[[int], str]) -> str:
    """Who finished, for paying them: outside names and codes, no answers."""
    rows = db.execute(
        """SELECT p.id, coalesce(i.panel, ''), coalesce(i.external, p.pseudonym),
                  p.finished IS NOT NULL, (SELECT count(*) FROM standing a WHERE a.person = p.id)
           FROM persons p LEFT JOIN identities i ON i.person = p.id
           WHERE NOT p.withdrawn ORDER BY p.id"""
    )
    lines = ((*row, code(person) if row[2] else "") for person, *row in rows)
    return _csv(["panel", "external", "finished", "answers", "code"], lines)


def replies_csv(db: sqlite3.Connection, *, identities: bool = False) -> str:
    """What people wrote on pages of a questionnaire, one field a line."""
    rows = db.execute(
        """SELECT p.pseudonym, i.external, r.page, r.at, r.reply
           FROM replies r JOIN people p ON p.id = r.person
           LEFT JOIN identities i ON i.person = r.person ORDER BY r.id"""
    )
    lines = (
        (external if identities and external else pseudonym, page, name, reply,
         int(filled["screened_out"]), _time(at))
        for pseudonym, external, page, at, text in rows
        for filled in [json.loads(text)]
        for name, reply in filled["replies"].items()
    )  # fmt: skip
    return _csv(["person", "page", "name", "reply", "screened_out", "received"], lines)


def positions_csv(names: Sequence[str], positions: Iterable[Iterable[float]]) -> str:
    """Positions, one object a line, as all of the library writes them."""
    return positions_text(list(positions), [_tame(name) for name in names])


def _csv(header: Sequence[str], lines: Iterable[Iterable[Any]]) -> str:
    return table_text(header, ([_tame(value) for value in line] for line in lines))


def _tame(value: Any) -> Any:
    r"""A text that a spreadsheet would run is quoted, and one that would break the line made flat.

    Examples
    --------
    >>> _tame("=1+1"), _tame("-2+3"), _tame("a\r\nb"), _tame(-1.5), _tame("a;=1+1")
    ("'=1+1", "'-2+3", 'a  b', -1.5, "a;'=1+1")
    """
    if not isinstance(value, str):
        return value
    flat = "".join(c if c.isprintable() else " " for c in value)
    tamed = _RUN.sub(r"\1'\2", flat)
    return f"'{tamed}" if value[:1] in ("\t", "\r") and tamed[:1] != "'" else tamed
