"""Choices: the kernels against slow code, the logistic model, and what must not matter."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearer._kernels import comparisons as triplet_kernel
from nearer.fitting.likelihood import Noise, as_answers
from nearer.fitting.posterior import Posterior
from nearer.fitting.solver import Loss
from nearer.trials import Trials

N = 9


def mean_loss(choices, X, noise):
    value, gradient = choices.sums(X, noise)
    return value / choices.total_weight, gradient / choices.total_weight


def some(kind, k=1, m=4, count=6, seed=0, ranked=False):
    """Random trials of a task."""
    rng = np.random.default_rng(seed)
    if kind == "pairs":
        rows = [rng.choice(N, 4, replace=False) for _ in range(count)]
        return Trials.pairs(rows, rng.integers(2, size=count))
    if kind == "near":
        rows = np.array([rng.choice(N, m + 1, replace=False) for _ in range(count)])
        chosen = [rng.permutation(row[1:])[:k] for row in rows]
        return Trials.near(rows[:, 0], rows[:, 1:], chosen, ranked=ranked)
    rows = np.array([rng.choice(N, m, replace=False) for _ in range(count)])
    make = Trials.odd_one_out if kind == "odd-one-out" else Trials.most_central
    return make(rows, rows[:, 0])


EVERY = {
    "1 of 2": some("near", 1, 2),
    "1 of 5": some("near", 1, 5),
    "2 of 5": some("near", 2, 5),
    "3 of 7": some("near", 3, 7),
    "rank 3 of 6": some("near", 3, 6, ranked=True),
    "odd of 3": some("odd-one-out", m=3),
    "odd of 5": some("odd-one-out", m=5),
    "central": some("most-central", m=3),
    "pairs": some("pairs"),
}


def counted(X, a, b, tail):
    squared = float(((X[a] - X[b]) ** 2).sum())
    return (tail + 1) / 2 * np.log1p(squared / tail) if tail else np.sqrt(squared)


def slow_utilities(trials, t, X, tail):
    """The utility of every alternative, by the definition of the task."""
    shown = [x for x in trials.shown[t].tolist() if x >= 0]
    if trials.kind == "near":
        return [-counted(X, trials.query[t], x, tail) for x in shown]
    if trials.kind == "pairs":
        return [-counted(X, *shown[i : i + 2], tail) for i in range(0, len(shown), 2)]
    if trials.kind == "odd-one-out":
        rest = [[y for y in shown if y != x] for x in shown]
        return [-sum(counted(X, *pair, tail) for pair in combinations(r, 2)) for r in rest]
    return [-sum(counted(X, x, y, tail) for y in shown if y != x) for x in shown]


def slow_answers(trials, t):
    """All possible answers, as tuples of alternatives, and the one that was chosen."""
    m, k = int(trials.n_shown[t]), int(trials.wanted[t])
    place = trials.chosen[t]
    if trials.ranked:
        chosen = tuple(np.argsort(place)[np.sort(place) > 0].tolist())
        return list(permutations(range(m), k)), chosen
    return list(combinations(range(m), k)), tuple(np.flatnonzero(place).tolist())


def slow_probabilities(trials, t, X, lapse, tail):
    u = np.array(slow_utilities(trials, t, X, tail))
    possible, chosen = slow_answers(trials, t)
    if trials.ranked:
        q = []
        for order in possible:
            left, p = list(range(len(u))), 1.0
            for i in order:
                p *= np.exp(u[i]) / np.exp(u[left]).sum()
                left.remove(i)
            q.append(p)
        q = np.array(q)
    else:
        q = np.exp([u[list(s)].sum() for s in possible])
        q /= q.sum()
    return 2 * lapse / len(possible) + (1 - 2 * lapse) * q, possible.index(chosen)


@pytest.mark.parametrize("tail", [0.0, 1.5])
@pytest.mark.parametrize("lapse", [0.0, 0.07])
@pytest.mark.parametrize("task", EVERY)
def test_the_likelihood_is_that_of_all_answers_written_out(task, lapse, tail):
    trials, X = EVERY[task], np.random.default_rng(1).normal(size=(N, 3))
    slow = []
    for t in range(len(trials)):
        p, answers = slow_probabilities(trials, t, X, lapse, tail)
        assert p.sum() == pytest.approx(1)
        slow.append(-np.log(p[answers]))
    value, _ = mean_loss(as_answers(trials, N), X, Noise(1.0, lapse, tail=tail))
    assert value == pytest.approx(np.mean(slow), rel=1e-12)


@pytest.mark.parametrize("tail", [0.0, 1.5])
@pytest.mark.parametrize("lapse", [0.0, 0.07])
@pytest.mark.parametrize("task", EVERY)
def test_the_gradient_is_that_of_small_steps(task, lapse, tail):
    choices, rng = as_answers(EVERY[task], N), np.random.default_rng(2)
    X, noise = rng.normal(size=(N, 3)), Noise(1.0, lapse, tail=tail)
    _, gradient = mean_loss(choices, X, noise)
    for _ in range(3):
        step = rng.normal(size=X.shape)
        ahead, behind = (mean_loss(choices, X + e * step, noise)[0] for e in (1e-5, -1e-5))
        assert (ahead - behind) / 2e-5 == pytest.approx((gradient * step).sum(), abs=1e-7)


@pytest.mark.parametrize("lapse", [0.0, 0.07])
def test_with_two_alternatives_it_is_the_logistic_model(lapse):
    rng = np.random.default_rng(3)
    rows = np.array([rng.choice(N, 3, replace=False) for _ in range(40)])
    X, weights = rng.normal(size=(N, 2)), rng.random(40)
    choices, noise = as_answers(Trials.from_triplets(rows), N, weights), Noise(1.0, lapse)
    value, gradient = mean_loss(choices, X, noise)
    want, slope = Loss("logistic", lapse).value_and_gradient(X, rows.astype(np.int32), weights)
    assert value == pytest.approx(want, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-14)
    information = triplet_kernel.information(X, rows, weights, lapse, 0.0)
    np.testing.assert_allclose(choices.information(X, noise), information, atol=1e-12)
    spread = rng.normal(size=(N, 2, 2))
    spread = spread @ spread.transpose(0, 2, 1)
    single = as_answers(Trials.from_triplets(rows[:1]), N)
    _, variance = single.expected_information(X, spread, 0.0, 1.0, lapse)
    assert variance[0] == pytest.approx(triplet_kernel.margins(X, spread, rows[:1], 0.0)[1][0])


def slow_information(trials, t, X, lapse):
    """Σ over all answers of p · (∇ log p)(∇ log p)ᵀ, the gradients by small steps."""
    flat = X.ravel()

    def logs(x):
        return np.log(slow_probabilities(trials, t, x.reshape(X.shape), lapse, 0.0)[0])

    steps = 1e-5 * np.eye(flat.size)
    slopes = np.array([(logs(flat + e) - logs(flat - e)) / 2e-5 for e in steps])
    return (slopes * np.exp(logs(flat))) @ slopes.T


@pytest.mark.parametrize(
    ("task", "lapse"),
    [("1 of 5", 0.0), ("1 of 5", 0.1), ("2 of 5", 0.0), ("3 of 7", 0.0), ("odd of 5", 0.05),
     ("central", 0.0), ("pairs", 0.05)],
)  # fmt: skip
def test_the_information_is_that_of_all_answers_written_out(task, lapse):
    trials, X = EVERY[task][:2], np.random.default_rng(4).normal(size=(N, 2))
    whole = sum(slow_information(trials, t, X, lapse) for t in range(2))
    blocks = as_answers(trials, N).information(X, Noise(1.0, lapse))
    for i in range(N):
        np.testing.assert_allclose(
            blocks[i], whole[2 * i : 2 * i + 2, 2 * i : 2 * i + 2], atol=1e-8
        )


def test_lapses_take_from_the_information_of_a_set_about_what_they_take():
    trials, X = EVERY["2 of 5"][:1], np.random.default_rng(4).normal(size=(N, 2))
    exact = np.trace(slow_information(trials, 0, X, 0.1))
    near = np.trace(as_answers(trials, N).information(X, Noise(1.0, 0.1)).sum(axis=0))
    assert near == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("task", EVERY)
def test_what_is_expected_is_half_the_trace_of_information_times_covariance(task):
    trials, rng = EVERY[task], np.random.default_rng(5)
    X, root = rng.normal(size=(N, 2)), rng.normal(size=(N, 2, 2))
    spread = root @ root.transpose(0, 2, 1)
    choices = as_answers(trials, N)
    expected, variance = choices.expected_information(X, spread, 0.0, 1.3, 0.02)
    assert (variance > 0).all()
    for row in range(len(choices)):
        one = choices.part(np.arange(len(choices)) == row)
        # the unit of distance is free: sharpness 1.3 is the same as positions 1.3 times as large
        blocks = one.information(1.3 * X, Noise(1.0, 0.02))
        want = 0.5 * 1.3**2 * np.einsum("nij,nji->", blocks, spread)
        assert expected[row] == pytest.approx(want / one.weights[0], rel=1e-9)


def test_a_tie_is_best_explained_by_equal_utilities():
    tie = Trials.near([0], [[1, 2, 3]], [None], wanted=2)
    choices = as_answers(tie, 4)
    even = np.array([[0.0, 0], [1, 0], [0, 1], [-1, 0]])
    value, gradient = mean_loss(choices, even, Noise())
    assert value == pytest.approx(np.log(3))
    np.testing.assert_allclose(gradient, 0, atol=1e-12)
    assert mean_loss(choices, even * [[1], [1], [2], [1]], Noise())[0] > value


def test_far_away_objects_do_not_overflow():
    X = np.array([[0.0], [1.0], [5e3], [-1e4], [2e4], [1e5]])
    trials = Trials.near([0, 0], [[1, 2, 3, 4, 5]] * 2, [[1, 2, 3], [5, 4, 3]])
    value, gradient = mean_loss(as_answers(trials, 6), X, Noise())
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    # the first answer is certain, so the second one's odds are all there is
    assert 2 * value == pytest.approx((1e5 + 2e4) - (1 + 5e3), rel=1e-6)


tasks = st.sampled_from(sorted(EVERY))


@settings(max_examples=25, deadline=None)
@given(tasks, st.integers(0, 1000))
def test_turning_moving_and_renumbering_change_nothing(task, seed):
    trials, rng = EVERY[task], np.random.default_rng(seed)
    X, noise = rng.normal(size=(N, 3)), Noise(1.0, 0.05)
    value, gradient = mean_loss(as_answers(trials, N), X, noise)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved, turned = mean_loss(as_answers(trials, N), X @ turn + rng.normal(size=3), noise)
    assert moved == pytest.approx(value)
    np.testing.assert_allclose(turned, gradient @ turn, atol=1e-10)
    new = rng.permutation(N)
    query = np.where(trials.query < 0, -1, new[trials.query])
    renamed = Trials(trials.kind, query, new[trials.shown], trials.chosen, trials.wanted,
                     trials.ranked)  # fmt: skip
    assert mean_loss(as_answers(renamed, N), X[np.argsort(new)], noise)[0] == pytest.approx(value)
    np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(tasks, st.integers(0, 1000))
def test_the_order_of_trials_and_of_what_is_shown_changes_nothing(task, seed):
    trials, rng = EVERY[task], np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    value = mean_loss(as_answers(trials, N), X, Noise())[0]
    assert mean_loss(as_answers(trials[rng.permutation(len(trials))], N), X, Noise())[0] == (
        pytest.approx(value)
    )
    if trials.kind != "pairs":
        order = rng.permutation(trials.shown.shape[1])
        other = Trials(trials.kind, trials.query, trials.shown[:, order],
                       trials.chosen[:, order], trials.wanted, trials.ranked)  # fmt: skip
        assert mean_loss(as_answers(other, N), X, Noise())[0] == pytest.approx(value)


def test_equal_answers_are_one_row_and_parts_keep_what_belongs_together():
    trials = EVERY["2 of 5"]
    twice = trials[[*range(6), *range(6)]]
    choices = as_answers(twice, N)
    assert len(choices) == 6
    assert choices.weights.tolist() == [2.0] * 6
    X = np.random.default_rng(6).normal(size=(N, 2))
    assert mean_loss(choices, X, Noise())[0] == pytest.approx(
        mean_loss(as_answers(trials, N), X, Noise())[0]
    )
    some_rows = np.array([True, False, True, True, False, False])
    part, rest = choices.part(some_rows), choices.part(~some_rows)
    both = (mean_loss(part, X, Noise())[0] + mean_loss(rest, X, Noise())[0]) / 2
    assert both == pytest.approx(mean_loss(choices, X, Noise())[0])


@pytest.mark.parametrize("task", EVERY)
def test_a_prediction_knows_its_slopes_and_how_much_it_got_right(task):
    trials, rng = EVERY[task], np.random.default_rng(7)
    X = rng.normal(size=(N, 2))
    predictions = as_answers(trials, N).predictions(Posterior(X, np.zeros((N, 2, 2)), Noise()))
    _, by_sharpness, by_lapse = predictions.along(1.2, 0.05)
    for slopes, step in ((by_sharpness, (1e-6, 0)), (by_lapse, (0, 1e-6))):
        ahead = predictions.along(1.2 + step[0], 0.05 + step[1])[0]
        behind = predictions.along(1.2 - step[0], 0.05 - step[1])[0]
        np.testing.assert_allclose((ahead - behind) / 2e-6, slopes, atol=1e-5)
    assert ((predictions.right >= 0) & (predictions.right <= 1)).all()
    ordered = trials.decided & trials.ranked
    count = zip(ordered.tolist(), trials.n_shown.tolist(), trials.wanted.tolist(), strict=True)
    ways = [math.perm(m, k) if order else math.comb(m, k) for order, m, k in count]
    assert predictions.chance == pytest.approx(np.mean(1 / np.array(ways)))
    if trials.kind != "pairs":
        rows, trial = trials.triplets()
        margin = np.linalg.norm(X[rows[:, 0]] - X[rows[:, 2]], axis=1)
        margin -= np.linalg.norm(X[rows[:, 0]] - X[rows[:, 1]], axis=1)
        if trials.shown.shape[1] == 3 or trials.kind == "near":
            whole = np.bincount(trial, margin > 0) == np.bincount(trial)
            choices = as_answers(trials, N)
            np.testing.assert_allclose(predictions.right[choices.row], whole)
