"""What a choice tells about each object: its Fisher information, and how much is expected of it.

Moving object o changes the utilities u of a trial's items by their gradients Gₒ. With J the
information about u that the choice carries, GₒᵀJGₒ is the one about o, and Σₒ tr(Σₒ GₒᵀJGₒ)/2 =
½ tr(J·Cov(u)) is, to first order, the information in nats that the answer will give about
positions of covariances Σₒ. For a softmax J = diag(p) − ppᵀ; for k of m without order it is the
covariance of which items are among the chosen. The layout is that of `nearer._kernels.choosing`.

Screens built one object at a time: whichever adds most to what the answer will tell.

With a query, the utility of a shown object is minus its distance, and the covariance of two
utilities is what the query's own doubt makes of them, plus, of one with itself, the object's doubt.
So ½ tr(J·Cov(u)) of a growing set needs no more than a table of these and J, the covariance of
which objects would be chosen. While fewer than k + 1 objects are there, fewer are chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.choosing import (
    distance,
    inclusion,
    lapsed,
    polynomials,
    sizes,
    softmax,
    utilities,
)
from nearer._kernels.compiling import helper, kernel

__all__ = ["expected", "fisher", "grow", "information"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Flags = NDArray[np.bool_]


@helper
def _joint(
    w: Floats, m: int, k: int, share: Floats, before: Floats, after: Floats, J: Floats
) -> None:
    """Covariance of which items are among the k chosen, from the weights and their shares."""
    polynomials(w, m, k, -1, before, after)
    whole = before[m, k]
    for i in range(m):
        J[i, i] = share[i] * (1.0 - share[i])
        polynomials(w, m, k, i, before, after)
        for j in range(i):
            both = 0.0
            for a in range(k - 1):
                both += before[j, a] * after[j + 1, k - 2 - a]
            J[i, j] = J[j, i] = w[i] * w[j] * both / whole - share[i] * share[j]


@helper
def fisher(
    u: Floats,
    m: int,
    k: int,
    ranked: bool,
    log_ways: float,
    lapse: float,
    share: Floats,
    w: Floats,
    before: Floats,
    after: Floats,
    J: Floats,
) -> None:
    """Fill the information that a choice carries about the utilities.

    It is exact for one of m. For more, lapses take from it what they take from an answer of
    typical probability, exp(−entropy). With an order it is that of the choices that were made.
    """
    if ranked and k > 1:
        J[:m, :m] = 0.0
        for step in range(k):
            softmax(u, step, m, share)
            for i in range(step, m):
                J[i, i] += (1.0 - 2.0 * lapse) * share[i]
                for j in range(step, m):
                    J[i, j] -= (1.0 - 2.0 * lapse) * share[i] * share[j]
        return
    guess = 2.0 * lapse
    if k == 1:
        softmax(u, 0, m, share)
        total = 0.0
        for i in range(m):
            p = guess / m + (1.0 - guess) * share[i]
            w[i] = ((1.0 - guess) * share[i]) ** 2 / p if p > 0.0 else 0.0
            total += w[i]
        for i in range(m):
            for j in range(m):
                J[i, j] = total * share[i] * share[j] - w[i] * share[j] - w[j] * share[i]
            J[i, i] += w[i]
        return
    log_sum = inclusion(u, m, k, w, before, after, share)
    entropy = log_sum
    for i in range(m):
        entropy -= share[i] * u[i]
    _joint(w, m, k, share, before, after, J)
    factor = (1.0 - guess) * lapsed(-entropy, log_ways, lapse)[1]
    for i in range(m):
        for j in range(m):
            J[i, j] *= factor


@helper
def _directions(
    X: Floats,
    one: int,
    end: int,
    spans: Ints,
    pairs: Ints,
    tail: float,
    objects: Ints,
    G: Floats,
) -> int:
    """Fill the objects of a trial and the gradient of each utility in each of them."""
    count = 0
    for i in range(one, end):
        for pair in range(spans[i], spans[i + 1]):
            a, b = pairs[pair, 0], pairs[pair, 1]
            at_a = at_b = -1
            for place in range(count):
                if objects[place] == a:
                    at_a = place
                if objects[place] == b:
                    at_b = place
            if at_a < 0:
                at_a, objects[count] = count, a
                G[:, count] = 0.0
                count += 1
            if at_b < 0:
                at_b, objects[count] = count, b
                G[:, count] = 0.0
                count += 1
            factor = distance(X, a, b, tail)[1]
            for c in range(X.shape[1]):
                step = factor * (X[a, c] - X[b, c])
                G[i - one, at_a, c] -= step
                G[i - one, at_b, c] += step
    return count


@helper
def _block(G: Floats, J: Floats, m: int, place: int, block: Floats) -> None:
    """The information about one object: its gradients, weighed by J."""
    d = G.shape[2]
    block[:] = 0.0
    for i in range(m):
        if not np.any(G[i, place]):  # most items have nothing to do with most objects
            continue
        for j in range(m):
            for c in range(d):
                scaled = J[i, j] * G[i, place, c]
                for e in range(d):
                    block[c, e] += scaled * G[j, place, e]


@helper
def _most_objects(starts: Ints, spans: Ints) -> int:
    most = 1
    for t in range(len(starts) - 1):
        most = max(most, 2 * (spans[starts[t + 1]] - spans[starts[t]]))
    return most


@kernel
def information(
    X: Floats,
    starts: Ints,
    spans: Ints,
    pairs: Ints,
    wanted: Ints,
    ranked: Flags,
    log_ways: Floats,
    weights: Floats,
    lapse: float,
    tail: float,
) -> Floats:
    """Fisher information of each object's position, one ``(d, d)`` block an object."""
    n, d = X.shape
    m, k = sizes(starts, wanted)
    share, w, J = np.empty(m), np.empty(m), np.empty((m, m))
    before, after = np.empty((m + 1, k + 1)), np.empty((m + 1, k + 1))
    most = min(n, _most_objects(starts, spans))
    objects, G, block = np.empty(most, np.int64), np.empty((m, most, d)), np.empty((d, d))
    u = utilities(X, spans, pairs, tail)
    blocks = np.zeros((n, d, d))
    for t in range(len(wanted)):
        one, end = starts[t], starts[t + 1]
        fisher(
            u[one:end], end - one, wanted[t], ranked[t], log_ways[t], lapse,
            share, w, before, after, J,
        )  # fmt: skip
        for place in range(_directions(X, one, end, spans, pairs, tail, objects, G)):
            _block(G, J, end - one, place, block)
            for c in range(d):
                for e in range(d):
                    blocks[objects[place], c, e] += weights[t] * block[c, e]
    return blocks


@kernel
def expected(
    X: Floats,
    covariances: Floats,
    starts: Ints,
    spans: Ints,
    pairs: Ints,
    wanted: Ints,
    ranked: Flags,
    log_ways: Floats,
    sharpness: float,
    lapse: float,
    tail: float,
) -> tuple[Floats, Floats]:
    """What each trial is expected to tell, ½ tr(J·Cov(u)) in nats, and how unsure it is.

    The latter is the mean variance of the difference of two of them: of a comparison, the variance
    of its margin. Utilities count times `sharpness` in the former. Objects vary independently.
    """
    n, d = X.shape
    m, k = sizes(starts, wanted)
    share, w, steep = np.empty(m), np.empty(m), np.empty(m)
    J, C = np.empty((m, m)), np.empty((m, m))
    before, after = np.empty((m + 1, k + 1)), np.empty((m + 1, k + 1))
    most = min(n, _most_objects(starts, spans))
    objects, G, block = np.empty(most, np.int64), np.empty((m, most, d)), np.empty((d, d))
    u = utilities(X, spans, pairs, tail)
    told, variance = np.zeros(len(wanted)), np.zeros(len(wanted))
    for t in range(len(wanted)):
        one, end = starts[t], starts[t + 1]
        shown = end - one
        for i in range(shown):
            steep[i] = sharpness * u[one + i]
            for j in range(shown):
                C[i, j] = ((2.0 if i == j else 0.0) - 2.0 / shown) / (shown - 1)
        fisher(
            steep, shown, wanted[t], ranked[t], log_ways[t], lapse, share, w, before, after, J
        )  # fmt: skip
        for place in range(_directions(X, one, end, spans, pairs, tail, objects, G)):
            Sigma = covariances[objects[place]]
            _block(G, J, shown, place, block)
            told[t] += 0.5 * sharpness * sharpness * np.sum(block * Sigma)
            _block(G, C, shown, place, block)
            variance[t] += np.sum(block * Sigma)
    return told, variance


@helper
def _value(
    u: Floats, C: Floats, chosen: Ints, m: int, k: int, lapse: float, steep: Floats,
    share: Floats, w: Floats, before: Floats, after: Floats, J: Floats,
) -> float:  # fmt: skip
    """½ tr(J·Cov(u)) of the first m of the chosen."""
    for i in range(m):
        steep[i] = u[chosen[i]]
    log_ways = 0.0
    for a in range(k):
        log_ways += np.log((m - a) / (k - a))
    fisher(steep, m, k, False, log_ways, lapse, share, w, before, after, J)
    total = 0.0
    for i in range(m):
        for j in range(m):
            total += J[i, j] * C[chosen[i], chosen[j]]
    return 0.5 * total


@kernel
def grow(
    u: Floats, C: Floats, first: int, size: int, choose: int, lapse: float
) -> tuple[Ints, float]:
    """Places of `size` objects of a pool, the first given, and what the answer will tell.

    Parameters
    ----------
    u, C
        Utilities of the objects of the pool and their covariance, in units of the answers' noise.
    first
        The object to begin with.
    size, choose
        How many are shown, and how many of them are to be chosen.
    lapse
        Rate of wrong answers whatever is asked.
    """
    p, k = len(u), choose
    steep, share, w = np.empty(size), np.empty(size), np.empty(size)
    before, after = np.empty((size + 1, k + 1)), np.empty((size + 1, k + 1))
    J = np.empty((size, size))
    chosen, free = np.empty(size, np.int64), np.ones(p, np.bool_)
    chosen[0], free[first] = first, False
    best = 0.0
    for m in range(1, size):
        best, found = -1.0, -1
        for candidate in range(p):
            if not free[candidate]:
                continue
            chosen[m] = candidate
            told = _value(
                u, C, chosen, m + 1, min(k, m), lapse, steep, share, w, before, after, J
            )  # fmt: skip
            if told > best:
                best, found = told, candidate
        chosen[m] = found
        free[found] = False
    return chosen, best
