"""Unseen objects in an existing embedding, and the search behind it."""

import numpy as np
import pytest
from scipy.stats import kendalltau, norm

import nearer
from nearer._kernels.shells import _inside, _invert
from nearer.algorithms.slotting import Anchors, Slots, slot_objects
from nearer.errors import InvalidInput


@pytest.fixture(scope="module")
def embedded():
    X = np.random.default_rng(0).normal(size=(330, 3))
    return X, nearer.embed(nearer.PointOracle(X), 300, random_state=0, progress=False)


def test_new_objects_rank_the_old_as_well_as_the_old_do(embedded):
    X, old = embedded
    placed = old.place(nearer.PointOracle(X), np.arange(300, 330))
    assert placed.n_comparisons <= 30 * 3 * 3 * np.log2(300)
    assert len(placed.triplets) == placed.n_comparisons

    def tau(x, where):
        true = np.linalg.norm(X[:300] - X[x], axis=1)
        return kendalltau(true, np.linalg.norm(old.positions - where, axis=1))[0]

    new = [tau(x, where) for x, where in zip(placed.objects, placed.positions, strict=True)]
    fitted = [tau(x, old.positions[x]) for x in range(300)]
    assert np.mean(new) > np.mean(fitted) - 0.01


def test_a_budget_places_as_well_as_it_can(embedded):
    X, old = embedded
    asking = nearer.place_objects(old, [300, 301])
    placed = nearer.run(asking, nearer.PointOracle(X), budget=20)
    assert placed.n_comparisons == 20
    assert np.isfinite(placed.positions).all()


def test_nothing_new_costs_nothing(embedded):
    assert embedded[1].place(lambda questions: [], []).n_comparisons == 0


@pytest.mark.parametrize(
    ("new", "message"), [([299], "object 299"), ([300, 300], "twice"), ([0.5], "numbers")]
)
def test_wrong_objects_are_named(embedded, new, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.place_objects(embedded[1], new)


def test_searches_end_inside_their_shells():
    X = np.random.default_rng(1).random((250, 2))
    anchors = Anchors(np.arange(200), X[:200], np.array([0, 1, 2, 3, 4]))
    slots = Slots(anchors, np.arange(200, 250))
    nearer.run(slot_objects(slots), nearer.PointOracle(X))
    for h in range(5):
        true = np.searchsorted(slots.chain[h], np.linalg.norm(X[200:] - X[h], axis=1))
        assert (slots.first[:, h] <= true).all()
        assert (true <= slots.last[:, h]).all()
    assert np.median(np.linalg.norm(slots.positions - X[200:], axis=1)) < 0.02
    assert nearer.PointOracle(X)(slots.triplets()).all()


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (2.0, 2.5), (-9.0, 9.0), (-3.0, -2.9)])
def test_moments_inside_an_interval(low, high):
    grid = np.linspace(low, high, 200_001)
    weight = norm.pdf(grid, 0.3, 1.7)
    mean = (grid * weight).sum() / weight.sum()
    variance = ((grid - mean) ** 2 * weight).sum() / weight.sum()
    assert _inside(0.3, 1.7**2, low, high) == pytest.approx((mean, variance), rel=1e-3)


def test_inverse():
    A = np.cov(np.random.default_rng(2).normal(size=(4, 50)))
    B = A.copy()
    _invert(B)
    assert np.allclose(A @ B, np.eye(4))
