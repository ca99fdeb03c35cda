"""Records of JSON, and the forms of screens that people keep in them.

A record is an object of a JSON list, or a line of JSON; lists in lists (JATOS keeps one list a
person, on a line), columns (``{"head": [...], …}``) and one list inside an object are unfolded.
Records of plain values are a table, and read as one. The others are screens, recognised by fields
that can mean one thing only; `FORMS` says how each is made plain: ``query, shown, chosen``.

================================  ==================================================================
fields                            what they say
================================  ==================================================================
``query, shown, chosen``          lists of objects; ``ranked`` where the order of the chosen counts
``stimulus, choices, response``   jsPsych: which of the choices is most like the stimulus, by its
                                  place from 0 (a button) or by itself
``interactions``                  psiz: ``content:query``, ``content:reference_k``, and the ranked
                                  ``behavior:rank_k``; a step that is called *choose* has no order
``answers, agreement``            votes: (head, a, b), and how many found a and b nearer
================================  ==================================================================

psiz calls a stimulus by five letters of its set and seven digits of base 36, the number of it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearer.errors import InvalidInput
from nearer.triplets.forms import decided, named
from nearer.triplets.objects import EMPTY, Fault
from nearer.triplets.table import TextTable

__all__ = ["FORMS", "Records", "Screen", "form_of", "parse_records"]

Record = dict[str, Any]
_ASSET = re.compile(r"([0-9A-Z]{5})([0-9A-Z]{7})")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # in JSON; the text of a file has none by itself


@dataclass(frozen=True)
class Screen:
    """What one record says: `chosen` is None where nobody could decide."""

    query: Any
    shown: list[Any]
    chosen: list[Any] | None
    ranked: bool = False
    times: int = 1  # how many people said so


@dataclass(frozen=True)
class Records:
    """Records with their number in the file, or the line that they are on."""

    path: str
    found: list[Record]
    lines: list[int]
    unit: str
    names: tuple[str, ...] | None = None

    def table(self) -> TextTable:
        """Records of plain values as a table with a header."""
        header = list(dict.fromkeys(field for record in self.found for field in record))
        rows = [header, *([_text(r.get(field)) for field in header] for r in self.found)]
        return TextTable(self.path, rows, [0, *self.lines], unit=self.unit)

    @classmethod
    def of_table(cls, table: TextTable) -> Records:
        """The rows of a table with a header as records; fields may hold lists as JSON."""
        header = [name.strip() for name in table.rows[0]]
        found = [dict(zip(header, map(str.strip, row), strict=True)) for row in table.rows[1:]]
        return cls(table.path, found, table.lines[1:], table.unit)


def parse_records(path: str, text: str) -> Records:
    """Records of a text that is JSON, or JSON line by line."""
    try:
        return _parsed(path, text)
    except RecursionError:
        raise InvalidInput(
            f"{path}: is no JSON that can be read, its brackets are nested too deeply; mend it, or "
            "get the file again"
        ) from None


def _parsed(path: str, text: str) -> Records:
    try:
        whole, unit = [(1, json.loads(text))], "record"
    except json.JSONDecodeError as error:
        whole, unit = list(_lines(path, text, error)), "line"
    except ValueError:
        raise _too_long(path, text) from None
    named = [v.get("stimuli") for _, v in whole if isinstance(v, dict)]
    names = tuple(map(str, named[0])) if named and isinstance(named[0], list) else None
    found = [(line, record) for line, value in whole for record in _unfolded(value)]
    if not all(isinstance(record, dict) for _, record in found):
        strange = next(record for _, record in found if not isinstance(record, dict))
        raise InvalidInput(
            f"{path}: holds {json.dumps(strange)[:40]} where records are needed, JSON objects with "
            f"named fields: {FIELDS}; or write head,winner,loser as a table, .csv"
        )
    if not found:
        raise InvalidInput(f"{path}: holds no records; it needs at least one answer")
    lines = [line for line, _ in found] if unit == "line" else list(range(1, len(found) + 1))
    records = Records(path, [r for _, r in found], lines, unit, names)
    if _SURROGATE.search(text):
        _refuse_halves(records)
    return records


def _lines(path: str, text: str, error: json.JSONDecodeError) -> Iterator[tuple[int, Any]]:
    whole = True  # until a line is JSON by itself
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
                whole = False
            except json.JSONDecodeError as here:
                at, what = (error.lineno, error.msg) if whole else (number, here.msg)
                raise InvalidInput(
                    f"{path}, line {at}: is no JSON ({what}); mend it, or get the file again"
                ) from None
            except ValueError:
                raise _too_long(path, text) from None


def _too_long(path: str, text: str) -> InvalidInput:
    """Python makes no number of more digits than it says."""
    most = sys.get_int_max_str_digits()
    long = re.search(rf"[0-9]{{{most + 1},}}", text)
    at, digits = (long.start(), len(long[0])) if long else (0, most + 1)
    return InvalidInput(
        f"{path}, line {text.count(chr(10), 0, at) + 1}: a number of {digits:,} digits; at most "
        f"{most:,} can be read: mend it, or write it in quotes"
    )


def _refuse_halves(records: Records) -> None:
    """Half of a character that JSON writes as two is no text: nothing could be written with it."""
    for line, record in zip([*records.lines, 0], [*records.found, records.names], strict=True):
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])[1:-1]
            where = f"{records.unit} {line}" if line else "stimuli"
            raise InvalidInput(
                f"{records.path}, {where}: {half} is half of a character and no text; mend it, or "
                "get the file again"
            ) from None


def _unfolded(value: Any) -> Iterator[Any]:
    """The records in whatever they are wrapped in."""
    if isinstance(value, list):
        for part in value:
            wrapped = isinstance(part, list) or (isinstance(part, dict) and "sequence" in part)
            yield from _unfolded(part) if wrapped else [part]
    elif not isinstance(value, dict) or any(value.keys() >= set(form) for form in FORMS):
        yield from _turned(value) if isinstance(value, dict) and _are_columns(value) else [value]
    elif isinstance(value.get("sequence"), list) and _all_dicts(value["sequence"]):  # psiz
        for step in value["sequence"]:
            yield {"person": value.get("anonymous_id"), **step}
    elif _are_columns(value):
        yield from _turned(value)
    else:
        inside = [v for v in value.values() if isinstance(v, list) and v and _all_dicts(v)]
        yield from _unfolded(inside[0]) if len(inside) == 1 else [value]


def _turned(columns: Record) -> Iterator[Record]:
    rows = [list(v.values()) if isinstance(v, dict) else v for v in columns.values()]
    return (dict(zip(columns, row, strict=True)) for row in zip(*rows, strict=True))


def _are_columns(value: Record) -> bool:
    """Whether a JSON object holds columns of equal length, rather than one record."""
    kinds = {type(v) for v in value.values()}
    if len(value) < 2 or kinds not in ({list}, {dict}) or len({*map(len, value.values())}) != 1:
        return False
    return kinds == {dict} or not any(_all_dicts(v) and v for v in value.values())


def _all_dicts(value: Sequence[Any]) -> bool:
    return all(isinstance(part, dict) for part in value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return value if isinstance(value, str) else json.dumps(value)


# --- forms of screens: each takes all records of the file and makes them plain -------------------


def _grids(records: Sequence[Record], first: int | None, fault: Fault) -> list[Screen]:
    return [
        Screen(r["query"], _list(r["shown"]), _chosen(r["chosen"]), _true(r.get("ranked")))
        for r in records
    ]


def _jspsych(records: Sequence[Record], first: int | None, fault: Fault) -> list[Screen]:
    shown = [_list(r["choices"]) for r in records]
    words = [[str(x) for x in row] for row in shown]
    both = [[_text(r.get(f)).strip() for f in ("response", "button_pressed")] for r in records]
    said = decided((second if word in EMPTY else word for word, second in both), words)
    told = [s for s in zip(said, words, strict=True) if s[0] not in EMPTY]
    if first is None and not all(word in row for word, row in told):
        first = 0  # a button, which jsPsych counts from 0
    chosen = named(words, said, first, fault)
    return [
        Screen(r["stimulus"], row, None if not pick else [row[names.index(pick)]])
        for r, row, names, pick in zip(records, shown, words, chosen, strict=True)
    ]


def _psiz(records: Sequence[Record], first: int | None, fault: Fault) -> list[Screen]:
    screens = []
    for record in records:
        parts = {i.get("kind"): i.get("detail") for i in record["interactions"]}
        shown, chosen = _ordered(parts, "content:reference_"), _ordered(parts, "behavior:rank_")
        ranked = "choose" not in str(record.get("kind"))
        screens.append(Screen(parts.get("content:query"), shown, chosen or None, ranked))
    assets = [_ASSET.fullmatch(str(x)) for s in screens for x in [s.query, *s.shown]]
    if not all(assets) or len({a[1] for a in assets if a}) != 1:
        return screens

    def number(asset: Any) -> int:
        return int(str(asset)[5:], 36)

    return [
        Screen(
            number(s.query),
            [number(x) for x in s.shown],
            s.chosen and [number(x) for x in s.chosen],
            s.ranked,
        )
        for s in screens
    ]


def _votes(records: Sequence[Record], first: int | None, fault: Fault) -> list[Screen]:
    screens = []
    for row, record in enumerate(records):
        (head, *two), votes = record["answers"], record["agreement"]
        if len(two) != 2 or len(votes) != 2 or not all(_is_count(v) for v in votes):
            raise fault(row, f"answers {[head, *two]} with agreement {votes}: must be (head, a, b) "
                             "and two counts of votes, for a and for b")  # fmt: skip
        screens += [Screen(head, two, [x], times=v) for x, v in zip(two, votes, strict=True) if v]
    return screens


def _ordered(parts: Mapping[str, Any], begins: str) -> list[Any]:
    """What stands at ``begins0``, ``begins1`` and so on."""
    found = {int(k[len(begins) :]): v for k, v in parts.items() if str(k).startswith(begins)}
    return [found[k] for k in sorted(found)]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [part.strip() for part in value.strip("[]").split(",")]
        json.dumps(value, ensure_ascii=False).encode()  # half of a character is a ValueError
    return list(value) if isinstance(value, list | tuple) else [value]


def _chosen(value: Any) -> list[Any] | None:
    found = _list(value) if isinstance(value, list) or str(value)[:1] == "[" else [value]
    return [x for x in found if x is not None and str(x) not in EMPTY] or None


def _true(value: Any) -> bool:
    return value is True or str(value).lower() in ("true", "1", "yes")


Plain = Callable[[Sequence[Record], "int | None", Fault], list[Screen]]
FORMS: dict[tuple[str, ...], Plain] = {
    ("query", "shown", "chosen"): _grids,
    ("stimulus", "choices", "response"): _jspsych,
    ("stimulus", "choices", "button_pressed"): _jspsych,
    ("interactions",): _psiz,
    ("answers", "agreement"): _votes,
}
FIELDS = "; or ".join(", ".join(fields) for fields in FORMS)


def form_of(records: Iterable[Iterable[str]]) -> tuple[str, ...] | None:
    """The fields by which screens are recognised; None where the records are a table."""
    have = [set(record) for record in records]
    return next((form for form in FORMS if any(h.issuperset(form) for h in have)), None)
