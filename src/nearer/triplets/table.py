"""A text table as rows of strings, each with the line it came from.

The separator is whichever of comma, tab and semicolon cuts the first row into most fields, or
white space where there is none of them. Quotes are as spreadsheets write them. Empty lines are
passed over. Lines that start with ``#`` at the top are comments, and the last of them may be the
header, as `numpy.savetxt` writes it.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nearer.errors import BadRow, InvalidInput
from nearer.files import read_bytes
from nearer.triplets.blocks import parquet_files, parquet_rows

__all__ = ["TextTable", "read_table"]

_SEPARATORS = (",", "\t", ";")


@dataclass(frozen=True)
class TextTable:
    """Rows of equally many fields. `remark` is the last comment at the top, cut into fields."""

    path: str
    rows: list[list[str]]
    lines: list[int]
    remark: list[str] | None

    @property
    def width(self) -> int:
        """How many fields each row has."""
        return len(self.rows[0])

    def column(self, i: int) -> list[str]:
        """The fields of one column, without white space around them."""
        return [row[i].strip() for row in self.rows]

    def below(self) -> TextTable:
        """The table without its first row."""
        return TextTable(self.path, self.rows[1:], self.lines[1:], None)

    def without(self, row: int) -> TextTable:
        """The table without one row."""
        rows, lines = (
            self.rows[:row] + self.rows[row + 1 :],
            self.lines[:row] + self.lines[row + 1 :],
        )
        return TextTable(self.path, rows, lines, self.remark)

    def error(self, row: int, what: str) -> BadRow:
        """What is wrong with one row, and on which line of which file that is."""
        return BadRow(f"{self.path}, line {self.lines[row]}: {what}", row)

    def unclear(self, row: int, what: str) -> InvalidInput:
        """What cannot be known of the whole file, seen on this row."""
        return InvalidInput(str(self.error(row, what)))


def read_table(path: str | os.PathLike[str], bad: list[int] | None = None) -> TextTable:
    """Read a text file of separated values, compressed or not; or Parquet, its first line a header.

    Lines of another width than the first are refused, or left out and added to `bad`.
    """
    name = os.fspath(path)
    if files := parquet_files(Path(path)):
        header, *rows = parquet_rows(files)
        return TextTable(name, [header, *rows], [*range(len(rows) + 1)], None)
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8 text"
        ) from error
    comments, first = _top(text)
    if first is None:
        raise InvalidInput(f"{name}: has no rows; it needs at least one")
    separator = _separator(first)
    table = _parse(name, text, separator, comments)
    width = table.width
    odd = [row for row, fields in enumerate(table.rows) if len(fields) != width]
    if odd and bad is None:
        raise table.error(
            odd[0],
            f"has {len(table.rows[odd[0]])} fields where line {table.lines[0]} has {width}; every "
            "row needs the same columns, put quotes around names with a separator in them",
        )
    if odd and bad is not None:
        bad += [table.lines[row] for row in odd]
        keep = [row for row in range(len(table.rows)) if len(table.rows[row]) == width]
        rows, lines = [table.rows[i] for i in keep], [table.lines[i] for i in keep]
        table = TextTable(name, rows, lines, table.remark)
    if table.remark is not None and len(table.remark) != table.width:
        return TextTable(name, table.rows, table.lines, None)
    return table


def _top(text: str) -> tuple[int, str | None]:
    """How many lines come before the first row, and that row."""
    for i, line in enumerate(io.StringIO(text, newline="")):
        if line.strip() and not line.startswith("#"):
            return i, line
    return 0, None


def _separator(line: str) -> str:
    fields = {s: len(next(csv.reader([line], delimiter=s))) for s in _SEPARATORS}
    best = max(_SEPARATORS, key=lambda s: fields[s])
    return best if fields[best] > 1 else " "


def _parse(name: str, text: str, separator: str, comments: int) -> TextTable:
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
