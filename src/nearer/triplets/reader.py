"""Read triplets from whatever file somebody has.

The reader finds out the separator, the header, the kind of answer and whether objects are named
or numbered, and refuses to guess where two readings are possible: then it says on which line, and
which option decides. Nothing is dropped without a warning and a place in the report.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import BadRow, DroppedRows, InvalidInput
from nearer.files import content_suffix
from nearer.triplets import columns as parts_of
from nearer.triplets.arrays import read_arrays
from nearer.triplets.assembling import assemble, reported
from nearer.triplets.blocks import parquet_files
from nearer.triplets.collection import Triplets
from nearer.triplets.forms import Verdicts, read_answers, to_triplets
from nearer.triplets.objects import EMPTY, Coding, Numbering, distinct_labels, number_objects
from nearer.triplets.table import TextTable, read_table
from nearer.triplets.trials_reader import JSON, from_trials, holds_trials, read_trials

__all__ = ["read_triplets"]

Kind = Literal["auto", "triplets", "answers", "odd-one-out", "most-central"]
_OBJECTS = ("head", "near", "far", "a", "b", "chosen", "odd", "central", "item1", "item2", "item3")
_MOST_BAD = 1000  # bad rows after which the file is read in a wrong way rather than a bad file
_MAY_BE_EMPTY = ("near", "far", "chosen", "odd", "central")


def read_triplets(
    path: str | os.PathLike[str],
    *,
    kind: Kind = "auto",
    header: bool | Literal["auto"] = "auto",
    objects: Literal["auto", "numbers", "names"] = "auto",
    labels: Sequence[str] | None = None,
    columns: Mapping[str, str | int] | None = None,
    drop_bad_rows: bool = False,
) -> Triplets:
    r"""Read answered questions from a table or a NumPy file.

    Parameters
    ----------
    path
        Text with commas, tabs, semicolons or spaces between its columns, ``.npy`` or ``.npz``;
        or records of trials as `nearer.read_trials` reads them; any of them compressed as ``.gz``,
        ``.xz`` or ``.bz2``. Also ``.parquet``, or a folder of such files (needs
        ``nearer[parquet]``).
    kind
        ``"triplets"`` (head, near, far: Salmon's head, winner, loser, cblearn's list-order),
        ``"answers"`` (head, two objects, and which of them: tripletTools' Center, Left, Right,
        Answer, cblearn's questions with responses, lines ``a,b,c,<``), ``"odd-one-out"`` or
        ``"most-central"``. ``"auto"`` goes by the column names; without a header by their number,
        three being triplets and four answers.
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
    checks.one_of("kind", kind, ("auto", *parts_of.KINDS))
    checks.one_of("objects", objects, ("auto", "numbers", "names"))
    if content_suffix(path) in (".npy", ".npz"):
        return _from_arrays(path, kind, labels)
    if content_suffix(path) in JSON:
        return from_trials(read_trials(path))
    bad: list[int] = []
    header = True if parquet_files(Path(path)) else header
    whole = read_table(path, bad if drop_bad_rows else None)
    if kind == "auto" and columns is None and header is not False and holds_trials(whole.rows[0]):
        return from_trials(read_trials(path))
    table, names = _with_header(whole, header, kind, columns)
    parts, kind_found = _parts(table, names, kind, columns)
    # a column that nobody names, or that the user calls an answer, is yes or no and no object
    strict = not names or (columns is not None and "answer" in columns)
    while True:
        try:
            read = _from_table(table, names, parts, kind_found, objects, labels, strict)
            break
        except BadRow as fault:
            if not drop_bad_rows or len(bad) >= _MOST_BAD or len(table.rows) == 1:
                raise
            bad.append(table.lines[fault.row])
            table = table.without(fault.row)
    if bad:
        warnings.warn(f"{len(bad)} rows could not be read and are left out, the first on line "
                      f"{min(bad)}; the report lists them", DroppedRows, stacklevel=2)  # fmt: skip
    guessed = kind == "auto" and columns is None and not names and table.width == 3
    return reported(read, bad, guessed and kind_found == "triplets")


def _with_header(
    table: TextTable,
    header: bool | Literal["auto"],
    kind: str,
    columns: Mapping[str, str | int] | None,
) -> tuple[TextTable, list[str]]:
    """Split the header off; no names where there is none."""
    first = [field.strip() for field in table.rows[0]]
    if header is True:
        rest, names = table.below(), first
    elif header is False:
        return table, []
    elif table.remark is not None:
        if parts_of.kind_of(parts_of.by_name(table.remark), kind) is None:
            raise InvalidInput(
                f"{table.path}: line '#{','.join(table.remark)}' may be a header, a comment or an "
                "answer; take out the # and pass header=True or header=False"
            )
        rest, names = table, table.remark
    elif parts_of.kind_of(parts_of.by_name(first), kind) is not None or (
        columns is not None and any(c in first for c in columns.values())
    ):
        rest, names = table.below(), first
    else:
        _refuse_strange_header(table, first)
        return table, []
    if not rest.rows:
        raise InvalidInput(f"{table.path}: has a header and no rows; add answered questions")
    return rest, names


def _refuse_strange_header(table: TextTable, first: Sequence[str]) -> None:
    """A first row like no other is a header that nobody here knows, or one more answer."""
    others = {field.strip() for row in table.rows[1:] for field in row[:3]}
    if not set(first[:3]) & others and not all(f.lstrip("-").isdecimal() for f in first[:3]):
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what, for example "
            f'columns={{"head": {first[0]!r}, "near": {first[1 % len(first)]!r}, '
            f'"far": {first[-1]!r}}}; if it is an answer, pass header=False',
        )


def _parts(
    table: TextTable, names: Sequence[str], kind: str, columns: Mapping[str, str | int] | None
) -> tuple[dict[str, int], str]:
    known = parts_of.by_name(names)
    if columns is not None:
        beside = {part: i for part, i in known.items() if part in ("person", "weight")}
        known = beside | parts_of.by_choice(columns, names, table.width)
    elif not names:
        try:
            known = parts_of.by_position(kind, table.width)
        except InvalidInput as error:
            raise table.unclear(0, str(error)) from None
    found = parts_of.kind_of(known, kind)
    if found is None:
        wanted = parts_of.KINDS if kind == "auto" else {kind: parts_of.KINDS[kind]}
        raise InvalidInput(
            f"{table.path}: columns {', '.join(names) or list(range(table.width))} make no answer; "
            "needed are "
            + "; or ".join(" + ".join(needed) for ways in wanted.values() for needed in ways)
            + ". Name them with columns="
        )
    needed = next(ways for ways in parts_of.KINDS[found] if set(ways) <= set(known))
    used = (*needed, "person", "weight")
    return {part: i for part, i in known.items() if part in used}, found


def _from_table(
    table: TextTable,
    names: Sequence[str],
    parts: Mapping[str, int],
    kind: str,
    objects: str,
    labels: Sequence[str] | None,
    strict: bool,
) -> Triplets:
    coding = Coding()
    codes = {part: coding.encode(table.column(parts[part])) for part in _OBJECTS if part in parts}
    verdicts = None
    if "answer" in parts and strict:
        verdicts = read_answers(table.column(parts["answer"]), table.error)
    elif "answer" in parts:
        verdicts, chosen = _answers(table, parts["answer"], coding, codes)
        if chosen is not None:
            codes["chosen"] = chosen
    numbering = number_objects(coding, objects, labels, table)
    numbered = {part: numbering.numbers[code] for part, code in codes.items()}
    for part in set(numbered) - set(_MAY_BE_EMPTY):
        if (numbered[part] < 0).any():
            raise table.error(int(np.argmin(numbered[part])), f"{part} is empty; fill it in")
    answered = to_triplets(kind, numbered, verdicts, table.error)
    names_read: set[int] = set()
    if labels is None and numbering.are_numbers and kind == "triplets" and names:
        numbering, names_read = _named_beside(table, names, numbered, numbering)
    unread = [n for i, n in enumerate(names) if i not in names_read | set(parts.values())]
    person = Coding()
    return assemble(
        answered,
        numbering.labels,
        kind=kind,
        lines=np.array(table.lines),
        persons=person.encode(table.column(parts["person"])) if "person" in parts else None,
        person_labels=tuple(person.codes),
        weights=_weights(table, parts["weight"]) if "weight" in parts else None,
        unread=unread,
    )


def _answers(
    table: TextTable, column: int, coding: Coding, codes: Mapping[str, NDArray[np.int64]]
) -> tuple[Verdicts | None, NDArray[np.int64] | None]:
    """A column that says which was nearer: by naming it, or by yes and no."""
    values = table.column(column)
    unknown = len(coding.codes)
    chosen = np.array([coding.codes.get(value, unknown) for value in values])
    names_one = (chosen == codes["a"]) | (chosen == codes["b"])
    empty = np.array([value in EMPTY for value in values]) & ~names_one
    clear = names_one | empty
    if not clear.all():
        if 2 * names_one.sum() > (~empty).sum() and not set(values) <= {"-1", "0", "1", *EMPTY}:
            row = int(np.argmin(clear))
            raise table.error(
                row, f"answer {values[row]!r} is neither of the two that were compared; mend it"
            )
        return read_answers(values, table.error), None
    if names_one.any() and set(values) <= {"0", "1", *EMPTY}:
        raise table.unclear(
            0,
            f"answer {values[0]!r} may be the object chosen, or whether the first is nearer; "
            'say which with columns={"head": …, "a": …, "b": …, "chosen" or "answer": …}',
        )
    return None, np.where(empty, coding.encode([""])[0], chosen)


def _named_beside(
    table: TextTable,
    names: Sequence[str],
    numbered: Mapping[str, NDArray[np.int64]],
    numbering: Numbering,
) -> tuple[Numbering, set[int]]:
    """Labels for numbered objects from columns beside the numbers, and which columns these are."""
    beside: list[tuple[NDArray[np.int64], list[str]]] = []
    used: set[int] = set()
    for part in ("head", "near", "far"):
        column = parts_of.name_columns(names, part)
        if column is not None:
            used.add(column)
            beside.append((numbered[part], table.column(column)))
    spoken = parts_of.spoken_columns(names)  # tripletTools: Center, Left, Right, Answer
    if not beside and spoken is not None:
        used.update(spoken)
        center, left, right, answer = (table.column(i) for i in spoken)
        loser = [r if w == x else x for x, r, w in zip(left, right, answer, strict=True)]
        beside = [
            (numbered["head"], center),
            (numbered["near"], answer),
            (numbered["far"], loser),
        ]
    found: dict[int, str] = {}
    for numbers, called in beside:
        for row, (number, name) in enumerate(zip(numbers.tolist(), called, strict=True)):
            if number >= 0 and name and found.setdefault(number, name) != name:
                raise table.error(
                    row,
                    f"object {number} is called {name!r}, and {found[number]!r} elsewhere; mend "
                    "the names, or pass labels=",
                )
    taken = set(found.values())  # an object without a name may have another's name as its number
    spare = [f"number {x}" if x in taken else x for x in numbering.labels]
    labels = [found.get(i, label) for i, label in enumerate(spare)]
    return Numbering(numbering.numbers, distinct_labels(labels, ()), True), used


def _weights(table: TextTable, column: int) -> NDArray[np.float64]:
    values = table.column(column)
    try:
        weights = np.array(values, dtype=np.float64)
        bad = ~(np.isfinite(weights) & (weights >= 0))
        row = int(np.argmax(bad)) if bad.any() else None
    except ValueError:
        row = next(i for i, value in enumerate(values) if not _is_number(value))
    if row is not None:
        raise table.error(row, f"weight {values[row]!r}: must be a number of at least 0; mend it")
    return weights


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _from_arrays(path: str | os.PathLike[str], kind: str, labels: Sequence[str] | None) -> Triplets:
    held = read_arrays(path)
    name = os.fspath(path)

    def fault(row: int, what: str) -> InvalidInput:
        return InvalidInput(f"{name}, row {row}: {what}")

    asked = kind
    if kind == "auto":
        kind = "triplets" if held.answers is None else "answers"
    elif (kind == "answers") != (held.answers is not None):
        raise InvalidInput(
            f"{name}: kind={kind!r}, but the file has {'no ' * (held.answers is None)}answers "
            "beside its three columns; leave kind out, or add them"
        )
    order = {"answers": ("head", "a", "b")}.get(kind) or tuple(parts_of.by_position(kind, 3))
    answered = to_triplets(
        kind,
        dict(zip(order, held.columns.T, strict=True)),
        None if held.answers is None else read_answers(held.answers, fault),
        fault,
    )
    n = int(held.columns.max(initial=-1)) + 1
    known = labels if labels is not None else held.labels
    called = distinct_labels(known, [str(i) for i in range(n)])
    if len(called) < n:
        row = int(np.argmax(held.columns.max(axis=1) >= len(called)))
        raise fault(row, f"object {n - 1}, but there are {len(called)} labels; one each is needed")
    guessed = asked == "auto" and kind == "triplets" and held.plain
    read = assemble(
        answered,
        called,
        kind=kind,
        lines=np.arange(1, len(held.columns) + 1),
        persons=held.persons,
        person_labels=held.person_labels,
        weights=held.weights,
        unread=held.unread,
    )
    return reported(read, (), guessed)
