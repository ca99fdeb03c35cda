"""How a study and its people are doing, counted from the file."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

__all__ = ["PersonReport", "overview", "people_report"]


@dataclass
class PersonReport:
    """One person's answers in numbers; shares are None where there is nothing to divide by."""

    id: int
    pseudonym: str
    joined: float
    finished: bool
    excluded: bool
    withdrawn: bool
    answered: int = 0
    median_ms: float | None = None
    fastest_ms: float | None = None
    catch_failed: int = 0
    catch_total: int = 0
    repeats_agreed: int = 0
    repeats_total: int = 0
    left_share: float | None = None
    undecided: int = 0
    skipped: int = 0
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def people_report(db: sqlite3.Connection) -> list[PersonReport]:
    """Everybody who joined, newest first."""
    people = {
        row[0]: PersonReport(row[0], row[1], row[2], row[3] is not None, bool(row[4]), bool(row[5]))
        for row in db.execute(
            "SELECT id, pseudonym, joined, finished, excluded, withdrawn FROM people"
            " ORDER BY id DESC"
        )
    }
    times: dict[int, list[float]] = defaultdict(list)
    lefts: dict[int, list[bool]] = defaultdict(list)
    first: dict[tuple[int, int], int] = {}
    for person, question, purpose, repeats, head, choice, near, ms in db.execute(
        """SELECT a.person, a.question, q.purpose, q.repeats, q.head, a.choice, a.near,
                  a.response_ms
           FROM answers a JOIN posed q ON q.id = a.question ORDER BY a.id"""
    ):
        report = people[person]
        report.answered += 1
        report.undecided += choice == "undecided"
        report.skipped += choice == "skip"
        if ms is not None:
            times[person].append(ms)
        if near is not None and purpose != "catch":
            lefts[person].append(choice == "left")
        if purpose == "catch":
            report.catch_total += 1
            report.catch_failed += near != head
        elif purpose in ("main", "holdout") and near is not None:
            first[person, question] = near
        elif purpose == "repeat" and near is not None and (person, repeats) in first:
            report.repeats_total += 1
            report.repeats_agreed += near == first[person, repeats]
    for person, report in people.items():
        if times[person]:
            report.median_ms = median(times[person])
            report.fastest_ms = min(times[person])
        if lefts[person]:
            report.left_share = sum(lefts[person]) / len(lefts[person])
        report.warnings = _warnings(report)
    return list(people.values())


def _warnings(r: PersonReport) -> list[str]:
    """What a researcher should look at; nobody is excluded by a number alone."""
    found = []
    if r.catch_total >= 2 and r.catch_failed * 3 > r.catch_total:
        found.append("fails catch trials")
    if r.repeats_total >= 4 and r.repeats_agreed * 10 < r.repeats_total * 6:
        found.append("repeats disagree")
    if r.median_ms is not None and r.answered >= 10 and r.median_ms < 300:
        found.append("very fast")
    if r.left_share is not None and r.answered >= 20 and not 0.2 <= r.left_share <= 0.8:
        found.append("keeps to one side")
    return found


def overview(
    db: sqlite3.Connection, board: dict[str, Any], state: str, quota: int, now: float
) -> dict[str, Any]:
    """The study in numbers, as the dashboard and ``nearer study status`` show it.

    `board` is the board's `summary`.
    """
    counted = board["mains"]
    kinds = dict(
        db.execute(
            "SELECT q.purpose, count(*) FROM answers a JOIN posed q ON q.id = a.question"
            " GROUP BY q.purpose"
        ).fetchall()
    )
    since = now - 3600
    recent, oldest = db.execute(
        "SELECT count(*), min(received) FROM answers WHERE received > ?", (since,)
    ).fetchone()
    hours = max((now - oldest) / 3600, 1 / 60) if recent else 1.0
    per_hour = recent / hours
    left = max(quota - counted, 0) if quota else None
    share = counted / max(sum(kinds.values()), 1)
    joined, finished, excluded, withdrawn = db.execute(
        "SELECT count(*), coalesce(sum(finished IS NOT NULL), 0), coalesce(sum(excluded), 0),"
        " coalesce(sum(withdrawn), 0) FROM people"
    ).fetchone()
    return {
        "state": state,
        "quota": quota,
        "answers": {"counted": counted, "all": sum(kinds.values()), **kinds},
        "questions": board["questions"],
        "answers_per_hour": round(per_hour, 1),
        "remaining": {
            "answers": left,
            "hours": round(left / (per_hour * share), 2)
            if left is not None and per_hour and share
            else None,
        },
        "people": {
            "joined": joined,
            "now": board["active"],
            "finished": finished,
            "excluded": excluded,
            "withdrawn": withdrawn,
        },
        "map": latest_map(db, positions=False),
    }


def latest_map(db: sqlite3.Connection, *, positions: bool = True) -> dict[str, Any] | None:
    """The newest map, and how its accuracy developed."""
    row = db.execute(
        "SELECT at, seen, n_triplets, dimension, accuracy, n_holdout, seconds, positions FROM maps"
        " ORDER BY id DESC LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    names = ("at", "seen", "n_triplets", "dimension", "accuracy", "n_holdout", "seconds")
    found = dict(zip(names, row, strict=False))
    if positions:
        found["positions"] = json.loads(row[7])
        found["history"] = [
            {"n_triplets": n, "accuracy": a, "n_holdout": h, "dimension": d}
            for n, a, h, d in db.execute(
                "SELECT n_triplets, accuracy, n_holdout, dimension FROM maps ORDER BY id"
            )
        ]
    return found
