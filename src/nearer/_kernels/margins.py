"""How much answers tell about each object, how sure a prediction is, by how much an answer holds.

The first two rest on one derivative. A distance δ counts as f(δ): itself, or
(α + 1)/2 · log(1 + δ²/α) where the tail α is positive. With t = f(‖h − b‖) − f(‖h − a‖), the
margin of question (h, a, b), and u, w the gradients of f(‖h − a‖) and f(‖h − b‖) in h, moving h
changes t by w − u, moving a by u, moving b by −w.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel, side_by_side

__all__ = ["counted", "gaps", "information", "margins"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

_PART = 1 << 20  # rows that make a second thread worth waking


@helper
def counted(squared: float, tail: float) -> tuple[float, float]:
    """What a distance counts, and the factor that makes its gradient of the difference vector."""
    if tail > 0.0:
        return 0.5 * (tail + 1.0) * math.log1p(squared / tail), (tail + 1.0) / (tail + squared)
    distance = math.sqrt(squared)
    return distance, 1.0 / distance if distance > 0.0 else 0.0


@helper
def _directions(X: Floats, h: int, a: int, b: int, tail: float, u: Floats, w: Floats) -> float:
    """Fill the gradients, in the head, of what its two distances count; return the margin."""
    to_a = to_b = 0.0
    for k in range(X.shape[1]):
        u[k], w[k] = X[h, k] - X[a, k], X[h, k] - X[b, k]
        to_a += u[k] * u[k]
        to_b += w[k] * w[k]
    near, by_near = counted(to_a, tail)
    far, by_far = counted(to_b, tail)
    for k in range(X.shape[1]):
        u[k] *= by_near
        w[k] *= by_far
    return far - near


@kernel
def information(X: Floats, triplets: Ints, weights: Floats, lapse: float, tail: float) -> Floats:
    """Fisher information of each object's position, one ``(d, d)`` block an object.

    An answer that is right with probability p(t) = lapse + (1 − 2 lapse) / (1 + exp(−t)) carries
    p'(t)² / (p (1 − p)) about the margin t. Answers add up.
    """
    n, d = X.shape
    blocks = np.zeros((n, d, d))
    u, w = np.empty(d), np.empty(d)
    for row in range(len(triplets)):
        h, a, b = triplets[row, 0], triplets[row, 1], triplets[row, 2]
        t = _directions(X, h, a, b, tail, u, w)
        small = math.exp(-abs(t))
        slope = (1.0 - 2.0 * lapse) * small / ((1.0 + small) * (1.0 + small))
        right = lapse + (1.0 - 2.0 * lapse) / (1.0 + small)
        wrong = lapse + (1.0 - 2.0 * lapse) * small / (1.0 + small)
        told = weights[row] * slope * slope / (right * wrong) if slope > 0.0 else 0.0
        for k in range(d):
            for j in range(k + 1):
                blocks[h, k, j] += told * (w[k] - u[k]) * (w[j] - u[j])
                blocks[a, k, j] += told * u[k] * u[j]
                blocks[b, k, j] += told * w[k] * w[j]
    for i in range(n):
        for k in range(d):
            for j in range(k):
                blocks[i, j, k] = blocks[i, k, j]
    return blocks


@kernel
def margins(X: Floats, covariance: Floats, questions: Ints, tail: float) -> tuple[Floats, Floats]:
    """Mean and variance of each question's margin when objects vary independently."""
    m, d = len(questions), X.shape[1]
    mean, variance = np.empty(m), np.empty(m)
    u, w = np.empty(d), np.empty(d)
    for row in range(m):
        h, a, b = questions[row, 0], questions[row, 1], questions[row, 2]
        mean[row] = _directions(X, h, a, b, tail, u, w)
        total = 0.0
        for k in range(d):
            for j in range(d):
                total += (w[k] - u[k]) * (w[j] - u[j]) * covariance[h, k, j]
                total += u[k] * u[j] * covariance[a, k, j]
                total += w[k] * w[j] * covariance[b, k, j]
        variance[row] = total
    return mean, variance


def gaps(X: Floats, triplets: NDArray[np.int32]) -> Floats:
    """By how much far is farther from the head than near, for each answer."""
    found = np.empty(len(triplets))

    def fill(_: int, rows: slice) -> None:
        _fill_gaps(X, triplets[rows], found[rows])

    side_by_side(fill, len(triplets), -(-len(triplets) // _PART))
    return found


@kernel
def _fill_gaps(X: Floats, triplets: Ints, found: Floats) -> None:
    for row in range(len(triplets)):
        h, a, b = triplets[row, 0], triplets[row, 1], triplets[row, 2]
        near = far = 0.0
        for k in range(X.shape[1]):
            to_near, to_far = X[h, k] - X[a, k], X[h, k] - X[b, k]
            near += to_near * to_near
            far += to_far * to_far
        found[row] = math.sqrt(far) - math.sqrt(near)
