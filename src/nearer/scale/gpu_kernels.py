"""The passes over answers on a GPU: losses, margins and choices.

*Losses of triplets* are one Triton kernel with the six functions of `nearer._kernels.gradients`.
One program takes a block of triplets: it loads three positions each, computes loss and slopes, and
adds to the gradient by atomic operations. Nothing is kept from one triplet to the next, so a pass
costs 12 bytes a triplet and what the positions cost in cache. Atomic additions come in any order:
results agree with the processor's up to rounding, not bit by bit.

*Margins* (`nearer._kernels.margins`) and *choices* (`nearer._kernels.choosing`) are tensor
operations. Margins are needed once a fit, not once a step, so a fused kernel would save little.
Trials that show as many items, of as many pairs, and let as many be chosen, are one table; the
loops over items and over those chosen run on the host, and every step of them is one operation on a
whole table. Numbers are float64, as sums over sets of items need them.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

__all__ = ["Tables", "information", "margins", "value_and_gradient"]

_CELLS = 1 << 24  # numbers held at a time outside the Triton kernel
_BLOCK = 256  # triplets a program; 128 to 1,024 measured alike

_SOE = tl.constexpr(0)
_LOGISTIC = tl.constexpr(1)
_CKL = tl.constexpr(2)
_GNMDS = tl.constexpr(3)
_STE = tl.constexpr(4)


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


def value_and_gradient(
    kind: int,
    shape: float,
    X: Any,
    triplets: Any,
    weights: Any | None,
    gradient: Any,
) -> Any:
    """Weighted sum of a loss over triplets; its gradient is added to `gradient`.

    Parameters
    ----------
    kind, shape
        As in the twin.
    X, gradient
        ``(n, d)`` float32 tensors on the device, contiguous.
    triplets
        ``(m, 3)`` int32 tensor on the device, contiguous.
    weights
        ``(m,)`` float32 tensor, or None where all are one.
    """
    m, d = len(triplets), X.shape[1]
    programs = triton.cdiv(m, _BLOCK)
    sums = torch.empty(programs, dtype=torch.float32, device=X.device)
    _pass[(programs,)](
        X,
        triplets,
        sums if weights is None else weights,
        gradient,
        sums,
        m,
        float(shape),
        kind=kind,
        weighted=weights is not None,
        d=d,
        width=triton.next_power_of_2(d),
        block=_BLOCK,
    )
    return sums.sum(dtype=torch.float64)


# margins


def _directions(X: Any, rows: Any, tail: float) -> tuple[Any, Any, Any]:
    """Margins, and the gradients in the head of what its two distances count."""
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


def information(X: Any, triplets: Any, weights: Any | None, lapse: float, tail: float) -> Any:
    """Fisher information of each object's position, one ``(d, d)`` block an object."""
    n, d = X.shape
    blocks = torch.zeros((n, d * d), dtype=X.dtype, device=X.device)
    size = max(1, _CELLS // (d * d))
    for start in range(0, len(triplets), size):
        rows = triplets[start : start + size]
        t, u, w = _directions(X, rows, tail)
        small = torch.exp(-t.abs())
        slope = (1 - 2 * lapse) * small / (1 + small) ** 2
        right = lapse + (1 - 2 * lapse) / (1 + small)
        wrong = lapse + (1 - 2 * lapse) * small / (1 + small)
        told = torch.where(slope > 0, slope**2 / (right * wrong), 0.0)
        if weights is not None:
            told = told * weights[start : start + size]
        for column, g in zip(rows.long().T, (w - u, u, w), strict=True):
            outer = (told[:, None] * g)[:, :, None] * g[:, None, :]
            blocks.index_add_(0, column, outer.reshape(len(rows), -1))
    return blocks.reshape(n, d, d)


def margins(X: Any, covariances: Any, questions: Any, tail: float) -> tuple[Any, Any]:
    """Mean and variance of each question's margin when objects vary independently."""
    d = X.shape[1]
    means, variances = [], []
    size = max(1, _CELLS // (d * d))
    for start in range(0, len(questions), size):
        rows = questions[start : start + size]
        t, u, w = _directions(X, rows, tail)
        total = torch.zeros_like(t)
        for column, g in zip(rows.long().T, (w - u, u, w), strict=True):
            total += torch.einsum("mi,mij,mj->m", g, covariances[column], g)
        means.append(t)
        variances.append(total)
    return torch.cat(means), torch.cat(variances)


# choices

_CERTAIN = 600.0  # beyond it exp overflows; as on the processor


@dataclass(frozen=True)
class _Table:
    """Trials of one shape."""

    pairs: Any  # (trials, items, pairs, 2)
    credit: Any  # (trials, items)
    wanted: int
    ranked: bool
    log_ways: Any
    weights: Any


class Tables:
    """Choices, as `nearer.fitting.choices.Choices` has them, on a device."""

    def __init__(self, choices: Any, device: str) -> None:
        items = np.diff(choices.starts)
        sizes = np.diff(choices.spans)[choices.starts[:-1]] if len(choices) else items
        shapes = np.stack([items, sizes, choices.wanted, choices.ranked], axis=1)
        self._tables = []
        for shape in np.unique(shapes, axis=0):
            m, p, k, ranked = shape.tolist()
            at = np.flatnonzero((shapes == shape).all(axis=1) & (choices.weights > 0))
            item = choices.starts[at][:, None] + np.arange(m)
            pair = choices.spans[item][:, :, None] + np.arange(p)
            parts = (choices.pairs[pair], choices.credit[item])
            more = (choices.log_ways[at], choices.weights[at])
            pairs, credit, ways, weights = (torch.as_tensor(x, device=device) for x in parts + more)
            if len(at):
                self._tables.append(_Table(pairs.long(), credit, k, bool(ranked), ways, weights))
        self.total = float(choices.weights.sum())

    def value_and_gradient(self, X: Any, lapse: float, tail: float) -> tuple[float, Any]:
        """Weighted sum of −log p over the trials, and its gradient in the positions."""
        gradient = torch.zeros_like(X)
        total = torch.zeros((), dtype=X.dtype, device=X.device)
        for table in self._tables:
            each = table.pairs[0].numel() // 2 * X.shape[1]
            size = max(1, _CELLS // each)
            for start in range(0, len(table.weights), size):
                total += _add(X, table, slice(start, start + size), lapse, tail, gradient)
        return float(total), gradient


def _add(X: Any, table: _Table, rows: slice, lapse: float, tail: float, gradient: Any) -> Any:
    """The same for some rows of a table; the gradient is added to `gradient`."""
    a, b = table.pairs[rows].unbind(-1)
    apart = X[a] - X[b]
    squared = apart.square().sum(-1)
    if tail > 0:
        counted = 0.5 * (tail + 1) * torch.log1p(squared / tail)
        factor = (tail + 1) / (tail + squared)
    else:
        counted = squared.sqrt()
        factor = torch.where(squared > 0, squared.rsqrt(), 0.0)
    log_q, slope = _log_choice(-counted.sum(-1), table, rows)
    log_p, looked = _lapsed(log_q, table.log_ways[rows], lapse)
    weights = table.weights[rows]
    pull = (weights * looked)[:, None] * slope
    step = ((pull[:, :, None] * factor)[..., None] * apart).reshape(-1, X.shape[1])
    gradient.index_add_(0, a.reshape(-1), step)
    gradient.index_add_(0, b.reshape(-1), -step)
    return -(weights @ log_p)


def _log_choice(u: Any, table: _Table, rows: slice) -> tuple[Any, Any]:
    """Log-probability of each choice without lapses, and its slopes in the utilities."""
    k, credit = table.wanted, table.credit[rows]
    if table.ranked and k > 1:
        value, slope = torch.zeros_like(u[:, 0]), torch.zeros_like(u)
        for step in range(k):
            value += u[:, step] - torch.logsumexp(u[:, step:], 1)
            slope[:, step] += 1.0
            slope[:, step:] -= torch.softmax(u[:, step:], 1)
        return value, slope
    if k == 1:
        log_sum, share = torch.logsumexp(u, 1), torch.softmax(u, 1)
    else:
        log_sum, share = _inclusion(u, k)
    return (credit * u).sum(1) - log_sum, credit - share


def _inclusion(u: Any, k: int) -> tuple[Any, Any]:
    """Log e_k, and how likely each item is among the k chosen."""
    m = u.shape[1]
    top = u.topk(min(k + 1, m), 1).values
    middle, most = top[:, -2:].mean(1), _CERTAIN / k
    above = u - middle[:, None]
    lost = k * middle + (above - most).clamp(min=0).sum(1)
    w = above.clamp(-most, most).exp()
    before, after = [_first(u, k)], [_first(u, k)]
    for i in range(m):
        before.append(_with(before[-1], w[:, i]))
        after.append(_with(after[-1], w[:, m - 1 - i]))
    whole = before[m][:, k]
    share = torch.empty_like(u)
    for i in range(m):
        others = (before[i][:, :k] * after[m - 1 - i][:, :k].flip(1)).sum(1)
        share[:, i] = w[:, i] * others / whole
    return whole.log() + lost, share


def _first(u: Any, k: int) -> Any:
    """The elementary symmetric polynomials of nothing."""
    none = torch.zeros((len(u), k + 1), dtype=u.dtype, device=u.device)
    none[:, 0] = 1.0
    return none


def _with(polynomials: Any, w: Any) -> Any:
    """… and of one item more."""
    more = polynomials.clone()
    more[:, 1:] += w[:, None] * polynomials[:, :-1]
    return more


def _lapsed(log_q: Any, log_ways: Any, lapse: float) -> tuple[Any, Any]:
    """Log-probability with lapses, and how likely it is that the answer is none."""
    if lapse <= 0:
        return log_q, torch.ones_like(log_q)
    looked = math.log1p(-2 * lapse) + log_q
    value = torch.logaddexp(looked, math.log(2 * lapse) - log_ways)
    return value, (looked - value).exp()
