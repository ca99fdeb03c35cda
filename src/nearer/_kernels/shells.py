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
from numpy.typing import NDArray

from nearer._kernels.compiling import helper, kernel
from nearer._kernels.normal import along, below, invert, roughly_below

__all__ = ["next_questions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Few = NDArray[np.int32]
# k heads with chains of m members, in d dimensions; with one more axis for n objects:
# mean (d,), covariance (d, d), which follows from all else, precisions and means (k,) of the sites
Belief = tuple[Floats, Floats, Floats, Floats]
Span = tuple[Few, Few]  # (k,) members of each chain that are nearer; that might be
Best = tuple[Ints, Ints, Floats]  # (2,) head, −1: none; member of its chain; entropy in bits
Shells = tuple[Floats, Floats, Floats]  # heads (k, d); least and greatest distances (k,)
Prior = tuple[Floats, Floats]  # mean (d,) and precision (d, d) before anything is asked
# …, chains (k, m), …, anchors (a, d) to begin anew from, the heads' principal axes and mean
Scene = tuple[Shells, Floats, Prior, Floats, Floats]
Work = tuple[Floats, Floats, Floats, Ints]  # direction (d,), step (d,), axes (d, d), order (k,)
Room = tuple[Belief, Work]

_SMALL = 0.05  # probability below which the table is too rough for moments
_DAMPING = 0.7  # share of a site that a sweep replaces
_TOLERATED = 0.01  # squared distance outside a shell, relative to its width
_ANEW = 8  # times as many sweeps after a new beginning
_BEYOND = 1.25  # how far objects may lie outside the chain, relative to its last member


@helper
def _inside(mean: float, variance: float, low: float, high: float) -> tuple[float, float]:
    """Mean and variance of a normal variable known to lie between low and high."""
    width, s = high - low, math.sqrt(variance)
    a, b = (low - mean) / s, (high - mean) / s
    mass = roughly_below(b) - roughly_below(a)
    if mass < _SMALL:
        mass = below(-a) - below(-b) if a > 0.0 else below(b) - below(a)
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


@helper
def _distance(x: Floats, heads: Floats, h: int) -> float:
    """Distance of x from a head, above 0."""
    r = 0.0
    for j in range(len(x)):
        r += (x[j] - heads[h, j]) * (x[j] - heads[h, j])
    return math.sqrt(r) + 1e-12


@helper
def _away(x: Floats, heads: Floats, h: int, direction: Floats) -> float:
    """Distance of x from a head; `direction` becomes the unit vector from the head to x."""
    r = _distance(x, heads, h)
    per = 1.0 / r
    for j in range(len(x)):
        direction[j] = (x[j] - heads[h, j]) * per
    return r


@helper
def _solve(belief: Belief, shells: Shells, prior: Prior, work: Work) -> None:
    """One Gauss–Newton step to the position that the prior and the sites agree on."""
    mean, covariance, precision, target = belief
    (centre, sure), (direction, step, _, _) = prior, work
    d = len(mean)
    for i in range(d):
        step[i] = 0.0
        for j in range(d):
            covariance[i, j] = sure[i, j]
            step[i] += sure[i, j] * (centre[j] - mean[j])
    for h in range(len(precision)):
        if precision[h] > 0.0:
            error = target[h] - _away(mean, shells[0], h, direction)
            for i in range(d):
                weight = precision[h] * direction[i]
                step[i] += weight * error
                for j in range(d):
                    covariance[i, j] += weight * direction[j]
    invert(covariance)
    for i in range(d):
        for j in range(d):
            mean[i] += covariance[i, j] * step[j]


@helper
def _sweep(belief: Belief, shells: Shells, direction: Floats) -> None:
    """Replace every site by the one its interval asks for, the others being as they are."""
    mean, covariance, precision, target = belief
    heads, low, high = shells
    for h in range(len(heads)):
        r = _away(mean, heads, h, direction)
        variance = along(covariance, direction)
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


@helper
def _violation(x: Floats, shells: Shells, most: float) -> float:
    """How far outside the shells x is: sum of squared distances; no need to know beyond `most`."""
    heads, low, high = shells
    total = 0.0
    for h in range(len(heads)):
        r = _distance(x, heads, h)
        outside = max(low[h] - r, r - high[h], 0.0)
        total += outside * outside
        if total > most:
            break
    return total


@helper
def _settle(belief: Belief, shells: Shells, prior: Prior, sweeps: int, work: Work) -> float:
    """Sweep over the sites; return how far outside the shells the position comes to lie."""
    for sweep in range(sweeps + 1):
        if sweep:
            _sweep(belief, shells, work[0])
        _solve(belief, shells, prior, work)
    return _violation(belief[0], shells, math.inf)


@helper
def _take_off(axes: Floats, i: int, j: int) -> None:
    """Take from row i its part along row j, a unit vector."""
    along = 0.0
    for c in range(axes.shape[1]):
        along += axes[i, c] * axes[j, c]
    for c in range(axes.shape[1]):
        axes[i, c] -= along * axes[j, c]


@helper
def _reflect(x: Floats, shells: Shells, reflected: Floats, work: Work) -> None:
    """Reflect x in the hyperplane through the d heads of thinnest shells, which meet there, too."""
    (heads, low, high), (_, _, axes, order) = shells, work
    d = len(x)
    for h in range(len(heads)):  # by the width of the shells
        i = h
        while i > 0 and high[order[i - 1]] - low[order[i - 1]] > high[h] - low[h]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = h
    for c in range(d):
        axes[0, c] = x[c] - heads[order[0], c]  # what is left of this is normal to the others
    for i in range(1, min(d, len(heads))):  # orthonormal axes of the hyperplane
        for c in range(d):
            axes[i, c] = heads[order[i], c] - heads[order[0], c]
        for j in range(1, i):
            _take_off(axes, i, j)
        length = 0.0
        for c in range(d):
            length += axes[i, c] * axes[i, c]
        for c in range(d):
            axes[i, c] /= math.sqrt(length) + 1e-12
        _take_off(axes, 0, i)
    for c in range(d):
        reflected[c] = x[c] - 2.0 * axes[0, c]


@helper
def _begin_at_anchor(anchors: Floats, shells: Shells, prior: Prior, mean: Floats) -> None:
    """Fill in the anchor that fits the shells best, moved a little since it may be a head."""
    best, at = math.inf, 0
    for a in range(len(anchors)):
        violation = _violation(anchors[a], shells, best)
        if violation < best:
            best, at = violation, a
    for j in range(len(mean)):
        mean[j] = anchors[at, j] + 1e-6 * (prior[0][j] - anchors[at, j])


@helper
def _look_elsewhere(
    belief: Belief, scene: Scene, room: Room, sweeps: int, outside: float, tolerated: float
) -> None:
    """The shells may meet on the other side of the heads: settle there where that fits better.

    Tried are the anchor that fits best and reflections: in the hyperplane through the heads with
    the thinnest shells, and in those through the heads' mean normal to their principal axes.
    """
    (shells, _, prior, anchors, mirrors), (there, work) = scene, room
    (mean, covariance, precision, target), (_, low, high) = belief, shells
    mean2, covariance2, precision2, target2 = there
    d, k = len(mean), len(low)
    for beginning in range(-2, d):
        if beginning == -2:
            _begin_at_anchor(anchors, shells, prior, mean2)
        elif beginning == -1:
            _reflect(mean, shells, mean2, work)
        else:
            shift = 0.0
            for j in range(d):
                shift += (mean[j] - mirrors[d, j]) * mirrors[beginning, j]
            for j in range(d):
                mean2[j] = mean[j] - 2.0 * shift * mirrors[beginning, j]
        for h in range(k):
            width = max(high[h] - low[h], 1e-9 * high[h] + 1e-300)
            precision2[h], target2[h] = 12.0 / (width * width), low[h] + 0.5 * width
        again = _settle(there, shells, prior, sweeps, work)
        if again < outside:
            outside = again
            for i in range(d):
                mean[i] = mean2[i]
                for j in range(d):
                    covariance[i, j] = covariance2[i, j]
            for h in range(k):
                precision[h], target[h] = precision2[h], target2[h]
        if outside <= tolerated:
            return


@helper
def _entropy(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -(p * math.log2(p) + (1.0 - p) * math.log2(1.0 - p))


@helper
def _place(chain: Floats, h: int, first: int, last: int, r: float) -> int:
    """How many members of a head's chain are nearer than r, known to be from first to last."""
    while first < last:
        middle = (first + last) // 2
        if chain[h, middle] < r:
            first = middle + 1
        else:
            last = middle
    return first


@helper
def _best_questions(
    belief: Belief, scene: Scene, span: Span, direction: Floats, best: Best
) -> None:
    """The two questions that tell most, the better first, from different heads; head −1: none."""
    ((heads, low, high), chain, _, _, _), (first, last) = scene, span
    head, member, information = best
    head[0], head[1], information[0], information[1] = -1, -1, 0.0, 0.0
    top, second = -1e300, -1e300
    for h in range(len(heads)):
        if first[h] >= last[h]:
            continue
        r = _away(belief[0], heads, h, direction)
        s = math.sqrt(along(belief[1], direction))
        per = 1.0 / s
        outside = roughly_below((low[h] - r) * per)
        mass = max(roughly_below((high[h] - r) * per) - outside, 1e-12)
        middle = _place(chain, h, first[h], last[h], r)
        uneven, at = math.inf, first[h]
        for c in range(middle - 1, middle + 1):
            candidate = min(max(c, first[h]), last[h] - 1)
            p = (roughly_below((chain[h, candidate] - r) * per) - outside) / mass
            if abs(p - 0.5) < uneven:
                uneven, at = abs(p - 0.5), candidate
        most = _entropy(0.5 + uneven)
        score = most + 0.1 * math.log2(s)
        if score > top:
            head[1], member[1], information[1], second = head[0], member[0], information[0], top
            head[0], member[0], information[0], top = h, at, most, score
        elif score > second:
            head[1], member[1], information[1], second = h, at, most, score


@helper
def _doubt(mean: Floats, scene: Scene, span: Span, room: Room, outside: float, best: Best) -> None:
    """Put first a question whose answer could show that the place is wrong, if there is one."""
    (shells, chain, _, _, _), (first, last), ((other, _, _, _), work) = scene, span, room
    heads, m = shells[0], chain.shape[1]
    head, member, widest = -1, m - 1, 0.0
    for h in range(len(heads)):
        if first[h] < last[h] == m and _distance(mean, heads, h) > chain[h, m - 1]:
            head = h  # believed to be beyond all of the chain
            break
    _reflect(mean, shells, other, work)
    if head < 0 and _violation(other, shells, outside) <= outside:
        for h in range(len(heads)):
            a, b = _distance(mean, heads, h), _distance(other, heads, h)
            at = _place(chain, h, first[h], last[h], 0.5 * (a + b))
            for c in range(at - 1, at + 1):
                between = first[h] <= c < last[h] and min(a, b) < chain[h, c] < max(a, b)
                if between and abs(a - b) > widest:
                    widest, head, member = abs(a - b), h, c
    if head >= 0:
        best[0][0], best[1][0], best[2][0] = head, member, 1.0


@kernel
def next_questions(
    objects: Ints,
    beliefs: Belief,
    spans: Span,
    bests: Best,
    scene: Scene,
    room: Room,
    sweeps: int,
    anew: bool,
    enough: float,
) -> None:
    """Bring the beliefs about some objects up to date and choose the next questions for each.

    `objects` are rows of `beliefs`, changed in place, and of `spans`. `bests` is filled with the
    best question of each and the best from another head. All sites are replaced `sweeps` times.
    `anew` says to look elsewhere for every object that is outside its shells; otherwise that is
    done only for those whose best question tells no more than `enough` bits.
    """
    (shells, chain, prior, _, _), work = scene, room[1]
    (_, low, high), m = shells, chain.shape[1]
    for i in range(len(objects)):
        x, smallest = objects[i], 1e300
        first, last = span = (spans[0][x], spans[1][x])
        belief = (beliefs[0][x], beliefs[1], beliefs[2][x], beliefs[3][x])
        best = (bests[0][i], bests[1][i], bests[2][i])
        for h in range(len(low)):
            low[h] = chain[h, first[h] - 1] if first[h] > 0 else 0.0
            high[h] = chain[h, last[h]] if last[h] < m else _BEYOND * chain[h, m - 1]
            smallest = min(smallest, high[h] - low[h])
        tolerated = _TOLERATED * smallest * smallest
        outside = _settle(belief, shells, prior, sweeps, work)
        for again in range(2):
            _best_questions(belief, scene, span, work[0], best)
            if again or outside <= tolerated or not (anew or best[2][0] <= enough):
                break
            _look_elsewhere(belief, scene, room, _ANEW * sweeps, outside, tolerated)
        if best[2][0] <= enough:
            _doubt(belief[0], scene, span, room, outside, best)
