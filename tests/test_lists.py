"""Sorting short lists for many heads at once."""

from math import lgamma, log

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.asking.sort import sort_lists


@given(st.integers(1, 12), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_every_row_is_sorted_from_its_head(h, k, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    heads = rng.integers(20, 30, size=h)
    lists = np.array([rng.choice(20, k, replace=False) for _ in range(h)]).reshape(h, k)
    before = lists.copy()
    rows = nearer.run(sort_lists(heads, lists), nearer.PointOracle(X))
    for head, row, original in zip(heads, rows, before, strict=True):
        assert sorted(row) == sorted(original)
        assert (np.diff(np.linalg.norm(X[row] - X[head], axis=1)) >= 0).all()
    np.testing.assert_array_equal(lists, before)


def test_the_cost_is_that_of_binary_insertion():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    lists = np.array([200 + rng.choice(300, 18, replace=False) for _ in range(200)])
    record = nearer.asking.Record()
    nearer.run(
        nearer.asking.recorded(sort_lists(np.arange(200), lists), record), nearer.PointOracle(X)
    )
    assert record.n_comparisons <= 1.03 * 200 * lgamma(19) / log(2)
    assert record.n_rounds <= 18 * 5
