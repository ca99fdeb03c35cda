"""Positions and their rank at once."""

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput
from nearer.fitting.baselines import fit_low_rank
from nearer.questions import answered, balanced_questions


def answers(d, flip, seed=0, n=150, m=15_000):
    X = nearer.datasets.make_gaussian(n, d, random_state=seed)
    q = balanced_questions(n, m, np.random.default_rng(seed))
    return X, answered(q, nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=1)(q))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_the_rank_is_the_dimension(d, flip):
    X, T = answers(d, flip)
    found = nearer.estimate_dimension(T, 150, method="low-rank", random_state=0)
    assert (found.dimension, found.method) == (d, "low-rank")
    assert found.positions.shape == (150, d)
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.75
    assert (np.diff(found.scores) <= 0).all()
    assert found.plot().get_ylabel() == "size of the direction"


def test_a_stronger_penalty_leaves_fewer_directions():
    _, T = answers(3, 0.1)
    ranks = [
        fit_low_rank(T, 150, strength=s, rng=np.random.default_rng(0)).positions.shape[1]
        for s in (1e-4, 6e-3, 5e-2)
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1]


def test_bad_arguments():
    for options in ({"max_dimension": 0}, {"strength": 0.0}):
        with pytest.raises(InvalidInput):
            fit_low_rank([[0, 1, 2]], 3, rng=np.random.default_rng(0), **options)
