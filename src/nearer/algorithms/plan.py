"""What to ask next, for objects few enough to be fitted together: the plan of `nearer.adaptive`.

1. *Frame.* Rank a subset from a few heads until the dimension is certain (`frame`).
2. *Slots.* Place the other objects by search in the heads' chains (`slotting`).
3. *Detail.* Fit everything; then ask what the fit cannot tell (`refining`), fit again, and so on.

The natural unit of cost is n·d·log2 n comparisons: each of n objects has d coordinates, each worth
log2 n bits. The plan stops at `ENOUGH` of them.

Where no dimension fits (pixels, text), the frame is kept as answers like others. Random questions
follow; the dimension is the one that best predicts answers that were held out. Then comes the
detail, as above.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.frame import Frame, build_frame, rank_another
from nearer.algorithms.refining import near_ties
from nearer.algorithms.slotting import Anchors, Slots, slot_objects
from nearer.algorithms.twins import nearest_places, without_twins
from nearer.asking.protocol import Asking
from nearer.asking.record import Record
from nearer.embedding import Phase
from nearer.fitting.centre import fit_centre
from nearer.fitting.misplaced import relocate
from nearer.fitting.solver import disobeyed
from nearer.questions import answered, balanced_questions

__all__ = ["ENOUGH", "Plan"]

Floats = NDArray[np.float64]
Objects = NDArray[np.int64]
Triplets = NDArray[np.int64]

ENOUGH = 1.35  # n·d·log2 n comparisons
_ENOUGH_UNFITTED = 8.4  # n·log2 n comparisons, where no dimension fits
_ENOUGH_PREDICTABLE = 15.8  # the same where the first of them predict the others well
_PREDICTABLE = 0.78  # share of held-out answers
_IN_SIGHT = 16  # dimensions that so many comparisons can determine
_CHECKS = 500  # random questions that tell whether the dimension of the frame is all there is
_CERTAIN = 0.98  # share of them that are predicted where it is
_SHARP = 0.4  # spread of the prior over n, where answers fit
_MOST_HEADS = 30
_FRAME_SHARE = 0.37  # of the comparisons where no dimension fits, at most, for the frame
_FRAME = 7.4  # members of the frame, times the square root of n
_SMALLEST = 100
_LARGEST = 165
_TOO_FEW = 30
_PER_MEMBER = 220  # comparisons of the budget for each member of the frame
_REFITS = 4  # rounds of detail
_MORE_REFITS = 8  # the same where the answers do not fit
_LOCAL_SHARE = 0.3  # of the detail, among the nearest of each head
_MORE_LOCAL = 0.7  # the same where the answers do not fit
_RANDOM_SHARE = 0.7  # of the comparisons, where no dimension fits
_DIMENSIONS = (1, 2, 4, 8, 16, 32, 64, 128)
_SPREADS = (8.0, 4.0, 2.0, 1.0)  # of the prior, where no dimension fits
_SEARCH_STEPS = 80  # of the optimiser, in the search for them
_HELD_OUT = 2000  # answers, if that is a tenth to a quarter of them
_MISSES = 3  # dimensions in a row that predict no better end the search
_GAIN = 0.002  # of held-out accuracy, that another dimension must bring


class Plan:
    """An asking with a memory of what it has found; good at any moment for `finish`.

    Attributes
    ----------
    record
        What was asked; whoever drives `ask` has it recorded here.
    positions
        ``(n, d)`` of the last fit, or None.
    heads
        Objects that others were ranked from.
    places
        Where all objects share a few places, one object for each; else None.
    phases, evidence
        As in `nearer.Embedding`.
    """

    def __init__(self, n: int, budget: int | None, rng: np.random.Generator) -> None:
        self.n, self.budget, self.rng = n, budget, rng
        self.record = Record()
        self.phases: list[Phase] = []
        self.evidence: dict[int, dict[str, float]] = {}
        self.positions: Floats | None = None
        self.heads = np.empty(0, dtype=np.int64)
        self.places: Objects | None = None
        self._frame: Frame | None = None
        self._slots: Slots | None = None
        self._fitted = 0  # comparisons that the positions rest on
        self._spread = _SHARP * n
        self._unfitted = _ENOUGH_UNFITTED

    @property
    def fits(self) -> bool:
        """Whether the answers fit in a dimension that was confirmed."""
        return self._frame is not None and self._frame.dimension is not None

    def ask(self) -> Asking[None]:
        """Find positions; the questions are about objects 0 to n − 1."""
        size = _frame_size(self.n, self.budget)
        if size >= 3:
            yield from self._phase("frame", self._build(self.rng.permutation(self.n)[:size]))
        if self._frame is not None and self.fits:
            if len(self._frame.objects) < min(size, np.log2(self.n)):
                yield from self._phase("places", self._share(self._frame))
                return
            yield from self._phase("slots", self._slot(self._frame))
            self.fit()
        else:
            yield from self._phase("random", self._sample())
        yield from self._phase("detail", self._refine())

    def finish(self) -> Floats:
        """The best positions so far."""
        if self.positions is None or self._fitted < self.record.n_comparisons:
            self.fit()
        assert self.positions is not None
        return self.positions

    def fit(self, max_iter: int = 200) -> None:
        """Fit all answers, from where the objects are known to be."""
        start, rows = self._start(), [self.record.triplets]
        if self._frame is not None and self.fits:  # what rankings imply; else what was asked
            rows.append(self._frame.triplets())
        if self._slots is not None:
            rows.append(self._slots.triplets())
        triplets = np.concatenate(rows)
        if len(triplets):
            fit = fit_centre(triplets, start, self._spread, max_iter=max_iter)
            broken = disobeyed(fit.positions, triplets)
            if self.fits:
                moved = relocate(fit.positions, triplets.astype(np.int32), broken, self.rng)
                if (moved != fit.positions).any():
                    again = fit_centre(triplets, moved, self._spread, max_iter=max_iter)
                    still = disobeyed(again.positions, triplets)
                    if still.sum() < broken.sum():
                        fit, broken = again, still
            self.evidence.setdefault(start.shape[1], {})["disobeyed"] = float(broken.mean())
            self.positions = fit.positions
        else:
            self.positions = start
        self._fitted = self.record.n_comparisons

    def _start(self) -> Floats:
        if self.positions is not None:
            return self.positions
        frame = self._frame
        if frame is None or frame.positions is None:
            return self.rng.standard_normal((self.n, self._guess()))
        X = np.empty((self.n, frame.positions.shape[1]))
        X[:] = frame.positions.mean(axis=0)
        X += 0.1 * frame.positions.std() * self.rng.standard_normal(X.shape)
        X[frame.objects] = frame.positions
        if self._slots is not None:
            X[self._slots.objects] = self._slots.positions
        return X

    def _guess(self) -> int:
        """A dimension for a fit that comes before there is evidence."""
        return 1 if self.record.n_comparisons < self.n else 2

    def _phase(self, name: str, asking: Asking[str]) -> Asking[None]:
        comparisons, rounds = self.record.n_comparisons, self.record.n_rounds
        note = "the budget is spent"
        try:
            note = yield from asking
        finally:
            spent = self.record.n_comparisons - comparisons
            self.phases.append(Phase(name, spent, self.record.n_rounds - rounds, note))

    def _build(self, objects: Objects) -> Asking[str]:
        objects, dropped = yield from without_twins(objects, self.rng)
        frame, m = Frame(objects), len(objects)
        self._frame = frame
        if m < 3:
            frame.heads = list(range(m))
            frame.chains = [np.delete(np.arange(m), head) for head in frame.heads]
            frame.positions, frame.dimension = np.arange(float(m))[:, None], 1
            return f"{m} places hold all of {m + dropped} objects"
        if not dropped:
            frame.heads, frame.chains = [0], [np.arange(1, m)]
        ranking = m * np.log2(m / 2.5)  # about what one costs
        most = min(_MOST_HEADS, int(_FRAME_SHARE * self._enough(None) / ranking))
        yield from build_frame(frame, max(most, 4), self.rng)
        self.evidence = frame.evidence
        self.heads = frame.objects[frame.heads]
        if frame.dimension is None:
            return f"{len(frame.heads)} heads need more than {len(frame.heads) - 2} dimensions"
        yield from rank_another(frame, self.rng)
        self.heads = frame.objects[frame.heads]
        assert frame.positions is not None
        frame.positions = fit_centre(frame.local_triplets(), frame.positions, _SHARP * m).positions
        return f"{len(frame.heads)} heads fit in {frame.dimension} dimensions"

    def _slot(self, frame: Frame) -> Asking[str]:
        assert frame.positions is not None
        others = np.setdiff1d(np.arange(self.n), frame.objects)
        if len(others):
            anchors = Anchors(frame.objects, frame.positions, np.array(frame.heads))
            self._slots = Slots(anchors, others)
            yield from slot_objects(self._slots)
        return f"{len(others)} objects placed"

    def _share(self, frame: Frame) -> Asking[str]:
        """All objects share the few places of the frame: ask each which is nearest to it."""
        assert frame.positions is not None
        self.places = frame.objects
        others = np.setdiff1d(np.arange(self.n), frame.objects)
        at = yield from nearest_places(others, frame.objects)
        self.positions = np.empty((self.n, frame.positions.shape[1]))
        self.positions[frame.objects], self.positions[others] = frame.positions, frame.positions[at]
        self._fitted = self.record.n_comparisons
        return f"{self.n} objects share {len(frame.objects)} places"

    def _enough(self, d: int | None) -> int:
        """How many comparisons to stop at."""
        unit = self.n * np.log2(self.n)
        enough = int(self._unfitted * unit if d is None else ENOUGH * d * unit)
        return enough if self.budget is None else self.budget

    def _sample(self) -> Asking[str]:
        triplets = np.empty((0, 3), dtype=np.int64)
        for _ in range(2):
            wanted = int(_RANDOM_SHARE * (self._enough(None) - self.record.n_comparisons))
            questions = balanced_questions(self.n, min(max(wanted, 1), self._all()), self.rng)
            triplets = np.concatenate([triplets, answered(questions, (yield questions))])
            share = np.clip(_HELD_OUT / len(triplets), 0.1, 0.25)
            best = self._choose_dimension(triplets, self.rng.random(len(triplets)) < share)
            assert self.positions is not None
            in_sight = self.positions.shape[1] <= _IN_SIGHT and best >= _PREDICTABLE
            if not in_sight or self._unfitted > _ENOUGH_UNFITTED or self.budget is not None:
                break
            self._unfitted = _ENOUGH_PREDICTABLE
        assert self.positions is not None
        return f"{self.positions.shape[1]} dimensions predict best"

    def _choose_dimension(self, triplets: Triplets, test: NDArray[np.bool_]) -> float:
        """Double the dimension while that predicts held-out answers better; how well it does."""
        train, held_out = triplets[~test], triplets[test]
        if not len(train) or not len(held_out):
            self.fit()
            return 0.0
        X, best, misses = np.empty((self.n, 0)), -1.0, 0
        fitted = X
        for d in _DIMENSIONS:
            more = self.rng.standard_normal((self.n, d - fitted.shape[1]))
            start = np.hstack([fitted, more * (fitted.std() if fitted.size else 1)])
            fitted, spread, predicted = _choose_spread(train, held_out, start)
            self.evidence[d] = {"predicted": predicted, "spread": spread}
            if predicted >= best + _GAIN:
                X, best, self._spread, misses = fitted, predicted, spread, 0
            elif (misses := misses + 1) == _MISSES:
                break
        self.positions = X
        return best

    def _all(self) -> int:
        """How many questions there are."""
        return self.n * (self.n - 1) * (self.n - 2) // 2

    def _predicts(self) -> Asking[bool]:
        """Whether the positions predict answers that no fit has seen."""
        assert self.positions is not None
        questions = balanced_questions(self.n, min(_CHECKS, self.n // 2), self.rng)
        triplets = answered(questions, (yield questions))
        right = 1 - float(disobeyed(self.positions, triplets).mean())
        self.evidence[self.positions.shape[1]]["predicted"] = right
        return right >= _CERTAIN

    def _refine(self) -> Asking[str]:
        assert self.positions is not None
        d = self.positions.shape[1]
        enough, rounds, share = self._enough(d if self.fits else None), _REFITS, _LOCAL_SHARE
        if not self.fits or not (yield from self._predicts()):
            # d dimensions fit the frame at most, but not everything: there is more to find out
            enough, rounds, share = max(enough, self._enough(None)), _MORE_REFITS, _MORE_LOCAL
        for to_go in range(rounds, 0, -1):
            left = enough - self.record.n_comparisons
            if left < 1:
                break
            each = max(1, -(-left // (to_go * self.n)))
            local = int(np.ceil(share * each))
            questions = near_ties(self.positions, local, each - local, self.rng)
            yield self.rng.permutation(questions)[: min(left, -(-left // to_go))]
            self.fit()
        return f"{self.record.n_comparisons} comparisons are enough"


def _frame_size(n: int, budget: int | None) -> int:
    """How many objects the frame has; 0: there is no budget for one."""
    size = min(max(_SMALLEST, round(_FRAME * n**0.5)), _LARGEST)
    if budget is not None:
        size = min(size, budget // _PER_MEMBER)
        if size < _TOO_FEW < n:
            return 0
    return int(min(n, size))


def _choose_spread(
    train: Triplets, held_out: Triplets, start: Floats
) -> tuple[Floats, float, float]:
    """Positions, the prior's spread they were fitted with, and the share of answers they predict.

    Of spreads that predict equally well, within half a standard error, the widest is
    taken: it leaves most to the answers, and shows best in who is whose neighbour.
    """
    fits: list[tuple[Floats, float, float]] = []
    best = error = 0.0
    for spread in _SPREADS:
        start = fit_centre(train, start, spread, max_iter=_SEARCH_STEPS).positions
        right = 1 - float(disobeyed(start, held_out).mean())
        fits.append((start, spread, right))
        if right < best - error:
            break
        best = max(best, right)
        error = 0.5 * float(np.sqrt(best * (1 - best) / len(held_out)))
    return next(fit for fit in fits if fit[2] >= best - error)
