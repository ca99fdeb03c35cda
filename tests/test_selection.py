"""The farthest object and the k nearest."""

from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.asking.sort import best_of
from nearer.errors import InvalidInput


@given(st.integers(3, 200), st.integers(0, 2**32 - 1))
def test_the_farthest_object_and_its_exact_cost(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    head = int(rng.integers(n))
    record = nearer.asking.Record()
    strategy = nearer.asking.recorded(nearer.asking.farthest_object(head, n), record)
    farthest = nearer.run(strategy, nearer.PointOracle(X))
    assert farthest == np.argmax(np.linalg.norm(X - X[head], axis=1))
    assert record.n_comparisons == n - 2
    assert record.n_rounds == ceil(log2(n - 1))


@given(st.integers(3, 200), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_k_nearest(n, ordered, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    head, k = int(rng.integers(n)), int(rng.integers(1, n))
    strategy = nearer.asking.nearest_objects(head, n, k, ordered=ordered, random_state=seed)
    result = nearer.run(strategy, nearer.PointOracle(X))
    expected = np.argsort(np.linalg.norm(X - X[head], axis=1))[1 : k + 1]
    np.testing.assert_array_equal(result, expected if ordered else np.sort(expected))


def test_selection_is_linear():
    k = 20
    means = []
    for n in (500, 5000, 50_000):
        oracle = nearer.PointOracle(np.random.default_rng(n).normal(size=(n, 2)))
        costs = []
        for seed in range(5):
            record = nearer.asking.Record()
            strategy = nearer.asking.nearest_objects(0, n, k, random_state=seed)
            nearer.run(nearer.asking.recorded(strategy, record), oracle)
            costs.append(record.n_comparisons / n)
        means.append(np.mean(costs))
    assert max(means) < 3


def test_among_some():
    oracle = nearer.PointOracle(np.arange(10.0))
    strategy = nearer.asking.nearest_objects(5, 10, k=2, among=[0, 2, 5, 9, 9], ordered=True)
    np.testing.assert_array_equal(nearer.run(strategy, oracle), [2, 9])


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 5}, {"k": 2, "among": [1, 7]}])
def test_bad_arguments(options):
    with pytest.raises(InvalidInput):
        nearer.asking.nearest_objects(0, 5, **options)


def test_best_of_many_groups_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    sizes = rng.integers(1, 8, size=12)
    group = np.repeat(np.arange(12), sizes)
    heads = rng.integers(20, 30, size=12)
    items = np.concatenate([rng.choice(20, size, replace=False) for size in sizes])
    for nearest in (True, False):
        result = nearer.run(best_of(heads, items, group, nearest=nearest), nearer.PointOracle(X))
        for g in range(12):
            own = items[group == g]
            distance = np.linalg.norm(X[own] - X[heads[g]], axis=1)
            best = distance.min() if nearest else distance.max()
            assert np.isclose(np.linalg.norm(X[result[g]] - X[heads[g]]), best)
