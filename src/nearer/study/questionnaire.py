"""Questions about the person: pages before and after the comparisons, written in YAML.

A page has a title, a text (Markdown) and fields. A field is a *choice* among options, a *number*,
a short *text*, a *long* one, or a *scale* of points. Each must be answered unless it says
``required: false``. A choice, number or scale can screen out: whoever gives such an answer is
thanked, gets the code for that, and compares nothing.

Restraint: pages follow each other and never branch. What needs more is done better by a survey
tool, to which a link is enough.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearer.errors import InvalidInput
from nearer.study.rows import Refusal
from nearer.study.words import to_html

__all__ = [
    "Field",
    "QuestionnairePage",
    "find_page",
    "keep_replies",
    "next_page",
    "pages_done",
    "read_pages",
]

KINDS = ("choice", "number", "text", "long", "scale")
#: characters a text may have where the field says nothing: a line, and two written pages
_LONGEST = {"text": 200, "long": 5_000}
_MAX_POINTS = 11
_MAX_OPTIONS = 200


@dataclass(frozen=True)
class Field:
    """One question about the person."""

    name: str
    kind: str
    label: str
    required: bool = True
    #: a choice: what can be chosen
    options: tuple[str, ...] = ()
    #: a number or scale: the least and the most; a text: the most characters
    least: float | None = None
    most: float | None = None
    #: a scale: what its two ends mean
    ends: tuple[str, ...] = ()
    #: a choice: options that screen out
    out: tuple[str, ...] = ()
    #: a number or scale: what lies below or above screens out
    out_below: float | None = None
    out_above: float | None = None

    def check(self, value: Any) -> str | float | int:
        """A reply as it is stored; one that cannot be is refused."""
        if self.kind in ("text", "long"):
            good = isinstance(value, str) and len(value) <= (self.most or 0)
            rule = f"must be a text of at most {self.most:g} characters"
        elif self.kind == "choice":
            good, rule = value in self.options, "must be one of " + ", ".join(self.options)
        else:
            good = _is_number(value) and (self.kind == "number" or value == int(value))
            good = good and self._between(value)
            rule = f"must be a number from {_said(self.least)} to {_said(self.most)}"
        if not good:
            raise InvalidInput(f"{self.name}={str(value)[:60]!r}: {rule}")
        return value  # type: ignore[no-any-return]

    def screens_out(self, value: Any) -> bool:
        """Whether a person who replies this is not asked further."""
        if self.kind == "choice":
            return value in self.out
        if self.kind in ("text", "long"):
            return False
        below = self.out_below is not None and value < self.out_below
        return below or (self.out_above is not None and value > self.out_above)

    def _between(self, value: float) -> bool:
        low = -math.inf if self.least is None else self.least
        return low <= value <= (math.inf if self.most is None else self.most)


@dataclass(frozen=True)
class QuestionnairePage:
    """Fields that are shown together."""

    id: str
    title: str
    text: str
    fields: tuple[Field, ...]

    def shown(self) -> dict[str, Any]:
        """What the participant's page is told; not who is screened out."""
        secret = ("out", "out_below", "out_above")
        told = [
            {key: value for key, value in dataclasses.asdict(f).items() if key not in secret}
            for f in self.fields
        ]
        return {"id": self.id, "title": self.title, "html": to_html(self.text), "fields": told}

    def check(self, replies: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The replies to keep, and whether the person is screened out."""
        known = {f.name: f for f in self.fields}
        for name in replies:
            if name not in known:
                raise InvalidInput(f"reply {name[:60]!r}: this page asks {', '.join(known)}")
        kept: dict[str, Any] = {}
        for name, field in known.items():
            value = replies.get(name)
            if value is None or (isinstance(value, str) and not value.strip()):
                if field.required:
                    raise InvalidInput(f"reply {name!r}: is missing; it must be given")
                continue
            kept[name] = field.check(value)
        return kept, any(known[name].screens_out(value) for name, value in kept.items())


# From YAML -------------------------------------------------------------------------------------


def read_pages(given: Sequence[Any], when: str) -> tuple[QuestionnairePage, ...]:
    """Pages from what a YAML file holds; a fault is named with the page and field it is on.

    Examples
    --------
    >>> ask = [{"name": "age", "kind": "number", "label": "Your age?", "least": 18}]
    >>> read_pages([{"title": "About you", "ask": ask}], "before")[0].fields[0].least
    18
    >>> read_pages([{"title": "About you", "ask": [{"name": "age", "kind": "nmber"}]}], "before")
    Traceback (most recent call last):
    nearer.errors.InvalidInput: before, page 1, age: kind='nmber': must be one of choice, ...
    """
    pages = tuple(_read_page(page, when, k) for k, page in enumerate(given, start=1))
    seen: set[str] = set()
    for field in (f for page in pages for f in page.fields):
        _insist(field.name not in seen, when, "name", field.name, "is taken; names differ")
        seen.add(field.name)
        out = field.out or field.out_below is not None or field.out_above is not None
        late = when == "after" and bool(out)
        _insist(not late, when, "screen_out", field.name, "comes too late; ask that before")
    return pages


def _read_page(given: Any, when: str, number: int) -> QuestionnairePage:
    where = f"{when}, page {number}"
    _insist(isinstance(given, Mapping), where, "page", given, "must have title, text and ask")
    _known(given, ("title", "text", "ask"), where)
    title, text, ask = given.get("title"), given.get("text", ""), given.get("ask", [])
    _insist(isinstance(title, str) and bool(title), where, "title", title, "must be a text")
    _insist(isinstance(text, str), where, "text", text, "must be a text")
    _insist(isinstance(ask, list), where, "ask", ask, "must be a list of questions")
    _insist(bool(text or ask), where, "ask", ask, "must ask something, or `text` say something")
    return QuestionnairePage(
        f"{when}-{number}", title, text, tuple(_read_field(f, where) for f in ask)
    )


def _read_field(given: Any, where: str) -> Field:
    _insist(isinstance(given, Mapping), where, "ask", given, "must have name, kind and label")
    name, kind = given.get("name"), given.get("kind")
    plain = isinstance(name, str) and name.isidentifier() and len(name) <= 60
    _insist(plain, where, "name", name, "must be one word of letters, digits and _")
    where = f"{where}, {name}"
    _insist(kind in KINDS, where, "kind", kind, "must be one of " + ", ".join(KINDS))
    more = {
        "choice": ("options", "screen_out"),
        "number": ("least", "most", "screen_out"),
        "scale": ("least", "most", "ends", "screen_out"),
        "text": ("most",),
        "long": ("most",),
    }[str(kind)]
    _known(given, ("name", "kind", "label", "required", *more), where)
    label, required = given.get("label"), given.get("required", True)
    _insist(isinstance(label, str) and bool(label), where, "label", label, "must be a text")
    _insist(isinstance(required, bool), where, "required", required, "must be true or false")
    values: dict[str, Any] = {"name": name, "kind": kind, "label": label, "required": required}
    return Field(**values, **(_read_choice if kind == "choice" else _read_range)(given, where))


def _read_choice(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    options = _texts(given, "options", where)
    good = 2 <= len(set(options)) == len(options) <= _MAX_OPTIONS
    _insist(good, where, "options", options, f"must be 2 to {_MAX_OPTIONS} different texts")
    out = _texts(given, "screen_out", where)
    _insist(set(out) <= set(options), where, "screen_out", out, "must be among the options")
    return {"options": options, "out": out}


def _read_range(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    kind = str(given["kind"])
    least: Any = given.get("least")
    most: Any = given.get("most", _LONGEST.get(kind))
    if kind == "scale":
        least, most = given.get("least", 1), given.get("most", 7)
    for key, value in (("least", least), ("most", most)):
        _insist(value is None or _is_number(value), where, key, value, "must be a number")
    _insist(
        least is None or most is None or least < most, where, "most", most, f"must be > {least}"
    )
    if kind in _LONGEST:
        _insist(1 <= most <= 20_000, where, "most", most, "must be from 1 to 20000 characters")
    if kind == "scale":
        whole = least % 1 == 0 and most % 1 == 0 and most - least < _MAX_POINTS
        _insist(whole, where, "most", most, f"must make at most {_MAX_POINTS} whole points")
    ends = _texts(given, "ends", where)
    _insist(len(ends) in (0, 2), where, "ends", ends, "must be two texts, for the two ends")
    out = given.get("screen_out", {})
    good = isinstance(out, Mapping) and all(_is_number(v) for v in out.values())
    _insist(good, where, "screen_out", out, "must be like {below: 18, above: 65}")
    _known(out, ("below", "above"), f"{where}, screen_out")
    return {
        "least": least,
        "most": most,
        "ends": ends,
        "out_below": out.get("below"),
        "out_above": out.get("above"),
    }


def _texts(given: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = given.get(key, [])
    _insist(isinstance(found, list), where, key, found, "must be a list of texts")
    for text in found:
        good = isinstance(text, str | int | float) and not isinstance(text, bool)
        rule = "must be a text; YAML reads yes, no, on and off as true and false: put it in quotes"
        _insist(good, where, key, text, rule)
    return tuple(str(text) for text in found)


def _known(given: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in given:
        _insist(key in keys, where, "key", key, "is not known; known are " + ", ".join(keys))


def _insist(good: bool, where: str, name: str, value: object, rule: str) -> None:
    if not good:
        raise InvalidInput(f"{where}: {name}={value!r}: {rule}")


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value)


def _said(limit: float | None) -> str:
    return "any" if limit is None else f"{limit:g}"


# What people replied ---------------------------------------------------------------------------


def pages_done(db: sqlite3.Connection, person: int) -> dict[str, bool]:
    """The pages that a person has filled in, each with whether it screened them out."""
    rows = db.execute("SELECT page, reply FROM replies WHERE person = ? ORDER BY id", (person,))
    return {page: json.loads(reply)["screened_out"] for page, reply in rows}


def keep_replies(
    db: sqlite3.Connection,
    person: int,
    page: str,
    replies: Mapping[str, Any],
    screened_out: bool,
    now: float,
) -> None:
    """Store what a person put on a page, once; all that is written of replies is written here."""
    if page not in pages_done(db, person):
        db.execute(
            "INSERT INTO replies (at, person, page, reply) VALUES (?, ?, ?, ?)",
            (now, person, page, json.dumps({"replies": replies, "screened_out": screened_out})),
        )


def find_page(before: Sequence[Any], after: Sequence[Any], page: str) -> QuestionnairePage:
    """A page of a study by its id."""
    for found in (*read_pages(before, "before"), *read_pages(after, "after")):
        if found.id == page:
            return found
    raise Refusal(404, f"page {page[:60]!r}: this study has none of that name")


def next_page(
    db: sqlite3.Connection,
    person: int,
    stage: str,
    before: Sequence[Any],
    after: Sequence[Any],
) -> tuple[str, QuestionnairePage | None]:
    """What a person should see now, where without pages it would be `stage`.

    ``page`` with the page that is due, ``screened`` for somebody who is not asked further, or the
    stage itself. Pages before come ahead of the instructions, pages after ahead of the end.
    """
    when = {"instructions": "before", "finished": "after"}.get(stage)
    if when is None or not (before or after):
        return stage, None
    done = pages_done(db, person)
    if any(done.values()):
        return "screened", None
    for page in read_pages(before if when == "before" else after, when):
        if page.id not in done:
            return "page", page
    return stage, None
