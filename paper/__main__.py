"""Compute the paper's tables and figures: ``python -m paper all --quick``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from benchmarks.cells import FinishedCells, compute_cells
from nearer.errors import NearerError
from paper.experiments import FULL, QUICK, TARGETS, list_experiments
from paper.page import make_page, write_docs, write_page

_DOCS = Path(__file__).resolve().parents[1] / "docs"


@click.command("paper")
@click.argument("target", type=click.Choice([*TARGETS, "page"]))
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    help="Runs of every cell, each with its own seed  [default: 100, 10 and 3 for the tables]",
)
@click.option("--quick", is_flag=True, help="A few minutes: 500 objects at most, a run or two.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=Path, default="out/paper", show_default=True, help="Folder of results.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    help="Processes at a time  [default: one a core]",
)
@click.option("--scheduler", metavar="ADDRESS", help="Compute on the Dask scheduler at tcp://…")
def command(
    target: str,
    runs: int | None,
    quick: bool,
    seed: int,
    out: Path,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Compute the paper's tables and figures, beside the paper's own.

    Every finished cell is stored in the folder; after Ctrl-C repeat the command to continue. The
    report is one HTML file, with the same as Markdown and the tables as CSV beside it. Missing data
    sets are left out, and the report says how to get them.

    The target "page" makes docs/reproduction.md again, from the cells in --out if there are any,
    else from docs/reproduction.jsonl.
    """
    source = out / "cells.jsonl"
    if target == "page":
        files = write_docs(_DOCS, source if source.exists() else _DOCS / "reproduction.jsonl")
    else:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"--out {out}: {error.strerror}; name a folder") from error
        finished = FinishedCells(source)
        cells = list_experiments(target, (QUICK if quick else FULL).with_runs(runs), seed)
        compute_cells(cells, finished, jobs=jobs, scheduler=scheduler)
        page = make_page(target, cells, finished, seed=seed)
        files = write_page(page, target, out)
    click.echo("\n".join(str(file) for file in files))


def main() -> int:
    """Run the command; Ctrl-C is exit code 130, an error of ours is one line and code 2."""
    try:
        command.main(prog_name="python -m paper", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        print("interrupted; finished cells are stored, the same command goes on", file=sys.stderr)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except NearerError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
