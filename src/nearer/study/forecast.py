"""How many answers will it take? A study tried out on simulated people."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.asking.oracles import PointOracle
from nearer.errors import InvalidInput
from nearer.fitting.pace import Pace
from nearer.metrics import triplet_accuracy
from nearer.questions import answered, random_questions
from nearer.study.create import new_study
from nearer.study.imports import Item
from nearer.study.log import Collected, collected, read_config, triplets
from nearer.study.maps import draw_map
from nearer.study.simulate import Crowd, answer_all, served
from nearer.study.store import connect

__all__ = ["empty_copy", "plan"]

_CUTS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_PROBES = 4000
#: nothing ends a try before it has its answers, and nothing but comparisons is asked
_TRIED: dict[str, Any] = {
    "quota": 0, "quality": 1.0, "joins_per_minute": 0, "fastest_ms": 0, "before": [], "after": [],
}  # fmt: skip


def empty_copy(study: Path, copy: Path, **changes: Any) -> list[str]:
    """A new study with the settings of another, and its items as words; the words."""
    db = connect(study, read_only=True)
    config = read_config(db)
    names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    db.close()
    items = [Item(name, "text", name) for name in names]
    new_study(copy, items, config.changed({**_TRIED, **changes}))
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
    if not outcome.seconds:
        raise InvalidInput(f"{study}: there is nothing to ask about {n} items")
    db = connect(copy, read_only=True)
    answers, holdout = collected(db), triplets(db, ["holdout"])
    config = read_config(db)
    stored = int(db.execute("SELECT count(*) FROM standing").fetchone()[0])
    db.close()
    think = seconds or Pace().seconds(config.as_task)
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
        "task": str(config.as_task),
        "error": error,
        "answers": len(outcome.acknowledged),
        "stored": stored,
        "counted": len(answers.answers),
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
    probes = random_questions(len(X), _PROBES, np.random.default_rng(seed))
    probes = answered(probes, PointOracle(X)(probes))
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
