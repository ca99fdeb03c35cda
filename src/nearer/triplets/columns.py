"""Find which column of a table is which part of an answer, and what was chosen in each row.

docs/files.md lists the forms. `_WORDS` has the column names of each *part*, without letter case and
punctuation, and `_FORMS` the parts of each kind of answer.

An answer names the object that was chosen, or its column (``left``), or its place among the shown,
counted from 0 or from 1. Of two objects it may also say whether the first is nearer: true or false,
1 or 0, 1 or −1 (cblearn's counts: k or −k for k equal answers), ``<`` or ``>``. Each of these is
one *reading* of the column. The first that explains every row is used; if another also explains
every row, with other answers, an error asks the user to decide.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import BadRow, InvalidInput
from nearer.files import refuse_larger
from nearer.questions import Floats
from nearer.triplets.table import EMPTY, SCREENS, Table, plain_word, text_of


def option(python: str, flag: str) -> str:
    """An option of reading as messages name it, for the library and for the command."""
    return f"nearer.read_triplets(…, {python}) or {flag}"


def columns_option(parts: Mapping[str, str | int]) -> str:
    """The option that says which column is which part."""
    typed = ",".join(f"{part}={column}" for part, column in parts.items())
    return option(f"columns={dict(parts)}", f"--columns {shlex.quote(typed)}")


_WORDS = {
    part: words.split()
    for part, words in {
        "head": "head center centre target anchor reference",
        "near": "winner near nearer closer close primary positive",
        "far": "loser far farther alternate negative",
        "a": "left links option1 optiona",
        "b": "right rechts option2 optionb",
        "chosen": "chosen selected",
        "answer": "answer response choice cmp comparison outcome y antwort wahl",
        "odd": "odd oddone oddoneout",
        "central": "chosencenter chosencentre central mostcentral",
        "person": "puid pid worker participant person subject sub subj user rater session anonymous"
        " agent prolific versuchsperson vp teilnehmer proband",
        "weight": "weight count",
        "excluded": "excluded exclude",
        "taken_back": "takenback",
        "seconds": "seconds rtseconds responsetimeseconds",
        "ms": "ms rtms milliseconds responsetimems responsems",
        "time": "rt responsetime reactiontime reaktionszeit keyresprt",
        "item": "item object tripletobject image img picture bild stimulus stim option",
    }.items()
}
_WORDS["person"] = [word + end for word in _WORDS["person"] for end in ("", "id", "pid")]
_ITEMS = _WORDS.pop("item")
_WORDS |= {f"item{i}": [word + i for word in _ITEMS] for i in "123"}
# What a row may say beside its answer.
BESIDE = ("person", "weight", "seconds", "ms", "time", "excluded", "taken_back")
_LETTERS = (("head", "a", "b"), ("head", "b", "c"), ("a", "b", "c"), ("i", "j", "k"))
_NAME_ENDS = ("filename", "name", "label", "html")  # the first that is there wins
_KINDS = ("triplets", "answers", "odd-one-out", "most-central")
_ODD = option("kind='odd-one-out'", "--kind odd-one-out")
_ASSUMED = {
    "triplets": "there is no header: each row is read as head, near, far. If the third is the odd "
    f"one out, as in files of THINGS, SPoSE and VICE, use {_ODD}",
    "answers": "there is no header: each row is read as head, a, b, and whether a is nearer. "
    f"If the last is the odd one of three, use {_ODD}",
    "odd-one-out": "the choice is read as the odd one out. If it is the most central one, use "
    + option("kind='most-central'", "--kind most-central"),
}
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


@dataclass(frozen=True)
class Options:
    """How a file is to be read; see `nearer.read_triplets`."""

    kind: str = "auto"
    header: bool | str = "auto"
    objects: str = "auto"
    labels: Sequence[str] | None = None
    columns: Mapping[str, str | int] | None = None
    drop_bad_rows: bool = False
    first: int | None = None

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, ("auto", *_KINDS))
        checks.one_of("objects", self.objects, ("auto", "numbers", "names"))
        checks.one_of("header", self.header, (True, False, "auto"))
        checks.one_of("drop_bad_rows", self.drop_bad_rows, (True, False))
        rule = "the column of each part, such as {'head': 'ref', 'near': 'same', 'far': 'other'}"
        checks.one("columns", self.columns, Mapping | None, rule)
        if self.first is not None:
            checks.whole("first", self.first, least=0, most=1, rule="where places begin")


class Form(NamedTuple):
    """One way to write down an answer in columns."""

    kind: str
    objects: tuple[str, ...]  # the parts that hold objects, a head first
    said: str  # the part that says which was chosen, or the column of that object
    order: tuple[str, ...] = ()  # of columns without names; none: they are read in another way

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that a table of this form must have."""
        return self.objects if self.said in self.objects else (*self.objects, self.said)


_THREE = ("item1", "item2", "item3")
_TWO = ("item1", "item2")
_FORMS = (
    Form("odd-one-out", _THREE, "odd", (*_THREE, "odd")),
    Form("odd-one-out", (*_TWO, "odd"), "odd", (*_TWO, "odd")),
    Form("odd-one-out", _THREE, "answer"),
    Form("odd-one-out", _THREE, "chosen"),
    Form("most-central", _THREE, "central", (*_THREE, "central")),
    Form("most-central", (*_TWO, "central"), "central", ("central", *_TWO)),
    Form("most-central", _THREE, "answer"),
    Form("most-central", _THREE, "chosen"),
    Form("answers", ("head", "a", "b"), "chosen"),
    Form("answers", ("head", "a", "b"), "answer", ("head", "a", "b", "answer")),
    Form("triplets", ("head", "near", "far"), "near", ("head", "near", "far")),
)


def _form_of(parts: Iterable[str], kind: str = "auto") -> Form | None:
    """The form of a table with these parts, or None if they are no answer."""
    have = set(parts)
    # Beside a triplet or a central one, a column called "choice" is not the odd one of three.
    if {"head", "near", "far"} <= have or "central" in have:
        have -= {"answer", "chosen"}
    fitting = (form for form in _FORMS if kind in ("auto", form.kind) and have >= {*form.parts})
    return next(fitting, None)


def _only(source: str, words: Sequence[str], word: str) -> int:
    """The column of that name; an error if there are several."""
    if words.count(word) > 1:
        what = f"header {','.join(words)[:200]} has {word} {words.count(word)} times"
        raise InvalidInput(f"{source}: {what}; rename or drop all but one")
    return words.index(word)


def by_name(source: str, header: Sequence[str]) -> dict[str, int]:
    """The parts that the words of a source's header give, part to column."""
    words = [plain_word(name) for name in header]
    parts = {
        part: _only(source, words, word)
        for part, known in _WORDS.items()
        if (word := next((w for w in known if w in words), None)) is not None
    }
    for middle in [word for word in ("middle", "mitte") if word in words]:
        if {"a", "b"} <= parts.keys():  # three on a screen, none the head
            parts |= {"item1": parts.pop("a"), "item2": _only(source, words, middle)}
            parts["item3"] = parts.pop("b")
    answered = "chosen" in parts or "answer" in parts
    if "near" not in parts and "a" not in parts:
        for letters in _LETTERS:
            if set(letters) <= set(words) and (answered or letters != ("head", "a", "b")):
                three = ("head", "a", "b") if answered else ("head", "near", "far")
                parts |= {p: _only(source, words, x) for p, x in zip(three, letters, strict=True)}
                break
    if "near" in parts and "far" not in parts and "a" in parts:
        parts["chosen"] = parts.pop("near")
    return parts


def by_choice(
    source: str, columns: Mapping[str, str | int], header: Sequence[str], width: int
) -> dict[str, int]:
    """The parts as the user names them, by column name or position."""
    parts = {}
    for part, column in columns.items():
        if part not in _WORDS:
            raise InvalidInput(f"columns: {part!r} is no part; parts are {', '.join(_WORDS)}")
        if column not in (header if isinstance(column, str) else range(width)):
            there = ", ".join(header) or "without names"
            what = f"columns: {part}={column!r}, but the columns are {there}"
            raise InvalidInput(f"{what}; use one of them or a position from 0 to {width - 1}")
        parts[part] = _only(source, header, column) if isinstance(column, str) else column
    return parts


def layout(table: Table, options: Options) -> tuple[Table, dict[str, int], Form]:
    """The table without its header, the parts of its columns, and their form."""
    may_be_named = table.has_header is None and options.header is not False
    named = table.with_header() if may_be_named else table
    fields = next((fields for fields in SCREENS if {*fields} <= {*named.header}), None)
    if fields is not None and options.columns is None:
        known = by_name(table.name, named.header)
        beside = {part: known[part] for part in BESIDE if part in known}
        if fields[0] == "stimulus" and "time" in beside:
            beside["ms"] = beside.pop("time")  # jsPsych measures in milliseconds
        return named, beside, Form("screens", fields, fields[-1])
    if may_be_named:
        table = _with_header(table, options)
    names = [name if isinstance(name, str) else "" for name in table.frame.columns]
    known = by_name(table.name, names)
    beside = {part: i for part, i in known.items() if part in BESIDE}
    if options.columns is not None:
        known = known if set(options.columns) <= set(BESIDE) else beside
        known |= by_choice(table.name, options.columns, table.header, table.width)
    elif not table.header:
        width = names.count("")
        default = "answers" if width == 4 else "triplets"
        meant = default if options.kind == "auto" else options.kind
        orders = (form.order for form in _FORMS if form.kind == meant)
        order = next((order for order in orders if len(order) == width), ())
        known = beside | {part: i for i, part in enumerate(order)}
    form = _form_of(known, options.kind)
    if form is not None and form.said == "answer" and _has_no_head(table, known):
        for part, column in zip(_THREE, sorted(known.pop(x) for x in form.objects), strict=True):
            known[part] = column
        form = _form_of(known, options.kind)
    if form is None:
        there = ", ".join(table.header[:12]) or f"1 to {table.width} without a known header"
        rule = "needed are head + near + far or another form, apart by commas, tabs or semicolons"
        remedy = f"name the columns: {_suggested(table, options.kind)}"
        raise InvalidInput(f"{table.name}: columns {there} make no answer; {rule}; {remedy}")
    return table, {p: known[p] for p in (*form.parts, *BESIDE) if p in known}, form


def _has_no_head(table: Table, known: Mapping[str, int]) -> bool:
    """Whether answers choose among three objects, such as the third of left, center, right."""
    if not table.header or not {"head", "a", "b"} <= known.keys():
        return False
    three = [known[part] for part in ("head", "a", "b")]
    words = [plain_word(table.header[i]) for i in three]
    if words[0] not in ("center", "centre", *"abci"):
        return False
    texts = {text for text in table.column(known["answer"]) if text not in EMPTY}
    named = {plain_word(text) for text in texts}
    if words[0] in named and named <= set(words):
        return True
    numbered = any(text.isdecimal() for i in three for text in table.column(i))
    return texts in ({"0", "1", "2"}, {"1", "2", "3"}) and not numbered


def _with_header(table: Table, options: Options) -> Table:
    """The table with its first row, or the comment above it, as the header if it is one."""
    first, known = table.first_row(), by_name(table.name, table.first_row())
    below = {text_of(x).strip() for x in table.frame.iloc[1:, :3].to_numpy().ravel()}
    occurs = bool(set(first[:3]) & below)
    named = None
    if options.header is not True and table.comment is not None:
        if _form_of(by_name(table.name, table.comment), options.kind) is None:
            rule = "may be a header, a comment or an answer; take out the # and say which: "
            rule += option("header=True) or nearer.read_triplets(…, header=False", "--no-header")
            raise InvalidInput(f"{table.name}: line '#{','.join(table.comment)}' {rule}")
        named = table.with_header(table.comment)
    elif (
        options.header is True
        or _form_of(known, options.kind) is not None
        or any(column in first for column in (options.columns or {}).values())
        or (len(known) > 1 and not occurs)
    ):
        named = table.with_header()
    elif len(first) > 1 and not occurs and not all(x.lstrip("-").isdecimal() for x in first[:3]):
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what: "
            + _suggested(table.with_header(), options.kind)
            + f"; if it is an answer, {option('header=False', '--no-header')}",
        )
    if named is not None and not len(named):
        raise InvalidInput(f"{table.name}: has a header and no rows; add answered questions")
    return table if named is None else named


def _suggested(table: Table, kind: str) -> str:
    """The option that names the columns, for the order in which most tables have them."""
    beside = [i for part, i in by_name(table.name, table.header).items() if part in BESIDE]
    columns = [table.called(i) for i in range(table.width) if i not in beside]

    def says(*parts: str) -> str:
        return columns_option(dict(zip(parts, columns[-len(parts) :], strict=True)))

    if len(columns) < 3:
        return option("columns=", "--columns")
    if len(columns) > 3 and kind != "triplets":
        answer, chosen = says("head", "a", "b", "answer"), says(*_THREE, "answer")
        if kind != "auto":
            return answer if kind == "answers" else chosen
        return f"{chosen}; if the first of these is the head: {answer}"
    odd = says("item1", "item2", "central" if kind == "most-central" else "odd")
    if kind in ("odd-one-out", "most-central"):
        return odd
    return f"{says('head', 'near', 'far')}; if the third is the odd one: {odd}"


def assumed(table: Table, parts: Mapping[str, int], form: Form, options: Options) -> str:
    """What was assumed because the source does not say it."""
    if options.kind != "auto" or options.columns is not None or form.kind == "screens":
        return ""
    if not table.header:
        # a table of numbers and nothing else
        is_plain = table.object_names is None and table.frame.columns[-1] == len(form.order) - 1
        return _ASSUMED[form.kind] if is_plain else ""
    if form.kind == "odd-one-out" and form.said in ("answer", "chosen"):
        return _ASSUMED[form.kind]
    three = ("head", "near", "far") if "near" in parts else ("head", "a", "b")
    names = [table.header[parts[part]] for part in three if part in parts]
    words = tuple(map(plain_word, names))
    if words == three or words not in _LETTERS:
        return ""
    return (
        f"columns {', '.join(names)} are read as {', '.join(three)}. If they are something "
        "else, use " + columns_option({"item1": names[0], "item2": names[1], "odd": names[2]})
    )


def name_columns(table: Table, form: Form) -> dict[int, int]:
    """The columns with names of head (0), near (1), far (2), or of tripletTools Right (3)."""
    words = [plain_word(name) for name in table.header if form.kind == "triplets"]
    for end in _NAME_ENDS:
        starts = [(0, "head"), (1, "near"), (1, "winner"), (2, "far"), (2, "loser")]
        named = {part: words.index(x + end) for part, x in starts if x + end in words}
        if named:
            return named
    wanted = ("center", "answer", "left", "right")
    return dict(enumerate(map(words.index, wanted))) if {*wanted} <= {*words} else {}


# --- what was chosen -----------------------------------------------------------------------------


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
        what = f"{fault}; if one of three is chosen and none is the head: {named}"
        raise BadRow(what, fault.rows) from None
    is_count = which is readings.get(_VERDICT) and bool((times > 1).any())
    one = (which[:, None] == np.arange(shown.shape[1])).astype(np.int64)
    return Choices(kind, objects, one, form.objects, times=times if is_count else None)


def _decided(said: Words, objects: Cells) -> list[str]:
    """The answers, with "" for a word that means undecided and is none of the objects."""
    strange = {word for word in set(said) if word.lower() in _UNDECIDED or word in EMPTY}
    strange -= set(map(str, objects.ravel())) if strange else set()
    return ["" if word in strange else word for word in said]


def _plain(values: Cells | Sequence[str]) -> Cells:
    """Texts to compare, without the .0 that pandas adds to whole numbers beside gaps."""
    array = np.asarray(values)
    texts = [text if text is None else str(text).removesuffix(".0") for text in array.ravel()]
    return np.array(texts, dtype=object).reshape(array.shape)


def _reading(alternatives: Cells, words: Cells, said: Words) -> Numbers:
    """Which of ``(t, m)`` or ``(m,)`` alternatives each word is; m: none, −1: unexplained."""
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
    """Which of two was nearer, and how many times; numbers are counts if one is below 0."""
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
    """The reading that explains all rows; an error if none does, or if two disagree."""
    complete = {what: which for what, which in readings.items() if (which >= 0).all()}
    if not complete:
        best = max(readings.values(), key=lambda which: (which >= 0).sum())
        rows = np.flatnonzero(best < 0).tolist()
        there = [str(x) for x in shown[rows[0]] if x is not None]
        remedy = "" if table.header else _suggested(table, "auto")
        raise table.fault(rows[0], _not_shown(said[rows[0]], there, remedy), rows)
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


def _not_shown(said: str, shown: Words, columns: str = "") -> str:
    """The message about an answer that cannot be read."""
    columns = columns or option("columns=", "--columns")
    return (
        f"{said!r} was chosen but not shown; shown were {', '.join(shown)}; an answer is one of "
        "these, its column or its place, or, of two, true or false, 1 or 0, 1 or -1, < or >; if "
        f"undecided, nothing or one of {', '.join(_EQUAL)}; mend it, leave such rows out with "
        f"{option('drop_bad_rows=True', '--drop-bad-rows')}, or name the right columns: {columns}"
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
    """The table with one row a choice, its `Screen` in the last column; rows of other pages."""
    screens: list[Screen] = []
    rows: list[int] = []
    pages: list[int] = []
    faults: dict[int, str] = {}
    names = table.header
    for row, values in enumerate(table.frame.itertuples(index=False, name=None)):
        record = dict(zip(names, values, strict=True))
        try:
            # A record without a field is another page; null is a value.
            is_page = any(isinstance(record[f], float) and math.isnan(record[f]) for f in fields)
            own = [] if is_page else _SCREENS[fields[0]](record)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            what = f"{str(record)[:80]} cannot be read as {', '.join(fields)}; mend it"
            faults[row] = str(error) if isinstance(error, InvalidInput) else what
            continue
        pages += [] if own else [row]
        screens += own
        rows += [row] * len(own)
        refuse_larger(table.name, 64 * len(rows))  # as many answers take more in a file of triplets
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
    refuse_larger(table.name, 8 * len(screens) * width)
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
    refuse_larger(table.name, 24 * int(count @ size))  # a triplet of each chosen and each other
    bad = np.flatnonzero((size < (3 if alone else 2)) | (count >= size)).tolist()
    if bad:
        rule = "some and not all must be chosen, of two or more; one of three if odd or central"
        raise table.fault(bad[0], f"{count[bad[0]]} of {size[bad[0]]} chosen: {rule}", bad)
    if tool == "interactions":
        objects = _by_number(objects)
    parts = ("query", *["shown"] * width)[alone:]
    return Choices(kind if alone else "near", objects, chosen, parts, ranked)


def _ranks(table: Table, screens: Sequence[Screen], width: int) -> tuple[Numbers, bool]:
    """The place of each shown object among the chosen, and whether their order counts."""
    orders = {screen.ranked for screen in screens if len(screen.chosen) > 1}
    if len(orders) > 1:
        rule = "some screens are ranked and some are not; write them to two files"
        raise InvalidInput(f"{table.name}: {rule}")
    ranked = orders == {True}
    places = np.zeros((len(screens), width), dtype=np.int64)
    for row, screen in enumerate(screens):
        columns = {x: i for i, x in enumerate(screen.shown)}
        for place, x in enumerate(screen.chosen, start=1):
            if x not in columns:
                raise table.fault(row, _not_shown(x, screen.shown))
            places[row, columns[x]] = place if ranked else 1
    return places, ranked


def _refuse_words_of_the_question(table: Table, screens: Sequence[Screen]) -> None:
    """Refuse a stimulus that all screens have: it may be an object or the question."""
    asked = {screen.query for screen in screens}
    objects = {x for screen in screens for x in screen.shown}
    if len(screens) > 1 and len(asked) == 1 and not asked & objects:
        alike, odd = (
            option(f"kind={kind!r}", f"--kind {kind}") for kind in ("answers", "odd-one-out")
        )
        what = f"all {len(screens)} records have the stimulus {min(asked)[:40]!r}"
        why = f"{what}, which may be an object or the words of the question"
        remedy = f"if the response is most like it, use {alike}; if it is the odd one, {odd}"
        raise table.unclear(0, f"{why}; {remedy}")


def _by_number(objects: Cells) -> Cells:
    """Stimuli by their numbers, if all are assets of one set of psiz."""
    names = {x for x in objects.ravel() if x is not None}
    assets = [_ASSET.fullmatch(name) for name in names]
    if len({asset[1] if asset else None for asset in assets}) != 1 or None in assets:
        return objects
    numbers = {name: str(int(name[5:], 36)) for name in names}
    return np.array([[numbers.get(x) for x in row] for row in objects], dtype=object)


# Each returns no screen if the record is another page or another task.
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
    counts = [v for v in votes if type(v) is int and 0 <= v <= 10_000]
    if len(two) != 2 or len(votes) != 2 or len(counts) != 2:
        rule = "must be (head, a, b) and two counts of votes from 0 to 10,000, for a and for b"
        raise InvalidInput(f"answers {[head, *two]} with agreement {votes}: {rule}")
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
