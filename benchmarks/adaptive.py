"""nearer.embed: dimension, comparisons, tau and kNN; dimensions found; budget curve; growth; place.

Environment: SEEDS (default 5) runs a set (a fifth of them on real data, in 20 dimensions and for
the curve), PICTURE (default out/bench/budget.png), LARGEST (default 100000) objects for the growth.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import nearer
from nearer.algorithms.methods import make_asking
from nearer.metrics import knn_precision, mean_kendall_tau

SEEDS = range(1000, 1000 + int(os.environ.get("SEEDS", "5")))
FEWER = SEEDS[: max(1, len(SEEDS) // 5)]
BUDGETS = (5_000, 10_000, 15_000, 20_000, 25_000, 30_000)
RIVALS = ("rand+soe", "crowd-kernel", "extra+soe")
REAL = {"digits": "load_digits_mnist", "spam": "load_spambase", "20news": "load_newsgroups"}


def main() -> None:
    table()
    dimensions()
    curve()
    growth()
    place()


def summary(values: list[float]) -> str:
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"


def table() -> None:
    print(f"{'data':8} {'dimension':>16}  comparisons, tau, kNN: median (least to most), seconds")
    for name in ("3dgmm", "5dgmm", "5dcube", "cities", *REAL):
        rows = []
        for seed in FEWER if name in REAL else SEEDS:
            X = points(name, seed)
            n, start = X.shape[0], time.perf_counter()
            found = nearer.embed(nearer.PointOracle(X), n, random_state=seed, progress=False)
            seconds = time.perf_counter() - start
            tau, knn = mean_kendall_tau(X, found.positions), knn_precision(X, found.positions)
            rows.append((found.dimension, found.n_comparisons, tau, knn, seconds))
        dimension, *measures = zip(*rows, strict=True)
        counts = dict(Counter(dimension).most_common())
        measured = ", ".join(summary(list(m)) for m in measures)
        print(f"{name:8} {counts!s:>16}  {measured}", flush=True)


def points(name: str, seed: int) -> Any:
    if name not in REAL:
        return nearer.datasets.load_points(name, random_state=seed)
    options = {"random_state": seed} if name == "spam" else {}
    return getattr(nearer.datasets, REAL[name])(**options).points


def dimensions() -> None:
    print("\n1,000 objects: dimension found: runs; comparisons until it is known, in all")
    for family in ("ball", "cube", "gaussian", "sphere"):
        for d in (1, 2, 3, 5, 8, 10, 20):
            found, until, total = [], [], []
            for seed in FEWER if d == 20 else SEEDS:
                X = getattr(nearer.datasets, f"make_{family}")(1000, d, random_state=seed)
                whole = nearer.embed(nearer.PointOracle(X), 1000, random_state=seed, progress=False)
                found.append(whole.dimension)
                total.append(float(whole.n_comparisons))
                known = next(i for i, p in enumerate(whole.history) if p.name == "frame")
                until.append(float(sum(p.n_comparisons for p in whole.history[: known + 1])))
            counts = dict(Counter(found).most_common())
            print(f"{family:9} d={d:2}: {counts}; {summary(until)}; {summary(total)}", flush=True)


def curve() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    print(f"\ntau at {', '.join(f'{b:,}' for b in BUDGETS)} comparisons, median of {len(FEWER)}")
    for column, (name, d) in enumerate((("3dgmm", 3), ("5dcube", 5))):
        ax = figure.add_subplot(1, 2, column + 1, title=name, xlabel="comparisons", ylabel="tau")
        for method in ("adaptive", *RIVALS):
            taus = [
                float(np.median([budgeted(method, points(name, s), b, d) for s in FEWER]))
                for b in BUDGETS
            ]
            print(f"{name:7} {method:13}", *(f"{tau:7.4f}" for tau in taus), flush=True)
            ax.plot(BUDGETS, taus, marker="o", label=method)
        ax.legend()
    path = Path(os.environ.get("PICTURE", "out/bench/budget.png"))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"picture: {path}")


def budgeted(method: str, X: np.ndarray, budget: int, d: int) -> float:
    """Tau at a budget; the rivals are told the true dimension."""
    options = {} if method == "adaptive" else {"n_components": d}
    asking = make_asking(method, len(X), random_state=0, budget=budget, **options)
    try:
        found = nearer.run(asking, nearer.PointOracle(X), budget=budget)
    except nearer.errors.NearerError:
        return float("nan")
    return float(mean_kendall_tau(X, found.positions))


def growth() -> None:
    largest = int(os.environ.get("LARGEST", "100000"))
    for d in (3, 5):
        sizes = [n for n in (1_000, 10_000, 100_000) if n <= largest]
        asked, seconds = [], []
        for n in sizes:
            X = np.random.default_rng(n).random((n, d))
            start = time.perf_counter()
            found = nearer.embed(nearer.PointOracle(X), n, random_state=0, progress=False)
            seconds.append(time.perf_counter() - start)
            asked.append(found.n_comparisons)
            tau = mean_kendall_tau(X, found.positions, n_heads=100, random_state=0)
            unit = found.n_comparisons / (n * d * np.log2(n))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"n={n:7,} d={d}: dimension {found.dimension}, {found.n_comparisons:,} = "
                f"{unit:.2f} n d log2 n, tau {tau:.4f}, {seconds[-1]:.1f} s, {peak:.1f} GiB",
                flush=True,
            )
        if len(sizes) > 1:
            slope = np.polyfit(np.log(sizes), np.log(asked), 1)[0]
            time_slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
            print(f"d={d}: comparisons grow as n^{slope:.2f}, seconds as n^{time_slope:.2f}")


def place() -> None:
    print("\nunseen objects placed among 500: tau of their rankings, of the fitted objects'; cost")
    for d in (2, 3, 5):
        taus, fitted, costs = [], [], []
        for seed in SEEDS:
            X = np.random.default_rng(seed).normal(size=(600, d))
            oracle = nearer.PointOracle(X)
            old = nearer.embed(oracle, 500, random_state=seed, progress=False)
            placed = old.place(oracle, np.arange(500, 600))
            both = np.vstack([old.positions, placed.positions])
            taus.append(head_tau(X, both, range(500, 600)))
            fitted.append(head_tau(X, both, range(500)))
            costs.append(placed.n_comparisons / 100 / (d * np.log2(500)))
        measured = f"{summary(taus)}; {summary(fitted)}; {summary(costs)} d log2 n"
        print(f"d={d}: {measured}", flush=True)


def head_tau(X: np.ndarray, Y: np.ndarray, heads: range) -> float:
    """The mean tau of the rankings of the first 500 objects from these heads."""

    def ranking(Z: np.ndarray, h: int) -> np.ndarray:
        return np.linalg.norm(np.delete(Z[:500], [h] if h < 500 else [], axis=0) - Z[h], axis=1)

    return float(np.mean([kendalltau(ranking(X, h), ranking(Y, h))[0] for h in heads]))
