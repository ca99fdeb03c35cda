"""False alarms and power of `nearer.compare` at 5 %.

Two maps of 20 objects in the plane are fitted to 800 random answers each, every tenth of them
wrong, or none. *Unrelated*: the points of the second are drawn anew, so that agreement is a false
alarm. *Blurred*: they are those of the first with normal noise of so many standard deviations of
the points, which the test of agreement should detect. *Moved*: they are those of the first, but for
three objects that are shifted by so many standard deviations; of these the test of displacements
should find many, of the others one in 20.

Short: 10 seeds. Full: 200.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks.coverage import answers
from benchmarks.harness import Cell, Rows, distinct, grid, pick, table

N, M, MOVED, LEVEL = 20, 800, 3, 0.05
RULES = ("flips", "exact")


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    runs = range(seeds or (200 if full else 10))
    yield from grid("unrelated", agreement, rule=RULES, blur=(np.inf,), seed=runs)
    yield from grid("blurred", agreement, rule=RULES, blur=(1.0, 2.0, 4.0), seed=runs)
    yield from grid("moved", displaced, rule=RULES, by=(0.0, 0.5, 1.0, 2.0, 4.0), seed=runs)


def agreement(rule: str, blur: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X, other = rng.normal(size=(2, N, 2))
    maps = _maps(X, other if blur == np.inf else X + blur * other, rule, rng)
    comparison = nearer.compare(*maps, n_draws=20, random_state=seed)
    return {"correlation": comparison.correlation, "p": comparison.p_value}


def displaced(rule: str, by: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    way = rng.normal(size=(MOVED, 2))
    Y = X.copy()
    Y[:MOVED] += by * way / np.linalg.norm(way, axis=1, keepdims=True)
    comparison = nearer.compare(*_maps(X, Y, rule, rng), n_permutations=1, random_state=seed)
    alarms = comparison.moved < LEVEL
    return {"moved": float(alarms[:MOVED].mean()), "others": float(alarms[MOVED:].mean())}


def _maps(X: Any, Y: Any, rule: str, rng: np.random.Generator) -> list[nearer.Embedding]:
    return [
        nearer.fit(answers(Z, M, rule, rng), n_components=2, n_objects=N, random_state=rng)
        for Z in (X, Y)
    ]


def page(rows: Rows, folder: Path) -> str:
    agreed, moved = [], []
    for part in ("unrelated", "blurred"):
        for rule, blur in distinct(pick(rows, part), "rule", "blur"):
            some = pick(rows, part, rule=rule, blur=blur)
            share = np.mean([row["p"] <= LEVEL for row in some])
            mean = np.mean([row["correlation"] for row in some])
            agreed.append([part, rule, f"{blur:g}", len(some), f"{mean:.2f}", f"{share:.3f}"])
    for rule, by in distinct(pick(rows, "moved"), "rule", "by"):
        some = pick(rows, "moved", rule=rule, by=by)
        shares = [f"{np.mean([row[key] for row in some]):.3f}" for key in ("moved", "others")]
        moved.append([rule, f"{by:g}", len(some), *shares])
    first = table(["maps", "answers", "blur", "seeds", "correlation", "p ≤ 0.05"], agreed)
    second = table(["answers", "shift", "seeds", "shifted found", "others found"], moved)
    return f"# Comparing maps\n\nDo they agree?\n\n{first}\nWhich objects moved?\n\n{second}"
