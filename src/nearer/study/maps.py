"""The map of the objects from the answers so far, and how well it predicts answers.

A map is what `nearer.fit` makes of answers that may be wrong, of the people who gave them, and of
the odds with which their questions were chosen. "Can't decide" says that two things are about as
near. It depends on nothing else, so a process that was started again draws the same one.

While a study runs, the hold-out questions, which no method chose and no fit saw, say how often the
map predicts what people answer. At the end nothing is held back: the map is fitted to answers of
every kind, and the held-out folds of the fit say how well it predicts.
"""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nearer
from nearer.embedding import Embedding
from nearer.errors import AnswersWarning
from nearer.fitting.initial import principal_axes
from nearer.metrics import triplet_accuracy
from nearer.study.board import COUNTED
from nearer.study.rows import decode
from nearer.trials import Trials

#: purposes whose answers say something about the objects; a catch trial does not
EVERY_KIND = (*COUNTED, "holdout", "repeat")
FEWEST = 10  # answers below which no map is drawn


@dataclass(frozen=True)
class Collected:
    """Answers in the order they came, as `nearer.fit` takes them, near ties among them."""

    answers: Trials
    people: NDArray[np.int64]
    odds: NDArray[np.float64] | None  # with which their questions were chosen
    seen: int  # the number of the newest answer in the file

    @property
    def decided(self) -> int:
        """How many of them are no ties."""
        return int(self.answers.decided.sum())

    def first(self, m: int) -> Collected:
        """Only so many of them."""
        odds = None if self.odds is None else self.odds[:m]
        return Collected(self.answers[:m], self.people[:m], odds, self.seen)


def collected(
    db: sqlite3.Connection, purposes: Sequence[str] = COUNTED, person: int | None = None
) -> Collected:
    """Answers with who gave them and why they were asked for, excluded people left out.

    "Can't decide" is an answer, too: what was shown is about a tie. A skipped question is none.
    """
    rows = db.execute(
        """SELECT q.task, q.query, q.shown, a.chosen, q.choose, a.person, coalesce(q.odds, 1.0)
           FROM standing a JOIN posed q ON q.id = a.question
           WHERE q.purpose IN (SELECT value FROM json_each(?))
           AND a.choice IN ('chosen', 'undecided') AND coalesce(a.person = ?, 1)
           AND a.person NOT IN (SELECT person FROM excluded) ORDER BY a.id""",
        (json.dumps(list(purposes)), person),
    ).fetchall()
    decoded = [
        (task, query, decode(shown), None if chosen is None else decode(chosen), choose)
        for task, query, shown, chosen, choose, *_ in rows
    ]
    answers, source = as_trials(decoded)
    odds = np.array([row[6] for row in rows]) if answers.are_comparisons else None
    people = np.array([row[5] for row in rows], dtype=np.int64)[source]
    return Collected(answers, people, odds, last_answer(db))


def as_trials(rows: Sequence[tuple[Any, ...]]) -> tuple[Trials, NDArray[np.int64]]:
    """Answers (task, query, shown, chosen, wanted) as one container, and where its rows come from.

    Tasks of several kinds have no other form than triplets, which say nothing of ties.
    """
    if not rows:
        return Trials.from_triplets(np.empty((0, 3))), np.empty(0, dtype=np.int64)
    tasks, query, shown, chosen, wanted = (list(column) for column in zip(*rows, strict=True))
    kinds = set(tasks)
    if kinds == {"two"}:  # ten times as fast as the way below
        screens = np.array(shown, dtype=np.int64)
        near = np.array([-1 if one is None else one[0] for one in chosen])
        places = (screens == near[:, None]).astype(np.int64)
        found = Trials.from_places("near", np.array(query), screens, places, wanted=wanted)
        return found, np.arange(len(rows))
    if kinds == {"odd"}:
        odd = [None if one is None else one[0] for one in chosen]
        return Trials.odd_one_out(shown, odd), np.arange(len(rows))
    if "odd" not in kinds:
        found = Trials.near(query, shown, chosen, ranked="rank" in kinds, wanted=wanted)
        return found, np.arange(len(rows))
    parts = []
    for kind in sorted(kinds):
        which = np.flatnonzero(np.array(tasks) == kind)
        told, trial = as_trials([rows[k] for k in which.tolist()])[0].triplets()
        parts.append(np.column_stack([which[trial], told]))
    together = np.concatenate(parts)
    together = together[np.argsort(together[:, 0], kind="stable")]
    return Trials.from_triplets(together[:, 1:]), together[:, 0]


def triplets(db: sqlite3.Connection, purposes: Sequence[str] = COUNTED) -> NDArray[np.int64]:
    """Answers as ``(head, near, far)`` in the order they came, excluded people left out."""
    return collected(db, purposes).answers.triplets()[0]


def asked_facts(
    db: sqlite3.Connection, person: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The questions that a method must not choose again, its own and everybody else's; their odds.

    Odds are nan where a question was not chosen, or nobody knows how.
    """
    rows = db.execute(
        """SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]'), odds FROM posed
           WHERE task = 'two'
           AND (purpose IN ('holdout', 'extra', 'own') OR (purpose = 'main' AND person IS ?))""",
        (person,),
    ).fetchall()
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return table[:, :3].astype(np.int64), table[:, 3]


def last_answer(db: sqlite3.Connection) -> int:
    """The number of the newest answer, 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])


def draw_map(
    collected: Collected,
    n_objects: int,
    *,
    n_components: int | None = None,
    seed: int = 0,
    holdout: NDArray[np.int64] | None = None,
) -> dict[str, Any] | None:
    """What the dashboard shows; None while there are too few answers.

    Where `n_components` is None the dimension is estimated. `holdout` are triplets that are not
    among the answers, to judge the map by; where it is None the folds of the fit judge it.
    """
    if collected.decided < FEWEST:
        return None
    began = time.perf_counter()
    with warnings.catch_warnings():  # the accuracy is shown; that it begins at chance is no news
        warnings.simplefilter("ignore", AnswersWarning)
        found = nearer.fit(
            collected.answers,
            n_objects=n_objects,
            n_components=n_components or "auto",
            people=collected.people,
            odds=collected.odds,
            method="noisy",
            random_state=seed,
        )
    # the directions in which the objects differ, strongest first
    X = principal_axes(found.positions, found.dimension)
    if holdout is not None:
        judged, held = triplet_accuracy(holdout, X) if len(holdout) else None, len(holdout)
    else:
        judged = None if found.held_out is None else found.held_out.accuracy
        held = 0 if found.held_out is None else found.held_out.n_trials
    return {
        "seen": collected.seen,
        "n_triplets": collected.decided,
        "n_undecided": len(collected.answers) - collected.decided,
        "dimension": found.dimension,
        "accuracy": judged,
        "n_holdout": held,
        "expected_tau": _expected_tau(found),
        "seconds": time.perf_counter() - began,
        "positions": np.round(X, 4).tolist(),
    }


def _expected_tau(found: Embedding) -> float:
    """How good the positions are expected to be; nothing, where they probably lack dimensions."""
    more = sum(
        tried.get("probability", 0.0) for d, tried in found.evidence.items() if d > found.dimension
    )
    return float(found.details["expected_tau"]) if more <= 0.5 else 0.0
