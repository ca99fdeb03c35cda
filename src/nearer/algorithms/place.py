"""Place further objects among a core that has positions: docs/placing.md has the theory.

An object that is as certain as the core needs no more questions. The errors of the core count as
noise of the answers; those about one object concern many members of the core, whose errors cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri

from nearer import checks
from nearer._kernels.comparisons import parts, side_by_side
from nearer._kernels.placing import LOGISTIC, OWN_HEAD, PLACED, STEPS, Scene, choose, learn
from nearer.algorithms.choose_questions import GROWTH, most_questions
from nearer.asking import protocol
from nearer.asking.protocol import Strategy, limited
from nearer.checks import Shown, amount
from nearer.embedding import Embedding, as_frame
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.likelihood import Curve, Noise
from nearer.fitting.posterior import QUESTIONS, Posterior
from nearer.fitting.solver import margins
from nearer.metrics import procrustes
from nearer.questions import Floats, Objects, Questions, Said, random_questions

# `python -m benchmarks scale` shows their effects.
_ANCHORS = 300  # members of the core to compare with; more take time and give closer ties
_CANDIDATES = 64  # for each question asked; more take time and save comparisons


@dataclass(frozen=True, repr=False)
class Placed(Shown):
    """The positions of further objects, and their cost.

    Attributes
    ----------
    objects, names
        ``(q,)`` the new objects, and their names.
    positions, covariances
        ``(q, d)``, in the space of the embedding `among`, and how certain they are, ``(q, d, d)``.
    triplets, n_comparisons, n_rounds
        Every answer, as rows ``(head, near, far)``, and the costs.
    never_asked
        The new objects that the budget did not reach; their positions are NaN.
    uncertain
        How many are less certain than the core.
    """

    objects: Objects
    positions: Floats
    triplets: Objects
    n_comparisons: int
    n_rounds: int
    covariances: Floats
    never_asked: Objects
    uncertain: int
    names: Sequence[Any] | None = None
    among: Embedding | None = field(default=None, repr=False)

    def nearest(self, thing: Any, k: int = 5) -> list[Any]:
        """The k objects of the embedding nearest to a new one, by name or number, nearest first."""
        called = self.objects.tolist() if self.names is None else list(self.names)
        where = self.positions[called.index(thing)] if thing in called else np.array([np.nan])
        if self.among is None or np.isnan(where).any():
            rule = f"is none of the {len(called)} objects, or no question was about it"
            raise InvalidInput(f"{thing!r}: {rule}")
        return self.among.nearest(where, k)

    def to_frame(self) -> Any:
        """A pandas frame, one row a new object: ``name``, ``x1`` …, and ``sd1`` …."""
        names = self.objects.tolist() if self.names is None else self.names
        return as_frame(names, self.positions, self.covariances)

    def _summary(self) -> list[str]:
        lost = [f"{len(self.never_asked)} never asked about"] if len(self.never_asked) else []
        return [
            amount(len(self.objects), "new object"),
            amount(self.n_comparisons, "comparison"),
            f"{self.uncertain} less certain than the core",
            *lost,
        ]


@protocol.repeatable
@protocol.accepts_uncertain
def place_objects(
    embedding: Embedding,
    new: ArrayLike,
    *,
    budget: int | None = None,
    keep_triplets: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Placed]:
    """Place unseen objects among those of an embedding.

    Parameters
    ----------
    embedding
        With at least 3 objects.
    new
        The new objects' numbers, none of them below the number of old ones.
    budget
        The largest number of comparisons; None: as many as `nearer.embed` allows for each object.
        An object that is as certain as the old ones costs no more.
    keep_triplets
        False: triplets are not stored, also not during the run.
    random_state
        Seed or generator.

    Returns
    -------
    strategy
        Its result is `Placed`. Out of budget, it holds the best positions so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).normal(size=(65, 2)))
    >>> embedding = nearer.embed(oracle, 60, random_state=0, progress=False)
    >>> nearer.run(place_objects(embedding, np.arange(60, 65)), oracle).positions.shape
    (5, 2)
    """
    checks.one("embedding", embedding, Embedding, "an Embedding")
    checks.flag("keep_triplets", keep_triplets)
    if (n := len(embedding.positions)) < 3:
        raise InvalidInput(f"an embedding of {n} objects: at least 3 are needed to place others")
    objects, rng = checks.objects("new", new), checks.generator(random_state)
    if len(np.unique(objects)) < len(objects):
        raise InvalidInput(f"new={checks.shown(new)}: holds an object twice; name each once")
    if len(objects) and objects.min() < n:
        rule = f"the embedding has objects 0 to {n - 1} already; number new ones from {n} on"
        raise InvalidInput(f"new holds object {objects.min()}: {rule}")
    old = np.flatnonzero(np.isfinite(embedding.positions).all(axis=1))
    core = _posterior_of(embedding, old)
    if budget is None:
        held_out = embedding.held_out
        wrong = 0.0 if held_out is None else 1 - held_out.accuracy
        each = most_questions(len(old), core.positions.shape[1], wrong)
        budget = max(1, int(len(objects) * each))
    placed = yield from place_among(
        core, objects, ids=old, budget=checks.budget(budget), keep_triplets=keep_triplets, rng=rng
    )
    laid_over = procrustes(embedding.positions[old], core.positions)
    return replace(placed, positions=laid_over.move(placed.positions), among=embedding)


@protocol.accepts_uncertain
def place_among(
    core: Posterior,
    new: Objects,
    *,
    ids: Objects | None = None,
    budget: int,
    until_spent: bool = False,
    keep_triplets: bool = True,
    rng: np.random.Generator,
) -> Strategy[Placed]:
    """Place objects among a core whose posterior is known; nothing is checked.

    `ids` are the numbers of the core's objects, None: 0, 1, 2, …. With `until_spent` the budget is
    spent even when every object is done.
    """
    search = _Search(core, np.arange(len(core.positions)) if ids is None else ids, new, rng)
    record = protocol.Record(keep=keep_triplets)
    # No object takes more than twice its share: an outlier may never become certain.
    most = budget if until_spent else max(1, 2 * budget // max(1, len(new)))
    yield from protocol.recorded(limited(_ask(search, most, until_spent), budget), record)
    positions = search.positions.copy()
    positions[~search.asked] = np.nan
    return Placed(
        objects=new,
        positions=positions,
        triplets=record.triplets,
        n_comparisons=record.n_comparisons,
        n_rounds=record.n_rounds,
        covariances=search.covariances,
        never_asked=new[~search.asked],
        uncertain=len(search.open),
    )


def _ask(search: _Search, most: int, until_spent: bool) -> Strategy[None]:
    asked, least = 0, search.positions.shape[1] + 1
    while len(search.open) and asked < most:
        count = max(least, int(GROWTH * asked))
        questions = search.next_questions(count)
        if not len(questions):
            return
        try:
            search.learn(count, (yield questions))
        except BudgetSpent as spent:
            search.learn(count, spent.answers)
            return
        if not until_spent:
            search.close_certain()
        asked += count


class _Search:
    """The objects that are being placed.

    Objects with identical answers so far are a *group* that shares one posterior. Arrays with a
    leading underscore have one row a group; `positions`, `covariances` and `asked` one an object;
    `open` are the rows of unfinished objects, `group` is the group of each of these.
    """

    def __init__(
        self, core: Posterior, ids: Objects, objects: Objects, rng: np.random.Generator
    ) -> None:
        (n, d), q = core.positions.shape, len(objects)
        self.rng, self.objects = rng, objects
        rows = np.sort(rng.permutation(n)[:_ANCHORS])
        self.ids = ids[rows]
        variances = np.trace(core.covariances, axis1=1, axis2=2) / d
        self.certain = float(np.median(variances))
        self.scene = _scene(core, rows, variances)
        self._means = self.scene.centre[None]
        self._covariances: Floats = np.linalg.inv(self.scene.precision)[None].astype(np.float64)
        self._states = np.zeros(1, dtype=np.int16)
        self._asked = np.empty((1, 0, 3), dtype=np.int16)
        self._said = np.empty((1, 0), dtype=np.float32)
        self._sites = np.empty((1, 0, 2), dtype=np.float32)
        self.positions, self.covariances = np.empty((q, d)), np.empty((q, d, d))
        self.asked = np.zeros(q, dtype=np.bool_)
        self.open, self.group = np.arange(q), np.zeros(q, dtype=np.int64)

    def next_questions(self, count: int) -> Questions:
        """The next questions about unfinished objects."""
        room = ((0, 0), (0, count), (0, 0))
        self._asked = np.pad(self._asked, room, constant_values=-1)
        self._said = np.pad(self._said, room[:2])
        self._sites = np.pad(self._sites, room)
        seeds = self.rng.integers(1, (1 << 31) - 1, size=len(self._states))

        def work(_: int, part: slice) -> None:
            normals = (self._means[part], self._covariances[part])
            first = self._asked.shape[1] - count
            choose(seeds[part], normals, self._asked[part], first, self.scene, _CANDIDATES)

        side_by_side(work, len(seeds), parts(len(seeds) * _CANDIDATES))
        asked = self._asked[self.group, -count:]
        # one question about every object first, since a budget may end within a round
        place, row = np.nonzero(asked[:, :, 2].T >= 0)
        first, second, way = asked[row, place].T
        new, one = self.objects[self.open[row]], self.ids[first]
        own = way == OWN_HEAD
        columns = [np.where(own, new, one), np.where(own, one, new), self.ids[second]]
        return np.stack(columns, axis=1)

    def learn(self, count: int, answers: Said) -> None:
        """Learn answers to the last questions, or to the first of them."""
        asked = self._asked[self.group, -count:, 2] >= 0
        shares = np.full(asked.shape, -1, dtype=np.float32)  # −1: not asked
        place, row = (part[: len(answers)] for part in np.nonzero(asked.T))
        shares[row, place] = np.ma.filled(np.ma.asarray(answers).astype(np.float32), 0.5)
        self.asked[self.open[row]] = True
        self._split(shares)

        def work(_: int, part: slice) -> None:
            normals = (self._means[part], self._covariances[part])
            answered = (self._asked[part], self._said[part], self._sites[part])
            first = self._asked.shape[1] - count
            learn(normals, self._states[part], answered, first, self.scene, self.certain)

        side_by_side(work, len(self._states), parts(self._said.size))
        self.positions[self.open] = self._means[self.group]
        self.covariances[self.open] = self._covariances[self.group]

    def _split(self, shares: NDArray[np.float32]) -> None:
        """Split the groups by the answers of the last round, one row for each open object."""
        values, digits = np.unique(shares, return_inverse=True)
        key, most = self.group, len(self._states)
        for column in digits.reshape(shares.shape).T:
            if most > (1 << 62) // len(values):
                key = np.unique(key, return_inverse=True)[1]
                most = len(key)
            key, most = len(values) * key + column, len(values) * most
        old = self.group
        _, one, self.group = np.unique(key, return_index=True, return_inverse=True)
        if len(one) > len(self._states):  # otherwise no group was split
            self._take(old[one])
        self._said[:, -shares.shape[1] :] = shares[one]
        self._asked[:, -shares.shape[1] :, 2][shares[one] < 0] = -1

    def close_certain(self) -> None:
        """Close the objects that are as certain as the core."""
        stay = self._states != PLACED
        keep = stay[self.group]
        self.open, self.group = self.open[keep], (np.cumsum(stay) - 1)[self.group[keep]]
        self._take(stay)

    def _take(self, rows: NDArray[Any]) -> None:
        for name in ("_means", "_covariances", "_states", "_asked", "_said", "_sites"):
            setattr(self, name, getattr(self, name)[rows])


def _scene(core: Posterior, rows: Objects, variances: Floats) -> Scene:
    X = np.ascontiguousarray(core.positions[rows])
    (m, d), (sharpness, lapse) = X.shape, (core.curve.sharpness, core.curve.lapse)
    tail = core.noise.tail
    reach: Floats = cdist(X, X)
    order = np.argsort(reach - np.eye(m), axis=1, kind="stable")[:, 1:]
    distances: Floats = np.take_along_axis(reach, order, axis=1)
    if tail:
        reach = (tail + 1) / 2 * np.log1p(reach**2 / tail)
    around = distances[:, min(d, m - 1) - 1] ** 2  # of the d nearest others
    # The prior of an object: the distribution of the core, with the core's own variance.
    spread = np.cov(core.positions.T).reshape(d, d) + np.mean(variances) * np.eye(d)
    precision = np.linalg.inv(spread)
    return Scene(
        anchors=np.column_stack([X, variances[rows]]),
        order=order.astype(np.int16),
        distances=distances,
        reach=reach,
        around=around,
        slopes=sharpness / np.sqrt(LOGISTIC + sharpness**2 * around),
        tables=_tables(lapse),
        curve=(float(sharpness), float(tail)),
        centre=core.positions.mean(axis=0),
        precision=np.ascontiguousarray(precision),
        volume=float(np.linalg.slogdet(precision)[1]),
    )


def _tables(lapse: float) -> Floats:
    """The tables of `Scene`, up to where Φ is one."""
    end = int(-STEPS * ndtri(np.finfo(np.float64).eps))
    z = np.arange(-end, end + 1) / STEPS
    p = lapse + (1 - 2 * lapse) * ndtr(z)
    slope = (1 - 2 * lapse) * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    yes, no, variance = np.log(p), np.log(p[::-1]), p * p[::-1]
    expected = p * yes + p[::-1] * no
    return np.stack([yes, slope / p, expected, variance * (yes - no) ** 2, slope**2 / variance])


def _posterior_of(embedding: Embedding, rows: Objects) -> Posterior:
    """The posterior of some objects of an embedding, also of an exact one.

    Where positions satisfy m exact answers, about a share nd/m of others is predicted wrongly. That
    share is arctan(e/s)/π with margins of standard deviation s and errors of standard deviation e,
    and a margin has about four times the variance of a position.
    """
    fit: Posterior | None = embedding.details.get("posterior")
    if fit is not None and embedding.details.get("method", "noisy") == "noisy":
        return replace(fit, positions=fit.positions[rows], covariances=fit.covariances[rows])
    X = embedding.positions[rows]
    n, d = X.shape
    held_out, m = embedding.held_out, max(embedding.n_comparisons, n)
    wrong = n * d / m if held_out is None else 1 - held_out.accuracy
    spread = float(np.std(margins(X, random_questions(n, QUESTIONS, np.random.default_rng(0)))))
    # errors are at most as large as margins: e = s
    sd = 0.5 * np.tan(np.pi * np.clip(wrong, 1 / m, 1 / 4)) * spread or 1.0
    covariances: Floats = np.tile(sd**2 * np.eye(d), (n, 1, 1))
    return Posterior(X, covariances, Noise(), Curve(sharpness=n / sd))
