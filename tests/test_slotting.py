"""Objects sorted into the chains of a few heads."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, truncnorm

import nearer
from nearer.algorithms.same_answers import SameAnswers
from nearer.algorithms.slotting import Anchors, Slots, slot_objects


def test_searches_end_inside_their_shells():
    X = np.random.default_rng(1).random((250, 2))
    anchors = Anchors(np.arange(200), X[:200], np.array([0, 1, 2, 3, 4]))
    slots = Slots(anchors, np.arange(200, 250))
    nearer.run(slot_objects(slots), nearer.PointOracle(X))
    for h in range(5):
        true = np.searchsorted(slots.chain[h], np.linalg.norm(X[200:] - X[h], axis=1))
        assert (slots.first[:, h] <= true).all()
        assert (true <= slots.last[:, h]).all()
    assert np.median(np.linalg.norm(slots.positions - X[200:], axis=1)) < 0.02
    assert nearer.PointOracle(X)(slots.triplets()).all()


@pytest.mark.parametrize("pairs", [False, True])
def test_together_objects_are_placed_as_each_alone(pairs):
    """Those with the same answers are reckoned once, which changes nothing."""
    X = np.random.default_rng(5).normal(size=(1060, 2))
    anchors = Anchors(np.arange(60), X[:60], np.array([0, 1, 2, 3]))
    slots = Slots(anchors, np.arange(60, 1060))
    nearer.run(slot_objects(slots, pairs=pairs), nearer.PointOracle(X))
    for x in range(0, 1000, 50):
        alone = Slots(anchors, np.array([60 + x]))
        nearer.run(slot_objects(alone, pairs=pairs), nearer.PointOracle(X))
        np.testing.assert_array_equal(slots.positions[x], alone.positions[0])
        np.testing.assert_array_equal(slots.first[x], alone.first[0])


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_objects_are_one_as_long_as_their_answers_are_the_same(seed, rounds):
    rng = np.random.default_rng(seed)
    same, histories = SameAnswers(40), [()] * 40
    likely = rng.choice([0.0, 0.02, 0.5])
    for _ in range(rounds):
        times = rng.integers(3, size=2)[rng.integers(2, size=40) * (rng.random(40) < likely)]
        rows = np.repeat(np.arange(40), times)
        answers = rng.random(len(rows)) < likely
        same.add(rows, answers)
        for x in range(40):  # with what was not asked in its place
            own = (*answers[rows == x].tolist(), None, None)[:2]
            histories[x] += own if times.max() == 2 else own[: times.max()]
    rows = np.flatnonzero(rng.random(40) < 0.9)
    first, like = same.among(rows)
    for i, x in enumerate(rows):
        assert histories[rows[first[like[i]]]] == histories[x]
    ways = len({histories[x] for x in rows})
    assert len(first) == (ways if 2 * ways <= len(rows) else len(rows))


def test_no_two_ways_become_one():
    """All ways of two rounds, of no, one or two answers each; every way is gone by two objects."""
    rounds = [answers for n in range(3) for answers in product([False, True], repeat=n)]
    ways = list(product(rounds, rounds)) * 2
    same = SameAnswers(len(ways))
    for answers in zip(*ways, strict=True):
        rows = np.repeat(np.arange(len(ways)), [len(own) for own in answers])
        same.add(rows, np.array([yes for own in answers for yes in own]))
    first, like = same.among(np.arange(len(ways)))
    assert len(first) == len(ways) // 2
    assert all(ways[first[way]] == ways[x] for x, way in enumerate(like))


def test_long_ways_that_differ_by_a_power_of_two_are_two():
    """2⁶⁴ written with the digits −1, 0 and 1 to the base of three: which 64 bits take for 0."""
    digits, left = [], 2**64
    while left:
        digits.append((left + 1) % 3 - 1)
        left = (left - digits[-1]) // 3
    same = SameAnswers(4)
    for digit in reversed(digits):
        same.add(np.arange(4), np.array([digit > 0, digit < 0, digit > 0, digit < 0]))
    first, like = same.among(np.arange(4))
    assert first[like].tolist() == [0, 1, 0, 1]


def slow_update(slots, x, low, high, precision, target):
    """One sweep of expectation propagation for one object, and what each question would tell."""
    chain, heads = slots.chain, slots.heads

    def solve(mean):
        r = np.linalg.norm(mean - heads, axis=1)
        direction = (mean - heads) / r[:, None]
        covariance = np.linalg.inv(slots.prior + (direction.T * precision) @ direction)
        step = slots.prior @ (slots.centre - mean) + direction.T @ (precision * (target - r))
        return mean + covariance @ step, covariance

    mean, covariance = solve(slots.positions[x])
    for h in range(len(heads)):
        r = np.linalg.norm(mean - heads[h])
        direction = (mean - heads[h]) / r
        variance = direction @ covariance @ direction
        others = 1 / variance - precision[h]
        new = flat = 12 / (high[h] - low[h]) ** 2
        at = (low[h] + high[h]) / 2
        if others > 1e-3 / variance:
            expected, s = (r / variance - precision[h] * target[h]) / others, others**-0.5
            inside = truncnorm((low[h] - expected) / s, (high[h] - expected) / s, expected, s)
            m, v = inside.mean(), inside.var()
            new = min(1 / v - others, 4 * flat)
            new = 0.0 if new < 1e-6 * others else new
            at = m if new in (0.0, 4 * flat) else (m / v - expected * others) / new
        blend = 0.3 * precision[h] + 0.7 * new
        target[h] = (0.3 * precision[h] * target[h] + 0.7 * new * at) / blend
        precision[h] = blend
    mean, covariance = solve(mean)
    information = np.zeros(chain.shape)
    for h in range(len(heads)):
        r = np.linalg.norm(mean - heads[h])
        direction = (mean - heads[h]) / r
        curve = norm(r, np.sqrt(direction @ covariance @ direction)).cdf
        span = slice(slots.first[x, h], slots.last[x, h])
        p = (curve(chain[h, span]) - curve(low[h])) / (curve(high[h]) - curve(low[h]))
        p = np.clip(p, 1e-300, 1 - 1e-16)
        information[h, span] = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
    return mean, information


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_kernel_against_its_slow_twin(d):
    X = np.random.default_rng(d).normal(size=(340, d))
    anchors = Anchors(np.arange(300), X[:300], np.arange(d + 3))
    slots = Slots(anchors, np.arange(300, 340))
    for h in range(d + 3):  # a shell of 40 members around each true distance, inside the chain
        true = np.searchsorted(slots.chain[h], np.linalg.norm(X[300:] - X[h], axis=1))
        slots.first[:, h] = np.clip(true - 20, 1, 255)
        slots.last[:, h] = slots.first[:, h] + 40
    slots.positions[:] = X[300:] + 0.01
    low = np.stack([slots.chain[h, slots.first[:, h] - 1] for h in range(d + 3)], axis=1)
    high = np.stack([slots.chain[h, slots.last[:, h]] for h in range(d + 3)], axis=1)
    slots.precisions[:], slots.targets[:] = 12 / (high - low) ** 2, (low + high) / 2
    sites = zip(low, high, slots.precisions.copy(), slots.targets.copy(), strict=True)
    expected = [slow_update(slots, x, *site) for x, site in enumerate(sites)]
    head, member, information = slots.choose(np.arange(40), anew=False)
    for x, (mean, entropies) in enumerate(expected):
        np.testing.assert_allclose(slots.positions[x], mean, atol=1e-6)
        assert information[x] == pytest.approx(entropies[head[x], member[x]], abs=1e-6)
        assert information[x, 0] > entropies.max() - 0.5
        assert head[x, 0] != head[x, 1]
        span = slots.first[x, head[x]], slots.last[x, head[x]]
        assert (span[0] <= member[x]).all()
        assert (member[x] < span[1]).all()
