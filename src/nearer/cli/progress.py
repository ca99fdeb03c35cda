"""Progress: a line on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from nearer.asking.progress import TerminalLine
from nearer.cells.finished import Computable
from nearer.cli.saying import say

__all__ = ["cells_progress"]


@contextmanager
def cells_progress() -> Iterator[tuple[Callable[[int, int], None], Callable[[Computable], None]]]:
    """A bar for cells on standard error.

    Yields what is called with their number and that of those already there, and what is called with
    each further one.
    """
    text = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text)
    with TerminalLine(*columns) as bar:
        task = bar.add_task("", total=None)

        def begin(cells: int, there: int) -> None:
            bar.update(task, total=cells, completed=there)
            if there:
                say(f"{there} of {cells} cells are there already", err=True)

        def step(cell: Computable) -> None:
            bar.update(task, advance=1, description=cell.name)

        yield begin, step
