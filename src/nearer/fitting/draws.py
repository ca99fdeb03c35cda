"""Draws: maps that the answers leave possible, around the positions of a fit.

A chain (`draw_maps`) visits each map as often as answers and prior make it probable;
docs/uncertainty.md describes it. If another loss was fitted, only covariances are known
(`bootstrap_covariances`), and objects are drawn independently. Answers determine neither motion nor
scale, so each draw is aligned with the positions (Procrustes).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.initial import EXACT_PRIOR, NEARLY
from nearer.fitting.likelihood import MOST_LAPSE, Answers, Noise, as_answers
from nearer.fitting.people import Crowd
from nearer.fitting.posterior import WEAK_PRIOR, Posterior
from nearer.fitting.solver import violated
from nearer.metrics import procrustes
from nearer.parallel import parallel_map
from nearer.questions import Floats
from nearer.trials import Trials

# Fewer take less time, but regions then hold too seldom (`python -m benchmarks coverage`):
_DISCARDED, _BETWEEN = 200, 3  # moves of the chain before the first draw, and between two
_MOST_STEPS = 40  # of a move
_ACCEPTED = 0.8  # share of moves to accept (Beskos et al. 2013), of the noise, too
_FARTHEST = 2.0  # of own maps from the common one; with more, people have nothing in common


def draw_positions(
    positions: Floats,
    covariances: Floats | None,
    triplets: NDArray[np.integer],
    k: int,
    *,
    posterior: Posterior | None = None,
    weights: Floats | None = None,
    trials: Trials | None = None,
    between: Floats | None = None,
    rng: np.random.Generator,
) -> Floats:
    """Draw k maps, ``(k, n, d)``, around positions that were fitted to triplets or trials.

    `posterior` is the fit, if it has one; `between` is how the map varies with the sample of people
    (`nearer.fitting.people`).
    """
    if posterior is None and len(triplets):
        wrong = float(violated(positions, triplets).mean())
        if wrong <= (NEARLY if covariances is None else 0):
            X = positions - positions.mean(axis=0)
            X *= EXACT_PRIOR / np.sqrt(np.mean(np.square(X)))
            posterior = Posterior(X, np.zeros((*X.shape, X.shape[1])), Noise(EXACT_PRIOR))
    if posterior is not None and len(triplets):
        # Fits of comparisons by the t curve have no lapses.
        rows = Trials.from_triplets(triplets) if posterior.noise.tail else triplets
        rows = rows if trials is None else trials
        drawn = draw_maps(posterior, as_answers(rows, len(positions), weights), k, rng)
        drawn = np.array([procrustes(positions, X).aligned for X in drawn])
        if between is not None:
            drawn += np.einsum("kb,bni->kni", rng.normal(size=(k, len(between))), between)
        return drawn
    if posterior is not None:
        warnings.warn(
            "the answers were not stored: every object is drawn by itself, the others held fixed, "
            "so intervals for several objects are too narrow; nearer.embed stores answers with "
            "keep_triplets=True, nearer.fit up to four million",
            AnswersWarning,
            stacklevel=3,
        )
    if covariances is None:
        remedy = "nearer.fit(embedding.triplets, n_objects=…) estimates it"
        if not len(triplets):
            remedy = "their answers were not stored, as nearer.embed does with keep_triplets=True"
        raise InvalidInput(f"{k} draws: the uncertainty of these positions is not known; {remedy}")
    root = np.linalg.cholesky(covariances + 1e-12 * np.eye(positions.shape[1]))
    drawn = np.einsum("nij,knj->kni", root, rng.normal(size=(k, *positions.shape)))
    return np.asarray(positions + drawn)


def draw_maps(fit: Posterior, answers: Answers, k: int, rng: np.random.Generator) -> Floats:
    """Draw k maps around a fit, ``(k, n, d)``, in any orientation and scale."""
    return np.array([X for X, _ in draw_populations(fit, answers, k, rng)])


def draw_populations(
    fit: Posterior, answers: Answers | Crowd, k: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Noise]]:
    """Draw k common maps, each with the noise of answers; a crowd has own maps `apart` from it."""
    n, half = len(fit.positions), _DISCARDED // 2
    if isinstance(answers, Crowd):
        noise = replace(fit.noise, bias=False, apart=0.3)
        off = noise.prior * rng.standard_normal((len(answers.thing), fit.positions.shape[1]))
        fit = replace(fit, positions=np.concatenate([fit.positions, off]), noise=noise)
    chain = _Chain(fit, answers, rng)
    for move in range(_DISCARDED):
        if move < half:
            chain.measure()
        chain.move(learning=1 / np.sqrt(1 + move % half))
    for _ in range(k):
        for _ in range(_BETWEEN):
            chain.move()
        yield chain.X[:n], chain.noise


class _Chain:
    """Where the chain is, and how large its steps are."""

    def __init__(self, fit: Posterior, answers: Answers | Crowd, rng: np.random.Generator) -> None:
        # At the largest width answers have no errors; at the largest tail they are nearly logistic.
        self._tails = 1 / WEAK_PRIOR, WEAK_PRIOR
        self._priors = 1 / WEAK_PRIOR, max(WEAK_PRIOR, min(fit.noise.prior, EXACT_PRIOR))
        within = min(1.0, self._priors[1] / fit.noise.prior)
        self.X = within * fit.positions
        self.noise = replace(fit.noise, prior=within * fit.noise.prior)
        self._answers, self._rng = answers, rng
        self._step = 0.5 * fit.positions.size**-0.25
        moves = [self._grow, self._lapse, *([self._bend] if fit.noise.tail else [])]
        moves += [self._part] if fit.noise.apart else []
        self._sizes = dict.fromkeys(moves, self._step)  # of the first steps of the noise
        self.loss, self._slope = answers.sums(self.X, self.noise)
        self._known, self._measured = np.zeros((*self.X.shape, self.X.shape[1])), 0

    def measure(self) -> None:
        """Set each object's unit of moves to its own covariance, on average so far."""
        self._known += self._answers.information(self.X, self.noise)
        self._measured += 1
        precision = self._known / self._measured + np.eye(self.X.shape[1]) / self.noise.prior**2
        self._root = np.linalg.cholesky(np.linalg.inv(precision))

    def move(self, learning: float = 0.0) -> None:
        """One move of positions and some of the noise; step sizes adapt at the rate `learning`."""
        share = self._move_positions()
        self._step *= math.exp(learning * (share - _ACCEPTED))
        # That of people is slow to change, and steps of the noise take little time.
        for _ in range(5 if self.noise.apart else 1):
            for attempt, size in self._sizes.items():
                share = attempt(size * self._rng.standard_normal())
                self._sizes[attempt] = size * math.exp(learning * (share - _ACCEPTED))
        self._draw_prior()

    def _move_positions(self) -> float:
        """A Hamiltonian move of up to half a period; returns its acceptance probability."""
        rng, root, ridge = self._rng, self._root, 1 / self.noise.prior**2
        X, loss, slope = self.X, self.loss, self._slope
        step = self._step * rng.uniform(0.8, 1.2)
        steps = int(np.clip(np.ceil(math.pi / step * rng.uniform(0.5, 1.0)), 1, _MOST_STEPS))
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
        """Scale map and prior together by exp(by)."""
        factor = math.exp(by)
        noise = replace(self.noise, prior=self.noise.prior * factor)
        if not self._priors[0] <= noise.prior <= self._priors[1]:
            return 0.0
        return self._take(factor * self.X, noise)

    def _lapse(self, by: float) -> float:
        """Change the lapse rate by a step."""
        noise = replace(self.noise, lapse=abs(self.noise.lapse + by))
        return self._take(self.X, noise) if noise.lapse < MOST_LAPSE else 0.0

    def _bend(self, by: float) -> float:
        """Scale the tail by exp(by)."""
        noise = replace(self.noise, tail=self.noise.tail * math.exp(by))
        return self._take(self.X, noise) if self._tails[0] <= noise.tail <= self._tails[1] else 0.0

    def _take(self, X: Floats, noise: Noise) -> float:
        """Accept the proposal or not (Metropolis); returns the acceptance probability."""
        loss, slope = self._answers.sums(X, noise)
        share = math.exp(min(0.0, self.loss - loss))
        if self._rng.random() < share:
            self.X, self.noise, self.loss, self._slope = X, noise, loss, slope
        return share

    def _part(self, by: float) -> float:
        """Change how far people's own maps are from the common one."""
        noise = replace(self.noise, apart=abs(self.noise.apart + by))
        return self._take(self.X, noise) if noise.apart < _FARTHEST else 0.0

    def _draw_prior(self) -> None:
        """Draw the prior's width given the map: inverse gamma, inside its bounds."""
        n, known = self._answers.n_objects, self.noise
        half, own = 0.5 * float(np.vdot(self.X[:n], self.X[:n])), bool(known.apart)
        prior = math.sqrt(half / self._rng.gamma((self.X[:n].size + own) / 2))
        if self._priors[0] <= prior <= self._priors[1]:
            by = prior / known.prior  # people's own maps stay where they are
            self.noise = replace(known, prior=prior, apart=known.apart / by)
            self.X = np.concatenate([self.X[:n], by * self.X[n:]])
            self._slope = np.concatenate([self._slope[:n], self._slope[n:] / by])


def bootstrap_covariances(
    positions: Floats,
    triplets: NDArray[np.integer],
    refit: Callable[[Floats, Floats], Floats],
    *,
    weights: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Covariance of each object's position, ``(n, d, d)``, from fits to answers drawn again.

    `refit` is called with new weights of the triplets and positions to start from.
    """
    m = len(triplets)
    seeds = rng.integers(1 << 63, size=n_draws)

    def refitted(seed: int) -> Floats:
        drawn = np.bincount(np.random.default_rng(seed).integers(m, size=m), minlength=m) * weights
        other = refit(drawn if drawn.any() else weights, positions)
        return np.asarray(procrustes(positions, other).aligned[:, : positions.shape[1]])

    aligned = parallel_map(refitted, [(seed,) for seed in seeds.tolist()])
    deviation = np.array(aligned) - positions
    return np.asarray(np.einsum("bni,bnj->nij", deviation, deviation) / (n_draws - 1))
