"""Place objects among others that have positions, by search from a few heads.

A *head* is an object whose distances to the *anchors*, all objects that have positions, are known
in order: its *chain*. Strategy "is x nearer to the head than this anchor?" halves the part of the
chain where x belongs. A plain binary search from each of k heads would cost k·log2 m comparisons;
but after the first few heads the position of x is nearly known, and so is its place in the other
chains. So each object asks, again and again, the question that tells most given all answers about
it so far (`nearer._kernels.shells`), from whichever head, until no
question is worth asking. All objects move side by side: one round holds one question for each.
Those that have given the same answers so far are one (`same_answers`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import side_by_side
from nearer._kernels.shells import next_questions
from nearer.algorithms.same_answers import SameAnswers
from nearer.asking.protocol import Strategy
from nearer.errors import BudgetSpent
from nearer.questions import Answers, Questions

__all__ = ["Anchors", "Slots", "slot_objects", "spread_heads"]

Floats = NDArray[np.float64]
Objects = NDArray[np.int64]

# `python -m benchmarks sensitivity` halves and doubles those that trade comparisons for accuracy.
_WORTH_ASKING = 0.5  # bits; an object whose best question tells fewer is done
_WORTH_A_SECOND = 0.8  # bits; the same for a second question in one round: comparisons for rounds
_SWEEPS = 1  # of expectation propagation a round: time
_COARSE = 3  # rounds of plain bisection, which tell a bit each and need no choice: time
_BEGINNINGS = 150  # anchors where searches may begin elsewhere: time, mirror images
_FLAT = 1e-9  # of the longest axis: what is shorter is rounding
_PART = 1000  # objects that make a second thread worth waking: some milliseconds


@dataclass(frozen=True)
class Anchors:
    """Objects with positions, and the heads from which others are compared with them.

    Attributes
    ----------
    objects
        ``(m,)`` their numbers.
    positions
        ``(m, d)``.
    heads
        ``(k,)`` places in `objects`.
    """

    objects: Objects
    positions: Floats
    heads: Objects

    def chains(self) -> tuple[Objects, Floats]:
        """``(k, m − 1)``: for each head the other anchors' places, nearest first; distances."""
        orders, distances = [], []
        for h in self.heads.tolist():
            r = np.linalg.norm(self.positions - self.positions[h], axis=1)
            r[h] = -1.0
            order = np.argsort(r, kind="stable")[1:]
            orders.append(order)
            distances.append(r[order])
        return np.array(orders), np.array(distances)


class Slots:
    """What is believed about the objects being placed; kept up to date while asking.

    Attributes
    ----------
    objects
        ``(q,)`` the objects being placed.
    first, last
        ``(q, k)`` the part of each head's chain where they belong.
    positions
        ``(q, d)``: where the objects are, as far as is known.
    """

    def __init__(self, anchors: Anchors, objects: Objects) -> None:
        self.anchors, self.objects = anchors, objects
        self.order, self.chain = anchors.chains()
        self.chain = np.maximum.accumulate(self.chain, axis=1)
        q, k, d = len(objects), len(anchors.heads), anchors.positions.shape[1]
        self.centre = anchors.positions.mean(axis=0)
        spread = np.cov(anchors.positions.T).reshape(d, d)
        floor = max(1e-6 * float(np.trace(spread)) / d, 1e-12)
        self.prior = np.linalg.inv(1.5 * spread + floor * np.eye(d))
        # not exactly on the centre: a head may be there, and from it no direction is the right one
        offset = 1e-3 * np.sqrt(max(float(np.trace(spread)) / d, 1e-12))
        start = self.centre + offset
        self.heads = anchors.positions[anchors.heads]
        middle = self.heads.mean(axis=0)
        axes = np.linalg.eigh((self.heads - middle).T @ (self.heads - middle))[1].T
        self.mirrors = np.vstack([axes, middle])
        self.beginnings = np.array(anchors.positions[:_BEGINNINGS])
        self.first = np.zeros((q, k), dtype=np.int32)
        self.last = np.full((q, k), self.chain.shape[1], dtype=np.int32)
        self.positions = np.tile(start, (q, 1))
        self.precisions, self.targets = np.zeros((q, k)), np.zeros((q, k))

    def choose(self, rows: Objects, *, anew: bool = True) -> tuple[Objects, Objects, Floats]:
        """The next two questions of some objects: head, member of its chain, information."""
        q, (k, d) = len(rows), self.heads.shape
        bests = (np.empty((q, 2), np.int64), np.zeros((q, 2), np.int64), np.empty((q, 2)))

        def update(_: int, part: slice) -> None:
            shells = (self.heads, np.empty(k), np.empty(k))
            there = (np.empty(d), np.empty((d, d)), np.empty(k), np.empty(k))
            work = (np.empty(d), np.empty(d), np.empty((d, d)), np.empty(k, np.int64))
            next_questions(
                rows[part],
                (self.positions, np.empty((d, d)), self.precisions, self.targets),
                (self.first, self.last),
                (bests[0][part], bests[1][part], bests[2][part]),
                (shells, self.chain, (self.centre, self.prior), self.beginnings, self.mirrors),
                (there, work),
                _SWEEPS,
                anew,
                _WORTH_ASKING,
            )

        side_by_side(update, q, 1 + q // _PART)
        return bests

    def copy(self, source: Objects, rows: Objects) -> None:
        """Believe of some objects what is believed of others."""
        for beliefs in (self.positions, self.precisions, self.targets):
            beliefs[rows] = beliefs[source]

    def questions(self, rows: Objects, head: Objects, member: Objects) -> Questions:
        """Questions whether objects are nearer to the head than that member of its chain."""
        ids = self.anchors.objects
        columns = [ids[self.anchors.heads[head]], self.objects[rows], ids[self.order[head, member]]]
        return np.stack(columns, axis=1)

    def learn(self, rows: Objects, head: Objects, member: Objects, nearer: Answers) -> None:
        """Cut the chain where the answers say."""
        self.last[rows[nearer], head[nearer]] = member[nearer]
        self.first[rows[~nearer], head[~nearer]] = member[~nearer] + 1

    def triplets(self) -> Objects:
        """For each object and head, the two members of the chain it is known to be between."""
        ids, parts = self.anchors.objects, []
        for h, head in enumerate(ids[self.anchors.heads].tolist()):
            after = np.flatnonzero(self.first[:, h] > 0)
            before = np.flatnonzero(self.last[:, h] < self.chain.shape[1])
            nearer = ids[self.order[h, self.first[after, h] - 1]]
            farther = ids[self.order[h, self.last[before, h]]]
            own = self.objects
            parts += [
                np.stack([np.full(len(after), head), nearer, own[after]], axis=1),
                np.stack([np.full(len(before), head), own[before], farther], axis=1),
            ]
        return np.concatenate(parts)


def slot_objects(slots: Slots, *, most: int | None = None, pairs: bool = False) -> Strategy[None]:
    """Ask until every object is placed as well as the chains allow.

    Parameters
    ----------
    slots
        Who is to be placed among whom; filled while asking, so that it holds the best so far
        when the budget is spent.
    most
        At most so many questions an object.
    pairs
        Ask two questions of an object in each round, from different heads: half the rounds and
        half the work of choosing, for a few per cent more questions.
    """
    rows, same = np.arange(len(slots.objects)), SameAnswers(len(slots.objects))
    yield from _bisect(slots, _COARSE, same)
    asked, rounds = _COARSE * len(slots.anchors.heads), 0
    wanted = np.array([_WORTH_ASKING, _WORTH_A_SECOND if pairs else np.inf])
    while len(rows) and (most is None or asked + pairs < most):
        head, member, information = _choose(slots, rows, same, anew=not rounds)
        strategy, column = np.nonzero((head >= 0) & (information > wanted))
        if not len(strategy):
            return
        head, member = head[strategy, column], member[strategy, column]
        about = rows[strategy]
        try:
            nearer = yield slots.questions(about, head, member)
        except BudgetSpent as spent:
            part = slice(len(spent.answers))
            slots.learn(about[part], head[part], member[part], spent.answers)
            slots.choose(np.unique(about[part]))
            raise
        slots.learn(about, head, member, nearer)
        same.add(about, nearer)
        rows = about[np.flatnonzero(np.diff(about, prepend=-1))]  # each once: they are in order
        asked += 1 + int(pairs)
        rounds += 1
    if len(rows):
        slots.choose(rows)


def _choose(
    slots: Slots, rows: Objects, same: SameAnswers, *, anew: bool
) -> tuple[Objects, Objects, Floats]:
    """The next two questions of some objects, reckoned once for all with the same answers."""
    first, like = same.among(rows)
    head, member, information = slots.choose(rows[first], anew=anew)
    if len(first) == len(rows):
        return head, member, information
    slots.copy(rows[first][like], rows)
    return head[like], member[like], information[like]


def _bisect(slots: Slots, times: int, same: SameAnswers) -> Strategy[None]:
    """Plain binary search from all heads at once, for a few rounds."""
    q, k = slots.first.shape
    rows, head = np.repeat(np.arange(q), k), np.tile(np.arange(k), q)
    for _ in range(times):
        member = (slots.first[rows, head] + slots.last[rows, head]) // 2
        open_ = slots.first[rows, head] < slots.last[rows, head]
        rows, head, member = rows[open_], head[open_], member[open_]
        if not len(rows):
            return
        try:
            nearer = yield slots.questions(rows, head, member)
        except BudgetSpent as spent:
            part = slice(len(spent.answers))
            slots.learn(rows[part], head[part], member[part], spent.answers)
            slots.choose(np.arange(q))
            raise
        slots.learn(rows, head, member, nearer)
        same.add(rows, nearer)


def spread_heads(positions: Floats, k: int) -> Objects:
    """Places of k well-spread positions: each the farthest from all before it (Gonzalez 1985).

    All directions count alike, however long the cloud is in some: heads that lie in a plane would
    leave everything else with a mirror image. The outermost twentieth is passed over: what is far
    from everything is the least certain.

    Examples
    --------
    >>> import numpy as np
    >>> spread_heads(np.array([[0.0], [1.0], [5.0], [2.0]]), 2)
    array([2, 0])
    >>> spread_heads(np.array([[0.0, 0.0], [50.0, 0.1], [99.0, 0.0], [50.0, -1.0]]), 3)
    array([3, 0, 2])
    """
    axes, spread, _ = np.linalg.svd(positions - positions.mean(axis=0), full_matrices=False)
    points = axes[:, spread > _FLAT * spread.max(initial=0.0)] * np.sqrt(len(axes))
    radius = np.linalg.norm(points, axis=1)
    inner = np.argsort(radius, kind="stable")[: len(radius) - len(radius) // 20]
    points = points[inner]
    chosen = [len(inner) - 1]
    gap = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < k and gap.any():  # no place twice
        chosen.append(int(np.argmax(gap)))
        gap = np.minimum(gap, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return inner[chosen]
