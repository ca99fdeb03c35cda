"""Objects that are placed one by one among others, from answers that may be wrong.

Each newcomer has a belief of its own (`nearer._kernels.homing`) and questions of its own
(`nearer._kernels.worth`); all are brought up to date side by side. The old objects do not move, and
what is unsure about their positions counts as noise of the answers. Whoever is as sure as they are
is done.

Taking in the answers is most of the work, and what is believed of one newcomer does not depend on
another: where the user asked for several jobs at a time (`nearer.parallel`), large blocks of them
are computed there, with the same results.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from nearer._kernels.beliefs import FROM_NEW, FROM_OLD, STEPS, Scene
from nearer._kernels.compiling import side_by_side
from nearer._kernels.homing import learn
from nearer._kernels.worth import choose
from nearer.fitting.posterior import Posterior
from nearer.parallel import is_parallel, parallel_map
from nearer.questions import Floats, Objects, Questions, Said

__all__ = ["Newcomers"]

# What each number trades; `python -m benchmarks scale` shows what comes of them.
_ANCHORS = 300  # old objects that newcomers are compared with: time and memory against fine ties
_CANDIDATES = 64  # questions that are looked at for each that is asked: time against comparisons
_DRAWS = 64  # from a belief that began too narrow: time against wrong places
_SWEEPS = 2  # of all sites in a round: time against convergence
_SPREAD = 1.5  # variance of newcomers before any answer, in that of the old objects
_BEYOND = 1.75  # how far outside the old objects they may lie, in distances from the centre
_RARE = -1.0  # log-probability of that, against being among them
_SIGMAS = 8  # of the table of chances
_PART = 200  # objects that make a second thread worth waking: some milliseconds
# … that make a block worth sending elsewhere, with as many anchors: their round takes a second
# (210 µs each), and what is known of them is some 40 MB, there and back
_BLOCK = 5000


class Newcomers:
    """Objects being placed; kept up to date while asking.

    Parameters
    ----------
    fit
        The old objects.
    numbers
        ``(q,)`` the numbers of the new ones; the old ones are known by their row in the fit.
    rng
        Source of anchors and of candidates.

    Attributes
    ----------
    positions, covariances
        ``(q, d)`` and ``(q, d, d)``, as far as is known.
    open
        Rows of those who are not done.
    """

    def __init__(self, fit: Posterior, numbers: Objects, rng: np.random.Generator) -> None:
        (n, d), q = fit.positions.shape, len(numbers)
        self._rng, self._numbers = rng, numbers
        self._who = np.sort(rng.permutation(n)[:_ANCHORS])
        variances = np.trace(fit.covariances, axis1=1, axis2=2) / d
        self._sure = float(np.median(variances))
        spread = _SPREAD * np.cov(fit.positions.T).reshape(d, d)
        spread += max(1e-6 * float(np.trace(spread)) / d, 1e-12) * np.eye(d)
        self._scene = _scene(fit, self._who, variances[self._who], spread)
        self._fine = np.zeros(q, dtype=np.bool_)
        self._logs = np.zeros((q, 2 * len(self._who)), dtype=np.float32)
        self._logs[:, len(self._who) :] = _RARE
        self._told = (
            np.empty((q, 0, 3), dtype=np.int32),
            np.empty((q, 0), dtype=np.float32),
            np.empty((q, 0, 2), dtype=np.float32),
        )
        self.open = np.arange(q)
        self._believed = (np.tile(fit.positions.mean(axis=0), (q, 1)), np.tile(spread, (q, 1, 1)))
        self.positions, self.covariances = (part.copy() for part in self._believed)

    def first_questions(self, count: int) -> Questions:
        """Questions about everybody that are good whatever the answers will be."""
        anchors, (q, m) = self._scene[0], (len(self.open), len(self._who))
        head = self._rng.integers(m, size=(q, count))
        # neither among the nearest nor among the farthest: the answer is worth a bit or nearly so
        place = ((0.25 + 0.5 * self._rng.random((q, count))) * (m - 1)).astype(np.int64)
        self._make_room(count)
        way = np.full_like(head, FROM_OLD)
        self._told[0][:, -count:] = np.stack([head, anchors[2][head, place], way], axis=2)
        return self._questions(count)

    def next_questions(self, count: int) -> Questions:
        """The next questions about those who are not done."""
        self._make_room(count)
        seeds = self._rng.integers(1, (1 << 31) - 1, size=len(self.open))
        asked, (means, covariances) = self._told[0], self._believed
        first = asked.shape[1] - count

        def work(_: int, part: slice) -> None:
            beliefs = (means[part], covariances[part])
            choose(seeds[part], beliefs, asked[part], first, self._scene, _CANDIDATES)

        side_by_side(work, len(self.open), 1 + len(self.open) // _PART)
        return self._questions(count)

    def learn(self, count: int, answers: Said) -> None:
        """Take in answers to the questions handed out last, or to the first of them."""
        asked, said, sites = self._told
        first = asked.shape[1] - count
        row, place = np.nonzero(asked[:, first:, 2] >= 0)
        shares = np.ma.filled(np.ma.asarray(answers).astype(np.float32), 0.5)
        answered, left = slice(len(shares)), slice(len(shares), None)
        said[row[answered], first + place[answered]] = shares
        asked[row[left], first + place[left], 2] = -1
        state: tuple[Any, Any, Any, Any, Any] = (*self._believed, self._fine, self._logs, sites)
        how = (first, self._scene)
        size, q = _BLOCK * _ANCHORS // len(self._who), len(self.open)
        if q < 2 * size or not is_parallel():
            _learn(*state, asked, said, *how)
        else:
            ends = np.linspace(0, q, q // size + 1).astype(int).tolist()
            blocks = [slice(*pair) for pair in itertools.pairwise(ends)]
            work = [(*(array[rows] for array in (*state, asked, said)), *how) for rows in blocks]
            for rows, learnt in zip(blocks, parallel_map(_learnt, work), strict=True):
                for array, part in zip(state, learnt, strict=True):
                    array[rows] = part
        self.positions[self.open], self.covariances[self.open] = self._believed

    def dismiss(self) -> None:
        """Let those go who are as sure as the old objects are."""
        means, covariances = self._believed
        variances = np.trace(covariances, axis1=1, axis2=2) / means.shape[1]
        stay = ~self._fine | (variances > self._sure)
        self.open, self._fine, self._logs = self.open[stay], self._fine[stay], self._logs[stay]
        asked, said, sites = self._told
        self._told = asked[stay], said[stay], sites[stay]
        self._believed = means[stay], covariances[stay]

    def _questions(self, count: int) -> Questions:
        asked = self._told[0][:, -count:]
        row, place = np.nonzero(asked[:, :, 2] >= 0)
        first, second, way = asked[row, place].T
        new, one = self._numbers[self.open[row]], self._who[first]
        mine = way == FROM_NEW
        columns = [np.where(mine, new, one), np.where(mine, one, new), self._who[second]]
        return np.stack(columns, axis=1)

    def _make_room(self, count: int) -> None:
        q = len(self.open)
        asked, said, sites = self._told
        self._told = (
            np.concatenate([asked, np.full((q, count, 3), -1, dtype=np.int32)], axis=1),
            np.concatenate([said, np.zeros((q, count), dtype=np.float32)], axis=1),
            np.concatenate([sites, np.zeros((q, count, 2), dtype=np.float32)], axis=1),
        )


def _learn(
    means: Floats,
    covariances: Floats,
    fine: NDArray[np.bool_],
    logs: NDArray[np.float32],
    sites: NDArray[np.float32],
    asked: NDArray[np.int32],
    said: NDArray[np.float32],
    first: int,
    scene: Scene,
) -> None:
    """Bring what is known of some newcomers up to date, the first five of these."""

    def work(_: int, part: slice) -> None:
        told = (asked[part], said[part], sites[part])
        beliefs = (means[part], covariances[part])
        learn(beliefs, fine[part], logs[part], told, first, scene, _SWEEPS)

    side_by_side(work, len(means), 1 + len(means) // _PART)


def _learnt(*given: Any) -> tuple[Any, ...]:
    """The same of a block that has travelled, so that it may not be written to."""
    state = tuple(array.copy() for array in given[:5])
    _learn(*state, *given[5:])
    return state


def _scene(fit: Posterior, who: Objects, variances: Floats, spread: Floats) -> Scene:
    """What the kernels need to know; see `nearer._kernels.beliefs`."""
    X = np.ascontiguousarray(fit.positions[who])
    (m, d), (lapse, tail) = X.shape, (fit.curve.lapse, fit.noise.tail)
    D: Floats = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(D, -1.0)
    order = np.ascontiguousarray(np.argsort(D, axis=1, kind="stable")[:, 1:].astype(np.int32))
    np.fill_diagonal(D, 0.0)
    centre: Floats = X.mean(axis=0)
    points: Floats = np.concatenate([X, centre + _BEYOND * (X - centre)])
    reach: Floats = np.linalg.norm(points[:, None] - X, axis=2)
    if tail:
        reach = (tail + 1) / 2 * np.log1p(reach**2 / tail)
    neighbours = D[np.arange(m), order[:, min(d, m - 1) - 1]]
    around: Floats = np.repeat(float(np.median(neighbours**2)) * np.array([1.0, _BEYOND**2]), m)
    z = np.arange(-_SIGMAS * STEPS, _SIGMAS * STEPS + 1) / STEPS
    table: Floats = np.log(np.maximum(lapse + (1 - 2 * lapse) * ndtr(z), 1e-12))
    uniform = qmc.Sobol(d, seed=0).random(_DRAWS)
    return (
        (X, variances, order, D),
        (points, reach, np.maximum(around, 1e-12), table),
        (fit.curve.sharpness, lapse, tail),
        (fit.positions.mean(axis=0), np.asarray(np.linalg.inv(spread))),
        np.ascontiguousarray(ndtri(np.clip(uniform, 1e-3, 1 - 1e-3))),
    )
