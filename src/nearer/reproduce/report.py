"""From a target to files: compute what is missing, then write pages, tables and pictures."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import nearer
from nearer.errors import InvalidInput
from nearer.reproduce.cells import Cell
from nearer.reproduce.figures import draw_figures
from nearer.reproduce.notes import notes_for
from nearer.reproduce.plan import Scale, plan
from nearer.reproduce.render import Report, as_csv, as_html, as_markdown, as_png
from nearer.reproduce.runner import run_cells
from nearer.reproduce.store import Store
from nearer.reproduce.tables import make_tables

__all__ = ["make_report", "reproduce", "write_report"]

_CELLS = "cells.jsonl"


def reproduce(
    target: str,
    folder: Path,
    scale: Scale,
    *,
    seed: int = 0,
    jobs: int = 1,
    begin: Callable[[int, int], object] | None = None,
    progress: Callable[[Cell], object] | None = None,
) -> tuple[Report, list[Path]]:
    """Compute a table, the figures or everything, and write what a reader wants.

    Parameters
    ----------
    target
        One of `nearer.reproduce.plan.TARGETS`.
    folder
        Where the files go, and where finished cells are kept and found again. It must exist.
    scale
        How many runs, of how many objects.
    seed
        Of the first run; the others count up from it.
    jobs
        How many processes.
    begin, progress
        Called with the number of cells and of those already there, then with every further one.

    Returns
    -------
    report, files
        What was written, and where.
    """
    store = Store(folder / _CELLS)
    cells = plan(target, scale, seed)
    if begin is not None:
        begin(len(cells), sum(store.figures(cell) is not None for cell in cells))
    run_cells(cells, store, jobs=jobs, progress=progress)
    report = make_report(target, cells, store, seed=seed)
    return report, write_report(report, target, folder)


def make_report(target: str, cells: list[Cell], store: Store, *, seed: int) -> Report:
    """What the page of a target shows, from saved cells alone."""
    tables = make_tables(cells, store)
    drawings = draw_figures(seed) if target in ("figures", "all") else []
    there = [figures for cell in cells if (figures := store.figures(cell)) is not None]
    seconds = sum(figures.get("seconds") or 0 for figures in there)
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    facts = {
        "paper": "Anderton, Pavlu, Aslam: Revealing the Basis, Ordinal Embedding through Geometry",
        "made by": f"nearer reproduce {target}, nearer {nearer.__version__}",
        "seed": str(seed),
        "cells": f"{len(there):,} of {len(cells):,}, {seconds:,.0f} processor seconds of work",
        "with": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
        "on": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
    }
    return Report(
        "The paper, reproduced",
        facts,
        tables,
        drawings,
        notes_for({table.name for table in tables}),
    )


def write_report(report: Report, target: str, folder: Path) -> list[Path]:
    """Write the page as HTML and Markdown, tables as CSV, pictures as PNG: all or none."""
    contents: dict[str, bytes] = {
        f"{target}.html": as_html(report).encode(),
        f"{target}.md": as_markdown(report).encode(),
    }
    contents |= {f"{table.name}.csv": as_csv(table).encode() for table in report.tables}
    contents |= {f"{drawing.name}.png": as_png(drawing) for drawing in report.drawings}
    part: Path | None = None
    try:
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
        for name, content in contents.items():
            (part / name).write_bytes(content)
        for name in contents:
            (part / name).replace(folder / name)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written ({error.strerror})") from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
    return [folder / name for name in contents]
