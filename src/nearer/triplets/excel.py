"""What Excel makes of a table: a first line such as ``sep=;`` names what stands between fields."""

from __future__ import annotations

import csv
import io
import re

__all__ = ["restated", "stated_separator"]

_STATED = re.compile(r'"?sep=([^\w"\r\n])"?\s*', re.IGNORECASE)


def stated_separator(line: str) -> str | None:
    """What a line says that stands between fields; None where it is another line.

    Examples
    --------
    >>> stated_separator("sep=;"), stated_separator("head;winner;loser")
    (';', None)
    """
    stated = _STATED.fullmatch(line)
    return stated[1] if stated else None


def restated(text: str) -> str:
    r"""The same table in a form that needs no such line; what is below keeps its line numbers.

    Fields are put in quotes, with semicolons between them, so that nothing else can be taken for a
    separator.

    Examples
    --------
    >>> restated("sep=|\nhead|winner|loser")
    '\n"head";"winner";"loser"\n'
    """
    first, newline, below = text.partition("\n")
    separator = stated_separator(first)
    if separator is None:
        return text
    lines, sheet = io.StringIO(below, newline=""), io.StringIO()
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        csv.writer(sheet, "unix", delimiter=";").writerows(rows)
    except csv.Error:  # whoever reads on says where
        return newline + below
    return newline + sheet.getvalue()
