"""Value and gradient of a triplet loss in one pass over the triplets.

Every loss of `nearer.fitting.losses` is a function of two squared distances, head to near and
head to far. `slopes` knows the six functions; the passes know how a slope in a squared distance
moves three positions: d‖h − a‖²/dh = 2(h − a).

The pass over many triplets is cut into chunks with a gradient each, summed at the end, so threads
never write to the same place. How many chunks there are depends on the sizes alone: a fit gives
the same bits on any number of cores. Nothing of size n × n is built.
"""

# ruff: noqa: PLR0911 - a kernel is one loop with all it needs handed in

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

__all__ = ["CKL", "GNMDS", "LOGISTIC", "SOE", "STE", "TSTE", "value_and_gradient"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

SOE, LOGISTIC, CKL, GNMDS, STE, TSTE = range(6)

_CHUNK = 1 << 16  # triplets that make a second thread worth waking: about half a millisecond
_MOST_CHUNKS = 16


@njit(cache=True, inline="always")
def slopes(kind: int, shape: float, near: float, far: float) -> tuple[float, float, float]:
    """Loss of one triplet and its slopes in the two squared distances."""
    if kind == SOE:
        a, b = math.sqrt(near), math.sqrt(far)
        slack = 1.0 + a - b
        if slack <= 0.0:
            return 0.0, 0.0, 0.0
        return slack * slack, slack / a if a > 0.0 else 0.0, -slack / b if b > 0.0 else 0.0
    if kind == LOGISTIC:
        a, b = math.sqrt(near), math.sqrt(far)
        value, slope = _softplus(a - b, shape)
        slope *= 0.5
        return value, slope / a if a > 0.0 else 0.0, -slope / b if b > 0.0 else 0.0
    if kind == CKL:
        both, odds = near + far + 2.0 * shape, far + shape
        return math.log(both / odds), 1.0 / both, 1.0 / both - 1.0 / odds
    if kind == GNMDS:  # the hinge, rounded where it bends
        slack = 1.0 + near - far
        if slack <= 0.0:
            return 0.0, 0.0, 0.0
        if slack < 1.0:
            return 0.5 * slack * slack, slack, -slack
        return slack - 0.5, 1.0, -1.0
    if kind == STE:
        value, slope = _softplus(near - far, 0.0)
        return value, slope, -slope
    power = 0.5 * (shape + 1.0)
    value, slope = _softplus(power * math.log((shape + near) / (shape + far)), 0.0)
    return value, slope * power / (shape + near), -slope * power / (shape + far)


@njit(cache=True, inline="always")
def _softplus(t: float, lapse: float) -> tuple[float, float]:
    """-log(lapse + (1 - 2 lapse) / (1 + exp(t))) and its derivative in t."""
    small = math.exp(-abs(t))
    low = small / (1.0 + small)
    right, wrong = (low, 1.0 - low) if t > 0.0 else (1.0 - low, low)
    if lapse == 0.0:
        return max(t, 0.0) + math.log1p(small), wrong
    p = lapse + (1.0 - 2.0 * lapse) * right
    return -math.log(p), (1.0 - 2.0 * lapse) * right * wrong / p


@njit(cache=True, inline="always")
def _over_rows(
    kind: int,
    shape: float,
    X: Floats,
    triplets: Ints,
    weights: Floats,
    start: int,
    stop: int,
    gradient: Floats,
) -> float:
    """Sum of the losses of some rows; their gradient is added to `gradient`."""
    d = X.shape[1]
    total = 0.0
    for t in range(start, stop):
        h, i, j = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        near = far = 0.0
        for k in range(d):
            to_near, to_far = X[h, k] - X[i, k], X[h, k] - X[j, k]
            near += to_near * to_near
            far += to_far * to_far
        value, pull, push = slopes(kind, shape, near, far)
        total += value * weights[t]
        if pull == 0.0 and push == 0.0:
            continue
        pull *= 2.0 * weights[t]
        push *= 2.0 * weights[t]
        for k in range(d):
            to_near, to_far = pull * (X[h, k] - X[i, k]), push * (X[h, k] - X[j, k])
            gradient[h, k] += to_near + to_far
            gradient[i, k] -= to_near
            gradient[j, k] -= to_far
    return total


@njit(cache=True)
def _alone(
    kind: int, shape: float, X: Floats, triplets: Ints, weights: Floats, gradient: Floats
) -> float:
    return _over_rows(kind, shape, X, triplets, weights, 0, len(triplets), gradient)


@njit(cache=True, parallel=True)
def _side_by_side(
    kind: int,
    shape: float,
    X: Floats,
    triplets: Ints,
    weights: Floats,
    parts: Floats,
    gradient: Floats,
) -> float:
    m, chunks = len(triplets), len(parts)
    totals = np.zeros(chunks)
    for c in prange(chunks):
        parts[c] = 0.0
        start, stop = c * m // chunks, (c + 1) * m // chunks
        totals[c] = _over_rows(kind, shape, X, triplets, weights, start, stop, parts[c])
    for i in prange(len(gradient)):
        for k in range(gradient.shape[1]):
            entry = 0.0
            for c in range(chunks):
                entry += parts[c, i, k]
            gradient[i, k] = entry
    return float(totals.sum())


def value_and_gradient(
    kind: int, shape: float, X: Floats, triplets: Ints, weights: Floats
) -> tuple[float, Floats]:
    """Weighted sum of a loss over triplets, and its gradient in the positions.

    Parameters
    ----------
    kind, shape
        One of the numbers above, and what that loss leaves open: the lapse rate, mu or alpha.
    X
        ``(n, d)`` float64 positions, C-contiguous.
    triplets, weights
        ``(m, 3)`` integers and ``(m,)`` float64; fastest when sorted by head.
    """
    m, n = len(triplets), len(X)
    chunks = min(_MOST_CHUNKS, m // max(_CHUNK, n))
    if chunks < 2:
        gradient = np.zeros_like(X)
        return _alone(kind, shape, X, triplets, weights, gradient), gradient
    gradient = np.empty_like(X)
    parts = np.empty((chunks, *X.shape))
    return _side_by_side(kind, shape, X, triplets, weights, parts, gradient), gradient
