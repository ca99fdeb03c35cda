"""Rank, sort and select objects from a head: the paper's SortForHead, exact and noisy.

Every way of sorting keeps a *chain*, the objects sorted so far, and finds the gap of the chain
where an object belongs. *Fewest comparisons* is binary insertion in random order, of many
objects at a time: those few that belong in the same gap are then put in order, which costs about
0.05 N comparisons and saves nearly all of the rounds. (Merge insertion, Ford and
Johnson 1959, asks 1 % less in three times as many rounds.) *Fewest rounds* is a quicksort whose
pivots come from small samples compared pair by pair: three rounds for two bits. *Noisy answers*
are asked for as docs/noise.md says (Burnashev and Zigangirov 1974; Ben-Or and Hassidim 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.asking.protocol import Strategy, repeatable, wrapped
from nearer.errors import BudgetSpent, InvalidInput
from nearer.questions import Answers, Floats, Objects, Questions

T = TypeVar("T")
Order = Literal["fewest-comparisons", "fewest-rounds"]
# From a head, items, a chain, the first and the last gap of the chain where each item may belong.
Search = Callable[[int, Objects, Objects, Objects, Objects], Strategy[Objects]]

_FAILURE = 0.001  # of a whole noisy ranking: 1 % for the ten or so of a basis
_CELLS = 1 << 22  # gap probabilities held at a time


@repeatable
def rank_objects(
    head: int,
    n_objects: int,
    *,
    order: Order = "fewest-comparisons",
    noise: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Objects]:
    """Rank all objects by their distance from a head.

    Parameters
    ----------
    head, n_objects
        The object from which distances are compared, and how many objects there are.
    order
        ``"fewest-comparisons"``: within 2 % of log2((n − 1)!) for n ≥ 100, on average.
        ``"fewest-rounds"``: O(log n) rounds for at most a quarter more comparisons.
    noise
        Probability that an answer is wrong, below 0.5. Above 0 questions are asked again until the
        ranking is right with probability 99 %; every answer must be a fresh draw.
    random_state
        Seed or generator for the order of insertion. It changes the cost, never the result.

    Returns
    -------
    strategy
        Its result is the ranking: ``r[x]`` objects are nearer to the head than x.

    Examples
    --------
    >>> import nearer
    >>> nearer.run(rank_objects(1, 4), nearer.PointOracle([0.0, 3.0, 1.0, 7.0]))
    array([2, 0, 1, 3])
    """
    head, n_objects = _check_objects(head, n_objects)
    others = np.delete(np.arange(n_objects), head)
    rng = checks.generator(random_state)
    if check_order(order, noise):
        search = partial(_noisy_gaps, noise=noise, failure=_FAILURE / max(2, len(others)))
        chain = yield from _insert_all(head, rng.permutation(others), search)
    else:
        chain = yield from sort_objects(head, others, order=order, random_state=rng)
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
    """Sort some objects by their distance from a head; for parameters see `rank_objects`."""
    rng = checks.generator(random_state)
    items = np.asarray(objects, dtype=np.int64)
    if order == "fewest-comparisons":
        return _insert_all(head, rng.permutation(items), _find_gap)
    return _split_by_samples(head, rng.permutation(items))


def check_order(order: Order, noise: float) -> float:
    """The noise that a way of sorting can overcome."""
    checks.one_of("order", order, get_args(Order))
    if checks.rate("noise", noise) and order != "fewest-comparisons":
        rule = "wrong answers are only overcome by order='fewest-comparisons'"
        raise InvalidInput(f"noise={noise} with order={order!r}: {rule}")
    return noise


def _check_objects(head: int, n_objects: int) -> tuple[int, int]:
    """The head and the number of objects, checked."""
    n = checks.n_objects(n_objects)
    rule = "the head is one of the objects"
    return checks.whole("head", head, least=0, most=n - 1, rule=rule), n


def _insert_all(head: int, items: Objects, search: Search) -> Strategy[Objects]:
    """Sort by insertion, a part of the chain's length at a time."""
    chain = items[:1]
    while (length := len(chain)) < len(items):
        size = length // (8 if length < 256 and search is _find_gap else 4)
        if search is not _find_gap:  # the probabilities of their gaps take memory
            size = min(size, _CELLS // (length + 1))
        batch = items[length:][: max(1, size)]
        low, high = np.zeros(len(batch), dtype=np.int64), np.full(len(batch), len(chain))
        while len(batch):
            gap = yield from search(head, batch, chain, low, high)
            order = np.argsort(gap, kind="stable")
            batch, gap = batch[order], gap[order]
            placed = np.diff(gap, prepend=-1) > 0  # one object for each gap; the others go on
            chain = np.insert(chain, gap[placed], batch[placed])
            batch = batch[~placed]
            low = (gap + np.cumsum(placed) - 1)[~placed]  # before the one placed in the same gap
            high = low + 1
    return chain


def _noisy_gaps(
    head: int,
    items: Objects,
    chain: Objects,
    low: Objects,
    high: Objects,
    *,
    noise: float,
    failure: float,
) -> Strategy[Objects]:
    """As `_find_gap` if answers are wrong with probability `noise`, until a gap is certain."""
    places = np.arange(len(chain) + 1)
    likely = (places >= low[:, None]) & (places <= high[:, None])
    weight: Floats = (1 - failure) * likely / likely.sum(axis=1, keepdims=True)
    weight += failure / len(places)  # the previous search may have ended in a wrong gap
    gaps = np.zeros(len(items), dtype=np.int64)
    active = np.arange(len(items))
    while len(active):
        rows = np.arange(len(active))
        below = np.cumsum(weight, axis=1)  # of the gaps up to and including each
        middle = np.minimum((below < 0.5).sum(axis=1), len(chain) - 1)
        before = np.maximum(middle - 1, 0)
        closer = np.abs(below[rows, before] - 0.5) < np.abs(below[rows, middle] - 0.5)
        middle = np.where(closer, before, middle)
        nearer = yield _questions(head, items[active], chain[middle])
        agrees = (places <= middle[:, None]) == nearer[:, None]
        weight = weight * np.where(agrees, 1 - noise, noise)
        weight /= weight.sum(axis=1, keepdims=True)
        best = np.argmax(weight, axis=1)
        sure = weight[rows, best] >= 1 - failure
        gaps[active[sure]] = best[sure]
        active, weight = active[~sure], weight[~sure]
    return gaps


def repeated(strategy: Strategy[T], noise: float, failure: float) -> Strategy[T]:
    """Ask every question of a strategy several times; the majority is the answer.

    A majority is wrong with probability at most `failure` (Hoeffding's bound).
    """
    times = 1
    if noise > 0:
        times += 2 * math.ceil(math.log(1 / failure) / (1 - 2 * noise) ** 2 / 4)

    def majority(votes: Answers) -> Answers:
        whole = votes[: len(votes) // times * times]
        return np.asarray(whole.reshape(-1, times).mean(axis=1) > 0.5)

    def answer(questions: Questions) -> Strategy[Answers]:
        try:
            votes = yield np.repeat(questions, times, axis=0)
        except BudgetSpent as spent:
            raise BudgetSpent(spent.budget, majority(spent.answers)) from None
        return majority(votes)

    return wrapped(strategy, answer)


def _find_gap(
    head: int, items: Objects, chain: Objects, low: Objects, high: Objects
) -> Strategy[Objects]:
    """How many objects of the chain are nearer than each item, known to be from low to high."""
    return bisect(low, high, lambda search, at: _questions(head, items[search], chain[at]))


def bisect(
    low: Objects, high: Objects, questions: Callable[[Objects, Objects], Objects]
) -> Strategy[Objects]:
    """Binary searches side by side, each for a place from `low` to `high`.

    `questions` asks of some searches, by number, whether each ends at a place or before it.
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
    return np.stack([np.full(len(a), head), a, b], axis=1)


def _split_by_samples(head: int, items: Objects) -> Strategy[Objects]:
    """Quicksort, all groups side by side. `group` is the number of chain objects before it."""
    chain = items[:0]
    group = np.zeros(len(items), dtype=np.int64)
    while len(items):
        size, place = _sizes_and_places(group)
        # The size of a sample compared pair by pair, of the form (pivots + 1)·step − 1.
        sample = np.select([size < 4, size < 32, size < 128, size < 1024], [size, 3, 7, 11], 23)
        pivots_each = np.where(size < 4, size, 3)
        sampled = place < sample
        rank = np.full(len(items), -1)
        rank[sampled] = yield from _rank_within_groups(head, items[sampled], group[sampled])
        step = (sample + 1) // (pivots_each + 1)
        pivot = sampled & (rank % step == step - 1)

        by_group = np.lexsort((rank[pivot], group[pivot]))
        chain = np.insert(chain, group[pivot][by_group], items[pivot][by_group])
        before = np.searchsorted(np.sort(group[pivot]), group)  # pivots placed before the group
        low = group + before
        known = low + rank // step  # the place of a member of the sample is known
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


def _rank_within_groups(head: int, items: Objects, group: Objects) -> Strategy[Objects]:
    """Compare all pairs inside each group, in one round: each item's rank within its group."""
    rank = np.zeros(len(items), dtype=np.int64)
    size, place = _sizes_and_places(group)
    ahead = range(1, int(size.max(initial=0)))
    first = [np.flatnonzero(place + steps < size) for steps in ahead]
    if first:
        i = np.concatenate(first)
        j = i + np.repeat(ahead, list(map(len, first)))
        nearer = yield _questions(head, items[i], items[j])
        np.add.at(rank, np.where(nearer, j, i), 1)
    return rank


def sort_lists(heads: Objects, lists: Objects) -> Strategy[Objects]:
    """Sort each row of `lists` from its head by binary insertion, all rows side by side.

    That is about h·log2(k!) comparisons in k·log2 k rounds, for rows in random order.
    """
    rows = lists.copy()
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


@repeatable
def farthest_object(head: int, n_objects: int) -> Strategy[int]:
    """The object farthest from a head: n − 2 comparisons in ⌈log2(n − 1)⌉ rounds.

    Examples
    --------
    >>> import nearer
    >>> nearer.run(farthest_object(1, 4), nearer.PointOracle([0.0, 3.0, 1.0, 7.0]))
    3
    """
    head, n_objects = _check_objects(head, n_objects)
    others = np.delete(np.arange(n_objects), head)
    group = np.zeros(len(others), dtype=np.int64)
    (farthest,) = yield from best_of(np.array([head]), others, group, nearest=False)
    return int(farthest)


def best_of(heads: Objects, items: Objects, group: Objects, *, nearest: bool) -> Strategy[Objects]:
    """The nearest, or farthest, item of each group from that group's head, all side by side.

    `group` is sorted and holds every number from 0 to ``len(heads) − 1``.
    """
    while len(items) > len(heads):
        start = np.searchsorted(group, np.arange(len(heads)))
        place = np.arange(len(items)) - start[group]
        first = np.flatnonzero((place[:-1] % 2 == 0) & (group[:-1] == group[1:]))
        nearer = yield np.stack([heads[group[first]], items[first], items[first + 1]], axis=1)
        lost = np.where(nearer == nearest, first + 1, first)
        items, group = np.delete(items, lost), np.delete(group, lost)
    return items


@repeatable
def nearest_objects(
    head: int,
    n_objects: int,
    k: int,
    *,
    ordered: bool = False,
    among: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Objects]:
    """The k objects nearest to a head, the head itself left out.

    Parameters
    ----------
    head, n_objects, k
        The object from which distances are compared, how many objects there are, how many to find.
    ordered
        Whether to sort them, nearest first; otherwise they come in the order of their numbers.
    among
        Search only these objects.
    random_state
        Seed or generator for the pivots. It changes the cost, never the result.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle([0.0, 3.0, 1.0, 7.0])
    >>> nearer.run(nearest_objects(1, 4, k=2, ordered=True), oracle)
    array([2, 0])
    """
    head, n_objects = _check_objects(head, n_objects)
    checks.flag("ordered", ordered)
    items = np.arange(n_objects) if among is None else np.unique(checks.objects("among", among))
    if len(items) and not (items[0] >= 0 and items[-1] < n_objects):
        raise InvalidInput(f"among holds objects outside 0 … {n_objects - 1}")
    items = items[items != head]
    k = checks.whole("k", k, most=len(items), rule="there are no more other objects")
    rng = checks.generator(random_state)
    nearest = yield from _select(head, items, k, rng)
    if ordered:
        return (yield from sort_objects(head, nearest, random_state=rng))
    return np.sort(nearest)


def _select(head: int, items: Objects, k: int, rng: np.random.Generator) -> Strategy[Objects]:
    """Quickselect: the pivot is taken from a sorted sample of about √N objects."""
    taken: list[Objects] = []
    while 0 < k < len(items):
        items = rng.permutation(items)
        size = max(1, round(len(items) ** 0.5))
        sample = yield from sort_objects(head, items[:size], random_state=rng)
        place = min(int(k * len(sample) / len(items)), len(sample) - 1)
        rest = items[len(sample) :]
        questions = _questions(head, rest, np.full(len(rest), sample[place]))
        nearer = (yield questions) if len(rest) else np.empty(0, dtype=np.bool_)
        near = np.concatenate([sample[:place], rest[nearer]])
        if len(near) >= k:
            items = near
        else:
            taken.extend([near, sample[place : place + 1]])
            k -= len(near) + 1
            items = np.concatenate([sample[place + 1 :], rest[~nearer]])
    return np.concatenate([*taken, items[:k]])
