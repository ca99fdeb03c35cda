"""How a study and its people are doing, counted from the file."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, NamedTuple

from nearer.metrics import share_interval
from nearer.study.actions import is_false
from nearer.study.posing import FEWEST_CATCH, FEWEST_REPEATS
from nearer.study.rows import decode


@dataclass
class PersonReport:
    """One person's answers in numbers; shares are None where there is nothing to divide by."""

    id: int
    pseudonym: str
    joined: float
    finished: bool
    excluded: bool
    withdrawn: bool
    panel: str = ""
    external: str = ""
    answered: int = 0
    median_ms: float | None = None
    fastest_ms: float | None = None
    #: by the server's clock
    median_elapsed_ms: float | None = None
    #: response times longer than the question was out
    false_times: int = 0
    catch_failed: int = 0
    catch_total: int = 0
    #: of what was chosen on repeated screens: how much both times, and how much would be by chance
    repeats_agreed: int = 0
    repeats_total: int = 0
    repeats_by_chance: float = 0.0
    #: the share of that, and where it lies with 95 %
    agreement: float | None = None
    agreement_interval: tuple[float, float] | None = None
    #: of questions with two sides
    left_share: float | None = None
    undecided: int = 0
    skipped: int = 0
    taken_back: int = 0
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Flag(NamedTuple):
    """Something that a researcher should look at; nobody is excluded by a number alone."""

    name: str
    judges: Callable[[PersonReport], bool]  # whether there is enough to judge a person by
    fires: Callable[[PersonReport], bool]


_FLAGS = (
    Flag(
        "fails catch trials",
        lambda r: r.catch_total >= FEWEST_CATCH,
        lambda r: r.catch_failed * 3 > r.catch_total,
    ),
    Flag(
        "repeats disagree",
        lambda r: r.repeats_total >= FEWEST_REPEATS,
        # less than a fifth of the way from chance to always: of two, below 60 %
        lambda r: 5 * r.repeats_agreed < r.repeats_total + 4 * r.repeats_by_chance,
    ),
    Flag(
        "very fast",
        lambda r: r.answered >= 10,
        lambda r: any(ms is not None and ms < 300 for ms in (r.median_ms, r.median_elapsed_ms)),
    ),
    Flag(
        "times are not true",
        lambda r: r.answered >= 3,
        lambda r: r.false_times * 10 > r.answered,
    ),
    Flag(
        "keeps to one side",
        lambda r: r.answered >= 20 and r.left_share is not None,
        lambda r: r.left_share is not None and not 0.2 <= r.left_share <= 0.8,
    ),
)


def people_report(db: sqlite3.Connection) -> list[PersonReport]:
    """Everybody who joined, newest first."""
    people = {
        row[0]: PersonReport(
            row[0], row[1], row[2], row[3] is not None, bool(row[4]), bool(row[5]), row[6], row[7]
        )
        for row in db.execute(
            "SELECT p.id, p.pseudonym, p.joined, p.finished, p.excluded, p.withdrawn,"
            " coalesce(i.panel, ''), coalesce(i.external, '')"
            " FROM persons p LEFT JOIN identities i ON i.person = p.id ORDER BY p.id DESC"
        )
    }
    times: dict[int, list[float]] = defaultdict(list)
    elapsed: dict[int, list[float]] = defaultdict(list)
    lefts: dict[int, list[bool]] = defaultdict(list)
    first: dict[tuple[int, int], set[int]] = {}
    for row in db.execute(
        """SELECT a.person, a.question, q.purpose, q.repeats, q.expected, q.task, a.choice,
                  a.chosen, l.shown, a.response_ms, a.elapsed_ms, a.received - l.issued
           FROM standing a JOIN posed q ON q.id = a.question JOIN leases l ON l.id = a.lease
           ORDER BY a.id"""
    ):
        person, question, purpose, repeats, expected, task, choice, picked, seen, *rest = row
        ms, took, out = rest
        report, chosen, shown = people[person], decode(picked or "[]"), decode(seen)
        report.answered += 1
        report.undecided += choice == "undecided"
        report.skipped += choice == "skip"
        report.false_times += is_false(ms, 0.0, out)
        if ms is not None:
            times[person].append(ms)
        if took is not None:
            elapsed[person].append(took)
        if chosen and purpose != "catch" and len(shown) == 2:
            lefts[person].append(chosen[0] == shown[0])
        if expected is not None:
            report.catch_total += 1
            report.catch_failed += expected not in (chosen[:1] if task == "rank" else chosen)
        if purpose == "repeat" and chosen and (person, repeats) in first:
            report.repeats_total += len(chosen)
            report.repeats_agreed += len(first[person, repeats].intersection(chosen))
            report.repeats_by_chance += len(chosen) ** 2 / len(shown)
        elif chosen:
            first[person, question] = set(chosen)
    for person, count in db.execute(
        "SELECT person, count(*) FROM answers WHERE supersedes IS NOT NULL GROUP BY person"
    ):
        people[person].taken_back = count
    for person, report in people.items():
        _summarise(report, times[person], elapsed[person], lefts[person])
    return list(people.values())


def _summarise(
    report: PersonReport, times: list[float], elapsed: list[float], lefts: list[bool]
) -> None:
    if times:
        report.median_ms, report.fastest_ms = median(times), min(times)
    if elapsed:
        report.median_elapsed_ms = median(elapsed)
    if lefts:
        report.left_share = sum(lefts) / len(lefts)
    if report.repeats_total:
        report.agreement = report.repeats_agreed / report.repeats_total
        report.agreement_interval = share_interval(report.agreement, report.repeats_total)
    report.warnings = [f.name for f in _FLAGS if f.judges(report) and f.fires(report)]


def overview(
    db: sqlite3.Connection, board: dict[str, Any], now: float, people: list[PersonReport]
) -> dict[str, Any]:
    """The study in numbers, as the dashboard and ``nearer study status`` show it.

    `board` is the board's `summary`.
    """
    counted, quota = board["answers"], board["quota"]
    kinds = dict(
        db.execute(
            "SELECT q.purpose, count(*) FROM standing a JOIN posed q ON q.id = a.question"
            " GROUP BY q.purpose"
        ).fetchall()
    )
    recent, oldest = db.execute(
        "SELECT count(*), min(received) FROM standing WHERE received > ?", (now - 3600,)
    ).fetchone()
    hours = max((now - oldest) / 3600, 1 / 60) if recent else 1.0
    per_hour = recent / hours
    left = max(quota - counted, 0) if quota else None
    share = counted / max(sum(kinds.values()), 1)
    return {
        "state": board["state"],
        "quota": quota,
        "enough": board["enough"],
        "exhausted": board["exhausted"],
        "quality": board["quality"],
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
            "joined": len(people),
            "now": board["active"],
            "finished": sum(p.finished for p in people),
            "excluded": sum(p.excluded for p in people),
            "withdrawn": sum(p.withdrawn for p in people),
        },
        "flags": {
            flag.name: {
                "judged": sum(flag.judges(p) for p in people),
                "flagged": sum(flag.name in p.warnings for p in people),
            }
            for flag in _FLAGS
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
    found["accuracy_interval"] = None
    if found["n_holdout"]:
        found["accuracy_interval"] = share_interval(found["accuracy"], found["n_holdout"])
    if positions:
        found["positions"] = json.loads(row[7])
        found["history"] = [
            {"n_triplets": n, "accuracy": a, "n_holdout": h, "dimension": d}
            for n, a, h, d in db.execute(
                "SELECT n_triplets, accuracy, n_holdout, dimension FROM maps ORDER BY id"
            )
        ]
    return found
