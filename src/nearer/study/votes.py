"""When a question counts as answered, and what the answer is.

One person's answer is noise; the rules here are how many people a question is put to. Votes are
read in the order in which they were committed, and only as many of them as the rule asks for, so
a late answer never overturns a decision, and the decision is a function of the votes alone: leave
a person's votes out and the same function gives the new decision.

A vote is True (a is nearer), False (b is), or None (the person could not decide or skipped).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nearer.errors import InvalidInput

__all__ = ["RULES", "Verdict", "tally"]

Vote = bool | None

#: rule: (people asked at first, votes at most, votes that decide)
RULES: dict[str, tuple[int, int, int]] = {
    "1": (1, 1, 1),
    "2+1": (2, 3, 2),
    "3": (3, 3, 2),
    "5": (5, 5, 3),
}


class Verdict(NamedTuple):
    """What the votes on a question say so far."""

    #: True or False once decided; None while open, and when people gave it up
    answer: bool | None
    #: how many more people should be asked now; 0 when it is closed
    wanted: int
    #: enough people could not decide: it is asked no more
    given_up: bool


def tally(rule: str, votes: Iterable[Vote]) -> Verdict:
    """Count votes by a rule.

    Examples
    --------
    >>> tally("2+1", [True])
    Verdict(answer=None, wanted=1, given_up=False)
    >>> tally("2+1", [True, False])
    Verdict(answer=None, wanted=1, given_up=False)
    >>> tally("2+1", [True, False, False])
    Verdict(answer=False, wanted=0, given_up=False)
    """
    if rule not in RULES:
        raise InvalidInput(f"votes={rule!r}: must be one of {', '.join(RULES)}")
    first, most, majority = RULES[rule]
    yes = no = abstained = 0
    for vote in votes:
        if yes + no == most:
            break
        if vote is None:
            abstained += 1
        elif vote:
            yes += 1
        else:
            no += 1
    cast = yes + no
    if cast >= first and max(yes, no) >= majority:
        return Verdict(yes > no, 0, False)
    if abstained > max(first, 2):
        return Verdict(None, 0, True)
    # Two that disagree are joined by one more; before that, everyone the rule names is asked.
    return Verdict(None, first - cast if cast < first else most - cast, False)
