"""`nearer.fit`: every form of answers, one belief; objects, people and trials."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nearer
from nearer.asking.oracles import CrowdOracle, Person
from nearer.errors import AnswersWarning, InvalidInput
from nearer.questions import answered, balanced_questions, random_questions

X = np.random.default_rng(0).normal(size=(30, 2))


def answers(m=2500, flip=0.0, seed=1, points=X):
    questions = balanced_questions(len(points), m, np.random.default_rng(seed))
    oracle = nearer.NoisyOracle(nearer.PointOracle(points), flip, random_state=seed)
    return answered(questions, oracle(questions))


@pytest.fixture(scope="module")
def noisy():
    return nearer.fit(answers(flip=0.1), random_state=0)


def test_the_seed_decides_what_is_drawn():
    rows = answers(300, flip=0.1)
    how = {"n_components": 2, "method": "ckl", "bootstrap": 3}
    one, same, other = (
        nearer.fit(rows, **how, random_state=seed).covariances for seed in (0, 0, 1)
    )
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)


def test_a_noisy_fit_knows_everything(noisy):
    assert (noisy.dimension, noisy.chosen, noisy.details["method"]) == (2, False, "noisy")
    assert noisy.evidence[2]["probability"] > 0.7
    assert noisy.dimension_low == 2
    assert noisy.determined == (noisy.dimension_high == 2)
    assert noisy.covariances.shape == (30, 2, 2)
    assert 0.05 < noisy.error_rate < 0.2
    held = noisy.held_out
    assert 0.75 < held.low < held.accuracy < held.high < 0.95
    assert noisy.people is None
    p = noisy.predict_proba(answers(200, seed=9))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p[:, 1] > 0.5).mean() > 0.9


def test_exact_answers_are_satisfied():
    rows = answers()
    embedding = nearer.fit(rows, random_state=0)
    assert embedding.details["method"] == "soe"
    assert embedding.predict(rows).all()
    assert embedding.error_rate == 0
    assert embedding.held_out.accuracy > 0.95
    assert embedding.evidence[2]["probability"] > 0.9
    # a bootstrap gives the same positions; other maps that satisfy all show the uncertainty
    away = embedding.draws(60, 0) - embedding.positions
    drawn = np.einsum("kni,kni->n", away, away) / 60
    variances = np.trace(embedding.covariances, axis1=1, axis2=2)
    assert np.median(variances / drawn) == pytest.approx(1, rel=0.5)
    drawn = nearer.fit(rows, n_components=2, method="ckl", random_state=0)
    assert (np.linalg.eigvalsh(drawn.covariances) > 0).all()
    assert nearer.fit(rows, n_components=2, bootstrap=0, random_state=0).covariances is None


def test_weights_count_where_people_are_rated():
    rows = answers(1200, 0.1)
    people = np.arange(len(rows)) % 4
    contrary = rows[people == 0][:, [0, 2, 1]]
    weighted = nearer.fit(
        np.concatenate([rows, contrary]),
        n_components=2,
        people=np.concatenate([people, np.zeros(len(contrary), dtype=int)]),
        weights=np.concatenate([np.ones(len(rows)), np.zeros(len(contrary))]),
        random_state=0,
    )
    assert weighted.people["sensitivity"][0] > 0.5
    assert weighted.people["flag"][0] == ""


def test_every_form_of_the_same_answers_gives_the_same_positions(tmp_path):
    rows = answers(600, 0.1)
    nearer.write_triplets(tmp_path / "t.csv", rows)
    frame = pd.DataFrame(rows, columns=["head", "winner", "loser"])
    forms = [rows, tmp_path / "t.csv", str(tmp_path / "t.csv"), frame]
    forms += [nearer.read_triplets(tmp_path / "t.csv"), rows.tolist()]
    maps = [nearer.fit(form, n_components=2, random_state=0).positions for form in forms]
    for positions in maps[1:]:
        np.testing.assert_array_equal(positions, maps[0])


def test_what_is_in_no_answer_is_no_object(tmp_path):
    rows = answers(600, 0.1)
    shifted = nearer.fit(3 * rows + 1001, n_components=2, random_state=0)
    assert shifted.names == tuple(range(1001, 1001 + 90, 3))
    np.testing.assert_array_equal(
        shifted.positions, nearer.fit(rows, n_components=2, random_state=0).positions
    )
    all_objects = nearer.fit(rows, n_components=2, n_objects=33, random_state=0)
    assert len(all_objects.positions) == 33
    numbers = nearer.fit(rows + 5, n_components=2, objects="numbers", random_state=0)
    assert len(numbers.positions) == 35
    nearer.write_triplets(tmp_path / "t.csv", rows + 1)
    assert len(nearer.fit(tmp_path / "t.csv", n_components=1, random_state=0).positions) == 30


def test_people_are_a_table():
    people = [Person()] * 6 + [Person(reliability=-1)]
    crowd = CrowdOracle(X, people, scale=0.3, random_state=7)
    questions = random_questions(30, 4000, np.random.default_rng(0))
    triplets = answered(questions, crowd(questions))
    who = np.array([f"p{k}" for k in crowd.answered_by])
    embedding = nearer.fit(triplets, n_components=2, people=who, random_state=0)
    table = embedding.people
    fields = {"id", "n_trials", "agreement", "low", "high", "sensitivity", "lapse", "bias", "flag"}
    assert set(table) == fields | {"error"}
    assert table["id"].tolist() == [f"p{k}" for k in range(7)]
    assert table["n_trials"].sum() == 4000
    assert table["id"][table["flag"] == "contrary"].tolist() == ["p6"]
    assert ((table["low"] <= table["agreement"]) & (table["agreement"] <= table["high"])).all()
    assert table["agreement"][6] < 0.3


def test_an_odd_one_out_is_one_trial():
    rng = np.random.default_rng(0)
    shown = np.array([rng.choice(30, 3, replace=False) for _ in range(1200)])
    sides = [
        np.linalg.norm(X[shown[:, i]] - X[shown[:, j]], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    odd = 2 - np.argmin(sides, axis=0)
    third = shown[np.arange(1200), odd]
    one, other = np.array([np.delete(row, k) for row, k in zip(shown, odd, strict=True)]).T
    twice = np.stack([[one, other, third], [other, one, third]]).transpose(2, 0, 1).reshape(-1, 3)
    who = np.repeat(np.arange(1200) % 3, 2)
    embedding = nearer.fit(twice, n_components=2, method="noisy", people=who, random_state=0)
    assert embedding.people["n_trials"].tolist() == [400, 400, 400]
    assert embedding.held_out.n_trials <= 1200


def test_answers_that_count_nothing_break_no_exactness():
    rows = answers()
    wrong = np.concatenate([rows, rows[:200, [0, 2, 1]]])
    weights = np.repeat([1.0, 0.0], [len(rows), 200])
    embedding = nearer.fit(wrong, weights=weights, bootstrap=0, random_state=0)
    assert embedding.details["method"] == "soe"
    assert embedding.error_rate == 0


@pytest.mark.filterwarnings("ignore:.*no better than by guessing")
@pytest.mark.parametrize("seed", range(3))
def test_few_answers_determine_nothing(seed):
    rng = np.random.default_rng(seed)
    one = nearer.fit([[0, 1, 2]], random_state=seed)
    assert (one.determined, one.details["method"]) == (False, "noisy")
    few = nearer.fit(random_questions(100, 150, rng), random_state=seed)
    assert not few.determined
    assert few.dimension_low < few.dimension_high
    assert few.details["method"] == "noisy"


@pytest.mark.parametrize("fit", [nearer.fit, lambda rows: nearer.OrdinalEmbedding(2).fit(rows)])
def test_an_interruption_passes(monkeypatch, fit):
    from nearer.fitting.solver import Passes

    real, calls = Passes.fit, []

    def interrupted(self, *arguments, **how):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return real(self, *arguments, **how)

    monkeypatch.setattr(Passes, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(answers(600, 0.1))
    assert len(calls) == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": "two"}, "n_components='two'"),
        ({"n_components": 3}, "3 objects span at most 2"),
        ({"method": "magic"}, "method='magic'"),
        ({"people": [1]}, "people of shape"),
        ({"weights": [1.0]}, "weights of shape"),
        ({"bootstrap": 1}, "bootstrap=1"),
        ({"objects": "names"}, "objects='names'"),
        ({"random_state": "x"}, "random_state='x'"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.fit([[0, 1, 2], [2, 1, 0]], **options)


def test_the_examples_of_the_page_on_noise_run():
    text = (Path(__file__).parents[1] / "docs" / "noise.md").read_text("utf-8")
    block = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    names = {}
    exec(block, names)  # as a reader would
    assert names["embedding"].dimension == 2


def test_a_frame_without_names_of_columns_holds_its_rows_and_no_more():
    rows = answers(300)
    embedding = nearer.fit(pd.DataFrame(rows), n_components=2, random_state=0)
    np.testing.assert_array_equal(embedding.triplets, nearer.fit(rows, n_components=2).triplets)
    texts = np.char.add("object ", rows.astype(str))
    named = nearer.fit(pd.DataFrame(texts), n_components=2, random_state=0)
    assert sorted(named.names) == sorted({*texts.ravel().tolist()})
    with pytest.raises(InvalidInput, match="the frame"):
        nearer.fit(pd.DataFrame({"what": [1], "is": [2], "this": [3]}), n_components=1)


@pytest.mark.filterwarnings("ignore:.*no better than by guessing")
def test_an_iterator_of_blocks_is_its_rows():
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(15, 3, replace=False) for _ in range(600)])
    whole = nearer.fit(rows, n_components=2, random_state=0)
    blocks = nearer.fit(iter(np.split(rows, 4)), n_components=2, random_state=0)
    np.testing.assert_array_equal(blocks.positions, whole.positions)
    with pytest.raises(nearer.errors.InvalidInput, match="at least one"):
        nearer.fit(iter([]), n_components=2)


def test_triplets_of_a_run_can_be_left_out():
    oracle = nearer.PointOracle(np.random.default_rng(0).normal(size=(30, 2)))
    embedding = nearer.embed(oracle, 30, keep_triplets=False, random_state=0, progress=False)
    assert embedding.triplets.shape == (0, 3)
    assert embedding.n_comparisons > 0


def test_odds_of_chosen_questions_are_heard_and_checked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    questions = random_questions(20, 600, rng)
    near = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.15, random_state=0)(questions)
    rows = answered(questions, near)

    def fitted(triplets=rows, **how):
        return nearer.fit(triplets, n_components=2, random_state=0, method="noisy", **how)

    def curve(triplets=rows, **how):
        return fitted(triplets, **how).details["posterior"].curve

    gaps = np.abs(
        np.linalg.norm(X[rows[:, 0]] - X[rows[:, 1]], axis=1)
        - np.linalg.norm(X[rows[:, 0]] - X[rows[:, 2]], axis=1)
    )
    hard = np.where(gaps < np.median(gaps), 5.0, 0.2)  # as if ties had been looked for
    assert curve(odds=np.ones(600)) == curve()
    assert curve(odds=hard) != curve()
    easier, plain = fitted(odds=hard), fitted()
    assert easier.held_out.accuracy > plain.held_out.accuracy, "random questions are easier"
    assert easier.held_out.high - easier.held_out.low > plain.held_out.high - plain.held_out.low
    assert easier.details["calibration"].predicted.mean() != pytest.approx(
        plain.details["calibration"].predicted.mean(), abs=1e-6
    )
    for odds in (hard[:5], np.zeros(600), np.full(600, np.nan), ["x"] * 600):
        with pytest.raises(InvalidInput, match="odds"):
            nearer.fit(rows, odds=odds)
    trials = nearer.Trials.from_triplets(rows)
    assert curve(trials, odds=hard) == curve(odds=hard)
    tied = replace(trials, chosen=trials.chosen * (np.arange(600) > 20)[:, None])
    assert curve(tied, odds=np.ones(600)) == curve(tied)
    assert curve(tied, odds=hard) != curve(tied), "also for undecided answers"
    with pytest.raises(InvalidInput, match="odds with trials that are no comparisons"):
        nearer.fit(nearer.Trials.odd_one_out(rows, rows[:, 0]), odds=hard)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: nearer.fit(t, n_objects=10**30), "n_objects=1000.*.*from 1 to 2097152"),
        (lambda t: nearer.fit(iter([t]), n_objects=10**30), "n_objects=1000.* from 1 to"),
        (lambda t: nearer.fit(t, bootstrap=10**30), "bootstrap=1000.* from 2 to 100000"),
        (lambda t: nearer.embed(judge_nothing, 10**30), "n_objects=1000.* from 3 to 2097152"),
        (lambda t: nearer.fit(t, weights=[1, 1e300, 1]), r"weight 1e\+300 of answer 1: must be 1e"),
        (lambda _: nearer.fit(""), "'': is no path of a file"),
    ],
)
def test_what_is_far_too_much_or_nothing_is_refused(call, message):
    with pytest.raises(nearer.errors.InvalidInput, match=message):
        call(np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]))


def judge_nothing(questions):
    raise AssertionError("the oracle is not asked about objects that cannot be")


def test_the_heaviest_answers_are_fitted():
    rows = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])
    for weights in ([1e9, 1, 1e-9, 1], [1e9] * 4):
        embedding = nearer.fit(
            np.repeat(rows, 5, 0), weights=np.repeat(weights, 5), n_components=1, random_state=0
        )
        assert np.isfinite(embedding.positions).all()


def test_ties_alone_say_nothing():
    trials = nearer.Trials.near([0, 1], [[1, 2], [0, 2]], [None, None])
    with pytest.raises(InvalidInput, match="2 trials: all are undecided"):
        nearer.fit(trials)


def test_objects_beyond_all_bounds_are_refused_before_they_take_memory():
    trials = nearer.Trials.near([0, 1], [[1, 2], [0, 2]], [[1], [0]])
    for answers in ([[0, 1, 2], [1, 0, 2]], trials):
        with pytest.raises(InvalidInput, match=r"n_objects=2147483647: .*.*from 1 to 2097152"):
            nearer.fit(answers, n_objects=2**31 - 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "triplets None: must be"),
        ({"a": 1}, "triplets {'a': 1}: must be"),
        (nearer.PointOracle(np.eye(4)), r"an oracle is asked by nearer.embed\(oracle, n\)"),
    ],
)
def test_what_is_no_rows_is_shown(value, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.fit(value)


def test_where_all_is_a_tie_a_coin_decides():
    """Each question answered both ways leaves all objects at one place: no answer is wrong."""
    both = nearer.fit([[0, 1, 2], [0, 2, 1]] * 20, random_state=0)
    assert both.error_rate == 0.5
    q = np.array(list(itertools.permutations(range(6), 3)))
    with pytest.warns(AnswersWarning, match="50 % of 120 answers .* no better than by guessing"):
        embedding = nearer.fit(q, random_state=0)
    assert (embedding.positions == 0).all()
    assert (embedding.error_rate, embedding.held_out.accuracy) == (0.5, 0.5)
