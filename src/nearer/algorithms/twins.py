"""Objects in one and the same place.

An oracle puts equal distances in some order, mostly that of numbers, so what it says about objects
that coincide looks like any other answer; yet no positions obey it, and more dimensions than there
are predict its rule. Two objects that differ are in one order from some heads, and in the other
from those on the other side. So each is compared with the nearest others, as far as positions are
known, from heads that should see the two in different orders. Two that are in the same order from
all of them share a place, and go on as one.

At an end or a corner everyone sees two that differ in the same order, however far apart they are.
So both are asked whether others are nearer to them than they to each other. Those must be known to
be elsewhere, since one in the same place may come before: two heads rank them differently.

Of objects that differ by no more than is known of them, some pass all the same. So a few of the
nearest are asked first, and where hardly one of them are twins, nobody is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nearer.asking.protocol import Strategy
from nearer.questions import Floats, Objects

__all__ = ["count_twins", "find_twins", "nearest_places"]

# `python -m benchmarks sensitivity` varies the first four.
# Heads on the other side from which twins are in the same order, and others that are not as near:
# comparisons against places taken for one
_CHECKS = 4
_FIRST = 20  # pairs that are asked first: comparisons where there are no twins
_SOME = 2  # … of which fewer are chance
_NEAREST = 3  # others that each is compared with, where it has no twin among them
_HEADS = 300  # drawn, to find those that should tell two objects apart: time
_MOVED = 1e-6  # of the spread: more than rounding
_FEWEST = 8  # among so few objects, an agreement says too little
_THIRD = 2  # the nearest of the end of a line rank others as it does, the third nearest does not


def count_twins(chain: Objects) -> Strategy[int]:
    """How many of the first in a head's chain share its place, if at least three do; else 0.

    They come first, before all others, and rank those as the head does.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.repeat([[0.0], [1.0]], 10, axis=0))
    >>> nearer.run(count_twins(np.arange(1, 20)), oracle)
    9
    """
    low, high = min(_THIRD, len(chain) - 1), len(chain)
    if not (yield from _ranks_as(low, chain)):
        return 0
    while high - low > 1:  # the member at `low` is a twin, the one at `high` is none
        middle = (low + high) // 2
        if (yield from _ranks_as(middle, chain)):
            low = middle
        else:
            high = middle
    return low + 1


def _ranks_as(place: int, chain: Objects) -> Strategy[bool]:
    """Whether that member of the chain ranks the others as the chain does."""
    others = np.delete(chain, place)
    if len(others) < _FEWEST:
        return False
    step = 1
    while step < len(others):  # neighbours tell most places apart, far members far ones
        first = np.linspace(0, len(others) - 1 - step, 2 * _CHECKS).astype(np.int64)
        pairs = np.stack([others[first], others[first + step]], axis=1)
        if not (yield np.insert(pairs, 0, chain[place], axis=1)).all():
            return False
        step *= 2
    return True


def find_twins(
    objects: Objects,
    positions: Floats,
    rng: np.random.Generator,
    *,
    ranks: Floats | None = None,
    suspected: bool = False,
) -> Strategy[Objects]:
    """Whose place each of some objects shares: an index among them, its own where nobody's.

    Parameters
    ----------
    objects
        ``(m,)`` each once.
    positions
        ``(m, d)`` where they are believed to be.
    rng
        Source of the questions.
    ranks
        ``(m, k)``: each one's rank from each of some heads, 0 for the head; NaN: not ranked.
    suspected
        There are twins: do not ask a few pairs first.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).integers(4, size=(80, 2)) * 1.0  # 16 places
    >>> believed = X + 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> strategy = find_twins(np.arange(80), believed, np.random.default_rng(2))
    >>> same = nearer.run(strategy, nearer.PointOracle(X))
    >>> bool((X[same] == X).all()), len(np.unique(same)) <= 20
    (True, True)
    """
    same = np.arange(len(objects))
    if len(objects) <= (2 if suspected else _FEWEST):
        return same
    # a little moved: those who are believed to be in one place have no sides
    positions = positions + _MOVED * positions.std() * rng.standard_normal(positions.shape)
    refuted: set[tuple[int, int]] = set()
    while len(pairs := _candidates(positions, same, refuted)):
        if not suspected:
            pairs = pairs[:_FIRST]
        sides = _on_both_sides(positions, pairs, same, rng)
        alike = yield from _agree(objects, pairs, sides)
        if ranks is not None:
            others = _nearest_elsewhere(positions, pairs[alike], ranks, rng)
            alike[alike] = yield from _come_first(objects, pairs[alike], others)
        refuted.update(map(tuple, pairs[~alike].tolist()))
        if not suspected and alike.sum() < _SOME:
            break
        suspected = True
        for one, other in pairs[alike].tolist():
            a, b = sorted((same[one], same[other]))
            same[same == b] = a
    return same


def nearest_places(objects: Objects, places: Objects) -> Strategy[Objects]:
    """Which of a few objects, one for each place, is nearest to each of others: its index.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.array([[0.0], [5.0], [5.0], [0.0]])
    >>> nearer.run(nearest_places(np.array([2, 3]), np.array([0, 1])), nearer.PointOracle(X))
    array([1, 0])
    """
    at = np.zeros(len(objects), dtype=np.int64)
    for place, there in enumerate(places.tolist()[1:], start=1):
        rivals = [places[at], np.full(len(objects), there)]
        stay = yield np.stack([objects, *rivals], axis=1)
        at[~stay] = place
    return at


def _candidates(
    positions: Floats, same: Objects, refuted: set[tuple[int, int]]
) -> NDArray[np.int64]:
    """Pairs that may be twins, the nearest first: for each object the nearest not refuted yet."""
    left, index = np.unique(same, return_inverse=True)
    if len(left) < 2:
        return np.empty((0, 2), dtype=np.int64)
    sums = np.stack([np.bincount(index, weights=x) for x in positions.T], axis=1)
    means = sums / np.bincount(index)[:, None]
    distances, others = cKDTree(means).query(means, k=min(1 + _NEAREST, len(left)))
    pairs: dict[tuple[int, int], float] = {}
    for i, (row, ids) in enumerate(zip(distances.tolist(), others.tolist(), strict=True)):
        for distance, j in zip(row, ids, strict=True):
            pair = (int(left[min(i, j)]), int(left[max(i, j)]))
            if i != j and pair not in refuted:
                pairs[pair] = distance
                break
    return np.array(sorted(pairs, key=pairs.__getitem__), dtype=np.int64).reshape(-1, 2)


def _agree(
    objects: Objects, pairs: NDArray[np.int64], sides: NDArray[np.int64]
) -> Strategy[NDArray[np.bool_]]:
    """Which pairs are in the same order from all heads.

    Heads on the side of the one that comes first say so in any case. So once that is known, those
    on the other side are asked.
    """
    alike: NDArray[np.bool_] = np.all(sides[:, :, 0] >= 0, axis=1)
    first = yield from _first_is_nearer(objects, sides[alike, :, 0], pairs[alike])
    agree = first[:, 0] == first[:, 1]  # most that are no twins differ at once
    alike[alike] = agree
    rows, comes_first = np.flatnonzero(alike), first[agree, 0]
    beyond = sides[rows, comes_first.astype(np.int64), 1:]
    said = yield from _first_is_nearer(objects, beyond, pairs[rows])
    alike[rows] = (said == comes_first[:, None]).all(axis=1)
    return alike


def _come_first(
    objects: Objects, pairs: NDArray[np.int64], others: NDArray[np.int64]
) -> Strategy[NDArray[np.bool_]]:
    """Which pairs are nearer to each other than ``(pairs, 2, checks)`` others; −1: nobody."""
    rows, which, at = np.nonzero(others >= 0)
    heads, twins = pairs[rows, which], pairs[rows, 1 - which]
    questions = np.stack([heads, twins, others[rows, which, at]], axis=1)
    said = yield objects[questions]
    alike = np.ones(len(pairs), dtype=np.bool_)
    alike[rows[~said]] = False
    return alike


def _first_is_nearer(
    objects: Objects, heads: NDArray[np.int64], pairs: NDArray[np.int64]
) -> Strategy[NDArray[np.bool_]]:
    """``(pairs, heads)``: whether the first of each pair is nearer to each of its heads."""
    both = np.broadcast_to(pairs[:, None], (*heads.shape, 2))
    questions = np.concatenate([heads[:, :, None], both], axis=2)
    return (yield objects[questions].reshape(-1, 3)).reshape(heads.shape)


def _on_both_sides(
    positions: Floats, pairs: NDArray[np.int64], same: Objects, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``(pairs, 2, 1 + checks)`` heads nearer to one, and to the other; −1: there is none.

    The nearest come first, those known to share its place before all: who is far away sees two
    that are near each other as everyone there does. Where there are too few, the first again.
    """
    drawn = rng.permutation(len(positions))[:_HEADS]
    one, other = (
        np.linalg.norm(positions[column, None] - positions[drawn], axis=2) for column in pairs.T
    )
    sides = []
    for mine, theirs, place in ((one, other, pairs[:, :1]), (other, one, pairs[:, 1:])):
        nearest = np.where(mine < theirs, mine, np.inf)
        nearest[place == same[drawn]] = 0.0
        nearest[(pairs[:, :, None] == drawn).any(axis=1)] = np.inf
        order = np.argsort(nearest, axis=1, kind="stable")[:, : 1 + _CHECKS]
        distances = np.take_along_axis(nearest, order, axis=1)
        heads = np.where(distances < np.inf, drawn[order], drawn[order[:, :1]])
        heads[distances[:, 0] == np.inf] = -1
        sides.append(heads)
    return np.stack(sides, axis=1)


def _nearest_elsewhere(
    positions: Floats, pairs: NDArray[np.int64], ranks: Floats, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``(pairs, 2, checks / 2)`` the nearest to each that are known to be elsewhere; −1: nobody."""
    drawn = rng.permutation(len(positions))[:_HEADS]
    ranks = np.where(ranks > 0, ranks, np.nan)  # a head comes before its twins only as a head
    found = []
    for column in pairs.T:
        beyond = ranks[drawn] - ranks[column, None]
        elsewhere = (beyond > 0).any(axis=2) & (beyond < 0).any(axis=2)
        elsewhere &= (pairs[:, :, None] != drawn).all(axis=1)
        distances = np.linalg.norm(positions[column, None] - positions[drawn], axis=2)
        distances = np.where(elsewhere, distances, np.inf)
        order = np.argsort(distances, axis=1, kind="stable")[:, : _CHECKS // 2]
        nobody = np.take_along_axis(distances, order, axis=1) == np.inf
        found.append(np.where(nobody, -1, drawn[order]))
    return np.stack(found, axis=1)
