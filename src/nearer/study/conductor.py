"""Keeps questions in stock and the map up to date, by two processes that compute.

Two threads, each with a worker process of its own, so that drawing a map never delays the next
questions. Each asks the desk what is due, its worker for it, and the store to keep it.

The stock is two questions for each person who is here, or what people answered while the last
batch was being chosen, whichever is more: small batches for the few and slow, which keeps the
choice close to the newest answers, and no waiting for the many and fast.

A worker that dies is started again; a job that fails is reported as `Conductor.trouble` and tried
again after a pause, and until then people are given hold-out questions, repeats and catch trials.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from nearer.errors import NearerError
from nearer.study.desk import AHEAD, Desk
from nearer.study.store import Store

__all__ = ["Conductor", "Job", "map_is_due", "questions_due"]

_PAUSE = 0.02
_AFTER_NOTHING = 0.5  # a study of few objects runs out of questions to choose
_AFTER_FAILURE = 5.0
_SORTS = ("adaptive", "basis")


class Job(TypedDict, total=False):
    """What a worker is asked to do."""

    job: str
    person: int | None
    n_questions: int


def questions_due(desk: Desk, sorted_at: int, taken: int = 0) -> Job | None:
    """Which questions should be chosen now, if any.

    Parameters
    ----------
    sorted_at
        Answers that counted when a sort was last asked; it has nothing to add before the next.
    taken
        Questions that were taken while the last batch was being chosen.
    """
    board, config = desk.board, desk.config
    if desk.state != "running" or desk.full:
        return None
    news = config.method not in _SORTS or board.mains != sorted_at
    if config.scope == "person":
        for person in board.active:
            if news and board.stock(person) < AHEAD:
                return {"job": "choose", "person": person, "n_questions": 2 * AHEAD}
        return None
    if config.method in _SORTS:
        return {"job": "choose", "person": None} if news and not board.stock() else None
    need = max(AHEAD * len(board.active), 2 * taken)
    if board.stock() > need // 2:
        return None
    return {"job": "choose", "person": None, "n_questions": max(config.batch, need)}


def map_is_due(desk: Desk, mapped: int) -> bool:
    """Whether enough has changed since a map of `mapped` answers to draw another."""
    answers = desk.board.mains
    return answers >= 10 and abs(answers - mapped) >= max(20, mapped // 10)


class Conductor:
    """Runs the workers of a study."""

    def __init__(self, store: Store, desk: Desk) -> None:
        self.stocked = threading.Event()  # the first questions are there
        self._store = store
        self._desk = desk
        self._stop = threading.Event()
        self._troubles: dict[str, str | None] = {}
        self._mapped = 0
        self._sorted_at = -1
        self._taken = 0
        self._chooser = _Process(store.path, nice=5)
        self._drawer = _Process(store.path, nice=10)
        self._threads = [
            threading.Thread(target=self._run, args=(name, turn), name=name, daemon=True)
            for name, turn in (("choosing questions", self._stock), ("drawing the map", self._draw))
        ]

    @property
    def trouble(self) -> str | None:
        """What fails at the moment."""
        return next((text for text in self._troubles.values() if text), None)

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the workers."""
        self._stop.set()
        self._chooser.close()
        self._drawer.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _run(self, name: str, turn: Callable[[], float]) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            try:
                pause = turn()
                self._troubles[name] = None
            except (NearerError, OSError, RuntimeError, ValueError) as error:
                if self._stop.is_set():
                    return
                self._troubles[name] = f"{name} failed: {error}"
                pause = _AFTER_FAILURE

    def _stock(self) -> float:
        """Have questions chosen if they are due; how long to wait before looking again."""
        job, answers = self._store.write(
            lambda _: (
                questions_due(self._desk, self._sorted_at, self._taken),
                self._desk.board.mains,
            )
        )
        if job is None:
            self.stocked.set()
            return _PAUSE
        reply = self._chooser.ask(job)
        self._sorted_at = answers
        self._taken = max(self._desk.board.mains - answers, self._taken * 3 // 4)
        questions = np.array(reply.pop("questions"), dtype=np.int64).reshape(-1, 3)
        new = self._store.write(lambda db: self._desk.pose(db, questions, **reply))
        self.stocked.set()
        return _PAUSE if new else _AFTER_NOTHING

    def _draw(self) -> float:
        if not map_is_due(self._desk, self._mapped):
            return 0.25
        found = self._drawer.ask({"job": "map"})["map"]
        if found is not None:
            self._mapped = found["n_triplets"]
            self._store.write(lambda db: self._desk.add_map(db, found))
        return 0.25


class _Process:
    """A worker process, started when it is first needed."""

    def __init__(self, path: Path, nice: int) -> None:
        self._command = [sys.executable, "-m", "nearer.study.worker", str(path), str(nice)]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, job: Job) -> dict[str, Any]:
        """Have one job done."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:  # pragma: no cover - both are pipes
            raise RuntimeError("the worker has no pipes")
        stdin.write(json.dumps(job) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError("the worker process ended; it will be started again")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def close(self) -> None:
        """End it; what it was doing is of no use any more."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()
