r"""Where an object is, given between which members of each head's chain it lies.

The answers about one object bound its distance from each head: r_i(x) = ‖x − h_i‖ ∈ [a_i, b_i], a
shell around the head. With a normal prior, the density on the intersection of the shells is
approximated by a normal distribution: expectation propagation (Minka 2001), which is accurate for
normal distributions cut to intervals (Cunningham, Hennig and Lacoste-Julien 2011). Each shell has a
*site*, a normal factor in r_i with its precision and mean. A sweep solves for the position given
the sites (one Gauss–Newton step, since r_i is not linear), and then replaces each site by the one
that gives the distance its right first two moments inside the interval.

The next questions about the object are those with most information: for each head, the member of
the chain that comes nearest to halving the probability; of the heads, the two whose questions have
the most entropy, and of nearly equal ones those from which the distance is least certain.

A normal distribution knows one place only. Before an object is done, that place is doubted: an end
of a chain that it is believed to be beyond is asked about; and where its reflection in the heads
with the thinnest shells lies within all shells, too, a question that tells the two apart.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

__all__ = ["next_questions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DAMPING = 0.7  # share of a site that a sweep replaces
_TOLERATED = 0.01  # squared distance outside a shell, relative to its width
_ANEW = 8  # sweeps after a new beginning
_BEYOND = 1.25  # how far objects may lie outside the chain, relative to its last member


@njit(cache=True, inline="always")
def _below(x: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@njit(cache=True)
def _inside(mean: float, variance: float, low: float, high: float) -> tuple[float, float]:
    """Mean and variance of a normal variable known to lie between low and high."""
    width = high - low
    s = math.sqrt(variance)
    a, b = (low - mean) / s, (high - mean) / s
    mass = _below(-a) - _below(-b) if a > 0.0 else _below(b) - _below(a)
    if mass < 1e-9 or b - a < 1e-6:  # hardly possible: an edge, or nothing but the interval
        if a > 0.0:
            tail = min(width, s / a)
            return low + 0.5 * tail, tail * tail / 12.0
        if b < 0.0:
            tail = min(width, -s / b)
            return high - 0.5 * tail, tail * tail / 12.0
        return low + 0.5 * width, width * width / 12.0
    p, q = 0.3989422804014327 * math.exp(-0.5 * a * a), 0.3989422804014327 * math.exp(-0.5 * b * b)
    shift = (p - q) / mass
    spread = 1.0 + (a * p - b * q) / mass - shift * shift
    return mean + s * shift, max(variance * spread, 1e-9 * min(variance, width * width))


@njit(cache=True)
def _invert(A: Floats) -> None:
    """Replace a positive definite matrix by its inverse (Gauss–Jordan, no pivoting needed)."""
    d = len(A)
    for i in range(d):
        pivot = 1.0 / A[i, i]
        A[i, i] = 1.0
        for c in range(d):
            A[i, c] *= pivot
        for r in range(d):
            if r != i:
                factor = A[r, i]
                A[r, i] = 0.0
                for c in range(d):
                    A[r, c] -= factor * A[i, c]


@njit(cache=True, inline="always")
def _away(x: Floats, head: Floats, direction: Floats) -> float:
    """Distance of x from a head; `direction` becomes the unit vector from the head to x."""
    r = 0.0
    for j in range(len(x)):
        direction[j] = x[j] - head[j]
        r += direction[j] * direction[j]
    r = math.sqrt(r) + 1e-12
    for j in range(len(x)):
        direction[j] /= r
    return r


@njit(cache=True, inline="always")
def _along(covariance: Floats, direction: Floats) -> float:
    """Variance of a position along a direction."""
    total = 0.0
    for i in range(len(direction)):
        for j in range(len(direction)):
            total += direction[i] * direction[j] * covariance[i, j]
    return max(total, 1e-300)


@njit(cache=True)
def _solve(mean, covariance, heads, centre, prior, precision, target, work, step):  # type: ignore[no-untyped-def]
    """One Gauss–Newton step to the position that the prior and the sites agree on."""
    d = len(mean)
    for i in range(d):
        step[i] = 0.0
        for j in range(d):
            covariance[i, j] = prior[i, j]
            step[i] += prior[i, j] * (centre[j] - mean[j])
    for h in range(len(heads)):
        if precision[h] > 0.0:
            error = target[h] - _away(mean, heads[h], work)
            for i in range(d):
                weight = precision[h] * work[i]
                step[i] += weight * error
                for j in range(d):
                    covariance[i, j] += weight * work[j]
    _invert(covariance)
    for i in range(d):
        for j in range(d):
            mean[i] += covariance[i, j] * step[j]


@njit(cache=True)
def _sweep(mean, covariance, heads, precision, target, low, high, work):  # type: ignore[no-untyped-def]
    """Replace every site by the one its interval asks for, the others being as they are."""
    for h in range(len(heads)):
        r = _away(mean, heads[h], work)
        variance = _along(covariance, work)
        width = max(high[h] - low[h], 1e-9 * high[h] + 1e-300)
        flat = 12.0 / (width * width)  # the precision of a uniform distribution
        new, at = flat, low[h] + 0.5 * width
        others = 1.0 / variance - precision[h]
        if others > 1e-3 / variance:
            expected = (r / variance - precision[h] * target[h]) / others
            m, v = _inside(expected, 1.0 / others, low[h], low[h] + width)
            new = 1.0 / v - others
            if new < 1e-6 * others:
                new = 0.0
            elif new > 4.0 * flat:  # piled up at an edge: do not believe it too much
                new, at = 4.0 * flat, m
            else:
                at = (m / v - expected * others) / new
        blend = (1.0 - _DAMPING) * precision[h] + _DAMPING * new
        if blend > 0.0:
            old = (1.0 - _DAMPING) * precision[h] * target[h]
            target[h] = (old + _DAMPING * new * at) / blend
        precision[h] = blend


@njit(cache=True)
def _violation(x, heads, low, high, work):  # type: ignore[no-untyped-def]
    """How far outside the shells x is: the sum of squares, in units of the distances."""
    total = 0.0
    for h in range(len(heads)):
        r = _away(x, heads[h], work)
        outside = max(low[h] - r, r - high[h], 0.0)
        total += outside * outside
    return total


@njit(cache=True)
def _settle(mean, covariance, heads, centre, prior, precision, target, low, high, sweeps):  # type: ignore[no-untyped-def]
    """Sweep over the sites; return how far outside the shells the position comes to lie."""
    work, step = np.empty(len(centre)), np.empty(len(centre))
    for _ in range(sweeps):
        _solve(mean, covariance, heads, centre, prior, precision, target, work, step)
        _sweep(mean, covariance, heads, precision, target, low, high, work)
    _solve(mean, covariance, heads, centre, prior, precision, target, work, step)
    return _violation(mean, heads, low, high, work)


@njit(cache=True)
def _begin_at(  # type: ignore[no-untyped-def]
    x, mean, covariance, heads, centre, prior, precision, target, low, high, outside
):
    """Settle again from x, and stay there where that is less far outside the shells."""
    mean2, covariance2 = x.copy(), covariance.copy()
    precision2, target2 = np.zeros_like(precision), np.zeros_like(target)
    for h in range(len(heads)):
        width = max(high[h] - low[h], 1e-9 * high[h] + 1e-300)
        precision2[h], target2[h] = 12.0 / (width * width), low[h] + 0.5 * width
    again = _settle(mean2, covariance2, heads, centre, prior, precision2, target2, low, high, _ANEW)
    if again >= outside:
        return outside
    mean[:], covariance[:] = mean2, covariance2
    precision[:], target[:] = precision2, target2
    return again


@njit(cache=True)
def _reflected(x, heads, low, high):  # type: ignore[no-untyped-def]
    """The reflection of x in the hyperplane through the d heads with the thinnest shells.

    Those shells meet in x and there, and only the others can tell the two apart.
    """
    d = len(x)
    thinnest = np.argsort(high - low)[:d]
    axes = np.empty((d, d))  # orthonormal, of the hyperplane
    residual = x - heads[thinnest[0]]
    for i in range(1, len(thinnest)):
        axis = heads[thinnest[i]] - heads[thinnest[0]]
        for j in range(1, i):
            axis -= (axis * axes[j]).sum() * axes[j]
        axes[i] = axis / (math.sqrt((axis * axis).sum()) + 1e-12)
        residual -= (residual * axes[i]).sum() * axes[i]
    return x - 2.0 * residual


@njit(cache=True)
def _begin_elsewhere(  # type: ignore[no-untyped-def]
    mean,
    covariance,
    heads,
    centre,
    prior,
    precision,
    target,
    low,
    high,
    anchors,
    mirrors,
    outside,
    tolerated,
):
    """The shells may meet on the other side of the heads: try there.

    Beginnings are the anchor that fits the shells best, and reflections of the position: in the
    hyperplane through the heads with the thinnest shells, and in those through the heads' mean
    that their principal axes are normal to.
    """
    d = len(mean)
    work = np.empty(d)
    best, at = 1e300, 0
    for a in range(len(anchors)):
        violation = _violation(anchors[a], heads, low, high, work)
        if violation < best:
            best, at = violation, a
    belief = (covariance, heads, centre, prior, precision, target, low, high)
    outside = _begin_at(anchors[at] + 1e-6 * (centre - anchors[at]), mean, *belief, outside)
    if outside > tolerated:
        outside = _begin_at(_reflected(mean, heads, low, high), mean, *belief, outside)
    for axis in range(d):
        if outside <= tolerated:
            return
        shift = 0.0
        for j in range(d):
            shift += (mean[j] - mirrors[d, j]) * mirrors[axis, j]
        outside = _begin_at(mean - 2.0 * shift * mirrors[axis], mean, *belief, outside)


@njit(cache=True, inline="always")
def _entropy(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -(p * math.log2(p) + (1.0 - p) * math.log2(1.0 - p))


@njit(cache=True)
def _best_questions(  # type: ignore[no-untyped-def]
    mean, covariance, heads, chain, first, last, low, high, work, head, member, information
):
    """The two questions that tell most, the better first, from different heads; head −1: none."""
    head[:], information[:] = -1, 0.0
    best, second = -1e300, -1e300
    for h in range(len(heads)):
        if first[h] >= last[h]:
            continue
        r = _away(mean, heads[h], work)
        s = math.sqrt(_along(covariance, work))
        outside = _below((low[h] - r) / s)
        mass = max(_below((high[h] - r) / s) - outside, 1e-12)
        middle = np.searchsorted(chain[h, first[h] : last[h]], r) + first[h]
        most, at = -1.0, first[h]
        for c in range(middle - 1, middle + 1):
            candidate = min(max(c, first[h]), last[h] - 1)
            e = _entropy((_below((chain[h, candidate] - r) / s) - outside) / mass)
            if e > most:
                most, at = e, candidate
        score = most + 0.1 * math.log2(s)
        if score > best:
            head[1], member[1], information[1], second = head[0], member[0], information[0], best
            head[0], member[0], information[0], best = h, at, most, score
        elif score > second:
            head[1], member[1], information[1], second = h, at, most, score


@njit(cache=True)
def _doubt(mean, heads, chain, first, last, low, high, work, outside):  # type: ignore[no-untyped-def]
    """Head and member of its chain whose answer could show that the place is wrong; −1: none."""
    m = chain.shape[1]
    for h in range(len(heads)):
        if first[h] < last[h] == m and _away(mean, heads[h], work) > chain[h, m - 1]:
            return h, m - 1  # believed to be beyond all of the chain
    other = _reflected(mean, heads, low, high)
    widest, head, member = 0.0, -1, 0
    if _violation(other, heads, low, high, work) > outside:
        return head, member
    for h in range(len(heads)):
        a, b = _away(mean, heads[h], work), _away(other, heads[h], work)
        at = first[h] + np.searchsorted(chain[h, first[h] : last[h]], 0.5 * (a + b))
        for c in range(at - 1, at + 1):
            between = first[h] <= c < last[h] and min(a, b) < chain[h, c] < max(a, b)
            if between and abs(a - b) > widest:
                widest, head, member = abs(a - b), h, c
    return head, member


@njit(cache=True, parallel=True, nogil=True)
def next_questions(
    objects: Ints,
    means: Floats,
    covariances: Floats,
    precisions: Floats,
    targets: Floats,
    first: Ints,
    last: Ints,
    anchors: Floats,
    mirrors: Floats,
    heads: Floats,
    chain: Floats,
    centre: Floats,
    prior: Floats,
    sweeps: int,
    anew: bool,
    enough: float,
) -> tuple[Ints, Ints, Floats]:
    """Bring the beliefs about some objects up to date and choose the next questions for each.

    Parameters
    ----------
    objects
        Rows of the arrays that follow, each once.
    means, covariances, precisions, targets
        ``(n, d)``, ``(n, d, d)``, ``(n, k)``, ``(n, k)``: positions, their uncertainty, and the
        sites of the k heads; changed in place.
    first, last
        ``(n, k)``: how many members of the chain are known to be nearer to the head than the
        object, and how many might be.
    anchors
        ``(a, d)`` positions from which a search may begin anew.
    mirrors
        ``(d + 1, d)``: the principal axes of the heads, the weakest first, then their mean.
    heads, chain
        ``(k, d)`` positions, and ``(k, m)`` distances of the chain's members, rising.
    centre, prior
        Mean ``(d,)`` and precision ``(d, d)`` of a position before anything is asked.
    sweeps
        How often all sites are replaced.
    anew
        Whether to look elsewhere for every object that is outside its shells; otherwise only for
        those whose best question tells no more than `enough` bits.

    Returns
    -------
    head, member, information
        ``(n, 2)``, for each of `objects` the best question and the best from another head: the
        head (−1 where nothing is left to ask), the place in its chain, and the entropy of the
        answer in bits.
    """
    n, k = len(objects), len(heads)
    m = chain.shape[1]
    head = np.empty((n, 2), dtype=np.int64)
    member = np.zeros((n, 2), dtype=np.int64)
    information = np.empty((n, 2))
    for i in prange(n):
        x = objects[i]
        low, high = np.empty(k), np.empty(k)
        for h in range(k):
            low[h] = chain[h, first[x, h] - 1] if first[x, h] > 0 else 0.0
            high[h] = chain[h, last[x, h]] if last[x, h] < m else _BEYOND * chain[h, m - 1]
        belief = (means[x], covariances[x], heads, centre, prior, precisions[x], targets[x])
        outside = _settle(*belief, low, high, sweeps)
        choice = (first[x], last[x], low, high, np.empty(len(centre)))
        best = (head[i], member[i], information[i])
        _best_questions(means[x], covariances[x], heads, chain, *choice, *best)
        if (anew or information[i, 0] <= enough) and outside > 0.0:
            smallest = high[0] - low[0]
            for h in range(k):
                smallest = min(smallest, high[h] - low[h])
            tolerated = _TOLERATED * smallest * smallest
            if outside > tolerated:
                _begin_elsewhere(*belief, low, high, anchors, mirrors, outside, tolerated)
                _best_questions(means[x], covariances[x], heads, chain, *choice, *best)
        if information[i, 0] <= enough:
            h, c = _doubt(means[x], heads, chain, *choice, outside)
            if h >= 0:
                head[i, 0], member[i, 0], information[i, 0] = h, c, 1.0
    return head, member, information
