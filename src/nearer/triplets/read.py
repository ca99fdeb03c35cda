"""Read triplets and trials from any file.

The reader finds out the separator, the header, the kind of answer and whether objects are named
or numbered, and refuses to guess where two readings are possible: then it says on which line, and
which option decides. Nothing is dropped without a warning and a place in the report, and what had
to be assumed is in the report, too.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer.errors import BadRow, DroppedRows, InvalidInput
from nearer.questions import Floats, Objects
from nearer.text import amount
from nearer.trials import Trials
from nearer.triplets import columns as parts_of
from nearer.triplets.columns import (
    EMPTY,
    Numbering,
    Reading,
    distinct_labels,
    number_objects,
    option,
)
from nearer.triplets.report import Triplets, examine
from nearer.triplets.table import Table, load_table, text_of
from nearer.triplets.trials_forms import Written, is_page, read_rows, read_screens, screen_fields

__all__ = ["read_trials", "read_triplets"]

Kind = Literal["auto", "triplets", "answers", "odd-one-out", "most-central"]
_MOST_BAD = 1000  # faults after which the file is read in a wrong way rather than a bad file
_ODD = option("kind='odd-one-out'", "--kind odd-one-out")
_DROP = option("drop_bad_rows=True", "--drop-bad-rows")
_ASSUMED = {
    ("triplets", 3): "there is no header: each row is taken as head, near, far. Where the third is "
    f"the odd one out, as in files of THINGS, SPoSE and VICE, say so: {_ODD}",
    ("answers", 4): "there is no header: each row is taken as head, a, b, and whether a is nearer. "
    f"Where the last is the odd one of three, say so: {_ODD}",
    "place": "the choice is taken as the odd one out. Where it is the most central one, say so: "
    + option("kind='most-central'", "--kind most-central"),
}


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
        `nearer.triplets.trials_forms`); psiz's HDF5 (extra ``nearer[hdf5]``); any of them
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
        "far": "other"}``. Parts are those of `nearer.triplets.columns`.
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
    options = Reading(kind, header, objects, labels, columns, drop_bad_rows, first)
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
    return _read(path, Reading(first=first, **how)).trials


def _read(path: Any, options: Reading) -> Triplets:
    table = load_table(path, drop_ragged=options.drop_bad_rows)
    if table.has_header is False and (options.columns is not None or options.header is False):
        raise InvalidInput(
            f"{table.name}: has no header and no columns by name; columns= and header= (--columns, "
            "--no-header) are for tables, leave them out"
        )
    if table.object_names is not None and options.labels is None:
        options = replace(options, objects="numbers", labels=table.object_names)
    table, parts, kind = _layout(table, options)
    fields = None if kind else screen_fields(table.header)
    left_out: dict[str, list[int]] = {"bad": list(table.bad), "others": [], "excluded": []}
    table = _without_others(table, parts, fields, left_out)
    faults = 0
    while True:
        try:
            read, known = _trials(table, parts, kind, fields, options)
            break
        except BadRow as fault:
            faults += 1
            if not options.drop_bad_rows or faults > _MOST_BAD or len(fault.rows) == len(table):
                raise
            left_out["bad"] += [table.lines[row] for row in fault.rows]
            table = table.without(fault.rows)
    known["rows"] += len(left_out["bad"])
    known |= {what: tuple(sorted(lines)) for what, lines in left_out.items()}
    known |= {"assumed": _assumed(table, parts, kind, options), "unit": table.unit}
    rows = read.triplets()[0]
    labels = tuple(map(str, read.names or range(read.n_objects)))
    report = examine(rows, labels, unread_columns=_unread(table, parts, kind, options), **known)
    _warn(report)
    return Triplets(read, report)


def _warn(report: Any) -> None:
    """Say loudly how many answers are left out, and why."""
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
                stacklevel=4,
            )


# --- which column is what ------------------------------------------------------------------------


def _layout(table: Table, options: Reading) -> tuple[Table, dict[str, int], str]:
    """The table with its header split off, what its columns are, and the kind of its answers.

    The kind of screens is empty: their fields say what they are.
    """
    may_be_named = table.has_header is None and options.header is not False
    words = table.first_row() if may_be_named else table.header
    if options.columns is None and screen_fields(words) is not None:
        table = table.with_header() if may_be_named else table
        known = parts_of.by_name(table.header)
        return table, {part: known[part] for part in parts_of.BESIDE if part in known}, ""
    if table.has_header is None:
        table = _with_header(table, options)
    return table, *_parts(table, options)


def _with_header(table: Table, options: Reading) -> Table:
    """The table with its first row, or the comment above it, as the header where it is one."""
    first = table.first_row()
    if options.header is False:
        return replace(table, has_header=None)
    if options.header is True:
        named = table.with_header()
    elif table.comment is not None:
        if parts_of.kind_of(parts_of.by_name(table.comment), options.kind) is None:
            raise InvalidInput(
                f"{table.name}: line '#{','.join(table.comment)}' may be a header, a comment or an "
                "answer; take out the # and say which: "
                + option("header=True) or nearer.read_triplets(…, header=False", "--no-header")
            )
        named = table.with_header(table.comment)
    elif (
        parts_of.kind_of(parts_of.by_name(first), options.kind) is not None
        or (options.columns is not None and any(c in first for c in options.columns.values()))
        or (len(parts_of.by_name(first)) > 1 and not set(first[:3]) & _values_below(table))
    ):
        named = table.with_header()
    else:
        _refuse_strange_header(table, first)
        return table
    if not len(named):
        raise InvalidInput(f"{table.name}: has a header and no rows; add answered questions")
    return named


def _values_below(table: Table) -> set[str]:
    return {text_of(x).strip() for x in table.frame.iloc[1:, :3].to_numpy().ravel()}


def _refuse_strange_header(table: Table, first: Sequence[str]) -> None:
    """A first row like no other is a header with unknown words, or one more answer."""
    if len(first) == 1:
        raise table.unclear(
            0,
            f"'{first[0]}' is one field, and an answer needs three; separate fields by commas, "
            "tabs or semicolons",
        )
    if not set(first[:3]) & _values_below(table) and not all(
        f.lstrip("-").isdecimal() for f in first[:3]
    ):
        guess = dict(zip(("head", "near", "far"), (first[0], first[1], first[-1]), strict=True))
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what, for example "
            + option(f"columns={guess}", f"--columns head={first[0]},…")
            + f"; if it is an answer, {option('header=False', '--no-header')}",
        )


def _parts(table: Table, options: Reading) -> tuple[dict[str, int], str]:
    """What the columns are, and the kind of answers that they make."""
    names = [name if isinstance(name, str) else "" for name in table.frame.columns]
    known = parts_of.by_name(names)
    beside = {part: i for part, i in known.items() if part in parts_of.BESIDE}
    if options.columns is not None:
        known = beside | parts_of.by_choice(options.columns, table.header, table.width)
    elif not table.header:
        try:
            known = beside | parts_of.by_position(options.kind, names.count(""))
        except InvalidInput as error:
            raise table.unclear(0, str(error)) from None
    kind = parts_of.kind_of(known, options.kind)
    if kind is None:
        wanted = (
            parts_of.KINDS
            if options.kind == "auto"
            else {options.kind: parts_of.KINDS[options.kind]}
        )
        raise InvalidInput(
            f"{table.name}: columns {', '.join(table.header[:12]) or list(range(table.width))} "
            "make no answer; needed are "
            + "; or ".join(dict.fromkeys(" + ".join(w) for ways in wanted.values() for w in ways))
            + f"; or the fields of screens. Name them: {option('columns=', '--columns')}"
        )
    needed = next(ways for ways in parts_of.KINDS[kind] if set(ways) <= set(known))
    used = (*needed, *parts_of.BESIDE)
    return {part: i for part, i in known.items() if part in used}, kind


def _assumed(table: Table, parts: Mapping[str, int], kind: str, options: Reading) -> str:
    """What was taken to be so where the source does not say."""
    if options.kind != "auto" or options.columns is not None or not kind:
        return ""
    if not table.header:
        plain = table.object_names is None and table.frame.columns[-1] in (2, 3)
        return _ASSUMED.get((kind, table.width), "") if plain else ""
    if kind == "odd-one-out" and "answer" in parts:
        return _ASSUMED["place"]
    return parts_of.assumed_of_letters(table.header, parts)


# --- what the rows say ---------------------------------------------------------------------------


def _without_others(
    table: Table,
    parts: Mapping[str, int],
    fields: tuple[str, ...] | None,
    left_out: dict[str, list[int]],
) -> Table:
    """The table without rows that are marked as excluded, and without pages that are no screens."""
    if fields is not None:
        pages = [row for row, record in enumerate(table.records()) if is_page(record, fields)]
        if len(pages) == len(table):
            raise InvalidInput(f"{table.name}: none of its {len(pages)} records is an answer")
        left_out["others"] = [table.lines[row] for row in pages]
        table = table.without(pages)
    if "excluded" in parts:
        marks = [text.lower() for text in table.column(parts["excluded"])]
        out = [i for i, mark in enumerate(marks) if mark in ("1", "1.0", "true", "yes")]
        left_out["excluded"] = [table.lines[row] for row in out]
        table = table.without(out)
    return table


def _trials(
    table: Table,
    parts: Mapping[str, int],
    kind: str,
    fields: tuple[str, ...] | None,
    options: Reading,
) -> tuple[Trials, dict[str, Any]]:
    """The trials of a table, and what the report says of them."""
    if fields is not None:
        written = read_screens(table, fields, options.kind, first=options.first)
    else:
        # a column without a name, or one that the user calls an answer, is yes or no and no object
        strict = not table.header or (options.columns is not None and "answer" in options.columns)
        written = read_rows(table, parts, kind, strict=strict, first=options.first)
    objects = written.shown
    if written.query is not None:
        objects = np.column_stack([written.query, objects])
    decided = np.asarray((written.chosen > 0).any(axis=1))
    kept = decided if fields is None else np.ones(len(decided), dtype=np.bool_)
    numbers, numbering = _numbers(table, written, objects, kept, options)
    ordered = np.sort(numbers, axis=1)
    twice = kept & ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)).any(axis=1)
    lines, good = np.array(table.lines)[written.row], kept & ~twice
    known: dict[str, Any] = {
        "rows": len(good),
        "degenerate": np.unique(lines[twice]).tolist(),
        "undecided": lines[~kept].tolist(),
        "ties": lines[good & ~decided].tolist(),
    }
    if fields is not None and not good.any():
        raise InvalidInput(f"{table.name}: every screen shows an object twice; there is no answer")
    row, shown = written.row[good], numbers[good]
    also, beside = _beside(table, parts, row)
    if written.times is not None:
        also["weights"] = written.times[good] * (1 if also["weights"] is None else also["weights"])
    also["names"] = numbering.labels
    if options.labels is None:
        seen = int(shown.max(initial=-1)) + 1
        also["names"] = _names(table, kind, numbering, written, numbers, seen)
    query = np.full(len(row), -1) if written.query is None else shown[:, 0]
    shown = shown if written.query is None else shown[:, 1:]
    trials = Trials.from_places(
        written.kind, query, shown, written.chosen[good], ranked=written.ranked, **also
    )
    return trials, known | beside


def _numbers(
    table: Table, written: Written, objects: NDArray[Any], kept: NDArray[np.bool_], options: Reading
) -> tuple[Objects, Numbering]:
    """The number of each object of each row, −1 where there is none; missing ones are refused."""
    codes, distinct = pd.factorize(objects.ravel())
    places = codes.reshape(objects.shape)
    values = [str(value) for value in distinct]
    listed = set() if options.labels is None else set(options.labels)
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
    first = np.zeros(len(values) + 1, dtype=np.int64)
    first[places.ravel()[::-1]] = np.repeat(written.row, objects.shape[1])[::-1]

    def wrong(value: str, what: str) -> InvalidInput:
        return table.fault(int(first[values.index(value)]), what)

    numbering = number_objects(values, options.objects, options.labels, wrong)
    numbers = np.array([*(numbering.numbers[v] for v in values), -1], dtype=np.int64)
    return numbers[places], numbering


def _beside(
    table: Table, parts: Mapping[str, int], row: Objects
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Who answered, how long it took and how much it counts; and what the report says of it."""
    also: dict[str, Any] = {"people": None, "seconds": None, "weights": None}
    known: dict[str, Any] = {}
    if "person" in parts:
        people = _people(table, parts["person"])[row]
        nobody = people == "" if people.dtype.kind == "U" else np.zeros(len(row), dtype=np.bool_)
        also["people"] = None if nobody.all() else people
        known = {"persons": len(np.unique(people[~nobody])), "nameless": int(nobody.sum())}
    part = next((p for p in ("seconds", "ms") if p in parts), None)
    if part is not None:
        seconds, strange = _numbers_in(table, parts[part])
        seconds[~(seconds >= 0)] = math.nan  # psiz writes -1 for a time that was not taken
        also["seconds"] = seconds[row] * (1.0 if part == "seconds" else 1e-3)
        known["untimed"] = [table.lines[i] for i in strange]
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
    texts = table.column(column)
    return np.array(["" if text in EMPTY else text for text in texts], dtype=np.str_)


def _numbers_in(table: Table, column: int) -> tuple[Floats, list[int]]:
    """The numbers of a column, nan where there are none, and the rows where something else is."""
    texts = table.column(column)
    found = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(np.float64)
    strange = [row for row in np.flatnonzero(np.isnan(found)).tolist() if texts[row] not in EMPTY]
    return found.copy(), strange


def _names(
    table: Table, kind: str, numbering: Numbering, written: Written, numbers: Objects, seen: int
) -> tuple[Any, ...] | None:
    """What objects are called; None where by their numbers, of which `seen` have answers."""
    n = len(numbering.labels)
    if not numbering.are_numbers:
        return numbering.labels
    if columns := _name_columns(table, kind):
        return _named_beside(table, columns, numbers, numbering)
    if written.shown.dtype != object and table.has_header:
        return tuple(range(n))  # whole numbers of a frame stay whole numbers
    return None if seen == n else numbering.labels


def _name_columns(table: Table, kind: str) -> tuple[int, ...]:
    """The columns with names of objects that others have as numbers; none where there are none."""
    return parts_of.name_columns(table.header) if kind == "triplets" else ()


def _named_beside(
    table: Table, columns: Sequence[int], numbers: Objects, numbering: Numbering
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
    spare = [f"number {x}" if x in taken else x for x in numbering.labels]
    return distinct_labels(found.get(i, label) for i, label in enumerate(spare))


def _unread(table: Table, parts: Mapping[str, int], kind: str, options: Reading) -> list[str]:
    """The columns that were not used."""
    used = set(parts.values())
    if options.labels is None:
        used |= set(_name_columns(table, kind))
    return [name for i, name in enumerate(table.header) if kind and name and i not in used]
