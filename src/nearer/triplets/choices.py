"""What was chosen, however a source says it.

An answer names the object that was chosen, or its column (``left``), or its place among the shown,
counted from 0 or from 1. Of two objects it may also say whether the first is nearer: true or false,
1 or 0, 1 or −1 (cblearn's counts: k or −k for k equal answers), ``<`` or ``>``. Each of these is
one *reading* of the column. The first that explains every row is taken; where another explains
every row, too, and says something else, the user is asked. Screens have lists instead, in fields
that the tool that wrote them names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer.errors import BadRow, InvalidInput
from nearer.questions import Floats
from nearer.triplets.columns import Form, Options, columns_option, option
from nearer.triplets.table import EMPTY, SCREENS, Table, plain_word, text_of

_TRUE = frozenset({"<", "true", "t", "yes", "left", "arrowleft", "a", "first"})
_FALSE = frozenset({">", "false", "f", "no", "right", "arrowright", "b", "second"})
_EQUAL = ("=", "equal", "tie", "same")
_UNDECIDED = frozenset({"", *_EQUAL, "nab", "nac", "nabc", "na", "nan", "none", "null"})
_ASSET = re.compile(r"([0-9A-Z]{5})([0-9A-Z]{7})")  # psiz: a set, and a number in base 36
_VERDICT = "whether the first is nearer"

Numbers = NDArray[np.int64]
Cells = NDArray[Any]
Words = Sequence[str]
Parts = Mapping[str, int]  # the column of each part of an answer


class Choices(NamedTuple):
    """Choices as a source has them, one a row, before objects are numbered."""

    kind: str  # a task of `nearer.Trials`
    objects: Cells  # (t, m), of the task "near" the query first; shorter rows end in None
    chosen: Numbers  # for each object shown 0, or 1, or its place among the chosen
    parts: tuple[str, ...]  # what messages call the columns of `objects`
    ranked: bool = False  # whether the order of the chosen counts
    times: Floats | None = None  # (t,) how often each answer was given; None: once


def choices_of(table: Table, parts: Parts, form: Form, options: Options) -> Choices:
    """The choices of a table with a column for each object, or of screens.

    Numbers in a column called an answer may be places or verdicts; in one without a name, or that
    the user calls an answer, they are verdicts.
    """
    if form.kind == "screens":
        return _of_screens(table, form, options)
    columns = [table.frame.iloc[:, parts[part]] for part in form.objects]
    if all(column.dtype.kind in "iu" for column in columns):  # texts of numbers are slow to make
        objects = np.column_stack([column.to_numpy() for column in columns])
    else:
        texts = [np.array(table.column(parts[part]), dtype=object) for part in form.objects]
        objects = np.stack(texts, axis=1)
    near = form.objects[0] == "head"
    kind, shown, names = "near" if near else form.kind, objects[:, near:], form.objects[near:]
    if form.said in names:  # the object that was chosen has a column of its own
        is_chosen = np.array([name == form.said for name in names])
        chosen = np.tile(is_chosen.astype(np.int64), (len(table), 1))
        if objects.dtype == object:
            empty = pd.DataFrame(shown).isin(EMPTY).to_numpy()
            chosen[empty.all(axis=1) if near else empty[:, is_chosen].ravel()] = 0
        return Choices(kind, objects, chosen, form.objects)
    said = _decided(table.column(parts[form.said]), objects)
    words = [plain_word(name) for name in table.header]
    is_answer, first = form.said == "answer", options.first
    only_verdicts = is_answer and near and (not words or "answer" in (options.columns or ()))
    readings: dict[str, Numbers] = {}
    times = np.ones(len(table))
    if first is None and not only_verdicts:
        readings = _by_name(shown, said, [words[parts[name]] if words else "" for name in names])
    if first is None and is_answer and near:
        readings[_VERDICT], times = _verdicts(said)
    numbered = not is_answer and any(str(x).isdecimal() for x in shown.ravel())
    if first is not None or not (only_verdicts or numbered):
        firsts = [first] if first is not None else [1] if near else [0, 1]
        readings |= _by_place(shown, said, firsts)
    try:
        which = _only_reading(table, readings, said, shown, ask=is_answer)
    except BadRow as fault:
        if not near or any(said[row] != str(objects[row, 0]) for row in fault.rows):
            raise
        three = sorted(parts[part] for part in form.objects)
        items = dict(zip(("item1", "item2", "item3"), map(table.called, three), strict=True))
        named = columns_option(items | {"answer": table.called(parts[form.said])})
        what = f"{fault}; where one of three is chosen and none is the head, say so: {named}"
        raise BadRow(what, fault.rows) from None
    is_count = which is readings.get(_VERDICT) and bool((times > 1).any())
    one = (which[:, None] == np.arange(shown.shape[1])).astype(np.int64)
    return Choices(kind, objects, one, form.objects, times=times if is_count else None)


def _decided(said: Words, objects: Cells) -> list[str]:
    """What was said, "" where it is a word for "nobody decided" and none of the objects."""
    strange = {word for word in set(said) if word.lower() in _UNDECIDED or word in EMPTY}
    strange -= set(objects.astype(str).ravel().tolist()) if strange else set()
    return ["" if word in strange else word for word in said]


def _plain(values: Cells | Sequence[str]) -> Cells:
    """Texts to compare; whole numbers beside gaps end in .0, as pandas writes them."""
    array = np.asarray(values)
    texts = [text if text is None else str(text).removesuffix(".0") for text in array.ravel()]
    return np.array(texts, dtype=object).reshape(array.shape)


def _reading(alternatives: Cells, words: Cells, said: Words) -> Numbers:
    """Which of ``(t, m)`` or ``(m,)`` alternatives each word is; m is nothing, −1 unexplained."""
    explains = np.asarray(alternatives == words[:, None], dtype=np.bool_)
    which = np.where(explains.any(axis=1), explains.argmax(axis=1), -1)
    return np.where(np.array(said, dtype=object) == "", explains.shape[1], which)


def _by_name(shown: Cells, said: Words, columns: Words) -> dict[str, Numbers]:
    """What was chosen, named by itself or by its column."""
    named = np.array([plain_word(word) for word in said], dtype=object)
    called = np.array([name or None for name in columns], dtype=object)
    return {
        "an object": _reading(_plain(shown), _plain(said), said),
        "a column": _reading(called, named, said),
    }


def _by_place(shown: Cells, said: Words, firsts: Sequence[int]) -> dict[str, Numbers]:
    """What was chosen, by its place among the shown, counted from each of `firsts`."""
    numbers = np.array([int(w) if w.isdecimal() else -1 for w in map(str, _plain(said))])
    places = np.where(shown == np.array(None), -9, np.arange(shown.shape[1]))
    return {
        f"a place counted from {first}": _reading(places + first, numbers, said) for first in firsts
    }


def _verdicts(said: Words) -> tuple[Numbers, Floats]:
    """Which of two was nearer, and how many times; numbers are counts where one is below 0."""
    words = pd.Series([word.lower() for word in said], dtype=object)
    numbers = pd.to_numeric(words, errors="coerce").to_numpy(np.float64, copy=True)
    signed = bool((numbers < 0).any())
    numbers[(numbers != np.trunc(numbers)) | ((numbers > 1) & (not signed))] = np.nan
    yes = words.isin(_TRUE).to_numpy() | (numbers > 0)
    no = words.isin(_FALSE).to_numpy() | (numbers < 0) | ((numbers == 0) & (not signed))
    which = _reading(np.array([1, 0]), np.select([yes, no], [1, 0], -1), said)
    which[(numbers == 0) & signed] = 2
    return which, np.where(np.isfinite(numbers), np.maximum(np.abs(numbers), 1), 1.0)


def _only_reading(
    table: Table, readings: Mapping[str, Numbers], said: Words, shown: Cells, *, ask: bool
) -> Numbers:
    """The reading that explains all rows; refused where none does, or two disagree."""
    complete = {what: which for what, which in readings.items() if (which >= 0).all()}
    if not complete:
        best = max(readings.values(), key=lambda which: (which >= 0).sum())
        rows = np.flatnonzero(best < 0).tolist()
        there = [str(x) for x in shown[rows[0]] if x is not None]
        raise table.fault(rows[0], _not_shown(said[rows[0]], there), rows)
    which = next(iter(complete.values()))
    rivals = [what for what, other in complete.items() if (other != which).any()]
    numbers = all(word.lstrip("-").isdecimal() for word in map(str, _plain(said)) if word)
    if rivals and ask and numbers:
        row = int(np.argmax(complete[rivals[0]] != which))
        ways = [what for what, other in complete.items() if what in rivals or other is which]
        remedy = option("first=0) or nearer.read_triplets(…, first=1", "--first")
        if _VERDICT in ways:
            parts = 'columns={"head": …, "a": …, "b": …, "chosen" or "answer": …}'
            remedy = option(parts, "--columns")
        what = f"answer {said[row]!r} may be {' or '.join(ways)}; say which: {remedy}"
        raise table.unclear(row, what)
    return which


def _not_shown(said: str, shown: Words) -> str:
    """What messages about an answer that cannot be read say."""
    return (
        f"{said!r} was chosen but not shown; shown were {', '.join(shown)}; an answer is one of "
        "these, its column or its place, or, of two, true or false, 1 or 0, 1 or -1, < or >; where "
        f"nobody decided, nothing or one of {', '.join(_EQUAL)}; mend it, leave such rows out with "
        f"{option('drop_bad_rows=True', '--drop-bad-rows')}, or name the right columns: "
        + option("columns=", "--columns")
    )


# --- screens -------------------------------------------------------------------------------------

Record = dict[str, Any]


class Screen(NamedTuple):
    """One choice as texts; `chosen` is a list, or what jsPsych has: a place or an object."""

    query: str
    shown: list[str]
    chosen: list[str] | str
    ranked: bool = False


def with_screens(table: Table, fields: tuple[str, ...]) -> tuple[Table, list[int]]:
    """The table with a row and a last column of `Screen` for each choice; rows of other pages."""
    screens: list[Screen] = []
    rows: list[int] = []
    pages: list[int] = []
    faults: dict[int, str] = {}
    names = table.header
    for row, values in enumerate(table.frame.itertuples(index=False, name=None)):
        record = dict(zip(names, values, strict=True))
        try:
            # JSON without a field is another page; one that is null is there
            is_page = any(isinstance(record[f], float) and math.isnan(record[f]) for f in fields)
            own = [] if is_page else _SCREENS[fields[0]](record)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            what = f"{str(record)[:80]} cannot be read as {', '.join(fields)}; mend it"
            faults[row] = str(error) if isinstance(error, InvalidInput) else what
            continue
        pages += [] if own else [row]
        screens += own
        rows += [row] * len(own)
    if faults:
        raise table.fault(*next(iter(faults.items())), list(faults))
    if not screens:
        raise InvalidInput(f"{table.name}: none of its {len(table)} records is an answer")
    frame = table.frame.iloc[rows].copy()
    column = pd.Series(screens, index=frame.index, dtype=object)
    frame.insert(table.width, "screen", column, allow_duplicates=True)
    return replace(table, frame=frame), pages


def _of_screens(table: Table, form: Form, options: Options) -> Choices:
    """Choices from a table whose last column are screens."""
    screens: list[Screen] = table.frame.iloc[:, -1].tolist()
    tool, kind, first = form.objects[0], options.kind, options.first
    alone = kind in ("odd-one-out", "most-central") and tool in ("stimulus", "query")
    width = max(len(screen.shown) for screen in screens)
    rows = [[s.query, *s.shown, *[None] * (width - len(s.shown))] for s in screens]
    objects = np.array(rows, dtype=object)[:, alone:]
    shown, ranked = objects[:, not alone :], False
    if tool == "stimulus":
        if kind == "auto":
            _refuse_words_of_the_question(table, screens)
        said = _decided([str(screen.chosen) for screen in screens], shown)
        readings = {} if first is not None else _by_name(shown, said, [""] * width)
        readings |= _by_place(shown, said, [first or 0])  # jsPsych counts buttons from 0
        which = _only_reading(table, readings, said, shown, ask=True)
        chosen = (which[:, None] == np.arange(width)).astype(np.int64)
    else:
        chosen, ranked = _ranks(table, screens, width)
    count = (chosen > 0).sum(axis=1)
    size = (shown != np.array(None)).sum(axis=1)
    bad = np.flatnonzero((size < (3 if alone else 2)) | (count >= size)).tolist()
    if bad:
        raise table.fault(
            bad[0],
            f"{count[bad[0]]} of {size[bad[0]]} chosen: some and not all must be chosen, of two or "
            "more, and one of three or more where it is the odd or the central one",
            bad,
        )
    if tool == "interactions":
        objects = _by_number(objects)
    parts = ("query", *["shown"] * width)[alone:]
    return Choices(kind if alone else "near", objects, chosen, parts, ranked)


def _ranks(table: Table, screens: Sequence[Screen], width: int) -> tuple[Numbers, bool]:
    """The place of each shown object among the chosen, and whether their order counts."""
    orders = {screen.ranked for screen in screens if len(screen.chosen) > 1}
    if len(orders) > 1:
        raise InvalidInput(
            f"{table.name}: some screens are ranked and some are not; write them to two files"
        )
    ranked = orders == {True}
    places = np.zeros((len(screens), width), dtype=np.int64)
    for row, screen in enumerate(screens):
        for place, x in enumerate(screen.chosen, start=1):
            if x not in screen.shown:
                raise table.fault(row, _not_shown(x, screen.shown))
            places[row, screen.shown.index(x)] = place if ranked else 1
    return places, ranked


def _refuse_words_of_the_question(table: Table, screens: Sequence[Screen]) -> None:
    """A stimulus that all screens have may be an object or the question."""
    asked = {screen.query for screen in screens}
    objects = {x for screen in screens for x in screen.shown}
    if len(screens) > 1 and len(asked) == 1 and not asked & objects:
        alike, odd = (
            option(f"kind={kind!r}", f"--kind {kind}") for kind in ("answers", "odd-one-out")
        )
        raise table.unclear(
            0,
            f"all {len(screens)} records have the stimulus {min(asked)[:40]!r}, which may be an "
            "object or the words of the question; where the response is what is most like it, say "
            f"{alike}, where it is the odd one, {odd}",
        )


def _by_number(objects: Cells) -> Cells:
    """Stimuli by their numbers, where all are assets of one set as psiz calls them."""
    names = {x for x in objects.ravel() if x is not None}
    assets = [_ASSET.fullmatch(name) for name in names]
    if len({asset[1] if asset else None for asset in assets}) != 1 or None in assets:
        return objects
    numbers = {name: str(int(name[5:], 36)) for name in names}
    return np.array([[numbers.get(x) for x in row] for row in objects], dtype=object)


# Each returns no screen where the record is another page that was shown, or another task.
def _grid(record: Record) -> list[Screen]:
    ranked = text_of(record.get("ranked")).lower() in ("true", "1", "yes")
    chosen = record["chosen"]
    is_list = isinstance(chosen, list) or str(chosen)[:1] == "["
    texts = _texts_of(chosen) if is_list else [text_of(chosen)]
    chosen = [text for text in texts if text not in EMPTY]
    return [Screen(text_of(record["query"]), _texts_of(record["shown"]), chosen, ranked)]


def _jspsych(record: Record) -> list[Screen]:
    if text_of(record["choices"]) in ("[]", *EMPTY):  # a table has an empty field there
        return []
    words = [text_of(record.get(field)).strip() for field in ("response", "button_pressed")]
    said = next((word for word in words if word not in EMPTY), "")
    return [Screen(text_of(record["stimulus"]), _texts_of(record["choices"]), said)]


def _psiz(record: Record) -> list[Screen]:
    steps = [step for step in record["interactions"] if isinstance(step, dict)]
    parts: Record = {str(s.get("kind")): s.get("detail") for s in steps}

    def ordered(begins: str) -> list[str]:
        held = {int(k[len(begins) :]): v for k, v in parts.items() if k.startswith(begins)}
        return [text_of(held[k]) for k in sorted(held)]

    if "content:query" not in parts:
        return []
    shown, chosen = ordered("content:reference_"), ordered("behavior:rank_")
    ranked = "choose" not in str(record.get("kind"))
    return [Screen(text_of(parts["content:query"]), shown, chosen, ranked)]


def _votes(record: Record) -> list[Screen]:
    (head, *two), votes = record["answers"], record["agreement"]
    if len(two) != 2 or len(votes) != 2 or not all(type(v) is int and v >= 0 for v in votes):
        raise InvalidInput(
            f"answers {[head, *two]} with agreement {votes}: must be (head, a, b) and two counts "
            "of votes, for a and for b"
        )
    a, b = map(text_of, two)
    first, second = (Screen(text_of(head), [a, b], [x]) for x in (a, b))
    return [first] * votes[0] + [second] * votes[1]


_READERS = (_grid, _jspsych, _psiz, _votes)
_SCREENS = dict(zip(dict.fromkeys(fields[0] for fields in SCREENS), _READERS, strict=True))


def _texts_of(value: Any) -> list[str]:
    """A list of texts, also from one that a table has as JSON or with commas between them."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [part.strip() for part in value.strip("[]").split(",")]
        json.dumps(value, ensure_ascii=False).encode()  # half of a character is a ValueError
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    return [text_of(x) for x in values]
