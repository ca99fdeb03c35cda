"""`nearer.embed` sees whether answers are exact, and goes the way that suits them."""

import numpy as np
import pytest

import nearer

X = np.random.default_rng(0).normal(size=(60, 2))
EXACT = nearer.PointOracle(X)


def names(found):
    return [phase.name for phase in found.history]


def test_exact_answers_are_sorted_by():
    found = nearer.embed(EXACT, 60, random_state=0, progress=False)
    assert names(found)[0] == "check"
    assert "informative" not in names(found)
    assert found.n_comparisons == len(found.triplets)
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.95


def test_noisy_answers_shift_a_posterior():
    people = nearer.NoisyOracle(EXACT, 0.15, random_state=1)
    found = nearer.embed(people, 60, budget=3000, random_state=0, progress=False)
    assert names(found) == ["check", "informative"]
    assert found.n_comparisons == len(found.triplets) == 3000
    assert not found.details["noise_check"].exact
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.8


def test_what_is_said_is_believed():
    people = nearer.NoisyOracle(EXACT, 0.15, random_state=1)
    said = nearer.embed(people, 60, budget=600, noise=0.15, random_state=0, progress=False)
    assert names(said) == ["informative"]
    exact = nearer.embed(EXACT, 60, budget=600, noise=0, random_state=0, progress=False)
    assert "check" not in names(exact)
    assert exact.n_comparisons <= 600


@pytest.mark.parametrize("budget", [0, 1, 100, 161, 200])
def test_any_budget_is_kept(budget):
    found = nearer.embed(EXACT, 60, budget=budget, random_state=0, progress=False)
    assert found.n_comparisons <= budget
    assert np.isfinite(found.positions).all()


@pytest.mark.parametrize("noise", [0.5, -0.1])
def test_rates_that_mean_nothing_are_refused(noise):
    with pytest.raises(nearer.errors.InvalidInput, match="noise="):
        nearer.embed(EXACT, 60, noise=noise, progress=False)
