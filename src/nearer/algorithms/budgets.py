r"""How many questions positions take: what there is to know, over what an answer can tell.

An answer of which a share ε is wrong carries at most the capacity of such a channel,
c = 1 + ε log2 ε + (1 − ε) log2(1 − ε) bits.

*At most.* Positions of n objects in d dimensions that can be told apart hold d·log2 n bits each.
Twice that for d + 1 dimensions pays for questions that are worth less than a bit.

*Expected.* Positions that reach Kendall's τ hold about log2 1/(1 − τ) bits a coordinate, whatever n
is. `python -m benchmarks sizes` and `scale` show the comparisons an object that they take.
"""

from __future__ import annotations

import numpy as np

__all__ = ["GROWTH", "MOST_WRONG", "default_budget", "expected_questions", "most_questions"]

GROWTH = 0.06  # the next round as a share of the questions so far: comparisons against rounds
MOST_WRONG = 0.35  # more errors count as so many: the limit is 15 times that without
_COUNTED = 7  # dimensions that the limit grows with: time where no dimension fits
_MOST = 2.0  # questions for each bit that positions hold in d + 1 dimensions: the limit
# The same for what is expected: 1.1 where objects are fitted together, 1.5 where they are placed
_EXPECTED = 1.2


def most_questions(n: int, d: int, wrong: float) -> float:
    """Comparisons that are enough for an object among n in d dimensions, with errors.

    Examples
    --------
    >>> round(most_questions(1000, 2, 0.0)), round(most_questions(1000, 2, 0.1))
    (60, 113)
    """
    return float(_MOST * (min(d, _COUNTED) + 1) * np.log2(n) / _capacity(wrong))


def expected_questions(n: int, d: int, wrong: float, quality: float) -> float:
    """Comparisons that an object among n in d dimensions is expected to take.

    Examples
    --------
    >>> round(expected_questions(1000, 2, 0.0, 0.99)), round(expected_questions(1000, 2, 0.1, 0.99))
    (24, 45)
    """
    bits = -np.log2(max(1 - quality, 1 / n**2))
    return min(most_questions(n, d, wrong), _EXPECTED * (d + 1) * float(bits) / _capacity(wrong))


def default_budget(n_objects: int) -> int:
    """Comparisons for methods that know no end of their own: 8.5·n·log2 n, as the paper spends.

    Examples
    --------
    >>> default_budget(500)
    38104
    """
    return int(8.5 * n_objects * np.log2(n_objects))


def _capacity(wrong: float) -> float:
    """The bits that an answer carries at most."""
    p = np.array([min(wrong, MOST_WRONG), 1 - min(wrong, MOST_WRONG)])
    return 1 + float(np.sum(p * np.log2(np.maximum(p, 1e-12))))
