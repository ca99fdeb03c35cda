"""Keeps questions in stock: asks the desk what is due, the worker for it, and the store to keep it.

One thread, one worker process. Questions come before maps. A worker that dies is started again;
a job that fails is reported as `Conductor.trouble` and tried again after a pause, and until then
people are given hold-out questions, repeats and catch trials.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import Any, TypedDict

import numpy as np

from nearer.errors import NearerError
from nearer.study.config import Config
from nearer.study.desk import AHEAD, Desk
from nearer.study.store import Store

__all__ = ["Conductor", "Job", "due"]

_PAUSE = 0.05
_AFTER_NOTHING = 0.5  # a study of few objects runs out of questions to choose
_AFTER_FAILURE = 5.0


class Job(TypedDict, total=False):
    """What the worker is asked to do."""

    job: str
    person: int | None
    n_questions: int


def due(desk: Desk, mapped: int, sorted_at: int) -> Job | None:
    """The most urgent job, or None. `mapped` answers are on the last map."""
    board, config = desk.board, desk.config
    if desk.state == "running" and not desk.full:
        job = _due_questions(desk, config, sorted_at)
        if job is not None:
            return job
    if board.mains >= 10 and abs(board.mains - mapped) >= max(20, mapped // 10):
        return {"job": "map"}
    return None


def _due_questions(desk: Desk, config: Config, sorted_at: int) -> Job | None:
    board = desk.board
    active = list(board.active)
    if config.scope == "person":
        for person in active:
            if board.stock(person) < AHEAD and not _waits(desk, person, sorted_at):
                return {"job": "choose", "person": person, "n_questions": 2 * AHEAD}
        return None
    if config.method in ("adaptive", "basis"):
        if board.stock() or _waits(desk, None, sorted_at):
            return None
        return {"job": "choose", "person": None}
    need = AHEAD * len(active)
    if board.stock() > need // 2:
        return None
    return {"job": "choose", "person": None, "n_questions": max(config.batch, need)}


def _waits(desk: Desk, person: int | None, sorted_at: int) -> bool:
    """Whether a sort has nothing new to learn: no decision since the last time it was asked."""
    if desk.config.method not in ("adaptive", "basis"):
        return False
    return desk.board.mains == sorted_at


class Conductor:
    """Runs a worker for a store."""

    def __init__(self, store: Store, desk: Desk) -> None:
        self.trouble: str | None = None
        self._store = store
        self._desk = desk
        self._stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._mapped = 0
        self._sorted_at = -1
        self._thread = threading.Thread(target=self._run, name="study-conductor", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Finish the job in hand and end the worker."""
        self._stop.set()
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        pause = _PAUSE
        while not self._stop.wait(pause):
            try:
                pause = _PAUSE if self._turn() else _AFTER_NOTHING
                self.trouble = None
            except (NearerError, OSError, RuntimeError, ValueError) as error:
                if self._stop.is_set():
                    return
                self.trouble = f"choosing questions or drawing the map failed: {error}"
                pause = _AFTER_FAILURE

    def _turn(self) -> bool:
        job, answers = self._store.write(
            lambda _: (due(self._desk, self._mapped, self._sorted_at), self._desk.board.mains)
        )
        if job is None:
            return True
        reply = self._ask(job)
        if "map" in reply:
            self._mapped = answers
            if reply["map"] is not None:
                self._store.write(lambda db: self._desk.add_map(db, reply["map"]))
            return True
        self._sorted_at = answers
        questions = np.array(reply["questions"], dtype=np.int64).reshape(-1, 3)
        new = self._store.write(
            lambda db: self._desk.pose(
                db,
                questions,
                seen=reply["seen"],
                seconds=reply["seconds"],
                person=reply["person"],
                whole_round=reply["whole_round"],
            )
        )
        return new > 0

    def _ask(self, job: Job) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nearer.study.worker", str(self._store.path)],
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
