"""The paper's pipelines: ask in one of its ways, then fit soft ordinal embedding to the answers.

* ``basis+soe``: what `choose_basis` paid for is fitted. The object that the search starts from is
  ranked, too: that is how the paper's numbers of comparisons come about, and without it there may
  be no more heads than dimensions and one, too few to determine a fit.
* ``extra+soe``: then, for every object, its 2k nearest in that embedding are sorted (or the k
  nearest of them selected), k = ⌈log2 n⌉, and everything is fitted again (Section 4).
* ``rand+soe``: random comparisons, round robin over the heads.
* ``paper``: the paper's own protocol of restarts: 20 random starts in d̂ dimensions and, if the best
  loss is above 10⁻³, 20 in 2·d̂.

All but the last fit from one start (`nearer.fitting.initial`), in the number of dimensions that the
answers call for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from nearer import checks
from nearer.algorithms.basis import Basis, Endpoints, choose_basis
from nearer.algorithms.choose_questions import default_budget
from nearer.asking.protocol import Record, Strategy, recorded, repeatable, together
from nearer.asking.sort import Order, nearest_objects, sort_lists
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent
from nearer.fitting.heldout import fit_smallest
from nearer.fitting.initial import fit_from_more_dimensions, fit_onwards
from nearer.fitting.solver import Fit, fit_positions
from nearer.questions import balanced_questions

__all__ = ["basis_soe", "extra_soe", "paper_protocol", "rand_soe"]

Seed = int | np.random.Generator | None
Extra = Literal["sort", "select"]

ZERO_LOSS = 1e-3  # the paper's threshold


@repeatable
def basis_soe(
    n_objects: int,
    *,
    n_components: int | None = None,
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    random_state: Seed = None,
) -> Strategy[Embedding]:
    """Choose a basis, then fit soft ordinal embedding to every answer it paid for.

    Parameters
    ----------
    n_objects
        How many objects there are.
    n_components
        In how many dimensions to place them; None: as many as the answers call for.
    endpoints, order, random_state
        As for `choose_basis`.

    Examples
    --------
    >>> import nearer
    >>> X = nearer.datasets.make_cube(150, 2, random_state=0)
    >>> strategy = nearer.algorithms.basis_soe(150, random_state=0)
    >>> embedding = nearer.run(strategy, nearer.PointOracle(X))
    >>> embedding.dimension, nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.97
    (2, True)
    """
    d, rng = _check(n_objects, n_components), checks.generator(random_state)
    return _basis_soe(_search(n_objects, endpoints, order, rng), d, rng)


def _search(
    n: int, endpoints: Endpoints, order: Order, rng: np.random.Generator
) -> Strategy[Basis]:
    return choose_basis(n, random_state=rng, endpoints=endpoints, order=order, rank_start=True)


def _basis_soe(
    search: Strategy[Basis], d: int | None, rng: np.random.Generator
) -> Strategy[Embedding]:
    basis = yield from search
    fit, evidence = _fit(basis.triplets, basis.n_objects, d, max(1, basis.dimension), rng)
    return _embedding(fit, evidence, basis.triplets, (_phase_of(basis),), basis=basis)


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
    >>> X = nearer.datasets.make_cube(100, 2, random_state=0)
    >>> strategy = nearer.algorithms.extra_soe(100, random_state=0)
    >>> embedding = nearer.run(strategy, nearer.PointOracle(X))
    >>> nearer.metrics.knn_precision(X, embedding.positions) > 0.9
    True
    """
    d, rng = _check(n_objects, n_components), checks.generator(random_state)
    checks.one_of("extra", extra, get_args(Extra))
    return _extra_soe(_search(n_objects, endpoints, order, rng), d, extra, rng)


def _extra_soe(
    search: Strategy[Basis], d: int | None, extra: Extra, rng: np.random.Generator
) -> Strategy[Embedding]:
    first = yield from _basis_soe(search, d, rng)
    n = len(first.positions)
    k = int(np.ceil(np.log2(n)))
    near = _nearest(first.positions, min(2 * k, n - 1))
    near = rng.permuted(near, axis=1)
    record = Record()
    done = "sorted" if extra == "sort" else "half of them selected"
    note = f"the {near.shape[1]} nearest of every object, {done}"
    ask: Strategy[Any]
    if extra == "sort":
        ask = sort_lists(np.arange(n), near)
    else:
        ask = together(
            *(
                nearest_objects(x, n, max(1, near.shape[1] // 2), among=near[x], random_state=rng)
                for x in range(n)
            )
        )
    try:
        yield from recorded(ask, record)
    except BudgetSpent:
        note += "; the budget is spent"
    triplets = np.concatenate([first.triplets, record.triplets])
    least = max(1, first.details["basis"].dimension) if d is None else d
    rows, X = checks.triplets(triplets, n)[0], first.positions
    fit = fit_from_more_dimensions(rows, n, X.shape[1], start=X, rng=rng)
    fit = fit_onwards(rows, fit, at_least=least, rng=rng)
    phase = Phase("neighbours", record.n_comparisons, record.n_rounds, note)
    history = (*first.history, phase)
    return _embedding(fit, first.evidence, triplets, history, basis=first.details["basis"])


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
    >>> X = nearer.datasets.make_cube(60, 2, random_state=0)
    >>> strategy = nearer.algorithms.rand_soe(60, budget=3000, random_state=0)
    >>> nearer.run(strategy, nearer.PointOracle(X)).dimension
    2
    """
    d, n = _check(n_objects, n_components), int(n_objects)
    budget = default_budget(n) if budget is None else checks.budget(budget, 1)
    return _rand_soe(n, budget, d, checks.generator(random_state))


def _rand_soe(n: int, budget: int, d: int | None, rng: np.random.Generator) -> Strategy[Embedding]:
    record = Record()
    note = "random comparisons"
    try:
        yield from recorded(_ask(balanced_questions(n, budget, rng)), record)
    except BudgetSpent:
        note += "; the budget is spent"
    fit, evidence = _fit(record.triplets, n, d, 1, rng)
    phase = Phase("random", record.n_comparisons, record.n_rounds, note)
    return _embedding(fit, evidence, record.triplets, (phase,))


def _ask(questions: NDArray[np.int64]) -> Strategy[None]:
    yield questions


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
    >>> X = nearer.datasets.make_cube(60, 2, random_state=0)
    >>> strategy = nearer.algorithms.paper_protocol(60, n_starts=2, random_state=0)
    >>> nearer.run(strategy, nearer.PointOracle(X)).dimension
    2
    """
    rng, n_starts = checks.generator(random_state), checks.whole("n_starts", n_starts)
    return _paper_protocol(_search(n_objects, "above", "fewest-comparisons", rng), n_starts, rng)


def _paper_protocol(
    search: Strategy[Basis], n_starts: int, rng: np.random.Generator
) -> Strategy[Embedding]:
    basis = yield from search
    n = basis.n_objects
    triplets, evidence, used = basis.triplets, dict[int, Any](), 0
    best: Fit | None = None
    for d in (max(1, basis.dimension), max(2, 2 * basis.dimension)):
        best = None
        for _ in range(n_starts):
            used += 1
            fit = _fit_once(triplets, n, d, rng)
            best = fit if best is None or fit.loss < best.loss else best
            if best.loss == 0:
                break
        assert best is not None
        evidence[d] = {"loss": best.loss}
        if best.loss <= ZERO_LOSS:
            break
    assert best is not None
    return _embedding(best, evidence, triplets, (_phase_of(basis),), n_starts=used, basis=basis)


def _fit_once(triplets: NDArray[np.int64], n: int, d: int, rng: np.random.Generator) -> Fit:
    if not len(triplets):
        return Fit(np.zeros((n, d)), 0.0, 0, False)
    return fit_positions(triplets, n, d, start=rng.standard_normal((n, d)))


def _nearest(positions: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The k nearest other objects of every object, in the embedding."""
    _, index = KDTree(positions).query(positions, k=k + 1)
    index = np.asarray(index, dtype=np.int64)
    own = np.arange(len(positions))[:, None]
    index[~(index == own).any(axis=1), -1:] = own[~(index == own).any(axis=1)]
    others: NDArray[np.int64] = index[index != own].reshape(len(positions), k)
    return others


def _fit(
    triplets: NDArray[np.int64], n: int, d: int | None, at_least: int, rng: np.random.Generator
) -> tuple[Fit, dict[int, Any]]:
    """Fit at a dimension, or at the smallest that explains answers held out."""
    if not len(triplets):
        return Fit(np.zeros((n, d or 1)), 0.0, 0, False), {}
    if d is not None:
        fit = fit_from_more_dimensions(triplets, n, d, rng=rng)
        return fit, {d: {"loss": fit.loss}}
    return fit_smallest(triplets, n, at_least=at_least, rng=rng)


def _phase_of(basis: Basis) -> Phase:
    return Phase("basis", basis.n_comparisons, basis.n_rounds, basis.stopped)


def _embedding(
    fit: Fit,
    evidence: Mapping[int, Any],
    triplets: NDArray[np.int64],
    history: tuple[Phase, ...],
    *,
    n_starts: int = 1,
    basis: Basis | None = None,
) -> Embedding:
    details: dict[str, Any] = {"loss": fit.loss, "n_starts": n_starts, "converged": fit.converged}
    if basis is not None:
        details["basis"] = basis
    return Embedding(
        positions=fit.positions,
        triplets=triplets,
        n_comparisons=sum(phase.n_comparisons for phase in history),
        n_rounds=sum(phase.n_rounds for phase in history),
        history=history,
        evidence=dict(evidence),
        details=details,
    )


def _check(n_objects: int, n_components: int | None) -> int | None:
    """The dimension that was asked for, if any, of a number of objects that will do."""
    n = checks.n_objects(n_objects)
    return None if n_components is None else checks.n_components(n_components, n)
