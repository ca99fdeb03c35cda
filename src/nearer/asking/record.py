"""What was asked and answered, in order, with what it cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.questions import Answers, Questions, answered

__all__ = ["Record"]


class Record:
    """Every answer of a run as triplets, and the two costs: comparisons and rounds."""

    def __init__(self) -> None:
        self._rounds: list[NDArray[np.int64]] = []
        self.n_comparisons = 0
        self.n_rounds = 0

    def add(self, questions: Questions, answers: Answers) -> None:
        """Note one answered round; an empty one costs nothing and is not kept."""
        if len(questions):
            self._rounds.append(answered(questions, answers))
            self.n_comparisons += len(questions)
            self.n_rounds += 1

    @property
    def triplets(self) -> NDArray[np.int64]:
        """All answers so far as ``(head, near, far)``, in the order in which they came."""
        if len(self._rounds) != 1:
            self._rounds = [np.concatenate([np.empty((0, 3), dtype=np.int64), *self._rounds])]
        return self._rounds[0]
