"""nearer.embed: dimension, comparisons, tau and kNN; dimensions found; budget curve; growth; place.

Short: 5 seeds, up to 10 dimensions, up to 10,000 objects. Full: 10 seeds (a fifth of them where a
run takes a minute), 20 dimensions, 100,000 objects. The curve is drawn to budget.png.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import nearer
from benchmarks import _published as published
from benchmarks.harness import Cell, Rows, counted, distinct, grid, median, pick, summary, table
from nearer.algorithms.pipelines import make_strategy
from nearer.metrics import knn_precision, mean_kendall_tau

BUDGETS = (5_000, 10_000, 15_000, 20_000, 25_000, 30_000)
RIVALS = ("rand+soe", "crowd-kernel", "extra+soe")
CURVES = {"3dgmm": 3, "5dcube": 5}
REAL = {"digits": "load_digits_mnist", "spam": "load_spambase", "20news": "load_newsgroups"}


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    every = range(1000, 1000 + (seeds or (10 if full else 5)))
    fewer = every[: max(1, len(every) // 5)]
    families = ("ball", "cube", "gaussian", "sphere")
    low, high = ((1, 2, 3, 5, 8), (10, 20)) if full else ((1, 2, 3, 5), (10,))
    yield from grid("table", embedded, data=("3dgmm", "5dgmm", "5dcube", "cities"), seed=every)
    yield from grid("table", embedded, data=REAL, seed=fewer)
    yield from grid("dimension", found_dimension, family=families, d=low, seed=every)
    yield from grid("dimension", found_dimension, family=families, d=high, seed=fewer)
    methods = ("adaptive", *RIVALS)
    yield from grid("curve", budgeted, data=CURVES, method=methods, budget=BUDGETS, seed=fewer)
    sizes = (1_000, 10_000, 100_000) if full else (1_000, 10_000)
    yield from grid("growth", grown, n=sizes, d=(3, 5))
    yield from grid("place", placed, d=(2, 3, 5), seed=every)


def embed(X: Any, seed: int) -> tuple[nearer.Embedding, float]:
    """The embedding, and the processor seconds it took once everything is compiled."""
    small = np.random.default_rng(0).random((30, 2))
    nearer.embed(nearer.PointOracle(small), 30, random_state=0, progress=False)
    start = time.process_time()
    embedding = nearer.embed(nearer.PointOracle(X), X.shape[0], random_state=seed, progress=False)
    return embedding, time.process_time() - start


def points(data: str, seed: int) -> Any:
    if data not in REAL:
        return nearer.datasets.load_points(data, random_state=seed)
    options = {"random_state": seed} if data == "spam" else {}
    return getattr(published, REAL[data])(**options).points


def embedded(data: str, seed: int) -> dict[str, Any]:
    X = points(data, seed)
    embedding, seconds = embed(X, seed)
    return {
        "dimension": embedding.dimension,
        "comparisons": embedding.n_comparisons,
        "tau": mean_kendall_tau(X, embedding.positions),
        "knn": knn_precision(X, embedding.positions),
        "seconds": seconds,
    }


def found_dimension(family: str, d: int, seed: int) -> dict[str, Any]:
    X = getattr(nearer.datasets, f"make_{family}")(1000, d, random_state=seed)
    whole, seconds = embed(X, seed)
    return {
        "dimension": whole.dimension,
        "comparisons": whole.n_comparisons,
        "seconds": seconds,
    }


def budgeted(data: str, method: str, budget: int, seed: int) -> dict[str, Any]:
    """Tau at a budget; the other methods get the true dimension."""
    X = points(data, seed)
    options = {} if method == "adaptive" else {"n_components": CURVES[data]}
    strategy = make_strategy(method, len(X), random_state=0, budget=budget, **options)
    try:
        embedding = nearer.run(strategy, nearer.PointOracle(X), budget=budget)
    except nearer.errors.NearerError:
        return {"tau": float("nan")}
    return {"tau": float(mean_kendall_tau(X, embedding.positions))}


def grown(n: int, d: int) -> dict[str, Any]:
    X = np.random.default_rng(n).random((n, d))
    embedding, seconds = embed(X, 0)
    return {
        "dimension": embedding.dimension,
        "comparisons": embedding.n_comparisons,
        "unit": embedding.n_comparisons / (n * d * np.log2(n)),
        "tau": mean_kendall_tau(X, embedding.positions, n_heads=100, random_state=0),
        "seconds": seconds,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def placed(d: int, seed: int) -> dict[str, Any]:
    X = np.random.default_rng(seed).normal(size=(600, d))
    old, _ = embed(X[:500], seed)
    new = old.place(nearer.PointOracle(X), np.arange(500, 600))
    both = np.vstack([old.positions, new.positions])
    return {
        "tau": head_tau(X, both, range(500, 600)),
        "fitted": head_tau(X, both, range(500)),
        "cost": new.n_comparisons / 100 / (d * np.log2(500)),
    }


def head_tau(X: np.ndarray, Y: np.ndarray, heads: range) -> float:
    """The mean tau of the rankings of the first 500 objects from these heads."""

    def ranking(Z: np.ndarray, h: int) -> np.ndarray:
        return np.linalg.norm(np.delete(Z[:500], [h] if h < 500 else [], axis=0) - Z[h], axis=1)

    return float(np.mean([kendalltau(ranking(X, h), ranking(Y, h))[0] for h in heads]))


def page(rows: Rows, folder: Path) -> str:
    parts = (
        ("The default on the paper's data: medians (least to most), processor seconds", _table),
        ("1,000 objects: dimensions found, comparisons", _dimensions),
        ("Tau at a budget; the other methods get the true dimension", _curve),
        ("Growth", _growth),
        ("100 unseen objects placed among 500: tau of rankings from them, from the 500", _place),
    )
    made = [f"## {title}\n\n{make(rows)}" for title, make in parts]
    draw(pick(rows, "curve"), folder / "budget.png")
    return "\n".join(made)


def _table(rows: Rows) -> str:
    figures = ("comparisons", "tau", "knn", "seconds")
    groups = ((data, pick(rows, "table", data=data)) for data in distinct_of(rows, "table", "data"))
    lines = [
        [data, counted(g, "dimension"), *(summary(g, f) for f in figures), len(g)]
        for data, g in groups
    ]
    return table(["data", "dimension: runs", *figures, "runs"], lines)


def distinct_of(rows: Rows, part: str, *keys: str) -> list[Any]:
    return distinct(pick(rows, part), *keys)


def _dimensions(rows: Rows) -> str:
    lines = []
    for family, d in distinct_of(rows, "dimension", "family", "d"):
        g = pick(rows, "dimension", family=family, d=d)
        lines.append([family, d, counted(g, "dimension"), summary(g, "comparisons")])
    return table(["family", "d", "found: runs", "comparisons"], lines)


def _curve(rows: Rows) -> str:
    lines = []
    for data, method in distinct_of(rows, "curve", "data", "method"):
        at = [pick(rows, "curve", data=data, method=method, budget=b) for b in BUDGETS]
        lines.append([data, method, *(f"{median(g, 'tau'):.4f}" if g else "" for g in at)])
    return table(["data", "method", *(f"{b:,}" for b in BUDGETS)], lines)


def _growth(rows: Rows) -> str:
    some = pick(rows, "growth")
    shown = ("dimension", "comparisons", "unit", "tau", "seconds", "gib")
    lines = [[f"{r['n']:,}", r["d"], *(f"{r[key]:,.4g}" for key in shown)] for r in some]
    heads = ["n", "d", "dimension", "comparisons", "n d log2 n", "tau", "seconds", "GiB"]
    text = table(heads, lines)
    for d in distinct(some, "d"):
        sizes, asked, seconds = np.log(
            [[r[key] for r in some if r["d"] == d] for key in ("n", "comparisons", "seconds")]
        )
        if len(sizes) > 1:
            slopes = [np.polyfit(sizes, values, 1)[0] for values in (asked, seconds)]
            text += f"\nd = {d}: comparisons grow as n^{slopes[0]:.2f}, seconds n^{slopes[1]:.2f}\n"
    return text


def _place(rows: Rows) -> str:
    lines = []
    for d in distinct_of(rows, "place", "d"):
        g = pick(rows, "place", d=d)
        lines.append([d, *(summary(g, figure) for figure in ("tau", "fitted", "cost"))])
    return table(["d", "tau", "tau of the 500", "cost in d log2 n"], lines)


def draw(rows: Rows, path: Path) -> None:
    from matplotlib.figure import Figure

    names = distinct(rows, "data")
    if not names:
        return
    figure = Figure(figsize=(4.5 * len(names), 4), layout="constrained")
    for ax, data in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        ax.set(title=data, xlabel="comparisons", ylabel="tau")
        for method in distinct(rows, "method"):
            at = {b: pick(rows, "curve", data=data, method=method, budget=b) for b in BUDGETS}
            taus = {b: median(g, "tau") for b, g in at.items() if g}
            ax.plot(list(taus), list(taus.values()), marker="o", label=method)
        ax.legend()
    figure.savefig(path)
