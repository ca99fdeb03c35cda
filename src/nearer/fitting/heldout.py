r"""Prior, lapse rate and sharpness from answers that a fit has not seen.

Answers are dealt into folds by the three objects of their question, so that both answers to one
question lie in one fold, and so do the two triplets that an odd-one-out answer becomes. A fit to
the other folds predicts the margin of each held-out answer; one curve
p = ε + (1 − 2ε)/(1 + exp(−βt)) turns margins into probabilities, and the two numbers of the curve
are the ones that make the held-out answers most likely. The mean log-likelihood under the best
curve is the *score* of a prior: it is honest but for the two numbers, does not depend on the unit
of distance, and is what dimensions are compared by too.

*Chosen questions* are harder than random ones, and a curve that suits them is too flat elsewhere.
So each held-out answer counts by one over how much likelier than a random one its question was to
be asked (Horvitz and Thompson 1952). Where questions were random this changes nothing.

*The prior* is found from the sharpness of the curve. A prior that is too weak lets positions
follow the noise, and held-out answers ask for a flatter curve than the fit's own; one that is too
strong shrinks all margins, and they ask for a steeper one. Where held-out answers to random
questions were most likely, the sharpness was close to 1 + 3.2/√(answers per coordinate) in the two
sets of answers the rule was fitted on by hand, zappos85 and one simulated mixture
(``python -m benchmarks noise`` prints it for others), so
the prior is changed until the sharpness is about that. Comparing held-out likelihoods directly
chooses the same where questions are random, is noisier, and is misled where the fit chose them.
Choices of more than two alternatives are known better: there the likelihoods are compared.

Each fit starts from the one of the same fold before, which never saw that fold. When there are
many answers, a few folds hold enough of them and the others are not evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nearer.fitting.choices import ChoiceForecast, Choices
from nearer.fitting.dimension import advantage
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.posterior import (
    Curve,
    Evidence,
    MarginForecast,
    Noise,
    Posterior,
    fit_posterior,
)
from nearer.fitting.solver import margins
from nearer.fitting.starts import fit_from_above
from nearer.questions import scattered

__all__ = ["HeldOut", "as_noise", "fit_curve", "hold_out", "hold_out_once", "is_sharp", "tune"]

_FOLDS = 5
_ENOUGH = 4000  # held-out answers that settle a comparison of priors
_SHARPENING = 3.2  # how much steeper curves are where priors predict best, see above
_STEP = 1.5  # by which priors of choices are changed; likelihoods are flat around their best
_SHOWN = 0.5  # standard errors by which a changed prior must predict choices better
_TOLERANCE = 1.25  # factor by which the sharpness may miss its aim
_LEAST_PRIOR, _MOST_PRIOR = 0.3, 100.0
_TELLING = 4.0  # answers a coordinate from which on held-out answers say something of the prior
_FLATTEST = 0.05  # sharpness of predictions that are all but guesses
_SAME_LAPSE = 0.01
_FEWEST = 20  # answers below which nothing can be held out


@dataclass(frozen=True)
class HeldOut:
    """Predictions of answers that the fits behind them have not seen.

    Attributes
    ----------
    rows
        Which rows of the evidence were held out.
    forecast
        What was predicted: margins of comparisons, utilities of choices.
    log_likelihood
        Of each, under the best curve.
    weights
        How much each counts, one on average.
    piece
        A number for each, the same where they are about the same three objects.
    noise
        What the fits behind them assumed.
    curve
        The curve for random questions.
    own_curve
        The curve for the questions asked.
    fits
        Positions for each fold, from which later calls go on.
    """

    rows: NDArray[np.int64]
    forecast: MarginForecast | ChoiceForecast
    log_likelihood: Floats
    weights: Floats
    piece: NDArray[np.int64]
    noise: Noise
    curve: Curve
    own_curve: Curve
    fits: tuple[Floats, ...]

    @property
    def pieces(self) -> Floats:
        """Log-likelihood of the answers about the same three objects, which tell the same."""
        return np.asarray(np.bincount(self.piece, self.weights * self.log_likelihood), np.float64)

    def advantage(self, other: HeldOut) -> float:
        """By how many standard errors the same answers are more likely here."""
        return advantage(self.pieces, other.pieces)

    @property
    def score(self) -> float:
        """Mean log-likelihood; −log 2 is what guessing gives."""
        return float(np.average(self.log_likelihood, weights=self.weights))

    @property
    def effective_share(self) -> float:
        """Share of equally weighted answers that would tell as much; 1 for random questions."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum() / len(self.weights))

    @property
    def accuracy(self) -> float:
        """Share of answers that were predicted rightly."""
        known = np.isfinite(self.right)
        return float(np.average(self.right[known], weights=self.weights[known]))

    @property
    def right(self) -> Floats:
        """How far each answer was predicted, from 0 to 1; nan where nobody could decide."""
        return self.forecast.right


def hold_out(
    evidence: Evidence | Choices,
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
    group = evidence.group
    fold = _fold_of(group)
    rng = np.random.default_rng(rng)
    predicted: list[Any] = []
    rows, fits = [], []
    held = 0.0
    for k in range(_FOLDS):
        out = fold == k
        start = starts[k] if k < len(starts) else None
        fit = fit_posterior(evidence.part(~out), n_components, noise, start=start, rng=rng)
        fits.append(fit.positions)
        predicted.append(evidence.part(out).forecast(fit))
        rows.append(np.flatnonzero(out))
        held += float(evidence.weights[out].sum())
        if held >= _ENOUGH:
            break
    forecast, at = predicted[0].joined(predicted), np.concatenate(rows)
    asked, odds = evidence.weights[at], evidence.odds[at]
    weights = asked / odds
    curve, logs = fit_curve(forecast, weights)
    own = fit_curve(forecast, asked)[0] if (odds != 1).any() else curve
    piece = np.unique(group[at], return_inverse=True)[1]
    counts = weights / weights.mean()
    return HeldOut(at, forecast, logs, counts, piece, noise, curve, own, tuple(fits))


def hold_out_once(
    rows: NDArray[np.int32],
    weights: Floats,
    n: int,
    n_components: int,
    loss: Loss,
    rng: np.random.Generator,
) -> HeldOut | None:
    """The same for a fit that minimises a loss and knows no prior: one fold in five is predicted.

    None where there are too few answers to hold any out.
    """
    group = scattered(np.sort(rows, axis=1))
    out = _fold_of(group) == 0
    if not out.any() or out.all():
        return None
    fit = fit_from_above(
        rows[~out], n, n_components, loss=loss, weights=weights[~out], rng=rng, max_iter=1000
    )
    forecast = MarginForecast(margins(fit.positions, rows[out]))
    curve, logs = fit_curve(forecast, weights[out])
    piece = np.unique(group[out], return_inverse=True)[1]
    counts = weights[out] / weights[out].mean()
    at = np.flatnonzero(out)
    return HeldOut(at, forecast, logs, counts, piece, Noise(), curve, curve, (fit.positions,))


def tune(
    evidence: Evidence | Choices,
    start: Posterior,
    *,
    starts: tuple[Floats, ...] = (),
    rng: np.random.Generator | None = None,
    max_steps: int = 6,
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
        How often the prior may be doubled, or halved.

    Returns
    -------
    fit, held_out
        The fit to all answers; the held-out predictions behind its noise, None where there are
        too few answers to hold any out.
    """
    d, prior = start.positions.shape[1], start.noise.prior
    questions = evidence.group if isinstance(evidence, Choices) else evidence.question
    if len(np.unique(questions)) < _FEWEST:
        return fit_posterior(evidence, d, start.noise, start=start.positions), None
    per_coordinate = evidence.total / (evidence.n_objects * d)
    aim = _aim(per_coordinate)
    used = start.noise
    held = hold_out(evidence, d, used, starts=starts, rng=rng)
    if isinstance(evidence, Choices):
        held = _climbed(evidence, d, held, max_steps)
        fit = fit_posterior(
            evidence, d, held.noise, start=start.positions * (held.noise.prior / prior)
        )
        return replace(fit, curve=held.curve), held
    for _ in range(max_steps):
        noise = _told(used, held.own_curve)
        if per_coordinate >= _TELLING and not noise.tail:
            noise = replace(noise, prior=_corrected(used.prior, held.own_curve, aim))
        if noise.prior == used.prior and abs(noise.lapse - used.lapse) <= _SAME_LAPSE:
            break
        fits = tuple(noise.prior / used.prior * X for X in held.fits)
        held, used = hold_out(evidence, d, noise, starts=fits), noise
    noise = _told(used, held.own_curve)
    fit = fit_posterior(evidence, d, noise, start=start.positions * (noise.prior / prior))
    return replace(fit, curve=held.curve), held


def fit_curve(forecast: MarginForecast | ChoiceForecast, weights: Floats) -> tuple[Curve, Floats]:
    """The curve under which the answers are most likely.

    Returns
    -------
    curve, log_likelihood
        The latter of each answer.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.repeat([4.0, -4.0], [90, 10])                # nine of ten clear answers are right
    >>> curve, _ = fit_curve(MarginForecast(t), np.ones(100))
    >>> bool(0.89 < curve.probability(np.array([4.0]))[0] < 0.91)
    True
    """
    scale = 1 / max(forecast.size, 1e-9)
    unit = forecast.scaled(scale)

    def cost(x: Floats) -> tuple[float, Floats]:
        logs, by_sharpness, by_lapse = unit.along(x[0], x[1])
        gradient = np.array([weights @ by_sharpness, weights @ by_lapse])
        return -float(weights @ logs) / total, -gradient / total

    total = float(weights.sum())
    bounds = [(_FLATTEST, 1e3), (0, 0.499)]
    found = minimize(cost, np.array([1.0, 0.02]), jac=True, method="L-BFGS-B", bounds=bounds)
    sharpness, lapse = (float(value) for value in found.x)
    curve = Curve(sharpness * scale, lapse)
    return curve, forecast.along(curve.sharpness, lapse)[0]


def _climbed(evidence: Choices, d: int, held: HeldOut, max_steps: int) -> HeldOut:
    """Change the prior while that makes held-out choices more likely.

    The first step goes where the sharpness of the curve points to: with steep curves to a weaker
    prior, with flat ones to a stronger.
    """
    told = _told(held.noise, held.own_curve)
    if abs(told.lapse - held.noise.lapse) > _SAME_LAPSE:
        held = max(held, hold_out(evidence, d, told, starts=held.fits), key=lambda h: h.score)
    factor = _STEP if held.own_curve.sharpness > 1 else 1 / _STEP
    turned = False
    for _ in range(max_steps):
        prior = float(np.clip(held.noise.prior * factor, _LEAST_PRIOR, _MOST_PRIOR))
        noise = replace(_told(held.noise, held.own_curve), prior=prior)
        fits = tuple(prior / held.noise.prior * X for X in held.fits)
        other = hold_out(evidence, d, noise, starts=fits)
        if other.advantage(held) > _SHOWN:
            held, turned = other, True
        elif turned:
            break
        else:
            factor, turned = 1 / factor, True
    return held


def _fold_of(group: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.asarray((group >> np.uint64(33)) % np.uint64(_FOLDS), dtype=np.int64)


def is_sharp(curve: Curve, per_coordinate: float) -> bool:
    """Whether a curve is as sharp as where a prior predicts best, see the module's head."""
    return 1 / _TOLERANCE < curve.sharpness / _aim(per_coordinate) < _TOLERANCE


def _aim(per_coordinate: float) -> float:
    return 1 + _SHARPENING / math.sqrt(per_coordinate)


def _corrected(prior: float, curve: Curve, aim: float) -> float:
    """A prior under which the sharpness comes nearer to its aim."""
    off = curve.sharpness / aim
    if 1 / _TOLERANCE < off < _TOLERANCE:
        return prior
    prior = prior * min(max(off**1.5, 0.2), 5.0)  # sharpness falls as about prior^(-2/3)
    return float(np.clip(prior, _LEAST_PRIOR, _MOST_PRIOR))


def as_noise(X: Floats, curve: Curve) -> Noise:
    """What answers are like that positions in another unit predict along this curve.

    The curve's sharpness makes the doubt of the answers the unit, and the prior is as wide as the
    positions then are.
    """
    prior = float(np.clip(curve.sharpness * X.std(), _LEAST_PRIOR, _MOST_PRIOR))
    return _told(Noise(prior), curve)


def _told(noise: Noise, curve: Curve) -> Noise:
    """What fits assume by a curve: no lapses that are none, nor so many that nothing is left."""
    lapse = 0.0 if noise.tail or curve.lapse < 0.005 else min(curve.lapse, 0.45)
    return replace(noise, lapse=lapse)
