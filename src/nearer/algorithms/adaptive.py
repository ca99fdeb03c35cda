"""`nearer.adaptive`: positions and dimension from as few comparisons as they take.

Up to a few thousand objects are asked about and fitted together: where answers fit in a few
dimensions by obedience (`low_dimensional`), elsewhere by prediction (`high_dimensional`). Of more
objects a random core is treated so, and every other object is then placed among the core by search
from its heads (`place`): about log2 of the core's size comparisons for each dimension, all
objects side by side, and nothing to fit but one position at a time.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.algorithms.draft import Draft
from nearer.algorithms.high_dimensional import HighDimensional
from nearer.algorithms.low_dimensional import LowDimensional
from nearer.algorithms.place import place_objects
from nearer.asking.memory import Memory
from nearer.asking.protocol import (
    Strategy,
    in_order,
    limited,
    recorded,
    remembered,
    renumbered,
    repeatable,
)
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent
from nearer.questions import Triplets

__all__ = ["Economy", "adaptive"]

Economy = Literal["fewest-comparisons", "fewest-rounds"]

# `python -m benchmarks adaptive` shows what comes of these, up to 100,000 objects.
# Up to so many are fitted together, so many of more: the time that a fit takes, against the
# accuracy of what is placed among fewer.
_TOGETHER = 3000
_CORE = 1500
# Errors that the core may have, of those that all may: others are placed no better than it is, and
# it is a small part of the cost.
_CORE_ERRORS = 0.25


@repeatable
def adaptive(
    n_objects: int,
    *,
    budget: int | None = None,
    order: Economy = "fewest-comparisons",
    keep_triplets: bool = True,
    quality: float = 0.99,
    known: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """Find the dimension and the positions of objects: `nearer.embed` as a strategy.

    Parameters
    ----------
    n_objects
        How many objects there are, at least 3.
    budget
        At most so many comparisons. None: as many as it takes.
    order
        ``"fewest-comparisons"``, or ``"fewest-rounds"``: about a hundred rounds, where each of them
        is waited for, for up to 15 % more comparisons.
    keep_triplets
        False: where objects are placed among a core, the answers about them are not kept.
    quality
        Stop when Kendall's τ between predicted and true distances from a head is expected to be
        this; 1: never, the budget is spent, or all that questions can tell.
    known
        Answers that are there already, rows (head, near, far): they are learned and not asked
        again, and are no part of the budget or of the result's triplets.
    random_state
        Seed or generator.

    Returns
    -------
    strategy
        Its result is an `Embedding`. Out of budget, it is the best so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> strategy = nearer.adaptive(60, budget=500, random_state=0)
    >>> nearer.run(strategy, nearer.PointOracle(X)).n_comparisons <= 500
    True
    """
    n = checks.n_objects(n_objects)
    checks.one_of("order", order, ("fewest-comparisons", "fewest-rounds"))
    rng = checks.generator(random_state)
    budget = None if budget is None else checks.budget(budget)
    told = np.empty((0, 3), dtype=np.int64)
    if known is not None and len(np.asarray(known)):
        told = checks.triplets(known, n)[0].astype(np.int64)
    how = _How(order, checks.probability("quality", quality), keep_triplets, rng)
    strategy = (_core if n <= _TOGETHER else _core_and_others)(n, budget, told, how)
    return strategy if budget is None else limited(strategy, budget)


@dataclass(frozen=True)
class _How:
    """What was asked for, and the source of all choices."""

    order: Economy
    quality: float
    keep_triplets: bool
    rng: np.random.Generator


def _core(n: int, budget: int | None, known: Triplets, how: _How) -> Strategy[Embedding]:
    """Embed objects that are few enough to be fitted together."""
    draft = Draft(n, how.rng, known)
    strategy = recorded(remembered(_low_or_high(draft, budget, how), Memory(known)), draft.record)
    with suppress(BudgetSpent):
        yield from in_order(strategy)
    return draft.embedding()


def _low_or_high(draft: Draft, budget: int | None, how: _How) -> Strategy[None]:
    if not (yield from LowDimensional(draft, budget, how.order, how.quality).ask()):
        yield from HighDimensional(draft, budget, how.quality).ask()


def _core_and_others(n: int, budget: int | None, known: Triplets, how: _How) -> Strategy[Embedding]:
    """Embed a random core, which holds the objects of known answers, then place the others."""
    objects = how.rng.permutation(n)
    asked_about = np.isin(objects, known)
    objects = np.concatenate([objects[asked_about], objects[~asked_about]])  # the core first …
    objects[:_CORE].sort()  # … in the order of numbers, which equal distances may follow
    place = np.empty(n, dtype=np.int64)
    place[objects] = np.arange(n)
    inside = place[known][(place[known] < _CORE).all(axis=1)]
    half = None if budget is None else budget // 2
    better = 1 - _CORE_ERRORS * (1 - how.quality)
    strategy = _core(_CORE, half, inside, replace(how, quality=better))
    core = yield from renumbered(strategy if half is None else limited(strategy, half), objects)
    others = np.arange(_CORE, n)
    placing = place_objects(core, others, keep_triplets=how.keep_triplets, random_state=how.rng)
    placed = yield from renumbered(placing, objects)
    note = f"{len(others)} objects among a core of {_CORE}"
    positions = np.empty((n, core.dimension))
    positions[objects] = np.concatenate([core.positions, placed.positions])
    return replace(
        core,
        positions=positions,
        triplets=objects[np.concatenate([core.triplets, placed.triplets])],
        n_comparisons=core.n_comparisons + placed.n_comparisons,
        n_rounds=core.n_rounds + placed.n_rounds,
        history=(*core.history, Phase("place", placed.n_comparisons, placed.n_rounds, note)),
        details={
            name: objects[found] if name in ("heads", "places") else found
            for name, found in core.details.items()
        }
        | {"never_asked": np.sort(objects[placed.never_asked])},
    )
