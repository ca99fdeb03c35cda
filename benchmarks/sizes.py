"""nearer.embed from 8 to 3,000 objects in 1 to 8 dimensions: dimension, cost, tau, kNN.

Beside it, random questions, as many as `nearer.embed` asked, fitted with soft ordinal embedding in
the true dimension. The choice of questions was developed on normal and uniform points; here it is
judged on five other families, then on heavy tails, far clusters and measured data with many ties,
and at last where rounds count.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nearer
from benchmarks.harness import Cell, Rows, counted, distinct, grid, median, pick, summary, table
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.metrics import knn_precision, mean_kendall_tau
from nearer.questions import answered, balanced_questions

DOCS = "sizes.md"
FAMILIES = ("ball", "laplace", "mixture", "student", "lattice")
SIZES = {
    1: (8, 20, 40, 100, 300, 1000),
    2: (20, 30, 60, 100, 300),
    3: (20, 40, 100, 300, 500, 1000, 3000),
    5: (30, 60, 150, 500, 1000),
    8: (90, 200, 1000),
}
SHORT = {1: (20, 100), 2: (30, 100), 3: (40, 100, 300), 5: (60, 150), 8: (90,)}
FEW = {1: (5, 8, 12), 2: (5, 8, 12), 3: (8, 12, 16), 5: (12, 20)}
PLACES = {  # objects, places along an axis, axes
    "60 on a 3 × 3 grid": (60, 3, 2),
    "200 on a 5 × 5 grid": (200, 5, 2),
    "300 on a 10 × 10 grid": (300, 10, 2),
    "400 on a 4 × 4 × 4 grid": (400, 4, 3),
    "150 on 10 places of a line": (150, 10, 1),
    "3,200 on a 5 × 5 grid": (3200, 5, 2),
}
LATTICES = {"a 15 × 15 lattice": (15, 2), "a 5 × 5 × 5 lattice": (5, 3)}
HARD = ("lognormal line", "Student t, 1.5", "far clusters", "iris", "wine", "breast cancer")
RANDOM_UP_TO = 1000


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    numbers = range(seeds or (4 if full else 2))
    for d, sizes in (SIZES if full else SHORT).items():
        yield from grid("grid", measured, d=[d], n=sizes, family=FAMILIES, seed=numbers)
    for d, sizes in FEW.items():
        yield from grid("few", ranged, d=[d], n=sizes, family=FAMILIES[:3], seed=numbers)
    yield from grid(
        "hard", hard, name=(*HARD, *PLACES, *LATTICES), seed=numbers[: 3 if full else 1]
    )
    sizes = (60, 500, 100_000) if full else (60, 500)
    yield from grid("rounds", rounds, n=sizes, seed=numbers)


def points(family: str, n: int, d: int, seed: int) -> NDArray[np.float64]:
    """Points of a family."""
    rng = np.random.default_rng([FAMILIES.index(family), n, d, seed])
    match family:
        case "ball":
            X = rng.normal(size=(n, d))
            return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)
        case "laplace":
            return rng.laplace(size=(n, d))
        case "mixture":
            centres = 3 * rng.normal(size=(4, d))
            return centres[rng.integers(4, size=n)] + rng.normal(size=(n, d))
        case "student":
            return rng.standard_t(3, size=(n, d))
        case _:
            side = int(np.ceil(n ** (1 / d)))
            cells = rng.permutation(side**d)[:n]
            corners = np.stack(np.unravel_index(cells, (side,) * d), axis=1)
            return corners + 0.2 * rng.normal(size=(n, d))


def measured(d: int, n: int, family: str, seed: int) -> dict[str, float]:
    """One run, and as many random questions."""
    X = points(family, n, d, seed)
    figures = embedded(X, seed)
    if n > RANDOM_UP_TO:
        return figures
    rng = np.random.default_rng(seed)
    most = n * (n - 1) * (n - 2) // 2
    questions = balanced_questions(n, min(int(figures["comparisons"]), most), rng)
    answers = nearer.PointOracle(X)(questions)
    Y = fit_from_more_dimensions(answered(questions, answers), n, d, rng=rng).positions
    return figures | {"random_tau": mean_kendall_tau(X, Y), "random_knn": knn_precision(X, Y)}


def ranged(d: int, n: int, family: str, seed: int) -> dict[str, float]:
    """Few objects: the range of dimensions that remain possible."""
    X = points(family, n, d, seed)
    embedding = nearer.embed(nearer.PointOracle(X), n, random_state=seed, progress=False)
    assert embedding.dimension_low is not None
    assert embedding.dimension_high is not None
    return {
        "dimension": embedding.dimension,
        "determined": float(bool(embedding.determined)),
        "inside": float(embedding.dimension_low <= d <= embedding.dimension_high),
        "tau": mean_kendall_tau(X, embedding.positions),
    }


def embedded(X: NDArray[np.float64], seed: int) -> dict[str, float]:
    """What `nearer.embed` finds, and what it costs."""
    n = len(X)
    embedding = nearer.embed(nearer.PointOracle(X), n, random_state=seed, progress=False)
    heads = None if n <= 3000 else 100
    return {
        "dimension": embedding.dimension,
        "comparisons": embedding.n_comparisons,
        "rounds": embedding.n_rounds,
        "tau": mean_kendall_tau(X, embedding.positions, n_heads=heads, random_state=0),
        "knn": knn_precision(X, embedding.positions) if n <= 3000 else float("nan"),
    }


def hard(name: str, seed: int) -> dict[str, float]:
    """Data with heavy tails, far clusters or many ties."""
    from sklearn import datasets

    rng = np.random.default_rng(seed)
    match name:
        case "lognormal line":
            X = rng.lognormal(size=(300, 1))
        case "Student t, 1.5":
            X = rng.standard_t(1.5, size=(200, 3))
        case "far clusters":
            X = rng.normal(size=(100, 3))
            X[::2, 0] += 100
        case "iris":
            X = datasets.load_iris().data
        case "wine":
            X = datasets.load_wine().data
        case "breast cancer":
            X = datasets.load_breast_cancer().data
        case _ if name in PLACES:
            n, k, d = PLACES[name]
            X = rng.integers(k, size=(n, d)).astype(float)
        case _:
            k, d = LATTICES[name]
            X = rng.permutation(np.indices((k,) * d).reshape(d, -1).T.astype(float))
    figures = embedded(X, seed)
    return figures | {"unit": figures["comparisons"] / len(X) / np.log2(len(X))}


def rounds(n: int, seed: int) -> dict[str, float]:
    """Normal points in three dimensions."""
    return embedded(np.random.default_rng([n, seed]).normal(size=(n, 3)), seed)


def page(rows: Rows, folder: Path) -> str:
    text = "# `nearer.embed` at the sizes people have\n\n"
    text += "Medians (least to most) of five families. `python -m benchmarks sizes --full`\n\n"
    text += table(
        ["d", "n", "dimension: runs", "comparisons", "allowed", "rounds", "tau", "kNN", "random"],
        (_line(pick(rows, "grid", d=d, n=n)) for d, n in distinct(pick(rows, "grid"), "d", "n")),
    )
    text += (
        "\nFew objects: how often the dimension counts as determined, and how often the true one "
    )
    text += "is in the range:\n\n" + table(
        ["d", "n", "dimension: runs", "determined", "inside", "tau"],
        (
            (
                str(d),
                str(n),
                counted(own, "dimension"),
                f"{sum(row['determined'] for row in own):.0f} of {len(own)}",
                f"{sum(row['inside'] for row in own):.0f} of {len(own)}",
                summary(own, "tau", 3),
            )
            for d, n in distinct(pick(rows, "few"), "d", "n")
            if (own := pick(rows, "few", d=d, n=n))
        ),
    )
    text += "\nHeavy tails, far clusters, ties:\n\n" + table(
        ["data", "dimension: runs", "n·log2 n comparisons", "tau", "kNN"],
        (
            (name, counted(own, "dimension"), *(summary(own, f, 3) for f in ("unit", "tau", "knn")))
            for name in distinct(pick(rows, "hard"), "name")
            if (own := pick(rows, "hard", name=name))
        ),
    )
    return (
        text
        + "\nFew rounds, three dimensions:\n\n"
        + table(
            ["n", "dimension: runs", "comparisons", "rounds", "tau"],
            (
                (
                    f"{n:,}",
                    counted(own, "dimension"),
                    *(summary(own, figure) for figure in ("comparisons", "rounds", "tau")),
                )
                for n in distinct(pick(rows, "rounds"), "n")
                if (own := pick(rows, "rounds", n=n))
            ),
        )
    )


def _line(rows: Rows) -> tuple[str, ...]:
    d, n = rows[0]["d"], rows[0]["n"]
    random = "–"
    if "random_tau" in rows[0]:
        random = f"{median(rows, 'random_tau'):.3f} / {median(rows, 'random_knn'):.3f}"
    return (
        str(d),
        f"{n:,}",
        counted(rows, "dimension"),
        summary(rows, "comparisons"),
        f"{1.5 * n * d * np.log2(n) + 25 * n:,.0f}",
        f"{median(rows, 'rounds'):,.0f}",
        summary(rows, "tau", 3),
        summary(rows, "knn", 3),
        random,
    )
