"""Simulated people who answer screens, and a fit of their answers."""

from __future__ import annotations

from typing import Any

import numpy as np

import nearer
from nearer.algorithms.plan import scale_of
from nearer.fitting.belief import Belief
from nearer.questions import random_questions
from nearer.trials import Task, Trials

NOISE = 0.2  # of random comparisons; people's in the recorded sets is .15 to .25


def people_who_choose(n: int, d: int, task: str, seed: int) -> tuple[Any, Any, np.random.Generator]:
    """Positions, people who answer by them, and a generator for everything else."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    head, a, b = random_questions(n, 4000, rng).T
    margins = np.linalg.norm(X[head] - X[b], axis=1) - np.linalg.norm(X[head] - X[a], axis=1)
    scale, choose = scale_of(margins, NOISE), Task.parse(task).choose
    return X, nearer.asking.PsychometricOracle(
        X, scale=scale, noise="fresh", choose=choose, random_state=rng
    ), rng  # fmt: skip


def random_screens(n: int, task: Task, count: int, rng: np.random.Generator) -> Any:
    """Random screens without an answer."""
    near = task.kind == "near"
    rows = np.array([rng.permutation(n)[: task.shown + near] for _ in range(count)])
    return rows if near else np.column_stack([np.full(count, -1), rows])


def believe(trials: Trials, n: int, d: int, *, split: bool) -> Belief:
    """A fit of the choices, or of the triplets that they can be split into."""
    belief = Belief(n, d, 0)
    belief.learn(trials.triplets()[0] if split else trials)
    belief.conclude()
    return belief
