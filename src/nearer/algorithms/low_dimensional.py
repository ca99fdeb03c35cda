"""Objects in few dimensions: rank from a few heads, place the others, ask about near ties.

1. *Frame.* Some objects, all where there are few, are ranked from one far head after another until
   the dimension is known (`frame`).
2. *Slots.* The other objects are placed by search in the heads' chains (`slotting`).
3. *Detail.* Everything is fitted; then comes what the fit cannot tell (`near_ties`), another fit,
   and so on. A dimension that few heads do not show comes to light here: near ties cannot be obeyed
   without it, and answers that no fit has seen are predicted better with it (`obeying`).

The natural unit of cost is n·d·log2 n comparisons: each of n objects has d coordinates, each worth
log2 n bits.

Where the frame finds no dimension, its answers are kept and `high_dimensional` takes over.
"""

from __future__ import annotations

import numpy as np

from nearer.algorithms.draft import Draft
from nearer.algorithms.frame import Frame, build_frame, rank_more
from nearer.algorithms.near_ties import RankingErrors, near_ties
from nearer.algorithms.obeying import OBEYED, one_more_dimension
from nearer.algorithms.slotting import Anchors, Slots, slot_objects
from nearer.algorithms.twins import nearest_places, without_twins
from nearer.asking.protocol import Asking
from nearer.asking.sorting import Order
from nearer.errors import BudgetSpent
from nearer.fitting.centre import fit_centre
from nearer.fitting.misplaced import relocate
from nearer.fitting.solver import disobeyed
from nearer.questions import Floats, Triplets

__all__ = ["LowDimensional"]

# What each number trades; `python -m benchmarks sensitivity` halves and doubles them.
#
# Questions an object in each round of detail, among its nearest (kNN) and anywhere (tau): fewer take
# more fits, more are chosen by worse ones.
_LOCAL, _GLOBAL = 1, 1
_MOST, _MOST_EACH = 1.5, 20  # at most so many n·d·log2 n and so many an object, in all
# Objects that are ranked: too few do not show the dimension (ten for each), too many cost more than
# slotting them would.
_MEMBERS = 100
_TO_SLOT = 2  # heads more than dimensions, that others are placed from: fewer leave mirror images
# Spread of the prior, in units of the distance difference that is answered right with odds e : 1.
# Two objects next to each other in a ranking are then about a unit apart; in small sets so narrow a
# prior pulls harder than the answers.
_SPREAD = 0.4  # times n
_LEAST_SPREAD = 100.0
_WIDER, _WIDEST = 4.0, 10_000.0  # wider by steps, up to that, for far clusters and heavy tails …
_BENT = 0.003  # … while a larger share of the answers is disobeyed and each step halves it
_STEPS = 500  # of the optimiser: time against convergence, which lines of 1,000 objects need
_DOUBTFUL = 0.005  # share of answers disobeyed, above which another dimension is tried: time
# With a budget: a frame that is cheap enough to leave some of it.
_FEWEST_MEMBERS = 30
_RANKINGS = 6  # of the frame, as many as three dimensions take
_SLOT = 25  # comparisons an object placed, likewise
_FRAME = 3.1  # n·log2 n comparisons that rankings may cost before a dimension is given up


class LowDimensional:
    """The asking, with what it has found so far in a draft.

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
        self._spread = max(_LEAST_SPREAD, _SPREAD * draft.n)
        self._good = True  # as far as is known

    def ask(self) -> Asking[bool]:
        """Find positions; whether there is a dimension that fits."""
        draft, n = self.draft, self.draft.n
        size = _members(n, self.budget)
        if not size:
            return False
        try:
            yield from draft.phase("frame", self._build(size))
            if self._frame.dimension is None:
                return False
            if len(self._frame.objects) < min(size, np.log2(n)):
                yield from draft.phase("places", self._share())
                return True
            yield from draft.phase("slots", self._slot())
            self.fit()
            yield from draft.phase("detail", self._refine())
        except BudgetSpent:
            if self._frame.positions is not None and draft.places is None:
                self.fit()
            raise
        return True

    def _build(self, size: int) -> Asking[str]:
        draft, rng = self.draft, self.draft.rng
        objects = rng.permutation(draft.n)[:size]
        objects, dropped = yield from without_twins(objects, self.order, rng)
        frame, m = Frame(objects), len(objects)
        self._frame = frame
        if m < 3:
            frame.heads = list(range(m))
            frame.chains = [np.delete(np.arange(m), head) for head in frame.heads]
            frame.positions, frame.dimension = np.arange(float(m))[:, None], 1
            return f"{m} places hold all of {m + dropped} objects"
        if not dropped:
            frame.heads, frame.chains = [0], [np.arange(1, m)]
        draft.evidence = frame.evidence
        try:
            yield from build_frame(frame, _most_heads(draft.n, m), self.order, rng)
            if frame.dimension is not None and size < draft.n:
                yield from rank_more(frame, frame.dimension + _TO_SLOT, self.order, rng)
        finally:
            draft.heads = objects[frame.heads]
        if frame.dimension is None:
            return f"{len(frame.heads)} heads need more than {len(frame.heads) - 1} dimensions"
        return f"{len(frame.heads)} heads fit in {frame.dimension} dimensions"

    def _share(self) -> Asking[str]:
        """All objects share the few places of the frame: ask each which is nearest to it."""
        draft, frame = self.draft, self._frame
        assert frame.positions is not None
        draft.places = frame.objects
        others = np.setdiff1d(np.arange(draft.n), frame.objects)
        draft.positions = np.tile(frame.positions[:1], (draft.n, 1))
        draft.positions[frame.objects] = frame.positions
        at = yield from nearest_places(others, frame.objects)
        draft.positions[others] = frame.positions[at]
        return f"{draft.n} objects share {len(frame.objects)} places"

    def _slot(self) -> Asking[str]:
        frame = self._frame
        assert frame.positions is not None
        others = np.setdiff1d(np.arange(self.draft.n), frame.objects)
        if len(others):
            frame.positions = fit_centre(
                frame.local_triplets(), frame.positions, _LEAST_SPREAD
            ).positions
            anchors = Anchors(frame.objects, frame.positions, np.array(frame.heads))
            self._slots = Slots(anchors, others)
            yield from slot_objects(self._slots, pairs=self.order == "fewest-rounds")
        return f"{len(others)} objects placed"

    def _refine(self) -> Asking[str]:
        draft, errors = self.draft, RankingErrors(self.draft.n)
        while (left := self._most() - draft.record.n_comparisons) > 0:
            assert draft.positions is not None
            ties = near_ties(draft.positions, _LOCAL, _GLOBAL, draft.rng, scale=errors.scale)[:left]
            before = draft.record.n_comparisons
            wrong = ~(yield ties.questions)
            errors.add(ties, wrong)
            draft.expected_tau = errors.tau
            self.fit(draft.record.n_comparisons - before)
            if draft.record.n_comparisons == before:
                return "no further question tells anything"
            if self.quality < 1 and errors.good_enough(self.quality):
                return f"τ is expected to be {errors.tau:.3f}"
            if self.quality < 1 and errors.stuck:
                return f"τ is expected to be {errors.tau:.3f}, and further answers change little"
        return f"{draft.record.n_comparisons} comparisons are the most"

    def _most(self) -> int:
        """How many comparisons to stop at, if nothing else ends the detail before."""
        if self.budget is not None:
            return self.budget
        assert self.draft.positions is not None
        n, d = self.draft.positions.shape
        return int(_MOST * n * d * np.log2(n)) + _MOST_EACH * n

    def fit(self, n_fresh: int = 0) -> None:
        """Fit all answers, from where the objects are known to be; the last no fit has seen."""
        draft, triplets = self.draft, self._triplets()
        before = self._start() if draft.positions is None else draft.positions
        X, share = self._centre(before, triplets)
        moved = relocate(X, triplets.astype(np.int32), disobeyed(X, triplets), draft.rng)
        if (moved != X).any():
            again, less = self._centre(moved, triplets)
            X, share = (again, less) if less < share else (X, share)
        if share > _DOUBTFUL and n_fresh:  # something is stuck, or a dimension is missing
            seen, fresh = triplets[:-n_fresh], triplets[-n_fresh:]
            other = one_more_dimension(seen, fresh, before, draft.evidence, draft.rng)
            other, less = self._centre(other, triplets)
            if other.shape[1] > X.shape[1] or less < share:
                X, share = other, less
        draft.evidence.setdefault(X.shape[1], {})["disobeyed"] = share
        draft.positions = X
        self._good = share <= OBEYED

    def _centre(self, X: Floats, triplets: Triplets) -> tuple[Floats, float]:
        """The middle of what the answers allow, with a prior wide enough to obey them."""
        X = fit_centre(triplets, X, self._spread, max_iter=_STEPS).positions
        share = float(disobeyed(X, triplets).mean())
        while share > _BENT and self._spread < _WIDEST:
            wider = fit_centre(triplets, X, _WIDER * self._spread, max_iter=_STEPS).positions
            less = float(disobeyed(wider, triplets).mean())
            if less > share / 2:  # equal distances, which no prior is wide enough for
                break
            X, share = wider, less
            self._spread *= _WIDER
        return X, share

    def _triplets(self) -> Triplets:
        """What rankings and searches imply, then what was asked, in order."""
        implied = [self._frame.triplets()]
        if self._slots is not None:
            implied.append(self._slots.triplets())
        return np.concatenate([*implied, self.draft.triplets])

    def _start(self) -> Floats:
        frame, n, rng = self._frame, self.draft.n, self.draft.rng
        assert frame.positions is not None
        X = np.empty((n, frame.positions.shape[1]))
        X[:] = frame.positions.mean(axis=0)
        X += 0.1 * frame.positions.std() * rng.standard_normal(X.shape)
        X[frame.objects] = frame.positions
        if self._slots is not None:
            X[self._slots.objects] = self._slots.positions
        return X


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
