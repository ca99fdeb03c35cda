"""What a screen asks for: how many to choose of how many, in order or not, with a query or without.

There are four kinds, see `nearer.trials`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from nearer.errors import InvalidInput

__all__ = ["TASKS", "Task"]

TASKS = ("near", "odd-one-out", "most-central", "pairs")
_WRITTEN = re.compile(r"(?P<ranked>rank )?(?P<k>\d+) of (?P<m>\d+)")
_ODD = re.compile(r"odd-one-out(?: of (?P<m>\d+))?")


@dataclass(frozen=True)
class Task:
    """What a screen asks for.

    Attributes
    ----------
    kind
        One of `TASKS`.
    choose, shown
        How many are chosen of how many.
    ranked
        Whether the chosen are put in order.

    Examples
    --------
    >>> Task.parse("2 of 8")
    Task(kind='near', choose=2, shown=8, ranked=False)
    >>> str(Task.parse("odd-one-out"))
    'odd-one-out'
    """

    kind: str = "near"
    choose: int = 1
    shown: int = 2
    ranked: bool = False

    @classmethod
    def parse(cls, text: Any) -> Task:
        """A task from text such as ``"2 of 8"``, ``"rank 2 of 8"`` or ``"odd-one-out of 4"``."""
        if isinstance(text, Task):
            return text
        near = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        odd = _ODD.fullmatch(text.strip()) if isinstance(text, str) else None
        if near is not None and 1 <= int(near["k"]) < int(near["m"]):
            return cls("near", int(near["k"]), int(near["m"]), bool(near["ranked"]))
        if odd is not None and int(odd["m"] or 3) >= 3:
            return cls("odd-one-out", 1, int(odd["m"] or 3))
        raise InvalidInput(
            f"task={text!r}: must be 'K of M' with K below M, such as '2 of 8' or '1 of 2' (a "
            "comparison), 'rank K of M', 'odd-one-out' or 'odd-one-out of M' with M from 3"
        )

    def __str__(self) -> str:
        if self.kind != "near":
            return self.kind if self.shown == 3 else f"{self.kind} of {self.shown}"
        return f"{'rank ' if self.ranked else ''}{self.choose} of {self.shown}"

    @property
    def is_comparison(self) -> bool:
        """Whether it is the smallest one: which of two is nearer to the query."""
        return self.kind == "near" and self.shown == 2

    @property
    def log_ways(self) -> float:
        """Log of the number of possible answers."""
        m, k = self.shown, self.choose
        return math.log(math.perm(m, k) if self.ranked else math.comb(m, k))
