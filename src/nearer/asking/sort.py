"""Rank all objects from one head: the paper's SortForHead, in two ways.

Sorting N objects takes at least log2(N!) comparisons. Both ways keep a *chain*, the objects sorted
so far, and find the gap of the chain where an object belongs.

*Fewest comparisons.* Binary insertion in random order, whose average is within 0.06 N comparisons
of the bound. Inserting one object at a time takes O(N log N) rounds, so a part of the chain's
length is inserted at a time, all by binary search side by side; the few that meet in one gap are
then put in order among themselves. The meetings cost about 0.05 N more comparisons and save nearly
all of the rounds. (Merge insertion, Ford and Johnson 1959, asks 1 % less, in three times as many.)

*Fewest rounds.* A quicksort with several pivots. Each group takes a small sample, compares all
pairs of it in one round, and takes evenly spaced members of it as pivots, which the others pass by
binary search: three rounds for two bits. All groups move side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.asking.noisy_sort import check_noise, noisy_sort
from nearer.asking.protocol import Strategy
from nearer.errors import InvalidInput

__all__ = ["Order", "bisect", "check_objects", "rank_objects", "sort_lists", "sort_objects"]

Order = Literal["fewest-comparisons", "fewest-rounds"]
Objects = NDArray[np.int64]


def rank_objects(
    head: int,
    n_objects: int,
    *,
    order: Order = "fewest-comparisons",
    noise: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[NDArray[np.int64]]:
    """Rank all objects by their distance from a head.

    Parameters
    ----------
    head
        The object from which distances are compared.
    n_objects
        How many objects there are, the head included.
    order
        ``"fewest-comparisons"``: within 2 % of log2((n − 1)!) for n ≥ 100, on average.
        ``"fewest-rounds"``: O(log n) rounds for at most a quarter more comparisons.
    noise
        Probability that an answer is wrong, below 0.5. Above 0 questions are asked again where it
        matters, until the ranking is right with probability 99 %; every answer must be a fresh
        draw, see `nearer.asking.noisy_sort`.
    random_state
        Seed or generator for the order of insertion. It changes the cost, never the result.

    Returns
    -------
    strategy
        Its result is the ranking: ``r[x]`` objects are nearer to the head than x; ``r[head] = 0``.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.rank_objects(1, 4, order="fewest-rounds"), oracle)
    array([2, 0, 1, 3])
    """
    head, n_objects = check_objects(head, n_objects)
    others = np.delete(np.arange(n_objects), head)
    rng = checks.generator(random_state)
    if check_noise(noise):
        if order != "fewest-comparisons":
            raise InvalidInput(
                f"noise={noise} with order={order!r}: wrong answers are only overcome by "
                "order='fewest-comparisons'"
            )
        return _rank(noisy_sort(head, rng.permutation(others), noise), n_objects)
    return _rank(sort_objects(head, others, order=order, random_state=rng), n_objects)


def _rank(sort: Strategy[Objects], n_objects: int) -> Strategy[NDArray[np.int64]]:
    chain = yield from sort
    ranking = np.zeros(n_objects, dtype=np.int64)
    ranking[chain] = np.arange(1, n_objects)
    return ranking


def sort_objects(
    head: int,
    objects: ArrayLike,
    *,
    order: Order = "fewest-comparisons",
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Objects]:
    """Sort some objects by their distance from a head, nearest first.

    The parameters are those of `rank_objects`.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(sort_objects(0, [3, 2, 1]), oracle)
    array([2, 1, 3])
    """
    rng = checks.generator(random_state)
    items = np.asarray(objects, dtype=np.int64)
    checks.one_of("order", order, ("fewest-comparisons", "fewest-rounds"))
    if order == "fewest-comparisons":
        return _insert_in_batches(head, rng.permutation(items))
    return _split_by_samples(head, rng.permutation(items))


def check_objects(head: int, n_objects: int) -> tuple[int, int]:
    """The head and the number of objects as integers that make sense together."""
    n = checks.n_objects(n_objects)
    return checks.head(head, n), n


def _insert_in_batches(head: int, items: Objects) -> Strategy[Objects]:
    chain = items[:1]
    while len(chain) < len(items):
        batch = items[len(chain) :][: max(1, len(chain) // (8 if len(chain) < 256 else 4))]
        low = np.zeros(len(batch), dtype=np.int64)
        high = np.full(len(batch), len(chain))
        chain = yield from _insert(head, chain, batch, low, high)
    return chain


def _insert(
    head: int, chain: Objects, items: Objects, low: Objects, high: Objects
) -> Strategy[Objects]:
    """Put items into a chain, each known to belong between the positions low and high."""
    while len(items):
        gap = yield from _find_gap(head, items, chain, low, high)
        order = np.argsort(gap, kind="stable")
        items, gap = items[order], gap[order]
        placed = np.diff(gap, prepend=-1) > 0  # one object for each gap; the others go on
        chain = np.insert(chain, gap[placed], items[placed])
        items = items[~placed]
        low = (gap + np.cumsum(placed) - 1)[~placed]  # before the one placed in the same gap
        high = low + 1
    return chain


def _find_gap(
    head: int, items: Objects, chain: Objects, low: Objects, high: Objects
) -> Strategy[Objects]:
    """How many objects of the chain are nearer than each item."""

    def questions(search: Objects, middle: Objects) -> Objects:
        return _questions(head, items[search], chain[middle])

    return bisect(low, high, questions)


def bisect(
    low: Objects, high: Objects, questions: Callable[[Objects, Objects], Objects]
) -> Strategy[Objects]:
    """Binary searches side by side: each round asks one question for each search that goes on.

    Parameters
    ----------
    low, high
        Each search is for a place from `low` to `high`.
    questions
        From the numbers of some searches and a place for each to one question for each. The answer
        is True if the place that is searched for is this one or lies before it.

    Returns
    -------
    strategy
        Its result is the place that each search has found.
    """
    low, high = low.copy(), high.copy()
    search = np.flatnonzero(low < high)
    while len(search):
        middle = (low[search] + high[search]) // 2
        before = yield questions(search, middle)
        high[search[before]] = middle[before]
        low[search[~before]] = middle[~before] + 1
        search = search[low[search] < high[search]]
    return low


def _questions(head: int, a: Objects, b: Objects) -> Objects:
    questions = np.empty((len(a), 3), dtype=np.int64)
    questions[:, 0] = head
    questions[:, 1] = a
    questions[:, 2] = b
    return questions


def _split_by_samples(head: int, items: Objects) -> Strategy[Objects]:
    """Quicksort, all groups side by side. `group` is the number of chain objects before it."""
    chain = items[:0]
    group = np.zeros(len(items), dtype=np.int64)
    while len(items):
        size, place = _sizes_and_places(group)
        sampled = place < _sample_size(size)
        rank = np.full(len(items), -1)
        rank[sampled] = yield from _rank_within_groups(head, items[sampled], group[sampled])
        pivots_each = _n_pivots(size)
        step = (_sample_size(size) + 1) // (pivots_each + 1)
        pivot = sampled & (rank % step == step - 1)

        by_group = np.lexsort((rank[pivot], group[pivot]))
        chain = np.insert(chain, group[pivot][by_group], items[pivot][by_group])
        before = np.searchsorted(np.sort(group[pivot]), group)  # pivots placed before the group
        low = group + before
        known = low + rank // step  # where a member of the sample lies is known already
        rest = ~pivot
        low = np.where(sampled, known, low)[rest]
        high = np.where(sampled, known, group + before + pivots_each)[rest]
        items = items[rest]
        group = yield from _find_gap(head, items, chain, low, high)
        order = np.argsort(group, kind="stable")
        items, group = items[order], group[order]
    return chain


def _sizes_and_places(group: Objects) -> tuple[Objects, Objects]:
    """For sorted group numbers: the size of each item's group, its place within the group."""
    start = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(start, append=len(group))
    place = np.arange(len(group)) - np.repeat(start, sizes)
    return np.repeat(sizes, sizes), place


def _sample_size(size: Objects) -> Objects:
    """How many members of a group are compared pair by pair; of the form (pivots + 1)·step − 1."""
    return np.select([size < 4, size < 32, size < 128, size < 1024], [size, 3, 7, 11], 23)


def _n_pivots(size: Objects) -> Objects:
    return np.where(size < 4, size, 3)


def _rank_within_groups(head: int, items: Objects, group: Objects) -> Strategy[Objects]:
    """Compare all pairs inside each group, in one round: each item's rank within its group."""
    rank = np.zeros(len(items), dtype=np.int64)
    size, place = _sizes_and_places(group)
    first, second = [], []
    for ahead in range(1, int(size.max(initial=0))):
        i = np.flatnonzero(place + ahead < size)
        first.append(i)
        second.append(i + ahead)
    if first:
        i, j = np.concatenate(first), np.concatenate(second)
        nearer = yield _questions(head, items[i], items[j])
        np.add.at(rank, np.where(nearer, j, i), 1)
    return rank


def sort_lists(heads: ArrayLike, lists: ArrayLike) -> Strategy[Objects]:
    """Sort each row of `lists` by the distance from its head, nearest first.

    Binary insertion: in step j every list inserts its j-th object into those before it, all lists
    side by side. That is about h·log2(k!) comparisons in k·log2 k rounds.

    Parameters
    ----------
    heads
        ``(h,)`` objects.
    lists
        ``(h, k)`` objects; row i is sorted from ``heads[i]``. The order of a row changes what the
        sort costs, so rows that mean something are best shuffled.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.arange(10.0))
    >>> nearer.run(sort_lists([0, 9], [[5, 2, 7], [5, 2, 7]]), oracle)
    array([[2, 5, 7],
           [7, 5, 2]])
    """
    from_heads, rows = np.asarray(heads, dtype=np.int64), np.asarray(lists, dtype=np.int64)
    if rows.ndim != 2 or from_heads.shape != rows.shape[:1]:
        raise InvalidInput(
            f"heads of shape {from_heads.shape} and lists of shape {rows.shape}: must be (h,) and "
            "(h, k)"
        )
    return _sort_lists(from_heads, rows.copy())


def _sort_lists(heads: Objects, rows: Objects) -> Strategy[Objects]:
    for step in range(1, rows.shape[1]):
        low = np.zeros(len(rows), dtype=np.int64)
        high = np.full(len(rows), step)

        def questions(search: Objects, middle: Objects, step: int = step) -> Objects:
            return np.stack([heads[search], rows[search, step], rows[search, middle]], axis=1)

        gap = yield from bisect(low, high, questions)
        place = np.arange(step + 1)
        source = np.where(place == gap[:, None], step, place - (place > gap[:, None]))
        rows[:, : step + 1] = np.take_along_axis(rows, source, axis=1)
    return rows
