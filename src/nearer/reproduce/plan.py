"""Which cells a command needs, and at what size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nearer.errors import InvalidInput
from nearer.reproduce.cells import OWN, Cell
from nearer.reproduce.material import MATERIAL
from nearer.reproduce.published import DIMENSIONS, FAMILIES, TABLE_2, TABLE_3

__all__ = ["FULL", "QUICK", "TARGETS", "Scale", "plan"]

TARGETS = ("table1", "table2", "table3", "figures", "all")

_TABLE_1_OBJECTS = 1000
_SMALL = 500  # objects; with more a fit takes minutes


@dataclass(frozen=True)
class Scale:
    """How much of the paper's experiments to run.

    Attributes
    ----------
    table1, table2, table3
        Runs of each cell, each with a seed of its own; a quarter where a fit takes minutes.
    most_objects
        Larger sets are cut to so many objects; None: none is.
    """

    table1: int
    table2: int
    table3: int
    most_objects: int | None = None

    def with_runs(self, runs: int | None) -> Scale:
        """The same with this many runs of everything."""
        if runs is None:
            return self
        if runs < 1:
            raise InvalidInput(f"runs={runs}: must be at least 1")
        return Scale(runs, runs, runs, self.most_objects)

    def size(self, n_objects: int) -> int:
        """How many of so many objects to take."""
        return n_objects if self.most_objects is None else min(n_objects, self.most_objects)


FULL = Scale(table1=100, table2=10, table3=3)
QUICK = Scale(table1=2, table2=1, table3=1, most_objects=500)


def plan(target: str, scale: Scale, seed: int = 0) -> list[Cell]:
    """The cells of a table, of the figures (none) or of everything, in the order to compute them.

    One seed after the other, so that what is there after an interruption covers every row; large
    sets first, so that no long cell is left for the end.

    Examples
    --------
    >>> len(plan("table1", QUICK)) >= 2 * 28
    True
    """
    if target not in TARGETS:
        raise InvalidInput(f"{target!r}: must be one of {', '.join(TARGETS)}")
    cells: list[Cell] = []
    if target in ("table1", "all"):
        cells += _table1(scale, seed)
    if target in ("table2", "all"):
        cells += _table2(scale, seed)
    if target in ("table3", "all"):
        cells += _table3(scale, seed)
    return sorted(cells, key=lambda cell: (cell.seed, -cell.n_objects))


def _table1(scale: Scale, seed: int) -> Iterable[Cell]:
    n = scale.size(_TABLE_1_OBJECTS)
    # our own estimate asks and fits much more than Basis does, and varies less
    own = [(OWN, max(1, scale.table1 // 20))] if OWN else []
    for method, runs in [("Basis", scale.table1), *own]:
        for family in FAMILIES:
            for d in DIMENSIONS:
                for i in range(runs):
                    yield Cell("table1", f"{family}-{d}", method, n, seed + i)


def _table2(scale: Scale, seed: int) -> Iterable[Cell]:
    for data, rows in TABLE_2.items():
        n = scale.size(MATERIAL[data].n_objects)
        for method in [*rows, *([OWN] if OWN else [])]:
            slow = n > _SMALL and method != "Basis"
            for i in range(-(-scale.table2 // 4) if slow else scale.table2):
                yield Cell("table2", data, method, n, seed + i)
    for i in range(scale.table2):
        n = scale.size(MATERIAL["spam"].n_objects)
        yield Cell("neighbours", "spam", "Basis", n, seed + i)


def _table3(scale: Scale, seed: int) -> Iterable[Cell]:
    for data in TABLE_3:
        n = scale.size(MATERIAL[data].n_objects)
        for method in ["original", "Basis", "Basis+SOE", *([OWN] if OWN else [])]:
            for i in range(scale.table3):
                yield Cell("table3", data, method, n, seed + i)
