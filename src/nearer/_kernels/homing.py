r"""Where an object is among others that stay, from answers that may be wrong.

The model is that of `beliefs`.

*Roughly.* The object is somewhere around one of some *places*, the anchors and points beyond them.
Each place stands for its surroundings, which flatten the curve there as any variance does, and has
a probability. While they are spread over the map, their mean and covariance are the belief.

*Finely.* Where the probable places are neighbours, the belief is normal: expectation propagation
(Minka 2001), as in `shells`. Each answer has a *site*, a normal factor in t with its precision and
target. A sweep gives each site the value under which t has the first two moments that the answer
asks for, the other sites being as they are, and takes one Gauss–Newton step to where prior and
sites agree. An answer that would have to widen the belief, as a wrong one may, gets no site.

*Doubt.* Sweeps may settle where most answers have to be taken for wrong, and a belief that is too
narrow asks about nothing else. So where it moves farther than it thought possible, where its
answers are much less likely than they should be, or where the places say otherwise, it begins
anew: from the places, narrowed down by points that are drawn from it and weighted by the answers,
at first by a part of what they say (population Monte Carlo, Cappé et al. 2004).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.beliefs import (
    FROM_NEW,
    LOGISTIC,
    PEAK,
    STEPS,
    Anchors,
    Belief,
    Floats,
    Model,
    Places,
    Prior,
    Scene,
    Singles,
    Told,
    Work,
    copy,
    margin,
)
from nearer._kernels.compiling import helper, kernel
from nearer._kernels.normal import along, below, invert

__all__ = ["learn"]

Room = tuple[Floats, Floats, Floats]  # point (d,), matrix (d, d), log-likelihoods (s,)

_DAMPING = 0.7  # share of a site that a sweep replaces
_ANEW = 4  # times as many sweeps after a new beginning
_NEIGHBOURS = 3.0  # radius of a neighbourhood, in standard deviations of what its middle stands for
_SURE = 0.9  # probability of a neighbourhood that is looked at finely
_FARTHEST = 4.0  # squared standard deviations: a belief that moves farther was too narrow
_SURPRISED = 2.0  # standard deviations: answers that are less likely contradict the belief
_GENERATIONS = 4  # of draws that narrow a belief down
_LEFT = 0.02  # share of its variance that each of them leaves at least


# expectation propagation


@helper
def _site(mean: float, variance: float, noise: float, lapse: float) -> tuple[float, float]:
    """Precision of the site of the answer "yes", and its precision times its target."""
    k = 1.0 / math.sqrt(LOGISTIC + noise + variance)
    z = mean * k
    chance = lapse + (1.0 - 2.0 * lapse) * below(z)
    if chance < 1e-12:  # where the curve is all tail, it falls like a parabola
        first, second = -z * k, k * k
    else:
        first = (1.0 - 2.0 * lapse) * PEAK * math.exp(-0.5 * z * z) * k / chance
        second = first * (first + z * k)
    if second <= 1e-12 / variance:
        return 0.0, 0.0
    precision = second / max(1.0 - variance * second, 1e-3)
    return precision, precision * (mean + first / second)


@helper
def _sweep(belief: Belief, anchors: Anchors, told: Told, n: int, model: Model, work: Work) -> None:
    """Give every site the value that its answer asks for, the others being as they are."""
    (mean, covariance), (asked, said, site) = belief, told
    for q in range(n):
        if asked[q, 2] < 0:
            continue
        t, noise = margin(mean, anchors, asked[q], model, work)
        variance = along(covariance, work[0])
        others = 1.0 / variance - site[q, 0]
        if others <= 1e-3 / variance:
            continue
        at, spread, yes = (t / variance - site[q, 0] * site[q, 1]) / others, 1.0 / others, said[q]
        precision = weight = 0.0
        if yes > 0.0:
            p, pt = _site(at, spread, noise, model[1])
            precision, weight = yes * p, yes * pt
        if yes < 1.0:
            p, pt = _site(-at, spread, noise, model[1])
            precision, weight = precision + (1.0 - yes) * p, weight - (1.0 - yes) * pt
        blend = (1.0 - _DAMPING) * site[q, 0] + _DAMPING * precision
        if blend > 0.0:
            old = (1.0 - _DAMPING) * site[q, 0] * site[q, 1]
            site[q, 1] = (old + _DAMPING * weight) / blend
        site[q, 0] = blend


@helper
def _solve(
    belief: Belief, anchors: Anchors, told: Told, n: int, model: Model, prior: Prior, work: Work
) -> None:
    """One Gauss–Newton step to the position that the prior and the sites agree on."""
    (mean, covariance), (asked, _, site), (centre, sure) = belief, told, prior
    d, gradient, step = len(mean), work[0], work[3][0]
    for i in range(d):
        step[i] = 0.0
        for j in range(d):
            covariance[i, j] = sure[i, j]
            step[i] += sure[i, j] * (centre[j] - mean[j])
    for q in range(n):
        if site[q, 0] > 0.0:
            t, _ = margin(mean, anchors, asked[q], model, work)
            for i in range(d):
                weight = site[q, 0] * gradient[i]
                step[i] += weight * (site[q, 1] - t)
                for j in range(d):
                    covariance[i, j] += weight * gradient[j]
    invert(covariance)
    for i in range(d):
        for j in range(d):
            mean[i] += covariance[i, j] * step[j]


@helper
def _settle(belief: Belief, scene: Scene, told: Told, n: int, sweeps: int, work: Work) -> None:
    """Sweep over the sites."""
    anchors, _, model, prior, _ = scene
    for _ in range(sweeps):
        _sweep(belief, anchors, told, n, model, work)
        _solve(belief, anchors, told, n, model, prior, work)


# places


@helper
def _weigh(told: Told, first: int, last: int, places: Places, model: Model, logs: Singles) -> None:
    """Take some answers into the log-likelihoods of being around each place."""
    (_, reach, around, table), (asked, said, _) = places, told
    middle = len(table) // 2
    for q in range(first, last):
        i, j, way, yes = asked[q, 0], asked[q, 1], asked[q, 2], said[q]
        if way < 0:
            continue
        for p in range(len(reach)):
            # the anchors come first among the places
            t = (reach[p, j] if way == FROM_NEW else reach[i, j]) - reach[p, i]
            z = model[0] * t / math.sqrt(LOGISTIC + model[0] * model[0] * around[p])
            step = min(max(int(z * STEPS), -middle), middle)
            logs[p] += yes * table[middle + step] + (1.0 - yes) * table[middle - step]


@helper
def _likeliest(logs: Singles) -> int:
    """The place around which the object most probably is."""
    at = 0
    for p in range(len(logs)):
        if logs[p] > logs[at]:
            at = p
    return at


@helper
def _is_near(x: Floats, logs: Singles, top: int, places: Places) -> bool:
    """Whether the object is probably in the neighbourhood of a point."""
    X, _, around, _ = places
    near = total = 0.0
    for p in range(len(X)):
        weight, squared = math.exp(logs[p] - logs[top]), 0.0
        for k in range(len(x)):
            squared += (x[k] - X[p, k]) * (x[k] - X[p, k])
        total += weight
        if squared <= _NEIGHBOURS * _NEIGHBOURS * around[top]:
            near += weight
    return near >= _SURE * total


@helper
def _roughly(belief: Belief, logs: Singles, top: int, places: Places) -> None:
    """Mean and covariance over the places, each with its surroundings."""
    (mean, covariance), (X, _, around, _), total = belief, places, 0.0
    d = len(mean)
    for i in range(d):
        mean[i] = 0.0
        for j in range(d):
            covariance[i, j] = 0.0
    for p in range(len(X)):
        weight = math.exp(logs[p] - logs[top])
        total += weight
        for i in range(d):
            mean[i] += weight * X[p, i]
            covariance[i, i] += weight * around[p]
            for j in range(d):
                covariance[i, j] += weight * X[p, i] * X[p, j]
    for i in range(d):
        mean[i] /= total
    for i in range(d):
        for j in range(d):
            covariance[i, j] = covariance[i, j] / total - mean[i] * mean[j]


# doubt


@helper
def _likelihood(x: Floats, scene: Scene, told: Told, n: int, work: Work) -> tuple[float, float]:
    """Log-likelihood of the answers at a point, and how much less it is than is expected there.

    The latter is in standard deviations.
    """
    (anchors, (_, _, _, table), model, _, _), (asked, said, _) = scene, told
    total, expected, variance, middle = 0.0, 0.0, 1e-300, len(table) // 2
    for q in range(n):
        if asked[q, 2] < 0:
            continue
        t, noise = margin(x, anchors, asked[q], model, work)
        step = min(max(int(t / math.sqrt(LOGISTIC + noise) * STEPS), -middle), middle)
        yes, no = table[middle + step], table[middle - step]
        total += said[q] * yes + (1.0 - said[q]) * no
        chance = math.exp(yes)
        expected += chance * yes + (1.0 - chance) * no
        variance += chance * (1.0 - chance) * (yes - no) * (yes - no)
    return total, (expected - total) / math.sqrt(variance)


@helper
def _root(A: Floats) -> None:
    """Replace a positive definite matrix by its lower triangular root (Cholesky)."""
    d = len(A)
    for j in range(d):
        for i in range(j, d):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = math.sqrt(max(total, 1e-300)) if i == j else total / A[j, j]


@helper
def _point(belief: Belief, root: Floats, draw: Floats, point: Floats) -> None:
    """The point that a draw of standard normal variables stands for."""
    for i in range(len(point)):
        point[i] = belief[0][i]
        for j in range(i + 1):
            point[i] += root[i, j] * draw[j]


@helper
def _moments(draws: Floats, logs: Floats, power: float, work: Work) -> None:
    """Mean and covariance of draws by their likelihoods, into the first and the last of `work`."""
    (mean, _, _, covariance), d, best, total = work, draws.shape[1], -math.inf, 0.0
    for s in range(len(draws)):
        best = max(best, logs[s])
    for i in range(d):
        mean[i] = 0.0
        for j in range(d):
            covariance[i, j] = 0.0
    for s in range(len(draws)):
        weight = math.exp((logs[s] - best) * power)
        total += weight
        for i in range(d):
            mean[i] += weight * draws[s, i]
            for j in range(d):
                covariance[i, j] += weight * draws[s, i] * draws[s, j]
    for i in range(d):
        mean[i] /= total
    for i in range(d):
        for j in range(d):
            covariance[i, j] = covariance[i, j] / total - mean[i] * mean[j]
        covariance[i, i] += _LEFT


@helper
def _narrow_down(belief: Belief, scene: Scene, told: Told, n: int, work: Work, room: Room) -> None:
    """Draw from the belief, weigh by the answers, and take mean and covariance; several times."""
    (mean, covariance), (point, root, logs), draws = belief, room, scene[4]
    d = len(mean)
    for generation in range(1, _GENERATIONS + 1):
        for i in range(d):
            for j in range(d):
                root[i, j] = covariance[i, j]
        _root(root)
        for s in range(len(draws)):
            _point(belief, root, draws[s], point)
            logs[s] = _likelihood(point, scene, told, n, work)[0]
        _moments(draws, logs, generation / _GENERATIONS, work)
        _point(belief, root, work[0], point)
        for i in range(d):
            mean[i] = point[i]
            for j in range(d):
                covariance[i, j] = 0.0
                for k in range(i + 1):
                    for m in range(j + 1):
                        covariance[i, j] += root[i, k] * work[3][k, m] * root[j, m]


@helper
def _still_holds(
    belief: Belief, before: Belief, scene: Scene, told: Told, n: int, work: Work
) -> bool:
    """Whether a belief moved no farther than it thought possible, to where answers are likely."""
    mean, precision = before
    invert(precision)
    for i in range(len(mean)):
        mean[i] -= belief[0][i]
    moved = along(precision, mean)
    return moved <= _FARTHEST and _likelihood(belief[0], scene, told, n, work)[1] < _SURPRISED


@kernel
def learn(
    beliefs: Belief,
    fine: NDArray[np.bool_],
    logs: Singles,
    told: Told,
    first: int,
    scene: Scene,
    sweeps: int,
) -> None:
    """Take the answers from `first` on into the beliefs about objects.

    `fine` says which of them are looked at finely, `logs` holds the log-likelihoods of the places.
    """
    anchors, places, model, _, draws = scene
    d, n = anchors[0].shape[1], told[0].shape[1]
    before = (np.empty(d), np.empty((d, d)))
    work = (np.empty(d), np.empty(d), np.empty(d), np.empty((d, d)))
    room = (np.empty(d), np.empty((d, d)), np.empty(len(draws)))
    for x in range(len(fine)):
        belief, mine = (beliefs[0][x], beliefs[1][x]), (told[0][x], told[1][x], told[2][x])
        _weigh(mine, first, n, places, model, logs[x])
        top = _likeliest(logs[x])
        if fine[x]:
            copy(belief, before)
            _settle(belief, scene, mine, n, sweeps, work)
            holds = _still_holds(belief, before, scene, mine, n, work)
            fine[x] = holds and _is_near(belief[0], logs[x], top, places)
        if not fine[x]:
            _roughly(belief, logs[x], top, places)
            fine[x] = _is_near(places[0][top], logs[x], top, places)
            if fine[x]:
                for q in range(n):
                    mine[2][q, 0] = mine[2][q, 1] = 0.0
                _narrow_down(belief, scene, mine, n, work, room)
                _settle(belief, scene, mine, n, _ANEW * sweeps, work)
