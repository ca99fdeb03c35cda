"""nearer.fit of choices: the same door, with all that it knows, for every kind of answer."""

import numpy as np
import pytest

import nearer
from nearer._fit import load_answers
from nearer.asking.oracles import CrowdOracle, Person
from nearer.errors import InvalidInput
from nearer.fitting.likelihood import as_answers
from nearer.questions import answered, random_questions
from nearer.trials import Trials


def screens(n, m, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, m + 1, replace=False) for _ in range(count)])


def asked(X, m, k, count, scale=0.3, seed=0):
    rows = screens(len(X), m, count, seed)
    people = nearer.asking.PsychometricOracle(
        X, scale=scale, choose=k, noise="fresh", random_state=seed
    )
    return Trials.from_screens(rows, people(rows))


@pytest.fixture(scope="module")
def plane():
    return np.random.default_rng(5).normal(size=(25, 2))


def test_comparisons_are_fitted_as_triplets_are(plane):
    questions = random_questions(25, 800, np.random.default_rng(0))
    oracle = nearer.asking.PsychometricOracle(plane, scale=0.3, random_state=0)
    triplets = answered(questions, oracle(questions))
    options = {"n_components": 2, "n_objects": 25, "random_state": 0}
    one = nearer.fit(triplets, **options)
    other = nearer.fit(Trials.from_triplets(triplets), **options)
    np.testing.assert_array_equal(one.positions, other.positions)
    assert one.held_out == other.held_out


def test_the_dimension_is_right_and_positions_are_as_sure_as_they_say(plane):
    embedding = nearer.fit(asked(plane, 6, 2, 400), random_state=0)
    assert embedding.dimension == 2
    assert embedding.dimension_low <= 2 <= embedding.dimension_high
    assert embedding.details["method"] == "noisy"
    assert nearer.metrics.mean_kendall_tau(plane, embedding.positions) > 0.8
    spread = np.trace(embedding.covariances, axis1=1, axis2=2)
    assert (spread > 0).all()
    fewer = nearer.fit(asked(plane, 6, 2, 100), n_components=2, random_state=0)
    size = np.var(embedding.positions) / np.var(fewer.positions)
    assert spread.mean() / size < np.trace(fewer.covariances, axis1=1, axis2=2).mean()


def test_the_right_likelihood_predicts_no_worse_than_split_triplets(plane):
    train, test = asked(plane, 8, 3, 120, seed=1), asked(plane, 8, 3, 500, seed=2)
    whole = nearer.fit(train, n_components=2, n_objects=25, random_state=0)
    split = nearer.fit(
        train.triplets()[0], n_components=2, n_objects=25, method="noisy", random_state=0
    )
    choices = as_answers(test, 25)
    shares = [choices.predictions(e.details["posterior"]).right.mean() for e in (whole, split)]
    assert shares[0] > shares[1] - 0.005


def test_people_who_contradict_or_guess_are_flagged(plane):
    people = [Person(), Person(), Person(), Person(-1.0), Person(0.0)]
    crowd = CrowdOracle(plane, people, scale=0.2, choose=2, random_state=0)
    rows = screens(25, 6, 600)
    trials = Trials.from_screens(rows, crowd(rows), people=crowd.answered_by)
    embedding = nearer.fit(trials, n_components=2, random_state=0)
    table = dict(
        zip(embedding.people["id"].tolist(), embedding.people["flag"].tolist(), strict=True)
    )
    assert table == {0: "", 1: "", 2: "", 3: "contrary", 4: "guessing"}
    assert embedding.people["n_trials"].sum() == 600


@pytest.mark.parametrize("kind", ["odd-one-out", "most-central", "pairs"])
def test_every_task_finds_the_positions(plane, kind):
    rng = np.random.default_rng(0)
    d = np.linalg.norm(plane[:, None] - plane, axis=2)
    if kind == "pairs":
        rows = np.array([rng.choice(25, 4, replace=False) for _ in range(700)])
        trials = Trials.pairs(rows, (d[rows[:, 0], rows[:, 1]] > d[rows[:, 2], rows[:, 3]]) * 1)
    else:
        rows = np.array([rng.choice(25, 3, replace=False) for _ in range(700)])
        sums = np.stack([d[rows[:, i], rows[:, j]] + d[rows[:, i], rows[:, k]]
                         for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1))], axis=1)  # fmt: skip
        if kind == "odd-one-out":
            trials = Trials.odd_one_out(rows, rows[np.arange(700), sums.argmax(axis=1)])
        else:
            trials = Trials.most_central(rows, rows[np.arange(700), sums.argmin(axis=1)])
    embedding = nearer.fit(trials, n_components=2, random_state=0)
    assert nearer.metrics.mean_kendall_tau(plane, embedding.positions) > 0.85


def test_ties_are_evidence_and_no_loss(plane):
    trials = asked(plane, 5, 1, 300)
    undecided = trials[:40]
    none = Trials(
        "near", undecided.query, undecided.shown, np.zeros_like(undecided.chosen), undecided.wanted
    )
    embedding = nearer.fit(Trials.joined([trials, none]), n_components=2, random_state=0)
    assert embedding.n_comparisons == 340
    assert nearer.metrics.mean_kendall_tau(plane, embedding.positions) > 0.7


def test_losses_take_trials_as_triplets(plane):
    trials = asked(plane, 5, 2, 200)
    embedding = nearer.fit(trials, n_components=2, method="soe", bootstrap=0, random_state=0)
    assert embedding.details["method"] == "soe"
    pairs = Trials.pairs([[0, 1, 2, 3]], [0])
    with pytest.raises(InvalidInput, match="is a triplet"):
        nearer.fit(pairs, n_components=1, method="soe")


def test_objects_that_do_not_occur_are_none(plane):
    trials = asked(plane, 5, 1, 100)
    moved = Trials.near(trials.query + 100, trials.shown + 100, trials.chosen > 0)
    embedding = nearer.fit(moved, n_components=2, random_state=0)
    assert len(embedding.positions) == 25
    assert embedding.names[0] == 100


def test_wrong_shapes_are_refused(plane):
    trials = asked(plane, 5, 1, 30)
    with pytest.raises(InvalidInput, match="people"):
        nearer.fit(trials, n_components=2, people=["a"])
    with pytest.raises(InvalidInput, match="objects are from 0"):
        nearer.fit(trials, n_components=2, n_objects=10)


def test_a_weight_of_each_trial_keeps_choices_whole(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    shown = np.array([rng.choice(10, 3, replace=False) for _ in range(200)])
    pairs = ((1, 2), (0, 2), (0, 1))
    sides = [np.linalg.norm(X[shown[:, i]] - X[shown[:, j]], axis=1) for i, j in pairs]
    odd = shown[np.arange(200), np.argmin(sides, axis=0)]
    plain, weighed = tmp_path / "plain.csv", tmp_path / "weighed.csv"
    rows = [",".join(map(str, (*three, out))) for three, out in zip(shown, odd, strict=True)]
    plain.write_text("\n".join(["image_1,image_2,image_3,choice", *rows]), "utf-8")
    weighed.write_text(
        "\n".join(["image_1,image_2,image_3,choice,weight", *(f"{row},1" for row in rows)]), "utf-8"
    )
    one, other = (
        nearer.fit(nearer.read_triplets(file, kind="odd-one-out"), n_components=2, random_state=0)
        for file in (plain, weighed)
    )
    assert one.n_comparisons == other.n_comparisons == 200
    np.testing.assert_array_equal(one.positions, other.positions)


def test_triplets_of_a_trial_share_its_weight():
    trials = Trials.near([0, 4, 2], [[1, 2, 3], [0, 2, 3], [0, 1, 3]], [[1], [0, 2], [3]])
    split = load_answers(trials, None, [1.0, 2.0, 0.5], None, "numbers").split()
    assert split.ids.tolist() == [0, 0, 1, 1, 2, 2]
    assert split.weights.tolist() == [0.5, 0.5, 1.0, 1.0, 0.25, 0.25]
