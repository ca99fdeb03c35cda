r"""People: how each weighs the map, how reliable each is, and how long a screen takes.

docs/people.md has the model: object i of the map is at s_p exp(u_pk) x_ik on axis k for person p.
So a person is another copy of the objects, and tasks and kernels need no code for people. The prior
of a person's numbers is the mean of the posteriors of all people and of one more who may be
anywhere on the grid (the mode under a Dirichlet prior, Laird 1978).

*Pace.* A screen takes a + b·k + c·m seconds, with k choices among m objects; docs/questions.md says
which screens the default was fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from nearer.fitting.heldout import FLATTEST, FOLDS, SAME, HeldOut, fold_of, judged
from nearer.fitting.initial import ROUGH
from nearer.fitting.likelihood import Answers, Choices, Curve, Noise, PredictedMargins, as_answers
from nearer.fitting.posterior import QUESTIONS, Posterior
from nearer.fitting.solver import minimise
from nearer.metrics import procrustes
from nearer.questions import Floats, Objects, random_questions
from nearer.trials import Task, Trials

_SENSITIVITY = np.array([-2, -1, -0.5, -0.25, 0, 0.15, 0.3, 0.45, 0.6, 0.8, 1, 1.25, 1.6, 2, 3])
# A person who lapses more hardly differs from one who guesses.
_LAPSES = np.array([0, 0.02, 0.05, 0.1, 0.15, 0.2])
_BIASES = np.array([-4, -3, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 3, 4])
_SPREADS = 0.1 * 2.0 ** np.arange(4)  # of logarithms of factors; twice the last is a factor of 5
_SURE = float(ndtr(3))  # one-sided probability of three standard errors
_ROUNDS = 2  # of rating people: the first map believes those who guess
_REFITS = 40  # to resampled people; the variance then has an error of a fifth
FEWEST_PEOPLE = FOLDS  # fewer cannot be left out in FOLDS parts, and show nothing about others


@dataclass(frozen=True)
class Ratings:
    """Estimates for each person."""

    sensitivity: Floats  # 1 for the median person, 0 for a guess, negative for a contradiction
    error: Floats  # standard deviation of the sensitivity
    sharpness: float  # of the curve of the median person
    lapse: Floats
    bias: Floats  # towards the option shown first, added to the margin; nan: not known
    contrary: NDArray[np.bool_]  # surely contradicts the others
    guessing: NDArray[np.bool_]  # surely has less than half of the others' slope
    one_side: NDArray[np.bool_]  # surely chooses one side of a tie more than four times in five


def rate_people(
    evidence: Answers,
    held_out: HeldOut,
    index: Objects,
    counts: Floats,
    first_chosen: NDArray[np.bool_] | None = None,
) -> Ratings:
    """Compare each person's answers with predictions that had not seen them.

    `index` is the number of the person who gave each answer, in the order of the answers in
    `as_answers`; `first_chosen` says whether the option shown first was chosen.
    """
    place = np.full(len(evidence), -1)
    place[held_out.rows] = np.arange(len(held_out.rows))
    place = place[evidence.row]
    seen = (place >= 0) & (counts > 0)
    who, at, counts, n_people = index[seen], place[seen], counts[seen], int(index.max()) + 1
    curve, predictions = held_out.curve, held_out.predictions
    side = biases = np.zeros(1)
    if first_chosen is not None and isinstance(predictions, PredictedMargins):
        side, biases = np.where(first_chosen[seen], 1.0, -1.0), _BIASES
    table = np.empty((n_people, len(_SENSITIVITY), len(_LAPSES), len(biases)))
    for (j, r), (k, lapse), (i, bias) in product(*map(enumerate, (_SENSITIVITY, _LAPSES, biases))):
        if len(biases) > 1 and isinstance(predictions, PredictedMargins):
            shifted = PredictedMargins(r * curve.sharpness * predictions.margins[at] + bias * side)
            logs = shifted.along(1.0, lapse)[0]
        else:
            logs = predictions.along(r * curve.sharpness, lapse)[0][at]
        table[:, j, k, i] = np.bincount(who, counts * logs, n_people)
    p = _posterior(table.reshape(n_people, -1)).reshape(table.shape)
    of_r, of_lapse, of_bias = (p.sum(axis=axes) for axes in ((2, 3), (1, 3), (1, 2)))
    mean = of_r @ _SENSITIVITY
    error = np.sqrt(np.maximum(of_r @ _SENSITIVITY**2 - mean**2, 0.0))
    unit = max(float(np.median(mean)), FLATTEST)
    slopes, slope = p.sum(axis=3), np.multiply.outer(_SENSITIVITY, 1 - 2 * _LAPSES)
    usual = np.median((slopes * slope).sum(axis=(1, 2)))
    contrary = of_r[:, _SENSITIVITY < 0].sum(axis=1) > _SURE
    guessing = (slopes * (slope < usual / 2)).sum(axis=(1, 2)) > _SURE
    return Ratings(
        sensitivity=mean / unit,
        error=error / unit,
        sharpness=curve.sharpness * unit,
        lapse=of_lapse @ _LAPSES,
        bias=of_bias @ biases if len(biases) > 1 else np.full(n_people, np.nan),
        contrary=contrary,
        guessing=guessing & ~contrary,
        one_side=of_bias[:, np.abs(biases) > np.log(4)].sum(axis=1) > _SURE,
    )


def _posterior(log_likelihood: Floats) -> Floats:
    """Posterior of each person on a grid, the prior estimated from all of them."""
    n_people, size = log_likelihood.shape
    prior = np.full(size, 1 / size)
    for _ in range(100):
        p = softmax(log_likelihood + np.log(prior), axis=1)
        prior = (p.sum(axis=0) + 1 / size) / (n_people + 1)
    return np.asarray(p)


@dataclass(frozen=True)
class CrowdFit:
    """A common map, and how people stretch its axes."""

    positions: Floats
    covariances: Floats
    stretch: Floats  # (people, d): logarithms of the factors of the axes


class Crowd:
    """Answers of people, arranged so that each person has a copy of the objects."""

    def __init__(
        self,
        answers: Trials | NDArray[np.integer],
        index: Objects,
        evidence: Answers,
        weights: Floats,
        odds: Floats | None,
        sensitivity: Floats,
        noise: Noise,
    ) -> None:
        n = evidence.n_objects
        asked: Any = answers
        if isinstance(answers, Trials):
            asked = np.column_stack([answers.query, answers.shown])
        keys = np.where(asked >= 0, index[:, None] * n + asked, -1)
        copies = np.unique(keys[keys >= 0])
        at = np.where(keys >= 0, np.searchsorted(copies, keys), -1)
        own: Any = at
        if isinstance(answers, Trials):
            own = answers.with_fields(query=at[:, 0], shown=at[:, 1:], names=None)
        self.owner, self.thing = np.divmod(copies, n)
        self.answers = as_answers(own, len(copies), weights, odds)
        first = np.unique(self.answers.row, return_index=True)[1]
        self.person, group = index[first], evidence.group[evidence.row[first]]
        self.fold, self.piece = fold_of(group), np.unique(group, return_inverse=True)[1]
        self.n_objects, self.n_people, self.noise = n, len(sensitivity), noise
        # coincident objects have no directions
        self.sensitivity = np.maximum(sensitivity, FLATTEST).reshape(len(sensitivity), -1)

    def factors(self, stretch: Floats) -> Floats:
        """How far each axis is stretched, of each copy of an object."""
        return np.asarray((self.sensitivity * np.exp(stretch))[self.owner])

    def _own_maps(self, Z: Floats, noise: Noise) -> Floats:
        """Where each copy of an object is.

        Rows of Z are the common map, then how far each copy is from it, divided by `noise.apart`.
        """
        off = noise.apart * Z[self.n_objects :]
        return np.asarray(self.sensitivity[self.owner] * (Z[self.thing] + off))

    def sums(self, Z: Floats, noise: Noise) -> tuple[float, Floats]:
        """Weighted sum of −log p by own maps, and its gradient."""
        total, slope = self.answers.sums(self._own_maps(Z, noise), noise)
        slope = self.sensitivity[self.owner] * slope
        return total, np.concatenate([self.gathered(slope), noise.apart * slope])

    def information(self, Z: Floats, noise: Noise) -> Floats:
        """Fisher information of each row, the others held fixed."""
        factors = self.sensitivity[self.owner]
        own = self.answers.information(self._own_maps(Z, noise), noise)
        own = own * factors[:, :, None] * factors[:, None, :]
        return np.concatenate([self.gathered(own), noise.apart**2 * own])

    def fit(self, some: Answers, start: CrowdFit, spread: float = 0.0) -> CrowdFit:
        """The most probable map and, if they have a spread, stretches, given some answers."""
        n, noise = self.n_objects, self.noise
        unit = spread / noise.prior  # stretches in the unit in which they have the map's prior

        def sums(Z: Floats) -> tuple[float, Floats]:
            X, stretch = Z[:n], unit * Z[n:] if spread else start.stretch
            factors = self.factors(stretch)
            total, slope = some.sums(factors * X[self.thing], noise)
            slope = factors * slope
            by_x = self.gathered(slope)
            if not spread:
                return total, by_x
            by_stretch = _summed(slope * X[self.thing], self.owner, self.n_people)
            return total, np.concatenate([by_x, unit * by_stretch])

        begin = [start.positions, start.stretch / unit] if spread else [start.positions]
        ridge, total = noise.ridge(some.total_weight), some.total_weight
        done = minimise(sums, total, np.concatenate(begin), ridge=ridge, tol=ROUGH)
        X, stretch = done.positions[:n], unit * done.positions[n:] if spread else start.stretch
        X, stretch = X * np.exp(stretch.mean(axis=0)), stretch - stretch.mean(axis=0)
        return CrowdFit(X, self._covariances(some, X, stretch), stretch)

    def _covariances(self, some: Answers, X: Floats, stretch: Floats) -> Floats:
        """The covariance of each position, the others held fixed."""
        factors = self.factors(stretch)
        own = some.information(factors * X[self.thing], self.noise)
        known = self.gathered(own * factors[:, :, None] * factors[:, None, :])
        return np.linalg.inv(known + np.eye(X.shape[1]) / self.noise.prior**2).astype(np.float64)

    def gathered(self, values: Floats) -> Floats:
        """Values of copies, summed over the copies of each object."""
        wide = _summed(values.reshape(len(values), -1), self.thing, self.n_objects)
        return wide.reshape(self.n_objects, *values.shape[1:])

    def predict(self, some: Answers, fit: CrowdFit, stretch: Floats) -> Floats:
        """Moderated margins or utilities of some answers by people of the same sensitivity."""
        factors = np.exp(stretch)[self.owner]
        covariances = fit.covariances[self.thing] * factors[:, :, None] * factors[:, None, :]
        return some.predict(Posterior(factors * fit.positions[self.thing], covariances, self.noise))

    def hold_out(self, starts: Sequence[CrowdFit], spread: float) -> Predicted:
        """Predictions of answers to other questions, by fits from maps that never saw these."""
        fits, stretched, alike, at = [], [], [], []
        for k, start in enumerate(starts):
            seen, unseen = (np.flatnonzero(out) for out in (self.fold != k, self.fold == k))
            fit, some = self.fit(self.answers.part(seen), start, spread), self.answers.part(unseen)
            fits.append(fit)
            at.append(unseen)
            stretched.append(self.predict(some, fit, fit.stretch))
            alike.append(self.predict(some, fit, np.zeros_like(fit.stretch)))
        rows = np.concatenate(at)
        plain, common = (self._judged(rows, np.concatenate(x)) for x in (stretched, alike))
        of_row, some = self.sensitivity[self.person[rows], 0], self.answers.part(rows)
        of_item = np.repeat(of_row, np.diff(some.starts) if isinstance(some, Choices) else 1)
        own = self._judged(rows, of_item * np.concatenate(stretched))
        return Predicted(own, plain, common, tuple(fits), spread)

    def _judged(self, rows: Objects, predicted: Floats) -> HeldOut:
        held = judged(self.answers, rows, predicted, self.noise, ())
        return replace(held, piece=np.unique(self.piece[rows], return_inverse=True)[1])

    def leave_out_people(
        self, known: Predicted, rng: np.random.Generator
    ) -> tuple[HeldOut, list[CrowdFit]]:
        """Predictions of answers of further people to further questions, and by which fits."""
        parts = min(self.n_people, 2 * FOLDS)  # so that few people are left out at a time
        group = rng.permutation(self.n_people)[self.person] % parts
        fits, at, predicted, many = list[CrowdFit](), [], [], 0
        for j in range(parts):
            for k, start in enumerate(known.fits):
                own = group == (k + j) % parts
                unseen = np.flatnonzero((self.fold == k) & own)
                if not len(unseen):
                    continue
                seen = self.answers.part(np.flatnonzero((self.fold != k) & ~own))
                fit, some = self.fit(seen, start, known.spread), self.answers.part(unseen)
                fits.append(fit)
                at.append(unseen)
                predicted.append(self.predict(some, fit, np.zeros_like(fit.stretch)))
                many += len(unseen)
            if many >= QUESTIONS:
                break
        return self._judged(np.concatenate(at), np.concatenate(predicted)), fits

    def margin(self, fits: Sequence[CrowdFit]) -> float:
        """The mean size of the margins of random questions."""
        questions = random_questions(self.n_objects, QUESTIONS, np.random.default_rng(0))
        maps = (Posterior(fit.positions, fit.covariances, self.noise) for fit in fits)
        return float(np.mean([np.abs(X.margins(questions)[0]) for X in maps]))

    def by_person(self, held: HeldOut) -> tuple[Floats, Floats]:
        """Right predictions and answers of each person, in answers to random questions."""
        known = np.isfinite(held.right)
        who, weights = self.person[held.rows[known]], held.weights[known]
        return counted(who, weights, held.right[known], self.n_people)

    def gain(self, held: HeldOut, other: HeldOut) -> tuple[float, float]:
        """The gain in log-likelihood, in nats per answer, and its standard error over people."""
        who, total = self.person[held.rows], held.counts.sum()
        each = held.counts * (held.log_likelihood - other.log_likelihood)
        gain = float(each.sum() / total)
        away = np.bincount(who, each - gain * held.counts, self.n_people)
        return gain, float(np.sqrt(self.n_people / (self.n_people - 1) * np.sum(away**2)) / total)

    def between(self, fit: CrowdFit, rng: np.random.Generator) -> Floats:
        """How the map varies with the sample of people: ``(refits, n, d)`` deviations.

        Their sum, each times an independent standard normal number, has the covariance that people
        add to that of independent answers.
        """
        P, weights = self.n_people, self.answers.weights
        per_person = np.bincount(self.person, weights)
        alike = max(4.0, float(per_person.sum() ** 2 / np.square(per_person).sum()))  # Kish 1965

        def moved(counts: Objects) -> Floats:
            some = replace(self.answers, weights=weights * counts)
            again = self.fit(some, fit).positions
            return procrustes(fit.positions, again).aligned - fit.positions

        people = [np.bincount(rng.integers(P, size=P), minlength=P) for _ in range(_REFITS)]
        by_people = np.array([moved(counts[self.person]) for counts in people])
        rows = [rng.poisson(1, len(weights)) for _ in range(_REFITS)]
        by_answers = np.array([moved(counts) for counts in rows])
        share = 1 - (1 - 1 / alike) * np.square(by_answers).mean() / np.square(by_people).mean()
        return np.asarray(by_people * np.sqrt(max(share, 0.0) * alike / (alike - 3) / _REFITS))


@dataclass(frozen=True)
class Predicted:
    """Predictions of held-out answers, and the fits with their spread that made them."""

    own: HeldOut  # with all estimates for the person
    stretched: HeldOut  # as if all people had the same sensitivity
    alike: HeldOut  # as if all people were alike
    fits: tuple[CrowdFit, ...]
    spread: float


@dataclass(frozen=True)
class PeopleFit:
    """A map with estimates for each person; see `learn_people`.

    Attributes
    ----------
    posterior
        The common map, and the curve for a person without answers.
    curve
        The curve of people whose sensitivity and weights are known.
    ratings
        The estimates for each person.
    weights
        ``(people, d)``, of squared differences on each axis; None if people do not differ.
    gains
        For each spread tried: the gain in held-out log-likelihood, in nats per answer, and its
        standard error over people.
    held_out, right, log_likelihood
        Predictions of held-out answers of these people, how much of each was predicted, and its
        log-likelihood.
    new_people
        Right predictions and answers of each person, by fits that had not seen the person.
    between
        See `Crowd.between`; None unless `several` people (`FEWEST_PEOPLE`) are named.
    times
        How many answers each row of the predictions stands for.
    """

    posterior: Posterior
    curve: Curve
    ratings: Ratings
    weights: Floats | None
    gains: dict[float, tuple[float, float]]
    held_out: HeldOut
    right: Floats
    log_likelihood: Floats
    new_people: tuple[Floats, Floats] | None
    between: Floats | None
    times: NDArray[np.int64]


def learn_people(
    answers: Trials | NDArray[np.integer],
    index: Objects,
    evidence: Answers,
    fit: Posterior,
    held_out: HeldOut,
    *,
    weights: Floats,
    odds: Floats | None,
    sides: NDArray[np.bool_] | None,
    differ: str,
    several: bool,
    rng: np.random.Generator,
) -> PeopleFit:
    """Fit how people differ, from a fit that treated all answers as those of one person."""
    n_people, (n, d) = int(index.max()) + 1, fit.positions.shape
    none = np.zeros((n_people, d))
    start = CrowdFit(fit.positions, fit.covariances, none)
    starts = [CrowdFit(X, np.zeros((n, d, d)), none) for X in held_out.fits]
    ratings = rate_people(evidence, held_out, index, weights)
    for _ in range(_ROUNDS):
        crowd = Crowd(answers, index, evidence, weights, odds, ratings.sensitivity, fit.noise)
        plain = crowd.hold_out(starts, 0.0)
        ratings = rate_people(crowd.answers, plain.stretched, index, weights)
    best, gains = plain, dict[float, tuple[float, float]]()
    for spread in _SPREADS.tolist() if differ != "no" and d > 1 and n_people > 1 else ():
        stretched = crowd.hold_out(starts, spread)
        gains[spread] = crowd.gain(stretched.own, plain.own)
        if best is not plain and stretched.own.score <= best.own.score:
            break
        best = stretched
    if best is not plain:
        gain, error = gains[best.spread]
        best = best if differ == "weights" or gain > SAME * error else plain
    ratings = rate_people(crowd.answers, best.stretched, index, weights, sides)
    done = crowd.fit(crowd.answers, start, best.spread)
    known: dict[str, Any] = {"positions": done.positions, "covariances": done.covariances}
    right = np.full(len(crowd.answers), np.nan)
    right[best.own.rows] = best.own.right
    logs = np.full(len(crowd.answers), np.nan)
    logs[best.own.rows] = best.own.log_likelihood
    further, by = crowd.leave_out_people(best, rng) if several else (best.alike, best.fits)
    # With more answers the prior shrinks the map less, so the curves, which were fitted to margins
    # of held-out answers, are scaled.
    size = max(crowd.margin([done]), FLATTEST)
    own, others = (crowd.margin(fits) / size for fits in (best.fits, by))
    known["curve"] = Curve(others * further.curve.sharpness, further.curve.lapse)
    return PeopleFit(
        posterior=replace(fit, **known),
        curve=Curve(own * ratings.sharpness, best.own.curve.lapse),
        ratings=ratings,
        weights=np.exp(2 * done.stretch) if best.spread or differ == "weights" else None,
        gains=gains,
        held_out=best.own,
        right=right[crowd.answers.row],
        log_likelihood=logs[crowd.answers.row],
        new_people=crowd.by_person(further) if several else None,
        between=crowd.between(done, rng) if several else None,
        times=np.bincount(crowd.answers.row[weights > 0], minlength=len(crowd.answers)),
    )


def counted(who: Objects, weights: Floats, right: Floats, n_people: int) -> tuple[Floats, Floats]:
    """Weight of each person's right predictions, and of all of them."""
    said = np.bincount(who, weights * right, n_people).astype(np.float64)
    return said, np.bincount(who, weights, n_people).astype(np.float64)


def _summed(values: Floats, at: Objects, n: int) -> Floats:
    """Sums of rows by number."""
    return np.stack([np.bincount(at, column, n) for column in values.T], axis=1)


@dataclass(frozen=True)
class Pace:
    """Seconds that a screen takes.

    Attributes
    ----------
    start, choice, look
        Seconds for the screen itself, for each object to choose, and for each object shown.

    Examples
    --------
    >>> import nearer
    >>> round(nearer.Pace().seconds("2 of 8"), 1)
    7.2
    """

    start: float = 1.68
    choice: float = 1.58
    look: float = 0.29

    def seconds(self, task: Task | str) -> float:
        """How long one screen of a task takes."""
        task = Task.parse(task)
        return self.start + self.choice * task.choose + self.look * task.shown
