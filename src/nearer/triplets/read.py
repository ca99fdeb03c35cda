"""Read triplets and trials from any file.

The reader finds out the separator, the header, the kind of answer and whether objects are named
or numbered, and refuses to guess where two readings are possible: then it says on which line, and
which option decides. Nothing is dropped without a warning and a place in the report, and what had
to be assumed is in the report, too.

Objects are named or numbered. *Numbers* are kept: object 7 of the file is object 7 here, so that
results line up with what else the user has about it, and a number that never occurs is an object
that was never compared. *Names* are put in alphabetical order, or in numerical order where all of
them are whole numbers. What R, pandas and JSON write for a missing value (``NA``, ``nan``,
``null`` …) is no object, unless labels list it.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer import checks
from nearer.checks import amount
from nearer.errors import BadRow, DroppedRows, InvalidInput
from nearer.questions import MAX_OBJECTS, Floats, Objects
from nearer.trials import Report, Trials, Triplets, examine
from nearer.triplets import forms
from nearer.triplets.forms import BESIDE, EMPTY, Form, Written, option
from nearer.triplets.table import Table, load_table, text_of

__all__ = [
    "Report",
    "Triplets",
    "distinct_labels",
    "examine",
    "read_trials",
    "read_triplets",
    "sorted_names",
]

Kind = Literal["auto", "triplets", "answers", "odd-one-out", "most-central"]
_MOST_BAD = 1000  # faults after which the file is read in a wrong way rather than a bad file
_ODD = option("kind='odd-one-out'", "--kind odd-one-out")
_DROP = option("drop_bad_rows=True", "--drop-bad-rows")
_AS_NAMES = option('objects="names"', "--names")
_ASSUMED = {
    ("triplets", 3): "there is no header: each row is taken as head, near, far. Where the third is "
    f"the odd one out, as in files of THINGS, SPoSE and VICE, say so: {_ODD}",
    ("answers", 4): "there is no header: each row is taken as head, a, b, and whether a is nearer. "
    f"Where the last is the odd one of three, say so: {_ODD}",
}
_ASSUMED_ODD = "the choice is taken as the odd one out. Where it is the most central one, say so: "
_ASSUMED_ODD += option("kind='most-central'", "--kind most-central")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")


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
        checks.one_of("kind", self.kind, ("auto", *forms.KINDS))
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
        `nearer.triplets.forms`); psiz's HDF5 (extra ``nearer[hdf5]``); any of them
        compressed as ``.gz``, ``.xz`` or ``.bz2``. Also a pandas or polars frame, whose columns
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
        "far": "other"}``. Parts are those of `nearer.triplets.forms`.
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
        _refuse_late_header(table)
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
    table = _without_others(table, parts, form, left_out)
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


# --- which column is what ------------------------------------------------------------------------


def _layout(table: Table, options: _Options) -> tuple[Table, dict[str, int], Form]:
    """The table with its header split off, what its columns are, and their form."""
    may_be_named = table.has_header is None and options.header is not False
    named = table.with_header() if may_be_named else table
    screens = forms.screen_form(named.header) if options.columns is None else None
    if screens is not None:
        known = forms.by_name(named.header)
        return named, {part: known[part] for part in BESIDE if part in known}, screens
    if may_be_named:
        table = _with_header(table, options)
    names = [name if isinstance(name, str) else "" for name in table.frame.columns]
    known = forms.by_name(names)
    beside = {part: i for part, i in known.items() if part in BESIDE}
    if options.columns is not None:
        known = beside | forms.by_choice(options.columns, table.header, table.width)
    elif not table.header:
        try:
            known = beside | forms.by_position(options.kind, names.count(""))
        except InvalidInput as error:
            raise table.unclear(0, str(error)) from None
    form = forms.form_of(known, options.kind)
    if form is None:
        kinds = forms.KINDS if options.kind == "auto" else (options.kind,)
        wanted = [" + ".join(f.parts) for kind in kinds for f in forms.FORMS if f.kind == kind]
        raise InvalidInput(
            f"{table.name}: columns {', '.join(table.header[:12]) or list(range(table.width))} "
            f"make no answer; needed are {'; or '.join(dict.fromkeys(wanted))}; or the fields of "
            f"screens. Name them: {option('columns=', '--columns')}"
        )
    return table, {p: known[p] for p in (*form.parts, *BESIDE) if p in known}, form


def _with_header(table: Table, options: _Options) -> Table:
    """The table with its first row, or the comment above it, as the header where it is one."""
    first, known = table.first_row(), forms.by_name(table.first_row())
    below = {text_of(x).strip() for x in table.frame.iloc[1:, :3].to_numpy().ravel()}
    occurs = bool(set(first[:3]) & below)
    chosen = () if options.columns is None else options.columns.values()
    if options.header is not True and table.comment is not None:
        if forms.form_of(forms.by_name(table.comment), options.kind) is None:
            raise InvalidInput(
                f"{table.name}: line '#{','.join(table.comment)}' may be a header, a comment or an "
                "answer; take out the # and say which: "
                + option("header=True) or nearer.read_triplets(…, header=False", "--no-header")
            )
        named = table.with_header(table.comment)
    elif (
        options.header is True
        or forms.form_of(known, options.kind) is not None
        or any(column in first for column in chosen)
        or (len(known) > 1 and not occurs)
    ):
        named = table.with_header()
    else:
        _refuse_strange_header(table, first, occurs)
        return table
    if not len(named):
        raise InvalidInput(f"{table.name}: has a header and no rows; add answered questions")
    return named


def _refuse_strange_header(table: Table, first: Sequence[str], occurs: bool) -> None:
    """A first row like no other is a header with unknown words, or one more answer."""
    if len(first) == 1:
        raise table.unclear(
            0,
            f"'{first[0]}' is one field, and an answer needs three; separate fields by commas, "
            "tabs or semicolons",
        )
    if not occurs and not all(field.lstrip("-").isdecimal() for field in first[:3]):
        guess = dict(zip(("head", "near", "far"), (first[0], first[1], first[-1]), strict=True))
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what, for example "
            + option(f"columns={guess}", f"--columns head={first[0]},…")
            + f"; if it is an answer, {option('header=False', '--no-header')}",
        )


def _refuse_late_header(table: Table) -> None:
    """Say so where a title stands above the header, as in many spreadsheets."""
    for line, row in ({0: table.first_row()} | table.ragged).items():
        # a title has no separator, so that the rows below it may be one field
        words = re.split(r"[,;\t]", row[0]) if len(row) == 1 else row
        try:
            is_header = forms.form_of(forms.by_name(words)) is not None
        except InvalidInput:  # two of the same
            is_header = False
        if is_header and line:
            raise InvalidInput(
                f"{table.name}, line {line}: '{','.join(words)}' is a header; take out what stands "
                "above it"
            )
        if is_header:
            return


def _assumed(table: Table, parts: Mapping[str, int], form: Form, options: _Options) -> str:
    """What was taken to be so where the source does not say."""
    if options.kind != "auto" or options.columns is not None or form.kind == "screens":
        return ""
    if not table.header:
        plain = table.object_names is None and table.frame.columns[-1] in (2, 3)
        return _ASSUMED.get((form.kind, table.width), "") if plain else ""
    if form.kind == "odd-one-out" and form.said == "answer":
        return _ASSUMED_ODD
    return forms.assumed_of_letters(table.header, parts)


def _unread(table: Table, parts: Mapping[str, int], form: Form, options: _Options) -> list[str]:
    """The columns that were not used; screens have many, which are not listed."""
    used = {*parts.values(), *(_name_columns(table, form) if options.labels is None else ())}
    names = [] if form.kind == "screens" else table.header
    return [name for i, name in enumerate(names) if name and i not in used]


def _name_columns(table: Table, form: Form) -> tuple[int, ...]:
    """The columns with names of objects that others have as numbers; none where there are none."""
    return forms.name_columns(table.header) if form.kind == "triplets" else ()


# --- what the rows say ---------------------------------------------------------------------------


def _without_others(
    table: Table, parts: Mapping[str, int], form: Form, left_out: dict[str, list[int]]
) -> Table:
    """The table without rows that are marked as excluded, and without pages that are no screens."""
    if form.kind == "screens":
        records = enumerate(table.records())
        pages = [row for row, record in records if forms.is_page(record, form.parts)]
        if len(pages) == len(table):
            raise InvalidInput(f"{table.name}: none of its {len(pages)} records is an answer")
        left_out["others"] = table.lines[pages].tolist()
        table = table.without(pages)
    if "excluded" in parts:
        marks = [text.lower() for text in table.column(parts["excluded"])]
        out = [i for i, mark in enumerate(marks) if mark in ("1", "1.0", "true", "yes")]
        left_out["excluded"] = table.lines[out].tolist()
        table = table.without(out)
    return table


def _trials(
    table: Table, parts: Mapping[str, int], form: Form, options: _Options
) -> tuple[Trials, dict[str, Any]]:
    """The trials of a table, and what the report says of them.

    What nobody decided is about a tie on a screen, and no answer in a table of triplets.
    """
    are_screens = form.kind == "screens"
    if are_screens:
        written = forms.read_screens(table, form.parts, options.kind, first=options.first)
    else:
        # a column without a name, or one that the user calls an answer, is yes or no and no object
        strict = not table.header or (options.columns is not None and "answer" in options.columns)
        written = forms.read_rows(table, parts, form, strict=strict, first=options.first)
    decided = np.asarray((written.chosen > 0).any(axis=1))
    kept = decided | are_screens
    numbers, labels, are_numbers = _numbers(table, written, kept, options)
    ordered = np.sort(numbers, axis=1)
    twice = kept & ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)).any(axis=1)
    lines, good = table.lines[written.row], kept & ~twice
    known: dict[str, Any] = {
        "rows": len(good),
        "degenerate": np.unique(lines[twice]).tolist(),
        "undecided": lines[~kept].tolist(),
        "ties": lines[good & ~decided].tolist(),
    }
    if are_screens and not good.any():
        raise InvalidInput(f"{table.name}: every screen shows an object twice; there is no answer")
    objects, row = numbers[good], written.row[good]
    also, beside = _beside(table, parts, row)
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
        query, shown = np.full(len(row), -1), objects
    also |= {"ranked": written.ranked, "names": names}
    trials = Trials.from_places(written.kind, query, shown, written.chosen[good], **also)
    return trials, known | beside


def _numbers(
    table: Table, written: Written, kept: NDArray[np.bool_], options: _Options
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
            int(written.row[at]),
            f"{written.parts[part]} is {what}; fill it in, leave such rows out with {_DROP}, or "
            "list it in labels= where it is a name",
            np.unique(written.row[gaps[:, 0]]).tolist(),
        )

    def wrong(value: str, what: str) -> InvalidInput:
        at = int(np.argmax((places == values.index(value)).any(axis=1)))
        return table.fault(int(written.row[at]), what)

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
    table: Table, parts: Mapping[str, int], row: Objects
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Who answered, how long it took and how much it counts; and what the report says of it."""
    also: dict[str, Any] = {}
    known: dict[str, Any] = {}
    if "person" in parts:
        people = _people(table, parts["person"])[row]
        nobody = people == "" if people.dtype.kind == "U" else np.zeros(len(row), dtype=np.bool_)
        also["people"] = None if nobody.all() else people
        known = {"persons": len(np.unique(people[~nobody])), "nameless": int(nobody.sum())}
    for part, unit in (("ms", 1e-3), ("seconds", 1.0)):
        if part in parts:
            seconds, strange = _numbers_in(table, parts[part])
            seconds[~(seconds >= 0)] = math.nan  # psiz writes -1 for a time that was not taken
            also["seconds"] = seconds[row] * unit
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
        also["weights"] = weights[row]
    return also, known


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


# --- names and numbers of objects ----------------------------------------------------------------


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
