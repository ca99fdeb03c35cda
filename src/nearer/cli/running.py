"""Run a method on points: with progress, interruptible, resumable.

Answers are what is paid for, so they are never thrown away: Ctrl-C leaves them in the output
folder, and the same command goes on from there. A fingerprint of the data and the options makes
sure that they are not mixed up with those of another run.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.methods import make_asking
from nearer.asking.memory import Memory
from nearer.asking.oracles import PointOracle
from nearer.cli.output import MethodRun, check_folder, write_run
from nearer.cli.progress import asking_progress
from nearer.cli.stopping import Stopped
from nearer.datasets import load_points
from nearer.errors import InvalidInput
from nearer.files import write_bytes
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
    **options: Any,
) -> MethodRun:
    """Load, ask, embed and write; what comes back is ready to be printed."""
    points = load_points(data, random_state=seed)
    if points.shape[0] < 3:
        raise InvalidInput(f"{data}: has {points.shape[0]} objects; at least 3 are needed")
    oracle = PointOracle(points, metric)
    folder = check_folder(out)
    answers = _PaidAnswers(folder, points, [seed, method, metric, budget, options])
    asking = make_asking(
        method, points.shape[0], random_state=answers.seed, budget=budget, **options
    )
    start = time.perf_counter()
    with answers.kept_when_interrupted(), asking_progress(method) as progress:
        # what the interrupted run has paid for counts
        left = None if budget is None else max(0, budget - len(answers.memory))
        embedding = run(asking, oracle, budget=left, memory=answers.memory, progress=progress)
        seconds = time.perf_counter() - start
        done = MethodRun(data, method, folder, points, metric, embedding, seconds, answers.seed)
        write_run(done)
    return done


class _PaidAnswers:
    """The answers of a run; an interrupted one leaves them in the output folder for the next."""

    def __init__(self, folder: Path, points: NDArray[np.float64], options: list[Any]) -> None:
        digest = hashlib.sha256(np.ascontiguousarray(points).tobytes())
        digest.update(json.dumps([points.shape, options]).encode())
        self._fingerprint = digest.hexdigest()
        self._file = folder / "interrupted.npz"
        self.memory = Memory()
        self.seed = options[0] if options[0] is not None else secrets.randbits(32)
        if self._file.exists():
            self._take_up()

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

    @contextmanager
    def kept_when_interrupted(self) -> Iterator[None]:
        """Save the answers on Ctrl-C; once all is done nothing needs to be taken up again."""
        try:
            yield
        except KeyboardInterrupt:
            self._save()
            raise Stopped(
                f"interrupted; {len(self.memory):,} answers are kept in {self._file}, and the same "
                "command goes on from there"
            ) from None
        self._file.unlink(missing_ok=True)

    def _save(self) -> None:
        sink = io.BytesIO()
        np.savez(sink, triplets=self.memory.triplets, fingerprint=self._fingerprint, seed=self.seed)
        write_bytes(self._file, sink.getvalue())
