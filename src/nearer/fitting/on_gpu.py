"""Answers laid out for many passes over them, on a GPU.

Positions are float32 there: soe's unit is the margin, and a map of a million objects spans some
thousand of them, so the last digit is a ten-thousandth of the margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.device import gpu_name, gpu_torch
from nearer.fitting.fit import Fit
from nearer.fitting.losses import Floats, Loss

__all__ = ["GpuChoices", "GpuPasses"]

_BLOCK = 1 << 24  # answers looked at together outside the kernels


class GpuPasses:
    """Answers laid out for many passes over them, on a GPU.

    Parameters
    ----------
    rows
        ``(m, 3)`` int32 triplets, an array or a tensor.
    weights
        How much each counts; None: all the same.
    n_objects
        How many objects there are.
    """

    def __init__(self, rows: Any, weights: Any | None, n_objects: int) -> None:
        torch = gpu_torch()
        self.n_objects = n_objects
        self._rows = torch.as_tensor(rows, dtype=torch.int32, device=gpu_name()).contiguous()
        self._weights: Any = None
        self.total = float(len(rows))
        if weights is not None:
            self._weights = torch.as_tensor(weights, dtype=torch.float32, device=gpu_name())
            self.total = float(self._weights.double().sum())

    @classmethod
    def of_tensor(cls, rows: Any, weights: Any | None, n_objects: int | None) -> GpuPasses:
        """Answers that lie on the device already; checked there, not copied."""
        torch = gpu_torch()
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
        torch = gpu_torch()
        rows = torch.empty((n_rows, 3), dtype=torch.int32, device=gpu_name())
        at = 0
        for block in blocks:
            rows[at : at + len(block)] = torch.from_numpy(block)
            at += len(block)
        return cls(rows, None, n)

    def blank(self, n_components: int) -> Any:
        """A tensor for positions, where passes take them from."""
        torch, shape = gpu_torch(), (self.n_objects, n_components)
        return torch.zeros(shape, dtype=torch.float32, device=gpu_name())

    def first(self, n_rows: int) -> GpuPasses:
        """The first answers, where they lie."""
        weights = None if self._weights is None else self._weights[:n_rows]
        return GpuPasses(self._rows[:n_rows], weights, self.n_objects)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> NDArray[np.int32]:
        """The triplets, on the processor."""
        return np.asarray(self._rows.cpu().numpy())

    @property
    def weights(self) -> Floats | None:
        """How much each counts, on the processor; None: all the same."""
        return None if self._weights is None else np.asarray(self._weights.double().cpu().numpy())

    def fit(
        self,
        loss: Loss,
        X: Floats,
        *,
        ridge: float,
        max_iter: int,
        tol: float,
        callback: Callable[[int, float, Any], object] | None,
    ) -> Fit:
        """Minimise a loss from one start."""
        torch = gpu_torch()
        start = torch.as_tensor(X, dtype=torch.float32, device=gpu_name()).contiguous()
        how: Any = {"ridge": ridge, "max_iter": max_iter, "tol": tol, "callback": callback}
        return _minimised(lambda Z: self.sums(loss, Z), self.total, start, **how)

    def mean_loss(self, loss: Loss, X: Floats) -> float:
        """What the positions cost, on average."""
        torch = gpu_torch()
        Z = torch.as_tensor(X, dtype=torch.float32, device=gpu_name())
        return self.sums(loss, Z)[0] / self.total

    def sums(self, loss: Loss, Z: Any) -> tuple[float, Any]:
        """One pass: the sum of the losses, and its gradient."""
        from nearer._kernels.triton_gradients import value_and_gradient  # noqa: PLC0415

        gradient = gpu_torch().zeros_like(Z)
        total = value_and_gradient(loss.kind, loss.number, Z, self._rows, self._weights, gradient)
        return float(total), gradient

    def disobeyed(self, X: Floats) -> NDArray[np.bool_]:
        """Which answers the positions contradict, in the order in which they were given."""
        parts = [(far <= near).cpu().numpy() for near, far in self._distances(X)]
        return np.concatenate([np.empty(0, dtype=np.bool_), *parts])

    def share_disobeyed(self, X: Floats) -> float:
        """How much of the answers the positions contradict."""
        return float(np.average(self.disobeyed(X), weights=self.weights))

    def least_margin(self, X: Floats) -> float:
        """How narrowly the most narrowly obeyed answer is obeyed."""
        return min(float((far - near).min()) for near, far in self._distances(X))

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        from nearer._kernels.torch_margins import information  # noqa: PLC0415

        Z = gpu_torch().as_tensor(X, device=gpu_name())
        return np.asarray(information(Z, self._rows, self._weights, lapse, tail).cpu().numpy())

    def few(self, size: int, rng: np.random.Generator) -> GpuPasses:
        """Some of the answers, drawn at random."""
        torch = gpu_torch()
        source = torch.Generator(device=gpu_name()).manual_seed(int(rng.integers(2**63)))
        at = torch.randint(len(self), (size,), generator=source, device=gpu_name()).sort().values
        weights = None if self._weights is None else self._weights[at]
        return GpuPasses(self._rows[at], weights, self.n_objects)

    def _distances(self, X: Floats) -> Iterator[tuple[Any, Any]]:
        """The two distances of each answer, block by block."""
        torch = gpu_torch()
        Z = torch.as_tensor(X, dtype=torch.float32, device=gpu_name())
        for start in range(0, len(self), _BLOCK):
            h, i, j = self._rows[start : start + _BLOCK].long().T
            yield (Z[h] - Z[i]).norm(dim=1), (Z[h] - Z[j]).norm(dim=1)


class GpuChoices:
    """Choices of any task (`nearer.fitting.choices.Choices`) on a GPU."""

    def __init__(self, choices: Any) -> None:
        gpu_torch()
        from nearer._kernels.torch_choosing import Tables  # noqa: PLC0415

        self._tables = Tables(choices, gpu_name())

    def fit(self, X: Floats, lapse: float, tail: float, **how: Any) -> Fit:
        """The most probable positions under a noise, from one start."""
        torch = gpu_torch()
        start = torch.as_tensor(X, dtype=torch.float64, device=gpu_name()).contiguous()

        def sums(Z: Any) -> tuple[float, Any]:
            return self._tables.value_and_gradient(Z, lapse, tail)

        return _minimised(sums, self._tables.total, start, **how)


def _minimised(
    sums: Callable[[Any], tuple[float, Any]],
    total: float,
    start: Any,
    *,
    ridge: float,
    max_iter: int,
    tol: float,
    callback: Any = None,
) -> Fit:
    """The least mean of what is summed, with a ridge, from one start."""
    from nearer.fitting.lbfgs import minimise  # noqa: PLC0415

    def objective(Z: Any) -> tuple[float, Any]:
        value, gradient = sums(Z)
        value, gradient = value / total, gradient.div_(total)
        if ridge:
            value += 0.5 * ridge * float((Z.double() * Z).sum())
            gradient += ridge * Z
        return value, gradient

    found = minimise(objective, start, max_iter=max_iter, tol=tol, callback=callback)
    Z, value, steps, converged = found
    if ridge:
        value = sums(Z)[0] / total
    return Fit(Z.double().cpu().numpy(), value, steps, converged)
