"""Objects in more dimensions than answers can tell (pixels, text): what predicts best.

No positions in few dimensions obey all answers, so obedience says nothing. Random questions are
asked; of the dimensions 1, 2, 4, … 128 and some spreads of a normal prior, the pair that best
predicts answers that were held out is taken. Then comes the detail: near ties (`near_ties`), most
of them among the nearest of each head, a fit, and so on.

The unit of cost is n·log2 n comparisons. How many of them are asked, and how they are divided, was
set while looking at handwritten digits, spam and newsgroup posts, the data of
`python -m benchmarks adaptive`; on other data it is a guess.
"""

from __future__ import annotations

import numpy as np

from nearer.algorithms.draft import Draft
from nearer.algorithms.equal_distances import equal_within, wrong_answers
from nearer.algorithms.near_ties import RankingErrors, near_ties
from nearer.algorithms.slotting import spread_heads
from nearer.asking.protocol import Strategy
from nearer.errors import BudgetSpent
from nearer.fitting.centre import fit_centre
from nearer.fitting.solver import disobeyed
from nearer.questions import Answers, Floats, Triplets, answered, balanced_questions

__all__ = ["HighDimensional"]

# Comparisons against τ and kNN where no dimension fits, and time; set as said above, halved and
# doubled by `python -m benchmarks sensitivity`.
_ENOUGH = 8.4  # n·log2 n comparisons
_PREDICTABLE = 0.78  # share of held-out answers, by which a map in few dimensions is in sight, …
# … in at most so many; then it gets what they take, n·log2 n comparisons each
_IN_SIGHT = 16
_RANDOM = 0.7  # of the comparisons
_REFITS = 8  # rounds of detail
_LOCAL = 0.7  # of the detail, among the nearest of each head
_DIMENSIONS = (1, 2, 4, 8, 16, 32, 64, 128)
_SPREADS = (8.0, 4.0, 2.0, 1.0)  # of the prior
_STEPS = 80  # of the optimiser, in the search for them
_HELD_OUT = 2000  # answers, if that is a tenth to a quarter of them
_MISSES = 3  # dimensions in a row that predict no better end the search


class HighDimensional:
    """The strategy, with what it has found so far in a draft.

    Parameters
    ----------
    draft
        Filled while asking; it may hold answers already.
    budget
        How many comparisons there will be; None: as many as it takes.
    quality
        The expected τ that is enough; 1: none is.
    """

    def __init__(self, draft: Draft, budget: int | None, quality: float) -> None:
        self.draft, self.budget, self.quality = draft, budget, quality
        self._unit = draft.n * np.log2(draft.n)
        self._spread = _SPREADS[0]
        # a frame of few objects may have cost most of what is enough: leave half of it
        least = draft.record.n_comparisons + _ENOUGH / 2 * self._unit
        self._enough = int(max(_ENOUGH * self._unit, least)) if budget is None else budget

    def ask(self) -> Strategy[None]:
        """Find positions that predict."""
        draft = self.draft
        try:
            yield from draft.phase("random", self._sample())
            yield from draft.phase("detail", self._refine())
        except BudgetSpent:
            self.fit()
            raise
        assert draft.positions is not None
        draft.heads = spread_heads(draft.positions, draft.positions.shape[1] + 3)

    def fit(self) -> None:
        """Fit all answers, from the positions so far."""
        draft = self.draft
        triplets = draft.triplets
        X = draft.positions
        if X is None:  # before there is evidence
            d = 1 if len(triplets) < draft.n else 2
            X = draft.rng.standard_normal((draft.n, d))
        if len(triplets):
            X = fit_centre(triplets, X, self._spread).positions
            share = float(disobeyed(X, triplets).mean())
            draft.evidence.setdefault(X.shape[1], {})["disobeyed"] = share
        draft.positions = X

    def _sample(self) -> Strategy[str]:
        draft, n = self.draft, self.draft.n
        triplets = np.empty((0, 3), dtype=np.int64)
        for again in (False, True):
            wanted = int(_RANDOM * (self._enough - draft.record.n_comparisons))
            wanted = min(max(wanted, 1), n * (n - 1) * (n - 2) // 2)
            questions = balanced_questions(n, wanted, draft.rng)
            triplets = np.concatenate([triplets, answered(questions, (yield questions))])
            share = np.clip(_HELD_OUT / len(triplets), 0.1, 0.25)
            predicted = self._choose_dimension(triplets, draft.rng.random(len(triplets)) < share)
            assert draft.positions is not None
            in_sight = draft.positions.shape[1] <= _IN_SIGHT and predicted >= _PREDICTABLE
            if again or not in_sight or self.budget is not None:
                break
            self._enough = max(self._enough, int(_IN_SIGHT * self._unit))
        assert draft.positions is not None
        return f"{draft.positions.shape[1]} dimensions predict best"

    def _choose_dimension(self, triplets: Triplets, test: Answers) -> float:
        """Double the dimension while that predicts held-out answers better; how well it does.

        While there is an answer, which is a bit at most, for each coordinate.
        """
        draft, n = self.draft, self.draft.n
        train, held_out = triplets[~test], triplets[test]
        if not len(train) or not len(held_out):
            self.fit()
            return 0.0
        X, best, misses = np.empty((n, 0)), -1.0, 0
        fitted = X
        most = min(n - 1, max(1, self._enough // n))
        for d in (d for d in _DIMENSIONS if d <= most):
            more = draft.rng.standard_normal((n, d - fitted.shape[1]))
            start = np.hstack([fitted, more * (fitted.std() if fitted.size else 1)])
            fitted, spread, predicted = _choose_spread(train, held_out, start)
            draft.evidence.setdefault(d, {}).update(predicted=predicted, spread=spread)
            if predicted > best:
                X, best, self._spread, misses = fitted, predicted, spread, 0
            elif (misses := misses + 1) == _MISSES:
                break
        draft.positions = X
        return best

    def _refine(self) -> Strategy[str]:
        draft, errors = self.draft, RankingErrors(self.draft.n)
        for to_go in range(_REFITS, 0, -1):
            left = self._enough - draft.record.n_comparisons
            if left < 1:
                break
            assert draft.positions is not None
            each = max(1, -(-left // (to_go * draft.n)))
            local = int(np.ceil(_LOCAL * each))
            ties = near_ties(draft.positions, local, each - local, draft.rng, scale=errors.scale)[
                : min(left, -(-left // to_go))
            ]
            errors.add(ties, ~(yield ties.questions))
            draft.expected_tau = errors.tau
            self.fit()
            if self.quality < 1 and errors.tau >= self.quality:
                return f"τ is expected to be {errors.tau:.3f}"
        return f"{draft.record.n_comparisons} comparisons are enough"


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
        start = fit_centre(train, start, spread, max_iter=_STEPS).positions
        wrong = wrong_answers(start, held_out, equal_within(start, train))
        right = 1 - float(wrong.mean())
        fits.append((start, spread, right))
        if right < best - error:
            break
        best = max(best, right)
        error = 0.5 * float(np.sqrt(best * (1 - best) / len(held_out)))
    return next(fit for fit in fits if fit[2] >= best - error)
