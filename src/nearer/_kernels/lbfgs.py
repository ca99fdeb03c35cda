"""Vectors of L-BFGS on the processor.

The direction is the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel

__all__ = ["StepMemory"]

Floats = NDArray[np.float64]

_STEPS = 10  # that are remembered, SciPy's default


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
    kept = min(count, _STEPS)
    for back in range(kept):
        s = (count - 1 - back) % _STEPS
        sizes[1, s] = _dot(moves[s], direction) / sizes[0, s]
        _add(direction, -sizes[1, s], turns[s])
    if kept:
        s = (count - 1) % _STEPS
        _add(direction, sizes[0, s] / _dot(turns[s], turns[s]) - 1.0, direction)
    for back in range(kept - 1, -1, -1):
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
