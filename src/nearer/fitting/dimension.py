"""How many dimensions the answers need.

*Exact answers.* In too few dimensions no positions obey all answers; in enough, soe loss zero is
reached. So come down: fit in many dimensions, strip the weakest axis, fit again from there, and
stop at the first dimension whose fit still disobeys. The answer is the one before. With few
answers anything can be obeyed, so this counts only with several answers a coordinate; otherwise,
and where even many dimensions disobey:

*Noisy answers.* Dimension by dimension, fit part of the answers and judge the rest
(`nearer.fitting.belief`). A dimension more must make held-out answers more likely by more than one
standard error of the paired differences.

*Baselines.* ``"low-rank"`` is LORE (`nearer.fitting.low_rank`). `cross_validated_test` follows
Künstle, von Luxburg and Wichmann (2022): k-fold accuracy of soe, and t-tests of each further
dimension with the correction of Nadeau and Bengio for overlapping training sets and of Holm for
many tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.losses import Floats
from nearer.fitting.low_rank import fit_low_rank
from nearer.fitting.solver import disobeyed
from nearer.fitting.starts import come_down, fit_from_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DimensionEstimate", "cross_validated_test", "estimate_dimension"]

_EXACT = 5  # answers a coordinate from which on perfect obedience is no accident
_MOST = 100_000  # answers that settle the dimension, where not all can be obeyed
_OBEYED = 1e-3  # share of disobeyed answers that a few stuck objects explain


@dataclass(frozen=True)
class DimensionEstimate:
    """An estimated dimension and the evidence for it.

    Attributes
    ----------
    dimension
        The estimate.
    method
        ``"exact"``, ``"held-out"``, ``"cross-validated test"`` or ``"low-rank"``.
    dimensions
        Those tried, ascending.
    scores
        For each: share of disobeyed answers (exact), held-out log-loss, mean accuracy, or the size
        of the direction relative to the first (low-rank).
    errors
        Standard error of each score's difference from the estimate's or, in the cross-validated
        test, the best; zero for exact answers.
    determined
        False where the answers do not single out a dimension: they predict nothing, or the last
        dimension tried is still the best.
    positions
        Positions in `dimension` dimensions where the method has them, else None.
    """

    dimension: int
    method: str
    dimensions: NDArray[np.int64]
    scores: Floats
    errors: Floats
    determined: bool
    positions: Floats | None = field(default=None, repr=False)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the score of every dimension tried, with two standard errors."""
        if ax is None:
            from matplotlib.figure import Figure  # noqa: PLC0415 - drawing only

            ax = Figure(figsize=(5, 3.5), layout="constrained").subplots()
        what = {
            "exact": "share of answers disobeyed",
            "held-out": "log-loss of held-out answers",
            "cross-validated test": "accuracy on held-out answers",
            "low-rank": "size of the direction",
        }
        ax.errorbar(self.dimensions, self.scores, 2 * self.errors, marker="o", capsize=3)
        ax.axvline(self.dimension, linestyle="--", color="0.5")
        ax.set(xlabel="dimensions", ylabel=what[self.method], title=f"estimate: {self.dimension}")
        ax.set_xticks(self.dimensions)
        return ax


def estimate_dimension(
    answers: ArrayLike | Any,
    n_objects: int | None = None,
    *,
    method: Literal["auto", "exact", "held-out", "cross-validated test", "low-rank"] = "auto",
    max_dimension: int = 12,
    random_state: int | np.random.Generator | None = None,
) -> DimensionEstimate:
    """Estimate how many dimensions answers need.

    Parameters
    ----------
    answers
        ``(m, 3)`` triplets (head, near, far), or anything with a `triplets` attribute, such as a
        `nearer.Basis`.
    n_objects
        How many objects there are; None: the largest index plus one.
    method
        ``"auto"`` tries ``"exact"`` and turns to ``"held-out"`` where answers are not exact;
        ``"cross-validated test"`` and ``"low-rank"`` are published ways, for comparison.
    max_dimension
        The most dimensions to try.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> questions = np.array([rng.choice(60, 3, replace=False) for _ in range(4000)])
    >>> near = nearer.PointOracle(X)(questions)
    >>> triplets = np.where(near[:, None], questions, questions[:, [0, 2, 1]])
    >>> found = estimate_dimension(triplets, random_state=0)
    >>> found.dimension, found.method
    (2, 'exact')
    """
    rows, n = checks.triplets(getattr(answers, "triplets", answers), n_objects)
    if max_dimension < 1:
        raise InvalidInput(f"max_dimension={max_dimension}: must be at least 1")
    most = min(max_dimension, n - 1)
    rng = np.random.default_rng(random_state)
    match method:
        case "exact" | "auto":
            found = _exact(rows, n, most, rng)
            if found is not None:
                return found
            if method == "exact":
                raise InvalidInput(
                    f"max_dimension={most}: not all answers can be obeyed, or there are fewer than "
                    f"{_EXACT} answers a coordinate; raise max_dimension or use method='held-out'"
                )
            return _held_out(rows, n, most, rng)
        case "held-out":
            return _held_out(rows, n, most, rng)
        case "cross-validated test":
            return cross_validated_test(rows, n, max_dimension=most, rng=rng)
        case "low-rank":
            return _low_rank(rows, n, most, rng)
    raise InvalidInput(
        f"method={method!r}: must be 'auto', 'exact', 'held-out', 'cross-validated test' or "
        "'low-rank'"
    )


def _exact(
    rows: NDArray[np.int32], n: int, most: int, rng: np.random.Generator
) -> DimensionEstimate | None:
    d = min(most, max(1, len(rows) // (_EXACT * n)))
    fit = fit_from_above(rows, n, d, rng=rng, max_iter=1000)
    shares, best = {d: float(disobeyed(fit.positions, rows).mean())}, None
    while shares[d] <= _OBEYED:
        best = d, fit.positions
        if d == 1:
            break
        d -= 1
        fit = come_down(rows, n, fit.positions, d, rng=rng, middle=False)
        shares[d] = float(disobeyed(fit.positions, rows).mean())
    if best is None:
        return None
    fit = come_down(rows, n, best[1], best[0], rng=rng)
    tried = np.array(sorted(shares))
    scores = np.array([shares[d] for d in tried])
    return DimensionEstimate(
        best[0], "exact", tried, scores, np.zeros(len(tried)), best[0] < most, fit.positions
    )


def _held_out(
    rows: NDArray[np.int32], n: int, most: int, rng: np.random.Generator
) -> DimensionEstimate:
    if len(rows) > _MOST:
        rows = rows[rng.choice(len(rows), _MOST, replace=False)]
    belief = Belief(n, None, rng, max_components=most)
    belief.learn(rows)
    chosen = belief.held_out
    if chosen is None:
        nothing = np.array([np.log(2)])
        return DimensionEstimate(1, "held-out", np.array([1]), nothing, np.zeros(1), False)
    d = belief.fit.positions.shape[1]
    tried = np.array(sorted(belief.tried))
    scores = np.array([-belief.tried[k].score for k in tried])
    errors = np.array([belief.tried[k].gain(chosen)[1] for k in tried])
    # four standard errors above a coin: the best of some ten settings exceeds three by chance
    better_than_chance = chosen.accuracy > 0.5 + 2 / np.sqrt(len(chosen.rows))
    determined = bool(better_than_chance and d < most)
    return DimensionEstimate(d, "held-out", tried, scores, errors, determined, belief.fit.positions)


def _low_rank(
    rows: NDArray[np.int32], n: int, most: int, rng: np.random.Generator
) -> DimensionEstimate:
    fit = fit_low_rank(rows, n, max_dimension=most, rng=rng)
    d = fit.positions.shape[1]
    size = np.zeros(most)
    size[:d] = np.linalg.svd(fit.positions, compute_uv=False)[:d]
    share = size / size[0] if size[0] > 0 else size
    tried = np.arange(1, most + 1)
    return DimensionEstimate(
        d, "low-rank", tried, share, np.zeros(most), fit.converged and d < most, fit.positions
    )


def cross_validated_test(
    triplets: ArrayLike,
    n_objects: int | None = None,
    *,
    max_dimension: int = 12,
    n_splits: int = 10,
    alpha: float = 0.05,
    rng: np.random.Generator,
) -> DimensionEstimate:
    """Raise the dimension as long as it raises k-fold accuracy significantly."""
    rows, n = checks.triplets(triplets, n_objects)
    if not 2 <= n_splits <= len(rows):
        raise InvalidInput(f"n_splits={n_splits}: must be from 2 to the {len(rows)} triplets")
    part = rng.permutation(len(rows)) % n_splits
    accuracy = np.empty((max_dimension, n_splits))
    for d in range(1, max_dimension + 1):
        for fold in range(n_splits):
            fit = fit_from_above(rows[part != fold], n, d, rng=rng, max_iter=300, rescues=0)
            accuracy[d - 1, fold] = 1 - disobeyed(fit.positions, rows[part == fold]).mean()
    gains = np.diff(accuracy, axis=0)
    spread = np.maximum(gains.std(axis=1, ddof=1), 1e-12)
    t = gains.mean(axis=1) / spread / np.sqrt(1 / n_splits + 1 / (n_splits - 1))
    p = stats.t.sf(t, n_splits - 1)
    order = np.argsort(p)
    holm = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    significant = np.zeros(len(p), dtype=bool)
    significant[order] = holm <= alpha
    steps = int(np.argmin(significant)) if not significant.all() else len(significant)
    best = accuracy.mean(axis=1).argmax()
    errors = (accuracy - accuracy[best]).std(axis=1) / np.sqrt(n_splits)
    return DimensionEstimate(
        steps + 1,
        "cross-validated test",
        np.arange(1, max_dimension + 1),
        accuracy.mean(axis=1),
        errors,
        steps + 1 < max_dimension,
    )
