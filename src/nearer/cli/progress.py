"""Progress: a line on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["asking_progress"]


@contextmanager
def asking_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many comparisons were asked, on standard error; yields what `run` calls."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what)

        def update(comparisons: int, rounds: int) -> None:
            text = f"{what}: {comparisons:,} comparisons in {rounds:,} rounds"
            bar.update(task, description=text)

        yield update
