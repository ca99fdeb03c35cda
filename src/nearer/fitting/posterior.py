r"""The posterior of positions: its mode, and a covariance for each object.

*Mode.* Every coordinate has a Gaussian prior of standard deviation s; with the likelihood of
`nearer.fitting.likelihood` that is a posterior, and positions are its maximum.

*Covariances.* Around the maximum the posterior of each object, the others held fixed, is close to
a Gaussian whose precision is the Fisher information of its answers plus that of the prior
(Laplace's method). An object that is in no answer keeps the prior's covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.special import expit, log_expit, ndtr
from threadpoolctl import ThreadpoolController

from nearer.fitting.initial import EXTRA
from nearer.fitting.likelihood import Answers, Comparisons, Curve, Noise, moderate
from nearer.fitting.solver import principal_axes, random_start
from nearer.questions import Floats, random_questions

one_blas_thread = partial(ThreadpoolController().limit, limits=1, user_api="blas")

# `python -m benchmarks sensitivity` halves and doubles these. This prior hardly shrinks, since a
# margin of this size is answered with certainty.
WEAK_PRIOR = 16.0
# Questions in a mean: the error of a share is then .8 %, that of an expected τ of .99 is .002.
QUESTIONS = 4000


@dataclass(frozen=True)
class Posterior:
    """The posterior of positions, and the curve that predicts answers from them.

    Attributes
    ----------
    positions
        ``(n_objects, n_components)``.
    covariances
        ``(n_objects, n_components, n_components)``, each object's own.
    noise
        The noise that was assumed.
    curve
        The curve from margins to probabilities.
    loss, n_iter, converged
        Mean negative log-likelihood of the answers; the optimiser's steps, and whether it
        converged.
    bias
        How much nearer than its distance each object is called; None: no bias.
    """

    positions: Floats
    covariances: Floats
    noise: Noise
    curve: Curve = field(default_factory=Curve)
    loss: float = np.nan
    n_iter: int = 0
    converged: bool = True
    bias: Floats | None = None

    def margins(self, questions: NDArray[np.integer]) -> tuple[Floats, Floats]:
        """How much farther b is from the head than a is: mean and variance, for each question."""
        from nearer._kernels.comparisons import margins  # noqa: PLC0415 - compiles

        mean, variance = margins(self.positions, self.covariances, questions, self.noise.tail)
        if self.bias is not None:
            mean = mean + self.bias[questions[:, 1]] - self.bias[questions[:, 2]]
        return mean, variance

    def probability(self, questions: NDArray[np.integer]) -> Floats:
        """The probability that people answer that a is nearer to head than b is."""
        return self.curve.probability(moderate(*self.margins(np.asarray(questions))))


def fit_posterior(
    answers: Answers,
    n_components: int,
    noise: Noise,
    *,
    start: Floats | None = None,
    rng: np.random.Generator | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> Posterior:
    """The most probable positions for given noise, with a covariance each.

    A start in more dimensions, such as a `cloud`, is first fitted by the t curve and under a weak
    prior, where poor optima are rare.
    """
    n, prior = answers.n_objects, noise.prior
    if not len(answers):
        covariances: Floats = np.tile(prior**2 * np.eye(n_components), (n, 1, 1))
        return Posterior(np.zeros((n, n_components)), covariances, noise)
    if start is None:
        start = cloud(n, n_components, rng)
    if start.shape[1] > n_components:
        start = _reduced(answers, n_components, noise, start, max_iter)
    fit = answers.maximise(noise, start, max_iter, tol)
    X = fit.positions
    covariances = covariances_at(X, answers, noise)
    done = Posterior(
        X, covariances, noise, loss=fit.loss, n_iter=fit.n_iter, converged=fit.converged
    )
    if noise.bias and isinstance(answers, Comparisons):
        done = replace(done, bias=fit_bias(answers, done))
    return done


def least(
    cost: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: list[tuple[float, float | None]] | None = None,
) -> Floats:
    """Minimise a smooth cost of few numbers; `cost` also returns its gradient.

    On short vectors threads of BLAS only wait for each other, so one is used: 2 ms instead of 40.
    """
    with one_blas_thread():
        result = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(result.x, dtype=np.float64)


def fit_bias(answers: Comparisons, fit: Posterior) -> Floats:
    """The most probable bias of each object, the positions held fixed (Bradley and Terry 1952)."""
    rows, weights, n = answers.triplets, answers.weights, answers.n_objects
    known = moderate(*replace(fit, bias=None).margins(rows))
    near, far = rows[:, 1], rows[:, 2]

    def cost(bias: Floats) -> tuple[float, Floats]:
        margin = known + bias[near] - bias[far]
        surprise = weights * expit(-margin)
        gradient = np.bincount(far, surprise, n) - np.bincount(near, surprise, n)
        loss = 0.5 * float(np.sum(bias**2)) - float(np.sum(weights * log_expit(margin)))
        return loss, gradient + bias

    return least(cost, np.zeros(n))


def covariances_at(X: Floats, answers: Answers, noise: Noise) -> Floats:
    """The covariance of each position, the others held fixed: one ``(d, d)`` block per object."""
    precision = answers.information(X, noise) + np.eye(X.shape[1]) / noise.prior**2
    return np.linalg.inv(precision).astype(np.float64)


def cloud(n_objects: int, d: int, rng: np.random.Generator | None) -> Floats:
    """A random start for a fit in d dimensions, in a few more."""
    return random_start(n_objects, d + EXTRA, np.random.default_rng(rng))


def _reduced(answers: Answers, d: int, noise: Noise, wide: Floats, max_iter: int) -> Floats:
    """Initial positions: by the t curve, where no answer has much force, then by the noise's.

    Of 50 fits to zappos85 (random, our own and another chooser's questions) and simulated answers,
    each fell short of the best log-posterior known by 2.2 on average; by 3.0 with the t curve
    alone, by 5.3 with the noise's curve alone. The last step introduces the prior.
    """
    rough = Noise(WEAK_PRIOR, tail=1.0)
    above = answers.maximise(rough, wide, max_iter, 1e-4)
    X = answers.maximise(rough, principal_axes(above.positions, d), max_iter, 1e-4).positions
    if not noise.tail:
        weak = replace(noise, prior=WEAK_PRIOR)
        X = answers.maximise(weak, spread_out(X), max_iter, 1e-4).positions
    return np.asarray(X * min(1.0, noise.prior / WEAK_PRIOR))


def spread_out(X: Floats) -> Floats:
    """Positions as wide as the weak prior, from which fits by the logistic curve start."""
    return np.asarray(X * (WEAK_PRIOR / max(float(X.std()), 1e-9)))


def log_posterior(answers: Answers, X: Floats, noise: Noise) -> float:
    """The log-posterior of positions, up to a constant."""
    return -answers.sums(X, noise)[0] - 0.5 * float(np.vdot(X, X)) / noise.prior**2


def near_questions(X: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Questions about two of the 2·log2 n objects nearest to a head.

    If the order of a share ε of the pairs is wrong, a share ε of the log2 n nearest objects is
    missed: an object that is no longer among the nearest has changed places at their border.
    """
    n = len(X)
    heads = rng.integers(n, size=count)
    nearest = KDTree(X).query(X[heads], min(n, 2 * int(np.ceil(np.log2(n))) + 1))[1]
    pairs = rng.permuted(nearest, axis=1)[:, :2]
    others = (pairs != heads[:, None]).all(axis=1)
    return np.asarray(np.column_stack([heads, pairs])[others], dtype=np.int64)


def expected_tau(fit: Posterior, sharpness: float = 1.0) -> float:
    """Kendall's τ expected of positions; less if held-out answers need a flatter curve."""
    questions = random_questions(len(fit.positions), QUESTIONS, np.random.default_rng(0))
    mean, variance = fit.margins(questions)
    right = ndtr(min(1.0, sharpness) * np.abs(mean) / np.sqrt(np.maximum(variance, 1e-12)))
    return float(np.mean(2 * right - 1))
