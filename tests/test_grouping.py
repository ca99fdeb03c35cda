"""Answers sorted by head: what a stable sort gives, and the arrays themselves where it is done."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearer._kernels.grouping import by_head


@given(seed=st.integers(0, 10**6), m=st.integers(1, 60))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("weighted", [True, False])
def test_rows_and_weights_move_as_in_a_stable_sort(weighted, seed, m):
    rng = np.random.default_rng(seed)
    rows = rng.integers(7, size=(m, 3), dtype=np.int32)
    weights = rng.random(m) if weighted else None
    order = np.argsort(rows[:, 0], kind="stable")
    moved, carried = by_head(rows, weights, 7)
    np.testing.assert_array_equal(moved, rows[order])
    if weights is None:
        assert carried is None
    else:
        np.testing.assert_array_equal(carried, weights[order])


def test_what_is_sorted_is_not_copied():
    rows = np.array([[0, 1, 2], [0, 2, 1], [2, 0, 1]], dtype=np.int32)
    assert by_head(rows, None, 3)[0] is rows
