"""Which of some questions about a head tells most about where the head is (Tamuz et al. 2011)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel, side_by_side

__all__ = ["most_informative"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PART = 64  # heads that make a second thread worth waking: some milliseconds


@helper
def _squared_distance(X: Floats, i: int, j: int) -> float:
    total = 0.0
    for k in range(X.shape[1]):
        total += (X[i, k] - X[j, k]) ** 2
    return total


@helper
def _entropy(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)


@kernel
def _most_informative(
    X: Floats,
    mu: float,
    places: Ints,
    starts: Ints,
    answered: Ints,
    candidates: Ints,
    belief: Floats,
    best: Ints,
) -> None:
    for i in range(len(places)):
        greatest = -math.inf
        for s in range(len(belief)):
            belief[s] = 0.0
            for t in range(starts[i], starts[i + 1]):
                near = _squared_distance(X, places[i, s], answered[t, 0])
                far = _squared_distance(X, places[i, s], answered[t, 1])
                belief[s] += math.log((mu + far) / (2.0 * mu + near + far))
            greatest = max(greatest, belief[s])
        total = 0.0
        for s in range(len(belief)):
            belief[s] = math.exp(belief[s] - greatest)
            total += belief[s]
        most = -1.0
        for c in range(candidates.shape[1]):
            mean, doubt = 0.0, 0.0
            for s in range(len(belief)):
                share = belief[s] / total
                if share > 1e-9:
                    a = _squared_distance(X, places[i, s], candidates[i, c, 0])
                    b = _squared_distance(X, places[i, s], candidates[i, c, 1])
                    p = (mu + b) / (2.0 * mu + a + b)
                    mean += share * p
                    doubt += share * _entropy(p)
            gain = _entropy(mean) - doubt
            if gain > most:
                most, best[i] = gain, c


def most_informative(
    X: Floats, mu: float, places: Ints, starts: Ints, answered: Ints, candidates: Ints
) -> Ints:
    """For each head, the index of the candidate pair with the greatest expected information.

    Parameters
    ----------
    X, mu
        Positions, and μ of the crowd-kernel probability (μ + Δ²)/(2μ + δ² + Δ²).
    places
        ``(h, s)`` objects whose positions are where the head might be.
    starts, answered
        ``answered[starts[i] : starts[i + 1]]`` are the pairs (near, far) that head i has.
    candidates
        ``(h, c, 2)`` pairs that might be asked.
    """
    best = np.zeros(len(places), dtype=np.int64)

    def choose(_: int, rows: slice) -> None:
        starts_ = starts[rows.start : rows.stop + 1]
        belief = np.empty(places.shape[1])
        _most_informative(
            X, mu, places[rows], starts_, answered, candidates[rows], belief, best[rows]
        )

    side_by_side(choose, len(places), 1 + len(places) // _PART)
    return best
