"""Questions that may be asked next, drawn at random.

There are n (n − 1)(n − 2)/2 questions: for 2,000 objects four thousand million. Nothing here lists
them. Questions are drawn until enough are found that may be asked and were not asked before; what
was found and not used is kept, so that a file in which few questions have an answer is not searched
anew each time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.questions import Answers, Questions, find, pack, random_questions

__all__ = ["Askable", "Candidates"]

Askable = Callable[[Questions], Answers]

# Time and memory alone
_AT_ONCE = 1 << 18  # candidates drawn
_MOST_DRAWS = 1 << 23  # draws in a row for one request, about two seconds
_WORTHWHILE = 0.02  # share of new questions below which drawing more is not worth the time
_KEEP = 1 << 17  # candidates kept from one request to the next


class Candidates:
    """A source of questions that may be asked and were not.

    Parameters
    ----------
    n_objects
        How many objects there are.
    askable
        Says which questions may be asked; None: all.
    """

    def __init__(self, n_objects: int, askable: Askable | None = None) -> None:
        self._n = n_objects
        self._askable = askable
        self._asked = np.empty(0, dtype=np.int64)
        self._pool = np.empty((0, 3), dtype=np.int64)

    @property
    def n_asked(self) -> int:
        """How many questions were asked."""
        return len(self._asked)

    def exclude(self, questions: Questions) -> None:
        """Never offer these questions again."""
        self._asked = np.union1d(self._asked, pack(questions)[0])

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """About `count` different questions in random order; fewer where there are no more."""
        found = self._fresh(self._pool)
        scarce = len(found) < count
        drawn, new = 0, count
        while len(found) < count and drawn < _MOST_DRAWS and new > _WORTHWHILE * len(found):
            size = min(_AT_ONCE, 2 * (count - len(found)) + 64) if not drawn else _AT_ONCE
            before = len(found)
            found = np.concatenate([found, self._fresh(random_questions(self._n, size, rng))])
            found = found[np.sort(np.unique(pack(found)[0], return_index=True)[1])]
            drawn, new = drawn + size, len(found) - before if drawn else count
        found = found[rng.permutation(len(found))]
        # A pool pays where questions are hard to find; elsewhere new ones are as good.
        rare = scarce and drawn > 8 * max(1, len(found))
        self._pool = found[:_KEEP] if rare or (len(self._pool) and not drawn) else found[:0]
        return found[:count]

    def _fresh(self, questions: NDArray[np.int64]) -> NDArray[np.int64]:
        keys, _ = pack(questions)
        questions = questions[~find(self._asked, keys)[1]]
        if self._askable is None or not len(questions):
            return questions
        allowed = np.asarray(self._askable(questions))
        if allowed.shape != (len(questions),) or allowed.dtype != np.bool_:
            raise InvalidInput(
                f"askable returned {allowed.dtype} of shape {allowed.shape} for {len(questions)} "
                "questions: it must return one boolean for each"
            )
        return questions[allowed]
