"""Several maps in one frame of reference, and whether two of them differ: see docs/results.md.

*Aligning* is generalised Procrustes analysis (Gower 1975) with objects that some maps lack. The
mean stays in the frame of the first map; otherwise it would shrink.

*Comparing.* The correlation of distances is that of Mantel (1967). Draws of both maps give each
object's displacement a mean and a covariance; of an object that did not move, its squared length in
that unit follows Hotelling's T². Maps are aligned by the half of the objects that
moved least, chosen step by step, and then by all that moved no farther than 99 % do by chance
(reweighted least trimmed squares; Rousseeuw and Van Driessen 2006). The result depends on the
start, which uses distances: an object that stayed has the same distances to most others.

*Groups of people* are permuted, see docs/people.md. An object counts as moved only if draws of
the two maps agree: they show how maps bend around an object that moves, permuted groups do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import chi2, f

from nearer import checks
from nearer.checks import Shown, amount, as_points
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.fitting.likelihood import as_answers
from nearer.fitting.posterior import fit_posterior, log_posterior
from nearer.metrics import Procrustes, best_motions, procrustes
from nearer.questions import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Map = Embedding | ArrayLike

_MOST_STEPS = 100  # of aligning, and of choosing the half that moved least; about ten are needed
_STAYED = 0.99  # quantile up to which an object counts as one that stayed


@dataclass(frozen=True)
class Aligned:
    """Maps in one frame of reference.

    Attributes
    ----------
    names
        All objects, in the order in which maps name them first.
    positions
        ``(maps, n_objects, dimension)``: nan if a map lacks an object. Maps with fewer
        dimensions are filled up with zeros.
    mean
        ``(n_objects, dimension)``, over the maps that have the object.
    """

    names: tuple[Any, ...]
    positions: Floats = field(repr=False)
    mean: Floats = field(repr=False)

    @property
    def spread(self) -> Floats:
        """Root mean squared distance of each object's positions from their mean.

        It is nan where only one map has the object.
        """
        away = np.square(self.positions - self.mean).sum(axis=2)
        there = ~np.isnan(away)
        squared = np.where(there, away, 0.0).sum(axis=0) / there.sum(axis=0)
        return np.where(there.sum(axis=0) > 1, np.sqrt(squared), np.nan)


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """The differences of two maps, over the objects that both have.

    Attributes
    ----------
    names
        Those objects.
    correlation, p_value
        Of the distances in one map with those in the other, and how often unrelated maps correlate
        as well or better.
    first, second
        ``(n, dimension)`` positions; the second map is aligned with the first.
    disparity
        Share of the first map's variance that the second does not explain, aligned by all objects;
        for `second` and `displacement`, maps are aligned by the objects that stayed.
    displacement
        ``(n,)``: how far each object moved, in units of the first map.
    low, high
        ``(n,)`` the middle 95 % of it over draws of the maps; nan if not known; `low` is 0 if the
        object may have stayed (`moved` above 0.05).
    moved
        ``(n,)``: for each object, how often one that did not move seems to move as far or farther;
        nan if not known. With many objects look at those below 0.05 divided by their number. If
        people are known, one comparison of 20 has an unmoved object below 0.05.
    p_differ
        How often random groups of the same people differ as much or more; nan if people are not
        known.
    """

    names: tuple[Any, ...]
    correlation: float
    p_value: float
    disparity: float
    first: Floats
    second: Floats
    displacement: Floats
    low: Floats
    high: Floats
    moved: Floats
    p_differ: float = np.nan

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both maps in one frame, with an arrow from where each object was."""
        from nearer.plotting.other_plots import plot_comparison  # noqa: PLC0415 - drawing only

        return plot_comparison(self, ax)

    def to_frame(self) -> Any:
        """A pandas frame, one row an object: how far it moved, with interval and chance."""
        import pandas as pd  # noqa: PLC0415 - slow to import

        columns = ("displacement", "low", "high", "moved")
        return pd.DataFrame({"name": self.names} | {name: getattr(self, name) for name in columns})

    def _summary(self) -> list[str]:
        names = ("correlation", "p_value", "disparity")
        figures = (f"{name}={getattr(self, name):.3g}" for name in names)
        return [amount(len(self.names), "object"), *figures]


def align(first: Map, *others: Map) -> Aligned:
    """Move several maps onto each other.

    Parameters
    ----------
    first, others
        Embeddings, or ``(n, d)`` positions. Objects with the same name are the same, or, without
        names, with the same number. Each map must share more objects than it has dimensions
        with those before it.

    Returns
    -------
    Aligned
        In the frame of the first map.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10, 2))
    >>> maps = nearer.align(X, 3 - 2 * X, X[:8, ::-1])
    >>> maps.positions.shape, bool(np.allclose(maps.mean, X)), bool(maps.spread.max() < 1e-9)
    ((3, 10, 2), True, True)
    """
    maps = [_named(m) for m in (first, *others)]
    names = tuple(dict.fromkeys(name for called, _ in maps for name in called))
    number = {name: i for i, name in enumerate(names)}
    width = max(X.shape[1] for _, X in maps)
    places = np.full((len(maps), len(names), width), np.nan)
    for place, (called, X) in zip(places, maps, strict=True):
        place[[number[name] for name in called]] = np.pad(X, [(0, 0), (0, width - X.shape[1])])
    there = ~np.isnan(places[:, :, 0])
    reference = places[0].copy()
    mean = _joined(places, there, [X.shape[1] for _, X in maps])
    for _ in range(_MOST_STEPS):
        for place, has in zip(places, there, strict=True):
            place[has] = procrustes(mean[has], place[has]).aligned
        fresh = np.nanmean(places, axis=0)
        back = procrustes(reference[there[0]], fresh[there[0]])  # the frame of the first
        before, mean = mean, back.move(fresh)
        for place, has in zip(places, there, strict=True):
            place[has] = back.move(place[has])
        if np.linalg.norm(mean - before) < 1e-10 * np.linalg.norm(mean - mean.mean(axis=0)):
            break
    return Aligned(names, places, mean)


def _joined(places: Floats, there: NDArray[np.bool_], dimensions: Sequence[int]) -> Floats:
    """A first mean: maps are aligned with it one by one, the one that shares most objects next."""
    done, left = [0], list(range(1, len(places)))
    while left:
        known = there[done].any(axis=0)
        best = max(left, key=lambda i: int((there[i] & known).sum()))
        has, shared = there[best], there[best] & known
        if shared.sum() <= dimensions[best]:
            objects, d = amount(shared.sum(), "object"), amount(dimensions[best], "dimension")
            rule = f"shares {objects} with the others, by name, and has {d}; one more is needed"
            raise InvalidInput(f"map {best + 1}: {rule} than dimensions")
        middle = np.nanmean(places[done][:, shared], axis=0)
        for which, X in ((f"map {best + 1}", places[best][shared]), ("the maps before it", middle)):
            if np.ptp(X, axis=0).max() <= 1e-10 * np.abs(X).max():
                raise InvalidInput(
                    f"map {best + 1}: the {len(X)} objects that it shares with the others are all "
                    f"at one place in {which}, which cannot be aligned; leave it out"
                )
        places[best][has] = procrustes(middle, places[best][shared]).move(places[best][has])
        done.append(best)
        left.remove(best)
    return np.asarray(np.nanmean(places, axis=0))


def compare(
    a: Any,
    b: Map | None = None,
    *,
    groups: ArrayLike | None = None,
    people: ArrayLike | None = None,
    n_permutations: int = 999,
    n_draws: int = 200,
    random_state: int | np.random.Generator | None = None,
) -> Comparison:
    """Measure how well two maps agree, which objects moved, and whether two groups differ.

    Parameters
    ----------
    a, b
        Embeddings, or ``(n, d)`` positions. Objects with the same name are the same, or, without
        names, with the same number; those that only one map has are left out.
        Instead of two maps, `a` may be answers in any form that `nearer.fit` takes.
    groups
        The group of each answer, or of each person by name; there must be two. `a` are then
        answers, and each group is fitted in the dimension that all answers together need.
    people
        Who gave each answer, if `a` are answers without people.
    n_permutations, n_draws, random_state
        The numbers of permutations of objects for the p-value, and of people for `p_differ`; of
        draws from each embedding for the uncertainty of displacements; a seed.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(12, 2))
    >>> Y = 2 * X[:, ::-1]
    >>> Y[3] += 3
    >>> comparison = nearer.compare(X, Y, random_state=0)
    >>> comparison.p_value, int(comparison.displacement.argmax())
    (0.001, 3)
    """
    checks.whole("n_permutations", n_permutations)
    rng = checks.generator(random_state)
    if groups is not None:
        a, b = _fits_of_groups(a, groups, people, rng)
    if b is None:
        raise InvalidInput("compare(a): needs a second map, or answers and groups=…")
    (called, X), (other, Y) = _named(a), _named(b)
    least = max(20, 2 * X.shape[1], 2 * Y.shape[1])
    checks.whole("n_draws", n_draws, least=least, rule="fewer give no covariance")
    number = {name: i for i, name in enumerate(other)}
    rows = np.array([i for i, name in enumerate(called) if name in number], dtype=np.int64)
    least = max(4, X.shape[1] + 2, Y.shape[1] + 2)
    if len(rows) < least:
        rule = f"to compare {amount(X.shape[1], 'dimension')} with {Y.shape[1]}, {least} are needed"
        raise InvalidInput(f"the maps share {amount(len(rows), 'object')}, by name: {rule}")
    columns = np.array([number[called[i]] for i in rows])
    X, Y, width = X[rows], Y[columns], max(X.shape[1], Y.shape[1])
    best = procrustes(X, Y)
    X = np.pad(X, [(0, 0), (0, width - X.shape[1])])
    correlation, p_value = _agreement(X, Y, n_permutations, rng)
    draws = [_draws(m, which, n_draws, rng) for m, which in ((a, rows), (b, columns))]
    second = best.aligned
    low, high, moved = (np.full(len(X), np.nan) for _ in range(3))
    if draws[0] is not None and draws[1] is not None:
        motion, squared, (low, high) = _displaced(draws[0], draws[1])
        share = (n_draws - width) / (width * (n_draws - 1))
        moved = np.asarray(f.sf(share * squared, width, n_draws - width))
        second = motion.move(Y)
    p_differ = np.nan
    if isinstance(a, Embedding) and isinstance(b, Embedding):
        shared = [(a, rows), (b, columns)]
        if (tests := _permuted(shared, width, n_permutations, rng)) is not None:
            # Both are corrected for the number of objects, those by draws by Bonferroni's rule.
            p_differ, moved = tests[0], np.fmax(tests[1], np.minimum(len(X) * moved, 1.0))
    away = np.linalg.norm(second - X, axis=1)
    return Comparison(
        names=tuple(called[i] for i in rows),
        correlation=correlation,
        p_value=p_value,
        disparity=best.disparity,
        first=X,
        second=second,
        displacement=away,
        low=np.where(moved > 0.05, 0.0, np.minimum(low, away)),  # draws have a mean of their own
        high=np.maximum(high, away),
        moved=moved,
        p_differ=p_differ,
    )


def _fits_of_groups(
    answers: Any, groups: Any, people: ArrayLike | None, rng: np.random.Generator
) -> tuple[Embedding, Embedding]:
    """A map of each of two groups of people."""
    from nearer._fit import fit, load_answers  # noqa: PLC0415 - a package above this one

    loaded = load_answers(answers, people)
    trials = loaded.trials
    if trials.people is None:
        raise InvalidInput("groups need the person of each answer: add people=")
    if isinstance(groups, Mapping):
        named = {str(name): group for name, group in groups.items()}
        try:
            groups = [named[str(name)] for name in trials.people.tolist()]
        except KeyError as error:
            remedy = "name a group for each person"
            raise InvalidInput(f"groups: {error} is in none; {remedy}") from None
    of_answer = checks.as_array(groups)
    if of_answer.shape != (len(trials),) or len(kinds := np.unique(of_answer)) != 2:
        value = f"groups of shape {of_answer.shape} with {len(np.unique(of_answer))} kinds"
        rule = f"one of two for each of the {len(trials):,} answers, or a mapping from people"
        raise InvalidInput(f"{value}: must be {rule}")
    known: dict[str, Any] = {"n_objects": loaded.n, "differ": "no", "random_state": rng}
    d = fit(trials, **known).dimension
    first, second = (fit(trials[of_answer == kind], n_components=d, **known) for kind in kinds)
    return first, second


def _permuted(
    maps: Sequence[tuple[Embedding, NDArray[np.int64]]],
    d: int,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[float, Floats] | None:
    """Whether groups differ and which objects moved; None if people are not known."""
    triplets, people, group = [], [], list[int]()
    for which, (embedding, rows) in enumerate(maps):
        who = embedding.details.get("answered_by")
        if who is None or embedding.people is None:
            return None
        number = np.full(len(embedding.positions), -1)
        number[rows] = np.arange(len(rows))
        T = number[embedding.triplets]
        known = (T >= 0).all(axis=1) & (who >= 0)
        triplets.append(T[known])
        people.append(len(group) + who[known])
        group += [which] * len(embedding.people)
    n, first = len(maps[0][1]), np.array(group) == 0
    answers = as_answers(np.concatenate(triplets), n)
    counts = csr_array(
        (np.ones(len(answers.row)), (np.concatenate(people), answers.row)),
        shape=(len(first), len(answers)),
    )
    noise = replace(maps[0][0].details["posterior"].noise, bias=False)
    start = fit_posterior(answers, d, noise, rng=rng).positions

    def fitted(members: NDArray[np.bool_]) -> tuple[float, Floats]:
        """How probable two maps are, and how far objects are displaced between them."""
        maps_of_groups, total = [], 0.0
        for side in (members, ~members):
            some = replace(answers, weights=counts.T @ side.astype(np.float64))
            X = some.maximise(noise, start, 300, 1e-6).positions
            total += log_posterior(some, X, noise)
            maps_of_groups.append(X)
        return total, _trimmed(*maps_of_groups)

    runs = [fitted(first), *(fitted(rng.permutation(first)) for _ in range(n_permutations))]
    likely, away = (np.array(each) for each in zip(*runs, strict=True))
    covariances = np.einsum("kni,knj->nij", away, away) / len(away)
    size = np.einsum("kni,nij,knj->kn", away, np.linalg.pinv(covariances), away)
    p_differ = float(np.mean(likely >= likely[0] - 1e-9 * abs(likely[0])))
    moved = np.mean(size.max(axis=1)[:, None] >= size[0], axis=0)
    return p_differ, np.maximum(moved, p_differ)


def _trimmed(X: Floats, Y: Floats) -> Floats:
    """Displacements after aligning maps by the half of the objects that moved least."""

    def away(still: NDArray[np.bool_]) -> Floats:
        return procrustes(X[still], Y[still]).move(Y) - X

    still = np.ones(len(X), dtype=np.bool_)
    return away(_nearest_half(lambda s: np.linalg.norm(away(s), axis=1), still, X.shape[1]))


def _nearest_half(
    moved: Callable[[NDArray[np.bool_]], Any], still: NDArray[np.bool_], d: int
) -> NDArray[np.bool_]:
    """The half of the objects that moved least, as seen from this half itself."""
    for _ in range(_MOST_STEPS):
        before, still = still, _least(moved(still), (len(still) + d + 2) // 2)
        if np.array_equal(before, still):
            break
    return still


def _agreement(X: Floats, Y: Floats, n_permutations: int, rng: np.random.Generator) -> Any:
    """Correlation of distances, and how often exchanged objects reach it."""
    x, square = pdist(X), squareform(pdist(Y))
    if np.ptp(x) == 0 or np.ptp(pdist(Y)) == 0:
        raise InvalidInput("all distances of a map are equal: they correlate with nothing")
    upper = np.triu_indices(len(X), 1)
    orders = (np.arange(len(X)), *(rng.permutation(len(X)) for _ in range(n_permutations)))
    correlations = [np.corrcoef(x, square[o[upper[0]], o[upper[1]]])[0, 1] for o in orders]
    return float(correlations[0]), float(np.mean(np.array(correlations) >= correlations[0] - 1e-9))


def _draws(m: Map, rows: NDArray[np.int64], k: int, rng: np.random.Generator) -> Floats | None:
    if not isinstance(m, Embedding):
        return None
    try:
        return m.draws(k, rng)[:, rows]
    except InvalidInput:  # the uncertainty of its positions is not known
        return None


def _displaced(first: Floats, second: Floats) -> tuple[Procrustes, Floats, Floats]:
    """The motion of the second map, squared standardised displacements, limits of their lengths.

    They come from draws of both maps, aligned by the objects that did not move.
    """
    n, width = first.shape[1], max(first.shape[2], second.shape[2])
    first, second = (np.pad(X, [(0, 0), (0, 0), (0, width - X.shape[2])]) for X in (first, second))
    # the median change of an object's distances is small if it and most others stayed
    x, y = (cdist(X, X) for X in (first.mean(axis=0), second.mean(axis=0)))
    scale = np.median(x[y > 0] / y[y > 0])
    still = _least(np.median(np.abs(x - scale * y), axis=0), (n + width + 2) // 2)
    still = _nearest_half(lambda still: _displaced_from(first, second, still)[1], still, width)
    displaced = _displaced_from(first, second, still)
    stayed = displaced[1] < chi2.ppf(_STAYED, width)
    return _displaced_from(first, second, stayed) if stayed.sum() > still.sum() else displaced


def _least(values: Floats, k: int) -> NDArray[np.bool_]:
    """True for the k least."""
    return np.asarray(np.argsort(np.argsort(values, kind="stable")) < k)


def _displaced_from(
    first: Floats, second: Floats, still: NDArray[np.bool_]
) -> tuple[Procrustes, Floats, Floats]:
    """The same, assuming that these objects stayed."""
    motion = procrustes(first.mean(axis=0)[still], second.mean(axis=0)[still])
    mean = motion.move(second.mean(axis=0)) - first.mean(axis=0)
    scale, turn, centre, onto = best_motions(first[:, still], second[:, still])
    away = scale[:, None, None] * (second - centre[:, None]) @ turn + onto[:, None] - first
    away -= away.mean(axis=0)  # aligning draws shrinks them, so only their scatter is used
    covariances = np.einsum("kni,knj->nij", away, away) / (len(away) - 1)
    squared = np.einsum("ni,nij,nj->n", mean, np.linalg.pinv(covariances), mean)
    limits = np.quantile(np.linalg.norm(mean + away, axis=2), [0.025, 0.975], axis=0)
    return motion, squared, limits


def _named(m: Map) -> tuple[tuple[Any, ...], Floats]:
    """Names, or numbers, and positions of a map."""
    X = as_points(m.positions if isinstance(m, Embedding) else m)
    called = tuple(m.object_names if isinstance(m, Embedding) else range(len(X)))
    try:
        distinct = len(set(called))
    except TypeError:
        rule = "lists cannot be matched; dataclasses.replace(embedding, names=…) gives others"
        raise InvalidInput(f"objects are called {called[0]!r}: {rule}") from None
    if distinct < len(called):
        names = amount(distinct, "name")
        raise InvalidInput(f"{len(called)} objects have {names}: each needs its own")
    return called, np.asarray(X, dtype=np.float64)
