"""Read triplets and trials from any file; docs/files.md says what is read and what is refused.

Objects that are numbers keep them, so that results match the user's other data. Names are sorted
alphabetically.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer import checks
from nearer.checks import amount
from nearer.errors import BadRow, DroppedRows, InvalidInput
from nearer.files import refuse_larger
from nearer.questions import MAX_OBJECTS, Floats, Objects
from nearer.trials import Trials, Triplets, examine
from nearer.triplets import columns as layouts
from nearer.triplets.columns import Choices, Form, Options, Parts, option
from nearer.triplets.table import EMPTY, Table, load_table

Kind = Literal["auto", "triplets", "answers", "odd-one-out", "most-central"]
_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]*)?([eE][-+]?[0-9]{1,2})?")
_DROP = option("drop_bad_rows=True", "--drop-bad-rows")
_AS_NAMES = option('objects="names"', "--names")


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
        Separated text, Excel, Parquet (a file or a folder), ``.npy``, ``.npz``, JSON or lines of
        it, also with screens (grids, jsPsych, psiz, votes), psiz's HDF5; any of them compressed. Or
        a pandas or polars frame. See ``docs/files.md``.
    kind
        ``"triplets"`` (head, near, far), ``"answers"`` (head, two objects, and which of them),
        ``"odd-one-out"`` or ``"most-central"``. ``"auto"`` decides by the column names;
        without a header by their number: three are triplets and four answers, as the report says.
    header
        Whether the first row names the columns.
    objects
        Whether the values of object columns are the objects' ``"numbers"``, counted from 0,
        or ``"names"``, also if these look like numbers.
    labels
        The names of objects 0 … n−1; needed if the file does not name all objects.
    columns
        Which column, by name or position, is which part: ``{"head": "ref", "near": "same",
        "far": "other"}``. Parts are head, near, far; head, a, b and chosen or answer; item1 to
        item3 and odd, central or answer; person, weight, seconds, ms, excluded, taken_back.
    drop_bad_rows
        Whether rows that cannot be read are left out, counted and listed, instead of refused.
    first
        Whether answers that are places count from 0 or from 1; needed only if both fit the file.

    Returns
    -------
    Triplets
        The triplets as a view of the trials that were read, and a report. `DroppedRows` warns of
        rows that hold no answer (an object occurs twice, undecided), and names their lines.

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
    known = None if labels is None else distinct_labels(labels)
    return _read(path, Options(kind, header, objects, known, columns, drop_bad_rows, first))


def read_trials(
    path: str | os.PathLike[str] | Any, *, first: int | None = None, **how: Any
) -> Trials:
    r"""Read choices: the objects shown and chosen, the person and the time.

    Parameters
    ----------
    path
        Any file or frame that `nearer.read_triplets` reads; triplets become comparisons.
    first, **how
        As in `nearer.read_triplets`, and its other options.

    Examples
    --------
    >>> import nearer, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "screens.jsonl"
    >>> _ = file.write_text('{"query": "ape", "shown": ["bee", "cat", "dog"], "chosen": ["dog"]}\n')
    >>> trials = nearer.read_trials(file)
    >>> trials.names, trials.triplets()[0].tolist()
    (('ape', 'bee', 'cat', 'dog'), [[0, 3, 1], [0, 3, 2]])
    """
    return _read(path, Options(first=first, **how)).trials


def _read(path: Any, options: Options) -> Triplets:
    table = load_table(path, ragged=options.drop_bad_rows)
    if table.has_header is False and (options.columns is not None or options.header is False):
        rule = "columns= and header= (--columns, --no-header) are for tables, leave them out"
        raise InvalidInput(f"{table.name}: has no header and no columns by name; {rule}")
    if table.object_names is not None and options.labels is None:
        options = replace(options, objects="numbers", labels=table.object_names)
    table, parts, form = layouts.layout(table, options)
    left_out = {"bad": list(table.ragged)}
    table = _without_excluded(table, parts, left_out)
    trials = None
    pages: list[int] | None = None if form.kind == "screens" else []
    while trials is None:
        try:
            if pages is None:
                expanded, pages = layouts.with_screens(table, form.parts)
                left_out["others"] = table.lines[pages].tolist()
                table = expanded
            trials, known = _trials(table, parts, form, options)
        except BadRow as fault:
            if not options.drop_bad_rows or len(fault.rows) == len(table):
                raise
            left_out["bad"] += table.lines[fault.rows].tolist()
            table = table.without(fault.rows)
    known["rows"] += len(left_out["bad"])
    known |= {what: sorted(lines) for what, lines in left_out.items()}
    known |= {"assumed": layouts.assumed(table, parts, form, options), "unit": table.unit}
    labels = tuple(map(str, trials.names or range(trials.n_objects)))
    used = {
        *parts.values(),
        *(layouts.name_columns(table, form).values() if options.labels is None else ()),
    }
    names = [] if form.kind == "screens" else table.header  # screens have many other fields
    unread = [name for i, name in enumerate(names) if name and i not in used]
    report = examine(trials.triplets()[0], labels, unread_columns=unread, **known)
    for why, lines in (
        ("an object is named twice", report.degenerate),
        ("undecided", report.undecided),
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


# --- what the rows say ----------------------------------------------------------------------------


def _without_excluded(table: Table, parts: Parts, left_out: dict[str, list[int]]) -> Table:
    """The table without rows that are marked as excluded or as taken back."""
    columns = [table.column(parts[part]) for part in ("excluded", "taken_back") if part in parts]
    yes = ("1", "1.0", "true", "yes")
    rows = zip(*columns, strict=True)
    out = [i for i, marks in enumerate(rows) if any(mark.lower() in yes for mark in marks)]
    if len(out) == len(table):
        what = f"all {len(out):,} answers are marked as excluded or taken back"
        raise InvalidInput(f"{table.name}: {what}; at least one must count")
    left_out["excluded"] = table.lines[out].tolist()
    return table.without(out)


def _trials(
    table: Table, parts: Parts, form: Form, options: Options
) -> tuple[Trials, dict[str, Any]]:
    """The trials of a table, and facts for the report; an empty choice is a tie on screens only."""
    are_screens, written = form.kind == "screens", layouts.choices_of(table, parts, form, options)
    decided = np.asarray((written.chosen > 0).any(axis=1))
    used = decided | are_screens
    numbers, labels, are_numbers = _numbers(table, written, used, options)
    ordered: Objects = np.sort(numbers, axis=1)
    twice = used & ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)).any(axis=1)
    lines, good = table.lines, used & ~twice
    known: dict[str, Any] = {
        "rows": len(good),
        "degenerate": np.unique(lines[twice]).tolist(),
        "undecided": lines[~used].tolist(),
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
        if columns := layouts.name_columns(table, form):
            names = _named_beside(table, columns, numbers, labels)
        elif written.objects.dtype != object and table.has_header:
            names = tuple(range(len(labels)))  # whole numbers of a frame stay whole numbers
        elif int(objects.max(initial=-1)) + 1 == len(labels):
            names = None
    if written.kind != "near":
        objects = np.insert(objects, 0, -1, axis=1)
    also |= {"chosen": written.chosen[good], "ranked": written.ranked, "names": names}
    return Trials(written.kind, objects[:, 0], objects[:, 1:], **also), known | beside


def _numbers(
    table: Table, written: Choices, used: NDArray[np.bool_], options: Options
) -> tuple[Objects, tuple[str, ...], bool]:
    """The number of each object of each row, or −1; all labels; whether these are numbers."""
    codes, distinct = pd.factorize(written.objects.ravel())
    places = codes.reshape(written.objects.shape)
    values = [str(value) for value in distinct]
    listed = set(options.labels or ())
    empty = np.array([*(v in EMPTY and v not in listed for v in values), False])
    gaps = np.argwhere(empty[places] & used[:, None])
    if len(gaps):
        at, part = gaps[0]
        value = values[places[at, part]]
        what = f"{value!r}, which means missing" if value else "empty"
        remedy = f"fill it in, leave such rows out with {_DROP}, or list a name in labels="
        rows = np.unique(gaps[:, 0]).tolist()
        raise table.fault(int(at), f"{written.parts[part]} is {what}; {remedy}", rows)

    def wrong(strange: Sequence[str], what: str) -> BadRow:
        code = {value: i for i, value in enumerate(values)}
        rows = np.isin(places, [code[value] for value in strange]).any(axis=1)
        first = int(np.argmax((places == code[strange[0]]).any(axis=1)))
        return table.fault(first, f"object {strange[0]!r}{what}", np.flatnonzero(rows).tolist())

    number, labels, are_numbers = _numbered(values, options, wrong)
    return np.array([*(number.get(v, -1) for v in values), -1])[places], labels, are_numbers


def _numbered(
    values: Sequence[str], options: Options, wrong: Callable[[Sequence[str], str], BadRow]
) -> tuple[dict[str, int], tuple[str, ...], bool]:
    """Decide whether distinct values are numbers or names, and number them."""
    labels, objects, listed = options.labels, options.objects, set(options.labels or ())
    whole = {value: number for value in values if (number := _whole(value)) is not None}
    names = [v for v in values if v not in whole and (v not in EMPTY or v in listed)]
    if objects == "auto":
        all_listed = bool(listed) and listed.issuperset([*whole, *names])
        if whole and names and not all_listed:
            is_, rest = ("not ", names) if len(names) <= len(whole) else ("", list(whole))
            raise wrong(
                rest,
                f" is {is_}a whole number, but {len(values) - len(rest)} of {len(values)} objects "
                f"are{'' if is_ else ' not'}; mend it, or say that all are names: {_AS_NAMES}",
            )
        objects = "names" if all_listed or names else "numbers"
    if objects == "names":
        called = distinct_labels(sorted_names([*whole, *names]) if labels is None else labels)
        place = {name: i for i, name in enumerate(called)}
        if unlisted := [name for name in (*whole, *names) if name not in place]:
            raise wrong(unlisted, f" is not among the {len(place)} labels given")
        return place, called, False
    if names:
        raise wrong(names, ": numbers must be whole numbers")
    n = max(whole.values(), default=-1) + 1 if labels is None else len(labels)
    most, rule = (MAX_OBJECTS, f"at most {MAX_OBJECTS:,}")
    if labels is not None:
        most, rule = n, f"there are {n} labels"
    if outside := [value for value, number in whole.items() if not 0 <= number < most]:
        remedy = f"if these are names (also where they start at 1), say so: {_AS_NAMES}"
        raise wrong(outside, f": numbers run from 0 and {rule}; {remedy}")
    return whole, distinct_labels(range(n) if labels is None else labels), True


def _named_beside(
    table: Table, columns: Mapping[int, int], numbers: Objects, labels: Sequence[str]
) -> tuple[str, ...]:
    """Labels for numbered objects, from columns of names beside the numbers."""
    texts = {part: table.column(i) for part, i in columns.items()}
    if 3 in texts:  # the far one is Left or Right, whichever is not the answer
        sides = zip(texts[2], texts.pop(3), texts[1], strict=True)
        texts[2] = [right if near == left else left for left, right, near in sides]
    called: dict[int, str] = {}
    for part, names in texts.items():
        for row, (number, name) in enumerate(zip(numbers[:, part].tolist(), names, strict=True)):
            if name and called.setdefault(number, name) != name:
                both = f"{name!r}, and {called[number]!r} elsewhere"
                rule = "mend the names, or pass labels="
                raise table.fault(row, f"object {number} is called {both}; {rule}")
    taken = set(called.values())  # an object without a name may have another's name as its number
    spare = [f"number {x}" if x in taken else x for x in labels]
    return distinct_labels(called.get(i, label) for i, label in enumerate(spare))


def _beside(
    table: Table, parts: Parts, good: NDArray[np.bool_]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The person, the time and the weight of each answer, and facts for the report."""
    also: dict[str, Any] = {}
    known: dict[str, Any] = {}
    if "person" in parts:
        column: Any = table.frame.iloc[:, parts["person"]].tolist()
        if not all(type(value) is int for value in column):  # whole numbers stay such
            texts = table.column(parts["person"])
            refuse_larger(table.name, 4 * len(texts) * max(map(len, texts), default=0))
            column = np.array(["" if text in EMPTY else text for text in texts], dtype=np.str_)
        people = np.asarray(column)[good]
        nameless = (
            people == "" if people.dtype.kind == "U" else np.zeros(len(people), dtype=np.bool_)
        )
        also["people"] = None if nameless.all() else people
        known = {"persons": len(np.unique(people[~nameless])), "nameless": int(nameless.sum())}
    if timed := next((part for part in ("seconds", "ms", "time") if part in parts), None):
        seconds, strange, known["times"] = _seconds(table, timed, parts[timed])
        also["seconds"] = seconds[good]
        known["untimed"] = table.lines[strange].tolist()
    if "weight" in parts:
        weights, _ = _numbers_in(table, parts["weight"])
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(bad):
            value = table.column(parts["weight"])[bad[0]]
            what = f"weight {value!r}: must be a number of at least 0; mend it"
            raise table.fault(int(bad[0]), what, bad.tolist())
        also["weights"] = weights[good]
    return also, known


def _seconds(table: Table, part: str, column: int) -> tuple[Floats, list[int], str]:
    """Response times in seconds, the rows without a number, and a sentence on the unit.

    A column that names no unit is in seconds if the median is below 60, as PsychoPy writes it.
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
        words += f", by its median of {median:.4g}. If that is wrong: "
        words += layouts.columns_option({other: name})
    return values * (1.0 if unit == "seconds" else 1e-3), strange, words


def _numbers_in(table: Table, column: int) -> tuple[Floats, list[int]]:
    """The numbers of a column, nan for empty cells, and the rows with anything else.

    A comma is a decimal comma unless it always cuts off three digits, as it does in thousands.
    """
    texts = pd.Series(table.column(column), dtype=object)
    if not texts[texts.str.contains(",")].str.fullmatch(r"-?\d+(,\d{3})+").all():
        texts = texts.str.replace(r"^(-?\d+),(\d+)$", r"\1.\2", regex=True)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64, copy=True)
    return numbers, np.flatnonzero(np.isnan(numbers) & ~texts.isin(EMPTY)).tolist()


# --- names and numbers of objects -----------------------------------------------------------------


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names in alphabetical order, or in numerical order where all of them are whole numbers."""
    wholes = {name: _whole(name) for name in names}
    if any(number is None for number in wholes.values()):
        return sorted(wholes)
    return sorted(wholes, key=lambda name: (wholes[name] or 0, name))


def distinct_labels(labels: Iterable[object]) -> tuple[str, ...]:
    """Labels as texts; two that are the same are refused."""
    texts = tuple(map(str, checks.one("labels", labels, Iterable, "a list of names")))
    checks.names("labels", texts)
    if len(set(texts)) < len(texts):
        ((twice, _),) = Counter(texts).most_common(1)
        rule = "every object needs its own; pass labels= with names that differ"
        raise InvalidInput(f"label {twice!r:.60} occurs twice: {rule}")
    return texts


def _whole(value: str) -> int | None:
    """The whole number that a text is, also as 3.0 or 3e0, or None."""
    if not _NUMBER.fullmatch(value) or not float(value.replace(",", ".")).is_integer():
        return None
    return int(value) if value.lstrip("+-").isdecimal() else int(float(value.replace(",", ".")))
