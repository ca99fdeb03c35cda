"""A belief is a fit with its noise and dimension, which is updated as answers come.

New answers are fitted from the present positions. Whenever there are a quarter more answers, the
belief is *reviewed*: fits from random starts compete with the present one, the noise is tuned, and,
if the dimension is free, more dimensions and one fewer are tried.
The curve, logistic or t, is the one under which held-out answers are more likely.

docs/adaptive.md has the equations, also of the expected τ. Each object's covariance holds the
others fixed, which makes variances too small, but positions have smaller errors than the noise
model predicts: ``python -m benchmarks quality`` shows the expected τ beside the true one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from nearer import checks
from nearer.fitting import heldout, likelihood
from nearer.fitting.heldout import HeldOut, HeldOutJudge, Tuned
from nearer.fitting.initial import FEWEST, NEARLY, ROUGH
from nearer.fitting.likelihood import Answers, Comparisons, Noise, as_answers
from nearer.fitting.posterior import (
    QUESTIONS,
    WEAK_PRIOR,
    Posterior,
    covariances_at,
    expected_tau,
    fit_posterior,
    log_posterior,
    near_questions,
    spread_out,
)
from nearer.fitting.solver import principal_axes
from nearer.questions import Floats, Objects, Questions, find, pack, random_questions
from nearer.trials import Trials

# `python -m benchmarks sensitivity` halves and doubles this.
_GROWTH = 1.25  # of the answers until the next review; less takes more time
_FIRST_DIMENSION = 2  # at first
_STARTS = 3  # new starts of a review
# Near pairs may be in the wrong order this many times as often as all pairs: with less, more
# questions are asked, with more, neighbours are missed (`python -m benchmarks sizes`).
_NEAR = 3.5


class Belief:
    """A posterior that is updated as answers come.

    Parameters
    ----------
    n_objects
        How many objects there are.
    n_components
        Dimension of the positions; None chooses it from held-out answers.
    random_state
        Seed or generator of the starts.
    max_components
        The most dimensions to try; None: as many as the objects can span.
    noise
        The share of wrong answers that is assumed until answers show otherwise.
    may_be_exact
        Whether answers may have no errors; those of several people always have some.
    every_fold
        Whether `right` and the accuracy use all answers, or only enough to estimate them.

    Attributes
    ----------
    fit
        The present `Posterior`: positions, covariances, noise, `probability` of answers.
    held_out
        The `HeldOut` predictions behind its noise; None before there are enough answers.
    is_exact
        Whether answers count as exact.
    answers, weights
        All answers, as fits take them, and how much each counts.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> questions = np.array([rng.choice(30, 3, replace=False) for _ in range(1500)])
    >>> near = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)(questions)
    >>> belief = nearer.fitting.Belief(30, random_state=0)
    >>> belief.learn(np.where(near[:, None], questions, questions[:, [0, 2, 1]]))
    >>> belief.dimension, 0.05 < belief.error_rate < 0.2
    (2, True)
    """

    def __init__(
        self,
        n_objects: int,
        n_components: int | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        max_components: int | None = None,
        noise: float = 0.0,
        may_be_exact: bool = True,
        every_fold: bool = True,
    ) -> None:
        n = checks.n_objects(n_objects)
        self._free = n_components is None
        self._rng = checks.generator(random_state)
        self._most = n - 1 if max_components is None else checks.n_components(max_components, n)
        first = min(_FIRST_DIMENSION, self._most)
        d = first if n_components is None else checks.n_components(n_components, n)
        self.answers: Answers = as_answers(np.empty((0, 3), dtype=np.int64), n)
        self._plain = Noise(lapse=checks.rate("noise", noise))
        self._reviewed = 0
        self.weights = np.empty(0)
        self._keys, self._odds = np.empty(0, dtype=np.int64), np.empty(0)
        self._tried: dict[int, Tuned] = {}
        self._rival: Tuned | None = None  # the best of the other curve
        self.is_exact, self._may_be_exact = False, checks.flag("may_be_exact", may_be_exact)
        self._every_fold = checks.flag("every_fold", every_fold)
        self._predicted = np.empty((2, 0))  # margins of the last answers, and their weights
        self.held_out: HeldOut | None = None
        self.fit: Posterior = fit_posterior(self.answers, d, self._plain)

    @property
    def dimension(self) -> int:
        """The dimension of the present fit."""
        return int(self.fit.positions.shape[1])

    @property
    def judge(self) -> HeldOutJudge:
        """The judge of dimensions by held-out answers, as of the last review."""
        total = float(self.answers.weights.sum())
        guessed = np.log(2) * (self.answers.total / total if total else 1.0)
        return HeldOutJudge(
            {d: tried.best.pieces for d, tried in self._tried.items()},
            {d: total * (guessed + tried.best.score) for d, tried in self._tried.items()},
        )

    @property
    def most_possible(self) -> int:
        """The most dimensions that the answers leave possible.

        Exact answers that are satisfied, and are many even for one more dimension, need no more
        than the present one.
        """
        d, n = self.dimension, len(self.fit.positions)
        enough = min(self.answers.total / n, n) >= FEWEST * (d + 1)
        satisfied = self.is_exact and self._less_probable_than(0.5) <= NEARLY
        return d if enough and satisfied and self.fit.positions.any() else self._most

    @property
    def probabilities(self) -> dict[int, float]:
        """Dimension → its probability, if the belief chooses its dimension."""
        return self.judge.probabilities(self.most_possible) if self._free else {}

    @property
    def span(self) -> tuple[int, int]:
        """The range of dimensions that remain possible; a fixed dimension alone."""
        if not self._free:
            return self.dimension, self.dimension
        if not self.fit.positions.any():  # all objects coincide, or there are no answers
            return 1, self._most
        return self.judge.span(self.probabilities)

    @property
    def evidence(self) -> dict[int, Any]:
        """Dimension → its probability, and how well it predicted held-out answers."""
        chances = self.probabilities
        known: dict[int, Any] = {d: {"probability": chances[d]} for d in sorted(chances)}
        for d, tried in sorted(self._tried.items()):
            known[d] = {
                "log_likelihood": tried.best.score,
                "accuracy": tried.best.accuracy,
                "noise": tried.strongest.noise,
                **known.get(d, {}),
            }
        return known

    @property
    def error_rate(self) -> float:
        """Share of the answers that the positions violate; one half before there are any."""
        if not len(self.answers):
            return 0.5
        wrong = 1 - self.answers.predictions(self.fit).right
        known = np.isfinite(wrong)
        return float(np.average(wrong[known], weights=self.answers.weights[known]))

    @property
    def may_lack_dimensions(self) -> bool:
        """Whether the true dimension is probably larger than that of the fit."""
        chances = self.probabilities
        return sum(chances[d] for d in chances if d > self.dimension) > 0.5

    @property
    def expected_tau(self) -> float:
        """The expected Kendall's τ of distances from a head; 0: a guess.

        It assumes that the dimension is right; see `may_lack_dimensions`. The size of
        the map and its lapses are those that predict held-out answers best, at most the size under
        the next wider prior, since the fit's prior is the smallest that predicts about as well.
        """
        return self.expected_tau_of(self.fit)

    @property
    def share_guessed(self) -> float:
        """The share of predictions that are guesses: 1 if none beats a coin, 0 if all come true."""
        held = self.held_out
        if held is None or not held.beats_a_coin:
            return 1.0
        return 2 * (1 - held.accuracy) if self.is_exact else 1 - self.expected_tau

    def expected_tau_of(self, fit: Posterior, between: Floats | None = None) -> float:
        """The same for another fit to the same answers, plus covariances between people."""
        held = self.held_out
        if held is None or not held.beats_a_coin:
            return 0.0
        if self.is_exact and self._predicted.size:
            some = random_questions(len(fit.positions), QUESTIONS, np.random.default_rng(0))
            return self._predicted_tau(some)
        scale = min(fit.curve.sharpness, heldout.STEP)
        noise = replace(fit.noise, prior=scale * fit.noise.prior, lapse=fit.curve.lapse)
        known = covariances_at(scale * fit.positions, self.answers, noise) / scale**2
        return expected_tau(replace(fit, covariances=known + (0.0 if between is None else between)))

    def is_good_enough(self, quality: float) -> bool:
        """Whether Kendall's τ is expected to be `quality`, in a dimension that is probably right.

        With exact answers near objects must be in order, too.
        """
        if self.expected_tau < quality or self.may_lack_dimensions:
            return False
        if not (self.is_exact and self._predicted.size):
            return True
        near = near_questions(self.fit.positions, QUESTIONS, np.random.default_rng(0))
        return self._predicted_tau(near) >= 1 - _NEAR * (1 - quality)

    def _predicted_tau(self, questions: Questions) -> float:
        margins, weights = self._predicted
        return heldout.predicted_tau(self.fit, margins, weights, questions)

    @property
    def times(self) -> NDArray[np.int64]:
        """How many answers with a weight each row of the likelihood stands for."""
        counted = self.answers.row[self.weights > 0]
        return np.bincount(counted, minlength=len(self.answers))

    @property
    def right(self) -> Floats:
        """How much of each answer was predicted, from 0 to 1, by a fit that had not seen it.

        It is nan for answers that were not held out, and for undecided trials.
        """
        rows, held = np.full(len(self.answers), np.nan), self.held_out
        if held is not None:
            rows[held.rows] = held.right
        return rows[self.answers.row]

    def expect(self, questions: Questions, odds: ArrayLike) -> None:
        """Record questions that were chosen, and how much likelier than at random each was.

        Questions that are not recorded count as random ones. The first odds of a question stay.
        """
        if not len(questions):
            return
        keys = np.concatenate([self._keys, pack(questions)[0]])
        values = checks.odds(odds, len(questions))
        self._keys, first = np.unique(keys, return_index=True)
        self._odds = np.concatenate([self._odds, values])[first]

    def odds(self, questions: Questions) -> Floats:
        """How much likelier than at random each question was to be asked; 1 if not recorded."""
        place, known = find(self._keys, pack(questions)[0])
        return np.where(known, self._odds[place], 1.0) if len(self._keys) else np.ones(len(known))

    def predict(self, triplets: Objects) -> None:
        """Record the fit's predictions of answers that it has not learned yet.

        Predictions that are made before their answers are learned need no further fit. The latest,
        as many as a fold has answers, give the curve for the expected τ of exact answers: more
        predictions would vary less, but would be out of date.
        """
        if len(triplets):
            noted = np.stack(
                [likelihood.moderate(*self.fit.margins(triplets)), 1 / self.odds(triplets)]
            )
            fold = 1 + (len(self.answers) + len(triplets)) // heldout.FOLDS
            self._predicted = np.hstack([self._predicted, noted])[:, -fold:]

    def learn(self, answers: ArrayLike | Trials, weights: ArrayLike | None = None) -> None:
        """Fit all answers, old and new: rows (head, near, far), or `Trials` of any task."""
        if not isinstance(answers, Trials):
            answers = np.asarray(answers)
        m = len(answers)
        self.weights = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
        asked = answers.questions if isinstance(answers, Trials) else answers
        odds = self.odds(asked) if len(self._keys) and asked.shape[1] == 3 else None
        self.answers = as_answers(answers, len(self.fit.positions), self.weights, odds)
        if m < _GROWTH * self._reviewed:
            self.fit = self._refit(self.fit)
        else:
            self._review()

    def conclude(self, *, max_iter: int = 1000, tol: float = 1e-8) -> None:
        """Review once more, if a fold or more of the answers is new, and fit until convergence."""
        if len(self.answers.row) * (heldout.FOLDS - 1) >= self._reviewed * heldout.FOLDS:
            self._review()
        self.fit = self._refit(self.fit, max_iter=max_iter, tol=tol)

    def review(self) -> None:
        """Estimate noise and dimension again, if there are new answers since the last review."""
        if len(self.answers.row) > self._reviewed:
            self._review()

    def _refit(self, fit: Posterior, **how: Any) -> Posterior:
        d = fit.positions.shape[1]
        anew = fit_posterior(self.answers, d, fit.noise, start=fit.positions, **how)
        return replace(anew, curve=fit.curve)

    def _review(self) -> None:
        self._reviewed, before = len(self.answers.row), self.dimension
        self._revise()
        known, somewhere = self.held_out, self.fit.positions.any()
        if self.is_exact and known and somewhere and self.dimension != before:
            predictions = known.predictions  # those in another dimension are out of date
            assert isinstance(predictions, likelihood.PredictedMargins)
            weights = self.answers.weights[known.rows] / self.answers.odds[known.rows]
            self._predicted = np.stack([predictions.margins, weights])

    def _revise(self) -> None:
        few_improbable = self.is_exact and self._less_probable_than(0.05) <= NEARLY
        if few_improbable and self._review_exact(self.held_out, None):
            return
        self._review_noisy()
        self.is_exact = False
        may_be = self._may_be_exact and self.held_out and isinstance(self.answers, Comparisons)
        if may_be:
            self._review_exact(self.held_out, self._tried[self.dimension].best)

    def _review_exact(self, known: HeldOut | None, rival: HeldOut | None) -> bool:
        """Review as if answers had no errors; returns False if noise predicts better.

        The prior is as wide as predicts best, there are no lapses, and a bias decides between equal
        distances, so that only the dimension is left to compare.
        """
        assert known is not None
        d, noise = self.dimension, Noise(max(known.noise.prior, heldout.EXACT_PRIORS[0]), bias=True)
        held = self._widest(self._hold_out_exactly(d, noise, known))
        if rival is not None and self._free and rival.own_curve.lapse <= heldout.SAME_LAPSE:
            while d > 1 and rival.advantage(held) > 0.0:  # the bias may replace dimensions
                d //= 2
                held = self._widest(self._hold_out_exactly(d, noise, known))
        if self._free and self._all_coincide(held, rival):
            return True
        self.is_exact = held.beats_a_coin and (rival is None or rival.advantage(held) <= 0.0)
        if not self.is_exact:
            return False
        before, noise = self.fit, held.noise
        self._tried = {d: Tuned({noise.prior: held})}
        if self._free:
            self.fit = fit_posterior(self.answers, d, noise, start=self.fit.positions)
            d = self._settle_exact(d, noise)
            held = self._tried[d].best
        if rival is None and held.own_curve.lapse > heldout.SAME_LAPSE:
            lapsing, starts = Noise(WEAK_PRIOR, held.own_curve.lapse), map(spread_out, held.fits)
            other = heldout.hold_out(self.answers, d, lapsing, starts=tuple(starts), rng=self._rng)
            self.is_exact = other.advantage(held) <= 0.0
        if self.is_exact:
            fit = self._fit_from_starts(d, noise, [held.fits[0], None])
            self.fit = replace(fit, curve=held.curve)
            self.is_exact = rival is None or self._less_probable_than(0.05) <= NEARLY
        if self.is_exact:
            self.held_out = held
        else:
            self.fit = before
        return self.is_exact

    def _all_coincide(self, *rivals: HeldOut | None) -> bool:
        """Whether one order of the objects, for every head, explains all answers.

        Positions then predict no better than the objects' bias does: the oracle finds all distances
        equal.
        """
        if not isinstance(self.answers, Comparisons) or not _agree_on_one_order(self.answers):
            return False
        noise = Noise(heldout.EXACT_PRIORS[0], bias=True)
        nowhere = np.zeros((self.answers.n_objects, 1))
        held = heldout.hold_out(self.answers, 1, noise, starts=(nowhere,) * heldout.FOLDS)
        better = any(rival.advantage(held) > heldout.SAME for rival in rivals if rival is not None)
        if better or not held.beats_a_coin:
            return False
        fit = fit_posterior(self.answers, 1, noise, start=nowhere)
        self.fit, self.held_out, self.is_exact = replace(fit, curve=held.curve), held, True
        self._tried = {1: Tuned({noise.prior: held})}
        return True

    def _hold_out_exactly(self, d: int, noise: Noise, known: HeldOut) -> HeldOut:
        """Held-out predictions by fits that start from known ones in as many dimensions or more."""
        starts = _in_fewer_dimensions(known, d)
        return heldout.hold_out(self.answers, d, noise, starts=starts, rng=self._rng)

    def _widest(self, held: HeldOut) -> HeldOut:
        """Predictions under priors twice or half as wide, as long as they improve."""
        for factor in (heldout.STEP, 1 / heldout.STEP):
            best = held
            for other in heldout.along_priors(self.answers, held, factor):
                if other.score <= best.score:
                    break
                best = other
            if best is not held:
                break
        return best

    def _less_probable_than(self, p: float, fit: Posterior | None = None) -> float:
        """Share of the answers that are less probable than p under the present fit or another."""
        predictions = self.answers.predictions(self.fit if fit is None else fit)
        assert isinstance(predictions, likelihood.PredictedMargins)
        return float(np.average(expit(predictions.margins) < p, weights=self.answers.weights))

    def _settle_exact(self, d: int, noise: Noise) -> int:
        scores = {d: self._tried[d].best.pieces}

        def attempt(e: int, neighbour: int) -> Floats | None:
            if e > d and not self._less_probable_than(0.5):
                return None  # if all answers are satisfied, no further dimension is needed
            held = self._hold_out_exactly(e, noise, self._tried[neighbour].best)
            self._tried[e] = Tuned({noise.prior: held})
            if e > neighbour:  # in more dimensions misplaced objects can pass each other
                again = self._hold_out_exactly(neighbour, noise, held)
                if again.score > self._tried[neighbour].best.score:
                    self._tried[neighbour] = Tuned({noise.prior: again})
                    scores[neighbour] = again.pieces
            return held.pieces

        return heldout.settle(d, attempt, scores, self._most_supported(d))

    def _review_noisy(self) -> None:
        before, noise, d = self.held_out, self.fit.noise, self.dimension
        if noise.bias:  # estimates for exact answers do not apply to noisy ones
            before, noise = None, self._plain
        self._tried = {}
        if self._free and before is None and self._most_supported(1) < d:
            d = 1
        tuned, held = self._choose_curve(d, before), None
        if tuned is not None:
            if self._free:
                began, d = d, self._choose_dimension(d, tuned)
                if d != began and self._other_curve_is_better(d):
                    d = self._choose_dimension(d, self._tried[d])
                tuned = self._tried[d]
            noise, fits = tuned.strongest.fitted_noise, tuned.strongest.fits
            held = tuned.strongest
            if self._every_fold or held.lapse_differs:
                every = self._every_fold
                held = heldout.hold_out(
                    self.answers, d, noise, starts=fits, rng=self._rng, every=every
                )
        known = held.fits if held and before is None else ()
        best = self._fit_from_starts(d, noise, [*known, *[None] * _STARTS][:_STARTS])
        self.fit = best if held is None else replace(best, curve=held.curve)
        self.held_out = held

    def _fit_from_starts(self, d: int, noise: Noise, starts: list[Floats | None]) -> Posterior:
        """The best fit from the present positions and from `starts`; two that agree end the search.

        A start is None, for a random one, or a fit to a fold.
        """
        scale = min(1.0, noise.prior / self.fit.noise.prior)  # a wider prior needs no wider map
        X = self._reshaped(self.fit.positions, d) * scale
        best = fit_posterior(self.answers, d, noise, start=X)
        if noise.bias and not self._less_probable_than(0.5, best):
            return best  # it satisfies exact answers, so that no start gives a much better fit
        value = log_posterior(self.answers, best.positions, noise)
        for start in starts:
            other = fit_posterior(self.answers, d, noise, start=start, rng=self._rng)
            more = log_posterior(self.answers, other.positions, noise)
            agrees = abs(more - value) <= math.sqrt(ROUGH) * abs(value)  # half of a fit's digits
            if more > value:
                best, value = other, more
            if agrees:
                break
        return best

    def most_predictive(self, most: int) -> int:
        """The dimension that predicts held-out answers best; two worse ones end the search."""
        if not self._tried:
            return self.dimension
        while True:
            best = max(self._tried, key=lambda d: self._tried[d].best.score)
            d = next((d for d in (best + 1, best + 2) if d not in self._tried), most + 1)
            known = self._tried[max(e for e in self._tried if e < d)]
            tuned = self._tune(d, known.best) if d <= most else None
            if tuned is None:
                return best
            self._tried[d] = tuned

    def _tune(self, d: int, like: HeldOut) -> Tuned | None:
        """The result of a search that starts from known fits."""
        starts = _in_fewer_dimensions(like, d)
        return heldout.tune(self.answers, d, like.noise, starts=starts, rng=self._rng)

    def _choose_curve(self, d: int, before: HeldOut | None) -> Tuned | None:
        """The best noise under either curve."""
        if before is None or self._rival is None:
            one = heldout.tune(self.answers, d, Noise(WEAK_PRIOR, tail=1.0), rng=self._rng)
            known = None if one is None else one.tried[WEAK_PRIOR]
            other = None if known is None else heldout.tune_from(self.answers, known, self._plain)
        else:
            one, other = self._tune(d, before), self._tune(d, self._rival.best)
        if one is None or other is None:
            return None
        self._rival, self._tried[d] = sorted([one, other], key=lambda tuned: tuned.best.score)
        return self._tried[d]

    def _other_curve_is_better(self, d: int) -> bool:
        """Compare both curves again if one was chosen in another dimension; the better remains."""
        known, rival = self._tried[d], self._rival
        tuned = rival and heldout.tune_from(self.answers, known.best, rival.best.fitted_noise)
        if tuned is None:
            return False
        self._rival, self._tried[d] = sorted([known, tuned], key=lambda each: each.best.score)
        return self._tried[d].best.noise.tail != known.best.noise.tail

    def _choose_dimension(self, d: int, tuned: Tuned) -> int:
        def attempt(e: int, neighbour: int) -> Floats | None:
            known = self._tried[neighbour].best
            tried = self._tune(e, known)
            if tried is None:
                return None
            rivals = [tried, *filter(None, [self._tried.get(e)])]
            self._tried[e] = max(rivals, key=lambda tuned: tuned.best.score)
            return self._tried[e].best.pieces

        return heldout.settle(d, attempt, {d: tuned.best.pieces}, self._most_supported(d))

    def _most_supported(self, d: int) -> int:
        """The most dimensions for which there are enough answers; at least d."""
        carried = 1 + int(self.answers.total // (FEWEST * len(self.fit.positions)))
        return max(d, min(self._most, carried))

    def _reshaped(self, X: Floats, d: int) -> Floats:
        if d <= X.shape[1]:
            return principal_axes(X, d)
        column = self._rng.normal(scale=0.1 * np.std(X), size=(len(X), d - X.shape[1]))
        return np.hstack([X, column])


def _in_fewer_dimensions(known: HeldOut, d: int) -> tuple[Floats, ...]:
    """Fits of as many dimensions or more, on their principal axes, as starts in d dimensions."""
    return tuple(principal_axes(X, d) for X in known.fits if X.any() and X.shape[1] >= d)


def _agree_on_one_order(answers: Comparisons) -> bool:
    """Whether answers, whatever their heads, have no cycle of nearer and farther objects."""
    n, (_, near, far) = answers.n_objects, answers.triplets.T
    farther = coo_array((np.ones(len(near)), (near, far)), shape=(n, n))
    return int(connected_components(farther, connection="strong")[0]) == n
