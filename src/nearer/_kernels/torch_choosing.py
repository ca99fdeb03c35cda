"""A choice among alternatives: its likelihood and the gradient of that, on a GPU.

The twin of `nearer._kernels.choosing`, in tensor operations and with the same formulas. Trials that
show as many items, of as many pairs, and let as many be chosen, are one table; the loops over items
and over those chosen run on the host, and every step of them is one operation on a whole table.
Numbers are float64, as sums over sets of items need them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

__all__ = ["Tables"]

_CELLS = 1 << 24  # coordinates held at a time
_CERTAIN = 600.0  # as in the twin


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
