"""Measures of an embedding against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau

from nearer import metrics
from nearer.errors import InvalidInput

seeds = st.integers(0, 2**32 - 1)


def pair(seed=0, n=60, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, :2] + noise * rng.normal(size=(n, 2))


def test_mean_kendall_tau_by_its_definition():
    X, Y = pair()
    taus = []
    for head in range(60):
        others = np.arange(60) != head
        taus.append(kendalltau(cdist(X, X)[head, others], cdist(Y, Y)[head, others]).statistic)
    assert metrics.mean_kendall_tau(X, Y) == pytest.approx(np.mean(taus))
    D = cdist(X, X)
    assert metrics.mean_kendall_tau(D, Y, metric="precomputed") == pytest.approx(np.mean(taus))


def test_knn_precision_by_its_definition():
    X, Y = pair()
    shares = []
    for head in range(60):
        near = [np.argsort(cdist(Z, Z)[head])[1:7].tolist() for Z in (X, Y)]
        shares.append(len(set(near[0]) & set(near[1])) / 6)
    assert metrics.knn_precision(X, Y) == pytest.approx(np.mean(shares))
    assert metrics.knn_precision(X, Y, k=59) == 1


def test_any_of_several_true_neighbours_at_the_same_distance_counts():
    X = np.array([[0.0], [1.0], [1.0], [1.0], [9.0]])
    Y = np.array([[0.0], [3.0], [1.6], [2.0], [9.0]])
    assert metrics.knn_precision(X, Y, k=1) == 1


def test_distance_rmse_by_its_definition():
    X, Y = pair()
    upper = np.triu_indices(60, 1)
    d, e = cdist(X, X)[upper], cdist(Y, Y)[upper]
    scale = (d @ e) / (e @ e)
    assert metrics.distance_rmse(X, Y) == pytest.approx(np.sqrt(np.mean((d - scale * e) ** 2)))
    assert metrics.distance_rmse(X, np.zeros((60, 2))) == pytest.approx(np.sqrt(np.mean(d**2)))


@given(seeds)
def test_turning_moving_and_scaling_an_embedding_changes_no_measure(seed):
    rng = np.random.default_rng(seed)
    X, Y = pair(seed, n=20)
    turn, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    Z = 3 * Y @ turn + 1
    for measure in (metrics.mean_kendall_tau, metrics.knn_precision, metrics.distance_rmse):
        assert measure(X, Y) == pytest.approx(measure(X, Z))
    assert metrics.procrustes(X, Y).disparity == pytest.approx(metrics.procrustes(X, Z).disparity)


@pytest.mark.parametrize("measure", [metrics.mean_kendall_tau, metrics.knn_precision])
def test_a_sample_of_heads_estimates_the_mean_over_all(measure):
    X, Y = pair(n=800)
    assert measure(X, Y, n_heads=100, random_state=1) == pytest.approx(measure(X, Y), abs=0.03)


@pytest.mark.slow
def test_many_objects_take_a_sample_by_themselves():
    X, Y = pair(n=5001)
    some, others = (metrics.mean_kendall_tau(X, Y, random_state=seed) for seed in range(2))
    assert some != others
    assert some == pytest.approx(others, abs=0.02)


def test_triplet_accuracy():
    Y = np.array([[0.0], [1.0], [3.0]])
    assert metrics.triplet_accuracy([[0, 1, 2], [2, 1, 0], [1, 2, 0]], Y) == pytest.approx(2 / 3)
    with pytest.raises(InvalidInput, match=r"\[0, 1, 3\]: objects must be from 0 to 2"):
        metrics.triplet_accuracy([[0, 1, 3]], Y)
    with pytest.raises(InvalidInput, match="shape"):
        metrics.triplet_accuracy(np.empty((0, 3), int), Y)


def test_procrustes_fills_up_dimensions_and_mirrors():
    X, _ = pair()
    fit = metrics.procrustes(X[:, :2] * [1, 1], -2 * np.c_[X[:, 1], X[:, 0], np.zeros(60)])
    np.testing.assert_allclose(fit.aligned[:, :2], X[:, :2], atol=1e-9)
    assert metrics.procrustes(X, np.zeros((60, 1))).disparity == 1
    with pytest.raises(InvalidInput, match="as many"):
        metrics.procrustes(X, X[1:])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: metrics.mean_kendall_tau(X, X[1:]), "as many"),
        (lambda X: metrics.mean_kendall_tau(X[:2], X[:2]), "at least 3"),
        (lambda X: metrics.knn_precision(X, X, k=0), "k=0"),
        (lambda X: metrics.knn_precision(X, X, k=60), "k=60"),
        (lambda X: metrics.mean_kendall_tau(X, X, n_heads=0), "n_heads=0"),
        (lambda X: metrics.distance_rmse(X, X + np.nan), "nan"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInput, match=message):
        call(pair()[0])


def test_all_equal_counts_nothing():
    X, _ = pair()
    assert metrics.mean_kendall_tau(X, np.zeros((60, 2))) == 0
