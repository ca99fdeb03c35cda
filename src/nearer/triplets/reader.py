"""Read triplets and trials from whatever file somebody has.

The reader finds out the separator, the header, the kind of answer and whether objects are named
or numbered, and refuses to guess where two readings are possible: then it says on which line, and
which option decides. Nothing is dropped without a warning and a place in the report, and what had
to be assumed is in the report, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nearer.errors import BadRow, InvalidInput
from nearer.files import content_suffix, read_text
from nearer.questions import MAX_OBJECTS
from nearer.trials import Trials
from nearer.triplets import columns as parts_of
from nearer.triplets.arrays import read_arrays
from nearer.triplets.assembling import Beside, assemble, warn_of
from nearer.triplets.blocks import parquet_files, parquet_rows
from nearer.triplets.collection import Triplets
from nearer.triplets.columns import Reading
from nearer.triplets.excel import restated
from nearer.triplets.forms import read_answers, to_triplets
from nearer.triplets.hdf5 import HDF5, read_hdf5
from nearer.triplets.objects import beyond, distinct_labels
from nearer.triplets.recorded_screens import read_screens
from nearer.triplets.records import FIELDS, Records, form_of, parse_records
from nearer.triplets.table import TextTable, frame_table, parse_table
from nearer.triplets.table_answers import read_rows

__all__ = ["read_trials", "read_triplets"]

Kind = Literal["auto", "triplets", "answers", "odd-one-out", "most-central"]
_MOST_BAD = 1000  # faults after which the file is read in a wrong way rather than a bad file
_ODD = (
    "Where the third is the odd one out, as in files of THINGS, SPoSE and VICE, say so: "
    "kind='odd-one-out', or --kind odd-one-out"
)
_ASSUMED = {
    ("triplets", 3): f"there is no header: each row is taken as head, near, far. {_ODD}",
    ("answers", 4): "there is no header: each row is taken as head, a, b, and whether a is nearer. "
    "Where the last is the odd one of three, say so: kind='odd-one-out', or --kind odd-one-out",
    "place": "the choice is taken as the odd one out. Where it is the most central one, say so: "
    "kind='most-central', or --kind most-central",
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
        Text with commas, tabs, semicolons or spaces between its columns, ``.npy`` or ``.npz``;
        JSON or lines of JSON with the same fields, or with screens (grids, jsPsych, psiz, votes:
        see `nearer.triplets.records`); psiz's HDF5 (extra ``nearer[hdf5]``); any of them compressed
        as ``.gz``, ``.xz`` or ``.bz2``. Also Parquet, a file or a folder (``nearer[parquet]``), or
        a pandas or polars frame, whose columns have names.
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
        The array, labels, participants and weights where the file has them, and a report.

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
    told = Reading(kind, header, objects, labels, columns, drop_bad_rows, first)
    read = _read(path, told)
    warn_of(read.report, 2)
    return read


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
    read = _read(path, Reading(first=first, **how))
    warn_of(read.report, 2)
    return read.trials()


def _read(path: Any, told: Reading) -> Triplets:
    if hasattr(path, "columns"):
        return _of_table(frame_table(path), replace(told, header=True), [])
    suffix, name = content_suffix(path), os.fspath(path)
    if suffix in (".npy", ".npz", *HDF5) and (told.columns is not None or told.header is False):
        raise InvalidInput(
            f"{name}: has no header and no columns by name; columns= and header= (--columns, "
            "--no-header) are for tables, leave them out"
        )
    if suffix in (".npy", ".npz"):
        return _from_arrays(path, told)
    if suffix in HDF5:
        return read_screens(read_hdf5(path), ("query", "shown", "chosen"), told)
    if files := parquet_files(Path(path)):
        rows = parquet_rows(files)
        table = TextTable(name, rows, [*range(-1, len(rows) - 1)], unit="row")
        return _of_table(table, replace(told, header=True), [])
    text = read_text(path)
    if suffix in (".json", ".jsonl", ".ndjson") or text.lstrip()[:2] in ('{"', "[{", "[["):
        return _of_records(parse_records(name, text), told)
    bad: list[int] = []
    text = restated(text)
    try:
        table = parse_table(name, text, bad if told.drop_bad_rows else None)
    except BadRow:
        _refuse_late_header(name, text, told.kind)
        raise
    return _of_table(table, told, bad)


def _refuse_late_header(name: str, text: str, kind: str) -> None:
    """A title above the header, as spreadsheets like it, is better said than rows of two widths."""
    for number, line in enumerate(text.splitlines()[:20], start=1):
        words = re.split(r"[,;\t]", line.replace('"', ""))
        if parts_of.kind_of(parts_of.by_name(words), kind) is None:
            continue
        if not any(above.strip() for above in text.splitlines()[: number - 1]):
            return  # the header is where it belongs: an answer a,b,c below it is no other one
        raise InvalidInput(
            f"{name}, line {number}: '{line.strip()}' is a header; take out what stands above it"
        )


def _of_records(records: Records, told: Reading) -> Triplets:
    form = form_of(records.found)
    if form is not None:
        return read_screens(records, form, told)
    table = records.table()
    parts = parts_of.by_name(table.rows[0])
    if told.columns is None and parts_of.kind_of(parts, told.kind) is None:
        raise InvalidInput(
            f"{records.path}: fields {', '.join(table.rows[0][:12])} make no answer; needed are "
            f"{FIELDS}; or those of a table, head, winner, loser. Name them with columns= "
            "(--columns)"
        )
    return _of_table(table, replace(told, header=True), [])


def _of_table(whole: TextTable, told: Reading, bad: list[int]) -> Triplets:
    form = form_of([[field.strip() for field in whole.rows[0]]])
    if form is not None and told.columns is None and told.header is not False:
        return read_screens(Records.of_table(whole), form, told)
    table, names = _with_header(whole, told)
    parts, kind = _parts(table, names, told)
    # a column that nobody names, or that the user calls an answer, is yes or no and no object
    strict = not names or (told.columns is not None and "answer" in told.columns)
    faults = 0
    while True:
        try:
            read = read_rows(
                table, names, parts, kind, objects=told.objects, labels=told.labels, strict=strict,
                first=told.first,
            )  # fmt: skip
            break
        except BadRow as fault:
            faults += 1
            if not told.drop_bad_rows or faults > _MOST_BAD or len(fault.rows) == len(table.rows):
                raise
            bad += [table.lines[row] for row in fault.rows]
            table = table.without(fault.rows)
    assumed = ""
    if told.kind == "auto" and told.columns is None:
        if not names:
            assumed = _ASSUMED.get((kind, table.width), "")
        elif kind == "odd-one-out" and "answer" in parts:
            assumed = _ASSUMED["place"]
        else:
            assumed = parts_of.assumed_of_letters(names, parts)
    known: dict[str, Any] = {
        "rows": read.report.rows + len(bad),
        "bad": tuple(sorted(bad)),
        "unit": table.unit,
    }
    return replace(read, report=replace(read.report, assumed=assumed, **known))


def _with_header(table: TextTable, told: Reading) -> tuple[TextTable, list[str]]:
    """Split the header off; no names where there is none."""
    first = [field.strip() for field in table.rows[0]]
    if told.header is True:
        rest, names = table.below(), first
    elif told.header is False:
        return table, []
    elif table.remark is not None:
        if parts_of.kind_of(parts_of.by_name(table.remark), told.kind) is None:
            raise InvalidInput(
                f"{table.path}: line '#{','.join(table.remark)}' may be a header, a comment or an "
                "answer; take out the # and pass header=True or header=False (--no-header)"
            )
        rest, names = table, table.remark
    elif (
        parts_of.kind_of(parts_of.by_name(first), told.kind) is not None
        or (told.columns is not None and any(c in first for c in told.columns.values()))
        or _is_partly_known(table, first)
    ):
        rest, names = table.below(), first
    else:
        _refuse_strange_header(table, first)
        return table, []
    if not rest.rows:
        raise InvalidInput(f"{table.path}: has a header and no rows; add answered questions")
    return rest, names


def _is_partly_known(table: TextTable, first: Sequence[str]) -> bool:
    """Whether a first row like no other has two words of a header, though not enough of them."""
    return len(parts_of.by_name(first)) > 1 and not set(first[:3]) & _values_below(table)


def _values_below(table: TextTable) -> set[str]:
    return {field.strip() for row in table.rows[1:] for field in row[:3]}


def _refuse_strange_header(table: TextTable, first: Sequence[str]) -> None:
    """A first row like no other is a header that nobody here knows, or one more answer."""
    if len(first) == 1:
        raise table.unclear(
            0,
            f"'{first[0]}' is one field, and an answer needs three; separate fields by commas, "
            "tabs or semicolons",
        )
    if not set(first[:3]) & _values_below(table) and not all(
        f.lstrip("-").isdecimal() for f in first[:3]
    ):
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what, for example "
            f'columns={{"head": {first[0]!r}, "near": {first[1 % len(first)]!r}, '
            f'"far": {first[-1]!r}}} (--columns head={first[0]},…); if it is an answer, pass '
            "header=False (--no-header)",
        )


def _parts(table: TextTable, names: Sequence[str], told: Reading) -> tuple[dict[str, int], str]:
    known = parts_of.by_name(names)
    if told.columns is not None:
        beside = {part: i for part, i in known.items() if part in parts_of.BESIDE}
        known = beside | parts_of.by_choice(told.columns, names, table.width)
    elif not names:
        try:
            known = parts_of.by_position(told.kind, table.width)
        except InvalidInput as error:
            raise table.unclear(0, str(error)) from None
    found = parts_of.kind_of(known, told.kind)
    if found is None:
        wanted = parts_of.KINDS if told.kind == "auto" else {told.kind: parts_of.KINDS[told.kind]}
        raise InvalidInput(
            f"{table.path}: columns {', '.join(names) or list(range(table.width))} make no answer; "
            "needed are "
            + "; or ".join(dict.fromkeys(" + ".join(w) for ways in wanted.values() for w in ways))
            + ". Name them with columns= (--columns)"
        )
    needed = next(ways for ways in parts_of.KINDS[found] if set(ways) <= set(known))
    used = (*needed, *parts_of.BESIDE)
    return {part: i for part, i in known.items() if part in used}, found


def _from_arrays(path: str | os.PathLike[str], told: Reading) -> Triplets:
    held = read_arrays(path)
    name, kind = os.fspath(path), told.kind

    def fault(row: int, what: str) -> InvalidInput:
        return InvalidInput(f"{name}, row {row}: {what}")

    if kind == "auto":
        kind = "triplets" if held.answers is None else "answers"
    elif (kind == "answers") != (held.answers is not None):
        raise InvalidInput(
            f"{name}: kind={kind!r}, but the file has {'no ' * (held.answers is None)}answers "
            "beside its three columns; leave kind out, or add them"
        )
    order = {"answers": ("head", "a", "b")}.get(kind) or tuple(parts_of.by_position(kind, 3))
    columns, known = held.columns, told.labels if told.labels is not None else held.labels
    if told.objects == "names" and known is None:
        ids, closed = np.unique(columns, return_inverse=True)
        columns, known = closed.reshape(columns.shape), [str(i) for i in ids.tolist()]
    answered = to_triplets(
        kind,
        dict(zip(order, columns.T, strict=True)),
        None if held.answers is None else read_answers(held.answers, fault),
        fault,
    )
    n = int(columns.max(initial=-1)) + 1
    if n > (MAX_OBJECTS if known is None else len(known)):
        row = int(np.argmax(columns.max(axis=1) == n - 1))
        if known is None:
            raise fault(row, beyond(n - 1))
        raise fault(row, f"object {n - 1}, but there are {len(known)} labels; one each is needed")
    called = distinct_labels(known, [] if known is not None else [str(i) for i in range(n)])
    read = assemble(
        answered,
        called,
        kind=kind,
        lines=np.arange(1, len(columns) + 1),
        beside=Beside(held.persons, held.person_labels, held.weights),
        unread=held.unread,
    )
    guessed = told.kind == "auto" and kind == "triplets" and held.plain
    assumed = _ASSUMED[kind, 3] if guessed else ""
    return replace(read, report=replace(read.report, assumed=assumed, unit="row"))
