"""What rankings tell: fast ways against slow ones, and the paper's theorems."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from nearer.algorithms.dominance import (
    affinely_independent,
    find_axis,
    hull_estimate,
    lens,
    most_above,
    opposite_apex,
)
from nearer.errors import InvalidInput

seeds = st.integers(0, 2**32 - 1)


def rank_from(X, heads):
    return cdist(X[heads], X).argsort(axis=1).argsort(axis=1)


def slow_hull_estimate(r):
    """Eq. 4 of the paper, word for word."""
    n = r.shape[1]
    inside = [
        all(any(r[p, x] <= r[p, q] for p in range(len(r))) for q in range(n)) for x in range(n)
    ]
    return np.array(inside)


def slow_count_above(r, members):
    n = r.shape[1]
    return np.array([sum((r[:, x] > r[:, q]).all() for q in members) for x in range(n)])


def draw(seed, n_least=5, n_most=60):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(n_least, n_most)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    heads = rng.choice(n, size=int(rng.integers(1, min(6, n))), replace=False)
    return rng, X, heads


@given(seeds)
def test_the_hull_estimate_is_equation_four(seed):
    _, X, heads = draw(seed)
    r = rank_from(X, heads)
    np.testing.assert_array_equal(hull_estimate(r), slow_hull_estimate(r))


@given(seeds)
def test_counting_against_the_slow_way(seed):
    rng, X, heads = draw(seed)
    r = rank_from(X, heads)
    among = rng.random(len(X)) < 0.5
    for mask in (among, hull_estimate(r)):
        counts = slow_count_above(r, np.flatnonzero(mask))
        best, most = most_above(r, mask)
        assert most == counts.max() == counts[best]
        tied = np.flatnonzero(counts == most)
        assert r[:, best].sum() <= r[:, tied].sum(axis=0).max()


@given(seeds)
def test_the_lens_holds_the_apex_and_what_it_is_above(seed):
    rng, X, heads = draw(seed)
    r, p = rank_from(X, heads), int(rng.integers(len(X)))
    for x in range(len(X)):
        assert lens(r, p)[x] == (x == p or (r[:, p] > r[:, x]).all())


def in_hull(point, corners):
    """Whether a point is a convex combination of corners, by linear programming."""
    equations = np.vstack([corners.T, np.ones(len(corners))])
    solution = linprog(np.zeros(len(corners)), A_eq=equations, b_eq=np.append(point, 1.0))
    return solution.status == 0


@given(seeds)
def test_theorem_1_the_estimate_holds_every_object_inside_the_hull(seed):
    rng, X, heads = draw(seed, n_least=8, n_most=30)
    assume(len(heads) > 1)
    weights = rng.dirichlet(np.ones(len(heads)), size=5)
    X = np.concatenate([X, weights @ X[heads]])  # some that surely are inside
    r = rank_from(X, heads)
    inside = np.array([in_hull(x, X[heads]) for x in X])
    assert inside[-5:].any()
    assert (hull_estimate(r) | ~inside).all()


def test_theorem_2_false_positives_are_near_the_hull():
    # On a segment, the largest empty ball of the estimate's hull is known from a fine grid.
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = np.concatenate([[[0.0, 0.0], [1.0, 0.0]], rng.uniform([0, -1], [1, 1], (400, 2))])
        members = X[hull_estimate(rank_from(X, [0, 1]))]
        grid = np.stack(np.meshgrid(np.linspace(0, 1, 80), np.linspace(-1, 1, 160)), -1)
        grid = grid.reshape(-1, 2)
        in_members = np.array([abs(y) <= np.abs(members[:, 1]).max() for _, y in grid])
        empty = cdist(grid[in_members], X).min(axis=1).max()
        bound = np.sqrt(empty * (2 * 1.0 + empty))
        foot = np.clip(members[:, 0], 0, 1)
        off = np.hypot(members[:, 0] - foot, members[:, 1])
        assert (off < bound).all()


@given(seeds)
def test_every_axis_is_order_consistent_and_every_lens_an_interval(seed):
    rng, X, _ = draw(seed)
    p, q = (int(i) for i in rng.choice(len(X), 2, replace=False))
    from_p, from_q = rank_from(X, [p, q])
    axis = find_axis(from_p, from_q)
    assert axis.endpoints == (p, q)
    assert (np.diff(from_p[axis.members]) > 0).all()
    assert (np.diff(from_q[axis.members]) < 0).all()
    first, last = axis.intervals(from_p, from_q)
    coordinates = axis.coordinates(from_p, from_q)
    for x in range(len(X)):
        under = lens(np.stack([from_p, from_q]), x)[axis.members]
        np.testing.assert_array_equal(np.flatnonzero(under), np.arange(first[x], last[x] + 1))
        assert coordinates[x] == np.median(np.flatnonzero(under))


@given(seeds)
def test_the_opposite_apex_is_the_farthest_in_the_lens(seed):
    rng, X, heads = draw(seed)
    endpoint = int(rng.integers(len(X)))
    (own,) = rank_from(X, [endpoint])
    assert opposite_apex(endpoint, own, []) == np.argmax(own)
    earlier = rank_from(X, heads)
    inside = lens(earlier, endpoint)
    inside[endpoint] = False
    assume(inside.any())
    apex = opposite_apex(endpoint, own, list(earlier))
    assert inside[apex]
    assert own[apex] == own[inside].max()


@given(st.integers(1, 3), seeds)
def test_more_heads_than_the_space_holds_are_never_independent(d, seed):
    X = np.random.default_rng(seed).normal(size=(80, d))
    heads = np.random.default_rng(seed).choice(80, d + 2, replace=False)
    assert not affinely_independent(rank_from(X, heads))


def test_corners_of_a_dense_simplex_are_independent():
    rng = np.random.default_rng(0)
    for d in (1, 2, 3):
        X = np.concatenate([np.eye(d + 1), rng.dirichlet(np.ones(d + 1), 2000)])[:, :d]
        assert affinely_independent(rank_from(X, np.arange(d + 1)))


@pytest.mark.parametrize("bad", [[0, 1, 2], [[0.5, 1.0]], np.empty((0, 3), dtype=int)])
def test_rankings_of_another_shape_are_refused(bad):
    with pytest.raises(InvalidInput, match="rankings of shape"):
        hull_estimate(bad)
