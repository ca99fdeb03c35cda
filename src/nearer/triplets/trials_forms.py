"""Every way to write down a choice, made plain: what was shown, and what was chosen of it.

A table has one column for each object, and its kind says what they are.

``triplets``
    Head, near and far.
``answers``
    A question (head, a, b), and what was chosen.
``odd-one-out``, ``most-central``
    Three objects, and the one that does not belong, or that is most like the other two
    (Kleindessner and von Luxburg, JMLR 18(58), 2017).

What was chosen is said by the object itself, by the name of its column (``left``), by its place
among the shown, counted from 0 or from 1, or, of two, by whether the first is nearer: true or
false, 1 or 0, 1 or −1 (cblearn's counts: k or −k for k equal answers), ``<`` or ``>`` between the
distances head–a and head–b. ``=``, ``equal``, ``tie``, ``same`` and the paper authors' ``nab``,
``nac`` and ``nabc`` are undecided.

Screens have lists, as JSON; their fields say which tool wrote them.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import BadRow, InvalidInput
from nearer.questions import Floats, Objects
from nearer.triplets.columns import EMPTY, option, plain_word
from nearer.triplets.table import SCREENS, Table, text_of

__all__ = ["Written", "read_rows", "read_screens", "screen_fields"]

_TRUE = frozenset({"<", "true", "t", "yes", "left", "arrowleft", "a", "first"})
_FALSE = frozenset({">", "false", "f", "no", "right", "arrowright", "b", "second"})
_EQUAL = ("=", "equal", "tie", "same")
_UNDECIDED = frozenset({"", *_EQUAL, "nab", "nac", "nabc", "na", "nan", "none", "null"})
_ASSET = re.compile(r"([0-9A-Z]{5})([0-9A-Z]{7})")
_DROP = option("drop_bad_rows=True", "--drop-bad-rows")
_FIRST = option("first=0) or nearer.read_triplets(…, first=1", "--first")
# what messages about an answer that cannot be read end with
_UNDERSTOOD = (
    f"where nobody decided: nothing, or {', '.join(_EQUAL)}; mend it, leave such rows out with "
    f"{_DROP}, or name the right columns: {option('columns=', '--columns')}"
)
Record = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """Choices as a source has them, before objects are numbered.

    Attributes
    ----------
    kind
        ``"near"``, ``"odd-one-out"`` or ``"most-central"``.
    query
        ``(t,)`` what the shown objects are compared with; None where there is no query.
    shown
        ``(t, m)`` objects, those of a shorter row followed by None.
    chosen
        ``(t, m)`` for each object shown 0, or 1, or its place among the chosen, from 1.
    row
        ``(t,)`` the row of the table that each choice comes from.
    parts
        What the columns of `query` and `shown` are called in messages.
    ranked
        Whether the order of the chosen counts.
    times
        ``(t,)`` how often each answer was given; None: once.
    """

    kind: str
    query: NDArray[Any] | None
    shown: NDArray[Any]
    chosen: NDArray[np.int64]
    row: Objects
    parts: tuple[str, ...]
    ranked: bool = False
    times: Floats | None = None


# --- tables --------------------------------------------------------------------------------------

_HEADS = {"triplets": ("head", "near", "far"), "answers": ("head", "a", "b")}
_ONE = {"answers": "chosen", "odd-one-out": "odd", "most-central": "central"}


def read_rows(
    table: Table, parts: Mapping[str, int], kind: str, *, strict: bool, first: int | None
) -> Written:
    """Choices from a table whose columns play the `parts`.

    `strict`: an answer is yes or no, and no object. `first`: where places begin, 0 or 1; None: that
    is found out, where it can only be one.
    """
    rows = np.arange(len(table))
    if kind == "triplets":
        objects = _objects(table, [parts[p] for p in _HEADS[kind]])
        chosen = np.tile(np.array([1, 0]), (len(table), 1))
        return Written("near", objects[:, 0], objects[:, 1:], chosen, rows, _HEADS[kind])
    one = parts.get(_ONE[kind])
    names = _HEADS.get(kind, ("item1", "item2", "item3"))
    if one is not None and "item3" not in parts and kind != "answers":
        names = ("item1", "item2", _ONE[kind])  # the one that was named is the third shown
    objects = _objects(table, [parts[p] for p in names])
    shown = objects[:, 1:] if kind == "answers" else objects
    query = objects[:, 0] if kind == "answers" else None
    words = [plain_word(h) for h in table.header]
    columns = [words[parts[p]] if words else "" for p in names[-shown.shape[1] :]]
    times = None
    if one is not None and names[-1] == _ONE[kind]:
        chosen = np.tile(np.array([0, 0, 1]), (len(table), 1))
        chosen[[text in EMPTY for text in table.column(one)]] = 0
    elif one is not None:
        chosen = _by_name(table, shown, table.column(one), columns)
    elif kind == "answers":
        said = table.column(parts["answer"])
        chosen, times = _of_two(table, objects, said, columns, strict)
    else:
        said = table.column(parts["answer"])
        chosen = _by_name_or_place(table, shown, said, columns, first)
    kind = "near" if kind == "answers" else kind
    return Written(kind, query, shown, chosen, rows, names, times=times)


def _objects(table: Table, columns: Sequence[int]) -> NDArray[Any]:
    """Columns of objects side by side: whole numbers where all are, else texts."""
    found = [table.frame.iloc[:, i] for i in columns]
    if all(column.dtype.kind in "iu" for column in found):
        return np.column_stack([column.to_numpy() for column in found])
    texts = np.empty((len(table), len(columns)), dtype=object)
    for k, i in enumerate(columns):
        texts[:, k] = table.column(i)
    return texts


def _is_among(shown: NDArray[Any], said: Sequence[str]) -> NDArray[np.bool_]:
    """``(t, m)`` which of the objects shown is what was said."""
    texts = shown if shown.dtype == object else shown.astype(str).astype(object)
    return np.asarray(texts == np.array(said, dtype=object)[:, None], dtype=np.bool_)


def _decided(said: Sequence[str], objects: NDArray[Any]) -> list[str]:
    """What was said, "" where it is a word for "nobody decided" and none of the objects."""
    strange = {word for word in set(said) if word.lower() in _UNDECIDED or word in EMPTY}
    strange -= set(objects.astype(str).ravel().tolist()) if strange else set()
    return ["" if word in strange else word for word in said]


def _by_name(
    table: Table, shown: NDArray[Any], said: Sequence[str], columns: Sequence[str]
) -> NDArray[np.int64]:
    """What was chosen, named by itself or by its column."""
    said = _decided(said, shown)
    is_named = _is_among(shown, said)
    if not is_named.any():
        is_named = _column_named(said, columns)
    strange = ~is_named.any(axis=1) & (np.array(said, dtype=object) != "")
    if strange.any():
        rows = np.flatnonzero(strange).tolist()
        raise table.fault(rows[0], _not_shown(said[rows[0]], shown[rows[0]]), rows)
    return is_named.astype(np.int64)


def _not_shown(said: str, shown: NDArray[Any]) -> str:
    return (
        f"{said!r} was chosen but not shown; shown were {', '.join(map(str, shown))}; {_UNDERSTOOD}"
    )


def _column_named(said: Sequence[str], columns: Sequence[str]) -> NDArray[np.bool_]:
    words = np.array([plain_word(word) for word in said], dtype=object)
    return np.asarray(words[:, None] == np.array(columns, dtype=object), dtype=np.bool_)


def _of_two(
    table: Table, objects: NDArray[Any], said: Sequence[str], columns: Sequence[str], strict: bool
) -> tuple[NDArray[np.int64], Floats | None]:
    """Which of two was nearer: said by naming it, or by yes and no; and how many times."""
    if not strict:
        shown, said = objects[:, 1:], _decided(said, objects)
        is_named, given = _is_among(shown, said).any(axis=1), np.array(said, dtype=object) != ""
        digits = set(said) <= {"-1", "0", "1", ""}
        if (is_named | ~given).all() and is_named.any() and digits and "-1" not in said:
            raise table.unclear(
                0,
                f"answer {said[0]!r} may be the object chosen, or whether the first is nearer; say "
                + option(
                    'columns={"head": …, "a": …, "b": …, "chosen" or "answer": …}', "--columns"
                ),
            )
        if 2 * is_named.sum() > given.sum() and not digits:
            return _by_name(table, shown, said, columns), None
    signs = _verdicts(table, said)
    times = np.abs(signs)
    return np.column_stack([signs > 0, signs < 0]).astype(np.int64), (
        None if (times[times > 0] == 1).all() else times
    )


def _verdicts(table: Table, said: Sequence[str]) -> Floats:
    """How many times a was found nearer, below 0 where b was, 0 where nobody decided."""
    words = [word.lower() for word in said]
    worth = dict.fromkeys(_TRUE, 1.0) | dict.fromkeys(_FALSE, -1.0) | dict.fromkeys(_UNDECIDED, 0.0)
    numbers = {}
    for word in dict.fromkeys(words):
        if word in worth:
            continue
        try:
            numbers[word] = float(word)
        except ValueError:
            numbers[word] = np.nan
        if numbers[word] != np.trunc(numbers[word]):  # also where it is no number
            raise table.fault(
                words.index(word),
                f"answer {word!r}: must be the object chosen, true or false, 1 or 0, 1 or -1, "
                f"< or >, left or right; {_UNDERSTOOD}",
            )
    signed = any(number < 0 for number in numbers.values())
    if not signed and 0 in numbers.values() and max(numbers.values()) > 1:
        word = max(numbers, key=numbers.__getitem__)
        raise table.fault(
            words.index(word),
            f"answer {word!r} among zeros: 0 is 'no' beside 1 and 'undecided' beside negative "
            "counts; use one of the two",
        )
    worth |= {w: -1.0 if number == 0 and not signed else number for w, number in numbers.items()}
    return np.array([worth[word] for word in words])


def _by_name_or_place(
    table: Table,
    shown: NDArray[Any],
    said: Sequence[str],
    columns: Sequence[str],
    first: int | None,
) -> NDArray[np.int64]:
    """What was chosen, named by itself, by its column, or by its place among the shown."""
    # whole numbers beside gaps end in .0, as pandas writes them
    said = [word.removesuffix(".0") for word in _decided(said, shown)]
    given = [row for row, word in enumerate(said) if word]
    if not given:
        return np.zeros(shown.shape, dtype=np.int64)
    size = _sizes(shown)
    are_places = all(said[row].isdecimal() for row in given)
    if first is None and (not are_places or _is_among(shown, said)[given].any(axis=1).all()):
        if are_places and all(int(said[row]) <= size[row] for row in given):
            raise table.fault(
                given[0],
                f"the answer {said[given[0]]!r} may be an object or a place; where it is a place, "
                f"say where places begin: {_FIRST}; else give the objects names",
            )
        return _by_name(table, shown, said, columns)
    if first is None:
        ends, begins = (
            any(int(said[r]) == size[r] for r in given),
            any(said[r] == "0" for r in given),
        )
        if begins == ends:
            places = ", ".join(sorted({said[row] for row in given}))
            raise table.fault(
                given[0], f"places {places} may be counted from 0 or from 1; say which: {_FIRST}"
            )
        first = 0 if begins else 1
    chosen = np.zeros(shown.shape, dtype=np.int64)
    for row in given:
        place = int(said[row]) - first if said[row].isdecimal() else -1
        if not 0 <= place < size[row]:
            rule = f"must be a place from {first} to {size[row] - 1 + first}"
            raise table.fault(row, f"the answer {said[row]!r}: {rule}")
        chosen[row, place] = 1
    return chosen


# --- screens -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Screen:
    """One choice: `chosen` is None where nobody could decide; `times` people said so."""

    query: Any
    shown: list[Any]
    chosen: list[Any] | None
    ranked: bool = False
    times: int = 1


def screen_fields(header: Sequence[str]) -> tuple[str, ...] | None:
    """The fields by which a table is recognised as one of screens; None where it is none."""
    return next((fields for fields in SCREENS if set(fields) <= set(header)), None)


def is_page(record: Record, fields: tuple[str, ...]) -> bool:
    """Whether a record is no screen but another page that was shown, or another task."""
    if any(isinstance(record[f], float) and np.isnan(record[f]) for f in fields):
        return True  # JSON without this field; one that is null is there
    if fields[0] == "stimulus":  # a table has an empty field where there were no choices
        return text_of(record["choices"]) in ("[]", *EMPTY)
    steps = record.get("interactions")
    if fields[0] != "interactions" or not isinstance(steps, list):
        return False
    return not any(isinstance(s, dict) and s.get("kind") == "content:query" for s in steps)


def read_screens(table: Table, fields: tuple[str, ...], kind: str, *, first: int | None) -> Written:
    """Choices from a table of screens; `kind` and `first` as the user has said them."""
    screens: list[_Screen] = []
    rows: list[int] = []
    for at, record in enumerate(table.records()):
        try:
            found = _FORMS[fields[0]](record)
        except BadRow as fault:
            raise table.fault(at, str(fault)) from None
        except (TypeError, ValueError, KeyError, AttributeError):
            what = f"{str(record)[:80]} cannot be read as {', '.join(fields)}; mend it"
            raise table.fault(at, what) from None
        screens += found
        rows += [at] * len(found)
    copies = [i for i, screen in enumerate(screens) for _ in range(screen.times)]
    if not copies:
        raise InvalidInput(f"{table.name}: holds no answer; at least one is needed")
    if fields[0] == "interactions":
        screens = _without_assets(screens)
    screens, row = [screens[i] for i in copies], np.array([rows[i] for i in copies])
    alone = kind in ("odd-one-out", "most-central") and fields[0] in ("stimulus", "query")
    kind = kind if alone else _near(table, screens, fields, kind)
    shown = _padded([[text_of(x) for x in screen.shown] for screen in screens])
    query = None if alone else _column([text_of(screen.query) for screen in screens])
    parts = ("query", *["shown"] * shown.shape[1])[alone:]
    ranked = False
    if fields[0] == "stimulus":
        said = [text_of((screen.chosen or [""])[0]) for screen in screens]
        if first is None and not all(
            w in s for w, s in zip(said, shown, strict=True) if w not in EMPTY
        ):
            first = 0  # a button, which jsPsych counts from 0
        chosen = _by_name_or_place(table, shown, said, [""] * shown.shape[1], first)
    else:
        chosen, ranked = _places(table, screens, row, shown)
    count, size = (chosen > 0).sum(axis=1), _sizes(shown)
    few = (size < (3 if alone else 2)) | (count >= size)
    if few.any():
        bad = np.flatnonzero(few)
        raise table.fault(
            int(row[bad[0]]),
            f"{count[bad[0]]} of {size[bad[0]]} chosen: some and not all must be chosen, of two or "
            "more, and one of three or more where it is the odd or the central one",
            np.unique(row[bad]).tolist(),
        )
    return Written(kind, query, shown, chosen, row, parts, ranked)


def _sizes(shown: NDArray[Any]) -> Objects:
    """How many objects each row shows; shorter rows end in None."""
    return np.array([sum(x is not None for x in row) for row in shown.tolist()], dtype=np.int64)


def _column(values: Sequence[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _padded(rows: Sequence[Sequence[Any]]) -> NDArray[Any]:
    table = np.full((len(rows), max(map(len, rows))), None, dtype=object)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def _near(table: Table, screens: Sequence[_Screen], fields: tuple[str, ...], kind: str) -> str:
    """The kind of screens with a query, unless this may be the words of the question."""
    asked = {text_of(s.query) for s in screens}
    objects = {text_of(x) for s in screens for x in s.shown}
    several = len(screens) > 1 and len(asked) == 1 and not asked & objects
    if fields[0] == "stimulus" and kind == "auto" and several:
        raise table.unclear(
            0,
            f"all {len(screens)} records have the stimulus {min(asked)[:40]!r}, which may be an "
            "object or the words of the question; where the response is what is most like it, say "
            + option("kind='answers'", "--kind answers")
            + ", where it is the odd one, "
            + option("kind='odd-one-out'", "--kind odd-one-out"),
        )
    return "near"


def _places(
    table: Table, screens: Sequence[_Screen], row: Objects, shown: NDArray[Any]
) -> tuple[NDArray[np.int64], bool]:
    """The place of each shown object among the chosen, and whether their order counts."""
    orders = {s.ranked for s in screens if s.chosen is not None and len(s.chosen) > 1}
    if len(orders) > 1:
        raise InvalidInput(
            f"{table.name}: some screens are ranked and some are not; write them to two files"
        )
    ranked = orders == {True}
    places = np.zeros(shown.shape, dtype=np.int64)
    for i, screen in enumerate(screens):
        objects = shown[i].tolist()
        for place, x in enumerate(map(text_of, screen.chosen or []), start=1):
            if x not in objects:
                raise table.fault(int(row[i]), _not_shown(x, shown[i][: len(screen.shown)]))
            places[i, objects.index(x)] = place if ranked else 1
    return places, ranked


def _grid(record: Record) -> list[_Screen]:
    ranked = text_of(record.get("ranked")).lower() in ("true", "1", "yes")
    chosen = record["chosen"]
    found = _list(chosen) if isinstance(chosen, list) or str(chosen)[:1] == "[" else [chosen]
    chosen = [x for x in found if text_of(x) not in EMPTY]
    return [_Screen(record["query"], _list(record["shown"]), chosen or None, ranked)]


def _jspsych(record: Record) -> list[_Screen]:
    words = [text_of(record.get(field)).strip() for field in ("response", "button_pressed")]
    said = next((word for word in words if word not in EMPTY), "")
    return [_Screen(record["stimulus"], _list(record["choices"]), [said])]


def _psiz(record: Record) -> list[_Screen]:
    parts = {i.get("kind"): i.get("detail") for i in record["interactions"]}

    def ordered(begins: str) -> list[Any]:
        found = {int(k[len(begins) :]): v for k, v in parts.items() if str(k).startswith(begins)}
        return [found[k] for k in sorted(found)]

    ranked = "choose" not in str(record.get("kind"))
    chosen = ordered("behavior:rank_") or None
    return [_Screen(parts.get("content:query"), ordered("content:reference_"), chosen, ranked)]


def _votes(record: Record) -> list[_Screen]:
    (head, *two), votes = record["answers"], record["agreement"]
    if len(two) != 2 or len(votes) != 2 or not all(type(v) is int and v >= 0 for v in votes):
        raise BadRow(
            f"answers {[head, *two]} with agreement {votes}: must be (head, a, b) and two counts "
            "of votes, for a and for b",
            [],
        )
    return [_Screen(head, two, [x], times=v) for x, v in zip(two, votes, strict=True) if v]


_FORMS: dict[str, Callable[[Record], list[_Screen]]] = {
    "query": _grid,
    "stimulus": _jspsych,
    "interactions": _psiz,
    "answers": _votes,
}


def _without_assets(screens: Sequence[_Screen]) -> list[_Screen]:
    """Stimuli by their numbers, where all are assets of one set as psiz calls them."""
    assets = [_ASSET.fullmatch(str(x)) for s in screens for x in [s.query, *s.shown]]
    if not all(assets) or len({a[1] for a in assets if a}) != 1:
        return list(screens)

    def numbers(some: Sequence[Any]) -> list[int]:
        return [int(str(asset)[5:], 36) for asset in some]

    return [
        _Screen(numbers([s.query])[0], numbers(s.shown), s.chosen and numbers(s.chosen), s.ranked)
        for s in screens
    ]


def _list(value: Any) -> list[Any]:
    """A list, also one that a table has as JSON or as texts with commas between them."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [part.strip() for part in value.strip("[]").split(",")]
        json.dumps(value, ensure_ascii=False).encode()  # half of a character is a ValueError
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
