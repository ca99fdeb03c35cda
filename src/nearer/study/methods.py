"""How the next questions are chosen: a registry, one line a method.

A *chooser* is a pure function of all answers so far: nobody waits for a round, and people who
answer at the same time get different questions of the same batch. A *sorter* is an asking, run in
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
from nearer.asking.memory import Memory, pack
from nearer.asking.protocol import Answers, Asking, Questions
from nearer.asking.session import Session

__all__ = ["CHOOSERS", "SORTERS", "Sorting", "choose", "choose_random"]

_DRAWS = 64  # rounds of drawing before a study of few objects counts as exhausted


class Chooser(Protocol):
    """Chooses questions from answers."""

    def __call__(
        self,
        triplets: Questions,
        n_objects: int,
        n_questions: int,
        *,
        n_components: int | None = None,
        askable: Callable[[Questions], Answers] | None = None,
        random_state: np.random.Generator | None = None,
    ) -> Questions:
        """At most `n_questions` rows ``(head, a, b)``."""


def choose_random(
    triplets: Questions,
    n_objects: int,
    n_questions: int,
    *,
    n_components: int | None = None,
    askable: Callable[[Questions], Answers] | None = None,
    random_state: np.random.Generator | None = None,
) -> Questions:
    """Questions drawn without looking at any answer; none twice.

    Examples
    --------
    >>> import numpy as np
    >>> choose_random(np.empty((0, 3), int), 9, 4, random_state=np.random.default_rng(0)).shape
    (4, 3)
    """
    rng = np.random.default_rng(random_state)
    chosen = np.empty((0, 3), dtype=np.int64)
    for _ in range(_DRAWS):
        if len(chosen) >= n_questions:
            break
        rows = rng.integers(n_objects, size=(4 * n_questions, 3))
        head, a, b = rows.T
        rows = rows[(head != a) & (head != b) & (a != b)]
        if askable is not None and len(rows):
            rows = rows[askable(rows)]
        chosen = np.concatenate([chosen, rows])
        _, first = np.unique(pack(chosen)[0], return_index=True)
        chosen = chosen[np.sort(first)]
    return chosen[:n_questions]


def _informative(*args: Any, **options: Any) -> Questions:
    from nearer.algorithms.informative import choose_questions  # noqa: PLC0415 - slow to load

    chosen: Questions = choose_questions(*args, **options)
    return chosen


#: from all answers, the next questions
CHOOSERS: dict[str, Chooser] = {"informative": _informative, "random": choose_random}

#: from the number of objects and a seed, an asking
SORTERS: dict[str, Callable[[int, int], Asking[Any]]] = {
    "adaptive": lambda n, seed: nearer.adaptive(n, random_state=seed),
    "basis": lambda n, seed: nearer.choose_basis(n, random_state=seed),
}


def choose(
    method: str,
    triplets: NDArray[np.int64],
    asked: NDArray[np.int64],
    n_objects: int,
    n_questions: int,
    *,
    n_components: int | None = None,
    rng: np.random.Generator,
) -> Questions:
    """Let a chooser choose questions that are not among those asked already."""
    known = np.sort(pack(asked)[0]) if len(asked) else np.empty(0, dtype=np.int64)

    def askable(questions: Questions) -> Answers:
        keys = pack(questions)[0]
        if not len(known):
            return np.ones(len(keys), dtype=np.bool_)
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        fresh: Answers = known[place] != keys
        return fresh

    n_questions = min(n_questions, n_objects * (n_objects - 1) * (n_objects - 2) // 2 - len(known))
    if n_questions <= 0:
        return np.empty((0, 3), dtype=np.int64)
    return CHOOSERS[method](
        triplets,
        n_objects,
        n_questions,
        n_components=n_components,
        askable=askable,
        random_state=rng,
    )


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
