"""`nearer.adaptive`: positions and dimension from as few comparisons as they take.

Up to a few thousand objects are asked about and fitted together (`plan`). Of more, a random core is
treated so, and every other object is then placed among the core by search from its heads
(`slotting`): about log2 of the core's size comparisons for each dimension, all objects side by
side, and nothing to fit but one position at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.algorithms.plan import ENOUGH, Plan
from nearer.algorithms.slotting import Anchors, Slots, slot_objects, spread_heads
from nearer.algorithms.twins import nearest_places
from nearer.asking.memory import Memory
from nearer.asking.protocol import (
    Asking,
    limited,
    recorded,
    remembered,
)
from nearer.asking.record import Record
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent
from nearer.questions import Questions

__all__ = ["adaptive"]

_TOGETHER = 3000  # up to so many objects are fitted together
_CORE = 1500  # so many of more


def adaptive(
    n_objects: int,
    *,
    budget: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Asking[Embedding]:
    """Find the dimension and the positions of objects: `nearer.embed` as an asking.

    Parameters
    ----------
    n_objects
        How many objects there are, at least 3.
    budget
        At most so many comparisons. None: as many as it takes.
    random_state
        Seed or generator.

    Returns
    -------
    asking
        Its result is an `Embedding`. Out of budget, it is the best so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> asking = nearer.adaptive(60, budget=500, random_state=0)
    >>> nearer.run(asking, nearer.PointOracle(X)).n_comparisons
    500
    """
    n_objects = checks.n_objects(n_objects)
    budget = None if budget is None else checks.budget(budget)
    return _adaptive(n_objects, budget, checks.generator(random_state))


def _adaptive(n: int, budget: int | None, rng: np.random.Generator) -> Asking[Embedding]:
    job = _Job(n, budget, rng)
    asking = job.ask() if budget is None else limited(job.ask(), budget)
    with suppress(BudgetSpent):
        yield from asking
    return job.embedding()


class _Job:
    """A core that is embedded, and others placed in it."""

    def __init__(self, n: int, budget: int | None, rng: np.random.Generator) -> None:
        self.n = n
        self.core = np.arange(n)
        if n > _TOGETHER:
            self.core = np.sort(rng.choice(n, _CORE, replace=False))
            budget = None if budget is None else budget // 2
        self.plan = Plan(len(self.core), budget, rng)
        self.placed = Record()
        self.slots: Slots | None = None
        self.shared: NDArray[np.int64] | None = None  # in the core, whose place the others share

    def ask(self) -> Asking[None]:
        plan = self.plan
        few = recorded(remembered(plan.ask(), Memory()), plan.record)
        if len(self.core) == self.n:
            yield from few
            return
        yield from _renumbered(few, self.core)
        positions = plan.finish()
        d = positions.shape[1]
        others = np.setdiff1d(np.arange(self.n), self.core)
        if plan.places is not None:
            asking = nearest_places(others, self.core[plan.places])
            self.shared = plan.places[(yield from recorded(asking, self.placed))]
            return
        heads = plan.heads if plan.fits else spread_heads(positions, d + 3)
        self.slots = Slots(Anchors(self.core, positions, heads), others)
        most = int(ENOUGH * d * np.log2(self.n))
        yield from recorded(slot_objects(self.slots, most=most, pairs=True), self.placed)

    def embedding(self) -> Embedding:
        plan = self.plan
        positions, phases = plan.finish(), list(plan.phases)
        if len(self.core) < self.n:
            few = positions
            positions = np.tile(few.mean(axis=0), (self.n, 1))
            positions[self.core] = few
            others = np.setdiff1d(np.arange(self.n), self.core)
            if self.slots is not None:
                positions[others] = self.slots.positions
            elif self.shared is not None:
                positions[others] = few[self.shared]
            if self.placed.n_comparisons:
                note = f"{len(others)} objects among a core of {len(self.core)}"
                phases.append(Phase("place", self.placed.n_comparisons, self.placed.n_rounds, note))
        details = {"heads": self.core[plan.heads]}
        if plan.places is not None:
            details["places"] = self.core[plan.places]
        return Embedding(
            positions=positions,
            triplets=np.concatenate([self.core[plan.record.triplets], self.placed.triplets]),
            n_comparisons=plan.record.n_comparisons + self.placed.n_comparisons,
            n_rounds=plan.record.n_rounds + self.placed.n_rounds,
            history=tuple(phases),
            evidence=dict(sorted(plan.evidence.items())),
            details=details,
        )


def _renumbered(asking: Asking[None], objects: NDArray[np.int64]) -> Asking[None]:
    """Ask about these objects what an asking asks about 0, 1, 2, …."""
    advance: Callable[[], Questions] = partial(next, asking)
    while True:
        try:
            questions = advance()
        except StopIteration:
            return
        try:
            advance = partial(asking.send, (yield objects[questions]))
        except BudgetSpent as spent:
            advance = partial(asking.throw, spent)
