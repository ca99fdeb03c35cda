"""Large problems on the processor: embed, noisy answers, SOE beside cblearn, 1 core and 2."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nearer
from benchmarks.harness import Cell, Rows, distinct, grid, median, pick, summary, table
from benchmarks.soe import _loss, _material, _theirs, cblearn_environment
from nearer.questions import answered, random_questions

TIMED = True
CASE = "random 1 M, n = 10,000"
FLIP = 0.1
_BLOCK = 1 << 20  # triplets made at a time
QUESTIONS = 200_000  # random ones that Kendall's τ and held-out errors are means over
MANY: dict[int, tuple[int, dict[str, Any]]] = {  # objects: random triplets, options of SOE
    50_000: (5_000_000, {}),
    100_000: (6_400_000, {"init": "random", "tol": 1e-4}),
    1_000_000: (76_000_000, {"init": "random", "tol": 1e-4}),  # as on a GPU, see benchmarks/gpu.py
}


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    runs = range(seeds or 1)
    noisy, many = (300, 1_000, 2_000), tuple(MANY)
    yield from grid("embed", embedded, n=(10_000, 100_000, 1_000_000), seed=runs)
    yield from grid("noisy", noisy_run, n=(*noisy, 100_000) if full else noisy, seed=runs)
    yield from grid("soe", fitted, n_cores=(1, 2), seed=runs)
    yield from grid("many", fitted_many, n=many if full else many[:2], seed=runs)
    if full:
        yield from grid("cblearn", theirs, seed=runs)


def embedded(n: int, seed: int) -> dict[str, float]:
    return _apart("exact", n, seed)


def noisy_run(n: int, seed: int) -> dict[str, float]:
    return _apart("noisy", n, seed)


def fitted(n_cores: int, seed: int) -> dict[str, float]:
    return _apart("soe", n_cores, seed, n_cores=n_cores)


def fitted_many(n: int, seed: int) -> dict[str, float]:
    return _apart("many", n, seed)


def theirs(seed: int) -> dict[str, float]:
    triplets, start = _material(CASE, seed)
    seconds, positions = _theirs(cblearn_environment(), triplets, start)
    return {"seconds": seconds, "loss": _loss(positions, triplets)}


def page(rows: Rows, folder: Path) -> str:
    text = ""
    for part, what in (("embed", "exact answers"), ("noisy", f"{FLIP:.0%} of answers wrong")):
        lines = []
        for n in distinct(pick(rows, part), "n"):
            some = pick(rows, part, n=n)
            figures = [summary(some, name, 3) for name in ("seconds", "processor", "gib", "tau")]
            lines.append([f"{n:,}", *figures, summary(some, "per_object", 3)])
        head = ["objects", "seconds", "processor seconds", "GiB", "τ", "comparisons an object"]
        text += f"\n`nearer.embed`, normal points in three dimensions, {what}:\n\n" + table(
            head, lines
        )
        sizes = np.log([row["n"] for row in pick(rows, part)])
        if len(set(sizes)) > 1:
            logs = np.log([row["processor"] for row in pick(rows, part)])
            text += f"\nprocessor time grows as n^{np.polyfit(sizes, logs, 1)[0]:.2f}\n"
    return text + _beside(rows) + _many(rows)


def _beside(rows: Rows) -> str:
    """One core, two, and cblearn."""
    ours = {cores: pick(rows, "soe", n_cores=cores) for cores in (1, 2)}
    if not all(ours.values()):
        return ""
    seconds = {cores: median(result, "seconds") for cores, result in ours.items()}
    text = f"\n`SOE`, 1 M triplets of 10,000 objects: {seconds[2]:.1f} s on two cores, "
    text += f"{seconds[1] / seconds[2]:.2f} times as fast as on one"
    if result := pick(rows, "cblearn"):
        text += f", {median(result, 'seconds') / seconds[2]:.0f} times as fast as cblearn"
    return text + ".\n"


def _many(rows: Rows) -> str:
    """Random triplets of more and more objects."""
    lines, each = [], {}
    for n in distinct(pick(rows, "many"), "n"):
        result, (m, options) = pick(rows, "many", n=n), MANY[n]
        figures = [summary(result, name, 3) for name in ("seconds", "processor", "gib", "error")]
        start = options.get("init", "above")
        lines.append([f"{n:,}", f"{m:,}", start, *figures])
        if start == "random":
            each[n] = 1e6 * median(result, "processor") / m
    if not lines:
        return ""
    head = ["objects", "triplets", "start", "seconds", "processor seconds", "GiB"]
    text = "\n`SOE`, uniform points in the plane, random triplets:\n\n"
    text += table([*head, "held-out error"], lines)
    if len(each) > 1:
        (few, one), (many, other) = each.items()
        text += f"\nA triplet takes {one:.2f} µs of processor time among {few:,} objects, "
        text += f"{other:.2f} µs, {other / one:.2f} times as much, among {many:,}.\n"
    return text


# each measurement has a process of its own, so that its memory is its own


def _apart(what: str, size: int, seed: int, n_cores: int | None = None) -> dict[str, float]:
    threads = {} if n_cores is None else {"NUMBA_NUM_THREADS": str(n_cores)}
    command = [sys.executable, "-m", "benchmarks.scale", what, str(size), str(seed)]
    done = subprocess.run(
        command, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{what} {size} failed:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measured(
    work: Callable[[], NDArray[np.float64]],
) -> tuple[dict[str, float], NDArray[np.float64]]:
    begin, processor = time.perf_counter(), time.process_time()
    positions = work()
    figures = {
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - processor,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    return figures, positions


def _embed(what: str, n: int, seed: int) -> dict[str, float]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    oracle: nearer.Oracle = nearer.PointOracle(X)
    if what == "noisy":
        oracle = nearer.NoisyOracle(oracle, FLIP, random_state=seed)
    # compile: so many exact answers are about a core and others, as noisy ones are before
    nearer.embed(oracle, min(n, 4_000), random_state=seed, progress=False)
    asked = []

    def work() -> NDArray[np.float64]:
        embedding = nearer.embed(oracle, n, random_state=seed, keep_triplets=False, progress=False)
        asked.append(embedding.n_comparisons)
        return embedding.positions

    figures, positions = _measured(work)
    q = random_questions(n, QUESTIONS, np.random.default_rng(0))
    right = nearer.PointOracle(X)(q) == nearer.PointOracle(positions)(q)
    return figures | {"tau": 2 * float(right.mean()) - 1, "per_object": asked[0] / n}


def _fit(seed: int) -> dict[str, float]:
    triplets, start = _material(CASE, seed)
    nearer.SOE(1, random_state=0).fit(np.array([[0, 1, 2], [2, 1, 0]]))  # compile
    model = nearer.SOE(3, init=start, tol=1e-7)
    figures, positions = _measured(lambda: model.fit(triplets, n_objects=len(start)).embedding_)
    return figures | {"loss": _loss(positions, triplets)}


def _fit_many(n: int, seed: int) -> dict[str, float]:
    m, options = MANY[n]
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    oracle = nearer.PointOracle(X)
    triplets = np.empty((m, 3), dtype=np.int32)
    for begin in range(0, m, _BLOCK):
        rows = random_questions(n, min(_BLOCK, m - begin), rng)
        triplets[begin : begin + _BLOCK] = answered(rows, oracle(rows))
    nearer.SOE(1, random_state=0).fit(np.array([[0, 1, 2], [2, 1, 0]]))  # compile
    model = nearer.SOE(2, device="cpu", random_state=seed, **options)
    figures, positions = _measured(lambda: model.fit(triplets, n_objects=n).embedding_)
    q = random_questions(n, QUESTIONS, rng)
    return figures | {"error": float(np.mean(oracle(q) != nearer.PointOracle(positions)(q)))}


if __name__ == "__main__":
    _what, _size, _seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if _what == "soe":
        _figures = _fit(_seed)
    else:
        _figures = (_fit_many if _what == "many" else partial(_embed, _what))(_size, _seed)
    print(json.dumps(_figures))
