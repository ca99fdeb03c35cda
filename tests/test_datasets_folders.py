import hashlib

import pytest

from nearer.datasets import CATALOGUE, load_human
from nearer.datasets.loaders import DataFile, Entry, entry, find, folders, locate
from nearer.errors import InvalidInput, MissingData

CONTENT = b"0,1,2\n"
FILE = DataFile("small.csv", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
DATA = Entry("small", "a test", 3, "answers", "none", "here", "load_small()", (FILE,))


@pytest.fixture(autouse=True)
def data_and_cache(tmp_path, monkeypatch):
    for name in ("data", "cache"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("NEARER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NEARER_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_data_folder_before_cache(data_and_cache):
    with pytest.raises(MissingData, match=r"put small\.csv \(here; .* into .*data or .*cache"):
        find(DATA)
    (data_and_cache / "cache" / "small.csv").write_bytes(CONTENT)
    assert find(DATA) == [data_and_cache / "cache" / "small.csv"]
    (data_and_cache / "data" / "small.csv").write_bytes(CONTENT)
    assert find(DATA) == [data_and_cache / "data" / "small.csv"]


def test_a_wrong_file_is_refused(data_and_cache):
    (data_and_cache / "data" / "small.csv").write_bytes(b"0,2,1\n")
    assert locate(FILE) is not None
    with pytest.raises(InvalidInput, match=r"SHA-256 \w{12}… is not \w{12}… of small; remove it"):
        find(DATA)


def test_folders_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("NEARER_DATA")
    monkeypatch.delenv("NEARER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folders() == [tmp_path / "xdg" / "nearer"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folders() == [tmp_path / ".cache" / "nearer"]


def test_loaders_say_what_to_put_where():
    with pytest.raises(MissingData, match=r"put human_zappos85\.csv\.gz"):
        load_human("zappos85")
    with pytest.raises(InvalidInput, match="'shoes' is no set of answers; there are zappos85"):
        load_human("shoes")
    with pytest.raises(InvalidInput, match="'shoes' is no data set; there are cities"):
        entry("shoes")


def test_the_catalogue_is_in_order():
    import nearer.datasets

    assert len({data.name for data in CATALOGUE}) == len(CATALOGUE)
    for data in CATALOGUE:
        assert hasattr(nearer.datasets, data.loader.partition("(")[0]), data.loader
        assert data.holds in ("points", "answers")
        for file in data.files:
            assert len(file.sha256) == 64
            assert file.size > 0
