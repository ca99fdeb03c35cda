"""`nearer reproduce`: the paper's tables and figures, computed here, beside the paper's own."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nearer.cli.destinations import make_folder
from nearer.cli.options import scheduler_option
from nearer.cli.progress import cells_progress
from nearer.cli.saying import say
from nearer.cli.stopping import stopped_by_ctrl_c

if TYPE_CHECKING:
    from nearer.reproduce.render import Page

__all__ = ["command"]


@click.command("reproduce")
@click.argument("target", type=click.Choice(["table1", "table2", "table3", "figures", "all"]))
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    help="Runs of every cell, each with its own seed  [default: 100, 10 and 3 for the tables]",
)
@click.option("--quick", is_flag=True, help="A few minutes: 500 objects at most, a run or two.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", default="out/reproduce", show_default=True, help="Folder for the results.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    help="Processes at a time  [default: one a core]",
)
@scheduler_option
def command(
    target: str,
    runs: int | None,
    quick: bool,
    seed: int,
    out: str,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Compute the paper's tables and figures and set the paper's own beside them.

    Every finished cell is kept in the folder: after Ctrl-C the same command goes on where it
    stopped. The report is one HTML file; the same as Markdown, and the tables as CSV, lie beside
    it. Real data sets that are not at hand are left out with a word on how to get them.
    """
    from nearer.reproduce.pages import reproduce
    from nearer.reproduce.scale import FULL, QUICK

    folder = make_folder(out)
    scale = (QUICK if quick else FULL).with_runs(runs)
    with stopped_by_ctrl_c(partial(_what_is_kept, folder)), cells_progress() as (begin, step):
        page, files = reproduce(
            target,
            folder,
            scale,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            begin=begin,
            progress=step,
        )
    _print(page)
    say("\n".join(str(file) for file in files))


def _what_is_kept(folder: Path) -> str:
    kept = folder / "cells.jsonl"
    if not kept.exists():
        return "interrupted before a cell was finished"
    return f"interrupted; finished cells are kept in {kept}, and the same command goes on"


def _print(page: Page) -> None:
    from rich.table import Table

    from nearer.cli.console import PlainConsole
    from nearer.reproduce.render import show

    console = PlainConsole()
    for table in page.tables:
        shown = [i for i, column in enumerate(table.columns) if column.brief]
        screen = Table(title=table.title, title_justify="left")
        for i in shown:
            column = table.columns[i]
            screen.add_column(
                column.head,
                justify="left" if i < 2 else "right",
                style="dim" if column.paper else None,
            )
        for row in table.rows:
            screen.add_row(*(show(row[i], table.columns[i].digits) for i in shown))
        console.print(screen)
