"""Answers that need not be asked again.

A comparison and its mirror image, ``(head, a, b)`` and ``(head, b, a)``, are one fact. Facts are
kept as sorted arrays of keys (`nearer.questions.pack`) whose sizes at least halve from one to the
next: adding m facts costs O(log) merges, looking one up O(log²), with 12 bytes a fact and no Python
object for any of them. Screens are people's work and few: a dictionary holds them, by the query and
the set of objects shown.

"Don't know" is no fact: it is not kept, and the question may be asked again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.asking.answers import turned
from nearer.questions import (
    Answers,
    Objects,
    Questions,
    Said,
    answered,
    find,
    pack,
    unpack,
    unsure_rows,
)

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
        self._runs: list[tuple[Objects, NDArray[np.float32]]] = []
        self._screens: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        if triplets is not None:
            self.add(triplets, np.ones(len(triplets), dtype=np.bool_))

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs) + len(self._screens)

    def add(self, questions: Questions, answers: Said) -> None:
        """Remember answers; of several to one question the first is kept."""
        unsure = unsure_rows(answers)
        if len(unsure):
            questions, answers = np.delete(questions, unsure, 0), np.delete(answers, unsure, 0)
        if not len(questions):
            return
        if np.shape(questions)[1] > 3:
            self._add_screens(np.asarray(questions), np.asarray(answers))
            return
        keys, mirrored = pack(questions)
        keys, first = np.unique(keys, return_index=True)
        values = np.asarray(answers, dtype=np.float32)[first]
        values = turned(values, mirrored[first])
        if self._runs:
            new = ~self._find(keys)[1]
            keys, values = keys[new], values[new]
        self._runs.append((keys, values))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) > len(self._runs[-2][0]):
            (k, v), (k2, v2) = self._runs.pop(), self._runs.pop()
            keys = np.concatenate([k, k2])
            order = np.argsort(keys, kind="stable")
            self._runs.append((keys[order], np.concatenate([v, v2])[order]))

    def recall(self, questions: Questions) -> tuple[Said, Answers]:
        """Answers to questions (False where there is none), and which of them are known."""
        if np.shape(questions)[1] > 3:
            return self._recall_screens(np.asarray(questions))
        keys, mirrored = pack(questions)
        values, known = self._find(keys)
        values = turned(values, mirrored & known)
        plain = values == 1
        graded = ((values > 0) & ~plain).any()
        return (values if graded else plain), known

    def unknown(self, questions: Questions) -> Questions:
        """The questions to which no answer is known, each once, in their order."""
        if np.shape(questions)[1] > 3:
            keys, known = _screen_keys(questions)[0], self.recall(questions)[1]
            first = {key: row for row, key in reversed(list(enumerate(keys))) if not known[row]}
            return questions[sorted(first.values())]
        codes, _ = pack(questions)
        rows = np.flatnonzero(~self._find(codes)[1])
        _, earliest = np.unique(codes[rows], return_index=True)
        return questions[rows[np.sort(earliest)]]

    @property
    def triplets(self) -> Objects:
        """Everything known, as rows ``(head, near, far)``."""
        parts = [answered(unpack(keys), values) for keys, values in self._runs]
        for key, chosen in self._screens.items():
            parts.append(answered(np.array([key]), chosen[None]))
        return np.concatenate([np.empty((0, 3), dtype=np.int64), *parts])

    def _find(self, keys: Objects) -> tuple[NDArray[np.float32], Answers]:
        values = np.zeros(len(keys), dtype=np.float32)
        known = np.zeros(len(keys), dtype=np.bool_)
        for run_keys, run_values in self._runs:
            if len(run_keys):
                place, hit = find(run_keys, keys)
                values[hit] = run_values[place[hit]]
                known |= hit
        return values, known

    def _add_screens(self, questions: Questions, answers: Said) -> None:
        keys, order = _screen_keys(questions)
        for key, row in zip(keys, np.take_along_axis(answers, order, axis=1), strict=True):
            self._screens.setdefault(key, row)

    def _recall_screens(self, questions: Questions) -> tuple[Answers, Answers]:
        keys, order = _screen_keys(questions)
        answers = np.zeros(order.shape, dtype=np.bool_)
        known = np.array([key in self._screens for key in keys], dtype=np.bool_)
        for row in np.flatnonzero(known):
            answers[row, order[row]] = self._screens[keys[row]]
        return answers, known


def _screen_keys(questions: Questions) -> tuple[list[tuple[int, ...]], Objects]:
    """For each screen its query and shown objects in ascending order, and that order."""
    shown = np.asarray(questions)[:, 1:]
    order = np.argsort(shown, axis=1, kind="stable")
    rows = np.column_stack([np.asarray(questions)[:, 0], np.take_along_axis(shown, order, axis=1)])
    return [tuple(row) for row in rows.tolist()], order
