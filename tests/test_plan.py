"""What a map is expected to cost, and which task is best for so many hours."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from nearer.algorithms.plan import TaskPlan, expected_cost, needed, plan_study, plan_tasks
from nearer.cli import main
from nearer.errors import InvalidInput
from nearer.fitting.people import Pace


@pytest.mark.slow
def test_a_task_that_takes_no_time_is_best():
    """With a pace that counts choices only, screens of many objects cost what small ones do."""
    free = Pace(start=0.0, choice=3.0, look=0.0)
    plan = plan_tasks(
        15, 2, 0.2, 0.1, tasks=["1 of 2", "1 of 10"], pace=free, n_repeats=3, random_state=0
    )
    assert plan.n_screens.tolist() == [120, 120]
    assert plan.tasks[plan.best] == "1 of 10"
    assert plan.accuracy.shape == plan.tau.shape == (3, 2)


def test_more_answers_tell_more():
    plan = plan_study(20, 2, 0.1, most=400, n_repeats=1, random_state=0)
    assert plan.n_answers.tolist() == [25, 50, 100, 200, 400]
    assert plan.accuracy[0] < plan.accuracy[-1]
    assert plan.ceiling == pytest.approx(0.9, abs=0.03)
    assert needed(float(plan.accuracy[-1]), plan.n_answers, plan.accuracy) <= 400


def test_how_sure_the_best_is():
    steady = np.array([[0.9, 0.8, 0.89], [0.8, 0.7, 0.81], [0.85, 0.75, 0.83]])
    plan = TaskPlan(("a", "b", "c"), np.array([1, 1, 1]), steady, steady)
    assert plan.tasks[plan.best] == "a"
    assert plan.level == ("c",)
    once = TaskPlan(("a", "b"), np.array([1, 1]), steady[:1, :2], steady[:1, :2])
    assert once.level == ("b",)  # one simulation tells nothing of its own spread


def test_tasks_too_large_are_left_out_and_nonsense_is_refused():
    plan = plan_tasks(6, 1, 0.1, 0.02, tasks=["1 of 2", "2 of 8"], n_repeats=1, random_state=0)
    assert plan.tasks == ("1 of 2",)
    with pytest.raises(InvalidInput, match="show more"):
        plan_tasks(6, 1, 0.1, 0.02, tasks=["2 of 8"])
    with pytest.raises(InvalidInput, match="hours"):
        plan_tasks(6, 1, 0.1, 0.0)


def test_the_command():
    base = ["plan", "--objects", "10", "--dim", "1", "--noise", "0.1", "--repeats", "1"]
    hours = ["--hours", "0.03", "--tasks", "1 of 2, odd-one-out", "--seed", "0"]
    done = CliRunner().invoke(main, [*base, *hours, "--json"])
    assert done.exit_code == 0, done.output
    output = json.loads(done.stdout)
    assert output["tasks"] == ["1 of 2", "odd-one-out"]
    assert output["best"] in output["tasks"]
    shown = CliRunner().invoke(main, [*base, *hours])
    assert "best:" in shown.stdout
    assert CliRunner().invoke(main, [*base, "--tasks", "1 of 2"]).exit_code == 2
    assert CliRunner().invoke(main, [*base, "--hours", "1", "--answers", "50"]).exit_code == 2


def test_an_expected_cost_needs_no_simulation():
    plain = ["plan", "--objects", "5000", "--json"]
    rows = json.loads(CliRunner().invoke(main, plain).stdout)["forecast"]
    assert len(rows) == 15
    assert all(row["n_rounds"] <= 150 for row in rows)
    paid = [*plain, "--dim", "3", "--noise", "0.1", "--cost", "0.01"]
    (row,) = json.loads(CliRunner().invoke(main, paid).stdout)["forecast"]
    assert row["cost"] == pytest.approx(0.01 * row["n_comparisons"], abs=0.01)
    table = CliRunner().invoke(main, ["plan", "--objects", "5000", "--cost", "0.01"]).stdout
    assert "14,844" in table
    assert "e+" not in table
    small = ["plan", "--objects", "9", "--dim", "3", "--noise", "0.1", "--cost", "0.01", "--json"]
    (row,) = json.loads(CliRunner().invoke(main, small).stdout)["forecast"]
    assert row["cost"] == pytest.approx(0.01 * row["n_comparisons"], abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objects", "50", "--answers", "90"], "one --dim and one --noise"),
        (["--objects", "10", "--dim", "12"], "--dim must be below --objects 10"),
        (["--objects", "10", "--people", "4"], "--people plans from a --pilot"),
        (["--pilot", __file__, "--hours", "1"], "--hours and --cost plan from --objects"),
        ([], "give one of them"),
        (["--objects", "10", "--noise", "nan"], "nan is no finite number"),
        (["--objects", "10", "--cost", "nan"], "nan is no finite number"),
        (["--objects", "10", "--cost", "inf"], "inf is no finite number"),
        (["--objects", "10", "--hours", "nan"], "nan is no finite number"),
        (["--objects", "10", "--target", "nan"], "nan is no finite number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    result = CliRunner().invoke(main, ["plan", *options])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(("n", "d"), [(60, 2), (100, 1)])
def test_an_expected_cost_is_about_right(n, d):
    X = np.random.default_rng(0).normal(size=(n, d))
    embedding = nearer.embed(nearer.PointOracle(X), n, random_state=0, progress=False)
    asked = (embedding.n_comparisons, embedding.n_rounds)
    assert expected_cost(n, d) == pytest.approx(asked, rel=0.5)
    assert expected_cost(n, d, budget=100)[0] == 100
