"""Trials: made from what people have, refused where they say nothing, turned into triplets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.errors import InvalidInput
from nearer.questions import answered
from nearer.trials import Task, Trials


def test_screens_of_different_sizes_live_in_one_table():
    trials = Trials.near([0, 5], [[1, 2, 3], [0, 1, 2, 3, 4]], [[3], [4, 0]], people=["a", "b"])
    assert trials.n_shown.tolist() == [3, 5]
    assert trials.wanted.tolist() == [1, 2]
    assert trials.task is None
    assert trials[:1].task == Task("near", 1, 3)
    assert trials[[1]].people.tolist() == ["b"]


def test_booleans_say_the_same_as_objects():
    by_object = Trials.near([0], [[4, 2, 3]], [[3, 4]])
    by_mask = Trials.near([0], [[4, 2, 3]], [[True, False, True]])
    assert np.array_equal(by_object.chosen, by_mask.chosen)


def test_ranks_remain_where_the_order_counts():
    ranked = Trials.near([0], [[4, 2, 3]], [[3, 4]], ranked=True)
    assert ranked.chosen.tolist() == [[2, 0, 1]]
    assert sorted(ranked.triplets()[0].tolist()) == [[0, 3, 2], [0, 3, 4], [0, 4, 2]]


def test_triplets_of_screens_are_those_of_the_protocol():
    rng = np.random.default_rng(0)
    screens = np.array([rng.choice(20, 6, replace=False) for _ in range(50)])
    oracle = nearer.PointOracle(rng.normal(size=(20, 2)), choose=2)
    said = oracle(screens)
    trials = Trials.from_screens(screens, said)
    assert trials.task == Task.parse("2 of 5")
    rows = sorted(trials.triplets()[0].tolist())
    assert rows == sorted(answered(screens, said).tolist())
    assert np.array_equal(trials.questions, screens)


def test_comparisons_are_screens_of_two():
    questions, said = np.array([[0, 1, 2], [3, 4, 5]]), np.array([True, False])
    trials = Trials.from_screens(questions, said)
    assert trials.triplets()[0].tolist() == answered(questions, said).tolist()
    assert Trials.from_triplets([[0, 1, 2]]).triplets()[0].tolist() == [[0, 1, 2]]
    assert trials.task.is_comparison


def test_odd_one_out_and_most_central_become_two_triplets_each():
    odd = Trials.odd_one_out([[3, 7, 5]], [7])
    assert sorted(odd.triplets()[0].tolist()) == [[3, 5, 7], [5, 3, 7]]
    central = Trials.most_central([[3, 7, 5]], [7])
    assert sorted(central.triplets()[0].tolist()) == [[3, 7, 5], [5, 7, 3]]
    assert odd.triplets()[1].tolist() == [0, 0]


def test_pairs_become_triplets_only_where_they_share_an_object():
    trials = Trials.pairs([[0, 1, 2, 3], [0, 1, 2, 0]], [0, 1])
    rows, trial = trials.triplets()
    assert rows.tolist() == [[0, 2, 1]]
    assert trial.tolist() == [1]


def test_dont_know_is_a_trial_without_a_choice():
    said = np.ma.MaskedArray([[True, False, False], [False] * 3], mask=[[False] * 3, [True] * 3])
    trials = Trials.from_screens(np.array([[0, 1, 2, 3], [0, 4, 5, 6]]), said)
    assert trials.decided.tolist() == [True, False]
    assert trials.wanted.tolist() == [1, 1]
    assert set(trials.triplets()[1].tolist()) == {0}
    none = Trials.odd_one_out([[0, 1, 2], [2, 3, 4]], [1, None])
    assert none.decided.tolist() == [True, False]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Trials.near([0], [[0, 1, 2]], [[1]]), "occurs twice"),
        (lambda: Trials.near([0], [[1, 2]], [[1, 2]]), "not all"),
        (lambda: Trials.near([0], [[1, 2]], [[5]]), "not shown"),
        (lambda: Trials.near([0, 1], [[2, 3]], [[2]]), "one query"),
        (lambda: Trials.near([-1], [[2, 3]], [[2]]), "query"),
        (lambda: Trials.odd_one_out([[1, 2]], [1]), "at least 3"),
        (lambda: Trials.pairs([[1, 1, 2, 3]], [0]), "two objects"),
        (lambda: Trials.near([0], [[1, 2]], [[1]], seconds=[1.0, 2.0]), "seconds"),
        (lambda: Trials.near([0], [[1, 2]], []), "one for each"),
        (lambda: Task.parse("8 of 2"), "2 of 8"),
        (lambda: Task.parse(7), "2 of 8"),
    ],
)
def test_what_says_nothing_is_refused_with_the_rule(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


@given(st.integers(1, 6), st.integers(1, 10), st.booleans())
def test_a_task_reads_as_it_is_written(k, more, ranked):
    task = Task("near", k, k + more, ranked)
    assert Task.parse(str(task)) == task
    odd = Task("odd-one-out", 1, 2 + more)
    assert Task.parse(str(odd)) == odd


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trials.from_triplets([["ape", "bee", "cat"]]),
        lambda: Trials.from_triplets([[0, 1.5, 2]]),
        lambda: Trials.near(["ape"], [["bee", "cat"]], [["bee"]]),
        lambda: Trials.near([0], None, [[1]]),
        lambda: Trials.odd_one_out([[0, 1, 2]], None),
        lambda: Trials.pairs([[0, 1, 2, 3]], [np.nan]),
        lambda: Trials.from_triplets([[0, 1, 2]], seconds=["soon"]),
    ],
)
def test_trials_of_what_is_no_number_are_refused_in_one_message(make):
    with pytest.raises(InvalidInput, match="whole numbers"):
        make()
