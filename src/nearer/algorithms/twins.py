"""Objects in one and the same place.

An oracle breaks ties somehow, if always in the same way, so what it says about objects that
coincide looks like any other answer; yet no positions obey it. Objects share a place when the
rankings from them are the same. The twins of an object come first in its own ranking, before all
others, so a few questions to the third nearest tell whether it has at least three, and bisection
tells how many.

Objects that only nearly coincide may pass for twins. That does no harm: who is dropped here is
placed later, like everyone else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.asking.protocol import Asking
from nearer.asking.sorting import Order, sort_objects

__all__ = ["nearest_places", "without_twins"]

Objects = NDArray[np.int64]

# `python -m benchmarks sensitivity` halves and doubles the first and the last, on data with
# repeated values too.
_CHECKS = 8  # pairs of members 1, 2, 4, … apart that a twin must put in the same order
_FEWEST = 7  # among so few others, an agreement says too little
_PASSED = 2  # the nearest of the end of a line rank others as it does, the third nearest does not


def without_twins(
    objects: Objects, order: Order, rng: np.random.Generator
) -> Asking[tuple[Objects, int]]:
    """Drop twins, one object after another, until one has none.

    Parameters
    ----------
    objects
        At least 2, each once.
    order
        As for `nearer.rank_objects`.
    rng
        Source of the sorts.

    Returns
    -------
    asking
        Its result: the objects that are left, and how many were dropped. Where none were, the
        first of them is the one examined, and the others follow as it ranks them.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.repeat([[0.0], [1.0]], 40, axis=0)
    >>> asking = without_twins(np.arange(80), "fewest-rounds", np.random.default_rng(0))
    >>> left, dropped = nearer.run(asking, nearer.PointOracle(X))
    >>> sorted(X[left].ravel().tolist()), dropped
    ([0.0, 1.0], 78)
    """
    total, rest = len(objects), objects
    done: list[int] = []
    while True:
        head = int(rest[0])
        chain = yield from sort_objects(head, rest[1:], order=order, random_state=rng)
        twins = yield from _count_twins(chain)
        rest = chain[twins:]
        if not twins or not len(rest):
            left = np.array([head, *rest, *done], dtype=np.int64)
            return left, total - len(left)
        done.append(head)


def nearest_places(objects: Objects, places: Objects) -> Asking[Objects]:
    """Which of a few objects, one for each place, is nearest to each of others: its index.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.array([[0.0], [5.0], [5.0], [0.0]])
    >>> nearer.run(nearest_places(np.array([2, 3]), np.array([0, 1])), nearer.PointOracle(X))
    array([1, 0])
    """
    at = np.zeros(len(objects), dtype=np.int64)
    for place, there in enumerate(places.tolist()[1:], start=1):
        rivals = [places[at], np.full(len(objects), there)]
        stay = yield np.stack([objects, *rivals], axis=1)
        at[~stay] = place
    return at


def _count_twins(chain: Objects) -> Asking[int]:
    """How many of the first in its chain share the head's place."""
    low, high = min(_PASSED, len(chain) - 1), len(chain)
    if not (yield from _is_twin(low, chain)):
        return 0
    while high - low > 1:  # the member at `low` is a twin, the one at `high` is none
        middle = (low + high) // 2
        if (yield from _is_twin(middle, chain)):
            low = middle
        else:
            high = middle
    return low + 1


def _is_twin(place: int, chain: Objects) -> Asking[bool]:
    """Whether that member of the chain ranks the others as the chain does."""
    others = np.delete(chain, place)
    if len(others) <= _FEWEST:
        return False
    step = 1
    while step < len(others):  # neighbours tell most places apart, far members far ones
        first = np.linspace(0, len(others) - 1 - step, _CHECKS).astype(np.int64)
        pairs = np.stack([others[first], others[first + step]], axis=1)
        if not (yield np.insert(pairs, 0, chain[place], axis=1)).all():
            return False
        step *= 2
    return True
