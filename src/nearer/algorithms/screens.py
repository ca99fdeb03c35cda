"""Choose screens for people: what to show so that one answer teaches most.

With a query, a screen is built object by object from a pool drawn at random: each time the one
that adds most to ½ tr(J·Cov(u)), the information in nats that the answer is expected to give
(`nearer._kernels.screens`). Queries go round robin. Pools that differ, rather than the best of all
screens, keep the screens of a round from all asking the same thing: for screens of 8 and of 16
among 60 objects, trying several queries for each, or counting what the round before it will have
told, was no better. Without a query, sets are drawn, scored in the same way, and drawn again with
probability proportional to the square of that.

One screen in ten is random, as are the first: what the fit predicts about those before it sees
their answers is an honest held-out curve. Choosing by positions that are mostly guesses gains
little: of 100 simulated objects, after 94 screens of 4 of 16, τ was .44 where each object was on 3
random screens first, .46 with 8 or 12, .42 with random screens only, each the mean of eight runs
± .02. Between 3 and 12 the number hardly matters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.screens import grow
from nearer.algorithms.choose_questions import CANDIDATES, FIRST, RANDOM_SHARE, Askable
from nearer.errors import InvalidInput
from nearer.fitting.likelihood import as_answers
from nearer.fitting.posterior import Posterior
from nearer.questions import Objects, Questions
from nearer.trials import Task, Trials

__all__ = ["ScreenSource", "expected_information"]

# `python -m benchmarks choices` shows what comes of these.
_POOL = 3  # times as many as are shown, from which one is built: screens alike against poor ones


def expected_information(fit: Posterior, screens: Questions, task: Task) -> NDArray[np.float64]:
    """What the answer to each screen is expected to tell, in nats."""
    rows = np.asarray(screens)
    said = np.zeros((len(rows), task.shown), dtype=np.bool_)
    said[:, : task.choose] = True
    trials = Trials.from_screens(rows, said if task.shown > 2 else said[:, 0])
    choices = as_answers(trials, len(fit.positions))
    gain, _ = choices.expected_information(
        fit.positions, fit.covariances, fit.noise.tail, fit.curve.sharpness, fit.curve.lapse
    )
    return gain[choices.row]


class ScreenSource:
    """Screens of one task that were not asked and may be.

    Parameters
    ----------
    n_objects
        How many objects there are.
    task
        What is asked.
    askable
        Says which screens may be asked; None: all.
    """

    def __init__(self, n_objects: int, task: Task, askable: Askable | None = None) -> None:
        needed = task.shown + (task.kind == "near")
        if n_objects < needed:
            raise InvalidInput(
                f"task '{task}' needs {needed} objects, there are {n_objects}; show fewer"
            )
        self._n, self.task, self._askable = n_objects, task, askable
        self._asked: set[tuple[int, ...]] = set()
        self._queries = self._deck = np.empty(0, dtype=np.int64)
        self.n_asked = 0

    def draw(
        self, fit: Posterior, count: int, rng: np.random.Generator
    ) -> tuple[Objects, NDArray[np.bool_]]:
        """Screens for a round, and which of them are random; fewer where no more are found."""
        first = max(0, -(-FIRST * self._n // (self.task.shown + 1)) - self.n_asked)
        n_random = min(count, max(1, first, round(RANDOM_SHARE * count)))
        found: list[Objects] = []
        random: list[bool] = []
        vain = 0  # draws since the last new screen
        while (missing := count - len(found)) and vain < CANDIDATES:
            blind = n_random - sum(random)  # one that may not be asked makes way for another
            rows = [self._random(rng) for _ in range(blind)]
            rows += self._chosen(fit, missing - blind, rng)
            new = self._new(rows)
            vain = 0 if new else vain + len(rows)
            found += [rows[i] for i in new]
            random += [i < blind for i in new]
        screens = np.array(found, dtype=np.int64).reshape(-1, self.task.shown + 1)
        order = rng.permutation(len(screens))
        return screens[order], np.array(random, dtype=np.bool_)[order]

    def _random(self, rng: np.random.Generator) -> Objects:
        """A random screen; all objects are queries, and are shown, about equally often."""
        query = self._next_query(rng) if self.task.kind == "near" else -1
        shown = self._deck[self._deck != query][: self.task.shown]
        left = self._deck[~np.isin(self._deck, shown)]
        if len(shown) < self.task.shown:
            others = rng.permutation(self._n)
            others = others[(others != query) & ~np.isin(others, shown)]
            more = self.task.shown - len(shown)
            shown, left = (
                np.concatenate([shown, others[:more]]),
                np.setdiff1d(others, others[:more]),
            )
            left = rng.permutation(left)
        self._deck = left
        return np.concatenate([[query], rng.permutation(shown)])

    def _next_query(self, rng: np.random.Generator) -> int:
        if not len(self._queries):
            self._queries = rng.permutation(self._n)
        query, self._queries = int(self._queries[0]), self._queries[1:]
        return query

    def _chosen(self, fit: Posterior, count: int, rng: np.random.Generator) -> list[Objects]:
        if not count:
            return []
        if self.task.kind == "near":
            return [self._grown(fit, rng) for _ in range(count)]
        drawn = np.array([self._random(rng) for _ in range(CANDIDATES * count)])
        gains = expected_information(fit, drawn, self.task)
        scores = np.log(np.maximum(gains, np.finfo(np.float64).tiny))
        best = np.argsort(-(2 * scores + rng.gumbel(size=len(scores))), kind="stable")
        return list(drawn[best[:count]])

    def _grown(self, fit: Posterior, rng: np.random.Generator) -> Objects:
        query = self._next_query(rng)
        others = np.delete(np.arange(self._n), query)
        pool = rng.permutation(others)[: max(_POOL * self.task.shown, 2)]
        u, covariance = _utilities(fit, query, pool)
        task, beta = self.task, fit.curve.sharpness
        places, _ = grow(
            beta * u, beta**2 * covariance, 0, task.shown, task.choose, fit.curve.lapse
        )
        return np.concatenate([[query], rng.permutation(pool[places])])

    def _new(self, rows: list[Objects]) -> list[int]:
        """Places of those rows that may be asked and were not, each once."""
        places = list(range(len(rows)))
        if self._askable is not None and rows:
            allowed = np.asarray(self._askable(np.array(rows)))
            if allowed.shape != (len(rows),) or allowed.dtype != np.bool_:
                raise InvalidInput(
                    f"askable returned {allowed.dtype} of shape {allowed.shape} for {len(rows)} "
                    "screens: it must return one boolean for each"
                )
            places = np.flatnonzero(allowed).tolist()
        new = []
        for i in places:
            key = (int(rows[i][0]), *sorted(rows[i][1:].tolist()))
            if key not in self._asked:
                self._asked.add(key)
                new.append(i)
        self.n_asked += len(new)
        return new


def _utilities(
    fit: Posterior, query: int, pool: Objects
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Utilities of the objects of a pool and their covariance."""
    X, tail = fit.positions, fit.noise.tail
    steps = X[pool] - X[query]
    squared = (steps**2).sum(axis=1)
    if tail:
        u = -(tail + 1) / 2 * np.log1p(squared / tail)
        slopes = steps * ((tail + 1) / (tail + squared))[:, None]
    else:
        distance = np.sqrt(squared)
        u, slopes = -distance, steps / np.maximum(distance, np.finfo(np.float64).tiny)[:, None]
    own = np.einsum("ic,ice,ie->i", slopes, fit.covariances[pool], slopes)
    return u, slopes @ fit.covariances[query] @ slopes.T + np.diag(own)
