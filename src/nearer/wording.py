"""Numbers with their nouns, as messages say them: one answer, two answers."""

from __future__ import annotations

__all__ = ["amount"]


def amount(n: int, noun: str, plural: str = "") -> str:
    """How many there are of something.

    Examples
    --------
    >>> amount(1, "answer"), amount(2000, "answer"), amount(0, "person", "people")
    ('1 answer', '2,000 answers', '0 people')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
