"""How many questions to ask where nothing else says it."""

from __future__ import annotations

import numpy as np

__all__ = ["MOST_WRONG", "default_budget", "noisy_budget"]

# n·log2 n comparisons for each bit that an answer carries, where answers are noisy and no budget is
# given: with a tenth of them wrong, twelve of these were enough for τ .99 with 60 objects in three
# dimensions and .998 with 300, and the rest follows from the capacity of the channel.
# `python -m benchmarks quality` shows what is reached with parts of it.
_BITS = 6.4
# Shares of wrong answers that a default budget reckons with: fewer hardly show in sixty cycles, and
# for more it would be tens of times that of exact answers
_LEAST_WRONG, MOST_WRONG = 0.02, 0.35


def default_budget(n_objects: int) -> int:
    """Comparisons for methods that know no end of their own: 8.5·n·log2 n, as the paper spends.

    Examples
    --------
    >>> default_budget(500)
    38104
    """
    return int(8.5 * n_objects * np.log2(n_objects))


def noisy_budget(n: int, rate: float) -> int:
    """Comparisons that are enough where this share of the answers is wrong.

    Examples
    --------
    >>> noisy_budget(60, 0.1), noisy_budget(60, 0.2)
    (4272, 8157)
    """
    p = min(max(rate, _LEAST_WRONG), MOST_WRONG)
    capacity = 1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)
    return round(float(_BITS / capacity * n * np.log2(n)))
