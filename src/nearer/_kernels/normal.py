"""Normal distributions in a few dimensions, for kernels that keep one for each object."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper

__all__ = ["along", "below", "invert", "roughly_below"]

Floats = NDArray[np.float64]

_SIGMAS, _STEPS = 8.0, 512  # of the table
_TABLE: Floats = np.array(
    [0.5 * math.erfc((_SIGMAS - i / _STEPS) / math.sqrt(2)) for i in range(16 * _STEPS + 2)]
)


@helper
def below(x: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@helper
def roughly_below(x: float) -> float:
    """The standard normal distribution function within 2·10⁻⁷, from a table."""
    if x <= -_SIGMAS:
        return 0.0
    if x >= _SIGMAS:
        return 1.0
    at = (x + _SIGMAS) * _STEPS
    i = int(at)
    return float(_TABLE[i] + (at - i) * (_TABLE[i + 1] - _TABLE[i]))


@helper
def invert(A: Floats) -> None:
    """Replace a positive definite matrix by its inverse (Gauss–Jordan, no pivoting needed)."""
    d = len(A)
    for i in range(d):
        pivot, A[i, i] = 1.0 / A[i, i], 1.0
        for c in range(d):
            A[i, c] *= pivot
        for r in range(d):
            if r != i:
                factor, A[r, i] = A[r, i], 0.0
                for c in range(d):
                    A[r, c] -= factor * A[i, c]


@helper
def along(covariance: Floats, direction: Floats) -> float:
    """Variance of a position along a direction."""
    total = 0.0
    for i in range(len(direction)):
        for j in range(len(direction)):
            total += direction[i] * direction[j] * covariance[i, j]
    return max(total, 1e-300)
