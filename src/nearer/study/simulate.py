"""A study with simulated people, to estimate how many answers it will need.

The study is the real one; only the web is left out, and the time is simulated. A simulated person
is the library's `PsychometricOracle`, whose scale is set so that the wanted share of answers to all
comparisons of two differs from the truth; on larger screens it chooses one thing after the other.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.algorithms.plan import scale_of
from nearer.asking.oracles import PointOracle, PsychometricOracle
from nearer.errors import InvalidInput
from nearer.fitting.people import Pace
from nearer.metrics import triplet_accuracy
from nearer.questions import answered, random_questions
from nearer.study import actions
from nearer.study.board import Refusal
from nearer.study.conductor import questions_due
from nearer.study.items import Item
from nearer.study.store import Store, new_study, read_config, reading
from nearer.study.worker import FEWEST, Worker, collected, draw_map, triplets

T = TypeVar("T")
#: a simulation ends only when it has its answers, and asks only comparisons
_SIMULATED: dict[str, Any] = {
    "quota": 0, "quality": 1.0, "joins_per_minute": 0, "fastest_ms": 0, "before": [], "after": [],
}  # fmt: skip


@dataclass
class Crowd:
    """How simulated people answer, by positions of the objects."""

    positions: NDArray[np.float64]
    #: share of answers that differ from the truth, 0 to 0.5, over all comparisons of two
    error: float = 0.2
    #: mean thinking time; each time is drawn from an exponential distribution
    seconds: float = 0.0
    #: probability that a person leaves for good before finishing
    dropout: float = 0.0

    def __post_init__(self) -> None:
        X, self.oracle = self.positions, cast("Any", PointOracle(self.positions))
        head, a, b = random_questions(len(X), 4000, np.random.default_rng(0)).T
        gaps = np.linalg.norm(X[head] - X[a], axis=1) - np.linalg.norm(X[head] - X[b], axis=1)
        if self.error and gaps.any():
            scale = scale_of(gaps, self.error)
            self.oracle = PsychometricOracle(X, scale=scale, noise="fresh", random_state=0)

    def says(self, query: int, shown: Sequence[int], choose: int) -> list[int] | str:
        """The choice of one person, best first, or why there is none; query −1: no query."""
        left, chosen = list(shown), []
        for _ in range(choose):
            if query in left:  # a catch trial
                best = query
            else:
                near = np.atleast_2d(self.oracle(np.array([[query, *left]])))[0]
                best = left[int(near.argmax()) if len(left) > 2 else 1 - int(near[0])]
            chosen.append(best)
            left.remove(best)
        return chosen


class Simulation:
    """Simulated people in a study, `n_people` at a time, until there are `n_answers`."""

    def __init__(self, study: Path, crowd: Crowd, n_people: int, n_answers: int, seed: int) -> None:
        self.people = self.left = self.answers = 0  # who joined, and who left before the end
        self.now = 0.0
        self._crowd = crowd
        self._rng = np.random.default_rng(seed)
        self._store = Store(study, lambda: self.now, self._rng, durable=False)
        with closing(self._store):
            self._do(actions.set_state, "running")
            worker = Worker(study)
            seats = [(self._think(), k, self._people_in_turn()) for k in range(n_people)]
            heapq.heapify(seats)
            while seats and self.answers < n_answers:
                self.now, k, seat = heapq.heappop(seats)
                while job := self._store.write(lambda ledger: questions_due(ledger.board)):
                    if not self._do(actions.pose, **worker.do(job)):
                        break
                if next(seat, None) is not None:
                    heapq.heappush(seats, (self.now + self._think(), k, seat))

    def _think(self) -> float:
        return float(self._rng.exponential(self._crowd.seconds))

    def _do(self, change: Callable[..., T], *args: Any, **options: Any) -> T:
        return self._store.write(lambda ledger: change(ledger, *args, **options))

    def _people_in_turn(self) -> Iterator[int]:
        """People one after the other; each yield is a pause in which a person thinks."""
        config = self._store.facts.config
        while True:
            try:
                person = self._do(actions.join, consent=config.consent_version)
            except Refusal:  # the study has what it needs
                return
            self.people += 1
            self._do(actions.get_ready, person)
            trials = self._do(actions.hand_out, person)
            if not trials:  # there is nothing left to ask, so no further person comes
                return
            leaves = self._rng.random() < self._crowd.dropout
            leaves_at = int(self._rng.integers(config.questions)) if leaves else -1
            number = 0
            while trials and number != leaves_at:
                yield person
                trial = trials[0]
                query = -1 if trial.query is None else trial.query
                chosen = tuple(self._crowd.says(query, trial.shown, trial.choose))
                self._do(actions.answer, person, trial.lease, "chosen", chosen=chosen)
                self.answers += 1
                number += 1
                trials = self._do(actions.hand_out, person)
            self.left += number == leaves_at
            yield person


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
    """Collect answers from simulated people and measure the map for each number of answers."""
    with reading(study) as db:
        config = read_config(db).changed({**_SIMULATED, "seed": seed})
        names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    n, copy = len(names), folder / "simulated.db"
    new_study(copy, [Item(name, "text", name) for name in names], config)
    size = n, checks.n_components(dim, n)
    X = np.random.default_rng(seed).normal(size=size) if positions is None else positions
    if len(X) != n:
        raise InvalidInput(f"positions of {len(X)} items: the study has {n}")
    think = seconds or Pace().seconds(config.as_task)
    people = Crowd(X, error=error, seconds=think, dropout=dropout)
    simulation = Simulation(copy, people, n_people, n_answers, seed)
    if not simulation.answers:
        raise InvalidInput(f"{study}: there is nothing to ask about {n} items")
    with reading(copy) as db:
        answers, holdout = collected(db), triplets(db, ["holdout"])
    # The cost of a row of the table: all answers that people gave up to it.
    counted = len(answers.answers)
    cost = simulation.answers / max(counted, 1)
    curve = []
    d, halvings = config.n_components, (counted >> k for k in count())
    for m in reversed(list(takewhile(FEWEST.__le__, halvings))):
        screens = round(m * cost)
        drawn = draw_map(answers.first(m), n, n_components=d, seed=seed, holdout=holdout)
        if drawn is not None:
            probes = random_questions(n, 4000, np.random.default_rng(seed))
            truth = answered(probes, PointOracle(X)(probes))
            row = {"n_triplets": m, "answers": screens, "hours": screens * think / 3600}
            row["people"] = math.ceil(screens / config.questions)
            row["truth"] = triplet_accuracy(truth, np.array(drawn["positions"]))
            curve.append({**row, "holdout": drawn["accuracy"]})
    asked = {"n_objects": n, "method": config.method, "task": str(config.as_task), "error": error}
    figures = {"stored": simulation.answers, "counted": counted, "people": simulation.people}
    times = {"seconds": simulation.now, "seconds_an_answer": think}
    return {**asked, **figures, "dropped_out": simulation.left, **times, "curve": curve}
