"""`nearer.embed` sees whether answers are exact, and goes the way that suits them."""

import numpy as np
import pytest

import nearer
from nearer.algorithms.budgets import noisy_budget
from nearer.questions import pack

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


def asked_by(oracle, **options):
    asked = []

    def watched(questions):
        asked.append(questions)
        return oracle(questions)

    found = nearer.embed(watched, 60, random_state=0, progress=False, **options)
    return found, np.concatenate(asked)


def test_a_rate_that_is_told_skips_the_check_and_is_where_the_fit_begins():
    people = nearer.NoisyOracle(EXACT, 0.15, random_state=1)
    told, _ = asked_by(people, budget=15, noise=0.3)
    assert names(told) == ["informative"]
    assert told.details["noise"].lapse == 0.3  # fifteen answers do not overrule it
    more, _ = asked_by(people, budget=3000, noise=0.3)
    assert more.details["noise"].lapse < 0.25  # three thousand do
    exact, _ = asked_by(EXACT, budget=600, noise=0)
    assert "check" not in names(exact)
    assert exact.n_comparisons <= 600


def test_answers_that_are_wrong_more_often_may_cost_more():
    rates = (0.05, 0.1, 0.2, 0.3)
    budgets = [noisy_budget(60, rate) for rate in rates]
    assert budgets == sorted(budgets)
    assert budgets[-1] > 4 * budgets[0]
    assert noisy_budget(60, 0.49) < 10 * noisy_budget(60, 0.1)


def test_answers_of_the_check_are_learned_and_not_asked_again():
    people = nearer.NoisyOracle(EXACT, 0.15, random_state=1)
    found, questions = asked_by(people, budget=1000)
    check = found.history[0].n_comparisons
    keys = pack(questions)[0]
    assert not np.isin(keys[check:], keys[:check]).any()
    # one object is asked about in the check alone: it is placed by those answers
    alone = int(np.argmax(np.bincount(questions[:check].ravel(), minlength=60)))

    def but_one(rows):
        return (rows != alone).all(axis=1)

    known = found.triplets[:check]
    with_it = nearer.run(
        nearer.informative(60, budget=400, askable=but_one, known=known, random_state=0), people
    )
    without = nearer.run(
        nearer.informative(60, budget=400, askable=but_one, random_state=0), people
    )
    assert with_it.details["never_asked"].tolist() == []
    assert without.details["never_asked"].tolist() == [alone]


@pytest.mark.parametrize("budget", [0, 1, 100, 161, 200])
def test_any_budget_is_kept(budget):
    found = nearer.embed(EXACT, 60, budget=budget, random_state=0, progress=False)
    assert found.n_comparisons <= budget
    assert np.isfinite(found.positions).all()


@pytest.mark.parametrize("noise", [0.5, -0.1])
def test_rates_that_mean_nothing_are_refused(noise):
    with pytest.raises(nearer.errors.InvalidInput, match="noise="):
        nearer.embed(EXACT, 60, noise=noise, progress=False)
