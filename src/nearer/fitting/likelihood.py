r"""The likelihood of answers: the noise that fits assume, and the predictions of a fit.

*Model.* An answer about the margin t = f(‖head − far‖) − f(‖head − near‖) is right with
probability ε + (1 − 2ε)/(1 + exp(−t)): uncertain near a tie, and wrong at the lapse rate ε even
for a clear question. A distance counts as it is, f(δ) = δ, or with a heavy tail, f(δ) = (α + 1)/2 ·
log(1 + δ²/α), for people who hardly distinguish far and very far (van der Maaten and Weinberger
2012). Other tasks are the same model with more alternatives (docs/kernels.md).

*Two forms of answers*, one interface: `Comparisons` have a faster kernel than `Choices` of any task
(0.75 ms instead of 3.10 ms a pass over 20,000). Equal answers are one row of greater weight.

*Predictions.* The prior that predicts best is often stronger than the one that explains best; so
margins are multiplied by a *sharpness* β, fitted to held-out answers. The noise that a fit assumes
(`Noise`) and the curve of its predictions (`Curve`) each have a lapse rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln

from nearer import checks
from nearer.fitting.solver import Fit, Loss, Passes, gpu, minimise, prepare, wants_gpu
from nearer.questions import Floats, Objects, hash_rows, pack
from nearer.trials import Trials

if TYPE_CHECKING:
    from nearer._kernels.screens import Screens
    from nearer.fitting.posterior import Posterior


MOST_LAPSE = 0.45  # a larger rate leaves nothing to fit
_LEAST = float(np.sqrt(np.finfo(float).tiny))  # probability; its inverse can be summed


@dataclass(frozen=True)
class Noise:
    """The noise that a fit assumes.

    Attributes
    ----------
    prior
        Standard deviation of a coordinate before any answer, in units of the answers' noise.
    lapse
        Probability of a wrong answer however clear the question is.
    tail
        0: the logistic curve. Otherwise the degrees of freedom of the t curve, in which large
        distances count less; fits by it have no lapses, predictions do.
    bias
        Whether objects have a bias, standard normal in the same units: one with a bias is called
        nearer than the distances say, whatever the head is. It stands for an
        oracle's rule for equal distances.
    apart
        Standard deviation of a coordinate in one person's own map around the common one, in units
        of the prior; 0: all have the same map.
    """

    prior: float = 1.0
    lapse: float = 0.0
    tail: float = 0.0
    bias: bool = False
    apart: float = 0.0

    @property
    def loss(self) -> Loss:
        """What an answer costs under this noise."""
        if self.tail == 1.0:
            return Loss("ckl", 1.0)  # the same, and takes no exponential
        return Loss("tste", self.tail) if self.tail else Loss("logistic", self.lapse)

    def ridge(self, total: float) -> float:
        """The prior as a ridge of the mean loss over answers of this total weight."""
        return 1 / (total * self.prior**2)


@dataclass(frozen=True)
class Curve:
    """The curve from margins to probabilities of answers.

    Attributes
    ----------
    sharpness
        Factor of the margin.
    lapse
        Probability of the unlikely answer however clear the question is.
    error
        Standard error of the sharpness.
    """

    sharpness: float = 1.0
    lapse: float = 0.0
    error: float = 0.0

    def probability(self, margins: Floats) -> Floats:
        """The probability that people answer as the sign of the margin says."""
        margins = moderate(self.sharpness * margins, (self.error * margins) ** 2)
        return np.asarray(self.lapse + (1 - 2 * self.lapse) * expit(margins))

    def log_likelihood(self, predictions: PredictedMargins | PredictedChoices) -> Floats:
        """The log-probability of each answer, given predictions of it."""
        return predictions.along(self.sharpness, self.lapse)[0]


def _kernels() -> Any:
    """The kernels of choices, which need Numba."""
    from nearer._kernels import screens  # noqa: PLC0415 - compiles

    return screens


@dataclass(frozen=True)
class _Rows:
    """Answers as fits take them, equal ones counted once."""

    weights: Floats
    odds: Floats  # how many times likelier than at random each row was to be asked
    row: Objects  # of each answer that was given
    n_objects: int

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def parts(self) -> dict[int, Any]:
        """A cache of the parts from which folds are predicted."""
        return {}

    def predictions(self: Any, fit: Posterior) -> Any:
        """The predictions of a fit about the answers."""
        return self.beside(self.predict(fit))


@dataclass(frozen=True)
class Comparisons(_Rows):
    """Answers that name the nearer of two objects: distinct rows ``(head, near, far)``."""

    triplets: NDArray[np.int32]

    @cached_property
    def passes(self) -> Passes:
        """The answers, laid out for passes over them."""
        weights = None if (self.weights == 1.0).all() else self.weights
        return prepare(self.triplets, self.n_objects, weights)

    @cached_property
    def group(self) -> NDArray[np.uint64]:
        """A hash for each row, the same for all rows about the same three objects."""
        return hash_rows(np.sort(self.triplets, axis=1))

    @property
    def terms(self) -> int:
        """How many terms a pass sums up."""
        return len(self.triplets)

    @property
    def total(self) -> float:
        """How many comparisons they are worth."""
        return self.total_weight

    def part(self, rows: NDArray[np.int64]) -> Comparisons:
        """Some of the rows."""
        fields = {name: getattr(self, name)[rows] for name in ("triplets", "weights", "odds")}
        return replace(self, **fields)

    def maximise(self, noise: Noise, start: Floats, max_iter: int, tol: float) -> Fit:
        """The most probable positions under this noise, from a start."""
        how: Any = {"ridge": noise.ridge(self.total_weight), "max_iter": max_iter, "tol": tol}
        return self.passes.fit(noise.loss, start, **how)

    def sums(self, X: Floats, noise: Noise) -> tuple[float, Floats]:
        """Weighted sum of −log p, and its gradient in the positions."""
        return self.passes.sums(noise.loss, X)

    def information(self, X: Floats, noise: Noise) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        return self.passes.information(X, noise.lapse, noise.tail)

    def predict(self, fit: Posterior) -> Floats:
        """Moderated margins."""
        return moderate(*fit.margins(self.triplets))

    def beside(self, margins: Floats) -> PredictedMargins:
        """Predictions of these rows beside the answers."""
        return PredictedMargins(margins)


@dataclass(frozen=True)
class Choices(_Rows):
    """Answers of any task; `nearer._kernels.screens.Screens` says what the arrays are."""

    starts: NDArray[np.int64]
    spans: NDArray[np.int64]
    pairs: NDArray[np.int32]
    credit: Floats
    wanted: NDArray[np.int64]
    ranked: NDArray[np.bool_]
    log_ways: Floats
    group: NDArray[np.uint64]  # the same number for rows about the same objects

    @cached_property
    def screens(self) -> Screens:
        """The answers as kernels take them."""
        kind: type[Screens] = _kernels().Screens
        return kind(*(getattr(self, name) for name in kind._fields))

    @property
    def terms(self) -> int:
        """How many terms a pass sums up."""
        return len(self.pairs)

    @property
    def total(self) -> float:
        """The number of comparisons with the same number of possible answers."""
        return float(self.weights @ self.log_ways) / math.log(2)

    def part(self, rows: NDArray[np.int64]) -> Choices:
        """Some of the rows."""
        items, starts = _ranges(self.starts, rows)
        pairs, spans = _ranges(self.spans, items)
        names = ("wanted", "ranked", "log_ways", "weights", "odds", "group")
        some: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        some |= {"starts": starts, "spans": spans}
        return replace(self, pairs=self.pairs[pairs], credit=self.credit[items], **some)

    def maximise(self, noise: Noise, start: Floats, max_iter: int, tol: float) -> Fit:
        """The most probable positions under this noise, from a start."""
        how: Any = {"ridge": noise.ridge(self.total_weight), "max_iter": max_iter, "tol": tol}
        if wants_gpu(len(self.pairs), self.n_objects):
            fit: Fit = self._on_gpu.fit(start, noise.lapse, noise.tail, **how)
            return fit
        return minimise(lambda X: self.sums(X, noise), self.total_weight, start, **how)

    @cached_property
    def _on_gpu(self) -> Any:
        return gpu().GpuChoices(self)

    def sums(self, X: Floats, noise: Noise) -> tuple[float, Floats]:
        """Weighted sum of −log p, and its gradient in the positions."""
        total, gradient = _kernels().value_and_gradient(
            X, self.screens, self.weights, noise.lapse, noise.tail
        )
        return float(total), gradient

    def information(self, X: Floats, noise: Noise) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        return np.asarray(
            _kernels().information(X, self.screens, self.weights, noise.lapse, noise.tail)
        )

    def expected_information(
        self, X: Floats, covariances: Floats, tail: float, sharpness: float, lapse: float
    ) -> tuple[Floats, Floats]:
        """Expected information of each row's answer, in nats, and the variance of its utilities."""
        gain, variance = _kernels().expected_information(
            X, covariances, self.screens, sharpness, lapse, tail
        )
        return gain, variance

    def predict(self, fit: Posterior) -> Floats:
        """Moderated utilities of the items."""
        X, tail = fit.positions, fit.noise.tail
        _, variance = self.expected_information(X, fit.covariances, tail, 1.0, 0.0)
        utilities = _kernels().utilities(X, self.screens, tail)
        return moderate(utilities, np.repeat(variance, np.diff(self.starts)))

    def beside(self, utilities: Floats) -> PredictedChoices:
        """Predictions of these rows beside the answers."""
        return PredictedChoices(self, utilities)


#: Answers in either form.
Answers = Comparisons | Choices


@dataclass(frozen=True)
class PredictedMargins:
    """Predicted margins of comparisons, positive if the prediction agrees with the answer.

    Uncertain margins are smaller, see `moderate`.
    """

    margins: Floats

    def along(self, sharpness: float, lapse: float) -> tuple[Floats, Floats, Floats]:
        """Log-probability of each answer, and its slopes in the two numbers of the curve."""
        t = self.margins
        right = expit(sharpness * t)
        p = np.maximum(lapse + (1 - 2 * lapse) * right, _LEAST)
        by_sharpness = (1 - 2 * lapse) * right * (1 - right) * t / p
        return np.log(p), by_sharpness, (1 - 2 * right) / p

    @property
    def right(self) -> Floats:
        """1 for each answer that was predicted, ½ at a tie, else 0."""
        return np.asarray((1 + np.sign(self.margins)) / 2)

    chance = 0.5  # that a guess is right

    @property
    def size(self) -> float:
        """A typical margin."""
        return float(np.median(np.abs(self.margins)))


@dataclass(frozen=True)
class PredictedChoices:
    """Predicted utilities of the items, smaller if uncertain, beside the choices."""

    choices: Choices
    utilities: Floats

    def along(self, sharpness: float, lapse: float) -> tuple[Floats, Floats, Floats]:
        """Log-probability of each answer, and its slopes in the two numbers of the curve."""
        table = _kernels().along_curve(self.utilities, self.choices.screens, sharpness, lapse)
        return table[:, 0], table[:, 1], table[:, 2]

    @property
    def right(self) -> Floats:
        """1 for each answer that was predicted as a whole, less at a tie."""
        return np.asarray(_kernels().agreement(self.utilities, self.choices.screens))

    @property
    def chance(self) -> float:
        """How often a guess is right."""
        return float(np.average(np.exp(-self.choices.log_ways), weights=self.choices.weights))

    @property
    def size(self) -> float:
        """A typical difference of two utilities."""
        first = self.utilities[self.choices.starts[:-1]]
        last = self.utilities[self.choices.starts[1:] - 1]
        return float(np.median(np.abs(first - last)))


def moderate(mean: Floats, variance: Floats) -> Floats:
    """Margins, reduced by their variance: the mean of the logistic curve (MacKay 1992)."""
    return np.asarray(mean / np.sqrt(1 + np.pi / 8 * variance))


@overload
def as_answers(
    answers: Trials,
    n_objects: int | None = ...,
    weights: ArrayLike | None = ...,
    odds: ArrayLike | None = ...,
) -> Choices: ...


@overload
def as_answers(
    answers: ArrayLike | Trials,
    n_objects: int | None = ...,
    weights: ArrayLike | None = ...,
    odds: ArrayLike | None = ...,
) -> Answers: ...


def as_answers(
    answers: ArrayLike | Trials,
    n_objects: int | None = None,
    weights: ArrayLike | None = None,
    odds: ArrayLike | None = None,
) -> Answers:
    """Answers in the form that fits use: rows (head, near, far), or `Trials` of any task."""
    if isinstance(answers, Trials):
        return _as_choices(answers, n_objects, weights, odds)
    if len(np.asarray(answers)) == 0 and n_objects is not None:
        none = np.empty(0, dtype=np.int64)
        return Comparisons(
            np.empty(0), np.empty(0), none, n_objects, np.empty((0, 3), dtype=np.int32)
        )
    rows, n = checks.triplets(answers, n_objects)
    keys, mirrored = pack(rows)
    _, first, row = np.unique(2 * keys + mirrored, return_index=True, return_inverse=True)
    counts = np.bincount(row, weights=checks.weights(weights, len(rows))).astype(np.float64)
    return Comparisons(counts, checks.weights(odds, len(rows))[first], row, n, rows[first])


def _as_choices(
    trials: Trials, n_objects: int | None, weights: ArrayLike | None, odds: ArrayLike | None
) -> Choices:
    m = len(trials)
    counts, asked = checks.weights(weights, m), checks.weights(odds, m)
    order = _chosen_first(trials)
    first, row = _distinct(trials, order)
    counts = np.bincount(row, weights=counts, minlength=len(first)).astype(np.float64)
    distinct, order = trials[first], order[first]
    starts, spans, pairs = _items(distinct, order)
    shown, wanted = distinct.n_shown.astype(np.float64), distinct.wanted.astype(np.float64)
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], distinct.n_shown)
    chosen = (place < np.repeat(wanted, distinct.n_shown)).astype(np.float64)
    even = np.repeat(wanted / np.maximum(shown, 1), distinct.n_shown)
    credit = np.where(np.repeat(distinct.decided, distinct.n_shown), chosen, even)
    ranked = distinct.decided & distinct.ranked & (distinct.wanted > 1)
    ways = gammaln(shown + 1) - gammaln(shown - wanted + 1)
    ways -= np.where(ranked, 0.0, gammaln(wanted + 1))
    group = hash_rows(np.sort(distinct.questions, axis=1))
    n = trials.n_objects if n_objects is None else n_objects
    screens = (starts, spans, pairs, credit, distinct.wanted, ranked, ways)
    return Choices(counts, asked[first], row, n, *screens, group)


def _chosen_first(trials: Trials) -> NDArray[np.int64]:
    """Positions of the items of each trial: the chosen in their order, the others by object."""
    place = np.where(trials.chosen > 0, trials.chosen, np.iinfo(np.int64).max)
    label = trials.shown[:, ::2] if trials.kind == "pairs" else trials.shown
    empty = np.where(label >= 0, label, np.iinfo(np.int64).max)
    return np.lexsort((empty, np.where(label >= 0, place, np.iinfo(np.int64).max)), axis=1)


def _distinct(trials: Trials, order: NDArray[np.int64]) -> tuple[Objects, Objects]:
    """The first of each set of equal answers, and for each answer its set."""
    if not len(trials):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if trials.kind == "pairs":
        return np.arange(len(trials)), np.arange(len(trials))
    ordered = np.take_along_axis(trials.shown, order, axis=1)
    state = np.take_along_axis(trials.chosen, order, axis=1)
    rows = np.column_stack([trials.query, trials.wanted, ordered, state])
    _, first, row = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, row.ravel()


def _items(
    trials: Trials, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Items and pairs of each trial, items in this order."""
    starts = np.concatenate([[0], np.cumsum(trials.n_shown)]).astype(np.int64)
    if trials.kind == "near":
        objects = np.take_along_axis(trials.shown, order, axis=1)
        objects = objects[objects >= 0]
        pairs = np.stack([np.repeat(trials.query, trials.n_shown), objects], axis=1)
        return starts, np.arange(len(pairs) + 1), pairs.astype(np.int32)
    rows = trials.shown
    if trials.kind == "pairs":
        wide = rows.reshape(len(rows), -1, 2)
        pairs = np.take_along_axis(wide, order[:, :, None], axis=1)
        pairs = pairs[pairs[:, :, 0] >= 0]
        return starts, np.arange(len(pairs) + 1), pairs.astype(np.int32)
    ordered = np.take_along_axis(rows, order, axis=1)
    sizes = np.empty(len(trials), dtype=np.int64)
    groups: list[tuple[NDArray[np.int64], Objects]] = []
    for m in np.unique(trials.n_shown).tolist():
        places = _places(trials.kind, m)
        at = np.flatnonzero(trials.n_shown == m)
        groups.append((at, ordered[at][:, places].reshape(len(at), -1, 2)))
        sizes[at] = places.shape[1]
    per_item = np.repeat(sizes, trials.n_shown)
    spans = np.concatenate([[0], np.cumsum(per_item)]).astype(np.int64)
    pairs = np.empty((spans[-1], 2), dtype=np.int32)
    for at, own in groups:
        begin = spans[starts[at]]
        pairs[(begin[:, None] + np.arange(own.shape[1])).ravel()] = own.reshape(-1, 2)
    return starts, spans, pairs


def _places(kind: str, m: int) -> NDArray[np.int64]:
    """For each of m objects shown, the pairs that should be near if it is chosen."""
    if kind == "odd-one-out":
        rest = [[j for j in range(m) if j != i] for i in range(m)]
        return np.array([list(combinations(others, 2)) for others in rest])
    return np.array([[(i, j) for j in range(m) if j != i] for i in range(m)])


def _ranges(
    starts: NDArray[np.int64], which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers from starts[i] to starts[i + 1] for the i in `which`, and where each i begins."""
    sizes = (starts[1:] - starts[:-1])[which]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shift = np.repeat(starts[:-1][which] - ends[:-1], sizes)
    return np.arange(ends[-1]) + shift, ends
