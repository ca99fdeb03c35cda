r"""The next questions about an object among others that stay.

Candidates are near ties: from random anchors, with whom x is believed to be as far
away as another anchor; and pairs that are as far away from x as each other. A question is worth the
share of the margin's variance that its answer is expected to take away,

    (1 − 2ε)² φ(z)² · κv/(1 + κv) / (Z(1 − Z)),    κ = 1/(8/π + w),  z = t √(κ/(1 + κv)),

v the variance of t because of x, and Z the probability of "yes". When one is taken, the belief is
narrowed by what is expected of it before the next is chosen.
"""

from __future__ import annotations

import math

import numpy as np

from nearer._kernels.beliefs import (
    FROM_NEW,
    FROM_OLD,
    LOGISTIC,
    PEAK,
    Anchors,
    Belief,
    Few,
    Floats,
    Ints,
    Scene,
    copy,
    margin,
)
from nearer._kernels.compiling import helper, kernel
from nearer._kernels.normal import along, below

__all__ = ["choose"]


@helper
def _next(state: int) -> int:
    """The next of a sequence of numbers from 1 to 2³¹ − 2 that look random (Park, Miller 1988)."""
    return state * 48271 % 2147483647


@helper
def _tie(anchors: Anchors, i: int, r: float) -> int:
    """The place, in the order of distances from anchor i, of the last that is nearer than r."""
    order, D = anchors[2], anchors[3]
    first, last = 0, order.shape[1]
    while first < last:
        middle = (first + last) // 2
        if D[i, order[i, middle]] < r:
            first = middle + 1
        else:
            last = middle
    return max(first - 1, 0)


@helper
def _near_ties(
    x: Floats, anchors: Anchors, state: int, asked: Few, away: Floats, drawn: Few
) -> None:
    """Fill in near ties, the first half from old heads, the others from the newcomer."""
    X, _, order, _ = anchors
    half = len(asked) // 2
    for s in range(half + 1):
        state = _next(state)
        i, r = state % len(X), 0.0
        for k in range(len(x)):
            r += (x[k] - X[i, k]) * (x[k] - X[i, k])
        r = math.sqrt(r)
        if s < half:
            state = _next(state)
            place = min(_tie(anchors, i, r) + state % 2, order.shape[1] - 1)
            asked[s, 0], asked[s, 1], asked[s, 2] = i, order[i, place], FROM_OLD
        at = s
        while at > 0 and away[at - 1] > r:
            away[at], drawn[at] = away[at - 1], drawn[at - 1]
            at -= 1
        away[at], drawn[at] = r, i
    for s in range(half):
        asked[half + s, 0], asked[half + s, 1] = drawn[s], drawn[s + 1]
        asked[half + s, 2] = FROM_NEW if drawn[s] != drawn[s + 1] else -1


@helper
def _known(question: Few, asked: Few, n: int) -> bool:
    """Whether a question, or its mirror image, is among the first n."""
    i, j, way = question[0], question[1], question[2]
    for q in range(n):
        if asked[q, 2] == way:
            mirrored = way == FROM_NEW and asked[q, 0] == j and asked[q, 1] == i
            if mirrored or (asked[q, 0] == i and asked[q, 1] == j):
                return True
    return False


@helper
def _worth(t: float, variance: float, noise: float, lapse: float) -> float:
    """The share of a margin's variance that an answer is expected to take away."""
    k2 = 1.0 / (LOGISTIC + noise + variance)
    chance = lapse + (1.0 - 2.0 * lapse) * below(-math.sqrt(t * t * k2))
    height = (1.0 - 2.0 * lapse) * PEAK
    told = height * height * math.exp(-t * t * k2) * variance * k2
    return told / max(chance * (1.0 - chance), 1e-300)


@helper
def _narrow(covariance: Floats, direction: Floats, share: float, work: Floats) -> None:
    """Take a share of the variance along a direction away."""
    d = len(direction)
    variance = along(covariance, direction)
    for i in range(d):
        work[i] = 0.0
        for j in range(d):
            work[i] += covariance[i, j] * direction[j]
    for i in range(d):
        for j in range(d):
            covariance[i, j] -= share / variance * work[i] * work[j]


@kernel
def choose(
    seeds: Ints, beliefs: Belief, asked: Few, first: int, scene: Scene, n_candidates: int
) -> None:
    """Write questions for objects into `asked`, from `first` on; −1 where there are no more."""
    anchors, _, model, _, _ = scene
    d = anchors[0].shape[1]
    work = (np.empty(d), np.empty(d), np.empty(d), np.empty((d, d)))
    listed, gradients = np.empty((n_candidates, 3), np.int32), np.empty((n_candidates, d))
    margins, noises = np.empty(n_candidates), np.empty(n_candidates)
    away, drawn = np.empty(n_candidates), np.empty(n_candidates, np.int32)
    left = (np.empty(d), np.empty((d, d)))
    for x in range(len(seeds)):
        copy((beliefs[0][x], beliefs[1][x]), left)
        _near_ties(left[0], anchors, seeds[x], listed, away, drawn)
        for c in range(n_candidates):
            if listed[c, 2] >= 0 and not _known(listed[c], asked[x], first):
                margins[c], noises[c] = margin(left[0], anchors, listed[c], model, work)
                for k in range(d):
                    gradients[c, k] = work[0][k]
            else:
                listed[c, 2] = -1
        for new in range(first, asked.shape[1]):
            best, at = -1.0, -1
            for c in range(n_candidates):
                if listed[c, 2] >= 0:
                    variance = along(left[1], gradients[c])
                    worth = _worth(margins[c], variance, noises[c], model[1])
                    if worth > best:
                        best, at = worth, c
            if at < 0:
                asked[x, new, 2] = -1
                continue
            for k in range(3):
                asked[x, new, k] = listed[at, k]
            _narrow(left[1], gradients[at], best, work[0])
            if _known(listed[at], asked[x], new):
                asked[x, new, 2] = -1  # drawn twice
            listed[at, 2] = -1
