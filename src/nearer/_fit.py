"""`nearer.fit` finds positions from answers that exist already.

One posterior (`nearer.fitting.belief`) fits them, unless they are exact or another loss is chosen;
covariances then come from a bootstrap, or from other maps that satisfy all answers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb, perm

from nearer import checks
from nearer.checks import amount, as_called
from nearer.dimension import SETTLED, DimensionEstimate, learn_answers
from nearer.embedding import Embedding, HeldOutAccuracy, Phase, warn_of_chance
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import content_suffix
from nearer.fitting import heldout
from nearer.fitting import people as people_model
from nearer.fitting.belief import Belief
from nearer.fitting.draws import bootstrap_covariances, draw_positions
from nearer.fitting.heldout import Calibration, HeldOut, hold_out_once
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.fitting.likelihood import Comparisons, Curve, Noise, PredictedMargins
from nearer.fitting.people import FEWEST_PEOPLE, PeopleFit, Ratings, counted
from nearer.fitting.posterior import Posterior
from nearer.fitting.solver import LOSSES, Device, Fit, Loss, fit_positions, margins, using
from nearer.metrics import measure_agreement, share_interval_over_people
from nearer.questions import MAX_OBJECTS, Floats, Objects, share_interval
from nearer.trials import Report, Trials, Triplets
from nearer.triplets import read_triplets

Method = Literal["auto", "noisy", "soe", "ckl", "gnmds", "ste", "tste"]

MANY = 1 << 22  # answers; more of them are fitted in blocks (`nearer.scale`)
_METHODS = ("auto", "noisy", *sorted(LOSSES.keys() - {"logistic"}))
_DRAWS = 20  # of a bootstrap; the standard error of a standard deviation is then a sixth of it
_MOST_WALKED = 20_000  # answers; drawing maps that satisfy more of them takes longer than the fit


@dataclass(frozen=True)
class Goal:
    """How answers are to be fitted; with `d` None, in as many dimensions as they need."""

    method: str
    d: int | None
    most: int
    max_iter: int
    tol: float
    predictive: bool = False


def fit(
    answers: Any,
    *,
    n_components: int | Literal["auto", "predictive"] = "auto",
    people: ArrayLike | None = None,
    differ: Literal["auto", "weights", "no"] = "auto",
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
    """Find positions, their dimension and their uncertainty from answers.

    Parameters
    ----------
    answers
        `nearer.Trials` of any task; rows (head, near, far), also in blocks; or what
        `nearer.read_triplets` returns or reads: a frame, a file, a folder of Parquet files. More
        than four million are fitted in blocks, without `triplets`; see ``docs/scale.md``.
    n_components
        A number of dimensions; ``"auto"``: as many as the evidence supports; ``"predictive"``: as
        many as predict held-out answers best, which are often more.
    people
        Who gave each answer; None: those in `answers`, if any. None, nan and "" are unknown people.
        People are then the sample, see ``docs/people.md``; without them, answers are independent.
    differ
        Whether people weigh the axes differently: ``"weights"`` fits weights, ``"no"`` does not,
        ``"auto"`` does if held-out answers are predicted better by more than a standard error.
    weights
        How much each answer counts: 2 is the same answer twice, and both are held out together;
        an answer with 0 is ignored. None: those in `answers`, if any.
    odds
        How many times likelier than at random each comparison was to be asked, if a method chose it
        (`Belief.expect`): chosen ones are harder. None: all questions were random.
    method
        ``"noisy"`` expects wrong answers, ``"soe"`` and the losses of `nearer.CKL` and others none.
        ``"auto"`` is ``"soe"`` if all answers, also held-out ones, can be satisfied.
    n_objects
        How many objects there are; object i of the answers is then row i of the positions.
    objects
        ``"auto"``: the objects are the distinct ids in the answers, ascending, stored as `names`.
        ``"numbers"``: object i of the answers is row i, as with `n_objects`.
    max_components
        The most dimensions ``"auto"`` tries.
    bootstrap
        How many samples of the answers the covariances come from; 0: no covariances. None: 20, but
        none for ``"noisy"``, whose posterior has covariances. If up to 20,000 answers are all
        satisfied, other maps that satisfy them are drawn instead.
    max_iter, tol
        Steps of the optimiser in the last fit of a loss, and the gain of a step that ends it.
    device
        ``"cuda"``: fit on a GPU (needs ``nearer[gpu]``). ``"auto"``: if there is one and the
        problem is large enough to gain. ``"cpu"``: never.
    random_state
        Seed or generator.

    Returns
    -------
    Embedding
        If guessing may predict held-out answers as well, there is an `AnswersWarning`. ``details``
        has, among others, the ``"posterior"``, the ``"method"`` used, the dimension's
        ``"estimate"``, whether ``"people_differ"``, the ``"agreement"`` of answers to the same
        question, the ``"calibration"`` of predictions, and the report on a file (``"read"``).

    Examples
    --------
    >>> import nearer, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> questions = np.array([rng.choice(30, 3, replace=False) for _ in range(2000)])
    >>> near = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)(questions)
    >>> answers = np.where(near[:, None], questions, questions[:, [0, 2, 1]])
    >>> embedding = nearer.fit(answers, random_state=0)
    >>> embedding.dimension, embedding.dimension_low, round(embedding.held_out.accuracy, 1)
    (2, 2, 0.9)
    """
    typed = {name: value for name, value in locals().items() if name != "answers"}
    file = repr(os.fspath(answers)) if isinstance(answers, str | os.PathLike) else "answers"
    call = as_called("nearer.fit", file, given=typed, defaults=fit.__kwdefaults__ or {})
    checks.one_of("method", method, _METHODS)
    checks.one_of("differ", differ, ("auto", "weights", "no"))
    if bootstrap is not None and bootstrap != 0:
        rule = "a variance needs two draws; 0: none"  # the most leave a standard error of 0.2 %
        checks.whole("bootstrap", bootstrap, least=2, most=100_000, rule=rule)
    rng = checks.generator(random_state)
    plain = people is None and weights is None and odds is None and not bootstrap
    if plain and _may_be_very_many(answers):
        from nearer.scale.blocks import Stored  # noqa: PLC0415 - seldom
        from nearer.scale.fit_in_blocks import fit_many, in_blocks  # noqa: PLC0415

        answers = in_blocks(answers, n_objects, objects, sampled=n_components == "auto")
        if isinstance(answers, Stored):
            goal = make_goal(answers.n_objects, n_components, method, max_components, max_iter, tol)
            with using(device):
                return warn_of_chance(fit_many(answers, goal, rng, call=call))
    loaded = load_answers(answers, people, weights, n_objects, objects, odds)
    goal = make_goal(loaded.n, n_components, method, max_components, max_iter, tol)
    if loaded.are_choices and (method not in ("auto", "noisy") or bootstrap):
        loaded = loaded.split()  # losses and the bootstrap take triplets only
    with using(device):
        result = _with_people(loaded, _fit_answers(loaded, goal, rng), differ, rng)
        if bootstrap is None:
            many = result.exact and len(loaded.rows) > _MOST_WALKED
            bootstrap = 0 if result.method == "noisy" or many else _DRAWS
        if bootstrap:
            result = _with_covariances(loaded, result, bootstrap, rng)
        return warn_of_chance(_embedding(loaded, result, call))


def make_goal(
    n: int,
    n_components: Any,
    method: str,
    max_components: int = 12,
    max_iter: int = 1000,
    tol: float = 1e-8,
) -> Goal:
    """How `n` objects are to be fitted, with the defaults of `fit`."""
    free = str(n_components) in ("auto", "predictive")
    d = None if free else checks.n_components(n_components, n)
    most = min(checks.n_components(max_components, name="max_components"), n - 1)
    steps = (checks.whole("max_iter", max_iter), checks.positive("tol", tol))
    return Goal(method, d, most, *steps, predictive=str(n_components) == "predictive")


@dataclass(frozen=True)
class _Result:
    """A fit with all estimates that were made on the way."""

    method: str
    posterior: Posterior
    right: Floats  # how much of each answer was predicted by fits without it; nan: not held out
    error_rate: float
    estimate: DimensionEstimate | None = None
    belief: Belief | None = None
    exact: bool = False
    covariances_by: str = "the posterior"
    calibration: Calibration | None = None
    ratings: Ratings | None = None
    people: PeopleFit | None = None
    axis_weights: Floats | None = None


def _fit_answers(loaded: LoadedAnswers, goal: Goal, rng: np.random.Generator) -> _Result:
    method, d = goal.method, goal.d
    if d is not None and method not in ("auto", "noisy"):
        return _fit_loss(loaded, goal, rng)

    def learn(d: int | None, exactly: bool) -> Any:
        known: dict[str, Any] = {"odds": loaded.odds, "weights": loaded.weights}
        known |= {"exactly": exactly, "several_people": loaded.who is not None}
        return learn_answers(loaded.fitted, loaded.rows, loaded.n, d, goal.most, rng, **known)

    belief, exact, estimate = learn(d, method != "noisy" and not loaded.are_choices)
    if method == "auto" and exact is not None:
        result = _plain_result(loaded, "soe", *exact)
        return replace(result, estimate=estimate, belief=belief, exact=True)
    if method not in ("auto", "noisy"):
        result = _fit_loss(loaded, replace(goal, d=estimate.dimension), rng)
        return replace(result, estimate=estimate)
    if goal.predictive and (best := belief.most_predictive(goal.most)) != belief.dimension:
        belief, _, _ = learn(best, False)
    elif d is None and len(loaded.fitted) > SETTLED:  # a part of them gave the dimension
        belief, _, _ = learn(belief.dimension, False)
    belief.conclude(max_iter=goal.max_iter, tol=goal.tol)
    calibration = Calibration.of(belief.held_out, belief.times)
    known = (belief.fit, belief.right, belief.error_rate)
    return _Result("noisy", *known, estimate, belief, calibration=calibration)


def _with_people(
    loaded: LoadedAnswers, result: _Result, differ: str, rng: np.random.Generator
) -> _Result:
    """The same fit with estimates for each person, and the map that allows for them."""
    belief, who = result.belief, loaded.who
    if who is None:
        return result
    named, d = who[0] != "", result.posterior.positions.shape[1]
    if differ == "weights":
        result = replace(result, axis_weights=np.ones((np.count_nonzero(named), d)))
    if belief is None or belief.held_out is None:
        return result
    if result.method != "noisy":
        evidence = (belief.answers, belief.held_out, who[1], loaded.weights)
        ratings = people_model.rate_people(*evidence, loaded.first_chosen)
        return replace(result, ratings=ratings)
    learned = (belief.answers, belief.fit, belief.held_out)
    known: dict[str, Any] = {"weights": loaded.weights, "odds": loaded.odds, "differ": differ}
    known |= {"sides": loaded.first_chosen, "rng": rng}
    known["several"] = np.count_nonzero(named) >= FEWEST_PEOPLE
    people = people_model.learn_people(loaded.fitted, who[1], *learned, **known)
    better: dict[str, Any] = {x: getattr(people, x) for x in ("posterior", "right", "ratings")}
    better["calibration"] = Calibration.of(people.held_out, people.times)
    weights = None if people.weights is None else people.weights[named]
    return replace(result, people=people, axis_weights=weights, **better)


def _fit_loss(loaded: LoadedAnswers, goal: Goal, rng: np.random.Generator) -> _Result:
    d, loss, weights = goal.d or 1, Loss(goal.method), loaded.weights
    how: dict[str, Any] = {"weights": weights, "max_iter": goal.max_iter, "tol": goal.tol}
    result = fit_from_more_dimensions(loaded.rows, loaded.n, d, loss=loss, rng=rng, **how)
    held = hold_out_once(loaded.rows, weights, loaded.n, d, loss, rng)
    return _plain_result(loaded, goal.method, result, held)


def _plain_result(loaded: LoadedAnswers, method: str, result: Fit, held: HeldOut | None) -> _Result:
    """A fit that minimises a loss, with the curve of predictions of held-out answers."""
    n, d = result.positions.shape
    right, curve = np.full(len(loaded.rows), np.nan), Curve()
    if held is not None:
        right[held.rows], curve = held.right, held.curve
    how = (result.loss, result.n_iter, result.converged)
    posterior = Posterior(result.positions, np.zeros((n, d, d)), Noise(), curve, *how)
    wrong = 1 - PredictedMargins(margins(result.positions, loaded.rows)).right
    rate = float(np.average(wrong, weights=loaded.weights))
    return _Result(method, posterior, right, rate)


def _with_covariances(
    loaded: LoadedAnswers, result: _Result, n_draws: int, rng: np.random.Generator
) -> _Result:
    """Covariances from fits to resampled answers, or from other maps that satisfy all answers."""
    positions, noise = result.posterior.positions, result.posterior.noise
    noisy, by = result.method == "noisy", "answers drawn again"

    def refit(weights: Floats, start: Floats) -> Floats:
        how: dict[str, Any] = {"start": start, "weights": weights, "max_iter": 200}
        how["loss"] = noise.loss if noisy else Loss(result.method)
        how["ridge"] = noise.ridge(float(weights.sum())) if noisy else 0.0
        return fit_positions(loaded.rows, loaded.n, **how).positions

    if result.exact:
        rows = loaded.rows[loaded.weights > 0].astype(np.int64)
        away = draw_positions(positions, None, rows, n_draws, rng=rng) - positions
        covariances, by = np.einsum("kni,knj->nij", away, away) / n_draws, "other maps that satisfy"
    else:
        covariances = bootstrap_covariances(
            positions, loaded.rows, refit, weights=loaded.weights, n_draws=n_draws, rng=rng
        )
    posterior = replace(result.posterior, covariances=covariances)
    return replace(result, posterior=posterior, covariances_by=by)


def make_embedding(
    posterior: Posterior,
    estimate: DimensionEstimate | None,
    method: str,
    n_answers: int,
    note: str,
    *,
    details: dict[str, Any],
    **known: Any,
) -> Embedding:
    """An embedding of existing answers, for fits in memory and fits in blocks."""
    d = posterior.positions.shape[1]
    details |= {"method": method, "posterior": posterior, "loss": posterior.loss}
    return Embedding(
        positions=posterior.positions,
        n_comparisons=n_answers,
        n_rounds=0,
        history=(Phase("fit", n_answers, 0, f"{note}, {amount(d, 'dimension')}"),),
        determined=None if estimate is None else estimate.determined,
        dimension_low=d if estimate is None else estimate.dimension_low,
        dimension_high=d if estimate is None else estimate.dimension_high,
        chosen=False,
        details=details | {"estimate": estimate},
        **known,
    )


def _embedding(loaded: LoadedAnswers, result: _Result, call: str) -> Embedding:
    posterior, estimate, belief = result.posterior, result.estimate, result.belief
    m = len(loaded.fitted)
    noisy = belief if result.method == "noisy" else None
    evidence = estimate.evidence if estimate is not None else noisy.evidence if noisy else {}
    known = bool(np.any(posterior.covariances))
    n_answers = len(np.unique(loaded.ids))
    task = loaded.trials.task if n_answers == len(loaded.trials) else None
    people = result.people
    elsewhere = dict.fromkeys(("people", "seconds", "weights", "names"))  # in the embedding
    bare = loaded.trials.with_fields(**elsewhere) if noisy and loaded.are_choices else None
    between = None if people is None else people.between
    more = None if between is None else np.einsum("kni,knj->nij", between, between)
    covariances = posterior.covariances + (0.0 if more is None else more)
    held_out = loaded.accuracy(result.right)
    others = None if people is None else people.new_people
    if result.exact and loaded.who is not None:  # one map satisfies all, so people do not differ
        others = loaded.over_people(result.right)
    if held_out is not None and others is not None and (others[1] > 0).sum() >= FEWEST_PEOPLE:
        share, (low, high) = share_interval_over_people(*others)
        new = HeldOutAccuracy(share, low, high, round(others[1].sum()), chance=loaded.chance)
        held_out = replace(held_out, new_people=new)
    return make_embedding(
        posterior,
        estimate,
        result.method,
        m,
        f"{amount(n_answers, 'answer')}, {result.method}",
        triplets=loaded.rows.astype(np.int64),
        evidence=evidence,
        covariances=covariances if known else None,
        held_out=held_out,
        error_rate=result.error_rate,
        people=loaded.table_of_people(result.right, result.ratings),
        weights=result.axis_weights,
        names=loaded.trials.names,
        details={
            "covariances_by": result.covariances_by if known else None,
            "people_differ": None if people is None else people.gains,
            "curve_of_people": None if people is None else people.curve,
            "between_people": between,
            "checks": None if noisy is None else loaded.check(noisy, people),
            "answered_by": loaded.answered_by,
            "weights": loaded.weights,
            "trials": bare,
            "expected_tau": None if noisy is None else noisy.expected_tau_of(posterior, more),
            "agreement": measure_agreement(loaded.fitted, loaded.trials.people, loaded.weights),
            "calibration": result.calibration,
            "read": loaded.report,
            "task": "several tasks" if task is None else str(task),
            "call": call,
        },
    )


# --- answers in any form -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LoadedAnswers:
    """Answers as fits take them: with weights, and with people if these are known.

    `ids` numbers the answers: triplets of one answer have the same number. `odds` say how much
    likelier than at random each answer's question was.
    """

    trials: Trials
    n: int
    ids: Objects
    odds: Floats | None = None
    report: Report | None = None

    @property
    def weights(self) -> Floats:
        """How much each answer counts."""
        assert self.trials.weights is not None
        return self.trials.weights

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """The triplets of the answers."""
        return self.trials.triplets()[0].astype(np.int32, copy=False)

    @cached_property
    def are_choices(self) -> bool:
        """Whether some answers are more than comparisons, or undecided."""
        return not (self.trials.are_comparisons and bool(self.trials.decided.all()))

    @property
    def fitted(self) -> Trials | NDArray[np.int32]:
        """The answers as a posterior takes them; triplets if all are comparisons, to save time."""
        return self.trials if self.are_choices else self.rows

    def split(self) -> LoadedAnswers:
        """The same answers as triplets; the triplets of a trial share its weight."""
        if not self.are_choices:
            return self
        rows, trial = self.trials.triplets()
        if not len(rows):
            raise InvalidInput("no trial is a triplet; leave method and bootstrap as they are")
        weights = self.weights / np.maximum(np.bincount(trial, minlength=len(self.trials)), 1)
        people, odds = (x if x is None else x[trial] for x in (self.trials.people, self.odds))
        own = {"names": self.trials.names, "people": people, "weights": weights[trial]}
        return replace(self, trials=Trials.from_triplets(rows, **own), odds=odds, ids=trial)

    def _by_trial(self, right: Floats) -> tuple[Objects, Floats, Floats]:
        """The first answer, the weight and the accuracy of each trial that was held out.

        `right` is how much of each answer was predicted, nan if it was not held out.
        """
        held = np.isfinite(right) & (self.weights > 0)
        _, first, which = np.unique(self.ids[held], return_index=True, return_inverse=True)
        weight = np.bincount(which, self.weights[held]).astype(np.float64)
        whole = np.ones(len(weight))  # a trial is predicted if all of its triplets are
        np.minimum.at(whole, which, right[held])
        return np.flatnonzero(held)[first], weight, whole

    @property
    def chance(self) -> float:
        """The share of trials that guessing would predict."""
        if not self.are_choices:  # one of m is m - 1 triplets
            return float(np.mean(1 / (1 + np.unique(self.ids, return_counts=True)[1])))
        shown, wanted = self.trials.n_shown, self.trials.wanted
        return float(np.mean(1 / (perm if self.trials.ranked else comb)(shown, wanted)))

    def accuracy(self, right: Floats) -> HeldOutAccuracy | None:
        """The share of trials that were predicted rightly; None if none was held out."""
        first, weight, right = self._by_trial(right)
        if not len(weight):
            return None
        if self.odds is not None:
            weight = weight / self.odds[first]
        share = float(np.average(right, weights=weight))
        low, high = share_interval(share, float(weight.sum() ** 2 / (weight**2).sum()))
        return HeldOutAccuracy(share, low, high, len(weight), chance=self.chance)

    @cached_property
    def who(self) -> tuple[NDArray[Any], Objects] | None:
        """The people, sorted, and the number of the person of each answer; None: not known."""
        if self.trials.people is None:
            return None
        names, which = np.unique(self.trials.people, return_inverse=True)
        return names, which

    def check(self, belief: Belief, people: PeopleFit | None) -> dict[str, float]:
        """Test whether other distances predict better, and what errors of prediction depend on.

        The result is the p-value of each test that is possible.
        """
        answers, p_values = belief.answers, dict[str, float]()
        if belief.held_out is None or not isinstance(answers, Comparisons):
            return {}
        if np.isfinite(p := heldout.check_distances(answers, belief.held_out)):
            p_values["other distances"] = p
        if people is None or self.who is None:
            return p_values
        order = np.arange(len(self.rows))
        groups: dict[str, Any] = {"person": self.who[1], "object": self.rows[:, 0], "order": order}
        if self.first_chosen is not None:
            groups["side"] = self.first_chosen.astype(np.int64)
        if self.trials.seconds is not None and np.isfinite(self.trials.seconds).all():
            groups["time on task"] = np.argsort(np.argsort(self.trials.seconds, kind="stable"))
        for name in groups.keys() & {"order", "time on task"}:
            groups[name] = 5 * groups[name] // len(order)  # fifths
        return p_values | heldout.check_residuals(people.right, people.log_likelihood, groups)

    @property
    def answered_by(self) -> Objects | None:
        """The row of each triplet's person in the table of people; −1 for an unknown one."""
        if self.who is None:
            return None
        names, which = self.who
        trial = self.trials.triplets()[1]
        return which[trial] - int(names.dtype.kind == "U" and names[0] == "")

    @property
    def first_chosen(self) -> NDArray[np.bool_] | None:
        """Whether each comparison chose the object that was shown first; None: this is unknown."""
        first = self.trials.chosen[:, 0] > 0
        is_known = not self.are_choices and bool(first.any()) and not first.all()
        return first if is_known else None

    def over_people(self, right: Floats) -> tuple[Floats, Floats]:
        """Right predictions and held-out trials of each person who is known."""
        assert self.who is not None
        (names, which), (first, weight, share) = self.who, self._by_trial(right)
        agreed, held = counted(which[first], weight, share, len(names))
        return agreed[names != ""], held[names != ""]

    def table_of_people(self, right: Floats, ratings: Ratings | None) -> Any:
        """A table of the people, see `Embedding.people`; None if people are not known."""
        import pandas as pd  # noqa: PLC0415 - slow to import

        if self.who is None:
            return None
        names, which = self.who
        trial = np.unique(self.ids, return_index=True)[1]
        first, _, share = self._by_trial(right)
        held = np.bincount(which[first], minlength=len(names))
        table = pd.DataFrame({"id": names})
        table["n_trials"] = np.bincount(which[trial], minlength=len(names))
        of_each = np.where(held, held, np.nan)
        table["agreement"] = np.bincount(which[first], share, len(names)) / of_each
        table[["low", "high"]] = [
            share_interval(each, n) if n else (0.0, 1.0)
            for each, n in zip(table["agreement"].tolist(), held.tolist(), strict=True)
        ]
        for name in ("sensitivity", "error", "lapse", "bias"):
            table[name] = np.nan if ratings is None else getattr(ratings, name)
        table["flag"] = ""
        if ratings is not None:
            table.loc[ratings.guessing, "flag"] = "guessing"
            table.loc[ratings.one_side, "flag"] = "one side"
            table.loc[ratings.contrary, "flag"] = "contrary"
        if self.trials.seconds is not None:
            usual = pd.Series(self.trials.seconds).groupby(which).median()
            fast = (usual < 0.3) & (table["flag"] == "")  # a look at three objects takes longer
            table.loc[fast, "flag"] = "too fast"
        return table[table["id"] != ""].reset_index(drop=True)


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
    report = ids = None
    is_frame = hasattr(answers, "columns") and not isinstance(answers, np.ndarray)
    if isinstance(answers, str | os.PathLike) or (
        is_frame and all(isinstance(name, str) for name in answers.columns)
    ):
        name = "the frame" if is_frame else os.fspath(answers)
        answers = read_triplets(answers)
        for assumed in answers.report.assumptions():
            remedy = "to avoid this warning, fit what nearer.read_triplets returns"
            warnings.warn(f"{name}: {assumed} ({remedy})", AnswersWarning, stacklevel=3)
    elif (blocks := blocks_of(answers)) is not None:
        answers = np.concatenate([np.empty((0, 3), dtype=np.int32), *blocks])
    if n_objects is not None:
        checks.whole("n_objects", n_objects, most=MAX_OBJECTS, rule="or leave it out")
    if isinstance(answers, Triplets):
        read, report = answers, answers.report
        answers = read.trials.with_fields(names=read.trials.names or read.labels)
        if people is not None or weights is not None:  # one for each triplet
            also = {"people": read.people, "weights": read.weights, "names": answers.names}
            answers = Trials.from_triplets(read.triplets, **also)
            ids = _two_by_two(answers.questions)
    elif not isinstance(answers, Trials):
        answers = _trials_of(getattr(answers, "triplets", answers), n_objects)
        ids = _two_by_two(answers.questions)
    trials, n = _renumbered(answers, n_objects, objects == "numbers" or n_objects is not None)
    m = len(trials)
    own = trials.weights if weights is None else weights
    trials = trials.with_fields(
        # squares of sums of larger weights would lose the smaller ones to rounding
        weights=checks.weights(own, m, most=1e9),
        people=checks.people(trials.people if people is None else people, m),
    )
    if odds is not None and not trials.are_comparisons:
        raise InvalidInput("odds with trials that are no comparisons: leave them out")
    odds = None if odds is None else checks.odds(odds, m)
    return LoadedAnswers(trials, n, np.arange(m) if ids is None else ids, odds, report)


def _two_by_two(rows: Objects) -> Objects | None:
    """The answer of each triplet, if rows are odd-one-out or most-central choices, two rows each.

    Files of such choices have no other rows, so that all rows are pairs, or none.
    """
    if len(rows) % 2:
        return None
    (h, a, b), (h2, a2, b2) = rows[::2].T, rows[1::2].T
    odd = (h == a2) & (a == h2) & (b == b2)
    central = (h == b2) & (a == a2) & (b == h2)
    return np.arange(len(rows)) // 2 if odd.all() or central.all() else None


def _trials_of(answers: Any, n_objects: int | None) -> Trials:
    """Rows (head, near, far) of numbers or of names, which are put in ascending order."""
    array = checks.as_array(answers)
    values = array if array.ndim == 2 else answers
    names = None
    if isinstance(values, np.ndarray) and values.dtype.kind in "USO" and n_objects is None:
        try:
            distinct, numbers = np.unique(values, return_inverse=True)
        except TypeError as error:
            rule = "make all of them texts or numbers"
            raise InvalidInput(f"triplets of names of different kinds ({error}): {rule}") from error
        names, values = tuple(distinct.tolist()), numbers.reshape(values.shape)
        checks.names("names", names)
    return Trials.from_triplets(checks.triplets(values, n_objects)[0], names=names)


def _renumbered(answers: Trials, n_objects: int | None, keep: bool) -> tuple[Trials, int]:
    """Trials about the objects that occur, unless `keep`, and the number of objects."""
    if not answers.decided.any():
        rule = "all are undecided; at least one choice is needed"
        raise InvalidInput(f"{amount(len(answers), 'trial')}: {rule}")
    n = answers.n_objects if n_objects is None else n_objects
    asked = answers.questions
    if asked.max() >= n:
        rule = f"objects are from 0 to {n - 1} (n_objects={n}); raise n_objects"
        raise InvalidInput(f"object {asked.max()} of the trials: {rule}")
    if keep:
        return answers, n
    seen = np.unique(asked)
    seen = seen[seen >= 0]
    if len(seen) == n:
        return answers, n
    result = answers.renumbered(seen)
    return result.with_fields(names=result.names or tuple(seen.tolist())), len(seen)


def _may_be_very_many(answers: Any) -> bool:
    """Whether answers are in a form that can be read in blocks."""
    if isinstance(answers, str | os.PathLike):
        return content_suffix(answers) in (".npy", ".parquet") or Path(answers).is_dir()
    if isinstance(answers, np.ndarray):
        return len(np.atleast_1d(answers)) > MANY
    return blocks_of(answers) is not None


def blocks_of(answers: Any) -> Iterator[Any] | None:
    """The blocks of an iterator, or of a list of arrays; None for all other forms."""
    if isinstance(answers, list | tuple):
        are = bool(answers) and all(getattr(block, "ndim", 0) == 2 for block in answers)
    else:  # tables, trials and triplets have a length; iterators of blocks have none
        are = isinstance(answers, Iterable) and not isinstance(answers, Sized)
    return _arrays(answers) if are else None


def _arrays(blocks: Iterable[Any]) -> Iterator[NDArray[Any]]:
    """Each block as an array of three columns, an empty one too, so that they can be counted."""
    for number, block in enumerate(blocks):
        rows = checks.rows_of_three(f"block {number}", block, "(head, near, far)", one=True)
        yield rows if len(rows) else np.empty((0, 3), dtype=np.int64)
