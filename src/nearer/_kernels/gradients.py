"""Value and gradient of a triplet loss in one pass over the triplets, and many passes as one fit.

Every loss of `nearer.fitting.losses` is a function of two squared distances, head to near and
head to far. `_slopes` knows the six functions; a pass knows how a slope in a squared distance
moves three positions: d‖h − a‖²/dh = 2(h − a).

A pass over many triplets is cut into chunks with a gradient each, summed at the end, so threads
never write to the same place. How many chunks there are depends on the problem alone: a fit gives
the same bits on any number of cores. Nothing of size n × n is built.

`descend` is L-BFGS around a pass. Between two passes over a thousand triplets SciPy's optimiser
takes longer than a pass does, and beliefs make thousands. The direction is the two-loop
recursion (Nocedal and Wright 2006, algorithm 7.4), the step length obeys the weak Wolfe conditions,
by doubling and bisection (Lewis and Overton 2013): what `nearer.fitting.lbfgs` does on a GPU.
"""

# ruff: noqa: PLR0911 - a kernel is one loop with all it needs handed in

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel, side_by_side

__all__ = [
    "CKL",
    "GNMDS",
    "LOGISTIC",
    "SOE",
    "STE",
    "TSTE",
    "are_few",
    "descend",
    "value_and_gradient",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

SOE, LOGISTIC, CKL, GNMDS, STE, TSTE = range(6)

# Triplets that make another thread worth waking, of losses with roots alone and of those with
# logarithms: at half as many, two threads took as long as one.
_CHUNK, _SLOW_CHUNK = 1 << 15, 1 << 14
_MOST_CHUNKS = 16
_FEW = 1 << 16  # a fit of fewer than twice as many is made by `descend`, in one thread
_NUMBERS = 1 << 16  # that make another thread worth waking to sum them
# units of margin; exp(-40) is below the last digit of 1: an answer so obeyed pulls nothing
_SURE = 40.0
_MEMORY = 10  # past steps that bend a direction, as in SciPy's
_DECREASE, _CURVATURE = 1e-4, 0.9  # the usual constants of the Wolfe conditions
_MOST_TRIALS = 20  # step lengths tried in one direction
_AT_ONCE = 1 << 23  # triplets and coordinates between two looks for an interruption: half a second


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


@helper
def _pass(
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


@kernel
def _add_rows(
    kind: int, shape: float, X: Floats, triplets: Ints, weights: Floats, gradient: Floats
) -> float:
    """The same, called from Python."""
    return _pass(kind, shape, X, triplets, weights, gradient)


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
        ``(m, 3)`` integers and ``(m,)`` float64, None where all are one; fastest in the
        order of `nearer._kernels.grouping`.
    """
    triplets = np.ascontiguousarray(triplets, dtype=np.int32)
    m, n = len(triplets), len(X)
    chunks = _chunks(kind, m, n)
    parts, values, one = np.empty((chunks, *X.shape)), np.empty(chunks), np.ones(1)

    def add(c: int, rows: slice) -> None:
        own = one if weights is None else weights[rows]
        parts[c] = 0.0
        values[c] = _add_rows(kind, shape, X, triplets[rows], own, parts[c])

    side_by_side(add, m, chunks)
    if chunks == 1:
        return float(values.sum()), parts[0]
    gradient = np.empty(X.shape)

    def sum_up(_: int, objects: slice) -> None:
        parts[:, objects].sum(axis=0, out=gradient[objects])

    side_by_side(sum_up, n, min(chunks, 1 + X.size // _NUMBERS))
    return float(values.sum()), gradient


def are_few(n_triplets: int, n_objects: int) -> bool:
    """Whether `descend` is the fastest: what is between passes counts more than a thread."""
    return n_triplets < 2 * max(_FEW, n_objects)


def _chunks(kind: int, m: int, n: int) -> int:
    """A power of two, which two, four or eight threads share evenly."""
    pays = m // max(_CHUNK if kind in (SOE, GNMDS) else _SLOW_CHUNK, n)
    return min(_MOST_CHUNKS, 1 << max(0, pays.bit_length() - 1))


@helper
def _dot(a: Floats, b: Floats) -> float:
    """Four sums side by side: an addition need not wait for the one before."""
    s = t = u = v = 0.0
    n = len(a)
    for i in range(0, n - 3, 4):
        s += a[i] * b[i]
        t += a[i + 1] * b[i + 1]
        u += a[i + 2] * b[i + 2]
        v += a[i + 3] * b[i + 3]
    for i in range(n - n % 4, n):
        s += a[i] * b[i]
    return (s + t) + (u + v)


@helper
def _add(a: Floats, factor: float, b: Floats, out: Floats) -> None:
    """Put a + factor · b into `out`."""
    for i in range(len(a)):
        out[i] = a[i] + factor * b[i]


@helper
def _objective(
    kind: int,
    shape: float,
    x: Floats,
    n: int,
    triplets: Ints,
    weights: Floats,
    whole: float,
    ridge: float,
    gradient: Floats,
) -> tuple[float, float]:
    """Mean loss and the objective; its gradient goes to `gradient`."""
    for i in range(len(x)):
        gradient[i] = whole * ridge * x[i]
    rows = (n, len(x) // n)
    loss = _pass(kind, shape, x.reshape(rows), triplets, weights, gradient.reshape(rows)) / whole
    for i in range(len(x)):
        gradient[i] /= whole
    return loss, loss + 0.5 * ridge * _dot(x, x)


@helper
def _bend(moved: Floats, turned: Floats, sizes: Floats, last: int, q: Floats) -> None:
    """Turn a gradient into minus a direction by the `last` steps, the oldest overwritten first."""
    kept = min(last, _MEMORY)
    for back in range(kept):
        s = (last - 1 - back) % _MEMORY
        sizes[1, s] = _dot(moved[s], q) / sizes[0, s]
        _add(q, -sizes[1, s], turned[s], q)
    if kept:
        s = (last - 1) % _MEMORY
        _add(q, sizes[0, s] / _dot(turned[s], turned[s]) - 1.0, q, q)
    for back in range(kept - 1, -1, -1):
        s = (last - 1 - back) % _MEMORY
        _add(q, sizes[1, s] - _dot(turned[s], q) / sizes[0, s], moved[s], q)


@helper
def _search(
    kind: int,
    shape: float,
    n: int,
    triplets: Ints,
    weights: Floats,
    whole: float,
    ridge: float,
    x: Floats,
    value: float,
    slope: float,
    q: Floats,
    length: float,
    tried: Floats,
    new: Floats,
) -> tuple[float, float]:
    """Mean loss and objective after a step along −q; it leads to `tried`, with gradient `new`."""
    low, high = 0.0, math.inf
    new_loss = new_value = math.inf
    for _ in range(_MOST_TRIALS):
        _add(x, -length, q, tried)
        new_loss, new_value = _objective(
            kind, shape, tried, n, triplets, weights, whole, ridge, new
        )
        if not new_value <= value + _DECREASE * length * slope:
            high = length
        elif -_dot(q, new) >= _CURVATURE * slope:
            break
        else:
            low = length
        length = 2.0 * low if high == math.inf else 0.5 * (low + high)
    return new_loss, new_value


def descend(
    kind: int,
    shape: float,
    start: Floats,
    triplets: Ints,
    weights: Floats,
    ridge: float,
    max_iter: int,
    tol: float,
) -> tuple[Floats, float, int, bool]:
    """Minimise the weighted mean loss plus ridge · ‖X‖²/2: positions, loss, steps, converged.

    It ends when a step gains less than `tol` times the larger of 1 and the objective. Many objects
    take long, so an interruption passes every few steps.
    """
    n, size = len(start), start.size
    x, gradient = start.ravel().copy(), np.empty(size)
    past, sizes = np.empty((2, _MEMORY, size)), np.empty((2, _MEMORY))
    at_once = max(1, _AT_ONCE // (len(triplets) + size))
    loss, value, last, step, ended = math.inf, math.inf, 0, 0, False
    while True:
        x, gradient, loss, value, last, step, ended = _some_steps(
            kind, shape, n, triplets, weights, ridge, tol, x, gradient, past, sizes,
            loss, value, last, step + 1, min(step + at_once, max_iter),
        )  # fmt: skip
        if ended or step >= max_iter:
            return x.reshape(start.shape), loss, step, ended


@kernel
def _some_steps(
    kind: int,
    shape: float,
    n: int,
    triplets: Ints,
    weights: Floats,
    ridge: float,
    tol: float,
    x: Floats,
    gradient: Floats,
    past: Floats,
    sizes: Floats,
    loss: float,
    value: float,
    last: int,
    first_step: int,
    last_step: int,
) -> tuple[Floats, Floats, float, float, int, int, bool]:
    """From where the steps before these have led: where, and the number of the last one."""
    moved, turned = past[0], past[1]
    tried, q, new, whole = np.empty_like(x), np.empty_like(x), np.empty_like(x), 0.0
    for t in range(len(weights)):
        whole += weights[t]
    if first_step == 1:
        loss, value = _objective(kind, shape, x, n, triplets, weights, whole, ridge, gradient)
    for step in range(first_step, last_step + 1):
        _add(gradient, 0.0, gradient, q)
        _bend(moved, turned, sizes, last, q)
        slope = -_dot(q, gradient)
        if not slope < 0.0:  # rounding has spoilt the memory
            last, slope = 0, -_dot(gradient, gradient)
            _add(gradient, 0.0, gradient, q)
        if slope == 0.0:
            return x, gradient, loss, value, last, step - 1, True
        first = 1.0 if last else 1.0 / math.sqrt(-slope)
        new_loss, new_value = _search(
            kind, shape, n, triplets, weights, whole, ridge, x, value, slope, q, first, tried, new
        )
        if not new_value < value:  # no step is better
            if last == 0:
                return x, gradient, loss, value, last, step - 1, True
            last = 0
            continue
        _add(tried, -1.0, x, x)  # nobody asks again where this step began
        _add(new, -1.0, gradient, gradient)
        curvature = _dot(x, gradient)
        if curvature > 0.0:  # else the oldest step keeps its place
            s = last % _MEMORY
            moved[s], turned[s], sizes[0, s] = x, gradient, curvature
            last += 1
        gain = value - new_value
        x, tried, gradient, new = tried, x, new, gradient
        loss, value = new_loss, new_value
        if gain <= tol * max(abs(value), abs(value + gain), 1.0):
            return x, gradient, loss, value, last, step, True
    return x, gradient, loss, value, last, last_step, False
