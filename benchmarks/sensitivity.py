"""Every tuned number of `nearer.adaptive` halved and doubled: dimension, comparisons, tau, kNN.

On families that were not used to set them. What changes nothing is not worth a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import nearer
from benchmarks.harness import Cell, Rows, distinct, grid, median, pick, table
from benchmarks.sizes import points
from nearer.metrics import knn_precision, mean_kendall_tau

#: module of nearer.algorithms → its numbers
NUMBERS = {
    "frame": ("_CHECKS", "_CONFIRMED", "_LIKELY", "_JUDGES"),
    "obeying": (
        "_OBEYED",
        "_TIED",
        "_CLEARLY",
        "_STEPS",
        "_MORE_STEPS",
        "_NEARLY",
        "_DOUBTFUL",
        "_SPREAD",
        "_LEAST_SPREAD",
        "_BENT",
        "_CENTRE_STEPS",
    ),
    "near_ties": ("_APART", "_NEIGHBOURS"),
    "slotting": ("_WORTH_ASKING", "_ANEW", "_BEGINNINGS"),
    "low_dimensional": ("_MEMBERS", "_TO_SLOT", "_IN_FRAME", "_LOCAL", "_GLOBAL", "_FRAME"),
}
SHARES = ("_CONFIRMED", "_LIKELY", "_IN_FRAME")  # what is halved and doubled is the rest to one
DATA = ((1, 100), (3, 60), (5, 150), (3, 500))
FAMILIES = ("laplace", "mixture", "student")


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    data = DATA if full else DATA[:3]
    families = FAMILIES if full else FAMILIES[:2]
    numbers = range(seeds or (4 if full else 1))
    names = [(m, name) for m, names in NUMBERS.items() for name in names]
    for d, n in data:
        where = {"d": [d], "n": [n], "family": families, "seed": numbers}
        yield from grid("as it is", changed, module=[""], name=[""], factor=[1.0], **where)
        for module, name in names:
            yield from grid(
                "changed", changed, module=[module], name=[name], factor=(0.5, 2.0), **where
            )


def changed(
    module: str, name: str, factor: float, d: int, n: int, family: str, seed: int
) -> dict[str, float]:
    """A run with one number changed."""
    X = points(family, n, d, seed)
    with scaled(module, name, factor):
        asking = nearer.adaptive(n, random_state=seed)
        found = nearer.run(asking, nearer.PointOracle(X))
    return {
        "right": float(found.dimension == d),
        "comparisons": found.n_comparisons / n,
        "tau": mean_kendall_tau(X, found.positions),
        "knn": knn_precision(X, found.positions),
    }


@contextmanager
def scaled(module: str, name: str, factor: float) -> Iterator[None]:
    """A number of a module, changed for a while."""
    if not module:
        yield
        return
    home = import_module(f"nearer.algorithms.{module}")
    value = getattr(home, name)
    new = 1 - (1 - value) * factor if name in SHARES else type(value)(value * factor)
    setattr(home, name, new)
    try:
        yield
    finally:
        setattr(home, name, value)


def page(rows: Rows, folder: Path) -> str:
    text = "# Tuned numbers, halved and doubled\n\nMedians over "
    text += ", ".join(f"d = {d}, n = {n}" for d, n in distinct(rows, "d", "n"))
    text += " and the families " + ", ".join(distinct(rows, "family")) + ".\n\n"
    keys = [("as it is", "", "", 1.0)]
    keys += [
        ("changed", *key) for key in distinct(pick(rows, "changed"), "module", "name", "factor")
    ]
    return text + table(
        ["number", "times", "right dimension", "comparisons an object", "tau", "kNN"],
        (
            (
                f"`{module}.{name}`" if module else part,
                f"{factor:g}",
                f"{sum(r['right'] for r in own):.0f} of {len(own)}",
                f"{median(own, 'comparisons'):.1f}",
                f"{median(own, 'tau'):.4f}",
                f"{median(own, 'knn'):.3f}",
            )
            for part, module, name, factor in keys
            if (own := pick(rows, part, module=module, name=name, factor=factor))
        ),
    )
