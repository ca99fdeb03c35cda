r"""Initial positions, and fits that local minima do not stop.

Triplet losses have bad local minima: from a random start in d dimensions an object, or half of
them, gets stuck on the wrong side of others, and no way in d dimensions leads around. In more
dimensions there is one. So a fit *starts in more dimensions, then reduces*: a tiny random cloud in
a few dimensions too many is fitted for a few steps, turned to its principal axes, stripped of its
weakest axis, fitted again, and so on down to d (`fit_from_more_dimensions`). Each of these fits is
also evidence of how many dimensions the answers need, see `nearer.fitting.heldout`.

*Misplaced objects.* What still violates answers is mostly a few objects behind others that they
would have to pass. Such an object violates many of its own answers while nearly all others are
satisfied. Answers from few heads say little about the side of a plane through heads on which an
object lies, so positions with its mirror image are fitted, too (`mirrored`); then all are lifted
into an extra dimension and reduced again. Of 360 fits to exact answers about lines, circles,
spheres and clusters of 40 and 100 objects, 26 were stuck without all this, 20 without mirror
images, 7 with them; `python -m benchmarks starts` counts stuck fits of further data. `relocate`
moves such objects without fits, to the place among all others and mirror images where their own
answers are most likely.

*Exact answers* leave a region of positions at soe loss zero, and the optimiser stops where it
enters. Inside, the most probable positions under a wide prior are taken. Without a prior they would
violate more of the answers not seen: a fifth to a half more where answers are random, 6 % to twice
as many where they are whole rankings (60 to 200 objects, two and three dimensions).

The other starts are for comparison and for users who want them: `random_start`; `ranking_start`,
principal axes of the squared ranks, since the squared distance to a head is linear in the position
but for one term that all heads share.

*The smallest dimension.* In too few dimensions no positions satisfy all answers; in enough, the soe
loss
zero is reached. So fits are reduced and end at the first dimension that violates answers; the one
before is the smallest. With few answers anything can be satisfied, so this counts only with several
answers a coordinate, and only where held-out answers are satisfied, too (`is_exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from nearer import checks
from nearer.fitting.solver import (
    Callback,
    Fit,
    Loss,
    Passes,
    as_loss,
    fit_positions,
    prepare,
    violated,
)
from nearer.questions import Floats

__all__ = [
    "ENOUGH",
    "EXTRA",
    "FEWEST",
    "MANY",
    "NEARLY",
    "ROUGH",
    "fit_from_more_dimensions",
    "fit_onwards",
    "fit_smallest",
    "is_exact",
    "lowest",
    "mirrored",
    "principal_axes",
    "random_start",
    "ranking_start",
    "reduce_dimensions",
    "relocate",
    "satisfies_all",
    "triplet_ranks",
]

# Time against fits that are stuck, by `python -m benchmarks starts`; `sensitivity` halves and
# doubles the first.
EXTRA = 3  # dimensions too many at the start
ROUGH = 1e-6  # gain of a step that ends a fit that another goes on from
_TINY = 0.1  # spread of the random cloud, in units of soe's margin
# From so many answers on the way down takes only some of them, so many a coordinate, and misplaced
# objects are not looked for, since that needs all: time (`python -m benchmarks scale`).
_MANY, ENOUGH = 1_000_000, 10
# Share of violated answers that a few misplaced objects can explain. Where answers are wrong more
# often than that, looking for them takes many times the steps and makes nothing better.
_FEW_VIOLATED = 0.05
_MISPLACED = 0.1  # share of its answers that an object violates which may be misplaced
_PLANES, _SUSPECTS, _IMAGES = 30, 3, 4  # planes tried; objects mirrored, and images of each
_MOST_MOVED = 50  # objects, the most suspect first: time
_EXACT_PRIOR = (
    256.0  # in soe's margins; from 64 to 512 unseen answers are violated alike, to a sixth
)
_CELLS = 1 << 20  # distances held at a time

# Answers a coordinate from which on perfect obedience is no accident: with fewer, errors can be
# obeyed, too, and positions that obey them are worse than those that doubt them.
MANY = 5
# Share of violated answers that exact ones may leave: runs leave .1 to .3 %, and a longer fit may
# satisfy all.
NEARLY = 1e-2

# Of the paper's pipelines: time against dimensions too many; `python -m paper` shows both.
_HELD_OUT = 0.1  # share of the answers
_STEPS = 60  # of the optimiser in each dimension on the way down
_MORE_STEPS = 500  # with all answers
_MOST_STEPS = 2000  # where nearly all of them are obeyed
FEWEST = 3  # a coordinate; fewer do not tell whether a dimension is one too many
_PATIENCE = 2  # dimensions in a row that predict clearly worse, and coming down ends
_CLEARLY = 3.0  # standard errors


class HasPositions(Protocol):
    """Whatever a fit returns."""

    @property
    def positions(self) -> Floats:
        """``(n, d)``."""
        ...


F = TypeVar("F", bound=HasPositions)


def principal_axes(X: Floats, d: int) -> Floats:
    """Centred positions turned to their principal axes, the first d of them.

    Where there are fewer axes than d, the last coordinates are zero.

    Examples
    --------
    >>> import numpy as np
    >>> principal_axes(np.array([[0.0, 1.0], [0.0, 3.0]]), 1).round(6)
    array([[-1.],
           [ 1.]])
    """
    left, strength, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    # of the two signs of a direction, the one that agrees with the input is taken
    side = np.where(right[np.arange(len(right)), np.abs(right).argmax(axis=1)] < 0, -1.0, 1.0)
    axes = (left * (strength * side))[:, :d]
    return np.pad(axes, ((0, 0), (0, d - axes.shape[1])))


def reduce_dimensions(fit: Callable[[Floats], F], start: Floats, least: int) -> Iterator[F]:
    """Fit, strip the weakest axis, fit again: one fit for each dimension from the start's down.

    Parameters
    ----------
    fit
        From positions to start at to a fit in as many dimensions.
    start
        ``(n, d)`` positions.
    least
        The last dimension to fit in.
    """
    X = start
    while True:
        done = fit(X)
        yield done
        d = done.positions.shape[1]
        if d <= least:
            return
        X = principal_axes(done.positions, d - 1)


def random_start(n: int, d: int, rng: np.random.Generator) -> Floats:
    """A tiny random cloud: all objects in one place, but for symmetry."""
    return _TINY * rng.standard_normal((n, checks.n_components(d)))


def ranking_start(rankings: Mapping[int, ArrayLike], d: int, *, spread: float = 3.0) -> Floats:
    """Positions at the principal axes of the squared ranks.

    Parameters
    ----------
    rankings
        Head → ``(n,)`` ranks of all objects, or estimates of them.
    d
        Dimension; where there are fewer heads than that, the last coordinates are tiny.
    spread
        Standard deviation of the result.
    """
    ranks = np.array([rankings[h] for h in sorted(rankings)], dtype=np.float64).T
    axes = min(d, ranks.shape[1])
    X = principal_axes((ranks / len(ranks)) ** 2, axes)
    X *= spread / max(float(X.std()), np.finfo(float).tiny)
    # deterministic, and different for every object
    phase = np.outer(np.arange(1, len(X) + 1), np.arange(1, d - axes + 1)) * np.sqrt(2)
    return np.hstack([X, _TINY * np.sin(phase)])


def triplet_ranks(triplets: ArrayLike, n_objects: int | None = None) -> dict[int, Floats]:
    """Estimate the ranking from every head of the answers.

    An object's rank is the share of its comparisons with that head that it lost, drawn to one
    half by one imaginary win and loss; unseen objects stay in the middle.
    """
    rows, n = checks.triplets(triplets, n_objects)
    ranks = {}
    for head in np.unique(rows[:, 0]):
        mine = rows[rows[:, 0] == head]
        wins = np.bincount(mine[:, 1], minlength=n)
        losses = np.bincount(mine[:, 2], minlength=n)
        ranks[int(head)] = n * (losses + 1.0) / (wins + losses + 2.0)
        ranks[int(head)][head] = 0.0
    return ranks


def fit_from_more_dimensions(
    triplets: ArrayLike | Passes,
    n_objects: int | None = None,
    n_components: int = 2,
    *,
    loss: str | Loss = "soe",
    start: Floats | None = None,
    weights: ArrayLike | None = None,
    ridge: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-9,
    rng: np.random.Generator,
    rescues: int = 3,
    centre: bool = True,
    callback: Callback | None = None,
) -> Fit:
    """Fit positions from a start in a few dimensions more.

    Parameters are those of `nearer.fitting.solver.fit_positions`, but for these.

    Parameters
    ----------
    start
        Positions in at least `n_components` dimensions; None: a random cloud in `EXTRA` more.
    rescues
        How often misplaced objects are looked for. None are where all answers are satisfied, or
        where so many are not that misplaced objects cannot be the reason (noise, too low a
        dimension).
    centre
        Whether positions with soe loss zero move on to the most probable ones of that region.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> fit_from_more_dimensions([[0, 1, 2], [1, 0, 2], [2, 1, 0]], 3, 1, rng=rng).loss
    0.0
    """
    passes = prepare(triplets, n_objects, weights)
    if start is None:
        start = random_start(passes.n_objects, n_components + EXTRA, rng)
    search = _Search(passes, as_loss(loss), n_components, ridge, max_iter, tol, rng, callback)
    best = search.reduced(start)
    if len(passes) < _MANY:
        best = search.rescued(best, rescues)
    if search.loss.name == "soe" and not passes.violated(best.positions).any():
        best = _with_margins(search.centred(best) if centre else best, passes)
    return replace(best, n_iter=search.steps)


class _Search:
    """Fits of the same answers, one after the other, with their steps counted."""

    def __init__(
        self,
        passes: Passes,
        loss: Loss,
        d: int,
        ridge: float,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
        callback: Callback | None,
    ) -> None:
        self._passes, self.loss, self._d, self._ridge = passes, loss, d, ridge
        self._max_iter, self._tol, self._rng, self._callback = max_iter, tol, rng, callback
        self.steps = 0

    def _fit(self, X: Floats, tol: float, passes: Passes | None = None) -> Fit:
        return self._fit_by(self.loss, X, tol, self._ridge, passes or self._passes)

    def _fit_by(self, loss: Loss, X: Floats, tol: float, ridge: float, passes: Passes) -> Fit:
        steps, callback = self._max_iter, self._callback
        done = passes.fit(loss, X, ridge=ridge, max_iter=steps, tol=tol, callback=callback)
        self.steps += done.n_iter
        return done

    def reduced(self, X: Floats) -> Fit:
        """Strip one axis after the other, each after a rough fit; then fit to the end."""
        few = self._few(X)

        def fit(start: Floats) -> Fit:
            if start.shape[1] > self._d:
                return self._fit(start, ROUGH, few)
            if few is not self._passes:
                start = self._fit(start, ROUGH, few).positions
            return self._fit(start, self._tol)

        *_, last = reduce_dimensions(fit, X, self._d)
        return last

    def _few(self, X: Floats) -> Passes:
        """As many answers as the way down needs; the last fit takes all."""
        enough = ENOUGH * X.size
        if X.shape[1] <= self._d or len(self._passes) < max(_MANY, 2 * enough):
            return self._passes
        return self._passes.few(enough, self._rng)

    def rescued(self, best: Fit, rescues: int) -> Fit:
        """Look for misplaced objects, and fit again from an extra dimension."""
        wrong = self._passes.violated(best.positions)
        for _ in range(rescues):
            if not 0 < wrong.mean() < _FEW_VIOLATED:
                break
            best = self._mirrored(best, wrong)
            X = best.positions
            lift = self._rng.standard_normal((len(X), 1)) * 0.3 * X.std()
            if self._passes.violated(X).any():
                best = min(best, self.reduced(np.hstack([X, lift])), key=lambda fit: fit.loss)
            wrong = self._passes.violated(best.positions)
        return best

    def _mirrored(self, best: Fit, wrong: NDArray[np.bool_]) -> Fit:
        """The best of the fits from mirror images of the most suspect objects."""
        for X in mirrored(best.positions, self._passes.rows, wrong, self._rng):
            other = self._fit(X, ROUGH)
            if other.loss < best.loss:
                best = self._fit(other.positions, self._tol)
                if not self._passes.violated(best.positions).any():
                    break
        return best

    def centred(self, fit: Fit) -> Fit:
        """The most probable positions, where they satisfy all answers, too."""
        X, passes = fit.positions, self._passes
        ridge = 1 / (passes.total * _EXACT_PRIOR**2)
        wide = X * (_EXACT_PRIOR / max(float(X.std()), np.finfo(float).tiny))
        probable = self._fit_by(Loss("logistic"), wide, ROUGH, ridge, passes)
        done = self._fit(probable.positions, self._tol)
        return fit if passes.violated(done.positions).any() else done


def _with_margins(fit: Fit, passes: Passes) -> Fit:
    """Scale positions that satisfy all answers until soe's margin is kept, so that its loss is 0.

    Not those with answers that hold by less than half of the digits of a number.
    """
    gap = passes.least_margin(fit.positions)
    if fit.loss == 0 or gap < np.sqrt(np.finfo(float).eps) * fit.positions.std():
        return fit
    return replace(fit, positions=fit.positions * (1 + 1e-9) / gap, loss=0.0)


def relocate(
    X: Floats, triplets: NDArray[np.int32], wrong: NDArray[np.bool_], rng: np.random.Generator
) -> Floats:
    """Positions with the objects that violate many of their answers moved to better places.

    Examples
    --------
    Object 3 belongs between 0 and 1, not beyond 2:

    >>> import numpy as np
    >>> X = np.array([[0.0], [10.0], [20.0], [30.0]])
    >>> T = np.array([[0, 1, 2], [0, 3, 1], [0, 3, 2], [2, 1, 3]], dtype=np.int32)
    >>> moved = relocate(X, T, np.array([False, True, True, False]), np.random.default_rng(0))
    >>> from nearer.fitting.solver import violated
    >>> int(violated(X, T).sum()), int(violated(moved, T).sum())
    (3, 0)
    """
    n = len(X)
    broken = np.bincount(triplets[wrong].ravel(), minlength=n)
    suspects = np.flatnonzero(broken > _MISPLACED * np.bincount(triplets.ravel(), minlength=n))
    moved = X.copy()
    for x in suspects[np.argsort(-broken[suspects])][:_MOST_MOVED]:
        mine = triplets[(triplets == x).any(axis=1)]
        near_others = moved + 0.05 * moved.std() * rng.standard_normal(X.shape)
        near_others[x] = moved[x]
        places = np.concatenate([near_others, _mirror_images(moved, mine, x, rng)])
        moved[x] = places[np.argmin(_loss_at(places, moved, mine, x))]
    return moved


def mirrored(
    X: Floats, triplets: NDArray[np.int32], wrong: NDArray[np.bool_], rng: np.random.Generator
) -> Iterator[Floats]:
    """Positions with one suspect object each on the other side of some heads.

    Where its neighbours have settled around a misplaced object, no other place looks better until
    they have moved, too: each of these positions has to be fitted to be judged.
    """
    broken = np.bincount(triplets[wrong, 1:].ravel(), minlength=len(X))
    for x in np.argsort(-broken, kind="stable")[:_SUSPECTS]:
        mine = triplets[(triplets == x).any(axis=1)]
        images = _mirror_images(X, mine, int(x), rng)
        far = np.argsort(-np.linalg.norm(images - X[x], axis=1), kind="stable")
        for image in images[far[:: max(1, len(far) // _IMAGES)]]:
            other = X.copy()
            other[x] = image
            yield other


def _mirror_images(X: Floats, mine: NDArray[np.int32], x: int, rng: np.random.Generator) -> Floats:
    """The position of x reflected at planes through heads of its answers."""
    heads = np.setdiff1d(mine[:, 0], [x])
    d = X.shape[1]
    if len(heads) < d:
        return np.empty((0, d))
    corners = X[np.array([rng.choice(heads, d, replace=False) for _ in range(_PLANES)])]
    spans = corners[:, 1:] - corners[:, :1]
    # the last right singular vector of the span is normal to the plane
    normals = np.linalg.svd(np.concatenate([spans, np.zeros((_PLANES, 1, d))], axis=1))[2][:, -1]
    height = np.einsum("ij,ij->i", X[x] - corners[:, 0], normals)
    return np.asarray(X[x] - 2 * height[:, None] * normals)


def _loss_at(places: Floats, X: Floats, mine: NDArray[np.int32], x: int) -> Floats:
    """The logistic loss of x's answers with x at each place, some places at a time."""
    head, near, far = mine.T
    ahead = head == x
    one, other = np.where(ahead, near, head), np.where(ahead, far, head)
    # where x is not the head, one of the two distances does not depend on its place
    from_head = np.linalg.norm(X[head] - X[np.where(near == x, far, near)], axis=1)
    block = max(1, _CELLS // max(len(mine), len(X)))
    loss = np.empty(len(places))
    for begin in range(0, len(places), block):
        away = cdist(places[begin : begin + block], X)
        to_near = np.where(far == x, from_head, away[:, one])
        to_far = np.where(near == x, from_head, away[:, other])
        loss[begin : begin + block] = np.logaddexp(0.0, to_near - to_far).mean(axis=1)
    return loss


# --- the smallest dimension ----------------------------------------------------------------------


def lowest(fits: Iterable[F], good: Callable[[F], bool]) -> F | None:
    """The last good one of fits that come down, up to the first that is not; None where none is.

    Examples
    --------
    >>> from nearer.fitting.solver import Fit
    >>> fits = [Fit(np.zeros((4, d)), 0.0 if d > 1 else 0.3, 1, True) for d in (3, 2, 1)]
    >>> lowest(fits, lambda fit: fit.loss < 0.1).positions.shape[1]
    2
    """
    best = None
    for fit in fits:
        if not good(fit):
            break
        best = fit
    return best


def satisfies_all(fit: HasPositions, rows: NDArray[np.integer]) -> bool:
    """True if positions satisfy all answers."""
    return not violated(fit.positions, rows).any()


def is_exact(n_wrong: int, n_held_out: int, n_fitted: int, n_parameters: int) -> bool:
    """Whether so few held-out answers are disobeyed as where answers without errors were obeyed.

    With k parameters that obey m answers, a share of about k/m of further ones is disobeyed: an
    answer left out is missed only if it was one of those that held the positions in place, and k
    of them do that. Three standard errors more are allowed. (The learning curve of Seung,
    Sompolinsky and Tishby 1992 is .62·k/m; exact simulated answers gave .4 to 1.1.)

    Examples
    --------
    >>> is_exact(10, 500, 2000, 100), is_exact(100, 500, 2000, 100)
    (True, False)
    """
    if n_fitted < MANY * n_parameters or not n_held_out:
        return False
    rate = n_parameters / n_fitted
    error = np.sqrt(rate * (1 - rate) / n_held_out)
    return bool(n_wrong <= n_held_out * (rate + 3 * error))


def _share(fit: HasPositions, rows: NDArray[np.integer]) -> float:
    return float(violated(fit.positions, rows).mean())


def fit_smallest(
    triplets: NDArray[np.integer],
    n_objects: int,
    *,
    at_least: int = 1,
    at_most: int = 16,
    rng: np.random.Generator,
) -> tuple[Fit, dict[int, dict[str, float]]]:
    """Fit in the smallest dimension that predicts held-out answers as well as any larger one.

    Short fits on the way down are enough to tell. Answers about few dimensions are predicted well
    as long as there are enough of them, and badly at once when one is missing; answers from few
    heads about data of high dimension are predicted best somewhere between.

    Parameters
    ----------
    triplets
        ``(m, 3)`` rows (head, near, far).
    n_objects
        How many objects there are.
    at_least, at_most
        Dimensions to choose from; there must be fewer than objects, and a few answers for every
        coordinate.
    rng
        Source of the random start, and of which answers are held out.

    Returns
    -------
    fit
        In the dimension chosen, to all triplets.
    evidence
        For each dimension tried: the loss of the answers fitted, the accuracy on those held out.
    """
    rows, n = checks.triplets(triplets, n_objects)
    out = rng.random(len(rows)) < _HELD_OUT
    kept, held = rows[~out], rows[out]
    if not len(held) or not len(kept):
        kept = held = rows
    at_least = min(at_least, n - 1)
    at_most = max(at_least, min(at_most, n - 1, len(rows) // (FEWEST * n)))

    def fit(start: Floats) -> Fit:
        return fit_positions(kept, n, start=start, max_iter=_STEPS, tol=1e-6)

    from nearer.fitting.heldout import HeldOutJudge  # noqa: PLC0415 - imports this module

    scores, fits, worse = dict[int, Floats](), dict[int, Fit](), 0
    judge = HeldOutJudge(scores)
    start = principal_axes(random_start(n, at_most + EXTRA, rng), at_most + EXTRA)
    for found in reduce_dimensions(fit, start, at_least):
        d = found.positions.shape[1]
        if d > at_most:
            continue
        fits[d], scores[d] = found, -violated(found.positions, held).astype(np.float64)
        worse = worse + 1 if judge.worse(d, _CLEARLY) else 0
        if worse == _PATIENCE:
            break
    evidence = {
        d: {"loss": fits[d].loss, "held_out_accuracy": 1.0 + float(scores[d].mean())}
        for d in sorted(fits)
    }
    return fit_onwards(rows, fits[judge.smallest()].positions, at_least=at_least, rng=rng), evidence


def fit_onwards(
    rows: NDArray[np.int32], positions: Floats, *, at_least: int, rng: np.random.Generator
) -> Fit:
    """Fit all answers from positions that are about right, in fewer dimensions if all are obeyed.

    Where nearly all answers are obeyed, a few misplaced objects may be what is left, so the fit
    takes its time; and where all are, they may be in fewer dimensions still, which short fits of
    data with many bad optima (the surface of a globe) can miss.

    Parameters
    ----------
    rows
        ``(m, 3)`` triplets.
    positions
        Where to begin.
    at_least
        The fewest dimensions.
    rng
        Source of the places that are tried for misplaced objects.
    """
    n, d = positions.shape
    first = fit_positions(rows, n, start=positions, max_iter=_MORE_STEPS)
    if _share(first, rows) >= NEARLY:
        return first

    def fit(start: Floats) -> Fit:
        e = start.shape[1]
        steps = _MOST_STEPS if e == d else _MORE_STEPS
        how: Any = {"max_iter": steps, "rng": rng, "centre": False}
        return fit_from_more_dimensions(rows, n, e, start=start, **how)

    fits = reduce_dimensions(fit, first.positions, at_least)
    found = next(fits)
    if satisfies_all(found, rows):
        found = lowest(fits, lambda fit: satisfies_all(fit, rows)) or found
    X = found.positions
    return fit_from_more_dimensions(rows, n, X.shape[1], start=X, rng=rng, rescues=0)
