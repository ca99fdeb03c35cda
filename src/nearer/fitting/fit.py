"""What a fit returns."""

from __future__ import annotations

from dataclasses import dataclass

from nearer.questions import Floats

__all__ = ["Fit"]


@dataclass(frozen=True)
class Fit:
    """Positions and how they were found.

    Attributes
    ----------
    positions
        ``(n_objects, n_components)``.
    loss
        Weighted mean loss of the triplets, without the ridge.
    n_iter
        Steps of the optimiser.
    converged
        False where `max_iter` ended it.
    """

    positions: Floats
    loss: float
    n_iter: int
    converged: bool
