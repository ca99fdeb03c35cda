"""Axes: objects near the line between two endpoints, and coordinates along it.

An axis is the hull estimate of its two endpoints. Non-dominated pairs of ranks form a staircase:
sorted by rising distance from one endpoint, the distance from the other falls. That is the
*order-consistent* property of the paper, and it makes every lens an interval: of an axis in order,
the members no farther from the first endpoint than x are a beginning, those no farther from the
last endpoint are an end, and the lens under x is where the two overlap. Its ends are found by two
binary searches, its median is their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.dominance import hull_estimate, lens

__all__ = ["Axis", "find_axis", "opposite_apex"]

Ranking = NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """Objects near a line across the data, in order from one endpoint to the other.

    Attributes
    ----------
    members
        The objects on the axis; the endpoints are the first and the last.
    """

    members: NDArray[np.int64]

    @property
    def endpoints(self) -> tuple[int, int]:
        """The first and the last member."""
        return int(self.members[0]), int(self.members[-1])

    def __len__(self) -> int:
        return len(self.members)

    def intervals(self, from_first: Ranking, from_last: Ranking) -> tuple[Ranking, Ranking]:
        """For each object, the first and the last place on the axis inside the lens under it.

        Parameters
        ----------
        from_first, from_last
            The rankings from the two endpoints.
        """
        last = np.searchsorted(from_first[self.members], from_first, side="right") - 1
        first = np.searchsorted(-from_last[self.members], -from_last, side="left")
        return first, last

    def coordinates(self, from_first: Ranking, from_last: Ranking) -> NDArray[np.float64]:
        """For each object, the median place on the axis of the members in the lens under it."""
        first, last = self.intervals(from_first, from_last)
        return np.asarray((first + last) / 2)


def find_axis(from_first: Ranking, from_last: Ranking) -> Axis:
    """The axis between two endpoints, from their rankings.

    Examples
    --------
    >>> import numpy as np
    >>> find_axis(np.array([0, 1, 2, 3, 4]), np.array([4, 2, 1, 0, 3])).members
    array([0, 1, 2, 3])
    """
    members = np.flatnonzero(hull_estimate(np.stack([from_first, from_last])))
    return Axis(members[np.argsort(from_first[members])])


def opposite_apex(endpoint: int, from_endpoint: Ranking, earlier: list[Ranking]) -> int:
    """The farthest object from an endpoint inside the lens under it (Algorithm 1, lines 7–8).

    `earlier` holds the rankings of the endpoints before it; with none the lens is everything.

    Examples
    --------
    >>> import numpy as np
    >>> opposite_apex(0, np.array([0, 2, 1]), [])
    1
    """
    inside = lens(np.stack(earlier), endpoint) if earlier else np.ones(len(from_endpoint), bool)
    inside[endpoint] = False
    return int(np.argmax(np.where(inside, from_endpoint, -1)))
