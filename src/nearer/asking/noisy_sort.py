"""Rank from a head when each answer is wrong with a known probability.

Objects are inserted into a growing chain, as in `nearer.asking.sort`, but the binary search
believes no single answer. It keeps the probability of every gap of the chain, asks about the
chain's object at the median, multiplies the gaps on the side of the answer by 1 − p and the
others by p, and stops when one gap is certain enough (Burnashev and Zigangirov 1974; Ben-Or and
Hassidim 2008). Questions near the true gap are thereby asked again, others hardly ever. The
expected cost is about log2(n)/I(p) + log2(1/δ)/((1 − 2p) log2((1 − p)/p)) comparisons an object,
I(p) the capacity of the channel: with the n log2 n objects of a sort this is the bound of Gu and Xu
(2023) when δ is about 1/n. Here δ = 0.001/n, so that a whole ranking is right with probability
99.9 % and the ten or so of a basis with 99 %.

The same question is put again and again. That helps only when each answer is a fresh draw: a
file, an oracle with fixed errors, or a memory answers the same every time, and the certainty
computed here is then false.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.asking.protocol import Strategy, wrapped
from nearer.errors import BudgetSpent
from nearer.questions import Answers, Questions

__all__ = ["check_noise", "noisy_sort", "repeated"]

T = TypeVar("T")

Objects = NDArray[np.int64]
Floats = NDArray[np.float64]

_FAILURE = 0.001  # how often a whole ranking may be wrong
_CELLS = 1 << 22  # gap probabilities held at a time
_ASTRAY = 1e-4  # probability that an object belongs elsewhere than where a search put it


def check_noise(noise: float) -> float:
    """A rate of wrong answers that sorting can overcome."""
    return checks.rate("noise", noise)


def noisy_sort(head: int, items: Objects, noise: float) -> Strategy[Objects]:
    """Sort objects by their distance from a head, nearest first, in the order given."""
    chain = items[:1]
    doubt = _FAILURE / max(2, len(items))
    while len(chain) < len(items):
        size = min(max(1, len(chain) // 4), max(1, _CELLS // (len(chain) + 1)))
        batch = items[len(chain) :][:size]
        prior = np.full((len(batch), len(chain) + 1), 1 / (len(chain) + 1))
        while len(batch):
            gap = yield from _find_gaps(head, batch, chain, prior, noise, doubt)
            chain, batch, gap = _place(chain, batch, gap)
            prior = np.full((len(batch), len(chain) + 1), _ASTRAY / (len(chain) + 1))
            rows = np.arange(len(batch))
            prior[rows, gap] += 0.5 - _ASTRAY / 2  # beside the one that was placed in its gap
            prior[rows, gap + 1] += 0.5 - _ASTRAY / 2
    return chain


def _place(chain: Objects, batch: Objects, gap: Objects) -> tuple[Objects, Objects, Objects]:
    """Put one object into each gap that was found; the others of that gap must go on."""
    order = np.argsort(gap, kind="stable")
    batch, gap = batch[order], gap[order]
    placed = np.diff(gap, prepend=-1) > 0
    chain = np.insert(chain, gap[placed], batch[placed])
    return chain, batch[~placed], (gap + np.cumsum(placed) - 1)[~placed]


def _find_gaps(
    head: int, items: Objects, chain: Objects, weight: Floats, noise: float, doubt: float
) -> Strategy[Objects]:
    """Which gap of the chain each item belongs to, all items side by side."""
    places = np.arange(len(chain) + 1)
    found = np.zeros(len(items), dtype=np.int64)
    active = np.arange(len(items))
    while len(active):
        rows = np.arange(len(active))
        below = np.cumsum(weight, axis=1)  # of the gaps up to and including each
        middle = np.minimum((below < 0.5).sum(axis=1), len(chain) - 1)
        before = np.maximum(middle - 1, 0)
        closer = np.abs(below[rows, before] - 0.5) < np.abs(below[rows, middle] - 0.5)
        middle = np.where(closer, before, middle)
        questions = np.stack([np.full(len(active), head), items[active], chain[middle]], axis=1)
        nearer = yield questions
        agrees = (places <= middle[:, None]) == nearer[:, None]
        weight = weight * np.where(agrees, 1 - noise, noise)
        weight /= weight.sum(axis=1, keepdims=True)
        best = np.argmax(weight, axis=1)
        sure = weight[rows, best] >= 1 - doubt
        found[active[sure]] = best[sure]
        active, weight = active[~sure], weight[~sure]
    return found


def repeated(strategy: Strategy[T], noise: float, doubt: float) -> Strategy[T]:
    """Put every question of a strategy several times and believe the majority.

    How often: so that a majority is wrong with probability at most `doubt` (Hoeffding's bound).

    Examples
    --------
    >>> import nearer, numpy as np
    >>> exact = nearer.PointOracle(np.arange(30.0))
    >>> people = nearer.NoisyOracle(exact, flip=0.2, noise="fresh", random_state=0)
    >>> nearer.run(repeated(nearer.asking.farthest_object(0, 30), noise=0.2, doubt=1e-4), people)
    29
    """
    times = 1
    if noise > 0:
        times += 2 * math.ceil(math.log(1 / doubt) / (1 - 2 * noise) ** 2 / 4)

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
