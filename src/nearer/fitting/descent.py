"""Coming down from more dimensions.

In d dimensions an object may be stuck behind others that it would have to pass; in d + 1 there is a
way around. So a fit begins in a few dimensions too many, is turned to its principal axes, loses the
weakest of them, and is fitted again from there. Each of these fits is also evidence of how many
dimensions the answers need: see `nearer.fitting.dimension`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np

from nearer.questions import Floats

__all__ = ["descend", "principal_axes"]


class HasPositions(Protocol):
    """Whatever a fit returns."""

    @property
    def positions(self) -> Floats:
        """``(n, d)``."""
        ...


F = TypeVar("F", bound=HasPositions)


def principal_axes(X: Floats, d: int) -> Floats:
    """Centred positions turned to their principal axes, the first d of them.

    Where there are fewer axes than d, the last coordinates are zero.

    Examples
    --------
    >>> import numpy as np
    >>> principal_axes(np.array([[0.0, 1.0], [0.0, 3.0]]), 1).round(6)
    array([[-1.],
           [ 1.]])
    """
    left, strength, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    # a direction may be turned round; the sign that agrees with the input is kept
    side = np.where(right[np.arange(len(right)), np.abs(right).argmax(axis=1)] < 0, -1.0, 1.0)
    axes = (left * (strength * side))[:, :d]
    return np.pad(axes, ((0, 0), (0, d - axes.shape[1])))


def descend(fit: Callable[[Floats], F], start: Floats, least: int) -> Iterator[F]:
    """Fit, strip the weakest axis, fit again: one fit for each dimension from the start's down.

    Parameters
    ----------
    fit
        From positions to start at to a fit in as many dimensions.
    start
        ``(n, d)`` positions.
    least
        The last dimension to fit in.
    """
    X = start
    while True:
        done = fit(X)
        yield done
        d = done.positions.shape[1]
        if d <= least:
            return
        X = principal_axes(done.positions, d - 1)
