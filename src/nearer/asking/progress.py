"""Progress: a line on a terminal or below the cell of a notebook, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from nearer._kernels.compiling import COMPILING, when_compiling
from nearer.checks import money


class TerminalLine(Progress):
    """A line on standard error, cleared at the end; nothing if that is not a terminal."""

    def __init__(self, *columns: Any) -> None:
        console = Console(stderr=True)
        shown = console.is_terminal
        super().__init__(*columns, console=console, transient=True, disable=not shown)


@contextmanager
def step_progress(what: str = "") -> Iterator[Callable[[str], None]]:
    """Show what is being done on standard error; yields a function that takes the text."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with TerminalLine(*columns) as bar:
        task = bar.add_task(what)

        def update(text: str) -> None:
            bar.update(task, description=text)

        say = bool if bar.disable else partial(bar.console.print, COMPILING)
        with when_compiling(say), _notebook_line() as show:
            yield show or update


@contextmanager
def _notebook_line() -> Iterator[Callable[[str], None] | None]:
    """A line below a notebook's cell, cleared at the end; None outside a notebook."""
    if not Console().is_jupyter:
        yield None
        return
    from IPython.display import display  # noqa: PLC0415 - notebooks have it

    line = display({"text/plain": ""}, raw=True, display_id=True)
    yield lambda text: line.update({"text/plain": text}, raw=True)
    line.update({"text/plain": ""}, raw=True)


@contextmanager
def asking_progress(what: str, expected: str = "") -> Iterator[Callable[..., None]]:
    """Show how many comparisons were asked, on standard error; yields what `run` calls.

    `expected` is printed first, on a line that stays.
    """
    console = Console(stderr=True)
    if expected and (console.is_terminal or console.is_jupyter):
        console.print(expected, highlight=False)
    with step_progress(what) as step:

        def count(
            comparisons: int, rounds: int, spent: float | None = None, calls: int = 0
        ) -> None:
            paid = "" if spent is None else f"; {calls:,} calls, {money(spent)} spent"
            step(f"{what}: {comparisons:,} comparisons in {rounds:,} rounds{paid}")

        yield count
