"""Which experiments a command needs, and at what size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nearer import checks
from nearer.reproduce.experiments import OWN, Experiment
from nearer.reproduce.material import MATERIAL
from nearer.reproduce.published import DIMENSIONS, FAMILIES, TABLE_2, TABLE_3

__all__ = ["FULL", "QUICK", "TARGETS", "Scale", "list_experiments"]

TARGETS = ("table1", "table2", "table3", "figures", "all")

_TABLE_1_OBJECTS = 1000
_SMALL = 1000  # objects; with more a fit takes half a minute
# dimensions; in more our own estimate takes as long, and in still more minutes
_FEW, _MANY = 5, 10
_TIES = ("sphere-1",)  # two points; … and where there is little but ties


@dataclass(frozen=True)
class Scale:
    """How much of the paper's experiments to run.

    Attributes
    ----------
    table1, own, table2, table3
        Runs of each experiment, each with a seed of its own; `own` are those of our own estimate in
        Table 1, which asks and fits much more than Basis does. Fewer where a run takes half a
        minute, or minutes.
    most_objects, most_dimensions
        Larger sets are cut to so many objects, and our own estimate is left out in more dimensions;
        None: no limit.
    """

    table1: int
    own: int
    table2: int
    table3: int
    most_objects: int | None = None
    most_dimensions: int | None = None

    def with_runs(self, runs: int | None) -> Scale:
        """The same with this many runs of everything."""
        if runs is None:
            return self
        checks.whole("runs", runs)
        return replace(self, table1=runs, own=runs, table2=runs, table3=runs)

    def size(self, n_objects: int) -> int:
        """How many of so many objects to take."""
        return n_objects if self.most_objects is None else min(n_objects, self.most_objects)

    def has(self, dimension: int) -> bool:
        """Whether our own estimate is made in so many dimensions."""
        return self.most_dimensions is None or dimension <= self.most_dimensions


FULL = Scale(table1=100, own=10, table2=10, table3=3)
QUICK = Scale(table1=2, own=1, table2=1, table3=1, most_objects=500, most_dimensions=5)


def list_experiments(target: str, scale: Scale, seed: int = 0) -> list[Experiment]:
    """The experiments of a table, of the figures (none) or of everything, in the order to run them.

    The paper's rows before our own; one seed after the other, so that what is there after an
    interruption covers every row; large sets first, so that no long one is left for the end.

    Examples
    --------
    >>> len(list_experiments("table1", QUICK)) >= 2 * 28
    True
    """
    checks.one_of("target", target, TARGETS)
    cells: list[Experiment] = []
    if target in ("table1", "all"):
        cells += _table1(scale, seed)
    if target in ("table2", "all"):
        cells += _table2(scale, seed)
    if target in ("table3", "all"):
        cells += _table3(scale, seed)
    return sorted(cells, key=lambda cell: (cell.method == OWN, cell.seed, -cell.n_objects))


def _table1(scale: Scale, seed: int) -> Iterable[Experiment]:
    n = scale.size(_TABLE_1_OBJECTS)
    for family in FAMILIES:
        for d in DIMENSIONS:
            name = f"{family}-{d}"
            yield from _runs("table1", name, "Basis", n, seed, scale.table1)
            if scale.has(d):
                part = 4 if d > _MANY else 2 if d > _FEW or name in _TIES else 1
                yield from _runs("table1", name, OWN, n, seed, _part(scale.own, part))


def _table2(scale: Scale, seed: int) -> Iterable[Experiment]:
    for data, rows in TABLE_2.items():
        n = scale.size(MATERIAL[data].n_objects)
        for method in [*rows, OWN]:
            slow = n > _SMALL and method != "Basis"
            runs = _part(scale.table2, 4 if slow else 1)
            yield from _runs("table2", data, method, n, seed, runs)
    n = scale.size(MATERIAL["spam"].n_objects)
    yield from _runs("neighbours", "spam", "Basis", n, seed, scale.table2)


def _table3(scale: Scale, seed: int) -> Iterable[Experiment]:
    for data in TABLE_3:
        n = scale.size(MATERIAL[data].n_objects)
        for method in ["original", "Basis", "Basis+SOE", OWN]:
            slow = n > _SMALL and method != "Basis"
            runs = _part(scale.table3, 4 if slow else 1)
            yield from _runs("table3", data, method, n, seed, runs)


def _runs(table: str, data: str, method: str, n: int, seed: int, runs: int) -> Iterable[Experiment]:
    return (Experiment(table, data, method, n, seed + i) for i in range(runs))


def _part(runs: int, of: int) -> int:
    return -(-runs // of)
