"""Options that several commands share."""

from __future__ import annotations

import click

__all__ = ["scheduler_option"]

scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Have coarse work done by the Dask scheduler at tcp://host:port; needs nearer[dask].",
)
