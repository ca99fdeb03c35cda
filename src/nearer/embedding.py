"""Positions with all that is known of them, whether questions were chosen or given."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.asking.protocol import Oracle
from nearer.distances import Distances
from nearer.errors import InvalidInput
from nearer.questions import Answers, Questions
from nearer.running.run import run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nearer.algorithms.placing import Placed

__all__ = ["Embedding", "HeldOutAccuracy", "Phase"]


@dataclass(frozen=True)
class Phase:
    """One stretch of a run: what it was for, what it cost, how it ended."""

    name: str
    n_comparisons: int
    n_rounds: int
    note: str = ""


@dataclass(frozen=True)
class HeldOutAccuracy:
    """Share of answers predicted by fits that had not seen them, with a 95 % interval."""

    accuracy: float
    low: float
    high: float
    n_trials: int


@dataclass(frozen=True, eq=False)
class Embedding:
    """Positions of objects, with all that is known of them.

    What a way of finding positions cannot know is None.

    Attributes
    ----------
    positions
        ``(n_objects, dimension)``.
    triplets
        Every answer paid for, as rows ``(head, near, far)``.
    n_comparisons, n_rounds
        What was asked, and in how many rounds.
    history
        The phases of the run in order: what was asked in each, and why it stopped.
    evidence
        What the dimension rests on: for each dimension tried, how well it explained the answers.
    determined
        Whether the evidence separates the dimension from its neighbours.
    dimension_low, dimension_high
        The dimensions that the evidence leaves possible.
    covariances
        ``(n_objects, dimension, dimension)``: how sure each position is.
    held_out
        How well answers that no fit had seen were predicted.
    error_rate
        Share of answers that depart from the positions.
    people
        A table, one row a person: id, n_trials, agreement, low, high, reliability, flag.
    names
        What the user calls the objects.
    chosen
        Whether the questions were chosen by the algorithm, or given with their answers.
    details
        What one algorithm knows and others do not (rankings, the posterior, heads …).
    """

    positions: NDArray[np.float64]
    triplets: NDArray[np.int64]
    n_comparisons: int
    n_rounds: int
    history: tuple[Phase, ...]
    evidence: dict[int, Any]
    determined: bool | None = None
    covariances: NDArray[np.float64] | None = field(default=None, repr=False)
    held_out: HeldOutAccuracy | None = None
    error_rate: float | None = None
    people: NDArray[np.void] | None = field(default=None, repr=False)
    names: tuple[Any, ...] | None = field(default=None, repr=False)
    dimension_low: int | None = None
    dimension_high: int | None = None
    chosen: bool = True
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def dimension(self) -> int:
        """The number of dimensions the answers need."""
        return int(self.positions.shape[1])

    def predict(self, questions: Questions) -> Answers:
        """Answers that the positions give: True where a is nearer to head than b is."""
        head, a, b = np.asarray(questions).reshape(-1, 3).T
        distances = Distances(self.positions)
        return distances.between(head, a) < distances.between(head, b)

    def predict_proba(self, questions: Questions) -> NDArray[np.float64]:
        """Probabilities of "b is nearer" and "a is nearer", one row a question.

        Only embeddings that know how answers depart from positions have them: those of
        `nearer.fit`, and of `nearer.embed` where answers were found to be doubtful.
        """
        posterior = self.details.get("posterior")
        if posterior is None:
            raise InvalidInput(
                "no probabilities: these positions were found from answers taken to be exact; "
                "fit the answers with nearer.fit(embedding.triplets, n_objects=…)"
            )
        p = posterior.probability(np.asarray(questions).reshape(-1, 3))
        return np.stack([1 - p, p], axis=1)

    def place(self, oracle: Oracle, new: ArrayLike) -> Placed:
        """Find the positions of unseen objects by comparing them with those that have one.

        Parameters
        ----------
        oracle
            It must know the old objects by their numbers, and the new ones by `new`.
        new
            The new objects' numbers, none of them below ``len(positions)``.

        Returns
        -------
        placed
            Positions of the new objects, and what they cost. See `nearer.place_objects`.
        """
        from nearer.algorithms.placing import place_objects  # noqa: PLC0415 - it needs this module

        return run(place_objects(self, new), oracle)

    def plot(self, **options: Any) -> Axes:
        """Draw a map of the positions, with the options of `nearer.plotting.plot_positions`."""
        plotting = import_module("nearer.plotting")  # a room above this one, needed only here
        axes: Axes = plotting.plot_positions(self.positions, **options)
        return axes
