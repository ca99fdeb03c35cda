"""`nearer embed` and `nearer demo`: points in; positions, answers and a picture out."""

from __future__ import annotations

import hashlib
import secrets
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer import metrics
from nearer.algorithms.basis import Basis
from nearer.algorithms.methods import METHODS, make_strategy, makers
from nearer.asking.journal import Journal
from nearer.asking.oracles import PointOracle
from nearer.asking.progress import asking_progress
from nearer.asking.run import run
from nearer.checks import amount
from nearer.cli.output import (
    GivenPath,
    check_folder,
    dimension_figures,
    json_option,
    make_folder,
    option,
    print_table,
    say,
    seed_option,
    stopped_by_ctrl_c,
    undetermined,
)
from nearer.datasets.points import NamedPoints, load_named_points
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.files import json_text, positions_text, table_text, write_files

__all__ = ["command", "demo"]

_WRITTEN = ("basis.json", "embedding.csv", "map.png", "triplets.csv")


@click.command("embed")
@click.argument("data")
@option("--method", type=click.Choice(list(METHODS)), default="adaptive", help="How to ask.")
@option("--names", default="auto", metavar="COLUMN", help="Column with names; none: there is none.")
@seed_option
@click.option("--budget", type=click.IntRange(1), help="Ask at most so many comparisons.")
@click.option("--dim", "n_components", type=click.IntRange(1), help="Dimensions; else estimated.")
@click.option("--journal", type=click.Path(dir_okay=False), help="Keep answers; go on from them.")
@option("--out", type=GivenPath(), default="out/embed", help="Folder for the results.")
@json_option
def command(data: str, out: Path, **options: Any) -> None:
    """Embed the objects of DATA from comparisons alone.

    DATA is a file of points (.csv, .npy, .npz, .parquet), from which every comparison is answered,
    or the name of a built-in data set: 3dgmm, 5dgmm, 5dcube, cities.
    """
    _embed(data, out, **options)


@click.command("demo")
@option("--seed", type=click.IntRange(0), default=0, help="Makes it repeatable.")
@option("--out", type=GivenPath(), default="out/demo", help="Folder for the results.")
@json_option
def demo(seed: int, out: Path, as_json: bool) -> None:
    """Re-draw the map of the world from comparisons alone.

    500 cities; every question is "is city a nearer to this city than city b is?". The picture
    lays what the answers tell over the true map. Data: GeoNames, CC BY 4.0.
    """
    _embed("cities", out, method="adaptive", seed=seed, as_json=as_json)
    if not as_json:
        say(f"the map re-drawn, beside the true one: {out / 'map.png'}")


def _embed(
    data: str,
    out: Path,
    *,
    as_json: bool,
    method: str,
    seed: int | None = None,
    budget: int | None = None,
    n_components: int | None = None,
    journal: str | None = None,
    names: str = "auto",
) -> None:
    """Load, ask, embed, write and print."""
    check_folder(out, _WRITTEN, [Path(file) for file in (data, journal) if file])
    given = _load(data, names, seed)
    points = given.points
    makers()  # compiled code is loaded before the folder is made and the clock starts
    make_folder(out)
    book = Journal(journal) if journal else None
    if book is None and seed is None:
        seed = secrets.randbits(32)
    rest = f"; the answers are in {journal}, and the same command goes on" if journal else ""
    with stopped_by_ctrl_c(lambda: f"interrupted{rest}"), asking_progress(method) as progress:
        start = time.perf_counter()
        options = {"random_state": seed, "budget": budget, "n_components": n_components}
        found = run(
            make_strategy(method, points.shape[0], **options),
            PointOracle(points),
            progress=progress,
            journal=book,
            about={"data": _digest(points)},
            budget=budget,
        )
        seconds = time.perf_counter() - start
        contents = _files(data, method, found, given)
        write_files(out, contents)
    summary = _summary(method, points, found, int((seed if book is None else book.seed) or 0))
    summary |= {"seconds": round(seconds, 4), "out": str(out)}
    if as_json:
        click.echo(json_text(summary))
        return
    heads = {"n": "n_objects", "dimension": "dimension", "comparisons": "n_comparisons"}
    heads |= {"rounds": "n_rounds", "seconds": "seconds", "τ": "tau", "kNN": "knn_precision"}
    cells = {head: summary[key] for head, key in {**heads, "RMSE": "rmse"}.items()}
    print_table(f"{data}, {method}", {head: [cell] for head, cell in cells.items()})
    for phase in found.history:
        say(f"{phase.name}: {amount(phase.n_comparisons, 'comparison')}; {phase.note}")
    for line in undetermined(found):
        say(line)
    say(f"in {out}: {', '.join(sorted(contents))}")


def _load(data: str, names: str, seed: int | None) -> NamedPoints:
    """The points of a file or a built-in set; it says what of the file is not used."""
    given = load_named_points(data, names=names, random_state=seed)
    if given.unread:
        unnamed = (
            "; none of them has another text in every row, so objects are called by their numbers"
        )
        why = "" if given.names is not None else unnamed
        say(f"{data}: columns not used: {', '.join(given.unread)}{why}", err=True)
    if (n := given.points.shape[0]) < 3:
        raise InvalidInput(f"{data}: has {n} objects; at least 3 are needed")
    return given


def _digest(points: Any) -> str:
    """Identifies the data of a run, so that its journal is not continued with others."""
    dense = np.ascontiguousarray(points if isinstance(points, np.ndarray) else points.toarray())
    return hashlib.sha256(repr(dense.shape).encode() + dense.tobytes()).hexdigest()


def _summary(method: str, points: Any, found: Embedding, seed: int) -> dict[str, Any]:
    """The figures of a run, and how near the positions come to the points."""
    return {
        "n_objects": len(found.positions),
        "method": method,
        **dimension_figures(found),
        "n_comparisons": found.n_comparisons,
        "n_rounds": found.n_rounds,
        **{key: found.details[key] for key in ("loss", "n_starts") if key in found.details},
        "n_components": found.dimension,
        "seed": seed,
        "tau": metrics.mean_kendall_tau(points, found.positions, random_state=seed),
        "knn_precision": metrics.knn_precision(points, found.positions, random_state=seed),
        "rmse": metrics.distance_rmse(points, found.positions, random_state=seed),
    }


def _files(data: str, method: str, found: Embedding, given: NamedPoints) -> dict[str, str | bytes]:
    """What is written, by name."""
    from nearer.plotting import as_png

    basis: Basis | None = found.details.get("basis")
    contents: dict[str, str | bytes] = {
        "embedding.csv": positions_text(found.positions, given.names),
        "triplets.csv": table_text(["head", "winner", "loser"], found.triplets.tolist()),
        "map.png": as_png(_picture(data, method, found, given)),
    }
    if basis is not None:
        axes = [
            {"endpoints": axis.endpoints, "members": axis.members.tolist()} for axis in basis.axes
        ]
        figures = ("n_objects", "dimension", "stopped", "n_comparisons", "n_rounds")
        held = {name: getattr(basis, name) for name in figures}
        rankings = {str(head): ranking.tolist() for head, ranking in basis.rankings.items()}
        held |= {"axes": axes, "rankings": rankings}
        contents["basis.json"] = json_text(held, indent=1) + "\n"
    return contents


def _picture(data: str, method: str, found: Embedding, given: NamedPoints) -> Any:
    from nearer.datasets import load_cities
    from nearer.plotting import plot_basis, plot_positions, plot_world

    if data == "cities":
        return plot_world(found.positions, load_cities())
    if "basis" in found.details:
        dense = isinstance(given.points, np.ndarray)
        ax = plot_basis(found.details["basis"], given.points if dense else found.positions)
    else:
        ax = plot_positions(found.positions, labels=given.names)
    ax.set_title(f"{data}, {method}", parse_math=False)
    return ax.figure
