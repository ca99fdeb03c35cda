"""ChooseBasis, Algorithm 1 of "Revealing the Basis": axes, and so a dimension, from rankings.

docs/geometry.md describes the algorithm. The alternative of Section 2.1,
``endpoints="farthest-rank"``, takes as endpoints the objects farthest in rank from all endpoints so
far (after Gonzalez 1985). If the pseudo-code and the prose differ (the set in line 12), the prose
is followed: it reproduces the paper's Table 1, the pseudo-code does not.

Coordinates (Section 2.3) are the median of the lens, which needs no questions, or the result of
`locate_objects`, which asks. Theorem 3 bounds the error of its linear search; on a real axis the
result of the binary one is a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nearer import checks
from nearer.algorithms import dominance
from nearer.algorithms.dominance import Axis, Ranking, affinely_independent, opposite_apex
from nearer.asking import sort
from nearer.asking.protocol import Record, Strategy, recorded, repeatable, together
from nearer.asking.sort import Order, repeated
from nearer.errors import BudgetSpent
from nearer.questions import Floats, Objects

Endpoints = Literal["above", "farthest-rank"]


@dataclass(frozen=True)
class Basis:
    """Axes across the data, the rankings behind them, and their cost.

    Attributes
    ----------
    axes
        One `Axis` a dimension: its endpoints, and its members in order.
    rankings
        Head → ranking; the last head may be a candidate that was not accepted.
    triplets, n_comparisons, n_rounds
        Every answer, as rows ``(head, near, far)``, and the costs.
    stopped
        Why no further axis was added.
    """

    axes: tuple[Axis, ...]
    rankings: dict[int, Ranking]
    triplets: Objects
    n_comparisons: int
    n_rounds: int
    stopped: str
    n_objects: int

    @property
    def dimension(self) -> int:
        """The estimated dimension: the number of axes."""
        return len(self.axes)

    def coordinates(self) -> Floats:
        """``(n, dimension)``: each object's place on each axis, the median of the lens under it."""
        columns = [
            axis.coordinates(*(self.rankings[p] for p in axis.endpoints)) for axis in self.axes
        ]
        return np.stack(columns, axis=1) if columns else np.empty((self.n_objects, 0))

    def __repr__(self) -> str:
        shown = ("dimension", "n_objects", "n_comparisons", "n_rounds", "stopped")
        return f"Basis({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


@repeatable
def choose_basis(
    n_objects: int,
    *,
    random_state: int | np.random.Generator | None = None,
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    noise: float = 0.0,
    rank_start: bool = False,
) -> Strategy[Basis]:
    """Find axes across the data by ranking all objects from a few well-chosen heads.

    Parameters
    ----------
    n_objects
        How many objects there are, at least 3.
    random_state
        Seed or generator: the object to start from, and the order of insertion of the sorts.
    endpoints
        ``"above"``, the paper's way; ``"farthest-rank"``, its alternative of Section 2.1.
    order, noise
        How to sort, and the probability that an answer is wrong, as in `rank_objects`.
    rank_start
        Rank all objects from the random first one, too, although a search for the farthest would
        do. The axes are the same, but a fit gets a head amid the others. The paper's numbers of
        comparisons are those of 2·d̂ + 2 sorts, so they include this one.

    Returns
    -------
    strategy
        Its result is a `Basis`. Out of budget, the basis holds the axes completed so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).random((300, 2)))
    >>> nearer.run(choose_basis(300, random_state=0), oracle).dimension
    2
    """
    n_objects = checks.n_objects(n_objects)
    checks.one_of("endpoints", endpoints, get_args(Endpoints))
    checks.flag("rank_start", rank_start)
    sort.check_order(order, noise)
    rng, record = checks.generator(random_state), Record()
    axes, rankings = list[Axis](), dict[int, Ranking]()

    def rank(head: int) -> Strategy[Ranking]:
        if head not in rankings:
            rankings[head] = yield from sort.rank_objects(
                head, n_objects, order=order, noise=noise, random_state=rng
            )
        return rankings[head]

    def farthest(head: int) -> Strategy[int]:
        if rank_start:
            return int(np.argmax((yield from rank(head))))
        # Any far object will do, so a majority that is usually right is enough.
        return (yield from repeated(sort.farthest_object(head, n_objects), noise, failure=0.05))

    start = farthest(int(rng.integers(n_objects)))
    search = _add_axes(start, endpoints, rank, axes, rankings)
    try:
        stopped = yield from recorded(search, record)
    except BudgetSpent:
        stopped = "the budget is spent"
    return Basis(
        axes=tuple(axes),
        rankings=rankings,
        triplets=record.triplets,
        n_comparisons=record.n_comparisons,
        n_rounds=record.n_rounds,
        stopped=stopped,
        n_objects=n_objects,
    )


def _add_axes(
    start: Strategy[int],
    endpoints: Endpoints,
    rank: Callable[[int], Strategy[Ranking]],
    axes: list[Axis],
    rankings: dict[int, Ranking],
) -> Strategy[str]:
    """Fill `axes` and `rankings` until there is a reason to stop; return it."""
    candidate = yield from start
    yield from rank(candidate)
    used: list[int] = []  # all endpoints so far, two an axis
    corners: list[int] = []  # those in the affine test
    while True:
        if endpoints == "above":
            last = opposite_apex(candidate, rankings[candidate], [rankings[p] for p in used])
        else:
            last = _farthest_in_rank([rankings[p] for p in [*used, candidate]])
        axes.append(dominance.find_axis(rankings[candidate], (yield from rank(last))))
        corners += [candidate] if used else [candidate, last]
        used += [candidate, last]

        known = np.stack([rankings[p] for p in used])
        if endpoints == "above":
            candidate, count = dominance.most_above(known, dominance.hull_estimate(known))
            if not count:
                return "no object is above another"
        else:
            candidate = _farthest_in_rank(list(known))
            if candidate in used:
                return "every object is an endpoint"
        yield from rank(candidate)
        if not affinely_independent(np.stack([rankings[p] for p in [*corners, candidate]])):
            return "the next endpoint is not affinely independent"


def _farthest_in_rank(rankings: list[Ranking]) -> int:
    """The object whose smallest rank is greatest."""
    return int(np.argmax(np.min(rankings, axis=0)))


@repeatable
def locate_objects(
    basis: Basis, *, search: Literal["linear", "binary"] = "linear"
) -> Strategy[Floats]:
    """Find each object's place on each axis by comparing axis members from that object.

    Parameters
    ----------
    basis
        What `choose_basis` returned.
    search
        ``"linear"``: the nearest axis member inside the lens under the object. ``"binary"``:
        binary search along the whole axis, right when the members lie on a line.

    Returns
    -------
    strategy
        Its result is ``(n, dimension)`` places, comparable to `Basis.coordinates`.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).random((100, 2)))
    >>> basis = nearer.run(choose_basis(100, random_state=0), oracle)
    >>> nearer.run(locate_objects(basis), oracle).shape
    (100, 2)
    """
    checks.one_of("search", search, ("linear", "binary"))
    checks.one("basis", basis, Basis, "what choose_basis returned")
    if not basis.axes:
        return np.empty((basis.n_objects, 0))
    way = _nearest_in_lens if search == "linear" else _turning_point
    columns = yield from together(*(way(basis, axis) for axis in basis.axes))
    return np.stack(columns, axis=1)


def _nearest_in_lens(basis: Basis, axis: Axis) -> Strategy[Floats]:
    first, last = axis.intervals(*(basis.rankings[p] for p in axis.endpoints))
    n, size = basis.n_objects, last - first + 1
    group = np.repeat(np.arange(n), size)
    place = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size) + first[group]
    nearest = yield from sort.best_of(np.arange(n), axis.members[place], group, nearest=True)
    index = np.empty(n, dtype=np.int64)
    index[axis.members] = np.arange(len(axis))
    places: Floats = index[nearest].astype(np.float64)
    places[axis.members] = index[axis.members]
    return places


def _turning_point(basis: Basis, axis: Axis) -> Strategy[Floats]:
    objects = np.setdiff1d(np.arange(basis.n_objects), axis.members)
    low = np.zeros(len(objects), dtype=np.int64)
    high = np.full(len(objects), len(axis) - 1)

    def questions(search: Objects, middle: Objects) -> Objects:
        here, ahead = axis.members[middle], axis.members[middle + 1]
        return np.stack([objects[search], here, ahead], axis=1)

    places = np.empty(basis.n_objects)
    places[objects] = yield from sort.bisect(low, high, questions)
    places[axis.members] = np.arange(len(axis))
    return places
