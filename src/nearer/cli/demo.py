"""`nearer demo`: the main job on 500 cities of the world, shipped with the package."""

from __future__ import annotations

import click

from nearer.cli.embed import print_run
from nearer.cli.output import say
from nearer.cli.running import run_method

__all__ = ["command"]


@click.command("demo")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", default="out/demo", show_default=True, help="Folder for the results.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(seed: int, out: str, as_json: bool) -> None:
    """Re-draw the map of the world from comparisons alone.

    500 cities; every question is "is city a nearer to this city than city b is?". The picture
    lays what the answers tell over the true map. Data: GeoNames, CC BY 4.0.
    """
    done = run_method("cities", out, method="adaptive", seed=seed)
    print_run(done, as_json=as_json)
    if not as_json:
        say(f"the map re-drawn, beside the true one: {done.folder / 'map.png'}")
