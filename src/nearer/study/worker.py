"""The process that computes: it chooses questions and draws maps, so that no request waits.

``python -m nearer.study.worker STUDY.db NICENESS`` reads one job a line from its input, JSON, and
writes one reply a line. It never writes to the file. When its input ends, it ends.

While a study runs, hold-out questions show how often the map predicts answers. The final map is
fitted to answers of every kind, and the held-out folds of the fit show it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from nearer.algorithms.choose_questions import Candidates, draw_round
from nearer.embedding import Embedding
from nearer.errors import AnswersWarning
from nearer.fitting.belief import Belief
from nearer.fitting.solver import principal_axes
from nearer.metrics import triplet_accuracy
from nearer.questions import Answers, Floats, Objects, Questions, find, pack, weighted
from nearer.study.board import COUNTED, decode
from nearer.study.config import Config
from nearer.study.store import connect, read_config, stored_items
from nearer.trials import Trials

#: purposes whose answers are about the objects; a catch trial's is not
EVERY_KIND = (*COUNTED, "holdout", "repeat")
FEWEST = 10  # answers below which no map is drawn


@dataclass(frozen=True)
class Collected:
    """Answers in the order they came, as `nearer.fit` takes them, near ties among them."""

    answers: Trials
    odds: Floats | None  # of the choice of their questions
    seen: int  # the number of the newest answer in the file

    @property
    def decided(self) -> int:
        """How many of them are not ties."""
        return int(self.answers.decided.sum())

    def first(self, m: int) -> Collected:
        """The first `m` of them."""
        odds = None if self.odds is None else self.odds[:m]
        return Collected(self.answers[:m], odds, self.seen)


def collected(
    db: sqlite3.Connection,
    purposes: Sequence[str] = COUNTED,
    person: int | None = None,
    names: Sequence[str] | None = None,
) -> Collected:
    """Answers of people who are not excluded; "can't decide" is one, a skipped question not."""
    rows = db.execute(
        """SELECT q.task, q.query, q.shown, a.chosen, q.choose, a.person, coalesce(q.odds, 1.0)
           FROM standing a JOIN questions q ON q.id = a.question
           WHERE q.purpose IN (SELECT value FROM json_each(?))
           AND a.choice IN ('chosen', 'undecided') AND coalesce(a.person = ?, 1)
           AND a.person NOT IN (SELECT person FROM excluded) ORDER BY a.id""",
        (json.dumps(list(purposes)), person),
    ).fetchall()
    decoded = [(*row[:2], decode(row[2]), row[3] and decode(row[3]), *row[4:6]) for row in rows]
    answers = as_trials(decoded).with_fields(names=None if names is None else tuple(names))
    odds = np.array([row[-1] for row in rows]) if answers.are_comparisons else None
    newest = "SELECT coalesce(max(id), 0) FROM answers"
    return Collected(answers, odds, db.execute(newest).fetchone()[0])


def as_trials(rows: Sequence[tuple[Any, ...]]) -> Trials:
    """Answers (task, query, shown, chosen, wanted, person) as one container."""
    if not rows:
        return Trials.from_triplets(np.empty((0, 3)), people=np.empty(0, dtype=np.int64))
    tasks, query, shown, chosen, wanted, people = map(list, zip(*rows, strict=True))
    kinds = set(tasks)
    if kinds == {"odd"}:
        odd = [None if one is None else one[0] for one in chosen]
        return Trials.odd_one_out(shown, odd, people=people)
    if "odd" not in kinds:
        ranked = "rank" in kinds
        return Trials.near(query, shown, chosen, ranked=ranked, wanted=wanted, people=people)
    parts = []  # several tasks have only triplets in common, which cannot express ties
    for odd_ones in (True, False):
        part = as_trials([row for row in rows if (row[0] == "odd") == odd_ones])
        near, trial = part.triplets()
        assert part.people is not None
        parts.append(Trials.from_triplets(near, people=part.people[trial]))
    return Trials.joined(parts)


def triplets(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> Objects:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
    return collected(db, purposes).answers.triplets()[0]


def asked_facts(db: sqlite3.Connection, person: int | None = None) -> tuple[Objects, Floats]:
    """Questions that a method must not choose again, and their odds; nan: random, or not known."""
    rows = db.execute(
        """SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]'), odds
           FROM questions WHERE task = 'two'
           AND (purpose IN ('holdout', 'extra', 'own') OR purpose = 'main' AND person IS ?)""",
        (person,),
    ).fetchall()
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return table[:, :3].astype(np.int64), table[:, 3]


def fit_map(
    collected: Collected, n_objects: int, n_components: int | None, seed: int
) -> Embedding | None:
    """The fit of answers; a dimension of None is estimated. None: too few answers."""
    if collected.decided < FEWEST:
        return None
    d, odds = n_components or "auto", collected.odds
    how: dict[str, Any] = {"n_objects": n_objects, "n_components": d, "odds": odds}
    return nearer.fit(collected.answers, method="noisy", random_state=seed, **how)


def draw_map(
    collected: Collected,
    n_objects: int,
    *,
    n_components: int | None = None,
    seed: int = 0,
    holdout: Objects | None = None,
) -> dict[str, Any] | None:
    """The map that the dashboard shows; None while there are too few answers."""
    began = time.perf_counter()
    with warnings.catch_warnings():  # the accuracy is shown, and it always begins at chance
        warnings.simplefilter("ignore", AnswersWarning)
        embedding = fit_map(collected, n_objects, n_components, seed)
    if embedding is None:
        return None
    return map_figures(embedding, collected, holdout) | {"seconds": time.perf_counter() - began}


def map_figures(
    embedding: Embedding, collected: Collected, holdout: Objects | None = None
) -> dict[str, Any]:
    """The positions, strongest direction first; `holdout`, or the fit's folds, judge them."""
    X, d = principal_axes(embedding.positions, embedding.dimension), embedding.dimension
    more = sum(one.get("probability", 0.0) for k, one in embedding.evidence.items() if k > d)
    if holdout is not None:
        judged, held = triplet_accuracy(holdout, X) if len(holdout) else None, len(holdout)
    else:
        judged = None if embedding.held_out is None else embedding.held_out.accuracy
        held = 0 if embedding.held_out is None else embedding.held_out.n_trials
    return {
        "seen": collected.seen,
        "n_triplets": collected.decided,
        "n_undecided": len(collected.answers) - collected.decided,
        "dimension": d,
        "accuracy": judged,
        "n_holdout": held,
        # τ is not predicted for positions that probably lack dimensions
        "expected_tau": float(embedding.details["expected_tau"]) if more <= 0.5 else 0.0,
        "positions": np.round(X, 4).tolist(),
    }


class Choosing:
    """Chooses from all answers; each fit starts from the last one."""

    def __init__(self, method: str, n_objects: int, n_components: int | None, seed: int) -> None:
        self._n = n_objects
        self._belief: Belief | None = None
        if method != "random":
            self._belief = Belief(n_objects, n_components, np.random.default_rng(seed))

    def choose(
        self,
        triplets: Objects,
        asked: Objects,
        odds: Floats,
        n_questions: int,
        rng: np.random.Generator,
        *,
        weights: Floats | None = None,
    ) -> tuple[Questions, Floats | None]:
        """Up to `n_questions` questions that were not asked, and their odds."""
        known = np.unique(pack(asked)[0])

        def askable(questions: Questions) -> Answers:
            return ~find(known, pack(questions)[0])[1]

        n_questions = min(n_questions, self._n * (self._n - 1) * (self._n - 2) // 2 - len(known))
        if n_questions <= 0:
            return np.empty((0, 3), dtype=np.int64), None
        if self._belief is None:
            return Candidates(self._n, askable).draw(n_questions, rng), None
        chosen = np.isfinite(odds)
        self._belief.expect(asked[chosen], odds[chosen])
        candidates = Candidates(self._n, askable)
        if len(triplets):
            self._belief.learn(triplets, weights=weights)
            candidates.exclude(triplets)
        questions, _ = draw_round(self._belief, candidates, n_questions, rng)
        return questions, self._belief.odds(questions)


class Worker:
    """Does jobs on a study file."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path, read_only=True)
        self._choosings: dict[int | None, Choosing] = {}

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        """One job, ``choose`` or ``map``."""
        if job["job"] == "map":
            with self._moment() as (config, n):
                answers, holdout = collected(self._db), triplets(self._db, ["holdout"])
            d = config.n_components
            return {"map": draw_map(answers, n, n_components=d, seed=config.seed, holdout=holdout)}
        return self._choose(job.get("person"), job["n_questions"])

    @contextlib.contextmanager
    def _moment(self) -> Iterator[tuple[Config, int]]:
        """Read one consistent state of the file; the settings, and how many items there are."""
        self._db.execute("BEGIN")
        try:
            yield read_config(self._db), len(stored_items(self._db))
        finally:
            self._db.execute("COMMIT")

    def _choose(self, person: int | None, n_questions: int) -> dict[str, Any]:
        """The most informative questions, given all answers so far."""
        began = time.perf_counter()
        with self._moment() as (config, n):
            (batch,) = self._db.execute("SELECT count(*) FROM batches").fetchone()
            answers = collected(self._db, person=person)
            asked = asked_facts(self._db, person)
        if person not in self._choosings:
            seed = config.seed + (person or 0)
            self._choosings[person] = Choosing(config.method, n, config.n_components, seed)
        trials = answers.answers
        near = np.ma.MaskedArray(trials.chosen[:, 0] > 0, mask=~trials.decided)
        rows, weights = weighted(trials.questions, near)
        rng = np.random.default_rng([config.seed, batch])
        chooser = self._choosings[person]
        questions, odds = chooser.choose(rows, *asked, n_questions, rng, weights=weights)
        return {
            "questions": questions.tolist(),
            "odds": None if odds is None else odds.tolist(),
            "done": not len(questions),
            "seen": answers.seen,
            "person": person,
            "seconds": time.perf_counter() - began,
        }


def main() -> None:
    """Serve jobs until the input ends."""
    with contextlib.suppress(OSError):
        os.nice(int(sys.argv[2]))  # answers come first
    reply = sys.stdout
    sys.stdout = sys.stderr  # output of libraries must not be read as a reply
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
