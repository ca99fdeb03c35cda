"""`nearer.adaptive`: positions and dimension from as few comparisons as they take.

Up to a few thousand objects are asked about and fitted together: where answers fit in a few
dimensions by obedience (`low_dimensional`), elsewhere by prediction (`high_dimensional`). Of more
objects a random core is treated so, and every other object is then placed among the core by search
from its heads (`placing`): about log2 of the core's size comparisons for each dimension, all
objects side by side, and nothing to fit but one position at a time.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Literal

import numpy as np

from nearer import checks
from nearer.algorithms.draft import Draft
from nearer.algorithms.high_dimensional import HighDimensional
from nearer.algorithms.low_dimensional import ENOUGH, LowDimensional
from nearer.algorithms.placing import place_objects
from nearer.asking.memory import Memory
from nearer.asking.protocol import Asking, limited, recorded, remembered, renumbered
from nearer.asking.recipe import repeatable
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent

__all__ = ["Economy", "adaptive"]

Economy = Literal["fewest-comparisons", "fewest-rounds"]

# Up to so many objects are fitted together, so many of more: the time that a fit takes, against the
# accuracy of what is placed among fewer.
_TOGETHER = 3000
_CORE = 1500


@repeatable
def adaptive(
    n_objects: int,
    *,
    budget: int | None = None,
    order: Economy = "fewest-comparisons",
    keep_triplets: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> Asking[Embedding]:
    """Find the dimension and the positions of objects: `nearer.embed` as an asking.

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
    n = checks.n_objects(n_objects)
    checks.one_of("order", order, ("fewest-comparisons", "fewest-rounds"))
    rng = checks.generator(random_state)
    budget = None if budget is None else checks.budget(budget)
    few = n <= _TOGETHER
    if few:
        asking = _core(n, budget, order, rng)
    else:
        asking = _core_and_others(n, budget, order, keep_triplets, rng)
    return asking if budget is None else limited(asking, budget)


def _core(
    n: int, budget: int | None, order: Economy, rng: np.random.Generator
) -> Asking[Embedding]:
    """Embed objects that are few enough to be fitted together."""
    draft = Draft(n, rng)
    asking = recorded(remembered(_low_or_high(draft, budget, order), Memory()), draft.record)
    with suppress(BudgetSpent):
        yield from asking
    return draft.embedding()


def _low_or_high(draft: Draft, budget: int | None, order: Economy) -> Asking[None]:
    if not (yield from LowDimensional(draft, budget, order).ask()):
        yield from HighDimensional(draft, budget).ask()


def _core_and_others(
    n: int, budget: int | None, order: Economy, keep_triplets: bool, rng: np.random.Generator
) -> Asking[Embedding]:
    """Embed a random core, then place the others among it."""
    objects = rng.permutation(n)  # the core first
    asking = _core(_CORE, None if budget is None else budget // 2, order, rng)
    if budget is not None:
        asking = limited(asking, budget // 2)
    core = yield from renumbered(asking, objects)
    others = np.arange(_CORE, n)
    most = ENOUGH * np.log2(n) / np.log2(_CORE)
    placed = yield from renumbered(
        place_objects(core, others, most=most, pairs=True, keep_triplets=keep_triplets), objects
    )
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
        details={name: objects[places] for name, places in core.details.items()},
    )
