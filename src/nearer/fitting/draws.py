r"""Draws: maps that the answers leave possible, around the positions of a fit.

*Noisy answers* (`draw_maps`). A chain visits each map as often as answers and prior make it
probable. *Positions* move by Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011): a random push,
some steps along the gradient of the posterior, and a decision that makes up for the steps' errors.
Push and steps of each object are in units of its own covariance; a step costs a pass over the
answers. *Noise* is not known either. A fit takes the prior that predicts best, which is stronger
than the one that explains best, and one lapse rate or tail; a region that takes these for certain
is too narrow or too wide. So they move too (Metropolis): the map and its prior grow or shrink
together, which changes nothing but how sharp answers are; the prior's width is drawn given the map;
the lapse rate takes a step, and so does the tail where there is one. Before any answer all widths
and tails are equally likely, on a scale of logarithms, and so are all lapse rates. The first part
of the chain is discarded; in it the sizes of the steps are adapted.

*Exact answers*, all satisfied or all but a few. Positions that satisfy them are all equally likely
but for the prior, a Gaussian as wide as the map. A random walk visits them, one object and one line
at a time (`nearer._kernels.comparisons`), beginning at the positions. The few answers that these
violate are left out.

*Other losses* (`bootstrap_covariances`): as many answers as there are, drawn with replacement, are
fitted again from the positions; objects are then drawn independently.

In all cases the positions are somewhere among the draws, not at their mean. Answers determine no
motion and no scale: each draw is laid over the positions by the best ones (Procrustes).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nearer.distances import Distances
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.initial import NEARLY
from nearer.fitting.likelihood import MOST_LAPSE, Answers, Noise, as_answers
from nearer.fitting.posterior import WEAK_PRIOR, Posterior
from nearer.metrics import procrustes
from nearer.parallel import parallel_map
from nearer.questions import Floats
from nearer.trials import Trials

__all__ = ["bootstrap_covariances", "draw_maps", "draw_positions"]

# Time against regions that hold less often than they say, by `python -m benchmarks coverage`:
_DISCARDED, _BETWEEN = 200, 3  # moves of the chain before the first draw, and between two
_LENGTH, _MOST_STEPS = 3.0, 40  # of a move, in each object's own standard deviations
_NOISE_MOVES = 3  # of the noise for each move of positions, it costs one pass
_SWEEPS = 30  # of the walk between two draws
_DISCARDED_DRAWS = 10  # of the walk before the first
# Shares of moves to accept: Beskos et al. 2013; Roberts et al. 1997, one dimension
_ACCEPTED, _ACCEPTED_NOISE = 0.8, 0.4
_PRIORS = (0.1, WEAK_PRIOR)  # widths; beyond, answers are no less noisy and moves small
_TAILS = (0.1, 30.0)  # degrees of freedom, the latter all but Gaussian


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
    """Draw k maps, ``(k, n, d)``.

    Parameters
    ----------
    positions, covariances
        Of the fit, and the covariance of each object where it is known.
    triplets, weights
        The answers that were fitted, and how much each counted.
    posterior
        The fit, where answers are noisy; None otherwise.
    trials
        The answers, where they are more than comparisons.
    between
        How the map moves with the people who are asked, see `nearer.fitting.people`.
    rng
        Source of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> draw_positions(
    ...     X, np.ones((3, 1, 1)), np.array([[0, 1, 2]]), 5, rng=np.random.default_rng(0)
    ... ).shape
    (5, 3, 1)
    """
    head, near, far = triplets.T
    distances = Distances(positions)
    satisfied = distances.between(head, near) < distances.between(head, far)
    wrong = 1 - float(satisfied.mean()) if len(triplets) else 1.0
    if posterior is None:
        exact = wrong <= (NEARLY if covariances is None else 0)
    else:
        exact = posterior.noise.bias > 0 and wrong <= NEARLY
    if exact:
        return _satisfying(positions, triplets[satisfied], k, rng)
    if posterior is not None and len(triplets):
        # fits by the t curve take no lapses, unless of choices
        rows = Trials.from_triplets(triplets) if posterior.noise.tail else triplets
        rows = rows if trials is None else trials
        drawn = draw_maps(posterior, as_answers(rows, len(positions), weights), k, rng)
        drawn = np.array([procrustes(positions, X).aligned for X in drawn])
        if between is not None:
            drawn += np.einsum("kb,bni->kni", rng.normal(size=(k, len(between))), between)
        return drawn
    if posterior is not None:
        warnings.warn(
            "the answers were not kept: every object is drawn by itself, the others held fixed, "
            "and what is computed of several seems surer than it is; nearer.embed keeps them with "
            "keep_triplets=True, nearer.fit up to four million",
            AnswersWarning,
            stacklevel=3,
        )
    if covariances is None:
        remedy = "nearer.fit of their answers, fit(embedding.triplets, n_objects=…), finds it"
        if not len(triplets):
            remedy = "their answers were not kept, as nearer.embed does with keep_triplets=True"
        raise InvalidInput(f"{k} draws: how sure these positions are is not known; {remedy}")
    root = np.linalg.cholesky(covariances + 1e-12 * np.eye(positions.shape[1]))
    drawn = np.einsum("nij,knj->kni", root, rng.normal(size=(k, *positions.shape)))
    return np.asarray(positions + drawn)


def _satisfying(
    positions: Floats, triplets: NDArray[np.integer], k: int, rng: np.random.Generator
) -> Floats:
    """Draws of positions that satisfy all answers."""
    from nearer._kernels.comparisons import walk  # noqa: PLC0415 - compiled when it is needed

    n, d = positions.shape
    X = np.ascontiguousarray(positions - positions.mean(axis=0))
    spread = float(np.sqrt(np.mean(np.square(X))))
    rows = np.argsort(triplets.ravel(), kind="stable") // 3
    first = np.searchsorted(np.sort(triplets.ravel()), np.arange(n + 1))
    draws = []
    for draw in range(_DISCARDED_DRAWS + k):
        directions = rng.standard_normal((_SWEEPS, n, d))
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        walk(X, triplets, first, rows, directions, rng.random((_SWEEPS, n, 2)), spread)
        if draw >= _DISCARDED_DRAWS:
            draws.append(procrustes(positions, X).aligned)
    return np.array(draws)


def draw_maps(fit: Posterior, answers: Answers, k: int, rng: np.random.Generator) -> Floats:
    """Draw k maps around a fit, ``(k, n, d)``, in any orientation and scale."""
    chain = _Chain(fit, answers, rng)
    for move in range(_DISCARDED):
        if move in (_DISCARDED // 8, _DISCARDED // 4, _DISCARDED // 2):
            chain.measure()
        chain.move(learning=1 / np.sqrt(1 + move % (_DISCARDED // 2)))
    draws = np.empty((k, *fit.positions.shape))
    for draw in draws:
        for _ in range(_BETWEEN):
            chain.move()
        draw[:] = chain.X
    return draws


class _Chain:
    """Where the chain is, and how large its steps are."""

    def __init__(self, fit: Posterior, answers: Answers, rng: np.random.Generator) -> None:
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
        information = self._answers.information(self.X, self.noise)
        precision = information + np.eye(self.X.shape[1]) / self.noise.prior**2
        self._root = np.linalg.cholesky(np.linalg.inv(precision))

    def move(self, learning: float = 0.0) -> None:
        """One move of positions and some of the noise; where it learns, steps change by that."""
        share = self._move_positions()
        self._step *= math.exp(learning * (share - _ACCEPTED))
        for _ in range(_NOISE_MOVES):
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
        return self._take(self.X, noise) if noise.lapse < MOST_LAPSE else 0.0

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
        """The prior's width, given the map: inverse gamma, inside its bounds."""
        half = 0.5 * float(np.vdot(self.X, self.X))
        prior = math.sqrt(half / self._rng.gamma(self.X.size / 2))
        if _PRIORS[0] < prior < _PRIORS[1]:
            self.noise = replace(self.noise, prior=prior)


def bootstrap_covariances(
    positions: Floats,
    triplets: NDArray[np.integer],
    refit: Callable[[Floats, Floats], Floats],
    *,
    weights: Floats | None = None,
    n_draws: int = 20,
    rng: np.random.Generator,
) -> Floats:
    """Covariance matrix of each object's position, ``(n, d, d)``.

    Parameters
    ----------
    positions, triplets, weights
        Of the fit, and the answers that it was made from.
    refit
        Called with new weights of the triplets and positions to start from; returns positions.
    n_draws
        How often answers are drawn again.
    rng
        Source of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from nearer.fitting.solver import fit_positions
    >>> T = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 1, 2]])
    >>> X = fit_positions(T, 3, 1, rng=np.random.default_rng(0)).positions
    >>> def refit(weights, start):
    ...     return fit_positions(T, 3, start=start, weights=weights).positions
    >>> bootstrap_covariances(X, T, refit, n_draws=4, rng=np.random.default_rng(0)).shape
    (3, 1, 1)
    """
    if n_draws < 2:
        raise InvalidInput(f"n_draws={n_draws}: a spread needs at least 2")
    m = len(triplets)
    base = np.ones(m) if weights is None else weights
    seeds = rng.integers(1 << 63, size=n_draws)

    def refitted(seed: int) -> Floats:
        drawn = np.bincount(np.random.default_rng(seed).integers(m, size=m), minlength=m) * base
        other = refit(drawn if drawn.any() else base, positions)
        return np.asarray(procrustes(positions, other).aligned[:, : positions.shape[1]])

    aligned = parallel_map(refitted, [(seed,) for seed in seeds.tolist()])
    deviation = np.array(aligned) - positions
    return np.asarray(np.einsum("bni,bnj->nij", deviation, deviation) / (n_draws - 1))
