"""Texts for messages: numbers with their nouns, and calls as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["amount", "as_called"]


def amount(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    Examples
    --------
    >>> amount(1, "answer"), amount(2000, "answer"), amount(0, "person", "people")
    ('1 answer', '2,000 answers', '0 people')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def as_called(
    function: str, *places: str, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> str:
    """A call as the user could write it again: without defaults, and "…" for values that are long.

    Examples
    --------
    >>> as_called("nearer.fit", "answers", given={"n": 2, "m": 1}, defaults={"n": 0, "m": 1})
    'nearer.fit(answers, n=2)'
    """
    arguments = list(places)
    for name, value in given.items():
        plain = isinstance(value, str | int | float)
        if value is not defaults[name] and not (plain and value == defaults[name]):
            arguments.append(f"{name}={value!r}" if plain else f"{name}=…")
    return f"{function}({', '.join(arguments)})"
