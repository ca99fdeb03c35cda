"""Random questions, and those that tell most about a head."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.algorithms.pipelines import expected_information
from nearer.errors import InvalidInput
from nearer.questions import balanced_questions, pack


@given(st.integers(3, 12), st.integers(0, 700), st.integers(0, 2**32 - 1))
def test_random_questions_are_fair_and_do_not_repeat(n, m, seed):
    questions = balanced_questions(n, m, np.random.default_rng(seed))
    assert questions.shape == (m, 3)
    np.testing.assert_array_equal(questions[:, 0], np.arange(m) % n)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert (questions[:, i] != questions[:, j]).all()
    assert questions.min(initial=0) >= 0
    assert questions.max(initial=0) < n
    there_are = n * (n - 1) * (n - 2) // 2
    each = m // n  # complete turns of the round robin
    distinct = len(np.unique(pack(questions)[0]))
    assert distinct == min(m, there_are) or each >= (n - 1) * (n - 2) // 2


def test_random_pairs_are_uniform():
    questions = balanced_questions(6, 60_000, np.random.default_rng(0))
    of_first = questions[questions[:, 0] == 0, 1:]
    _, counts = np.unique(of_first, axis=0, return_counts=True)
    assert len(counts) == 20
    assert counts.max() / counts.min() < 1.4


def slow_gain(X, mu, places, answered, pair):
    """Expected information about the place of the head, word for word."""

    def p(x, a, b):
        near, far = (np.sum((X[x] - X[y]) ** 2) for y in (a, b))
        return (mu + far) / (2 * mu + near + far)

    belief = np.array([math.prod((p(x, a, b) for a, b in answered), start=1.0) for x in places])
    belief /= belief.sum()
    given_place = np.array([p(x, *pair) for x in places])

    def entropy(q):
        return -q * math.log(q) - (1 - q) * math.log(1 - q)

    return entropy(belief @ given_place) - belief @ [entropy(q) for q in given_place]


@given(st.integers(0, 2**32 - 1))
def test_expected_information_is_what_its_definition_says(seed):
    rng = np.random.default_rng(seed)
    X, places = rng.normal(size=(15, 2)), rng.integers(15, size=7)
    draw = [rng.choice(15, 2, replace=False) for _ in range(5 + rng.integers(5))]
    pairs, answered = np.array(draw[:5]), np.array(draw[5:], dtype=np.int64).reshape(-1, 2)
    gains = [slow_gain(X, 0.05, places, answered, pair) for pair in pairs]
    np.testing.assert_allclose(expected_information(X, places, answered, pairs), gains, atol=1e-9)


def test_it_beats_random_questions_with_the_same_fit():
    from nearer.fitting.solver import fit_positions

    chosen, random = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = nearer.datasets.make_gaussian(80, 2, random_state=rng)
        oracle = nearer.PointOracle(X)
        strategy = nearer.algorithms.crowd_kernel(80, budget=4000, n_components=2, random_state=rng)
        embedding = nearer.run(strategy, oracle)
        assert embedding.n_comparisons == len(embedding.triplets) == 4000
        assert len(np.unique(pack(embedding.triplets)[0])) > 3950
        chosen.append(nearer.metrics.knn_precision(X, embedding.positions))
        q = balanced_questions(80, 4000, rng)
        q[~oracle(q), 1:] = q[~oracle(q), :0:-1]
        fit = fit_positions(q, 80, 2, loss="ckl", rng=rng)
        random.append(nearer.metrics.knn_precision(X, fit.positions))
    assert np.median(chosen) > np.median(random)


def test_a_smaller_budget_from_outside_gives_what_there_is():
    X = nearer.datasets.make_gaussian(30, 2, random_state=0)
    strategy = nearer.algorithms.crowd_kernel(30, budget=2000, n_components=2, random_state=0)
    embedding = nearer.run(strategy, nearer.PointOracle(X), budget=150)
    assert embedding.n_comparisons == 150
    assert "150" in embedding.history[0].note
    strategy = nearer.algorithms.crowd_kernel(30, budget=2000, n_components=2, random_state=0)
    assert nearer.run(strategy, nearer.PointOracle(X), budget=0).positions.shape == (30, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"n_objects": 2, "budget": 5, "n_components": 2},
        {"n_objects": 9, "budget": 0, "n_components": 2},
        {"n_objects": 9, "budget": 5, "n_components": 0},
    ],
)
def test_bad_arguments(options):
    with pytest.raises(InvalidInput):
        nearer.algorithms.crowd_kernel(**options)
