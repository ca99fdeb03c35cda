"""Chosen questions beside random ones with the same fit: few answers and many, small sets too.

*simulated*: people whose answers to random comparisons are wrong in one of five; the figure is the
mean Kendall's τ of found and true distances from a head. As many answers as hold so many bits a
coordinate. *recorded*: answers of people, replayed; 36 of the shoes of zappos85 are a small set of
which nearly every question has an answer. The figure is the share of the answers to a quarter of
the sets of three objects, which no question is about, that is predicted.

Each run has the same objects, people and fit on both sides; one run is within about .05 of another,
so differences are means over seeds, with their standard errors. *Its own* is what
`nearer.adaptive` ends with, beside the fit of its answers from nothing.

Short: eight seeds, 3 and 6 bits. Full: 20 seeds, more sizes and bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks._simulated import NOISE, believe, people_who_choose, random_screens
from benchmarks.harness import Cell, Rows, ahead, distinct, grid, median, pick, table
from benchmarks.noise import majority, parts
from nearer.questions import find
from nearer.trials import Task, Trials

SIZES = ((20, 2), (36, 2), (36, 5), (60, 3))  # objects and dimensions
MORE_SIZES = ((36, 3), (100, 3), (100, 5))
TASKS = ("1 of 2", "1 of 4", "2 of 8", "odd-one-out")
RECORDED = (("alieneggs30", 30, 2), ("zappos85", 36, 3), ("zappos85", 85, 3))  # … of data
ANSWERS = (6, 12, 24)  # an object


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    drawn = range(seeds or (20 if full else 8))
    for data, n, d in RECORDED:
        what = {"data": [data], "n": [n], "d": [d], "each": ANSWERS}
        yield from grid("recorded", recorded, **what, seed=drawn)
    bits = (1.5, 3, 6, 15) if full else (3, 6)
    for n, d in SIZES + (MORE_SIZES if full else ()):
        yield from grid("simulated", simulated, n=[n], d=[d], task=TASKS, bits=bits, seed=drawn)


def simulated(n: int, d: int, task: str, bits: float, seed: int) -> dict[str, Any]:
    """Kendall's τ after random screens, and after as many chosen ones."""
    wanted = Task.parse(task)
    budget = round(bits * n * d / math.log2(math.comb(wanted.shown, wanted.choose)))
    X, people, rng = people_who_choose(n, d, task, seed)
    screens = random_screens(n, wanted, budget, rng)
    random = Trials.from_screens(screens, people(screens))
    strategy = nearer.adaptive(
        n, budget=budget, n_components=d, quality=1, task=task, random_state=seed
    )
    result = nearer.run(strategy, people)
    chosen = result.details.get("trials", Trials.from_triplets(result.triplets))
    fits = [believe(t, n, d, split=wanted.is_comparison).fit for t in (random, chosen)]
    tau = [
        float(nearer.metrics.mean_kendall_tau(X, Y))
        for Y in (fits[0].positions, fits[1].positions, result.positions)
    ]
    return dict(zip(("random", "chosen", "own"), tau, strict=True)) | {"answers": budget}


def recorded(data: str, n: int, d: int, each: int, seed: int) -> dict[str, Any]:
    """Share predicted after random questions about n of the objects, and after chosen ones."""
    rng = np.random.default_rng(seed)
    human = nearer.datasets.load_human(data)
    objects = np.sort(rng.permutation(human.n_objects)[:n])
    place, known = find(objects, majority(human.triplets))
    rows = place[known.all(axis=1)]
    out = parts(rows, rng) == 0
    test, train = rows[out], rng.permutation(rows[~out])
    oracle, budget = nearer.RecordedOracle(train), each * n
    strategy = nearer.adaptive(
        n, budget=budget, n_components=d, quality=1, askable=oracle.knows, random_state=seed
    )
    result = nearer.run(strategy, oracle)
    answers = (Trials.from_triplets(train[:budget]), Trials.from_triplets(result.triplets))
    fits = [believe(t, n, d, split=True).fit.positions for t in answers]
    right = [_predicted(X, test) for X in (*fits, result.positions)]
    return dict(zip(("random", "chosen", "own"), right, strict=True)) | {"answers": budget}


def _predicted(X: Any, rows: Any) -> float:
    head, near, far = X[rows.T]
    return float(np.mean(((head - near) ** 2).sum(axis=1) < ((head - far) ** 2).sum(axis=1)))


def page(rows: Rows, folder: Path) -> str:
    text = "# Chosen questions beside random ones, the same fit\n\n"
    text += f"Simulated people, {NOISE:.0%} of random comparisons wrong: τ\n\n"
    lines = []
    for key in distinct(pick(rows, "simulated"), "n", "d", "task", "bits"):
        names = ("n", "d", "task", "bits")
        own = pick(rows, "simulated", **dict(zip(names, key, strict=True)))
        lines.append((*key[:3], f"{own[0]['answers']:,}", *_line(own)))
    text += table(("objects", "d", "task", "answers", *HEAD), lines)
    text += "\nRecorded answers of people to comparisons: share predicted\n\n"
    lines = []
    for data, n, each in distinct(pick(rows, "recorded"), "data", "n", "each"):
        own = pick(rows, "recorded", data=data, n=n, each=each)
        lines.append((data, n, own[0]["d"], f"{own[0]['answers']:,}", *_line(own)))
    return text + table(("data", "objects", "d", "answers", *HEAD), lines)


HEAD = ("random", "chosen", "its own", "ahead of random", "runs")


def _line(rows: Rows) -> tuple[Any, ...]:
    medians = [f"{median(rows, way):.3f}" for way in ("random", "chosen", "own")]
    sides = [[{"seed": r["seed"], "figure": r[way]} for r in rows] for way in ("chosen", "random")]
    return (*medians, ahead(*sides, "figure"), len(rows))
