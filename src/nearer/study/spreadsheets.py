"""Tables that researchers have: CSV with commas, semicolons or tabs, in UTF-8 or Latin-1."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from nearer.errors import InvalidInput
from nearer.triplets.excel import stated_separator

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


def read_table(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns, in lower case, and the rows of a table, each with the line that it begins on."""
    text = read_text(path)
    if "\x00" in text:
        raise InvalidInput(f"{path}: holds zero bytes; save it as CSV in UTF-8")
    first, _, below = text.partition("\n")
    stated = stated_separator(first)
    header = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = stated or max("\t;,", key=header.count)
    reader = csv.reader(io.StringIO(below if stated else text, newline=""), delimiter=delimiter)
    above = 1 if stated else 0
    rows: list[tuple[int, list[str]]] = []
    line = above + 1
    try:
        for row in reader:
            rows += [(line, row)] if len(row) == 1 or any(cell.strip() for cell in row) else []
            line = above + reader.line_num + 1
    except csv.Error as error:
        line = above + reader.line_num
        raise InvalidInput(f"{path}: line {line} cannot be read: {error}") from error
    if not rows:
        raise InvalidInput(f"{path}: is empty")
    columns = [cell.strip().lower() for cell in rows[0][1]]
    for line, row in rows[1:]:
        if any(cell.strip() for cell in row[len(columns) :]):
            raise InvalidInput(
                f"{path}: line {line}, {delimiter.join(row)!r:.80}, has {len(row)} fields, and the "
                f"header {len(columns)}; put quotes around a text with {delimiter!r} in it"
            )
    return columns, [(line, dict(zip(columns, row, strict=False))) for line, row in rows[1:]]


def read_lines(path: Path) -> list[str]:
    """The lines of a plain text file that hold something."""
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def column(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of the wanted columns that a table has."""
    return next((name for name in wanted if name in columns), None)
