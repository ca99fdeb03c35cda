"""What answers cost, and when there is no more to spend.

A call of an oracle may have a price that is known before it (`cost`, a function of the block of
questions) or only after it (`PricedAnswers` that say so, as a language model's do). What is known
before is set aside when the block goes out, so that the limit is never passed. What is only known
afterwards is expected to be what calls have cost so far, on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from nearer.errors import InvalidInput

__all__ = ["Costs", "PricedAnswers"]


class PricedAnswers(list[Any]):
    """Answers of one call, with what else is known of them.

    An oracle may return one in the place of a list.

    Parameters
    ----------
    answers
        One for each question of the call.
    cost
        What the call has cost; None where nobody knows.
    by
        Who gave each answer, one for each; where several have voted on a question, a dictionary
        of what each said. None where there is only one who answers.

    Examples
    --------
    >>> reply = PricedAnswers([True, None], cost=0.002)
    >>> list(reply), reply.cost
    ([True, None], 0.002)
    """

    def __init__(
        self, answers: Iterable[Any], *, cost: float | None = None, by: list[Any] | None = None
    ) -> None:
        super().__init__(answers)
        self.cost = cost
        self.by = by


class Costs:
    """What was spent, and whether another call may be made.

    Parameters
    ----------
    cost
        From the block of a call to its price; None: free, unless the reply says otherwise.
    max_cost, max_calls
        What may be spent, in money and in calls; None: no limit.
    spent, calls
        What was spent before, by a journal.
    """

    def __init__(
        self,
        cost: Callable[[Any], float] | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        *,
        spent: float = 0.0,
        calls: int = 0,
    ) -> None:
        for name, limit in {"max_cost": max_cost, "max_calls": max_calls}.items():
            number = isinstance(limit, int | float | np.number) and not isinstance(limit, bool)
            if limit is not None and not (number and limit >= 0):
                raise InvalidInput(f"{name}={limit!r}: must be a number from 0")
        if cost is not None and not callable(cost):
            raise InvalidInput(
                f"cost={cost!r}: must be a function from a block of questions to its price, such "
                "as lambda block: 0.01 * len(block)"
            )
        self._price = cost
        self._max_cost, self._max_calls = max_cost, max_calls
        self.spent, self.calls = float(spent), int(calls)
        self.limit: str | None = None  # the one that was reached, in words
        self._aside = 0.0  # for calls that are under way and whose price is known
        self._under_way = 0

    @property
    def counted(self) -> bool:
        """Whether there is anything to speak of."""
        return self.limited or self.spent > 0

    @property
    def limited(self) -> bool:
        """Whether a call has a price or a limit that must be looked at before it is made."""
        return not (self._price is None and self._max_cost is None and self._max_calls is None)

    def price(self, block: Any) -> float | None:
        """What a call for this block will cost; None where nobody knows yet."""
        if self._price is None:
            return None
        price = self._price(block)
        try:
            return float(price)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"cost returned {price!r} for a block: it must return its price, a number"
            ) from None

    def allow(self, price: float | None) -> bool:
        """Whether a call of this price may be made; once it may not, no other may."""
        if self.limit is not None:
            return False
        if self._max_calls is not None and self.calls + self._under_way >= self._max_calls:
            self.limit = f"max_calls={self._max_calls}"
        # sums of prices such as 0.01 are a few last digits too large
        elif self._max_cost is not None and self._expected(price) > self._max_cost * (1 + 1e-9):
            self.limit = f"max_cost={self._max_cost:g}"
        return self.limit is None

    def _expected(self, price: float | None) -> float:
        if price is not None:
            return self.spent + self._aside + price
        average = self.spent / self.calls if self.calls else 0.0
        return self.spent + average * (self._under_way + 1)

    def start(self, price: float | None) -> None:
        """A call goes out."""
        self._aside += price or 0.0
        self._under_way += 1

    def end(self, price: float | None, said: float | None) -> float:
        """A call has come back or failed; returns what it cost."""
        self._aside -= price or 0.0
        self._under_way -= 1
        cost = said if said is not None else (price or 0.0)
        self.spent += cost
        self.calls += 1
        return cost
