"""What an embedding answers, and how it is saved and drawn."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from embeddingkit import NAMES, N, fitted
from scipy.spatial.distance import squareform
from scipy.stats import chi2

import nearer
from nearer.errors import AnswersWarning, InvalidInput
from nearer.metrics import procrustes
from nearer.questions import answered, random_questions


@pytest.fixture(scope="module")
def noisy():
    return replace(fitted(people=["ann", "bob", "cy"])[1], names=NAMES)


@pytest.fixture(scope="module")
def exact():
    return fitted(flip=0)[1]


def test_questions_are_places_or_names(noisy):
    rows = noisy.triplets[:50]
    named = [[NAMES[i] for i in row] for row in rows.tolist()]
    assert np.array_equal(noisy.predict(named), noisy.predict(rows))
    assert np.array_equal(noisy.predict_proba(named), noisy.predict_proba(rows.tolist()))
    assert noisy.predict(rows[0]).shape == (1,)
    assert noisy.predict([]).shape == noisy.predict(np.empty((0, 3), int)).shape == (0,)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([[0, 1, -1]], r"question 0 is \[0, 1, -1\]: objects must be from 0 to 19"),
        ([[0, 1, 2], [0, 1, N]], r"question 1 is \[0, 1, 20\]: objects must be from 0"),
        ([[0, 1, 2, 3, 4, 5]], r"of shape \(1, 6\): must be \(m, 3\) rows"),
        ([[0.5, 1, 2]], "question 0 names 0.5: is none of the 20 objects"),
        ([["x", "y", "z"]], "question 0 names 'x': is none of the 20 objects"),
        (None, r"questions None: must be \(m, 3\) rows"),
        ([[0, 1, 2], [0, 1]], "rows of three|must be"),
    ],
)
def test_bad_questions_are_refused(noisy, questions, message):
    for ask in (noisy.predict, noisy.predict_proba):
        with pytest.raises(InvalidInput, match=message):
            ask(questions)


def test_names_are_for_objects_that_have_some(exact):
    nameless = replace(exact, names=None)
    for questions in ([["x", "y", "z"]], [[0.5, 1, 2]], [[True, 1.0, "2"]]):
        with pytest.raises(InvalidInput, match="these objects have no names"):
            nameless.predict(questions)


def test_distances_are_scipys(noisy):
    between = squareform(noisy.distances())
    assert between[3, 7] == pytest.approx(np.linalg.norm(noisy.positions[3] - noisy.positions[7]))
    rdm = noisy.to_rdm()
    assert rdm["dissimilarities"].shape == (1, N * (N - 1) // 2)
    assert rdm["pattern_descriptors"] == {"name": list(NAMES)}


def test_the_frame_has_names_positions_and_uncertainty(noisy, exact):
    frame = noisy.to_frame()
    assert list(frame) == ["name", "x1", "x2", "sd1", "sd2"]
    assert tuple(frame["name"]) == NAMES
    assert np.array_equal(frame[["x1", "x2"]], noisy.positions)
    assert np.allclose(frame["sd2"] ** 2, noisy.covariances[:, 1, 1])
    assert list(replace(exact, covariances=None).to_frame()) == ["name", "x1", "x2"]


def test_importing_asks_for_no_pandas():
    import subprocess

    code = "import nearer, sys; nearer.load; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_nearest_come_first_by_name(noisy, exact):
    away = squareform(noisy.distances())[4]
    assert noisy.nearest(NAMES[4], 3) == [NAMES[i] for i in np.argsort(away)[1:4]]
    assert exact.nearest(4, 19) == np.argsort(squareform(exact.distances())[4])[1:].tolist()
    with pytest.raises(InvalidInput, match="'cat': is none of the 20 objects"):
        noisy.nearest("cat")
    with pytest.raises(InvalidInput, match=r"array\(\[1, 2\]\): is none of the"):
        noisy.nearest(np.array([1, 2]))
    with pytest.raises(InvalidInput, match=r"20: is none of the 20 objects"):
        exact.nearest(20)
    with pytest.raises(InvalidInput, match=r"k=20: must be .* from 1 to 19"):
        exact.nearest(1, 20)


def test_it_prints_in_a_line_and_shows_in_a_notebook(noisy):
    line = repr(noisy)
    assert line.startswith("Embedding(20 objects, 2 dimensions, 800 answers, held-out")
    assert "\n" not in line
    assert "not determined: 1 to 3" in repr(
        replace(noisy, determined=False, dimension_low=1, dimension_high=3)
    )
    page = noisy._repr_html_()
    assert page.startswith('<figure><img src="data:image/png;base64,')
    assert page.endswith(f"<figcaption>{line[10:-1]}</figcaption></figure>")
    for shape in ((3, 1), (5, 4), (3, 2)):
        flat = replace(noisy, positions=np.zeros(shape), names=None, covariances=None)
        assert "<img" in flat._repr_html_()


def covered(truth, draws):
    """The share of objects that are in the draws' 95 % regions, the truth laid over their mean."""
    middle = draws.mean(axis=0)
    away = draws - middle
    covariances = np.einsum("kni,knj->nij", away, away) / (len(draws) - 1)
    error = procrustes(middle, truth).aligned - middle
    squared = np.einsum("ni,nij,nj->n", error, np.linalg.inv(covariances), error)
    return np.mean(squared < chi2.ppf(0.95, draws.shape[2]))


@pytest.mark.slow
@pytest.mark.parametrize("flip", [0.15, 0])
def test_regions_of_draws_hold_what_they_say(flip):
    shares = []
    for seed in range(12):
        truth, embedding = fitted(seed, flip=flip)
        shares.append(covered(truth, embedding.draws(60, seed)))
    assert 0.88 < np.mean(shares) <= 0.995


def test_draws_of_a_run_that_violates_a_few_answers_hold_what_they_say():
    shares, wrong = [], []
    for seed in range(6):
        truth = np.random.default_rng([seed, 40]).normal(size=(40, 2))
        embedding = nearer.embed(nearer.PointOracle(truth), 40, random_state=seed, progress=False)
        head, near, far = (embedding.positions[part] for part in embedding.triplets.T)
        gap = np.linalg.norm(head - far, axis=1) - np.linalg.norm(head - near, axis=1)
        answers = embedding.triplets.copy()
        hardest = np.where(gap > 0, gap, np.inf).argmin()
        answers[hardest] = answers[hardest, [0, 2, 1]]
        few_wrong = replace(embedding, triplets=answers)
        wrong.append(not few_wrong.predict(answers).all())
        shares.append(covered(truth, few_wrong.draws(60, seed)))
    assert all(wrong)
    assert 0.88 < np.mean(shares) <= 0.995
    bare = replace(embedding, covariances=None, details={})
    with pytest.raises(InvalidInput, match=r"not known; nearer\.fit"):
        replace(bare, triplets=embedding.triplets[:, [0, 2, 1]]).draws(3)
    with pytest.raises(InvalidInput, match=r"not stored, as nearer\.embed does"):
        replace(bare, triplets=embedding.triplets[:0]).draws(3)


def test_draws_without_the_answers_warn(noisy):
    bare = replace(noisy, triplets=noisy.triplets[:0])
    with pytest.warns(AnswersWarning, match="every object is drawn by itself"):
        assert bare.draws(3, 0).shape == (3, N, 2)


def test_draws_come_from_the_seed_and_are_around_the_positions(noisy):
    draws = noisy.draws(200, 1)
    assert draws.shape == (200, N, 2)
    assert np.array_equal(draws, noisy.draws(200, np.random.default_rng(1)))
    assert not np.array_equal(draws, noisy.draws(200, 2))
    spread = draws.std(axis=0)
    assert np.all(abs(draws.mean(axis=0) - noisy.positions) < 2 * spread)
    assert np.mean(abs(draws.mean(axis=0) - noisy.positions) < spread) > 0.8


@pytest.mark.slow
def test_draws_of_choices_hold_what_they_say_and_can_be_saved(tmp_path):
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, 2))
        screens = np.array([rng.choice(N, 5, replace=False) for _ in range(400)])
        away = np.linalg.norm(X[screens[:, :1]] - X[screens[:, 1:]], axis=2)
        chosen = screens[
            np.arange(400), 1 + (away + rng.gumbel(size=away.shape) / 4).argmin(axis=1)
        ]
        trials = nearer.Trials.near(screens[:, 0], screens[:, 1:], chosen[:, None])
        embedding = nearer.fit(trials, n_components=2, n_objects=N, random_state=seed)
        shares.append(covered(X, embedding.draws(60, seed)))
    assert 0.85 < np.mean(shares) <= 0.995
    embedding.save(tmp_path / "map.nearer.npz")
    assert np.array_equal(
        embedding.draws(3, 0), nearer.load(tmp_path / "map.nearer.npz").draws(3, 0)
    )


def test_draws_of_satisfied_answers_satisfy_nearly_all(exact):
    draws = exact.draws(5, 0)
    for map_ in draws:
        moved = replace(exact, positions=map_)
        assert moved.predict(exact.triplets).mean() > 0.98
    assert draws.std(axis=0).min() > 0


def test_an_object_in_no_answer_may_be_anywhere_on_the_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    questions = random_questions(11, 500, rng)
    rows = answered(questions, nearer.PointOracle(X)(questions) ^ (rng.random(500) < 0.2))
    embedding = nearer.fit(rows, n_components=2, n_objects=12, random_state=0, method="noisy")
    spread = embedding.draws(300, 0).std(axis=0)
    assert spread[11] == pytest.approx(np.full(2, embedding.positions[:11].std()), rel=0.4)
    assert spread[11].min() > 2 * spread[:11].max()


def test_other_losses_are_drawn_from_their_covariances():
    _, embedding = fitted(m=400)
    other = nearer.fit(
        embedding.triplets, n_components=2, n_objects=N, method="ckl", random_state=0
    )
    draws = other.draws(500, 0)
    variances = np.einsum("nii->ni", other.covariances)
    assert draws.var(axis=0) == pytest.approx(variances, rel=0.4)


def test_draws_without_a_posterior_are_refused(noisy):
    unsure = replace(noisy, covariances=None, details={})
    with pytest.raises(InvalidInput, match="the uncertainty of these positions is not known"):
        unsure.draws(3)
    with pytest.raises(InvalidInput, match="k=0"):
        noisy.draws(0)
