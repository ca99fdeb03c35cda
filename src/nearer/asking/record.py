"""What was asked and answered, in order, with what it cost."""

from __future__ import annotations

import numpy as np

from nearer.questions import Floats, Objects, Questions, Said, answered, unsure_rows, weighted

__all__ = ["Record"]


class Record:
    """Every answer of a run as triplets, and the two costs: comparisons (rows) and rounds.

    Examples
    --------
    >>> import nearer
    >>> record = nearer.Record()
    >>> ranking = nearer.recorded(nearer.rank_objects(0, 4), record)
    >>> _ = nearer.run(ranking, nearer.PointOracle([[0.0], [3.0], [1.0], [7.0]]))
    >>> record.n_comparisons == len(record.triplets)
    True
    """

    def __init__(self) -> None:
        self._rounds: list[Objects] = []
        self._weights: list[Floats] = []  # empty while there was no doubt
        self.n_comparisons: int = 0
        self.n_rounds: int = 0
        self.n_unsure: int = 0

    def add(self, questions: Questions, answers: Said) -> None:
        """Note one answered round; an empty one costs nothing and is not kept."""
        if not len(questions):
            return
        doubt = isinstance(answers, np.ma.MaskedArray) or answers.dtype != np.bool_
        if doubt and not self._weights:
            self._weights = [np.ones(len(rows)) for rows in self._rounds]
        if self._weights or doubt:
            rows, weights = weighted(questions, answers)
            self._weights.append(weights)
        else:
            rows = answered(questions, answers)
        self._rounds.append(rows)
        self.n_comparisons += len(questions)
        self.n_rounds += 1
        self.n_unsure += len(unsure_rows(answers))

    @property
    def triplets(self) -> Objects:
        """All answers so far as ``(head, near, far)``, in the order in which they came."""
        rows, weights = self.weighted
        return rows if weights is None else rows[weights > 0.5]

    @property
    def weighted(self) -> tuple[Objects, Floats | None]:
        """The same with weights where there was doubt, see `nearer.questions.weighted`."""
        if len(self._rounds) != 1:
            self._rounds = [np.concatenate([np.empty((0, 3), dtype=np.int64), *self._rounds])]
            self._weights = [np.concatenate(self._weights)] if self._weights else []
        return self._rounds[0], self._weights[0] if self._weights else None
