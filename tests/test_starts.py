"""Starts from above reach what random starts miss."""

import numpy as np
import pytest

import nearer
from nearer.fitting import initial
from nearer.fitting.initial import (
    fit_from_more_dimensions,
)
from nearer.fitting.solver import principal_axes, random_start, violated
from nearer.questions import answered, random_questions


@pytest.mark.parametrize("seed", range(3))
def test_exact_rankings_are_satisfied_from_one_start(seed):
    X = nearer.datasets.make_cube(200, 3, random_state=seed)
    basis = nearer.run(nearer.choose_basis(200, random_state=seed), nearer.PointOracle(X))
    fit = fit_from_more_dimensions(basis.triplets, 200, 3, rng=np.random.default_rng(seed))
    assert not violated(fit.positions, basis.triplets).any()
    assert nearer.metrics.mean_kendall_tau(X, fit.positions) > 0.9


def test_principal_axes_keep_distances_and_order_axes():
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1, 5, 2]
    turned = principal_axes(X, 3)
    between = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.testing.assert_allclose(between, np.linalg.norm(turned[:, None] - turned[None], axis=2))
    spread = turned.std(axis=0)
    assert list(spread) == sorted(spread, reverse=True)


def test_interruption_ends_the_whole_descent():
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = np.array([np.random.default_rng(i).choice(30, 3, replace=False) for i in range(500)])
    rows = np.where(nearer.PointOracle(X)(rows)[:, None], rows, rows[:, [0, 2, 1]])
    calls = []

    def callback(step, loss, positions):
        calls.append(step)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_from_more_dimensions(rows, 30, 2, rng=np.random.default_rng(0), callback=callback)
    assert len(calls) == 4


def test_some_of_many_answers_are_enough_on_the_way_down(monkeypatch):
    X = nearer.datasets.make_cube(300, 2, random_state=0)
    rng = np.random.default_rng(0)
    rows, unseen = random_questions(300, 60_000, rng), random_questions(300, 10_000, rng)
    rows = answered(rows, nearer.PointOracle(X)(rows))
    unseen = answered(unseen, nearer.PointOracle(X)(unseen))
    some = fit_from_more_dimensions(rows, 300, 2, rng=np.random.default_rng(1))
    monkeypatch.setattr(initial, "ENOUGH", 1000)
    every = fit_from_more_dimensions(rows, 300, 2, rng=np.random.default_rng(1))
    assert not violated(some.positions, rows).any()
    wrong = [violated(fit.positions, unseen).mean() for fit in (some, every)]
    assert wrong[0] < 1.1 * wrong[1]


@pytest.mark.parametrize("m", [800, 5000])
def test_the_most_probable_positions_predict_exact_answers_better(m):
    wrong = {True: [], False: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 2))
        rows, unseen = random_questions(60, m, rng), random_questions(60, 5000, rng)
        rows = answered(rows, nearer.PointOracle(X)(rows))
        unseen = answered(unseen, nearer.PointOracle(X)(unseen))
        for centre, shares in wrong.items():
            how = {"rng": np.random.default_rng(seed), "centre": centre}
            fit = fit_from_more_dimensions(rows, 60, 2, **how)
            shares.append(violated(fit.positions, unseen).mean())
    assert np.mean(wrong[True]) < 0.95 * np.mean(wrong[False])


def test_no_further_starts_are_tried_where_many_answers_are_wrong(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(60, 2))
    rows = random_questions(60, 3600, rng)
    rows = answered(rows, nearer.PointOracle(X)(rows) ^ (rng.random(3600) < 0.1))
    plain = fit_from_more_dimensions(rows, 60, 2, rng=np.random.default_rng(1))
    monkeypatch.setattr(initial, "NEARLY", 1.0)
    looked = fit_from_more_dimensions(rows, 60, 2, rng=np.random.default_rng(1))
    assert plain.n_iter < looked.n_iter / 3
    tau = [nearer.metrics.mean_kendall_tau(X, fit.positions) for fit in (plain, looked)]
    assert tau[0] > tau[1] - 0.01


def test_no_dimension_is_refused():
    with pytest.raises(nearer.errors.InvalidInput, match="n_components=0"):
        random_start(3, 0, np.random.default_rng(0))
