"""Where the passes over the answers run: on the processor, or on a GPU.

`using` sets the device for everything that is fitted inside it. ``"auto"`` takes a GPU if there is
one, the problem is large enough to gain from it, and it fits into its memory. The GPU needs PyTorch
and Triton (the extra ``nearer[gpu]``); `nearer.scale.gpu`, which imports them, is imported when a
GPU is wanted, and Numba only when the processor is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats

__all__ = ["Device", "as_array", "gpu", "is_tensor", "margins", "using", "wants_gpu"]

Device = Literal["auto", "cpu", "cuda"]

_device: ContextVar[str] = ContextVar("device", default="cpu")

_VECTORS = 30  # arrays of the size of the positions that L-BFGS holds at most
_WORTH = 200_000  # answers; a pass over fewer takes less than 10 ms on one core


@contextmanager
def using(device: str) -> Iterator[None]:
    """Fit on this device inside the block.

    Examples
    --------
    >>> with using("cpu"):
    ...     wants_gpu(10**9, 10)
    False
    """
    checks.one_of("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda":
        gpu()
    token = _device.set(device)
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's
            raise
        raise InvalidInput(
            f"the GPU has too little memory after all ({str(error).splitlines()[0]}); use "
            "device='cpu', or fit fewer answers"
        ) from error
    finally:
        _device.reset(token)


def gpu() -> Any:
    """The module `nearer.scale.gpu`, or an error that says what is missing."""
    try:
        from nearer.scale import gpu as room  # noqa: PLC0415 - imports PyTorch
    except (ImportError, OSError) as error:  # OSError: libraries of PyTorch are missing
        raise InvalidInput(
            f"device='cuda' needs PyTorch and Triton ({error}); install nearer[gpu], or use "
            "device='cpu'"
        ) from error
    if not room.is_available():
        raise InvalidInput(
            "device='cuda': PyTorch sees no CUDA device here; use device='auto', which takes one "
            "only where there is one, or device='cpu'"
        )
    return room


def wants_gpu(n_answers: int, n_objects: int, n_components: int = 8) -> bool:
    """Whether so large a problem is to be fitted on a GPU."""
    device = _device.get()
    if device == "cpu" or (device == "auto" and n_answers < _WORTH):
        return False
    needed = 16 * n_answers + 4 * _VECTORS * n_objects * n_components
    try:
        free = gpu().free_memory()
    except InvalidInput:
        if device == "auto":
            return False
        raise
    if needed <= free or device == "auto":
        return bool(needed <= free)
    raise InvalidInput(
        f"device='cuda': {n_answers:,} answers about {n_objects:,} objects need about "
        f"{needed / 2**30:.1f} GiB and the GPU has {free / 2**30:.1f} GiB free; use device='cpu', "
        "or fit fewer answers"
    )


def margins(
    X: Floats, covariances: Floats, questions: NDArray[np.integer], tail: float
) -> tuple[Floats, Floats]:
    """Mean and variance of each question's margin when objects vary independently."""
    if wants_gpu(len(questions), len(X), X.shape[1] ** 2):
        mean, variance = gpu().margins(X, covariances, questions, tail)
    else:
        from nearer._kernels.comparisons import margins as on_processor  # noqa: PLC0415 - needs Numba

        mean, variance = on_processor(X, covariances, questions, tail)
    return np.asarray(mean), np.asarray(variance)


def as_array(X: Any) -> Floats:
    """Positions on the processor, wherever they are."""
    return np.asarray(X.double().cpu().numpy() if is_tensor(X) else X)


def is_tensor(value: Any) -> bool:
    """Whether something is a PyTorch tensor, without importing PyTorch to find out."""
    return type(value).__module__ == "torch" and type(value).__name__ == "Tensor"
