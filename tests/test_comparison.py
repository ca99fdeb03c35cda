"""Several maps aligned with each other, and whether two are the same."""

from dataclasses import replace

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput
from nearer.questions import answered, random_questions


def moved(X, seed):
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    return rng.uniform(0.3, 3) * X @ turn + rng.normal(size=X.shape[1])


def fitted(X, seed, *, m=800, flip=0.1, names=None):
    rng = np.random.default_rng(seed)
    questions = random_questions(len(X), m, rng)
    right = nearer.PointOracle(X)(questions)
    rows = answered(questions, right ^ (rng.random(m) < flip))
    embedding = nearer.fit(rows, n_components=2, n_objects=len(X), random_state=seed)
    return replace(embedding, names=names)


def known(positions, names, covariances=None):
    none = np.empty((0, 3), dtype=np.int64)
    return nearer.Embedding(
        positions, none, 0, 0, (), {}, covariances=covariances, names=tuple(names)
    )


@pytest.fixture
def X():
    return np.random.default_rng(5).normal(size=(20, 2))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_motions_and_scales_are_taken_out(d):
    X = np.random.default_rng(d).normal(size=(9, d))
    alignment = nearer.align(X, *(moved(X, seed) for seed in range(1, 4)))
    assert alignment.positions == pytest.approx(np.broadcast_to(X, (4, 9, d)))
    assert alignment.mean == pytest.approx(X)
    assert alignment.spread == pytest.approx(0, abs=1e-9)


def test_objects_may_be_missing_and_in_any_order(X):
    words = [f"w{i}" for i in range(20)]
    parts = [slice(0, 12), slice(14, 20), slice(8, 18)]  # the second meets the third alone
    maps = [known(moved(X[p], i)[::-1], words[p][::-1]) for i, p in enumerate(parts)]
    alignment = nearer.align(known(X[:12], words[:12]), *maps)
    order = [alignment.names.index(word) for word in words]
    assert alignment.mean[order] == pytest.approx(X)
    assert np.isnan(alignment.positions[0, order[12:]]).all()
    assert np.isnan(alignment.spread).sum() == 4  # in one map alone
    alone = nearer.align(known(X[:12], words[:12]), known(X[:5], words[:5]))
    assert np.isnan(alone.spread).sum() == 7


def test_the_mean_is_the_same_whichever_map_comes_later(X):
    rng = np.random.default_rng(0)
    maps = [X + 0.1 * rng.normal(size=X.shape) for _ in range(3)]
    there, back = (nearer.align(X, *order) for order in (maps, maps[::-1]))
    assert there.mean == pytest.approx(back.mean)
    assert np.linalg.norm(there.mean - X) < min(np.linalg.norm(m - X) for m in maps)


def test_maps_of_other_dimensions_are_filled_up(X):
    alignment = nearer.align(X, np.pad(X, [(0, 0), (0, 1)]))
    assert alignment.positions.shape == (2, 20, 3)
    assert alignment.spread == pytest.approx(0, abs=1e-9)
    assert nearer.compare(X, X[:, :1], random_state=0).second.shape == (20, 2)


def test_what_cannot_be_aligned_is_refused(X):
    with pytest.raises(InvalidInput, match=r"map 2: shares 2 objects .* has 2 dimensions"):
        nearer.align(known(X, range(20)), known(X, range(18, 38)))
    with pytest.raises(InvalidInput, match="20 objects have 19 names"):
        nearer.align(X, known(X, [0, *range(19)]))
    with pytest.raises(InvalidInput, match="cannot be matched"):
        nearer.align(X, known(X, [[i] for i in range(20)]))
    with pytest.raises(InvalidInput, match=r"share 3 objects, by name: .* 4 are needed"):
        nearer.compare(X, X[:3])
    with pytest.raises(InvalidInput, match="n_draws=5"):
        nearer.compare(X, X, n_draws=5)
    with pytest.raises(InvalidInput, match="all distances of a map are equal"):
        nearer.compare(X, np.zeros((20, 2)))


def test_maps_without_size_or_numbers_are_refused(X):
    point = np.full(X.shape, 0.1)
    for maps in ((point, X), (X, point), (X, X, np.zeros_like(X))):
        with pytest.raises(InvalidInput, match=r"at one place in .*; leave it out"):
            nearer.align(*maps)
    with pytest.raises(InvalidInput, match=r"map 2: .* at one place in the maps before it"):
        nearer.align(np.where(np.arange(len(X))[:, None] < 5, 1.0, X), X[:5])
    embedding = nearer.fit([[0, 1, 2], [1, 0, 2], [2, 1, 0]], n_components=1, random_state=0)
    lost = replace(embedding, positions=np.full_like(embedding.positions, np.nan))
    for maps in ((lost, embedding), (embedding, lost)):
        with pytest.raises(InvalidInput, match=r"points\[0, 0\] = nan: every value must be finite"):
            nearer.align(*maps)


def test_maps_are_passed_one_by_one_and_read_before(X, tmp_path):
    a = known(X, range(20))
    for maps in ([a, a], (X, X), "a.npz", tmp_path / "a.npz"):
        for call in (nearer.align, nearer.compare):
            with pytest.raises(InvalidInput, match=r"^points "):
                call(maps, a)
    with pytest.raises(InvalidInput, match=r"shares 1 object with .* has 1 dimension;"):
        nearer.align(known(X[:, :1], range(20)), known(X[:, :1], range(19, 39)))
    with pytest.raises(InvalidInput, match="20 objects have 1 name:"):
        nearer.align(X, known(X, 20 * ["a"]))
    with pytest.raises(InvalidInput, match="share 1 object, by name"):
        nearer.compare(X, X[:1])


def test_every_object_needs_a_name(X):
    few = known(X, "abcdefgh")
    message = r"names: 8 for 20 objects.*dataclasses\.replace"
    for use in (nearer.align, nearer.compare):
        with pytest.raises(InvalidInput, match=message):
            use(few, X)
    for method in (few.to_frame, few.to_rdm):
        with pytest.raises(InvalidInput, match=message):
            method()


def test_a_correlation_is_at_most_one():
    for seed in range(50):
        X = np.random.default_rng(seed).normal(size=(6, 2))
        assert nearer.compare(X, X, n_permutations=1, random_state=0).correlation <= 1


def test_the_same_map_agrees_and_nothing_moved(X):
    comparison = nearer.compare(X, moved(X, 3), random_state=0)
    assert comparison.correlation == pytest.approx(1)
    assert comparison.p_value == 1 / 1000
    assert comparison.displacement == pytest.approx(0, abs=1e-9)
    assert np.isnan(comparison.moved).all()  # positions alone do not say how sure they are


def test_unrelated_maps_agree_by_chance_alone():
    rng = np.random.default_rng(0)
    alarms = [
        nearer.compare(*rng.normal(size=(2, 10, 2)), n_permutations=99, random_state=rng).p_value
        <= 0.05
        for _ in range(200)
    ]
    assert 2 <= sum(alarms) <= 20  # of 200 at 5 %: beyond three standard deviations either way


@pytest.mark.slow
def test_objects_that_moved_are_named_and_the_others_are_not(X):
    Y = X.copy()
    Y[:3] += 1.5
    words = tuple(f"w{i}" for i in range(20))
    a, b = fitted(X, 0, names=words), fitted(Y, 1, names=words)
    comparison = nearer.compare(a, b, random_state=0)
    assert comparison.names == words
    assert np.all(comparison.moved[:3] < 0.01)
    assert np.mean(comparison.moved[3:] < 0.05) <= 0.2
    assert np.all(comparison.low <= comparison.displacement)
    assert np.all(comparison.displacement <= comparison.high)
    assert np.all(comparison.low[:3] > 0)
    assert np.array_equal(comparison.low == 0, comparison.moved > 0.05)
    assert comparison.displacement[:3].min() > np.median(comparison.displacement[3:])
    again = nearer.compare(a, b, random_state=0)
    assert np.array_equal(comparison.moved, again.moved)


FAR = [3, *(pytest.param(by, marks=pytest.mark.slow) for by in (0, 1, 8))]


@pytest.mark.parametrize("by", FAR)
def test_however_far_three_move_the_others_stay(by):
    alarms = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, way = rng.normal(size=(20, 2)), rng.normal(size=(3, 2))
        Y = X.copy()
        Y[:3] += by * way / np.linalg.norm(way, axis=1, keepdims=True)
        unsure = np.broadcast_to(0.01 * np.eye(2), (20, 2, 2))
        blur = 0.1 * rng.normal(size=(2, 20, 2))
        maps = (known(Z, range(20), unsure) for Z in np.array([X, Y]) + blur)
        comparison = nearer.compare(*maps, n_permutations=1, n_draws=100, random_state=seed)
        alarms.append(comparison.moved < 0.05)
    three, others = np.split(np.array(alarms), [3], axis=1)
    assert others.mean() <= 0.11  # of 136 at 5 %: three standard deviations beyond
    assert by == 0 or three.all()


@pytest.mark.slow
@pytest.mark.parametrize("flip", [0.1, 0])
def test_one_in_twenty_that_stayed_seems_to_have_moved(X, flip):
    alarms = [
        nearer.compare(fitted(X, 2 * seed, flip=flip), fitted(X, 2 * seed + 1, flip=flip)).moved
        < 0.05
        for seed in range(4)
    ]
    assert np.mean(alarms) <= 0.15


def nothing_moved(d, seed):
    """Two maps of the same objects, each blurred as far as it says."""
    rng = np.random.default_rng(seed)
    unsure = np.broadcast_to(0.01 * np.eye(d), (25, d, d))
    blurred = rng.normal(size=(25, d)) + 0.1 * rng.normal(size=(2, 25, d))
    return [known(X, range(25), unsure) for X in blurred]


def test_one_in_twenty_that_stayed_seems_to_have_moved_where_the_uncertainty_is_known():
    alarms = [
        nearer.compare(*nothing_moved(2, seed), n_permutations=1, n_draws=100, random_state=seed)
        for seed in range(8)
    ]
    assert 0 < np.mean([f.moved < 0.05 for f in alarms]) < 0.1


@pytest.mark.slow
def test_few_draws_in_several_dimensions_raise_few_alarms():
    alarms = [
        nearer.compare(*nothing_moved(5, seed), n_permutations=1, n_draws=20, random_state=seed)
        for seed in range(20)
    ]
    # .08 of 500; .22 if a covariance from 20 draws were taken for the true one
    assert np.mean([f.moved < 0.05 for f in alarms]) < 0.13


def test_where_nothing_moved_all_objects_hold_the_maps_together():
    for seed in range(2):
        a, b = nothing_moved(2, seed)
        comparison = nearer.compare(a, b, n_permutations=1, n_draws=100, random_state=seed)
        best = nearer.metrics.procrustes(a.positions, b.positions).aligned - a.positions
        # laid over each other by a half of them, the others are 6 to 27 % farther apart
        assert np.linalg.norm(comparison.displacement) < 1.02 * np.linalg.norm(best)


def test_limits_of_a_displacement_are_those_of_95_percent():
    a, b = nothing_moved(2, 0)
    b.positions[0] += [0.6, 0.8]
    comparison = nearer.compare(a, b, n_permutations=1, n_draws=1000, random_state=0)
    assert comparison.displacement[0] == pytest.approx(1, abs=0.3)
    sd = np.sqrt(2 * 0.01)  # of both maps, along the displacement
    assert (comparison.high - comparison.low)[0] == pytest.approx(2 * 1.96 * sd, rel=0.1)
