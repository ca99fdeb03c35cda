"""Starts of soft ordinal embedding: how often each reaches loss zero on the answers of a basis.

One start each, at the true dimension, n = 500; 50 data sets and runs in full, 3 in short. The full
table is written to docs/starts.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

import nearer
from benchmarks.harness import Cell, Rows, distinct, grid, pick, table
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.fitting.solver import Fit, fit_positions, principal_axes, violated
from nearer.questions import Floats

SETS = {"3dgmm": 3, "5dgmm": 5, "5dcube": 5, "cities": 3}
DOCS = "starts.md"


def _random(basis: nearer.algorithms.Basis, d: int, rng: np.random.Generator) -> Fit:
    n = basis.n_objects
    return fit_positions(basis.triplets, n, start=rng.standard_normal((n, d)))


def _smooth_first(basis: nearer.algorithms.Basis, d: int, rng: np.random.Generator) -> Fit:
    n = basis.n_objects
    start = rng.standard_normal((n, d))
    smooth = fit_positions(basis.triplets, n, start=start, loss="logistic", max_iter=300)
    return fit_positions(basis.triplets, n, start=smooth.positions)


def _coordinates(basis: nearer.algorithms.Basis, d: int, rng: np.random.Generator) -> Fit:
    X = basis.coordinates()
    X = 3 * (X - X.mean(axis=0)) / X.std()
    extra = 0.1 * rng.standard_normal((len(X), max(0, d - X.shape[1])))
    return fit_positions(basis.triplets, len(X), start=np.hstack([X, extra])[:, :d])


def _rankings(basis: nearer.algorithms.Basis, d: int, rng: np.random.Generator) -> Fit:
    return fit_positions(basis.triplets, basis.n_objects, start=_ranking_start(basis.rankings, d))


def _ranking_start(rankings: Mapping[int, ArrayLike], d: int) -> Floats:
    """Positions at the principal axes of the squared ranks of all objects from some heads.

    The squared distance to a head is linear in the position but for one term that all heads share.
    Where there are fewer heads than dimensions, the last coordinates are tiny.
    """
    ranks = np.array([rankings[h] for h in sorted(rankings)], dtype=np.float64).T
    axes = min(d, ranks.shape[1])
    X = principal_axes((ranks / len(ranks)) ** 2, axes)
    X *= 3.0 / max(float(X.std()), np.finfo(float).tiny)
    # deterministic, and different for every object
    phase = np.outer(np.arange(1, len(X) + 1), np.arange(1, d - axes + 1)) * np.sqrt(2)
    return np.hstack([X, 0.1 * np.sin(phase)])


def _above(basis: nearer.algorithms.Basis, d: int, rng: np.random.Generator) -> Fit:
    return fit_from_more_dimensions(basis.triplets, basis.n_objects, d, rng=rng)


STARTS: dict[str, Callable[[nearer.algorithms.Basis, int, np.random.Generator], Fit]] = {
    "random": _random,
    "random, logistic loss first": _smooth_first,
    "basis coordinates": _coordinates,
    "rankings": _rankings,
    "more dimensions first (default)": _above,
}


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    yield from grid("start", fitted, seed=range(seeds or (50 if full else 3)), data=SETS)


def fitted(data: str, seed: int) -> dict[str, list[float]]:
    """For each start: loss zero, all satisfied, τ, processor seconds."""
    X = nearer.datasets.load_points(data, random_state=seed)
    basis = nearer.run(nearer.choose_basis(500, random_state=seed), nearer.PointOracle(X))
    _above(basis, SETS[data], np.random.default_rng(seed))  # compile
    figures = {}
    for name, start in STARTS.items():
        begin = time.process_time()
        fit = start(basis, SETS[data], np.random.default_rng(seed))
        seconds = time.process_time() - begin
        satisfied = not violated(fit.positions, basis.triplets).any()
        tau = nearer.metrics.mean_kendall_tau(X, fit.positions, n_heads=50, random_state=0)
        figures[name] = [float(fit.loss < 1e-3), float(satisfied), tau, seconds]
    return figures


def page(rows: Rows, folder: Path) -> str:
    seeds = len(pick(rows, "start", data="3dgmm"))
    intro = f"""# Starts

Soft ordinal embedding has bad local minima, and the start decides in which one a fit ends. The
table shows how often one start reaches loss zero (below 10⁻³), over {seeds} seeds, and in brackets
how often all answers are satisfied, the median τ and the processor seconds. The answers are those
of `choose_basis` with n = 500, fitted in the true dimension. `python -m benchmarks starts --full`
makes this page; `nearer.fitting.initial` describes the starts.

"""
    sets = distinct(rows, "data")
    lines = [[name, *(_share(pick(rows, "start", data=d), name) for d in sets)] for name in STARTS]
    return intro + table(["start", *sets], lines)


def _share(rows: Rows, start: str) -> str:
    zero, satisfied, tau, seconds = np.array([row[start] for row in rows]).T
    return (
        f"{zero.mean():.0%} ({satisfied.mean():.0%}, τ {np.median(tau):.3f}, "
        f"{seconds.mean():.2g} s)"
    )
