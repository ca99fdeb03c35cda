"""Run a method on points: with progress, interruptible, resumable.

Answers are what is paid for, so they are never thrown away: Ctrl-C leaves them in the output
folder, and the same command goes on from there. A fingerprint of the data and the options makes
sure that they are not mixed up with those of another run.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.methods import make_asking
from nearer.asking.memory import Memory
from nearer.asking.oracles import PointOracle
from nearer.cli.output import Outcome, check_folder
from nearer.cli.progress import asking_progress
from nearer.datasets import load_points
from nearer.errors import InvalidInput
from nearer.running.load import journal_seed
from nearer.running.run import run

__all__ = ["run_method"]


def run_method(
    data: str,
    out: str,
    *,
    method: str,
    metric: str = "euclidean",
    seed: int | None = None,
    budget: int | None = None,
    journal: str | None = None,
    **options: Any,
) -> Outcome:
    """Load, ask, embed; what comes back is ready to be reported."""
    points = load_points(data, random_state=seed)
    if points.shape[0] < 3:
        raise InvalidInput(f"{data}: has {points.shape[0]} objects; at least 3 are needed")
    oracle = PointOracle(points, metric)
    folder = check_folder(out)
    told = [seed, method, metric, budget, options]
    kept: Any = _Interrupted if journal is None else _Journalled
    interrupted = kept(folder if journal is None else Path(journal), points, told)
    asking = make_asking(
        method, points.shape[0], random_state=interrupted.seed, budget=budget, **options
    )
    start = time.perf_counter()
    try:
        with asking_progress(method) as progress:
            embedding = run(asking, oracle, budget=budget, progress=progress, **interrupted.how)
    except KeyboardInterrupt:
        raise interrupted.keep() from None
    seconds = time.perf_counter() - start
    interrupted.forget()
    return Outcome(data, method, folder, points, metric, embedding, seconds, interrupted.seed)


class _Stopped(click.ClickException):
    """Ended by Ctrl-C, with the exit code that shells use for it."""

    exit_code = 130


class _Journalled:
    """Answers of a run in a file that the user has named, and that stays."""

    def __init__(self, file: Path, points: Any, options: list[Any]) -> None:
        about = {"data": _fingerprint(points, [options[2]])}
        self._file = file
        self.seed: int | None = options[0]
        self.how: dict[str, Any] = {"journal": file, "about": about}

    def keep(self) -> click.ClickException:
        """The answers are there already; return the message to end with."""
        return _Stopped(
            f"interrupted; the answers are kept in {self._file}, and the same command goes on"
        )

    def forget(self) -> None:
        """The run is complete; the journal stays, and tells the seed that was drawn."""
        self.seed = journal_seed(self._file)


def _fingerprint(points: Any, options: list[Any]) -> str:
    dense = points if isinstance(points, np.ndarray) else points.toarray()
    digest = hashlib.sha256(np.ascontiguousarray(dense).tobytes())
    digest.update(json.dumps([dense.shape, options]).encode())
    return digest.hexdigest()


class _Interrupted:
    """Answers of an interrupted run, kept in the output folder until the run is complete."""

    def __init__(self, folder: Path, points: NDArray[np.float64], options: list[Any]) -> None:
        self._fingerprint = _fingerprint(points, options)
        self._file = folder / "interrupted.npz"
        self.memory = Memory()
        self.seed = options[0] if options[0] is not None else secrets.randbits(32)
        if self._file.exists():
            self._take_up()
        self.how: dict[str, Any] = {"memory": self.memory}

    def _take_up(self) -> None:
        try:
            with np.load(self._file, allow_pickle=False) as kept:
                if str(kept["fingerprint"]) != self._fingerprint:
                    return
                self.memory = Memory(kept["triplets"])
                self.seed = int(kept["seed"])
        except (OSError, ValueError, KeyError, EOFError):
            click.echo(f"{self._file} cannot be read and is left aside", err=True)
            return
        click.echo(f"going on from {len(self.memory):,} answers of an interrupted run", err=True)

    def keep(self) -> click.ClickException:
        """Save the answers; return the message to end with."""
        part = self._file.with_suffix(".part.npz")
        np.savez(part, triplets=self.memory.triplets, fingerprint=self._fingerprint, seed=self.seed)
        part.replace(self._file)
        return _Stopped(
            f"interrupted; {len(self.memory):,} answers are kept in {self._file}, and the same "
            "command goes on from there"
        )

    def forget(self) -> None:
        """The run is complete: nothing needs to be taken up again."""
        self._file.unlink(missing_ok=True)
