"""The second door: `nearer.fit` finds positions from answers that are there already.

One belief about the answers (`nearer.fitting.belief`) gives positions, their dimension, how sure
they are, how far each person can be believed, and how well answers that it had not seen were
predicted. Answers without errors are obeyed instead (`nearer.fitting.starts`), and the other losses
are there for those who want them; how sure positions are is then found by drawing answers again.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer._dimension import (
    SETTLED,
    DimensionEstimate,
    ExactFit,
    find_dimension,
    fit_exactly,
)
from nearer._given import Given, gather
from nearer._many import Goal, fit_many, in_blocks
from nearer.embedding import Embedding, Phase
from nearer.errors import AnswersWarning
from nearer.fitting.belief import Belief
from nearer.fitting.bootstrap import bootstrap_covariances
from nearer.fitting.choices import Choices
from nearer.fitting.device import Device, using
from nearer.fitting.drawing import draw_positions
from nearer.fitting.heldout import hold_out_once
from nearer.fitting.losses import LOSSES, Floats, Loss
from nearer.fitting.posterior import Curve, MarginForecast, Noise, Posterior
from nearer.fitting.reliability import Reliability
from nearer.fitting.solver import Fit, fit_positions, margins
from nearer.fitting.starts import fit_from_above
from nearer.triplets.stored import Stored
from nearer.trust import Calibration, calibrated
from nearer.wording import amount, as_called

__all__ = ["fit"]

Method = Literal["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"]

_METHODS = ("auto", "noisy", *sorted(LOSSES.keys() - {"logistic"}))
_DRAWS = 20  # of a bootstrap; the standard error of a spread is then a sixth of it
_MOST_DRAWS = 100_000  # with a standard error of 0.2 %; each takes as long as a fit
_WANDERED = 20_000  # answers; a walk among maps that obey more takes longer than the fit


def fit(
    answers: Any,
    *,
    n_components: int | Literal["auto"] = "auto",
    people: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    odds: ArrayLike | None = None,
    method: Method = "auto",
    n_objects: int | None = None,
    objects: Literal["auto", "numbers"] = "auto",
    max_components: int = 12,
    bootstrap: int | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    device: Device = "auto",
    random_state: int | np.random.Generator | None = None,
) -> Embedding:
    """Find positions, their dimension and how sure they are from answers that are given.

    Parameters
    ----------
    answers
        `nearer.Trials` of any task, what `nearer.read_triplets` returns, an ``(m, 3)`` array of
        rows (head, near, far), a pandas or polars frame, or the path of a file; the last two in
        any form `nearer.read_triplets` reads. Also an iterable of ``(m, 3)`` blocks, or a folder of
        Parquet files. More than four million are fitted in blocks, from a temporary file, and the
        result has no `triplets`; see ``docs/scale.md``.
    n_components
        A number of dimensions, or ``"auto"``: as many as the answers need.
    people
        Who gave each answer; None: as the answers say. Somebody missing (None, nan, "") is nobody.
    weights
        How much each answer counts: 2 is the same answer given twice, held out together; 0 is no
        answer. None: as the answers say.
    odds
        How many times likelier than at random each answer's question was to be asked, where a
        method chose it: see `Belief.expect`. Chosen questions are harder than others, and what is
        held out of them is weighed by that. Of comparisons alone. None: all questions were random.
    method
        ``"noisy"`` expects wrong answers. ``"soe"`` obeys all, as do the other losses ``"ckl"``,
        ``"gnmds"``, ``"ste"`` and ``"tste"``, see `nearer.SOE`. ``"auto"`` is ``"soe"`` where all
        answers can be obeyed, those held out included, else ``"noisy"``.
    n_objects
        How many objects there are; object i of the answers is then row i of the positions.
    objects
        ``"auto"``: the objects are the distinct ids in the answers, ascending, kept as `names`.
        ``"numbers"``: object i of the answers is row i, as with `n_objects`.
    max_components
        The most dimensions ``"auto"`` tries.
    bootstrap
        How often answers are drawn again for the covariances; 0 leaves them out. None: 20 times,
        but not for ``"noisy"``, which knows how sure it is. Where all answers are obeyed, the
        same positions obey them drawn again; so many other maps that obey them all, too, are
        drawn instead, and by default only with 20,000 answers or fewer.
    max_iter, tol
        Steps of the optimiser in the last fit, and the gain of a step that ends it; not where all
        answers are obeyed, which is looked for with steps of its own.
    device
        ``"cuda"``: fit on a GPU (needs ``nearer[gpu]``). ``"auto"``: where there is one and the
        problem is large enough to gain. ``"cpu"``: never.
    random_state
        Seed or generator.

    Returns
    -------
    Embedding
        Its questions were given, not chosen. Where guessing may predict answers held out as well,
        `AnswersWarning` says so. ``details`` holds the ``"posterior"``, the
        ``"method"`` used, the ``"loss"``, the `Reliability` of people, the dimension
        ``"estimate"``, the ``"weights"`` that the fit used, and, of ``"noisy"``, the Kendall's τ
        that is expected of the positions, ``"expected_tau"``; the ``"agreement"`` of answers to the
        same question, the ``"calibration"`` of predictions, what was ``"read"`` and left out where
        there was a file, and the ``"call"``.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> questions = np.array([rng.choice(30, 3, replace=False) for _ in range(2000)])
    >>> near = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)(questions)
    >>> answers = np.where(near[:, None], questions, questions[:, [0, 2, 1]])
    >>> found = nearer.fit(answers, random_state=0)
    >>> found.dimension, found.dimension_low, round(found.held_out.accuracy, 1)
    (2, 2, 0.9)
    """
    typed = {name: value for name, value in locals().items() if name != "answers"}
    file = repr(os.fspath(answers)) if isinstance(answers, str | os.PathLike) else "answers"
    call = as_called("nearer.fit", file, given=typed, defaults=fit.__kwdefaults__ or {})
    checks.one_of("method", method, _METHODS)
    checks.one_of("objects", objects, ("auto", "numbers"))
    if bootstrap is not None and bootstrap != 0:
        rule = "a spread needs two draws; 0: none"
        checks.whole("bootstrap", bootstrap, least=2, most=_MOST_DRAWS, rule=rule)
    rng = checks.generator(random_state)
    if people is None and weights is None and odds is None and not bootstrap:
        answers = in_blocks(answers, n_objects, objects, sampled=n_components == "auto")
    if isinstance(answers, Stored):
        goal = _goal(answers.n_objects, n_components, method, max_components, max_iter, tol)
        with using(device):
            return _doubted(fit_many(answers, goal, rng, call=call))
    given = gather(answers, people, weights, n_objects, objects, odds)
    goal = _goal(given.n, n_components, method, max_components, max_iter, tol)
    if given.are_choices and (method not in ("auto", "noisy") or bootstrap):
        given = given.split()  # the losses, and draws of answers, know triplets only
    with using(device):
        found = _find(given, goal, rng)
        if draws := _default_draws(given, found) if bootstrap is None else bootstrap:
            again = _obeyed_otherwise if found.exact else _drawn_again
            found = again(given, found, draws, rng)
        return _doubted(_embedding(given, found, call))


def _doubted(found: Embedding) -> Embedding:
    """The same, with a warning where the answers seem to be chance."""
    held = found.held_out
    if held is not None and held.is_guessing:
        warnings.warn(
            f"{100 * held.accuracy:.0f} % of {held.n_trials:,} answers held out were predicted "
            f"({100 * held.low:.0f} to {100 * held.high:.0f} at 95 %), no better than by guessing: "
            "the map may be chance alone; collect more answers, or look at how these were read",
            AnswersWarning,
            stacklevel=3,
        )
    return found


def _default_draws(given: Given, found: _Found) -> int:
    if found.method == "noisy":
        return 0
    return 0 if found.exact and len(given.rows) > _WANDERED else _DRAWS


def _goal(
    n: int, n_components: Any, method: str, max_components: int, max_iter: int, tol: float
) -> Goal:
    d = None if n_components == "auto" else checks.n_components(n_components, n)
    most = min(checks.n_components(max_components, name="max_components"), n - 1)
    return Goal(method, d, most, checks.whole("max_iter", max_iter), checks.positive("tol", tol))


@dataclass(frozen=True)
class _Found:
    """A fit with all that was learned on the way."""

    method: str
    posterior: Posterior
    right: Floats  # how far each answer was predicted by fits that have not seen it; nan: by none
    error_rate: float
    estimate: DimensionEstimate | None = None
    evidence: dict[int, Any] | None = None
    reliability: Reliability | None = None
    weights: Floats | None = None  # as the fit used them
    calibration: Calibration | None = None
    exact: bool = False
    spread_by: str = "the posterior"  # what covariances are of
    expected_tau: float | None = None
    choices: Choices | None = None  # the answers, where they are more than comparisons

    def spread(self, covariances: Floats, by: str) -> _Found:
        """The same, with covariances found in another way."""
        return replace(
            self, posterior=replace(self.posterior, covariances=covariances), spread_by=by
        )


def _find(given: Given, goal: Goal, rng: np.random.Generator) -> _Found:
    method, d = goal.method, goal.d
    if d is not None and method not in ("auto", "noisy"):
        return _minimised(given, goal, rng)
    belief, some = _believed(given, goal, rng)
    exact = None
    if method != "noisy" and not given.are_choices:
        exact = fit_exactly(belief, given.rows, given.weights, rng)
    estimate = find_dimension(belief, goal.most, exact) if d is None else None
    if method == "auto" and exact is not None:
        return _obeyed(given, exact, estimate, belief.reliability)
    if method not in ("auto", "noisy"):
        assert estimate is not None
        found = _minimised(given, replace(goal, d=estimate.dimension), rng)
        return replace(found, estimate=estimate)
    if some < len(given.answers):  # those settled the dimension; all of them are fitted
        belief, _ = _believed(given, replace(goal, d=belief.dimension), rng)
    evidence = belief.evidence if estimate is None else estimate.evidence
    belief.conclude(max_iter=goal.max_iter, tol=goal.tol)
    return _Found(
        "noisy",
        belief.fit,
        belief.right,
        belief.error_rate,
        estimate,
        evidence,
        belief.reliability,
        belief.weights,
        calibrated(belief.held_out, belief.times),
        expected_tau=belief.expected_tau,
        choices=belief.choices,
    )


def _believed(given: Given, goal: Goal, rng: np.random.Generator) -> tuple[Belief, int]:
    """What the answers make believe, and from how many: enough to settle the dimension."""
    some = np.arange(len(given.answers))
    if goal.d is None and len(some) > SETTLED:
        some = np.sort(rng.choice(len(some), SETTLED, replace=False))
    belief = Belief(given.n, goal.d, rng, max_components=goal.most if not goal.d else None)
    if given.odds is not None:
        belief.expect(given.asked, given.odds)
    people = None if given.people is None else given.people[some]
    belief.learn(given.answers[some], people, given.weights[some])
    return belief, len(some)


def _obeyed(
    given: Given,
    exact: ExactFit,
    estimate: DimensionEstimate | None,
    reliability: Reliability | None,
) -> _Found:
    right = np.full(len(given.rows), np.nan)
    right[exact.held_out.rows] = exact.held_out.right
    found = _plain(given, "soe", exact.fit, right, exact.held_out.curve)
    return replace(found, estimate=estimate, reliability=reliability, exact=True)


def _minimised(given: Given, goal: Goal, rng: np.random.Generator) -> _Found:
    method, d, loss = goal.method, goal.d or 1, Loss(goal.method)
    found = fit_from_above(
        given.rows,
        given.n,
        d,
        loss=loss,
        weights=given.weights,
        max_iter=goal.max_iter,
        tol=goal.tol,
        rng=rng,
    )
    held = hold_out_once(given.rows, given.weights, given.n, d, loss, rng)
    right = np.full(len(given.rows), np.nan)
    if held is not None:
        right[held.rows] = held.right
    return _plain(given, method, found, right, Curve() if held is None else held.curve)


def _plain(given: Given, method: str, found: Fit, right: Floats, curve: Curve) -> _Found:
    n, d = found.positions.shape
    posterior = Posterior(
        found.positions,
        np.zeros((n, d, d)),
        Noise(),
        curve,
        found.loss,
        found.n_iter,
        found.converged,
    )
    wrong = 1 - MarginForecast(margins(found.positions, given.rows)).right
    rate = float(np.average(wrong, weights=given.weights))
    return _Found(method, posterior, right, rate, weights=given.weights)


def _drawn_again(given: Given, found: _Found, n_draws: int, rng: np.random.Generator) -> _Found:
    """Covariances by fits to answers drawn again, with the weights of the fit."""
    noise, noisy = found.posterior.noise, found.method == "noisy"
    loss = noise.loss if noisy else Loss(found.method)

    def refit(weights: Floats, start: Floats) -> Floats:
        ridge = noise.ridge(float(weights.sum())) if noisy else 0.0
        again = fit_positions(
            given.rows,
            given.n,
            start=start,
            weights=weights,
            loss=loss,
            ridge=ridge,
            max_iter=200,
        )
        return again.positions

    positions, weights = found.posterior.positions, found.weights
    covariances = bootstrap_covariances(
        positions, given.rows, refit, weights=weights, n_draws=n_draws, rng=rng
    )
    return found.spread(covariances, "answers drawn again")


def _obeyed_otherwise(
    given: Given, found: _Found, n_draws: int, rng: np.random.Generator
) -> _Found:
    """Covariances by other maps that obey all answers."""
    counted = given.rows[given.weights > 0].astype(np.int64)
    positions = found.posterior.positions
    away = draw_positions(positions, None, counted, n_draws, rng=rng) - positions
    covariances = np.einsum("kni,knj->nij", away, away) / n_draws
    return found.spread(covariances, "other maps that obey")


def _embedding(given: Given, found: _Found, call: str) -> Embedding:
    posterior, estimate = found.posterior, found.estimate
    d = posterior.positions.shape[1]
    evidence = found.evidence or (estimate.evidence if estimate is not None else {})
    known = bool(np.any(posterior.covariances))
    trials = np.unique(given.trials)
    note = f"{amount(len(trials), 'answer')}, {found.method}, {amount(d, 'dimension')}"
    return Embedding(
        positions=posterior.positions,
        triplets=given.rows.astype(np.int64),
        n_comparisons=len(given.answers),
        n_rounds=0,
        history=(Phase("fit", len(given.answers), 0, note),),
        evidence=evidence,
        determined=None if estimate is None else estimate.determined,
        dimension_low=d if estimate is None else estimate.dimension_low,
        dimension_high=d if estimate is None else estimate.dimension_high,
        covariances=posterior.covariances if known else None,
        held_out=given.accuracy(found.right),
        error_rate=found.error_rate,
        people=given.rated(found.right, found.reliability),
        names=given.names,
        chosen=False,
        details={
            "method": found.method,
            "covariances_by": found.spread_by if known else None,
            "posterior": posterior,
            "loss": posterior.loss,
            "estimate": estimate,
            "reliability": found.reliability,
            "weights": found.weights,
            "choices": found.choices,
            "expected_tau": found.expected_tau,
            "agreement": given.agreement(),
            "calibration": found.calibration,
            "read": given.read,
            "call": call,
        },
    )
