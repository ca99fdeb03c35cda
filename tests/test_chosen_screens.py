"""Screens that are chosen: what they tell, what may be asked, and that they teach more."""

from types import SimpleNamespace

import numpy as np
import pytest

import nearer
from nearer.algorithms.choose_questions import ScreenSource, expected_information
from nearer.errors import InvalidInput
from nearer.fitting.likelihood import Noise
from nearer.fitting.posterior import Posterior
from nearer.questions import answered
from nearer.trials import Task


def posterior(n=30, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 2, 2))
    return Posterior(rng.normal(size=(n, 2)) * 3, root @ root.transpose(0, 2, 1), Noise())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["1 of 4", "2 of 8", "odd-one-out", "odd-one-out of 4"])
def test_chosen_screens_tell_more_than_random_ones(task):
    fit, source = posterior(), ScreenSource(30, Task.parse(task))
    screens, random = source.draw(
        SimpleNamespace(fit=fit, share_guessed=0.1), 120, np.random.default_rng(1)
    )
    information = expected_information(fit, screens, Task.parse(task))
    assert random.any()
    assert information[~random].mean() > 1.2 * information[random].mean()
    assert (screens[:, 0] == -1).all() == (not task[0].isdigit())
    shown = np.sort(screens[:, 1:], axis=1)
    assert (np.diff(shown, axis=1) > 0).all()
    assert not (screens[:, :1] == screens[:, 1:]).any()


def test_no_screen_is_drawn_twice_and_sources_run_dry():
    source, fit = ScreenSource(6, Task.parse("2 of 4")), posterior(6)
    rng = np.random.default_rng(0)
    screens = np.concatenate(
        [source.draw(SimpleNamespace(fit=fit, share_guessed=0.1), 10, rng)[0] for _ in range(4)]
    )
    keys = {(row[0], *sorted(row[1:])) for row in screens.tolist()}
    assert len(keys) == len(screens) <= 6 * 5


@pytest.mark.parametrize("task", ["1 of 4", "odd-one-out"])
def test_a_random_screen_that_may_not_be_asked_makes_way_for_another_random_one(task):
    calls = []

    def askable(rows):  # refuses the first three screens: of a round the random ones come first
        calls.append(rows)
        return np.arange(len(rows)) >= (3 if len(calls) == 1 else 0)

    source = ScreenSource(30, Task.parse(task), askable)
    belief = SimpleNamespace(fit=posterior(), share_guessed=0.1)
    screens, random = source.draw(belief, 30, np.random.default_rng(0))
    assert (len(screens), random.sum()) == (30, 3)
    assert len(calls) == 2
    np.testing.assert_array_equal(np.sort(screens[random], axis=0), np.sort(calls[1], axis=0))


def test_only_what_may_be_asked_is_asked():
    seen = []

    def people(screens):
        seen.append(screens)
        return nearer.PointOracle(np.random.default_rng(0).normal(size=(20, 2)), choose=2)(screens)

    strategy = nearer.adaptive(
        20, budget=30, n_components=2, task="2 of 5",
        askable=lambda rows: rows[:, 0] % 2 == 0, random_state=0,
    )  # fmt: skip
    result = nearer.run(strategy, people)
    rows = np.concatenate(seen)
    assert rows.shape == (30, 6)
    assert (rows[:, 0] % 2 == 0).all()
    assert result.n_comparisons == 30
    assert len(result.details["trials"]) == 30
    want = sorted(result.details["trials"].triplets()[0].tolist())
    assert sorted(result.triplets.tolist()) == want


@pytest.mark.parametrize("task", ["2 of 6", "odd-one-out"])
def test_screens_find_the_positions(task):
    X = np.random.default_rng(3).normal(size=(20, 2))
    people = nearer.asking.PsychometricOracle(
        X, scale=0.1, choose=Task.parse(task).choose, random_state=0
    )
    strategy = nearer.adaptive(20, budget=200, n_components=2, task=task, random_state=0)
    result = nearer.run(strategy, people)
    assert nearer.metrics.mean_kendall_tau(X, result.positions) > 0.8
    assert np.isfinite(result.covariances).all()
    assert len(result.details["learning_curve"])


def test_a_budget_from_outside_ends_it_with_the_best_so_far():
    X = np.random.default_rng(3).normal(size=(12, 2))
    strategy = nearer.adaptive(12, budget=100, n_components=2, task="1 of 4", random_state=0)
    result = nearer.run(strategy, nearer.PointOracle(X), budget=17)
    assert result.n_comparisons == 17


def test_dont_know_is_learned_as_a_tie():
    X = np.random.default_rng(3).normal(size=(12, 2))
    oracle = nearer.PointOracle(X)

    def shrugs(screens):
        said = oracle(screens).astype(object)
        said[::3] = None
        return said

    strategy = nearer.adaptive(12, budget=30, n_components=2, task="1 of 4", random_state=0)
    result = nearer.run(strategy, shrugs)
    trials = result.details["trials"]
    assert 0 < (~trials.decided).sum() < 30
    assert np.isfinite(result.positions).all()


def test_answers_that_are_there_are_learned_and_not_counted():
    X = np.random.default_rng(3).normal(size=(12, 2))
    oracle = nearer.PointOracle(X)
    rng = np.random.default_rng(0)
    questions = np.array([rng.choice(12, 3, replace=False) for _ in range(200)])
    known = answered(questions, oracle(questions))
    strategy = nearer.adaptive(
        12, budget=20, n_components=2, task="1 of 4", known=known, random_state=0
    )
    result = nearer.run(strategy, oracle)
    assert len(result.details["trials"]) == 20
    assert nearer.metrics.mean_kendall_tau(X, result.positions) > 0.8
    with pytest.raises(InvalidInput, match="odd-one-out"):
        nearer.run(nearer.adaptive(12, budget=5, task="odd-one-out", known=known), oracle)


def test_the_same_seed_asks_the_same():
    X = np.random.default_rng(3).normal(size=(15, 2))

    def run(memory):
        strategy = nearer.adaptive(15, budget=40, n_components=2, task="2 of 6", random_state=5)
        oracle = nearer.PointOracle(X, choose=2)
        return nearer.run(nearer.asking.remembered(strategy, memory), oracle)

    memory = nearer.asking.Memory()
    first, again = run(memory), run(memory)
    np.testing.assert_array_equal(first.positions, again.positions)
    assert len(memory) == 40


def test_more_must_be_there_than_is_shown():
    with pytest.raises(InvalidInput, match="needs 9 objects"):
        nearer.adaptive(8, budget=10, task="2 of 8")


def test_screens_end_when_they_are_expected_to_be_good_enough():
    X = np.random.default_rng(3).normal(size=(15, 1))
    asked = []
    for quality in (0.5, 0.9, 1.0):
        strategy = nearer.adaptive(
            15, budget=150, n_components=1, quality=quality, task="2 of 8", random_state=0
        )
        result = nearer.run(strategy, nearer.PointOracle(X, choose=2))
        asked.append(result.n_comparisons)
        assert ("τ is expected" in result.history[-1].note) == (quality < 1)
        assert result.details["expected_tau"] > min(quality, 0.9) - 0.02
    assert asked[0] <= asked[1] < asked[2] == 150


def test_a_recipe_tells_tasks_apart():
    made = [nearer.adaptive(20, budget=9, task=Task.parse(t)) for t in ("1 of 4", "2 of 8")]
    assert [strategy.options["task"] for strategy in made] == ["1 of 4", "2 of 8"]
