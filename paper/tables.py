"""Saved cells as tables, the paper's figures beside ours.

A table holds values, not text; `paper.page` writes them. Means are over runs. A mark
says whether ours is better or worse than the paper's by more than the table's tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from benchmarks.cells import Figures, FinishedCells
from paper.data import DATA
from paper.experiments import OWN, Experiment
from paper.neighbours import READINGS
from paper.published import DIMENSIONS, TABLE_1, TABLE_2, TABLE_3

__all__ = ["Column", "Table", "make_tables"]

Value = float | int | str | None
Mark = Literal["better", "worse"]
T = TypeVar("T")

_TOLERANCE = {"tau": 0.07, "knn": 0.07, "accuracy": 0.05}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    head
        Its heading; ``"paper"`` and ``"±"`` refer to the column before them.
    digits
        How many to show after the point.
    paper
        Whether it holds the paper's figures.
    """

    head: str
    digits: int = 2
    paper: bool = False


@dataclass
class Table:
    """Values in rows and columns, with a title and a caption.

    Attributes
    ----------
    name
        The name of its files.
    title, caption
        Above and below it.
    columns, rows
        As many values in a row as there are columns.
    marks
        (row, column) → better or worse than the paper.
    """

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: list[tuple[Value, ...]] = field(default_factory=list)
    marks: dict[tuple[int, int], Mark] = field(default_factory=dict)

    def add(self, *values: Value) -> None:
        """Append a row."""
        self.rows.append(values)

    def mark(self, column: int, paper: float | None, tolerance: float) -> None:
        """Mark a value of the last row that is farther than this from the paper's."""
        difference = _difference(self.rows[-1][column], paper)
        if difference is not None and abs(difference) > tolerance:
            self.marks[len(self.rows) - 1, column] = "better" if difference > 0 else "worse"


def make_tables(cells: Sequence[Experiment], finished: FinishedCells) -> list[Table]:
    """The tables that the cells are for.

    Parameters
    ----------
    cells
        The planned cells; one that is not finished is a gap.
    finished
        The figures.
    """
    wanted = {cell.table for cell in cells}
    makers = {"table1": _table1, "table2": _table2, "neighbours": _neighbours, "table3": _table3}
    return [
        make(_Results(cells, finished, name)) for name, make in makers.items() if name in wanted
    ]


class _Results:
    """The figures of one table's cells, averaged over runs."""

    def __init__(self, cells: Sequence[Experiment], finished: FinishedCells, table: str) -> None:
        self.finished = finished
        self.cells = [cell for cell in cells if cell.table == table]
        self.sizes = {cell.data: cell.n_objects for cell in self.cells}
        self._runs: dict[tuple[str, str], list[Figures]] = {}
        for cell in self.cells:
            figures = finished.figures(cell)
            if figures is not None:
                self._runs.setdefault((cell.data, cell.method), []).append(figures)

    def of(self, everything: Mapping[str, T]) -> list[tuple[str, T]]:
        """The finished data sets among those planned."""
        return [(data, value) for data, value in everything.items() if data in self.sizes]

    def whole(self, data: str) -> bool:
        """Whether the data set was not cut, so that its figures compare with the paper's."""
        return self.sizes[data] == DATA[data].n_objects

    def runs(self, data: str, method: str) -> int:
        return len(self._runs.get((data, method), []))

    def mean(self, data: str, method: str, figure: str) -> float | None:
        values = self._values(data, method, figure)
        return float(np.mean(values)) if values else None

    def spread(self, data: str, method: str, figure: str) -> float | None:
        """Standard deviation over runs; None of fewer than two."""
        values = self._values(data, method, figure)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def share(self, data: str, method: str, figure: str) -> str | None:
        """How many of the runs: ``3/5``."""
        values = self._values(data, method, figure)
        return f"{int(sum(values))}/{len(values)}" if values else None

    def _values(self, data: str, method: str, figure: str) -> list[float]:
        result = (figures.get(figure) for figures in self._runs.get((data, method), []))
        return [float(value) for value in result if value is not None]


def _difference(ours: Value, paper: float | None) -> float | None:
    return None if ours is None or isinstance(ours, str) or paper is None else ours - paper


def _table1(results: _Results) -> Table:
    (n,) = set(results.sizes.values())
    counts = {results.runs(cell.data, "Basis") for cell in results.cells}
    runs = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    runs += " run" if runs == "1" else " runs"
    table = Table(
        "table1",
        "Table 1: dimension estimates",
        f"{n:,} objects, mean of {runs}, ± their standard deviation (the paper: 1,000 "
        "objects, 100 runs). The dimension is that of the space: a sphere has one fewer, but its "
        "embedding needs all. A sphere in one dimension is two points, and most distances are "
        f"tied. {OWN} is the estimate of our own default.",
        (Column("family"), Column("estimate"), *(Column(f"d = {d}") for d in DIMENSIONS)),
    )
    for family, paper in TABLE_1.items():
        for method, name in (("Basis", "Basis, here"), (OWN, OWN)):
            sets = [f"{family}-{d}" for d in DIMENSIONS]
            ours = [results.mean(data, method, "dimension") for data in sets]
            table.add(family if method == "Basis" else "", name, *ours)
            table.add("", "±", *(results.spread(data, method, "dimension") for data in sets))
            if method == OWN:
                table.add("", "runs", *(results.runs(data, OWN) for data in sets))
            else:
                table.add("", "Basis, paper", *paper.values())
                table.add("", "difference", *map(_difference, ours, paper.values()))
    return table


_QUALITY = (
    Column("data"),
    Column("method"),
    Column("d̂", 1),
    Column("paper", 0, paper=True),
    Column("comparisons", 0),
    Column("paper", 0, paper=True),
    Column("τ"),
    Column("±"),
    Column("paper", paper=True),
    Column("kNN"),
    Column("±"),
    Column("paper", paper=True),
    Column("RMSE", 3),
    Column("paper", paper=True),
    Column("zero loss"),
    Column("paper", paper=True),
    Column("seconds", 1),
    Column("runs", 0),
)


def _table2(results: _Results) -> Table:
    table = Table(
        "table2",
        "Table 2: quality of embeddings",
        "Means over runs, ± their standard deviation; an arrow if ours is more than 0.07 above or "
        "below the paper's on as many objects. Rand+SOE and CK ask as many comparisons as Basis. "
        "Zero loss: the number of runs with a mean loss below 0.001; “no” stands for the paper's "
        "*. Seconds are processor time for asking and fitting. "
        + " ".join(
            f"{name}: {source.what}, n = {results.sizes[name]:,}."
            for name, source in results.of(DATA)
        ),
        _QUALITY,
    )
    for data, methods in results.of(TABLE_2):
        missing = results.finished.missing.get(data)
        if missing is not None:
            table.add(data, missing, *([None] * (len(_QUALITY) - 2)))
            continue
        for method in [*methods, OWN]:
            _add_quality(table, results, data, method)
    return table


def _add_quality(table: Table, results: _Results, data: str, method: str) -> None:
    paper = TABLE_2[data].get(method)
    ours = {
        figure: results.mean(data, method, figure)
        for figure in ("dimension", "comparisons", "tau", "knn", "rmse", "seconds")
    }
    optimum = None if paper is None or "SOE" not in method else ("yes" if paper.optimum else "no")
    table.add(
        data,
        method,
        ours["dimension"],
        paper.dimension if paper else None,
        ours["comparisons"],
        1000 * paper.comparisons if paper and paper.comparisons else None,
        ours["tau"],
        results.spread(data, method, "tau"),
        paper.tau if paper else None,
        ours["knn"],
        results.spread(data, method, "knn"),
        paper.knn if paper else None,
        ours["rmse"],
        paper.rmse if paper else None,
        results.share(data, method, "optimum") if "SOE" in method else None,
        optimum,
        ours["seconds"],
        results.runs(data, method),
    )
    if paper is not None and results.whole(data):
        table.mark(6, paper.tau, _TOLERANCE["tau"])
        table.mark(9, paper.knn, _TOLERANCE["knn"])


def _neighbours(results: _Results) -> Table:
    paper = TABLE_2["spam"]["Basis"]
    table = Table(
        "neighbours",
        "kNN precision on spam, in every reading",
        f"Basis on spam, the mean of {results.runs('spam', 'Basis')} runs; the paper's row is "
        f"τ {paper.tau}, kNN {paper.knn}, RMSE {paper.rmse}.",
        (Column("reading"), Column("τ"), Column("kNN"), Column("±"), Column("RMSE", 0)),
    )
    missing = results.finished.missing.get("spam")
    if missing is not None:
        table.add(missing, None, None, None, None)
        return table
    for reading, text in READINGS.items():
        tau, knn, rmse = (
            results.mean("spam", "Basis", f"{reading} {figure}")
            for figure in ("tau", "knn", "rmse")
        )
        table.add(text, tau, knn, results.spread("spam", "Basis", f"{reading} knn"), rmse)
    return table


def _table3(results: _Results) -> Table:
    table = Table(
        "table3",
        "Table 3: accuracy of a classifier, 5 folds",
        "Gradient boosting on the original features and on positions; means over runs. An arrow "
        "if the test accuracy is more than 0.05 above or below the paper's.",
        (
            Column("data"),
            Column("features"),
            Column("d", 1),
            Column("paper", 0, paper=True),
            Column("train"),
            Column("paper", paper=True),
            Column("test"),
            Column("±"),
            Column("paper", paper=True),
            Column("runs", 0),
        ),
    )
    for data, (original, embedding) in results.of(TABLE_3):
        missing = results.finished.missing.get(data)
        if missing is not None:
            table.add(data, missing, *([None] * 8))
            continue
        for method in ["original", "Basis", "Basis+SOE", OWN]:
            paper = {"original": original, "Basis": embedding}.get(method)
            table.add(
                data,
                method,
                results.mean(data, method, "dimension"),
                paper.dimension if paper else None,
                results.mean(data, method, "train"),
                paper.train if paper else None,
                results.mean(data, method, "test"),
                results.spread(data, method, "test"),
                paper.test if paper else None,
                results.runs(data, method),
            )
            if paper is not None and results.whole(data):
                table.mark(6, paper.test, _TOLERANCE["accuracy"])
    return table
