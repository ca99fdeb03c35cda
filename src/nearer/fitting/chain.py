r"""A chain of maps that doubtful answers leave possible, each as often as it is probable.

*Positions* move by Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011): a random push, some
steps along the gradient of the posterior, and a decision that makes up for the steps' errors. Each
object's push and steps are in units of its own covariance. A pass over the answers is all that a
step costs.

*Noise* is not known either. A fit takes the prior that predicts best, which is stronger than the
one that explains best, and one lapse rate or tail; a region that takes these for certain is too
narrow or too wide. So they move too (Metropolis): the map and its prior grow or shrink together,
which changes nothing but how sharp answers are; the prior's width is drawn given the map; the
lapse rate takes a step, and so does the tail where there is one. All widths and tails are equally
likely before, on a scale of logarithms, and so are all lapse rates.

The first part of the chain is thrown away; in it the sizes of the steps are found, so that eight in
ten moves of positions and four in ten of the noise are accepted.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nearer.fitting.choices import Choices
from nearer.fitting.losses import Floats
from nearer.fitting.posterior import WEAK_PRIOR, Evidence, Noise, Posterior

__all__ = ["draw_maps"]

_BEFORE = 200  # moves before the first draw
_BETWEEN = 3  # moves from one draw to the next
_LENGTH = 3.0  # of a move, in each object's own standard deviations
_MOST_STEPS = 40  # of a move
_ACCEPTED, _ACCEPTED_NOISE = 0.8, 0.4  # Beskos et al. 2013; Roberts et al. 1997, one dimension
_TIMES = 3  # noise is moved for each move of positions, it costs one pass
_PRIORS = (0.1, WEAK_PRIOR)  # widths; beyond, answers are no less doubtful and moves small
_TAILS = (0.1, 30.0)  # … the latter all but Gaussian
_MOST_LAPSE = 0.45


def draw_maps(
    fit: Posterior, answers: Evidence | Choices, k: int, rng: np.random.Generator
) -> Floats:
    """Draw k maps around a fit, ``(k, n, d)``, in whatever frame and scale they come."""
    chain = _Chain(fit, answers, rng)
    for move in range(_BEFORE):
        if move in (_BEFORE // 8, _BEFORE // 4, _BEFORE // 2):
            chain.measure()
        chain.move(learning=1 / np.sqrt(1 + move % (_BEFORE // 2)))
    found = np.empty((k, *fit.positions.shape))
    for draw in found:
        for _ in range(_BETWEEN):
            chain.move()
        draw[:] = chain.X
    return found


class _Chain:
    """Where the chain is, and how large its steps are."""

    def __init__(
        self, fit: Posterior, answers: Evidence | Choices, rng: np.random.Generator
    ) -> None:
        least = min(1.0, 0.99 * _PRIORS[1] / fit.noise.prior)
        self.X, self.noise = (
            least * fit.positions,
            replace(fit.noise, prior=least * fit.noise.prior),
        )
        self._answers, self._rng = answers, rng
        self._step = 0.5 * fit.positions.size**-0.25
        self._sizes = {self._grow: 0.1, self._lapse: 0.02}  # of steps of the noise, at first
        if fit.noise.tail:
            self._sizes[self._bend] = 0.1
        self.loss, self._slope = answers.sums(self.X, self.noise)
        self.measure()

    def measure(self) -> None:
        """Take the objects' own covariances for units of their moves."""
        told = self._answers.information(self.X, self.noise)
        precision = told + np.eye(self.X.shape[1]) / self.noise.prior**2
        self._root = np.linalg.cholesky(np.linalg.inv(precision))

    def move(self, learning: float = 0.0) -> None:
        """One move of positions and some of the noise; where it learns, steps change by that."""
        share = self._move_positions()
        self._step *= math.exp(learning * (share - _ACCEPTED))
        for _ in range(_TIMES):
            for attempt, size in self._sizes.items():
                share = attempt(size * self._rng.standard_normal())
                self._sizes[attempt] = size * math.exp(learning * (share - _ACCEPTED_NOISE))
            self._draw_prior()

    def _move_positions(self) -> float:
        """A Hamiltonian move; how likely it was to be accepted."""
        rng, root, ridge = self._rng, self._root, 1 / self.noise.prior**2
        X, loss, slope = self.X, self.loss, self._slope
        step = self._step * rng.uniform(0.8, 1.2)
        steps = int(np.clip(np.ceil(_LENGTH / step * rng.uniform(0.5, 1.0)), 1, _MOST_STEPS))
        push = rng.standard_normal(X.shape)
        before = loss + 0.5 * float(ridge * np.vdot(X, X) + np.vdot(push, push))
        for _ in range(steps):
            push = push - 0.5 * step * np.einsum("nji,nj->ni", root, slope + ridge * X)
            X = X + step * np.einsum("nij,nj->ni", root, push)
            loss, slope = self._answers.sums(X, self.noise)
            push = push - 0.5 * step * np.einsum("nji,nj->ni", root, slope + ridge * X)
        after = loss + 0.5 * float(ridge * np.vdot(X, X) + np.vdot(push, push))
        share = math.exp(min(0.0, before - after)) if math.isfinite(after) else 0.0
        if rng.random() < share:
            self.X, self.loss, self._slope = X, loss, slope
        return share

    def _grow(self, by: float) -> float:
        """Map and prior grow by this logarithm."""
        factor = math.exp(by)
        noise = replace(self.noise, prior=self.noise.prior * factor)
        if not _PRIORS[0] < noise.prior < _PRIORS[1]:
            return 0.0
        return self._take(factor * self.X, noise)

    def _lapse(self, by: float) -> float:
        """The lapse rate takes a step."""
        noise = replace(self.noise, lapse=abs(self.noise.lapse + by))
        return self._take(self.X, noise) if noise.lapse < _MOST_LAPSE else 0.0

    def _bend(self, by: float) -> float:
        """The tail grows by this logarithm."""
        noise = replace(self.noise, tail=self.noise.tail * math.exp(by))
        return self._take(self.X, noise) if _TAILS[0] < noise.tail < _TAILS[1] else 0.0

    def _take(self, X: Floats, noise: Noise) -> float:
        """Go there as often as it is likelier; how likely that was."""
        loss, slope = self._answers.sums(X, noise)
        share = math.exp(min(0.0, self.loss - loss))
        if self._rng.random() < share:
            self.X, self.noise, self.loss, self._slope = X, noise, loss, slope
        return share

    def _draw_prior(self) -> None:
        """The prior's width, given the map: inverse gamma, kept inside its bounds."""
        half = 0.5 * float(np.vdot(self.X, self.X))
        prior = math.sqrt(half / self._rng.gamma(self.X.size / 2))
        if _PRIORS[0] < prior < _PRIORS[1]:
            self.noise = replace(self.noise, prior=prior)
