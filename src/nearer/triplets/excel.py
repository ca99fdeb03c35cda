"""What Excel makes of a table: a first line such as ``sep=;`` names what stands between fields."""

from __future__ import annotations

import re

__all__ = ["stated_separator", "without_statement"]

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


def without_statement(text: str) -> str:
    r"""The same with an empty first line where that named the separator; lines keep their numbers.

    Examples
    --------
    >>> without_statement("sep=;\nhead;winner;loser")
    '\nhead;winner;loser'
    """
    first, newline, below = text.partition("\n")
    return newline + below if stated_separator(first) else text
