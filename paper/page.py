"""Tables and pictures as a page: Markdown, HTML with everything inside, and tables as CSV."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.cells import FinishedCells
from benchmarks.harness import table as markdown_table
from nearer.files import data_url, table_text
from paper.experiments import FULL, Experiment, list_experiments
from paper.figures import Drawing, draw_figures
from paper.notes import Note, notes_for
from paper.tables import Mark, Table, Value, make_tables

__all__ = [
    "Page",
    "as_csv",
    "as_html",
    "as_markdown",
    "make_page",
    "show",
    "write_docs",
    "write_page",
]

_ARROW: dict[Mark, str] = {"better": " ▲", "worse": " ▼"}


@dataclass
class Page:
    """Everything that a page shows.

    Attributes
    ----------
    facts
        The run, its versions and its machine: name → value.
    tables, drawings, notes
        Its contents.
    """

    facts: dict[str, str]
    tables: Sequence[Table]
    drawings: Sequence[Drawing]
    notes: Sequence[Note]


def make_page(target: str, cells: list[Experiment], finished: FinishedCells, *, seed: int) -> Page:
    """The page of a target, from finished cells alone."""
    tables = make_tables(cells, finished)
    there = [figures for cell in cells if (figures := finished.figures(cell)) is not None]
    seconds = sum(figures.get("seconds") or 0 for figures in there)
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    with_ = [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
    facts = {
        "paper": "Anderton, Pavlu, Aslam: Revealing the Basis, Ordinal Embedding through Geometry",
        "made by": f"python -m paper {target}",
        "version of the code": ", ".join(sorted(finished.versions)) or "none",
        "seed": str(seed),
        "cells": f"{len(there):,} of {len(cells):,}, {seconds:,.0f} processor seconds of work",
        "page made": f"{datetime.now(UTC).date().isoformat()} with {', '.join(with_)} on "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    drawings = draw_figures(seed) if target in ("figures", "all") else []
    return Page(facts, tables, drawings, notes_for({table.name for table in tables}))


def write_page(page: Page, target: str, folder: Path) -> list[Path]:
    """Write the page as HTML and Markdown, tables as CSV, pictures as PNG."""
    contents = {
        f"{target}.html": as_html(page).encode(),
        f"{target}.md": as_markdown(page).encode(),
    }
    contents |= {f"{table.name}.csv": as_csv(table).encode() for table in page.tables}
    contents |= {f"{drawing.name}.png": drawing.png for drawing in page.drawings}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


_INTRODUCTION = """
This page is made by `python -m paper page` from the cells of `python -m paper all`:
every figure of ours is computed by that command, every figure under “paper” is the paper's own.
The cells, one run of one method each, are in [reproduction.jsonl](reproduction.jsonl) with the
version of the code that computed them.
Our own rows in Table 1 have ten runs up to five dimensions, five runs in eight and ten dimensions,
where a run takes half a minute to three minutes, and three runs in twenty dimensions, where a run
takes five minutes. A sphere in one dimension is two points, with five runs.
"""


def write_docs(docs: Path, source: Path) -> list[Path]:
    """Make docs/reproduction.md, its pictures and reproduction.jsonl from finished cells.

    Parameters
    ----------
    docs
        The folder of the documentation.
    source
        The file of cells, of any version of the code. It may be docs/reproduction.jsonl.
    """
    cells, finished = list_experiments("all", FULL), FinishedCells(source, version=None)
    page = make_page("all", cells, finished, seed=0)
    title, rest = as_markdown(page, folder="images/").split("\n", 1)
    last = {record["cell"]: record for record in finished.records()}
    lines = [json.dumps(last[cell.name]) + "\n" for cell in cells if cell.name in last]
    (docs / "reproduction.md").write_text(f"{title}\n{_INTRODUCTION}{rest}", encoding="utf-8")
    (docs / "reproduction.jsonl").write_text("".join(lines), encoding="utf-8")
    for drawing in page.drawings:
        (docs / "images" / f"{drawing.name}.png").write_bytes(drawing.png)
    return [docs / "reproduction.md", docs / "reproduction.jsonl"]


def show(value: Value, digits: int) -> str:
    """A value as text with `digits` after the point, none for a number of three digits.

    Examples
    --------
    >>> show(0.7149, 2), show(549.99, 3), show(96020, 0), show(None, 2), show(-0.004, 2)
    ('0.71', '550', '96,020', '', '0.00')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def as_csv(table: Table) -> str:
    """The table with all its digits; a column "paper" or "±" names the column that it is about."""
    heads: list[str] = []
    for column in table.columns:
        owner = next((head for head in reversed(heads) if not head.endswith((" paper", " ±"))), "")
        heads.append(f"{owner} {column.head}" if column.head in ("paper", "±") else column.head)
    return table_text(heads, table.rows)


def as_markdown(page: Page, folder: str = "") -> str:
    """The page in Markdown, which names its pictures in a folder."""
    lines = ["# The paper, reproduced", ""]
    lines += [f"- {name}: {value}" for name, value in page.facts.items()]
    for table in page.tables:
        lines += ["", f"## {table.title}", "", *_markdown_rows(table), "", table.caption]
    for drawing in page.drawings:
        lines += ["", f"## {drawing.title}", "", f"![{drawing.title}]({folder}{drawing.name}.png)"]
        lines += ["", drawing.caption]
    if page.notes:
        lines += ["", "## Where this differs from the paper, and why"]
        for note in page.notes:
            lines += ["", f"**{note.title}.** {note.text}"]
    return "\n".join(lines) + "\n"


def _markdown_rows(table: Table) -> list[str]:
    lines = []
    for r, row in enumerate(table.rows):
        shown = []
        for c, (value, column) in enumerate(zip(row, table.columns, strict=True)):
            mark = table.marks.get((r, c))
            text = show(value, column.digits).replace("|", "\\|")
            shown.append(text + (_ARROW[mark] if mark else ""))
        lines.append(shown)
    return markdown_table([column.head for column in table.columns], lines, left=2).splitlines()


_STYLE = """
body { font: 15px/1.55 system-ui, sans-serif; color: #2b2f36; max-width: 1320px;
       margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.2rem; margin-top: 2.6rem; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums;
        display: block; overflow-x: auto; }
th, td { padding: .22rem .5rem; white-space: nowrap; }
th { border-bottom: 2px solid #c9ced6; } p { max-width: 62rem; } img { max-width: 100%; }
"""


def as_html(page: Page) -> str:
    """The page as one HTML file with its pictures and its style inside."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - an extra

    body = MarkdownIt("commonmark").enable("table").render(as_markdown(page))
    pictures = {f"{drawing.name}.png": drawing.png for drawing in page.drawings}

    def inside(source: re.Match[str]) -> str:
        return f'src="{data_url(pictures[source[1]], "image/png")}"'

    body = re.sub(r'src="(\w+\.png)"', inside, body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>The paper, reproduced</title><style>{_STYLE}</style></head><body>\n"
        f"{body}</body></html>\n"
    )
