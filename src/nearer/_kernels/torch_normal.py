"""Normal distributions in a few dimensions, one for each object, on a GPU.

The twin of `nearer._kernels.normal`; matrices are ``(d, d, …)``, vectors ``(d, …)``, objects last.
"""

from __future__ import annotations

import math
from typing import Any

import torch

__all__ = ["along", "below", "inside", "invert"]


def below(x: Any) -> Any:
    """The standard normal distribution function."""
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def along(covariance: Any, directions: Any) -> Any:
    """Variances of positions along directions."""
    d, total = len(directions), torch.zeros_like(directions[0])
    for i in range(d):
        for j in range(i + 1):
            twice = 1.0 if i == j else 2.0
            total += directions[i] * directions[j] * (twice * covariance[i, j])
    return total.clamp(min=1e-300)


def invert(A: Any) -> None:
    """Replace positive definite matrices by their inverses (Gauss–Jordan, no pivoting needed)."""
    d = len(A)
    for i in range(d):
        pivot = 1.0 / A[i, i]
        A[i, i] = 1.0
        A[i] *= pivot
        for r in range(d):
            if r != i:
                factor = A[r, i].clone()
                A[r, i] = 0.0
                A[r] -= factor * A[i]


def inside(mean: Any, variance: Any, low: Any, width: Any) -> tuple[Any, Any]:
    """Means and variances of normal variables known to lie between low and low + width."""
    s = variance.sqrt()
    a, b = (low - mean) / s, (low + width - mean) / s
    upper = a > 0.0
    mass = torch.where(upper, below(-a) - below(-b), below(b) - below(a))
    p, q = (math.sqrt(0.5 / math.pi) * (-0.5 * edge.square()).exp() for edge in (a, b))
    shift = (p - q) / mass
    spread = 1.0 + (a * p - b * q) / mass - shift.square()
    least = 1e-9 * torch.minimum(variance, width.square())
    m, v = mean + s * shift, torch.maximum(variance * spread, least)
    # hardly possible: an edge, or nothing but the interval
    rare = (mass < 1e-9) | (b - a < 1e-6)
    tail = torch.where(upper, s / a, torch.where(b < 0.0, -s / b, width))
    tail = torch.minimum(width, tail)
    edge = torch.where((b < 0.0) & ~upper, low + width - 0.5 * tail, low + 0.5 * tail)
    return torch.where(rare, edge, m), torch.where(rare, tail.square() / 12.0, v)
