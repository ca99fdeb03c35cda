"""Tuned numbers halved and doubled: comparisons, tau, right dimension.

On families that were not used to set them: exact answers to chosen questions, also with heavy
tails, far clusters, repeated values, tied distances, coincident objects and a thin axis; noisy
answers; and exact answers to random questions, many and few. A number that changes nothing in any
of them is not worth having. The row "nothing, other seeds" says what chance alone changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nearer
from benchmarks import sizes
from benchmarks.harness import Cell, Rows, cell, distinct, pick, table
from nearer.metrics import mean_kendall_tau
from nearer.questions import answered, balanced_questions

#: situation → module → its numbers, and what they are
NUMBERS = {
    "exact": {
        "algorithms.choose_questions": {
            "GROWTH": "a round as a share of the answers",
            "_MOST": "comparisons for each bit that positions hold",
        },
    },
    "noisy": {
        "algorithms.choose_questions": {
            "RANDOM_SHARE": "share of random questions",
            "FIRST": "questions an object in the first round",
            "CANDIDATES": "drawn for each question",
        },
        "fitting.belief": {
            "_GROWTH": "of the answers, until all is looked at again",
        },
        "fitting.heldout": {
            "FOLDS": "of held-out answers",
            "SAME": "standard errors between priors, and dimensions, that are as good",
            "LEAST_PRIOR": "at which answers are little more than guesses",
        },
        "fitting.posterior": {
            "QUESTIONS": "held-out answers that settle a comparison",
            "WEAK_PRIOR": "with which a search begins",
        },
    },
    "random": {
        "fitting.solver": {"_CLOUD": "spread of the random cloud"},
        "fitting.initial": {
            "EXTRA": "dimensions too many at the start",
            "EXACT_PRIOR": "width of the prior for exact answers",
        },
    },
    "few": {"fitting.initial": {"FEWEST": "answers a coordinate that may tell"}},
}
#: situation → family, dimensions, objects
DATA = {
    "exact": (
        ("mixture", 1, 100),
        ("laplace", 3, 60),
        ("student", 3, 150),
        ("mixture", 8, 90),
        ("laplace", 3, 18),
        ("lognormal", 1, 100),
        ("far clusters", 3, 60),
        ("repeated", 2, 50),
        ("few places", 2, 150),
        ("crowd", 2, 60),
        ("corners", 2, 60),
        ("thin", 3, 60),
    ),
    "noisy": (("laplace", 2, 40), ("mixture", 3, 40)),
    "random": (("laplace", 2, 40), ("mixture", 3, 60)),
    "few": (("laplace", 2, 40), ("mixture", 3, 60)),
}
WRONG = 0.1  # share of wrong answers
FACTORS = (0.5, 2.0)


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    for seed, (situation, modules) in product(range(seeds or (4 if full else 1)), NUMBERS.items()):
        numbers = [("", ""), *((m, name) for m, names in modules.items() for name in names)]
        for (family, d, n), (module, name) in product(DATA[situation], numbers):
            data = {"family": family, "d": d, "n": n, "seed": seed}
            for factor in FACTORS if module else (1.0, *FACTORS):
                number = {"module": module, "name": name, "factor": factor}
                yield cell(situation, changed, situation=situation, **number, **data)


def changed(
    situation: str, module: str, name: str, factor: float, family: str, d: int, n: int, seed: int
) -> dict[str, float]:
    """A run with one number changed; without a number, with another seed."""
    X = points(family, n, d, seed)
    with scaled(module, name, factor):
        embedding = RUNS[situation](X, seed if module or factor == 1 else int(1000 * factor) + seed)
    return {
        "right": float(embedding.dimension == d),
        "comparisons": embedding.n_comparisons / n,
        "tau": mean_kendall_tau(X, embedding.positions),
    }


def points(family: str, n: int, d: int, seed: int) -> NDArray[np.float64]:
    """Points of a family, of `benchmarks.sizes` or of a harder one."""
    rng = np.random.default_rng([n, d, seed])
    hard: dict[str, Callable[[], NDArray[np.float64]]] = {
        "lognormal": lambda: rng.lognormal(size=(n, d)),
        "far clusters": lambda: (
            rng.normal(size=(n, d)) + 100.0 * np.outer(np.arange(n) % 2 == 0, np.arange(d) == 0)
        ),
        "thin": lambda: rng.laplace(size=(n, d)) * ([1.0] * (d - 1) + [0.1]),
        "repeated": lambda: rng.integers(12, size=(n, d)).astype(np.float64),
        "few places": lambda: rng.integers(5, size=(n, d)).astype(np.float64),
        "corners": lambda: rng.integers(2, size=(n, d)).astype(np.float64),
        "crowd": lambda: rng.laplace(size=(n, d)) * (rng.random((n, 1)) < 0.4),
    }
    return hard[family]() if family in hard else sizes.points(family, n, d, seed)


def _exact(X: NDArray[np.float64], seed: int) -> nearer.Embedding:
    return nearer.run(nearer.adaptive(len(X), random_state=seed), nearer.PointOracle(X))


def _noisy(X: NDArray[np.float64], seed: int) -> nearer.Embedding:
    n = len(X)
    people = nearer.NoisyOracle(nearer.PointOracle(X), WRONG, random_state=seed)
    budget = int(20 * n * np.log2(n))
    return nearer.run(nearer.adaptive(n, budget=budget, random_state=seed), people)


def _random(X: NDArray[np.float64], seed: int, each: int = 30) -> nearer.Embedding:
    """Random questions, so many a coordinate."""
    n, d = X.shape
    questions = balanced_questions(n, each * n * d, np.random.default_rng(seed))
    triplets = answered(questions, nearer.PointOracle(X)(questions))
    return nearer.fit(triplets, n_objects=n, random_state=seed)


RUNS: dict[str, Callable[[NDArray[np.float64], int], nearer.Embedding]] = {
    "exact": _exact,
    "noisy": _noisy,
    "random": _random,
    "few": partial(_random, each=4),
}


@contextmanager
def scaled(module: str, name: str, factor: float) -> Iterator[None]:
    """A number of a module, changed for a while."""
    if not module:
        yield
        return
    source = import_module(f"nearer.{module}")
    value = getattr(source, name)
    new = type(value)(value * factor)
    modules = [source]
    if not name.startswith("_"):  # others have imported it
        nearby = [m for path, m in sys.modules.items() if path.startswith("nearer.")]
        modules += [m for m in nearby if vars(m).get(name) is value]
    try:
        for m in modules:
            setattr(m, name, new)
        yield
    finally:
        for m in modules:
            setattr(m, name, value)


def page(rows: Rows, folder: Path) -> str:
    text = "# Tuned numbers, halved and doubled\n\n"
    text += "Mean changes by ½ and 2× of comparisons, of τ in thousandths, and of how often the "
    text += "dimension is right; – where nothing changed. `python -m benchmarks sensitivity`\n"
    for situation, said in TITLES.items():
        own = pick(rows, situation)
        if own:
            text += f"\n{said}: " + "; ".join(
                f"{family}, d = {d}, n = {n}" for family, d, n in distinct(own, "family", "d", "n")
            )
            head = ["number", "what it is", *(f"{f} {t}" for t in ("½", "2×") for f in FIGURES)]
            lines = (_line(own, *key) for key in distinct(own, "module", "name"))
            text += ".\n\n" + table(head, lines)
    return text


TITLES = {
    "exact": "Exact answers",
    "noisy": "Answers of which a tenth is wrong",
    "random": "Exact answers to random questions",
    "few": "… to few of them, four a coordinate",
}
FIGURES = ("comparisons", "τ", "right")


def _line(rows: Rows, module: str, name: str) -> list[str]:
    key = ("family", "d", "n", "seed")
    plain = {
        tuple(r[k] for k in key): r for r in pick(rows, rows[0]["part"], module="", factor=1.0)
    }
    what = NUMBERS[rows[0]["part"]].get(module, {}).get(name, "nothing, other seeds")
    line = [f"`{module.rsplit('.', maxsplit=1)[-1]}.{name}`" if module else "", what]
    for factor in FACTORS:
        some = pick(rows, rows[0]["part"], module=module, name=name, factor=factor)
        pairs = [(r, plain[at]) for r in some if (at := tuple(r[k] for k in key)) in plain]
        if all(r[f] == p[f] for r, p in pairs for f in ("comparisons", "tau", "right")):
            line += ["–" if pairs else ""] * 3
            continue
        cost = np.mean([r["comparisons"] / p["comparisons"] for r, p in pairs]) - 1
        tau = 1000 * np.mean([r["tau"] - p["tau"] for r, p in pairs])
        right = sum(r["right"] - p["right"] for r, p in pairs)
        line += [f"{cost:+.0%}", f"{tau:+.1f}", f"{right:+.0f} of {len(pairs)}"]
    return line
