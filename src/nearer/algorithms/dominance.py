"""Above, lens, hull estimate and axes: computed from the rankings of a set P of heads.

docs/geometry.md defines them. Rankings are a ``(k, n)`` integer array without ties: ``rankings[i,
x]`` objects are nearer to head i than x. The hull estimate is a Pareto front: a sweep for two
rankings, `moocore` for more. Along an *axis*, sorted by increasing distance from one endpoint, the
distance from the other decreases. So every lens is an interval of the axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nearer._kernels.comparisons import most_below
from nearer.errors import InvalidInput
from nearer.questions import Answers, Floats, Objects

Ranking = Objects


def lens(rankings: ArrayLike, apex: int) -> Answers:
    """The apex and the objects it is above: no head is farther from them than from the apex."""
    r = _check(rankings)
    return np.asarray((r <= r[:, apex, None]).all(axis=0))


def hull_estimate(rankings: ArrayLike) -> Answers:
    """The objects that are above no other: those near the convex hull of the heads."""
    r = _check(rankings)
    if len(r) == 1:
        return np.asarray(r[0] == r[0].min())
    if len(r) == 2:
        order = np.argsort(r[0])
        front = np.empty(r.shape[1], dtype=np.bool_)
        second = r[1, order]
        front[order] = second == np.minimum.accumulate(second)
        return front
    import moocore  # noqa: PLC0415 - not on every node that only fits

    return np.asarray(moocore.is_nondominated(r.T.astype(np.float64)), dtype=np.bool_)


def most_above(rankings: ArrayLike, among: Answers) -> tuple[int, int]:
    """The object above most of `among` (of ties, the farthest), and how many it is above."""
    r, members = _check(rankings), np.flatnonzero(among)
    order = np.argsort(r[:, members], axis=1)
    below = np.stack(
        [np.searchsorted(row[members][by_rank], row) for row, by_rank in zip(r, order, strict=True)]
    )
    short = np.argmin(below, axis=0)
    bound = np.take_along_axis(below, short[None], axis=0)[0]
    first = np.lexsort((-r.sum(axis=0), -bound))
    best, most = most_below(np.ascontiguousarray(r.T), members[order], short, bound, first)
    return int(best), int(most)


def _check(rankings: ArrayLike) -> Objects:
    r = np.asarray(rankings)
    if r.ndim != 2 or not r.size or not np.issubdtype(r.dtype, np.integer):
        rule = "must be (n_heads, n_objects) integers"
        raise InvalidInput(f"rankings of shape {r.shape} and type {r.dtype}: {rule}")
    return r.astype(np.int64, copy=False)


def affinely_independent(rankings: ArrayLike) -> bool:
    """Whether some object of the hull estimate is in none of the estimates with one head fewer.

    By Carathéodory's theorem smaller hulls cover the hull of |P| = d̂ + 2 heads that span no more
    than d̂ dimensions; otherwise the inside of a simplex is left over (Algorithm 1, lines 19–20).
    """
    r = np.asarray(rankings)
    inside = hull_estimate(r)
    for left_out in range(len(r)):
        inside &= ~hull_estimate(np.delete(r, left_out, axis=0))
        if not inside.any():
            return False
    return True


@dataclass(frozen=True)
class Axis:
    """Objects near a line across the data, in order from one endpoint to the other."""

    members: Objects

    @property
    def endpoints(self) -> tuple[int, int]:
        """The first and the last member."""
        return int(self.members[0]), int(self.members[-1])

    def __len__(self) -> int:
        return len(self.members)

    def intervals(self, from_first: Ranking, from_last: Ranking) -> tuple[Ranking, Ranking]:
        """For each object, the first and the last place on the axis inside the lens under it."""
        last = np.searchsorted(from_first[self.members], from_first, side="right") - 1
        first = np.searchsorted(-from_last[self.members], -from_last, side="left")
        return first, last

    def coordinates(self, from_first: Ranking, from_last: Ranking) -> Floats:
        """For each object, the median place on the axis of the members in the lens under it."""
        first, last = self.intervals(from_first, from_last)
        return np.asarray((first + last) / 2)


def find_axis(from_first: Ranking, from_last: Ranking) -> Axis:
    """The axis between two endpoints, from their rankings."""
    members = np.flatnonzero(hull_estimate(np.stack([from_first, from_last])))
    return Axis(members[np.argsort(from_first[members])])


def opposite_apex(endpoint: int, from_endpoint: Ranking, earlier: list[Ranking]) -> int:
    """The farthest object from an endpoint inside the lens under it (Algorithm 1, lines 7–8)."""
    inside = lens(np.stack(earlier), endpoint) if earlier else np.ones(len(from_endpoint), bool)
    inside[endpoint] = False
    return int(np.argmax(np.where(inside, from_endpoint, -1)))
