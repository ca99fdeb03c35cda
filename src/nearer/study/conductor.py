"""Keeps questions in stock and the map up to date, by two processes that compute.

Two threads, each with a worker process of its own, so that drawing a map never delays the next
questions. After every commit the writer looks at the board and says what is due, and wakes the
thread whose turn it is; the thread asks its worker for it, and the store to keep it.

The stock is two questions for each person who is here, or what people answered while the last
batch was being chosen, whichever is more: small batches for the few and slow, which keeps the
choice close to the newest answers, and no waiting for the many and fast.

A worker that dies is started again; a job that fails is reported as `Conductor.trouble` and tried
again after a pause, and until then people are given further votes and questions drawn at random.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from nearer.errors import NearerError
from nearer.study.actions import add_map
from nearer.study.board import Board
from nearer.study.posing import AHEAD, pose
from nearer.study.rows import Ledger
from nearer.study.store import Store

_AFTER_NOTHING = 0.5  # a study of few objects runs out of questions to choose
_AFTER_FAILURE = 5.0


class Job(TypedDict, total=False):
    """What a worker is asked to do."""

    job: str
    person: int | None
    n_questions: int


def questions_due(board: Board, sorted_at: Mapping[int | None, int], taken: int = 0) -> Job | None:
    """Which questions should be chosen now, if any.

    Parameters
    ----------
    sorted_at
        The board's `news` when a sort, everybody's or one person's, was last asked; it has nothing
        to add before there are further ones.
    taken
        Questions that were taken while the last batch was being chosen.
    """
    config = board.config

    def has_news(person: int | None) -> bool:
        return not config.in_rounds or board.news != sorted_at.get(person)

    if board.state != "running" or board.full or config.task != "two":
        return None
    if config.scope == "person":
        short = [who for who in board.active if board.stock(who) < AHEAD and has_news(who)]
        return {"job": "choose", "person": short[0], "n_questions": 2 * AHEAD} if short else None
    if board.exhausted and not board.stock():
        return None
    if config.in_rounds:
        return {"job": "choose", "person": None} if has_news(None) and not board.stock() else None
    need = max(AHEAD * len(board.active), 2 * taken)
    if board.stock() > need // 2:
        return None
    return {"job": "choose", "person": None, "n_questions": max(config.batch, need)}


def map_is_due(board: Board, mapped: int) -> bool:
    """Whether enough has changed since a map of `mapped` answers to draw another."""
    return board.answers >= 10 and abs(board.answers - mapped) >= max(20, mapped // 10)


class Conductor:
    """Runs the workers of a study."""

    def __init__(self, store: Store) -> None:
        self.stocked = threading.Event()  # the first questions are there
        self._store = store
        self._stopped = False
        self._troubles: dict[str, str | None] = {}
        self._chooser = _Process(store.path, nice=5)
        self._drawer = _Process(store.path, nice=10)
        # What the writer found due, guarded by `_news`, which wakes the threads.
        self._news = threading.Condition()
        self._job: Job | None = None
        self._answers = self._board_news = 0
        self._map_due = False
        self._mapped = 0
        self._sorted_at: dict[int | None, int] = {}
        self._taken = 0
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
        self._store.watch(self._look)
        self._store.write(lambda _: None)  # so that the board is looked at once
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the workers."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        self._chooser.close()
        self._drawer.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _look(self, board: Board) -> None:
        """After a commit, in the writer's thread: note what is due and wake who is to do it."""
        with self._news:
            self._answers, self._board_news = board.answers, board.news
            before = (self._job is not None, self._map_due)
            self._job = questions_due(board, self._sorted_at, self._taken)
            self._map_due = map_is_due(board, self._mapped)
            if self._job is None:
                self.stocked.set()
            now = (self._job is not None, self._map_due)
            if any(now) and now != before:  # woken once, not at every commit
                self._news.notify_all()

    def _run(self, name: str, turn: Callable[[], float]) -> None:
        while not self._stopped:
            try:
                pause = turn()
                self._troubles[name] = None
            except (NearerError, OSError, RuntimeError, ValueError) as error:
                if self._closing():
                    return
                self._troubles[name] = f"{name} failed: {error}"
                pause = _AFTER_FAILURE
            with self._news:
                if pause:
                    self._news.wait_for(lambda: self._stopped, pause)

    def _closing(self) -> bool:
        return self._stopped

    def _has_job(self) -> bool:
        return self._stopped or self._job is not None

    def _stock(self) -> float:
        """Wait until questions are due and have them chosen; how long to pause then."""
        with self._news:
            self._news.wait_for(self._has_job)
            job, answers, news = self._job, self._answers, self._board_news
            self._job = None
        if job is None:
            return 0.0
        reply = self._chooser.ask(job)

        def keep(ledger: Ledger) -> int:
            with self._news:
                self._sorted_at[job.get("person")] = news
                self._taken = max(ledger.board.answers - answers, self._taken * 3 // 4)
            return pose(ledger, **reply)

        new = self._store.write(keep)
        self.stocked.set()
        return 0.0 if new else _AFTER_NOTHING

    def _draw(self) -> float:
        """Wait until a map is due and have it drawn."""
        with self._news:
            self._news.wait_for(lambda: self._stopped or self._map_due)
            answers = self._answers
        if self._closing():
            return 0.0
        found = self._drawer.ask({"job": "map"})["map"]
        with self._news:
            self._mapped = found["n_triplets"] if found else answers
            self._map_due = False
        if found is not None:
            self._store.write(lambda ledger: add_map(ledger, found))
        return 0.0 if found else _AFTER_NOTHING


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
