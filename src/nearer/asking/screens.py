"""How simulated oracles answer screens: what costs least is chosen.

With a query, a shown object costs its distance from the query. Without one (query −1) the odd one
out is wanted: an object costs minus the sum of its distances to the others shown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.distances import Distances
from nearer.questions import Answers, Floats, Questions

__all__ = ["cheapest", "costs", "hash_to_unit", "screen_chances"]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd multiplier that scatters object numbers


def costs(distances: Distances, screens: Questions) -> Floats:
    """What choosing each shown object costs, one row a screen."""
    rows = np.asarray(screens)
    shown = rows[:, 1:]
    m = shown.shape[1]
    out = np.empty(shown.shape)
    with_query = rows[:, 0] >= 0
    heads = np.repeat(rows[with_query, 0], m)
    out[with_query] = distances.between(heads, shown[with_query].ravel()).reshape(-1, m)
    odd = shown[~with_query]
    first, second = np.triu_indices(m, 1)
    apart = distances.between(odd[:, first].ravel(), odd[:, second].ravel())
    apart = apart.reshape(len(odd), len(first))
    sums = np.zeros(odd.shape)
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        sums[:, i] += apart[:, pair]
        sums[:, j] += apart[:, pair]
    out[~with_query] = -sums
    return out


def cheapest(cost: Floats, screens: Questions, choose: int) -> Answers:
    """Choose so many of the shown that cost least; ties go by object number."""
    order = np.lexsort((np.asarray(screens)[:, 1:], cost), axis=1)
    chosen = np.zeros(cost.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order[:, :choose], True, axis=1)
    return chosen


def screen_chances(screens: Questions, salt: np.uint64) -> Floats:
    """A number in [0, 1) for each shown object, the same whenever that screen is shown."""
    rows = np.asarray(screens).astype(np.uint64)
    code = rows[:, 0].copy()
    for column in np.sort(rows[:, 1:], axis=1).T:
        code = (code + column) * _SPREAD
    return hash_to_unit((code[:, None] + rows[:, 1:] * _SPREAD) ^ salt)


def hash_to_unit(keys: NDArray[np.uint64]) -> Floats:
    """Integers to numbers in [0, 1) that look independent (the finaliser of SplitMix64)."""
    z = keys + _SPREAD
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)
