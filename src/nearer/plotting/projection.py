"""Positions as pictures show them: along their directions of greatest spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.distances import as_points

__all__ = ["Projection", "project"]

Floats = NDArray[np.float64]

_MOST = 5  # directions; their pairs are ten small maps, more are too small to read


@dataclass(frozen=True)
class Projection:
    """Positions along a few directions.

    Attributes
    ----------
    places
        ``(n, k)``: where objects are along each direction shown.
    directions
        ``(d, k)``, orthonormal: which directions these are.
    shares
        ``(k,)``: how much of the variance each carries; nan where nothing varies.
    """

    places: Floats
    directions: Floats
    shares: Floats

    @property
    def names(self) -> list[str]:
        """What to write on the axes."""
        d, k = self.directions.shape
        which = [f"direction {j + 1} of {d}" if d > 2 else f"dimension {j + 1}" for j in range(k)]
        return [
            name if np.isnan(share) else f"{name} ({100 * share:.0f} % of the spread)"
            for name, share in zip(which, self.shares.tolist(), strict=True)
        ]

    def seen(self, covariances: Floats) -> Floats:
        """Covariances along the directions, ``(n, k, k)``."""
        return np.asarray(
            np.einsum("di,ndk,kj->nij", self.directions, covariances, self.directions)
        )


def project(positions: ArrayLike, most: int | None = _MOST) -> Projection:
    """Positions with one or two dimensions as they are, others along their first directions.

    Parameters
    ----------
    positions
        ``(n, d)``.
    most
        How many directions at most; None: all.

    Examples
    --------
    >>> project([[0.0, 0.0, 1.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]], most=2).names
    ['direction 1 of 3 (93 % of the spread)', 'direction 2 of 3 (7 % of the spread)']
    """
    points = as_points(positions)
    d = points.shape[1]
    directions = np.eye(d)
    if d > 2:
        directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:most].T
        if directions.shape[1] < 2:
            directions = np.eye(d, 2)  # fewer than two objects have no spread to look along
    places = points @ directions
    total = float(points.var(axis=0).sum())
    shares = places.var(axis=0) / total if total > 0 else np.full(places.shape[1], np.nan)
    return Projection(places, np.asarray(directions), shares)
