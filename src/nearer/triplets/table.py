"""A text table as rows of strings, each with the line it came from.

The separator is whichever of comma, tab and semicolon cuts the first row into most fields, or
white space where there is none of them; commas between digits beside semicolons are decimal ones.
Quotes are as spreadsheets write them. Empty lines are
passed over. Lines that start with ``#`` at the top are comments, and the last of them may be the
header, as `numpy.savetxt` writes it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearer.errors import BadRow, InvalidInput
from nearer.files import read_text

__all__ = ["TextTable", "frame_table", "parse_table", "read_table"]

_SEPARATORS = (",", "\t", ";")
_NO_SEPARATOR = re.compile(r'[^,]*|"[^"]*"|\s*-?\d+,\d+\s*')  # a field that commas do not cut


@dataclass(frozen=True)
class TextTable:
    """Rows of equally many fields. `remark` is the last comment at the top, cut into fields.

    `unit` is what `lines` count: lines of a file, its records, or rows of a frame.
    """

    path: str
    rows: list[list[str]]
    lines: list[int]
    remark: list[str] | None = None
    unit: str = "line"

    @property
    def width(self) -> int:
        """How many fields each row has."""
        return len(self.rows[0])

    def column(self, i: int) -> list[str]:
        """The fields of one column, without white space around them."""
        return [row[i].strip() for row in self.rows]

    def below(self) -> TextTable:
        """The table without its first row."""
        return replace(self, rows=self.rows[1:], lines=self.lines[1:], remark=None)

    def without(self, some: Sequence[int]) -> TextTable:
        """The table without some rows."""
        left = sorted(set(range(len(self.rows))) - set(some))
        rows, lines = [self.rows[i] for i in left], [self.lines[i] for i in left]
        return replace(self, rows=rows, lines=lines)

    def error(self, row: int, what: str, rows: Sequence[int] = ()) -> BadRow:
        """What is wrong with one row, and where that is; `rows` are all that are wrong so."""
        where = f"{self.path}, {self.unit} {self.lines[row]}"
        more = f" ({len(rows) - 1:,} more cannot be read)" if len(rows) > 1 else ""
        return BadRow(f"{where}: {what}{more}", rows or [row])

    def unclear(self, row: int, what: str) -> InvalidInput:
        """What cannot be known of the whole file, seen on this row."""
        return InvalidInput(str(self.error(row, what)))


def frame_table(frame: Any) -> TextTable:
    """A pandas or polars frame as the table that it would be written to, rows counted from 0."""
    at = getattr(frame, "iloc", None)  # by position, since two columns may have one name
    columns = [frame[:, i] if at is None else at[:, i] for i in range(frame.shape[1])]
    rows = [[str(name) for name in frame.columns]]
    rows += [[_cell(v) for v in row] for row in zip(*map(np.asarray, columns), strict=True)]
    return TextTable("the frame", rows, list(range(-1, len(rows) - 1)), unit="row")


def _cell(value: Any) -> str:
    return json.dumps(list(value)) if isinstance(value, list | tuple | np.ndarray) else str(value)


def read_table(path: str | os.PathLike[str], bad: list[int] | None = None) -> TextTable:
    """Read a text file of separated values, compressed or not; see `parse_table`."""
    return parse_table(os.fspath(path), read_text(path), bad)


def parse_table(name: str, text: str, bad: list[int] | None = None) -> TextTable:
    """Read a text of separated values.

    Lines of another width than the first are refused, or left out and added to `bad`.
    """
    comments, first = _top(text)
    table = TextTable(name, [], []) if first is None else _parse(name, text, first, comments)
    if not table.rows:
        raise InvalidInput(f"{name}: has no rows; it needs at least one")
    width = table.width
    odd = [row for row, fields in enumerate(table.rows) if len(fields) != width]
    if odd and bad is None:
        raise table.error(
            odd[0],
            f"has {len(table.rows[odd[0]])} fields where line {table.lines[0]} has {width}; every "
            "row needs the same columns: take out what stands above the header, put quotes around "
            "names with a separator in them",
            odd,
        )
    if odd and bad is not None:
        bad += [table.lines[row] for row in odd]
        table = table.without(odd)
    if table.remark is not None and len(table.remark) != table.width:
        return replace(table, remark=None)
    return table


def _top(text: str) -> tuple[int, str | None]:
    """How many lines come before the first row, and that row."""
    for i, line in enumerate(io.StringIO(text, newline="")):
        if line.strip() and not line.startswith("#"):
            return i, line
    return 0, None


def _separator(line: str) -> str:
    if line.count(";") > 1 and all(map(_NO_SEPARATOR.fullmatch, line.strip().split(";"))):
        return ";"
    fields = {s: len(next(csv.reader([line], delimiter=s))) for s in _SEPARATORS}
    best = max(_SEPARATORS, key=lambda s: fields[s])
    return best if fields[best] > 1 else " "


def _parse(name: str, text: str, first: str, comments: int) -> TextTable:
    separator = _separator(first)
    lines: Iterator[str] = io.StringIO(text, newline="")
    remark = None
    for _ in range(comments):
        comment = next(lines).strip()
        if comment:
            (remark,) = csv.reader([comment[1:].strip()], delimiter=separator)
    rows: list[list[str]] = []
    numbers: list[int] = []
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    line = comments + 1
    try:
        for row in reader:
            if separator == " " and row and not row[-1]:
                row.pop()  # what follows the last space of a line is no field
            if row and (row[0] or any(row)):
                rows.append(row)
                numbers.append(line)
            line = comments + reader.line_num + 1
    except csv.Error as error:
        raise InvalidInput(
            f"{name}, line {comments + reader.line_num}: {error}; check the quotes"
        ) from error
    return TextTable(name, rows, numbers, remark)
