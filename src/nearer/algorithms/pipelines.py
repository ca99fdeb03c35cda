"""The methods by name: the paper's pipelines, random questions, and the adaptive Crowd Kernel.

docs/which-method.md compares them. All but ``paper`` fit from one start (`nearer.fitting.initial`).
The pipelines also rank the object that the search starts from, as in the paper's numbers of
comparisons; without it there may be too few heads to determine a fit. The original crowd kernel
(Tamuz, Liu, Belongie, Shamir, Kalai 2011) fits after one question an object and evaluates all
places and all pairs; samples change the result little and reduce the time from days to minutes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.special import entr

from nearer import checks
from nearer.algorithms.adaptive import adaptive
from nearer.algorithms.basis import Basis, Endpoints, choose_basis
from nearer.algorithms.choose_questions import default_budget
from nearer.asking.protocol import Record, Strategy, recorded, repeatable, together
from nearer.asking.sort import Order, nearest_objects, sort_lists
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.heldout import fit_smallest
from nearer.fitting.initial import fit_from_more_dimensions, fit_onwards
from nearer.fitting.solver import Fit, Loss, fit_positions
from nearer.questions import Floats, Objects, balanced_questions, pack

Seed = int | np.random.Generator | None
Extra = Literal["sort", "select"]

# Samples of the crowd kernel, whose original computes everything; `python -m paper` shows the
# results.
_FIRST = 10  # random questions an object before the first fit; a fit after each further tenth
_PLACES = 60  # where a head might be
_PAIRS = 40  # weighed for a head
_CKL = Loss("ckl")


@repeatable
def basis_embedding(
    n_objects: int,
    *,
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    rank_start: bool = False,
    random_state: Seed = None,
) -> Strategy[Embedding]:
    """The paper's ``Basis``: coordinates on the axes found."""
    basis = yield from choose_basis(
        n_objects,
        random_state=random_state,
        endpoints=endpoints,
        order=order,
        rank_start=rank_start,
    )
    if not basis.axes:
        most = 2 * n_objects * int(np.log2(n_objects))
        rule = f"two rankings of {n_objects} objects take about {most}; raise the budget"
        spent = f"the budget was spent after {basis.n_comparisons} comparisons"
        raise InvalidInput(f"{spent}, before one axis was complete; {rule}")
    history = [_phase("basis", basis, basis.stopped)]
    return _embedding(basis.coordinates(), basis.triplets, history, {}, basis=basis)


@repeatable
def basis_soe(
    n_objects: int,
    *,
    n_components: int | None = None,
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    random_state: Seed = None,
) -> Strategy[Embedding]:
    """Choose a basis, then fit soft ordinal embedding to all its answers.

    Parameters
    ----------
    n_components
        The number of dimensions; None: as many as the answers need.
    n_objects, endpoints, order, random_state
        As for `choose_basis`.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(80, 2, random_state=0))
    >>> nearer.run(basis_soe(80, random_state=0), oracle).dimension
    2
    """
    d, rng = _dimension(n_objects, n_components), checks.generator(random_state)
    basis = yield from choose_basis(
        n_objects, random_state=rng, endpoints=endpoints, order=order, rank_start=True
    )
    fit, evidence = _fit(basis.triplets, n_objects, d, max(1, basis.dimension), rng)
    history = [_phase("basis", basis, basis.stopped)]
    return _embedding(fit, basis.triplets, history, evidence, basis=basis)


@repeatable
def extra_soe(
    n_objects: int,
    *,
    n_components: int | None = None,
    extra: Extra = "sort",
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    random_state: Seed = None,
) -> Strategy[Embedding]:
    """As `basis_soe`, then ask about every object's neighbourhood and fit again.

    Parameters
    ----------
    extra
        ``"sort"`` the 2k nearest of every object in the first embedding, k = ⌈log2 n⌉, or
        ``"select"`` the k nearest of them, which is cheaper.
    n_objects, n_components, endpoints, order, random_state
        As for `basis_soe`.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(60, 2, random_state=0))
    >>> nearer.run(extra_soe(60, random_state=0), oracle).dimension
    2
    """
    checks.one_of("extra", extra, get_args(Extra))
    n, rng, record = n_objects, checks.generator(random_state), Record()
    first = yield from basis_soe(
        n, n_components=n_components, endpoints=endpoints, order=order, random_state=rng
    )
    near = _nearest(first.positions, min(2 * int(np.ceil(np.log2(n))), n - 1))
    near = rng.permuted(near, axis=1)
    done = "sorted" if extra == "sort" else "half of them selected"
    note = f"the {near.shape[1]} nearest of every object, {done}"
    ask: Strategy[Any]
    if extra == "sort":
        ask = sort_lists(np.arange(n), near)
    else:
        k = max(1, near.shape[1] // 2)
        each = (nearest_objects(x, n, k, among=near[x], random_state=rng) for x in range(n))
        ask = together(*each)
    try:
        yield from recorded(ask, record)
    except BudgetSpent:
        note += "; the budget is spent"
    basis: Basis = first.details["basis"]
    triplets = np.concatenate([first.triplets, record.triplets])
    rows, X = checks.triplets(triplets, n)[0], first.positions
    fit = fit_from_more_dimensions(rows, n, X.shape[1], start=X, rng=rng)
    fit = fit_onwards(rows, fit, at_least=n_components or max(1, basis.dimension), rng=rng)
    history = [*first.history, _phase("neighbours", record, note)]
    return _embedding(fit, triplets, history, first.evidence, basis=basis)


@repeatable
def rand_soe(
    n_objects: int,
    *,
    budget: int | None = None,
    n_components: int | None = None,
    random_state: Seed = None,
) -> Strategy[Embedding]:
    """Ask random comparisons, round robin over the heads, and fit soft ordinal embedding.

    Parameters
    ----------
    budget
        How many comparisons; `default_budget` if None.
    n_objects, n_components, random_state
        As for `basis_soe`.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(60, 2, random_state=0))
    >>> nearer.run(rand_soe(60, budget=3000, random_state=0), oracle).dimension
    2
    """
    d, n, rng = _dimension(n_objects, n_components), n_objects, checks.generator(random_state)
    rule = "all questions must be in memory"
    most = default_budget(n) if budget is None else budget
    budget = checks.whole("budget", most, most=2**29 // 8, rule=rule)
    questions, record, note = balanced_questions(n, budget, rng), Record(), "random comparisons"
    try:
        answers = yield questions
    except BudgetSpent as spent:
        answers, note = spent.answers, f"{note}; the budget is spent"
    record.add(questions[: len(answers)], answers)
    fit, evidence = _fit(record.triplets, n, d, 1, rng)
    return _embedding(fit, record.triplets, [_phase("random", record, note)], evidence)


@repeatable
def paper_protocol(
    n_objects: int, *, n_starts: int = 20, random_state: Seed = None
) -> Strategy[Embedding]:
    """The paper's Basis+SOE: restarts from random starts, first in d̂ dimensions, then in 2·d̂.

    Parameters
    ----------
    n_starts
        How many starts in either dimension; the paper's 20.
    n_objects, random_state
        As for `basis_soe`.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(60, 2, random_state=0))
    >>> nearer.run(paper_protocol(60, n_starts=2, random_state=0), oracle).dimension
    2
    """
    rng, n_starts = checks.generator(random_state), checks.whole("n_starts", n_starts)
    basis = yield from choose_basis(n_objects, random_state=rng, rank_start=True)
    n, triplets = n_objects, basis.triplets
    evidence, used = dict[int, Any](), 0
    for d in (max(1, basis.dimension), max(2, 2 * basis.dimension)):
        best = _empty_fit(n, d, np.inf if len(triplets) else 0.0)
        for _ in range(n_starts):
            used += 1
            if len(triplets):
                fit = fit_positions(triplets, n, d, start=rng.standard_normal((n, d)))
                best = min(best, fit, key=lambda fit: fit.loss)
            if best.loss == 0:
                break
        evidence[d] = {"loss": best.loss}
        if best.loss <= 1e-3:  # the paper's threshold
            break
    history = [_phase("basis", basis, basis.stopped)]
    return _embedding(best, triplets, history, evidence, n_starts=used, basis=basis)


def _nearest(positions: Floats, k: int) -> Objects:
    _, index = KDTree(positions).query(positions, k=k + 1)
    index = np.asarray(index, dtype=np.int64)
    own = np.arange(len(positions))[:, None]
    index[~(index == own).any(axis=1), -1:] = own[~(index == own).any(axis=1)]
    others: Objects = index[index != own].reshape(len(positions), k)
    return others


def _fit(
    triplets: Objects, n: int, d: int | None, at_least: int, rng: np.random.Generator
) -> tuple[Fit, dict[int, Any]]:
    """Fit in a dimension, or in the smallest that explains held-out answers."""
    if not len(triplets):
        return _empty_fit(n, d or 1), {}
    if d is not None:
        fit = fit_from_more_dimensions(triplets, n, d, rng=rng)
        return fit, {d: {"loss": fit.loss}}
    return fit_smallest(triplets, n, at_least=at_least, rng=rng)


def _empty_fit(n: int, d: int, loss: float = 0.0) -> Fit:
    """A fit to no answers."""
    return Fit(np.zeros((n, d)), loss, 0, False)


def _phase(name: str, paid: Basis | Record, note: str) -> Phase:
    return Phase(name, paid.n_comparisons, paid.n_rounds, note)


def _embedding(
    fit: Fit | Floats,
    triplets: Objects,
    history: list[Phase],
    evidence: Mapping[int, Any],
    *,
    n_starts: int = 1,
    **details: Any,
) -> Embedding:
    """The embedding of a fit, or of positions that were not fitted."""
    if isinstance(fit, Fit):
        details = {"loss": fit.loss, "n_starts": n_starts, "converged": fit.converged, **details}
    return Embedding(
        positions=fit.positions if isinstance(fit, Fit) else fit,
        triplets=triplets,
        n_comparisons=sum(phase.n_comparisons for phase in history),
        n_rounds=sum(phase.n_rounds for phase in history),
        history=tuple(history),
        evidence=dict(evidence),
        details=details,
    )


def _dimension(n_objects: int, n_components: int | None) -> int | None:
    """The dimension that was asked for, if any, checked against the number of objects."""
    n = checks.n_objects(n_objects)
    return None if n_components is None else checks.n_components(n_components, n)


# --- the adaptive Crowd Kernel -------------------------------------------------------------------


@repeatable
def crowd_kernel(
    n_objects: int,
    *,
    budget: int | None = None,
    n_components: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """Ask the most informative question about each object, by the crowd-kernel likelihood.

    Parameters
    ----------
    n_components
        The number of dimensions; None: as many as the answers need, estimated again as they grow.
    n_objects, budget, random_state
        As for `rand_soe`.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_gaussian(40, 2, random_state=0))
    >>> nearer.run(crowd_kernel(40, budget=600, n_components=2), oracle).n_comparisons
    600
    """
    n, d = n_objects, _dimension(n_objects, n_components)
    budget = default_budget(n) if budget is None else checks.budget(budget, 1)
    rng, record, fits = checks.generator(random_state), Record(), _Fits(n, d)
    questions, head = balanced_questions(n, min(budget, _FIRST * n), rng), 0
    stopped = "the budget is spent"
    while True:
        try:
            answers = yield questions
        except BudgetSpent as spent:
            answers, budget = spent.answers, 0
            stopped = f"only {spent.budget} comparisons were allowed"
        record.add(questions[: len(answers)], answers)
        triplets = record.triplets
        wanted = min(budget - len(triplets), max(n, len(triplets) // _FIRST))
        if wanted <= 0:
            break
        positions = fits.again(triplets, rng).positions
        heads = (head + np.arange(wanted)) % n
        head = (head + wanted) % n
        questions = _choose(positions, triplets, heads, rng)
    fit = fits.again(triplets, rng, last=True)
    history = [_phase("crowd kernel", record, f"{fits.count} fits; {stopped}")]
    return _embedding(fit, triplets, history, fits.evidence)


class _Fits:
    """Fits to growing sets of answers, each from the result of the last one.

    If no dimension is given, it is chosen again whenever the answers have doubled.
    """

    def __init__(self, n: int, d: int | None) -> None:
        self._n, self._given, self._d = n, d, d or 1
        self._positions: Floats | None = None
        self._chosen_at = 0
        self.count = 0
        self.evidence: dict[int, Any] = {}

    def again(self, triplets: Objects, rng: np.random.Generator, *, last: bool = False) -> Fit:
        """Fit to these answers; the last time also from a new start."""
        if not len(triplets):
            return _empty_fit(self._n, self._d)
        if self._given is None and len(triplets) >= 2 * self._chosen_at:
            fit, self.evidence = fit_smallest(triplets, self._n, at_least=self._d, rng=rng)
            self._d, self._positions = fit.positions.shape[1], None
            self._chosen_at = len(triplets)
        size = (triplets, self._n, self._d)
        how: dict[str, Any] = {"loss": _CKL, "max_iter": 300, "rng": rng}
        fit = fit_positions(*size, start=self._positions, tol=1e-5, **how)
        if last:
            fit = min(fit, fit_from_more_dimensions(*size, **how), key=lambda fit: fit.loss)
        self._positions = fit.positions
        self.count += 1
        if self._given is not None:
            self.evidence = {self._d: {"loss": fit.loss}}
        return fit


def _choose(
    positions: Floats, triplets: Objects, heads: Objects, rng: np.random.Generator
) -> Objects:
    """The most informative of some random pairs for each head; a head may occur repeatedly."""
    n = len(positions)
    triplets = triplets[np.argsort(triplets[:, 0], kind="stable")]
    first = np.searchsorted(triplets[:, 0], np.arange(n + 1))
    places = rng.integers(n, size=(len(heads), min(n, _PLACES)))
    places[:, 0] = heads
    candidates = balanced_questions(n, len(heads) * _PAIRS, rng)[:, 1:]
    candidates = candidates.reshape(len(heads), _PAIRS, 2)
    clash = (candidates == heads[:, None, None]).any(axis=2)
    candidates[clash] = _other_pairs(np.nonzero(clash)[0], heads, n, rng)
    questions = np.empty((len(heads), 3), dtype=np.int64)
    for row, i in enumerate(np.argsort(heads, kind="stable")):
        answered = triplets[first[heads[i]] : first[heads[i] + 1], 1:]
        gains = expected_information(positions, places[i], answered, candidates[i])
        questions[row] = heads[i], *candidates[i, np.argmax(gains)]
    # Random questions replace those already answered, or chosen twice.
    known = np.unique(pack(np.concatenate([triplets, questions]))[0], return_index=True)[1]
    rows = np.setdiff1d(np.arange(len(questions)), known - len(triplets))
    questions[rows, 1:] = _other_pairs(rows, questions[:, 0], n, rng)
    return questions


def expected_information(
    positions: Floats, places: Objects, answered: Objects, pairs: Objects
) -> Floats:
    """The information that the answer to each pair is expected to give about a head, in nats.

    The head may be at any of the objects `places`; `answered` are its answered pairs (near, far).
    """

    def probability(ends: Objects) -> Floats:
        squares = cdist(positions[places], positions[ends.ravel()], "sqeuclidean")
        near, far = squares[:, ::2], squares[:, 1::2]
        return np.asarray((_CKL.number + far) / (2 * _CKL.number + near + far))

    log = np.log(probability(answered)).sum(axis=1)
    belief = np.exp(log - log.max())
    belief /= belief.sum()
    p = probability(pairs)
    mean = belief @ p
    return np.asarray(entr(mean) + entr(1 - mean) - belief @ (entr(p) + entr(1 - p)))


def _other_pairs(rows: Objects, heads: Objects, n: int, rng: np.random.Generator) -> Objects:
    """Random pairs of two objects that are not the head of their row."""
    a = rng.integers(1, n, size=len(rows))  # steps from the head
    b = rng.integers(1, n - 1, size=len(rows))
    b += b >= a  # b is drawn from one object fewer
    return np.asarray((heads[rows, None] + np.stack([a, b], axis=1)) % n)


# --- by name -------------------------------------------------------------------------------------

METHODS: dict[str, Callable[..., Strategy[Embedding]]] = {
    "adaptive": adaptive,
    "basis": basis_embedding,
    "basis+soe": basis_soe,
    "extra+soe": extra_soe,
    "rand+soe": rand_soe,
    "crowd-kernel": crowd_kernel,
    "paper": paper_protocol,
}


def make_strategy(
    method: str, n_objects: int, *, random_state: int | None = None, **options: Any
) -> Strategy[Embedding]:
    """Make a method's strategy from its options; None means not given.

    Every method takes `budget`: one that does not plan with it is stopped by ``run(..., budget=)``.
    Any other option that the method does not have is an error.
    """
    takes = {
        name: set(inspect.signature(make).parameters) - {"n_objects", "random_state", "begun_with"}
        for name, make in METHODS.items()
    }
    own = takes[checks.one_of("method", method, tuple(METHODS))]
    wanted = {name: value for name, value in options.items() if value is not None}
    if foreign := sorted(set(wanted) - own - {"budget"}):
        fit = [name for name, options in takes.items() if options >= set(foreign)]
        listed = ", ".join(f"{name}={wanted[name]!r}" for name in foreign)
        rule = f"the method {method!r} has no such option; {', '.join(fit) or 'none'} has"
        raise InvalidInput(f"{listed}: {rule}")
    known = {name: value for name, value in wanted.items() if name in own}
    return METHODS[method](n_objects, random_state=random_state, **known)
