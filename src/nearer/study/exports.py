"""Exports of a study: tables for other tools, and figures of the study and its people.

People appear under their pseudonyms. Only ``completions``, which holds no answers, and tables that
are exported with ``identities`` have their names.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from nearer.files import positions_text
from nearer.questions import share_interval
from nearer.study.actions import FEWEST_CATCH, FEWEST_REPEATS, is_false
from nearer.study.board import COUNTED, decode
from nearer.study.store import latest_map
from nearer.study.worker import as_trials

_HERE = files("nearer.study")
#: beginnings by which a spreadsheet reads a text as a formula, after any separator
_RUN = re.compile('(^|[;|])([\\s"]*)(?=[=+@＝＋＠－-])')


def stored_answers(db: sqlite3.Connection) -> pd.DataFrame:
    """Every stored answer with its question, screen and person, also those that are void."""
    table = pd.read_sql_query((_HERE / "answers.sql").read_text(), db)
    for name in ("posed", "shown", "chosen"):
        lists = [decode(text) if text else () for text in table[name].fillna("").tolist()]
        table[name] = pd.Series(lists, dtype=object)
    for name in ("head", "repeats", "expected"):
        table[name] = table[name].astype("Int64")
    for name in ("response_ms", "elapsed_ms"):  # None where an answer has none
        table[name] = table[name].astype(float)
    table["false_time"] = is_false(table.response_ms, table.issued, table.received)
    return table


def export_csv(db: sqlite3.Connection, name: str, *, identities: bool = False) -> str:
    """A table of answers as CSV; `name` is triplets, salmon, triplettools or answers."""
    table = stored_answers(db)
    names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    two = table.task == "two"
    table["who"] = table.person
    if identities:
        table["who"] = table.external.where(table.external != "", table.person)
    table["kind"] = table.purpose.where(~table.purpose.isin(COUNTED), "main")
    void = table.excluded.astype(bool) | table.taken_back.astype(bool)
    stands = (table.chosen.map(len) > 0) & ~void
    table["left"], table["right"] = (table.shown.str[k].astype("Int64") for k in (0, 1))
    table["winner"] = table.chosen.str[0].astype("Int64").where(two)
    table["loser"] = (table.left + table.right - table.winner).where(two)
    table["when"] = table.received.map(_time)
    for spot in ("head", "left", "right", "winner", "loser"):
        table[f"{spot}_name"] = [None if pd.isna(k) else names[k] for k in table[spot]]
    fits = stands & table.kind.isin(["main", "holdout"])
    match name:
        case "triplets":
            return _triplets(table[fits])
        case "salmon":
            return _salmon(table[fits & two])
        case "triplettools":
            return _triplettools(table[stands & two])
    return _everything(table, identities)


def _triplets(table: pd.DataFrame) -> str:
    columns = ["task", "head", "posed", "chosen", "choose", "answer"]
    answers = as_trials(list(table[columns].itertuples(index=False, name=None)))
    rows, trial = answers.triplets()
    triplets = pd.DataFrame(rows, columns=["head", "winner", "loser"])
    source = table.set_index("answer").loc[np.asarray(answers.people)[trial]]
    return _csv(triplets.assign(person=source.person.array, purpose=source.kind.array))


def _salmon(table: pd.DataFrame) -> str:
    spots = ["head", "winner", "loser", "left", "right"]
    shown = {f"{k}_{what}": table[f"{k}_name"] for what in ("html", "filename") for k in spots}
    start = table.received.min()
    sampler = table.method.where(table.method != "", table.purpose)
    values = {
        "puid": table.who,
        "response_time": table.response_ms / 1000,
        "network_latency": -1,
        "time_received": table.received,
        "sampler": sampler.where(table.kind == "main", "Validation"),
        "score": 0,
        **shown,
        "time_received_since_start": table.received - start,
        "datetime_received": table.when,
        "start_time": start,
        "puid_num_responses": table.groupby("person").cumcount() + 1,
        "num_responses": range(1, len(table) + 1),
    }
    return _csv(table[spots].assign(**values))


def _triplettools(table: pd.DataFrame) -> str:
    algorithm = {"main": "random", "holdout": "validation", "repeat": "check", "catch": "check"}
    values = {
        "worker_id": table.who,
        "rt": table.response_ms.round().astype("Int64"),
        "Center": table.head_name,
        "Left": table.left_name,
        "Right": table.right_name,
        "Answer": table.winner_name,
        "sampleAlg": table.kind.map(algorithm),
        "sampleSet": (table.kind == "main").map({True: "train", False: "test"}),
    }
    return _csv(pd.DataFrame(values).join(table[["head", "winner", "loser"]]))


def _everything(table: pd.DataFrame, identities: bool) -> str:
    sides = (table.winner == table.left).map({True: "left", False: "right"})
    late = table.received > table.expires
    columns = [
        "answer", "person", "purpose", "method", "task", "head", "left", "right", "shown", "choice",
        "chosen", "winner", "loser", "response_ms", "elapsed_ms", "received", "late", "false_time",
        "taken_back", "excluded", "head_name", "left_name", "right_name", "panel", "external",
    ]  # fmt: skip
    made = table.assign(
        choice=sides.where(table.winner.notna(), table.choice),
        shown=[" ".join(map(str, row)) for row in table.shown],
        chosen=[" ".join(map(str, row)) for row in table.chosen],
        elapsed_ms=table.elapsed_ms.round(1),
        received=table.when,
        late=late.astype(int),
        false_time=table.false_time.astype(int),
    )
    return _csv(made[columns if identities else columns[:-2]])


def completions_csv(db: sqlite3.Connection, code: Callable[[int], str]) -> str:
    """The people who finished, for payment: outside names and codes, no answers."""
    rows = [
        (p.panel, p.external or p.pseudonym, int(p.finished), p.answered,
         code(p.id) if p.finished else "")
        for p in reversed(people_report(db)) if not p.withdrawn
    ]  # fmt: skip
    columns = ["panel", "external", "finished", "answers", "code"]
    return _csv(pd.DataFrame(rows, columns=columns))


def replies_csv(db: sqlite3.Connection, *, identities: bool = False) -> str:
    """What people wrote on pages of a questionnaire, one field a line."""
    rows = db.execute(
        """SELECT p.pseudonym, i.external, r.page, r.at, r.reply
           FROM replies r JOIN people p ON p.id = r.person
           LEFT JOIN identities i ON i.person = r.person ORDER BY r.id"""
    )
    lines: list[tuple[Any, ...]] = []
    for pseudonym, external, page, at, text in rows:
        who, filled = (identities and external) or pseudonym, json.loads(text)
        ends = (int(filled["screened_out"]), _time(at))
        lines += [(who, page, name, reply, *ends) for name, reply in filled["replies"].items()]
    columns = ["person", "page", "name", "reply", "screened_out", "received"]
    return _csv(pd.DataFrame(lines, columns=columns, dtype=object))


def positions_csv(names: Sequence[str], positions: Iterable[Iterable[float]]) -> str:
    """Positions, one object a line, as all of the library writes them."""
    return positions_text(list(positions), [_not_a_formula(name) for name in names])


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _csv(table: pd.DataFrame) -> str:
    texts = table.select_dtypes(exclude="number")
    tamed = table.assign(**{name: texts[name].map(_not_a_formula) for name in texts})
    return str(tamed.to_csv(index=False, lineterminator="\n"))


def _not_a_formula(value: Any) -> Any:
    """A text that no spreadsheet runs as a formula, on one line."""
    if not isinstance(value, str):
        return value
    flat = "".join(c if c.isprintable() else " " for c in value)
    tamed = _RUN.sub(r"\1'\2", flat)
    return f"'{tamed}" if value[:1] in ("\t", "\r") and tamed[:1] != "'" else tamed


Judge = Callable[[Any], bool]
#: flags: whether there are enough answers to judge a person, and whether they are suspicious; no
#: person is excluded by a number alone
_FLAGS: dict[str, tuple[Judge, Judge]] = {
    "fails catch trials": (
        lambda r: r.catch_total >= FEWEST_CATCH,
        lambda r: r.catch_failed * 3 > r.catch_total,
    ),
    "repeats disagree": (
        lambda r: r.repeats_total >= FEWEST_REPEATS,
        # less than a fifth of the way from chance to always; with two choices, below 60 %
        lambda r: 5 * r.repeats_agreed < r.repeats_total + 4 * r.repeats_by_chance,
    ),
    "very fast": (
        lambda r: r.answered >= 10,
        lambda r: any(ms is not None and ms < 300 for ms in (r.median_ms, r.median_elapsed_ms)),
    ),
    "times are not true": (lambda r: r.answered >= 3, lambda r: r.false_times * 10 > r.answered),
    "keeps to one side": (
        lambda r: r.answered >= 20 and r.left_share is not None,
        lambda r: not 0.2 <= r.left_share <= 0.8,
    ),
}


def people_report(db: sqlite3.Connection) -> list[SimpleNamespace]:
    """All who joined, newest first, with figures of their answers; None if there are none."""
    people = pd.read_sql_query((_HERE / "people.sql").read_text(), db).set_index("id", drop=False)
    people = people.astype({"finished": bool, "excluded": bool, "withdrawn": bool})
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
    whole = {name: int for name in counts if name != "repeats_by_chance"}
    counted = pd.DataFrame(counts, people.index).astype(float).fillna(0).astype(whole)
    shown = pd.DataFrame(shares, people.index).astype(object)
    people = people.join(counted).join(shown.where(shown.notna(), None))
    reports = [SimpleNamespace(**row) for row in people.to_dict("records")]
    for r in reports:
        total, share = r.repeats_total, r.repeats_agreed / max(r.repeats_total, 1)
        r.agreement = share if total else None
        r.agreement_interval = share_interval(share, total) if total else None
        r.warnings = [name for name, (judges, fires) in _FLAGS.items() if judges(r) and fires(r)]
    return reports


def _catch(table: pd.DataFrame) -> pd.Series:
    """Whether each answer to a question with a right answer was wrong, by person."""
    asked = table[table.expected.notna()]
    wrong = [
        right not in (chosen[:1] if task == "rank" else chosen)
        for right, chosen, task in zip(asked.expected, asked.chosen, asked.task, strict=True)
    ]
    return pd.Series(wrong, index=asked.id, dtype=bool)


def _repeats(table: pd.DataFrame) -> dict[str, pd.Series]:
    """The share of choices on repeated screens that were chosen before."""
    first = table[table.purpose != "repeat"].set_index(["id", "question"]).chosen
    first = first[~first.index.duplicated(keep="last")].rename("before")
    again = table[table.purpose == "repeat"].join(first, on=["id", "repeats"])
    again = again[again.before.notna()]
    both = [len({*a} & {*b}) for a, b in zip(again.chosen, again.before, strict=True)]
    size, shown = again.chosen.map(len), again.shown.map(len)
    agreed, chance = pd.Series(both, again.index, int), size**2 / shown
    columns = {"agreed": agreed, "total": size, "by_chance": chance}
    return {f"repeats_{k}": column.groupby(again.id).sum() for k, column in columns.items()}


def overview(
    db: sqlite3.Connection, board: dict[str, Any], now: float, people: list[SimpleNamespace]
) -> dict[str, Any]:
    """The study in numbers, by the `summary` of its board and its people."""
    counted, active, quota = board.pop("answers"), board.pop("active"), board["quota"]
    sql = "SELECT purpose, count(*) FROM standing a JOIN questions q ON q.id = question GROUP BY 1"
    kinds = dict(db.execute(sql).fetchall())
    stored = sum(kinds.values())
    recent = "SELECT count(*) FROM standing WHERE received > ?"
    (per_hour,) = db.execute(recent, (now - 3600,)).fetchone()
    left = max(quota - counted, 0) if quota else None
    rate = per_hour * counted / max(stored, 1)
    hours = round(left / rate, 2) if left is not None and rate else None
    flagged = Counter(name for p in people for name in p.warnings)
    return {
        **board,
        "answers": {"counted": counted, "all": stored, **kinds},
        "answers_per_hour": per_hour,
        "remaining": {"answers": left, "hours": hours},
        "people": {
            "joined": len(people),
            "now": active,
            "finished": sum(p.finished for p in people),
            "excluded": sum(p.excluded and not p.withdrawn for p in people),
            "withdrawn": sum(p.withdrawn for p in people),
        },
        "flags": {
            name: {"judged": sum(map(judges, people)), "flagged": flagged[name]}
            for name, (judges, _) in _FLAGS.items()
        },
        "map": latest_map(db, positions=False),
    }
