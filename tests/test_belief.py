"""Fits that expect noise: what they estimate, and that they beat fits that believe everything."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

import nearer
from benchmarks.harness import calibration_error
from nearer.algorithms.choose_questions import choose_questions
from nearer.asking.oracles import PsychometricOracle
from nearer.fitting.belief import Belief
from nearer.questions import answered, random_questions


def noisy_triplets(X, m, flip, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    near = nearer.PointOracle(X)(rows) ^ (rng.random(m) < flip)
    return np.where(near[:, None], rows, rows[:, [0, 2, 1]])


def sizes(X, questions):
    """How different the two distances of each question are."""
    head, a, b = X[questions.T]
    return np.abs(np.linalg.norm(head - a, axis=1) - np.linalg.norm(head - b, axis=1))


@pytest.fixture(scope="module")
def flipped():
    X = np.random.default_rng(0).normal(size=(60, 2))
    triplets = noisy_triplets(X, 5000, 0.15)
    belief = Belief(60, 2, np.random.default_rng(0))
    belief.learn(triplets)
    return X, triplets, belief.fit


def test_flip_rate_is_estimated(flipped):
    assert flipped[2].noise.lapse == pytest.approx(0.15, abs=0.03)


def test_noise_is_not_believed(flipped):
    X, triplets, fit = flipped
    with pytest.warns(nearer.errors.AnswersWarning, match="answered both ways"):
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
    belief = Belief(20, 2, rng)
    belief.learn(rows)
    assert belief.held_out.score < -0.68
    assert abs(belief.fit.probability(rows[:50]) - 0.5).max() < 0.15


def test_a_heavy_tail_is_estimated_where_far_and_very_far_are_the_same():
    rng = np.random.default_rng(0)
    X = 6 * rng.normal(size=(60, 2))
    questions = random_questions(60, 8000, rng)
    head, a, b = X[questions.T]
    near, far = (np.log1p(np.sum((head - x) ** 2, axis=1)) for x in (a, b))
    triplets = answered(questions, rng.random(8000) < expit(far - near))
    belief = Belief(60, 2, rng)
    belief.learn(triplets)
    assert belief.fit.noise.tail == 1
    assert nearer.metrics.mean_kendall_tau(X, belief.fit.positions) > 0.8


@pytest.mark.parametrize("seed", [2, 3])
def test_quality_is_not_overrated_where_a_heavy_tail_hides_lapses(seed):
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(30, 2))
    rows = np.array([rng.choice(30, 3, replace=False) for _ in range(6000)])
    far, near = (np.log1p(((X[rows[:, 0]] - X[rows[:, k]]) ** 2).sum(axis=1)) for k in (2, 1))
    says = rng.random(len(rows)) < 0.15 + 0.7 * expit(far - near)
    belief = Belief(30, 2, 0)
    belief.learn(answered(rows, says))
    assert belief.fit.noise.tail
    true = nearer.metrics.mean_kendall_tau(X, belief.fit.positions)
    assert true - 0.1 < belief.expected_tau < true


def test_weights_count_like_repeats():
    X = np.random.default_rng(0).normal(size=(20, 2))
    triplets = noisy_triplets(X, 600, 0.1)
    twice, weighted = (Belief(20, 2, np.random.default_rng(0)) for _ in range(2))
    twice.learn(np.concatenate([triplets, triplets[:300]]))
    weighted.learn(triplets, weights=np.repeat([2.0, 1.0], 300))
    np.testing.assert_allclose(twice.fit.positions, weighted.fit.positions, atol=1e-6)


@pytest.mark.slow
def test_answers_to_chosen_questions_stay_calibrated():
    """Chosen questions are hard ones: a curve fitted to them is too flat for all others."""
    X = nearer.datasets.make_gaussian(40, 2, random_state=0)
    people = PsychometricOracle(X, scale=0.3, random_state=1)
    errors = []
    for seed in range(3):
        strategy = nearer.adaptive(40, budget=3000, n_components=2, random_state=seed)
        result = nearer.run(strategy, people)
        questions = random_questions(40, 20_000, np.random.default_rng(seed + 100))
        p = result.details["posterior"].probability(questions)
        errors.append(calibration_error(p, people(questions)))
    assert np.median(errors) < 0.02


@pytest.mark.slow
def test_odds_say_how_often_questions_are_drawn():
    """Each question weighed by one over its odds, chosen ones speak for all."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    triplets = noisy_triplets(X, 150, 0.1)
    every = np.array([q for q in product(range(12), repeat=3) if len(set(q)) == 3 and q[1] < q[2]])
    truth, weighed, plain = sizes(X, every).mean(), [], []
    for seed in range(60):
        belief = Belief(12, 2, 0)
        belief.learn(triplets)
        questions = choose_questions(triplets, 12, 60, random_state=seed, belief=belief)
        size = sizes(X, questions)
        weighed.append(np.average(size, weights=1 / belief.odds(questions)))
        plain.append(size.mean())
    assert abs(np.mean(weighed) - truth) < 0.4 * abs(np.mean(plain) - truth)


def test_another_belief_can_learn_which_questions_were_chosen():
    X = np.random.default_rng(0).normal(size=(20, 2))
    triplets = noisy_triplets(X, 400, 0.1)
    informed, restored, ignorant = (Belief(20, 2, 0) for _ in range(3))
    informed.expect(triplets, np.where(np.arange(400) < 300, 5.0, 0.5))
    restored.expect(triplets, informed.odds(triplets))
    for belief in (informed, restored, ignorant):
        belief.learn(triplets)
    np.testing.assert_array_equal(informed.fit.positions, restored.fit.positions)
    np.testing.assert_array_equal(informed.odds(triplets[:, [0, 2, 1]]), restored.odds(triplets))
    assert informed.fit.curve != ignorant.fit.curve


def test_answers_seen_again_change_nothing():
    """After a review a fit assumes what the review found, not the curve of its predictions."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    triplets = noisy_triplets(X, 3000, 0.1)
    margin = np.abs(
        np.subtract(
            *(np.linalg.norm(X[triplets[:, 0]] - X[triplets[:, c]], axis=1) for c in (1, 2))
        )
    )
    belief = Belief(40, 2, 0)
    belief.expect(triplets, np.where(margin < np.median(margin), 4.0, 0.25))
    belief.learn(triplets)
    noise, positions = belief.fit.noise, belief.fit.positions
    belief.learn(triplets)
    assert belief.fit.noise == noise
    assert np.abs(belief.fit.positions - positions).max() < 0.05 * positions.std()


def test_a_known_error_rate_is_where_the_fit_begins():
    X = np.random.default_rng(0).normal(size=(20, 2))
    few = noisy_triplets(X, 15, 0.3)  # too few to find the rate
    informed, untold = Belief(20, 2, 0, noise=0.3), Belief(20, 2, 0)
    for belief in (informed, untold):
        belief.learn(few)
    assert informed.fit.noise.lapse == 0.3
    assert untold.fit.noise.lapse == 0.0
    many = noisy_triplets(X, 3000, 0.05)
    informed.learn(many)
    assert informed.fit.noise.lapse < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "wrong"), [(7001, 0.1), (7002, 0.1), (7000, 0.2)])
def test_chosen_questions_with_answers_turned_about_end_with_the_curve_that_has_lapses(seed, wrong):
    # the curve that was behind at one review must have its chance at the next
    X = np.random.default_rng(seed).normal(size=(60, 2))
    oracle = nearer.NoisyOracle(nearer.PointOracle(X), wrong, random_state=seed)
    strategy = nearer.adaptive(60, n_components=2, budget=4250, quality=1, random_state=seed)
    result = nearer.run(strategy, oracle)
    assert nearer.metrics.mean_kendall_tau(X, result.positions) > (0.99 if wrong == 0.1 else 0.97)
