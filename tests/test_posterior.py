"""The noise-aware fit: kernels, covariances, held-out tuning, people, calibration."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

import nearer
from benchmarks.harness import calibration_error
from nearer._kernels import comparisons as kernel
from nearer.fitting.belief import Belief
from nearer.fitting.heldout import Tuned, fit_curve, hold_out, tune
from nearer.fitting.likelihood import Curve, Noise, PredictedMargins, as_answers, moderate
from nearer.fitting.posterior import fit_posterior, near_questions
from nearer.questions import answered, random_questions


def answers(X, m, oracle=None, seed=0):
    questions = random_questions(len(X), m, np.random.default_rng(seed))
    return answered(questions, (oracle or nearer.PointOracle(X))(questions))


def counted(distance, tail):
    return (tail + 1) / 2 * np.log1p(distance**2 / tail) if tail else distance


def margin(X, question, tail):
    h, a, b = (X[i] for i in question)
    return counted(np.linalg.norm(h - b), tail) - counted(np.linalg.norm(h - a), tail)


def margin_gradients(X, question, tail, step=1e-6):
    """Slow code: differences, object by object."""
    gradients = []
    for i in question:
        g = np.zeros(X.shape[1])
        for k in range(X.shape[1]):
            up, down = X.copy(), X.copy()
            up[i, k] += step
            down[i, k] -= step
            g[k] = (margin(up, question, tail) - margin(down, question, tail)) / (2 * step)
        gradients.append(g)
    return gradients


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from([0.0, 1.0, 5.0]),
)
def test_kernels_against_slow_code(seed, d, lapse, tail):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, d))
    questions = random_questions(6, 15, rng)
    weights = rng.random(15)
    root = rng.normal(size=(6, d, d))
    covariances = root @ root.transpose(0, 2, 1)
    blocks = np.zeros((6, d, d))
    mean, variance = kernel.margins(X, covariances, questions, tail)
    for row, question in enumerate(questions):
        t, gradients = margin(X, question, tail), margin_gradients(X, question, tail)
        p = lapse + (1 - 2 * lapse) * expit(t)
        slope = (1 - 2 * lapse) * expit(t) * expit(-t)
        expected = sum(g @ covariances[i] @ g for i, g in zip(question, gradients, strict=True))
        assert mean[row] == pytest.approx(t)
        assert variance[row] == pytest.approx(expected, rel=1e-4, abs=1e-8)
        for i, g in zip(question, gradients, strict=True):
            blocks[i] += weights[row] * slope**2 / (p * (1 - p)) * np.outer(g, g)
    information = kernel.information(X, questions, weights, lapse, tail)
    np.testing.assert_allclose(information, blocks, rtol=1e-4, atol=1e-8)


def test_repeated_answers_become_weights():
    evidence = as_answers([[0, 1, 2], [0, 1, 2], [0, 2, 1]], 3)
    assert sorted(evidence.weights) == [1, 2]
    assert len(np.unique(evidence.group)) == 1
    once = as_answers([[0, 1, 2], [0, 2, 1]], 3, weights=[2, 1])
    np.testing.assert_array_equal(once.triplets, evidence.triplets)
    np.testing.assert_array_equal(once.weights, evidence.weights)


def test_covariances_shrink_with_answers_and_stay_wide_without():
    X = np.random.default_rng(0).normal(size=(20, 2))
    triplets = answers(X[:19], 2000)
    noise = Noise(prior=1.5)
    few = fit_posterior(as_answers(triplets[:200], 20), 2, noise, rng=np.random.default_rng(0))
    many = fit_posterior(as_answers(triplets, 20), 2, noise, rng=np.random.default_rng(0))
    spread = np.trace(many.covariances, axis1=1, axis2=2)
    assert spread[:19].max() < np.trace(few.covariances, axis1=1, axis2=2)[:19].min()
    np.testing.assert_allclose(many.covariances[19], 1.5**2 * np.eye(2))


def test_probabilities_of_mirrored_questions_add_to_one():
    X = np.random.default_rng(0).normal(size=(15, 2))
    fit = fit_posterior(
        as_answers(answers(X, 300), 15), 2, Noise(lapse=0.05), rng=np.random.default_rng(0)
    )
    fit = replace(fit, curve=Curve(1.7, 0.05))
    questions = random_questions(15, 50, np.random.default_rng(1))
    p, q = fit.probability(questions), fit.probability(questions[:, [0, 2, 1]])
    np.testing.assert_allclose(p + q, 1)
    assert p.min() >= 0.05
    assert p.max() <= 0.95


@pytest.mark.parametrize(("sharpness", "lapse"), [(1.0, 0.0), (3.0, 0.1), (0.5, 0.2)])
def test_the_true_curve_is_estimated(sharpness, lapse):
    rng = np.random.default_rng(0)
    t = rng.normal(scale=4 / sharpness, size=50_000)
    says_so = rng.random(len(t)) < lapse + (1 - 2 * lapse) * expit(sharpness * t)
    curve = fit_curve(PredictedMargins(np.where(says_so, t, -t)), np.ones(len(t)))
    assert curve.sharpness == pytest.approx(sharpness, rel=0.1)
    assert curve.lapse == pytest.approx(lapse, abs=0.02)


class Scored:
    """Predictions of which only the score is known, in standard errors."""

    def __init__(self, score):
        self.score = score

    def advantage(self, other):
        return self.score - other.score


@pytest.mark.parametrize(
    ("scores", "taken"),
    [
        ({0.5: -3.0, 1.0: -0.9, 2.0: 0.0, 4.0: -0.2}, 1.0),  # the strongest that is about as good
        ({0.5: 0.0, 1.0: -1.1, 2.0: -2.0}, 0.5),
    ],
)
def test_the_strongest_prior_that_predicts_about_as_well_is_taken(scores, taken):
    tuned = Tuned({prior: Scored(score) for prior, score in scores.items()})
    assert tuned.strongest is tuned.tried[taken]
    assert tuned.best.score == 0


@pytest.mark.parametrize("flip", [0.05, 0.2])
def test_the_rate_of_flips_is_estimated(flip):
    X = np.random.default_rng(1).normal(size=(60, 2))
    triplets = answers(X, 5000, nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=0))
    evidence = as_answers(triplets, 60)
    held_out = tune(evidence, 2, Noise(16.0), rng=np.random.default_rng(0)).strongest
    fit = fit_posterior(evidence, 2, held_out.fitted_noise, rng=np.random.default_rng(0))
    assert fit.noise.lapse == pytest.approx(flip, abs=0.03)
    assert held_out.accuracy > 0.9 * (1 - flip)
    assert nearer.metrics.mean_kendall_tau(X, fit.positions) > 0.85


def test_held_out_answers_of_one_question_share_a_fold():
    X = np.random.default_rng(1).normal(size=(10, 2))
    triplets = answers(X, 200)
    both = np.concatenate([triplets, triplets[:, [0, 2, 1]]])
    held_out = hold_out(as_answers(both, 10), 2, Noise(), rng=np.random.default_rng(0))
    assert held_out.score == pytest.approx(-np.log(2), abs=1e-3)  # nothing can be predicted
    assert held_out.accuracy == pytest.approx(0.5, abs=1e-9)


def test_random_answers_are_called_random():
    rng = np.random.default_rng(0)
    belief = Belief(40, None, rng)
    belief.learn(random_questions(40, 3000, rng))
    assert belief.error_rate > 0.25  # positions follow what cannot be followed, as far as they can
    assert belief.held_out.accuracy < 0.55
    assert belief.expected_tau == 0
    assert belief.held_out.score == pytest.approx(-np.log(2), abs=0.01)
    assert belief.fit.positions.shape[1] <= 2


def test_calibration_error_of_honest_and_of_boasting_predictions():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    came_true = rng.random(len(p)) < p
    assert calibration_error(p, came_true) < 0.01
    assert calibration_error(p, came_true, equal="mass") < 0.01
    boast = np.where(p > 0.5, 0.99, 0.01)
    assert calibration_error(boast, came_true) == pytest.approx(0.24, abs=0.01)


def test_where_distances_are_tied_a_bias_is_estimated():
    answers = as_answers([[0, 1, 2], [3, 1, 2], [4, 1, 2]], n_objects=5)
    at_one_place = fit_posterior(answers, 1, Noise(bias=True), start=np.zeros((5, 1)))
    np.testing.assert_allclose(at_one_place.bias, [0.0, 0.65, -0.65, 0.0, 0.0], atol=0.01)


@pytest.mark.parametrize("variance", [0.1, 1.0, 16.0, 100.0])
def test_moderated_margins_are_the_mean_of_the_logistic_curve(variance):
    at, weights = np.polynomial.hermite_e.hermegauss(201)
    for mean in (0.0, 0.5, 2.0, 8.0):
        exact = weights @ expit(mean + np.sqrt(variance) * at) / weights.sum()
        assert expit(moderate(np.array(mean), np.array(variance))) == pytest.approx(exact, abs=0.02)


def test_positions_are_the_mode_under_the_prior():
    X = np.random.default_rng(1).normal(size=(15, 2))
    rows = answers(X, 300, nearer.NoisyOracle(nearer.PointOracle(X), 0.2, random_state=0))
    fit = fit_posterior(as_answers(rows, 15), 2, Noise(1.5), max_iter=2000, tol=1e-13)

    def cost(Y):
        margins = [margin(Y, row, 0.0) for row in rows]
        return -np.log(expit(margins)).sum() + (Y**2).sum() / (2 * 1.5**2)

    for step in np.random.default_rng(0).normal(size=(5, 15, 2)):
        slope = (cost(fit.positions + 1e-4 * step) - cost(fit.positions - 1e-4 * step)) / 2e-4
        assert abs(slope) < 0.02


def test_near_questions_are_about_the_nearest_objects():
    rows = near_questions(np.arange(64.0)[:, None], 4000, np.random.default_rng(0))
    inside = rows[(rows[:, 0] >= 12) & (rows[:, 0] < 52)]  # as many on both sides
    assert np.abs(inside[:, 1:] - inside[:, :1]).max() == 6  # 2 · log2 64 = 12 objects
