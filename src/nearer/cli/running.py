"""Run a method on points, with progress; a journal keeps the answers if one is named."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from nearer import __version__
from nearer.algorithms.methods import make_strategy, makers
from nearer.asking.journal import Journal
from nearer.asking.oracles import PointOracle
from nearer.asking.progress import asking_progress
from nearer.asking.run import run
from nearer.checks import amount
from nearer.cli.embed import WRITTEN, MethodRun, write_run
from nearer.cli.output import check_folder, make_folder, say, stopped_by_ctrl_c
from nearer.datasets.points import load_named_points
from nearer.errors import InvalidInput, NearerError

__all__ = ["run_method"]

KEPT = "interrupted.db"  # the answers of an interrupted run, until it is complete


def run_method(
    data: str,
    out: str,
    *,
    method: str,
    metric: str = "euclidean",
    seed: int | None = None,
    budget: int | None = None,
    journal: str | None = None,
    names: str = "auto",
    **options: Any,
) -> MethodRun:
    """Load, ask, embed and write; what comes back is ready to be printed."""
    check_folder(out, WRITTEN, map(Path, filter(None, (data, journal))))
    given = load_named_points(data, names=names, random_state=seed)
    points = given.points
    if given.assumed is not None:
        say(
            f"{data}: {given.assumed!r} numbers the objects and is no coordinate; --names none "
            "makes it one",
            err=True,
        )
    if given.unread:
        unnamed = (
            "; none of them has another text in every row, so objects are called by their numbers"
        )
        unread = ", ".join(given.unread)
        why = "" if given.names is not None else unnamed
        say(f"{data}: columns not used: {unread}{why}", err=True)
    if points.shape[0] < 3:
        raise InvalidInput(f"{data}: has {points.shape[0]} objects; at least 3 are needed")
    n, d = points.shape[0], options.get("n_components")
    if d is not None and d >= n:
        raise InvalidInput(f"--dim {d}: {n} objects span at most {n - 1} dimensions; lower --dim")
    makers()  # compiled code is loaded before the folder is made and the clock starts
    folder = make_folder(out)
    about = {"data": _digest(points, metric)}
    kept = folder / KEPT
    command = {"command": str([seed, method, metric, budget, sorted(options.items())]), **about}
    book = Journal(journal) if journal else _taken_up(kept, command)
    with stopped_by_ctrl_c(lambda: _interrupted(book, kept)), asking_progress(method) as progress:
        start = time.perf_counter()
        embedding = run(
            make_strategy(method, points.shape[0], random_state=seed, budget=budget, **options),
            PointOracle(points, metric),
            progress=progress,
            journal=book,
            about=about if journal else command,
            budget=budget,
        )
        seconds = time.perf_counter() - start
        used = int(book.seed or 0)
        done = MethodRun(
            data, method, folder, points, metric, embedding, seconds, used, given.names
        )
        write_run(done)
    if not journal:
        kept.unlink(missing_ok=True)
    return done


def _taken_up(file: Path, command: dict[str, str]) -> Journal:
    """The journal that an interrupted run of the same command has left, or one in memory."""
    if file.exists():
        try:
            book = Journal(file)
        except NearerError:
            say(f"{file} cannot be read and is left aside", err=True)
            return Journal()
        same = {"version": __version__, **command}.items() <= book.header.items()
        if same:
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
