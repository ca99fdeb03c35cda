"""Starts of soft ordinal embedding: how often each reaches loss zero on the answers of a basis.

    .venv/bin/python -m benchmarks starts

One start each, at the true dimension, n = 500. NEARER_BENCH_SEEDS (default 50) says over how many
data sets and runs. The table is written to docs/starts.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import nearer
from nearer.fitting.solver import Fit, disobeyed, fit_positions
from nearer.fitting.starts import fit_from_above, ranking_start

SETS = {"3dgmm": 3, "5dgmm": 5, "5dcube": 5, "cities": 3}
TARGET = Path(__file__).parents[1] / "docs" / "starts.md"


def _random(basis: nearer.Basis, d: int, rng: np.random.Generator) -> Fit:
    n = basis.n_objects
    return fit_positions(basis.triplets, n, start=rng.standard_normal((n, d)))


def _smooth_first(basis: nearer.Basis, d: int, rng: np.random.Generator) -> Fit:
    n = basis.n_objects
    start = rng.standard_normal((n, d))
    smooth = fit_positions(basis.triplets, n, start=start, loss="logistic", max_iter=300)
    return fit_positions(basis.triplets, n, start=smooth.positions)


def _coordinates(basis: nearer.Basis, d: int, rng: np.random.Generator) -> Fit:
    X = basis.coordinates()
    X = 3 * (X - X.mean(axis=0)) / X.std()
    extra = 0.1 * rng.standard_normal((len(X), max(0, d - X.shape[1])))
    return fit_positions(basis.triplets, len(X), start=np.hstack([X, extra])[:, :d])


def _rankings(basis: nearer.Basis, d: int, rng: np.random.Generator) -> Fit:
    return fit_positions(basis.triplets, basis.n_objects, start=ranking_start(basis.rankings, d))


def _above(basis: nearer.Basis, d: int, rng: np.random.Generator) -> Fit:
    return fit_from_above(basis.triplets, basis.n_objects, d, rng=rng)


STARTS: dict[str, Callable[[nearer.Basis, int, np.random.Generator], Fit]] = {
    "random": _random,
    "random, logistic loss first": _smooth_first,
    "basis coordinates": _coordinates,
    "rankings": _rankings,
    "from above (default)": _above,
}


def _measure(data: str, seed: int) -> list[tuple[float, float, float, float]]:
    """For each start: loss zero, all obeyed, τ, processor seconds."""
    X = nearer.datasets.load_points(data, random_state=seed)
    basis = nearer.run(nearer.choose_basis(500, random_state=seed), nearer.PointOracle(X))
    figures = []
    for start in STARTS.values():
        begin = time.process_time()
        fit = start(basis, SETS[data], np.random.default_rng(seed))
        seconds = time.process_time() - begin
        obeyed = not disobeyed(fit.positions, basis.triplets).any()
        tau = nearer.metrics.mean_kendall_tau(X, fit.positions, n_heads=50, random_state=0)
        figures.append((float(fit.loss < 1e-3), float(obeyed), tau, seconds))
    return figures


def main() -> None:
    seeds = int(os.environ.get("NEARER_BENCH_SEEDS", "50"))
    lines = [
        "# Starts",
        "",
        "Soft ordinal embedding has bad optima, and the start decides in which one a fit ends. How",
        f"often one start reaches loss zero (below 10⁻³), over {seeds} seeds; in brackets how",
        "often every answer is obeyed, the median τ, processor seconds. Answers are those of",
        "`choose_basis`, n = 500, fitted at the true dimension. Made by",
        "`python -m benchmarks starts`; what each start is, `nearer.fitting.starts` says.",
        "",
        "| start | " + " | ".join(SETS) + " |",
        "| --- |" + " --- |" * len(SETS),
    ]
    rows = {name: [f"| {name} |"] for name in STARTS}
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for data in SETS:
            found = np.array(list(pool.map(_measure, [data] * seeds, range(seeds))))
            for i, name in enumerate(STARTS):
                zero, obeyed, tau, seconds = found[:, i].T
                rows[name].append(
                    f" {zero.mean():.0%} ({obeyed.mean():.0%}, τ {np.median(tau):.3f}, "
                    f"{seconds.mean():.2g} s) |"
                )
                print(data, name, rows[name][-1], flush=True)
    lines += ["".join(cells) for cells in rows.values()]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
