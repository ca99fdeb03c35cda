"""Answers in the order of passes: what a stable sort gives; the arrays themselves if it is done."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearer._kernels.comparisons import SOE, in_cache_order, value_and_gradient

MANY = 400_000  # objects, more than a cache holds


@given(seed=st.integers(0, 10**6), m=st.integers(1, 60))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("weighted", [True, False])
def test_rows_and_weights_move_as_in_a_stable_sort(weighted, seed, m):
    rng = np.random.default_rng(seed)
    rows = rng.integers(7, size=(m, 3), dtype=np.int32)
    weights = rng.random(m) if weighted else None
    order = np.argsort(rows[:, 0], kind="stable")
    moved, carried = in_cache_order(rows, weights, 7)
    np.testing.assert_array_equal(moved, rows[order])
    if weights is None:
        assert carried is None
    else:
        np.testing.assert_array_equal(carried, weights[order])


def test_what_is_sorted_is_not_copied():
    rows = np.array([[0, 1, 2], [0, 2, 1], [2, 0, 1]], dtype=np.int32)
    assert in_cache_order(rows, None, 3)[0] is rows


@pytest.mark.parametrize("weighted", [True, False])
def test_answers_of_many_objects_stay_the_same_answers(weighted):
    rng = np.random.default_rng(0)
    rows = rng.integers(MANY, size=(5000, 3), dtype=np.int32)
    rows[0] = MANY - 1, MANY - 2, MANY - 3
    weights = rng.random(len(rows)) if weighted else None
    moved, carried = in_cache_order(rows, weights, MANY)
    assert sorted(map(tuple, moved.tolist())) == sorted(map(tuple, rows.tolist()))
    X = rng.normal(size=(MANY, 2))
    value, gradient = value_and_gradient(SOE, 0.0, X, rows, weights)
    again, slope = value_and_gradient(SOE, 0.0, X, moved, carried)
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, atol=1e-9)


def test_answers_of_many_objects_go_along_the_heads_inside_few_groups():
    rows = np.random.default_rng(1).integers(MANY, size=(200_000, 3), dtype=np.int32)
    moved, _ = in_cache_order(rows, None, MANY)
    back = np.count_nonzero(np.diff(moved[:, 0]) < -1024)
    assert 1 < back < 100  # by chance it would be half of the rows
    near_and_far = moved[: len(rows) // 49, 1:]  # blocks are about a seventh of the objects
    assert near_and_far.max() < MANY // 6


def test_what_is_in_one_group_stays_in_its_order():
    rng = np.random.default_rng(2)
    rows = rng.integers(MANY, size=(3000, 3), dtype=np.int32)
    together = rng.random(3000) < 0.5
    rows[together] = rng.integers(1000, size=(3000, 3), dtype=np.int32)[together]
    moved, carried = in_cache_order(rows, np.arange(3000.0), MANY)
    place = np.argsort(carried)  # of each row
    np.testing.assert_array_equal(moved[place], rows)
    assert (np.diff(place[together]) > 0).all()
    again, _ = in_cache_order(moved, None, MANY)
    np.testing.assert_array_equal(again, moved)
