"""`nearer.adaptive`, its plan, and the friendly door."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearer
from nearer.errors import InvalidInput
from nearer.questions import pack


def embed(X, **options):
    options = {"random_state": 0, "progress": False, "noise": 0} | options
    return nearer.embed(nearer.PointOracle(X), len(X), **options)


@pytest.fixture(scope="module")
def cube():
    X = np.random.default_rng(1).random((300, 3))
    return X, embed(X)


@pytest.mark.slow
def test_the_dimension_and_the_positions_are_right(cube):
    X, found = cube
    assert found.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.985
    assert nearer.metrics.knn_precision(X, found.positions) > 0.95
    assert found.n_comparisons <= 1.7 * 300 * 3 * np.log2(300)


def test_everything_paid_for_is_accounted_for(cube):
    X, found = cube
    assert len(found.triplets) == found.n_comparisons
    assert sum(phase.n_comparisons for phase in found.history) == found.n_comparisons
    assert sum(phase.n_rounds for phase in found.history) == found.n_rounds
    head, near, far = found.triplets.T
    assert nearer.PointOracle(X)(np.stack([head, near, far], axis=1)).all()
    packed = nearer.asking.Memory(found.triplets)
    assert len(packed) == found.n_comparisons, "a question was asked twice"


def test_the_evidence_shows_why_not_fewer_dimensions(cube):
    evidence = cube[1].evidence
    assert evidence[2]["loss"] > 0.3
    assert evidence[3]["predicted"] > 0.93


def test_predict_answers_as_the_points_do(cube):
    X, found = cube
    rng = np.random.default_rng(2)
    questions = np.stack([rng.permutation(300)[:3] for _ in range(2000)])
    assert (found.predict(questions) == nearer.PointOracle(X)(questions)).mean() > 0.98


def test_the_same_seed_gives_the_same_run():
    X = np.random.default_rng(3).random((60, 2))
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


@pytest.mark.parametrize("budget", [0, 1, 7, 50, 400, 1500, 3000])
def test_a_budget_is_kept_and_always_gives_an_embedding(budget):
    X = np.random.default_rng(4).random((80, 2))
    found = embed(X, budget=budget)
    assert found.n_comparisons <= budget
    assert len(found.positions) == 80
    assert np.isfinite(found.positions).all()


def test_a_budget_set_from_outside_is_kept_too():
    X = np.random.default_rng(4).random((80, 2))
    strategy = nearer.adaptive(80, random_state=0)
    found = nearer.run(strategy, nearer.PointOracle(X), budget=700)
    assert found.n_comparisons == 700


def test_more_budget_is_better():
    X = np.random.default_rng(5).random((150, 3))
    tau = [
        nearer.metrics.mean_kendall_tau(X, embed(X, budget=budget).positions)
        for budget in (1500, 4000)
    ]
    assert 0.5 < tau[0] < tau[1]


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


def test_few_places_are_found_with_few_questions():
    two = nearer.datasets.make_sphere(600, 1, random_state=3)  # −1 and 1
    found = embed(two)
    assert found.dimension == 1
    assert found.n_comparisons < 600 * np.log2(600)
    assert abs(np.corrcoef(found.positions[:, 0], two[:, 0])[0, 1]) > 0.999
    assert np.ptp(embed(np.zeros((300, 2))).positions) == 0


@pytest.mark.parametrize(("n", "n_places"), [(14, 2), (18, 2), (15, 3), (20, 3)])
def test_few_objects_may_share_few_places(n, n_places):
    rng = np.random.default_rng([n, n_places])
    at = rng.permutation(np.arange(n) % n_places)
    found = embed(rng.normal(size=(n_places, 2))[at])
    assert len(np.unique(found.positions, axis=0)) == n_places
    assert len(np.unique(np.column_stack([at, found.positions]), axis=0)) == n_places


@pytest.mark.parametrize("n_places", [1, 2])
def test_many_objects_may_share_few_places(n_places):
    X = np.random.default_rng(4).integers(n_places, size=(3500, 1)) * 2.0
    found = nearer.embed(nearer.PointOracle(X), 3480, random_state=0, progress=False)
    placed = found.place(nearer.PointOracle(X), np.arange(3480, 3500))
    all_of_them = np.concatenate([found.positions, placed.positions])
    assert len(np.unique(all_of_them.round())) == n_places
    if n_places > 1:
        assert abs(np.corrcoef(all_of_them[:, 0], X[:, 0])[0, 1]) > 0.999


def test_near_ties_show_a_dimension_that_few_objects_fill():
    X = np.hstack([np.random.default_rng(8).normal(size=(120, 2)), np.zeros((120, 1))])
    X[::8, 2] = 3 * np.random.default_rng(9).normal(size=15)  # few leave the plane
    found = embed(X)
    assert found.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97


@pytest.mark.parametrize(("n", "d"), [(20, 1), (30, 2), (40, 3), (60, 5)])
def test_few_objects_are_embedded_in_the_right_dimension(n, d):
    for seed in range(3):
        X = np.random.default_rng([seed, n, d]).uniform(-1, 1, size=(n, d)) ** 3
        found = nearer.embed(nearer.PointOracle(X), n, random_state=seed, progress=False)
        assert found.dimension == d
        assert found.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
        assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_without_ties_it_goes_on_until_it_is_good(seed):
    rng, n, d = np.random.default_rng([seed, 1]), 60, 5
    X = 3 * rng.normal(size=(4, d))[rng.integers(4, size=n)] + rng.normal(size=(n, d))
    found = embed(X, random_state=seed)
    spent = found.n_comparisons >= 1.5 * n * found.dimension * np.log2(n) + 20 * n
    assert spent or found.details["expected_tau"] > 0.98
    assert found.dimension >= 4
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.95


def test_ties_cost_no_dimensions():
    X = np.random.default_rng(0).normal(size=(80, 2)).round(1)
    found = embed(X)
    assert found.dimension == 2
    assert found.n_comparisons <= 1.5 * 80 * 2 * np.log2(80) + 25 * 80
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.95


@pytest.mark.parametrize(
    ("X", "places", "d"),
    [
        (np.ones((12, 2)), 1, 1),
        (np.repeat(np.random.default_rng(5).normal(size=(3, 2)), 10, axis=0), 3, 2),
        (np.random.default_rng(1).integers(0, 30, size=(40, 1)) * 1.0, None, 1),
        (np.random.default_rng(2).integers(0, 8, size=(60, 2)) * 1.0, None, 2),
    ],
    ids=["one place", "three places", "a line", "a grid"],
)
def test_equal_distances_cost_neither_dimensions_nor_comparisons(X, places, d):
    n = len(X)
    found = nearer.embed(nearer.PointOracle(X), n, random_state=0, progress=False)
    assert found.dimension <= d
    assert found.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
    if places is not None:
        assert len(np.unique(found.positions, axis=0)) == places
        shared = (X[:, None] == X).all(axis=2)
        np.testing.assert_array_equal(
            (found.positions[:, None] == found.positions).all(axis=2), shared
        )


def grid(n, k, d, seed=0):
    return np.random.default_rng([n, k, seed]).integers(k, size=(n, d)).astype(float)


@pytest.mark.parametrize(
    ("X", "d"),
    [
        (grid(200, 5, 2), 2),
        (grid(300, 10, 2), 2),
        (grid(200, 3, 3), 3),
        (grid(300, 20, 1), 1),
        (np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), -1).reshape(-1, 2), 2),
    ],
    ids=["25 places", "100 places", "27 places", "a line", "a lattice"],
)
def test_a_rule_for_ties_is_no_dimension(X, d):
    n = len(X)
    X = X[np.random.default_rng(1).permutation(n)]
    found = embed(X)
    assert found.dimension == d
    assert found.n_comparisons <= 1.5 * n * d * np.log2(n) + 25 * n
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.9


@pytest.mark.parametrize("compare", [np.less, np.less_equal])
def test_ties_may_go_by_the_order_of_asking(compare):
    X = grid(150, 6, 2)
    distance = np.linalg.norm(X[:, None] - X, axis=2)

    def oracle(questions):
        head, a, b = questions.T
        return compare(distance[head, a], distance[head, b])

    found = nearer.embed(oracle, 150, random_state=0, progress=False, noise=0)
    assert found.dimension == 2
    assert found.n_comparisons <= 1.5 * 150 * 2 * np.log2(150) + 25 * 150


@pytest.mark.parametrize("seed", range(8))
def test_nobody_far_out_is_taken_for_a_twin(seed):
    rng = np.random.default_rng([60, seed])
    X = rng.normal(size=(40, 2))
    X = rng.permutation(np.concatenate([X, X[:20]]))  # half of them twice
    found = embed(X)
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    P = found.positions
    together = np.linalg.norm(P[:, None] - P, axis=2) == 0
    assert found.dimension == 2
    assert distance[together].max() < 0.5
    assert found.n_comparisons <= 1.5 * 60 * 2 * np.log2(60) + 25 * 60


def test_more_objects_than_are_fitted_together_share_places():
    X = grid(3300, 5, 2)
    found = embed(X)
    assert found.dimension == 2
    assert found.n_comparisons <= 1.5 * 3300 * 2 * np.log2(3300)
    some = np.random.default_rng(0).permutation(3300)[:200]
    assert nearer.metrics.mean_kendall_tau(X[some], found.positions[some]) > 0.9


def test_the_range_of_dimensions_says_what_answers_leave_possible():
    rng = np.random.default_rng(3)
    enough = embed(rng.normal(size=(40, 2)))
    assert (enough.dimension_low, enough.dimension_high, enough.determined) == (2, 2, True)
    assert enough.evidence[1]["disobeyed"] > 0.015  # one dimension is refuted
    for n, d in ((5, 3), (8, 4), (10, 4)):  # few objects may fit in fewer dimensions
        few = embed(rng.normal(size=(n, d)))
        assert few.dimension_low <= d <= few.dimension_high
        assert not few.determined
    unknown = embed(rng.normal(size=(60, 2)), budget=100)
    assert (unknown.dimension_low, unknown.dimension_high) == (1, 59)
    assert not unknown.determined


def test_two_clusters_far_apart_keep_their_dimension():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    X[::2, 0] += 100
    found = embed(X)
    assert found.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.95


@pytest.mark.slow
def test_few_rounds_where_rounds_count():
    spent = []
    for seed in range(3):
        X = np.random.default_rng(10 + seed).normal(size=(200, 3))
        few, most = embed(X, order="fewest-rounds"), embed(X)
        assert few.n_rounds <= 120 < most.n_rounds
        spent.append((few.n_comparisons, most.n_comparisons))
    assert np.divide(*np.sum(spent, axis=0)) <= 1.15
    assert few.dimension == 3
    assert nearer.metrics.mean_kendall_tau(X, few.positions) > 0.985


def test_a_line_is_one_dimensional():
    X = np.random.default_rng(6).random((100, 1))
    found = embed(X)
    assert found.dimension == 1
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97


@settings(max_examples=5, deadline=None)
@given(n=st.integers(3, 40), seed=st.integers(0, 2**32 - 1))
def test_an_oracle_that_contradicts_itself_ends(n, seed):
    rng = np.random.default_rng(seed)
    strategy = nearer.adaptive(n, random_state=seed)
    found = nearer.run(strategy, lambda q: rng.random(len(q)) < 0.5)
    assert np.isfinite(found.positions).all()


def test_data_without_a_dimension_is_embedded_by_prediction():
    X = np.random.default_rng(7).normal(size=(120, 60))
    found = embed(X)
    assert [phase.name for phase in found.history] == ["frame", "random", "detail"]
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.45


def test_a_frame_that_its_own_detail_refutes_is_given_up(monkeypatch):
    rng = np.random.default_rng([2, 130, 8, 0])
    X = 3 * rng.normal(size=(4, 8))[rng.integers(4, size=130)] + rng.normal(size=(130, 8))
    # as if the six dimensions that rankings show of these eight were very many
    monkeypatch.setattr("nearer.algorithms.low_dimensional._IN_SIGHT", 1)
    monkeypatch.setattr("nearer.algorithms.obeying._REFUTED", 1)
    embedding = nearer.run(nearer.adaptive(130, random_state=0), nearer.PointOracle(X))
    phases = {phase.name: phase.note for phase in embedding.history}
    assert list(phases) == ["frame", "frame detail", "random", "detail"]
    assert "and one more answers are disobeyed" in phases["frame detail"]
    assert sum(phase.n_comparisons for phase in embedding.history) == embedding.n_comparisons


def test_many_objects_are_placed_among_a_core(monkeypatch):
    monkeypatch.setattr("nearer.algorithms.adaptive._TOGETHER", 200)
    monkeypatch.setattr("nearer.algorithms.adaptive._CORE", 150)
    X = np.random.default_rng(8).random((600, 2))
    found = embed(X)
    assert found.dimension == 2
    assert found.history[-1].name == "place"
    assert len(found.triplets) == found.n_comparisons <= 1.5 * 600 * 2 * np.log2(600)
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97
    assert nearer.PointOracle(X)(found.triplets).all()
    part = embed(X, budget=5000)
    assert part.n_comparisons <= 5000
    assert np.isfinite(part.positions).all()


def test_what_others_are_placed_in_is_better_than_all_need_be(monkeypatch):
    X = np.random.default_rng(5).random((400, 2))
    alone = embed(X, quality=0.985)
    monkeypatch.setattr("nearer.algorithms.adaptive._TOGETHER", 399)
    monkeypatch.setattr("nearer.algorithms.adaptive._CORE", 390)
    core = embed(X, quality=0.985)
    asked = [
        next(phase.n_comparisons for phase in found.history if phase.name == "detail")
        for found in (alone, core)
    ]
    assert asked[1] > 1.3 * asked[0]


@pytest.mark.parametrize("together", [100, 3000], ids=["a core", "all"])
def test_answers_that_are_known_are_learned_and_not_asked_again(monkeypatch, together):
    monkeypatch.setattr("nearer.algorithms.adaptive._TOGETHER", together)
    monkeypatch.setattr("nearer.algorithms.adaptive._CORE", min(together, 300))
    X = np.random.default_rng(11).normal(size=(300, 2))
    exact = nearer.PointOracle(X)
    check = nearer.run(nearer.algorithms.detect_noise(300, n_cycles=20, random_state=0), exact)
    nothing = nearer.adaptive(300, budget=0, known=check.triplets, random_state=0)
    found = nearer.run(nothing, exact)
    assert found.n_comparisons == 0
    assert found.predict(check.triplets).mean() > 0.9  # they are all that is known
    more = nearer.run(nearer.adaptive(300, known=check.triplets, random_state=0), exact)
    assert not np.isin(pack(more.triplets)[0], pack(check.triplets)[0]).any()
    assert more.predict(check.triplets).mean() > 0.98


def test_quality_is_what_comparisons_buy():
    X = np.random.default_rng(12).normal(size=(150, 2))
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
    with pytest.raises(InvalidInput, match="order='guided'"):
        nearer.adaptive(5, order="guided")


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
