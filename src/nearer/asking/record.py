"""What was asked and answered: in order, with what it cost, and as facts to look up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.asking.answers import turned
from nearer.questions import (
    Answers,
    Floats,
    Objects,
    Questions,
    Said,
    answered,
    find,
    pack,
    unpack,
    unsure_rows,
    weighted,
)

__all__ = ["Memory", "Record"]


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
        n_unsure = len(unsure_rows(answers))
        self.n_unsure += n_unsure
        certain = answers.dtype == np.bool_
        halves = 0 if certain else int(np.count_nonzero(np.ma.filled(answers == 0.5, False)))
        self.n_told += len(questions) - n_unsure - halves
        if not self._keep:
            return
        uncertain = isinstance(answers, np.ma.MaskedArray) or not certain
        if uncertain and not self._weights:
            self._weights = [np.ones(len(rows)) for rows in self._rounds]
        if self._weights or uncertain:
            rows, weights = weighted(questions, answers)
            self._weights.append(weights)
        else:
            rows = answered(questions, answers)
        self._rounds.append(rows.astype(np.int32))

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


class Memory:
    """A set of answered questions, for `run(..., memory=)`: what need not be asked again.

    A comparison and its mirror image, ``(head, a, b)`` and ``(head, b, a)``, are one fact. Facts
    are kept as sorted keys (`nearer.questions.pack`) with their answers, 12 bytes a fact; screens
    by the query and the set of objects shown. "Don't know" is no fact: it is not kept, and the
    question may be asked again.

    Examples
    --------
    >>> import numpy as np
    >>> memory = Memory(np.array([[0, 1, 2]]))          # 1 is nearer to 0 than 2 is
    >>> answers, known = memory.recall(np.array([[0, 2, 1], [0, 1, 3]]))
    >>> answers, known
    (array([False, False]), array([ True, False]))
    """

    def __init__(self, triplets: Questions | None = None) -> None:
        self._keys: Objects = np.empty(0, dtype=np.int64)
        self._values: NDArray[np.float32] = np.empty(0, dtype=np.float32)
        self._screens: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        if triplets is not None:
            self.add(triplets, np.ones(len(triplets), dtype=np.bool_))

    def __len__(self) -> int:
        return len(self._keys) + len(self._screens)

    def add(self, questions: Questions, answers: Said) -> None:
        """Remember answers; of several to one question the first is kept."""
        unsure = unsure_rows(answers)
        questions, answers = np.delete(questions, unsure, 0), np.delete(answers, unsure, 0)
        if np.shape(questions)[1] > 3:
            keys, order = _screen_keys(questions)
            for name, row in zip(keys, np.take_along_axis(answers, order, axis=1), strict=True):
                self._screens.setdefault(name, np.asarray(row))
            return
        key, mirrored = pack(questions)
        key, first = np.unique(key, return_index=True)
        values = turned(np.asarray(answers, dtype=np.float32)[first], mirrored[first])
        new = ~find(self._keys, key)[1]
        place = np.searchsorted(self._keys, key[new])
        self._keys = np.insert(self._keys, place, key[new])
        self._values = np.insert(self._values, place, values[new])

    def recall(self, questions: Questions) -> tuple[Said, Answers]:
        """Answers to questions (False where there is none), and which of them are known."""
        if np.shape(questions)[1] > 3:
            keys, order = _screen_keys(questions)
            answers = np.zeros(order.shape, dtype=np.bool_)
            known = np.array([key in self._screens for key in keys], dtype=np.bool_)
            for row in np.flatnonzero(known):
                answers[row, order[row]] = self._screens[keys[row]]
            return answers, known
        key, mirrored = pack(questions)
        place, known = find(self._keys, key)
        values = np.zeros(len(key), dtype=np.float32)
        values[known] = turned(self._values[place[known]], mirrored[known])
        plain = values == 1
        return (values if ((values > 0) & ~plain).any() else plain), known

    def unknown(self, questions: Questions) -> Questions:
        """The questions to which no answer is known, each once, in their order."""
        rows = np.flatnonzero(~self.recall(questions)[1])
        if np.shape(questions)[1] > 3:
            keys = np.array(_screen_keys(questions)[0])[rows]
        else:
            keys = pack(questions)[0][rows]
        earliest = np.unique(keys, axis=0, return_index=True)[1]
        return questions[rows[np.sort(earliest)]]

    @property
    def triplets(self) -> Objects:
        """Everything known, as rows ``(head, near, far)``."""
        parts = [answered(unpack(self._keys), self._values)]
        for key, chosen in self._screens.items():
            parts.append(answered(np.array([key]), chosen[None]))
        return np.concatenate(parts)


def _screen_keys(questions: Questions) -> tuple[list[tuple[int, ...]], Objects]:
    """For each screen its query and shown objects in ascending order, and that order."""
    shown = np.asarray(questions)[:, 1:]
    order = np.argsort(shown, axis=1, kind="stable")
    rows = np.column_stack([np.asarray(questions)[:, 0], np.take_along_axis(shown, order, axis=1)])
    return [tuple(row) for row in rows.tolist()], order
