"""Which of some questions about a head tells most about where the head is (Tamuz et al. 2011)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

__all__ = ["most_informative"]


@njit(cache=True, inline="always")
def _squared_distance(X, i, j):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(X.shape[1]):
        total += (X[i, k] - X[j, k]) ** 2
    return total


@njit(cache=True, inline="always")
def _entropy(p):  # type: ignore[no-untyped-def]
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)


@njit(cache=True, parallel=True, nogil=True)
def most_informative(
    X: NDArray[np.float64],
    mu: float,
    heads: NDArray[np.int64],
    places: NDArray[np.int64],
    starts: NDArray[np.int64],
    answered: NDArray[np.int64],
    candidates: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For each head, the index of the candidate pair with the greatest expected information.

    Parameters
    ----------
    X, mu
        Positions, and μ of the crowd-kernel probability (μ + Δ²)/(2μ + δ² + Δ²).
    heads
        Who is asked about.
    places
        ``(h, s)`` objects whose positions are where the head might be.
    starts, answered
        ``answered[starts[i] : starts[i + 1]]`` are the pairs (near, far) that ``heads[i]`` has.
    candidates
        ``(h, c, 2)`` pairs that might be asked.
    """
    best = np.zeros(len(heads), dtype=np.int64)
    n_places, n_candidates = places.shape[1], candidates.shape[1]
    for i in prange(len(heads)):
        belief = np.zeros(n_places)
        for s in range(n_places):
            x = places[i, s]
            for t in range(starts[i], starts[i + 1]):
                near = _squared_distance(X, x, answered[t, 0])
                far = _squared_distance(X, x, answered[t, 1])
                belief[s] += math.log((mu + far) / (2.0 * mu + near + far))
        belief = np.exp(belief - belief.max())
        belief /= belief.sum()
        most = -1.0
        for c in range(n_candidates):
            mean, doubt = 0.0, 0.0
            for s in range(n_places):
                if belief[s] > 1e-9:
                    a = _squared_distance(X, places[i, s], candidates[i, c, 0])
                    b = _squared_distance(X, places[i, s], candidates[i, c, 1])
                    p = (mu + b) / (2.0 * mu + a + b)
                    mean += belief[s] * p
                    doubt += belief[s] * _entropy(p)
            gain = _entropy(mean) - doubt
            if gain > most:
                most = gain
                best[i] = c
    return best
