"""What a benchmark is, and how one is run.

A benchmark is a module of this package with a first line that says what it measures, and

    def cells(full: bool, seeds: int | None) -> Iterable[Cell]: ...
    def page(rows: Rows, folder: Path) -> str: ...

`cells` lists what is computed: the short form, within 15 minutes on two cores, or the full one;
`seeds` if the user gave a number. `page` makes Markdown of the finished ones, and may put pictures
into the folder. Finished cells are stored in out/bench/NAME.jsonl (`benchmarks.cells`), so that
Ctrl-C loses nothing, more seeds are added to those finished, and a change to the page computes
nothing. If the module has ``TIMED = True``, its cells run one at a time, with all threads. If it
has ``DOCS = "name.md"``, a complete full run is also written to that page of docs/.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cells import Figures, FinishedCells, compute_cells
from nearer.errors import InvalidInput

__all__ = [
    "Cell",
    "Rows",
    "ahead",
    "bins",
    "calibration_error",
    "cell",
    "cores",
    "counted",
    "distinct",
    "grid",
    "measure",
    "median",
    "pick",
    "summary",
    "table",
]

ROOT = Path(__file__).resolve().parents[1]

#: input of a page: for each finished cell its part, its arguments and its figures
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Cell:
    """A function of this package and its arguments. Made by `cell`."""

    part: str
    work: Callable[..., Figures]
    arguments: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """As ``--cells`` is matched with: ``table data=3dgmm seed=1``."""
        return " ".join([self.part, *(f"{key}={value}" for key, value in self.arguments)])

    @property
    def data(self) -> str:
        """The data set that may be missing: the one it names, or else itself."""
        return str(dict(self.arguments).get("data", self.name))

    def compute(self) -> Figures:
        """Call it."""
        return self.work(**dict(self.arguments))


def cell(part: str, work: Callable[..., Figures], **arguments: Any) -> Cell:
    """A cell of a part of the page: a function at the top of a module, and its arguments."""
    return Cell(part, work, tuple(arguments.items()))


def grid(part: str, work: Callable[..., Figures], **axes: Iterable[Any]) -> Iterator[Cell]:
    """A cell for each combination of values of its arguments; the last changes fastest."""
    for values in product(*axes.values()):
        yield cell(part, work, **dict(zip(axes, values, strict=True)))


def measure(
    module: ModuleType,
    name: str,
    *,
    full: bool,
    seeds: int | None,
    only: str,
    jobs: int,
    scheduler: str | None = None,
) -> str:
    """Compute the cells of a benchmark that are not there yet; return its page."""
    folder = ROOT / "out" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    finished = FinishedCells(folder / f"{name}.jsonl")
    listed = list(module.cells(full, seeds))
    wanted = [c for c in listed if fnmatchcase(c.name, f"*{only}*")]
    if not wanted:
        raise InvalidInput(f"--cells {only}: none of {len(listed)}, such as {listed[0].name!r}")
    alone = getattr(module, "TIMED", False)
    if alone and scheduler is not None:
        raise InvalidInput(f"--scheduler {scheduler}: {name} measures time, here and alone")
    compute_cells(wanted, finished, jobs=1 if alone else jobs, scheduler=scheduler)
    there = [(c, figures) for c in listed if (figures := finished.figures(c)) is not None]
    rows = [{"part": c.part} | dict(c.arguments) | figures for c, figures in there]
    page = module.page(rows, folder).rstrip() + "\n"
    missing = {why for c in listed if (why := finished.missing.get(c.data)) is not None}
    if len(there) < len(listed):
        page += f"\n{len(there)} of {len(listed)} cells. " + " ".join(sorted(missing)) + "\n"
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
    if full and len(there) == len(listed) and hasattr(module, "DOCS"):
        (ROOT / "docs" / module.DOCS).write_text(page, encoding="utf-8")
    return page


def cores() -> int:
    """How many cells run at a time by default."""
    return os.cpu_count() or 1


# calibration


def bins(place: Any, said: Any, true: Any) -> Iterator[tuple[int, int, float, float]]:
    """Of each tenth of [0, 1] with a place in it: number, count, mean of `said`, share `true`."""
    tenth = np.minimum((place * 10).astype(np.int64), 9)
    for k in np.unique(tenth).tolist():
        some = tenth == k
        yield k, int(some.sum()), float(said[some].mean()), float(true[some].mean())


def calibration_error(p: Any, came_true: Any, *, equal: str = "width") -> float:
    """The expected calibration error of probabilities, each of the likelier of two answers.

    Its ten bins have the same width, or hold as many answers each (``equal="mass"``).
    """
    sure, right = np.maximum(p, 1 - p), np.where(p >= 0.5, came_true, ~came_true)
    place = 2 * sure - 1 if equal == "width" else np.argsort(np.argsort(sure)) / len(sure)
    return sum(n * abs(q - y) for _, n, q, y in bins(place, sure, right)) / len(sure)


# parts of pages


def pick(rows: Rows, part: str, **arguments: Any) -> Rows:
    """The rows of a part with these arguments."""
    wanted = {"part": part} | arguments
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def distinct(rows: Rows, *keys: str) -> list[Any]:
    """The values of an argument, or of several together, in the order in which they appear."""
    values = (tuple(row[key] for key in keys) for row in rows)
    return [value[0] if len(keys) == 1 else value for value in dict.fromkeys(values)]


def summary(rows: Rows, figure: str, digits: int = 4) -> str:
    """Median (least to most)."""
    values = np.quantile([row[figure] for row in rows], [0, 0.5, 1])
    low, middle, high = (
        f"{x:,.{digits}g}" if abs(x) < 10**digits - 0.5 else f"{x:,.0f}" for x in values
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def median(rows: Rows, figure: str) -> float:
    """The median of a figure."""
    return float(np.median([row[figure] for row in rows]))


def ahead(rows: Rows, others: Rows, figure: str, digits: int = 3) -> str:
    """How much more a figure is than that of others with the same seed: mean ± standard error."""
    theirs = {row["seed"]: row[figure] for row in others}
    more = np.array([r[figure] - theirs[r["seed"]] for r in rows if r["seed"] in theirs])
    if len(more) < 2:
        return ""
    error = more.std(ddof=1) / np.sqrt(len(more))
    return f"{more.mean():+.{digits}f} ± {error:.{digits}f}"


def counted(rows: Rows, figure: str) -> str:
    """How often which value: ``3: 9, 4: 1``."""
    counts = Counter(row[figure] for row in rows).most_common()
    return ", ".join(f"{value}: {count}" for value, count in counts)


def table(head: Sequence[str], lines: Iterable[Sequence[Any]], *, left: int | None = None) -> str:
    """A table in Markdown, the first columns or all flush left; nothing where it has no lines."""
    body = ["| " + " | ".join(str(value) for value in line) + " |" for line in lines]
    if not body:
        return ""
    flush = len(head) if left is None else left
    rule = "|" + " --- |" * flush + " ---: |" * (len(head) - flush)
    return "\n".join(["| " + " | ".join(head) + " |", rule, *body]) + "\n"
