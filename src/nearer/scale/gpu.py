"""Fits on a GPU: answers in its memory, passes over them, and the optimiser.

One Triton kernel computes the six losses of `nearer._kernels.comparisons`, one program for each
block of triplets. Positions are float32: a map of a million objects spans some thousand margins of
soe, so that the last digit is a ten-thousandth of the margin. Choices are tables of trials of one
shape, in float64, as sums over sets of items need it; PyTorch differentiates their likelihood.

The optimiser is the processor's with tensors as vectors. PyTorch's own L-BFGS, in float32, ended in
six of ten fits after two steps that gained nothing.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from nearer.fitting.solver import Fit, Loss, Passes, Sums, as_array, minimise
from nearer.questions import Floats

_DEVICE = "cuda"
_CELLS = 1 << 24  # numbers held at a time outside the Triton kernel
_BLOCK = 256  # triplets a program; 128 to 1,024 take the same time

Tensor = Any


def is_available() -> bool:
    """Whether there is a GPU."""
    return bool(torch.cuda.is_available())


def free_memory() -> float:
    """Bytes of the GPU that a fit may take."""
    reserved = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return float(torch.cuda.mem_get_info()[0] + reserved)


_SOE, _LOGISTIC, _CKL, _GNMDS, _STE = map(tl.constexpr, range(5))  # the last is tste


@triton.jit
def _softplus(t, lapse):
    """-log(lapse + (1 - 2 lapse) / (1 + exp(t))) and its derivative in t."""
    small = tl.exp(-tl.abs(t))
    low = small / (1.0 + small)
    right = tl.where(t > 0.0, low, 1.0 - low)
    wrong = 1.0 - right
    p = lapse + (1.0 - 2.0 * lapse) * right
    plain = tl.maximum(t, 0.0) + tl.log(1.0 + small)
    value = tl.where(lapse == 0.0, plain, -tl.log(p))
    slope = tl.where(lapse == 0.0, wrong, (1.0 - 2.0 * lapse) * right * wrong / p)
    return value, slope


@triton.jit
def _slopes(kind: tl.constexpr, shape, near, far):
    """Loss of each triplet and its slopes in the two squared distances."""
    if kind <= _LOGISTIC:
        a = tl.sqrt(near)
        b = tl.sqrt(far)
        if kind == _SOE:
            slack = tl.maximum(1.0 + a - b, 0.0)
            value = slack * slack
            slope = slack
        else:
            value, slope = _softplus(a - b, shape)
            slope = 0.5 * slope
        pull = tl.where(near > 0.0, slope / tl.where(near > 0.0, a, 1.0), 0.0)
        push = tl.where(far > 0.0, -slope / tl.where(far > 0.0, b, 1.0), 0.0)
    elif kind == _CKL:
        both = near + far + 2.0 * shape
        odds = far + shape
        value = tl.log(both / odds)
        pull = 1.0 / both
        push = 1.0 / both - 1.0 / odds
    elif kind == _GNMDS:
        slack = tl.maximum(1.0 + near - far, 0.0)
        inside = slack < 1.0
        value = tl.where(inside, 0.5 * slack * slack, slack - 0.5)
        pull = tl.where(inside, slack, 1.0)
        push = -pull
    elif kind == _STE:
        value, pull = _softplus(near - far, 0.0)
        push = -pull
    else:
        power = 0.5 * (shape + 1.0)
        value, slope = _softplus(power * tl.log((shape + near) / (shape + far)), 0.0)
        pull = slope * power / (shape + near)
        push = -slope * power / (shape + far)
    return value, pull, push


@triton.jit
def _pass(
    X,
    triplets,
    weights,
    gradient,
    sums,
    m,
    shape,
    kind: tl.constexpr,
    weighted: tl.constexpr,
    d: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
):
    program = tl.program_id(0)
    row = program.to(tl.int64) * block + tl.arange(0, block)
    there = row < m
    h = tl.load(triplets + 3 * row, mask=there, other=0)
    i = tl.load(triplets + 3 * row + 1, mask=there, other=0)
    j = tl.load(triplets + 3 * row + 2, mask=there, other=0)
    k = tl.arange(0, width)[None, :]
    some = there[:, None] & (k < d)
    at_h = h[:, None].to(tl.int64) * d + k
    at_i = i[:, None].to(tl.int64) * d + k
    at_j = j[:, None].to(tl.int64) * d + k
    head = tl.load(X + at_h, mask=some, other=0.0)
    to_near = head - tl.load(X + at_i, mask=some, other=0.0)
    to_far = head - tl.load(X + at_j, mask=some, other=0.0)
    near = tl.sum(to_near * to_near, axis=1)
    far = tl.sum(to_far * to_far, axis=1)
    value, pull, push = _slopes(kind, shape, near, far)
    w = tl.where(there, 1.0, 0.0)
    if weighted:
        w = tl.load(weights + row, mask=there, other=0.0)
    tl.store(sums + program, tl.sum(value * w, axis=0))
    active = some & ((pull != 0.0) | (push != 0.0))[:, None]
    from_near = (2.0 * w * pull)[:, None] * to_near
    from_far = (2.0 * w * push)[:, None] * to_far
    tl.atomic_add(gradient + at_h, from_near + from_far, mask=active, sem="relaxed")
    tl.atomic_add(gradient + at_i, -from_near, mask=active, sem="relaxed")
    tl.atomic_add(gradient + at_j, -from_far, mask=active, sem="relaxed")


class GpuPasses(Passes):
    """Triplets, an array or a tensor, laid out for many passes over them on a GPU."""

    on_gpu = True

    def __init__(self, rows: Any, weights: Any | None, n_objects: int) -> None:
        self.n_objects = n_objects
        self._triplets = torch.as_tensor(rows, dtype=torch.int32, device=_DEVICE).contiguous()
        self._weights: Any = None
        self.total = float(len(rows))
        if weights is not None:
            self._weights = torch.as_tensor(weights, dtype=torch.float32, device=_DEVICE)
            self.total = float(self._weights.double().sum())

    @classmethod
    def of_blocks(cls, blocks: Iterable[NDArray[np.int32]], n_rows: int, n: int) -> GpuPasses:
        """Answers in blocks; only the GPU holds them all."""
        rows = torch.empty((n_rows, 3), dtype=torch.int32, device=_DEVICE)
        at = 0
        for block in blocks:
            rows[at : at + len(block)] = torch.from_numpy(block)
            at += len(block)
        return cls(rows, None, n)

    def __len__(self) -> int:
        return len(self._triplets)

    @property
    def weights(self) -> Floats | None:  # type: ignore[override]
        """The weight of each, on the processor; None: all the same."""
        return None if self._weights is None else np.asarray(self._weights.double().cpu().numpy())

    def fit(self, loss: Loss, X: Floats, **how: Any) -> Fit:
        """Minimise a loss from one start."""
        start = torch.as_tensor(X, dtype=torch.float32, device=_DEVICE).contiguous()
        return _fit(lambda Z: self.sums(loss, Z), self.total, start, **how)

    def sums(self, loss: Loss, X: Any) -> tuple[float, Any]:
        """One pass: the sum of the losses, and its gradient."""
        Z = torch.as_tensor(X, dtype=torch.float32, device=_DEVICE).contiguous()
        gradient = torch.zeros_like(Z)
        m, d = len(self), Z.shape[1]
        programs = triton.cdiv(m, _BLOCK)
        sums = torch.empty(programs, dtype=torch.float32, device=Z.device)
        _pass[(programs,)](
            Z,
            self._triplets,
            sums if self._weights is None else self._weights,
            gradient,
            sums,
            m,
            float(loss.number),
            kind=loss.kind,
            weighted=self._weights is not None,
            d=d,
            width=triton.next_power_of_2(d),
            block=_BLOCK,
        )
        return float(sums.sum(dtype=torch.float64)), gradient

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        Z = torch.as_tensor(X, device=_DEVICE)
        n, d = Z.shape
        blocks = torch.zeros((n, d * d), dtype=Z.dtype, device=_DEVICE)
        for rows, weights in self._parts(_CELLS // (d * d)):
            t, u, w = _directions(Z, rows, tail)
            small = torch.exp(-t.abs())
            slope = (1 - 2 * lapse) * small / (1 + small) ** 2
            right = lapse + (1 - 2 * lapse) / (1 + small)
            wrong = lapse + (1 - 2 * lapse) * small / (1 + small)
            each = weights * torch.where(slope > 0, slope**2 / (right * wrong), 0.0)
            for column, g in zip(rows.long().T, (w - u, u, w), strict=True):
                outer = (each[:, None] * g)[:, :, None] * g[:, None, :]
                blocks.index_add_(0, column, outer.reshape(len(rows), -1))
        return np.asarray(blocks.reshape(n, d, d).cpu().numpy())

    def few(self, size: int, rng: np.random.Generator) -> GpuPasses:
        """Some of the answers, drawn at random."""
        source = torch.Generator(device=_DEVICE).manual_seed(int(rng.integers(2**63)))
        at = torch.randint(len(self), (size,), generator=source, device=_DEVICE)
        return self.part(at.sort().values)

    def part(self, which: Any) -> GpuPasses:
        """Some of the answers; a slice is not copied."""
        weights = None if self._weights is None else self._weights[which]
        return GpuPasses(self._triplets[which], weights, self.n_objects)

    def _parts(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Parts of `size` rows, with their weights."""
        for start in range(0, len(self), max(1, size)):
            rows = slice(start, start + max(1, size))
            yield self._triplets[rows], 1.0 if self._weights is None else self._weights[rows]

    def _gaps(self, X: Floats) -> Floats:
        """How much farther the far object of each answer is than the near one."""
        Z = torch.as_tensor(X, dtype=torch.float32, device=_DEVICE)
        parts = (_directions(Z, rows, 0.0)[0].cpu().numpy() for rows, _ in self._parts(_CELLS))
        return np.concatenate(list(parts))


def _directions(X: Any, rows: Any, tail: float) -> tuple[Any, Any, Any]:
    """Margins, and the gradients of both f(δ) in the head."""
    h, a, b = rows.long().T
    u, w = X[h] - X[a], X[h] - X[b]
    near, far = u.square().sum(1), w.square().sum(1)
    if tail > 0:
        half = 0.5 * (tail + 1)
        counted = half * (torch.log1p(far / tail) - torch.log1p(near / tail))
        by_near, by_far = (tail + 1) / (tail + near), (tail + 1) / (tail + far)
    else:
        counted = far.sqrt() - near.sqrt()
        by_near = torch.where(near > 0, near.rsqrt(), 0.0)
        by_far = torch.where(far > 0, far.rsqrt(), 0.0)
    return counted, by_near[:, None] * u, by_far[:, None] * w


# --- choices -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """Trials of one shape."""

    wanted: int
    is_ranked: bool
    pairs: Tensor  # (trials, items, pairs, 2)
    credit: Tensor  # (trials, items)
    log_ways: Tensor
    weights: Tensor

    def parts(self, d: int) -> Iterator[_Table]:
        """As many trials at a time as memory holds comfortably."""
        size = max(1, _CELLS // (self.pairs[0].numel() // 2 * d))
        tensors = (self.pairs, self.credit, self.log_ways, self.weights)
        for parts in zip(*(tensor.split(size) for tensor in tensors), strict=True):
            yield _Table(self.wanted, self.is_ranked, *parts)


class GpuChoices:
    """Choices of any task (`nearer.fitting.likelihood.Choices`) on a GPU."""

    def __init__(self, choices: Any) -> None:
        items = np.diff(choices.starts)
        sizes = np.diff(choices.spans)[choices.starts[:-1]] if len(choices) else items
        shapes = np.stack([items, sizes, choices.wanted, choices.ranked], axis=1)
        self.total = float(choices.weights.sum())
        self._tables = []
        for shape in np.unique(shapes[choices.weights > 0], axis=0):
            n_items, n_pairs, wanted, is_ranked = shape.tolist()
            at = np.flatnonzero((shapes == shape).all(axis=1) & (choices.weights > 0))
            item = choices.starts[at][:, None] + np.arange(n_items)
            pair = choices.spans[item][:, :, None] + np.arange(n_pairs)
            pairs, credit = choices.pairs[pair].astype(np.int64), choices.credit[item]
            arrays = (pairs, credit, choices.log_ways[at], choices.weights[at])
            tensors = (torch.as_tensor(array, device=_DEVICE) for array in arrays)
            self._tables.append(_Table(wanted, bool(is_ranked), *tensors))

    def fit(self, X: Floats, lapse: float, tail: float, **how: Any) -> Fit:
        """The most probable positions under a noise, from one start."""
        start = torch.as_tensor(X, dtype=torch.float64, device=_DEVICE).contiguous()
        return _fit(lambda Z: self.sums(Z, lapse, tail), self.total, start, **how)

    def sums(self, X: Tensor, lapse: float, tail: float) -> tuple[float, Tensor]:
        """One pass: the weighted sum of −log p over the trials, and its gradient."""
        Z = X.detach().requires_grad_()
        Z.grad, total = torch.zeros_like(X), 0.0
        for table in self._tables:
            for part in table.parts(X.shape[1]):
                value = -(part.weights @ _log_probability(Z, part, lapse, tail))
                value.backward()
                total += float(value.detach())
        return total, Z.grad


def _log_probability(X: Tensor, trials: _Table, lapse: float, tail: float) -> Tensor:
    """Log-probability of each choice, lapses included."""
    a, b = (X.index_select(0, ends.reshape(-1)) for ends in trials.pairs.unbind(-1))
    if tail > 0:
        counted = 0.5 * (tail + 1) * torch.log1p((a - b).square().sum(-1) / tail)
    else:
        counted = torch.linalg.vector_norm(a - b, dim=-1)  # coincident objects have slope 0
    u = -counted.reshape(trials.pairs.shape[:-1]).sum(-1)
    if trials.is_ranked and trials.wanted > 1:
        log_p = sum(u[:, i] - torch.logsumexp(u[:, i:], 1) for i in range(trials.wanted))
    else:
        log_p = (trials.credit * u).sum(1) - _log_sum_over_sets(u, trials.wanted)
    if lapse <= 0:
        return log_p
    return torch.logaddexp(math.log1p(-2 * lapse) + log_p, math.log(2 * lapse) - trials.log_ways)


def _log_sum_over_sets(u: Tensor, k: int) -> Tensor:
    """Log of the elementary symmetric polynomial of degree k in exp(u), built item by item."""
    if k == 1:
        return torch.logsumexp(u, 1)
    none = torch.zeros_like(u[:, :1])
    nothing = 0.5 * torch.finfo(u.dtype).min  # the log of no sum; infinity has no slope
    logs = torch.cat([none, nothing + none.expand(-1, k)], 1)
    for item in u.T[..., None]:
        logs = torch.cat([none, torch.logaddexp(logs[:, 1:], item + logs[:, :-1])], 1)
    return logs[:, k]


class _StepMemory:
    """Past steps of `nearer.fitting.solver.minimise`: as many as on the processor, in tensors."""

    def __init__(self) -> None:
        self._past: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=10)
        self.direction: Tensor = None

    @property
    def count(self) -> int:
        return len(self._past)

    def turn(self, x: Tensor, old: Tensor, tried: Tensor, new: Tensor) -> float:
        moved, turned = tried - x, new - old
        curvature = moved @ turned
        if float(curvature) > 0:  # otherwise the step is not remembered
            self._past.append((moved, turned, curvature))
        q, weights = -new, []
        for moved, turned, curvature in reversed(self._past):
            weights.append(moved @ q / curvature)
            q -= weights[-1] * turned
        if self._past:
            _, turned, curvature = self._past[-1]
            q *= curvature / (turned @ turned)
        for (moved, turned, curvature), weight in zip(self._past, reversed(weights), strict=True):
            q += moved * (weight - turned @ q / curvature)
        self.direction = q
        return float(q @ new)

    def forget(self, gradient: Tensor) -> float:
        self._past.clear()
        self.direction = -gradient
        return -float(gradient @ gradient)

    def inner(self, a: Tensor, b: Tensor) -> float:
        return float(a @ b)

    def penalise(self, x: Tensor, gradient: Tensor, total: float, ridge: float) -> float:
        gradient.div_(total).add_(x, alpha=ridge)
        return 0.5 * ridge * float((x.double() * x).sum()) if ridge else 0.0


def _fit(sums: Sums, total: float, start: Tensor, **how: Any) -> Fit:
    """Minimise the mean loss, with a ridge, from one start."""
    fit = minimise(sums, total, start, memory=_StepMemory(), **how)
    return replace(fit, positions=as_array(fit.positions))
