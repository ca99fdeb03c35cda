"""Value and gradient of a triplet loss in one pass over the triplets.

Every loss of `nearer.fitting.losses` is a function of two squared distances, head to near and
head to far. `_slopes` knows the six functions; a pass knows how a slope in a squared distance
moves three positions: d‖h − a‖²/dh = 2(h − a).

A pass over many triplets is cut into chunks with a gradient each, summed at the end, so threads
never write to the same place. How many chunks there are depends on the sizes alone: a fit gives
the same bits on any number of cores. Nothing of size n × n is built.
"""

# ruff: noqa: PLR0911 - a kernel is one loop with all it needs handed in

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel, side_by_side

__all__ = ["CKL", "GNMDS", "LOGISTIC", "SOE", "STE", "TSTE", "value_and_gradient"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

SOE, LOGISTIC, CKL, GNMDS, STE, TSTE = range(6)

_CHUNK = 1 << 16  # triplets that make a second thread worth waking: about half a millisecond
_MOST_CHUNKS = 16
_SURE = (
    40.0  # exp(-40) is a fortieth of the last digit of 1: such an answer costs and pulls nothing
)


@helper
def _slopes(kind: int, shape: float, near: float, far: float) -> tuple[float, float, float]:
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


@helper
def _apart(near: float, far: float, gap: float) -> bool:
    """Whether the far distance exceeds the near one by a gap, told without a root.

    Most answers of a good fit end here, and two roots are most of what such a one takes.
    """
    room = far - near - gap * gap
    return room > 0.0 and room * room >= 4.0 * gap * gap * near


@helper
def _softplus(t: float, lapse: float) -> tuple[float, float]:
    """-log(lapse + (1 - 2 lapse) / (1 + exp(t))) and its derivative in t."""
    if t < -_SURE:
        return -math.log1p(-lapse), 0.0
    small = math.exp(-abs(t))
    low = small / (1.0 + small)
    right, wrong = (low, 1.0 - low) if t > 0.0 else (1.0 - low, low)
    if lapse == 0.0:
        return max(t, 0.0) + math.log1p(small), wrong
    p = lapse + (1.0 - 2.0 * lapse) * right
    return -math.log(p), (1.0 - 2.0 * lapse) * right * wrong / p


@kernel
def _add_rows(
    kind: int,
    shape: float,
    X: Floats,
    triplets: Ints,
    weights: Floats,
    gradient: Floats,
) -> float:
    """Sum of the losses of some rows; their gradient is added to `gradient`.

    One weight stands for all rows.
    """
    d = X.shape[1]
    weighted = len(weights) > 1
    gap = 1.0 if kind == SOE else _SURE if kind == LOGISTIC else math.inf
    least = -math.log1p(-shape) if kind == LOGISTIC else 0.0  # what an answer so obeyed costs
    total = 0.0
    for t in range(len(triplets)):
        h, i, j = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        near = far = 0.0
        for k in range(d):
            to_near, to_far = X[h, k] - X[i, k], X[h, k] - X[j, k]
            near += to_near * to_near
            far += to_far * to_far
        w = weights[t] if weighted else weights[0]
        if _apart(near, far, gap):
            total += least * w
            continue
        value, pull, push = _slopes(kind, shape, near, far)
        total += value * w
        if pull == 0.0 and push == 0.0:
            continue
        pull *= 2.0 * w
        push *= 2.0 * w
        for k in range(d):
            to_near, to_far = pull * (X[h, k] - X[i, k]), push * (X[h, k] - X[j, k])
            gradient[h, k] += to_near + to_far
            gradient[i, k] -= to_near
            gradient[j, k] -= to_far
    return total


def value_and_gradient(
    kind: int, shape: float, X: Floats, triplets: Ints, weights: Floats | None
) -> tuple[float, Floats]:
    """Weighted sum of a loss over triplets, and its gradient in the positions.

    Parameters
    ----------
    kind, shape
        One of the numbers above, and what that loss leaves open: the lapse rate, mu or alpha.
    X
        ``(n, d)`` float64 positions, C-contiguous.
    triplets, weights
        ``(m, 3)`` integers and ``(m,)`` float64, None where all are one; fastest when sorted by
        head.
    """
    triplets = np.ascontiguousarray(triplets, dtype=np.int32)
    m, n = len(triplets), len(X)
    chunks = max(1, min(_MOST_CHUNKS, m // max(_CHUNK, n)))
    parts, values, one = np.zeros((chunks, *X.shape)), np.empty(chunks), np.ones(1)

    def add(c: int, rows: slice) -> None:
        own = one if weights is None else weights[rows]
        values[c] = _add_rows(kind, shape, X, triplets[rows], own, parts[c])

    side_by_side(add, m, chunks)
    return float(values.sum()), parts[0] if chunks == 1 else parts.sum(axis=0)
