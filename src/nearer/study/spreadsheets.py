"""Tables that researchers have: CSV with commas, semicolons or tabs, in UTF-8 or Latin-1."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from nearer.errors import InvalidInput

__all__ = ["column", "read_lines", "read_table"]


def read_text(path: Path) -> str:
    """A file's text: UTF-8, or what Excel writes in Western Europe where it is not."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error
    try:
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return raw.decode("utf-16")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def read_table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns, in lower case, and the rows of a table."""
    text = read_text(path)
    if "\x00" in text:
        raise InvalidInput(f"{path}: holds zero bytes; save it as CSV in UTF-8")
    first = text.partition("\n")[0]
    delimiter = max("\t;,", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = [row for row in reader if len(row) == 1 or any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidInput(f"{path}: line {reader.line_num} cannot be read: {error}") from error
    if not rows:
        raise InvalidInput(f"{path}: is empty")
    columns = [cell.strip().lower() for cell in rows[0]]
    for row in rows[1:]:
        if any(cell.strip() for cell in row[len(columns) :]):
            raise InvalidInput(
                f"{path}: the row {delimiter.join(row)!r:.80} has {len(row)} fields, and the "
                f"header {len(columns)}; put quotes around a text with {delimiter!r} in it"
            )
    return columns, [dict(zip(columns, row, strict=False)) for row in rows[1:]]


def read_lines(path: Path) -> list[str]:
    """The lines of a plain text file that hold something."""
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def column(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of the wanted columns that a table has."""
    return next((name for name in wanted if name in columns), None)
