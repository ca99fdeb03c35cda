"""Each loss against its formula, each gradient against differences, chunks against one pass."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearer._kernels import comparisons
from nearer._kernels import comparisons as kernel
from nearer.errors import InvalidInput
from nearer.fitting.solver import LOSSES, Loss, as_loss


def slow_loss(name: str, shape: float, near: float, far: float) -> float:
    """The formulas as the papers print them, one triplet at a time."""
    match name:
        case "soe":
            return max(0.0, 1 + near - far) ** 2
        case "logistic":
            return -math.log(shape + (1 - 2 * shape) / (1 + math.exp(near - far)))
        case "ckl":
            return -math.log((shape + far**2) / (2 * shape + near**2 + far**2))
        case "gnmds":
            slack = max(0.0, 1 + near**2 - far**2)
            return slack**2 / 2 if slack < 1 else slack - 0.5
        case "ste":
            return -math.log(math.exp(-(near**2)) / (math.exp(-(near**2)) + math.exp(-(far**2))))
        case _:
            power = -(shape + 1) / 2
            a, b = (1 + near**2 / shape) ** power, (1 + far**2 / shape) ** power
            return -math.log(a / (a + b))


def slow_mean(name, shape, X, triplets, weights):
    total = 0.0
    for (h, i, j), w in zip(triplets, weights, strict=True):
        near, far = np.linalg.norm(X[h] - X[i]), np.linalg.norm(X[h] - X[j])
        total += w * slow_loss(name, shape, float(near), float(far))
    return total / sum(weights)


def problem(seed, n=8, d=2, m=30):
    rng = np.random.default_rng(seed)
    triplets = np.array([rng.choice(n, 3, replace=False) for _ in range(m)])
    return rng.normal(size=(n, d)), triplets, rng.uniform(0.1, 2, size=m)


SHAPES = [("soe", None), ("logistic", 0.0), ("logistic", 0.1), ("ckl", 0.05), ("ckl", 1.0)]
SHAPES += [("gnmds", None), ("ste", None), ("tste", 1.0), ("tste", 3.0)]


@pytest.mark.parametrize(("name", "shape"), SHAPES)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_value_and_gradient_follow_the_formula(name, shape, seed, d):
    X, triplets, weights = problem(seed, d=d)
    loss = Loss(name, shape)
    value, gradient = loss.value_and_gradient(X, triplets, weights)
    slow = slow_mean(name, shape, X, triplets, weights)
    assert value == pytest.approx(slow, rel=1e-10)
    step = 1e-6
    for i, k in [(0, 0), (3, d - 1), (7, 0)]:
        ahead, behind = X.copy(), X.copy()
        ahead[i, k] += step
        behind[i, k] -= step
        slope = slow_mean(name, shape, ahead, triplets, weights)
        slope -= slow_mean(name, shape, behind, triplets, weights)
        assert gradient[i, k] == pytest.approx(slope / (2 * step), abs=2e-5, rel=1e-4)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_many_chunks_give_the_sum_of_one_pass(name, monkeypatch):
    X, triplets, weights = problem(1, n=20, d=3, m=200)
    alone = Loss(name).value_and_gradient(X, triplets, weights)
    monkeypatch.setattr(kernel, "PART", 20)
    chunked = Loss(name).value_and_gradient(X, triplets, weights)
    assert chunked[0] == pytest.approx(alone[0], rel=1e-12)
    np.testing.assert_allclose(chunked[1], alone[1], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_the_number_of_threads_changes_no_bit(name, monkeypatch):
    X, triplets, weights = problem(3, n=50, d=2, m=70_000)
    results = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(comparisons, "_CORES", cores)
        results.append(Loss(name).value_and_gradient(X, triplets, weights))
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_coincident_and_distant_objects_stay_finite(name):
    triplets = np.array([[0, 1, 2], [0, 2, 1]])
    for X in (np.zeros((3, 2)), np.array([[0.0, 0], [0, 0], [1e6, 0]])):
        value, gradient = Loss(name).value_and_gradient(X, triplets)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize(("name", "shape"), [("soe", None), ("logistic", 0.0), ("logistic", 0.1)])
def test_answers_satisfied_by_far_cost_what_the_formula_says(name, shape):
    X, triplets, weights = problem(2)
    X *= 200  # margins from far below zero to far beyond where a pass stops looking
    value, _ = Loss(name, shape).value_and_gradient(X, triplets, weights)
    assert value == pytest.approx(slow_mean(name, shape or 0.0, X, triplets, weights), rel=1e-10)
    held = np.array([[0, 1, 2]])
    apart = np.array([[0.0, 0], [0, 3], [0, 4 + 1e-9]])  # just beyond soe's margin
    assert Loss("soe").value_and_gradient(apart, held)[0] == 0.0
    assert Loss("soe").value_and_gradient(apart - [[0, 0], [0, 0], [0, 2e-9]], held)[0] > 0.0


def test_unknown_names_and_shapes_are_refused():
    with pytest.raises(InvalidInput, match="must be one of ckl"):
        Loss("hinge")
    with pytest.raises(InvalidInput, match="has no shape"):
        Loss("soe", 1.0)
    with pytest.raises(InvalidInput, match=r"from 0\.0 to below 0\.5"):
        Loss("logistic", 0.5)
    assert as_loss(Loss("ste")) == as_loss("ste")
