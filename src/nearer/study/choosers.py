"""How the next questions are chosen, by a method of the library's registry or by chance.

A *choosing* looks at all answers so far: nobody waits for a round, and people who answer at the
same time get different questions of the same batch. A *sorting* is an asking, run in a session: its
open round is what is asked, and the next round needs all of this one's decisions. Both run in the
worker's process and know nothing of files: what they must know after a restart they are told.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.candidates import Candidates
from nearer.algorithms.methods import METHODS
from nearer.asking.memory import Memory
from nearer.asking.session import Session
from nearer.questions import Answers, Questions, find, pack

if TYPE_CHECKING:
    from nearer.fitting.belief import Belief

__all__ = ["Choosing", "Sorting"]


class Choosing:
    """Chooses from all answers; fits go on from where the last ended.

    Examples
    --------
    >>> import numpy as np
    >>> none = np.empty((0, 3), dtype=np.int64)
    >>> choosing = Choosing("random", 9, None, seed=0)
    >>> choosing.choose(none, none, np.empty(0), 4, np.random.default_rng(0))[0].shape
    (4, 3)
    """

    def __init__(self, method: str, n_objects: int, n_components: int | None, seed: int) -> None:
        self._n = n_objects
        self._belief: Belief | None = None
        if method != "random":  # the registry has one method that chooses as a stream
            from nearer.fitting.belief import Belief  # noqa: PLC0415 - people wait at the start

            self._belief = Belief(n_objects, n_components, np.random.default_rng(seed))

    def choose(
        self,
        triplets: NDArray[np.int64],
        asked: NDArray[np.int64],
        odds: NDArray[np.float64],
        n_questions: int,
        rng: np.random.Generator,
        *,
        weights: NDArray[np.float64] | None = None,
    ) -> tuple[Questions, NDArray[np.float64] | None]:
        """Up to so many questions that are not among those asked, and with what odds.

        Parameters
        ----------
        triplets
            All answers so far.
        asked, odds
            All questions so far, and how much likelier than at random each was; nan: not at all.
        weights
            How much each answer counts; a near tie is two of one half each.
        """
        known = np.unique(pack(asked)[0])

        def askable(questions: Questions) -> Answers:
            return ~find(known, pack(questions)[0])[1]

        n_questions = min(n_questions, self._n * (self._n - 1) * (self._n - 2) // 2 - len(known))
        if n_questions <= 0:
            return np.empty((0, 3), dtype=np.int64), None
        if self._belief is None:
            return Candidates(self._n, askable).draw(n_questions, rng), None
        from nearer.algorithms.informative import draw_round  # noqa: PLC0415 - as above

        chosen = np.isfinite(odds)
        self._belief.expect(asked[chosen], odds[chosen])
        candidates = Candidates(self._n, askable)
        if len(triplets):
            self._belief.learn(triplets, weights=weights)
            candidates.exclude(triplets)
        questions, _ = draw_round(self._belief, candidates, n_questions, rng)
        return questions, self._belief.odds(questions)


class Sorting:
    """A sorter that is told decisions as they come, and starts over when one was taken back."""

    def __init__(self, method: str, n_objects: int, seed: int) -> None:
        # many people are here at once, and each of a round's questions can go to another one
        way = METHODS[method]
        few = {"order": "fewest-rounds"} if "order" in way.takes else {}
        self._make = partial(way.make, n_objects, random_state=seed, **few)
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

    @property
    def result(self) -> Any:
        """What the algorithm found, once it is done."""
        return self._session.result
