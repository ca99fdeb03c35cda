"""The five numbers behind the probability of each dimension, fitted to simulated answers.

Files of answers are drawn as in `benchmarks.dimension`, from other numbers and other families. Each
gives the gains of the steps from one dimension to the next, and the information of the answers
(`nearer.fitting.heldout.HeldOutJudge.step`); the five numbers maximise the likelihood of the true
dimensions. A cell is a file, so that a run can be interrupted and continued.

Short: 40 files. Full: 160; `nearer.fitting.heldout` has the numbers of a full run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.dimension import MOST, draw
from benchmarks.harness import Cell, Rows, grid, table
from nearer.fitting.belief import Belief
from nearer.fitting.posterior import least

FAMILIES = ("gaussian", "laplace", "uneven")
SHORT, FULL = 40, 160


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    yield from grid("steps", steps, file=range(seeds or (FULL if full else SHORT)))


def steps(file: int) -> dict[str, Any]:
    """For each dimension up to the truth: the gain of the next, √N, whether the truth is more.

    The gain is None where the next was not tried.
    """
    triplets, n, d, _ = draw(file, FAMILIES)
    most = min(MOST, n - 1)
    belief = Belief(n, None, file, max_components=most)
    belief.learn(triplets)
    judge = belief.judge
    first = min(judge.scores, default=1)
    return {"steps": [(*judge.step(e), d > e) for e in range(first, min(d + 1, most))]}


def page(rows: Rows, folder: Path) -> str:
    taken = [step for row in rows for step in row["steps"]]
    tried = np.array(
        [(1.0, z, information, more) for z, information, more in taken if z is not None]
    )
    untried = np.array([(1.0, information, more) for z, information, more in taken if z is None])
    lines = [
        [name, len(steps), ", ".join(f"{w:.2f}" for w in most_likely(steps))]
        for name, steps in (("tried: a, b, c", tried), ("not tried: a', c'", untried))
        if len(steps)
    ]
    text = f"# The five numbers of the dimension's probabilities\n\n{len(rows)} files.\n\n"
    return text + table(["steps", "how many", "numbers"], lines)


def most_likely(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of a logistic regression of the last column on the others."""
    x, sign = steps[:, :-1], np.where(steps[:, -1] > 0, -1.0, 1.0)

    def cost(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        t = sign * (x @ w)
        return float(np.logaddexp(0, t).mean()), (sign * expit(t)) @ x / len(x)

    return least(cost, np.zeros(x.shape[1]))
