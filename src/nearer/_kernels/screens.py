"""Choices among alternatives: their likelihood, its gradient, and the information they carry.

docs/kernels.md has the model: utilities, choices, lapses, credit and information. A screen is built
one object at a time: the one that adds most to the expected information ½ tr(J·Cov(u)). With a
query, that needs only a table of utilities and their covariances. Of at most k objects, fewer than
k are chosen.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.comparisons import counted
from nearer._kernels.compiling import helper, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


# Items this far above or below the last one chosen, times k, are certainly in or out. Sums of
# exp(_CERTAIN) over all sets of items do not overflow.
_CERTAIN = 0.5 * math.log(np.finfo(np.float64).max)


class Screens(NamedTuple):
    """Trials as kernels take them.

    Items of trial t are ``starts[t] : starts[t + 1]``, the chosen ones first (in their order where
    it counts); pairs of item i are ``spans[i] : spans[i + 1]``. `credit` belongs to items, the
    number wanted, whether ranked, and the log of the number of possible answers to trials.
    """

    starts: NDArray[np.int64]
    spans: NDArray[np.int64]
    pairs: NDArray[np.int32]
    credit: Floats
    wanted: NDArray[np.int64]
    ranked: NDArray[np.bool_]
    log_ways: Floats


class _Work(NamedTuple):
    """Arrays for one trial: shares, slopes and weights of items, polynomials, information."""

    share: Floats
    slope: Floats
    weight: Floats
    before: Floats
    after: Floats
    J: Floats


@helper
def _room(m: int, k: int) -> _Work:
    """Arrays for trials that show up to m items, up to k of them chosen."""
    return _Work(
        np.empty(m), np.empty(m), np.empty(m), np.empty((m + 1, k + 1)), np.empty((m + 1, k + 1)),
        np.empty((m, m)),
    )  # fmt: skip


@helper
def _sizes(screens: Screens) -> tuple[int, int]:
    m = k = 1
    for t in range(len(screens.wanted)):
        m = max(m, screens.starts[t + 1] - screens.starts[t])
        k = max(k, screens.wanted[t])
    return m, k


# --- likelihood ----------------------------------------------------------------------------------


@helper
def _distance(X: Floats, a: int, b: int, tail: float) -> tuple[float, float]:
    squared = 0.0
    for c in range(X.shape[1]):
        squared += (X[a, c] - X[b, c]) ** 2
    return counted(squared, tail)


@helper
def _boundary(u: Floats, m: int, k: int) -> float:
    """A utility between the k-th and the next largest."""
    top = np.full(k + 1, -np.inf)
    for i in range(m):
        value, place = u[i], k
        if value <= top[k]:
            continue
        while place > 0 and top[place - 1] < value:
            top[place] = top[place - 1]
            place -= 1
        top[place] = value
    return float(0.5 * (top[k - 1] + top[k]))


@helper
def _weights(u: Floats, m: int, k: int, w: Floats) -> float:
    """Fill exp of utilities minus the boundary; return the constant to add to log e_k."""
    middle, most = _boundary(u, m, k), _CERTAIN / k
    lost = k * middle
    for i in range(m):
        above = u[i] - middle
        lost += max(0.0, above - most)
        w[i] = math.exp(min(max(above, -most), most))
    return lost


@helper
def _polynomials(w: Floats, m: int, k: int, skip: int, before: Floats, after: Floats) -> None:
    """Elementary symmetric polynomials of the items before, and from, each one but `skip`."""
    before[0, 0] = after[m, 0] = 1.0
    for a in range(1, k + 1):
        before[0, a] = after[m, a] = 0.0
    for i in range(m):
        x, j = 0.0 if i == skip else w[i], m - 1 - i
        y = 0.0 if j == skip else w[j]
        before[i + 1, 0] = after[j, 0] = 1.0
        for a in range(1, k + 1):
            before[i + 1, a] = before[i, a] + x * before[i, a - 1]
            after[j, a] = after[j + 1, a] + y * after[j + 1, a - 1]


@helper
def _inclusion(u: Floats, m: int, k: int, work: _Work) -> float:
    """Fill the probability that each item is among the k chosen; return log e_k."""
    w, before, after = work.weight, work.before, work.after
    lost = _weights(u, m, k, w)
    _polynomials(w, m, k, -1, before, after)
    whole = before[m, k]
    for i in range(m):
        without = 0.0
        for a in range(k):
            without += before[i, a] * after[i + 1, k - 1 - a]
        work.share[i] = w[i] * without / whole
    return math.log(whole) + lost


@helper
def _softmax(u: Floats, first: int, m: int, share: Floats) -> float:
    """Fill the softmax of the items from `first` on; return the log of its denominator."""
    top = -np.inf
    for i in range(first, m):
        top = max(top, u[i])
    total = 0.0
    for i in range(first, m):
        share[i] = math.exp(u[i] - top)
        total += share[i]
    for i in range(first, m):
        share[i] /= total
    return top + math.log(total)


@helper
def _log_choice(u: Floats, credit: Floats, k: int, ranked: bool, work: _Work) -> float:
    """Log-probability of the choice without lapses; fill its slopes in the utilities."""
    m, share, slope, value = len(credit), work.share, work.slope, 0.0
    if ranked and k > 1:
        slope[:m] = 0.0
        for step in range(k):
            value += u[step] - _softmax(u, step, m, share)
            slope[step] += 1.0
            for i in range(step, m):
                slope[i] -= share[i]
        return value
    if k == 1:
        value -= _softmax(u, 0, m, share)
    else:
        value -= _inclusion(u, m, k, work)
    for i in range(m):
        value += credit[i] * u[i]
        slope[i] = credit[i] - share[i]
    return value


@helper
def _lapsed(log_q: float, log_ways: float, lapse: float) -> tuple[float, float]:
    """Log-probability with lapses, and the probability that the answer is no lapse."""
    if lapse <= 0.0:
        return log_q, 1.0
    looked = math.log1p(-2.0 * lapse) + log_q
    blind = math.log(2.0 * lapse) - log_ways
    top = max(looked, blind)
    value = top + math.log(math.exp(looked - top) + math.exp(blind - top))
    return value, math.exp(looked - value)


@kernel
def utilities(X: Floats, screens: Screens, tail: float) -> Floats:
    """Minus the sum of f(distance) over the pairs of each item."""
    spans, pairs = screens.spans, screens.pairs
    u = np.zeros(len(spans) - 1)
    for i in range(len(u)):
        for pair in range(spans[i], spans[i + 1]):
            u[i] -= _distance(X, pairs[pair, 0], pairs[pair, 1], tail)[0]
    return u


@kernel
def value_and_gradient(
    X: Floats, screens: Screens, weights: Floats, lapse: float, tail: float
) -> tuple[float, Floats]:
    """Weighted sum of −log p over the trials, and its gradient in the positions."""
    starts, spans, pairs = screens.starts, screens.spans, screens.pairs
    m, k = _sizes(screens)
    work, u = _room(m, k), utilities(X, screens, tail)
    gradient = np.zeros(X.shape)
    total = 0.0
    for t in range(len(screens.wanted)):
        if weights[t] == 0.0:
            continue
        one, end = starts[t], starts[t + 1]
        log_q = _log_choice(
            u[one:end], screens.credit[one:end], screens.wanted[t], screens.ranked[t], work
        )
        log_p, looked = _lapsed(log_q, screens.log_ways[t], lapse)
        total -= weights[t] * log_p
        for i in range(one, end):
            pull = weights[t] * looked * work.slope[i - one]
            if pull == 0.0:
                continue
            for pair in range(spans[i], spans[i + 1]):
                a, b = pairs[pair, 0], pairs[pair, 1]
                factor = pull * _distance(X, a, b, tail)[1]
                for c in range(X.shape[1]):
                    step = factor * (X[a, c] - X[b, c])
                    gradient[a, c] += step
                    gradient[b, c] -= step
    return total, gradient


@kernel
def along_curve(u: Floats, screens: Screens, sharpness: float, lapse: float) -> Floats:
    """Log p of each trial at utilities times `sharpness`, and its slopes in the two numbers."""
    m, k = _sizes(screens)
    work, steep = _room(m, k), sharpness * u
    out = np.zeros((len(screens.wanted), 3))
    for t in range(len(screens.wanted)):
        one, end = screens.starts[t], screens.starts[t + 1]
        log_q = _log_choice(
            steep[one:end], screens.credit[one:end], screens.wanted[t], screens.ranked[t], work
        )
        ways = screens.log_ways[t]
        log_p, looked = _lapsed(log_q, ways, lapse)
        out[t, 0] = log_p
        for i in range(one, end):
            out[t, 1] += looked * work.slope[i - one] * u[i]
        out[t, 2] = 2.0 * (math.exp(-ways - log_p) - math.exp(min(log_q - log_p, _CERTAIN)))
    return out


@kernel
def agreement(u: Floats, screens: Screens) -> Floats:
    """Whether the items of greatest utility are those that were chosen, in their order if ranked.

    Equal utilities are ordered at random; nan for an undecided trial.
    """
    shares = np.empty(len(screens.wanted))
    for t in range(len(screens.wanted)):
        one, end, k = screens.starts[t], screens.starts[t + 1], screens.wanted[t]
        steps = k if screens.ranked[t] else 1
        size = 1 if screens.ranked[t] else k
        shares[t] = 1.0 if screens.credit[one] == 1.0 else np.nan
        for first in range(one, one + steps):
            least = u[first : first + size].min()
            ahead = equal = chosen = 0
            for i in range(first, end):
                chosen += i < first + size and u[i] == least
                equal += u[i] == least
                ahead += i >= first + size and u[i] > least
            for i in range(chosen):  # one over the ways to choose among equal utilities
                shares[t] *= (chosen - i) / (equal - i)
            if ahead:
                shares[t] *= 0.0
    return shares


# --- information ---------------------------------------------------------------------------------


@helper
def _joint(m: int, k: int, work: _Work) -> None:
    """Covariance of the indicators of chosen items, from the weights and their shares."""
    w, share, before, after, J = work.weight, work.share, work.before, work.after, work.J
    _polynomials(w, m, k, -1, before, after)
    whole = before[m, k]
    for i in range(m):
        J[i, i] = share[i] * (1.0 - share[i])
        _polynomials(w, m, k, i, before, after)
        for j in range(i):
            both = 0.0
            for a in range(k - 1):
                both += before[j, a] * after[j + 1, k - 2 - a]
            J[i, j] = J[j, i] = w[i] * w[j] * both / whole - share[i] * share[j]


@helper
def _fisher(
    u: Floats, m: int, k: int, ranked: bool, log_ways: float, lapse: float, work: _Work
) -> None:
    """Fill J, the information that a choice carries about the utilities.

    It is exact for one of m. For k of m, lapses reduce it as for an answer of typical probability,
    exp(−entropy). With an order it is that of the choices that were made.
    """
    share, w, J, guess = work.share, work.weight, work.J, 2.0 * lapse
    if ranked and k > 1:
        J[:m, :m] = 0.0
        for step in range(k):
            _softmax(u, step, m, share)
            for i in range(step, m):
                J[i, i] += (1.0 - guess) * share[i]
                for j in range(step, m):
                    J[i, j] -= (1.0 - guess) * share[i] * share[j]
        return
    if k == 1:
        _softmax(u, 0, m, share)
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
    entropy = _inclusion(u, m, k, work)
    for i in range(m):
        entropy -= share[i] * u[i]
    _joint(m, k, work)
    factor = (1.0 - guess) * _lapsed(-entropy, log_ways, lapse)[1]
    for i in range(m):
        for j in range(m):
            J[i, j] *= factor


@helper
def _directions(X: Floats, screens: Screens, t: int, tail: float, objects: Ints, G: Floats) -> int:
    """Fill the objects of a trial and the gradient of each utility in each of them."""
    spans, pairs, count = screens.spans, screens.pairs, 0
    one = screens.starts[t]
    for i in range(one, screens.starts[t + 1]):
        for pair in range(spans[i], spans[i + 1]):
            for side in range(2):
                here, there, place = pairs[pair, side], pairs[pair, 1 - side], 0
                while place < count and objects[place] != here:
                    place += 1
                if place == count:
                    objects[place] = here
                    G[:, place] = 0.0
                    count += 1
                factor = _distance(X, here, there, tail)[1]
                for c in range(X.shape[1]):
                    G[i - one, place, c] -= factor * (X[here, c] - X[there, c])
    return count


@helper
def _block(G: Floats, J: Floats, m: int, place: int, block: Floats) -> None:
    """The information about one object: GᵀJG for its gradients G."""
    d = G.shape[2]
    block[:] = 0.0
    for i in range(m):
        if not np.any(G[i, place]):  # most items do not depend on most objects
            continue
        for j in range(m):
            for c in range(d):
                scaled = J[i, j] * G[i, place, c]
                for e in range(d):
                    block[c, e] += scaled * G[j, place, e]


@helper
def _most_objects(screens: Screens, n: int) -> int:
    most = 1
    for t in range(len(screens.wanted)):
        one, end = screens.starts[t], screens.starts[t + 1]
        most = max(most, 2 * (screens.spans[end] - screens.spans[one]))
    return min(n, most)


@kernel
def information(X: Floats, screens: Screens, weights: Floats, lapse: float, tail: float) -> Floats:
    """Fisher information of each object's position, one ``(d, d)`` block an object."""
    n, d = X.shape
    m, k = _sizes(screens)
    work, u, most = _room(m, k), utilities(X, screens, tail), _most_objects(screens, n)
    objects, G, block = np.empty(most, np.int64), np.empty((m, most, d)), np.empty((d, d))
    blocks = np.zeros((n, d, d))
    for t in range(len(screens.wanted)):
        one, end = screens.starts[t], screens.starts[t + 1]
        wanted, ranked, ways = screens.wanted[t], screens.ranked[t], screens.log_ways[t]
        _fisher(u[one:end], end - one, wanted, ranked, ways, lapse, work)
        for place in range(_directions(X, screens, t, tail, objects, G)):
            _block(G, work.J, end - one, place, block)
            for c in range(d):
                for e in range(d):
                    blocks[objects[place], c, e] += weights[t] * block[c, e]
    return blocks


@kernel
def expected_information(
    X: Floats, covariances: Floats, screens: Screens, sharpness: float, lapse: float, tail: float
) -> tuple[Floats, Floats]:
    """Expected information of each trial, ½ tr(J·Cov(u)) in nats, and a variance.

    The variance is the mean one of the difference of two utilities: for a comparison, that of its
    margin. For the information, utilities are multiplied by `sharpness`. Objects vary
    independently.
    """
    n, d = X.shape
    m, k = _sizes(screens)
    work, u, most = _room(m, k), utilities(X, screens, tail), _most_objects(screens, n)
    objects, G, block = np.empty(most, np.int64), np.empty((m, most, d)), np.empty((d, d))
    gain, variance, C = np.zeros(len(screens.wanted)), np.zeros(len(screens.wanted)), work.J.copy()
    steep = sharpness * u
    for t in range(len(screens.wanted)):
        one, end = screens.starts[t], screens.starts[t + 1]
        shown = end - one
        for i in range(shown):
            for j in range(shown):
                C[i, j] = ((2.0 if i == j else 0.0) - 2.0 / shown) / (shown - 1)
        wanted, ranked, ways = screens.wanted[t], screens.ranked[t], screens.log_ways[t]
        _fisher(steep[one:end], shown, wanted, ranked, ways, lapse, work)
        for place in range(_directions(X, screens, t, tail, objects, G)):
            Sigma = covariances[objects[place]]
            _block(G, work.J, shown, place, block)
            gain[t] += 0.5 * sharpness * sharpness * np.sum(block * Sigma)
            _block(G, C, shown, place, block)
            variance[t] += np.sum(block * Sigma)
    return gain, variance


@kernel
def grow(
    u: Floats, C: Floats, first: int, size: int, choose: int, lapse: float
) -> tuple[Ints, float]:
    """Places of `size` objects of a pool, the first given, and the expected information.

    `u` and `C` are utilities of the pool and their covariance, in units of the answers' noise.
    """
    work, steep = _room(size, choose), np.empty(size)
    chosen, free = np.empty(size, np.int64), np.ones(len(u), np.bool_)
    chosen[0], free[first], best = first, False, 0.0
    for m in range(1, size):
        k, log_ways = min(choose, m), 0.0
        for a in range(k):
            log_ways += np.log((m + 1 - a) / (k - a))
        best, best_candidate = -1.0, -1
        for candidate in range(len(u)):
            if not free[candidate]:
                continue
            chosen[m], gain = candidate, 0.0
            for i in range(m + 1):
                steep[i] = u[chosen[i]]
            _fisher(steep, m + 1, k, False, log_ways, lapse, work)
            for i in range(m + 1):
                for j in range(m + 1):
                    gain += 0.5 * work.J[i, j] * C[chosen[i], chosen[j]]
            if gain > best:
                best, best_candidate = gain, candidate
        chosen[m] = best_candidate
        free[best_candidate] = False
    return chosen, best
