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

import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.methods import make_strategy, makers
from nearer.asking.journal import journal_seed
from nearer.asking.memory import Memory
from nearer.asking.oracles import PointOracle
from nearer.asking.progress import asking_progress
from nearer.asking.run import run
from nearer.cli.embed import WRITTEN, MethodRun, write_run
from nearer.cli.output import INTERRUPTED, check_folder, make_folder, say, stopped_by_ctrl_c
from nearer.datasets.points import load_named_points
from nearer.errors import InvalidInput
from nearer.files import read_numpy, write_bytes
from nearer.text import amount

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
    oracle = PointOracle(points, metric)
    makers()  # what takes a second to load is there before a folder is: from then on all is kept
    folder = make_folder(out)
    told = [seed, method, metric, budget, options]
    answers = (
        _PaidAnswers(folder, points, told)
        if journal is None
        else _Journalled(Path(journal), points, seed, metric)
    )
    with answers.kept_when_interrupted(), asking_progress(method) as progress:
        strategy = _strategy(method, points.shape[0], answers.seed, budget, options)
        start = time.perf_counter()
        embedding = run(strategy, oracle, progress=progress, **answers.how(budget))
        seconds = time.perf_counter() - start
        done = MethodRun(
            data, method, folder, points, metric, embedding, seconds, answers.seed_used(),
            given.names,
        )  # fmt: skip
        write_run(done)
    return done


def _strategy(method: str, n: int, seed: Any, budget: int | None, options: dict[str, Any]) -> Any:
    try:
        return make_strategy(method, n, random_state=seed, budget=budget, **options)
    except InvalidInput as error:  # in the words of the command
        message = str(error).replace("n_components=", "--dim ").replace("n_components", "--dim")
        raise InvalidInput(message) from None


def _fingerprint(points: Any, options: list[Any]) -> str:
    dense = points if isinstance(points, np.ndarray) else points.toarray()
    digest = hashlib.sha256(np.ascontiguousarray(dense).tobytes())
    digest.update(json.dumps([dense.shape, options]).encode())
    return digest.hexdigest()


class _Journalled:
    """The answers of a run in a file that the user has named, and that stays."""

    def __init__(self, file: Path, points: Any, seed: int | None, metric: str) -> None:
        self._file, self.seed = file, seed
        self._about = {"data": _fingerprint(points, [metric])}

    def how(self, budget: int | None) -> dict[str, Any]:
        """What `run` is told."""
        return {"journal": self._file, "about": self._about, "budget": budget}

    def seed_used(self) -> int:
        """The seed that was drawn where none was given."""
        return int(journal_seed(self._file) or 0)

    @contextmanager
    def kept_when_interrupted(self) -> Iterator[None]:
        """The answers are in the file already; say so on Ctrl-C."""
        said = f"interrupted; the answers are kept in {self._file}, and the same command goes on"
        with stopped_by_ctrl_c(lambda: said):
            yield


class _PaidAnswers:
    """The answers of a run; an interrupted one leaves them in the output folder for the next."""

    def __init__(self, folder: Path, points: NDArray[np.float64], options: list[Any]) -> None:
        self._fingerprint = _fingerprint(points, options)
        self._file = folder / INTERRUPTED
        self.memory = Memory()
        self.seed = options[0] if options[0] is not None else secrets.randbits(32)
        if self._file.exists():
            self._take_up()

    def how(self, budget: int | None) -> dict[str, Any]:
        """What `run` is told: what an interrupted run has paid for counts."""
        left = None if budget is None else max(0, budget - len(self.memory))
        return {"memory": self.memory, "budget": left}

    def seed_used(self) -> int:
        """The seed, drawn where none was given."""
        return int(self.seed)

    def _take_up(self) -> None:
        try:
            kept = read_numpy(self._file)
            if str(kept["fingerprint"]) != self._fingerprint:
                return
            self.memory, self.seed = Memory(kept["triplets"]), int(kept["seed"])
        except (ValueError, TypeError, LookupError, OverflowError):
            say(f"{self._file} cannot be read and is left aside", err=True)
            return
        say(f"going on from {amount(len(self.memory), 'answer')} of an interrupted run", err=True)

    @contextmanager
    def kept_when_interrupted(self) -> Iterator[None]:
        """Save the answers on Ctrl-C; once all is done nothing needs to be taken up again."""
        with stopped_by_ctrl_c(self._save):
            yield
        self._file.unlink(missing_ok=True)

    def _save(self) -> str:
        sink = io.BytesIO()
        np.savez(sink, triplets=self.memory.triplets, fingerprint=self._fingerprint, seed=self.seed)
        write_bytes(self._file, sink.getvalue())
        return (
            f"interrupted; {amount(len(self.memory), 'answer is', 'answers are')} kept in "
            f"{self._file}, and the same command goes on from there"
        )
