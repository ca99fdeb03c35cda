import hashlib
import warnings

import numpy as np
import pytest

from benchmarks._published import (
    DIGITS,
    NEWSGROUPS,
    SPAMBASE,
    fetch,
    load_digits_mnist,
    load_newsgroups,
    load_spambase,
)
from nearer.datasets.loaders import DataFile, Entry, locate
from nearer.errors import InvalidInput, MissingData


def needs(data):
    there = all(locate(file) is not None for file in data.files)
    reason = f"{data.name}: no file in the folder of NEARER_DATA"
    return pytest.mark.skipif(not there, reason=reason)


@needs(DIGITS)
def test_digits():
    digits = load_digits_mnist()
    assert digits.points.shape == (1000, 784)
    assert digits.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    counts = np.bincount(digits.labels)
    assert counts.tolist() == [97, 116, 99, 93, 105, 92, 94, 117, 87, 100]
    assert load_digits_mnist(7).points.shape == (7, 784)
    with pytest.raises(InvalidInput, match=r"n_objects=6000: .*; digits has 5000"):
        load_digits_mnist(6000)


@needs(DIGITS)
def test_the_same_digits_by_download(monkeypatch):
    here = load_digits_mnist(5000)

    class Held:  # as OpenML gives it: all 70,000, pixels and digits of other types
        data = np.r_[here.points, np.zeros((10, 784))].astype(np.int64)
        target = np.r_[here.labels, np.zeros(10, dtype=np.int64)].astype(str)

    monkeypatch.setenv("NEARER_DATA", "nowhere")
    monkeypatch.setenv("NEARER_CACHE", "nowhere")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *args, **options: Held)
    there = load_digits_mnist(100)
    assert np.array_equal(there.points, here.points[:100])
    assert np.array_equal(there.labels, here.labels[:100])


@needs(SPAMBASE)
def test_spambase(monkeypatch):
    mails = load_spambase()
    assert mails.points.shape == (1000, 57)
    assert len(set(mails.rows.tolist())) == 1000
    assert 0.3 < mails.labels.mean() < 0.5  # 39 % of the source; its first 1,813 rows are all spam
    assert np.array_equal(load_spambase().points, mails.points)
    assert not np.array_equal(load_spambase(random_state=1).rows, mails.rows)
    every = load_spambase(4601)
    assert int(every.labels.sum()) == 1813
    assert len(np.unique(every.points, axis=0)) == 4207

    back = np.argsort(every.rows)

    class Held:
        data = every.points[back]
        target = every.labels[back].astype(str)

    monkeypatch.setenv("NEARER_DATA", "nowhere")
    monkeypatch.setenv("NEARER_CACHE", "nowhere")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *args, **options: Held)
    assert np.array_equal(load_spambase().points, mails.points)


@pytest.mark.slow
@needs(NEWSGROUPS)
def test_newsgroups():
    posts = load_newsgroups()
    assert posts.points.shape == (2000, 47813)
    assert posts.rows.max() < 3368
    assert np.diff(posts.points.indptr).min() >= 50
    assert len(set(posts.labels.tolist())) == 20
    content = load_newsgroups(terms="content")
    assert content.points.shape == (2000, 33873)
    assert np.diff(content.points.indptr).min() >= 50
    few = load_newsgroups(50, random_state=0)
    assert few.points.shape[0] == 50
    assert not np.array_equal(few.rows, posts.rows[:50])


def test_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARER_DATA", str(tmp_path))
    monkeypatch.setenv("NEARER_CACHE", str(tmp_path / "cache"))
    file = DataFile("small.csv", 6, hashlib.sha256(b"0,1,2\n").hexdigest())
    data = Entry("small", "a test", 3, "points", "none", "here", "load_small()", (file,))
    monkeypatch.setattr("sklearn.datasets.fetch_it", dict, raising=False)
    home = str(tmp_path / "cache" / "scikit-learn")
    assert fetch(data, "fetch_it", name="it") == {"name": "it", "data_home": home, "n_retries": 1}

    def offline(**options):
        warnings.warn("trying once more", RuntimeWarning, stacklevel=1)
        raise OSError("Name or service not known")

    monkeypatch.setattr("sklearn.datasets.fetch_it", offline)
    with pytest.raises(MissingData, match=r"fetch_it of scikit-learn could not .*Name or service"):
        fetch(data, "fetch_it")
    (tmp_path / "small.csv").write_bytes(b"0,1,2\n")
    assert fetch(data, "fetch_it") == tmp_path / "small.csv"


def test_loaders_say_what_to_put_where(tmp_path, monkeypatch):
    def offline(*args, **options):
        raise OSError("no network")

    monkeypatch.setenv("NEARER_DATA", str(tmp_path))
    monkeypatch.setenv("NEARER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(MissingData, match=r"put mnist_5000\.npz .*\(no network\)"):
        load_digits_mnist()
