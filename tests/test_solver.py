"""Fits reach the optimum, follow their options, and say what is wrong with their input."""

import numpy as np
import pytest
from scipy.optimize import minimize

from nearer import checks
from nearer._kernels import comparisons as kernel
from nearer.errors import InvalidInput
from nearer.fitting.solver import LOSSES, Loss, Passes, fit_positions, margins, prepare


def random_triplets(X, m, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    near, far = (np.linalg.norm(X[rows[:, 0]] - X[rows[:, c]], axis=1) for c in (1, 2))
    return np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]])


def satisfied(X, triplets):
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
    assert satisfied(fit.positions, test) > 0.9


def test_passes_judge_as_the_formula_does(plane):
    X, train, _ = plane
    rows = train[:, [0, 2, 1]]  # all contradicted
    rows[::3] = train[::3]
    passes = Passes(rows.astype(np.int32), None, 30)
    gaps = margins(X, rows)
    np.testing.assert_array_equal(passes.violated(X), gaps <= 0)
    assert passes.least_margin(X) == pytest.approx(gaps.min(), rel=1e-12)
    assert passes.share_violated(X) == pytest.approx(2 / 3, abs=1e-3)


def test_soe_reaches_zero_on_exact_answers(plane):
    _, train, _ = plane
    fit = fit_positions(train, 30, 2, rng=np.random.default_rng(0))
    assert fit.converged
    assert fit.loss < 1e-6
    assert satisfied(fit.positions, train) == 1.0


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


def test_too_few_steps_are_reported(plane):
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
        ([[0, 1, -1]], 3, r"triplet 0 is \[0, 1, -1\]: objects must be from 0 to 2"),
        ([[0, 1, 2**31]], None, r"2147483648\]: objects must be from 0 to 2147483646"),
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
    with pytest.raises(InvalidInput, match="rng=None: must be a NumPy Generator"):
        fit_positions([[0, 1, 2]], 3)
    with pytest.raises(InvalidInput, match="start of shape"):
        fit_positions([[0, 1, 2]], 3, start=np.zeros((2, 2)))
    with pytest.raises(InvalidInput, match="n_components=0"):
        fit_positions([[0, 1, 2]], 3, 0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("loss", [Loss("logistic", 0.02), Loss("tste"), Loss("ste"), Loss("soe")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loop_ends_where_the_optimiser_of_scipy_does(plane, loss, weighted):
    _, train, _ = plane
    rng = np.random.default_rng(0)
    start = rng.normal(size=(30, 2))
    weights = rng.integers(0, 3, len(train)).astype(float) if weighted else None
    passes = prepare(train, 30, weights)

    def objective(flat):
        value, gradient = passes.sums(loss, flat.reshape(30, 2))
        gradient = gradient.ravel() / passes.total + 1e-3 * flat
        return value / passes.total + 0.5e-3 * flat @ flat, gradient

    options = {"maxiter": 1000, "ftol": 1e-12, "gtol": 0}
    slow = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    fast = fit_positions(passes, loss=loss, start=start, ridge=1e-3, max_iter=1000, tol=1e-12)
    assert fast.converged
    assert objective(fast.positions.ravel())[0] == pytest.approx(slow.fun, rel=1e-3)
    assert fast.loss == pytest.approx(passes.sums(loss, fast.positions)[0] / passes.total)


def test_the_loop_stops_after_its_steps_and_leaves_the_start_alone(plane):
    _, train, _ = plane
    start = np.random.default_rng(0).normal(size=(30, 2))
    before = start.copy()
    how = {"loss": "logistic", "tol": 0.0}
    fit = fit_positions(train, 30, start=start, max_iter=3, **how)
    assert (fit.n_iter, fit.converged) == (3, False)
    np.testing.assert_array_equal(start, before)
    again = fit_positions(train, 30, start=start, max_iter=3, **how)
    np.testing.assert_array_equal(fit.positions, again.positions)
    # where no answer pulls there is nothing to do
    still = fit_positions(train, 30, start=np.zeros((30, 2)), max_iter=9, **how)
    assert still.converged
    assert still.n_iter == 0


def test_directions_are_those_of_the_dense_recursion():
    """The inverse of the Hessian as BFGS builds it, from the steps that are remembered."""
    rng = np.random.default_rng(0)
    H = rng.normal(size=(7, 7))
    H = H @ H.T + np.eye(7)
    steps, sizes = np.empty((2, kernel._STEPS, 7)), np.empty((2, kernel._STEPS))
    moves, direction, gradient, count = (
        rng.normal(size=(kernel._STEPS + 3, 7)),
        np.empty(7),
        None,
        0,
    )
    for move in moves:
        x, gradient = rng.normal(size=(2, 7))
        count, slope = kernel._turn(
            x, gradient - H @ move, x + move, gradient, steps, sizes, count, direction
        )
    moves, turns = moves[-kernel._STEPS :], moves[-kernel._STEPS :] @ H
    inverse = np.eye(7) * (moves[-1] @ turns[-1]) / (turns[-1] @ turns[-1])
    for s, y in zip(moves, turns, strict=True):
        turned = np.eye(7) - np.outer(y, s) / (s @ y)
        inverse = turned.T @ inverse @ turned + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(direction, -inverse @ gradient, rtol=1e-9)
    assert slope == pytest.approx(direction @ gradient)
