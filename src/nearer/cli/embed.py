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
from nearer.algorithms.pipelines import METHODS, make_strategy
from nearer.asking.journal import Journal
from nearer.asking.oracles import PointOracle
from nearer.asking.progress import asking_progress
from nearer.asking.run import run
from nearer.checks import amount
from nearer.cli import output
from nearer.cli.output import GivenPath, json_option, option, seed_option
from nearer.datasets.loaders import NamedPoints, load_named_points
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.files import json_text, positions_text, table_text, write_files


@click.command("embed")
@click.argument("data")
@option("--method", type=click.Choice(list(METHODS)), default="adaptive", help="The method.")
@option("--names", default="auto", metavar="COLUMN", help="Column of the names, or none.")
@seed_option
@click.option("--budget", type=click.IntRange(1), help="The most comparisons to ask.")
@click.option("--dim", "n_components", type=click.IntRange(1), help="Dimensions, else estimated.")
@click.option("--journal", type=click.Path(dir_okay=False), help="File of answers, to continue.")
@option("--out", type=GivenPath(), default="out/embed", help="Folder for the results.")
@json_option
def command(
    data: str,
    method: str,
    names: str,
    seed: int | None,
    journal: str | None,
    out: Path,
    as_json: bool,
    **limits: int | None,
) -> None:
    """Embed the objects of DATA from comparisons alone.

    DATA is a file of points (.csv, .npy, .npz, .parquet), whose distances answer the comparisons,
    or the name of a built-in data set: 3dgmm, 5dgmm, 5dcube, cities.
    """
    written = ("basis.json", "embedding.csv", "map.png", "triplets.csv")
    output.check_folder(out, written, [Path(file) for file in (data, journal) if file])
    known = _load(data, names, seed)
    points = known.points
    dense = np.ascontiguousarray(points if isinstance(points, np.ndarray) else points.toarray())
    digest = hashlib.sha256(repr(dense.shape).encode() + dense.tobytes()).hexdigest()
    out.mkdir(parents=True, exist_ok=True)
    book = Journal(journal) if journal else None
    if book is None and seed is None:
        seed = secrets.randbits(32)
    rest = f"; the answers are in {journal}; repeat the command to continue" if journal else ""
    with (
        output.stopped_by_ctrl_c(lambda: f"interrupted{rest}"),
        asking_progress(method) as progress,
    ):
        start = time.perf_counter()
        how: dict[str, Any] = {"progress": progress, "journal": book, "budget": limits["budget"]}
        how["about"] = {"data": digest}  # no journal of other data is continued
        strategy = make_strategy(method, points.shape[0], random_state=seed, **limits)
        embedding = run(strategy, PointOracle(points), **how)
        seconds = time.perf_counter() - start
        contents = _files(data, method, embedding, known)
        write_files(out, contents)
    used = seed if book is None else book.header.get("seed")
    summary = _summary(method, points, embedding, int(used or 0))
    summary |= {"seconds": round(seconds, 4), "out": str(out)}
    heads = {"n": "n_objects", "dimension": "dimension", "comparisons": "n_comparisons"}
    heads |= {"rounds": "n_rounds", "seconds": "seconds", "τ": "tau", "kNN": "knn_precision"}
    phases = embedding.history
    lines = [f"{p.name}: {amount(p.n_comparisons, 'comparison')}; {p.note}" for p in phases]
    lines += [*output.undetermined(embedding), f"in {out}: {', '.join(sorted(contents))}"]
    columns = {head: [summary[key]] for head, key in {**heads, "RMSE": "rmse"}.items()}
    output.show(summary, columns, lines, as_json=as_json, title=f"{data}, {method}")


@click.command("demo")
@option("--seed", type=click.IntRange(0), default=0, help="Makes it repeatable.")
@option("--out", type=GivenPath(), default="out/demo", help="Folder for the results.")
@json_option
@click.pass_context
def demo(context: click.Context, seed: int, out: Path, as_json: bool) -> None:
    """Re-draw the map of the world from comparisons alone.

    500 cities; every question is "is city a nearer to this city than city b is?". The picture
    aligns the result with the true map. Data: GeoNames, CC BY 4.0.
    """
    context.invoke(command, data="cities", seed=seed, out=out, as_json=as_json)
    if not as_json:
        output.say(f"the map re-drawn, beside the true one: {out / 'map.png'}")


def _load(data: str, names: str, seed: int | None) -> NamedPoints:
    """The points of a file or a built-in set; prints which columns are not used."""
    known = load_named_points(data, names=names, random_state=seed)
    if known.unread:
        unnamed = "; none of them has another text in every row, so objects are numbered"
        why = "" if known.names is not None else unnamed
        output.say(f"{data}: columns not used: {', '.join(known.unread)}{why}", err=True)
    if (n := known.points.shape[0]) < 3:
        raise InvalidInput(f"{data}: has {n} objects; at least 3 are needed")
    return known


def _summary(method: str, points: Any, embedding: Embedding, seed: int) -> dict[str, Any]:
    """The figures of a run, and how well the positions agree with the points."""
    X, details = embedding.positions, embedding.details
    return {
        "n_objects": len(X),
        "method": method,
        **output.dimension_figures(embedding),
        "n_comparisons": embedding.n_comparisons,
        "n_rounds": embedding.n_rounds,
        **{key: details[key] for key in ("loss", "n_starts") if key in details},
        "n_components": embedding.dimension,
        "seed": seed,
        "tau": metrics.mean_kendall_tau(points, X, random_state=seed),
        "knn_precision": metrics.knn_precision(points, X, random_state=seed),
        "rmse": metrics.distance_rmse(points, X, random_state=seed),
    }


def _files(
    data: str, method: str, embedding: Embedding, known: NamedPoints
) -> dict[str, str | bytes]:
    from nearer.plotting import as_png

    contents: dict[str, str | bytes] = {
        "embedding.csv": positions_text(embedding.positions, known.names),
        "triplets.csv": table_text(["head", "winner", "loser"], embedding.triplets.tolist()),
        "map.png": as_png(_picture(data, method, embedding, known)),
    }
    if (basis := embedding.details.get("basis")) is not None:
        figures = ("n_objects", "dimension", "stopped", "n_comparisons", "n_rounds")
        content: dict[str, Any] = {name: getattr(basis, name) for name in figures}
        content["axes"] = [
            {"endpoints": axis.endpoints, "members": axis.members.tolist()} for axis in basis.axes
        ]
        content["rankings"] = {str(x): ranking.tolist() for x, ranking in basis.rankings.items()}
        contents["basis.json"] = json_text(content, indent=1) + "\n"
    return contents


def _picture(data: str, method: str, embedding: Embedding, known: NamedPoints) -> Any:
    from nearer.datasets import load_cities
    from nearer.plotting import plot_basis, plot_positions, plot_world

    if data == "cities":
        return plot_world(embedding.positions, load_cities())
    if "basis" in embedding.details:
        dense = isinstance(known.points, np.ndarray)
        ax = plot_basis(embedding.details["basis"], known.points if dense else embedding.positions)
    else:
        ax = plot_positions(embedding.positions, labels=known.names)
    ax.set_title(f"{data}, {method}", parse_math=False)
    return ax
