"""Oracles: right answers, ties, records, noise, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.spatial.distance import cdist

import nearer
from nearer.errors import ContradictoryAnswers, InvalidInput, MissingAnswer
from nearer.questions import random_questions

RNG = np.random.default_rng(0)


def all_questions(n):
    h, a, b = np.meshgrid(*[np.arange(n)] * 3, indexing="ij")
    rows = np.stack([h.ravel(), a.ravel(), b.ravel()], axis=1)
    return rows[(h.ravel() != a.ravel()) & (h.ravel() != b.ravel()) & (a.ravel() != b.ravel())]


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "chebyshev"])
@pytest.mark.parametrize("dimension", [1, 3, 40])
def test_answers_follow_the_metric(metric, dimension):

    X = RNG.normal(size=(12, dimension))
    D = cdist(X, X, metric)
    np.fill_diagonal(D, 0)
    q = all_questions(12)
    clear = np.abs(D[q[:, 0], q[:, 1]] - D[q[:, 0], q[:, 2]]) > 1e-9
    answers = nearer.PointOracle(X, metric)(q)
    np.testing.assert_array_equal(
        answers[clear], (D[q[:, 0], q[:, 1]] < D[q[:, 0], q[:, 2]])[clear]
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_points_answer_like_dense_ones(metric):
    X = sparse.random_array((30, 50), density=0.3, random_state=0)
    dense = X.toarray() + 0.0
    q = random_questions(30, 500, RNG)
    D = nearer.distances.Distances(dense, metric)
    clear = np.abs(D.between(q[:, 0], q[:, 1]) - D.between(q[:, 0], q[:, 2])) > 1e-9
    np.testing.assert_array_equal(
        nearer.PointOracle(X, metric)(q)[clear], nearer.PointOracle(dense, metric)(q)[clear]
    )


@pytest.mark.parametrize("dimension", [2, 40])
def test_distances_of_pairs_are_those_of_rows(dimension):
    X = RNG.normal(size=(30, dimension))
    heads, others = RNG.integers(30, size=(2, 200))
    of_pairs = nearer.distances.Distances(X).between(heads, others)
    np.testing.assert_allclose(of_pairs, cdist(X, X)[heads, others], rtol=1e-12, atol=1e-15)


def test_a_callable_metric():
    oracle = nearer.PointOracle(np.array([[0.0], [1.0], [-3.0]]), lambda x, y: abs(y[0] - x[0]))
    assert oracle(np.array([[0, 1, 2]])).tolist() == [True]


points_with_ties = hnp.arrays(
    np.float64, st.tuples(st.integers(3, 9), st.integers(1, 2)), elements=st.integers(0, 2)
)


@given(points_with_ties)
def test_ties_make_a_total_order_from_every_head(X):
    n = len(X)
    oracle = nearer.PointOracle(X)
    for head in range(n):
        nearer_than = np.zeros((n, n), dtype=bool)
        q = all_questions(n)
        q = q[q[:, 0] == head]
        nearer_than[q[:, 1], q[:, 2]] = oracle(q)
        others = np.delete(np.arange(n), head)
        nearer_than = nearer_than[np.ix_(others, others)]
        assert (nearer_than ^ nearer_than.T | np.eye(n - 1, dtype=bool)).all()
        # a total order: numbers of objects behind each one are all different
        assert sorted(nearer_than.sum(axis=1).tolist()) == list(range(n - 1))


@pytest.mark.parametrize("dimension", [3, 30])
def test_an_answer_does_not_depend_on_its_company(dimension):
    X = np.round(RNG.normal(size=(50, dimension)), 1)
    oracle = nearer.PointOracle(X)
    q = random_questions(50, 300, RNG)
    together = oracle(q)
    alone = np.concatenate([nearer.PointOracle(X)(row[None]) for row in q])
    np.testing.assert_array_equal(together, alone)


def test_distances_need_not_be_symmetric():
    D = np.array([[0, 1, 2], [9, 0, 3], [1, 2, 0]])
    oracle = nearer.DistanceOracle(D)
    assert oracle(np.array([[1, 0, 2], [0, 1, 2]])).tolist() == [False, True]


@pytest.mark.parametrize(
    ("X", "metric", "message"),
    [
        ([[0.0, np.nan], [1, 2], [3, 4]], "euclidean", r"points\[0, 1\] = nan"),
        ([[0.0, 1], [1, np.inf], [3, 4]], "euclidean", r"points\[1, 1\] = inf"),
        ([[1, 2], [3]], "euclidean", "equal length"),
        ([["a", "b"]], "euclidean", "numbers"),
        (np.zeros((2, 2, 2)), "euclidean", "shape"),
        (np.zeros((3, 2)), "precomputed", "square"),
        (np.zeros((3, 2)), "nonsense", "nonsense"),
        (sparse.eye_array(3), "cityblock", "sparse"),
    ],
)
def test_unusable_points_are_named(X, metric, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.PointOracle(X, metric)


@pytest.mark.parametrize("bad", [[0, -1, 2], [0, 1, 9], [1, 1, 2], [0, 2, 2], [0, 1, 2, -1]])
def test_a_question_about_no_object_or_one_object_twice_is_named(bad):
    people = nearer.asking.PsychometricOracle(np.arange(9.0), scale=1)
    for oracle in (nearer.PointOracle(np.arange(9.0)), people):
        with pytest.raises(InvalidInput, match=rf"question 1 is \[{str(bad)[1:-1]}\]"):
            oracle(np.array([list(range(len(bad))), bad]))


def test_a_missing_answer_names_the_question():
    oracle = nearer.RecordedOracle([[0, 1, 2]])
    with pytest.raises(MissingAnswer, match=r"1 of 2 questions.*head=5, a=6, b=7"):
        oracle(np.array([[0, 1, 2], [5, 6, 7]]))


def test_a_contradictory_record_is_refused():
    with pytest.raises(ContradictoryAnswers, match=r"= \(0, 2, 1\)"):
        nearer.RecordedOracle([[0, 1, 2], [0, 2, 1], [0, 1, 2]])


@pytest.mark.parametrize("bad", [[[0, 1]], [0, 1, 2], [[0.5, 1, 2]]])
def test_a_record_of_another_shape_is_refused(bad):
    with pytest.raises(InvalidInput, match=r"head, near, far|whole numbers"):
        nearer.RecordedOracle(bad)


def test_noise_has_its_rate_and_its_seed():
    oracle = nearer.PointOracle(RNG.normal(size=(200, 2)))
    q = random_questions(200, 20_000, RNG)
    truth = oracle(q)
    for noise in ("fixed", "fresh"):
        noisy = nearer.NoisyOracle(oracle, 0.2, noise=noise, random_state=1)
        assert abs(np.mean(noisy(q) != truth) - 0.2) < 0.015
        same = nearer.NoisyOracle(oracle, 0.2, noise=noise, random_state=1)
        other = nearer.NoisyOracle(oracle, 0.2, noise=noise, random_state=2)
        first = nearer.NoisyOracle(oracle, 0.2, noise=noise, random_state=1)(q)
        np.testing.assert_array_equal(same(q), first)
        assert (other(q) != first).any()


def test_fixed_noise_is_one_answer_a_question_fresh_noise_is_not():
    oracle = nearer.PointOracle(RNG.normal(size=(50, 2)))
    q = all_questions(50)[:3000]
    fixed = nearer.NoisyOracle(oracle, 0.3, random_state=0)
    np.testing.assert_array_equal(fixed(q), fixed(q[::-1])[::-1])
    np.testing.assert_array_equal(fixed(q), ~fixed(q[:, [0, 2, 1]]))
    fresh = nearer.NoisyOracle(oracle, 0.3, noise="fresh", random_state=0)
    assert (fresh(q) != fresh(q)).any()


@pytest.mark.parametrize("options", [{"flip": 1.5}, {"flip": -0.1}, {"flip": 0.1, "noise": "x"}])
def test_noise_out_of_range_is_refused(options):
    with pytest.raises(InvalidInput):
        nearer.NoisyOracle(lambda q: q[:, 0] > 0, **options)
