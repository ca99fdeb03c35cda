"""`nearer data`: the data sets, their licences, and whether their files are here."""

from __future__ import annotations

import json
from typing import Any

import click

from nearer.cli.output import say

__all__ = ["command"]


@click.command("data")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list instead of a table.")
def command(as_json: bool) -> None:
    """List the data sets: objects, licence, size, and whether their files are here.

    Files are looked for in the folder that NEARER_DATA names, where it is set, then in the cache
    folder (NEARER_CACHE). Some sets can be downloaded instead.
    """
    from nearer.datasets.catalogue import CATALOGUE, folders

    rows = [_describe(data) for data in CATALOGUE]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    columns = {
        "name": [row["name"] for row in rows],
        "objects": [f"{row['objects']:,}" for row in rows],
        "size": [_bytes(row["bytes"]) for row in rows],
        "at hand": [row["at_hand"] for row in rows],
        "licence": [row["licence"] for row in rows],
        "what": [row["what"] for row in rows],
    }
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    for line in [list(columns), *zip(*columns.values(), strict=True)]:
        padded = (
            cell.rjust(width) if name in ("objects", "size") else cell.ljust(width)
            for cell, (name, width) in zip(line, widths.items(), strict=True)
        )
        say("  ".join(padded).rstrip())
    places = " and ".join(str(folder) for folder in folders())
    say(f"\nLooked for in {places}; NEARER_DATA and NEARER_CACHE name other folders.")


def _describe(data: Any) -> dict[str, Any]:
    from nearer.datasets.catalogue import locate

    paths = [locate(file) for file in data.files]
    missing = [file.name for file, path in zip(data.files, paths, strict=True) if path is None]
    if not data.files:
        at_hand = "shipped"
    elif not missing:
        at_hand = "yes"
    else:
        at_hand = "to download" if data.download else "no"
    return {
        "name": data.name,
        "what": data.what,
        "holds": data.holds,
        "objects": data.objects,
        "licence": data.licence,
        "source": data.source,
        "bytes": data.size,
        "at_hand": at_hand,
        "files": [str(path) for path in paths if path is not None],
        "missing": missing,
        "load": f"nearer.datasets.{data.loader}",
    }


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB" if size else "-"
