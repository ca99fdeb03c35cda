"""L-BFGS on PyTorch tensors, wherever they are.

SciPy's optimiser, which `nearer.fitting.solver` uses on the processor, would move the positions
between the processor and the device in every step; PyTorch's own evaluates the objective once more
at every call and stops by absolute changes. This one keeps everything on the device, reads two
numbers a step back, and stops by the rule of SciPy's: a step that gains less than `tol` times the
larger of 1 and the objective.

The direction is the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4). The step length
obeys the weak Wolfe conditions, by doubling and bisection (Lewis and Overton 2013).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["minimise"]

_MEMORY = 10  # past steps, as on the processor
_DECREASE, _CURVATURE = 1e-4, 0.9  # the usual constants of the Wolfe conditions
_MOST_TRIALS = 20  # step lengths tried in one direction

Tensor = Any
Objective = Callable[[Tensor], tuple[float, Tensor]]


def minimise(
    objective: Objective,
    X: Tensor,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[int, float, Tensor], object] | None = None,
) -> tuple[Tensor, float, int, bool]:
    """Minimise a function of a tensor from one start.

    Parameters
    ----------
    objective
        From positions to its value and a new tensor with its gradient.
    X
        Where to begin.
    max_iter, tol
        The most steps, and the gain that ends them.
    callback
        Called with the step's number, the objective and the positions after every step;
        ``StopIteration`` from it ends them, as in SciPy.

    Returns
    -------
    X, value, n_iter, converged
        The best positions, the objective there, and how it ended.
    """
    value, gradient = objective(X)
    past: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_MEMORY)
    for step in range(1, max_iter + 1):
        direction = _direction(gradient, past)
        slope = float((direction * gradient).sum())
        if slope >= 0:  # rounding has spoilt the memory
            past.clear()
            direction, slope = -gradient, -float((gradient * gradient).sum())
        if slope == 0:
            return X, value, step - 1, True
        first = 1.0 if past else 1.0 / (-slope) ** 0.5
        length, new_value, new_gradient = _search(objective, X, value, slope, direction, first)
        if length == 0.0:
            if not past:
                return X, value, step - 1, True
            past.clear()
            continue
        moved, turned = length * direction, new_gradient - gradient
        X = X + moved
        curvature = (moved * turned).sum()
        if float(curvature) > 0:
            past.append((moved, turned, curvature))
        gain, value, gradient = value - new_value, new_value, new_gradient
        if callback is not None:
            try:
                callback(step, value, X)
            except StopIteration:
                return X, value, step, True
        if value == 0 or gain <= tol * max(abs(value), abs(value + gain), 1.0):
            return X, value, step, True
    return X, value, max_iter, False


def _direction(gradient: Tensor, past: deque[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Minus the gradient, bent by what the past steps tell of the curvature."""
    q = gradient.clone()
    weights = []
    for moved, turned, curvature in reversed(past):
        weight = (moved * q).sum() / curvature
        weights.append(weight)
        q -= weight * turned
    if past:
        _, turned, curvature = past[-1]
        q *= curvature / (turned * turned).sum()
    for (moved, turned, curvature), weight in zip(past, reversed(weights), strict=True):
        q += moved * (weight - (turned * q).sum() / curvature)
    return -q


def _search(
    objective: Objective, X: Tensor, value: float, slope: float, direction: Tensor, first: float
) -> tuple[float, float, Tensor]:
    """A step length that gains enough and goes far enough; 0: there is none."""
    low, high, length = 0.0, float("inf"), first
    best = (0.0, value, None)
    for _ in range(_MOST_TRIALS):
        new_value, new_gradient = objective(X + length * direction)
        if not new_value <= value + _DECREASE * length * slope:  # also where it is not a number
            high = length
        else:
            best = (length, new_value, new_gradient)
            if float((new_gradient * direction).sum()) >= _CURVATURE * slope:
                break
            low = length
        length = 2 * low if high == float("inf") else 0.5 * (low + high)
    return best
