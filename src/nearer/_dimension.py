"""How many dimensions answers need: `nearer.estimate_dimension`, and what `nearer.fit` asks too.

Answers are *exact* where one dimension obeys them all, several answers a coordinate, and answers
that were held out are obeyed as well as learning without errors allows. Otherwise dimensions are
compared by how well they predict answers held out. Either way each dimension gets a probability,
and those that cannot be told apart are said. See `nearer.fitting.dimension`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.baselines import cross_validated_test, fit_low_rank
from nearer.fitting.belief import Belief
from nearer.fitting.dimension import HeldOutJudge, is_exact, obeys, smallest_obeyed
from nearer.fitting.heldout import HeldOut, hold_out_once
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.solver import Fit
from nearer.fitting.starts import fit_from_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "SETTLED",
    "DimensionEstimate",
    "ExactFit",
    "estimate_dimension",
    "find_dimension",
    "fit_exactly",
]

SETTLED = 100_000  # answers that settle the dimension, where not all can be obeyed
_METHODS = ("auto", "exact", "held-out", "cross-validated test", "low-rank")
_SOE = Loss("soe")


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
        Whether the answers single out this dimension.
    dimension_low, dimension_high
        The dimensions that the answers leave possible, 95 times in 100.
    evidence
        Dimension → its ``"probability"`` and what that rests on; empty for the published ways.
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
    dimension_low: int = 1
    dimension_high: int = 1
    evidence: dict[int, Any] = field(default_factory=dict, repr=False)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the score of every dimension tried; see `nearer.plotting.plot_dimension`."""
        from nearer.plotting import plot_dimension  # noqa: PLC0415 - drawing only

        return plot_dimension(self, ax)


@dataclass(frozen=True)
class ExactFit:
    """Positions that obey all answers, and what fits to a part predicted of the others."""

    fit: Fit
    held_out: HeldOut


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
    >>> found = nearer.estimate_dimension(triplets, random_state=0)
    >>> found.dimension, found.method, found.determined
    (2, 'exact', True)
    """
    rows, n = checks.triplets(getattr(answers, "triplets", answers), n_objects)
    checks.one_of("method", method, _METHODS)
    most = min(checks.whole("max_dimension", max_dimension), n - 1)
    rng = checks.generator(random_state)
    if method == "cross-validated test":
        return _tested(rows, n, most, rng)
    if method == "low-rank":
        return _low_rank(rows, n, most, rng)
    weights = np.ones(len(rows))
    if method != "held-out":
        estimate, _ = fit_exactly(rows, weights, n, None, most, rng)
        if estimate is not None:
            return estimate
        if method == "exact":
            raise InvalidInput(
                f"max_dimension={most}: not all answers can be obeyed, or answers held out are "
                "not; raise max_dimension or use method='held-out'"
            )
    belief = Belief(n, None, rng, max_components=most)
    if len(rows) > SETTLED:
        rows = rows[rng.choice(len(rows), SETTLED, replace=False)]
    belief.learn(rows)
    return find_dimension(belief, most)


def fit_exactly(
    rows: NDArray[np.int32],
    weights: Floats,
    n: int,
    d: int | None,
    most: int,
    rng: np.random.Generator,
) -> tuple[DimensionEstimate | None, ExactFit | None]:
    """Positions that obey every answer that counts, where answers not seen are obeyed, too.

    `d` None: in the smallest dimension, at most `most`. Both are None where answers are not exact;
    there is no estimate where the dimension was given.
    """
    counted = weights > 0
    rows, weights = rows[counted], weights[counted]
    shares: dict[int, float] = {}
    fit: Fit | None
    if d is None:
        fit, shares = smallest_obeyed(rows, n, most, rng)
    else:
        fit = fit_from_above(rows, n, d, weights=weights, rng=rng, max_iter=1000)
        fit = fit if obeys(fit, rows) else None
    if fit is None:
        return None, None
    e = fit.positions.shape[1]
    held = hold_out_once(rows, weights, n, e, _SOE, rng)
    if held is None:
        return None, None
    wrong, asked = int((held.right == 0).sum()), len(held.rows)
    if not is_exact(wrong, asked, len(rows) - asked, n * e):
        return None, None
    at = np.flatnonzero(counted)[held.rows]  # rows as the caller counts them
    exact = ExactFit(fit, replace(held, rows=at))
    if d is not None:
        return None, exact
    tried = {e: held}
    for f in (e - 1, e + 1):
        if 1 <= f <= most:
            other = hold_out_once(rows, weights, n, f, _SOE, rng)
            tried |= {} if other is None else {f: other}
    return _exact_estimate(fit, shares, tried, most), exact


def _exact_estimate(
    fit: Fit, shares: dict[int, float], tried: dict[int, HeldOut], most: int
) -> DimensionEstimate:
    judge = HeldOutJudge({d: held.pieces for d, held in tried.items()})
    chances, (low, high) = judge.probabilities(), judge.span()
    d = fit.positions.shape[1]
    evidence: dict[int, Any] = {
        e: {
            "probability": chances.get(e, 0.0),
            "disobeyed": shares.get(e),
            "accuracy": tried[e].accuracy if e in tried else None,
        }
        for e in sorted({*shares, *tried})
    }
    dimensions = np.array(sorted(shares))
    return DimensionEstimate(
        d,
        "exact",
        dimensions,
        np.array([shares[e] for e in sorted(shares)]),
        np.zeros(len(shares)),
        bool(low == high == d and d < most),
        fit.positions,
        min(low, d),
        max(high, d),
        evidence,
    )


def find_dimension(belief: Belief, most: int) -> DimensionEstimate:
    """What a belief that chose its dimension says about it."""
    chosen, n, d = belief.held_out, len(belief.fit.positions), belief.dimension
    if chosen is None:
        nothing = np.array([np.log(2)])
        return DimensionEstimate(
            d, "held-out", np.array([d]), nothing, np.zeros(1), False, None, 1, most
        )
    judge, evidence = belief.judge, belief.evidence
    low, high = judge.span()
    # four standard errors above a coin: the best of some ten settings exceeds three by chance
    if chosen.accuracy <= 0.5 + 2 / np.sqrt(len(chosen.pieces)):
        low, high = 1, most
    elif d == max(judge.scores):  # nothing wider was tried: more cannot be excluded
        high = max(high, min(n - 1, most) if d < most else n - 1)
    tried = np.array(sorted(judge.scores))
    scores = np.array([-evidence[k]["log_likelihood"] for k in tried])
    size = len(chosen.rows)
    errors = np.array(
        [(judge.scores[k] - judge.scores[d]).std() * len(judge.scores[d]) ** 0.5 for k in tried]
    )
    return DimensionEstimate(
        d,
        "held-out",
        tried,
        scores,
        errors / size,
        bool(low == high),
        belief.fit.positions,
        low,
        high,
        evidence,
    )


def _low_rank(
    rows: NDArray[np.int32], n: int, most: int, rng: np.random.Generator
) -> DimensionEstimate:
    fit = fit_low_rank(rows, n, max_dimension=most, rng=rng)
    d = fit.positions.shape[1]
    size = np.zeros(most)
    size[:d] = np.linalg.svd(fit.positions, compute_uv=False)[:d]
    share = size / size[0] if size[0] > 0 else size
    tried = np.arange(1, most + 1)
    determined = fit.converged and d < most
    return DimensionEstimate(
        d, "low-rank", tried, share, np.zeros(most), determined, fit.positions, d, d
    )


def _tested(
    rows: NDArray[np.int32], n: int, most: int, rng: np.random.Generator
) -> DimensionEstimate:
    d, accuracy = cross_validated_test(rows, n, max_dimension=most, rng=rng)
    best = accuracy.mean(axis=1).argmax()
    errors = (accuracy - accuracy[best]).std(axis=1) / np.sqrt(accuracy.shape[1])
    tried, mean = np.arange(1, most + 1), accuracy.mean(axis=1)
    return DimensionEstimate(d, "cross-validated test", tried, mean, errors, d < most, None, d, d)
