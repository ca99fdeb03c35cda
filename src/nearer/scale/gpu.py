"""Fits on a GPU: answers laid out there, and the optimiser.

Positions of triplets are float32: soe's unit is the margin, and a map of a million objects spans
some thousand of them, so the last digit is a ten-thousandth of the margin.

*The optimiser* is L-BFGS on tensors. SciPy's would move the positions between the processor and
the device in every step; PyTorch's own evaluates the objective once more at every call and stops by
absolute changes. This one reads two numbers a step back, and stops by the rule of SciPy's: a step
that gains less than `tol` times the larger of 1 and the objective. The direction is the two-loop
recursion (Nocedal and Wright 2006, algorithm 7.4); the step length satisfies the weak Wolfe
conditions, by doubling and bisection (Lewis and Overton 2013).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.fit import Fit
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.solver import Passes
from nearer.scale import gpu_kernels as kernels

__all__ = [
    "DEVICE",
    "GpuChoices",
    "GpuPasses",
    "free_memory",
    "is_available",
    "margins",
]

_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # Triton's interpreter, as in tests
#: What PyTorch calls the device.
DEVICE = "cpu" if _INTERPRETED else "cuda"

_BLOCK = 1 << 24  # answers looked at together outside the kernels
_MEMORY = 10  # past steps of L-BFGS, as on the processor
_DECREASE, _CURVATURE = 1e-4, 0.9  # the usual constants of the Wolfe conditions
_MOST_TRIALS = 20  # step lengths tried in one direction

Tensor = Any
Objective = Callable[[Tensor], tuple[float, Tensor]]


def is_available() -> bool:
    """Whether there is a GPU, or the interpreter in its place."""
    return _INTERPRETED or torch.cuda.is_available()


def free_memory() -> float:
    """Bytes of the GPU that a fit may take."""
    if _INTERPRETED:
        return np.inf
    reserved = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return float(torch.cuda.mem_get_info()[0] + reserved)


def margins(X: Floats, covariances: Floats, questions: Any, tail: float) -> tuple[Floats, Floats]:
    """Mean and variance of each question's margin when objects vary independently."""
    Z, C, rows = (torch.as_tensor(part, device=DEVICE) for part in (X, covariances, questions))
    mean, variance = kernels.margins(Z, C, rows, tail)
    return mean.cpu().numpy(), variance.cpu().numpy()


class GpuPasses(Passes):
    """Triplets laid out for many passes over them, on a GPU.

    Parameters
    ----------
    rows
        ``(m, 3)`` int32 triplets, an array or a tensor.
    weights
        The weight of each; None: all the same.
    n_objects
        The number of objects.
    """

    on_gpu = True

    def __init__(self, rows: Any, weights: Any | None, n_objects: int) -> None:
        self.n_objects = n_objects
        self._triplets = torch.as_tensor(rows, dtype=torch.int32, device=DEVICE).contiguous()
        self._weights: Any = None
        self.total = float(len(rows))
        if weights is not None:
            self._weights = torch.as_tensor(weights, dtype=torch.float32, device=DEVICE)
            self.total = float(self._weights.double().sum())

    @classmethod
    def of_tensor(cls, rows: Any, weights: Any | None, n_objects: int | None) -> GpuPasses:
        """Answers that lie on the device already; checked there, not copied."""
        if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows) or rows.is_floating_point():
            raise InvalidInput(
                f"triplets of shape {tuple(rows.shape)} and type {rows.dtype}: must be an (m, 3) "
                "tensor of whole numbers (head, near, far), at least one"
            )
        low, high = int(rows.min()), int(rows.max())
        n = high + 1 if n_objects is None else checks.whole("n_objects", n_objects)
        if low < 0 or high >= n:
            raise InvalidInput(
                f"triplets hold object {low if low < 0 else high}: objects must be from 0 to "
                f"{n - 1} (n_objects={n}); raise n_objects or mend the rows"
            )
        for start in range(0, len(rows), _BLOCK):
            h, i, j = rows[start : start + _BLOCK].T
            same = (h == i) | (h == j) | (i == j)
            if bool(same.any()):
                row = start + int(torch.nonzero(same)[0])
                raise InvalidInput(
                    f"triplet {row} is {rows[row].tolist()}: its three objects must differ; drop "
                    "such rows"
                )
        return cls(rows, weights, n)

    @classmethod
    def of_blocks(cls, blocks: Iterable[NDArray[np.int32]], n_rows: int, n: int) -> GpuPasses:
        """Answers that come block by block; only the device holds them all."""
        rows = torch.empty((n_rows, 3), dtype=torch.int32, device=DEVICE)
        at = 0
        for block in blocks:
            rows[at : at + len(block)] = torch.from_numpy(block)
            at += len(block)
        return cls(rows, None, n)

    def first(self, n_rows: int) -> GpuPasses:
        """The first answers, where they lie."""
        weights = None if self._weights is None else self._weights[:n_rows]
        return GpuPasses(self._triplets[:n_rows], weights, self.n_objects)

    def __len__(self) -> int:
        return len(self._triplets)

    @property
    def rows(self) -> NDArray[np.int32]:  # type: ignore[override]
        """The triplets, on the processor."""
        return np.asarray(self._triplets.cpu().numpy())

    @property
    def weights(self) -> Floats | None:  # type: ignore[override]
        """The weight of each, on the processor; None: all the same."""
        return None if self._weights is None else np.asarray(self._weights.double().cpu().numpy())

    def fit(self, loss: Loss, X: Floats, **how: Any) -> Fit:
        """Minimise a loss from one start."""
        start = torch.as_tensor(X, dtype=torch.float32, device=DEVICE).contiguous()
        return _fit(lambda Z: self.sums(loss, Z), self.total, start, **how)

    def descend(self, *_: Any, **__: Any) -> None:
        """There is no compiled loop for few answers."""

    def sums(self, loss: Loss, X: Any) -> tuple[float, Any]:
        """One pass: the sum of the losses, and its gradient."""
        Z = torch.as_tensor(X, dtype=torch.float32, device=DEVICE)
        gradient = torch.zeros_like(Z)
        total = kernels.value_and_gradient(
            loss.kind, loss.number, Z, self._triplets, self._weights, gradient
        )
        return float(total), gradient

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        Z = torch.as_tensor(X, device=DEVICE)
        found = kernels.information(Z, self._triplets, self._weights, lapse, tail)
        return np.asarray(found.cpu().numpy())

    def few(self, size: int, rng: np.random.Generator) -> GpuPasses:
        """Some of the answers, drawn at random."""
        source = torch.Generator(device=DEVICE).manual_seed(int(rng.integers(2**63)))
        at = torch.randint(len(self), (size,), generator=source, device=DEVICE).sort().values
        weights = None if self._weights is None else self._weights[at]
        return GpuPasses(self._triplets[at], weights, self.n_objects)

    def _gaps(self, X: Floats) -> Floats:
        """How much farther the far object of each answer is than the near one."""
        Z = torch.as_tensor(X, dtype=torch.float32, device=DEVICE)
        gaps = np.empty(len(self), dtype=np.float32)
        for start in range(0, len(self), _BLOCK):
            h, i, j = self._triplets[start : start + _BLOCK].long().T
            gap = (Z[h] - Z[j]).norm(dim=1) - (Z[h] - Z[i]).norm(dim=1)
            gaps[start : start + len(gap)] = gap.cpu().numpy()
        return gaps  # type: ignore[return-value]


class GpuChoices:
    """Choices of any task (`nearer.fitting.choices.Choices`) on a GPU."""

    def __init__(self, choices: Any) -> None:
        self._tables = kernels.Tables(choices, DEVICE)

    def fit(self, X: Floats, lapse: float, tail: float, **how: Any) -> Fit:
        """The most probable positions under a noise, from one start."""
        start = torch.as_tensor(X, dtype=torch.float64, device=DEVICE).contiguous()

        def sums(Z: Any) -> tuple[float, Any]:
            return self._tables.value_and_gradient(Z, lapse, tail)

        return _fit(sums, self._tables.total, start, **how)


def _fit(
    sums: Objective,
    total: float,
    start: Tensor,
    *,
    ridge: float,
    max_iter: int,
    tol: float,
    callback: Any = None,
) -> Fit:
    """Minimise the mean of what is summed, with a ridge, from one start."""

    def objective(Z: Tensor) -> tuple[float, Tensor]:
        value, gradient = sums(Z)
        value, gradient = value / total, gradient.div_(total)
        if ridge:
            value += 0.5 * ridge * float((Z.double() * Z).sum())
            gradient += ridge * Z
        return value, gradient

    Z, value, steps, converged = _minimise(
        objective, start, max_iter=max_iter, tol=tol, callback=callback
    )
    if ridge:
        value = sums(Z)[0] / total
    return Fit(Z.double().cpu().numpy(), value, steps, converged)


def _minimise(
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
