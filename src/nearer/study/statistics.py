"""How a study and its people are doing, counted from the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd

from nearer.metrics import share_interval
from nearer.study.exports import stored_answers
from nearer.study.posing import FEWEST_CATCH, FEWEST_REPEATS
from nearer.study.store import latest_map


class Flag(NamedTuple):
    """Something that a researcher should look at; nobody is excluded by a number alone."""

    name: str
    judges: Callable[[Any], bool]  # whether there is enough to judge a person by
    fires: Callable[[Any], bool]


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
        lambda r: not 0.2 <= r.left_share <= 0.8,
    ),
)


def people_report(db: sqlite3.Connection) -> list[SimpleNamespace]:
    """Everybody who joined, newest first: their answers in numbers, None where there is nothing.

    Attributes
    ----------
    median_ms, fastest_ms, median_elapsed_ms, false_times
        Response times by the browser's clock, by the server's, and how many are longer than the
        question was out.
    catch_failed, catch_total
        Questions with an answer that a careful person gives.
    repeats_agreed, repeats_total, repeats_by_chance, agreement, agreement_interval
        Of what was chosen on repeated screens: how much both times, how much would be by chance,
        and the share with its interval of 95 %.
    left_share
        How often the left of two was chosen.
    warnings
        The flags that fire.
    """
    people = pd.read_sql_query(
        "SELECT p.id, p.pseudonym, p.joined, p.finished IS NOT NULL AS finished, p.excluded,"
        " p.withdrawn, coalesce(i.panel, '') AS panel, coalesce(i.external, '') AS external"
        " FROM persons p LEFT JOIN identities i ON i.person = p.id ORDER BY p.id DESC",
        db,
        dtype={"finished": bool, "excluded": bool, "withdrawn": bool},
    ).set_index("id", drop=False)
    table = stored_answers(db)
    taken_back = table.groupby("id").taken_back.sum()
    table = table[table.taken_back == 0]
    chose = table.chosen.map(len) > 0
    sides = table[chose & (table.purpose != "catch") & (table.shown.map(len) == 2)]
    by, catch = table.groupby("id"), _catch(table)
    counts = {
        "answered": by.size(),
        "false_times": by.false_time.sum(),
        "undecided": (table.choice == "undecided").groupby(table.id).sum(),
        "skipped": (table.choice == "skip").groupby(table.id).sum(),
        "taken_back": taken_back,
        "catch_total": catch.groupby(level=0).size(),
        "catch_failed": catch.groupby(level=0).sum(),
        **_repeats(table[chose]),
    }
    shares = {
        "median_ms": by.response_ms.median(),
        "fastest_ms": by.response_ms.min(),
        "median_elapsed_ms": by.elapsed_ms.median(),
        "left_share": (sides.chosen.str[0] == sides.shown.str[0]).groupby(sides.id).mean(),
    }
    for name, found in counts.items():
        people[name] = (
            found.reindex(people.index)
            .fillna(0)
            .astype(float if name == "repeats_by_chance" else int)
        )
    for name, found in shares.items():
        shown = found.reindex(people.index).astype(object)
        people[name] = shown.where(shown.notna(), None)
    return [_judged(SimpleNamespace(**row)) for row in people.to_dict("records")]


def _catch(table: pd.DataFrame) -> pd.Series:
    """Whether each answer to a question with a right answer was wrong, by person."""
    asked = table[table.expected.notna()]
    wrong = [
        right not in (chosen[:1] if task == "rank" else chosen)
        for right, chosen, task in zip(asked.expected, asked.chosen, asked.task, strict=True)
    ]
    return pd.Series(wrong, index=asked.id, dtype=bool)


def _repeats(table: pd.DataFrame) -> dict[str, pd.Series]:
    """How much of what was chosen on repeated screens was chosen before."""
    first = table[table.purpose != "repeat"].set_index(["id", "question"]).chosen
    again = table[table.purpose == "repeat"]
    again = again.join(
        first[~first.index.duplicated(keep="last")].rename("before"), on=["id", "repeats"]
    )
    again = again[again.before.notna()]
    both = [len({*a} & {*b}) for a, b in zip(again.chosen, again.before, strict=True)]
    size, shown = again.chosen.map(len), again.shown.map(len)
    found = {
        "agreed": pd.Series(both, again.index, int),
        "total": size,
        "by_chance": size**2 / shown,
    }
    return {f"repeats_{k}": column.groupby(again.id).sum() for k, column in found.items()}


def _judged(person: SimpleNamespace) -> SimpleNamespace:
    person.agreement = person.agreement_interval = None
    if person.repeats_total:
        person.agreement = person.repeats_agreed / person.repeats_total
        person.agreement_interval = share_interval(person.agreement, person.repeats_total)
    person.warnings = [f.name for f in _FLAGS if f.judges(person) and f.fires(person)]
    return person


def overview(
    db: sqlite3.Connection, board: dict[str, Any], now: float, people: list[SimpleNamespace]
) -> dict[str, Any]:
    """The study in numbers, as the dashboard and ``nearer study status`` show it.

    `board` is the board's `summary`.
    """
    counted, quota = board.pop("answers"), board["quota"]
    kinds = dict(
        db.execute(
            "SELECT q.purpose, count(*) FROM standing a JOIN posed q ON q.id = a.question"
            " GROUP BY q.purpose"
        ).fetchall()
    )
    stored = sum(kinds.values())
    recent = "SELECT count(*) FROM standing WHERE received > ?"
    per_hour = db.execute(recent, (now - 3600,)).fetchone()[0]
    left = max(quota - counted, 0) if quota else None
    hours = (
        left * stored / (per_hour * counted) if left is not None and per_hour * counted else None
    )
    return {
        **{key: value for key, value in board.items() if key != "active"},
        "answers": {"counted": counted, "all": stored, **kinds},
        "answers_per_hour": per_hour,
        "remaining": {"answers": left, "hours": None if hours is None else round(hours, 2)},
        "people": {
            "joined": len(people),
            "now": board["active"],
            "finished": sum(p.finished for p in people),
            "excluded": sum(p.excluded and not p.withdrawn for p in people),
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
