"""Positions that satisfy all answers, and how sure positions are."""

import numpy as np

import nearer
from nearer.fitting.draws import bootstrap_covariances
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.fitting.solver import fit_positions, violated
from nearer.questions import answered, balanced_questions


def answers(X, m, seed=0):
    q = balanced_questions(len(X), m, np.random.default_rng(seed))
    return answered(q, nearer.PointOracle(X)(q)).astype(np.int32)


def test_positions_that_satisfy_everything_have_loss_zero():
    X = np.random.default_rng(3).normal(size=(60, 2))
    T = answers(X, 6000)
    fit = fit_from_more_dimensions(T, 60, 2, rng=np.random.default_rng(0))
    assert not violated(fit.positions, T).any()
    assert fit.loss == 0


def test_more_answers_make_positions_surer():
    X = np.random.default_rng(0).normal(size=(25, 2))
    spreads = []
    for m in (1500, 12_000):
        q = balanced_questions(25, m, np.random.default_rng(1))
        noisy = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=0)
        T = answered(q, noisy(q))
        result = fit_positions(T, 25, 2, loss="logistic", rng=np.random.default_rng(0)).positions

        def refit(weights, start, T=T):
            return fit_positions(T, 25, start=start, weights=weights, loss="logistic").positions

        how = {"weights": np.ones(len(T)), "n_draws": 10, "rng": np.random.default_rng(0)}
        C = bootstrap_covariances(result, T, refit, **how)
        assert (np.linalg.eigvalsh(C) > -1e-12).all()
        spreads.append(np.trace(C.mean(axis=0)) / result.var())
    assert spreads[1] < spreads[0]
