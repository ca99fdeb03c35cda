"""Where objects are between the members of chains, and what to ask next, on a GPU.

The twin of `nearer._kernels.shells`, in tensor operations and with the same formulas: what that one
does for one object and one head after the other, each operation here does for all heads of a block
of objects. In a sweep all sites see the same mean and covariance, so their order is no matter.
Those few that look elsewhere, or are doubted, are taken out of the block and put back.

Arrays have heads first and objects last, ``(k, b)`` or ``(d, k, b)``: objects are side by side in
memory, as a GPU reads them. Numbers are float64. Each object is reckoned by itself: with which
others it shares a block changes no more than rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nearer._kernels.torch_normal import along, below, inside, invert

__all__ = ["Searches"]

# as in the twin
_DAMPING, _TOLERATED, _ANEW, _BEYOND = 0.7, 0.01, 8, 1.25
_CELLS = 1 << 25  # numbers in the largest array at a time, 256 MiB; all take some eight times that


@dataclass
class _Belief:
    """What is believed about a block of objects, and the shells that they are in."""

    mean: Any  # (d, b)
    covariance: Any  # (d, d, b), which follows from all else
    precision: Any  # (k, b) of the sites
    target: Any  # (k, b) their means
    low: Any  # (k, b) least distances
    high: Any  # (k, b) greatest ones

    def part(self, at: Any) -> _Belief:
        """Some of the objects."""
        arrays = (self.mean, self.covariance, self.precision, self.target, self.low, self.high)
        return _Belief(*(array.index_select(-1, at) for array in arrays))

    def put(self, at: Any, part: _Belief) -> None:
        """Put them back."""
        self.mean[:, at], self.covariance[:, :, at] = part.mean, part.covariance
        self.precision[:, at], self.target[:, at] = part.precision, part.target

    def widths(self) -> Any:
        """Widths of the shells, above 0."""
        return torch.maximum(self.high - self.low, 1e-9 * self.high + 1e-300)


@dataclass
class _Best:
    """The two questions that tell most about each object: ``(2, b)``."""

    head: Any  # −1: none
    member: Any
    information: Any


class Searches:
    """Objects on their way to their places in the heads' chains, all that is known on a device.

    Parameters
    ----------
    heads, chain
        ``(k, d)`` positions, ``(k, m)`` distances of the chains' members, which never fall.
    centre, sure
        ``(d,)`` mean and ``(d, d)`` precision of the prior.
    anchors, mirrors
        ``(a, d)`` places to begin anew from; the heads' principal axes, and their mean.
    start
        ``(d,)`` where all searches begin.
    first, last
        ``(q, k)`` the part of each chain where each object belongs.
    device
        Where all of this goes.
    """

    def __init__(
        self,
        heads: Any,
        chain: Any,
        centre: Any,
        sure: Any,
        anchors: Any,
        mirrors: Any,
        *,
        start: Any,
        first: Any,
        last: Any,
        device: str,
    ) -> None:
        self._device = device
        self.k, self.d = heads.shape
        self.heads, self.chain = self._there(heads.T)[:, :, None], self._there(chain)
        self.centre, self.sure = self._there(centre)[:, None], self._there(sure)
        self.anchors, self.mirrors = self._there(anchors), self._there(mirrors)
        self.apart = (self.anchors.T[:, None, :] - self.heads).square().sum(0).sqrt() + 1e-12
        q = len(first)
        self.mean = self._there(start)[:, None].repeat(1, q)
        self.precision = torch.zeros((self.k, q), dtype=torch.float64, device=device)
        self.target = torch.zeros_like(self.precision)
        self.first, self.last = self._there(first.T), self._there(last.T)

    @property
    def positions(self) -> Any:
        """``(q, d)`` where the objects are, as far as is known; on the processor."""
        return _array(self.mean)

    @property
    def beliefs(self) -> tuple[Any, Any, Any]:
        """``(q, d)`` positions, ``(q, k)`` precisions and means of the sites; on the processor."""
        return _array(self.mean), _array(self.precision), _array(self.target)

    def learn(self, rows: Any, head: Any, member: Any, nearer: Any) -> None:
        """Cut the chains where the answers say."""
        at, h, c = (self._there(part) for part in (rows, head, member))
        yes, c = self._there(nearer), c.to(torch.int32)
        self.last[h[yes], at[yes]] = c[yes]
        self.first[h[~yes], at[~yes]] = c[~yes] + 1

    def copy(self, source: Any, rows: Any) -> None:
        """Believe of some objects what is believed of others."""
        source, rows = self._there(source), self._there(rows)
        for beliefs in (self.mean, self.precision, self.target):
            beliefs[:, rows] = beliefs[:, source]

    def next_questions(
        self, rows: Any, sweeps: int, anew: bool, enough: float
    ) -> tuple[Any, Any, Any]:
        """Bring beliefs up to date; the next two questions of each: head, member, information."""
        if not len(rows):  # a budget may end between two rounds
            return np.empty((0, 2), np.int64), np.empty((0, 2), np.int64), np.empty((0, 2))
        at, found = self._there(rows), []
        size = max(1, _CELLS // max(self.k * self.d, len(self.anchors)))
        for begin in range(0, len(at), size):
            best = self._block(at[begin : begin + size], sweeps, anew, enough)
            found.append((best.head, best.member, best.information))
        head, member, information = (
            np.ascontiguousarray(torch.cat(parts, 1).T.cpu().numpy())
            for parts in zip(*found, strict=True)
        )
        return head, member, information

    def _there(self, array: Any) -> Any:
        return torch.tensor(np.ascontiguousarray(array), device=self._device)  # always a copy

    def _block(self, rows: Any, sweeps: int, anew: bool, enough: float) -> _Best:
        first, last = self.first[:, rows].long(), self.last[:, rows].long()
        before, after = self.chain.gather(1, (first - 1).clamp(min=0)), self._member(last)
        beyond = _BEYOND * self.chain[:, -1:]
        belief = _Belief(
            self.mean[:, rows],
            torch.empty(0),
            self.precision[:, rows],
            self.target[:, rows],
            torch.where(first > 0, before, 0.0),
            torch.where(last < self.chain.shape[1], after, beyond),
        )
        tolerated = _TOLERATED * (belief.high - belief.low).amin(0).square()
        outside = self._settle(belief, sweeps)
        best = self._best_questions(belief, first, last)
        lost = ~(outside <= tolerated) & (anew | (best.information[0] <= enough))
        if len(at := lost.nonzero()[:, 0]):
            part = belief.part(at)
            self._look_elsewhere(part, _ANEW * sweeps, outside[at], tolerated[at])
            belief.put(at, part)
            again = self._best_questions(part, first[:, at], last[:, at])
            best.head[:, at], best.member[:, at] = again.head, again.member
            best.information[:, at] = again.information
        if len(at := (best.information[0] <= enough).nonzero()[:, 0]):
            head, member = self._doubt(belief.part(at), first[:, at], last[:, at], outside[at])
            at, head, member = at[head >= 0], head[head >= 0], member[head >= 0]
            best.head[0, at], best.member[0, at], best.information[0, at] = head, member, 1.0
        self.mean[:, rows] = belief.mean
        self.precision[:, rows], self.target[:, rows] = belief.precision, belief.target
        return best

    def _member(self, place: Any) -> Any:
        """Distances of members of the chains."""
        return self.chain.gather(1, place.clamp(0, self.chain.shape[1] - 1))

    def _distances(self, x: Any) -> Any:
        """``(k, b)`` distances of objects from the heads, above 0."""
        return (x[:, None, :] - self.heads).square().sum(0).sqrt() + 1e-12

    def _away(self, x: Any) -> tuple[Any, Any]:
        """Distances of objects from the heads; unit vectors from these to them, ``(d, k, b)``."""
        r = self._distances(x)
        return r, (x[:, None, :] - self.heads) / r

    def _violation(self, x: Any, belief: _Belief) -> Any:
        """How far outside the shells objects would be at x: sums of squared distances."""
        return _outside(self._distances(x), belief.low, belief.high).square().sum(0)

    def _settle(self, belief: _Belief, sweeps: int) -> Any:
        """Sweep over the sites; how far outside the shells the positions come to lie."""
        for sweep in range(sweeps + 1):
            if sweep:
                self._sweep(belief)
            self._solve(belief)
        return self._violation(belief.mean, belief)

    def _solve(self, belief: _Belief) -> None:
        """One Gauss–Newton step to the positions that the prior and the sites agree on."""
        r, directions = self._away(belief.mean)
        error, d = belief.target - r, self.d
        step = self.sure @ (self.centre - belief.mean)
        A = self.sure[:, :, None].repeat(1, 1, step.shape[1])
        for i in range(d):
            weight = belief.precision * directions[i]
            step[i] += (weight * error).sum(0)
            for j in range(i + 1):
                told = (weight * directions[j]).sum(0)
                A[i, j] += told
                if i != j:
                    A[j, i] += told
        invert(A)
        belief.covariance = A
        belief.mean = belief.mean + (A * step).sum(1)

    def _sweep(self, belief: _Belief) -> None:
        """Replace every site by the one its interval asks for, the others being as they are."""
        precision, target, low = belief.precision, belief.target, belief.low
        r, directions = self._away(belief.mean)
        variance = along(belief.covariance, directions)
        width = belief.widths()
        flat = 12.0 / width.square()  # the precision of a uniform distribution
        others = 1.0 / variance - precision
        expected = (r / variance - precision * target) / others
        m, v = inside(expected, 1.0 / others, low, width)
        new = 1.0 / v - others
        at = torch.where(new > 4.0 * flat, m, (m / v - expected * others) / new)
        new = torch.where(new < 1e-6 * others, 0.0, torch.minimum(new, 4.0 * flat))
        known = others > 1e-3 / variance  # else there is nothing but the interval
        new, at = torch.where(known, new, flat), torch.where(known, at, low + 0.5 * width)
        blend = (1.0 - _DAMPING) * precision + _DAMPING * new
        told = (1.0 - _DAMPING) * precision * target
        told += torch.where(new > 0.0, _DAMPING * new * at, 0.0)
        belief.target = torch.where(blend > 0.0, told / blend, target)
        belief.precision = blend

    def _reflect(self, x: Any, belief: _Belief) -> Any:
        """Reflect x in the hyperplanes through the d heads of thinnest shells."""
        few = min(self.d, self.k)
        order = (belief.high - belief.low).argsort(dim=0, stable=True)[:few]
        heads = self.heads[:, :, 0][:, order]  # (d, few, b)
        left = x - heads[:, 0]  # what is left of this is normal to the hyperplane's axes
        axes: list[Any] = []
        for i in range(1, few):
            axis = heads[:, i] - heads[:, 0]
            for other in axes:
                axis = axis - (axis * other).sum(0) * other
            axis = axis / (axis.square().sum(0).sqrt() + 1e-12)
            axes.append(axis)
            left = left - (left * axis).sum(0) * axis
        return x - 2.0 * left

    def _at_anchor(self, belief: _Belief) -> Any:
        """The anchors that fit the shells best, moved a little since they may be heads."""
        total = torch.zeros_like(self.apart[0, :, None] * belief.low[0])
        for h in range(self.k):
            total += _outside(self.apart[h, :, None], belief.low[h], belief.high[h]).square()
        place = self.anchors[_first_of(total == total.amin(0))].T
        return place + 1e-6 * (self.centre - place)

    def _look_elsewhere(self, belief: _Belief, sweeps: int, outside: Any, tolerated: Any) -> None:
        """The shells may meet on the other side of the heads: settle there where that is better."""
        left, outside = torch.arange(len(outside), device=self._device), outside.clone()
        for beginning in range(-2, self.d):
            here = belief.part(left)
            if beginning == -2:
                mean = self._at_anchor(here)
            elif beginning == -1:
                mean = self._reflect(here.mean, here)
            else:
                axis, middle = self.mirrors[beginning][:, None], self.mirrors[-1][:, None]
                mean = here.mean - 2.0 * ((here.mean - middle) * axis).sum(0) * axis
            width = here.widths()
            sites = (12.0 / width.square(), here.low + 0.5 * width)
            there = _Belief(mean, here.covariance, *sites, here.low, here.high)
            again = self._settle(there, sweeps)
            better = (again < outside[left]).nonzero()[:, 0]
            belief.put(left[better], there.part(better))
            outside[left[better]] = again[better]
            left = left[~(outside[left] <= tolerated[left])]
            if not len(left):
                return

    def _best_questions(self, belief: _Belief, first: Any, last: Any) -> _Best:
        """The two questions that tell most, the better first, from different heads."""
        r, directions = self._away(belief.mean)
        s = along(belief.covariance, directions).sqrt()
        outside = below((belief.low - r) / s)
        mass = (below((belief.high - r) / s) - outside).clamp(min=1e-12)
        middle = self._place(r, first, last)
        uneven, at = torch.full_like(r, math.inf), first
        for candidate in (middle - 1, middle):
            c = torch.minimum(torch.maximum(candidate, first), last - 1)
            off = ((below((self._member(c) - r) / s) - outside) / mass - 0.5).abs()
            closer = off < uneven
            uneven, at = torch.where(closer, off, uneven), torch.where(closer, c, at)
        most = _entropy(0.5 + uneven)
        score = most + 0.1 * s.log2()
        score = torch.where((first < last) & (score > -1e300), score, -math.inf)
        found = []
        for _ in range(2):
            top = score.amax(0)
            h = _first_of(score == top)[None]
            none = top == -math.inf
            found.append(
                (
                    torch.where(none, -1, h[0]),
                    torch.where(none, 0, at.gather(0, h)[0]),
                    torch.where(none, 0.0, most.gather(0, h)[0]),
                )
            )
            score = score.scatter(0, h, -math.inf)
        return _Best(*(torch.stack(two) for two in zip(*found, strict=True)))

    def _place(self, r: Any, first: Any, last: Any) -> Any:
        """How many members of each chain are nearer than r, known to be from first to last."""
        place = torch.searchsorted(self.chain, r.contiguous())
        return torch.minimum(torch.maximum(place, first), last)

    def _doubt(self, belief: _Belief, first: Any, last: Any, outside: Any) -> tuple[Any, Any]:
        """Questions whose answer could show that a place is wrong: head, −1: none; member."""
        m, a = self.chain.shape[1], self._distances(belief.mean)
        beyond = (first < last) & (last == m) & (a > self.chain[:, -1:])
        other = self._reflect(belief.mean, belief)
        b = self._distances(other)
        at = self._place(0.5 * (a + b), first, last)
        near, far = torch.minimum(a, b), torch.maximum(a, b)
        before, after = (
            (first <= c) & (c < last) & (near < self._member(c)) & (self._member(c) < far)
            for c in (at - 1, at)
        )
        possible = self._violation(other, belief) <= outside
        wide = torch.where((before | after) & possible, far - near, 0.0)
        widest = wide.amax(0)
        h = _first_of(wide == widest)[None]
        member = torch.where(before.gather(0, h), at.gather(0, h) - 1, at.gather(0, h))[0]
        head = torch.where(widest > 0.0, h[0], -1)
        ends = beyond.any(0)  # believed to be beyond all of a chain
        return torch.where(ends, _first_of(beyond), head), torch.where(ends, m - 1, member)


def _array(tensor: Any) -> Any:
    """Objects first, on the processor."""
    return np.array(tensor.cpu().numpy().T, order="C")


def _first_of(which: Any) -> Any:
    """The first row that is True in each column; the last one where none is."""
    n = len(which)
    numbers = torch.arange(n, device=which.device)[:, None]
    return torch.where(which, numbers, n - 1).amin(0)


def _outside(r: Any, low: Any, high: Any) -> Any:
    return torch.maximum(low - r, r - high).clamp(min=0.0)


def _entropy(p: Any) -> Any:
    inside = (p > 0.0) & (p < 1.0)
    p = torch.where(inside, p, 0.5)
    return torch.where(inside, -(p * p.log2() + (1.0 - p) * (1.0 - p).log2()), 0.0)
