"""Fits that expect noise: what they estimate, and that they beat fits that believe everything."""

import numpy as np
import pytest

import nearer
from nearer.fitting.losses import Loss
from nearer.fitting.noise import Setting, calibrate, fit_noisy


def noisy_triplets(X, m, flip, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    near = nearer.PointOracle(X)(rows) ^ (rng.random(m) < flip)
    return np.where(near[:, None], rows, rows[:, [0, 2, 1]])


@pytest.fixture(scope="module")
def flipped():
    X = np.random.default_rng(0).normal(size=(60, 2))
    triplets = noisy_triplets(X, 5000, 0.15)
    return X, triplets, fit_noisy(triplets, 60, 2, rng=np.random.default_rng(0))


def test_flip_rate_is_estimated(flipped):
    assert flipped[2].calibration.lapse == pytest.approx(0.15, abs=0.03)


def test_noise_is_not_believed(flipped):
    X, triplets, fit = flipped
    with pytest.warns(nearer.errors.AnswersWarning, match="both answers"):
        believer = nearer.SOE(2, init="random", random_state=0, n_objects=60).fit(triplets)
    ours = nearer.metrics.mean_kendall_tau(X, fit.positions)
    assert ours > 0.9
    assert ours > nearer.metrics.mean_kendall_tau(X, believer.embedding_)


def test_probabilities_are_calibrated(flipped):
    X, _, fit = flipped
    unseen = noisy_triplets(X, 5000, 0.15, seed=9)
    p = fit.probability(unseen)
    said = np.maximum(p, 1 - p)
    right = p > 0.5
    for low in (0.5, 0.6, 0.7, 0.8):
        inside = (said >= low) & (said < low + 0.1)
        if inside.sum() > 200:
            assert right[inside].mean() == pytest.approx(said[inside].mean(), abs=0.06)


def test_chance_answers_are_recognised():
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(20, 3, replace=False) for _ in range(2000)])
    fit = fit_noisy(rows, 20, 2, rng=rng)
    assert fit.calibration.log_loss > 0.68
    assert abs(fit.probability(rows[:50]) - 0.5).max() < 0.15


def test_calibration_recovers_sharpness_and_lapse():
    rng = np.random.default_rng(0)
    odds = np.abs(rng.normal(size=20_000)) * 2
    p = 0.1 + 0.8 / (1 + np.exp(-3 * odds))
    signed = np.where(rng.random(20_000) < p, odds, -odds)
    found = calibrate(signed)
    assert found.sharpness == pytest.approx(3, rel=0.2)
    assert found.lapse == pytest.approx(0.1, abs=0.02)


def test_a_fixed_setting_is_used():
    X = np.random.default_rng(0).normal(size=(20, 1))
    setting = Setting(Loss("tste", 3.0), 2.0)
    fit = fit_noisy(
        noisy_triplets(X, 300, 0.1), 20, 1, setting=setting, rng=np.random.default_rng(0)
    )
    assert fit.setting == setting
