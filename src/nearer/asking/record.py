"""What was asked and answered, in order, with what it cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.questions import Floats, Objects, Questions, Said, answered, unsure_rows, weighted

__all__ = ["Record"]


class Record:
    """Every answer of a run as triplets, and the two costs: comparisons (rows) and rounds.

    Parameters
    ----------
    keep
        False: the costs only. Triplets take 12 bytes each while they are collected, and 24 in the
        end.

    Examples
    --------
    >>> import nearer
    >>> record = nearer.asking.Record()
    >>> ranking = nearer.asking.recorded(nearer.rank_objects(0, 4), record)
    >>> _ = nearer.run(ranking, nearer.PointOracle([[0.0], [3.0], [1.0], [7.0]]))
    >>> record.n_comparisons == len(record.triplets)
    True
    """

    def __init__(self, *, keep: bool = True) -> None:
        self._keep = keep
        self._rounds: list[NDArray[np.int32]] = []
        self._weights: list[Floats] = []  # empty while all answers are certain
        self.n_comparisons: int = 0
        self.n_rounds: int = 0
        self.n_unsure: int = 0
        self.n_told: int = 0  # answers that take a side: neither "don't know" nor one half

    def add(self, questions: Questions, answers: Said) -> None:
        """Note one answered round; an empty one costs nothing and is not kept."""
        if not len(questions):
            return
        self.n_comparisons += len(questions)
        self.n_rounds += 1
        unsure = unsure_rows(answers)
        self.n_unsure += len(unsure)
        halves = (
            0
            if answers.dtype == np.bool_
            else np.count_nonzero(np.ma.filled(answers == 0.5, False))
        )
        self.n_told += len(questions) - len(unsure) - int(halves)
        if not self._keep:
            return
        uncertain = isinstance(answers, np.ma.MaskedArray) or answers.dtype != np.bool_
        if uncertain and not self._weights:
            self._weights = [np.ones(len(rows)) for rows in self._rounds]
        if self._weights or uncertain:
            rows, weights = weighted(questions, answers)
            self._weights.append(weights)
        else:
            rows = answered(questions, answers)
        self._rounds.append(rows.astype(np.int32))

    def forget(self) -> None:
        """Keep no triplets from now on, nor those that are there: the costs only."""
        self._keep, self._rounds, self._weights = False, [], []

    @property
    def triplets(self) -> Objects:
        """All answers so far as ``(head, near, far)``, in the order in which they came."""
        rows, weights = self._all()
        return (rows if weights is None else rows[weights > 0.5]).astype(np.int64)

    @property
    def weighted(self) -> tuple[Objects, Floats | None]:
        """The same with weights where answers were uncertain, see `nearer.questions.weighted`."""
        rows, weights = self._all()
        return rows.astype(np.int64), weights

    def _all(self) -> tuple[NDArray[np.int32], Floats | None]:
        if len(self._rounds) != 1:
            self._rounds = [np.concatenate([np.empty((0, 3), dtype=np.int32), *self._rounds])]
            self._weights = [np.concatenate(self._weights)] if self._weights else []
        return self._rounds[0], self._weights[0] if self._weights else None
