"""Fits reach the optimum, obey their options, and say what is wrong with their input."""

import numpy as np
import pytest

from nearer import checks
from nearer._kernels import gradients
from nearer.errors import InvalidInput
from nearer.fitting.losses import LOSSES, Loss
from nearer.fitting.solver import Passes, fit_positions, margins, prepare


def random_triplets(X, m, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    near, far = (np.linalg.norm(X[rows[:, 0]] - X[rows[:, c]], axis=1) for c in (1, 2))
    return np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]])


def obeyed(X, triplets):
    near, far = (np.linalg.norm(X[triplets[:, 0]] - X[triplets[:, c]], axis=1) for c in (1, 2))
    return float(np.mean(near < far))


@pytest.fixture(scope="module")
def plane():
    X = np.random.default_rng(0).normal(size=(30, 2))
    return X, random_triplets(X, 2000), random_triplets(X, 2000, seed=1)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_explains_unseen_answers(plane, loss):
    _, train, test = plane
    fit = fit_positions(train, 30, 2, loss=loss, ridge=1e-5, rng=np.random.default_rng(0))
    assert obeyed(fit.positions, test) > 0.9


def test_passes_judge_as_the_formula_does(plane):
    X, train, _ = plane
    rows = train[:, [0, 2, 1]]  # all contradicted
    rows[::3] = train[::3]
    passes = Passes(rows.astype(np.int32), None, 30)
    gaps = margins(X, rows)
    np.testing.assert_array_equal(passes.disobeyed(X), gaps <= 0)
    assert passes.least_margin(X) == pytest.approx(gaps.min(), rel=1e-12)
    assert passes.share_disobeyed(X) == pytest.approx(2 / 3, abs=1e-3)


def test_soe_reaches_zero_on_exact_answers(plane):
    _, train, _ = plane
    fit = fit_positions(train, 30, 2, rng=np.random.default_rng(0))
    assert fit.converged
    assert fit.loss < 1e-6
    assert obeyed(fit.positions, train) == 1.0


def test_weights_are_repetitions(plane):
    _, train, _ = plane
    start = np.random.default_rng(0).normal(size=(30, 2))
    weights = np.random.default_rng(1).integers(0, 3, len(train))
    a = fit_positions(train, 30, loss="ste", start=start, weights=weights, max_iter=5)
    b = fit_positions(np.repeat(train, weights, axis=0), 30, loss="ste", start=start, max_iter=5)
    np.testing.assert_allclose(a.positions, b.positions, rtol=1e-6)


def test_ridge_shrinks(plane):
    _, train, _ = plane
    rng = np.random.default_rng
    sizes = [
        np.linalg.norm(fit_positions(train, 30, 2, loss="ste", ridge=r, rng=rng(0)).positions)
        for r in (1e-6, 1e-4, 1e-2)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_too_few_steps_are_told(plane):
    fit = fit_positions(plane[1], 30, 2, max_iter=3, rng=np.random.default_rng(0))
    assert (fit.n_iter, fit.converged) == (3, False)


def test_an_interruption_is_not_swallowed(plane):
    def callback(step, loss, positions):
        if step == 5:
            raise KeyboardInterrupt

    start = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(KeyboardInterrupt):
        fit_positions(plane[1], 30, start=start, callback=callback)


def test_a_callback_can_end_a_fit(plane):
    def callback(step, loss, positions):
        if step == 5:
            raise StopIteration

    start = np.random.default_rng(0).normal(size=(30, 2))
    fit = fit_positions(plane[1], 30, start=start, callback=callback)
    assert (fit.n_iter, fit.converged) == (5, True)


@pytest.mark.parametrize(
    ("triplets", "n", "message"),
    [
        ([[0, 1, 1]], 3, "three objects must differ"),
        ([[0, 1, 3]], 3, "objects must be from 0 to 2"),
        ([[0, 1, -1]], 3, "object -1: objects are whole numbers from 0"),
        ([[0, 1, 2**31]], None, "object 2147483648"),
        ([[0, 1, 2, 3]], 4, "must be .m, 3."),
        (np.empty((0, 3), int), 4, "at least one"),
        ([[0, 1, 2.5]], 4, "whole numbers"),
        ([["a", "b", "c"]], 4, "number the labels"),
        ([[0, 1, np.nan]], 4, "whole numbers"),
    ],
)
def test_bad_triplets(triplets, n, message):
    with pytest.raises(InvalidInput, match=message):
        checks.triplets(triplets, n)


def test_triplets_of_whole_floats_are_taken():
    rows, n = checks.triplets(np.array([[0.0, 1.0, 2.0]]))
    assert (rows.tolist(), n) == ([[0, 1, 2]], 3)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.nan]])
def test_bad_weights(weights):
    with pytest.raises(InvalidInput, match="weights"):
        checks.weights(weights, 2)


def test_bad_starts():
    with pytest.raises(InvalidInput, match="pass rng"):
        fit_positions([[0, 1, 2]], 3)
    with pytest.raises(InvalidInput, match="start of shape"):
        fit_positions([[0, 1, 2]], 3, start=np.zeros((2, 2)))
    with pytest.raises(InvalidInput, match="n_components=0"):
        fit_positions([[0, 1, 2]], 3, 0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("loss", [Loss("logistic", 0.02), Loss("tste"), Loss("ste")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_compiled_loop_ends_where_the_optimiser_of_scipy_does(plane, loss, weighted):
    _, train, _ = plane
    rng = np.random.default_rng(0)
    start = rng.normal(size=(30, 2))
    weights = rng.integers(0, 3, len(train)).astype(float) if weighted else None
    passes = prepare(train, 30, weights)
    how = {"ridge": 1e-3, "max_iter": 1000, "tol": 1e-12}
    slow = fit_positions(passes, loss=loss, start=start, **how)
    fast = passes.descend(loss, start, **how)

    def objective(fit):
        return fit.loss + 0.5 * how["ridge"] * np.sum(fit.positions**2)

    assert fast.converged
    assert objective(fast) == pytest.approx(objective(slow), rel=1e-3)
    assert fast.loss == pytest.approx(passes.mean_loss(loss, fast.positions))


def test_the_compiled_loop_stops_when_told_and_leaves_the_start_alone(plane):
    _, train, _ = plane
    start = np.random.default_rng(0).normal(size=(30, 2))
    before = start.copy()
    fit = prepare(train, 30).descend(Loss("logistic"), start, ridge=0.0, max_iter=3, tol=0.0)
    assert (fit.n_iter, fit.converged) == (3, False)
    np.testing.assert_array_equal(start, before)
    again = prepare(train, 30).descend(Loss("logistic"), start, ridge=0.0, max_iter=3, tol=0.0)
    np.testing.assert_array_equal(fit.positions, again.positions)
    # at a place where nothing pulls there is nothing to do
    still = prepare(train, 30).descend(
        Loss("logistic"), np.zeros((30, 2)), ridge=0.0, max_iter=9, tol=0.0
    )
    assert still.converged
    assert still.n_iter == 0


@pytest.mark.parametrize("loss", [Loss("logistic", 0.02), Loss("tste")])
def test_the_compiled_loop_looks_for_interruptions_without_changing_a_bit(plane, loss, monkeypatch):
    passes, start = prepare(plane[1], 30), np.random.default_rng(0).normal(size=(30, 2))
    how = {"ridge": 1e-3, "max_iter": 100, "tol": 1e-9}
    whole = passes.descend(loss, start, **how)
    real, ends = gradients._some_steps, []

    def watched(*arguments):
        ends.append(arguments[-1])
        if interrupted_at in ends:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(gradients, "_some_steps", watched)
    monkeypatch.setattr(gradients, "_AT_ONCE", 3 * (len(plane[1]) + 60))
    interrupted_at = None
    parts = passes.descend(loss, start, **how)
    assert ends == [min(k, 100) for k in range(3, whole.n_iter + 3, 3)]
    np.testing.assert_array_equal(parts.positions, whole.positions)
    assert (parts.loss, parts.n_iter, parts.converged) == (
        whole.loss,
        whole.n_iter,
        whole.converged,
    )
    interrupted_at = 9
    with pytest.raises(KeyboardInterrupt):
        passes.descend(loss, start, **how)
