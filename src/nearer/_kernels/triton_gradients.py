"""Value and gradient of a triplet loss in one pass over the triplets, on a GPU.

The twin of `nearer._kernels.gradients`, with the same six functions. One program takes a block of
triplets: it loads three positions each, computes loss and slopes, and adds to the gradient by
atomic operations. Nothing is kept from one triplet to the next, so a pass costs 12 bytes a triplet
and what the positions cost in cache. Sums of losses are kept block by block and added in float64.

Atomic additions come in any order: results agree with the processor's up to rounding, not bit by
bit.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["value_and_gradient"]

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
