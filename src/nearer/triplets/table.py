"""Any table as a data frame: text, Excel, Parquet, JSON, NumPy, HDF5, data frames.

If the first bytes show what a file is, they decide, since suffixes are often wrong. Each row keeps
the number of the line that it begins on, so that messages can name it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearer import files
from nearer.errors import AnswersWarning, BadRow, InvalidInput

# How R, pandas, SQL, Excel and JSON write a missing value. It is no object unless labels list it.
EMPTY = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"})
#: Fields by which a record is recognised as a screen: objects shown, and objects chosen.
SCREENS = (
    ("query", "shown", "chosen"),
    ("stimulus", "choices", "response"),
    ("stimulus", "choices", "button_pressed"),
    ("interactions",),
    ("answers", "agreement"),
)
_SIDE = re.compile(r"(?:image|img|picture|stimulus|stim|item|object)(left|middle|center|right)")
_STATED = re.compile(r'"?sep=([^\w"\r\n])"?\s*', re.IGNORECASE)
_NO_SEPARATOR = re.compile(r'[^,]*|"[^"]*"|\s*-?\d+,\d+\s*')  # a field that commas do not cut
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape of JSON; a decoded text has none


@dataclass(frozen=True)
class Table:
    """A table of values as the source has them; the index holds the line of each row."""

    name: str  # what messages call the source
    frame: pd.DataFrame
    unit: str = "line"  # what the index counts: lines of a file, its records, rows of a frame
    has_header: bool | None = None  # None: the first row may name the columns
    comment: tuple[str, ...] | None = None  # the last one above the rows, which may be the header
    ragged: tuple[int, ...] = ()  # lines of another width, left out
    object_names: tuple[str, ...] | None = None  # what objects 0, 1, … are called

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.frame.columns)

    @property
    def header(self) -> list[str]:
        """The names of the columns; none if these have no names."""
        return [str(name) for name in self.frame.columns] if self.has_header else []

    @property
    def lines(self) -> NDArray[Any]:
        """The line of each row."""
        return np.asarray(self.frame.index)

    def column(self, i: int) -> list[str]:
        """The texts of one column, without white space around them."""
        return [text_of(value).strip() for value in self.frame.iloc[:, i]]

    def called(self, i: int) -> str | int:
        """The name of a column, or its position if it has none."""
        return self.header[i] if self.header and self.header[i] else i

    def first_row(self) -> list[str]:
        """The texts of the first row."""
        return [text_of(value).strip() for value in self.frame.iloc[0]]

    def with_header(self, names: Sequence[str] | None = None) -> Table:
        """The same table with these names of its columns; None: those in its first row."""
        below = self.frame if names is not None else self.frame.iloc[1:]
        header = self.first_row() if names is None else list(names)
        table = replace(self, frame=below.set_axis(header, axis=1), has_header=True)
        if len(again := np.flatnonzero((table.frame == header).all(axis=1))):
            raise table.unclear(int(again[0]), "repeats the header; take it out")
        return table

    def without(self, rows: Sequence[int]) -> Table:
        """The table without some rows."""
        rest = np.ones(len(self), dtype=np.bool_)
        rest[list(rows)] = False
        return replace(self, frame=self.frame[rest])

    def fault(self, row: int, what: str, rows: Sequence[int] = ()) -> BadRow:
        """An error about one row, with its line; `rows` are all rows with the same fault."""
        more = f" ({len(rows) - 1:,} more cannot be read)" if len(rows) > 1 else ""
        where = f"{self.name}, {self.unit} {self.frame.index[row]}"
        return BadRow(f"{where}: {what}{more}", rows or [row])

    def unclear(self, row: int, what: str) -> InvalidInput:
        """An error about an ambiguous table, with this row as the example."""
        return InvalidInput(str(self.fault(row, what)))


def plain_word(name: str) -> str:
    """The name of a column in lower case without punctuation; ``image_left`` becomes left."""
    word = re.sub(r"[\W_]", "", name).lower()
    side = _SIDE.fullmatch(word)
    return side[1] if side else word


def text_of(value: Any) -> str:
    """A cell as text; missing values are empty, lists and objects are JSON."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, list | tuple | dict | np.ndarray):
        return json.dumps(value, default=lambda x: getattr(x, "tolist", x.__str__)())
    return str(value)


def read_table(
    source: str | os.PathLike[str] | Any, *, encoding: str | None = None
) -> pd.DataFrame:
    """Read a table of any format as texts without white space around them, "" for nothing.

    `encoding` is what text that is neither UTF-8 nor UTF-16 is read as. The index holds the line,
    record or row that each row comes from, and has its name.
    """
    table = load_table(source, encoding=encoding)
    if table.has_header is None:
        table = table.with_header()
    return table.frame.map(lambda value: text_of(value).strip()).rename_axis(table.unit)


def load_table(source: Any, *, encoding: str | None = None, ragged: bool = False) -> Table:
    """Read a table of any format with the values as they are.

    `ragged` is whether lines with more or fewer fields than the first are left out, not refused.
    """
    if hasattr(source, "columns"):
        return _frame("the frame", source)
    path, name = files.as_path(source), os.fspath(source)
    if parts := files.parquet_files(path):
        return _parquet(name, parts)
    return _from_file(path, name, encoding, ragged)


def _from_file(path: Path, name: str, encoding: str | None, ragged: bool) -> Table:
    data, suffix = files.read_bytes(path), files.content_suffix(path)
    is_zip = data.startswith(b"PK\3\4")
    if is_zip and b"xl/workbook" in data:
        return _excel(name, data)
    if data.startswith(b"PAR1"):
        return _parquet(name, [path])
    if data.startswith(b"\x93NUMPY") or (is_zip and b".npy" in data) or suffix in (".npy", ".npz"):
        return _arrays(name, files.read_numpy(path))
    if data.startswith(b"\x89HDF") or suffix in (".h5", ".hdf5"):
        return _hdf5(name, data)
    text = files.decoded(data, name, encoding)
    if suffix in (".json", ".jsonl", ".ndjson") or text.lstrip()[:2] in ('{"', "[{", "[["):
        return _json(name, text)
    # The first lines may be no CSV, too.
    with files.one_message(name, "a table", "check the quotes"):
        return _text(name, text, ragged)


def _frame(name: str, frame: Any) -> Table:
    """A pandas or polars frame; rows are counted from 0."""
    at = getattr(frame, "iloc", None)  # by position, since two columns may have one name
    columns = [frame[:, i] if at is None else at[:, i] for i in range(frame.shape[1])]
    values = pd.DataFrame({i: np.asarray(column) for i, column in enumerate(columns)})
    named = all(isinstance(column, str) for column in frame.columns)
    return Table(name, values.set_axis(list(frame.columns), axis=1), "row", has_header=named)


def _excel(name: str, data: bytes) -> Table:
    """The first sheet of a workbook; one cell far away would make all before it."""
    with files.one_message(name, "an Excel workbook", "save it as CSV (UTF-8)"):
        files.open_zip(name, data).close()
        book = pd.ExcelFile(io.BytesIO(data))
        book.book.worksheets[0].reset_dimensions()
        widths = [len(row) for row in book.book.worksheets[0].iter_rows(values_only=True)]
        files.refuse_larger(name, 8 * len(widths) * max(widths, default=0))
        frame = pd.read_excel(book, header=None, dtype=object, keep_default_na=False)
    first, *others = map(str, book.sheet_names)
    if others:
        rule = f"only the sheet {first!r} is read; save {', '.join(map(repr, others))} separately"
        warnings.warn(f"{name}: {rule}", AnswersWarning, stacklevel=2)
    frame.index += 1
    frame = frame[(frame.map(text_of) != "").any(axis=1)]
    if frame.empty:
        raise InvalidInput(f"{name}: the first sheet has no rows; it needs at least one")
    return Table(name, frame)


def _parquet(name: str, parts: Sequence[Path]) -> Table:
    """One Parquet file, or all of a folder, one after the other."""
    frames = []
    for file in parts:
        with files.one_message(file, "a Parquet file"):
            frames.append(_parquet_frame(file))
        if list(frames[-1].columns) != list(frames[0].columns):
            rule = f"has other columns than {parts[0]}; all files of a folder need the same"
            raise InvalidInput(f"{file}: {rule}")
    with files.one_message(name, "Parquet"):  # a text may be no UTF-8
        return _frame(name, pd.concat(frames, ignore_index=True))


def _parquet_frame(file: Path) -> pd.DataFrame:
    """One Parquet file, refused before it is unfolded if that takes too much memory.

    Equal values take no room in the file, nor do lists of a fixed length that are missing. A
    dictionary has each text once, and delta encoding makes each text from the one before it.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    data = io.BytesIO(files.read_bytes(file))
    opened = pq.ParquetFile(data)
    meta, leaves = opened.metadata, list(map(opened.schema.column, range(len(opened.schema))))
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    parts = [(leaf, group.column(j)) for group in groups for j, leaf in enumerate(leaves)]
    files.refuse_larger(file, sum(max(8, leaf.length) * part.num_values for leaf, part in parts))
    files.refuse_larger(file, 8 * meta.num_rows * sum(map(_slots, opened.schema_arrow.types)))
    (fold, others), size = files.parquet_texts(opened), 0
    for row in opened.iter_batches(1, columns=others) if others else ():
        files.refuse_larger(file, size := size + row.nbytes)
    folded = pq.ParquetFile(data, read_dictionary=fold, arrow_extensions_enabled=False).read(fold)
    size += sum(_unfolded(chunk) for column in folded.columns for chunk in column.chunks)
    files.refuse_larger(file, size)
    return opened.read().to_pandas()


def _slots(kind: Any) -> int:
    """How many values of a Parquet column a row has at least, which a missing list has, too."""
    kind = getattr(kind, "storage_type", kind)
    inside = sum(_slots(kind.field(i).type) for i in range(kind.num_fields))
    return max(1, inside) * getattr(kind, "list_size", 1)


def _unfolded(values: Any) -> int:
    """How many bytes all texts have in which a dictionary has each once."""
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra

    if hasattr(values, "dictionary"):
        lengths = pc.binary_length(values.dictionary).take(values.indices)
        return pc.sum(lengths).as_py() or 0
    inside = [values.values] if hasattr(values, "values") else getattr(values, "flatten", list)()
    return sum(map(_unfolded, inside))


def _text(name: str, text: str, ragged: bool) -> Table:
    """The rows of a text of separated values.

    A first line such as ``sep=;``, which Excel understands, names the separator. Lines that start
    with ``#`` at the top are comments, the last perhaps the header, as `numpy.savetxt` writes it.
    """
    lines = list(io.StringIO(text, newline=""))
    stated = _STATED.fullmatch(lines[0]) if lines else None
    begin = int(stated is not None)
    top = (i for i in range(begin, len(lines)) if lines[i].strip() and lines[i][0] != "#")
    first = next(top, len(lines))
    separator = stated[1] if stated else _separator("".join(lines[first : first + 1]))
    rows = _rows(name, lines, first, separator)
    if not rows:
        raise InvalidInput(f"{name}: has no rows; it needs at least one")
    above = [line.strip()[1:].strip() for line in lines[begin:first] if line.strip()]
    comment = tuple(next(csv.reader(above[-1:], delimiter=separator), ()))
    width = len(next(iter(rows.values())))
    for row in rows.values():
        if len(row) > width and not any(row[width:]):
            del row[width:]
    good = {number: row for number, row in rows.items() if len(row) == width}
    if bad := tuple(number for number in rows if number not in good):
        more = f" ({len(bad) - 1:,} more cannot be read)" * (len(bad) > 1)
        if not ragged:
            fault = f"has {len(rows[bad[0]])} fields where line {next(iter(rows))} has {width}"
            rule = "every row needs the same columns: take out what stands above the header, put "
            rule += f"quotes around names with a separator in them{more}"
            raise InvalidInput(f"{name}, line {bad[0]}: {fault}; {rule}")
    columns = dict(enumerate(zip(*good.values(), strict=True)))
    frame = pd.DataFrame(columns, index=list(good), dtype=object)
    return Table(name, frame, comment=comment if len(comment) == width else None, ragged=bad)


def _rows(name: str, lines: Sequence[str], first: int, separator: str) -> dict[int, list[str]]:
    """The rows that have values, by the line that each begins on."""
    reader = csv.reader(lines[first:], delimiter=separator, skipinitialspace=True, strict=True)
    rows, number = {}, first + 1
    try:
        for row in reader:
            if separator == " " and row and not row[-1]:
                row.pop()  # what follows the last space of a line is no field
            if any(row):
                rows[number] = row
            number = first + reader.line_num + 1
    except csv.Error as error:
        rule = f"{error}; check the quotes"
        raise InvalidInput(f"{name}, line {first + reader.line_num}: {rule}") from error
    return rows


def _separator(line: str) -> str:
    # commas between digits beside semicolons are decimal commas
    if line.count(";") > 1 and all(map(_NO_SEPARATOR.fullmatch, line.strip().split(";"))):
        return ";"
    fields = {s: len(next(csv.reader([line], delimiter=s))) for s in (",", "\t", ";", "|")}
    best = max(fields, key=fields.__getitem__)
    return best if fields[best] > 1 else " "


def _json(name: str, text: str) -> Table:
    """The records of JSON or JSON lines, without the structures around them."""
    with files.one_message(name, "JSON", "mend it, or get the file again"):
        values, unit = _parsed(name, text)
        numbered = [(line, record) for line, value in values for record in _records_in(value)]
        names = next((v.get("stimuli") for _, v in values if isinstance(v, dict)), None)
        if _SURROGATE.search(text):  # half of a surrogate pair cannot be encoded
            json.dumps([numbered, names], ensure_ascii=False).encode()
    records = [record for _, record in numbered]
    if strange := [record for record in records if not isinstance(record, dict)]:
        forms = "; or ".join(map(", ".join, SCREENS))
        rule = f"where records are needed, JSON objects with fields {forms}; or write a .csv"
        raise InvalidInput(f"{name}: holds {json.dumps(strange[0])[:40]} {rule}")
    if not records:
        raise InvalidInput(f"{name}: holds no records; it needs at least one answer")
    lines = [line for line, _ in numbered] if unit == "line" else range(1, len(numbered) + 1)
    frame = pd.DataFrame(records, index=lines, dtype=object)
    called = tuple(map(str, names)) if isinstance(names, list) else None
    return Table(name, frame, unit, has_header=True, object_names=called)


def _parsed(name: str, text: str) -> tuple[list[tuple[int, Any]], str]:
    """The values of the text, each with its line, and whether these are lines or one record."""
    try:
        return [(1, json.loads(text))], "record"
    except json.JSONDecodeError as error:
        whole = error
    values: list[tuple[int, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            values += [(number, json.loads(line))] if line.strip() else []
        except json.JSONDecodeError as here:
            at, what = (number, here.msg) if values else (whole.lineno, whole.msg)
            rule = f"is no JSON ({what}); mend it, or get the file again"
            raise InvalidInput(f"{name}, line {at}: {rule}") from None
    return values, "line"


def _records_in(value: Any) -> Iterator[Any]:
    """The records in lists (JATOS has one a person), in columns, or in one list of an object."""
    if isinstance(value, list):
        for part in value:
            wrapped = isinstance(part, list) or (isinstance(part, dict) and "sequence" in part)
            yield from _records_in(part) if wrapped else [part]
    elif not isinstance(value, dict):
        yield value
    elif _are_columns(value):
        rows = [list(v.values()) if isinstance(v, dict) else v for v in value.values()]
        yield from (dict(zip(value, row, strict=True)) for row in zip(*rows, strict=True))
    elif any(value.keys() >= set(fields) for fields in SCREENS):
        yield value
    elif isinstance(value.get("sequence"), list) and _all_dicts(value["sequence"]):  # psiz
        yield from ({"person": value.get("anonymous_id"), **step} for step in value["sequence"])
    else:
        inside = [v for v in value.values() if isinstance(v, list) and v and _all_dicts(v)]
        yield from _records_in(inside[0]) if len(inside) == 1 else [value]


def _are_columns(value: dict[str, Any]) -> bool:
    """Whether a JSON object holds columns of equal length, rather than one record."""
    kinds = {type(v) for v in value.values()}
    if len(value) < 2 or kinds not in ({list}, {dict}) or len({*map(len, value.values())}) != 1:
        return False
    return kinds == {dict} or not any(_all_dicts(v) and v for v in value.values())


def _all_dicts(value: Sequence[Any]) -> bool:
    return all(isinstance(part, dict) for part in value)


# What arrays are called in files of this package, of cblearn and of NumPy.
_ROWS = ("triplets", "triplet", "questions", "queries", "query", "X", "arr_0")
_BESIDE_ROWS = {
    3: ("answers", "responses", "response", "y", "arr_1"),
    "weight": ("weights", "sample_weight"),
    "person": ("people", "persons", "participants", "workers"),
}


def _arrays(name: str, held: dict[str, Any]) -> Table:
    """An ``(m, 3)`` or ``(m, 4)`` array as columns without names, and what lies beside it."""
    key = next((k for k in _ROWS if k in held), None)
    if key is None:
        rule = "it needs an array called 'triplets', or 'questions' and 'answers'"
        raise InvalidInput(f"{name}: holds {', '.join(held) or 'nothing'}; {rule}")
    rows = held[key]
    if rows.ndim != 2 or rows.shape[1] not in (3, 4) or rows.dtype.kind not in "iuf":
        rule = "must be whole numbers in rows (head, near, far) or (head, a, b, answer)"
        raise InvalidInput(f"{name}: {rows.dtype} of shape {rows.shape}: {rule}")
    columns: dict[Any, Any] = dict(enumerate(rows.T))
    for part, known in _BESIDE_ROWS.items():
        for beside in [k for k in known if k in held][:1]:
            values = held[beside]
            if values.shape != (len(rows),):
                what = f"{beside} of shape {values.shape}"
                raise InvalidInput(f"{name}: {what} for {len(rows)} rows; one is needed for each")
            is_text = values.dtype.kind in "US"
            columns[part] = _texts(name, beside, values) if is_text else values
    if 3 not in columns and key in ("questions", "queries", "query"):
        raise InvalidInput(f"{name}: holds questions without 'answers'; add them")
    labels = next((_texts(name, k, held[k]) for k in ("labels", "names") if k in held), None)
    return Table(name, pd.DataFrame(columns), "row", has_header=False, object_names=labels)


def _texts(name: str, part: str, values: Any) -> tuple[str, ...]:
    """A list of texts or numbers as texts; bytes are UTF-8."""
    if values.ndim != 1 or values.dtype.kind not in "USbiuf":
        what = f"{part} of shape {values.shape} and type {values.dtype}"
        raise InvalidInput(f"{name}: {what}; they must be a list of texts or numbers")
    try:
        texts = tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist())
        "".join(texts).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        rule = f"{part} cannot be written as UTF-8 ({error.reason}); save them as texts"
        raise InvalidInput(f"{name}: {rule}") from error
    return texts


def _hdf5(name: str, data: bytes) -> Table:
    """The arrays of a file, as trials of psiz."""
    with files.one_message(name, "an HDF5 file"):
        import h5py  # noqa: PLC0415 - an extra

        with h5py.File(io.BytesIO(data), "r") as file:
            # Links and external storage may lead to other files of this computer.
            own = [file[k] for k in file if type(file.get(k, getlink=True)) is h5py.HardLink]
            arrays = [x for x in own if isinstance(x, h5py.Dataset)]
            files.refuse_larger(name, sum(x.nbytes for x in arrays))
            if away := [x.name for x in arrays if x.external or x.is_virtual]:
                raise InvalidInput(f"{name}: {away[0]} is in another file; save it in this one")
            held = {x.name.removeprefix("/"): _values(name, x, len(data)) for x in arrays}
        return _psiz_trials(name, held)


def _values(name: str, array: Any, longest: int) -> Any:
    """The values of an HDF5 array; many texts may refer to one place in the file."""
    if not array.dtype.hasobject:
        return array[()]
    if array.ndim != 1 or array.dtype.metadata.get("vlen") not in (str, bytes):
        raise InvalidInput(f"{name}: {array.name} must be numbers, or a list of texts")
    texts, size, step = list[bytes](), 0, max(1, (1 << 30) // longest)
    for i in range(0, len(array), step):
        texts += array[i : i + step].tolist()
        files.refuse_larger(name, size := size + sum(map(len, texts[i:])))
    return np.array(texts, dtype=object)


def _psiz_trials(name: str, held: dict[str, Any]) -> Table:
    """Trials of psiz, as its versions up to 0.4.1 write them, as screens.

    ``stimulus_set`` has a row a trial: the query, the chosen references in the order of choosing,
    the others, and −1 if there are fewer.
    """
    if missing := {"stimulus_set", "n_select", "is_ranked"} - set(held):
        what = f"holds {', '.join(held) or 'nothing'}, and no {', '.join(sorted(missing))}"
        raise InvalidInput(f"{name}: {what}, which psiz up to 0.4.1 writes for ranked observations")
    if held.get("mask_zero", False):
        rule = "mask_zero is set, so 0 is no stimulus; save it with mask_zero=False"
        raise InvalidInput(f"{name}: {rule}")
    rows = np.asarray(held["stimulus_set"]).tolist()
    shown = [[x for x in row[1:] if x >= 0] for row in rows]
    columns = {
        "query": [row[0] for row in rows],
        "shown": shown,
        "chosen": [s[: int(k)] for s, k in zip(shown, held["n_select"], strict=True)],
        "ranked": [bool(r) for r in held["is_ranked"]],
    }
    people = held.get("agent_id")
    if people is not None and len(np.unique(people)) > 1:  # psiz writes one where none was named
        columns["person"] = people.tolist()
    if "rt_ms" in held:
        columns["ms"] = held["rt_ms"].tolist()
    frame = pd.DataFrame(columns, index=range(1, len(rows) + 1), dtype=object)
    names = tuple(x.decode() for x in held["stimuli"].tolist()) if "stimuli" in held else None
    return Table(name, frame, "trial", has_header=True, object_names=names)
