"""Further objects placed among others, from exact and noisy answers."""

from importlib import import_module

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kendalltau

import nearer
from nearer._kernels import comparisons
from nearer._kernels import placing as kernel
from nearer.algorithms.choose_questions import most_questions
from nearer.algorithms.place import place_among
from nearer.errors import InvalidInput
from nearer.fitting.likelihood import Curve, Noise
from nearer.fitting.posterior import Posterior

OLD = np.random.default_rng(3).normal(scale=10, size=(80, 2))
LAPSE = 0.1


def posterior(sd=0.3, *, tail=0.0, sharpness=1.0):
    covariances = np.tile(sd**2 * np.eye(OLD.shape[1]), (len(OLD), 1, 1))
    return Posterior(OLD, covariances, Noise(10.0, LAPSE, tail), Curve(sharpness, LAPSE))


def chances(fit, points, rows, new):
    """The model, written out: how likely "yes" is, for each point and question."""
    tail, beta = fit.noise.tail, fit.curve.sharpness
    count = (lambda r: (tail + 1) / 2 * np.log1p(r**2 / tail)) if tail else (lambda r: r)
    out = np.empty((len(points), len(rows)))
    for k, (h, a, b) in enumerate(rows):
        at = [np.broadcast_to(points if i == new else OLD[i], points.shape) for i in (h, a, b)]
        near, far = (np.linalg.norm(at[0] - at[c], axis=1) for c in (1, 2))
        step, noise = 1e-4, 0.0
        for i, object_ in enumerate((h, a, b)):  # by finite differences
            for axis in range(OLD.shape[1]) if object_ != new else ():
                moved = [part.copy() for part in at]
                moved[i][:, axis] += step
                shifted = count(np.linalg.norm(moved[0] - moved[2], axis=1))
                shifted = shifted - count(np.linalg.norm(moved[0] - moved[1], axis=1))
                slope = (shifted - (count(far) - count(near))) / step
                noise = noise + slope**2 * fit.covariances[object_, 0, 0]
        t = beta * (count(far) - count(near))
        out[:, k] = LAPSE + (1 - 2 * LAPSE) * ndtr(t / np.sqrt(8 / np.pi + beta**2 * noise))
    return out


def modelled(fit, X, rng, asked):
    """An oracle that answers as the model says, and notes what it was asked."""

    def oracle(questions):
        new = np.where(questions[:, 0] >= len(OLD), questions[:, 0], questions[:, 1])
        p = [chances(fit, X[[x]], [q], x)[0, 0] for q, x in zip(questions, new, strict=True)]
        said = rng.random(len(p)) < p
        asked.append((questions, said))
        return said

    return oracle


@pytest.mark.parametrize(("tail", "sharpness"), [(0.0, 1.0), (0.0, 0.5), (2.0, 4.0)])
def test_the_posterior_is_close_to_the_one_on_a_grid(tail, sharpness):
    """Slow code for the kernel: the posterior computed point by point."""
    fit = posterior(tail=tail, sharpness=sharpness)
    rng, off, sizes = np.random.default_rng(0), [], []
    for _ in range(9):
        X, asked = np.vstack([OLD, rng.normal(scale=8, size=2)]), []
        placing = place_among(fit, np.array([80]), budget=66, until_spent=True, rng=rng)
        placed = nearer.run(placing, modelled(fit, X, rng, asked))
        rows, said = (np.concatenate(part) for part in zip(*asked, strict=True))
        mean, sd = placed.positions[0], np.sqrt(np.trace(placed.covariances[0]) / 2)
        axis = np.linspace(-6, 6, 41) * sd
        grid = mean + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        p = chances(fit, grid, rows, 80)
        logs = np.log(np.where(said, p, 1 - p)).sum(axis=1)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        exact = weights @ grid
        spread = np.sqrt(weights @ ((grid - exact) ** 2).sum(axis=1) / 2)
        off.append(np.linalg.norm(exact - mean) / spread)
        sizes.append(sd / spread)
    assert np.median(off) < 0.8
    assert 0.6 < np.median(sizes) < 1.5


@pytest.mark.parametrize("d", [1, 2, 4])
def test_exact_answers_place_objects_as_certainly_as_the_core(d):
    rng, sd = np.random.default_rng(d), 0.005
    X = rng.normal(size=(700, d))
    core = X[:300] + sd * rng.normal(size=(300, d))
    covariances = np.tile(sd**2 * np.eye(d), (300, 1, 1))
    fit = Posterior(core, covariances, Noise(), Curve(10 / sd))
    placing = place_among(fit, np.arange(300, 700), budget=60_000, rng=rng)
    placed = nearer.run(placing, nearer.PointOracle(X))
    errors = np.linalg.norm(placed.positions - X[300:], axis=1) / np.sqrt(d)
    assert np.median(errors) < 2 * sd
    assert np.mean(errors > 10 * sd) < 0.01
    assert placed.uncertain <= 8
    assert placed.n_comparisons < 400 * 25 * (d + 1)
    assert placed.n_rounds <= 100


def test_objects_with_the_same_answers_share_what_is_computed_and_nothing_else():
    """Two objects in one place are placed alike whatever other objects there are."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    X[101] = X[100]
    fit = Posterior(X[:100], np.tile(1e-4 * np.eye(2), (100, 1, 1)), Noise(), Curve(1000.0))
    placing = place_among(fit, np.arange(100, 400), budget=30_000, rng=np.random.default_rng(0))
    placed = nearer.run(placing, nearer.PointOracle(X))
    np.testing.assert_array_equal(placed.positions[0], placed.positions[1])
    assert len(np.unique(placed.positions, axis=0)) > 290


def test_no_question_is_put_twice_and_each_holds_one_new_object():
    seen = []

    def yes(questions):
        seen.append(questions)
        return np.ones(len(questions), dtype=np.bool_)

    rng = np.random.default_rng(2)
    nearer.run(
        place_among(posterior(), np.arange(90, 95), budget=500, until_spent=True, rng=rng), yes
    )
    rows = np.concatenate(seen)
    assert ((rows >= 80).sum(axis=1) == 1).all()
    keys = nearer.questions.pack(rows)[0]
    assert len(np.unique(keys)) == len(keys)


def test_any_number_of_threads_gives_the_same(monkeypatch):
    X = np.random.default_rng(0).normal(size=(700, 2))
    results = []
    for cores in (1, 3):
        monkeypatch.setattr(comparisons, "_CORES", cores)
        comparisons._threads.cache_clear()
        people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=0)
        rng = np.random.default_rng(0)
        placing = place_among(posterior(), np.arange(80, 700), budget=12_000, rng=rng)
        results.append(nearer.run(placing, people).positions)
    comparisons._threads.cache_clear()
    np.testing.assert_array_equal(*results)


def test_a_budget_that_does_not_reach_all_says_which_it_did_not_reach():
    X = np.random.default_rng(0).normal(size=(110, 2))
    rng = np.random.default_rng(0)
    placing = place_among(posterior(), np.arange(80, 110), budget=20, rng=rng)
    placed = nearer.run(placing, nearer.PointOracle(X))
    assert placed.n_comparisons == 20
    lost = np.isnan(placed.positions).any(axis=1)
    assert placed.objects[lost].tolist() == placed.never_asked.tolist()
    assert 0 < lost.sum() < 30


@pytest.mark.parametrize("tail", [0.0, 3.0])
@pytest.mark.parametrize("head", [kernel.ANCHOR_HEAD, kernel.OWN_HEAD])
def test_a_margin_knows_its_slopes_and_how_unsure_anchors_make_it(monkeypatch, head, tail):
    monkeypatch.setattr(kernel, "counted", kernel.counted.py_func)
    rng, sharpness, step = np.random.default_rng(0), 1.7, 1e-6
    places, variances = rng.normal(size=(3, 2)), np.array([0.0, 0.3, 2.0])  # x, then two anchors
    asked = np.array([[1, 2, head]], dtype=np.int16)

    def margin(points):
        anchors, gradient = np.column_stack([points, variances]), np.empty(2)
        margin_and_slopes = kernel._margin.py_func(
            points[0], anchors, (sharpness, tail), asked, 0, gradient
        )
        return *margin_and_slopes, gradient

    slopes = np.empty((3, 2))
    for point, axis in np.ndindex(3, 2):
        move = np.zeros((3, 2))
        move[point, axis] = step
        slopes[point, axis] = (margin(places + move)[0] - margin(places - move)[0]) / (2 * step)
    _, variance, gradient = margin(places)
    np.testing.assert_allclose(gradient, slopes[0], rtol=1e-5)
    assert variance == pytest.approx(variances[1:] @ np.square(slopes[1:]).sum(axis=1), rel=1e-5)


@pytest.fixture(scope="module")
def embedded():
    X = np.random.default_rng(0).normal(size=(170, 3))
    return X, nearer.embed(nearer.PointOracle(X), 150, random_state=0, progress=False)


def test_new_objects_rank_the_old_as_well_as_the_old_do(embedded):
    X, old = embedded
    placed = old.place(nearer.PointOracle(X), np.arange(150, 170))
    assert len(placed.triplets) == placed.n_comparisons

    def tau(x, where):
        true = np.linalg.norm(X[:150] - X[x], axis=1)
        return kendalltau(true, np.linalg.norm(old.positions - where, axis=1))[0]

    new = [tau(x, where) for x, where in zip(placed.objects, placed.positions, strict=True)]
    fitted = [tau(x, old.positions[x]) for x in range(150)]
    assert np.mean(new) > np.mean(fitted) - 0.01


def test_a_budget_places_as_well_as_it_can(embedded):
    X, old = embedded
    placed = nearer.run(
        nearer.algorithms.place_objects(old, [150, 151]), nearer.PointOracle(X), budget=20
    )
    assert placed.n_comparisons == 20
    assert np.isfinite(placed.positions).all()


def test_nothing_new_costs_nothing(embedded):
    assert embedded[1].place(lambda questions: 1 / 0, []).n_comparisons == 0


@pytest.mark.parametrize(
    ("new", "message"), [([149], "object 149"), ([150, 150], "twice"), ([0.5], "numbers")]
)
def test_wrong_objects_are_named(embedded, new, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.algorithms.place_objects(embedded[1], new)


def test_something_else_than_an_embedding_is_named():
    with pytest.raises(InvalidInput, match="embedding=array"):
        nearer.algorithms.place_objects(np.zeros((5, 2)), [5])


def test_triplets_that_are_not_wanted_are_not_stored(embedded):
    X, old = embedded
    recorded, dropped = (
        nearer.run(
            nearer.algorithms.place_objects(
                old, np.arange(150, 170), keep_triplets=keep, random_state=0
            ),
            nearer.PointOracle(X),
        )
        for keep in (True, False)
    )
    np.testing.assert_array_equal(recorded.positions, dropped.positions)
    assert recorded.n_comparisons == dropped.n_comparisons == len(recorded.triplets) > 0
    assert len(dropped.triplets) == 0


def test_noisy_answers_and_no_answers_are_borne():
    X = np.random.default_rng(5).normal(size=(46, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.15, noise="fresh", random_state=0)
    old = nearer.run(nearer.adaptive(40, budget=1500, n_components=2, random_state=0), people)
    placed = old.place(people, np.arange(40, 46))
    both = np.concatenate([old.positions, placed.positions])
    laid = nearer.metrics.procrustes(X, both).aligned
    assert np.median(np.linalg.norm(laid - X, axis=1)[40:] / X.std()) < 0.25
    silent = nearer.run(
        nearer.algorithms.place_objects(old, [44, 41]),
        lambda questions: [None] * len(questions),
        budget=30,
    )
    assert silent.n_comparisons == 30


def test_many_noisy_answers_are_embedded_by_a_core_and_the_others(monkeypatch):
    monkeypatch.setattr(import_module("nearer.algorithms.adaptive"), "TOGETHER", 80)
    X = np.random.default_rng(0).normal(size=(90, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=1)
    embedding = nearer.embed(people, 90, random_state=0, progress=False)
    assert [phase.name for phase in embedding.history] == ["adaptive", "place"]
    assert embedding.dimension_low <= 2 <= embedding.dimension_high
    assert embedding.n_comparisons == len(embedding.triplets) <= 90 * most_questions(90, 2, 0.12)
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.97
    assert embedding.details["expected_tau"] > 0.97
    assert 0.08 < embedding.error_rate < 0.2  # those that were chosen are harder
    assert embedding.covariances.shape == (90, embedding.dimension, embedding.dimension)
    assert len(embedding.details["never_asked"]) == 0


@pytest.mark.filterwarnings("ignore:.* no better than by guessing")
def test_core_and_others_stay_within_a_small_budget(monkeypatch):
    monkeypatch.setattr(import_module("nearer.algorithms.adaptive"), "TOGETHER", 600)
    X = np.random.default_rng(0).normal(size=(700, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=1)
    how = {"noise": 0.1, "random_state": 0, "progress": False}
    embedding = nearer.embed(people, 700, budget=4001, **how)  # a warning would be an error
    # objects that are as certain as a core of guesses cost no more
    assert 700 < embedding.n_comparisons == len(embedding.triplets) <= 4001
    assert np.isfinite(embedding.positions).all()
    with pytest.warns(nearer.errors.AnswersWarning, match="were in no question"):
        embedding = nearer.embed(people, 700, budget=301, **how)
    assert embedding.n_comparisons == len(embedding.triplets) == 301
    lost = np.flatnonzero(np.isnan(embedding.positions).any(axis=1))
    assert lost.tolist() == embedding.details["never_asked"].tolist()
    assert np.array_equal(np.setdiff1d(np.arange(700), lost), np.unique(embedding.triplets))


@pytest.mark.filterwarnings("ignore:.* no better than by guessing")
def test_objects_that_the_budget_does_not_reach_have_no_position(tmp_path):
    X = np.random.default_rng(0).normal(size=(900, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=0)
    with pytest.warns(nearer.errors.AnswersWarning, match="objects of 900 were in no question"):
        embedding = nearer.embed(
            people, 900, budget=1200, noise=0.1, random_state=0, progress=False
        )
    lost = np.flatnonzero(np.isnan(embedding.positions).any(axis=1))
    assert 0 < len(lost) < 900
    assert embedding.never_asked.tolist() == lost.tolist()
    assert f"{len(lost)} never asked about" in repr(embedding)
    with pytest.raises(InvalidInput, match="no question was about it"):
        embedding.nearest(int(lost[0]))
    reached = int(np.setdiff1d(np.arange(900), lost)[0])
    assert not set(embedding.nearest(reached, 20)) & set(lost.tolist())
    embedding.save(tmp_path / "map.nearer.npz")
    assert nearer.load(tmp_path / "map.nearer.npz").never_asked.tolist() == lost.tolist()
    assert len(embedding.to_frame()) == 900
    assert "<figure" in embedding._repr_html_()
    embedding.plot()
    assert np.isfinite(embedding.details["expected_tau"])


def test_placed_objects_have_neighbours_and_a_frame():
    X = np.random.default_rng(0).normal(size=(33, 2))
    embedding = nearer.embed(nearer.PointOracle(X), 30, random_state=0, progress=False)
    placed = embedding.place(nearer.PointOracle(X), [30, 31, 32])
    true = np.argsort(np.linalg.norm(X[:30] - X[31], axis=1))[:8]
    near = placed.nearest(31, 3)
    assert set(near) <= set(true.tolist())
    assert near == embedding.nearest(placed.positions[1], 3)
    frame = placed.to_frame()
    assert frame["name"].tolist() == [30, 31, 32]
    assert list(frame.columns) == ["name", "x1", "x2", "sd1", "sd2"]
    with pytest.raises(nearer.errors.InvalidInput, match="none of the 3 objects"):
        placed.nearest(5)


def test_no_object_takes_more_than_twice_its_share_of_the_budget():
    """One whose answers are coins never becomes certain; the others leave most of their share."""
    X = np.concatenate([OLD, 10 * np.random.default_rng(0).normal(size=(30, 2))])
    exact, rng, asked = nearer.PointOracle(X), np.random.default_rng(1), np.zeros(110, int)

    def oracle(questions):
        new = questions.max(axis=1)
        np.add.at(asked, new, 1)
        return np.where(new == 80, rng.random(len(new)) < 0.5, exact(questions))

    placing = place_among(posterior(), np.arange(80, 110), budget=6000, rng=rng)
    assert nearer.run(placing, oracle).uncertain <= 5
    assert asked.sum() < 5000
    assert asked[80] == asked.max() <= 2 * 6000 / 30 * 1.04
