"""What tables say: which column is what, which objects were shown, what was chosen of them.

Most tables have one column for each *part* of an answer, such as head, near and far. `_WORDS` lists
what columns are called, letter case and punctuation aside, and `FORMS` which parts make which kind
of answer. ``left, middle, right`` are item1 to item3; ``winner`` without a loser is what was
chosen; ``weight`` says how many times an answer was given, and rows with 1 or true in ``excluded``
are left out; ``seconds`` and ``ms`` say how long it took.

These are the words of Salmon (``head, winner, loser, left, right, puid`` and, for the names of
numbered objects, ``head_filename`` and ``head_html``), of tripletTools (``head, winner, loser,
Center, Left, Right, Answer, worker_id``; older files ``Target, Option1, Option2, primary,
alternate``) and of the published survey files. Three lone letters, ``a,b,c`` or ``i,j,k``, are
head, near and far, or with an answer beside them head and the two that are compared; letters say
less than words, so the report says what they were taken for.

What was chosen is said by the object itself, by the name of its column (``left``), by its place
among the shown, counted from 0 or from 1, or, of two, by whether the first is nearer: true or
false, 1 or 0, 1 or −1 (cblearn's counts: k or −k for k equal answers), ``<`` or ``>`` between the
distances head–a and head–b. ``=``, ``equal``, ``tie``, ``same`` and the paper authors' ``nab``,
``nac`` and ``nabc`` are undecided.

*Screens* have lists, as JSON, in columns that the tool that wrote them names.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer.errors import BadRow, InvalidInput
from nearer.questions import Floats, Objects
from nearer.triplets.table import SCREENS, Table, text_of

__all__ = [
    "BESIDE",
    "EMPTY",
    "FORMS",
    "KINDS",
    "Form",
    "Written",
    "assumed_of_letters",
    "by_choice",
    "by_name",
    "by_position",
    "form_of",
    "is_page",
    "name_columns",
    "option",
    "read_rows",
    "read_screens",
    "screen_form",
]

# How R, pandas, SQL, Excel and JSON write a missing value. It is no object unless labels list it.
EMPTY = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"})


def option(python: str, flag: str) -> str:
    """An option of reading as messages name it, for the library and for the command."""
    return f"nearer.read_triplets(…, {python}) or {flag}"


# --- which column is what ------------------------------------------------------------------------

_WORDS = {
    "head": ("head", "center", "centre", "target", "anchor", "reference"),
    "near": ("winner", "near", "nearer", "closer", "close", "primary", "positive"),
    "far": ("loser", "far", "farther", "alternate", "negative"),
    "a": ("left", "option1"),
    "b": ("right", "option2"),
    "chosen": ("chosen", "selected"),
    "answer": ("answer", "response", "choice", "cmp", "comparison", "outcome", "y"),
    "odd": ("odd", "oddone", "oddoneout"),
    "central": ("chosencenter", "chosencentre", "central", "mostcentral"),
    "person": [
        word + end
        for word in (
            *("puid", "pid", "worker", "participant", "person"),
            *("subject", "sub", "user", "rater", "session", "anonymous", "agent", "prolific"),
        )
        for end in ("", "id", "pid")
    ],
    "weight": ("weight", "count"),
    "excluded": ("excluded", "takenback"),
    "seconds": ("seconds",),
    "ms": ("ms", "rt", "rtms", "milliseconds", "responsetimems"),
    **{
        f"item{i}": [word + i for word in ("item", "object", "tripletobject", "image", "stimulus")]
        for i in "123"
    },
}
BESIDE = ("person", "weight", "seconds", "ms", "excluded")  # what a row may say beside its answer
_LETTERS = (("head", "a", "b"), ("head", "b", "c"), ("a", "b", "c"), ("i", "j", "k"))
_NAME_ENDS = ("filename", "name", "label", "html")  # the first that is there wins
_EXAMPLE = option('columns={"head": 0, "near": 1, "far": 2}', "--columns head=0,near=1,far=2")


class Form(NamedTuple):
    """One way to write down an answer in columns.

    `objects` are the parts that hold objects, a head first; `said` is the part that says which of
    them was chosen, one of the objects where its column says it. `order` is that of the columns
    where these have no names; none where such tables are read in another way.
    """

    kind: str
    objects: tuple[str, ...]
    said: str
    order: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that a table of this form must have."""
        return self.objects if self.said in self.objects else (*self.objects, self.said)


_THREE = ("item1", "item2", "item3")
_TWO = ("item1", "item2")
FORMS = (
    Form("odd-one-out", _THREE, "odd", (*_THREE, "odd")),
    Form("odd-one-out", (*_TWO, "odd"), "odd", (*_TWO, "odd")),
    Form("odd-one-out", _THREE, "answer"),
    Form("most-central", _THREE, "central", (*_THREE, "central")),
    Form("most-central", (*_TWO, "central"), "central", ("central", *_TWO)),
    Form("most-central", _THREE, "answer"),
    Form("triplets", ("head", "near", "far"), "near", ("head", "near", "far")),
    Form("answers", ("head", "a", "b"), "chosen"),
    Form("answers", ("head", "a", "b"), "answer", ("head", "a", "b", "answer")),
)
KINDS = ("triplets", "answers", "odd-one-out", "most-central")


def form_of(parts: Iterable[str], kind: str = "auto") -> Form | None:
    """The form of a table with these parts, or None where they make no answer."""
    have = set(parts)
    # Beside a triplet or a central one, a column called "choice" is not the odd one of three.
    stated = {"head", "near", "far"} <= have or "central" in have
    for form in FORMS:
        by_place = form.said == "answer" and form.objects == _THREE
        if (
            kind in ("auto", form.kind)
            and have.issuperset(form.parts)
            and not (stated and by_place)
        ):
            return form
    return None


def by_name(header: Sequence[str]) -> dict[str, int]:
    """The parts that a header's words give, part to column.

    Examples
    --------
    >>> by_name(["Center", "Left", "Right", "Answer", "worker_id"])
    {'head': 0, 'a': 1, 'b': 2, 'answer': 3, 'person': 4}
    """
    words = [_plain_word(name) for name in header]
    parts = {
        part: _only(words, found)
        for part, known in _WORDS.items()
        if (found := next((word for word in known if word in words), None)) is not None
    }
    if "middle" in words and {"a", "b"} <= parts.keys():  # three on a screen, none the head
        parts |= {"item1": parts.pop("a"), "item2": _only(words, "middle"), "item3": parts.pop("b")}
    answered = "chosen" in parts or "answer" in parts
    if "near" not in parts and "a" not in parts:
        for letters in _LETTERS:
            if set(letters) <= set(words) and (answered or letters != ("head", "a", "b")):
                three = ("head", "a", "b") if answered else ("head", "near", "far")
                parts |= {p: _only(words, x) for p, x in zip(three, letters, strict=True)}
                break
    if "near" in parts and "far" not in parts and "a" in parts:
        parts["chosen"] = parts.pop("near")
    return parts


def by_position(kind: str, width: int) -> dict[str, int]:
    """The parts of a table without header; ``kind`` may be ``"auto"``."""
    if kind == "auto":
        kind = "answers" if width == 4 else "triplets"
    orders = sorted((f.order for f in FORMS if f.kind == kind and f.order), key=len)
    parts = next((order for order in orders if len(order) == width), None)
    if parts is None:
        raise InvalidInput(
            f"{width} columns without a known header: {kind} need "
            + " or ".join(", ".join(order) for order in orders)
            + f"; say which is which, for example {_EXAMPLE}"
        )
    return {part: i for i, part in enumerate(parts)}


def by_choice(
    columns: Mapping[str, str | int], header: Sequence[str], width: int
) -> dict[str, int]:
    """The parts as the user names them, by column name or position."""
    parts = {}
    for part, column in columns.items():
        if part not in _WORDS:
            raise InvalidInput(f"columns: {part!r} is no part; parts are {', '.join(_WORDS)}")
        if isinstance(column, str):
            if column not in header:
                raise InvalidInput(
                    f"columns: {part}={column!r}, but the columns are "
                    f"{', '.join(header) or 'without names'}; use one of them or a position"
                )
            parts[part] = _only(header, column)
        elif 0 <= column < width:
            parts[part] = column
        else:
            raise InvalidInput(f"columns: {part}={column}: positions run from 0 to {width - 1}")
    return parts


def assumed_of_letters(header: Sequence[str], parts: Mapping[str, int]) -> str:
    """What was assumed of columns that are called by letters; nothing where words say it.

    Examples
    --------
    >>> header = ["c", "b", "a"]
    >>> print(assumed_of_letters(header, by_name(header)))
    columns a, b, c are taken as head, near, far. Where they are something else, say so: ...
    """
    three = ("head", "near", "far") if "near" in parts else ("head", "a", "b")
    names = [header[parts[part]] for part in three if part in parts]
    words = tuple(map(_plain_word, names))
    if words == three or words not in _LETTERS:
        return ""
    example = {"item1": names[0], "item2": names[1], "odd": names[2]}
    typed = ",".join(f"{part}={name}" for part, name in example.items())
    return (
        f"columns {', '.join(names)} are taken as {', '.join(three)}. Where they are something "
        f"else, say so: {option(f'columns={example}', f'--columns {typed}')}"
    )


def name_columns(header: Sequence[str]) -> tuple[int, ...]:
    """The columns with the names of objects that head, near and far have as numbers.

    tripletTools has Center, Left, Right and Answer instead, which are four.

    Examples
    --------
    >>> name_columns(["head", "winner", "loser", "head_name", "winner_name", "loser_name"])
    (3, 4, 5)
    """
    words = [_plain_word(name) for name in header]
    for end in _NAME_ENDS:
        three = [
            [words.index(start + end) for start in starts if start + end in words]
            for starts in (("head",), ("winner", "near"), ("loser", "far"))
        ]
        if any(three):
            return tuple(found[0] for found in three if found)
    wanted = ("center", "left", "right", "answer")
    return tuple(map(words.index, wanted)) if set(wanted) <= set(words) else ()


def _only(words: Sequence[str], word: str) -> int:
    """The column of that name, which has to be the only one."""
    if words.count(word) > 1:
        raise InvalidInput(
            f"header {','.join(words)}: has {word} {words.count(word)} times; rename or drop all "
            "but the column that is meant"
        )
    return words.index(word)


def _plain_word(name: str) -> str:
    """The name of a column without letter case and punctuation."""
    return re.sub(r"[\W_]", "", name).lower()


# --- what was chosen -----------------------------------------------------------------------------

_TRUE = frozenset({"<", "true", "t", "yes", "left", "arrowleft", "a", "first"})
_FALSE = frozenset({">", "false", "f", "no", "right", "arrowright", "b", "second"})
_EQUAL = ("=", "equal", "tie", "same")
_UNDECIDED = frozenset({"", *_EQUAL, "nab", "nac", "nabc", "na", "nan", "none", "null"})
_FIRST = option("first=0) or nearer.read_triplets(…, first=1", "--first")
# What messages about an answer that cannot be read end with.
_UNDERSTOOD = (
    f"where nobody decided: nothing, or {', '.join(_EQUAL)}; mend it, leave such rows out with "
    f"{option('drop_bad_rows=True', '--drop-bad-rows')}, or name the right columns: "
    + option("columns=", "--columns")
)


@dataclass(frozen=True)
class Written:
    """Choices as a source has them, before objects are numbered."""

    kind: str  # a task of `nearer.Trials`
    objects: NDArray[Any]  # (t, m), of the task "near" the query first; shorter rows end in None
    chosen: NDArray[np.int64]  # for each object shown 0, or 1, or its place among the chosen
    row: Objects  # (t,) the row of the table that each choice comes from
    parts: tuple[str, ...]  # what messages call the columns of `objects`
    ranked: bool = False  # whether the order of the chosen counts
    times: Floats | None = None  # (t,) how often each answer was given; None: once


def read_rows(
    table: Table, parts: Mapping[str, int], form: Form, *, strict: bool, first: int | None
) -> Written:
    """Choices from a table whose columns are the `parts` of a form.

    `strict`: an answer is yes or no, and no object. `first`: where places begin, 0 or 1; None: that
    is found out, where it can only be one.
    """
    objects, times = _objects(table, [parts[part] for part in form.objects]), None
    has_head = form.objects[0] == "head"
    shown, names = objects[:, has_head:], form.objects[has_head:]
    words = [_plain_word(name) for name in table.header]
    columns = [words[parts[part]] if words else "" for part in names]
    if form.said in names:
        chosen = np.tile(np.array([int(part == form.said) for part in names]), (len(table), 1))
        if not has_head:
            chosen[[text in EMPTY for text in table.column(parts[form.said])]] = 0
    else:
        said = table.column(parts[form.said])
        if form.said != "answer":
            chosen = _by_name(table, shown, said, columns)
        elif has_head:
            chosen, times = _of_two(table, objects, said, columns, strict)
        else:
            chosen = _by_name_or_place(table, shown, said, columns, first)
    kind = "near" if has_head else form.kind
    return Written(kind, objects, chosen, np.arange(len(table)), form.objects, times=times)


def _objects(table: Table, columns: Sequence[int]) -> NDArray[Any]:
    """Columns of objects side by side: whole numbers where all are, else texts."""
    found = [table.frame.iloc[:, i] for i in columns]
    if all(column.dtype.kind in "iu" for column in found):
        return np.column_stack([column.to_numpy() for column in found])
    return np.stack([np.array(table.column(i), dtype=object) for i in columns], axis=1)


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
        named = np.tile(np.array(columns, dtype=object), (len(said), 1))
        is_named = _is_among(named, [_plain_word(word) for word in said])
    strange = ~is_named.any(axis=1) & (np.array(said, dtype=object) != "")
    if strange.any():
        rows = np.flatnonzero(strange).tolist()
        raise table.fault(rows[0], _not_shown(said[rows[0]], shown[rows[0]]), rows)
    return is_named.astype(np.int64)


def _not_shown(said: str, shown: Sequence[Any] | NDArray[Any]) -> str:
    return (
        f"{said!r} was chosen but not shown; shown were {', '.join(map(str, shown))}; {_UNDERSTOOD}"
    )


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
    once = bool((times[times > 0] == 1).all())
    return np.column_stack([signs > 0, signs < 0]).astype(np.int64), None if once else times


def _verdicts(table: Table, said: Sequence[str]) -> Floats:
    """How many times a was nearer, below 0 where b was, 0 where nobody decided."""
    words = [word.lower() for word in said]
    worth = dict.fromkeys(_TRUE, 1.0) | dict.fromkeys(_FALSE, -1.0) | dict.fromkeys(_UNDECIDED, 0.0)
    others = [word for word in dict.fromkeys(words) if word not in worth]
    found = pd.to_numeric(pd.Series(others, dtype=object), errors="coerce").tolist()
    numbers = dict(zip(others, map(float, found), strict=True))
    for word, number in numbers.items():
        if number != np.trunc(number):  # also where it is no number
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
    chosen = np.zeros(shown.shape, dtype=np.int64)
    if not given:
        return chosen
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
        from_0 = any(said[row] == "0" for row in given)
        if from_0 == any(int(said[row]) == size[row] for row in given):
            places = ", ".join(sorted({said[row] for row in given}))
            raise table.fault(
                given[0], f"places {places} may be counted from 0 or from 1; say which: {_FIRST}"
            )
        first = 0 if from_0 else 1
    for row in given:
        place = int(said[row]) - first if said[row].isdecimal() else -1
        if not 0 <= place < size[row]:
            rule = f"must be a place from {first} to {size[row] - 1 + first}"
            raise table.fault(row, f"the answer {said[row]!r}: {rule}")
        chosen[row, place] = 1
    return chosen


def _sizes(shown: NDArray[Any]) -> Objects:
    """How many objects each row shows; shorter rows end in None."""
    return np.asarray((shown != np.array(None)).sum(axis=1), dtype=np.int64)


# --- screens -------------------------------------------------------------------------------------

_ASSET = re.compile(r"([0-9A-Z]{5})([0-9A-Z]{7})")
Record = dict[str, Any]


class _Screen(NamedTuple):
    """One choice of a record: `chosen` is None where nobody could decide."""

    query: Any
    shown: list[Any]
    chosen: list[Any] | None
    ranked: bool = False


def screen_form(header: Sequence[str]) -> Form | None:
    """The form of a table of screens, whose parts are the fields that tell it; None: it is none."""
    fields = next((fields for fields in SCREENS if set(fields) <= set(header)), None)
    return None if fields is None else Form("screens", fields, fields[-1])


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
    screens, rows = _screens(table, fields)
    is_jspsych = fields[0] == "stimulus"
    alone = kind in ("odd-one-out", "most-central") and fields[0] in ("stimulus", "query")
    if is_jspsych and kind == "auto":
        _refuse_words_of_the_question(table, screens)
    width = max(len(screen.shown) for screen in screens)
    lists = [[screen.query, *screen.shown] for screen in screens]
    texts = [[*map(text_of, row), *[None] * (1 + width - len(row))] for row in lists]
    objects = np.array(texts, dtype=object)[:, alone:]
    shown = objects[:, not alone :]
    ranked = False
    if is_jspsych:
        said = [text_of((screen.chosen or [""])[0]) for screen in screens]
        if first is None and not all(
            word in row for word, row in zip(said, shown, strict=True) if word not in EMPTY
        ):
            first = 0  # a button, which jsPsych counts from 0
        chosen = _by_name_or_place(table, shown, said, [""] * width, first)
    else:
        chosen, ranked = _places(table, screens, rows, shown)
    count, size = (chosen > 0).sum(axis=1), _sizes(shown)
    bad = np.flatnonzero((size < (3 if alone else 2)) | (count >= size))
    if len(bad):
        raise table.fault(
            int(rows[bad[0]]),
            f"{count[bad[0]]} of {size[bad[0]]} chosen: some and not all must be chosen, of two or "
            "more, and one of three or more where it is the odd or the central one",
            np.unique(rows[bad]).tolist(),
        )
    parts = ("query", *["shown"] * width)[alone:]
    return Written(kind if alone else "near", objects, chosen, rows, parts, ranked)


def _screens(table: Table, fields: tuple[str, ...]) -> tuple[list[_Screen], Objects]:
    """The screens of all records, and the row of each."""
    screens: list[_Screen] = []
    rows: list[int] = []
    for at, record in enumerate(table.records()):
        try:
            found = _RECORDS[fields[0]](record)
        except BadRow as fault:
            raise table.fault(at, str(fault)) from None
        except (TypeError, ValueError, KeyError, AttributeError):
            what = f"{str(record)[:80]} cannot be read as {', '.join(fields)}; mend it"
            raise table.fault(at, what) from None
        screens += found
        rows += [at] * len(found)
    if not screens:
        raise InvalidInput(f"{table.name}: holds no answer; at least one is needed")
    return _by_number(screens) if fields[0] == "interactions" else screens, np.array(rows)


def _refuse_words_of_the_question(table: Table, screens: Sequence[_Screen]) -> None:
    """A stimulus that all screens have may be an object or the question."""
    asked = {text_of(screen.query) for screen in screens}
    objects = {text_of(x) for screen in screens for x in screen.shown}
    if len(screens) > 1 and len(asked) == 1 and not asked & objects:
        raise table.unclear(
            0,
            f"all {len(screens)} records have the stimulus {min(asked)[:40]!r}, which may be an "
            "object or the words of the question; where the response is what is most like it, say "
            + option("kind='answers'", "--kind answers")
            + ", where it is the odd one, "
            + option("kind='odd-one-out'", "--kind odd-one-out"),
        )


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
        objects = shown[i, : len(screen.shown)].tolist()
        for place, x in enumerate(map(text_of, screen.chosen or []), start=1):
            if x not in objects:
                raise table.fault(int(row[i]), _not_shown(x, objects))
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
    return [s for x, v in zip(two, votes, strict=True) for s in [_Screen(head, two, [x])] * v]


_RECORDS: dict[str, Callable[[Record], list[_Screen]]] = {
    "query": _grid,
    "stimulus": _jspsych,
    "interactions": _psiz,
    "answers": _votes,
}


def _by_number(screens: list[_Screen]) -> list[_Screen]:
    """Stimuli by their numbers, where all are assets of one set as psiz calls them."""
    assets = [_ASSET.fullmatch(str(x)) for s in screens for x in [s.query, *s.shown]]
    if not all(assets) or len({a[1] for a in assets if a}) != 1:
        return screens

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
