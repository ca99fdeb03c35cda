"""People as oracles, ranking under noise, the noise detector, the plan."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit

import nearer
from nearer.algorithms.plan import plan_study
from nearer.asking.oracles import CrowdOracle, Person, PsychometricOracle
from nearer.asking.sort import repeated
from nearer.cli.main import main
from nearer.errors import InvalidInput
from nearer.questions import random_questions


def test_the_psychometric_curve_is_followed():
    oracle = PsychometricOracle(
        [0.0, 1.0, 1.5], scale=0.5, lapse=0.2, noise="fresh", random_state=0
    )
    answers = oracle(np.tile([0, 1, 2], (20_000, 1)))
    assert answers.mean() == pytest.approx(0.1 + 0.8 * expit(1), abs=0.01)


def test_fixed_errors_give_one_answer_a_question():
    X = np.random.default_rng(0).normal(size=(20, 2))
    questions = random_questions(20, 500, np.random.default_rng(1))
    oracle = PsychometricOracle(X, scale=1.0, random_state=0)
    first = oracle(questions)
    np.testing.assert_array_equal(first, oracle(questions))
    np.testing.assert_array_equal(first, ~oracle(questions[:, [0, 2, 1]]))
    same = PsychometricOracle(X, scale=1.0, random_state=0)(questions[::-1])[::-1]
    np.testing.assert_array_equal(first, same)
    other = PsychometricOracle(X, scale=1.0, random_state=1)(questions)
    assert (first != other).any()


def test_a_crowd_is_reproducible_and_its_members_differ():
    X = np.arange(12.0)
    people = [Person(), Person(reliability=-1), Person(lapse=1, side=0.8)]
    questions = np.tile([0, 1, 6], (9000, 1))
    crowd = CrowdOracle(X, people, scale=0.2, random_state=4)
    answers = crowd(questions)
    shares = [answers[crowd.answered_by == k].mean() for k in range(3)]
    assert shares == pytest.approx([1, 0, 0.8], abs=0.03)
    np.testing.assert_array_equal(
        answers, CrowdOracle(X, people, scale=0.2, random_state=4)(questions)
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: PsychometricOracle([0.0, 1.0], scale=0),
        lambda: PsychometricOracle([0.0, 1.0], scale=1, lapse=2),
        lambda: PsychometricOracle([0.0, 1.0], scale=1, noise="pink"),
        lambda: CrowdOracle([0.0, 1.0], [], scale=1),
        lambda: Person(side=2),
        lambda: Person(reliability=np.nan),
        lambda: nearer.rank_objects(0, 9, noise=0.5),
        lambda: nearer.rank_objects(0, 9, noise=0.1, order="fewest-rounds"),
        lambda: nearer.choose_basis(9, noise=0.1, order="fewest-rounds"),
        lambda: plan_study(3, 1, 0.1),
        lambda: plan_study(9, 1, 0.5),
    ],
)
def test_senseless_arguments_are_refused(make):
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_rankings_are_exact_despite_wrong_answers(noise):
    n, heads = 120, 20
    exact = nearer.PointOracle(np.random.default_rng(0).normal(size=(n, 3)))
    right, cost = 0, []
    for head in range(heads):
        oracle = nearer.NoisyOracle(exact, noise, noise="fresh", random_state=head)
        count = []
        strategy = nearer.rank_objects(head, n, noise=noise, random_state=head)
        result = nearer.run(strategy, oracle, progress=lambda c, r, count=count: count.append(c))
        truth = nearer.run(nearer.rank_objects(head, n, random_state=0), exact)
        right += bool((result == truth).all())
        cost.append(count[-1])
    assert right >= 0.9 * heads
    factor = {0.05: 1.66, 0.2: 4.43}[noise]  # Gu and Xu (2023)
    assert np.median(cost) <= 2 * factor * n * np.log2(n)


def test_a_basis_from_wrong_answers_has_the_same_dimension():
    exact = nearer.PointOracle(nearer.datasets.make_cube(100, 2, random_state=0))
    oracle = nearer.NoisyOracle(exact, 0.1, noise="fresh", random_state=0)
    noisy = nearer.run(nearer.choose_basis(100, noise=0.1, random_state=1), oracle)
    assert noisy.dimension == nearer.run(nearer.choose_basis(100, random_state=1), exact).dimension


def test_repeating_keeps_to_a_budget():
    oracle = nearer.PointOracle(np.arange(9.0))
    with pytest.raises(nearer.errors.BudgetSpent):
        nearer.run(repeated(nearer.asking.farthest_object(0, 9), 0.1, 0.01), oracle, budget=20)
    assert nearer.run(repeated(nearer.asking.farthest_object(0, 9), 0, 0.01), oracle, budget=7) == 8


def test_plan_prints_what_a_study_needs():
    options = ["plan", "--objects", "15", "--dim", "1", "--noise", "0.15", "--answers", "300"]
    options += ["--repeats", "1", "--seed", "0"]
    output = json.loads(CliRunner().invoke(main, [*options, "--json"]).output)
    assert len(output["n_answers"]) == len(output["accuracy"]) == len(output["tau"])
    assert output["n_answers"][-1] == 300
    assert output["ceiling"] == pytest.approx(0.85, abs=0.02)
    assert output["accuracy"][-1] > 0.8
    options[options.index("300")] = "60"
    table = CliRunner().invoke(main, options)
    assert table.exit_code == 0
    assert "of the truth" in table.output
    assert CliRunner().invoke(main, ["plan", "--objects", "3"]).exit_code == 2
