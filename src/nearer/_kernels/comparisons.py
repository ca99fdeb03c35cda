r"""Loops over comparisons: passes of a fit, steps of the optimiser; rankings.

*Losses.* docs/kernels.md tells how a pass works and why it gives the same bits on any number of
cores. `_slopes` knows the six losses of `nearer.fitting.solver`.

*Margins.* A distance δ counts as f(δ): itself, or (α + 1)/2 · log(1 + δ²/α) where the tail α is
positive. With t = f(‖h − b‖) − f(‖h − a‖), the margin of question (h, a, b), and u, w the gradients
of f(‖h − a‖) and f(‖h − b‖) in h, moving h changes t by w − u, moving a by u, moving b by −w.


*Steps.* `StepMemory` holds the vectors of L-BFGS; its direction is the two-loop recursion (Nocedal
and Wright 2006, algorithm 7.4).
"""

# ruff: noqa: PLR0911 - a kernel is one loop with all it needs handed in

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

import numba
import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, in_any_order, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Rows = NDArray[np.int32]

SOE, LOGISTIC, CKL, GNMDS, STE, TSTE = range(6)

# Answers, distances or candidates for each thread: with half as many, two threads take as long as
# one.
PART = 1 << 15
_CORES: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]

# Margin at which exp(−margin) is the last digit of 1: such an answer pulls nothing.
_SURE = math.log(1.0 / np.finfo(np.float64).eps)
_SMALL = math.sqrt(np.finfo(np.float64).tiny)  # a product that leaves room for a factor
# Binary digits of the number of objects that all of the cache holds, and its nearest level.
_CACHE, _NEAREST = 18, 10
_STEPS = 10  # that are remembered, SciPy's default
# Each holds a gradient: all of them no more than the optimiser's memory.
_MOST_CHUNKS = 1 << (2 * _STEPS).bit_length() - 1


@helper
def _slopes(kind: int, shape: float, near: float, far: float) -> tuple[float, float, float, float]:
    """A part of the loss of one triplet, a factor, and the slopes in the two squared distances.

    The loss is the part minus the logarithm of the factor, which is at most 1.
    """
    if kind == SOE:
        a, b = math.sqrt(near), math.sqrt(far)
        slack = 1.0 + a - b
        if slack <= 0.0:
            return 0.0, 1.0, 0.0, 0.0
        pull, push = slack / a if a > 0.0 else 0.0, -slack / b if b > 0.0 else 0.0
        return slack * slack, 1.0, pull, push
    if kind == LOGISTIC:
        a, b = math.sqrt(near), math.sqrt(far)
        part, factor, slope = _softplus(a - b, shape)
        slope *= 0.5
        return part, factor, slope / a if a > 0.0 else 0.0, -slope / b if b > 0.0 else 0.0
    if kind == CKL:
        both, odds = near + far + 2.0 * shape, far + shape
        return 0.0, odds / both, 1.0 / both, 1.0 / both - 1.0 / odds
    if kind == GNMDS:  # the hinge, rounded where it bends
        slack = 1.0 + near - far
        if slack <= 0.0:
            return 0.0, 1.0, 0.0, 0.0
        if slack < 1.0:
            return 0.5 * slack * slack, 1.0, slack, -slack
        return slack - 0.5, 1.0, 1.0, -1.0
    if kind == STE:
        part, factor, slope = _softplus(near - far, 0.0)
        return part, factor, slope, -slope
    power = 0.5 * (shape + 1.0)
    part, factor, slope = _softplus(power * math.log((shape + near) / (shape + far)), 0.0)
    return part, factor, slope * power / (shape + near), -slope * power / (shape + far)


@helper
def _apart(near: float, far: float, gap: float) -> bool:
    """Whether the far distance exceeds the near one by a gap, found without a root.

    Most answers of a good fit end here, and two roots would be most of their cost.
    """
    room = far - near - gap * gap
    return room > 0.0 and room * room >= 4.0 * gap * gap * near


@helper
def _softplus(t: float, lapse: float) -> tuple[float, float, float]:
    """-log(lapse + (1 - 2 lapse) / (1 + exp(t))) as a part and a factor; its derivative in t."""
    if t < -_SURE:
        return 0.0, 1.0 - lapse, 0.0
    small = math.exp(-abs(t))
    low = small / (1.0 + small)
    right, wrong = (low, 1.0 - low) if t > 0.0 else (1.0 - low, low)
    if lapse == 0.0:
        return max(t, 0.0), 1.0 - low, wrong
    p = lapse + (1.0 - 2.0 * lapse) * right
    return 0.0, p, (1.0 - 2.0 * lapse) * right * wrong / p


@in_any_order
def _squares(X: Floats, h: int, i: int, j: int) -> tuple[float, float]:
    """Squared distances of a head to two objects."""
    near = far = 0.0
    for k in range(X.shape[1]):
        to_near, to_far = X[h, k] - X[i, k], X[h, k] - X[j, k]
        near += to_near * to_near
        far += to_far * to_far
    return near, far


@helper
def _flush(own: Floats, gradient: Floats, h: int) -> None:
    """Add what rows of one head have collected to its gradient."""
    for k in range(len(own)):
        gradient[h, k] += own[k]
        own[k] = 0.0


@kernel
def _pass(
    kind: int,
    shape: float,
    X: Floats,
    triplets: Ints,
    weights: Floats,
    gradient: Floats,
) -> float:
    """Sum of the losses of some rows; one weight stands for all. `gradient` grows by theirs.

    Rows of one head follow each other, so that its gradient is collected near at hand. Where all
    weigh the same, their factors are multiplied, and one logarithm is taken for hundreds of them.
    """
    d, head = X.shape[1], 0
    own = np.zeros(d)
    weighted = len(weights) > 1
    gap = 1.0 if kind == SOE else _SURE if kind == LOGISTIC else math.inf
    least = -math.log1p(-shape) if kind == LOGISTIC else 0.0  # cost if that far apart
    total, product, w = 0.0, 1.0, weights[0]
    for t in range(len(triplets)):
        h, i, j = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        near, far = _squares(X, h, i, j)
        if weighted:
            w = weights[t]
        if _apart(near, far, gap):
            total += least * w
            continue
        part, factor, pull, push = _slopes(kind, shape, near, far)
        total += part * w
        product *= factor
        if weighted or product < _SMALL:
            total -= w * math.log(product)
            product = 1.0
        if pull == 0.0 and push == 0.0:
            continue
        pull *= 2.0 * w
        push *= 2.0 * w
        if h != head:
            _flush(own, gradient, head)
            head = h
        for k in range(d):
            to_near, to_far = pull * (X[h, k] - X[i, k]), push * (X[h, k] - X[j, k])
            own[k] += to_near + to_far
            gradient[i, k] -= to_near
            gradient[j, k] -= to_far
    _flush(own, gradient, head)
    return float(total - w * math.log(product))


def value_and_gradient(
    kind: int, shape: float, X: Floats, triplets: Ints, weights: Floats | None
) -> tuple[float, Floats]:
    """Weighted sum of a loss over triplets, and its gradient in the positions.

    `shape` is what the loss leaves open: the lapse rate, mu or alpha.
    """
    triplets = np.ascontiguousarray(triplets, dtype=np.int32)
    m, n = len(triplets), len(X)
    pays = m // max(PART, n)
    # a power of two, which two, four or eight threads share evenly
    chunks = min(_MOST_CHUNKS, 1 << max(0, pays.bit_length() - 1))
    weights_or_one = np.ones(1) if weights is None else weights
    if chunks == 1:
        gradient = np.zeros(X.shape)
        return _pass(kind, shape, X, triplets, weights_or_one, gradient), gradient
    parts, values = np.empty((chunks, *X.shape)), np.empty(chunks)

    def add(c: int, rows: slice) -> None:
        parts[c] = 0.0
        own = weights_or_one if weights is None else weights[rows]
        values[c] = _pass(kind, shape, X, triplets[rows], own, parts[c])

    def sum_up(_: int, objects: slice) -> None:
        parts[:, objects].sum(axis=0, out=gradient[objects])

    side_by_side(add, m, chunks)
    gradient = np.empty(X.shape)
    side_by_side(sum_up, n, chunks)
    return float(values.sum()), gradient


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
        carried = weights[row] * slope * slope / (right * wrong) if slope > 0.0 else 0.0
        for k in range(d):
            for j in range(k + 1):
                blocks[h, k, j] += carried * (w[k] - u[k]) * (w[j] - u[j])
                blocks[a, k, j] += carried * u[k] * u[j]
                blocks[b, k, j] += carried * w[k] * w[j]
    for i in range(n):
        for k in range(d):
            for j in range(k):
                blocks[i, j, k] = blocks[i, k, j]
    return blocks


@in_any_order
def _along(covariance: Floats, i: int, u: Floats) -> float:
    """Variance of an object along a vector."""
    total = 0.0
    for k in range(len(u)):
        row = 0.0
        for j in range(len(u)):
            row += covariance[i, k, j] * u[j]
        total += row * u[k]
    return total


@kernel
def margins(X: Floats, covariance: Floats, questions: Ints, tail: float) -> tuple[Floats, Floats]:
    """Mean and variance of each question's margin when objects vary independently."""
    m, d = len(questions), X.shape[1]
    mean, variance = np.empty(m), np.empty(m)
    u, w = np.empty(d), np.empty(d)
    for row in range(m):
        h, a, b = questions[row, 0], questions[row, 1], questions[row, 2]
        mean[row] = _directions(X, h, a, b, tail, u, w)
        variance[row] = _along(covariance, a, u) + _along(covariance, b, w)
        for k in range(d):
            w[k] -= u[k]
        variance[row] += _along(covariance, h, w)
    return mean, variance


def in_cache_order(triplets: Rows, weights: Floats | None, n: int) -> tuple[Rows, Floats | None]:
    """Triplets of n objects and their weights in the order that docs/kernels.md describes."""
    group: Ints = triplets[:, 0]
    if n > 1 << _CACHE:
        block = _CACHE - 2  # two blocks, of positions and of gradients each
        near, far = (triplets[:, 1:] >> block).T.astype(np.int64)
        blocks, spans = ((n - 1) >> block) + 1, ((n - 1) >> _NEAREST) + 1
        group = (near * blocks + far) * spans + (group >> _NEAREST)
    if (group[1:] >= group[:-1]).all():
        return triplets, weights
    order = np.argsort(group, kind="stable")
    return triplets[order], None if weights is None else weights[order]


# the optimiser


@in_any_order
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@helper
def _add(a: Floats, factor: float, b: Floats) -> None:
    for i in range(len(a)):
        a[i] += factor * b[i]


@kernel
def _inner(a: Floats, b: Floats) -> float:
    return _dot(a, b)


@kernel
def _penalise(x: Floats, gradient: Floats, total: float, ridge: float) -> float:
    """Divide the gradient of a sum by its weight, add that of the ridge; return the ridge's value.

    A product of NumPy's would wake BLAS's threads, which wait longer for each other than they work.
    """
    for i in range(len(x)):
        gradient[i] = gradient[i] / total + ridge * x[i]
    return 0.5 * ridge * _dot(x, x) if ridge else 0.0


@kernel
def _turn(
    x: Floats, old: Floats, tried: Floats, new: Floats, steps: Floats, sizes: Floats, count: int,
    direction: Floats,
) -> tuple[int, float]:  # fmt: skip
    """Remember the step from x to `tried`, with the gradients at both; find where to go from there.

    Fill the direction; return how many steps are remembered, and the slope along the direction. A
    step without curvature says nothing, and the oldest keeps its place.
    """
    moves, turns, s = steps[0], steps[1], count % _STEPS
    curvature = 0.0
    for i in range(len(x)):
        curvature += (tried[i] - x[i]) * (new[i] - old[i])
        direction[i] = -new[i]
    if curvature > 0.0:
        for i in range(len(x)):
            moves[s, i], turns[s, i] = tried[i] - x[i], new[i] - old[i]
        sizes[0, s] = curvature
        count += 1
    n_stored = min(count, _STEPS)
    for back in range(n_stored):
        s = (count - 1 - back) % _STEPS
        sizes[1, s] = _dot(moves[s], direction) / sizes[0, s]
        _add(direction, -sizes[1, s], turns[s])
    if n_stored:
        s = (count - 1) % _STEPS
        _add(direction, sizes[0, s] / _dot(turns[s], turns[s]) - 1.0, direction)
    for back in range(n_stored - 1, -1, -1):
        s = (count - 1 - back) % _STEPS
        _add(direction, sizes[1, s] - _dot(turns[s], direction) / sizes[0, s], moves[s])
    return count, _dot(direction, new)


class StepMemory:
    """The past steps of `nearer.fitting.solver.minimise`, and the direction that they give."""

    def __init__(self, size: int) -> None:
        self._steps, self._sizes = np.empty((2, _STEPS, size)), np.empty((2, _STEPS))
        self.count, self.direction = 0, np.empty(size)
        self.inner, self.penalise = _inner, _penalise

    def turn(self, x: Floats, old: Floats, tried: Floats, new: Floats) -> float:
        """Remember a step and the gradients at both ends; return the slope along the direction."""
        self.count, slope = _turn(
            x, old, tried, new, self._steps, self._sizes, self.count, self.direction
        )
        return slope

    def forget(self, gradient: Floats) -> float:
        """Go down the gradient."""
        self.count = 0
        return self.turn(gradient, gradient, gradient, gradient)


# rankings that answers make: of objects `ranks` (n, k); `short` and `bound` name the ranking in
# which each has the fewest members below it, and how many; only those need be compared with it


@helper
def _count(ranks: Ints, members: Ints, x: int, column: int, bound: int, needed: int) -> int:
    """How many of the first `bound` members, in the order of that column, x is above.

    Gives up with less than `needed` as soon as that many are out of reach.
    """
    k = ranks.shape[1]
    total = 0
    for i in range(bound):
        if total + bound - i < needed:
            break
        y = members[column, i]
        below = True
        for j in range(k):
            if ranks[y, j] >= ranks[x, j]:
                below = False
                break
        if below:
            total += 1
    return total


@kernel
def most_below(
    ranks: Ints, members: Ints, short: Ints, bound: Ints, order: Ints
) -> tuple[int, int]:
    """The first object, in `order` of falling bound, that is above most members; and how many."""
    best, most = order[0], -1
    for x in order:
        if bound[x] <= most:
            break
        count = _count(ranks, members, x, short[x], bound[x], most + 1)
        if count > most:
            best, most = x, count
    return best, most


# --- threads -------------------------------------------------------------------------------------


def parts(work: int) -> int:
    """The number of parts into which so much work is divided."""
    return 1 + work // PART


def side_by_side(work: Callable[[int, slice], object], n_rows: int, n_parts: int) -> None:
    """Call work(part, rows) for each part, on as many cores as ``NUMBA_NUM_THREADS`` allows.

    The caller works, too, and does not wait for a thread that has not begun: waking one takes some
    50 µs, in which a small problem is done.
    """
    ends = [part * n_rows // n_parts for part in range(n_parts + 1)]
    rows = list(map(slice, ends[:-1], ends[1:]))
    left = iter(range(n_parts))  # a free thread takes the next one

    def take() -> None:
        for part in left:
            work(part, rows[part])

    others = [_threads().submit(take) for _ in range(min(n_parts, _CORES) - 1)]
    try:
        take()
    finally:
        for _ in left:  # after an error the rest is not done
            pass
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_CORES, thread_name_prefix="nearer")


if hasattr(os, "register_at_fork"):  # a child has no threads but the one that forked it
    os.register_at_fork(after_in_child=_threads.cache_clear)
