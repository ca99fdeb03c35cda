"""Screens, made plain by `nearer.triplets.records`, put together as trials and their triplets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nearer.errors import BadRow, InvalidInput
from nearer.trials import Trials
from nearer.triplets.assembling import from_trials, times
from nearer.triplets.collection import Triplets
from nearer.triplets.columns import Reading, by_name
from nearer.triplets.objects import EMPTY, Coding, number_objects
from nearer.triplets.records import FORMS, Record, Records, Screen
from nearer.triplets.table import TextTable

__all__ = ["read_screens"]

_KINDS: dict[str, Callable[..., Trials]] = {
    "odd-one-out": Trials.odd_one_out,
    "most-central": Trials.most_central,
}


def read_screens(records: Records, form: tuple[str, ...], told: Reading) -> Triplets:
    """Trials, and the triplets that they stand for, from records of one form."""
    if told.columns is not None:
        raise InvalidInput(
            f"{records.path}: holds screens, with the fields {', '.join(form)}; columns= "
            "(--columns) is for tables, leave it out"
        )
    if records.names is not None and told.labels is None:
        told = replace(told, objects="numbers", labels=records.names)
    pages = [row for row, record in enumerate(records.found) if _is_page(record, form)]
    left = sorted(set(range(len(records.found))) - set(pages))
    if not left:
        raise InvalidInput(f"{records.path}: none of its {len(pages)} records is an answer")
    bad: list[int] = []
    while True:
        table = TextTable(records.path, [[]] * len(left), [records.lines[row] for row in left],
                          unit=records.unit)  # fmt: skip
        try:
            trials, known = _trials([records.found[row] for row in left], form, told, table)
            break
        except BadRow as fault:
            if not told.drop_bad_rows or len(fault.rows) == len(left):
                raise
            bad += [left[row] for row in fault.rows]
            left = sorted(set(left) - set(bad))
    known["rows"] += len(bad)
    return from_trials(
        trials,
        bad=[records.lines[row] for row in sorted(bad)],
        others=[records.lines[row] for row in sorted(pages)],
        unit=records.unit,
        **known,
    )


def _is_page(record: Record, form: tuple[str, ...]) -> bool:
    """Whether a record is no screen but another page that was shown, or another task."""
    if not record.keys() >= set(form):
        return True
    if form[0] == "stimulus":  # a table has an empty field where there were no choices
        return str(record["choices"] or "") in EMPTY
    steps = record.get("interactions")
    if form[0] != "interactions" or not isinstance(steps, list):
        return False
    return not any(isinstance(s, dict) and s.get("kind") == "content:query" for s in steps)


def _trials(
    records: list[Record], form: tuple[str, ...], told: Reading, table: TextTable
) -> tuple[Trials, dict[str, Any]]:
    """The trials, and what the report says of them."""
    screens, row = _plain(records, form, told.first, table)
    kind = _kind(screens, form, told.kind, table)
    _refuse_unsound(screens, row, kind, table)
    twice = [i for i, s in enumerate(screens) if _repeats(s, kind)]
    some = [i for i in range(len(screens)) if i not in set(twice)]
    if not some:
        raise InvalidInput(f"{table.path}: every screen shows an object twice; there is no answer")
    known: dict[str, Any] = {
        "rows": len(screens),
        "degenerate": [table.lines[row[i]] for i in twice],
        "ties": [table.lines[row[i]] for i in some if screens[i].chosen is None],
    }
    screens, row = [screens[i] for i in some], [row[i] for i in some]
    number, names = _numbered(screens, row, kind, told, table)
    also: dict[str, Any] = {"names": names, "people": None, "seconds": None}
    header = list(dict.fromkeys(field for record in records for field in record))
    parts = {part: header[i] for part, i in by_name(header).items()}
    if "person" in parts:
        also["people"] = _people([records[i].get(parts["person"]) for i in row])
    for part, unit in (("seconds", 1.0), ("ms", 1e-3)):
        if part in parts and also["seconds"] is None:
            values = [records[i].get(parts[part]) for i in row]
            also["seconds"], untimed = times(values, unit)
            known["untimed"] = [table.lines[row[i]] for i in untimed]
    shown = [[number[str(x)] for x in s.shown] for s in screens]
    chosen = [None if s.chosen is None else [number[str(x)] for x in s.chosen] for s in screens]
    if kind in _KINDS:
        one = [None if c is None else c[0] for c in chosen]
        return _KINDS[kind](shown, one, **also), known
    query = [number[str(s.query)] for s in screens]
    ranked = any(s.ranked and s.chosen is not None and len(s.chosen) > 1 for s in screens)
    return Trials.near(query, shown, chosen, ranked=ranked, **also), known


def _plain(
    records: list[Record], form: tuple[str, ...], first: int | None, table: TextTable
) -> tuple[list[Screen], list[int]]:
    """Screens, one for each vote, and the record that each comes from."""
    try:
        made = FORMS[form](records, first, table.error)
    except BadRow:
        raise
    except (TypeError, ValueError, KeyError, AttributeError):
        row = next(r for r, record in enumerate(records) if not _can_be_read(record, form, table))
        what = f"{str(records[row])[:80]} cannot be read as {', '.join(form)}; mend it"
        raise table.error(row, what) from None
    where = list(range(len(made)))
    if form[0] == "answers":  # none, one or two screens a record
        where = [r for r, one in enumerate(records) for v in one["agreement"] if v]
    copies = [(s, r) for s, r in zip(made, where, strict=True) for _ in range(s.times)]
    if not copies:
        raise InvalidInput(f"{table.path}: holds no answer; at least one is needed")
    return [s for s, _ in copies], [r for _, r in copies]


def _can_be_read(record: Record, form: tuple[str, ...], table: TextTable) -> bool:
    try:
        FORMS[form]([record], 0, table.error)
    except BadRow:
        return True
    except (TypeError, ValueError, KeyError, AttributeError):
        return False
    return True


def _kind(screens: list[Screen], form: tuple[str, ...], kind: str, table: TextTable) -> str:
    """What was asked: which is nearest to the query, or which is odd or central."""
    if kind in _KINDS and form[0] in ("stimulus", "query"):
        return kind
    asked = {str(s.query) for s in screens}
    objects = {str(x) for s in screens for x in s.shown}
    several = len(screens) > 1 and len(asked) == 1 and not asked & objects
    if form[0] == "stimulus" and kind == "auto" and several:
        raise table.unclear(
            0,
            f"all {len(screens)} records have the stimulus {min(asked)[:40]!r}, which may be an "
            "object or the words of the question; pass kind='answers' (--kind answers) where "
            "the response is what is most like it, kind='odd-one-out' where it is the odd one",
        )
    return "near"


def _refuse_unsound(screens: list[Screen], row: list[int], kind: str, table: TextTable) -> None:
    """Screens that cannot be read: something is missing, or chosen that was not shown."""
    orders = {s.ranked for s in screens if s.chosen is not None and len(s.chosen) > 1}
    if len(orders) > 1:
        raise InvalidInput(
            f"{table.path}: some screens are ranked and some are not; write them to two files"
        )
    faults = {row[i]: what for i, s in enumerate(screens) if (what := _fault(s, kind))}
    if faults:
        at = min(faults)
        raise table.error(at, faults[at], sorted(faults))


def _fault(screen: Screen, kind: str) -> str:
    """What is wrong with a screen; nothing where it is sound."""
    shown = {str(x) for x in screen.shown}
    asked = [*([] if kind in _KINDS else [screen.query]), *screen.shown]
    chosen = screen.chosen or []
    if any(x is None or str(x) in EMPTY for x in asked):
        return (
            f"an object is missing of {asked}; fill it in, or leave such rows out with "
            "drop_bad_rows=True (--drop-bad-rows)"
        )
    if not shown.issuperset(map(str, chosen)):
        strange = next(x for x in chosen if str(x) not in shown)
        return f"{strange!r} was chosen but not shown; shown were {screen.shown}: mend it"
    if len(shown) < (3 if kind in _KINDS else 2) or len(chosen) >= len(shown):
        return (
            f"{len(chosen)} of {len(shown)} chosen: some and not all must be chosen, of two or "
            "more, and one of three or more where it is the odd or the central one"
        )
    return ""


def _repeats(screen: Screen, kind: str) -> bool:
    shown = [str(x) for x in screen.shown]
    return len(set(shown)) < len(shown) or (kind == "near" and str(screen.query) in shown)


def _numbered(
    screens: list[Screen], row: list[int], kind: str, told: Reading, table: TextTable
) -> tuple[dict[str, int], tuple[str, ...] | None]:
    """Numbers of objects by what they are called; no names where they are numbers."""
    objects: list[str] = []
    where: list[int] = []
    for screen, record in zip(screens, row, strict=True):
        asked = [] if kind in _KINDS else [screen.query]
        values = [str(x) for x in [*asked, *screen.shown]]
        objects += values
        where += [record] * len(values)
    coding = Coding()
    coding.encode(objects)
    numbering = number_objects(
        coding, told.objects, told.labels, lambda i, what: table.error(where[i], what)
    )
    plain = told.labels is None and numbering.are_numbers
    numbers = dict(zip(coding.codes, numbering.numbers.tolist(), strict=True))
    return numbers, None if plain else numbering.labels


def _people(values: Sequence[Any]) -> Any:
    """Who answered; names, "" where nobody is named, unless all are numbers."""
    if all(isinstance(v, int) for v in values):
        return np.array(values)
    named = ["" if v is None or str(v) in EMPTY else str(v) for v in values]
    return np.array(named) if any(named) else None
