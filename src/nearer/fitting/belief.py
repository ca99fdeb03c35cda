"""What is believed from answers that keep coming: a fit, its noise and its dimension.

New answers are fitted from where the last fit ended. Whenever there are half as many answers more
than last time, the belief is *reviewed*: fits from nothing compete with the present one, the
noise is tuned, and, where the dimension is not given, one dimension more and one fewer are tried.

*Which curve.* The t curve must make held-out answers more likely than the logistic one by more than
three standard errors. This is asked only while questions are random or nearly so. Once the fit
chooses most of them, later questions depend on the answers held out, and the curve that those
favour was seen to predict random questions worse.

*Which dimension.* A dimension more must make held-out answers more likely by more than one
standard error of the paired differences; a dimension fewer must not make them less likely by more
than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nearer.fitting.heldout import HeldOut, tune
from nearer.fitting.losses import Floats
from nearer.fitting.posterior import (
    Evidence,
    Noise,
    Posterior,
    as_evidence,
    fit_posterior,
    largest_axes,
    log_posterior,
)
from nearer.fitting.reliability import Reliability, rate_people
from nearer.questions import Questions, find, pack

__all__ = ["Belief"]

_GROWTH = 1.5
_FIRST_DIMENSION = 2
_NEW = 3  # fits from nothing at a review
_PLAIN, _TAILED = Noise(), Noise(prior=4.0, tail=1.0)
_FAIR = 0.8  # effective share of the held-out answers below which they do not judge curves
_CLEARLY = 3.0  # standard errors by which heavy tails must predict better


class Belief:
    """A posterior that is updated as answers come.

    Parameters
    ----------
    n_objects
        How many objects there are.
    n_components
        Dimension of the positions; None chooses it from held-out answers.
    rng
        Source of the starts.
    max_components
        The most dimensions to try; None: as many as the objects can span.

    Attributes
    ----------
    fit
        The present `Posterior`.
    held_out
        The `HeldOut` predictions behind its noise; None before there are enough answers.
    tried
        `HeldOut` predictions of each dimension tried at the last review.
    reliability
        What was found about each person; None where nobody is named.
    """

    def __init__(
        self,
        n_objects: int,
        n_components: int | None,
        rng: np.random.Generator,
        *,
        max_components: int | None = None,
    ) -> None:
        self._free = n_components is None
        self._rng = rng
        self._most = n_objects - 1 if max_components is None else max_components
        d = min(_FIRST_DIMENSION, self._most) if n_components is None else n_components
        self._answers = as_evidence(np.empty((0, 3), dtype=np.int64), n_objects)
        self._reviewed = 0
        self.reliability: Reliability | None = None
        self._keys, self._odds = np.empty(0, dtype=np.int64), np.empty(0)
        self.tried: dict[int, HeldOut] = {}
        self.held_out: HeldOut | None = None
        self.fit = fit_posterior(self._answers, d, _PLAIN)

    @property
    def evidence(self) -> dict[int, Any]:
        """Dimension → how well it predicted held-out answers at the last review."""
        return {
            d: {"log_likelihood": tried.score, "accuracy": tried.accuracy, "noise": tried.noise}
            for d, tried in sorted(self.tried.items())
        }

    @property
    def error_rate(self) -> float:
        """How often an answer departs from the positions, as expected for the answers given."""
        if not len(self._answers):
            return 0.5
        p = self.fit.probability(self._answers.triplets)
        return float(np.average(np.minimum(p, 1 - p), weights=self._answers.weights))

    def expect(self, questions: Questions, odds: Floats) -> None:
        """Note questions about to be asked, and how much likelier than at random each was."""
        keys = np.concatenate([self._keys, pack(questions)[0]])
        self._keys, first = np.unique(keys, return_index=True)
        self._odds = np.concatenate([self._odds, odds])[first]

    def learn(
        self,
        triplets: ArrayLike,
        people: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Take in all answers so far, old and new.

        Parameters
        ----------
        triplets
            ``(m, 3)`` rows (head, near, far).
        people
            Who gave each answer, where that is known.
        weights
            How much each answer counts.
        """
        m = len(np.asarray(triplets))
        self._answers = self._gather(triplets, people, weights)
        if m < _GROWTH * self._reviewed:
            self.fit = self._refit(self.fit)
            return
        self._review()
        self._reviewed = m
        if people is not None and self.held_out is not None:
            self.reliability = rate_people(self._answers, self.held_out, people)
            self._answers = self._gather(triplets, people, weights)
            self.fit = self._refit(self.fit)

    def _gather(
        self, triplets: ArrayLike, people: ArrayLike | None, weights: ArrayLike | None
    ) -> Evidence:
        """Answers with all that is known of them: who gave them, why they were asked for."""
        counts = None if weights is None else np.asarray(weights, dtype=np.float64)
        if self.reliability is not None and people is not None:
            trust = self.reliability.weights(people)
            counts = trust if counts is None else counts * trust
        odds = None
        if len(self._keys):
            keys, _ = pack(np.asarray(triplets))
            place, known = find(self._keys, keys)
            odds = np.where(known, self._odds[place], 1.0)
        return as_evidence(triplets, len(self.fit.positions), counts, odds)

    def conclude(self) -> None:
        """Look at everything once more, after the last answer."""
        if len(self._answers.row) > self._reviewed:
            self._review()
        self.fit = self._refit(self.fit, max_iter=1000, tol=1e-8)

    def _refit(self, fit: Posterior, **how: Any) -> Posterior:
        d = fit.positions.shape[1]
        anew = fit_posterior(self._answers, d, fit.noise, start=fit.positions, **how)
        return replace(anew, noise=fit.noise)

    def _review(self) -> None:
        before, self.tried = self.held_out, {}
        d = self.fit.positions.shape[1]
        fits = [fit_posterior(self._answers, d, self.fit.noise, rng=self._rng) for _ in range(_NEW)]
        start = max(self._refit(self.fit), *fits, key=partial(log_posterior, self._answers))
        fit, held = self._tuned(start, before.fits if before else ())
        if held is not None and held.effective_share >= _FAIR:
            fit, held = self._choose_curve(fit, held)
        if self._free and held is not None:
            fit, held = self._choose_dimension(fit, held)
        self.fit, self.held_out = fit, held

    def _tuned(
        self, fit: Posterior, starts: tuple[Floats, ...], max_steps: int = 6
    ) -> tuple[Posterior, HeldOut | None]:
        fit, held = tune(self._answers, fit, starts=starts, rng=self._rng, max_steps=max_steps)
        if held is not None:
            self.tried[fit.positions.shape[1]] = held
        return fit, held

    def _choose_curve(self, fit: Posterior, held: HeldOut) -> tuple[Posterior, HeldOut]:
        tail = fit.noise.tail
        changed, tried = self._tuned(replace(fit, noise=_PLAIN if tail else _TAILED), held.fits)
        if tried is not None and tried.advantage(held) > (-_CLEARLY if tail else _CLEARLY):
            return changed, tried
        self.tried[fit.positions.shape[1]] = held
        return fit, held

    def _choose_dimension(self, fit: Posterior, held: HeldOut) -> tuple[Posterior, HeldOut | None]:
        d, grown = fit.positions.shape[1], False
        while d < self._most:
            wider, tried = self._reshaped(fit, held, self._widened)
            if tried is None or tried.advantage(held) <= 1:
                break
            fit, held, d, grown = wider, tried, d + 1, True
        while d > 1 and not grown:
            narrower, tried = self._reshaped(fit, held, partial(largest_axes, n_components=d - 1))
            if tried is None or tried.advantage(held) < -1:
                break
            fit, held, d = narrower, tried, d - 1
        return fit, held

    def _reshaped(
        self, fit: Posterior, held: HeldOut, reshape: Callable[[Floats], Floats]
    ) -> tuple[Posterior, HeldOut | None]:
        start = self._refit(replace(fit, positions=reshape(fit.positions)))
        # the noise of a neighbouring dimension is close to right, so one correction is enough
        return self._tuned(start, tuple(reshape(X) for X in held.fits), max_steps=1)

    def _widened(self, X: Floats) -> Floats:
        column = self._rng.normal(scale=0.1 * np.std(X), size=(len(X), 1))
        return np.hstack([X, column])
