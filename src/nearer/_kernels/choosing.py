"""A choice among alternatives: its likelihood and the gradient of that.

*Utilities.* A trial shows m items. An item is a set of pairs that should be near; its utility is
minus the sum of f(distance) over its pairs, f as in `nearer._kernels.comparisons`. With a query the
items are the objects shown, one pair each; of an odd one out the pairs that stay.

*Choices.* k of m without order are chosen with probability exp(Σ utilities of the chosen)/e_k,
where e_k is the sum of the same over all sets of k: the elementary symmetric polynomial of the
exp(utility), found in m·k steps from polynomials of what comes before and after each item. With an
order, items are chosen one after the other, each by a softmax over those left. With k = 1 both are
a softmax, and with m = 2 the logistic curve.

*Lapses.* At rate 2ε an answer is any of the A possible ones: p = 2ε/A + (1 − 2ε) q. With two
alternatives that is ε + (1 − 2ε) q.

*Credit.* Each item has a share of being chosen: 1, 0, or k/m on all where nobody could decide. The
probability is then a geometric mean, and what is learned is that the items are about a tie.

*Layout.* Items of trial t are ``starts[t] : starts[t + 1]``, the chosen ones first (in their order
where it counts); pairs of item i are ``spans[i] : spans[i + 1]``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.comparisons import counted
from nearer._kernels.compiling import helper, kernel

__all__ = ["agreement", "along_curve", "utilities", "value_and_gradient"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Flags = NDArray[np.bool_]

# Items this far above or below the last one chosen, times k, are certain to be in or out: e^600 is
# near the greatest number there is.
_CERTAIN = 600.0


@helper
def distance(X: Floats, a: int, b: int, tail: float) -> tuple[float, float]:
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
    """Fill the exp of utilities around the boundary; return what log e_k has lost by that."""
    middle, most = _boundary(u, m, k), _CERTAIN / k
    lost = k * middle
    for i in range(m):
        above = u[i] - middle
        lost += max(0.0, above - most)
        w[i] = math.exp(min(max(above, -most), most))
    return lost


@helper
def polynomials(w: Floats, m: int, k: int, skip: int, before: Floats, after: Floats) -> None:
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
def inclusion(
    u: Floats, m: int, k: int, w: Floats, before: Floats, after: Floats, share: Floats
) -> float:
    """Fill how likely each item is among the k chosen; return log e_k."""
    lost = _weights(u, m, k, w)
    polynomials(w, m, k, -1, before, after)
    whole = before[m, k]
    for i in range(m):
        without = 0.0
        for a in range(k):
            without += before[i, a] * after[i + 1, k - 1 - a]
        share[i] = w[i] * without / whole
    return math.log(whole) + lost


@helper
def softmax(u: Floats, first: int, m: int, share: Floats) -> float:
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
def _log_choice(
    u: Floats,
    credit: Floats,
    m: int,
    k: int,
    ranked: bool,
    share: Floats,
    slope: Floats,
    w: Floats,
    before: Floats,
    after: Floats,
) -> float:
    """Log-probability of the choice without lapses; fill its slopes in the utilities."""
    if ranked and k > 1:
        value = 0.0
        slope[:m] = 0.0
        for step in range(k):
            value += u[step] - softmax(u, step, m, share)
            slope[step] += 1.0
            for i in range(step, m):
                slope[i] -= share[i]
        return value
    value = 0.0
    if k == 1:
        value -= softmax(u, 0, m, share)
    else:
        value -= inclusion(u, m, k, w, before, after, share)
    for i in range(m):
        value += credit[i] * u[i]
        slope[i] = credit[i] - share[i]
    return value


@helper
def lapsed(log_q: float, log_ways: float, lapse: float) -> tuple[float, float]:
    """Log-probability with lapses, and how likely it is that the answer is none."""
    if lapse <= 0.0:
        return log_q, 1.0
    looked = math.log1p(-2.0 * lapse) + log_q
    blind = math.log(2.0 * lapse) - log_ways
    top = max(looked, blind)
    value = top + math.log(math.exp(looked - top) + math.exp(blind - top))
    return value, math.exp(looked - value)


@helper
def sizes(starts: Ints, wanted: Ints) -> tuple[int, int]:
    m = k = 1
    for t in range(len(wanted)):
        m = max(m, starts[t + 1] - starts[t])
        k = max(k, wanted[t])
    return m, k


@kernel
def utilities(X: Floats, spans: Ints, pairs: Ints, tail: float) -> Floats:
    """Minus the sum of what the distances of each item's pairs count."""
    u = np.zeros(len(spans) - 1)
    for i in range(len(u)):
        for pair in range(spans[i], spans[i + 1]):
            u[i] -= distance(X, pairs[pair, 0], pairs[pair, 1], tail)[0]
    return u


@kernel
def value_and_gradient(
    X: Floats,
    starts: Ints,
    spans: Ints,
    pairs: Ints,
    credit: Floats,
    wanted: Ints,
    ranked: Flags,
    log_ways: Floats,
    weights: Floats,
    lapse: float,
    tail: float,
) -> tuple[float, Floats]:
    """Weighted sum of −log p over the trials, and its gradient in the positions."""
    m, k = sizes(starts, wanted)
    share, slope, w = np.empty(m), np.empty(m), np.empty(m)
    before, after = np.empty((m + 1, k + 1)), np.empty((m + 1, k + 1))
    u = utilities(X, spans, pairs, tail)
    gradient = np.zeros(X.shape)
    total = 0.0
    for t in range(len(wanted)):
        if weights[t] == 0.0:
            continue
        one, end = starts[t], starts[t + 1]
        log_q = _log_choice(
            u[one:end], credit[one:end], end - one, wanted[t], ranked[t],
            share, slope, w, before, after,
        )  # fmt: skip
        log_p, looked = lapsed(log_q, log_ways[t], lapse)
        total -= weights[t] * log_p
        for i in range(one, end):
            pull = weights[t] * looked * slope[i - one]
            if pull == 0.0:
                continue
            for pair in range(spans[i], spans[i + 1]):
                a, b = pairs[pair, 0], pairs[pair, 1]
                factor = pull * distance(X, a, b, tail)[1]
                for c in range(X.shape[1]):
                    step = factor * (X[a, c] - X[b, c])
                    gradient[a, c] += step
                    gradient[b, c] -= step
    return total, gradient


@kernel
def along_curve(
    u: Floats,
    starts: Ints,
    credit: Floats,
    wanted: Ints,
    ranked: Flags,
    log_ways: Floats,
    sharpness: float,
    lapse: float,
) -> Floats:
    """Log p of each trial at utilities times `sharpness`, and its slopes in the two numbers."""
    m, k = sizes(starts, wanted)
    share, slope, w, steep = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    before, after = np.empty((m + 1, k + 1)), np.empty((m + 1, k + 1))
    out = np.zeros((len(wanted), 3))
    for t in range(len(wanted)):
        one, end = starts[t], starts[t + 1]
        for i in range(one, end):
            steep[i - one] = sharpness * u[i]
        log_q = _log_choice(
            steep, credit[one:end], end - one, wanted[t], ranked[t],
            share, slope, w, before, after,
        )  # fmt: skip
        log_p, looked = lapsed(log_q, log_ways[t], lapse)
        out[t, 0] = log_p
        for i in range(one, end):
            out[t, 1] += looked * slope[i - one] * u[i]
        out[t, 2] = 2.0 * (math.exp(-log_ways[t] - log_p) - math.exp(min(log_q - log_p, 700.0)))
    return out


@kernel
def agreement(u: Floats, starts: Ints, credit: Floats, wanted: Ints, ranked: Flags) -> Floats:
    """Share of the pairs of a chosen item and one behind it whose utilities say the same.

    A tie counts one half; nan where nobody could decide.
    """
    shares = np.empty(len(wanted))
    for t in range(len(wanted)):
        one, end, k = starts[t], starts[t + 1], wanted[t]
        right = count = 0.0
        for i in range(one, one + k):
            for j in range(i + 1 if ranked[t] else one + k, end):
                count += 1.0
                right += 1.0 if u[i] > u[j] else 0.5 if u[i] == u[j] else 0.0
        shares[t] = right / count if credit[one] == 1.0 else np.nan
    return shares
