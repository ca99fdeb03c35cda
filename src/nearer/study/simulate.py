"""A study tried out on simulated people, to say how many answers it will take.

People who have positions of the objects in mind take part in a copy of the study: they join, take
the questions they are handed, think, err, and some of them leave. The study is the real one, its
checks, its choice of questions and its map included; only the web is left out, and the time is
simulated, so that an hour of people costs seconds and a seed makes the same study again.

A simulated person is the library's `PsychometricOracle`: near ties are guessed, plain cases are
not. Its scale is set so that the wanted share of answers to all comparisons of two differs from the
truth; on larger screens the same person chooses one thing after the other.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

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
from nearer.study.board import Ledger, Refusal
from nearer.study.conductor import questions_due
from nearer.study.items import Item
from nearer.study.store import Store, connect, new_study, read_config
from nearer.study.worker import Worker, collected, draw_map, triplets

_CUTS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
#: nothing ends a simulation before it has its answers, and nothing but comparisons is asked
_SIMULATED: dict[str, Any] = {
    "quota": 0, "quality": 1.0, "joins_per_minute": 0, "fastest_ms": 0, "before": [], "after": [],
}  # fmt: skip


@dataclass(frozen=True)
class Crowd:
    """How simulated people answer, who have positions of the objects in mind."""

    positions: NDArray[np.float64]
    #: share of answers that differ from the truth, 0 to 0.5, over all comparisons of two
    error: float = 0.2
    #: mean thinking time; each time is drawn from an exponential distribution
    seconds: float = 0.0
    #: probability that a person leaves for good before finishing
    dropout: float = 0.0
    #: probability of "can't decide"
    undecided: float = 0.0
    oracle: Callable[[NDArray[np.int64]], NDArray[np.bool_]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.error < 0.5:
            raise InvalidInput(f"error={self.error}: must be from 0 to below 0.5")
        for name in ("dropout", "undecided"):
            checks.probability(name, getattr(self, name))
        if not 0 <= self.seconds < math.inf:
            raise InvalidInput(f"seconds={self.seconds}: must be at least 0")
        X, oracle = self.positions, cast("Any", PointOracle(self.positions))
        head, a, b = random_questions(len(X), 4000, np.random.default_rng(0)).T
        gaps = np.linalg.norm(X[head] - X[a], axis=1) - np.linalg.norm(X[head] - X[b], axis=1)
        if self.error and gaps.any():
            scale = scale_of(gaps, self.error)
            oracle = PsychometricOracle(X, scale=scale, noise="fresh", random_state=0)
        object.__setattr__(self, "oracle", oracle)

    def says(
        self, query: int, shown: Sequence[int], choose: int, rng: np.random.Generator
    ) -> list[int] | str:
        """What one person chooses of the shown, best first, or why nothing; query −1 is none."""
        if self.undecided and rng.random() < self.undecided:
            return "undecided"
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


@dataclass
class _Visit:
    """A person who takes part, and the question in their hands."""

    person: int
    trial: actions.Trial
    leaves_at: float


@dataclass
class Simulation:
    """Simulated people in a study, `n_people` at a time."""

    study: Path
    crowd: Crowd
    n_people: int
    seed: int = 0
    people: int = 0  # who joined
    left: int = 0  # of these, who left before the end
    answers: int = 0
    now: float = 0.0

    def run(self, n_answers: int) -> Simulation:
        """Let people come and answer until there are so many answers, or nothing is left to ask."""
        self._rng = np.random.default_rng(self.seed)
        store = Store(self.study, lambda: self.now, self._rng, durable=False)
        with closing(store):
            store.write(lambda ledger: actions.set_state(ledger, "running"))
            worker = Worker(self.study)
            sorted_at: dict[int | None, int] = {}
            # When each seat is free for the next step of the person on it, or for somebody new.
            seats: list[tuple[float, int, _Visit | None]] = [
                (self._think(), k, None) for k in range(self.n_people)
            ]
            heapq.heapify(seats)
            while seats and self.answers < n_answers:
                self.now, seat, visit = heapq.heappop(seats)
                _restock(store, worker, sorted_at)
                stays, after = store.write(partial(self._step, visit))
                if stays:
                    heapq.heappush(seats, (self.now + self._think(), seat, after))
        return self

    def _think(self) -> float:
        return float(self._rng.exponential(self.crowd.seconds))

    def _step(self, visit: _Visit | None, ledger: Ledger) -> tuple[bool, _Visit | None]:
        """Whether the seat goes on being used, and who then sits on it."""
        if visit is None:
            try:
                consent = ledger.board.config.consent_version
                person = actions.join(ledger, consent=consent).person
            except Refusal:  # the study has what it needs
                return False, None
            self.people += 1
            actions.get_ready(ledger, person)
            questions = ledger.board.config.questions
            stays = self._rng.random() >= self.crowd.dropout
            leaves_at = math.inf if stays else int(self._rng.integers(questions))
        else:
            person, leaves_at = visit.person, visit.leaves_at
            self._answer(ledger, visit)
        if ledger.board.people[person].answered >= leaves_at:
            self.left += 1
            return True, None
        trials = actions.hand_out(ledger, person)
        if not trials:  # somebody who came for nothing was the last to come
            return visit is not None, None
        return True, _Visit(person, trials[0], leaves_at)

    def _answer(self, ledger: Ledger, visit: _Visit) -> None:
        trial = visit.trial
        query = -1 if trial.query is None else trial.query
        said = self.crowd.says(query, trial.shown, trial.choose, self._rng)
        choice, chosen = (said, None) if isinstance(said, str) else ("chosen", tuple(said))
        self.answers += actions.answer(ledger, visit.person, trial.lease, choice, chosen=chosen)


def _restock(store: Store, worker: Worker, sorted_at: dict[int | None, int]) -> None:
    """Have questions chosen as long as some are due, as the conductor of a served study does."""
    while job := store.write(lambda ledger: questions_due(ledger.board, sorted_at)):
        person = job["person"]
        sorted_at[person] = store.write(lambda ledger: ledger.board.news)
        reply = worker.do(dict(job))
        if not store.write(partial(actions.pose, **reply)):
            return


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
    with closing(connect(study, read_only=True)) as db:
        config = read_config(db).changed({**_SIMULATED, "seed": seed})
        names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    n, copy = len(names), folder / "simulated.db"
    new_study(copy, [Item(name, "text", name) for name in names], config)
    X = np.random.default_rng(seed).normal(size=(n, dim)) if positions is None else positions
    if len(X) != n:
        raise InvalidInput(f"positions of {len(X)} items: the study has {n}")
    think = seconds or Pace().seconds(config.as_task)
    people = Crowd(X, error=error, seconds=think, dropout=dropout)
    simulation = Simulation(copy, people, n_people, seed).run(n_answers)
    if not simulation.answers:
        raise InvalidInput(f"{study}: there is nothing to ask about {n} items")
    with closing(connect(copy, read_only=True)) as db:
        answers, holdout = collected(db), triplets(db, ["holdout"])
    # What a row of the table costs: all answers people gave for so many that count.
    counted = len(answers.answers)
    cost = simulation.answers / max(counted, 1)
    curve = []
    for m in (round(cut * counted) for cut in _CUTS):
        d, screens = config.n_components, round(m * cost)
        found = draw_map(answers.first(m), n, n_components=d, seed=seed, holdout=holdout)
        if found is not None:
            row = {"n_triplets": m, "answers": screens, "hours": screens * think / 3600}
            row["people"] = math.ceil(screens / config.questions)
            row["truth"] = _agreement(X, np.array(found["positions"]), seed)
            curve.append({**row, "holdout": found["accuracy"]})
    return {
        "n_objects": n,
        "method": config.method,
        "task": str(config.as_task),
        "error": error,
        "answers": simulation.answers,
        "stored": simulation.answers,
        "counted": counted,
        "people": simulation.people,
        "dropped_out": simulation.left,
        "seconds": simulation.now,
        "seconds_an_answer": think,
        "curve": curve,
    }


def _agreement(truth: NDArray[np.float64], X: NDArray[np.float64], seed: int) -> float:
    """The share of random comparisons that positions answer as the true ones do."""
    probes = random_questions(len(X), 4000, np.random.default_rng(seed))
    return triplet_accuracy(answered(probes, PointOracle(truth)(probes)), X)
