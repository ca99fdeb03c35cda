"""Where the passes over the answers run, and searches for places: on the processor, or on a GPU.

A door sets the device for everything that is fitted inside it (`using`), or for objects placed
among others (`placing_on`). ``"auto"`` takes a GPU where there is one, the problem is large enough
to gain from it, and it fits into its memory. The GPU needs PyTorch and Triton (the extra
``nearer[gpu]``); neither is imported before it is wanted, Numba not where it is not needed.

Positions are float32 on a GPU: soe's unit is the margin, and a map of a million objects spans some
thousand of them, so the last digit is a ten-thousandth of the margin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks, jobs
from nearer.errors import InvalidInput
from nearer.fitting.fit import Fit
from nearer.fitting.losses import Floats, Loss

__all__ = [
    "Device",
    "GpuChoices",
    "GpuPasses",
    "as_array",
    "explained",
    "gpu_searches",
    "is_tensor",
    "margins",
    "places_on_gpu",
    "placing_on",
    "using",
    "wants_gpu",
]

Device = Literal["auto", "cpu", "cuda"]

_device: ContextVar[str] = ContextVar("device", default="cpu")
_placing: ContextVar[str] = ContextVar("placing", default="cpu")

_WORTH = 200_000  # answers; a pass over fewer takes under 10 ms on one core, and nobody waits
_ON_A_CORE, _ON_A_GPU, _BEGIN = 50e-6, 9e-6, 3.0  # seconds an object placed; to begin with an H200
_VECTORS = 30  # arrays of the size of the positions that L-BFGS holds at most
_BLOCK, _SEARCHING = 1 << 24, 1 << 31  # answers at a time outside kernels; bytes of `torch_shells`


@contextmanager
def using(device: str) -> Iterator[None]:
    """Fit on this device inside the block.

    Examples
    --------
    >>> with using("cpu"):
    ...     wants_gpu(10**9, 10)
    False
    """
    with _set(_device, device), explained("fit fewer answers"):
        yield


def placing_on(device: str, journal: object = None) -> AbstractContextManager[None]:
    """Place objects on this device inside the block; fits stay on the processor.

    With a journal, which may go on elsewhere, ``"auto"`` is the processor: a GPU rounds otherwise.
    """
    return _set(_placing, "cpu" if device == "auto" and journal is not None else device)


@contextmanager
def _set(work: ContextVar[str], device: str) -> Iterator[None]:
    checks.one_of("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda":
        _torch()
    token = work.set(device)
    try:
        yield
    finally:
        work.reset(token)


@contextmanager
def explained(fewer: str) -> Iterator[None]:
    """Memory that runs out inside the block is an error of ours, with what to do about it."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's
            raise
        raise InvalidInput(
            f"the GPU has too little memory after all ({str(error).splitlines()[0]}); use "
            f"device='cpu', or {fewer}"
        ) from error


def wants_gpu(n_answers: int, n_objects: int, n_components: int = 8) -> bool:
    """Whether so large a problem is to be fitted on a GPU."""
    needed = 16 * n_answers + 4 * _VECTORS * n_objects * n_components
    what = f"{n_answers:,} answers about {n_objects:,} objects"
    return _is_chosen(_device, n_answers >= _WORTH, what, needed)


def places_on_gpu(n_objects: int, n_heads: int, n_components: int) -> bool:
    """Whether so many objects are to be placed on a GPU."""
    needed = _SEARCHING + (24 * n_heads + 8 * n_components) * n_objects
    saved = n_objects * (_ON_A_CORE / jobs.cores() - _ON_A_GPU) - _BEGIN
    what = f"{n_objects:,} objects to be placed from {n_heads} heads"
    return _is_chosen(_placing, saved > 0, what, needed)


def gpu_searches(*scene: Floats, **state: Any) -> Any:
    """`nearer._kernels.torch_shells.Searches` on the GPU."""
    from nearer._kernels.torch_shells import Searches  # noqa: PLC0415

    return Searches(*scene, **state, device=_name())


def _is_chosen(work: ContextVar[str], worth: bool, what: str, needed: int) -> bool:
    """Whether a GPU is wanted for some work and has room for it."""
    device = work.get()
    if device == "cpu" or (device == "auto" and not (worth and _at_hand())):
        return False
    free = _free_memory()
    if needed <= free or device == "auto":
        return needed <= free
    fewer = "fit fewer answers" if work is _device else "place fewer objects"
    raise InvalidInput(
        f"device='cuda': {what} need about {needed / 2**30:.1f} GiB and the GPU has "
        f"{free / 2**30:.1f} GiB free; use device='cpu', or {fewer}"
    )


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
        torch = _torch()
        self.n_objects = n_objects
        self._rows = torch.as_tensor(rows, dtype=torch.int32, device=_name()).contiguous()
        self._weights: Any = None
        self.total = float(len(rows))
        if weights is not None:
            self._weights = torch.as_tensor(weights, dtype=torch.float32, device=_name())
            self.total = float(self._weights.double().sum())

    @classmethod
    def of_tensor(cls, rows: Any, weights: Any | None, n_objects: int | None) -> GpuPasses:
        """Answers that lie on the device already; checked there, not copied."""
        torch = _torch()
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
        torch = _torch()
        rows = torch.empty((n_rows, 3), dtype=torch.int32, device=_name())
        at = 0
        for block in blocks:
            rows[at : at + len(block)] = torch.from_numpy(block)
            at += len(block)
        return cls(rows, None, n)

    def blank(self, n_components: int) -> Any:
        """A tensor for positions, where passes take them from."""
        torch, shape = _torch(), (self.n_objects, n_components)
        return torch.zeros(shape, dtype=torch.float32, device=_name())

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
        torch = _torch()
        start = torch.as_tensor(X, dtype=torch.float32, device=_name()).contiguous()
        how: Any = {"ridge": ridge, "max_iter": max_iter, "tol": tol, "callback": callback}
        return _minimised(lambda Z: self.sums(loss, Z), self.total, start, **how)

    def mean_loss(self, loss: Loss, X: Floats) -> float:
        """What the positions cost, on average."""
        torch = _torch()
        Z = torch.as_tensor(X, dtype=torch.float32, device=_name())
        return self.sums(loss, Z)[0] / self.total

    def sums(self, loss: Loss, Z: Any) -> tuple[float, Any]:
        """One pass: the sum of the losses, and its gradient."""
        from nearer._kernels.triton_gradients import value_and_gradient  # noqa: PLC0415

        gradient = _torch().zeros_like(Z)
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

        Z = _torch().as_tensor(X, device=_name())
        return np.asarray(information(Z, self._rows, self._weights, lapse, tail).cpu().numpy())

    def few(self, size: int, rng: np.random.Generator) -> GpuPasses:
        """Some of the answers, drawn at random."""
        torch = _torch()
        source = torch.Generator(device=_name()).manual_seed(int(rng.integers(2**63)))
        at = torch.randint(len(self), (size,), generator=source, device=_name()).sort().values
        weights = None if self._weights is None else self._weights[at]
        return GpuPasses(self._rows[at], weights, self.n_objects)

    def _distances(self, X: Floats) -> Iterator[tuple[Any, Any]]:
        """The two distances of each answer, block by block."""
        torch = _torch()
        Z = torch.as_tensor(X, dtype=torch.float32, device=_name())
        for start in range(0, len(self), _BLOCK):
            h, i, j = self._rows[start : start + _BLOCK].long().T
            yield (Z[h] - Z[i]).norm(dim=1), (Z[h] - Z[j]).norm(dim=1)


class GpuChoices:
    """Choices of any task (`nearer.fitting.choices.Choices`) on a GPU."""

    def __init__(self, choices: Any) -> None:
        _torch()
        from nearer._kernels.torch_choosing import Tables  # noqa: PLC0415

        self._tables = Tables(choices, _name())

    def fit(self, X: Floats, lapse: float, tail: float, **how: Any) -> Fit:
        """The most probable positions under a noise, from one start."""
        torch = _torch()
        start = torch.as_tensor(X, dtype=torch.float64, device=_name()).contiguous()

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


def margins(
    X: Floats, covariances: Floats, questions: NDArray[np.integer], tail: float
) -> tuple[Floats, Floats]:
    """Mean and variance of each question's margin when objects vary independently."""
    if wants_gpu(len(questions), len(X), X.shape[1] ** 2):
        from nearer._kernels.torch_margins import margins as on_gpu  # noqa: PLC0415

        X, C, q = (_torch().as_tensor(part, device=_name()) for part in (X, covariances, questions))
        mean, variance = on_gpu(X, C, q, tail)
        return np.asarray(mean.cpu().numpy()), np.asarray(variance.cpu().numpy())
    from nearer._kernels.margins import margins as on_processor  # noqa: PLC0415

    mean, variance = on_processor(X, covariances, questions, tail)
    return np.asarray(mean), np.asarray(variance)


def as_array(X: Any) -> Floats:
    """Positions on the processor, wherever they are."""
    return np.asarray(X.double().cpu().numpy() if is_tensor(X) else X)


def is_tensor(value: Any) -> bool:
    """Whether something is a PyTorch tensor, without importing PyTorch to find out."""
    return type(value).__module__ == "torch" and type(value).__name__ == "Tensor"


def _interpreted() -> bool:
    """Whether Triton's interpreter stands in for a GPU, as in tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _name() -> str:
    return "cpu" if _interpreted() else "cuda"


def _at_hand() -> bool:
    try:
        _torch()
    except InvalidInput:
        return False
    return True


def _torch() -> Any:
    """PyTorch with a GPU to run on, or what is missing."""
    try:
        import torch  # noqa: PLC0415
        import triton  # noqa: F401, PLC0415
    except (ImportError, OSError) as error:  # OSError: libraries of it are missing
        raise InvalidInput(
            f"device='cuda' needs PyTorch and Triton ({error}); install nearer[gpu], or use "
            "device='cpu'"
        ) from error
    if not _interpreted() and not torch.cuda.is_available():
        raise InvalidInput(
            "device='cuda': PyTorch sees no CUDA device here; use device='auto', which takes one "
            "only where there is one, or device='cpu'"
        )
    return torch


def _free_memory() -> float:
    return np.inf if _interpreted() else float(_torch().cuda.mem_get_info()[0])
