"""NumPy files and JSON are checked as tables are: one message, or what they say."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from nearer.cli import main
from nearer.errors import InvalidInput

ROWS = np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0]])


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"weights": ["a", "b", "c"]}, "row 0: weight 'a': must be a number"),
        ({"weights": [1, 2j, 1]}, "row 0: weight .*must be a number"),
        ({"weights": [1, np.nan, 1]}, "row 1: weight '': must be a number of at least 0"),
        ({"weights": [1, 1, np.inf]}, "row 2: weight 'inf'"),
        ({"weights": [-1, 1, 1]}, "row 0: weight '-1'"),
        ({"labels": np.array(5)}, r"labels of shape \(\) .*must be a list of texts"),
        ({"labels": [["a"], ["b"], ["c"]]}, r"labels of shape \(3, 1\)"),
        ({"labels": [b"\xff", b"b", b"c"]}, "labels cannot be written as UTF-8"),
        ({"labels": ["\ud800", "b", "c"]}, "labels cannot be written as UTF-8"),
        ({"persons": [0, 7, 0], "person_labels": ["x"]}, "row 1: person 7, but there are 1"),
        ({"persons": [0, 0, 1], "person_labels": ["x"]}, "row 2: person 1, but there are 1"),
        ({"persons": [0, 0, -2], "person_labels": ["x"]}, "row 2: person -2"),
        ({"persons": [0, 0.5, 0], "person_labels": ["x"]}, "row 1: person 0.5"),
        ({"persons": [0, 0, 0], "person_labels": np.array("x")}, r"person_labels of shape \(\)"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, held, message):
    np.savez(tmp_path / "bad.npz", triplets=ROWS, **held)
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets(tmp_path / "bad.npz")


def test_names_are_read_as_they_were_meant(tmp_path):
    file = tmp_path / "t.npz"
    np.savez(file, triplets=ROWS, labels=[b"a", "ä".encode(), b"c"], persons=[b"x", b"", b"y"])
    read = nearer.read_triplets(file)
    assert read.labels == ("a", "ä", "c")
    assert read.people.tolist() == ["x", "", "y"]
    np.savez(file, triplets=ROWS, persons=[1.0, -1, 0], person_labels=["x", "y"])
    assert nearer.read_triplets(file).people.tolist() == ["y", "", "x"]


@pytest.mark.parametrize(
    ("high", "message"),
    [
        (
            2**40,
            "row 1: object 1099511627776: numbers run from 0 and at most 2,097,152; if",
        ),
        (1e300, "row 1: object '1e.300' is not a whole number"),
        (np.inf, "row 1: object 'inf' is not a whole number"),
        (np.uint64(2**63), "row 1: object 9223372036854775808: numbers run from 0"),
    ],
)
def test_numbers_that_no_object_has(tmp_path, high, message):
    rows = np.array([[0, 1, 2], [0, 1, high]], dtype=np.asarray(high).dtype)
    np.save(tmp_path / "h.npy", rows)
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets(tmp_path / "h.npy")


def test_large_numbers_can_be_names(tmp_path):
    np.save(tmp_path / "h.npy", [[0, 1, 2**40], [1, 0, 2**40]])
    read = nearer.read_triplets(tmp_path / "h.npy", objects="names")
    assert read.labels == ("0", "1", str(2**40))


HALF = (
    '{"head": "ape", "near": "bee", "far": "cat"}\n{"head": "\\ud800", "near": "a", "far": "b"}\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HALF, r"t.json: is no JSON .*\\ud800.* surrogates not allowed"),
        (f"[{HALF.strip().replace(chr(10), ',')}]", r"\\ud800.* surrogates not allowed"),
        (
            '[{"query": 0, "shown": [1, 2], "chosen": [1], "person": "x\\udfff"}]',
            r"\\udfff.* surrogates not allowed",
        ),
        ('[{"head": "a",\n"near": 1' + "2" * 4999 + ', "far": "c"}]', "value has 5000 digits"),
        (
            '{"head": 1, "near": 2, "far": 3}\n{"head": 1' + "2" * 4999 + "}",
            "value has 5000 digits",
        ),
    ],
)
def test_json_that_says_no_text_and_no_number(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets("t.json")
    result = CliRunner().invoke(main, ["fit", "t.json"])
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1


def test_characters_that_json_writes_as_two_are_read(tmp_path):
    records = [{"head": "🐝", "near": "b", "far": "c"}, {"head": "b", "near": "🐝", "far": "c"}]
    (tmp_path / "t.json").write_text(json.dumps(records))
    assert "🐝" in nearer.read_triplets(tmp_path / "t.json").labels


def test_lists_inside_a_table_hold_no_halves(tmp_path):
    (tmp_path / "t.csv").write_text('query,shown,chosen\na,"[""\\ud800"", ""b""]",b\n')
    with pytest.raises(InvalidInput, match=r"line 2: .*cannot be read as query, shown, chosen"):
        nearer.read_triplets(tmp_path / "t.csv")
