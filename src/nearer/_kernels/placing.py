r"""The position of one object among others that stay, and the next questions about it.

*Model.* The *anchors* have positions, each with a variance. A question compares the object x with
two anchors i and j in one of two ways: is x nearer to i than j is, or is i nearer to x than j is?
With t the margin (`margins`) times the sharpness of the curve, the answer "yes" has probability
ε + (1 − 2ε)Φ(t/√(8/π + w)), where w is the variance of t because of the anchors: the logistic curve
of `nearer.fitting.posterior`, written with the normal distribution function Φ so that averages over
normal margins have a closed form. Exact answers are the case of a great sharpness and ε ≈ 0.

*Posterior.* It is approximated by a normal distribution, found by expectation propagation (Minka
2001). Each answer has a *site*, a normal factor in t with its precision and target. A sweep gives
each site the value under which t has the first two moments that the answer asks for, the other
sites being as they are, and takes one Gauss–Newton step to where prior and sites agree.

*Restart.* Sweeps may settle where most answers have to be taken for wrong, and a posterior that is
too narrow asks about nothing else. So an object that moves farther than its posterior expects, or
whose answers are much less likely than it expects, starts again: from the most probable of some
points, the anchors and others beyond them, each of which stands for its surroundings. Before an
object counts as certain, its answers must be about as likely around it as around those points:
questions that halve what is left of a wrong region are never contradicted by their own answers, but
each of them halves the rest of the space, too.

*Questions.* Candidates are near ties: with a random anchor as head and the anchor that is about as
far from it as x is; and with x as head and two anchors that are about equally far from it. A
question is worth the share of the margin's variance that its answer is expected to take away,

    (1 − 2ε)² φ(z)² · v/(8/π + w + v) / (Z(1 − Z)),    z = t/√(8/π + w + v),

with v the variance of t because of x, and Z the probability of "yes". When one is chosen, the
posterior is narrowed by what is expected of it before the next is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.comparisons import counted
from nearer._kernels.compiling import helper, kernel

__all__ = ["ANCHOR_HEAD", "LOGISTIC", "OWN_HEAD", "STEPS", "Scene", "choose", "learn"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int16]
Normal = tuple[Floats, Floats]  # mean (d,) and covariance (d, d); of q objects with one more axis
# Of each answer the two anchors and which way it was asked (3,), −1: none; the share that says yes;
# precision and target of its site (2,); of q objects with one more axis.
Answered = tuple[Shorts, Singles, Singles]
Work = tuple[Floats, Floats, Floats, Floats]  # gradient (d,), two directions (d,), matrix (d, d)

ANCHOR_HEAD, OWN_HEAD = 0, 1  # whose distances a question compares: an anchor's or the object's
STEPS = 64  # a unit of z in the tables
LOGISTIC = 8.0 / math.pi  # the variance at which Φ is closest to the logistic curve

_PEAK = 1.0 / math.sqrt(2.0 * math.pi)  # of the normal density
_DAMPING = 0.7  # share of a site that a sweep replaces
_SURPRISE = 2.0  # standard deviations by which answers and moves may be other than expected
_CLEAR = 6.0  # standard deviations from a tie, where an answer that agrees teaches nothing
_FRESH = 4  # times as many sweeps after a restart
_EVERY = 4  # so many points one is looked at before an object counts as certain: time


class Scene(NamedTuple):
    """All that the kernels need to know of m anchors in d dimensions."""

    anchors: Floats  # (m, d)
    variances: Floats  # (m,) of each of their coordinates
    order: Shorts  # (m, m − 1) the other anchors by distance from each
    distances: Floats  # (m, m − 1) those distances
    points: Floats  # (p, d) where a search may start: the anchors, and points beyond them
    reach: Floats  # (p, m) what their distances from the anchors count
    slopes: Floats  # (p,) z for each unit of a margin: the surroundings flatten the curve
    rarity: Floats  # (p,) their log-probabilities before any answer
    logs: Floats  # log-probability of "yes", for z in steps
    worth: Floats  # (1 − 2ε)² φ(z)² / (Z(1 − Z)), for z ≥ 0 in steps
    sharpness: float
    lapse: float
    tail: float
    centre: Floats  # (d,) the prior's mean
    precision: Floats  # (d, d) and precision


# small matrices


@helper
def _invert(A: Floats) -> None:
    """Replace a positive definite matrix by its inverse (Gauss–Jordan, no pivoting needed)."""
    d = len(A)
    for i in range(d):
        pivot, A[i, i] = 1.0 / A[i, i], 1.0
        for c in range(d):
            A[i, c] *= pivot
        for r in range(d):
            if r != i:
                factor, A[r, i] = A[r, i], 0.0
                for c in range(d):
                    A[r, c] -= factor * A[i, c]


@helper
def _along(covariance: Floats, direction: Floats) -> float:
    """Variance of a position along a direction."""
    total = 0.0
    for i in range(len(direction)):
        row = 0.0
        for j in range(len(direction)):
            row += direction[j] * covariance[i, j]
        total += direction[i] * row
    return max(total, 1e-300)


# the model


@helper
def _margin(x: Floats, scene: Scene, asked: Shorts, work: Work) -> tuple[float, float]:
    """The margin of a question and its variance because of the anchors; its gradient in x."""
    X, variance, (gradient, u, w, _) = scene.anchors, scene.variances, work
    i, j, own = asked[0], asked[1], asked[2] == OWN_HEAD
    to_i = to_j = 0.0
    for k in range(len(x)):
        u[k], w[k] = x[k] - X[i, k], (x[k] if own else X[i, k]) - X[j, k]
        to_i += u[k] * u[k]
        to_j += w[k] * w[k]
    near, by_near = counted(to_i, scene.tail)
    far, by_far = counted(to_j, scene.tail)
    by_i = by_j = 0.0
    for k in range(len(x)):
        u[k] *= by_near
        w[k] *= by_far
        gradient[k] = scene.sharpness * ((w[k] if own else 0.0) - u[k])
        in_i = u[k] if own else w[k] + u[k]
        by_i += in_i * in_i
        by_j += w[k] * w[k]
    noise = scene.sharpness * scene.sharpness * (by_i * variance[i] + by_j * variance[j])
    return scene.sharpness * (far - near), noise


@helper
def _step(z: float, middle: int) -> int:
    """The place of z in a table, from its middle."""
    return int(min(max(z * STEPS, -middle), middle))


@helper
def _likelihood(
    x: Floats, scene: Scene, answered: Answered, n: int, work: Work
) -> tuple[float, float]:
    """Log-likelihood of the answers at a point, and by how much it is less than expected there.

    The latter is in standard deviations.
    """
    asked, said, _ = answered
    total, expected, variance, middle = 0.0, 0.0, 1e-300, len(scene.logs) // 2
    for q in range(n):
        if asked[q, 2] < 0:
            continue
        t, noise = _margin(x, scene, asked[q], work)
        step = _step(t / math.sqrt(LOGISTIC + noise), middle)
        yes, no = scene.logs[middle + step], scene.logs[middle - step]
        total += said[q] * yes + (1.0 - said[q]) * no
        p = math.exp(yes)
        expected += p * yes + (1.0 - p) * no
        variance += p * (1.0 - p) * (yes - no) * (yes - no)
    return total, (expected - total) / math.sqrt(variance)


# expectation propagation


@helper
def _site(mean: float, variance: float, noise: float, lapse: float) -> tuple[float, float]:
    """Precision of the site of the answer "yes", and its precision times its target."""
    k = 1.0 / math.sqrt(LOGISTIC + noise + variance)
    z = mean * k
    if z > _CLEAR:
        return 0.0, 0.0
    p = lapse + (0.5 - lapse) * math.erfc(-z * math.sqrt(0.5))
    if p < 1e-12:  # where the curve is all tail, its logarithm falls like a parabola
        first, second = -z * k, k * k
    else:
        first = (1.0 - 2.0 * lapse) * _PEAK * math.exp(-0.5 * z * z) * k / p
        second = first * (first + z * k)
    if second <= 1e-12 / variance:  # the answer would widen the posterior, as a wrong one may
        return 0.0, 0.0
    precision = second / max(1.0 - variance * second, 1e-3)
    return precision, precision * (mean + first / second)


@helper
def _sweep(
    normal: Normal, scene: Scene, answered: Answered, n: int, work: Work, room: Floats
) -> None:
    """Renew every site, then take one Gauss–Newton step to where prior and sites agree.

    `room`: ``(d + 1, d)``.
    """
    (mean, covariance), (asked, said, site), gradient = normal, answered, work[0]
    d = len(mean)
    for i in range(d):
        room[d, i] = 0.0
        for j in range(d):
            room[i, j] = scene.precision[i, j]
            room[d, i] += scene.precision[i, j] * (scene.centre[j] - mean[j])
    for q in range(n):
        if asked[q, 2] < 0:
            continue
        t, noise = _margin(mean, scene, asked[q], work)
        variance = _along(covariance, gradient)
        others = 1.0 / variance - site[q, 0]
        if others > 1e-3 / variance:
            at, spread = (t / variance - site[q, 0] * site[q, 1]) / others, 1.0 / others
            precision = weight = 0.0
            if said[q] > 0.0:
                p, pt = _site(at, spread, noise, scene.lapse)
                precision, weight = said[q] * p, said[q] * pt
            if said[q] < 1.0:
                p, pt = _site(-at, spread, noise, scene.lapse)
                precision += (1.0 - said[q]) * p
                weight -= (1.0 - said[q]) * pt
            old = (1.0 - _DAMPING) * site[q, 0]
            blend = old + _DAMPING * precision
            if blend > 0.0:
                site[q, 1] = (old * site[q, 1] + _DAMPING * weight) / blend
            site[q, 0] = blend
        for i in range(d):
            pull = site[q, 0] * gradient[i]
            room[d, i] += pull * (site[q, 1] - t)
            for j in range(d):
                room[i, j] += pull * gradient[j]
    _invert(room[:d])
    for i in range(d):
        for j in range(d):
            covariance[i, j] = room[i, j]
            mean[i] += room[i, j] * room[d, j]


# restarts


@helper
def _restart(normal: Normal, scene: Scene, answered: Answered, n: int, weights: Floats) -> None:
    """The most probable of the points given all answers, with its surroundings."""
    asked, said, sites = answered
    middle = len(scene.logs) // 2
    for p in range(len(scene.points)):
        weights[p] = scene.rarity[p]
    for q in range(n):
        sites[q, 0] = sites[q, 1] = 0.0
        i, j, own = asked[q, 0], asked[q, 1], asked[q, 2] == OWN_HEAD
        if asked[q, 2] < 0:
            continue
        for p in range(len(scene.points)):
            # the anchors come first among the points
            t = scene.reach[p, j] if own else scene.reach[i, j]
            step = _step((t - scene.reach[p, i]) * scene.slopes[p], middle)
            weights[p] += said[q] * scene.logs[middle + step]
            weights[p] += (1.0 - said[q]) * scene.logs[middle - step]
    at = 0
    for p in range(len(scene.points)):
        if weights[p] > weights[at]:
            at = p
    for i in range(len(normal[0])):
        normal[0][i] = scene.points[at, i]
        for j in range(len(normal[0])):
            normal[1][i, j] = 0.0
        normal[1][i, i] = 1.0 / (scene.slopes[at] * scene.slopes[at])


@helper
def _holds(
    normal: Normal, before: Normal, scene: Scene, answered: Answered, n: int, work: Work
) -> bool:
    """Whether a posterior has moved no farther than it expected, to where the answers are likely.

    The squared Mahalanobis distance of the move has d degrees of freedom at most.
    """
    moved, precision = before
    _invert(precision)
    d = len(moved)
    for i in range(d):
        moved[i] -= normal[0][i]
    if _along(precision, moved) > d + _SURPRISE * math.sqrt(2.0 * d):
        return False
    return _likelihood(normal[0], scene, answered, n, work)[1] < _SURPRISE


@helper
def _is_likeliest(x: Floats, scene: Scene, answered: Answered, n: int, work: Work) -> bool:
    """Whether the answers are about as likely around x as around any of some points."""
    asked, said, _ = answered
    middle, least = len(scene.logs) // 2, _SURPRISE
    for q in range(n):
        if asked[q, 2] >= 0:
            t = _margin(x, scene, asked[q], work)[0] / scene.sharpness
            step = _step(t * scene.slopes[0], middle)
            least += said[q] * scene.logs[middle + step]
            least += (1.0 - said[q]) * scene.logs[middle - step]
    for p in range(0, len(scene.points), _EVERY):
        total = 0.0
        for q in range(n):
            if asked[q, 2] >= 0:
                i, j = asked[q, 0], asked[q, 1]
                t = scene.reach[p if asked[q, 2] == OWN_HEAD else i, j] - scene.reach[p, i]
                step = _step(t * scene.slopes[p], middle)
                total += said[q] * scene.logs[middle + step]
                total += (1.0 - said[q]) * scene.logs[middle - step]
                if total < least:  # every further answer makes it less
                    break
        if total > least:
            return False
    return True


@kernel
def learn(
    normals: Normal,
    fine: NDArray[np.bool_],
    answered: Answered,
    scene: Scene,
    sweeps: int,
    certain: float,
) -> None:
    """Bring the posteriors of objects up to date with all their answers.

    `fine` says whose posterior agreed with the answers before these; the others start again.
    `certain` is the variance of a coordinate at which objects are done.
    """
    d, n = scene.anchors.shape[1], answered[0].shape[1]
    work = (np.empty(d), np.empty(d), np.empty(d), np.empty((d, d)))
    weights = np.empty(len(scene.points))
    solved, before = np.empty((d + 1, d)), (np.empty(d), np.empty((d, d)))
    for x in range(len(fine)):
        normal = (normals[0][x], normals[1][x])
        own = (answered[0][x], answered[1][x], answered[2][x])
        if fine[x]:
            for i in range(d):
                before[0][i] = normal[0][i]
                for j in range(d):
                    before[1][i, j] = normal[1][i, j]
            for _ in range(sweeps):
                _sweep(normal, scene, own, n, work, solved)
            fine[x] = _holds(normal, before, scene, own, n, work)
            variance = 0.0
            for i in range(d):
                variance += normal[1][i, i]
            if fine[x] and variance <= d * certain:
                fine[x] = _is_likeliest(normal[0], scene, own, n, work)
        if not fine[x]:
            _restart(normal, scene, own, n, weights)
            for _ in range(_FRESH * sweeps):
                _sweep(normal, scene, own, n, work, solved)
            fine[x] = _likelihood(normal[0], scene, own, n, work)[1] < _SURPRISE


# questions


@helper
def _tie(scene: Scene, i: int, r: float) -> int:
    """The place, in the order of distances from anchor i, of the last that is nearer than r."""
    first, last = 0, scene.distances.shape[1]
    while first < last:
        middle = (first + last) // 2
        if scene.distances[i, middle] < r:
            first = middle + 1
        else:
            last = middle
    return max(first - 1, 0)


@helper
def _near_ties(x: Floats, scene: Scene, state: int, asked: Shorts, away: Floats) -> None:
    """Fill in near ties, the first half with anchors as heads, the others with the object.

    `away`: (2, half + 1), of anchors that were drawn the distances, sorted, and which they are.
    """
    X, half = scene.anchors, len(asked) // 2
    for s in range(half + 1):
        state = state * 48271 % 2147483647  # Park and Miller (1988)
        i, r = state % len(X), 0.0
        for k in range(len(x)):
            r += (x[k] - X[i, k]) * (x[k] - X[i, k])
        r = math.sqrt(r)
        if s < half:
            place = min(_tie(scene, i, r) + (state >> 16) % 2, scene.order.shape[1] - 1)
            asked[s, 0], asked[s, 1], asked[s, 2] = i, scene.order[i, place], ANCHOR_HEAD
        at = s
        while at > 0 and away[0, at - 1] > r:
            away[0, at], away[1, at] = away[0, at - 1], away[1, at - 1]
            at -= 1
        away[0, at], away[1, at] = r, i
    for s in range(half):
        one, other = int(away[1, s]), int(away[1, s + 1])
        asked[half + s, 0], asked[half + s, 1] = one, other
        asked[half + s, 2] = OWN_HEAD if one != other else -1


@helper
def _is_among(question: Shorts, asked: Shorts, n: int) -> bool:
    """Whether a question, or the same with its anchors swapped, is among the first n."""
    i, j, way = question[0], question[1], question[2]
    for q in range(n):
        if asked[q, 2] == way:
            swapped = way == OWN_HEAD and asked[q, 0] == j and asked[q, 1] == i
            if swapped or (asked[q, 0] == i and asked[q, 1] == j):
                return True
    return False


@helper
def _narrow(covariance: Floats, direction: Floats, factor: float, towards: Floats) -> None:
    """Take variance along a direction away: C − factor · Cg(Cg)ᵀ; `towards` becomes Cg."""
    d = len(direction)
    for i in range(d):
        towards[i] = 0.0
        for j in range(d):
            towards[i] += covariance[i, j] * direction[j]
    for i in range(d):
        for j in range(d):
            covariance[i, j] -= factor * towards[i] * towards[j]


@helper
def _pick(listed: Shorts, figures: Floats, scene: Scene) -> tuple[int, float]:
    """The candidate that is worth most, −1: there is none, and what it is worth.

    `figures`: (3, c), of each candidate its squared margin, that margin's variance because of the
    anchors, and because of the object.
    """
    best, at, last = -1.0, -1, len(scene.worth) - 1
    for c in range(len(listed)):
        if listed[c, 2] >= 0:
            share = 1.0 / (LOGISTIC + figures[1, c] + figures[2, c])
            step = int(min(math.sqrt(figures[0, c] * share) * STEPS, last))
            worth = scene.worth[step] * figures[2, c] * share
            if worth > best:
                best, at = worth, c
    return at, best


@kernel
def choose(
    seeds: Ints, normals: Normal, asked: Shorts, first: int, scene: Scene, n_candidates: int
) -> None:
    """Write questions for objects into `asked`, from `first` on; −1 where there are no more."""
    d = scene.anchors.shape[1]
    work = (np.empty(d), np.empty(d), np.empty(d), np.empty((d, d)))
    listed, gradients = np.empty((n_candidates, 3), np.int16), np.empty((n_candidates, d))
    figures, away = np.empty((3, n_candidates)), np.empty((2, n_candidates))
    left, towards = np.empty((d, d)), np.empty(d)
    for x in range(len(seeds)):
        mean, new = normals[0][x], first
        left[:] = normals[1][x]
        _near_ties(mean, scene, seeds[x], listed, away)
        for c in range(n_candidates):
            margin, figures[1, c] = _margin(mean, scene, listed[c], work)
            figures[0, c], figures[2, c] = margin * margin, _along(left, work[0])
            gradients[c] = work[0]
        while new < asked.shape[1]:
            at, worth = _pick(listed, figures, scene)
            if at < 0:
                break
            if not _is_among(listed[at], asked[x], new):
                asked[x, new] = listed[at]
                factor = worth / figures[2, at]
                _narrow(left, gradients[at], factor, towards)
                for c in range(n_candidates):
                    along = 0.0
                    for k in range(d):
                        along += gradients[c, k] * towards[k]
                    figures[2, c] -= factor * along * along
                new += 1
            listed[at, 2] = -1
        for rest in range(new, asked.shape[1]):
            asked[x, rest, 2] = -1
