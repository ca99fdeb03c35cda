"""Which objects have given the same answers to the same questions, and so are one so far.

What is believed about an object that is being placed follows from what was asked about it and
answered. All begin alike, and after three questions from each of five heads, 15 bits, there are
still far fewer beliefs than a million objects: what is reckoned for one holds for all that share
its answers. In many dimensions they part sooner: there are more heads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.questions import Answers

__all__ = ["SameAnswers"]

Objects = NDArray[np.int64]

_LARGEST = 1 << 62  # that a number may be


class SameAnswers:
    """Objects on the same way so far; with more than half as many ways as objects, each by itself.

    Parameters
    ----------
    q
        How many objects there are; nothing was asked about any of them.

    Examples
    --------
    >>> import numpy as np
    >>> same = SameAnswers(4)
    >>> same.add(np.array([0, 1, 2, 3]), np.array([True, False, True, True]))
    >>> first, like = same.among(np.array([0, 1, 2, 3]))
    >>> first[like]  # objects 0, 2 and 3 are one, object 1 is another
    array([0, 1, 0, 0])
    """

    def __init__(self, q: int) -> None:
        self._numbers: Objects | None = np.zeros(q, dtype=np.int64)
        self._most = 1  # a bound of the numbers

    def add(self, rows: Objects, nearer: Answers) -> None:
        """Tell what was answered: each object's answers side by side, in the order of asking."""
        if self._numbers is None or not len(rows):
            return
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        times = np.diff(begins, append=len(rows))
        for i in range(int(times.max())):
            if self._most > _LARGEST // 3:
                ways, self._numbers = np.unique(self._numbers, return_inverse=True)
                self._most = len(ways)
            asked = begins[times > i] + i
            self._numbers *= 3  # one digit an answer, 0: not asked
            self._numbers[rows[asked]] += 1 + nearer[asked]
            self._most *= 3

    def among(self, rows: Objects) -> tuple[Objects, Objects]:
        """The places in `rows` of one object of each way; and for each object, which way is its."""
        if self._numbers is not None:
            _, first, like = np.unique(self._numbers[rows], return_index=True, return_inverse=True)
            if 2 * len(first) <= len(rows):
                return first, like
            self._numbers = None  # ways only part: hardly any is shared from now on
        return np.arange(len(rows)), np.arange(len(rows))
