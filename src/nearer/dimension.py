"""How many dimensions answers need: `nearer.estimate_dimension`, and the dimension of `nearer.fit`.

docs/dimensions.md has the rules; `nearer.fitting.heldout` compares dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.heldout import HeldOut, hold_out_once
from nearer.fitting.initial import NEARLY, is_exact
from nearer.fitting.solver import Fit, Loss, fit_positions, violated
from nearer.questions import Floats
from nearer.trials import Trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTLED = 100_000  # noisy answers from which the dimension is estimated; more add nothing


@dataclass(frozen=True)
class DimensionEstimate:
    """An estimated dimension and the evidence for it.

    Attributes
    ----------
    dimension
        The estimate.
    method
        ``"exact"`` or ``"held-out"``.
    dimensions
        Those tried, ascending.
    scores
        For each: held-out log-loss, nan if nothing was held out.
    errors
        Standard error of each score's difference from the estimate's.
    determined
        Whether the answers single out this dimension.
    dimension_low, dimension_high
        The dimensions that the answers leave possible, 95 times in 100.
    evidence
        Dimension → its ``"probability"`` and the scores behind it. The probability of the largest
        dimension includes all beyond it.
    positions
        Positions in `dimension` dimensions if the method has them, else None.
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


def estimate_dimension(
    answers: ArrayLike | Any,
    n_objects: int | None = None,
    *,
    method: Literal["auto", "exact", "held-out"] = "auto",
    max_dimension: int = 12,
    random_state: int | np.random.Generator | None = None,
) -> DimensionEstimate:
    """Estimate how many dimensions answers need.

    Parameters
    ----------
    answers
        ``(m, 3)`` triplets (head, near, far), or anything with a `triplets` attribute.
    n_objects
        How many objects there are; None: the largest index plus one.
    method
        ``"auto"``: ``"exact"`` if answers are exact, else ``"held-out"``.
    max_dimension, random_state
        The most dimensions to try; seed or generator.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> questions = np.array([rng.choice(60, 3, replace=False) for _ in range(4000)])
    >>> near = nearer.PointOracle(X)(questions)
    >>> triplets = np.where(near[:, None], questions, questions[:, [0, 2, 1]])
    >>> estimate = nearer.estimate_dimension(triplets, random_state=0)
    >>> estimate.dimension, estimate.method, estimate.determined
    (2, 'exact', True)
    """
    rows, n = checks.triplets(getattr(answers, "triplets", answers), n_objects)
    checks.one_of("method", method, ("auto", "exact", "held-out"))
    most = min(checks.whole("max_dimension", max_dimension), n - 1)
    rng = checks.generator(random_state)
    exactly = method != "held-out"
    _, exact, estimate = learn_answers(rows, rows, n, None, most, rng, exactly=exactly)
    if exact is None and method == "exact":
        rule = "not all answers can be satisfied; raise max_dimension or use method='held-out'"
        raise InvalidInput(f"max_dimension={most}: {rule}")
    assert estimate is not None
    return estimate


def learn_answers(
    answers: Trials | NDArray[np.int32],
    rows: NDArray[np.int32],
    n: int,
    d: int | None,
    most: int,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    odds: Floats | None = None,
    exactly: bool = True,
    several_people: bool = False,
    enough: int = SETTLED,
) -> tuple[Belief, tuple[Fit, HeldOut] | None, DimensionEstimate | None]:
    """The posterior of answers, positions that satisfy all of them, and their dimension.

    `rows` are the answers as triplets. If d is None, it is estimated from `enough` of them; if
    `exactly`, positions that satisfy all are sought. The posterior of `several_people` has noise.
    """
    some = np.arange(len(answers))
    if d is None and len(answers) > enough:
        some = np.sort(rng.choice(len(answers), enough, replace=False))
    limit = most if d is None else None
    belief = Belief(n, d, rng, max_components=limit, may_be_exact=not several_people)
    if odds is not None:
        belief.expect(answers.questions if isinstance(answers, Trials) else rows, odds)
    belief.learn(answers[some], None if weights is None else weights[some])
    counts = np.ones(len(rows)) if weights is None else weights
    likely = exactly and belief.error_rate <= NEARLY
    exact = _fit_exactly(belief, rows, counts, rng) if likely else None
    estimate = _find_dimension(belief, most, exact and exact[0]) if d is None else None
    return belief, exact, estimate


def _fit_exactly(
    belief: Belief, rows: NDArray[np.int32], weights: Floats, rng: np.random.Generator
) -> tuple[Fit, HeldOut] | None:
    """Positions near a belief's that satisfy all answers with a weight, and held-out ones, too."""
    at, (n, d) = np.flatnonzero(weights > 0), belief.fit.positions.shape
    rows, weights = rows[at], weights[at]
    fit = fit_positions(rows, n, start=belief.fit.positions, weights=weights)
    if violated(fit.positions, rows).any():
        return None
    held = hold_out_once(rows, weights, n, d, Loss("soe"), rng)
    if held is None:
        return None
    sure = is_exact(int((held.right < 1).sum()), len(held.rows), len(rows) - len(held.rows), n * d)
    return (fit, replace(held, rows=at[held.rows])) if sure else None


def _find_dimension(belief: Belief, most: int, exact: Fit | None) -> DimensionEstimate:
    """The estimate of a belief that chose its dimension."""
    n, held, judge = len(belief.fit.positions), belief.held_out, belief.judge
    positions = (exact or belief.fit).positions
    d = positions.shape[1]
    possible = max(d, min(most, belief.most_possible))
    chances = judge.probabilities(possible, least=1 if exact is None else d)
    low, high = judge.span(chances)
    low, high = min(low, d), max(high, d)
    if held is None or not held.beats_a_coin:
        low, high, possible = 1, most, most
    if high == possible == most:  # more cannot be excluded
        high = n - 1
    evidence = belief.evidence
    for e, row in evidence.items():
        row["probability"] = chances.get(e, 0.0)
    tried = np.array(sorted(judge.scores) or [d])
    scores = np.array([-evidence[e].get("log_likelihood", np.nan) for e in tried.tolist()])
    pieces = [judge.scores.get(e, np.zeros(1)) for e in (d, *tried.tolist())]
    errors = [(x - pieces[0]).std() / np.sqrt(len(x)) for x in pieces[1:]]
    method = "held-out" if exact is None else "exact"
    curve = (tried, scores, np.array(errors))
    return DimensionEstimate(d, method, *curve, low == high, positions, low, high, evidence)
