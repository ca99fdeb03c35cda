"""`nearer data`: the data sets, their licences, and whether their files are here."""

from __future__ import annotations

from typing import Any

import click

from nearer.cli.output import json_option, show


@click.command("data")
@json_option
def command(as_json: bool) -> None:
    """List the data sets: objects, licence, size, and whether their files are here.

    Files are looked for in the folder that NEARER_DATA names, if it is set, then in the cache
    folder (NEARER_CACHE).
    """
    from nearer.datasets.loaders import CATALOGUE, folders

    sets = [_describe(data) for data in CATALOGUE]
    left = {"at hand": "at_hand", "licence": "licence", "what": "what"}
    columns = {
        "name": [one["name"] for one in sets],
        "objects": [one["objects"] for one in sets],
        "size": [f"{one['bytes'] / 1e6:.2f} MB" for one in sets],
        **{head: [one[key] for one in sets] for head, key in left.items()},
    }
    places = " and ".join(str(folder) for folder in folders())
    where = f"\nLooked for in {places}; NEARER_DATA and NEARER_CACHE name other folders."
    show(sets, columns, [where], as_json=as_json, left=("name", *left))


def _describe(data: Any) -> dict[str, Any]:
    from nearer.datasets.loaders import locate

    paths = {file.name: locate(file) for file in data.files}
    missing = [name for name, path in paths.items() if path is None]
    at_hand = "shipped" if not data.files else "no" if missing else "yes"
    copied = ("name", "what", "holds", "objects", "licence", "source")
    return {
        **{name: getattr(data, name) for name in copied},
        "bytes": sum(file.size for file in data.files),
        "at_hand": at_hand,
        "files": [str(path) for path in paths.values() if path is not None],
        "missing": missing,
        "load": f"nearer.datasets.{data.loader}",
    }
