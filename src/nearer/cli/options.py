"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nearer.files import as_path

__all__ = ["GivenPath", "scheduler_option"]


class GivenPath(click.Path):
    """A path that somebody gave: an empty one, as of a variable not set, is no current folder."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or an error that says what is wrong with it."""
        as_path(value)
        return super().convert(value, param, ctx)


scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Have coarse work done by the Dask scheduler at tcp://host:port; needs nearer[dask].",
)
