"""What an embedding can be asked, kept and drawn as."""

import json
import os
import pickle
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import squareform
from scipy.stats import chi2

import nearer
from nearer._kernels.wandering import wander
from nearer.embedding import HeldOutAccuracy, Phase
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.posterior import Noise, Posterior
from nearer.kept import write_kept
from nearer.metrics import procrustes
from nearer.questions import answered, random_questions
from nearer.soundness import KEPT

N = 20
NAMES = tuple(f"thing <{i}>" for i in range(N))


def fitted(seed=0, *, n=N, d=2, m=800, flip=0.1, people=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    questions = random_questions(n, m, rng)
    right = nearer.PointOracle(X)(questions)
    rows = answered(questions, right ^ (rng.random(m) < flip))
    who = None if people is None else rng.choice(people, m)
    found = nearer.fit(rows, n_components=d, n_objects=n, people=who, random_state=seed)
    return X, found


@pytest.fixture(scope="module")
def noisy():
    return replace(fitted(people=["ann", "bob", "cy"])[1], names=NAMES)


@pytest.fixture(scope="module")
def exact():
    return fitted(flip=0)[1]


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return type(a) is type(b) and a == b


def test_what_is_saved_comes_back(noisy, exact, tmp_path):
    asked = nearer.embed(
        nearer.PointOracle(fitted()[0]), N, random_state=0, progress=False, budget=400
    )
    for embedding in (noisy, exact, asked):
        file = tmp_path / "map.nearer.npz"
        embedding.save(file)
        again = nearer.load(file)
        for f in fields(embedding):
            if f.name != "details":
                assert same(getattr(embedding, f.name), getattr(again, f.name)), f.name
        for key in set(embedding.details) - {"noise_check"}:
            assert same(embedding.details[key], again.details[key]), key
        assert embedding._repr_html_() == again._repr_html_()
    noisy.save(kept := tmp_path / "map.nearer.npz")
    assert np.array_equal(noisy.draws(3, 0), nearer.load(kept).draws(3, 0))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.nearer.npz"]


def test_what_cannot_be_kept_becomes_text_or_is_left_out(noisy, tmp_path):
    odd = replace(noisy, names=(Path("a.png"), *NAMES[1:]), details={"what": object(), "n": 3})
    odd.save(tmp_path / "odd.npz")
    again = nearer.load(tmp_path / "odd.npz")
    assert again.names[0] == "a.png"
    assert again.details == {"n": 3}
    with pytest.raises(InvalidInput, match="not written, a object cannot be kept"):
        replace(noisy, evidence={1: {"what": object()}}).save(tmp_path / "bad.npz")
    for folder in (".", "/"):
        with pytest.raises(InvalidInput, match="is a folder; name a file in it"):
            noisy.save(folder)
    assert not (tmp_path / "bad.npz").exists()


def test_people_of_any_kind_are_kept(noisy, tmp_path):
    table = noisy.people.astype(
        [("id", object), *((n, noisy.people.dtype[n]) for n in noisy.people.dtype.names[1:])]
    )
    replace(noisy, people=table).save(tmp_path / "people.npz")
    assert nearer.load(tmp_path / "people.npz").people["id"].tolist() == ["ann", "bob", "cy"]


def test_other_files_get_one_clear_message(noisy, tmp_path):
    with pytest.raises(InvalidInput, match="there is no such file"):
        nearer.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("positions")
    with pytest.raises(InvalidInput, match=r"text\.npz: is not a NumPy file"):
        nearer.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", X=np.eye(3))
    with pytest.raises(InvalidInput, match="holds X, which is no saved embedding"):
        nearer.load(tmp_path / "other.npz")
    np.savez(tmp_path / "pickled.npz", about=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match="not a NumPy file of plain numbers"):
        nearer.load(tmp_path / "pickled.npz")
    for change, message in (
        ({"version": 2}, "has format 2, written by nearer .* reads format 1"),
        ({"values": {"class": "Path", "fields": {}}}, "damaged"),
        ({"values": {"dict": [["positions", 3]]}}, "no whole saved embedding"),
        ({"values": {"array": 99}}, "damaged"),
        ({"format": "another"}, "no saved embedding"),
    ):
        changed(noisy, tmp_path / "changed.npz", change)
        with pytest.raises(InvalidInput, match=message):
            nearer.load(tmp_path / "changed.npz")


def changed(embedding, file, change):
    embedding.save(file)
    with np.load(file) as held:
        arrays = dict(held)
    about = json.loads(arrays["about"].tobytes()) | change
    del about["sha256"]  # as files of earlier versions have none
    np.savez(file, **arrays | {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)})


def test_a_file_that_is_cut_off_is_refused(noisy, tmp_path):
    file = tmp_path / "map.npz"
    noisy.save(file)
    assert zipfile.is_zipfile(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InvalidInput, match="not a NumPy file"):
        nearer.load(file)


def test_a_file_that_is_damaged_anywhere_is_refused_or_read(noisy, tmp_path):
    """Whatever bytes a disk has changed, the answer is the map or one clear message."""
    file, rng = tmp_path / "map.npz", np.random.default_rng(0)
    noisy.save(file)
    whole = file.read_bytes()
    for at in rng.integers(len(whole), size=150).tolist() + list(
        range(len(whole) - 150, len(whole))
    ):
        damaged = bytearray(whole)
        damaged[at] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        said = ""
        try:
            assert np.array_equal(nearer.load(file).positions, noisy.positions)
        except InvalidInput as error:
            said = str(error)
        assert not said or "map.npz" in said
        assert "pickle" not in said


def test_other_files_are_told_what_is_needed(tmp_path):
    (tmp_path / "answers.csv").write_text("head,winner,loser\n0,1,2\n")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    for name in ("answers.csv", "objects.npy"):
        with pytest.raises(InvalidInput, match=r"give a file that Embedding\.save wrote") as said:
            nearer.load(tmp_path / name)
        assert "pickle" not in str(said.value)
    with pytest.raises(InvalidInput) as said:
        nearer.load(tmp_path / "none.npz")
    assert "numpy.save" not in str(said.value)


def forge(embedding, path):
    """A file as `save` would write it, whatever it holds."""
    values = {f.name: getattr(embedding, f.name) for f in fields(embedding)}
    write_kept(path, values, {kind.__name__: kind for kind in (Phase, HeldOutAccuracy, *KEPT)}, "x")


def bent_posterior(noise):
    return Posterior(np.zeros((N, 2)), np.zeros((N, 2, 2)), noise)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": np.zeros(N)}, r"positions are an array of shape \(20,\)"),
        ({"positions": np.zeros((N, 2), int)}, "positions is an array .* type int64"),
        ({"positions": np.full((N, 2), np.nan)}, "the position of object 0 is not finite"),
        ({"triplets": np.zeros((4, 2), int)}, r"triplets are an array of shape \(4, 2\)"),
        ({"triplets": np.array([[0, 1, N]])}, "triplets name objects from 0 to 20"),
        ({"covariances": np.zeros((N, 3, 3))}, "covariances are an array of shape"),
        ({"names": ("a", "b")}, "2 names for 20 objects"),
        ({"n_comparisons": "many"}, "n_comparisons is 'many'"),
        ({"positions": [[0.0]]}, r"positions is \[\[0"),
        ({"positions": np.zeros((N, 2), np.float16)}, "positions is an array .* type float16"),
        ({"covariances": np.full((N, 2, 2), np.nan)}, "covariances are those of nothing"),
        ({"covariances": np.tile(-np.eye(2), (N, 1, 1))}, "covariances are those of nothing"),
        ({"held_out": "x"}, "held_out is 'x'"),
        ({"held_out": HeldOutAccuracy("x", 0.0, 1.0, 3)}, "held_out is HeldOut"),
        ({"history": (1,)}, r"history is \(1,\)"),
        ({"history": [Phase("a", 1, 1)]}, r"history is \[Phase"),
        ({"evidence": {"a": {}}}, "evidence is {'a'"),
        ({"evidence": {1: 2}}, "evidence is {1: 2}"),
        ({"people": np.zeros(3)}, "people is an array"),
        ({"details": {"weights": np.ones(3)}}, r"weights are an array of shape \(3,\)"),
        ({"details": {"estimate": "x"}}, "estimate is 'x'"),
        ({"details": {"read": "x"}}, "read is 'x'"),
        ({"details": {"agreement": {"foo": 1}}}, "agreement is {'foo'"),
        ({"details": {"calibration": 3}}, "calibration is 3"),
        ({"details": {"call": 3}}, "call is 3"),
        ({"details": {"posterior": "x"}}, "posterior is 'x'"),
        ({"details": {"posterior": bent_posterior(Noise("a", "b", "c"))}}, "posterior is "),
        ({"details": {"posterior": bent_posterior(None)}}, "posterior is "),
        ({"details": {"posterior": bent_posterior(Noise(0.0, 2.0, 0.0))}}, "noise cannot be"),
        ({"details": {"heads": np.array([10**6] * 6)}}, "heads are an array"),
        ({"details": {"places": np.array([N])}}, "places are an array"),
    ],
)
def test_what_is_no_embedding_is_neither_saved_nor_loaded(noisy, tmp_path, change, message):
    bent = replace(noisy, **change)
    with pytest.raises(InvalidInput, match=f"not written, {message}"):
        bent.save(tmp_path / "map.npz")
    assert not list(tmp_path.iterdir())
    forge(bent, tmp_path / "map.npz")
    with pytest.raises(InvalidInput, match=f"no whole saved embedding .{message}"):
        nearer.load(tmp_path / "map.npz")


@pytest.mark.parametrize(
    "name", ["pairs", "starts", "spans", "credit", "weights", "row", "wanted", "n_objects"]
)
def test_choices_that_do_not_fit_together_are_refused(tmp_path, name):
    screens = np.array([[0, 1, 2, 3], [2, 3, 4, 5], [0, 4, 1, 5], [3, 1, 5, 0], [4, 5, 0, 2]])
    chosen = np.eye(3, dtype=bool)[[0, 0, 1, 2, 0]]
    trials = nearer.Trials.from_screens(screens, chosen)
    found = nearer.fit(trials, n_components=1, random_state=0)
    found.save(tmp_path / "whole.npz")
    assert same(nearer.load(tmp_path / "whole.npz").details["choices"], found.details["choices"])
    array = np.array(getattr(found.details["choices"], name))
    array.flat[-1] += 99  # a screen of three, from which 100 are to be chosen, among others
    array = array[:-1] if name in ("credit", "weights") else array
    choices = replace(found.details["choices"], **{name: array if array.ndim else int(array)})
    forge(replace(found, details={**found.details, "choices": choices}), tmp_path / "map.npz")
    with pytest.raises(InvalidInput, match="its choices do not fit together"):
        nearer.load(tmp_path / "map.npz")


def test_a_file_that_somebody_changed_is_refused(noisy, tmp_path):
    noisy.save(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as held:
        arrays = dict(held)
    last = max(int(name) for name in arrays if name != "about")
    arrays[str(last)] = arrays[str(last)][:-1]
    np.savez(tmp_path / "map.npz", **arrays)
    with pytest.raises(InvalidInput, match="was changed after it had been saved"):
        nearer.load(tmp_path / "map.npz")


@pytest.mark.parametrize("path", [None, "", 3])
def test_what_is_no_path_is_refused(noisy, path):
    for call in (nearer.load, noisy.save, noisy.report, nearer.read_triplets, nearer.read_trials):
        with pytest.raises(InvalidInput, match="is no path of a file; give one"):
            call(path)


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


def test_the_frame_has_names_places_and_doubt(noisy, exact):
    frame = noisy.to_frame()
    assert list(frame) == ["name", "x1", "x2", "sd1", "sd2"]
    assert tuple(frame["name"]) == NAMES
    assert np.array_equal(frame[["x1", "x2"]], noisy.positions)
    assert np.allclose(frame["sd2"] ** 2, noisy.covariances[:, 1, 1])
    assert list(replace(exact, covariances=None).to_frame()) == ["name", "x1", "x2"]


def test_without_pandas_frames_say_what_they_need(noisy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match="to_frame needs pandas; pip install pandas"):
        noisy.to_frame()
    model = nearer.SOE(1, random_state=0).set_output(transform="pandas")
    with pytest.raises(InvalidInput, match="needs pandas; pip install pandas, or take"):
        model.fit_transform([[0, 1, 2], [1, 0, 2], [2, 1, 0]])


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
    with pytest.raises(InvalidInput, match=r"object=20: must be a whole number, from 0 to 19"):
        exact.nearest(20)
    with pytest.raises(InvalidInput, match=r"k=20: must be .* from 1 to 19"):
        exact.nearest(1, 20)


def test_it_prints_in_a_line_and_shows_in_a_notebook(noisy):
    line = repr(noisy)
    assert line.startswith("Embedding(20 objects, 2 dimensions, 800 comparisons, held-out")
    assert "\n" not in line
    assert "not determined: 1 to 3" in repr(
        replace(noisy, determined=False, dimension_low=1, dimension_high=3)
    )
    page = noisy._repr_html_()
    assert page.count("<circle") == N
    assert "thing &lt;3&gt;" in page
    assert "thing <3>" not in page
    for shape in ((3, 1), (5, 4), (3, 2)):
        flat = replace(noisy, positions=np.zeros(shape), names=None)
        assert flat._repr_html_().count("<circle") == shape[0]
        assert "nan" not in flat._repr_html_()


def covered(truth, draws):
    """The share of objects that are in the draws' 95 % regions, the truth laid over their mean."""
    middle = draws.mean(axis=0)
    away = draws - middle
    covariances = np.einsum("kni,knj->nij", away, away) / (len(draws) - 1)
    error = procrustes(middle, truth).aligned - middle
    squared = np.einsum("ni,nij,nj->n", error, np.linalg.inv(covariances), error)
    return np.mean(squared < chi2.ppf(0.95, draws.shape[2]))


@pytest.mark.parametrize("flip", [0.15, 0])
def test_regions_of_draws_hold_what_they_say(flip):
    shares = []
    for seed in range(12):
        truth, found = fitted(seed, flip=flip)
        shares.append(covered(truth, found.draws(60, seed)))
    assert 0.88 < np.mean(shares) <= 0.995


def test_draws_of_a_run_that_disobeys_a_few_answers_hold_what_they_say():
    shares, wrong = [], []
    for seed in range(4):
        truth = np.random.default_rng([seed, 40]).normal(size=(40, 2))
        found = nearer.embed(nearer.PointOracle(truth), 40, random_state=seed, progress=False)
        wrong.append(not found.predict(found.triplets).all())
        shares.append(covered(truth, found.draws(60, seed)))
    assert any(wrong)
    assert 0.88 < np.mean(shares) <= 0.995
    with pytest.raises(InvalidInput, match=r"not known; nearer.fit of their answers"):
        replace(found, triplets=found.triplets[:, [0, 2, 1]]).draws(3)
    with pytest.raises(InvalidInput, match="their answers were not kept; ask with keep_triplets"):
        replace(found, triplets=found.triplets[:0]).draws(3)


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
    assert np.mean(abs(draws.mean(axis=0) - noisy.positions) < 0.5 * spread) > 0.8


def test_draws_of_choices_hold_what_they_say_and_can_be_kept(tmp_path):
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
        found = nearer.fit(trials, n_components=2, n_objects=N, random_state=seed)
        shares.append(covered(X, found.draws(60, seed)))
    assert 0.85 < np.mean(shares) <= 0.995
    rows = found.details["choices"]
    assert len(pickle.dumps(rows)) < 1.5 * len(pickle.dumps(replace(rows))), "no folds of the fit"
    found.save(tmp_path / "map.nearer.npz")
    assert np.array_equal(found.draws(3, 0), nearer.load(tmp_path / "map.nearer.npz").draws(3, 0))


def test_draws_of_obeyed_answers_obey_them(exact):
    draws = exact.draws(5, 0)
    for map_ in draws:
        moved = replace(exact, positions=map_)
        assert moved.predict(exact.triplets).all()
    assert draws.std(axis=0).min() > 0


def test_the_walk_steps_as_its_slow_twin_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    questions = random_questions(8, 60, rng)
    rows = answered(questions, nearer.PointOracle(X)(questions)).astype(np.int64)
    order = np.argsort(rows.ravel(), kind="stable") // 3
    first = np.searchsorted(np.sort(rows.ravel()), np.arange(9))
    directions = rng.normal(size=(1, 8, 2))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    chances = rng.random((1, 8, 2))
    chances[..., 1] = 0  # every step is taken
    slow, grid = X.copy(), np.linspace(-6, 6, 240_001)
    for i in range(8):
        moved = slow[i] + grid[:, None] * directions[0, i]
        good = np.ones(len(grid), dtype=bool)
        for row in rows[(rows == i).any(axis=1)]:
            h, a, b = (moved if j == i else slow[j] for j in row)
            near, far = (np.linalg.norm(np.atleast_2d(h - x), axis=1) for x in (a, b))
            good &= near < far
        bad = np.flatnonzero(~good)
        low = grid[bad[bad < 120_000].max()] if (bad < 120_000).any() else -6.0
        high = grid[bad[bad > 120_000].min()] if (bad > 120_000).any() else 6.0
        slow[i] = slow[i] + (low + chances[0, i, 0] * (high - low)) * directions[0, i]
    fast = X.copy()
    wander(fast, rows, first, order, directions, chances, 1.0)
    assert fast == pytest.approx(slow, abs=1e-3)


def test_an_object_in_no_answer_may_be_anywhere_on_the_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    questions = random_questions(11, 500, rng)
    rows = answered(questions, nearer.PointOracle(X)(questions) ^ (rng.random(500) < 0.2))
    found = nearer.fit(rows, n_components=2, n_objects=12, random_state=0, method="noisy")
    spread = found.draws(300, 0).std(axis=0)
    assert spread[11] == pytest.approx(np.full(2, found.positions[:11].std()), rel=0.4)
    assert spread[11].min() > 2 * spread[:11].max()


def test_other_losses_are_drawn_from_their_covariances():
    _, found = fitted(m=400)
    other = nearer.fit(found.triplets, n_components=2, n_objects=N, method="ckl", random_state=0)
    draws = other.draws(500, 0)
    variances = np.einsum("nii->ni", other.covariances)
    assert draws.var(axis=0) == pytest.approx(variances, rel=0.4)


def test_draws_of_what_nobody_knows_are_refused(noisy):
    unsure = replace(noisy, covariances=None, details={})
    with pytest.raises(InvalidInput, match="how sure these positions are is not known"):
        unsure.draws(3)
    with pytest.raises(InvalidInput, match="k=0"):
        noisy.draws(0)


def test_files_are_written_where_links_lead_and_nowhere_else(noisy, tmp_path):
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    noisy.save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    replace(noisy, names=None).save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert nearer.load(target).names is None
    os.mkfifo(pipe := tmp_path / "pipe.npz")
    with pytest.raises(InvalidInput, match="is a device or a pipe; name a file"):
        noisy.save(pipe)
    (tmp_path / "file").touch()
    for bad in (tmp_path / "file" / "x.npz", tmp_path / ("x" * 300)):
        with pytest.raises(InvalidInput, match="cannot be written"):
            noisy.save(bad)
    noisy.save(tmp_path / ("x" * 250 + ".npz"))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"target.npz", "link.npz", "pipe.npz", "file", "x" * 250 + ".npz"}
