"""nearer.embed with oracles that no dimension fits, and unusual ones: cost, τ, processor time.

Each cell must end in bounded time, whatever the oracle answers. τ is between the oracle's own
distances and those of the map; a dash if the oracle has none.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks.harness import Cell, Rows, distinct, grid, median, pick, table
from nearer.metrics import mean_kendall_tau

DOCS = "any-oracle.md"
ORACLES = (
    "20-D ball",
    "city block",
    "Chebyshev",
    "Hamming",
    "tree",
    "edit distance",
    "8 × 8 digits",
    "random distances",
    "coins",
    "contradictions",
    "constant",
    "one place",
)


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    yield from grid(
        "any", measured, name=ORACLES, n=[1000 if full else 150], seed=range(seeds or 1)
    )


def make(  # noqa: PLR0911 - one of each kind
    name: str, n: int, seed: int
) -> tuple[Callable[..., Any], Any, Any]:
    """An oracle, and the points or distances that it answers by, with their metric."""
    rng = np.random.default_rng([ORACLES.index(name), seed])
    match name:
        case "20-D ball":
            X = rng.normal(size=(n, 20))
            X *= rng.random((n, 1)) ** (1 / 20) / np.linalg.norm(X, axis=1, keepdims=True)
            return nearer.PointOracle(X), X, "euclidean"
        case "city block" | "Chebyshev":
            X, metric = rng.normal(size=(n, 8)), name.replace(" ", "").lower()
            return nearer.PointOracle(X, metric=metric), X, metric
        case "Hamming":
            X = rng.integers(2, size=(n, 30)).astype(float)
            return nearer.PointOracle(X, metric="hamming"), X, "hamming"
        case "8 × 8 digits":
            from sklearn.datasets import load_digits

            X = load_digits().data[rng.permutation(1797)[:n]]
            return nearer.PointOracle(X), X, "euclidean"
        case "tree":
            D = _tree(n, rng)
        case "edit distance":
            D = _edits(n, rng)
        case "random distances":
            D = rng.random((n, n))
            D += D.T
            np.fill_diagonal(D, 0)
        case "coins":
            return lambda q: rng.random(len(q)) < 0.5, None, None
        case "contradictions":
            return lambda q: (q[:, 0] + 2 * q[:, 1] + 3 * q[:, 2]) % 5 < 2, None, None
        case "constant":
            return lambda q: np.ones(len(q), dtype=bool), None, None
        case _:
            return nearer.PointOracle(np.zeros((n, 2))), None, None
    return nearer.DistanceOracle(D), D, "precomputed"


def _tree(n: int, rng: np.random.Generator) -> Any:
    """Lengths of the paths between the nodes of a random tree."""
    D = np.zeros((n, n))
    for new in range(1, n):
        parent = int(rng.integers(new))
        D[new, :new] = D[parent, :new] + rng.exponential()
        D[:new, new] = D[new, :new]
    return D


def _edits(n: int, rng: np.random.Generator) -> Any:
    """Edit distances of random words of ten letters out of four."""
    words, D = rng.integers(4, size=(n, 10)), np.zeros((n, n))
    for i, word in enumerate(words):
        row = np.tile(np.arange(11), (n, 1))
        for k, letter in enumerate(word, 1):
            last, row = row, np.empty_like(row)
            row[:, 0] = k
            for j in range(1, 11):
                change = last[:, j - 1] + (words[:, j - 1] != letter)
                row[:, j] = np.minimum(change, 1 + np.minimum(last[:, j], row[:, j - 1]))
        D[i] = row[:, -1]
    return D


def measured(name: str, n: int, seed: int) -> dict[str, float]:
    """One run."""
    oracle, truth, metric = make(name, n, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        embedding = nearer.embed(oracle, n, random_state=seed, progress=False)
    seconds = time.process_time() - began
    tau = float("nan")
    if truth is not None:
        tau = mean_kendall_tau(truth, embedding.positions, metric=metric)
    return {
        "dimension": embedding.dimension,
        "determined": float(bool(embedding.determined)),
        "comparisons": embedding.n_comparisons,
        "rounds": embedding.n_rounds,
        "tau": tau,
        "expected": embedding.details["expected_tau"],
        "processor": seconds,
    }


def page(rows: Rows, folder: Path) -> str:
    text = "# Any oracle\n\n`python -m benchmarks any_oracle --full`\n\n"
    return text + table(
        ["oracle", "n", "dimension", "comparisons", "rounds", "tau", "expected", "processor s"],
        (
            (
                name,
                n,
                *(
                    f"{median(own, key):,.{digits}f}".replace("nan", "–")
                    for key, digits in (
                        ("dimension", 0),
                        ("comparisons", 0),
                        ("rounds", 0),
                        ("tau", 3),
                        ("expected", 3),
                        ("processor", 1),
                    )
                ),
            )
            for name, n in distinct(pick(rows, "any"), "name", "n")
            if (own := pick(rows, "any", name=name, n=n))
        ),
    )
