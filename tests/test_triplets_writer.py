import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearer
from nearer.errors import InvalidInput
from nearer.trials import Trials, Triplets, examine
from nearer.triplets.table import EMPTY

CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
NAMES = st.text(CHARACTERS, min_size=1).filter(lambda s: s == s.strip() and s not in EMPTY)
SUFFIXES = [".csv", ".tsv", ".txt", ".npz", ".csv.gz", ".tsv.xz", ".npz.bz2"]


@st.composite
def collections(draw):
    n = draw(st.integers(3, 6))
    rows = draw(
        st.lists(st.permutations(range(n)).map(lambda order: order[:3]), min_size=1, max_size=12)
    )
    rows = np.array([*rows, [n - 1, 0, 1]])  # the last object occurs, so that a table knows of it
    labels = draw(
        st.just(tuple(map(str, range(n))))
        | st.lists(NAMES, min_size=n, max_size=n, unique=True).map(tuple)
    )
    weights = draw(st.none() | st.lists(st.floats(0, 1e9), min_size=len(rows), max_size=len(rows)))
    people = draw(st.lists(NAMES, min_size=0, max_size=3, unique=True).map(tuple))
    who = np.arange(len(rows)) % len(people) if people else None
    people = people[: len(rows)]
    answers = Trials.from_triplets(
        rows,
        names=labels,
        weights=weights,
        people=None if who is None else np.array(people)[who],
    )
    return Triplets(answers, examine(rows, labels, persons=len(people)))


@settings(max_examples=100, deadline=None)
@given(collections(), st.sampled_from(SUFFIXES))
def test_what_is_written_is_read_back(tmp_path_factory, answers, suffix):
    file = tmp_path_factory.getbasetemp() / f"round{suffix}"
    nearer.write_triplets(file, answers)
    again = nearer.read_triplets(file)
    # a table only names the objects that occur; the others keep their numbers
    occurs = np.isin(np.arange(answers.n_objects), answers.triplets)
    assert again.triplets.tolist() == answers.triplets.tolist()
    if ".npz" in suffix or occurs.all():
        assert again.labels == answers.labels
        assert str(again.report) == str(answers.report)
    if answers.weights is None:
        assert again.weights is None
    else:
        assert again.weights.tolist() == answers.weights.tolist()
    if answers.people is None:
        assert again.people is None
    else:
        assert again.people.tolist() == answers.people.tolist()


def test_arrays_and_the_plain_form(tmp_path):
    file = tmp_path / "plain.csv"
    nearer.write_triplets(file, [[0, 1, 2], [3, 1, 0]])
    assert file.read_text() == "head,winner,loser\n0,1,2\n3,1,0\n"
    nearer.write_triplets(tmp_path / "plain.npy", [[0, 1, 2]])
    assert np.load(tmp_path / "plain.npy").tolist() == [[0, 1, 2]]


def test_the_same_content_is_the_same_file(tmp_path):
    for name in ("one.csv.gz", "two.csv.gz"):
        nearer.write_triplets(tmp_path / name, [[0, 1, 2]])
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([0, 1, 2], None, "must be \\(m, 3\\) rows"),
        ([[0.5, 1.0, 2.0]], None, "objects must be whole numbers from 0"),
        ([[0, 1, -1]], None, "-1.*objects must be from 0"),
        ([[0, 1, 2]], ["a", "b"], "object 2: .* there are 2 labels"),
        ([[0, 1, 2]], ["a", "b", "b"], "label 'b' occurs twice"),
        ([[0, 1, 2]], ["a", "b", " c"], "label ' c'"),
    ],
)
def test_bad_input(tmp_path, rows, labels, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.write_triplets(tmp_path / "x.csv", rows, labels=labels)
    assert list(tmp_path.iterdir()) == []


def test_nothing_half_written(tmp_path, monkeypatch):
    file = tmp_path / "answers.csv"
    nearer.write_triplets(file, [[0, 1, 2]])
    with pytest.raises(InvalidInput, match=r"cannot write \.xlsx; use \.csv"):
        nearer.write_triplets(tmp_path / "answers.xlsx", [[0, 1, 2]])
    with pytest.raises(InvalidInput, match="the folder must exist"):
        nearer.write_triplets(tmp_path / "none" / "answers.csv", [[0, 1, 2]])

    def broken(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", broken)
    with pytest.raises(InvalidInput, match="No space left"):
        nearer.write_triplets(file, [[2, 1, 0]])
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]
    assert file.read_text().endswith("0,1,2\n")


def test_a_label_with_a_nul_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="NUL"):
        nearer.write_triplets(tmp_path / "a.npz", [[0, 1, 2]], labels=["a", "b", "c\0"])
    assert not list(tmp_path.iterdir())
