"""Ranking all objects from one head: the right order, and what it costs."""

from math import lgamma, log, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.asking.sort import sort_objects
from nearer.errors import InvalidInput

ORDERS = ["fewest-comparisons", "fewest-rounds"]


def least(n):
    """log2((n − 1)!): what sorting the other objects must cost."""
    return lgamma(n) / log(2)


def cost(n, seed, order):
    """Rank objects on a line from one end; comparisons and rounds."""
    record = nearer.asking.Record()
    oracle = nearer.PointOracle(np.arange(float(n)))
    strategy = nearer.rank_objects(0, n, order=order, random_state=seed)
    ranking = nearer.run(nearer.asking.recorded(strategy, record), oracle)
    np.testing.assert_array_equal(ranking, np.arange(n))
    return record.n_comparisons, record.n_rounds


@given(st.integers(3, 300), st.sampled_from(ORDERS), st.integers(0, 2**32 - 1))
def test_the_ranking_is_the_order_of_distances(n, order, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    head = int(rng.integers(n))
    strategy = nearer.rank_objects(head, n, order=order, random_state=seed)
    ranking = nearer.run(strategy, nearer.PointOracle(X))
    distance = np.linalg.norm(X - X[head], axis=1)
    np.testing.assert_array_equal(ranking, distance.argsort().argsort())


@pytest.mark.parametrize("order", ORDERS)
def test_duplicates_end_in_the_order_of_their_numbers(order):
    X = np.repeat([[0.0], [1.0], [2.0]], 30, axis=0)
    ranking = nearer.run(nearer.rank_objects(0, 90, order=order), nearer.PointOracle(X))
    np.testing.assert_array_equal(ranking, np.arange(90))


@pytest.mark.parametrize("n", [100, 150, 200, 500, 1000, 5000])
def test_fewest_comparisons_is_within_two_percent_of_the_bound(n):
    costs = [cost(n, seed, "fewest-comparisons")[0] for seed in range(5)]
    assert np.mean(costs) <= 1.02 * least(n)


@pytest.mark.parametrize("n", [100, 200, 500, 1000, 5000])
def test_fewest_rounds_is_logarithmic_for_a_quarter_more_comparisons(n):
    costs = [cost(n, seed, "fewest-rounds") for seed in range(5)]
    comparisons, rounds = np.array(costs).T
    assert rounds.max() <= 2 * log2(n) + 10
    assert comparisons.mean() <= 1.25 * least(n)


def test_only_some_objects():
    oracle = nearer.PointOracle(np.arange(10.0))
    chain = nearer.run(sort_objects(5, [0, 9, 6, 3], random_state=0), oracle)
    np.testing.assert_array_equal(chain, [6, 3, 9, 0])
    assert nearer.run(sort_objects(5, []), oracle).tolist() == []
    assert nearer.run(sort_objects(5, [2], order="fewest-rounds"), oracle).tolist() == [2]


@pytest.mark.parametrize("order", ORDERS)
def test_a_contradictory_oracle_ends_too(order):
    rng = np.random.default_rng(0)
    ranking = nearer.run(
        nearer.rank_objects(0, 200, order=order),
        lambda q: rng.random(len(q)) < 0.5,
    )
    np.testing.assert_array_equal(np.sort(ranking), np.arange(200))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 2), {}, "n_objects=2"),
        ((5, 5), {}, "head=5"),
        ((-1, 5), {}, "head=-1"),
        ((0, 5), {"order": "fastest"}, "order='fastest'"),
    ],
)
def test_bad_arguments_are_named_when_the_strategy_is_made(arguments, options, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.run(nearer.rank_objects(*arguments, **options), lambda q: q[:, 0] > 0)
