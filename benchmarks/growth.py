"""Growth of ChooseBasis from 10³ to 10⁵ objects: time, memory, comparisons, and the exponents."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import nearer
from benchmarks.harness import Cell, Rows, grid, table

TIMED = True


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    sizes = (1_000, 3_162, 10_000, 31_623, 100_000)
    yield from grid("basis", measured, n=sizes, seed=range(seeds or (3 if full else 1)))


def measured(n: int, seed: int) -> dict[str, float]:
    nearer.run(nearer.choose_basis(100, random_state=0), _oracle(100, 0))  # compile
    oracle, times = _oracle(n, seed), []
    for _ in range(3 if n <= 10_000 else 1):
        start = time.perf_counter()
        basis = nearer.run(nearer.choose_basis(n, random_state=seed), oracle)
        times.append(time.perf_counter() - start)
    tracemalloc.start()
    nearer.run(nearer.choose_basis(n, random_state=seed), oracle)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "dimension": basis.dimension,
        "heads": len(basis.rankings),
        "comparisons": basis.n_comparisons,
        "rounds": basis.n_rounds,
        "seconds": min(times),
        "peak": peak,
    }


def _oracle(n: int, seed: int) -> nearer.PointOracle:
    return nearer.PointOracle(nearer.datasets.make_cube(n, 3, random_state=n + seed))


def page(rows: Rows, folder: Path) -> str:
    heads = ["n", "dimension", "heads", "comparisons", "rounds", "seconds", "peak MiB"]
    text = table(
        [*heads, "bytes/(n·heads)"],
        (
            (
                f"{r['n']:,}",
                *(r[key] for key in heads[1:3]),
                f"{r['comparisons']:,}",
                f"{r['rounds']:,}",
                f"{r['seconds']:.3f}",
                f"{r['peak'] / 2**20:.1f}",
                f"{r['peak'] / r['n'] / r['heads']:.0f}",
            )
            for r in rows
        ),
    )
    sizes = np.log([r["n"] for r in rows])
    if len(set(sizes)) > 1:
        for what in ("seconds", "comparisons", "peak"):
            slope = np.polyfit(sizes, np.log([r[what] for r in rows]), 1)[0]
            text += f"\n{what} grow as n^{slope:.2f}\n"
    return text
