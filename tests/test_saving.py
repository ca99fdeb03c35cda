"""An embedding in a file: whole, or refused."""

import json
import os
import threading
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from embeddingkit import NAMES, N, fitted

import nearer
from nearer import embedding as embedding_module
from nearer.errors import InvalidInput
from nearer.files import lock_file
from nearer.fitting.likelihood import Noise
from nearer.fitting.posterior import Posterior


@pytest.fixture(scope="module")
def noisy():
    return replace(fitted(people=["ann", "bob", "cy"])[1], names=NAMES)


@pytest.fixture(scope="module")
def exact():
    return fitted(flip=0)[1]


def same(a, b):
    if hasattr(a, "equals"):
        return a.equals(b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return type(a) is type(b) and a == b


def test_what_is_saved_comes_back(noisy, exact, tmp_path):
    asked = nearer.embed(
        nearer.PointOracle(fitted()[0]), N, random_state=0, progress=False, budget=150
    )
    for embedding in (noisy, exact, asked):
        file = tmp_path / "map.nearer.npz"
        embedding.save(file)
        again = nearer.load(file)
        for f in fields(embedding):
            if f.name != "details":
                assert same(getattr(embedding, f.name), getattr(again, f.name)), f.name
        for key in set(embedding.details):
            assert same(embedding.details[key], again.details[key]), key
        assert embedding._repr_html_() == again._repr_html_()
    noisy.save(saved := tmp_path / "map.nearer.npz")
    assert np.array_equal(noisy.draws(3, 0), nearer.load(saved).draws(3, 0))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.nearer.npz"]


def test_what_cannot_be_saved_becomes_text_or_is_left_out(noisy, tmp_path):
    odd = replace(noisy, names=(Path("a.png"), *NAMES[1:]), details={"what": object(), "n": 3})
    odd.save(tmp_path / "odd.npz")
    again = nearer.load(tmp_path / "odd.npz")
    assert again.names[0] == "a.png"
    assert again.details == {"n": 3}
    with pytest.raises(InvalidInput, match="not written, a value of type object cannot"):
        replace(noisy, evidence={1: {"what": object()}}).save(tmp_path / "bad.npz")
    for folder in (".", "/"):
        with pytest.raises(InvalidInput, match="is a folder; name a file in it"):
            noisy.save(folder)
    assert not (tmp_path / "bad.npz").exists()


def test_people_of_any_kind_are_saved(noisy, tmp_path):
    replace(noisy, people=noisy.people.astype({"id": object})).save(tmp_path / "people.npz")
    assert nearer.load(tmp_path / "people.npz").people["id"].tolist() == ["ann", "bob", "cy"]


def test_other_files_get_one_clear_message(noisy, tmp_path):
    with pytest.raises(InvalidInput, match="there is no such file"):
        nearer.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("positions")
    with pytest.raises(InvalidInput, match=r"text\.npz: is not a NumPy file"):
        nearer.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", X=np.eye(3))
    with pytest.raises(InvalidInput, match=r"holds X, and .* Embedding\.save"):
        nearer.load(tmp_path / "other.npz")
    np.savez(tmp_path / "pickled.npz", about=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match="not a NumPy file of plain numbers"):
        nearer.load(tmp_path / "pickled.npz")
    for change, message in (
        ({"version": 1}, "holds format 1 of .*, written by nearer .* reads format 2"),
        ({"values": {"class": "Path", "fields": {}}}, "is no valid embedding"),
        ({"values": {"dict": [["positions", 3]]}}, "is no valid embedding"),
        ({"values": {"array": 99}}, "is no valid embedding"),
        ({"format": "another"}, "of another, written by"),
        ({"sha256": None}, "was changed after it had been saved"),
    ):
        changed(noisy, tmp_path / "changed.npz", change)
        with pytest.raises(InvalidInput, match=message):
            nearer.load(tmp_path / "changed.npz")


def changed(embedding, file, change):
    """A file with another header, and the checksum that belongs to it."""
    embedding.save(file)
    with np.load(file) as held:
        arrays = dict(held)
    about = json.loads(arrays.pop("about").tobytes()) | change
    if "sha256" not in change:
        members = [arrays[str(i)] for i in range(len(arrays))]
        about["sha256"] = embedding_module._checksum(about["values"], members)
    header = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(file, about=header, **arrays)


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


def test_the_refusal_of_other_files_says_what_is_needed(tmp_path):
    (tmp_path / "answers.csv").write_text("head,winner,loser\n0,1,2\n")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    for name in ("answers.csv", "objects.npy"):
        with pytest.raises(InvalidInput, match=r"give a file that Embedding\.save wrote") as said:
            nearer.load(tmp_path / name)
        assert "pickle" not in str(said.value)
    with pytest.raises(InvalidInput) as said:
        nearer.load(tmp_path / "none.npz")
    assert "numpy.save" not in str(said.value)


def forge(embedding, path, monkeypatch):
    """A file as `save` would write it, whatever it holds."""
    with monkeypatch.context() as patch:
        patch.setattr(embedding_module, "_problems", lambda values: iter(()))
        embedding.save(path)


def posterior(n, d):
    return Posterior(np.zeros((n, d)), np.zeros((n, d, d)), Noise(1.0, 2.0, 0.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": np.zeros(N)}, r"positions are an array of shape \(20,\)"),
        ({"positions": np.zeros((N, 2), int)}, "positions are an array .* type int64"),
        ({"positions": [[0.0]]}, r"positions are \[\[0"),
        ({"positions": np.zeros((N, 2), np.float16)}, "positions are an array .* type float16"),
        ({"positions": np.full((N, 2), np.inf)}, "a position is infinite"),
        ({"triplets": np.zeros((4, 2), int)}, r"triplets are an array of shape \(4, 2\)"),
        ({"triplets": np.array([[0, 1, N]])}, "triplets refer to objects 0 to 20"),
        ({"triplets": np.array([[0, -1, 2]])}, "triplets refer to objects -1 to 2"),
        ({"covariances": np.zeros((N, 3, 3))}, "covariances are an array of shape"),
        ({"covariances": np.full((N, 2, 2), np.inf)}, "covariances are infinite"),
        ({"names": ("a", "b")}, "2 names for 20 objects"),
        ({"details": {"weights": np.ones(3)}}, r"weights are an array of shape \(3,\)"),
        ({"details": {"posterior": posterior(N, 3)}}, "the posterior's positions are"),
        ({"details": {"heads": np.array([10**6] * 6)}}, "heads refer to objects"),
        ({"details": {"places": np.array([N])}}, "places refer to objects"),
        ({"details": {"answered_by": np.array([0])}}, "the people of the answers are not those"),
    ],
)
def test_what_is_no_embedding_is_neither_saved_nor_loaded(
    noisy, tmp_path, monkeypatch, change, message
):
    bent = replace(noisy, **change)
    with pytest.raises(InvalidInput, match=f"not written, {message}"):
        bent.save(tmp_path / "map.npz")
    assert not list(tmp_path.iterdir())
    forge(bent, tmp_path / "map.npz", monkeypatch)
    with pytest.raises(InvalidInput, match=f"is no valid embedding .{message}"):
        nearer.load(tmp_path / "map.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"positions": None},
        {"triplets": "many"},
        {"triplets": np.zeros((4, 3))},
        {"details": {"posterior": "x"}},
        {"details": {"trials": 3}},
        {"details": {"answered_by": 3}},
    ],
)
def test_values_of_another_kind_are_refused(noisy, tmp_path, monkeypatch, change):
    forge(replace(noisy, **change), tmp_path / "map.npz", monkeypatch)
    with pytest.raises(InvalidInput, match=r"map\.npz: is no valid embedding"):
        nearer.load(tmp_path / "map.npz")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("query", lambda a: a + 5),
        ("shown", lambda a: a + 5),
        ("shown", lambda a: a.astype(float)),
        ("chosen", lambda a: a[:, :-1]),
        ("chosen", lambda a: 1 + 0 * a),
        ("wanted", lambda a: a + 99),
        ("kind", lambda _: "unheard of"),
    ],
)
def test_trials_that_do_not_fit_together_are_refused(tmp_path, monkeypatch, name, change):
    screens = np.array([[0, 1, 2, 3], [2, 3, 4, 5], [0, 4, 1, 5], [3, 1, 5, 0], [4, 5, 0, 2]])
    chosen = np.eye(3, dtype=bool)[[0, 0, 1, 2, 0]]
    trials = nearer.Trials.from_screens(screens, chosen, names=tuple("abcdef"), people=[*range(5)])
    embedding = nearer.fit(trials, n_components=1, random_state=0)
    embedding.save(tmp_path / "whole.npz")
    again = nearer.load(tmp_path / "whole.npz")
    assert same(again.details["trials"], embedding.details["trials"])
    assert np.array_equal(again.draws(2, 0), embedding.draws(2, 0))
    whole = embedding.details["trials"]
    bent = whole.with_fields(**{name: change(getattr(whole, name))})
    bent = replace(embedding, details={**embedding.details, "trials": bent})
    forge(bent, tmp_path / "map.npz", monkeypatch)
    with pytest.raises(InvalidInput, match=r"map\.npz: is no valid embedding"):
        nearer.load(tmp_path / "map.npz")


def test_more_people_than_objects_are_saved(tmp_path):
    answers = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]])
    people = [f"p{i}" for i in range(7)] + [None]
    embedding = nearer.fit(
        np.repeat(answers, 2, axis=0), people=people, n_components=1, random_state=0
    )
    embedding.save(tmp_path / "map.npz")
    answered_by = nearer.load(tmp_path / "map.npz").details["answered_by"]
    assert answered_by.tolist() == [*range(7), -1]


def test_a_changed_file_is_refused(noisy, tmp_path):
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
    with pytest.raises(InvalidInput, match="cannot be written"):
        noisy.save(tmp_path / "file" / "x.npz")
    with pytest.raises(InvalidInput, match="is no path of a file"):
        noisy.save(tmp_path / ("x" * 300))
    noisy.save(tmp_path / ("x" * 250 + ".npz"))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"target.npz", "link.npz", "pipe.npz", "file", "x" * 250 + ".npz"}


def test_a_lock_is_refused_or_waited_for(tmp_path):
    first = lock_file(tmp_path / "one.lock")
    with pytest.raises(BlockingIOError):
        lock_file(tmp_path / "one.lock")
    end = threading.Timer(0.2, first.close)
    end.start()
    with lock_file(tmp_path / "one.lock", wait=True):
        assert first.closed
    end.join()
