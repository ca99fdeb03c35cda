"""nearer.embed: dimension, comparisons, tau and kNN on the paper's sets; budget curve; growth.

Environment: SEEDS (default 5) runs a set, PICTURE (default out/bench/budget.png), LARGEST
(default 100000) objects for the growth.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np

import nearer
from nearer.algorithms.methods import make_asking
from nearer.metrics import knn_precision, mean_kendall_tau

SEEDS = range(1000, 1000 + int(os.environ.get("SEEDS", "5")))
BUDGETS = (5_000, 10_000, 15_000, 20_000, 30_000)
RIVALS = {"rand+soe": {}, "crowd-kernel": {}, "extra+soe": {}}


def main() -> None:
    table()
    dimensions()
    curve()
    growth()


def summary(values: list[float]) -> str:
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"


def table() -> None:
    print(f"{'data':8} {'dimension':>16}  comparisons, tau, kNN: median (least to most), seconds")
    for name in ("3dgmm", "5dgmm", "5dcube", "cities"):
        rows = []
        for seed in SEEDS:
            X = nearer.datasets.load_points(name, random_state=seed)
            start = time.perf_counter()
            found = nearer.embed(nearer.PointOracle(X), len(X), random_state=seed, progress=False)
            seconds = time.perf_counter() - start
            tau, knn = mean_kendall_tau(X, found.positions), knn_precision(X, found.positions)
            rows.append((found.dimension, found.n_comparisons, tau, knn, seconds))
        dimension, *measures = zip(*rows, strict=True)
        print(f"{name:8} {dimension!s:>16}  " + ", ".join(summary(list(m)) for m in measures))


def dimensions() -> None:
    print("\ndimension found (comparisons of the last run), 1,000 objects")
    for family in ("ball", "cube", "gaussian", "sphere"):
        for d in (1, 2, 3, 5, 8, 10, 20):
            if family == "sphere" and d == 1:
                continue
            found, asked = [], 0
            for seed in SEEDS:
                X = getattr(nearer.datasets, f"make_{family}")(1000, d, random_state=seed)
                result = nearer.embed(
                    nearer.PointOracle(X), 1000, random_state=seed, progress=False
                )
                found.append(result.dimension)
                asked = result.n_comparisons
            print(f"{family:9} d={d:2}: {found} ({asked:,})", flush=True)


def curve() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for column, (name, d) in enumerate((("3dgmm", 3), ("5dcube", 5))):
        ax = figure.add_subplot(1, 2, column + 1, title=name, xlabel="comparisons", ylabel="tau")
        X = nearer.datasets.load_points(name, random_state=SEEDS[0])
        for method in ("adaptive", *RIVALS):
            taus = [budgeted(method, X, budget, d) for budget in BUDGETS]
            print(f"{name:7} {method:13}", *(f"{tau:7.3f}" for tau in taus), flush=True)
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
