"""Objects on the wrong side, and how sure positions are."""

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput
from nearer.fitting.bootstrap import bootstrap_covariances
from nearer.fitting.misplaced import _loss_at, mirrored, relocate
from nearer.fitting.solver import disobeyed, fit_positions
from nearer.fitting.starts import fit_from_above
from nearer.questions import answered, balanced_questions


def answers(X, m, seed=0):
    q = balanced_questions(len(X), m, np.random.default_rng(seed))
    return answered(q, nearer.PointOracle(X)(q)).astype(np.int32)


def test_the_loss_at_other_places_against_the_slow_way():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    T = answers(X, 100)
    mine = T[(T == 4).any(axis=1)]
    places = rng.normal(size=(5, 2))
    for place, loss in zip(places, _loss_at(places, X, mine, 4), strict=True):
        Y = X.copy()
        Y[4] = place
        slack = [1 + np.linalg.norm(Y[h] - Y[a]) - np.linalg.norm(Y[h] - Y[b]) for h, a, b in mine]
        assert loss == pytest.approx(np.mean(np.maximum(slack, 0) ** 2))


def test_an_object_thrown_far_away_is_brought_back():
    X = 10 * np.random.default_rng(0).normal(size=(40, 2))
    T = answers(X, 3000)
    wrong_place = X.copy()
    wrong_place[7] = -3 * X[7]
    moved = relocate(wrong_place, T, disobeyed(wrong_place, T), np.random.default_rng(0))
    assert np.linalg.norm(moved[7] - X[7]) < 0.5 * np.linalg.norm(wrong_place[7] - X[7])
    assert disobeyed(moved, T).sum() < disobeyed(wrong_place, T).sum()


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
    fit = fit_from_above(T, 60, 2, rng=np.random.default_rng(0))
    assert not disobeyed(fit.positions, T).any()
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
