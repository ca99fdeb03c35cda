"""The farthest object from a head, and the k nearest, without sorting the rest.

The farthest of N objects needs N − 1 comparisons; a knock-out tournament takes them in ⌈log2 N⌉
rounds. The k nearest are found by quickselect: a pivot near the wanted rank is taken from a sorted
sample of about √N objects, all others are compared with it in one round, and one side is searched
on. That is Θ(N) comparisons in expectation; sorting the k found adds Θ(k log k).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.asking.protocol import Strategy
from nearer.asking.sort import check_objects, sort_objects
from nearer.errors import InvalidInput

__all__ = ["best_of", "farthest_object", "nearest_objects"]


def farthest_object(head: int, n_objects: int) -> Strategy[int]:
    """The object farthest from a head: n − 2 comparisons in ⌈log2(n − 1)⌉ rounds.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.asking.farthest_object(1, 4), oracle)
    3
    """
    head, n_objects = check_objects(head, n_objects)
    others = np.delete(np.arange(n_objects), head)
    group = np.zeros(len(others), dtype=np.int64)
    return _only(best_of(np.array([head]), others, group, nearest=False))


def _only(strategy: Strategy[NDArray[np.int64]]) -> Strategy[int]:
    (winner,) = yield from strategy
    return int(winner)


def best_of(
    heads: NDArray[np.int64],
    items: NDArray[np.int64],
    group: NDArray[np.int64],
    *,
    nearest: bool,
) -> Strategy[NDArray[np.int64]]:
    """The nearest, or farthest, item of each group from that group's head, all side by side.

    `group` is sorted and holds every number from 0 to ``len(heads) − 1``; item i belongs to
    ``group[i]`` and is judged from ``heads[group[i]]``.
    """
    while len(items) > len(heads):
        start = np.searchsorted(group, np.arange(len(heads)))
        place = np.arange(len(items)) - start[group]
        first = np.flatnonzero((place[:-1] % 2 == 0) & (group[:-1] == group[1:]))
        questions = np.stack([heads[group[first]], items[first], items[first + 1]], axis=1)
        nearer = yield questions
        lost = np.where(nearer == nearest, first + 1, first)
        items, group = np.delete(items, lost), np.delete(group, lost)
    return items


def nearest_objects(
    head: int,
    n_objects: int,
    k: int,
    *,
    ordered: bool = False,
    among: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[NDArray[np.int64]]:
    """The k objects nearest to a head, the head itself left out.

    Parameters
    ----------
    head, n_objects
        The object from which distances are compared, and how many objects there are.
    k
        How many to find.
    ordered
        Whether to sort them, nearest first: Θ(k log k) comparisons more. Otherwise they come in
        the order of their numbers.
    among
        Search only these objects.
    random_state
        Seed or generator for the pivots. It changes the cost, never the result.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.asking.nearest_objects(1, 4, k=2, ordered=True), oracle)
    array([2, 0])
    """
    head, n_objects = check_objects(head, n_objects)
    items = np.arange(n_objects) if among is None else np.unique(np.asarray(among, dtype=np.int64))
    if len(items) and not (items[0] >= 0 and items[-1] < n_objects):
        raise InvalidInput(f"among holds objects outside 0 … {n_objects - 1}")
    items = items[items != head]
    k = checks.whole("k", k, most=len(items), rule="there are so many other objects")
    rng = checks.generator(random_state)
    return _nearest(head, items, k, ordered, rng)


def _nearest(
    head: int, items: NDArray[np.int64], k: int, ordered: bool, rng: np.random.Generator
) -> Strategy[NDArray[np.int64]]:
    found = yield from _select(head, items, k, rng)
    if ordered:
        return (yield from sort_objects(head, found, random_state=rng))
    return np.sort(found)


def _select(
    head: int, items: NDArray[np.int64], k: int, rng: np.random.Generator
) -> Strategy[NDArray[np.int64]]:
    taken: list[NDArray[np.int64]] = []
    while 0 < k < len(items):
        items = rng.permutation(items)
        sample = yield from sort_objects(
            head, items[: max(1, round(len(items) ** 0.5))], random_state=rng
        )
        place = min(int(k * len(sample) / len(items)), len(sample) - 1)
        rest = items[len(sample) :]
        questions = np.stack(
            [np.full(len(rest), head), rest, np.full(len(rest), sample[place])], axis=1
        )
        nearer = (yield questions) if len(rest) else np.empty(0, dtype=np.bool_)
        near = np.concatenate([sample[:place], rest[nearer]])
        if len(near) >= k:
            items = near
        else:
            taken.extend([near, sample[place : place + 1]])
            k -= len(near) + 1
            items = np.concatenate([sample[place + 1 :], rest[~nearer]])
    return np.concatenate([*taken, items[:k]])
