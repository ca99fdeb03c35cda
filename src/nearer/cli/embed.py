"""`nearer embed` and `nearer demo`: points in; positions, answers and a picture out.

The answers of a run are kept in its journal until it is complete. Without --journal that is kept in
memory, and saved in the folder of the results if the run is interrupted: the same command goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer import __version__, metrics
from nearer.algorithms.basis import Basis
from nearer.algorithms.methods import METHODS, make_strategy, makers
from nearer.asking.journal import Journal
from nearer.asking.oracles import PointOracle
from nearer.asking.progress import asking_progress
from nearer.asking.run import run
from nearer.checks import amount
from nearer.cli.output import (
    check_folder,
    dimension_figures,
    make_folder,
    print_summary,
    say,
    stopped_by_ctrl_c,
    undetermined,
)
from nearer.datasets.points import NamedPoints, load_named_points
from nearer.embedding import Embedding
from nearer.errors import InvalidInput, NearerError
from nearer.files import json_text, positions_text, table_text, write_files

__all__ = ["command", "demo"]

_WRITTEN = ("basis.json", "embedding.csv", "map.png", "triplets.csv")
_KEPT = "interrupted.db"  # the answers of an interrupted run, until it is complete


@click.command("embed")
@click.argument("data")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="adaptive",
    show_default=True,
    help="How to choose questions and find positions.",
)
@click.option("--metric", default="euclidean", show_default=True, help="Distance that answers.")
@click.option(
    "--names",
    default="auto",
    show_default=True,
    metavar="COLUMN",
    help="Column of DATA that names the objects; none: all columns of numbers are coordinates.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Makes the run repeatable.")
@click.option("--budget", type=click.IntRange(min=1), help="Ask at most so many comparisons.")
@click.option(
    "--dim",
    "n_components",
    type=click.IntRange(min=1),
    help="Fit in so many dimensions; as many as the answers call for by default.",
)
@click.option(
    "--endpoints",
    type=click.Choice(["above", "farthest-rank"]),
    help="How a basis chooses the ends of its axes: above (default), the paper's way.",
)
@click.option(
    "--order",
    type=click.Choice(["fewest-comparisons", "fewest-rounds"]),
    help="What the sorts of a basis save: fewest-comparisons (default) or rounds.",
)
@click.option(
    "--locate",
    type=click.Choice(["median", "linear", "binary"]),
    help="Method basis: how objects are placed on the axes; median (default) asks nothing.",
)
@click.option(
    "--extra",
    type=click.Choice(["sort", "select"]),
    help="Method extra+soe: sort (default) or select the neighbours of every object.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    help="Keep every answer in this file; the same command goes on from it.",
)
@click.option("--out", default="out/embed", show_default=True, help="Folder for the results.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(data: str, out: str, **options: Any) -> None:
    """Embed the objects of DATA from comparisons alone.

    DATA is a file of points (.csv, .npy, .npz, .parquet), from which every comparison is answered,
    or the name of a built-in data set: 3dgmm, 5dgmm, 5dcube, cities.
    """
    _embed(data, out, **options)


@click.command("demo")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", default="out/demo", show_default=True, help="Folder for the results.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def demo(seed: int, out: str, as_json: bool) -> None:
    """Re-draw the map of the world from comparisons alone.

    500 cities; every question is "is city a nearer to this city than city b is?". The picture
    lays what the answers tell over the true map. Data: GeoNames, CC BY 4.0.
    """
    _embed("cities", out, method="adaptive", seed=seed, as_json=as_json)
    if not as_json:
        say(f"the map re-drawn, beside the true one: {Path(out, 'map.png')}")


def _embed(
    data: str,
    out: str,
    *,
    as_json: bool,
    method: str,
    metric: str = "euclidean",
    seed: int | None = None,
    budget: int | None = None,
    journal: str | None = None,
    names: str = "auto",
    **options: Any,
) -> None:
    """Load, ask, embed, write and print."""
    check_folder(out, (*_WRITTEN, _KEPT), map(Path, filter(None, (data, journal))))
    given = _load(data, names, seed, options.get("n_components"))
    points = given.points
    makers()  # compiled code is loaded before the folder is made and the clock starts
    folder = make_folder(out)
    about = {"data": _digest(points, metric)}
    if journal is None:
        about["command"] = str([method, metric, seed, budget, sorted(options.items())])
    kept = folder / _KEPT
    book = _taken_up(kept, about) if journal is None else Journal(journal)
    with stopped_by_ctrl_c(lambda: _interrupted(book, kept)), asking_progress(method) as progress:
        start = time.perf_counter()
        found = run(
            make_strategy(method, points.shape[0], random_state=seed, budget=budget, **options),
            PointOracle(points, metric),
            progress=progress,
            journal=book,
            about=about,
            budget=budget,
        )
        seconds = time.perf_counter() - start
        contents = _files(data, method, found, given)
        write_files(folder, contents)
    if "basis.json" not in contents and _holds_axes(folder / "basis.json"):
        (folder / "basis.json").unlink()  # the axes of an earlier run
    if journal is None:
        kept.unlink(missing_ok=True)
    used = int(book.seed or 0)
    summary = _summary(method, found, seconds, used) | _against(points, found, metric, used)
    summary["out"] = str(folder)
    if as_json:
        click.echo(json_text(summary))
        return
    heads = {"n": "n_objects", "dimension": "dimension", "comparisons": "n_comparisons"}
    heads |= {"rounds": "n_rounds", "seconds": "seconds", "τ": "tau", "kNN": "knn_precision"}
    cells = {head: summary[key] for head, key in {**heads, "RMSE": "rmse"}.items()}
    lines = [
        f"{phase.name}: {amount(phase.n_comparisons, 'comparison')}; {phase.note}"
        for phase in found.history
    ]
    lines += [*undetermined(found), f"in {folder}: {', '.join(sorted(contents))}"]
    print_summary(f"{data}, {method}", cells, lines)


def _summary(method: str, found: Embedding, seconds: float, seed: int) -> dict[str, Any]:
    """The figures of a run, as ``--json`` prints them."""
    return {
        "n_objects": len(found.positions),
        "method": method,
        **dimension_figures(found),
        "n_comparisons": found.n_comparisons,
        "n_rounds": found.n_rounds,
        "seconds": round(seconds, 4),
        **{key: found.details[key] for key in ("loss", "n_starts") if key in found.details},
        "n_components": found.dimension,
        "seed": seed,
    }


def _load(data: str, names: str, seed: int | None, dim: int | None) -> NamedPoints:
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
    if dim is not None and dim >= n:
        raise InvalidInput(f"--dim {dim}: {n} objects span at most {n - 1} dimensions; lower --dim")
    return given


def _taken_up(file: Path, about: dict[str, str]) -> Journal:
    """The journal that an interrupted run of the same command has left, or one in memory."""
    if file.exists():
        try:
            book = Journal(file)
        except NearerError:
            say(f"{file} cannot be read and is left aside", err=True)
            return Journal()
        if {"version": __version__, **about}.items() <= book.header.items():
            say(f"going on from {amount(len(book), 'answer')} of an interrupted run", err=True)
            return book
        book.close()
    return Journal()


def _interrupted(book: Journal, kept: Path) -> str:
    if not len(book):
        return "interrupted; nothing was answered yet, and the same command begins anew"
    if book.path is None:
        kept.unlink(missing_ok=True)
        book.save(kept)
    return f"interrupted; the answers are kept in {book.path or kept}, and the same command goes on"


def _digest(points: Any, metric: str) -> str:
    """Identifies the data of a run, so that its journal is not continued with others."""
    dense = points if isinstance(points, np.ndarray) else points.toarray()
    digest = hashlib.sha256(np.ascontiguousarray(dense).tobytes())
    digest.update(json.dumps([dense.shape, [metric]]).encode())
    return digest.hexdigest()


def _against(points: Any, found: Embedding, metric: str, seed: int) -> dict[str, float]:
    """How near the positions come to the points."""
    how: dict[str, Any] = {"metric": metric, "random_state": seed}
    return {
        "tau": metrics.mean_kendall_tau(points, found.positions, **how),
        "knn_precision": metrics.knn_precision(points, found.positions, **how),
        "rmse": metrics.distance_rmse(points, found.positions, **how),
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


def _holds_axes(file: Path) -> bool:
    """True if a run wrote this file; another file of that name stays."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"axes", "rankings"} <= set(found)


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
