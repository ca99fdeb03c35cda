"""Progress: a line on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from nearer.cells.finished import Computable

__all__ = ["asking_progress", "cells_progress", "step_progress"]


@contextmanager
def step_progress(what: str = "") -> Iterator[Callable[[str], None]]:
    """Show what is being done, on standard error; yields a function that takes the words."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what)

        def update(text: str) -> None:
            bar.update(task, description=text)

        yield update


@contextmanager
def asking_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many comparisons were asked, on standard error; yields what `run` calls."""
    with step_progress(what) as step:
        yield lambda comparisons, rounds: step(
            f"{what}: {comparisons:,} comparisons in {rounds:,} rounds"
        )


@contextmanager
def cells_progress() -> Iterator[tuple[Callable[[int, int], None], Callable[[Computable], None]]]:
    """A bar for cells on standard error.

    Yields what is called with their number and that of those already there, and what is called with
    each further one.
    """
    console = Console(stderr=True)
    text = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=None)

        def begin(cells: int, there: int) -> None:
            bar.update(task, total=cells, completed=there)
            if there:
                click.echo(f"{there} of {cells} cells are there already", err=True)

        def step(cell: Computable) -> None:
            bar.update(task, advance=1, description=cell.name)

        yield begin, step
