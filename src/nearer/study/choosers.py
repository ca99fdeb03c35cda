"""How the next questions are chosen: a registry, one line a method.

A *chooser* looks at all answers so far: nobody waits for a round, and people who answer at the
same time get different questions of the same batch. A *sorter* is an asking, run in
a session: its open round is what is asked, and the next round needs all of this one's decisions.
Both run in the worker's process and know nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import nearer
from nearer.asking.memory import Memory
from nearer.asking.protocol import Asking
from nearer.asking.session import Session
from nearer.questions import Answers, Questions, pack

__all__ = ["CHOOSERS", "SORTERS", "Choosing", "Sorting"]

_DRAWS = 64  # rounds of drawing before a study of few objects counts as exhausted


class Chooser(Protocol):
    """Chooses questions from all answers; may keep what it worked out for the next time."""

    def __call__(
        self,
        triplets: Questions,
        n_questions: int,
        askable: Callable[[Questions], Answers],
        rng: np.random.Generator,
    ) -> Questions:
        """At most `n_questions` rows ``(head, a, b)``."""


class RandomChooser:
    """Draws questions without looking at any answer; none twice.

    Examples
    --------
    >>> import numpy as np
    >>> choose = RandomChooser(9)
    >>> everything = lambda questions: np.ones(len(questions), dtype=bool)
    >>> choose(np.empty((0, 3), int), 4, everything, np.random.default_rng(0)).shape
    (4, 3)
    """

    def __init__(self, n_objects: int) -> None:
        self._n = n_objects

    def __call__(
        self,
        triplets: Questions,
        n_questions: int,
        askable: Callable[[Questions], Answers],
        rng: np.random.Generator,
    ) -> Questions:
        """Draw until there are enough, or there seem to be no more."""
        chosen = np.empty((0, 3), dtype=np.int64)
        for _ in range(_DRAWS):
            if len(chosen) >= n_questions:
                break
            rows = rng.integers(self._n, size=(4 * n_questions, 3))
            head, a, b = rows.T
            rows = rows[(head != a) & (head != b) & (a != b)]
            if len(rows):
                rows = rows[askable(rows)]
            chosen = np.concatenate([chosen, rows])
            _, first = np.unique(pack(chosen)[0], return_index=True)
            chosen = chosen[np.sort(first)]
        return chosen[:n_questions]


class InformativeChooser:
    """Asks what teaches most, see `nearer.informative`; fits go on from where the last ended."""

    def __init__(self, n_objects: int, n_components: int | None, seed: int) -> None:
        from nearer.fitting.belief import Belief  # noqa: PLC0415 - slow to load

        self._n = n_objects
        self._n_components = n_components
        self._belief = Belief(n_objects, n_components, np.random.default_rng(seed))

    def __call__(
        self,
        triplets: Questions,
        n_questions: int,
        askable: Callable[[Questions], Answers],
        rng: np.random.Generator,
    ) -> Questions:
        """Learn all answers, then choose."""
        from nearer.algorithms.informative import choose_questions  # noqa: PLC0415 - slow to load

        return choose_questions(
            triplets,
            self._n,
            n_questions,
            n_components=self._n_components,
            askable=askable,
            random_state=rng,
            belief=self._belief,
        )


#: from the number of objects, the dimension if it is known, and a seed: a chooser
CHOOSERS: dict[str, Callable[[int, int | None, int], Chooser]] = {
    "informative": InformativeChooser,
    "random": lambda n, n_components, seed: RandomChooser(n),
}

#: from the number of objects and a seed: an asking
SORTERS: dict[str, Callable[[int, int], Asking[Any]]] = {
    "adaptive": lambda n, seed: nearer.adaptive(n, random_state=seed),
    "basis": lambda n, seed: nearer.choose_basis(n, random_state=seed),
}


class Choosing:
    """A chooser that is told which questions are asked already."""

    def __init__(self, method: str, n_objects: int, n_components: int | None, seed: int) -> None:
        self._chooser = CHOOSERS[method](n_objects, n_components, seed)
        self._possible = n_objects * (n_objects - 1) * (n_objects - 2) // 2

    def choose(
        self,
        triplets: NDArray[np.int64],
        asked: NDArray[np.int64],
        n_questions: int,
        rng: np.random.Generator,
    ) -> Questions:
        """Up to so many questions that are not among those asked."""
        known = np.sort(pack(asked)[0]) if len(asked) else np.empty(0, dtype=np.int64)

        def askable(questions: Questions) -> Answers:
            keys = pack(questions)[0]
            if not len(known):
                return np.ones(len(keys), dtype=np.bool_)
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            fresh: Answers = known[place] != keys
            return fresh

        n_questions = min(n_questions, self._possible - len(known))
        if n_questions <= 0:
            return np.empty((0, 3), dtype=np.int64)
        return self._chooser(triplets, n_questions, askable, rng)


class Sorting:
    """A sorter that is told decisions as they come, and starts over when one was taken back."""

    def __init__(self, method: str, n_objects: int, seed: int) -> None:
        self._make = partial(SORTERS[method], n_objects, seed)
        self._told = np.empty((0, 3), dtype=np.int64)
        self._session: Session[Any] = Session(self._make())

    def open(self, decided: NDArray[np.int64]) -> Questions:
        """The questions that are open after these decisions, rows ``(head, near, far)``."""
        told = len(self._told)
        if not np.array_equal(decided[:told], self._told):
            known = Memory(decided).recall(self._told)
            if not (known[0] & known[1]).all():
                self._session = Session(self._make())
            told = 0
        new = decided[told:]
        if len(new):
            self._session.tell(new, np.ones(len(new), dtype=np.bool_))
        self._told = decided
        return self._session.open

    @property
    def done(self) -> bool:
        """Whether the algorithm has all it needs."""
        return self._session.done
