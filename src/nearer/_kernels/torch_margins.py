"""How much answers tell about each object, and how sure a prediction is, on a GPU.

The twin of `nearer._kernels.margins`, in tensor operations: both are needed once a fit, not once
a step, so a fused kernel would save little.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["information", "margins"]

_CELLS = 1 << 24  # numbers held at a time


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
