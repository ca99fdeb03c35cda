"""scikit-learn manners, both input forms, and every kind of bad input."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import (
    check_estimator_repr,
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
)

import nearer
from nearer.errors import AnswersWarning, InvalidInput

LOSSES = [nearer.SOE, nearer.CKL, nearer.GNMDS, nearer.STE, nearer.TSTE]
ALL = [*LOSSES, nearer.OrdinalEmbedding]
N = 30


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    questions = np.unique(np.sort(rng.integers(N, size=(4000, 3)), axis=1), axis=0)
    questions = questions[(np.diff(questions, axis=1) > 0).all(axis=1)]
    questions = rng.permuted(rng.permutation(questions), axis=1)
    y = nearer.PointOracle(X)(questions)
    return X, questions, y, np.where(y[:, None], questions, questions[:, [0, 2, 1]])


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    "check",
    [
        check_parameters_default_constructible,
        check_no_attributes_set_in_init,
        check_get_params_invariance,
        check_set_params,
        check_estimator_repr,
    ],
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator.__name__, estimator())


@pytest.mark.parametrize("estimator", ALL)
def test_cross_validation(estimator, answers):
    _, questions, y, triplets = answers
    model = estimator(2, n_objects=N, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cross_val_score(model, triplets, cv=3).mean() > 0.9
        assert cross_val_score(model, questions, y, cv=3).mean() > 0.9


@pytest.mark.parametrize("y_form", [lambda y: y, lambda y: np.where(y, 1, -1), lambda y: y * 1])
def test_questions_with_answers_are_triplets(answers, y_form):
    _, questions, y, triplets = answers
    model = nearer.SOE(2, random_state=0, n_objects=N)
    a = clone(model).fit(questions, y_form(y)).embedding_
    b = clone(model).fit(triplets).embedding_
    np.testing.assert_array_equal(a, b)


def test_same_seed_same_positions(answers):
    triplets = answers[3]
    models = [nearer.SOE(2, random_state=s, n_objects=N).fit(triplets) for s in (0, 0, 1)]
    np.testing.assert_array_equal(models[0].embedding_, models[1].embedding_)
    assert not np.array_equal(models[0].embedding_, models[2].embedding_)


@pytest.mark.parametrize("init", ["above", "random"])
def test_starts(answers, init):
    model = nearer.SOE(2, init=init, random_state=0, n_objects=N, n_init=2).fit(answers[3])
    assert model.stress_ < 1
    assert model.converged_


def test_cblearns_way_of_passing_start_and_size(answers):
    start = np.random.default_rng(0).normal(size=(N, 2))
    positions = nearer.SOE(2).fit_transform(answers[3], init=start, n_objects=N)
    again = nearer.SOE(2, init=start, n_objects=N).fit_transform(answers[3])
    np.testing.assert_array_equal(positions, again)


def test_probabilities(answers):
    _, questions, y, _ = answers
    model = nearer.OrdinalEmbedding(2, n_objects=N, random_state=0).fit(questions, y)
    p = model.predict_proba(questions)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p[:, 1] > 0.5, model.predict(questions))


def test_contradictions_are_counted_and_warned_of():
    with pytest.warns(AnswersWarning, match="1 question is answered both ways"):
        model = nearer.SOE(1, random_state=0).fit([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 0, 2]])
    assert model.n_contradictions_ == 1


def test_objects_never_compared_are_named():
    with pytest.warns(AnswersWarning, match="never compared: 3, 5"):
        nearer.SOE(1, random_state=0, n_objects=6).fit([[0, 1, 2], [4, 1, 2]])


@pytest.mark.parametrize(
    ("options", "fit_options", "message"),
    [
        ({"n_components": 0}, {}, "n_components=0"),
        ({"n_components": 3}, {}, "3 objects span at most 2"),
        ({"n_components": 1.5}, {}, "whole number"),
        ({"n_init": 0}, {}, "n_init=0"),
        ({"init": "magic"}, {}, "init='magic'"),
        ({"init": [[0.0]]}, {}, "init of shape"),
        ({"n_objects": 2}, {}, "objects must be from 0 to 1"),
        ({}, {"sample_weight": [1.0]}, "one for each of the 2 triplets"),
        ({}, {"y": [True]}, "one answer for each question"),
        ({}, {"y": [1, 7]}, "y holds"),
        ({}, {"y": [0, -1]}, "y holds 0, -1"),
    ],
)
def test_bad_input(options, fit_options, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.SOE(**{"n_components": 1, **options}).fit([[0, 1, 2], [2, 1, 0]], **fit_options)


def test_shapes_of_losses_are_checked_at_fit():
    with pytest.raises(InvalidInput, match=r"mu=-1\.0"):
        nearer.CKL(1, mu=-1.0).fit([[0, 1, 2]])
    with pytest.raises(InvalidInput, match=r"alpha=0\.0"):
        nearer.TSTE(1, alpha=0.0).fit([[0, 1, 2]])


ZOO = np.array([f"animal {i:02d}" for i in range(N)])


@pytest.mark.parametrize("estimator", ALL)
def test_names_are_numbers_by_another_name(estimator, answers):
    _, questions, y, triplets = answers
    numbers = estimator(2, random_state=0).fit(triplets)
    names = estimator(2, random_state=0).fit(ZOO[triplets])
    assert np.array_equal(names.embedding_, numbers.embedding_)
    assert names.objects_.tolist() == ZOO.tolist()
    assert numbers.objects_ is None
    assert np.array_equal(names.predict(ZOO[questions]), numbers.predict(questions))
    assert names.score(ZOO[questions], y) == numbers.score(questions, y)
    with pytest.raises(InvalidInput, match="'zebra': is none of the 30 objects"):
        names.predict([["zebra", ZOO[0], ZOO[1]]])


def test_frames_are_read_by_their_columns(answers):
    pd = pytest.importorskip("pandas")
    _, questions, y, triplets = answers
    expected = nearer.SOE(2, random_state=0).fit(triplets).embedding_
    frame = pd.DataFrame(ZOO[triplets], columns=["head", "winner", "loser"])
    swapped = frame[["loser", "winner", "head"]]
    assert np.array_equal(nearer.SOE(2, random_state=0).fit(swapped).embedding_, expected)
    plain = pd.DataFrame(triplets, columns=["head", "winner", "loser"])
    model = nearer.SOE(2, random_state=0).fit(plain)
    assert np.array_equal(model.embedding_, expected)
    assert model.objects_ is None
    asked = pd.DataFrame(ZOO[questions], columns=["head", "a", "b"])
    model = nearer.SOE(2, random_state=0).fit(asked, y)
    assert np.array_equal(model.embedding_, expected)
    assert model.predict(asked).mean() == pytest.approx(y.mean(), abs=0.01)


@pytest.mark.parametrize("estimator", [nearer.SOE, nearer.OrdinalEmbedding])
def test_frames_come_out_where_they_are_wanted(estimator, answers):
    pd = pytest.importorskip("pandas")
    from sklearn import config_context

    *_, triplets = answers
    frame = pd.DataFrame(ZOO[triplets], columns=["head", "winner", "loser"])
    model = estimator(2, random_state=0).set_output(transform="pandas")
    out = clone(model).fit_transform(frame)
    prefix = estimator.__name__.lower()
    assert list(out.columns) == [f"{prefix}0", f"{prefix}1"]
    assert out.index.tolist() == ZOO.tolist()
    fitted = estimator(2, random_state=0).fit(triplets)
    assert isinstance(fitted.transform(triplets), np.ndarray)
    with config_context(transform_output="pandas"):
        assert fitted.transform(triplets).index.tolist() == list(range(N))
    assert isinstance(fitted.set_output(transform="default").transform(frame), np.ndarray)


@pytest.mark.parametrize("estimator", ALL)
def test_generators_and_seeds_are_random_states(estimator, answers):
    *_, triplets = answers
    seed = estimator(2, random_state=3).fit(triplets).embedding_
    generator = estimator(2, random_state=np.random.default_rng(3)).fit(triplets).embedding_
    assert np.array_equal(seed, generator)
    old = estimator(2, random_state=np.random.RandomState(3)).fit(triplets)
    assert old.embedding_.shape == (N, 2)
    with pytest.raises(InvalidInput, match="random_state=-1"):
        estimator(2, random_state=-1).fit(triplets)


def test_people_are_rated_where_they_are_known(answers):
    pd = pytest.importorskip("pandas")
    *_, triplets = answers
    who = np.random.default_rng(0).choice(["ann", "bob", "con"], len(triplets))
    rows = triplets.copy()
    rows[who == "con"] = rows[who == "con"][:, [0, 2, 1]]
    model = nearer.OrdinalEmbedding(2, random_state=0).fit(rows, people=who)
    assert model.people_["flag"].tolist() == ["", "", "contrary"]
    frame = pd.DataFrame(rows, columns=["head", "winner", "loser"]).assign(person=who)
    again = nearer.OrdinalEmbedding(2, random_state=0).fit(frame)
    assert np.array_equal(again.embedding_, model.embedding_)
    with pytest.raises(InvalidInput, match="people"):
        nearer.OrdinalEmbedding(2).fit(rows, people=who[:-1])
    with pytest.raises(InvalidInput, match="SOE gives the answers of all people the same weight"):
        nearer.SOE(2).fit(rows, people=who)


@pytest.mark.parametrize("kind", ["SOE", "CKL", "GNMDS", "STE", "TSTE", "LOE", "OrdinalEmbedding"])
@pytest.mark.parametrize("name", ["max_iter", "tol", "mu", "alpha", "n_far"])
@pytest.mark.parametrize("value", [-1, 0, np.nan, "many", True, [2]])
def test_numbers_that_are_none_are_refused(kind, name, value):
    model = getattr(nearer, kind)(1)
    if name not in model.get_params():
        return
    lists = [[1, 2], [0, 2], [1, 3], [2, 1]] if kind == "LOE" else [[0, 1, 2], [2, 1, 0]]
    with pytest.raises(InvalidInput, match=f"{name}="):
        model.set_params(**{name: value}).fit(lists)


@pytest.mark.parametrize("name", ["max_iter", "n_far"])
def test_steps_and_objects_are_whole(name):
    with pytest.raises(InvalidInput, match=rf"{name}=2\.5: must be a whole number"):
        nearer.LOE(1, **{name: 2.5}).fit([[1, 2], [0, 2], [1, 3], [2, 1]])


def test_the_score_counts_each_answer_by_its_weight(answers):
    *_, triplets = answers
    model = nearer.SOE(n_components=2, random_state=0).fit(triplets[:600])
    right = model.predict(triplets)
    both = np.concatenate([triplets, triplets[:, [0, 2, 1]]])  # each is once right and once wrong
    assert model.score(both) == pytest.approx(0.5)
    weights = np.where(np.concatenate([right, ~right]), 3.0, 1.0)
    assert model.score(both, sample_weight=weights) == pytest.approx(0.75)


@pytest.mark.parametrize("rows", ["abc", None, 3, [1, 2, 3], [[1, 2]], [[1, 2], [1]]])
def test_what_is_no_triplet_has_no_score(rows):
    model = nearer.SOE(1, random_state=0).fit([[0, 1, 2], [2, 1, 0]])
    with pytest.raises(InvalidInput, match=r"must be \(m, 3\) rows"):
        model.score(rows)


def test_stress_is_the_sum_that_cblearn_reports(answers):
    triplets = answers[3]
    model = nearer.SOE(1, random_state=0, n_objects=N).fit(triplets)
    head, near, far = model.embedding_[triplets.T]
    gap = np.linalg.norm(head - near, axis=1) + 1 - np.linalg.norm(head - far, axis=1)
    assert model.stress_ == pytest.approx((np.maximum(gap, 0) ** 2).sum(), rel=1e-6)


class Tensor:
    """A sparse array as cblearn passes it: one entry for each three objects."""

    def __init__(self, rows, counts, n):
        self.coords, self.data, self.shape, self.nnz = rows.T, counts, (n, n, n), len(counts)


def test_cblearns_sparse_answers_are_triplets(answers):
    _, questions, y, triplets = answers
    counts = np.where(y, 1, -1)
    matrix = sparse.coo_matrix(
        (counts, (questions[:, 0], questions[:, 1] * N + questions[:, 2])), shape=(N, N * N)
    )
    expected = nearer.SOE(2, random_state=0, n_objects=N).fit(triplets)
    for form in (Tensor(questions, counts, N), matrix):
        model = nearer.SOE(2, random_state=0).fit(form)
        assert model.embedding_.shape == (N, 2)
        assert model.score(form) == pytest.approx(model.score(triplets))
    again = nearer.SOE(2, random_state=0).fit(Tensor(questions, counts, N))
    np.testing.assert_array_equal(again.embedding_, expected.embedding_)
    with pytest.raises(InvalidInput, match="y with sparse answers"):
        nearer.SOE(2).fit(matrix, y)
    with pytest.raises(InvalidInput, match=r"must be \(n, n, n\)"):
        nearer.SOE(2).fit(sparse.coo_matrix((3, 5)))
