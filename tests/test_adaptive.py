"""`nearer.adaptive`, its plan, and the friendly door."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearer
from nearer.errors import AnswersWarning, InvalidInput
from nearer.questions import answered, pack, random_questions


def embed(X, **options):
    options = {"random_state": 0, "progress": False} | options
    return nearer.embed(nearer.PointOracle(X), len(X), **options)


@pytest.fixture(scope="module")
def cube():
    X = np.random.default_rng(1).random((120, 3))
    return X, embed(X)


def test_the_dimension_and_the_positions_are_right(cube):
    X, found = cube
    assert found.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.985
    assert nearer.metrics.knn_precision(X, found.positions) > 0.95
    assert found.n_comparisons <= 1.7 * 120 * 3 * np.log2(120) + 10 * 120


def test_everything_paid_for_is_accounted_for(cube):
    X, found = cube
    assert len(found.triplets) == found.n_comparisons
    assert sum(phase.n_comparisons for phase in found.history) == found.n_comparisons
    assert sum(phase.n_rounds for phase in found.history) == found.n_rounds
    head, near, far = found.triplets.T
    assert nearer.PointOracle(X)(np.stack([head, near, far], axis=1)).all()
    packed = nearer.asking.Memory(found.triplets)
    assert len(packed) == found.n_comparisons, "a question was asked twice"


def test_predict_answers_as_the_points_do(cube):
    X, found = cube
    rng = np.random.default_rng(2)
    questions = np.stack([rng.permutation(120)[:3] for _ in range(2000)])
    assert (found.predict(questions) == nearer.PointOracle(X)(questions)).mean() > 0.98


def test_the_same_seed_gives_the_same_run():
    X = np.random.default_rng(3).random((30, 2))
    first, second = embed(X), embed(X)
    assert np.array_equal(first.triplets, second.triplets)
    assert np.array_equal(first.positions, second.positions)


def test_a_session_replayed_at_a_cut_goes_on_as_the_run_did():
    X = np.random.default_rng(3).random((40, 2))
    oracle = nearer.PointOracle(X)
    whole = nearer.run(nearer.adaptive(40, random_state=5), oracle)
    half = whole.triplets[: len(whole.triplets) // 2]
    again = nearer.asking.Session(nearer.adaptive(40, random_state=5), half)
    while not again.done:
        again.tell(again.open, oracle(again.open))
    assert np.array_equal(again.result.positions, whole.positions)


@pytest.mark.parametrize("budget", [0, 1, 7, 50, 400, 1000, 2000])
def test_a_budget_is_kept_and_always_gives_an_embedding(budget):
    X = np.random.default_rng(4).random((50, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", nearer.errors.AnswersWarning)
        found = embed(X, budget=budget)
    assert found.n_comparisons <= budget
    assert len(found.positions) == 50
    reached = np.isfinite(found.positions).all(axis=1)
    assert np.array_equal(np.flatnonzero(~reached), found.never_asked)
    assert bool(caught) == bool(len(found.never_asked))
    assert reached.all() or budget < 400


def test_a_budget_set_from_outside_is_kept_too():
    X = np.random.default_rng(4).random((80, 2))
    strategy = nearer.adaptive(80, random_state=0)
    found = nearer.run(strategy, nearer.PointOracle(X), budget=700)
    assert found.n_comparisons == 700


@pytest.mark.slow
def test_more_budget_is_better():
    def tau(budget):
        clouds = [np.random.default_rng(seed).random((60, 3)) for seed in range(3)]
        maps = [embed(X, budget=budget).positions for X in clouds]
        return np.median(list(map(nearer.metrics.mean_kendall_tau, clouds, maps)))

    assert 0.4 < tau(600) < tau(1500) - 0.1


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((30, 2)),
        np.repeat(np.random.default_rng(0).random((10, 2)), 4, axis=0),
        np.arange(40.0)[:, None],
        np.array([[0.0], [1.0], [5.0]]),
        np.array([[0.0], [1.0], [5.0], [5.0]]),
    ],
    ids=["all equal", "duplicates", "a line", "three", "four"],
)
def test_degenerate_data_ends(X):
    found = embed(X)
    assert len(found.positions) == len(X)
    assert np.isfinite(found.positions).all()


@pytest.mark.slow
def test_near_ties_show_a_dimension_that_few_objects_fill():
    X = np.hstack([np.random.default_rng(8).normal(size=(120, 2)), np.zeros((120, 1))])
    X[::8, 2] = 3 * np.random.default_rng(9).normal(size=15)  # few leave the plane
    found = embed(X)
    assert found.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "d"), [(20, 1), (30, 2), (40, 3), (60, 5)])
def test_few_objects_are_embedded_in_the_right_dimension(n, d, seed):
    X = np.random.default_rng([seed, n, d]).uniform(-1, 1, size=(n, d)) ** 3
    found = nearer.embed(nearer.PointOracle(X), n, random_state=seed, progress=False)
    assert found.dimension == d
    assert found.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_ties_it_goes_on_until_it_is_good(seed):
    rng, n, d = np.random.default_rng([seed, 1]), 60, 5
    X = 3 * rng.normal(size=(4, d))[rng.integers(4, size=n)] + rng.normal(size=(n, d))
    found = embed(X, random_state=seed)
    spent = found.n_comparisons >= 1.5 * n * found.dimension * np.log2(n) + 20 * n
    assert spent or found.details["expected_tau"] > 0.98
    assert found.dimension >= 4
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.95


def grid(n, k, d, seed=0):
    return np.random.default_rng([n, k, seed]).integers(k, size=(n, d)).astype(float)


@pytest.mark.filterwarnings("ignore:.*were in no question")
def test_the_range_of_dimensions_says_what_answers_leave_possible():
    rng = np.random.default_rng(3)
    enough = embed(rng.normal(size=(40, 2)))
    assert (enough.dimension_low, enough.dimension_high, enough.determined) == (2, 2, True)
    for n, d in ((5, 3), (8, 4), (10, 4)):  # few objects may fit in fewer dimensions
        few = embed(rng.normal(size=(n, d)))
        assert few.dimension_low <= d <= few.dimension_high
        assert not few.determined
    with pytest.warns(AnswersWarning, match="no better than by guessing"):
        unknown = nearer.embed(lambda q: rng.random(len(q)) < 0.5, 60, budget=100, random_state=0)
    assert unknown.dimension_low == 1
    assert unknown.dimension_high > 5
    assert not unknown.determined


@pytest.mark.parametrize("n", [12, 60, 300])
def test_objects_in_one_place_are_found_there(n):
    found = embed(np.ones((n, 2)))
    assert np.ptp(found.positions) == 0
    assert found.dimension == 1
    assert found.n_comparisons <= 15 * n


@pytest.mark.parametrize(
    ("n", "n_places"), [(20, 3), (40, 5), pytest.param(60, 3, marks=pytest.mark.slow)]
)
def test_few_places_keep_apart(n, n_places):
    rng = np.random.default_rng([n, n_places])
    at = rng.permutation(np.arange(n) % n_places)
    found = embed(rng.normal(size=(n_places, 2))[at])
    distance = np.linalg.norm(found.positions[:, None] - found.positions, axis=2)
    same = at[:, None] == at
    assert found.dimension <= 2
    assert np.median(distance[~same]) > 5 * np.median(distance[same])


LATTICE = np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), -1).reshape(-1, 2)


@pytest.mark.parametrize(
    ("X", "d"),
    [
        (np.random.default_rng(0).normal(size=(80, 2)).round(1), 2),
        (grid(40, 30, 1), 1),
        (grid(60, 8, 2), 2),
        (grid(60, 5, 2), 2),
        pytest.param(grid(300, 10, 2), 2, marks=pytest.mark.slow),
        pytest.param(grid(120, 3, 3), 3, marks=pytest.mark.slow),
        pytest.param(grid(300, 20, 1), 1, marks=pytest.mark.slow),
        pytest.param(LATTICE[np.random.default_rng(1).permutation(225)], 2, marks=pytest.mark.slow),
    ],
    ids=["rounded", "30", "64", "25", "100", "27 in space", "20 on a line", "a lattice"],
)
def test_equal_distances_cost_neither_dimensions_nor_many_questions(X, d):
    n = len(X)
    found = embed(X)
    assert found.dimension == d
    assert found.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.9


@pytest.mark.parametrize("compare", [np.less, np.less_equal])
def test_ties_may_go_by_the_order_of_asking(compare):
    X = grid(50, 5, 2)
    distance = np.linalg.norm(X[:, None] - X, axis=2)

    def oracle(questions):
        head, a, b = questions.T
        return compare(distance[head, a], distance[head, b])

    found = nearer.embed(oracle, 50, random_state=0, progress=False)
    assert found.dimension == 2
    assert found.n_comparisons <= 1.5 * 50 * 2 * np.log2(50) + 25 * 50


@pytest.mark.slow
def test_two_clusters_far_apart_keep_their_dimension():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    X[::2, 0] += 100
    found = embed(X)
    assert found.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.95


def test_a_line_is_one_dimensional():
    X = np.random.default_rng(6).random((100, 1))
    found = embed(X)
    assert found.dimension == 1
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97


@settings(max_examples=4, deadline=None)
@given(n=st.integers(3, 25), seed=st.integers(0, 2**32 - 1))
def test_an_oracle_that_contradicts_itself_ends(n, seed):
    rng = np.random.default_rng(seed)
    strategy = nearer.adaptive(n, random_state=seed)
    found = nearer.run(strategy, lambda q: rng.random(len(q)) < 0.5)
    assert np.isfinite(found.positions).all()


def test_many_objects_are_placed_among_a_core(monkeypatch):
    monkeypatch.setattr("nearer.algorithms.adaptive.TOGETHER", 120)
    X = np.random.default_rng(8).random((240, 2))
    found = embed(X)
    assert found.dimension == 2
    assert found.history[-1].name == "place"
    assert len(found.triplets) == found.n_comparisons <= 1.5 * 240 * 2 * np.log2(240) + 10 * 240
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97
    assert nearer.PointOracle(X)(found.triplets).all()
    part = embed(X, budget=1800)
    assert part.n_comparisons <= 1800
    assert np.isfinite(part.positions).all()


@pytest.mark.parametrize("together", [50, 3000], ids=["a core", "all"])
def test_answers_that_are_known_are_learned_and_not_asked_again(monkeypatch, together):
    monkeypatch.setattr("nearer.algorithms.adaptive.TOGETHER", together)
    X = np.random.default_rng(11).normal(size=(60, 2))
    exact = nearer.PointOracle(X)
    questions = random_questions(25, 600, np.random.default_rng(0))
    told = answered(questions, exact(questions))
    more = nearer.run(nearer.adaptive(60, known=told, random_state=0), exact)
    assert not np.isin(pack(more.triplets)[0], pack(told)[0]).any()
    assert more.predict(told).mean() > 0.95


def test_quality_is_what_comparisons_buy():
    X = np.random.default_rng(12).normal(size=(60, 2))
    found = [embed(X, quality=quality) for quality in (0.9, 0.98, 0.995)]
    costs = [each.n_comparisons for each in found]
    assert costs == sorted(costs)
    assert costs[-1] > 1.1 * costs[0]
    taus = [nearer.metrics.mean_kendall_tau(X, each.positions) for each in found]
    assert taus[-1] > 0.99
    expected = [each.details["expected_tau"] for each in found]
    assert np.abs(np.subtract(taus, expected)).max() < 0.05


def test_wrong_arguments_are_named():
    with pytest.raises(InvalidInput, match="n_objects=2"):
        nearer.adaptive(2)
    with pytest.raises(InvalidInput, match="budget=-1"):
        nearer.adaptive(5, budget=-1)


def test_progress_is_called(capsys):
    X = np.random.default_rng(9).random((20, 1))
    seen = []
    found = nearer.embed(nearer.PointOracle(X), 20, progress=lambda c, r: seen.append((c, r)))
    comparisons, rounds = zip(*seen, strict=True)
    assert rounds == tuple(range(1, len(seen) + 1))
    assert comparisons[-1] == found.n_comparisons
    assert all(a < b for a, b in pairwise(comparisons))
    nearer.embed(nearer.PointOracle(X), 20, random_state=0)
    assert capsys.readouterr() == ("", "")  # neither is a terminal


def test_plot(cube):
    assert cube[1].plot().collections
