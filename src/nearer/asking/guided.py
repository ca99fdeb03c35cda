"""Sort with a guess of the order, paying for its errors only.

The objects are inserted in the guessed order. Where the guess is right, the next object belongs at
the far end of the chain, and one comparison shows it; an object that belongs k places before the
end, its *displacement*, should cost about log2 k.

The search for k is a bisection by probability: each comparison halves the probability that is
left, not the interval. The probabilities are learned while sorting, from the displacements seen so
far, as a mixture of two explanations:

* a histogram over 0, 1–2, 3–6, 7–14, … with each class flat inside: the guess is good, and errors
  have some typical size;
* the uniform distribution over the whole chain: the guess says nothing.

Each object is credited to the two explanations by Bayes' rule. A good guess therefore costs about
the entropy of its displacements, and a useless one turns the search into plain binary insertion.
For the theory of sorting with predictions see Bai and Coester (NeurIPS 2023).
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from nearer.asking.protocol import Strategy

__all__ = ["guided_sort"]


def guided_sort(head: int, guessed: NDArray[np.int64]) -> Strategy[NDArray[np.int64]]:
    """Sort objects by their distance from the head; `guessed` lists them nearest first.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(guided_sort(0, np.array([1, 2, 3])), oracle)
    array([2, 1, 3])
    """
    chain: list[int] = []
    seen = _Displacements()
    for item in guessed.tolist():
        length = len(chain)
        low, high = 0, length + 1  # low <= displacement < high
        cumulative = seen.cumulative(length)
        while high - low > 1:
            middle = _split(cumulative, low, high)
            (nearer,) = yield np.array([[head, item, chain[length - middle]]])
            low, high = (middle, high) if nearer else (low, middle)
        seen.add(low, length)
        chain.insert(length - low, item)
    return np.array(chain, dtype=np.int64)


class _Displacements:
    """How far objects were from where they were guessed to be."""

    def __init__(self) -> None:
        self._count = [0.5]  # class j holds the displacements from 2**j − 1 to 2**(j + 1) − 2
        self._uniform = 1.0
        self._histogram = 1.0

    def cumulative(self, length: int) -> list[tuple[int, float]]:
        """Pairs of a displacement k and P(displacement < k), linear between them."""
        while 2 ** len(self._count) - 1 <= length:
            self._count.append(0.5)
        flat = self._uniform / (self._uniform + self._histogram)
        edges = [0, *(min(2 ** (j + 1) - 1, length + 1) for j in range(len(self._count)))]
        weights = self._weights(edges)
        total, scale = 0.0, (1 - flat) / sum(weights)
        points = [(0, 0.0)]
        for j, weight in enumerate(weights):
            total += weight * scale + flat * (edges[j + 1] - edges[j]) / (length + 1)
            points.append((edges[j + 1], total))
        return points

    def add(self, displacement: int, length: int) -> None:
        """Learn from one object inserted into a chain of this length."""
        j = (displacement + 1).bit_length() - 1
        edges = [0, *(min(2 ** (i + 1) - 1, length + 1) for i in range(len(self._count)))]
        weights = self._weights(edges)
        by_histogram = self._histogram * weights[j] / sum(weights) / (edges[j + 1] - edges[j])
        by_uniform = self._uniform / (length + 1)
        credit = by_histogram / (by_histogram + by_uniform)
        self._histogram += credit
        self._uniform += 1 - credit
        self._count[j] += 1

    def _weights(self, edges: list[int]) -> list[float]:
        """The count of each class, cut where the chain ends inside it."""
        return [count * (edges[j + 1] - edges[j]) / 2**j for j, count in enumerate(self._count)]


def _split(cumulative: list[tuple[int, float]], low: int, high: int) -> int:
    """The k strictly between low and high that comes nearest to halving the probability."""
    target = (_value(cumulative, low) + _value(cumulative, high)) / 2
    i = min(bisect_right(cumulative, target, key=lambda point: point[1]), len(cumulative) - 1)
    (k0, p0), (k1, p1) = cumulative[i - 1], cumulative[i]
    k = k0 + (k1 - k0) * (target - p0) / (p1 - p0) if p1 > p0 else k0
    return min(max(round(k), low + 1), high - 1)


def _value(cumulative: list[tuple[int, float]], k: int) -> float:
    i = min(bisect_right(cumulative, k, key=lambda point: point[0]), len(cumulative) - 1)
    (k0, p0), (k1, p1) = cumulative[i - 1], cumulative[i]
    return p0 + (p1 - p0) * (k - k0) / (k1 - k0) if k1 > k0 else p1
