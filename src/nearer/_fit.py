"""`nearer.fit` finds positions from answers that are there already.

Answers in any form are loaded as `Trials`, or as triplets where all are comparisons. One posterior
of the answers (`nearer.fitting.belief`) gives positions, their dimension and covariances, how
reliable each person is, and how well held-out answers are predicted. Exact answers are satisfied
instead (`nearer.fitting.starts`), and other losses can be chosen; covariances then come from a
bootstrap, or from other maps that satisfy all answers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer._dimension import (
    SETTLED,
    DimensionEstimate,
    ExactFit,
    find_dimension,
    fit_exactly,
)
from nearer.agreement import Calibration, calibrated, measure_agreement
from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import content_suffix
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
from nearer.metrics import share_interval
from nearer.questions import MAX_OBJECTS, Objects
from nearer.text import amount, as_called
from nearer.trials import Trials
from nearer.triplets import Report, Triplets, read_triplets

__all__ = ["MANY", "Goal", "LoadedAnswers", "blocks_of", "fit", "load_answers"]

Method = Literal["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"]

MANY = 1 << 22  # answers; more of them are fitted in blocks (`nearer.scale`)
_METHODS = ("auto", "noisy", *sorted(LOSSES.keys() - {"logistic"}))
_DRAWS = 20  # of a bootstrap; the standard error of a spread is then a sixth of it
_MOST_DRAWS = 100_000  # with a standard error of 0.2 %; each takes as long as a fit
_MOST_WALKED = (
    20_000  # answers; with more, drawing maps that satisfy them takes longer than the fit
)
_HEAVIEST = 1e9  # a weight counts answers; squares of far greater sums drown in rounding
_PERSON = [
    ("n_trials", np.int64),
    ("agreement", np.float64),
    ("low", np.float64),
    ("high", np.float64),
    ("reliability", np.float64),
    ("flag", "U8"),
]


@dataclass(frozen=True)
class Goal:
    """How answers are to be fitted; `d` None: in as many dimensions as they need."""

    method: str
    d: int | None
    most: int
    max_iter: int
    tol: float


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
        Who gave each answer; None: as the answers say. None, nan and "" are unknown people.
    weights
        How much each answer counts: 2 is the same answer loaded twice, held out together; 0 is no
        answer. None: as the answers say.
    odds
        How many times likelier than at random each answer's question was to be asked, where a
        method chose it: see `Belief.expect`. Chosen questions are harder than others, and what is
        held out of them is weighed by that. Of comparisons alone. None: all questions were random.
    method
        ``"noisy"`` expects wrong answers. ``"soe"`` expects none, as do the losses ``"ckl"``,
        ``"gnmds"``, ``"ste"`` and ``"tste"``, see `nearer.SOE`. ``"auto"`` is ``"soe"`` where all
        answers can be satisfied, those held out included, else ``"noisy"``.
    n_objects
        How many objects there are; object i of the answers is then row i of the positions.
    objects
        ``"auto"``: the objects are the distinct ids in the answers, ascending, kept as `names`.
        ``"numbers"``: object i of the answers is row i, as with `n_objects`.
    max_components
        The most dimensions ``"auto"`` tries.
    bootstrap
        How often answers are drawn again for the covariances; 0 leaves them out. None: 20 times,
        but not for ``"noisy"``, whose posterior has covariances. Where all answers are satisfied,
        the same positions satisfy every resample; other maps that satisfy all answers are drawn
        instead, by default only with 20,000 answers or fewer.
    max_iter, tol
        Steps of the optimiser in the last fit, and the gain of a step that ends it; not where all
        answers are satisfied, since that search has its own steps.
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
    if bootstrap is not None and bootstrap != 0:
        rule = "a spread needs two draws; 0: none"
        checks.whole("bootstrap", bootstrap, least=2, most=_MOST_DRAWS, rule=rule)
    rng = checks.generator(random_state)
    plain = people is None and weights is None and odds is None and not bootstrap
    if plain and _may_be_very_many(answers):
        from nearer.scale.blocks import Stored  # noqa: PLC0415 - seldom
        from nearer.scale.fit_in_blocks import fit_many, in_blocks  # noqa: PLC0415

        answers = in_blocks(answers, n_objects, objects, sampled=n_components == "auto")
        if isinstance(answers, Stored):
            goal = _goal(answers.n_objects, n_components, method, max_components, max_iter, tol)
            with using(device):
                return _warn_of_chance(fit_many(answers, goal, rng, call=call))
    loaded = load_answers(answers, people, weights, n_objects, objects, odds)
    goal = _goal(loaded.n, n_components, method, max_components, max_iter, tol)
    if loaded.are_choices and (method not in ("auto", "noisy") or bootstrap):
        loaded = loaded.split()  # the losses, and draws of answers, know triplets only
    with using(device):
        found = _fit_answers(loaded, goal, rng)
        if draws := _default_draws(loaded, found) if bootstrap is None else bootstrap:
            again = _spread_of_exact_maps if found.exact else _spread_by_bootstrap
            found = again(loaded, found, draws, rng)
        return _warn_of_chance(_embedding(loaded, found, call))


def _warn_of_chance(found: Embedding) -> Embedding:
    """The embedding, with a warning where guessing would predict answers as well."""
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


def _default_draws(loaded: LoadedAnswers, found: _Result) -> int:
    if found.method == "noisy":
        return 0
    return 0 if found.exact and len(loaded.rows) > _MOST_WALKED else _DRAWS


def _goal(
    n: int, n_components: Any, method: str, max_components: int, max_iter: int, tol: float
) -> Goal:
    d = None if n_components == "auto" else checks.n_components(n_components, n)
    most = min(checks.n_components(max_components, name="max_components"), n - 1)
    return Goal(method, d, most, checks.whole("max_iter", max_iter), checks.positive("tol", tol))


@dataclass(frozen=True)
class _Result:
    """A fit with all that was learned in finding it."""

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

    def spread(self, covariances: Floats, by: str) -> _Result:
        """The same, with covariances found in another way."""
        return replace(
            self, posterior=replace(self.posterior, covariances=covariances), spread_by=by
        )


def _fit_answers(loaded: LoadedAnswers, goal: Goal, rng: np.random.Generator) -> _Result:
    method, d = goal.method, goal.d
    if d is not None and method not in ("auto", "noisy"):
        return _fit_loss(loaded, goal, rng)
    belief, some = _learn(loaded, goal, rng)
    exact = None
    if method != "noisy" and not loaded.are_choices:
        exact = fit_exactly(belief, loaded.rows, loaded.weights, rng)
    estimate = find_dimension(belief, goal.most, exact) if d is None else None
    if method == "auto" and exact is not None:
        return _exact_result(loaded, exact, estimate, belief.reliability)
    if method not in ("auto", "noisy"):
        assert estimate is not None
        found = _fit_loss(loaded, replace(goal, d=estimate.dimension), rng)
        return replace(found, estimate=estimate)
    if some < len(loaded.answers):  # those settled the dimension; all of them are fitted
        belief, _ = _learn(loaded, replace(goal, d=belief.dimension), rng)
    evidence = belief.evidence if estimate is None else estimate.evidence
    belief.conclude(max_iter=goal.max_iter, tol=goal.tol)
    return _Result(
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


def _learn(loaded: LoadedAnswers, goal: Goal, rng: np.random.Generator) -> tuple[Belief, int]:
    """The posterior of the answers, and of how many: enough to settle the dimension."""
    some = np.arange(len(loaded.answers))
    if goal.d is None and len(some) > SETTLED:
        some = np.sort(rng.choice(len(some), SETTLED, replace=False))
    belief = Belief(loaded.n, goal.d, rng, max_components=goal.most if not goal.d else None)
    if loaded.odds is not None:
        asked = loaded.answers.questions if isinstance(loaded.answers, Trials) else loaded.rows
        belief.expect(asked, loaded.odds)
    people = None if loaded.people is None else loaded.people[some]
    belief.learn(loaded.answers[some], people, loaded.weights[some])
    return belief, len(some)


def _exact_result(
    loaded: LoadedAnswers,
    exact: ExactFit,
    estimate: DimensionEstimate | None,
    reliability: Reliability | None,
) -> _Result:
    right = np.full(len(loaded.rows), np.nan)
    right[exact.held_out.rows] = exact.held_out.right
    found = _plain_result(loaded, "soe", exact.fit, right, exact.held_out.curve)
    return replace(found, estimate=estimate, reliability=reliability, exact=True)


def _fit_loss(loaded: LoadedAnswers, goal: Goal, rng: np.random.Generator) -> _Result:
    method, d, loss = goal.method, goal.d or 1, Loss(goal.method)
    found = fit_from_above(
        loaded.rows,
        loaded.n,
        d,
        loss=loss,
        weights=loaded.weights,
        max_iter=goal.max_iter,
        tol=goal.tol,
        rng=rng,
    )
    held = hold_out_once(loaded.rows, loaded.weights, loaded.n, d, loss, rng)
    right = np.full(len(loaded.rows), np.nan)
    if held is not None:
        right[held.rows] = held.right
    return _plain_result(loaded, method, found, right, Curve() if held is None else held.curve)


def _plain_result(
    loaded: LoadedAnswers, method: str, found: Fit, right: Floats, curve: Curve
) -> _Result:
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
    wrong = 1 - MarginForecast(margins(found.positions, loaded.rows)).right
    rate = float(np.average(wrong, weights=loaded.weights))
    return _Result(method, posterior, right, rate, weights=loaded.weights)


def _spread_by_bootstrap(
    loaded: LoadedAnswers, found: _Result, n_draws: int, rng: np.random.Generator
) -> _Result:
    """Covariances from fits to resampled answers, with the weights of the fit."""
    noise, noisy = found.posterior.noise, found.method == "noisy"
    loss = noise.loss if noisy else Loss(found.method)

    def refit(weights: Floats, start: Floats) -> Floats:
        ridge = noise.ridge(float(weights.sum())) if noisy else 0.0
        again = fit_positions(
            loaded.rows,
            loaded.n,
            start=start,
            weights=weights,
            loss=loss,
            ridge=ridge,
            max_iter=200,
        )
        return again.positions

    positions, weights = found.posterior.positions, found.weights
    covariances = bootstrap_covariances(
        positions, loaded.rows, refit, weights=weights, n_draws=n_draws, rng=rng
    )
    return found.spread(covariances, "answers drawn again")


def _spread_of_exact_maps(
    loaded: LoadedAnswers, found: _Result, n_draws: int, rng: np.random.Generator
) -> _Result:
    """Covariances from other maps that satisfy all answers."""
    counted = loaded.rows[loaded.weights > 0].astype(np.int64)
    positions = found.posterior.positions
    away = draw_positions(positions, None, counted, n_draws, rng=rng) - positions
    covariances = np.einsum("kni,knj->nij", away, away) / n_draws
    return found.spread(covariances, "other maps that obey")


def _embedding(loaded: LoadedAnswers, found: _Result, call: str) -> Embedding:
    posterior, estimate = found.posterior, found.estimate
    d = posterior.positions.shape[1]
    evidence = found.evidence or (estimate.evidence if estimate is not None else {})
    known = bool(np.any(posterior.covariances))
    trials = np.unique(loaded.trials)
    note = f"{amount(len(trials), 'answer')}, {found.method}, {amount(d, 'dimension')}"
    return Embedding(
        positions=posterior.positions,
        triplets=loaded.rows.astype(np.int64),
        n_comparisons=len(loaded.answers),
        n_rounds=0,
        history=(Phase("fit", len(loaded.answers), 0, note),),
        evidence=evidence,
        determined=None if estimate is None else estimate.determined,
        dimension_low=d if estimate is None else estimate.dimension_low,
        dimension_high=d if estimate is None else estimate.dimension_high,
        covariances=posterior.covariances if known else None,
        held_out=loaded.accuracy(found.right),
        error_rate=found.error_rate,
        people=loaded.rate_people(found.right, found.reliability),
        names=loaded.names,
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
            "agreement": measure_agreement(loaded.answers, loaded.people, loaded.weights),
            "calibration": found.calibration,
            "read": loaded.report,
            "call": call,
        },
    )


# --- answers in any form -------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadedAnswers:
    """Answers as fits take them.

    Attributes
    ----------
    answers
        What is fitted: `Trials`, or ``(m, 3)`` rows where all answers are comparisons.
    rows
        The triplets of the answers.
    n, names
        How many objects there are, and what they are called; None: by their numbers.
    weights, people
        How much each answer counts, and who gave it.
    trials
        One number an answer, the same for triplets that are one answer.
    odds
        How much likelier than at random each answer's question was.
    report
        What was read and left out, where there was a file.
    """

    answers: NDArray[np.int32] | Trials
    rows: NDArray[np.int32]
    n: int
    names: tuple[Any, ...] | None
    weights: Floats
    people: NDArray[Any] | None
    trials: Objects
    odds: Floats | None = None
    report: Report | None = None

    @property
    def are_choices(self) -> bool:
        """Whether the fit takes trials: some are more than comparisons, or undecided."""
        return isinstance(self.answers, Trials)

    @property
    def are_comparisons(self) -> bool:
        """Whether all answers are comparisons, some possibly undecided."""
        return not isinstance(self.answers, Trials) or self.answers.are_comparisons

    def split(self) -> LoadedAnswers:
        """The same as triplets, each trial's sharing its weight."""
        if not isinstance(self.answers, Trials):
            return self
        rows, trial = self.answers.triplets()
        if not len(rows):
            raise InvalidInput(
                "none of these trials is a triplet; leave method and bootstrap as they are"
            )
        weights = (self.weights / np.maximum(np.bincount(trial, minlength=len(self.weights)), 1))[
            trial
        ]
        people = None if self.people is None else self.people[trial]
        odds = None if self.odds is None else self.odds[trial]
        own = rows.astype(np.int32)
        split = replace(self, rows=own, answers=own, odds=odds)
        return replace(split, weights=weights, people=people, trials=trial)

    def _by_trial(self, right: Floats) -> tuple[Objects, Floats, Floats]:
        """First answer, weight and share predicted rightly of each trial that was held out.

        `right` says how far each answer was predicted, nan where it was not.
        """
        held = np.isfinite(right) & (self.weights > 0)
        _, first, which = np.unique(self.trials[held], return_index=True, return_inverse=True)
        weight = np.bincount(which, self.weights[held]).astype(np.float64)
        share = np.bincount(which, self.weights[held] * right[held])
        return np.flatnonzero(held)[first], weight, share / weight

    def accuracy(self, right: Floats) -> HeldOutAccuracy | None:
        """How many trials were predicted rightly; None where none was."""
        first, weight, right = self._by_trial(right)
        if not len(weight):
            return None
        if self.odds is not None:
            weight = weight / self.odds[first]
        share = float(np.average(right, weights=weight))
        low, high = share_interval(share, float(weight.sum() ** 2 / (weight**2).sum()))
        return HeldOutAccuracy(share, low, high, len(weight))

    def rate_people(
        self, right: Floats, reliability: Reliability | None
    ) -> NDArray[np.void] | None:
        """A table of the people, see `Embedding.people`; None where nobody says who answered."""
        if self.people is None:
            return None
        names, which = np.unique(self.people, return_inverse=True)
        nobody = int(names.dtype.kind == "U" and names[0] == "")  # sorts first, and is not rated
        table = np.zeros(len(names), dtype=[("id", names.dtype), *_PERSON])
        table["id"] = names
        trial = np.unique(self.trials, return_index=True)[1]
        table["n_trials"] = np.bincount(which[trial], minlength=len(names))
        first, _, share = self._by_trial(right)
        held = np.bincount(which[first], minlength=len(names))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nobody's answers held out: nan
            share = np.bincount(which[first], share, len(names)) / held
        table["agreement"] = share
        for k in np.flatnonzero(held == 0):
            table["low"][k], table["high"][k] = 0.0, 1.0
        for k in np.flatnonzero(held):
            table["low"][k], table["high"][k] = share_interval(float(share[k]), float(held[k]))
        table["reliability"] = np.nan
        if reliability is not None:
            table["reliability"][nobody:] = reliability.reliability
            table["flag"][np.isin(names, reliability.contrary)] = "contrary"
            table["flag"][np.isin(names, reliability.guessing)] = "guessing"
        return table[nobody:]


def load_answers(
    answers: Any,
    people: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    n_objects: int | None = None,
    objects: str = "auto",
    odds: ArrayLike | None = None,
) -> LoadedAnswers:
    """Answers in any form as fits take them; see `nearer.fit` for the parameters.

    *Objects* are the distinct ids in the answers, ascending; an id in no answer is no object.
    """
    checks.one_of("objects", objects, ("auto", "numbers"))
    report, names = None, None
    is_frame = hasattr(answers, "columns") and not isinstance(answers, np.ndarray)
    if isinstance(answers, str | os.PathLike) or (
        is_frame and all(isinstance(name, str) for name in answers.columns)
    ):
        answers = _read(answers)
    elif (blocks := blocks_of(answers)) is not None:
        answers = _joined(blocks, n_objects)
    if isinstance(answers, Triplets):
        report, names = answers.report, answers.trials.names or answers.labels
        if people is None and weights is None:
            answers = replace(answers.trials, names=names)
        else:  # one for each triplet
            people = answers.people if people is None else people
            weights = answers.weights if weights is None else weights
    if n_objects is not None:
        checks.whole("n_objects", n_objects, most=MAX_OBJECTS, rule="or leave it out")
    keep = objects == "numbers" or n_objects is not None
    if isinstance(answers, Trials):
        people = answers.people if people is None else people
        weights = answers.weights if weights is None else weights
        found = _of_trials(answers, n_objects, keep)
    else:
        found = _of_rows(getattr(answers, "triplets", answers), names, n_objects, keep)
    if odds is not None and found.are_choices and not found.are_comparisons:
        raise InvalidInput(
            "odds with trials that are no comparisons: they are known of those; leave them out"
        )
    m = len(found.answers)
    return replace(
        found,
        weights=checks.weights(weights, m, _HEAVIEST),
        people=checks.people(people, m),
        odds=None if odds is None else checks.odds(odds, m),
        report=report,
    )


def _of_rows(
    answers: Any, names: Sequence[Any] | None, n_objects: int | None, keep: bool
) -> LoadedAnswers:
    """Rows (head, near, far) of numbers or of names."""
    values = np.asarray(answers) if np.ndim(answers) == 2 else answers
    if isinstance(values, np.ndarray) and values.dtype.kind in "USO" and n_objects is None:
        names, values = _number_names(values)
    count = n_objects if n_objects is not None or names is None else len(names)
    rows, n = checks.triplets(values, count)
    if not keep:
        dense = n <= rows.size  # then counting is quicker than sorting
        seen = np.flatnonzero(np.bincount(rows.ravel())) if dense else np.unique(rows)
        if len(seen) < n:
            names = tuple(i if names is None else names[i] for i in seen.tolist())
            rows = np.searchsorted(seen, rows).astype(np.int32)
            n = len(seen)
    called = None if names is None else tuple(names)
    return LoadedAnswers(rows, rows, n, called, np.empty(0), None, _trial_of_each(rows))


def _number_names(rows: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[Any]]:
    """The distinct names, ascending, and the rows with each name's place among them."""
    try:
        names, numbers = np.unique(rows, return_inverse=True)
    except TypeError as error:
        raise InvalidInput(
            f"triplets of names of different kinds ({error}): make all of them texts or numbers"
        ) from error
    return tuple(names.tolist()), numbers.reshape(rows.shape)


def _of_trials(answers: Trials, n_objects: int | None, keep: bool) -> LoadedAnswers:
    """Trials of any task; where all are decided comparisons, as triplets, which fit faster."""
    if not len(answers):
        raise InvalidInput("there are no trials: at least one is needed")
    decided = answers.decided
    if not decided.any():
        raise InvalidInput(
            f"{amount(len(answers), 'trial')}, and nobody could decide: that says nothing of where "
            "objects are; at least one choice is needed"
        )
    n = answers.n_objects if n_objects is None else n_objects
    names, questions = answers.names, answers.questions
    seen = np.unique(questions[questions >= 0])
    if seen[-1] >= n:
        raise InvalidInput(f"object {seen[-1]} of the trials: objects are from 0 to {n - 1}")
    if not keep and len(seen) < n:
        names = tuple(seen.tolist() if names is None else (names[i] for i in seen))
        answers, n = answers.renumbered(seen), len(seen)
    rows = answers.triplets()[0].astype(np.int32)
    fitted = rows if answers.are_comparisons and decided.all() else answers
    return LoadedAnswers(fitted, rows, n, names, np.empty(0), None, np.arange(len(answers)))


def _may_be_very_many(answers: Any) -> bool:
    """Whether answers are in a form that can be read in blocks."""
    if isinstance(answers, str | os.PathLike):
        return content_suffix(answers) in (".npy", ".parquet") or Path(answers).is_dir()
    if isinstance(answers, np.ndarray):
        return len(np.atleast_1d(answers)) > MANY
    return blocks_of(answers) is not None


def blocks_of(answers: Any) -> Iterator[Any] | None:
    """The blocks of something that has some and nothing else: an iterator, a list of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0, 1, 2], [2, 1, 0]])
    >>> blocks_of(rows), len(list(blocks_of([rows, rows])))
    (None, 2)
    """
    if isinstance(answers, list | tuple):
        are = bool(answers) and all(getattr(block, "ndim", 0) == 2 for block in answers)
    else:  # tables, trials and triplets can be counted; what only yields cannot
        are = isinstance(answers, Iterable) and not isinstance(answers, Sized)
    return _arrays(answers) if are else None


def _arrays(blocks: Iterable[Any]) -> Iterator[NDArray[Any]]:
    """Each block as an array of three columns, an empty one too, so that they can be counted."""
    for number, block in enumerate(blocks):
        try:
            rows = np.asarray(block)
        except ValueError:  # rows of several lengths
            rows = np.empty(0, dtype=object)
        if rows.shape == (0,) and rows.dtype.kind != "O":
            rows = np.empty((0, 3), dtype=np.int64)
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise InvalidInput(
                f"block {number} is {repr(block)[:60]}: must be (m, 3) rows (head, near, far)"
            )
        yield rows


def _joined(blocks: Iterator[Any], n_objects: int | None) -> NDArray[np.int32]:
    """Blocks of ``(m, 3)`` rows, one after the other, without a copy in a wider type."""
    parts = []
    for number, block in enumerate(blocks):
        try:
            parts += [checks.triplets(block, n_objects)[0]] if len(block) else []
        except InvalidInput as error:
            raise InvalidInput(f"block {number}: {error}") from None
    if not parts:
        raise InvalidInput(
            "an iterator without a block of rows: must yield (m, 3) rows, at least once"
        )
    return np.concatenate(parts)


def _read(source: Any) -> Triplets:
    """A file or a frame, with a warning about what the user should check."""
    read = read_triplets(source)
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else "the frame"
    for assumed in read.report.assumptions():
        what = f"{name}: {assumed} (fit what nearer.read_triplets returns, and this is not said)"
        warnings.warn(what, AnswersWarning, stacklevel=4)
    return read


def _trial_of_each(rows: NDArray[np.int32]) -> Objects:
    """Which rows are one answer: the two triplets of an odd-one-out or a most-central choice.

    Files of such choices hold nothing else, so it is all rows, two by two, or none.
    """
    numbers = np.arange(len(rows))
    if len(rows) % 2:
        return numbers
    (h, a, b), (h2, a2, b2) = rows[::2].T, rows[1::2].T
    odd = (h == a2) & (a == h2) & (b == b2)
    central = (h == b2) & (a == a2) & (b == h2)
    return numbers // 2 if odd.all() or central.all() else numbers
