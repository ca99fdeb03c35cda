"""Answers that are no plain yes or no: "don't know", and grades."""

from collections import Counter

import numpy as np
import pytest

import nearer

X = np.random.default_rng(0).normal(size=(30, 2))
EXACT = nearer.PointOracle(X)


def shrugging(share, seed=0):
    rng = np.random.default_rng(seed)

    def oracle(questions):
        return [None if rng.random() < share else bool(x) for x in EXACT(questions)]

    return oracle


def test_informative_questions_move_on_after_dont_know():
    result = nearer.run(nearer.adaptive(30, budget=600, random_state=0), shrugging(0.2))
    assert result.n_comparisons == 600
    assert 80 < result.details["n_unsure"] < 160
    assert len(result.triplets) == 600 - result.details["n_unsure"]
    assert nearer.metrics.mean_kendall_tau(X, result.positions) > 0.8


def test_what_is_sorted_by_is_asked_again_and_then_decided():
    with pytest.warns(nearer.errors.AnswersWarning, match="stayed open"):
        basis = nearer.run(nearer.algorithms.basis_soe(30, random_state=0), shrugging(0.3))
    assert basis.details["n_ties_broken"] > 0


def test_a_budget_holds_where_every_answer_is_dont_know():
    asked = []

    def oracle(questions):
        asked.append(len(questions))
        return [None] * len(questions)

    with pytest.warns(nearer.errors.AnswersWarning, match="the result is chance alone"):
        nearer.embed(oracle, 30, budget=200, random_state=0, progress=False)
    assert sum(asked) <= 200


def test_graded_answers_teach():
    people = nearer.asking.PsychometricOracle(X, scale=0.5)
    result = nearer.run(nearer.adaptive(30, budget=500, random_state=0), people.probability)
    hard = nearer.run(
        nearer.adaptive(30, budget=500, random_state=0),
        nearer.asking.PsychometricOracle(X, scale=0.5, random_state=1),
    )
    tau = nearer.metrics.mean_kendall_tau
    assert tau(X, result.positions) > tau(X, hard.positions)


@pytest.mark.parametrize("n", [3, 8, 12, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("oracle", [lambda q: [0.5] * len(q), lambda q: [None] * len(q)])
def test_answers_that_tell_nothing_determine_nothing(n, oracle):
    with pytest.warns(nearer.errors.AnswersWarning, match="the result is chance alone"):
        embedding = nearer.embed(oracle, n, random_state=0, progress=False)
    assert not embedding.determined
    assert embedding.dimension_low == 1
    assert embedding.dimension_high == n - 1


@pytest.mark.filterwarnings("ignore:.* no better than by guessing")
@pytest.mark.parametrize("noise", [0, 0.1, "auto"])
@pytest.mark.parametrize("keep", [True, False])
def test_chance_is_said_to_be_chance_and_nothing_else_is(noise, keep):
    how = {"noise": noise, "keep_triplets": keep, "random_state": 0, "progress": False}
    for answer in (0.5, None):
        with pytest.warns(nearer.errors.AnswersWarning, match="the result is chance alone"):
            nearer.embed(lambda q, answer=answer: [answer] * len(q), 8, **how)
    nearer.embed(shrugging(0.9), 8, **how)  # a warning would be an error


def test_objects_without_a_decided_answer_were_asked_about():
    def oracle(questions):
        said = EXACT(questions)
        return [None if 0 in q else bool(x) for q, x in zip(questions.tolist(), said, strict=True)]

    embedding = nearer.embed(
        oracle, 12, random_state=0, progress=False
    )  # a warning would be an error
    assert len(embedding.never_asked) == 0
    assert np.isfinite(embedding.positions).all()


def test_where_nothing_may_be_asked_nothing_is_known():
    with pytest.warns(nearer.errors.AnswersWarning, match="no question was asked"):
        embedding = nearer.embed(EXACT, 12, budget=0, random_state=0, progress=False)
    assert embedding.n_comparisons == 0
    assert embedding.never_asked.tolist() == list(range(12))
    assert not embedding.determined
    assert (embedding.dimension_low, embedding.dimension_high) == (1, 11)
    assert "12 never asked about" in repr(embedding)


def test_one_place_for_all_determines_nothing():
    embedding = nearer.embed(
        nearer.PointOracle(np.zeros((12, 2))), 12, random_state=0, progress=False
    )
    assert not embedding.determined


def test_a_coin_and_a_constant_oracle_are_said_to_be_guesses():
    rng = np.random.default_rng(0)
    for oracle in (lambda q: rng.random(len(q)) < 0.5, lambda q: np.ones(len(q), dtype=bool)):
        with pytest.warns(nearer.errors.AnswersWarning, match="no better than by guessing"):
            nearer.embed(oracle, 30, random_state=0, progress=False)


def test_what_stays_open_was_asked_three_times():
    ties = Counter()
    strategy = nearer.asking.forced_choice(nearer.rank_objects(0, 9), ties)
    assert nearer.run(strategy, lambda questions: [None] * len(questions)).tolist() == [*range(9)]
    assert ties["again"] == 2 * ties["broken"] > 0
