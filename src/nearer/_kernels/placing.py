"""The position of one object among fixed others, and the next questions about it.

docs/placing.md has the model: expectation propagation, restarts, the value of questions, and when
an object is placed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.comparisons import counted
from nearer._kernels.compiling import helper, kernel

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int16]
Curve = tuple[float, float]  # sharpness and tail
Normal = tuple[Floats, Floats]  # mean (d,) and covariance (d, d); of q objects with one more axis
# For each answer: two anchors and whose distances it compares (3,), −1: none; the share of yes; its
# site's precision and precision times target (2,). Of q objects: one more axis.
Answered = tuple[Shorts, Singles, Singles]
Work = tuple[Floats, Floats, Floats]  # two directions (d,), a system of equations (d + 1, d)

ANCHOR_HEAD, OWN_HEAD = range(2)  # whose distances a question compares: an anchor's or the object's
# States of an object: answers contradict its posterior; they agree; it is also narrow and unique.
CONTRADICTED, OPEN, PLACED = range(3)
LOG, PULL, EXPECTED, VARIABILITY, WORTH = range(5)  # rows of the tables, see `Scene`
STEPS = 64  # a unit of z in the tables
LOGISTIC = 8.0 / math.pi  # the variance at which Φ is closest to the logistic curve

# `python -m benchmarks scale` shows their effects.
_SURPRISE = 2.0  # standard deviations within which answers or positions still agree: 95 %
_ELSEWHERE = 5e-3  # probability elsewhere below which an object counts as placed
_FRESH = 4  # sweeps after a restart
# The fractional parts of its multiples are spread evenly, however many there are (Weyl 1916).
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Scene(NamedTuple):
    """The arrays that describe m anchors in d dimensions."""

    anchors: Floats  # (m, d + 1) their positions, and the variance of each of their coordinates
    order: Shorts  # (m, m − 1) the other anchors by distance from each
    distances: Floats  # (m, m − 1) those distances
    reach: Floats  # (m, m) f of those distances
    around: Floats  # (m,) squared size of the surroundings of each
    slopes: Floats  # (m,) z for each unit of a margin: the surroundings flatten the curve
    # For z in steps, 0 in the middle: log-probability of "yes", its derivative, the log-probability
    # that an answer is expected to have, its variance, and (1 − 2ε)² φ(z)² / (Z(1 − Z))
    tables: Floats
    curve: Curve
    centre: Floats  # (d,) mean of the prior
    precision: Floats  # (d, d) precision of the prior
    volume: float  # logarithm of the precision's determinant


# small matrices


@helper
def _invert(A: Floats, d: int) -> float:
    """Invert d rows, positive definite, in place; the logarithm of the inverse's determinant."""
    log = 0.0
    for i in range(d):  # Gauss–Jordan needs no pivoting here
        log -= math.log(A[i, i])
        pivot, A[i, i] = 1.0 / A[i, i], 1.0
        for c in range(d):
            A[i, c] *= pivot
        for r in range(d):
            if r != i:
                factor, A[r, i] = A[r, i], 0.0
                for c in range(d):
                    A[r, c] -= factor * A[i, c]
    return log


@helper
def _along(covariance: Floats, direction: Floats, towards: Floats) -> float:
    """Variance of a position along a direction g; `towards` becomes Cg."""
    total, d = 1e-300, len(direction)
    for i in range(d):
        towards[i] = 0.0
        for j in range(d):
            towards[i] += covariance[i, j] * direction[j]
        total += direction[i] * towards[i]
    return total


@helper
def _narrow(covariance: Floats, towards: Floats, factor: float) -> None:
    """Take variance along a direction g away: C − factor · Cg(Cg)ᵀ."""
    for i in range(len(towards)):
        for j in range(len(towards)):
            covariance[i, j] -= factor * towards[i] * towards[j]


# the posterior


@helper
def _margin(
    x: Floats, anchors: Floats, curve: Curve, asked: Shorts, q: int, gradient: Floats
) -> tuple[float, float]:
    """The margin of a question and its variance due to the anchors; its gradient in x."""
    d, (sharpness, tail) = len(x), curve
    i, j, own = asked[q, 0], asked[q, 1], asked[q, 2] == OWN_HEAD
    to_i = to_j = 0.0
    for k in range(d):
        u, w = x[k] - anchors[i, k], (x[k] if own else anchors[i, k]) - anchors[j, k]
        to_i += u * u
        to_j += w * w
    near, by_near = counted(to_i, tail)
    far, by_far = counted(to_j, tail)
    by_i = by_j = 0.0
    for k in range(d):
        u = sharpness * by_near * (x[k] - anchors[i, k])
        w = sharpness * by_far * ((x[k] if own else anchors[i, k]) - anchors[j, k])
        gradient[k] = (w if own else 0.0) - u
        in_i = u if own else w + u
        by_i += in_i * in_i
        by_j += w * w
    return sharpness * (far - near), by_i * anchors[i, d] + by_j * anchors[j, d]


@helper
def _step(z: float, middle: int) -> int:
    """The place of z in a table, from its middle."""
    return int(min(max(z * STEPS, -middle), middle))


@helper
def _site(mean: float, variance: float, noise: float, tables: Floats) -> tuple[float, float]:
    """Precision of the site of the answer "yes", and its precision times its target."""
    k, middle = 1.0 / math.sqrt(LOGISTIC + noise + variance), tables.shape[1] // 2
    z = mean * k
    step = min(max(math.floor(z * STEPS), -middle), middle - 1)
    at = middle + int(step)
    # beyond the table, in the tail or in lapses, the derivative is linear
    low, high = tables[PULL, at], tables[PULL, at + 1]
    first = k * (low + (z * STEPS - step) * (high - low))
    second = first * (first + z * k)
    if second <= 0.0:  # the answer would widen the posterior, as wrong answers may
        return 0.0, 0.0
    share = 1.0 / max(1.0 - variance * second, (LOGISTIC + noise) * k * k)  # the exact curve's
    return second * share, (second * mean + first) * share


@helper
def _renew(
    site: Singles, q: int, said: float, t: float, variance: float, noise: float, tables: Floats
) -> None:
    """Update the site of answer q so that t has its first two moments given the answer.

    t and its variance are those under the present posterior, which includes the old site.
    """
    left = 1.0 - site[q, 0] * variance
    if left <= 0.0:
        return
    mean, spread = (t - site[q, 1] * variance) / left, variance / left
    precision = weight = 0.0
    if said > 0.0:
        p, pt = _site(mean, spread, noise, tables)
        precision, weight = said * p, said * pt
    if said < 1.0:
        p, pt = _site(-mean, spread, noise, tables)
        precision, weight = precision + (1.0 - said) * p, weight - (1.0 - said) * pt
    site[q, 0], site[q, 1] = precision, weight


@helper
def _take_in(
    normal: Normal, scene: Scene, answered: Answered, first: int, n: int, work: Work
) -> None:
    """Narrow a posterior by answers, one after the other, that have no sites yet."""
    (mean, covariance), (asked, said, site), (gradient, towards, _) = normal, answered, work
    anchors, curve, tables = scene.anchors, scene.curve, scene.tables
    for q in range(first, n):
        site[q, 0] = site[q, 1] = 0.0
        if asked[q, 2] >= 0:
            t, noise = _margin(mean, anchors, curve, asked, q, gradient)
            variance = _along(covariance, gradient, towards)
            _renew(site, q, said[q], t, variance, noise, tables)
            share = 1.0 / (1.0 + site[q, 0] * variance)
            for i in range(len(mean)):
                mean[i] += share * (site[q, 1] - site[q, 0] * t) * towards[i]
            _narrow(covariance, towards, share * site[q, 0])


@helper
def _sweep(
    normal: Normal, scene: Scene, answered: Answered, n: int, work: Work
) -> tuple[float, float]:
    """Update every site, then take one Gauss–Newton step to the mode of prior and sites.

    Returns the logarithm of the probability of all answers and of being in this region, and by how
    many standard deviations the answers are less likely at the mean than they are expected to be.
    """
    (mean, covariance), (asked, said, site), (gradient, towards, room) = normal, answered, work
    anchors, curve, tables, prior = scene.anchors, scene.curve, scene.tables, scene.precision
    centre, d, middle = scene.centre, len(mean), tables.shape[1] // 2
    evidence, at_mean, expected, variability = 0.5 * scene.volume, 0.0, 0.0, 1e-300
    for i in range(d):
        room[d, i] = 0.0
        for j in range(d):
            room[i, j] = prior[i, j]
            room[d, i] += prior[i, j] * (centre[j] - mean[j])
        evidence += 0.5 * room[d, i] * (mean[i] - centre[i])
    for q in range(n):
        if asked[q, 2] < 0:
            continue
        t, noise = _margin(mean, anchors, curve, asked, q, gradient)
        step = _step(t / math.sqrt(LOGISTIC + noise), middle)
        at_mean += said[q] * tables[LOG, middle + step]
        at_mean += (1.0 - said[q]) * tables[LOG, middle - step]
        expected += tables[EXPECTED, middle + step]
        variability += tables[VARIABILITY, middle + step]
        _renew(site, q, said[q], t, _along(covariance, gradient, towards), noise, tables)
        for i in range(d):
            room[d, i] += gradient[i] * (site[q, 1] - site[q, 0] * t)
            for j in range(d):
                room[i, j] += site[q, 0] * gradient[i] * gradient[j]
    evidence += at_mean + 0.5 * _invert(room, d)
    for i in range(d):
        for j in range(d):
            covariance[i, j] = room[i, j]
            mean[i] += room[i, j] * room[d, j]
    return evidence, (expected - at_mean) / math.sqrt(variability)


# other places


@helper
def _log_probability(p: int, scene: Scene, asked: Shorts, q: int, said: float) -> float:
    """Logarithm of the probability of an answer in the surroundings of an anchor."""
    reach, i, j = scene.reach, asked[q, 0], asked[q, 1]
    t = reach[p if asked[q, 2] == OWN_HEAD else i, j] - reach[p, i]
    middle = scene.tables.shape[1] // 2
    step = _step(t * scene.slopes[p], middle)
    yes: float = scene.tables[LOG, middle + step]
    no: float = scene.tables[LOG, middle - step]
    return said * yes + (1.0 - said) * no


@helper
def _elsewhere(
    x: Floats, variance: float, floor: float, scene: Scene, answered: Answered, n: int
) -> float:
    """The probability of all anchors that are not around x, divided by that of the floor."""
    (asked, said, _), anchors, around, mass = answered, scene.anchors, scene.around, 0.0
    least = floor + math.log(_ELSEWHERE / len(anchors))  # less is negligible, also in sum
    for p in range(len(anchors)):
        away = total = 0.0
        for k in range(len(x)):
            away += (x[k] - anchors[p, k]) * (x[k] - anchors[p, k])
        if away > _SURPRISE * _SURPRISE * (around[p] + variance):
            for q in range(n):
                if asked[q, 2] >= 0:
                    total += _log_probability(p, scene, asked, q, said[q])
                    if total < least:  # further answers only decrease it
                        break
            else:
                mass += math.exp(min(total - floor, 1.0))
    return mass


@helper
def _restart(normal: Normal, scene: Scene, answered: Answered, n: int) -> None:
    """Go to the surroundings of the most probable anchor."""
    (mean, covariance), (asked, said, _), d = normal, answered, len(normal[0])
    at, best = 0, -math.inf
    for p in range(len(scene.anchors)):
        total = 0.0
        for q in range(n):
            if asked[q, 2] >= 0:
                total += _log_probability(p, scene, asked, q, said[q])
                if total < best:
                    break
        if total > best:
            at, best = p, total
    # n answers of c nats each divide the space into at most exp(cn) regions. The number is not
    # known, so restarts begin in turn with more or less of the prior's variance.
    nats = n * (math.log(2.0) + scene.tables[EXPECTED, 0])
    share = math.exp(-nats / d * (n * _GOLDEN % 1.0))
    for i in range(d):
        mean[i] = scene.anchors[at, i]
        for j in range(d):
            covariance[i, j] = scene.precision[i, j] / share
    _invert(covariance, d)
    for i in range(d):
        covariance[i, i] += scene.around[at]


@helper
def _judge(
    normal: Normal, scene: Scene, answered: Answered, n: int, work: Work, certain: float
) -> int:
    """Sweep twice, since the first sweep moves the mean far; return the state of the object."""
    _sweep(normal, scene, answered, n, work)
    evidence, surprise = _sweep(normal, scene, answered, n, work)
    if surprise > _SURPRISE:
        return CONTRADICTED
    variance, d = 0.0, len(normal[0])
    for i in range(d):
        variance += normal[1][i, i]
    if variance > d * certain:
        return OPEN
    # the anchors are a sample of the prior, with equal shares
    floor = evidence + math.log(len(scene.anchors))
    mass = _elsewhere(normal[0], variance, floor, scene, answered, n)
    if mass > 1.0:
        return CONTRADICTED
    return OPEN if mass > _ELSEWHERE else PLACED


@kernel
def learn(
    normals: Normal, states: Shorts, answered: Answered, first: int, scene: Scene, certain: float
) -> None:
    """Bring the posteriors of objects up to date with their answers, new ones from `first` on.

    `certain` is the variance of a coordinate at which a posterior is narrow.
    """
    d, n = len(scene.centre), answered[0].shape[1]
    work = (np.empty(d), np.empty(d), np.empty((d + 1, d)))
    for x in range(len(states)):
        normal = (normals[0][x], normals[1][x])
        own = (answered[0][x], answered[1][x], answered[2][x])
        if states[x] != CONTRADICTED:
            _take_in(normal, scene, own, first, n, work)
            states[x] = _judge(normal, scene, own, n, work, certain)
        if states[x] == CONTRADICTED:
            _restart(normal, scene, own, n)
            _take_in(normal, scene, own, 0, n, work)
            surprise = 0.0
            for _ in range(_FRESH):
                _, surprise = _sweep(normal, scene, own, n, work)
            states[x] = OPEN if surprise < _SURPRISE else CONTRADICTED


# questions


@helper
def _list_candidates(x: Floats, scene: Scene, seed: int, listed: Shorts, away: Floats) -> None:
    """Fill in near ties, the first half with anchors as heads, the others with the object.

    `away`: (2, half + 1), sorted distances of random anchors, and the anchors' numbers.
    """
    X, order, distances, half = scene.anchors, scene.order, scene.distances, len(listed) // 2
    last = order.shape[1] - 1
    for s in range(half + 1):
        seed = seed * 48271 % 2147483647  # Park and Miller (1988)
        i, r = seed % len(X), 0.0
        for k in range(len(x)):
            r += (x[k] - X[i, k]) * (x[k] - X[i, k])
        r = math.sqrt(r)
        if s < half:
            place = np.searchsorted(distances[i], r) - (seed >> 16) % 2
            listed[s, 0], listed[s, 1] = i, order[i, min(max(place, 0), last)]
            listed[s, 2] = ANCHOR_HEAD
        at = s
        while at > 0 and away[0, at - 1] > r:
            away[0, at], away[1, at] = away[0, at - 1], away[1, at - 1]
            at -= 1
        away[0, at], away[1, at] = r, i
    for s in range(half):
        one, other = int(away[1, s]), int(away[1, s + 1])
        listed[half + s, 0], listed[half + s, 1] = one, other
        listed[half + s, 2] = OWN_HEAD if one != other else -1


@helper
def _is_among(listed: Shorts, c: int, asked: Shorts, n: int) -> bool:
    """Whether a question, or the same with its anchors swapped, is among the first n."""
    i, j, way = listed[c, 0], listed[c, 1], listed[c, 2]
    for q in range(n):
        if asked[q, 2] == way:
            swapped = way == OWN_HEAD and asked[q, 0] == j and asked[q, 1] == i
            if swapped or (asked[q, 0] == i and asked[q, 1] == j):
                return True
    return False


@helper
def _pick(listed: Shorts, rows: Floats, tables: Floats) -> tuple[int, float]:
    """The most valuable candidate (−1: there is none), and its value.

    The last columns of `rows` are the margin of each candidate, and its variance due to the anchors
    and due to the object.
    """
    best, at, middle, d = -1.0, -1, tables.shape[1] // 2, rows.shape[1] - 3
    for c in range(len(listed)):
        if listed[c, 2] >= 0:
            share = 1.0 / (LOGISTIC + rows[c, d + 1] + rows[c, d + 2])
            step = _step(rows[c, d] * math.sqrt(share), middle)
            worth = tables[WORTH, middle + step] * rows[c, d + 2] * share
            if worth > best:
                best, at = worth, c
    return at, best


@kernel
def choose(
    seeds: Ints, normals: Normal, asked: Shorts, first: int, scene: Scene, many: int
) -> None:
    """Write questions for objects into `asked`, from `first` on, each of `many` candidates.

    −1 is written if there are no more.
    """
    d = len(scene.centre)
    listed, rows, away = (
        np.empty((many, 3), np.int16),
        np.empty((many + 1, d + 3)),
        np.empty((2, many)),
    )
    left, towards = np.empty((d, d)), rows[many, :d]
    for x in range(len(seeds)):
        mean, own, new = normals[0][x], asked[x], first
        left[:] = normals[1][x]
        _list_candidates(mean, scene, seeds[x], listed, away)
        for c in range(many):
            gradient = rows[c, :d]
            rows[c, d], rows[c, d + 1] = _margin(
                mean, scene.anchors, scene.curve, listed, c, gradient
            )
            rows[c, d + 2] = _along(left, gradient, towards)
        while new < asked.shape[1]:
            at, worth = _pick(listed, rows, scene.tables)
            if at < 0:
                break
            if not _is_among(listed, at, own, new):
                own[new] = listed[at]
                new += 1
                factor = worth / rows[at, d + 2]
                _along(left, rows[at, :d], towards)
                _narrow(left, towards, factor)
                for c in range(many):
                    along = 0.0
                    for k in range(d):
                        along += rows[c, k] * towards[k]
                    rows[c, d + 2] -= factor * along * along
            listed[at, 2] = -1
        for rest in range(new, asked.shape[1]):
            own[rest, 2] = -1
