"""The dimension comes out right from exact and from noisy answers, and says when it cannot."""

import numpy as np
import pytest

import nearer
from nearer import estimate_dimension
from nearer.errors import InvalidInput


def triplets_of(X, m, flip=0.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    near = nearer.PointOracle(X)(rows) ^ (rng.random(m) < flip)
    return np.where(near[:, None], rows, rows[:, [0, 2, 1]])


@pytest.mark.parametrize("d", [1, 2, 4])
def test_exact_answers(d):
    X = np.random.default_rng(d).normal(size=(60, d))
    found = estimate_dimension(triplets_of(X, 6000), 60, max_dimension=7, random_state=0)
    assert (found.dimension, found.method, found.determined) == (d, "exact", True)
    assert found.positions.shape == (60, d)


@pytest.mark.parametrize("d", [1, 3])
def test_noisy_answers(d):
    X = np.random.default_rng(d).normal(size=(60, d))
    found = estimate_dimension(triplets_of(X, 8000, 0.1), 60, max_dimension=6, random_state=0)
    assert (found.dimension, found.method, found.determined) == (d, "held-out", True)
    assert found.dimensions[found.scores.argmin()] == d
    assert found.positions.shape == (60, d)


def test_a_basis_will_do_and_the_plot_shows_every_dimension():
    X = nearer.datasets.make_cube(150, 2, random_state=0)
    basis = nearer.run(nearer.choose_basis(150, random_state=0), nearer.PointOracle(X))
    found = estimate_dimension(basis, random_state=0)
    assert found.dimension == 2
    ax = found.plot()
    assert list(ax.lines[0].get_xdata()) == list(found.dimensions)


@pytest.mark.parametrize("seed", range(3))
def test_chance_answers_determine_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(20, 3, replace=False) for _ in range(2000)])
    assert not estimate_dimension(rows, 20, max_dimension=4, random_state=0).determined


def test_the_cross_validated_test_agrees_on_an_easy_case():
    X = np.random.default_rng(0).normal(size=(25, 2))
    rows = triplets_of(X, 1500)
    found = estimate_dimension(
        rows, 25, method="cross-validated test", max_dimension=3, random_state=0
    )
    assert found.dimension == 2


def test_bad_options():
    with pytest.raises(InvalidInput, match="method="):
        estimate_dimension([[0, 1, 2]], method="guess")
    with pytest.raises(InvalidInput, match="max_dimension=0"):
        estimate_dimension([[0, 1, 2]], max_dimension=0)
