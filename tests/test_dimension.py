"""The dimension comes out right from exact and from noisy answers, and says when it cannot."""

import numpy as np
import pytest
from scipy.special import expit

import nearer
from nearer import estimate_dimension
from nearer.errors import InvalidInput
from nearer.questions import answered, random_questions


def triplets_of(X, m, flip=0.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    near = nearer.PointOracle(X)(rows) ^ (rng.random(m) < flip)
    return np.where(near[:, None], rows, rows[:, [0, 2, 1]])


@pytest.mark.parametrize("d", [1, 2, 4])
def test_exact_answers(d):
    X = np.random.default_rng(d).normal(size=(60, d))
    estimate = estimate_dimension(triplets_of(X, 6000), 60, max_dimension=7, random_state=0)
    assert (estimate.dimension, estimate.method, estimate.dimension_low) == (d, "exact", d)
    assert estimate.determined == (estimate.dimension_high == d)
    assert estimate.determined or d == 4
    assert estimate.positions.shape == (60, d)


@pytest.mark.parametrize("d", [1, 3])
def test_noisy_answers(d):
    X = np.random.default_rng(d).normal(size=(60, d))
    estimate = estimate_dimension(triplets_of(X, 8000, 0.1), 60, max_dimension=6, random_state=0)
    assert (estimate.dimension, estimate.method) == (d, "held-out")
    assert estimate.dimension_low <= d <= estimate.dimension_high
    assert estimate.evidence[d]["probability"] == max(
        e["probability"] for e in estimate.evidence.values()
    )
    assert sum(e["probability"] for e in estimate.evidence.values()) == pytest.approx(1)
    assert estimate.dimensions[estimate.scores.argmin()] == d
    assert estimate.positions.shape == (60, d)


def test_a_basis_will_do_and_the_plot_shows_every_dimension():
    X = nearer.datasets.make_cube(150, 2, random_state=0)
    basis = nearer.run(nearer.choose_basis(150, random_state=0), nearer.PointOracle(X))
    estimate = estimate_dimension(basis, random_state=0)
    assert estimate.dimension == 2
    ax = estimate.plot()
    assert list(ax.lines[0].get_xdata()) == list(estimate.dimensions)


def test_the_plot_says_which_dimensions_were_not_tried():
    X = np.random.default_rng(0).normal(size=(12, 2))
    estimate = estimate_dimension(triplets_of(X, 150, 0.3), 12, random_state=0)
    last = estimate.dimensions[-1]
    assert estimate.dimension_high == 11 > last
    ax = estimate.plot()
    low = estimate.dimension_low
    assert ax.get_title() == f"estimate: {low} to 11, above {last} not tried"
    [shade] = ax.patches
    assert shade.get_x() + shade.get_width() == ax.get_xlim()[1], "it goes on"


def test_where_nothing_was_held_out_no_score_is_drawn():
    estimate = estimate_dimension([[0, 1, 2], [1, 0, 2], [2, 1, 0]], 5, random_state=0)
    assert np.isnan(estimate.scores).all()
    ax = estimate.plot()
    assert [text.get_text() for text in ax.texts] == ["nothing was held out"]
    assert ax.get_ylabel() == ""
    assert not ax.containers


def test_lapses_are_seen_though_too_few_dimensions_hide_them():
    """In two dimensions of three a curve with heavy tails is as good; in three it is far worse."""
    X = nearer.datasets.make_cube(60, 3, random_state=3)
    rng = np.random.default_rng(3)
    rows = np.array([rng.choice(60, 3, replace=False) for _ in range(8000)])
    near = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=3)(rows)
    answers = np.where(near[:, None], rows, rows[:, [0, 2, 1]])
    estimate = estimate_dimension(answers, 60, max_dimension=6, random_state=0)
    assert (estimate.dimension_low, estimate.dimension_high) == (3, 3)
    evidence = estimate.evidence[3]
    assert evidence["noise"].lapse == pytest.approx(0.1, abs=0.03)
    assert evidence["accuracy"] > 0.86  # the points themselves: .89; with heavy tails: .83


@pytest.mark.parametrize("seed", range(3))
def test_chance_answers_determine_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(20, 3, replace=False) for _ in range(2000)])
    assert not estimate_dimension(rows, 20, max_dimension=4, random_state=0).determined


def test_one_answer_and_answers_that_any_map_satisfies_determine_nothing():
    one = estimate_dimension([[0, 1, 2]])
    assert (one.determined, one.dimension_low, one.dimension_high) == (False, 1, 2)
    for seed in range(3):
        rows = random_questions(100, 150, np.random.default_rng(seed))
        estimate = estimate_dimension(rows, 100, random_state=0)
        assert (estimate.method, estimate.determined) == ("held-out", False)
        assert estimate.dimension_low < estimate.dimension_high


def test_noisy_answers_that_many_dimensions_satisfy_are_not_exact():
    """In enough dimensions every answer is satisfied; held-out answers are not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    questions = random_questions(60, 3000, rng)
    head, a, b = X[questions.T]
    margin = np.linalg.norm(head - b, axis=1) - np.linalg.norm(head - a, axis=1)
    rows = answered(questions, rng.random(3000) < expit(4 * margin))
    estimate = estimate_dimension(rows, 60, random_state=0)
    assert estimate.method == "held-out"
    assert estimate.dimension_low == estimate.dimension == 1
    assert estimate.dimension_high <= 3


@pytest.mark.parametrize("seed", [3, 5])
def test_a_line_with_errors_near_ties_is_no_plane_without_errors(seed):
    """Two dimensions satisfy every answer, and predict others no better than one with noise."""
    rng = np.random.default_rng([40, 1, 600, seed])
    X = rng.normal(size=(40, 1))
    questions = random_questions(40, 600, rng)
    head, one, other = X[questions.T]
    margin = np.abs(head - other)[:, 0] - np.abs(head - one)[:, 0]
    estimate = estimate_dimension(
        answered(questions, rng.random(600) < expit(margin / 0.1)), 40, random_state=seed
    )
    assert (estimate.dimension, estimate.method) == (1, "held-out")


def test_the_range_holds_95_percent_and_the_estimate():
    below = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        questions = random_questions(25, 500, rng)
        exact = nearer.PointOracle(rng.normal(size=(25, 3)))
        people = nearer.NoisyOracle(exact, 0.1, random_state=seed)
        estimate = estimate_dimension(answered(questions, people(questions)), 25, random_state=0)
        low, high = estimate.dimension_low, estimate.dimension_high
        assert low <= estimate.dimension <= high
        chances = {d: row["probability"] for d, row in estimate.evidence.items()}
        assert sum(chances[d] for d in chances if low <= d <= high) >= 0.95
        below += low < estimate.dimension
    assert below, "some estimate may be too large"


def test_bad_options():
    with pytest.raises(InvalidInput, match="method="):
        estimate_dimension([[0, 1, 2]], method="guess")
    with pytest.raises(InvalidInput, match="max_dimension=0"):
        estimate_dimension([[0, 1, 2]], max_dimension=0)
