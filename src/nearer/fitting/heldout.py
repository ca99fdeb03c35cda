"""Prior, lapse rate, sharpness and dimension from answers that a fit has not seen.

docs/noise.md describes folds and weights, docs/dimensions.md the probability of each dimension. A
fit to the other folds predicts the margin of each held-out answer; one curve
p = ε + (1 − 2ε)/(1 + exp(−βt)) turns margins into probabilities, and its two parameters maximise
the likelihood of the held-out answers. Their mean log-likelihood is the *score* of a prior or a
dimension. All answers have the same weight in it, since weights of 1/odds would waste most of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import average
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform
from scipy.special import chdtrc, expit, log_expit, ndtr

from nearer import checks
from nearer.fitting.initial import EXACT_PRIOR, FEWEST, fit_from_more_dimensions, fit_onwards
from nearer.fitting.likelihood import (
    MOST_LAPSE,
    Answers,
    Comparisons,
    Curve,
    Noise,
    PredictedChoices,
    PredictedMargins,
    moderate,
)
from nearer.fitting.posterior import (
    QUESTIONS,
    WEAK_PRIOR,
    Posterior,
    cloud,
    fit_posterior,
    least,
    one_blas_thread,
    spread_out,
)
from nearer.fitting.solver import Fit, Loss, margins, minimise, principal_axes, wants_gpu
from nearer.questions import Floats, Objects, Questions, hash_rows

# `python -m benchmarks sensitivity` halves and doubles those of chosen questions.
FOLDS = 5  # a fit to four fifths predicts nearly as well as one to all; more folds take more time
_ENOUGH = 1e-5  # gain of a step that ends a fit to the other folds; less takes more time
STEP = 2.0  # factor from one prior to the next; less takes more time
# Settings within this many standard errors count as equally good: the smallest prior so close to
# the best is used (Breiman et al. 1984), and a further dimension must gain more.
SAME = 1.0
# With this prior width answers are little more than guesses. Few answers about many objects may
# support a smaller one (`python -m benchmarks choices --cells alone`).
LEAST_PRIOR = 0.5
# Prior widths of exact answers are larger than those of noisy ones; a larger upper end takes time.
EXACT_PRIORS = STEP * WEAK_PRIOR, WEAK_PRIOR * EXACT_PRIOR
FLATTEST = 0.05  # sharpness of predictions that are nearly guesses
SAME_LAPSE = 0.5 / math.sqrt(QUESTIONS)  # the standard error of a rate from QUESTIONS answers
_TRIED = (2.63, 1.14, -0.12)  # a, b and c of docs/dimensions.md
_UNTRIED = (0.64, -0.08)  # a' and c' there
_MOST_ROOT = 40.0  # of √N; few answers in `dimension_fit` carried more information
# Weight of other distances; with a half, tight clusters count as trees (`people --cells checks`).
_OTHERS = 2 / 3
_SURE = 0.95  # probability of the range of dimensions that is reported


@dataclass(frozen=True)
class HeldOut:
    """Predictions of answers that the fits behind them have not seen."""

    rows: NDArray[np.int64]  # of the evidence
    predictions: PredictedMargins | PredictedChoices
    counts: Floats  # number of equal answers in each row, one on average
    weights: Floats  # 1/odds of each question, one on average
    piece: NDArray[np.int64]  # answers about the same three objects have the same number
    noise: Noise  # assumed by the fits behind them
    fits: tuple[Floats, ...]  # positions for each fold, from which later fits start

    @cached_property
    def own_curve(self) -> Curve:
        """The curve for the questions asked."""
        return fit_curve(self.predictions, self.counts)

    @cached_property
    def log_likelihood(self) -> Floats:
        """That of each answer under `own_curve`."""
        return self.own_curve.log_likelihood(self.predictions)

    @cached_property
    def curve(self) -> Curve:
        """The curve for random questions."""
        return fit_curve(self.predictions, self.weights)

    @cached_property
    def pieces(self) -> Floats:
        """Log-likelihoods, summed over dependent answers: those about the same three objects."""
        return np.asarray(np.bincount(self.piece, self.counts * self.log_likelihood), np.float64)

    def advantage(self, other: HeldOut) -> float:
        """By how many standard errors the same answers are more likely here."""
        return advantage(self.pieces, other.pieces)

    @property
    def score(self) -> float:
        """Mean log-likelihood; that of guesses is −log 2."""
        return float(np.average(self.log_likelihood, weights=self.counts))

    @property
    def fitted_noise(self) -> Noise:
        """The noise for further fits, without lapses if there is a t curve or a bias of objects."""
        lapse = 0.0 if self.noise.tail or self.noise.bias else self.own_curve.lapse
        return replace(self.noise, lapse=lapse)

    @property
    def lapse_differs(self) -> bool:
        """Whether the lapse rate differs from the one that the fits assumed."""
        return abs(self.fitted_noise.lapse - self.noise.lapse) > SAME_LAPSE

    @property
    def effective_share(self) -> float:
        """Effective sample size as a share of the answers; 1 for random questions."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum() / len(self.weights))

    @property
    def accuracy(self) -> float:
        """Share of answers that were predicted rightly."""
        known = np.isfinite(self.right)
        return float(np.average(self.right[known], weights=self.weights[known]))

    @property
    def beats_a_coin(self) -> bool:
        """By four standard errors, since the best of ten settings exceeds three by chance."""
        c, n = self.predictions.chance, self.effective_share * len(self.pieces)
        return bool(self.accuracy > c + 4 * np.sqrt(c * (1 - c) / n))

    @property
    def right(self) -> Floats:
        """How much of each answer was predicted, from 0 to 1; nan for undecided trials."""
        return self.predictions.right


@dataclass(frozen=True)
class Tuned:
    """Held-out predictions under each prior width that was tried.

    Curves and dimensions are compared by the best; positions are fitted with the smallest width
    that predicts about as well.
    """

    tried: dict[float, HeldOut]

    @cached_property
    def best(self) -> HeldOut:
        """Predictions under the prior with the largest held-out likelihood."""
        return max(self.tried.values(), key=lambda held: held.score)

    @cached_property
    def strongest(self) -> HeldOut:
        """Predictions under the smallest prior width that is not clearly worse."""
        close = [s for s, held in self.tried.items() if self.best.advantage(held) <= SAME]
        return self.tried[min(close)]


def as_noise(X: Floats, curve: Curve) -> Noise:
    """The noise of answers that positions in another unit predict along this curve.

    The curve's sharpness converts the unit to the noise of an answer, and the prior width is the
    standard deviation of the positions in that unit.
    """
    prior = float(np.clip(curve.sharpness * X.std(), LEAST_PRIOR, EXACT_PRIOR))
    return Noise(prior, curve.lapse)


def hold_out(
    answers: Answers,
    n_components: int,
    noise: Noise,
    *,
    starts: tuple[Floats, ...] = (),
    rng: np.random.Generator | None = None,
    every: bool = False,
) -> HeldOut:
    """Predict answers from the others, fold by fold, and find the curve that fits them best.

    `starts` are positions for the first folds from an earlier call with fewer answers or another
    noise, which were not fitted to their fold. A fold without a start begins from a random cloud,
    since positions fitted to its answers would stay near them under a wide prior. Without `every`,
    no more folds are fitted than are needed to compare settings.
    """
    from nearer._kernels.comparisons import PART, side_by_side  # noqa: PLC0415 - a GPU needs none

    work: list[Any] = []
    held = 0.0
    for k in range(FOLDS):
        seen, unseen, _ = _split_off_fold(answers, k)
        begin = starts[k] if k < len(starts) else cloud(answers.n_objects, n_components, rng)
        work.append((seen, unseen, begin))
        held += float(unseen.weights.sum())
        if held >= QUESTIONS and not every:
            break

    done: dict[int, tuple[Floats, Any]] = {}

    def predict(_: int, folds: slice) -> None:
        for k in range(len(work))[folds]:
            seen, unseen, start = work[k]
            fit = fit_posterior(seen, n_components, noise, start=start, tol=_ENOUGH)
            done[k] = fit.positions, unseen.predict(fit)

    # Passes over many answers use all cores themselves.
    one_by_one = answers.terms >= 2 * PART or wants_gpu(answers.terms, answers.n_objects)
    with one_blas_thread():
        side_by_side(predict, len(work), 1 if one_by_one else len(work))
    fits, predicted = zip(*(done[k] for k in range(len(work))), strict=True)
    at = np.concatenate([_split_off_fold(answers, k)[2] for k in range(len(work))])
    return judged(answers, at, np.concatenate(predicted), noise, fits)


def judged(
    answers: Answers, at: Objects, predicted: Floats, noise: Noise, fits: tuple[Floats, ...]
) -> HeldOut:
    """Predictions of some rows, as evidence."""
    asked, weights = answers.weights[at], answers.weights[at] / answers.odds[at]
    piece = np.unique(answers.group[at], return_inverse=True)[1]
    counts, weights = asked / asked.mean(), weights / weights.mean()
    predictions = answers.part(at).beside(predicted)
    return HeldOut(at, predictions, counts, weights, piece, noise, fits)


def hold_out_once(
    rows: NDArray[np.int32],
    weights: Floats,
    n: int,
    n_components: int,
    loss: Loss,
    rng: np.random.Generator,
) -> HeldOut | None:
    """Predict one fold in five by a fit that minimises a loss and has no prior.

    None if there are too few answers to hold any out.
    """
    group = hash_rows(np.sort(rows, axis=1))
    out = fold_of(group) == 0
    if not out.any() or out.all():
        return None
    fit = fit_from_more_dimensions(
        rows[~out], n, n_components, loss=loss, weights=weights[~out], rng=rng, max_iter=1000
    )
    predictions = PredictedMargins(margins(fit.positions, rows[out]))
    piece = np.unique(group[out], return_inverse=True)[1]
    counts = weights[out] / weights[out].mean()
    at, fits = np.flatnonzero(out), (fit.positions,)
    return HeldOut(at, predictions, counts, counts, piece, Noise(), fits)


def tune(
    answers: Answers,
    n_components: int,
    noise: Noise,
    *,
    starts: tuple[Floats, ...] = (),
    rng: np.random.Generator | None = None,
) -> Tuned | None:
    """Search the prior and the lapse rate under which held-out answers are most likely.

    The search begins at the prior width of `noise` and reduces it until predictions are clearly
    worse. It does not begin at a small width, under which positions collapse and stay so. If no
    smaller width is better, it grows as long as predictions improve. None with too few answers to
    hold any out.
    """
    if len(np.unique(answers.group)) < FEWEST * FOLDS:
        return None
    best = hold_out(answers, n_components, noise, starts=starts, rng=rng)
    if best.lapse_differs:
        again = hold_out(answers, n_components, best.fitted_noise, starts=best.fits)
        best = max(best, again, key=lambda held: held.score)
    tried, weakest = {best.noise.prior: best}, best
    for held in along_priors(answers, best, 1 / STEP):
        tried[held.noise.prior] = held
        best = max(best, held, key=lambda held: held.score)
        if best.advantage(held) > SAME:
            break
    for held in along_priors(answers, best, STEP) if best is weakest else ():
        tried[held.noise.prior] = held
        if held.score <= best.score:
            break
        best = held
    return Tuned(tried)


def along_priors(answers: Answers, held: HeldOut, factor: float) -> Iterator[HeldOut]:
    """Predictions under prior widths that grow by a factor, each from the fits before."""
    least_prior, most_prior = EXACT_PRIORS if held.noise.bias else (LEAST_PRIOR, WEAK_PRIOR)
    while least_prior <= (prior := held.noise.prior * factor) <= most_prior:
        fits = tuple(min(1.0, factor) * X for X in held.fits)  # a wider prior needs no wider map
        noise = replace(held.fitted_noise, prior=prior)
        held = hold_out(answers, fits[0].shape[1], noise, starts=fits)
        yield held


def tune_from(answers: Answers, known: HeldOut, noise: Noise) -> Tuned | None:
    """`tune` for another curve, from fits by this one that have not seen their folds."""
    starts = tuple(spread_out(X) for X in known.fits)
    noise = replace(noise, prior=WEAK_PRIOR)
    return tune(answers, starts[0].shape[1], noise, starts=starts)


def fit_curve(known: PredictedMargins | PredictedChoices, weights: Floats) -> Curve:
    """The curve under which the answers are most likely."""
    scale = 1 / max(known.size, 1e-9)

    def cost(x: Floats) -> tuple[float, Floats]:
        logs, by_sharpness, by_lapse = known.along(scale * x[0], x[1])
        gradient = np.array([scale * np.sum(weights * by_sharpness), np.sum(weights * by_lapse)])
        return -float(np.sum(weights * logs)) / total, -gradient / total

    total = float(weights.sum())
    bounds = [(FLATTEST, None), (0, MOST_LAPSE)]
    sharpness, lapse = (float(value) for value in least(cost, np.array([1.0, 0.02]), bounds))
    return Curve(sharpness * scale, lapse)


def _split_off_fold(answers: Any, k: int) -> Any:
    """The answers of the other folds, those of fold k, and the rows of the latter."""
    if k not in answers.parts:
        out = fold_of(answers.group) == k
        seen, unseen = np.flatnonzero(~out), np.flatnonzero(out)
        answers.parts[k] = answers.part(seen), answers.part(unseen), unseen
    return answers.parts[k]


def check_residuals(
    right: Floats, log_likelihood: Floats, groups: Mapping[str, NDArray[np.integer]]
) -> dict[str, float]:
    """Return p-values of whether held-out comparisons depart from their probabilities in groups.

    For each group, the number of right predictions minus its expectation is squared and divided by
    its variance; the sum over groups is a χ².
    """
    known = np.isfinite(right) & np.isfinite(log_likelihood) & (right != 0.5)
    p = np.exp(log_likelihood[known])
    sure = np.where(right[known] > 0.5, p, 1 - p)
    p_values = {}
    for name, group in groups.items():
        at = np.unique(group[known], return_inverse=True)[1]
        surplus, variance = np.bincount(at, right[known] - sure), np.bincount(at, sure * (1 - sure))
        size = np.square(surplus) / np.maximum(variance, np.finfo(float).tiny)
        p_values[name] = float(chdtrc(len(size), size.sum())) if len(size) else np.nan
    return p_values


def check_distances(answers: Comparisons, held: HeldOut) -> float:
    """Return a p-value of whether other distances improve predictions of held-out answers.

    The others are those of a city-block map of at most three dimensions and of two trees. Of many
    answers a sample is used; if it is smaller than the number of pairs of objects, p is nan.
    """
    n, rng = answers.n_objects, np.random.default_rng(0)
    some = rng.permutation(len(answers))[: FOLDS * QUESTIONS]
    if n * n > FOLDS * QUESTIONS or len(held.fits) < FOLDS:
        return np.nan
    assert isinstance(held.predictions, PredictedMargins)
    rows, weights = answers.triplets[some], answers.weights[some]
    fold, at = fold_of(answers.group[some]), np.argsort(held.rows)[some]
    margins = np.tile(held.predictions.margins[at], (4, 1))
    for k, X in enumerate(held.fits):
        seen, out = answers.part(some[fold != k]), fold == k
        fits = _fit_blocks(X, seen, rng), *(_fit_tree(X, seen, clock=clock) for clock in (0, 1))
        margins[1:, out] = [_block_margins(Y, rows[out]) for Y in fits]
    margins /= np.maximum(np.abs(margins).mean(axis=1, keepdims=True), np.finfo(float).tiny)
    margins[1:] = _OTHERS * margins[1:] + (1 - _OTHERS) * margins[0]
    logs = [
        fit_curve(each, weights).log_likelihood(each) for each in map(PredictedMargins, margins)
    ]
    pieces = [np.bincount(held.piece[at], weights * each).astype(np.float64) for each in logs]
    best = max(advantage(each, pieces[0]) for each in pieces[1:])
    return min(1.0, 2 * len(fits) * float(ndtr(-best)))


def _block_margins(Y: Floats, rows: NDArray[np.integer]) -> Floats:
    """Margins of distances that are sums of absolute differences."""
    head, near, far = (Y[column] for column in rows.T)
    return np.asarray((np.abs(head - far) - np.abs(head - near)).sum(axis=1))


def _fit_blocks(X: Floats, answers: Comparisons, rng: np.random.Generator) -> Floats:
    """The most probable of four city-block maps, each from another rotation of a Euclidean one."""
    X, weights, total = principal_axes(X, min(3, X.shape[1])), answers.weights, answers.total_weight
    X = X * (pdist(X).mean() / pdist(X, "cityblock").mean())
    head, near, far = (csr_array(np.eye(len(X))[column]) for column in answers.triplets.T)
    near, far, spread = head - near, head - far, float(X.std())

    def sums(Y: Floats) -> tuple[float, Floats]:
        u, v = near @ Y, far @ Y
        to_near, to_far = np.hypot(u, spread / 10), np.hypot(v, spread / 10)  # which have a slope
        margin = (to_far - to_near).sum(axis=1)
        slope = (weights * expit(-margin))[:, None]
        gradient = near.T @ (slope * u / to_near) - far.T @ (slope * v / to_far)
        return -float(weights @ log_expit(margin)), gradient

    how: dict[str, Any] = {"ridge": Noise(spread).ridge(total), "max_iter": 300, "tol": 1e-5}
    rotations = np.linalg.qr(rng.normal(size=(4, X.shape[1], X.shape[1])))[0]
    fits = (minimise(sums, total, X @ rotation, **how) for rotation in rotations)
    return min(fits, key=lambda fit: fit.loss).positions


def _fit_tree(X: Floats, answers: Comparisons, *, clock: int) -> Floats:
    """A tree that is read off a map; its branches are fitted.

    With a clock all objects are equally far from the root, so that only common branches count.
    Each column is a branch: its length for the objects beyond it, 0 for the others.
    """
    beyond = np.array(_join_closest(X) if clock else _join_neighbours(X)).T
    head, near, far = (beyond[column] for column in answers.triplets.T)
    crossed = 2 * head * (near - far) if clock else np.abs(head - far) - np.abs(head - near)

    def loss(lengths: Floats) -> tuple[float, Floats]:  # with an exponential prior
        margin = crossed @ lengths
        total = float(lengths.sum() - answers.weights @ log_expit(margin))
        return total, 1 - (answers.weights * expit(-margin)) @ crossed

    n_branches = beyond.shape[1]
    tree = beyond * least(loss, np.ones(n_branches), [(0.0, None)] * n_branches)
    depth = tree.sum(axis=1)
    return np.hstack([tree, np.diag(depth.max() - depth)]) if clock else tree


def _join_closest(X: Floats) -> list[Floats]:
    """The objects beyond each inner branch, if parts are joined by mean distances (UPGMA)."""
    sides = list(np.eye(len(X)))
    for one, other in average(pdist(X))[:, :2].astype(np.int64):
        sides.append(sides[one] + sides[other])
    return sides[len(X) : -1]


def _join_neighbours(X: Floats) -> list[Floats]:
    """The objects beyond each branch, if neighbours are joined (Saitou and Nei 1987)."""
    D, sides, branches = squareform(pdist(X)), list(np.eye(len(X))), list[Floats]()
    while len(D) > 2:
        total = D.sum(axis=1)
        cost = (len(D) - 2) * D - total[:, None] - total
        np.fill_diagonal(cost, np.inf)
        i, j = divmod(int(cost.argmin()), len(D))
        branches += [sides[i], sides[j]]
        D[i] = D[:, i] = (D[i] + D[j] - D[i, j]) / 2
        D[i, i], sides[i] = 0.0, sides[i] + sides[j]
        D = np.delete(np.delete(D, j, axis=0), j, axis=1)
        del sides[j]
    return [*branches, sides[0]]


def fold_of(group: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The fold of each row, from the hash of its objects."""
    return np.asarray((group >> np.uint64(33)) % np.uint64(FOLDS), dtype=np.int64)


def predicted_tau(
    fit: Posterior, predicted: Floats, weights: Floats, questions: Questions
) -> float:
    """The expected Kendall's τ of exact answers, which are the order of distances.

    `predicted` are moderated margins of answers that were predicted before they were fitted; the
    curve that fits them best gives the accuracy of predictions of the questions. A few answers, all
    predicted rightly, would allow any sharpness, so it is at most that of the next wider prior.
    Distances whose difference the bias can outweigh are tied: any order of them is right.
    """
    curve = fit_curve(PredictedMargins(predicted), weights)
    curve = replace(curve, sharpness=min(curve.sharpness, STEP))
    mean, variance = fit.margins(questions)
    known = np.abs(2 * curve.probability(moderate(mean, variance)) - 1)
    reach = 0.0 if fit.bias is None else np.sqrt(2) * float(fit.bias.std())
    sd = np.sqrt(np.maximum(variance, 1e-12))
    tied = ndtr((reach - mean) / sd) - ndtr((-reach - mean) / sd)
    return float(np.mean(tied + (1 - tied) * known))


# --- which dimension -----------------------------------------------------------------------------


def advantage(one: Floats, other: Floats) -> float:
    """By how many standard errors scores of the same answers are better than others."""
    difference = one - other
    gain = float(difference.mean())
    error = float(difference.std()) / math.sqrt(max(1, len(difference)))
    return gain / max(error, float(np.finfo(np.float64).eps))


@dataclass(frozen=True)
class HeldOutJudge:
    """Which dimension predicts held-out answers best.

    For each dimension, `scores` has the log-likelihoods of held-out answers, summed over the same
    three objects, and `information` the nats that the answers carry about the positions.
    """

    scores: Mapping[int, Floats]
    information: Mapping[int, float] = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The dimension to fit in: no further one gains more than a standard error."""
        tried = sorted(self.scores)
        worth = [0.0]
        for d, more in pairwise(tried):
            gain = advantage(self.scores[more], self.scores[d])
            worth.append(worth[-1] + gain - SAME * (more - d))
        return tried[int(np.argmax(worth))]

    def probabilities(self, most: int, least: int = 1) -> dict[int, float]:
        """How probable each dimension from `least` to `most` is."""
        chances, beyond = {}, 1.0
        for d in range(least, most):
            more = self._more_than(d)
            chances[d] = beyond * (1 - more)
            beyond *= more
        return {**chances, most: beyond}

    def _more_than(self, d: int) -> float:
        """The probability that the true dimension exceeds d, given that it is at least d."""
        if self.scores and d < min(self.scores):
            return 1.0  # the search began above d and had no reason to try d
        z, root = self.step(d)
        if z is None:
            return float(expit(_UNTRIED[0] + _UNTRIED[1] * root))
        return float(expit(_TRIED[0] + _TRIED[1] * z + _TRIED[2] * root))

    def step(self, d: int) -> tuple[float | None, float]:
        """The gain of d + 1 over d in standard errors (None if it was not tried), and √N."""
        known = min(d + 1, max(self.scores, default=d + 1))
        root = math.sqrt(max(self.information.get(known, 0.0), 0.0) / (d + 1))
        root = min(root, _MOST_ROOT)
        if d not in self.scores or d + 1 not in self.scores:
            return None, root
        return advantage(self.scores[d + 1], self.scores[d]), root

    def span(self, chances: Mapping[int, float]) -> tuple[int, int]:
        """The range of dimensions around the best that holds 95 % of the probability."""
        low = high = max(self.best if self.scores else 1, min(chances))
        while sum(chances[d] for d in range(low, high + 1)) < _SURE:
            below, above = chances.get(low - 1, 0.0), chances.get(high + 1, 0.0)
            if low == min(chances) and high == max(chances):
                break
            low, high = (low - 1, high) if below >= above else (low, high + 1)
        return low, high


def settle(
    d: int,
    attempt: Callable[[int, int], Floats | None],
    scores: dict[int, Floats],
    most: int,
    *,
    at_least: int = 1,
) -> int:
    """The best of the dimensions tried: neighbours, and one farther up, until all are worse.

    `attempt` takes a dimension and a neighbour that was tried, and returns the former's scores,
    or None. `scores` begins with those of d and gets those of all dimensions tried.
    """
    while True:
        for e in (d + 1, d - 1, min(d + 1 + math.isqrt(d), most)):
            if at_least <= e <= most and e not in scores:
                tried = attempt(e, d)
                if tried is not None:
                    scores[e] = tried
        best = HeldOutJudge(scores).best
        if best == d:
            return d
        d = best


def fit_smallest(
    triplets: NDArray[np.integer],
    n_objects: int,
    *,
    at_least: int = 1,
    at_most: int = 16,
    rng: np.random.Generator,
) -> tuple[Fit, dict[int, dict[str, float]]]:
    """Fit soft ordinal embedding in the dimension that predicts held-out answers best.

    The fit has fewer dimensions if these satisfy all triplets, too. The evidence is log-likelihood
    and accuracy of held-out answers, for each dimension tried.
    """
    rows, n = checks.triplets(triplets, n_objects)
    fewest = min(at_least, n - 1)
    most = max(fewest, min(at_most, n - 1, len(rows) // (FEWEST * n)))
    weights, held = np.ones(len(rows)), dict[int, HeldOut]()

    def attempt(d: int, _: int) -> Floats | None:
        held_out = hold_out_once(rows, weights, n, d, Loss("soe"), rng)
        if held_out is None:
            return None
        held[d] = held_out
        return held_out.pieces

    first, d = attempt(fewest, fewest), fewest
    if first is not None:
        d = settle(fewest, attempt, {fewest: first}, most, at_least=fewest)
    fit = fit_from_more_dimensions(rows, n, d, rng=rng)
    evidence = {
        e: {"log_likelihood": held[e].score, "held_out_accuracy": held[e].accuracy}
        for e in sorted(held)
    }
    return fit_onwards(rows, fit, at_least=fewest, rng=rng), evidence


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities and observed shares, in bins of about equally many answers.

    A predicted probability should equal the share of held-out answers that come true. The curve
    from distances to probabilities has two parameters, which were fitted to the same answers.

    Attributes
    ----------
    predicted, observed
        Mean probability of the likelier answer, and how often it was given.
    counts
        Answers in each bin, repeated ones included.
    """

    predicted: Floats
    observed: Floats
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The mean absolute difference of the two."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.counts))

    @classmethod
    def of(cls, held_out: HeldOut | None, times: NDArray[np.int64]) -> Calibration | None:
        """The calibration of held-out predictions; None for answers that are no choice of two.

        `times` is the number of answers that each row of the evidence stands for.
        """
        if held_out is None or not isinstance(held_out.predictions, PredictedMargins):
            return None
        times = times[held_out.rows]
        p = np.exp(held_out.curve.log_likelihood(held_out.predictions))  # as `predict_proba`
        sure, right = np.maximum(p, 1 - p), (p > 0.5).astype(np.float64)
        # Sorted by margin, since rounding on a flat curve would separate right from wrong answers.
        order = np.argsort(np.abs(held_out.predictions.margins), kind="stable")
        order = order[times[order] > 0]  # the others have no weight
        if not len(order):
            return None
        # Equal answers stay in one bin, that of their median.
        middle = np.cumsum(times[order]) - times[order] / 2
        n_bins = int(times[order].sum()).bit_length()  # Sturges 1926
        which = (n_bins * middle / times[order].sum()).astype(np.int64)
        bins = [order[which == k] for k in np.unique(which)]
        weights = held_out.weights
        return cls(
            np.array([np.average(sure[rows], weights=weights[rows]) for rows in bins]),
            np.array([np.average(right[rows], weights=weights[rows]) for rows in bins]),
            np.array([times[rows].sum() for rows in bins]),
        )
