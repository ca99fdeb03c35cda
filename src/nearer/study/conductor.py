"""Keeps questions ready and the map up to date, by two processes that compute.

The stock is two questions for each active person, or as many as were answered while the last batch
was being chosen, if that is more. While a failed worker restarts, people get further votes and
random questions.
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
from typing import Any

from nearer.errors import NearerError
from nearer.study.actions import AHEAD, add_map, pose
from nearer.study.board import Board, Ledger
from nearer.study.store import AGAIN, Store

Job = dict[str, Any]


def questions_due(board: Board, taken: int = 0) -> Job | None:
    """Which questions should be chosen now, `taken` having been taken during the last choice."""
    config = board.config
    if board.state != "running" or board.full or config.task != "two":
        return None
    if config.scope == "person":
        short = [who for who in board.active if board.stock(who) < AHEAD]
        return {"job": "choose", "person": short[0], "n_questions": 2 * AHEAD} if short else None
    need = max(AHEAD * len(board.active), 2 * taken)
    if (board.exhausted and not board.stock()) or board.stock() > need // 2:
        return None
    return {"job": "choose", "person": None, "n_questions": max(config.batch, need)}


def map_is_due(board: Board, mapped: int) -> bool:
    """Whether enough has changed since a map of `mapped` answers to draw another."""
    return board.answers >= 10 and abs(board.answers - mapped) >= max(20, mapped // 10)


class Conductor:
    """Runs the workers of a study."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mapped = 0
        self._taken = 0  # read and written in the writer's thread alone
        self._chooser = _Loop("choosing questions", store.path, 5, self._choice, self._stock)
        self._drawer = _Loop("drawing the map", store.path, 10, self._drawing, self._draw)

    @property
    def trouble(self) -> str | None:
        """The present failures."""
        return self._chooser.trouble or self._drawer.trouble

    def start(self) -> None:
        """Begin."""
        for loop in (self._chooser, self._drawer):
            self._store.watch(loop.look)
            loop.start()
        self._store.write(lambda _: None)  # so that the watcher sees the board once

    def close(self) -> None:
        """End the workers."""
        for loop in (self._chooser, self._drawer):
            loop.close()

    def _choice(self, board: Board) -> Job | None:
        return (job := questions_due(board, self._taken)) and {**job, "answers": board.answers}

    def _stock(self, job: Job, reply: dict[str, Any]) -> bool:
        def store(ledger: Ledger) -> int:
            self._taken = max(ledger.board.answers - job["answers"], self._taken * 3 // 4)
            return pose(ledger, **reply)

        return bool(self._store.write(store))

    def _drawing(self, board: Board) -> Job | None:
        return {"job": "map", "answers": board.answers} if map_is_due(board, self._mapped) else None

    def _draw(self, job: Job, reply: dict[str, Any]) -> bool:
        drawn = reply["map"]
        self._mapped = drawn["n_triplets"] if drawn else job["answers"]
        if drawn:
            self._store.write(lambda ledger: add_map(ledger, drawn))
        return drawn is not None


class _Loop(threading.Thread):
    """Gives a worker process the jobs that are `due`, one after the other.

    `use` takes a job and its reply, and returns whether the reply was of use.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        nice: int,
        due: Callable[[Board], Job | None],
        use: Callable[[Job, dict[str, Any]], bool],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.trouble: str | None = None
        self._command = [sys.executable, "-m", "nearer.study.worker", str(path), str(nice)]
        self._process: subprocess.Popen[str] | None = None  # started when it is first needed
        self._due, self._use = due, use
        self._news = threading.Condition()
        self._job: Job | None = None
        self._stopped = False

    def look(self, board: Board) -> None:
        """After a commit, in the writer's thread: record the jobs that are due."""
        job = self._due(board)
        with self._news:
            woken = job is not None and self._job is None
            self._job = job
            if woken:  # once, not at every commit
                self._news.notify_all()

    def run(self) -> None:
        """Work until closed."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._stopped or self._job is not None)
                job, self._job = self._job, None
            if self._stopped or job is None:
                return
            try:
                pause = 0.0 if self._use(job, self.ask(job)) else AGAIN
                self.trouble = None
            except (NearerError, OSError, RuntimeError, ValueError) as error:
                self.trouble = None if self._stopped else f"{self.name} failed: {error}"
                pause = AGAIN
            with self._news:
                self._news.wait_for(lambda: self._stopped, pause)

    def close(self) -> None:
        """End the thread and its process; an unfinished job is dropped."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError), self._process:  # closes its streams and waits
                pass
        self.join(timeout=5)

    def ask(self, job: Job) -> dict[str, Any]:
        """Give the process one job, and return its reply."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018 - both are pipes
        stdin.write(json.dumps(job) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError("the worker process ended; it will be started again")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply
