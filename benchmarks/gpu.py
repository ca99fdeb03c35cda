"""On a GPU: fits from 10⁵ objects to 10⁹ answers.

The protocol is that of Vankadara et al. 2019: positions uniform in a cube, 2·n·d·⌊log2 n⌋ triplets,
and one problem of 10⁹ triplets in four dimensions. Soft ordinal embedding, ``tol=1e-4``, gets
triplets in the memory of the device, with the kernels compiled; ``above`` starts in more
dimensions, as `nearer.SOE` does by default. A pass moves at least 12 bytes a triplet: beside it is
the time that the device takes to copy as many bytes. ``door`` is `nearer.fit` from an array on the
processor; ``choice`` a pass over choices of k of m.

Needs a CUDA device and the extra ``nearer[gpu]``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks.harness import Cell, Rows, cell, pick, summary, table
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.fitting.likelihood import Noise, as_answers
from nearer.fitting.solver import LOSSES, Fit, Loss, Passes, fit_positions, random_start

TIMED = True
_HELD_OUT = 1_000_000


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    for seed in range(seeds or (5 if full else 3)):
        for n in (100_000, 1_000_000):
            for init in ("random", "above"):
                yield cell("soe", fitted, n=n, m=_answers(n, 2), d=2, init=init, seed=seed)
        yield cell("soe", fitted, n=1_000_000, m=10**9, d=4, init="random", seed=seed)
    for loss in LOSSES:
        yield cell("pass", passed, n=1_000_000, m=_answers(1_000_000, 2), d=2, loss=loss)
    for n in (100_000, 1_000_000):
        yield cell("door", door, n=n, m=_answers(n, 2), d=2)
    for choose, shown in ((1, 8), (2, 8)):
        yield cell("choice", chosen, n=10_000, m=300_000, shown=shown, choose=choose)


def _answers(n: int, d: int) -> int:
    return 2 * n * d * (n.bit_length() - 1)


def _torch() -> Any:
    import torch

    return torch


def _triplets(X: Any, m: int, seed: int) -> Any:
    """Random triplets, answered by positions, made on the device."""
    torch, n = _torch(), len(X)
    source = torch.Generator(device=X.device).manual_seed(seed)
    out = torch.empty((m, 3), dtype=torch.int32, device=X.device)
    for start in range(0, m, 1 << 25):
        part = out[start : start + (1 << 25)]
        head, a, b = (
            torch.randint(n - k, (len(part),), generator=source, device=X.device) for k in range(3)
        )
        b += b >= a
        a, b = a + (a >= head), b + (b >= head)
        near = (X[head] - X[a]).square().sum(1) < (X[head] - X[b]).square().sum(1)
        part[:, 0] = head
        part[:, 1], part[:, 2] = torch.where(near, a, b), torch.where(near, b, a)
    return out


def _problem(n: int, m: int, d: int, seed: int) -> tuple[Any, Any]:
    torch = _torch()
    torch.manual_seed(seed)
    X = torch.rand(n, d, device="cuda")
    return _triplets(X, m, seed + 1), _triplets(X, _HELD_OUT, seed + 2)


def fitted(n: int, m: int, d: int, init: str, seed: int) -> dict[str, float]:
    torch = _torch()
    small, _ = _problem(1_000, 20_000, d, 0)
    _fit(small, 1_000, d, init)  # compile
    rows, test = _problem(n, m, d, seed)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    fit = _fit(rows, n, d, init)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "steps": fit.n_iter,
        "loss": fit.loss,
        "held_out_error": _passes(test, n).share_violated(fit.positions),
        "gib": torch.cuda.max_memory_allocated() / 2**30,
    }


def _fit(rows: Any, n: int, d: int, init: str) -> Fit:
    rng = np.random.default_rng(0)
    if init == "above":
        return fit_from_more_dimensions(_passes(rows, n), n_components=d, tol=1e-4, rng=rng)
    return fit_positions(_passes(rows, n), start=random_start(n, d, rng), tol=1e-4)


def _passes(rows: Any, n: int) -> Passes:
    from nearer.scale.gpu import GpuPasses

    return GpuPasses(rows, None, n)


def passed(n: int, m: int, d: int, loss: str) -> dict[str, float]:
    """Milliseconds of one pass, and those that the device takes to copy as many bytes."""
    torch = _torch()
    rows, _ = _problem(n, m, d, 0)
    passes = _passes(rows, n)
    Z = torch.rand(n, d, device="cuda")
    copied = torch.empty(12 * m // 8, dtype=torch.int32, device="cuda")

    return {
        "ms": _clocked(lambda: passes.sums(Loss(loss), Z)),
        "limit_ms": _clocked(copied.clone),  # half of the bytes read, half of them written
    }


def _clocked(work: Any) -> float:
    """Milliseconds, the mean of ten."""
    torch = _torch()
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(10):
        work()
    torch.cuda.synchronize()
    return 100 * (time.perf_counter() - start)


def door(n: int, m: int, d: int) -> dict[str, float]:
    """`nearer.fit` of answers that lie on the processor, at a given dimension."""
    rows, test = _problem(n, m, d, 0)
    rows = rows.cpu().numpy()
    start = time.perf_counter()
    embedding = nearer.fit(
        rows, n_components=d, method="soe", bootstrap=0, n_objects=n, device="cuda", random_state=0
    )
    seconds = time.perf_counter() - start
    wrong = _passes(test, n).share_violated(embedding.positions)
    return {"seconds": seconds, "held_out_error": wrong}


def chosen(n: int, m: int, shown: int, choose: int) -> dict[str, float]:
    """Milliseconds of one pass over choices, on the device and on the processor."""
    from nearer.scale.gpu import GpuChoices

    torch = _torch()
    rng = np.random.default_rng(0)
    rows = rng.integers(n - shown, size=(m, 1)) + np.arange(shown + 1)
    rows = rng.permuted(rows, axis=1)
    trials = nearer.Trials.near(rows[:, 0], rows[:, 1:], rows[:, 1 : 1 + choose])
    choices, X = as_answers(trials, n), rng.normal(size=(n, 3))
    tables, Z = GpuChoices(choices), torch.tensor(X, device="cuda")
    here, there = Noise(lapse=0.1), (0.1, 0.0)
    value, gradient = (part / choices.total_weight for part in choices.sums(X, here))
    result, slope = tables.sums(Z, *there)
    start = time.perf_counter()
    choices.sums(X, here)
    processor = 1000 * (time.perf_counter() - start)
    slope = slope.cpu().numpy() / tables.total
    return {
        "ms": _clocked(lambda: tables.sums(Z, *there)),
        "processor_ms": processor,
        "value_error": abs(result / tables.total / value - 1),
        "gradient_error": float(np.abs(slope - gradient).max() / np.abs(gradient).max()),
    }


def _device() -> str:
    try:
        torch = _torch()
    except ImportError:
        return "none, PyTorch is not installed"
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return f"{name}, PyTorch {torch.__version__}"


def page(rows: Rows, folder: Path) -> str:
    text = [f"Device: {_device()}.\n"]
    heads = ["objects", "triplets", "d", "start", "seconds", "steps", "held-out error", "GiB"]
    keys = dict.fromkeys((r["n"], r["m"], r["d"], r["init"]) for r in pick(rows, "soe"))
    lines = []
    for n, m, d, init in keys:
        some = pick(rows, "soe", n=n, m=m, d=d, init=init)
        figures = [summary(some, key, 3) for key in ("seconds", "steps", "held_out_error", "gib")]
        lines.append([f"{n:,}", f"{m:,}", d, init, *figures])
    text.append(table(heads, lines))
    text.append("")
    text.append(
        table(
            ["loss", "ms a pass", "ms to copy as many bytes"],
            ([r["loss"], f"{r['ms']:.2f}", f"{r['limit_ms']:.2f}"] for r in pick(rows, "pass")),
        )
    )
    text += [
        f"\n`nearer.fit` of {r['m']:,} triplets of {r['n']:,} objects, from an array: "
        f"{r['seconds']:.2f} s, held-out error {r['held_out_error']:.4f}."
        for r in pick(rows, "door")
    ]
    text += [
        f"\n{r['m']:,} choices of {r['choose']} of {r['shown']}: {r['ms']:.2f} ms a pass, "
        f"{r['processor_ms']:.0f} ms on the processor; they differ by {r['value_error']:.1e} in "
        f"the value and {r['gradient_error']:.1e} in the gradient."
        for r in pick(rows, "choice")
    ]
    return "\n".join(text)
