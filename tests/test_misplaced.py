"""Objects on the wrong side, and how sure positions are."""

import tracemalloc

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput
from nearer.fitting.draws import bootstrap_covariances
from nearer.fitting.initial import fit_from_more_dimensions, mirrored, relocate
from nearer.fitting.solver import fit_positions, violated
from nearer.questions import answered, balanced_questions


def answers(X, m, seed=0):
    q = balanced_questions(len(X), m, np.random.default_rng(seed))
    return answered(q, nearer.PointOracle(X)(q)).astype(np.int32)


def test_the_place_taken_is_the_one_with_the_smallest_loss():
    """Against the slow way: every place of another object, one after the other."""
    rng = np.random.default_rng(0)
    X = 10 * rng.normal(size=(12, 2))
    T = answers(X, 200)
    X[4] = [40.0, 40.0]
    moved = relocate(X, T, violated(X, T), np.random.default_rng(0))
    mine = T[(T == 4).any(axis=1)]

    def loss(place):
        Y = X.copy()
        Y[4] = place
        slack = [1 + np.linalg.norm(Y[h] - Y[a]) - np.linalg.norm(Y[h] - Y[b]) for h, a, b in mine]
        return np.mean(np.maximum(slack, 0) ** 2)

    assert loss(moved[4]) <= min(loss(place) for place in np.delete(X, 4, axis=0)) + 1.0


def test_moving_an_object_takes_little_memory():
    n, m = 1500, 6000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    others = rng.permuted(np.tile(np.arange(1, n), (m, 1))[:, :2000], axis=1)[:, :2]
    T = np.column_stack([np.zeros(m, dtype=np.int32), others]).astype(np.int32)
    wrong = np.ones(m, dtype=bool)
    one = np.zeros(n, dtype=bool)
    one[0] = True
    T = T[:, [1, 0, 2]]  # object 0 is always the near one
    tracemalloc.start()
    relocate(X, T, wrong & one[T[:, 1]], rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


def test_an_object_thrown_far_away_is_brought_back():
    X = 10 * np.random.default_rng(0).normal(size=(40, 2))
    T = answers(X, 3000)
    wrong_place = X.copy()
    wrong_place[7] = -3 * X[7]
    moved = relocate(wrong_place, T, violated(wrong_place, T), np.random.default_rng(0))
    assert np.linalg.norm(moved[7] - X[7]) < 0.5 * np.linalg.norm(wrong_place[7] - X[7])
    assert violated(moved, T).sum() < violated(wrong_place, T).sum()


def test_mirror_images_keep_the_distances_to_the_heads_of_the_plane():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    heads = [0, 1, 2]
    q = np.array([[h, a, b] for h in heads for a, b in rng.integers(3, 30, (60, 2)) if a != b])
    T = answered(q, nearer.PointOracle(X)(q)).astype(np.int32)
    wrong = np.zeros(len(T), dtype=bool)
    wrong[:5] = True
    images = list(mirrored(X, T, wrong, rng))
    assert images
    for image in images:
        (changed,) = np.flatnonzero((image != X).any(axis=1))
        before = np.linalg.norm(X[changed] - X[heads], axis=1)
        np.testing.assert_allclose(np.linalg.norm(image[changed] - X[heads], axis=1), before)


def test_positions_that_obey_everything_have_loss_zero():
    X = np.random.default_rng(3).normal(size=(60, 2))
    T = answers(X, 6000)
    fit = fit_from_more_dimensions(T, 60, 2, rng=np.random.default_rng(0))
    assert not violated(fit.positions, T).any()
    assert fit.loss == 0


def test_more_answers_make_positions_surer():
    X = np.random.default_rng(0).normal(size=(25, 2))
    spreads = []
    for m in (1500, 12_000):
        q = balanced_questions(25, m, np.random.default_rng(1))
        noisy = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=0)
        T = answered(q, noisy(q))
        found = fit_positions(T, 25, 2, loss="logistic", rng=np.random.default_rng(0)).positions

        def refit(weights, start, T=T):
            return fit_positions(T, 25, start=start, weights=weights, loss="logistic").positions

        C = bootstrap_covariances(found, T, refit, n_draws=10, rng=np.random.default_rng(0))
        assert (np.linalg.eigvalsh(C) > -1e-12).all()
        spreads.append(np.trace(C.mean(axis=0)) / found.var())
    assert spreads[1] < spreads[0]
    with pytest.raises(InvalidInput, match="n_draws=1"):
        bootstrap_covariances(found, T, refit, n_draws=1, rng=np.random.default_rng(0))
