"""Objects in few dimensions: rank from a few heads, place the others, ask about near ties.

1. *Frame.* Some objects, all where there are few, are ranked from one far head after another until
   the dimension is known (`frame`), and refined as in 3: others can be placed no better than it is.
2. *Slots.* The other objects are placed by search in the heads' chains (`slotting`).
3. *Detail.* Everything is fitted; then comes what the fit cannot tell (`near_ties`), another fit,
   and so on, until those answers say that it is good enough. A dimension that few heads do not show
   comes to light here: near ties cannot be obeyed without it, and answers that no fit has seen are
   predicted better with it (`obeying`).

The natural unit of cost is n·d·log2 n comparisons: each of n objects has d coordinates, each worth
log2 n bits.

Where the frame finds no dimension, or many that its own detail refutes, its answers are kept and
`high_dimensional` takes over.
"""

from __future__ import annotations

import numpy as np

from nearer.algorithms.draft import Draft
from nearer.algorithms.frame import Frame, build_frame
from nearer.algorithms.near_ties import RankingErrors, near_ties
from nearer.algorithms.obeying import ObeyingFit, is_bent, possible_dimensions
from nearer.algorithms.slotting import Anchors, Slots, slot_objects, spread_heads
from nearer.algorithms.twins import find_twins, nearest_places
from nearer.asking.protocol import Strategy
from nearer.asking.sort import Order
from nearer.errors import BudgetSpent
from nearer.questions import Floats, Objects, Triplets, answered

__all__ = ["LowDimensional"]

# What each number trades; `python -m benchmarks sensitivity` halves and doubles those that runs
# without a budget depend on.
#
# Questions an object in each round of detail, among its nearest (kNN) and anywhere (tau): fewer
# take more fits, more are chosen by worse ones.
_LOCAL, _GLOBAL = 1, 1
_MOST, _MOST_EACH = 1.5, 20  # at most so many n·d·log2 n and so many an object, in all
# Objects that are ranked: too few do not show the dimension (ten for each), too many cost more than
# slotting them would.
_MEMBERS = 100
_IN_FRAME = 0.97  # quality of the frame, which costs little: less makes slots and detail worse
_TO_SLOT = 2  # heads more than dimensions, that others are placed from: fewer leave mirror images
# With a budget: a frame that is cheap enough to leave some of it.
_FEWEST_MEMBERS = 30
_RANKINGS = 6  # of the frame, as many as three dimensions take
_SLOT = 25  # comparisons an object placed, likewise
# n·log2 n comparisons that rankings may cost before a dimension is given up: with half as many the
# 16 of 500 objects are missed (τ .94 for .99), twice as many are lost where there are none.
_FRAME = 3.1
# Dimensions of a frame that is given up where its detail refutes it. With fewer the detail of all
# objects finds those that are missing (from 7 to the 14 of a mixture of 400 objects, τ .992; .888
# if given up); with more it took half an hour for 1,000 handwritten digits, which have none.
_IN_SIGHT = 16


class LowDimensional:
    """The strategy, with what it has found so far in a draft.

    Parameters
    ----------
    draft
        Filled while asking.
    budget
        How many comparisons there will be; None: as many as it takes.
    order
        As for `nearer.rank_objects`.
    quality
        The expected τ that is enough; 1: none is.
    """

    def __init__(self, draft: Draft, budget: int | None, order: Order, quality: float) -> None:
        self.draft, self.budget, self.order, self.quality = draft, budget, order, quality
        self._frame = Frame(np.empty(0, dtype=np.int64))
        self._slots: Slots | None = None
        self._same = np.arange(draft.n)  # whose place each object shares

    def ask(self) -> Strategy[bool]:
        """Find positions; whether there is a dimension that fits."""
        draft, frame_size = self.draft, _members(self.draft.n, self.budget)
        if not frame_size:
            return False
        try:
            yield from draft.phase("frame", self._build(frame_size))
            frame = self._frame
            if frame.positions is None or frame.dimension is None:
                return False
            if self._all_places_seen():
                if len(frame.objects) > 2:  # fewer tell nothing
                    yield from draft.phase("detail", self._refine(self.quality, in_frame=True))
                yield from draft.phase("places", self._share())
                return True
            if len(frame.objects) + len(frame.twins) < draft.n:
                yield from draft.phase("frame detail", self._refine(_IN_FRAME, in_frame=True))
                if frame.dimension is None:
                    return False  # type: ignore[unreachable] # the detail has taken it back
                yield from draft.phase("slots", self._slot())
            yield from draft.phase("detail", self._refine(self.quality))
        except BudgetSpent:
            if self._frame.positions is not None and draft.places is None:
                self._fit(in_frame=False)
            raise
        return True

    def _build(self, size: int) -> Strategy[str]:
        draft, rng = self.draft, self.draft.rng
        frame = self._frame = Frame(np.sort(rng.permutation(draft.n)[:size]))
        draft.evidence = frame.evidence
        try:
            yield from build_frame(frame, _most_heads(draft.n, size), self.order, rng)
        finally:
            draft.heads = frame.objects[frame.heads]
            self._take_as_one(frame.twins)
        note = f"{len(frame.objects)} places hold {size} objects; " if frame.twins else ""
        note += f"{len(frame.heads)} heads "
        if frame.dimension is None:
            return note + f"need more than {len(frame.heads) - 1} dimensions"
        return note + f"fit in {frame.dimension} dimensions"

    def _all_places_seen(self) -> bool:
        """Whether nobody in the frame is alone: no place is left to be seen (Good 1953)."""
        frame = self._frame
        seen = np.bincount(self._same[[*frame.objects, *frame.twins]])
        return bool(frame.twins) and bool((seen != 1).all())

    def _take_as_one(self, twins: dict[int, int]) -> None:
        for one, other in twins.items():
            self._same[one] = other
        while (self._same[self._same] != self._same).any():
            self._same = self._same[self._same]

    def _share(self) -> Strategy[str]:
        """All objects share the few places of the frame: ask each which is nearest to it."""
        draft, frame = self.draft, self._frame
        assert frame.positions is not None
        draft.places = frame.objects
        d, m = frame.positions.shape[1], len(frame.objects)
        if m > 1:  # one place for all tells nothing of dimensions
            draft.span = possible_dimensions(d, m, draft.evidence) if m > 2 else (1, 1)
        draft.positions = np.tile(frame.positions[:1], (draft.n, 1))
        draft.positions[frame.objects] = frame.positions
        draft.positions = draft.positions[self._same]
        others = np.setdiff1d(self._objects(in_frame=False), frame.objects)
        at = yield from nearest_places(others, frame.objects)
        draft.positions[others] = frame.positions[at]
        return f"{draft.n} objects share {len(frame.objects)} places"

    def _slot(self) -> Strategy[str]:
        frame = self._frame
        assert frame.positions is not None
        others = np.setdiff1d(self._objects(in_frame=False), frame.objects)
        heads = spread_heads(frame.positions, frame.positions.shape[1] + _TO_SLOT)
        self.draft.heads = frame.objects[heads]
        anchors = Anchors(frame.objects, frame.positions, heads)
        self._slots = Slots(anchors, others)
        yield from slot_objects(self._slots, pairs=self.order == "fewest-rounds")
        return f"{len(others)} objects placed"

    def _refine(self, quality: float, *, in_frame: bool = False) -> Strategy[str]:
        """Fit and ask about near ties until the fit is good."""
        draft, fit = self.draft, self._fit(in_frame)
        looked = bool(self._frame.twins) or self._frame.searched
        if self._frame.twins and self._slots is not None:  # among those slotted there are more
            yield from self._look_for_twins(fit.positions, in_frame)
            fit = self._fit(in_frame, anew=True)
        errors = RankingErrors(len(fit.positions))
        while (left := self._most(fit.dimension, in_frame) - draft.record.n_comparisons) > 0:
            ties = near_ties(fit.positions, _LOCAL, _GLOBAL, draft.rng, scale=errors.scale)[:left]
            before = draft.record.n_comparisons
            answers = yield self._objects(in_frame)[ties.questions]
            errors.add(ties, fit.wrong(answered(ties.questions, answers)))
            draft.expected_tau = errors.tau
            n_fresh = draft.record.n_comparisons - before
            triplets = self._triplets(in_frame)
            fit.to(triplets, n_fresh if looked else 0)
            if not looked and is_bent(fit.positions, triplets):
                looked = True
                if (yield from self._look_for_twins(fit.positions, in_frame)):
                    fit = self._fit(in_frame, anew=True)
                    errors = RankingErrors(len(fit.positions))
                    continue
                fit.to(triplets, n_fresh)
            self._keep(fit, in_frame)
            if in_frame and fit.refuted and fit.dimension > _IN_SIGHT:
                self._frame.dimension = None
                return f"in {fit.dimension} dimensions and one more answers are disobeyed"
            if not n_fresh:
                return "no further question tells anything"
            # without ties a few rounds bring little where dimensions are many, or missing: go on
            if quality < 1 and (errors.good_enough(quality) or (fit.tied and errors.stuck)):
                return f"τ is expected to be {errors.tau:.3f}"
        return f"{draft.record.n_comparisons} comparisons are the most"

    def _look_for_twins(self, positions: Floats, in_frame: bool) -> Strategy[bool]:
        """Take objects that share a place as one; whether there are any."""
        objects, frame = self._objects(in_frame), self._frame
        known = bool(frame.twins)
        ranks = np.full((len(objects), len(frame.heads)), np.nan)
        ranks[np.searchsorted(objects, frame.objects)] = frame.ranks()
        same = yield from find_twins(
            objects, positions, self.draft.rng, ranks=ranks, suspected=known
        )
        if in_frame:
            frame.searched = True
            frame.share(same)
            frame.positions = positions[np.unique(same)]
            self._take_as_one(frame.twins)
        else:  # one of the frame stands for the others: it was ranked
            ranked = np.isin(objects, frame.objects)
            stands = np.arange(len(objects))
            stands[same[ranked]] = np.flatnonzero(ranked)
            same = stands[same]
            self._take_as_one(dict(zip(objects.tolist(), objects[same].tolist(), strict=True)))
        return bool((same != np.arange(len(same))).any())

    def _fit(self, in_frame: bool, *, anew: bool = False) -> ObeyingFit:
        """Fit all that is known of some objects; anew: past where that may be stuck."""
        assert self._frame.positions is not None
        start = self._frame.positions if in_frame else self._start()
        fit = ObeyingFit(start, self.draft.evidence, self.draft.rng)
        fit.to(self._triplets(in_frame))
        if anew:
            fit.unbend(self._triplets(in_frame))
        self._keep(fit, in_frame)
        return fit

    def _keep(self, fit: ObeyingFit, in_frame: bool) -> None:
        if in_frame:
            self._frame.positions, self._frame.dimension = fit.positions, fit.dimension
            return
        objects, draft = self._objects(in_frame), self.draft
        draft.positions = np.empty((draft.n, fit.dimension))
        draft.positions[objects] = fit.positions
        draft.positions = draft.positions[self._same]
        draft.span = possible_dimensions(fit.dimension, len(objects), draft.evidence)

    def _objects(self, in_frame: bool) -> Objects:
        """One for each place, in the frame or of all."""
        return self._frame.objects if in_frame else np.unique(self._same)

    def _most(self, d: int, in_frame: bool) -> int:
        """How many comparisons to stop at, if nothing else ends the detail before."""
        n = self.draft.n
        m = len(self._frame.objects) + len(self._frame.twins) if in_frame else n
        if self.budget is not None:
            return self.budget - _SLOT * (n - m)
        return int(_MOST * m * d * np.log2(m)) + _MOST_EACH * m

    def _triplets(self, in_frame: bool) -> Triplets:
        """What rankings and searches imply, then what was asked, of one object for each place."""
        implied = [self._frame.triplets()]
        if self._slots is not None:
            implied.append(self._slots.triplets())
        objects = self._objects(in_frame)
        place = np.full(self.draft.n, -1)
        place[objects] = np.arange(len(objects))
        rows = place[np.concatenate([*implied, self.draft.triplets])]
        return np.asarray(rows[(rows >= 0).all(axis=1)])

    def _start(self) -> Floats:
        """Where everyone is, as far as is known."""
        frame, draft = self._frame, self.draft
        if draft.positions is not None:
            return np.asarray(draft.positions[self._objects(in_frame=False)])
        assert frame.positions is not None
        X = np.empty((draft.n, frame.positions.shape[1]))
        X[:] = frame.positions.mean(axis=0)
        X += 0.1 * frame.positions.std() * draft.rng.standard_normal(X.shape)
        X[frame.objects] = frame.positions
        if self._slots is not None:
            X[self._slots.objects] = self._slots.positions
        return X[self._objects(in_frame=False)]


def _members(n: int, budget: int | None) -> int:
    """How many objects are ranked; 0: there is no budget for it."""
    size = min(n, _MEMBERS)
    if budget is None:
        return size
    while size >= min(n, _FEWEST_MEMBERS):
        if _RANKINGS * size * np.log2(size) + _SLOT * (n - size) <= budget:
            return size
        size -= 1
    return 0


def _most_heads(n: int, m: int) -> int:
    """How many heads may be ranked from before a dimension is given up.

    An object in ten for each dimension, and a few: fewer objects than that do not determine a
    dimension. More where the rankings are a small part of all that is asked.
    """
    return max(min(m, 8), m // 10 + 3, min(30, int(_FRAME * n * np.log2(n) / (m * np.log2(m)))))
