"""Read triplets and trials from any file.

The reader finds out the separator, the header, the kind of answer and whether objects are named
or numbered, and refuses to guess where two readings are possible: then it says on which line, and
which option decides. Nothing is dropped without a warning and a place in the report, and what had
to be assumed is in the report, too.

*Columns.* Most tables have one column for each *part* of an answer, such as head, near and far.
`_WORDS` lists what columns are called, letter case and punctuation aside, and `_FORMS` which parts
make which kind of answer. These are the words of Salmon, of tripletTools and of the published
survey files. ``left, middle, right`` are item1 to item3; ``winner`` without a loser is what was
chosen; ``weight`` says how many times an answer was given, and rows with 1 or true in ``excluded``
or ``taken_back`` are left out. Three lone letters, ``a,b,c`` or ``i,j,k``, are head, near and far,
or with an answer beside them head and the two that are compared.

*Choices.* What was chosen is said by the object itself, by the name of its column (``left``), by
its place among the shown, counted from 0 or from 1, or, of two, by whether the first is nearer:
true or false, 1 or 0, 1 or −1 (cblearn's counts: k or −k for k equal answers), ``<`` or ``>``
between the distances head–a and head–b. ``=``, ``equal``, ``tie``, ``same`` and the paper authors'
``nab``, ``nac`` and ``nabc`` are undecided.

*Objects* are named or numbered. Numbers stay: object 7 of the file is object 7 here, so that
results line up with what else the user has about it, and a number that never occurs is an object
that was never compared. Names are put in alphabetical order, or in numerical order where all of
them are whole numbers. What R, pandas and JSON write for a missing value (``NA``, ``nan``,
``null`` …) is no object, unless labels list it.

*Times* are in the unit that the name of their column says; where it says none, as ``rt``, a median
below 60 means seconds, since nobody answers within 60 milliseconds.
"""

from __future__ import annotations

import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer import checks
from nearer.checks import amount
from nearer.errors import BadRow, DroppedRows, InvalidInput
from nearer.questions import MAX_OBJECTS, Floats, Objects
from nearer.trials import Report, Trials, Triplets, examine
from nearer.triplets.table import (
    EMPTY,
    Screen,
    Table,
    load_table,
    screen_fields,
    text_of,
    with_screens,
)

__all__ = [
    "Report",
    "Triplets",
    "by_choice",
    "by_name",
    "distinct_labels",
    "examine",
    "read_trials",
    "read_triplets",
    "sorted_names",
]


Kind = Literal["auto", "triplets", "answers", "odd-one-out", "most-central"]
_MOST_BAD = 1000  # faults after which the file is read in a wrong way rather than a bad file
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")


def _option(python: str, flag: str) -> str:
    """An option of reading as messages name it, for the library and for the command."""
    return f"nearer.read_triplets(…, {python}) or {flag}"


def _columns_option(parts: Mapping[str, str | int]) -> str:
    """The option that says which column is which part."""
    typed = ",".join(f"{part}={column}" for part, column in parts.items())
    return _option(f"columns={dict(parts)}", f"--columns {shlex.quote(typed)}")


_ODD = _option("kind='odd-one-out'", "--kind odd-one-out")
_DROP = _option("drop_bad_rows=True", "--drop-bad-rows")
_AS_NAMES = _option('objects="names"', "--names")
_ASSUMED = {
    ("triplets", 3): "there is no header: each row is taken as head, near, far. Where the third is "
    f"the odd one out, as in files of THINGS, SPoSE and VICE, say so: {_ODD}",
    ("answers", 4): "there is no header: each row is taken as head, a, b, and whether a is nearer. "
    f"Where the last is the odd one of three, say so: {_ODD}",
}
_ASSUMED_ODD = "the choice is taken as the odd one out. Where it is the most central one, say so: "
_ASSUMED_ODD += _option("kind='most-central'", "--kind most-central")


@dataclass(frozen=True)
class _Options:
    """How a file is to be read; see `read_triplets`."""

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
        if not isinstance(self.header, bool) and self.header != "auto":
            raise InvalidInput(f"header={self.header!r}: must be True, False or 'auto'")
        if not isinstance(self.drop_bad_rows, bool):
            raise InvalidInput(f"drop_bad_rows={self.drop_bad_rows!r}: must be True or False")
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InvalidInput(
                f"columns={self.columns!r}: must say which column is which part, for example "
                '{"head": "ref", "near": "same", "far": "other"}'
            )
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
        if self.first is not None:
            checks.whole("first", self.first, least=0, most=1, rule="where places begin")


def read_triplets(
    path: str | os.PathLike[str] | Any,
    *,
    kind: Kind = "auto",
    header: bool | Literal["auto"] = "auto",
    objects: Literal["auto", "numbers", "names"] = "auto",
    labels: Sequence[str] | None = None,
    columns: Mapping[str, str | int] | None = None,
    drop_bad_rows: bool = False,
    first: int | None = None,
) -> Triplets:
    r"""Read answered questions from a table or a NumPy file.

    Parameters
    ----------
    path
        Text with commas, tabs, semicolons or spaces between its columns; Excel; Parquet, a file or
        a folder (extra ``nearer[parquet]``); ``.npy`` or ``.npz``; JSON or lines of JSON with the
        same fields, or with screens (grids, jsPsych, psiz, votes: see
        `nearer.triplets.table`); psiz's HDF5 (extra ``nearer[hdf5]``); any of them
        compressed as ``.gz``, ``.xz`` or ``.bz2``. Also a pandas or polars frame, whose
        columns
        have names.
    kind
        ``"triplets"`` (head, near, far: Salmon's head, winner, loser, cblearn's list-order),
        ``"answers"`` (head, two objects, and which of them: tripletTools' Center, Left, Right,
        Answer, cblearn's questions with responses, lines ``a,b,c,<``), ``"odd-one-out"`` or
        ``"most-central"``. ``"auto"`` goes by the column names; without a header by their number,
        three being triplets and four answers, which the report then says.
    header
        Whether the first row names the columns.
    objects
        Whether the values of object columns are the objects' ``"numbers"``, counted from 0 and
        kept as they are, or ``"names"``, also where these look like numbers.
    labels
        What objects 0 … n−1 are called. Needed where objects exist that the file never names.
    columns
        Which column, by name or position, is which part: ``{"head": "ref", "near": "same",
        "far": "other"}``. Parts are head, near, far; head, a, b and chosen or answer; item1 to
        item3 and odd, central or answer; person, weight, seconds, ms, excluded, taken_back. Where
        only some of the last six are named, the others go by the names of their columns.
    drop_bad_rows
        Whether rows that cannot be read are left out, counted and listed, instead of refused.
    first
        Whether an answer that is a place among the shown counts from 0 or from 1; needed only where
        the file leaves both open.

    Returns
    -------
    Triplets
        The triplets as a view of the trials that were read, and a report.

    Warns
    -----
    nearer.errors.DroppedRows
        Where rows say nothing (an object occurs twice in the question, nobody decided). The report
        names their lines.

    Examples
    --------
    >>> import nearer, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("Center,Left,Right,Answer\nape,bee,cat,cat\nbee,ape,cat,ape\n")
    >>> answers = nearer.read_triplets(file)
    >>> answers.triplets
    array([[0, 2, 1],
           [1, 0, 2]])
    >>> answers.labels
    ('ape', 'bee', 'cat')
    >>> print(answers.report)
    2 answers, 2 triplets over 3 objects
    """
    options = _Options(kind, header, objects, labels, columns, drop_bad_rows, first)
    return _read(path, options)


def read_trials(
    path: str | os.PathLike[str] | Any, *, first: int | None = None, **how: Any
) -> Trials:
    r"""Read choices with what was shown, by whom and how long they took.

    Parameters
    ----------
    path
        Any file or frame that `nearer.read_triplets` reads; triplets become comparisons.
    first
        Whether places of an odd one out, or of a response, count from 0 or from 1; needed only
        where the file leaves both open.
    **how
        The other options of `nearer.read_triplets`.

    Returns
    -------
    Trials
        Objects that are not numbers from 0 get numbers in the order of their names.

    Examples
    --------
    >>> import nearer, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "screens.jsonl"
    >>> _ = file.write_text('{"query": "ape", "shown": ["bee", "cat", "dog"], "chosen": ["dog"]}\n')
    >>> trials = nearer.read_trials(file)
    >>> trials.names, trials.triplets()[0].tolist()
    (('ape', 'bee', 'cat', 'dog'), [[0, 3, 1], [0, 3, 2]])
    """
    return _read(path, _Options(first=first, **how)).trials


def _read(path: Any, options: _Options) -> Triplets:
    table = load_table(path)
    if table.ragged and not options.drop_bad_rows:
        table.refuse_ragged()
    if table.has_header is False and (options.columns is not None or options.header is False):
        raise InvalidInput(
            f"{table.name}: has no header and no columns by name; columns= and header= (--columns, "
            "--no-header) are for tables, leave them out"
        )
    if table.object_names is not None and options.labels is None:
        options = replace(options, objects="numbers", labels=table.object_names)
    table, parts, form = _layout(table, options)
    left_out = {"bad": list(table.ragged)}
    table = _without_excluded(table, parts, left_out)
    if form.kind == "screens":
        drop = options.drop_bad_rows
        all_lines = table.lines
        table, pages, bad = with_screens(table, form.parts, drop_bad_rows=drop)
        left_out["bad"] += all_lines[bad].tolist()
        left_out["others"] = all_lines[pages].tolist()
    faults = 0
    while True:
        try:
            trials, known = _trials(table, parts, form, options)
            break
        except BadRow as fault:
            faults += 1
            if not options.drop_bad_rows or faults > _MOST_BAD or len(fault.rows) == len(table):
                raise
            left_out["bad"] += table.lines[fault.rows].tolist()
            table = table.without(fault.rows)
    known["rows"] += len(left_out["bad"])
    known |= {what: sorted(lines) for what, lines in left_out.items()}
    known |= {"assumed": _assumed(table, parts, form, options), "unit": table.unit}
    labels = tuple(map(str, trials.names or range(trials.n_objects)))
    unread = _unread(table, parts, form, options)
    report = examine(trials.triplets()[0], labels, unread_columns=unread, **known)
    for why, lines in (
        ("an object is named twice", report.degenerate),
        ("nobody decided", report.undecided),
        ("could not be read", report.bad),
    ):
        if lines:
            warnings.warn(
                f"left out, {why}: {len(lines):,} of {amount(report.rows, 'answer')}, the first "
                f"on {report.unit} {min(lines)}; the report lists them",
                DroppedRows,
                stacklevel=3,
            )
    return Triplets(trials, report)


# --- which column is what -------------------------------------------------------------------------


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
    "excluded": ("excluded",),
    "taken_back": ("takenback",),
    "seconds": ("seconds", "rtseconds", "responsetimeseconds"),
    "ms": ("ms", "rtms", "milliseconds", "responsetimems", "responsems"),
    "time": ("rt", "responsetime", "reactiontime", "keyresprt"),
    **{
        f"item{i}": [word + i for word in ("item", "object", "tripletobject", "image", "stimulus")]
        for i in "123"
    },
}
# What a row may say beside its answer.
_BESIDE = ("person", "weight", "seconds", "ms", "time", "excluded", "taken_back")
_LETTERS = (("head", "a", "b"), ("head", "b", "c"), ("a", "b", "c"), ("i", "j", "k"))
_NAME_ENDS = ("filename", "name", "label", "html")  # the first that is there wins


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
_FORMS = (
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
_KINDS = ("triplets", "answers", "odd-one-out", "most-central")


def _form_of(parts: Iterable[str], kind: str = "auto") -> Form | None:
    """The form of a table with these parts, or None where they make no answer."""
    have = set(parts)
    # Beside a triplet or a central one, a column called "choice" is not the odd one of three.
    stated = {"head", "near", "far"} <= have or "central" in have
    for form in _FORMS:
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


def _by_position(kind: str, width: int) -> dict[str, int]:
    """The parts of a table without header; ``kind`` may be ``"auto"``."""
    if kind == "auto":
        kind = "answers" if width == 4 else "triplets"
    orders = sorted((f.order for f in _FORMS if f.kind == kind and f.order), key=len)
    parts = next((order for order in orders if len(order) == width), None)
    if parts is None:
        raise InvalidInput(
            f"{width} columns without a known header: {kind} need "
            + " or ".join(", ".join(order) for order in orders)
            + "; say which is which: "
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


def _layout(table: Table, options: _Options) -> tuple[Table, dict[str, int], Form]:
    """The table with its header split off, what its columns are, and their form."""
    may_be_named = table.has_header is None and options.header is not False
    named = table.with_header() if may_be_named else table
    fields = screen_fields(named.header) if options.columns is None else None
    if fields is not None:
        known = by_name(named.header)
        beside = {part: known[part] for part in _BESIDE if part in known}
        if fields[0] == "stimulus" and "time" in beside:
            beside["ms"] = beside.pop("time")  # jsPsych measures in milliseconds
        return named, beside, Form("screens", fields, fields[-1])
    if may_be_named:
        table = _with_header(table, options)
    names = [name if isinstance(name, str) else "" for name in table.frame.columns]
    known = by_name(names)
    beside = {part: i for part, i in known.items() if part in _BESIDE}
    if options.columns is not None:
        only_beside = set(options.columns) <= set(_BESIDE)
        known = known if only_beside else beside
        known |= by_choice(options.columns, table.header, table.width)
    elif not table.header:
        try:
            known = beside | _by_position(options.kind, names.count(""))
        except InvalidInput as error:
            raise table.unclear(0, str(error) + _suggested(table, options.kind)) from None
    form = _form_of(known, options.kind)
    if form is None:
        kinds = _KINDS if options.kind == "auto" else (options.kind,)
        wanted = [" + ".join(f.parts) for kind in kinds for f in _FORMS if f.kind == kind]
        raise InvalidInput(
            f"{table.name}: columns {', '.join(table.header[:12]) or list(range(table.width))} "
            f"make no answer; needed are {'; or '.join(dict.fromkeys(wanted))}; or the fields of "
            f"screens. Name them: {_suggested(table, options.kind)}"
        )
    return table, {p: known[p] for p in (*form.parts, *_BESIDE) if p in known}, form


def _with_header(table: Table, options: _Options) -> Table:
    """The table with its first row, or the comment above it, as the header where it is one."""
    first, known = table.first_row(), by_name(table.first_row())
    below = {text_of(x).strip() for x in table.frame.iloc[1:, :3].to_numpy().ravel()}
    occurs = bool(set(first[:3]) & below)
    chosen = () if options.columns is None else options.columns.values()
    if options.header is not True and table.comment is not None:
        if _form_of(by_name(table.comment), options.kind) is None:
            raise InvalidInput(
                f"{table.name}: line '#{','.join(table.comment)}' may be a header, a comment or an "
                "answer; take out the # and say which: "
                + _option("header=True) or nearer.read_triplets(…, header=False", "--no-header")
            )
        named = table.with_header(table.comment)
    elif (
        options.header is True
        or _form_of(known, options.kind) is not None
        or any(column in first for column in chosen)
        or (len(known) > 1 and not occurs)
    ):
        named = table.with_header()
    else:
        _refuse_strange_header(table, first, occurs, options.kind)
        return table
    if not len(named):
        raise InvalidInput(f"{table.name}: has a header and no rows; add answered questions")
    return named


def _refuse_strange_header(table: Table, first: Sequence[str], occurs: bool, kind: str) -> None:
    """A first row like no other is a header with unknown words, or one more answer."""
    if len(first) == 1:
        raise table.unclear(
            0,
            f"'{first[0]}' is one field, and an answer needs three; separate fields by commas, "
            "tabs or semicolons, and take out what stands above the header",
        )
    if not occurs and not all(field.lstrip("-").isdecimal() for field in first[:3]):
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what: "
            + _suggested(table.with_header(), kind)
            + f"; if it is an answer, {_option('header=False', '--no-header')}",
        )


def _suggested(table: Table, kind: str) -> str:
    """The option that names the columns, as far as their values show which is what.

    A column that always repeats one of three others is the odd (or central) one of them; one that
    repeats one of two others is what was chosen of these.
    """
    texts = [table.column(i) for i in range(table.width)]
    values = [set(column) - EMPTY for column in texts]
    named = by_name(table.header)
    items = [named[part] for part in _THREE] if set(_THREE) <= set(named) else []
    shared = items or [
        i for i, own in enumerate(values) if any(own & v for j, v in enumerate(values) if j != i)
    ]
    one = "central" if kind == "most-central" else "odd"

    def says(parts: Sequence[str], columns: Sequence[int]) -> str:
        return _columns_option(dict(zip(parts, map(table.called, columns), strict=True)))

    for said in reversed([i for i in range(table.width) if i not in items]):
        others = [i for i in shared if i != said]
        repeats = np.array(
            [[x == y for x, y in zip(texts[i], texts[said], strict=True)] for i in others]
        )
        if not others or not repeats.any(axis=0).all():
            continue
        same = items or [i for i, own in zip(others, repeats, strict=True) if own.any()]
        heads = [i for i in others if i not in same]
        if len(same) == 3:
            return says((*_THREE, one), (*same, said))
        if len(same) == 2 and heads and kind in ("auto", "answers"):
            return says(("head", "a", "b", "chosen"), (heads[0], *same, said))
    places = [i for i, own in enumerate(values) if own and own <= {"0", "1", "2", "3"}]
    three = [i for i in shared if i not in places]
    if len(three) == 3 and places:
        return says((*_THREE, "answer"), (*three, places[-1]))
    if table.width < 3:
        return _option("columns=", "--columns")
    three = three if len(three) == 3 else [0, 1, table.width - 1]
    odd = says(("item1", "item2", one), three)
    if kind in ("odd-one-out", "most-central"):
        return odd
    return f"{says(('head', 'near', 'far'), three)}; where the third is the odd one: {odd}"


def _assumed(table: Table, parts: Mapping[str, int], form: Form, options: _Options) -> str:
    """What was taken to be so where the source does not say."""
    if options.kind != "auto" or options.columns is not None or form.kind == "screens":
        return ""
    if not table.header:
        plain = table.object_names is None and table.frame.columns[-1] in (2, 3)
        return _ASSUMED.get((form.kind, table.width), "") if plain else ""
    if form.kind == "odd-one-out" and form.said == "answer":
        return _ASSUMED_ODD
    return _assumed_of_letters(table.header, parts)


def _assumed_of_letters(header: Sequence[str], parts: Mapping[str, int]) -> str:
    """What was assumed of columns that are called by letters; nothing where words say it."""
    three = ("head", "near", "far") if "near" in parts else ("head", "a", "b")
    names = [header[parts[part]] for part in three if part in parts]
    words = tuple(map(_plain_word, names))
    if words == three or words not in _LETTERS:
        return ""
    return (
        f"columns {', '.join(names)} are taken as {', '.join(three)}. Where they are something "
        "else, say so: " + _columns_option({"item1": names[0], "item2": names[1], "odd": names[2]})
    )


def _unread(table: Table, parts: Mapping[str, int], form: Form, options: _Options) -> list[str]:
    """The columns that were not used; screens have many, which are not listed."""
    used = {*parts.values(), *(_name_columns(table, form) if options.labels is None else ())}
    names = [] if form.kind == "screens" else table.header
    return [name for i, name in enumerate(names) if name and i not in used]


def _name_columns(table: Table, form: Form) -> tuple[int, ...]:
    """The columns with the names of objects that head, near and far have as numbers.

    tripletTools has Center, Left, Right and Answer instead, which are four.
    """
    words = [_plain_word(name) for name in table.header if form.kind == "triplets"]
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


# --- what was chosen ------------------------------------------------------------------------------


_TRUE = frozenset({"<", "true", "t", "yes", "left", "arrowleft", "a", "first"})
_FALSE = frozenset({">", "false", "f", "no", "right", "arrowright", "b", "second"})
_EQUAL = ("=", "equal", "tie", "same")
_UNDECIDED = frozenset({"", *_EQUAL, "nab", "nac", "nabc", "na", "nan", "none", "null"})
_FIRST = _option("first=0) or nearer.read_triplets(…, first=1", "--first")
# What messages about an answer that cannot be read end with.
_UNDERSTOOD = (
    f"where nobody decided: nothing, or {', '.join(_EQUAL)}; mend it, leave such rows out with "
    f"{_option('drop_bad_rows=True', '--drop-bad-rows')}, or name the right columns: "
    + _option("columns=", "--columns")
)


class _Choices(NamedTuple):
    """Choices as a source has them, one a row, before objects are numbered."""

    kind: str  # a task of `nearer.Trials`
    objects: NDArray[Any]  # (t, m), of the task "near" the query first; shorter rows end in None
    chosen: NDArray[np.int64]  # for each object shown 0, or 1, or its place among the chosen
    parts: tuple[str, ...]  # what messages call the columns of `objects`
    ranked: bool = False  # whether the order of the chosen counts
    times: Floats | None = None  # (t,) how often each answer was given; None: once


def _read_rows(
    table: Table, parts: Mapping[str, int], form: Form, *, strict: bool, first: int | None
) -> _Choices:
    """Choices from a table whose columns are the `parts` of a form.

    `strict`: an answer is yes or no, and no object. `first`: where places begin, 0 or 1; None: that
    is found out, where it can only be one.
    """
    objects, times = _objects(table, [parts[part] for part in form.objects]), None
    has_head = form.objects[0] == "head"
    shown, names = objects[:, has_head:], form.objects[has_head:]
    words = [_plain_word(name) for name in table.header]
    columns = [words[parts[part]] if words else "" for part in names]
    # Triplets need no texts of the column, which are slow to make of numbers.
    said = [] if has_head and form.said in names else table.column(parts[form.said])
    if form.said in names:
        chosen = np.tile(np.array([int(part == form.said) for part in names]), (len(table), 1))
        if not has_head:
            chosen[[text in EMPTY for text in said]] = 0
    elif form.said != "answer":
        as_places = ""
        if not has_head and {word for word in said if word not in EMPTY} <= {"0", "1", "2", "3"}:
            called = {part: table.called(parts[part]) for part in form.objects}
            as_places = "; if these are places: " + _columns_option(
                called | {"answer": table.called(parts[form.said])}
            )
        chosen = _by_name(table, shown, said, columns, as_places)
    elif has_head:
        chosen, times = _of_two(table, objects, said, columns, strict)
    else:
        chosen = _by_name_or_place(table, shown, said, columns, first)
    kind = "near" if has_head else form.kind
    return _Choices(kind, objects, chosen, form.objects, times=times)


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
    table: Table,
    shown: NDArray[Any],
    said: Sequence[str],
    columns: Sequence[str],
    remedy: str = "",
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
        raise table.fault(rows[0], _not_shown(said[rows[0]], shown[rows[0]]) + remedy, rows)
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
                + _option(
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


def _read_screens(
    table: Table, fields: tuple[str, ...], kind: str, *, first: int | None
) -> _Choices:
    """Choices from a table whose last column are screens; `kind` and `first` as the user says."""
    screens: list[Screen] = table.frame.iloc[:, -1].tolist()
    is_jspsych = fields[0] == "stimulus"
    alone = kind in ("odd-one-out", "most-central") and fields[0] in ("stimulus", "query")
    if is_jspsych and kind == "auto":
        _refuse_words_of_the_question(table, screens)
    width = max(len(screen.shown) for screen in screens)
    rows = [[s.query, *s.shown, *[None] * (width - len(s.shown))] for s in screens]
    objects = np.array(rows, dtype=object)[:, alone:]
    shown, ranked = objects[:, not alone :], False
    if is_jspsych:
        said = [str(screen.chosen) for screen in screens]
        if first is None and not all(
            word in row for word, row in zip(said, shown, strict=True) if word not in EMPTY
        ):
            first = 0  # a button, which jsPsych counts from 0
        chosen = _by_name_or_place(table, shown, said, [""] * width, first)
    else:
        chosen, ranked = _places(table, screens, width)
    count, size = (chosen > 0).sum(axis=1), _sizes(shown)
    bad = np.flatnonzero((size < (3 if alone else 2)) | (count >= size)).tolist()
    if bad:
        raise table.fault(
            bad[0],
            f"{count[bad[0]]} of {size[bad[0]]} chosen: some and not all must be chosen, of two or "
            "more, and one of three or more where it is the odd or the central one",
            bad,
        )
    parts = ("query", *["shown"] * width)[alone:]
    return _Choices(kind if alone else "near", objects, chosen, parts, ranked)


def _places(table: Table, screens: Sequence[Screen], width: int) -> tuple[NDArray[np.int64], bool]:
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
        raise table.unclear(
            0,
            f"all {len(screens)} records have the stimulus {min(asked)[:40]!r}, which may be an "
            "object or the words of the question; where the response is what is most like it, say "
            + _option("kind='answers'", "--kind answers")
            + ", where it is the odd one, "
            + _option("kind='odd-one-out'", "--kind odd-one-out"),
        )


# --- what the rows say ----------------------------------------------------------------------------


def _without_excluded(
    table: Table, parts: Mapping[str, int], left_out: dict[str, list[int]]
) -> Table:
    """The table without rows that are marked as excluded or as taken back."""
    marked: set[int] = set()
    for part in ("excluded", "taken_back"):
        if part in parts:
            marks = [text.lower() for text in table.column(parts[part])]
            marked |= {i for i, mark in enumerate(marks) if mark in ("1", "1.0", "true", "yes")}
    out = sorted(marked)
    if len(out) == len(table):
        raise InvalidInput(
            f"{table.name}: all {len(out):,} answers are marked as excluded or taken back; at "
            "least one must count"
        )
    left_out["excluded"] = table.lines[out].tolist()
    return table.without(out)


def _trials(
    table: Table, parts: Mapping[str, int], form: Form, options: _Options
) -> tuple[Trials, dict[str, Any]]:
    """The trials of a table, and what the report says of them.

    What nobody decided is about a tie on a screen, and no answer in a table of triplets.
    """
    are_screens = form.kind == "screens"
    if are_screens:
        written = _read_screens(table, form.parts, options.kind, first=options.first)
    else:
        # a column without a name, or one that the user calls an answer, is yes or no and no object
        strict = not table.header or (options.columns is not None and "answer" in options.columns)
        written = _read_rows(table, parts, form, strict=strict, first=options.first)
    decided = np.asarray((written.chosen > 0).any(axis=1))
    kept = decided | are_screens
    numbers, labels, are_numbers = _numbers(table, written, kept, options)
    ordered = np.sort(numbers, axis=1)
    twice = kept & ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)).any(axis=1)
    lines, good = table.lines, kept & ~twice
    known: dict[str, Any] = {
        "rows": len(good),
        "degenerate": np.unique(lines[twice]).tolist(),
        "undecided": lines[~kept].tolist(),
        "ties": lines[good & ~decided].tolist(),
    }
    if are_screens and not good.any():
        raise InvalidInput(f"{table.name}: every screen shows an object twice; there is no answer")
    objects = numbers[good]
    also, beside = _beside(table, parts, good)
    if written.times is not None:
        also["weights"] = written.times[good] * also.get("weights", 1.0)
    names: tuple[Any, ...] | None = labels
    if options.labels is None and are_numbers:
        if columns := _name_columns(table, form):
            names = _named_beside(table, columns, numbers, labels)
        elif written.objects.dtype != object and table.has_header:
            names = tuple(range(len(labels)))  # whole numbers of a frame stay whole numbers
        elif int(objects.max(initial=-1)) + 1 == len(labels):
            names = None
    if written.kind == "near":
        query, shown = objects[:, 0], objects[:, 1:]
    else:
        query, shown = np.full(len(objects), -1), objects
    also |= {"ranked": written.ranked, "names": names}
    trials = Trials.from_places(written.kind, query, shown, written.chosen[good], **also)
    return trials, known | beside


def _numbers(
    table: Table, written: _Choices, kept: NDArray[np.bool_], options: _Options
) -> tuple[Objects, tuple[str, ...], bool]:
    """The number of each object of each row, −1 where there is none; missing ones are refused.

    Also the labels of all objects, and whether the source has them by number.
    """
    codes, distinct = pd.factorize(written.objects.ravel())
    places = codes.reshape(written.objects.shape)
    values = [str(value) for value in distinct]
    listed = set(options.labels or ())
    empty = np.array([*(v in EMPTY and v not in listed for v in values), False])
    gaps = np.argwhere(empty[places] & kept[:, None])
    if len(gaps):
        at, part = gaps[0]
        value = values[places[at, part]]
        what = f"{value!r}, which stands for nothing" if value else "empty"
        raise table.fault(
            int(at),
            f"{written.parts[part]} is {what}; fill it in, leave such rows out with {_DROP}, or "
            "list it in labels= where it is a name",
            np.unique(gaps[:, 0]).tolist(),
        )

    def wrong(value: str, what: str) -> InvalidInput:
        at = int(np.argmax((places == values.index(value)).any(axis=1)))
        return table.fault(at, what)

    number, labels, are_numbers = _numbered(values, options, wrong)
    return np.array([*(number.get(v, -1) for v in values), -1])[places], labels, are_numbers


def _numbered(
    values: Sequence[str], options: _Options, wrong: Callable[[str, str], InvalidInput]
) -> tuple[dict[str, int], tuple[str, ...], bool]:
    """Decide whether distinct values are numbers or names, and number them."""
    labels, objects, listed = options.labels, options.objects, set(options.labels or ())
    whole = {value: number for value in values if (number := _whole(value)) is not None}
    names = [v for v in values if v not in whole and (v not in EMPTY or v in listed)]
    comma = next((v for v in names if _DECIMAL_COMMA.fullmatch(v) and v not in listed), None)
    if comma is not None and objects != "names":
        raise wrong(comma, f"object {comma!r} has a decimal comma; write numbers with a point")
    if objects == "auto":
        all_listed = bool(listed) and listed.issuperset([*whole, *names])
        if whole and names and not all_listed:
            is_, rest = ("not ", names) if len(names) <= len(whole) else ("", list(whole))
            raise wrong(
                rest[0],
                f"object {rest[0]!r} is {is_}a whole number, but {len(values) - len(rest)} of "
                f"{len(values)} objects are{'' if is_ else ' not'}; mend it, or say that all are "
                f"names: {_AS_NAMES}",
            )
        objects = "names" if all_listed or names else "numbers"
    if objects == "names":
        called = distinct_labels(sorted_names([*whole, *names]) if labels is None else labels)
        place = {name: i for i, name in enumerate(called)}
        for name in (*whole, *names):
            if name not in place:
                raise wrong(name, f"object {name!r} is not among the {len(place)} labels given")
        return place, called, False
    if names:
        raise wrong(names[0], f"object {names[0]!r}: numbers must be whole numbers")
    n = max(whole.values(), default=-1) + 1 if labels is None else len(labels)
    rule = f"at most {MAX_OBJECTS:,}" if labels is None else f"there are {n} labels"
    for value, number in whole.items():
        if number < 0:
            raise wrong(value, f"object {value}: numbers start at 0")
        if number >= (MAX_OBJECTS if labels is None else n):
            raise wrong(
                value,
                f"object {value}: numbers run from 0 and {rule}; if these are names (also where "
                f"they start at 1), say so: {_AS_NAMES}",
            )
    return whole, distinct_labels(range(n) if labels is None else labels), True


def _named_beside(
    table: Table, columns: Sequence[int], numbers: Objects, labels: Sequence[str]
) -> tuple[str, ...]:
    """Labels for numbered objects, from columns of names beside the numbers."""
    texts = [table.column(i) for i in columns]
    if len(columns) == 4:  # tripletTools: Center, Left, Right, Answer
        center, left, right, answer = texts
        loser = [r if w == x else x for x, r, w in zip(left, right, answer, strict=True)]
        texts = [center, answer, loser]
    found: dict[int, str] = {}
    for column, names in enumerate(texts):
        for row, (number, name) in enumerate(zip(numbers[:, column].tolist(), names, strict=True)):
            if name and found.setdefault(number, name) != name:
                raise table.fault(
                    row,
                    f"object {number} is called {name!r}, and {found[number]!r} elsewhere; mend "
                    "the names, or pass labels=",
                )
    taken = set(found.values())  # an object without a name may have another's name as its number
    spare = [f"number {x}" if x in taken else x for x in labels]
    return distinct_labels(found.get(i, label) for i, label in enumerate(spare))


def _beside(
    table: Table, parts: Mapping[str, int], good: NDArray[np.bool_]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Who answered, how long it took and how much it counts; and what the report says of it."""
    also: dict[str, Any] = {}
    known: dict[str, Any] = {}
    if "person" in parts:
        people = _people(table, parts["person"])[good]
        nobody = people == "" if people.dtype.kind == "U" else np.zeros(len(people), dtype=np.bool_)
        also["people"] = None if nobody.all() else people
        known = {"persons": len(np.unique(people[~nobody])), "nameless": int(nobody.sum())}
    if timed := next((part for part in ("seconds", "ms", "time") if part in parts), None):
        seconds, strange, known["times"] = _seconds(table, timed, parts[timed])
        also["seconds"] = seconds[good]
        known["untimed"] = table.lines[strange].tolist()
    if "weight" in parts:
        weights, _ = _numbers_in(table, parts["weight"])
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(bad):
            value = table.column(parts["weight"])[bad[0]]
            comma = " with a point, not a decimal comma" * ("," in value)
            raise table.fault(
                int(bad[0]), f"weight {value!r}: must be a number of at least 0{comma}; mend it"
            )
        also["weights"] = weights[good]
    return also, known


def _seconds(table: Table, part: str, column: int) -> tuple[Floats, list[int], str]:
    """Response times in seconds, the rows without a number, and what the report says of the unit.

    A column that names no unit is in seconds where the median is below 60, as PsychoPy writes it.
    """
    values, strange = _numbers_in(table, column)
    values[~(values >= 0)] = np.nan  # psiz writes -1 for a time that was not taken
    if np.isnan(values).all():
        return values, strange, ""
    name, median = table.called(column), float(np.nanmedian(values))
    unit = part if part != "time" else "seconds" if median < 60 else "ms"
    words = f"response times: {name} is in {'seconds' if unit == 'seconds' else 'milliseconds'}"
    if part == "time":
        other = "ms" if unit == "seconds" else "seconds"
        words += f", by its median of {median:.4g}. Where that is wrong, say so: "
        words += _columns_option({other: name})
    return values * (1.0 if unit == "seconds" else 1e-3), strange, words


def _people(table: Table, column: int) -> NDArray[Any]:
    """Who answered: whole numbers where all are, else texts, "" where nobody is named."""
    values = table.frame.iloc[:, column].tolist()
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return np.array(values)
    return np.array(["" if text in EMPTY else text for text in table.column(column)], dtype=np.str_)


def _numbers_in(table: Table, column: int) -> tuple[Floats, list[int]]:
    """The numbers of a column, nan where there are none, and the rows where something else is."""
    texts = table.column(column)
    found = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(np.float64)
    strange = [row for row in np.flatnonzero(np.isnan(found)).tolist() if texts[row] not in EMPTY]
    return found.copy(), strange


# --- names and numbers of objects -----------------------------------------------------------------


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names in alphabetical order, or in numerical order where all of them are whole numbers.

    Examples
    --------
    >>> sorted_names(["10", "9"]), sorted_names(["10", "9", "nine"])
    (['9', '10'], ['10', '9', 'nine'])
    """
    wholes = {name: _whole(name) for name in names}
    if any(number is None for number in wholes.values()):
        return sorted(wholes)
    return sorted(wholes, key=lambda name: (wholes[name] or 0, name))


def distinct_labels(labels: Iterable[object]) -> tuple[str, ...]:
    """Labels as texts; two that are the same are refused."""
    texts = tuple(str(label) for label in labels)
    if len(set(texts)) < len(texts):
        twice = next(text for i, text in enumerate(texts) if text in texts[:i])
        raise InvalidInput(
            f"label {twice!r} occurs twice; every object needs its own; pass labels= with names "
            "that differ"
        )
    return texts


def _whole(value: str) -> int | None:
    """The whole number that a text is, also as 3.0 or 3e0, or None."""
    if not _NUMBER.fullmatch(value) or not float(value).is_integer():
        return None
    return int(value) if value.lstrip("+-").isdecimal() else int(float(value))
