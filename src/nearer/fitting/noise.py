"""Positions from answers that are sometimes wrong, with nothing for the user to set.

Three things are not known beforehand: how answers get wrong (a *curve* from the two distances to
a probability), how often for no reason at all (the *lapse* rate ε), and how widely objects spread
(the standard deviation s of a Gaussian *prior* on every coordinate). Each setting of the three is
judged by the answers it was not shown: fit on four fifths, predict the rest. Since a fit to few
answers is overconfident whatever its shape is worth, its predictions are first made as sharp and
as lapsing as suits the held-out answers best (two numbers, `Calibration`); the likelihood after
that is the score, and the two numbers of the winner make its probabilities calibrated.

The settings are searched one coordinate at a time on a short grid, every fit starting from its
neighbour's result. Curves: *logistic* in the distances, for answers that are wrong near a tie or
by chance, and *t* with α = 1, 3, 10 degrees of freedom (van der Maaten and Weinberger 2012), for
people to whom far and very far are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from nearer.fitting.losses import Floats, Loss
from nearer.fitting.solver import Fit, as_triplets, as_weights, fit_positions
from nearer.fitting.starts import start_from_above

__all__ = ["Calibration", "NoisyFit", "Setting", "Trial", "calibrate", "fit_noisy"]

_SPREADS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_LAPSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4)
_CURVES = (("logistic", None), ("tste", 1.0), ("tste", 3.0), ("tste", 10.0))
_FIRST = (3, 1)  # where the search begins: spread 2, lapse 0.02
_PARTS = 5  # the answers are cut into; one is held out at a time
_ENOUGH = 5_000  # held-out answers that settle a comparison
_MOST = 100_000  # answers the settings are chosen on
_STEPS = 60  # of the optimiser for each setting


@dataclass(frozen=True)
class Setting:
    """How answers get wrong, and how widely objects spread.

    Attributes
    ----------
    loss
        The curve, with its lapse rate or degrees of freedom.
    spread
        Standard deviation of the prior on every coordinate, in the curve's unit.
    """

    loss: Loss
    spread: float

    def ridge(self, m: float) -> float:
        """The prior as a ridge of the mean loss over answers of total weight m."""
        return 1.0 / (m * self.spread**2)


@dataclass(frozen=True)
class Calibration:
    """Sharpness and lapse rate that suit answers not fitted to, and what was seen there.

    Attributes
    ----------
    sharpness
        Factor on the log-odds that the positions give.
    lapse
        Share of answers that are wrong, or right, by chance: each answer is flipped so often.
    log_loss, accuracy
        Mean negative log-likelihood of the held-out answers, and the share predicted.
    standard_error
        Of the log-loss.
    """

    sharpness: float
    lapse: float
    log_loss: float
    accuracy: float
    standard_error: float

    def probability(self, log_odds: Floats) -> Floats:
        """Probability of the answers that have these log-odds by the positions alone."""
        z = np.clip(self.sharpness * log_odds, -700, 700)
        return np.asarray(self.lapse + (1 - 2 * self.lapse) / (1 + np.exp(-z)))


@dataclass(frozen=True)
class NoisyFit(Fit):
    """A `Fit` that knows how wrong answers are.

    Attributes
    ----------
    setting
        The curve and the prior chosen.
    calibration
        What makes predicted probabilities fit; its `lapse` estimates the share of flipped
        answers.
    """

    setting: Setting = Setting(Loss("logistic"), 1.0)
    calibration: Calibration = Calibration(1.0, 0.0, np.nan, np.nan, np.nan)

    def probability(self, questions: ArrayLike) -> Floats:
        """How likely the answer "a is nearer" is, for rows (head, a, b)."""
        rows, _ = as_triplets(questions, len(self.positions))
        return self.calibration.probability(log_odds(self.setting.loss, self.positions, rows))


def fit_noisy(
    triplets: ArrayLike,
    n_objects: int | None = None,
    n_components: int = 2,
    *,
    weights: ArrayLike | None = None,
    setting: Setting | None = None,
    max_iter: int = 1000,
    tol: float = 1e-7,
    rng: np.random.Generator,
) -> NoisyFit:
    """Fit positions to answers that may be wrong.

    Parameters are those of `nearer.fitting.solver.fit_positions`; `setting` fixes what is
    otherwise chosen by held-out answers.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(20, 1)), rng.permuted(np.tile(np.arange(20), (2000, 1)), axis=1)
    >>> T = T[:, :3]
    >>> wrong = np.abs(X[T[:, 0]] - X[T[:, 1]]) > np.abs(X[T[:, 0]] - X[T[:, 2]])
    >>> T = np.where(wrong ^ (rng.random((2000, 1)) < 0.1), T[:, [0, 2, 1]], T)
    >>> fit = fit_noisy(T, 20, 1, rng=rng)
    >>> 0.05 < fit.calibration.lapse < 0.15
    True
    """
    rows, n = as_triplets(triplets, n_objects)
    row_weights = as_weights(weights, len(rows))
    trial = Trial(rows, row_weights, n, n_components, rng)
    if setting is None:
        setting = trial.search()
    calibration = trial.judge(setting)
    start = trial.latest(setting)
    fit = fit_positions(
        rows,
        n,
        loss=setting.loss,
        start=start,
        weights=row_weights,
        ridge=setting.ridge(float(row_weights.sum())),
        max_iter=max_iter,
        tol=tol,
    )
    steps = trial.steps + fit.n_iter
    return NoisyFit(
        fit.positions, fit.loss, steps, fit.converged, fit.interrupted, setting, calibration
    )


def log_odds(loss: Loss, X: Floats, triplets: NDArray[np.integer]) -> Floats:
    """Log-odds of each answer by the curve, without lapses."""
    head = X[triplets[:, 0]]
    near = np.sqrt(np.sum((head - X[triplets[:, 1]]) ** 2, axis=1))
    far = np.sqrt(np.sum((head - X[triplets[:, 2]]) ** 2, axis=1))
    p = (Loss("logistic") if loss.name == "logistic" else loss).probability(near, far)
    return np.asarray(far - near if loss.name == "logistic" else np.log(p / (1 - p)))


def calibrate(odds: Floats, weights: Floats | None = None) -> Calibration:
    """Find the sharpness and lapse rate under which held-out answers are likeliest."""
    w = np.ones(len(odds)) if weights is None else weights
    w = w / w.sum()
    scale = max(float(np.abs(odds).mean()), 1e-12)
    z = odds / scale

    def cost(v: Floats) -> tuple[float, Floats]:
        sharpness, lapse = np.exp(v[0]), v[1]
        right = 1 / (1 + np.exp(-np.clip(sharpness * z, -700, 700)))
        p = lapse + (1 - 2 * lapse) * right
        by_z = -(1 - 2 * lapse) * right * (1 - right) / p
        slope = [w @ (by_z * z) * sharpness, -w @ ((1 - 2 * right) / p)]
        return float(-w @ np.log(p)), np.array(slope)

    bounds = [(-8.0, 8.0), (1e-4, 0.5)]
    best = min(
        (
            minimize(cost, [a, e], jac=True, method="L-BFGS-B", bounds=bounds)
            for a, e in ((0.0, 0.01), (1.5, 0.15))
        ),
        key=lambda result: float(result.fun),
    )
    found = Calibration(float(np.exp(best.x[0]) / scale), float(best.x[1]), 0.0, 0.0, 0.0)
    losses = -np.log(found.probability(odds))
    mean = float(w @ losses)
    error = float(np.sqrt(np.sum(w**2 * (losses - mean) ** 2)))
    return replace(found, log_loss=mean, accuracy=float(w @ (odds > 0)), standard_error=error)


class Trial:
    """Held-out judgements of settings, each fit starting from the latest of its curve."""

    def __init__(
        self,
        rows: NDArray[np.int32],
        weights: Floats,
        n: int,
        d: int,
        rng: np.random.Generator,
    ) -> None:
        if len(rows) > _MOST:
            some = rng.choice(len(rows), _MOST, replace=False)
            rows, weights = rows[some], weights[some]
        self.rows, self.weights, self.n, self.d = rows, weights, n, d
        self.rng = rng
        self.part = rng.permutation(len(rows)) % min(_PARTS, len(rows))
        held_out = len(rows) / _PARTS
        self.folds = int(np.clip(np.ceil(_ENOUGH / held_out), 1, min(_PARTS, len(rows))))
        self.warm: dict[tuple[str, float | None, int], Floats] = {}
        self.starts: dict[int, Floats] = {}
        self.known: dict[Setting, Calibration] = {}
        self.odds: dict[Setting, tuple[Floats, Floats]] = {}
        self.steps = 0

    def latest(self, setting: Setting) -> Floats:
        """Positions of the curve's most recent fit."""
        return self.warm.get(self._key(setting, 0), self._start(0))

    def judge(self, setting: Setting) -> Calibration:
        """Calibrate a setting on answers that its fits were not shown."""
        if setting not in self.known:
            parts = [self._held_out(setting, fold) for fold in range(self.folds)]
            odds, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
            self.known[setting] = calibrate(odds, weights)
            self.odds[setting] = odds, weights
        return self.known[setting]

    def _shown(self, fold: int) -> NDArray[np.bool_]:
        shown = np.asarray(self.part != fold)
        return shown if self.weights[shown].any() else ~shown

    def _start(self, fold: int) -> Floats:
        """Where the fits of a fold begin; it must not know the answers held out there."""
        if fold not in self.starts:
            first = Setting(Loss("logistic", _LAPSES[_FIRST[1]]), _SPREADS[_FIRST[0]])
            shown = self._shown(fold)
            self.starts[fold] = start_from_above(
                self.rows[shown],
                self.n,
                self.d,
                loss=first.loss,
                weights=self.weights[shown],
                ridge=first.ridge(float(self.weights[shown].sum())),
                rng=self.rng,
                steps=30,
            )
        return self.starts[fold]

    def _held_out(self, setting: Setting, fold: int) -> tuple[Floats, Floats]:
        shown = self._shown(fold)
        weights = self.weights[shown]
        key = self._key(setting, fold)
        fit = fit_positions(
            self.rows[shown],
            self.n,
            loss=setting.loss,
            start=self.warm[key] if key in self.warm else self._start(fold),
            weights=weights,
            ridge=setting.ridge(float(weights.sum())),
            max_iter=_STEPS,
            tol=1e-5,
        )
        self.steps += fit.n_iter
        if np.abs(fit.positions).max() > 1e-2:  # a collapsed cloud is no place to start from
            self.warm[key] = fit.positions
        hidden = self.part == fold
        return log_odds(setting.loss, fit.positions, self.rows[hidden]), self.weights[hidden]

    def search(self) -> Setting:
        """Find the setting whose held-out answers are likeliest."""
        best = [self.climb(name, shape) for name, shape in _CURVES]
        return min(best, key=lambda s: self.judge(s).log_loss)

    def climb(self, name: str, shape: float | None = None, first: Setting | None = None) -> Setting:
        """Improve spread and lapse rate of one curve until no neighbour on the grid is better."""
        lapses: tuple[float | None, ...] = _LAPSES if name == "logistic" else (shape,)
        place = (_FIRST[0], min(_FIRST[1], len(lapses) - 1))
        if first is not None:
            place = _SPREADS.index(first.spread), lapses.index(first.loss.shape)

        def at(spread: int, lapse: int) -> Setting:
            return Setting(Loss(name, lapses[lapse]), _SPREADS[spread])

        moved = True
        while moved:
            moved = False
            for step in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                while True:
                    there = (place[0] + step[0], place[1] + step[1])
                    if not (0 <= there[0] < len(_SPREADS) and 0 <= there[1] < len(lapses)):
                        break
                    gain = self.judge(at(*place)).log_loss - self.judge(at(*there)).log_loss
                    if gain < 1e-5:
                        break
                    place, moved = there, True
        return at(*place)

    @staticmethod
    def _key(setting: Setting, fold: int) -> tuple[str, float | None, int]:
        curve = setting.loss
        return curve.name, curve.shape if curve.name == "tste" else None, fold
