"""Steps of a random walk among the positions that satisfy all answers.

One object moves at a time, along a line. On a line, an answer about the object allows an interval:
between two roots of a quadratic where the object is the near one, outside of them where it is the
far one, on one side of the mid-plane where it is the head. The step goes to a uniform place of the
interval that all its answers allow around the present place, and is taken with the odds that a
Gaussian of standard deviation `spread` around the origin gives (Metropolis), so that the walk
visits positions as often as that prior makes them probable.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel

__all__ = ["walk"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


@helper
def _narrowed(
    X: Floats, head: int, near: int, far: int, i: int, v: Floats, low: float, high: float
) -> tuple[float, float]:
    """The interval that is left by one more answer."""
    to_near = to_far = along_near = along_far = 0.0
    for k in range(X.shape[1]):
        a, b = X[head, k] - X[near, k], X[head, k] - X[far, k]
        to_near += a * a
        to_far += b * b
        along_near += v[k] * a
        along_far += v[k] * b
    slack = to_far - to_near
    if i == head:  # slack + 2τ·(along_far − along_near) stays positive
        slope = 2.0 * (along_far - along_near)
        if slope < 0.0:
            high = min(high, -slack / slope)
        elif slope > 0.0:
            low = max(low, -slack / slope)
    elif i == near:  # τ² − 2τ·along_near − slack stays negative
        root = math.sqrt(along_near * along_near + max(slack, 0.0))
        low, high = max(low, along_near - root), min(high, along_near + root)
    else:  # τ² − 2τ·along_far + slack stays positive
        below = along_far * along_far - max(slack, 0.0)
        if below > 0.0:
            root = math.sqrt(below)
            if along_far > 0.0:
                high = min(high, along_far - root)
            else:
                low = max(low, along_far + root)
    return low, high


@kernel
def walk(
    X: Floats,
    triplets: Ints,
    first: Ints,
    rows: Ints,
    directions: Floats,
    chances: Floats,
    spread: float,
) -> None:
    """Move every object once for each ``(n, d)`` of directions, in place.

    The answers about object i are ``rows[first[i]:first[i + 1]]``; `chances` holds two uniform
    numbers for each step.
    """
    for sweep in range(len(directions)):
        for i in range(X.shape[0]):
            v = directions[sweep, i]
            low, high = -6.0 * spread, 6.0 * spread
            for at in range(first[i], first[i + 1]):
                row = rows[at]
                head, near, far = triplets[row, 0], triplets[row, 1], triplets[row, 2]
                low, high = _narrowed(X, head, near, far, i, v, low, high)
            low, high = min(low, 0.0), max(high, 0.0)
            step = low + chances[sweep, i, 0] * (high - low)
            along = 0.0
            for k in range(X.shape[1]):
                along += X[i, k] * v[k]
            cost = step * (2.0 * along + step) / (2.0 * spread * spread)
            if chances[sweep, i, 1] < math.exp(-max(cost, 0.0)):
                for k in range(X.shape[1]):
                    X[i, k] += step * v[k]
