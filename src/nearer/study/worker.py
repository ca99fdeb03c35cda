"""The process that computes: it chooses questions and draws maps, so that no request waits.

``python -m nearer.study.worker STUDY.db NICENESS`` reads one job a line from its input, JSON, and
writes one reply a line. It reads the log from the file itself, through a read-only connection,
and never writes: what it found goes back to the server, whose writer puts it into the file. When
its input ends, it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from nearer.questions import answered, weighted
from nearer.study.choosers import Choosing, Sorting
from nearer.study.config import Config
from nearer.study.log import (
    asked_facts,
    collected,
    comparisons,
    last_answer,
    read_config,
    replay,
    triplets,
)
from nearer.study.store import connect

__all__ = ["Worker", "main"]


class Worker:
    """Does jobs on a study file."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path, read_only=True)
        self._choosings: dict[int | None, Choosing] = {}
        self._sortings: dict[int | None, Sorting] = {}

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        """One job, ``choose`` or ``map``, on one consistent state of the file."""
        self._db.execute("BEGIN")
        try:
            config = read_config(self._db)
            n = int(self._db.execute("SELECT count(*) FROM items").fetchone()[0])
            if job["job"] == "map":
                return self._map(config, n)
            return (self._sort if config.in_rounds else self._choose)(job, config, n)
        finally:
            self._db.execute("COMMIT")

    def _choose(self, job: dict[str, Any], config: Config, n: int) -> dict[str, Any]:
        began = time.perf_counter()
        person = job.get("person")
        seen = last_answer(self._db)
        batch = int(self._db.execute("SELECT count(*) FROM batches").fetchone()[0])
        if person not in self._choosings:
            seed = config.seed + (person or 0)
            self._choosings[person] = Choosing(config.method, n, config.n_components, seed)
        rows, _, _, unsure = comparisons(self._db, person=person)
        near = np.ma.MaskedArray(np.ones(len(rows), dtype=np.bool_), mask=unsure)
        told, weights = weighted(rows, near)
        questions, odds = self._choosings[person].choose(
            told,
            *asked_facts(self._db, person),
            int(job["n_questions"]),
            np.random.default_rng([config.seed, batch]),
            weights=weights,
        )
        return {
            "questions": np.asarray(questions).tolist(),
            "odds": None if odds is None else odds.tolist(),
            "done": not len(questions),
            "seen": seen,
            "person": person,
            "whole_round": False,
            "seconds": time.perf_counter() - began,
        }

    def _sort(self, job: dict[str, Any], config: Config, n: int) -> dict[str, Any]:
        began = time.perf_counter()
        person = job.get("person")
        decided = [
            ((q.query, *q.shown), answer)
            for q, answer in replay(self._db).decided()
            if q.person == person
        ]
        told = answered(
            np.array([row for row, _ in decided], dtype=np.int64).reshape(-1, 3),
            np.array([answer for _, answer in decided], dtype=np.bool_),
        )
        if person not in self._sortings:
            seed = config.seed + (person or 0)
            self._sortings[person] = Sorting(config.method, n, seed)
        questions = self._sortings[person].open(told)
        return {
            "questions": questions.tolist(),
            "done": self._sortings[person].done,
            "seen": last_answer(self._db),
            "person": person,
            "whole_round": person is None,
            "seconds": time.perf_counter() - began,
        }

    def _map(self, config: Config, n: int) -> dict[str, Any]:
        from nearer.study.maps import draw_map  # noqa: PLC0415 - slow to load, and not for choosing

        d, holdout = config.n_components, triplets(self._db, ["holdout"])
        answers = collected(self._db)
        return {"map": draw_map(answers, n, n_components=d, seed=config.seed, holdout=holdout)}


def main() -> None:
    """Serve jobs until the input ends."""
    with contextlib.suppress(OSError):
        os.nice(int(sys.argv[2]))  # answers come first
    reply = sys.stdout
    sys.stdout = sys.stderr  # what a library prints must not be taken for a reply
    worker = Worker(Path(sys.argv[1]))
    for line in sys.stdin:
        try:
            result = worker.do(json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        reply.write(json.dumps(result) + "\n")
        reply.flush()


if __name__ == "__main__":
    main()
