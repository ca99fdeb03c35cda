"""Where answers are enough: the quality that is expected beside the true one.

Exact answers first: `nearer.adaptive` stops when the τ that near ties let it expect reaches a
quality. Then `nearer.adaptive` asks people who err, at random or near ties, and stops
by its posterior. Short: τ expected and true at growing numbers of answers. Full: more points, and
what stopping at .99 costs and brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks.dimension import points
from benchmarks.harness import Cell, Rows, distinct, grid, pick, table
from nearer.algorithms.choose_questions import most_questions

FAMILIES = ("cube", "ball", "mixture")
SIZES = ((30, 1), (60, 2), (60, 3), (150, 3))  # objects, dimensions
EXACT = ((30, 2), (60, 3), (100, 1), (150, 5), (500, 3))
QUALITIES = (0.95, 0.97, 0.98, 0.99, 0.995)
RATES = (0.1, 0.2)
HARDLY_RIGHT = 0.4  # share of wrong answers that leaves little to believe
SHARES = (0.2, 0.4, 0.7, 1.0)  # of the default budget


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    sizes = SIZES if full else SIZES[:3]
    axes: dict[str, Any] = {"family": FAMILIES, "size": sizes, "rate": RATES}
    seeds_ = axes["seed"] = range(seeds or (4 if full else 1))
    yield from grid("exact", exact, quality=QUALITIES, family=FAMILIES, size=EXACT, seed=seeds_)
    yield from grid("expected", expected, share=SHARES, **axes)
    yield from grid("expected", expected, share=SHARES[:2], **axes | {"rate": [HARDLY_RIGHT]})
    yield from grid("stopped", stopped, **axes)


def exact(quality: float, family: str, size: tuple[int, int], seed: int) -> dict[str, Any]:
    n, d = size
    X = points(family, n, d, np.random.default_rng(seed))
    strategy = nearer.adaptive(n, quality=quality, random_state=seed)
    result = nearer.run(strategy, nearer.PointOracle(X))
    return {
        "expected": result.details["expected_tau"],
        "tau": nearer.metrics.mean_kendall_tau(X, result.positions),
        "units": result.n_comparisons / (n * d * np.log2(n)),
    }


def expected(
    share: float, family: str, size: tuple[int, int], rate: float, seed: int
) -> dict[str, Any]:
    return _run(family, size, rate, seed, share, quality=1.0)


def stopped(family: str, size: tuple[int, int], rate: float, seed: int) -> dict[str, Any]:
    return _run(family, size, rate, seed, share=1.0, quality=0.99)


def _run(
    family: str, size: tuple[int, int], rate: float, seed: int, share: float, quality: float
) -> dict[str, Any]:
    n, d = size
    X = points(family, n, d, np.random.default_rng(seed))
    people = nearer.NoisyOracle(nearer.PointOracle(X), rate, random_state=seed)
    budget = round(share * n * most_questions(n, d, rate))
    strategy = nearer.adaptive(n, budget=budget, noise=rate, quality=quality, random_state=seed)
    result = nearer.run(strategy, people)
    return {
        "expected": result.details["expected_tau"],
        "tau": nearer.metrics.mean_kendall_tau(X, result.positions),
        "dimension": result.dimension,
        "units": result.n_comparisons / (n * np.log2(n)),
    }


def page(rows: Rows, folder: Path) -> str:
    lines = []
    for size, quality in distinct(pick(rows, "exact"), "size", "quality"):
        some = pick(rows, "exact", size=size, quality=quality)
        units, said, true = (
            np.array([row[key] for row in some]) for key in ("units", "expected", "tau")
        )
        figures = (f"{np.median(values):.3f}" for values in (said, true))
        worst = f"{(said - true).max():+.3f}"
        lines.append([*size, quality, f"{np.median(units):.2f}", *figures, worst])
    head = ["n", "d", "quality", "n·d·log2 n", "τ expected", "τ", "most too high"]
    exact_text = "Exact answers:\n\n" + table(head, lines) + "\nDoubtful answers:\n\n"
    lines = []
    for size, rate, share in distinct(pick(rows, "expected"), "size", "rate", "share"):
        some = pick(rows, "expected", size=size, rate=rate, share=share)
        said, true = (np.array([row[key] for row in some]) for key in ("expected", "tau"))
        lines.append(
            [
                *size,
                f"{rate:.0%}",
                f"{some[0]['units']:.1f}",
                f"{np.median(said):.3f}",
                f"{np.median(true):.3f}",
                f"{(said - true).max():+.3f}",
            ]
        )
    head = ["n", "d", "wrong", "n·log2 n", "τ expected", "τ", "most too high"]
    text = exact_text + table(head, lines) + "\nStopped at .99:\n\n"
    lines = []
    for size, rate in distinct(pick(rows, "stopped"), "size", "rate"):
        some = pick(rows, "stopped", size=size, rate=rate)
        units, true = (np.median([row[key] for row in some]) for key in ("units", "tau"))
        least = min(row["tau"] for row in some)
        lines.append([*size, f"{rate:.0%}", f"{units:.1f}", f"{true:.3f}", f"{least:.3f}"])
    return text + table(["n", "d", "wrong", "n·log2 n", "τ", "least τ"], lines)
