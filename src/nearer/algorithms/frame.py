"""The frame: some objects ranked from a few heads, and the dimension they need.

The objects are ranked from one far head after another. Rankings from k heads can be obeyed in k
dimensions almost whatever they are; so after each, the fewest dimensions below k that obey them are
sought (`obeying`). Where there are none, another head is ranked from. Where there are, the answers
have to confirm it: the positions must predict random answers from other heads that no fit has seen.

Data that has no low dimension (pixels, text) never gets there, and the search ends when it has
ranked from as many heads as it may; `dimension` is then None.

Objects in one place are put in order by dimensions that do not exist. So where the first head has
twins, where a fit disobeys, and where none is found, twins are looked for (`twins`); from there on
one object stands for each place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearer.algorithms.equal_distances import equal_within, wrong_answers
from nearer.algorithms.obeying import fewest_dimensions, is_bent, predicts_better
from nearer.algorithms.twins import count_twins, find_twins
from nearer.asking.protocol import Strategy, together
from nearer.asking.sort import Order, sort_objects
from nearer.fitting.descent import principal_axes
from nearer.questions import Floats, Objects, answered, balanced_questions

__all__ = ["Frame", "build_frame", "chain_triplets"]

# Random questions that test a dimension, and the share of them it must predict. With the dimension
# right and d + 1 heads 90 to 100 % are, with one too few 60 to 90 %. A wrong "yes" is mended later,
# by near ties; a wrong "no" costs another ranking. `python -m benchmarks sensitivity` halves and
# doubles them.
_CHECKS = 100  # at most; two an object where there are few
_CONFIRMED = 0.95
_CROWD = 0.25  # of the objects in one place: such places are looked for one by one


@dataclass
class Frame:
    """What is known of some of the objects; filled while asking.

    Attributes
    ----------
    objects
        ``(m,)`` which, ascending; one for each place.
    twins
        Objects that were dropped → those whose place they share.
    searched
        Whether twins were looked for: where some hundred objects have none, few of all do.
    heads
        Places in `objects`, in the order in which they were ranked from.
    chains
        For each head, the places of all others, nearest first.
    checks
        Answers to random questions about them, as triplets of places.
    positions
        ``(m, d)`` of the last fit that obeys the answers, or None.
    dimension
        The confirmed dimension, or None.
    evidence
        Dimension → what the last fit in it left.
    """

    objects: Objects
    twins: dict[int, int] = field(default_factory=dict)
    searched: bool = False
    heads: list[int] = field(default_factory=list)
    chains: list[Objects] = field(default_factory=list)
    checks: Objects = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    positions: Floats | None = None
    dimension: int | None = None
    evidence: dict[int, dict[str, Any]] = field(default_factory=dict)

    def share(self, same: Objects) -> None:
        """Keep one object for each place: `same` says whose place each of them shares."""
        kept, at = np.unique(same, return_inverse=True)
        gone = same != np.arange(len(same))
        pairs = self.objects[gone].tolist(), self.objects[same[gone]].tolist()
        self.twins.update(zip(*pairs, strict=True))
        chains: dict[int, Objects] = {}
        for head, chain in zip(at[self.heads].tolist(), self.chains, strict=True):
            left = at[chain[~gone[chain]]]
            chains.setdefault(head, left[left != head])
        self.heads, self.chains = list(chains), list(chains.values())
        self.checks = at[self.checks[~gone[self.checks].any(axis=1)]]
        self.objects, self.positions, self.dimension = self.objects[kept], None, None

    def ranks(self) -> Floats:
        """``(m, k)``: each member's rank from each head."""
        ranks = np.zeros((len(self.objects), len(self.heads)))
        for column, chain in enumerate(self.chains):
            ranks[chain, column] = np.arange(1, len(chain) + 1)
        return ranks

    def local_triplets(self) -> Objects:
        """All that the rankings and checks say, as triplets of places in `objects`."""
        rows = [chain_triplets(h, c) for h, c in zip(self.heads, self.chains, strict=True)]
        return np.concatenate([self.checks, *rows])

    def triplets(self) -> Objects:
        """The same of objects."""
        return self.objects[self.local_triplets()]

    def far_heads(self, count: int) -> list[int]:
        """Members that are far, in rank, from all heads so far and from each other."""
        ranks = self.ranks()
        # an object is its own head at rank 0; two objects are at least as far apart as any head's
        # ranks of them differ
        gap = ranks.min(axis=1)
        chosen: list[int] = []
        while len(chosen) < min(count, len(self.objects) - len(self.heads)):
            chosen.append(int(np.argmax(gap)))
            gap = np.minimum(gap, np.abs(ranks - ranks[chosen[-1]]).max(axis=1))
        return chosen


def chain_triplets(head: int, chain: Objects) -> Objects:
    """Triplets that say what a ranking says: members 1, 2, 4, 8 … places apart.

    Neighbours alone would do, but a fit sees farther with the others.

    Examples
    --------
    >>> import numpy as np
    >>> chain_triplets(9, np.array([4, 5, 6])).tolist()
    [[9, 4, 5], [9, 5, 6], [9, 4, 6]]
    """
    rows, step = [np.empty((0, 3), dtype=np.int64)], 1
    while step < len(chain):
        near, far = chain[:-step], chain[step:]
        rows.append(np.stack([np.full(len(near), head), near, far], axis=1))
        step *= 2
    return np.concatenate(rows)


def build_frame(
    frame: Frame, most_heads: int, order: Order, rng: np.random.Generator
) -> Strategy[None]:
    """Rank from one far head after another until a dimension is confirmed.

    Parameters
    ----------
    frame
        Filled while asking.
    most_heads
        After so many, the search is given up.
    order
        As for `nearer.rank_objects`; where rounds count, two heads are ranked from at a time.
    rng
        Source of the starts, the sorts and the questions that confirm.
    """
    at_a_time = 2 if order == "fewest-rounds" else 1
    looked = yield from _drop_crowds(frame, order, rng)
    if looked and len(frame.objects) > 2:  # three heads tell roughly who is near whom
        while len(frame.heads) < min(3, len(frame.objects)):
            yield from _rank_from(frame, frame.far_heads(1), order, rng)
        yield from _share_places(frame, frame.ranks(), rng)
    while len(frame.objects) > 2:
        if len(frame.heads) > 1 and (yield from _confirm(frame, rng)):
            assert frame.positions is not None
            if looked or not is_bent(frame.positions, frame.local_triplets()):
                return
        count = min(at_a_time, most_heads - len(frame.heads), len(frame.objects) - len(frame.heads))
        if frame.dimension is None and count > 0:
            # the first two one by one: an end of the cloud is known only from the other
            count = count if len(frame.heads) > 1 else 1
            yield from _rank_from(frame, frame.far_heads(count), order, rng)
            continue
        if looked:
            return
        looked = True
        start = frame.ranks() if frame.positions is None else frame.positions
        if not (yield from _share_places(frame, start, rng)):
            return
    frame.positions, frame.dimension = np.arange(float(len(frame.objects)))[:, None], 1


def _drop_crowds(frame: Frame, order: Order, rng: np.random.Generator) -> Strategy[bool]:
    """Rank from a head, and from others while they share a place with many; whether any has twins.

    Where places are so few, there are no sides from which twins could be told.
    """
    crowd, twins = len(frame.objects) * _CROWD, 0
    while len(frame.heads) < len(frame.objects):
        head = frame.far_heads(1) if frame.heads else [int(rng.integers(len(frame.objects)))]
        yield from _rank_from(frame, head, order, rng)
        rest = frame.chains[-1][~np.isin(frame.chains[-1], frame.heads)]
        twins = (yield from count_twins(frame.objects[rest])) if len(rest) else 0
        if twins < crowd:
            break
        same = np.arange(len(frame.objects))
        same[rest[:twins]] = frame.heads[-1]
        frame.share(same)
    return twins > 0 or bool(frame.twins)


def _share_places(frame: Frame, positions: Floats, rng: np.random.Generator) -> Strategy[bool]:
    """Look for twins, and drop them; whether there were any."""
    frame.searched = True
    same, crowds = np.arange(len(frame.objects)), list(frame.twins.values())
    rest = np.flatnonzero(~np.isin(frame.objects, crowds))  # the others are no twins of a crowd
    found = yield from find_twins(
        frame.objects[rest],
        positions[rest],
        rng,
        ranks=frame.ranks()[rest],
        suspected=bool(crowds),
    )
    same[rest] = rest[found]
    if some := bool((found != np.arange(len(rest))).any()):
        frame.share(same)
        frame.evidence.clear()
    return some


def _confirm(frame: Frame, rng: np.random.Generator) -> Strategy[bool]:
    """Fit the fewest dimensions; whether they predict answers that no fit has seen."""
    seen, start = frame.local_triplets(), _start(frame.ranks(), rng)
    found = fewest_dimensions(seen, start, frame.evidence)
    frame.positions = found[0] if found else None
    if frame.positions is None:
        return False
    fresh = yield from _ask_others(frame, rng)
    fewer = found[1:] if len(fresh) else []
    if fewer and not predicts_better(found[0], fewer[0], seen, fresh, clearly=True):
        frame.positions = fewer[0]  # equal distances are all that it disobeys
    equal = equal_within(frame.positions, seen)
    predicted = 1 - float(wrong_answers(frame.positions, fresh, equal).mean()) if len(fresh) else 1
    frame.evidence[frame.positions.shape[1]]["predicted"] = predicted
    if predicted >= _CONFIRMED:
        frame.dimension = frame.positions.shape[1]
    return frame.dimension is not None


def _rank_from(
    frame: Frame, heads: list[int], order: Order, rng: np.random.Generator
) -> Strategy[None]:
    objects = frame.objects
    sorts = [
        sort_objects(int(objects[h]), np.delete(objects, h), order=order, random_state=rng)
        for h in heads
    ]
    for head, chain in zip(heads, (yield from together(*sorts)), strict=True):
        frame.heads.append(head)
        frame.chains.append(np.searchsorted(objects, chain))


def _ask_others(frame: Frame, rng: np.random.Generator) -> Strategy[Objects]:
    """Answers that no fit has seen, from those who were not ranked from; none are left with few."""
    m = len(frame.objects)
    questions = np.empty((0, 3), dtype=np.int64)
    if m > 3:
        others = np.delete(np.arange(m), frame.heads)
        count = min(_CHECKS, 2 * m)
        questions = balanced_questions(m, count, rng, first_head=int(rng.integers(m)))
        questions = questions[np.isin(questions[:, 0], others)]
    if len(questions):
        questions = answered(questions, (yield frame.objects[questions]))
        frame.checks = np.concatenate([frame.checks, questions])
    return questions


def _start(ranks: Floats, rng: np.random.Generator) -> Floats:
    """Principal axes of the ranks: seen from far away, a distance is linear in the position."""
    m, k = ranks.shape
    X = principal_axes(ranks / m, min(k, m - 1))
    X /= max(float(X.std()), 1e-12)
    return np.asarray(np.sqrt(m) * X + 0.01 * rng.standard_normal(X.shape))
