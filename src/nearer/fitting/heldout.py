r"""Prior, lapse rate and sharpness from answers that a fit has not seen.

Answers are dealt into folds by question, so that both answers to one question lie in one fold. A
fit to the other folds predicts the margin of each held-out answer; one curve
p = ε + (1 − 2ε)/(1 + exp(−βt)) turns margins into probabilities, and the two numbers of the curve
are the ones that make the held-out answers most likely. The mean log-likelihood under the best
curve is the *score* of a prior: it is honest but for the two numbers, does not depend on the unit
of distance, and is what dimensions are compared by too.

The prior's standard deviation is found by climbing over steps of a factor 1.5, each fit starting
from the one of the same fold before, which never saw that fold. The lapse rate of the best curve is what the next fits use. When there are
many answers, a few folds hold enough of them and the others are not evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from nearer.fitting.losses import Floats
from nearer.fitting.posterior import Evidence, Noise, Posterior, fit_posterior, moderate

__all__ = ["HeldOut", "fit_curve", "hold_out", "tune"]

_FOLDS = 5
_ENOUGH = 4000  # held-out answers that settle a comparison of priors
_STEP = 1.5
_WORTH = 2e-4  # differences of the score below this are none
_ADVANTAGE = 0.5  # standard errors by which another prior must be better
_FEWEST = 20  # answers below which nothing can be held out
_SPREAD = 0x9E3779B97F4A7C15  # an odd multiplier that scatters question numbers over the folds


@dataclass(frozen=True)
class HeldOut:
    """Predictions of answers that the fits behind them have not seen.

    Attributes
    ----------
    rows
        Which rows of the evidence were held out.
    margins
        Their predicted margins, positive where the prediction agrees with the answer.
    log_likelihood
        Of each, under the best curve.
    score
        Its weighted mean; −log 2 is what guessing gives.
    noise
        The prior used, and the curve's lapse rate and sharpness.
    fits
        Positions for each fold, from which later calls go on.
    """

    rows: NDArray[np.int64]
    margins: Floats
    log_likelihood: Floats
    score: float
    noise: Noise
    fits: tuple[Floats, ...]

    def advantage(self, other: HeldOut) -> float:
        """How much more likely the same answers are here, in standard errors of the difference."""
        gain = self.log_likelihood - other.log_likelihood
        error = float(np.std(gain)) / np.sqrt(len(gain))
        difference = self.score - other.score
        return 0.0 if abs(difference) <= _WORTH else difference / max(error, _WORTH)

    @property
    def accuracy(self) -> float:
        """Share of held-out rows that were predicted rightly."""
        return float(np.mean(self.margins > 0))


def hold_out(
    evidence: Evidence,
    n_components: int,
    noise: Noise,
    *,
    starts: tuple[Floats, ...] = (),
    rng: np.random.Generator | None = None,
) -> HeldOut:
    """Predict answers from the others, fold by fold, and find the curve that fits them best.

    `starts` are positions for the first folds from an earlier call with fewer answers or another
    noise: they never saw their fold. A fold without a start is fitted from nothing; a start
    that has seen the answers would remember them wherever the prior is weak.
    """
    fold = _folds(evidence.question)
    rng = np.random.default_rng(rng)
    margins, rows, fits = [], [], []
    held = 0.0
    for k in range(_FOLDS):
        out = fold == k
        start = starts[k] if k < len(starts) else None
        fit = fit_posterior(evidence.part(~out), n_components, noise, start=start, rng=rng)
        fits.append(fit.positions)
        margins.append(moderate(*fit.margins(evidence.triplets[out])))
        rows.append(np.flatnonzero(out))
        held += float(evidence.weights[out].sum())
        if held >= _ENOUGH:
            break
    t, at = np.concatenate(margins), np.concatenate(rows)
    sharpness, lapse, logs = fit_curve(t, evidence.weights[at])
    score = float(np.average(logs, weights=evidence.weights[at]))
    return HeldOut(at, t, logs, score, Noise(noise.prior, lapse, sharpness), tuple(fits))


def tune(
    evidence: Evidence,
    start: Posterior,
    *,
    starts: tuple[Floats, ...] = (),
    rng: np.random.Generator | None = None,
    max_steps: int = 8,
) -> tuple[Posterior, HeldOut | None]:
    """Find the noise under which held-out answers are most likely, and fit with it.

    Parameters
    ----------
    evidence
        Answers, from `as_evidence`.
    start
        A fit to the same or earlier answers; the search begins at its noise.
    starts, rng
        As in `hold_out`.
    max_steps
        How many priors may be tried beyond the first.

    Returns
    -------
    fit, held_out
        The fit to all answers; the held-out predictions behind its noise, None where there are
        too few answers to hold any out.
    """
    d, prior = start.positions.shape[1], start.noise.prior
    if len(np.unique(evidence.question)) < _FEWEST:
        return fit_posterior(evidence, d, start.noise, start=start.positions), None

    def evaluate(factor: float, held: HeldOut) -> HeldOut:
        noise = Noise(held.noise.prior * factor, _rounded(held.noise.lapse))
        return hold_out(evidence, d, noise, starts=tuple(factor * X for X in held.fits))

    held = hold_out(evidence, d, Noise(prior, start.noise.lapse), starts=starts, rng=rng)
    if abs(held.noise.lapse - start.noise.lapse) > 0.01:
        held = max(held, evaluate(1.0, held), key=lambda tried: tried.score)
    factor, turned = _STEP, False
    for _ in range(max_steps):
        tried = evaluate(factor, held)
        if tried.advantage(held) > _ADVANTAGE:
            held, turned = tried, True
        elif turned:
            break
        else:
            factor, turned = 1 / factor, True
    noise = replace(held.noise, lapse=_rounded(held.noise.lapse))
    fit = fit_posterior(evidence, d, noise, start=start.positions * (noise.prior / prior))
    return replace(fit, noise=held.noise), held


def fit_curve(margins: Floats, weights: Floats) -> tuple[float, float, Floats]:
    """Sharpness and lapse rate under which answers with these margins are most likely.

    Returns
    -------
    sharpness, lapse, log_likelihood
        The last one for each answer.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.repeat([4.0, -4.0], [90, 10])                # nine of ten clear answers are right
    >>> sharpness, lapse, _ = fit_curve(t, np.ones(100))
    >>> bool(0.09 < lapse + (1 - 2 * lapse) * expit(-4 * sharpness) < 0.11)
    True
    """
    scale = 1 / max(float(np.median(np.abs(margins))), 1e-9)
    t = margins * scale

    def cost(x: Floats) -> tuple[float, Floats]:
        right = expit(x[0] * t)
        p = np.maximum(x[1] + (1 - 2 * x[1]) * right, 1e-300)
        by_sharpness = (1 - 2 * x[1]) * right * (1 - right) * t / p
        by_lapse = (1 - 2 * right) / p
        gradient = np.array([weights @ by_sharpness, weights @ by_lapse])
        return -float(weights @ np.log(p)) / total, -gradient / total

    total = float(weights.sum())
    found = minimize(
        cost, np.array([1.0, 0.02]), jac=True, method="L-BFGS-B", bounds=[(0, 1e3), (0, 0.499)]
    )
    sharpness, lapse = (float(value) for value in found.x)
    logs = np.log(np.maximum(lapse + (1 - 2 * lapse) * expit(sharpness * t), 1e-300))
    return sharpness * scale, lapse, logs


def _folds(question: NDArray[np.int64]) -> NDArray[np.int64]:
    scattered = question.astype(np.uint64) * np.uint64(_SPREAD)
    return ((scattered >> np.uint64(33)) % np.uint64(_FOLDS)).astype(np.int64)


def _rounded(lapse: float) -> float:
    """A lapse rate for fits: below half a percent none, and never so high that nothing is left."""
    return 0.0 if lapse < 0.005 else min(lapse, 0.45)
