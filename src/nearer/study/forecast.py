"""How many answers will it take? A study tried out on simulated people."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.metrics import triplet_accuracy
from nearer.study.config import Config
from nearer.study.create import new_study
from nearer.study.imports import Item
from nearer.study.log import EVERY_KIND, Collected, collected, read_config, triplets
from nearer.study.maps import draw_map
from nearer.study.simulate import Crowd, answer_all, served
from nearer.study.store import connect

__all__ = ["empty_copy", "plan"]

_CUTS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_PROBES = 4000
_THINKING = 5.0  # seconds an answer takes people, for want of another number


def empty_copy(study: Path, copy: Path, **changes: Any) -> list[str]:
    """A new study with the settings of another, and its items as words; the words."""
    db = connect(study, read_only=True)
    config = read_config(db)
    names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    db.close()
    if config.task != "two":
        raise InvalidInput(
            f"task={config.task!r}: simulated people compare two things; for other tasks see "
            "`nearer plan --hours`"
        )
    settings = {
        **config.__dict__,
        "quota": 0,
        "quality": 1.0,
        "joins_per_minute": 0,
        "fastest_ms": 0,
        **changes,
    }
    new_study(copy, [Item(name, "text", name) for name in names], Config.of(settings))
    return names


def plan(
    study: Path,
    folder: Path,
    *,
    n_answers: int,
    n_people: int,
    positions: NDArray[np.float64] | None,
    dim: int,
    error: float,
    seconds: float,
    dropout: float,
    seed: int,
) -> dict[str, Any]:
    """Collect answers from simulated people and say how good the map is for each number of them."""
    copy = folder / "simulated.db"
    names = empty_copy(study, copy, seed=seed)
    n = len(names)
    X = np.random.default_rng(seed).normal(size=(n, dim)) if positions is None else positions
    if len(X) != n:
        raise InvalidInput(f"positions of {len(X)} items: the study has {n}")
    people = Crowd(X, error=error, seconds=seconds, dropout=dropout, names=tuple(names))
    began = time.perf_counter()
    with served(copy) as server:
        outcome = answer_all(server.port, people, n_people, n_answers, seed=seed)
    took = time.perf_counter() - began
    db = connect(copy, read_only=True)
    answers, holdout = collected(db), triplets(db, ["holdout"])
    every = len(triplets(db, EVERY_KIND))
    config = read_config(db)
    stored = int(db.execute("SELECT count(*) FROM standing").fetchone()[0])
    db.close()
    think = seconds or _THINKING
    # What a row of the table costs: all answers people gave for so many that count.
    cost = stored / max(len(answers.answers), 1)
    curve = _curve(answers, holdout, X, config.n_components, seed)
    for row in curve:
        row["answers"] = round(row["n_triplets"] * cost)
        row["people"] = math.ceil(row["answers"] / config.questions)
        row["hours"] = row["answers"] * think / 3600
    return {
        "n_objects": n,
        "method": config.method,
        "error": error,
        "answers": len(outcome.acknowledged),
        "stored": stored,
        "counted": len(answers.answers),
        "every_kind": every,
        "people": outcome.people,
        "dropped_out": outcome.left,
        "seconds": took,
        "seconds_an_answer": think,
        "reply_ms": {
            "median": 1000 * float(np.median(outcome.seconds)),
            "p99": 1000 * float(np.quantile(outcome.seconds, 0.99)),
        },
        "curve": curve,
    }


def _curve(
    answers: Collected,
    holdout: NDArray[np.int64],
    X: NDArray[np.float64],
    n_components: int | None,
    seed: int,
) -> list[dict[str, Any]]:
    """Agreement with the truth and with people, for growing numbers of answers that count."""
    rng = np.random.default_rng(seed)
    probes = np.array([rng.choice(len(X), 3, replace=False) for _ in range(_PROBES)])
    head, a, b = X[probes.T]
    wrong = np.linalg.norm(head - a, axis=1) > np.linalg.norm(head - b, axis=1)
    probes[wrong] = probes[wrong][:, [0, 2, 1]]
    curve = []
    for cut in _CUTS:
        m = round(cut * len(answers.answers))
        found = draw_map(
            answers.first(m), len(X), n_components=n_components, seed=seed, holdout=holdout
        )
        if found is not None:
            truth = triplet_accuracy(probes, np.array(found["positions"]))
            curve.append({"n_triplets": m, "truth": truth, "holdout": found["accuracy"]})
    return curve
