"""Agreement of repeated answers against slow code, its ceiling, and calibration."""

from itertools import combinations

import numpy as np
import pytest

import nearer
from nearer.metrics import measure_agreement
from nearer.questions import answered, random_questions


def slow(rows, people, which):
    """Mean agreement of pairs, by question, each counting by its answers."""
    by_question = {}
    for (head, near, far), who in zip(rows.tolist(), people, strict=True):
        a, b = sorted((near, far))
        by_question.setdefault((head, a, b), []).append((near == a, who))
    shares, weights = [], []
    for same in by_question.values():
        pairs = [(x == y) for (x, p), (y, q) in combinations(same, 2) if which(p, q)]
        if pairs:
            shares.append(np.mean(pairs))
            weights.append((1 + np.sqrt(1 + 8 * len(pairs))) / 2)
    return np.average(shares, weights=weights), len(shares)


def test_agreement_is_that_of_all_pairs():
    rng = np.random.default_rng(0)
    asked = np.repeat(random_questions(6, 40, rng), 5, axis=0)
    rows = answered(asked, rng.random(len(asked)) < 0.7)
    people = rng.choice(["ann", "bob", "cy"], len(rows))
    agreement = measure_agreement(rows, people)
    for kind, which in (("same", np.equal), ("others", np.not_equal)):
        share, number = slow(rows, people, which)
        assert agreement[kind].share == pytest.approx(share)
        assert agreement[kind].n_questions == number
        assert agreement[kind].low < share < agreement[kind].high
    alone = measure_agreement(rows, None)["unknown"]
    assert alone.share == pytest.approx(slow(rows, people, lambda p, q: True)[0])


@pytest.mark.parametrize("p", [0.5, 0.7, 0.95])
def test_the_ceiling_is_what_the_best_prediction_reaches(p):
    """Where all questions are equally hard, exactly; where they differ, it is not exceeded."""
    rng = np.random.default_rng(1)
    asked = np.repeat(random_questions(60, 4000, rng), 2, axis=0)
    agreement = measure_agreement(answered(asked, rng.random(len(asked)) < p), None)["unknown"]
    assert agreement.ceiling == pytest.approx(max(p, 1 - p), abs=0.02 if p > 0.5 else 0.1)
    mixed = np.repeat(rng.choice([p, 1.0], len(asked) // 2), 2)
    agreement = measure_agreement(answered(asked, rng.random(len(asked)) < mixed), None)["unknown"]
    assert agreement.share - 0.02 < np.maximum(mixed, 1 - mixed).mean() < agreement.ceiling + 0.02


@pytest.mark.parametrize("p", [0.6, 0.7, 0.9])
def test_the_ceiling_of_few_repeats_has_an_interval_that_holds_it(p):
    rng = np.random.default_rng(2)
    asked = np.repeat(random_questions(60, 40, rng), 2, axis=0)
    inside, below = [], []
    for _ in range(200):
        agreement = measure_agreement(answered(asked, rng.random(len(asked)) < p), None)["unknown"]
        low, high = agreement.ceiling_interval
        inside.append(low <= p <= high)
        below.append(agreement.ceiling < p)
    assert np.mean(inside) > 0.9
    assert np.mean(below) > 0.3, "the estimate alone is no bound"


def test_nothing_is_said_where_no_question_was_repeated():
    rows = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    assert measure_agreement(rows, None) == {}
    assert measure_agreement(rows, np.array(["a", "b", "a"])) == {}


def test_choices_agree_where_the_same_was_chosen_of_the_same():
    trials = nearer.Trials.near(
        [0, 0, 0, 0], [[1, 2, 3], [3, 2, 1], [2, 1, 3], [1, 2, 4]], [[2], [2], [1], [4]]
    )
    agreement = measure_agreement(trials, None)["unknown"]
    assert (agreement.share, agreement.n_questions, agreement.ceiling) == (
        pytest.approx(1 / 3),
        1,
        None,
    )
    odd = nearer.Trials.odd_one_out([[0, 1, 2], [2, 0, 1]], [1, 1])
    assert measure_agreement(odd, None)["unknown"].share == 1


def test_probabilities_of_a_fit_come_true():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(25, 2))
    asked = random_questions(25, 6000, rng)
    rows = answered(asked, nearer.PointOracle(X)(asked) ^ (rng.random(6000) < 0.15))
    embedding = nearer.fit(rows, n_components=2, n_objects=25, random_state=0)
    calibration = embedding.details["calibration"]
    assert calibration.counts.sum() > 1000
    assert (np.diff(calibration.predicted) >= -1e-12).all()
    assert calibration.error < 0.03
    assert np.abs(calibration.predicted - calibration.observed).max() < 0.1
    assert (
        embedding.details["agreement"] == {}
        or embedding.details["agreement"]["unknown"].share > 0.5
    )


def test_calibration_counts_every_answer_that_was_held_out():
    """Repeated answers are one row of the fit, and still count as many answers."""
    rng = np.random.default_rng(3)
    asked = random_questions(8, 1500, rng)
    near = nearer.PointOracle(rng.normal(size=(8, 2)))(asked)
    rows = answered(asked, near ^ (rng.random(1500) < 0.2))
    assert len(np.unique(rows, axis=0)) < 500
    embedding = nearer.fit(rows, n_components=2, n_objects=8, random_state=0)
    assert embedding.details["calibration"].counts.sum() == embedding.held_out.n_trials == 1500
    weights = np.where(np.arange(1500) % 3 == 0, 0.0, 1.0)
    embedding = nearer.fit(rows, n_components=2, n_objects=8, weights=weights, random_state=0)
    assert embedding.details["calibration"].counts.sum() == embedding.held_out.n_trials == 1000


def test_a_weight_is_a_repeated_answer():
    rng = np.random.default_rng(0)
    rows = answered(np.repeat(random_questions(8, 30, rng), 2, axis=0), rng.random(60) < 0.7)
    people, times = rng.choice(["ann", "bob"], 60), rng.integers(0, 4, 60)
    each = np.repeat(np.arange(60), times)
    assert measure_agreement(rows, people, times.astype(float)) == measure_agreement(
        rows[each], people[each]
    )
    for alike in (0.5, 2.5):  # no counts, but all count the same
        weights = np.full(60, alike)
        assert measure_agreement(rows, people, weights) == measure_agreement(rows, people)
    assert measure_agreement(rows, people, np.linspace(0.5, 1, 60)) == {}
