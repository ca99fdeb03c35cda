r"""Positions from answers that may be wrong, and how sure they are.

*Model.* An answer about the margin t = f(‖head − far‖) − f(‖head − near‖) is right with
probability ε + (1 − 2ε)/(1 + exp(−t)): doubt near a tie, and a lapse rate ε for wrong answers
anywhere. A distance counts as it is, f(δ) = δ, or with a heavy tail, f(δ) = (α + 1)/2 ·
log(1 + δ²/α), for people to whom far and very far are the same (van der Maaten and Weinberger
2012). Every coordinate has a Gaussian prior of standard deviation s. Positions are the maximum of
the posterior.

*Covariances.* Around the maximum the posterior of each object, the others held fixed, is close to
a Gaussian whose precision is the Fisher information of its answers plus that of the prior
(Laplace's method). An object nobody was asked about keeps the prior's covariance.

*Predictions.* Averaging the logistic curve over a margin of variance v flattens it by
√(1 + πv/8) (MacKay 1992). Real answers are no exact logistic curve of distances in a few
dimensions, and the prior that predicts best is then stronger than the one that explains best; so
the flattened margin is multiplied by a *sharpness* β, fitted to held-out answers. What a fit
assumes (`Noise`) and how its predictions are curved (`Curve`) are two things, each with a lapse
rate of its own. See `nearer.fitting.heldout` for how they are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtr

from nearer import checks
from nearer.fitting.device import margins
from nearer.fitting.initial import principal_axes, relocate
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.solver import Fit, Passes, prepare
from nearer.questions import pack, random_questions, scattered

if TYPE_CHECKING:
    from nearer.fitting.choices import Choices

__all__ = [
    "QUESTIONS",
    "WEAK_PRIOR",
    "Curve",
    "Evidence",
    "MarginForecast",
    "Noise",
    "Posterior",
    "as_evidence",
    "cloud",
    "covariances_at",
    "expected_tau",
    "fit_bias",
    "fit_posterior",
    "log_posterior",
    "moderate",
    "spread_out",
]

# `python -m benchmarks sensitivity` halves and doubles the first two.
_MORE = 2  # dimensions a fit from nothing begins with beyond those asked for
WEAK_PRIOR = 16.0  # a prior that hardly shrinks: a margin of this size is answered without doubt
QUESTIONS = 4000  # random ones that the expected quality is a mean over: to .002 where it is .99


@dataclass(frozen=True)
class Noise:
    """What a fit takes answers to be.

    Attributes
    ----------
    prior
        Standard deviation of a coordinate before any answer, in units of the answers' noise.
    lapse
        Probability of a wrong answer however clear the question is.
    tail
        0: the logistic curve. Otherwise the degrees of freedom of the t curve, in which a distance
        counts less the greater it is; fits by it take no lapses, predictions do.
    bias
        Standard deviation of the bias of an object, in the same units; 0: no object has one. An
        object with a bias is called nearer than the distances say, whatever the head is. Where
        distances are equal, a bias is what an oracle's rule for ties comes to.
    """

    prior: float = 1.0
    lapse: float = 0.0
    tail: float = 0.0
    bias: float = 0.0

    @property
    def loss(self) -> Loss:
        """What an answer costs under this noise."""
        return Loss("tste", self.tail) if self.tail else Loss("logistic", self.lapse)

    def ridge(self, total: float) -> float:
        """The prior as a ridge of the mean loss over answers of this total weight."""
        return 1 / (total * self.prior**2)


@dataclass(frozen=True)
class Curve:
    """How margins become probabilities of what people say.

    Attributes
    ----------
    sharpness
        Factor of the margin.
    lapse
        Probability of the unlikely answer however clear the question is.
    """

    sharpness: float = 1.0
    lapse: float = 0.0

    def probability(self, margins: Floats) -> Floats:
        """How likely it is that people say what the sign of the margin says."""
        return np.asarray(self.lapse + (1 - 2 * self.lapse) * expit(self.sharpness * margins))


@dataclass(frozen=True)
class Evidence:
    """Answers, equal ones counted once with their weight, sorted by head.

    Attributes
    ----------
    triplets, weights
        Distinct rows ``(head, near, far)`` and how much each counts.
    question
        A number for each row that is the same for both answers to one question.
    odds
        How many times likelier than a random question each row was to be asked.
    row
        For each answer that was given, its row.
    """

    triplets: NDArray[np.int32]
    weights: Floats
    question: NDArray[np.int64]
    odds: Floats
    row: NDArray[np.int64]
    n_objects: int

    def __len__(self) -> int:
        return len(self.triplets)

    @cached_property
    def passes(self) -> Passes:
        """The answers, laid out for passes over them."""
        return prepare(self.triplets, self.n_objects, self.weights)

    @property
    def total(self) -> float:
        """How many comparisons it is worth."""
        return float(self.weights.sum())

    @property
    def terms(self) -> int:
        """How many terms a pass sums up."""
        return len(self.triplets)

    @cached_property
    def parts(self) -> dict[int, tuple[Evidence, Evidence, NDArray[np.int64]]]:
        """Room for the folds that predictions are made from, again and again."""
        return {}

    @cached_property
    def group(self) -> NDArray[np.uint64]:
        """A scattered number for each row, the same for all about the same three objects."""
        return scattered(np.sort(self.triplets, axis=1))

    def climb(self, noise: Noise, start: Floats, max_iter: int, tol: float) -> Fit:
        """The most probable positions under this noise, from a start."""
        loss, passes = noise.loss, self.passes
        how: Any = {"ridge": noise.ridge(self.total), "max_iter": max_iter, "tol": tol}
        return passes.fit(loss, start, **how)

    def loss(self, X: Floats, noise: Noise) -> float:
        """Mean negative log-likelihood."""
        return self.passes.mean_loss(noise.loss, X)

    def sums(self, X: Floats, noise: Noise) -> tuple[float, Floats]:
        """Weighted sum of −log p, and its gradient in the positions."""
        return self.passes.sums(noise.loss, X)

    def information(self, X: Floats, noise: Noise) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        return self.passes.information(X, noise.lapse, noise.tail)

    def forecast(self, fit: Posterior) -> MarginForecast:
        """What a fit says about the answers."""
        return MarginForecast(moderate(*fit.margins(self.triplets)))

    def part(self, rows: NDArray[np.bool_]) -> Evidence:
        """Some of the rows."""
        return replace(
            self,
            triplets=self.triplets[rows],
            weights=self.weights[rows],
            question=self.question[rows],
            odds=self.odds[rows],
        )


def as_evidence(
    triplets: ArrayLike,
    n_objects: int | None = None,
    weights: ArrayLike | None = None,
    odds: ArrayLike | None = None,
) -> Evidence:
    """Answers in the form that fits use; equal answers become one row of greater weight."""
    if len(np.asarray(triplets)) == 0 and n_objects is not None:
        none, no = np.empty(0, dtype=np.int64), np.empty(0)
        return Evidence(np.empty((0, 3), dtype=np.int32), no, none, no, none, n_objects)
    rows, n = checks.triplets(triplets, n_objects)
    keys, mirrored = pack(rows)
    _, first, inverse = np.unique(2 * keys + mirrored, return_index=True, return_inverse=True)
    counts = np.bincount(inverse, weights=checks.weights(weights, len(rows)))
    summed: Floats = counts.astype(np.float64)
    return Evidence(
        rows[first], summed, keys[first], checks.weights(odds, len(rows))[first], inverse, n
    )


@dataclass(frozen=True)
class Posterior:
    """Where objects probably are, and what they make people answer.

    Attributes
    ----------
    positions
        ``(n_objects, n_components)``.
    covariances
        ``(n_objects, n_components, n_components)``, each object's own.
    noise
        What the answers were taken to be.
    curve
        How its predictions are curved.
    loss, n_iter, converged
        Mean negative log-likelihood of the answers, and how the optimiser fared.
    bias
        How much nearer than its distance each object is called; None: not at all.
    """

    positions: Floats
    covariances: Floats
    noise: Noise
    curve: Curve = Curve()
    loss: float = np.nan
    n_iter: int = 0
    converged: bool = True
    bias: Floats | None = None

    def margins(self, questions: NDArray[np.integer]) -> tuple[Floats, Floats]:
        """How much farther b is from the head than a is: mean and variance, for each question."""
        mean, variance = margins(self.positions, self.covariances, questions, self.noise.tail)
        if self.bias is not None:
            mean = mean + self.bias[questions[:, 1]] - self.bias[questions[:, 2]]
        return mean, variance

    def probability(self, questions: NDArray[np.integer]) -> Floats:
        """How likely it is that people say a is nearer to head than b is."""
        return self.curve.probability(moderate(*self.margins(np.asarray(questions))))


@dataclass(frozen=True)
class MarginForecast:
    """Predicted margins of comparisons, positive where the prediction agrees with the answer.

    They are smaller where they are unsure, see `moderate`.
    """

    margins: Floats

    @classmethod
    def joined(cls, parts: Sequence[MarginForecast]) -> MarginForecast:
        """Several as one."""
        return cls(np.concatenate([part.margins for part in parts]))

    def scaled(self, factor: float) -> MarginForecast:
        """The same in another unit of distance."""
        return MarginForecast(self.margins * factor)

    def along(self, sharpness: float, lapse: float) -> tuple[Floats, Floats, Floats]:
        """Log-probability of each answer, and its slopes in the two numbers of the curve."""
        t = self.margins
        right = expit(sharpness * t)
        p = np.maximum(lapse + (1 - 2 * lapse) * right, 1e-300)
        by_sharpness = (1 - 2 * lapse) * right * (1 - right) * t / p
        return np.log(p), by_sharpness, (1 - 2 * right) / p

    @property
    def right(self) -> Floats:
        """1 for each answer that was predicted, ½ at a tie, where a coin decides, else 0."""
        return np.asarray((1 + np.sign(self.margins)) / 2)

    @property
    def size(self) -> float:
        """A typical margin."""
        return float(np.median(np.abs(self.margins)))


def moderate(mean: Floats, variance: Floats) -> Floats:
    """Margins, smaller where they are unsure, so that one curve turns them into probabilities."""
    return np.asarray(mean / np.sqrt(1 + np.pi / 8 * variance))


def fit_posterior(
    evidence: Evidence | Choices,
    n_components: int,
    noise: Noise,
    *,
    start: Floats | None = None,
    rng: np.random.Generator | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
    rescue: bool = False,
) -> Posterior:
    """The most probable positions for given noise, with a covariance each.

    Parameters
    ----------
    evidence
        Answers, from `as_evidence` or `nearer.fitting.choices.as_choices`.
    n_components
        Dimension of the positions.
    noise
        Prior and lapse rate.
    start
        Positions of an earlier fit, or a `cloud`: from nothing, the fit begins with the t curve,
        in two dimensions more, and under a weak prior: there poor optima are rare.
    rng
        Source of the cloud when there is no start.
    max_iter, tol
        As in `fit_positions`.

    Examples
    --------
    >>> import numpy as np
    >>> answers = as_evidence([[0, 1, 2], [0, 1, 2], [2, 1, 0]], n_objects=4)
    >>> fit = fit_posterior(answers, 2, Noise(), rng=np.random.default_rng(0))
    >>> fit.positions.shape, fit.covariances[3].round(3).tolist()
    ((4, 2), [[1.0, 0.0], [0.0, 1.0]])
    """
    n, prior = evidence.n_objects, noise.prior
    if not len(evidence):
        covariances: Floats = np.tile(prior**2 * np.eye(n_components), (n, 1, 1))
        return Posterior(np.zeros((n, n_components)), covariances, noise)
    if start is None:
        start = cloud(n, n_components, rng)
    if start.shape[1] > n_components:
        start = _come_down(evidence, n_components, noise, start, max_iter)
    fit = evidence.climb(noise, start, max_iter, tol)
    if rescue and isinstance(evidence, Evidence):
        fit = _rescued(evidence, fit, noise, max_iter, tol)
    X = fit.positions
    covariances = covariances_at(X, evidence, noise)
    found = Posterior(
        X, covariances, noise, loss=fit.loss, n_iter=fit.n_iter, converged=fit.converged
    )
    if noise.bias and isinstance(evidence, Evidence):
        found = replace(found, bias=fit_bias(evidence, found))
    return found


def fit_bias(evidence: Evidence, fit: Posterior) -> Floats:
    """The most probable bias of each object, the positions held fixed (Bradley and Terry 1952).

    Examples
    --------
    >>> answers = as_evidence([[0, 1, 2], [3, 1, 2], [4, 1, 2]], n_objects=5)
    >>> at_one_place = Posterior(np.zeros((5, 1)), np.zeros((5, 1, 1)), Noise(bias=1.0))
    >>> fit_bias(answers, at_one_place).round(2).tolist()
    [0.0, 0.65, -0.65, 0.0, 0.0]
    """
    rows, weights, n = evidence.triplets, evidence.weights, evidence.n_objects
    known = moderate(*replace(fit, bias=None).margins(rows))
    near, far = rows[:, 1], rows[:, 2]

    def cost(bias: Floats) -> tuple[float, Floats]:
        margin = known + bias[near] - bias[far]
        surprise = weights * expit(-margin)
        gradient = np.bincount(far, surprise, n) - np.bincount(near, surprise, n)
        spread = bias / fit.noise.bias
        loss = -float(np.sum(weights * log_expit(margin))) + 0.5 * float(np.sum(spread**2))
        return loss, gradient + spread / fit.noise.bias

    return np.asarray(minimize(cost, np.zeros(n), jac=True, method="L-BFGS-B").x)


def _rescued(evidence: Evidence, fit: Fit, noise: Noise, max_iter: int, tol: float) -> Fit:
    """Look for better places of objects that violate many of their answers, and fit again."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        wrong = evidence.passes.violated(fit.positions)
        if not 0 < wrong.mean() < 0.1:
            break
        X = relocate(fit.positions, evidence.triplets, wrong, rng)
        if np.array_equal(X, fit.positions):
            break
        other = evidence.climb(noise, X, max_iter, tol)
        if log_posterior(evidence, other.positions, noise) <= 1e-6 + log_posterior(
            evidence, fit.positions, noise
        ):
            break
        fit = other
    return fit


def covariances_at(X: Floats, evidence: Evidence | Choices, noise: Noise) -> Floats:
    """How unsure each position is, the others held fixed: one ``(d, d)`` block an object."""
    told = evidence.information(X, noise) + np.eye(X.shape[1]) / noise.prior**2
    return np.linalg.inv(told).astype(np.float64)


def cloud(n_objects: int, d: int, rng: np.random.Generator | None) -> Floats:
    """A random start for a fit in d dimensions, in two more."""
    return np.random.default_rng(rng).normal(scale=0.1, size=(n_objects, d + _MORE))


def _come_down(
    evidence: Evidence | Choices, d: int, noise: Noise, wide: Floats, max_iter: int
) -> Floats:
    """Positions to begin at: by the t curve, in which no answer pulls hard, then by the noise's.

    Of 50 fits to zappos85 (random, our own and another chooser's questions) and simulated answers,
    each fell short of the best log-posterior known by 2.2 on average; by 3.0 where the t curve
    alone led, by 5.3 where the fit began under its own noise. The last step brings the prior.
    """
    rough = Noise(WEAK_PRIOR, tail=1.0)
    above = evidence.climb(rough, wide, max_iter, 1e-4)
    X = evidence.climb(rough, principal_axes(above.positions, d), max_iter, 1e-4).positions
    if not noise.tail:
        weak = replace(noise, prior=WEAK_PRIOR)
        X = evidence.climb(weak, spread_out(X), max_iter, 1e-4).positions
    return np.asarray(X * (noise.prior / WEAK_PRIOR))


def spread_out(X: Floats) -> Floats:
    """Positions as wide as the weak prior: where fits by the logistic curve begin."""
    return np.asarray(X * (WEAK_PRIOR / max(float(X.std()), 1e-9)))


def log_posterior(evidence: Evidence | Choices, X: Floats, noise: Noise) -> float:
    """How probable positions are, but for a constant."""
    loss, distance = evidence.loss(X, noise), float(np.vdot(X, X)) / noise.prior**2
    return -loss * float(evidence.weights.sum()) - 0.5 * distance


def expected_tau(fit: Posterior, sharpness: float) -> float:
    """Kendall's τ that is expected of positions; see `nearer.fitting.belief`.

    `sharpness` is that of the curve held-out answers ask for; below 1 positions are less sure.
    """
    questions = random_questions(len(fit.positions), QUESTIONS, np.random.default_rng(0))
    mean, variance = fit.margins(questions)
    sure = min(1.0, sharpness)
    right = ndtr(sure * np.abs(mean) / np.sqrt(np.maximum(variance, 1e-12)))
    return float(np.mean(2 * right - 1))
