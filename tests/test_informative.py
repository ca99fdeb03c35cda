"""Choosing questions: budget, what may be asked, rounds, replay, and that it pays."""

import numpy as np
import pytest

import nearer
from nearer.algorithms.choose_questions import (
    RANDOM_SHARE,
    Candidates,
    choose_questions,
    draw_round,
)
from nearer.fitting.belief import Belief
from nearer.questions import answered, pack, random_questions


def people(X, flip=0.1, seed=0):
    return nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=seed)


def test_budget_rounds_and_no_question_twice():
    X = np.random.default_rng(0).normal(size=(25, 2))
    asked = []

    def oracle(questions):
        asked.append(questions)
        return people(X)(questions)

    strategy = nearer.adaptive(25, budget=700, n_components=2, round_size=80, random_state=0)
    result = nearer.run(strategy, oracle)
    assert [len(q) for q in asked] == [80] * 8 + [60]
    assert result.n_comparisons == 700
    assert result.n_rounds == 9
    assert len(np.unique(pack(np.concatenate(asked))[0])) == 700
    assert result.positions.shape == (25, 2)
    assert result.covariances.shape == (25, 2, 2)
    curve = result.details["learning_curve"]
    assert curve["n_answers"][0] == 80
    assert (curve["n_right"] <= curve["n_predicted"]).all()


def test_only_askable_questions_until_none_is_left():
    X = np.random.default_rng(0).normal(size=(8, 2))

    def askable(questions):
        return questions[:, 0] < 2

    def oracle(questions):
        assert askable(questions).all()
        return people(X)(questions)

    strategy = nearer.adaptive(8, budget=500, n_components=2, askable=askable, random_state=0)
    result = nearer.run(strategy, oracle)
    assert result.n_comparisons == 2 * 7 * 6 // 2  # all there are
    assert "no further question" in result.history[-1].note


def test_objects_in_no_question_are_named():
    X = np.random.default_rng(0).normal(size=(12, 2))
    strategy = nearer.adaptive(
        12, budget=200, n_components=2, askable=lambda q: (q != 11).all(axis=1), random_state=0
    )
    result = nearer.run(strategy, people(X))
    assert result.details["never_asked"].tolist() == [11]
    spread = np.trace(result.covariances, axis1=1, axis2=2)
    assert spread.argmax() == 11


@pytest.mark.parametrize("cut", [1, 130, 259])
def test_replaying_a_log_goes_on_as_if_uninterrupted(cut):
    X = np.random.default_rng(0).normal(size=(15, 2))

    def start():
        return nearer.adaptive(15, budget=260, round_size=65, random_state=3)

    whole = nearer.run(start(), people(X))
    again = nearer.asking.Session(start(), whole.triplets[:cut])
    while not again.done:
        again.tell(again.open, people(X)(again.open))
    np.testing.assert_array_equal(again.result.positions, whole.positions)


def test_a_budget_from_outside_cuts_a_round_and_still_gives_positions():
    X = np.random.default_rng(0).normal(size=(15, 2))
    strategy = nearer.adaptive(15, budget=400, n_components=2, round_size=60, random_state=0)
    result = nearer.run(strategy, people(X), budget=150)
    assert result.n_comparisons == 150
    assert np.isfinite(result.positions).all()


def test_it_stops_when_it_expects_to_be_good_enough():
    X = nearer.datasets.make_gaussian(20, 1, random_state=2)
    asked = {}
    for quality in (0.9, 0.98, 1.0):
        strategy = nearer.adaptive(20, budget=900, n_components=1, quality=quality, random_state=0)
        result = nearer.run(strategy, people(X, 0.05))
        asked[quality] = result.n_comparisons
        if quality < 1:
            assert "τ is expected" in result.history[-1].note
            assert result.details["expected_tau"] >= quality - 0.01
            assert nearer.metrics.mean_kendall_tau(X, result.positions) > quality - 0.03
    assert asked[0.9] < asked[0.98] < asked[1.0] == 900


def test_dimensions_are_no_more_than_answers_can_carry():
    X = np.random.default_rng(0).normal(size=(40, 12))
    result = nearer.run(nearer.adaptive(40, budget=400, random_state=0), people(X, 0.0))
    assert result.dimension <= 400 // (3 * 40)
    assert result.dimension_low <= result.dimension <= result.dimension_high


@pytest.mark.slow
def test_chosen_questions_teach_more_than_random_ones():
    X = nearer.datasets.make_gaussian(60, 2, random_state=5)
    tau = nearer.metrics.mean_kendall_tau
    gains = []
    for seed in range(3):
        oracle = people(X, 0.1, seed + 100)
        strategy = nearer.adaptive(
            60, budget=3000, n_components=2, round_size=300, random_state=seed
        )
        chosen = nearer.run(strategy, oracle)
        # the same fit to random questions
        questions = Candidates(60).draw(3000, np.random.default_rng(seed))
        belief = Belief(60, 2, np.random.default_rng(seed))
        belief.learn(answered(questions, oracle(questions)))
        gains.append(tau(X, chosen.positions) - tau(X, belief.fit.positions))
    assert np.median(gains) > 0.01


def test_dimension_is_chosen():
    X = nearer.datasets.make_gaussian(40, 3, random_state=1)
    result = nearer.run(
        nearer.adaptive(40, budget=4000, round_size=500, random_state=0), people(X, 0.05)
    )
    assert result.dimension == 3
    held = result.held_out
    assert 0.7 < held.low < held.accuracy < held.high < 1
    assert result.evidence[3]["log_likelihood"] > result.evidence[2]["log_likelihood"]


def test_answers_of_which_a_fifth_is_wrong_do_not_stay_exact():
    X = np.random.default_rng(4).normal(size=(60, 3))
    oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.2, random_state=4)
    result = nearer.run(nearer.adaptive(60, budget=3000, random_state=4), oracle)
    assert not result.details["exact"]
    assert result.dimension == 3


def test_next_questions_from_any_log():
    X = np.random.default_rng(0).normal(size=(30, 2))
    first = choose_questions(np.empty((0, 3)), 30, 40, random_state=0)
    assert first.shape == (40, 3)
    triplets = answered(first, people(X)(first))
    more = choose_questions(triplets, 30, 25, n_components=2, random_state=1)
    assert more.shape == (25, 3)
    keys = pack(np.concatenate([first, more]))[0]
    assert len(np.unique(keys)) == 65
    again = choose_questions(triplets, 30, 25, n_components=2, random_state=1)
    np.testing.assert_array_equal(again, more)


def test_scarce_questions_are_drawn_and_stored():
    known = random_questions(300, 400, np.random.default_rng(0))
    oracle = nearer.RecordedOracle(known)
    candidates = Candidates(300, oracle.knows)
    few = [Candidates(300, oracle.knows).draw(2, np.random.default_rng(k)) for k in range(3)]
    assert all(map(len, few))
    drawn = candidates.draw(100_000, np.random.default_rng(1))
    assert len(drawn) > 50
    assert oracle.knows(drawn).all()
    candidates.exclude(drawn[:10])
    again = candidates.draw(20, np.random.default_rng(2))
    assert len(again) == 20
    assert not np.isin(pack(again)[0], pack(drawn[:10])[0]).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_objects": 2, "budget": 10}, "at least 3 objects"),
        ({"n_objects": 9, "budget": -1}, "budget=-1"),
        ({"n_objects": 9, "budget": 2.5}, "budget=2.5"),
        ({"n_objects": 40, "n_components": 50}, "40 objects span at most 39 dimensions"),
        ({"n_objects": 2000, "n_components": 0}, "n_components=0"),
        ({"n_objects": 9, "budget": 9, "n_components": 0}, "n_components=0"),
        ({"n_objects": 9, "budget": 9, "round_size": 0}, "round_size=0"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(nearer.errors.InvalidInput, match=message):
        nearer.adaptive(**arguments)


def test_a_mask_of_the_wrong_form_is_refused():
    with pytest.raises(nearer.errors.InvalidInput, match="a boolean for each"):
        nearer.adaptive(9, budget=9, askable=lambda q: np.ones(len(q)), random_state=0)


@pytest.mark.parametrize("m", [0, 600])
def test_a_round_says_which_of_its_questions_are_random(m):
    X, rng = np.random.default_rng(0).normal(size=(30, 2)), np.random.default_rng(1)
    belief = Belief(30, 2, 0)
    if m:
        questions = random_questions(30, m, rng)
        belief.learn(answered(questions, people(X)(questions)))
    _, random = draw_round(belief, Candidates(30, None), 200, rng)
    assert len(random) == 200
    share = max(RANDOM_SHARE, belief.share_guessed)
    assert random.sum() == round(200 * share)
    assert (share < 1) == bool(m)


def test_whole_screens_need_not_beat_a_coin_to_be_chosen():
    X = np.random.default_rng(0).normal(size=(30, 2))
    oracle = nearer.asking.PsychometricOracle(X, scale=0.1, choose=4, random_state=0)
    strategy = nearer.adaptive(30, task="4 of 10", n_components=2, budget=150, random_state=0)
    result = nearer.run(strategy, oracle)
    assert 0.05 < result.held_out.accuracy < 0.5  # one in 210 would be right by chance
    assert result.details["expected_tau"] > 0.5


def test_few_places_need_neither_dimensions_nor_many_questions():
    X = np.sign(np.random.default_rng(0).normal(size=(100, 1)))
    result = nearer.embed(nearer.PointOracle(X), 100, random_state=1, progress=False)
    assert result.dimension == 1
    assert result.n_comparisons < 4000
