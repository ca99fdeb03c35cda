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
    X, embedding = cube
    assert embedding.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.985
    assert nearer.metrics.knn_precision(X, embedding.positions) > 0.95
    assert embedding.n_comparisons <= 1.7 * 120 * 3 * np.log2(120) + 10 * 120


def test_everything_paid_for_is_accounted_for(cube):
    X, embedding = cube
    assert len(embedding.triplets) == embedding.n_comparisons
    assert sum(phase.n_comparisons for phase in embedding.history) == embedding.n_comparisons
    assert sum(phase.n_rounds for phase in embedding.history) == embedding.n_rounds
    head, near, far = embedding.triplets.T
    assert nearer.PointOracle(X)(np.stack([head, near, far], axis=1)).all()
    packed = nearer.asking.Memory(embedding.triplets)
    assert len(packed) == embedding.n_comparisons, "a question was asked twice"


def test_predict_answers_as_the_points_do(cube):
    X, embedding = cube
    rng = np.random.default_rng(2)
    questions = np.stack([rng.permutation(120)[:3] for _ in range(2000)])
    assert (embedding.predict(questions) == nearer.PointOracle(X)(questions)).mean() > 0.98


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
def test_a_budget_holds_and_always_gives_an_embedding(budget):
    X = np.random.default_rng(4).random((50, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", nearer.errors.AnswersWarning)
        embedding = embed(X, budget=budget)
    assert embedding.n_comparisons <= budget
    assert len(embedding.positions) == 50
    reached = np.isfinite(embedding.positions).all(axis=1)
    assert np.array_equal(np.flatnonzero(~reached), embedding.never_asked)
    assert bool(caught) == bool(len(embedding.never_asked))
    assert reached.all() or budget < 400


def test_a_budget_set_from_outside_holds_too():
    X = np.random.default_rng(4).random((80, 2))
    strategy = nearer.adaptive(80, random_state=0)
    result = nearer.run(strategy, nearer.PointOracle(X), budget=700)
    assert result.n_comparisons == 700


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
    embedding = embed(X)
    assert len(embedding.positions) == len(X)
    assert np.isfinite(embedding.positions).all()


@pytest.mark.slow
def test_near_ties_show_a_dimension_that_few_objects_fill():
    X = np.hstack([np.random.default_rng(8).normal(size=(120, 2)), np.zeros((120, 1))])
    X[::8, 2] = 3 * np.random.default_rng(9).normal(size=15)  # few leave the plane
    embedding = embed(X)
    assert embedding.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.97


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "d"), [(20, 1), (30, 2), (40, 3), (60, 5)])
def test_few_objects_are_embedded_in_the_right_dimension(n, d, seed):
    X = np.random.default_rng([seed, n, d]).uniform(-1, 1, size=(n, d)) ** 3
    embedding = nearer.embed(nearer.PointOracle(X), n, random_state=seed, progress=False)
    assert embedding.dimension == d
    assert embedding.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_ties_it_goes_on_until_it_is_good(seed):
    rng, n, d = np.random.default_rng([seed, 1]), 60, 5
    X = 3 * rng.normal(size=(4, d))[rng.integers(4, size=n)] + rng.normal(size=(n, d))
    embedding = embed(X, random_state=seed)
    spent = embedding.n_comparisons >= 1.5 * n * embedding.dimension * np.log2(n) + 20 * n
    assert spent or embedding.details["expected_tau"] > 0.98
    assert embedding.dimension >= 4
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.95


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
def test_coincident_objects_have_one_position(n):
    embedding = embed(np.ones((n, 2)))
    assert np.ptp(embedding.positions) == 0
    assert embedding.dimension == 1
    assert embedding.n_comparisons <= 15 * n


@pytest.mark.parametrize(
    ("n", "n_places"), [(20, 3), (40, 5), pytest.param(60, 3, marks=pytest.mark.slow)]
)
def test_a_few_clusters_of_coincident_objects_stay_apart(n, n_places):
    rng = np.random.default_rng([n, n_places])
    at = rng.permutation(np.arange(n) % n_places)
    embedding = embed(rng.normal(size=(n_places, 2))[at])
    distance = np.linalg.norm(embedding.positions[:, None] - embedding.positions, axis=2)
    same = at[:, None] == at
    assert embedding.dimension <= 2
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
    embedding = embed(X)
    assert embedding.dimension == d
    assert embedding.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.9


@pytest.mark.parametrize("compare", [np.less, np.less_equal])
def test_ties_may_be_broken_by_the_order_of_questions(compare):
    X = grid(50, 5, 2)
    distance = np.linalg.norm(X[:, None] - X, axis=2)

    def oracle(questions):
        head, a, b = questions.T
        return compare(distance[head, a], distance[head, b])

    embedding = nearer.embed(oracle, 50, random_state=0, progress=False)
    assert embedding.dimension == 2
    assert embedding.n_comparisons <= 1.5 * 50 * 2 * np.log2(50) + 25 * 50


@pytest.mark.slow
def test_two_clusters_far_apart_keep_their_dimension():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    X[::2, 0] += 100
    embedding = embed(X)
    assert embedding.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.95


def test_a_line_is_one_dimensional():
    X = np.random.default_rng(6).random((100, 1))
    embedding = embed(X)
    assert embedding.dimension == 1
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.97


@settings(max_examples=4, deadline=None)
@given(n=st.integers(3, 25), seed=st.integers(0, 2**32 - 1))
def test_an_oracle_that_contradicts_itself_ends(n, seed):
    rng = np.random.default_rng(seed)
    strategy = nearer.adaptive(n, random_state=seed)
    result = nearer.run(strategy, lambda q: rng.random(len(q)) < 0.5)
    assert np.isfinite(result.positions).all()


def test_many_objects_are_placed_among_a_core(monkeypatch):
    monkeypatch.setattr("nearer.algorithms.adaptive.TOGETHER", 120)
    X = np.random.default_rng(8).random((240, 2))
    embedding = embed(X)
    assert embedding.dimension == 2
    assert embedding.history[-1].name == "place"
    assert (
        len(embedding.triplets)
        == embedding.n_comparisons
        <= 1.5 * 240 * 2 * np.log2(240) + 10 * 240
    )
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.97
    assert nearer.PointOracle(X)(embedding.triplets).all()
    part = embed(X, budget=1800)
    assert part.n_comparisons <= 1800
    assert np.isfinite(part.positions).all()


@pytest.mark.parametrize("together", [50, 3000], ids=["a core", "all"])
def test_answers_that_are_known_are_learned_and_not_asked_again(monkeypatch, together):
    monkeypatch.setattr("nearer.algorithms.adaptive.TOGETHER", together)
    X = np.random.default_rng(11).normal(size=(60, 2))
    exact = nearer.PointOracle(X)
    questions = random_questions(25, 600, np.random.default_rng(0))
    triplets = answered(questions, exact(questions))
    more = nearer.run(nearer.adaptive(60, known=triplets, random_state=0), exact)
    assert not np.isin(pack(more.triplets)[0], pack(triplets)[0]).any()
    assert more.predict(triplets).mean() > 0.95


def test_quality_is_what_comparisons_buy():
    X = np.random.default_rng(12).normal(size=(60, 2))
    embeddings = [embed(X, quality=quality) for quality in (0.9, 0.98, 0.995)]
    costs = [each.n_comparisons for each in embeddings]
    assert costs == sorted(costs)
    assert costs[-1] > 1.1 * costs[0]
    taus = [nearer.metrics.mean_kendall_tau(X, each.positions) for each in embeddings]
    assert taus[-1] > 0.99
    expected = [each.details["expected_tau"] for each in embeddings]
    assert np.abs(np.subtract(taus, expected)).max() < 0.05


def test_wrong_arguments_are_named():
    with pytest.raises(InvalidInput, match="n_objects=2"):
        nearer.adaptive(2)
    with pytest.raises(InvalidInput, match="budget=-1"):
        nearer.adaptive(5, budget=-1)


def test_progress_is_called(capsys):
    X = np.random.default_rng(9).random((20, 1))
    seen = []
    embedding = nearer.embed(nearer.PointOracle(X), 20, progress=lambda c, r: seen.append((c, r)))
    comparisons, rounds = zip(*seen, strict=True)
    assert rounds == tuple(range(1, len(seen) + 1))
    assert comparisons[-1] == embedding.n_comparisons
    assert all(a < b for a, b in pairwise(comparisons))
    nearer.embed(nearer.PointOracle(X), 20, random_state=0)
    assert capsys.readouterr() == ("", "")  # neither is a terminal


def test_plot(cube):
    assert cube[1].plot().collections
