"""Where the passes over the answers run, and searches for places: on the processor, or on a GPU.

A door sets the device for everything that is fitted inside it (`using`), or for objects placed
among others (`placing_on`). ``"auto"`` takes a GPU where there is one, the problem is large enough
to gain from it, and it fits into its memory. The GPU needs PyTorch and Triton (the extra
``nearer[gpu]``); neither is imported before it is wanted, Numba not where it is not needed. What
answers become there is in `on_gpu`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks, jobs
from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats

__all__ = [
    "Device",
    "as_array",
    "explained",
    "gpu_name",
    "gpu_searches",
    "gpu_torch",
    "insists_on_gpu",
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
# Seconds an object placed, of 10⁵ and 10⁶ in three dimensions: one core beside an H200, the H200;
# and before it has begun. `python -m benchmarks gpu --cells embed` shows what comes of it.
_ON_A_CORE, _ON_A_GPU, _BEGIN = 39e-6, 6e-6, 2.7
_VECTORS = 30  # arrays of the size of the positions that L-BFGS holds at most
_SEARCHING = 1 << 31  # bytes that a block of `torch_shells` takes


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
        gpu_torch()
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


def insists_on_gpu() -> bool:
    """Whether objects are to be placed on a GPU or not at all."""
    return _placing.get() == "cuda"


def gpu_searches(*scene: Floats, **state: Any) -> Any:
    """`nearer._kernels.torch_shells.Searches` on the GPU."""
    from nearer._kernels.torch_shells import Searches  # noqa: PLC0415

    return Searches(*scene, **state, device=gpu_name())


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


def margins(
    X: Floats, covariances: Floats, questions: NDArray[np.integer], tail: float
) -> tuple[Floats, Floats]:
    """Mean and variance of each question's margin when objects vary independently."""
    if wants_gpu(len(questions), len(X), X.shape[1] ** 2):
        from nearer._kernels.torch_margins import margins as on_gpu  # noqa: PLC0415

        X, C, q = (
            gpu_torch().as_tensor(part, device=gpu_name()) for part in (X, covariances, questions)
        )
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


def gpu_name() -> str:
    """What PyTorch calls the device."""
    return "cpu" if _interpreted() else "cuda"


def _at_hand() -> bool:
    try:
        gpu_torch()
    except InvalidInput:
        return False
    return True


def gpu_torch() -> Any:
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
    if _interpreted():
        return np.inf
    cuda = gpu_torch().cuda
    kept = cuda.memory_reserved() - cuda.memory_allocated()  # PyTorch's own, for what comes next
    return float(cuda.mem_get_info()[0] + kept)
