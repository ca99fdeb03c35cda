"""Answers that need not be asked again.

A question and its mirror image, ``(head, a, b)`` and ``(head, b, a)``, are one fact. The fact is
packed into one integer, 21 bits an object, and the facts are kept as sorted arrays whose sizes at
least halve from one to the next: adding m facts costs O(log) merges, looking one up O(log²), with
17 bytes a fact and no Python object for any of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.questions import Answers, Questions, answered, find, pack, unpack

__all__ = ["Memory"]


class Memory:
    """A set of answered questions, for `run(..., memory=)`.

    Examples
    --------
    >>> import numpy as np
    >>> memory = Memory(np.array([[0, 1, 2]]))          # 1 is nearer to 0 than 2 is
    >>> answers, known = memory.recall(np.array([[0, 2, 1], [0, 1, 3]]))
    >>> answers, known
    (array([False, False]), array([ True, False]))
    """

    def __init__(self, triplets: Questions | None = None) -> None:
        self._runs: list[tuple[NDArray[np.int64], Answers]] = []
        if triplets is not None:
            self.add(triplets, np.ones(len(triplets), dtype=np.bool_))

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs)

    def add(self, questions: Questions, answers: Answers) -> None:
        """Remember answers; of several to one question the first is kept."""
        if not len(questions):
            return
        keys, mirrored = pack(questions)
        keys, first = np.unique(keys, return_index=True)
        values = (np.asarray(answers) != mirrored)[first]
        if self._runs:
            new = ~self._find(keys)[1]
            keys, values = keys[new], values[new]
        self._runs.append((keys, values))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) > len(self._runs[-2][0]):
            (k, v), (k2, v2) = self._runs.pop(), self._runs.pop()
            keys = np.concatenate([k, k2])
            order = np.argsort(keys, kind="stable")
            self._runs.append((keys[order], np.concatenate([v, v2])[order]))

    def recall(self, questions: Questions) -> tuple[Answers, Answers]:
        """Answers to questions (False where there is none), and which of them are known."""
        keys, mirrored = pack(questions)
        values, known = self._find(keys)
        return (values != mirrored) & known, known

    def unknown(self, questions: Questions) -> Questions:
        """The questions to which no answer is known, each once, in their order."""
        keys, _ = pack(questions)
        rows = np.flatnonzero(~self._find(keys)[1])
        _, first = np.unique(keys[rows], return_index=True)
        return questions[rows[np.sort(first)]]

    @property
    def triplets(self) -> NDArray[np.int64]:
        """Everything known, as rows ``(head, near, far)``."""
        if not self._runs:
            return np.empty((0, 3), dtype=np.int64)
        keys = np.concatenate([k for k, _ in self._runs])
        return answered(unpack(keys), np.concatenate([v for _, v in self._runs]))

    def _find(self, keys: NDArray[np.int64]) -> tuple[Answers, Answers]:
        values = np.zeros(len(keys), dtype=np.bool_)
        known = np.zeros(len(keys), dtype=np.bool_)
        for run_keys, run_values in self._runs:
            place, hit = find(run_keys, keys)
            if len(run_values):
                values |= hit & run_values[place]
                known |= hit
        return values, known
