"""What an algorithm that chooses its own questions returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.asking.protocol import Answers, Questions
from nearer.distances import Distances

__all__ = ["Embedding", "Phase"]


@dataclass(frozen=True)
class Phase:
    """One stretch of a run: what it was for, what it cost, how it ended."""

    name: str
    n_comparisons: int
    n_rounds: int
    note: str = ""


@dataclass(frozen=True)
class Embedding:
    """Positions of objects, with everything that was paid for them.

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
    details
        What one algorithm knows and others do not (covariances, noise, rankings …).
    """

    positions: NDArray[np.float64]
    triplets: NDArray[np.int64]
    n_comparisons: int
    n_rounds: int
    history: tuple[Phase, ...]
    evidence: dict[int, Any]
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
