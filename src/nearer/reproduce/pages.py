"""From a target to files: compute what is missing, then write pages, tables and pictures."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import nearer
from nearer.cells.computing import compute_cells
from nearer.cells.finished import FinishedCells
from nearer.files import write_files
from nearer.plotting import as_png
from nearer.reproduce.experiments import Experiment
from nearer.reproduce.figures import draw_figures
from nearer.reproduce.notes import notes_for
from nearer.reproduce.render import Page, as_csv, as_html, as_markdown
from nearer.reproduce.scale import Scale, list_experiments
from nearer.reproduce.tables import make_tables

__all__ = ["make_page", "reproduce", "write_page"]

_CELLS = "cells.jsonl"


def reproduce(
    target: str,
    folder: Path,
    scale: Scale,
    *,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    begin: Callable[[int, int], object] | None = None,
    progress: Callable[[Experiment], object] | None = None,
) -> tuple[Page, list[Path]]:
    """Compute a table, the figures or everything, and write what a reader wants.

    Parameters
    ----------
    target
        One of `nearer.reproduce.scale.TARGETS`.
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
    page, files
        What was written, and where.
    """
    finished = FinishedCells(folder / _CELLS)
    cells = list_experiments(target, scale, seed)
    if begin is not None:
        begin(len(cells), sum(finished.figures(cell) is not None for cell in cells))
    compute_cells(cells, finished, jobs=jobs, scheduler=scheduler, progress=progress)
    page = make_page(target, cells, finished, seed=seed)
    return page, write_page(page, target, folder)


def make_page(target: str, cells: list[Experiment], finished: FinishedCells, *, seed: int) -> Page:
    """What the page of a target shows, from saved cells alone."""
    tables = make_tables(cells, finished)
    drawings = draw_figures(seed) if target in ("figures", "all") else []
    there = [figures for cell in cells if (figures := finished.figures(cell)) is not None]
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
        "page made": datetime.now(UTC).date().isoformat(),
    }
    return Page(
        "The paper, reproduced",
        facts,
        tables,
        drawings,
        notes_for({table.name for table in tables}),
    )


def write_page(page: Page, target: str, folder: Path) -> list[Path]:
    """Write the page as HTML and Markdown, tables as CSV, pictures as PNG: all or none."""
    contents: dict[str, str | bytes] = {
        f"{target}.html": as_html(page),
        f"{target}.md": as_markdown(page),
    }
    contents |= {f"{table.name}.csv": as_csv(table) for table in page.tables}
    contents |= {f"{drawing.name}.png": as_png(drawing.figure) for drawing in page.drawings}
    return write_files(folder, contents)
