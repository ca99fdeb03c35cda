"""Files as a new user has them: read, or refused in one message with the remedy and exit code 2."""

import contextlib
import gzip
import io
import json
import sys
import warnings
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import nearer
from nearer.cli import main
from nearer.errors import AnswersWarning, DroppedRows, InvalidInput

ROWS = [("ape", "bee", "cat"), ("bee", "cat", "ape"), ("cat", "bee", "ape")]


def table(separator=",", header="head,winner,loser", rows=ROWS):
    lines = [header.replace(",", separator), *(separator.join(row) for row in rows)]
    return "\n".join(lines) + "\n"


def workbook(*names):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return sink.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + table(";").replace("\n", "\r\n").encode(),
        table("\t").encode("utf-16"),
        table().replace("\n", "\r").encode(),
        gzip.compress(table().encode()),
        table(header="head,winner,loser,,", rows=[(*row, "", "") for row in ROWS]).encode(),
        table("|").encode(),
        table(";", "head,winner,loser,rt", [(*row, "0,5") for row in ROWS]).encode(),
        json.dumps([dict(zip(("head", "near", "far"), r, strict=True)) for r in ROWS]).encode(),
    ],
    ids=["excel", "utf-16", "old-mac", "gzip", "trailing", "bars", "times", "json"],
)
def test_what_can_only_mean_one_thing_is_read(tmp_path, data):
    file = tmp_path / "answers.csv"
    file.write_bytes(data)
    read = nearer.read_triplets(file)
    assert read.labels == ("ape", "bee", "cat")
    assert read.triplets.tolist() == [[0, 1, 2], [1, 2, 0], [2, 1, 0]]


@pytest.mark.parametrize(
    ("said", "weight"), [("1,5", 1.5), ("1.5", 1.5), ("1,25", 1.25), ("1,500", np.nan)]
)
def test_a_decimal_comma_is_read_unless_it_may_cut_off_thousands(tmp_path, said, weight):
    rows = [(*row, said, said) for row in ROWS]
    file = tmp_path / "t.csv"
    file.write_text(table(";", "head,winner,loser,count,seconds", rows))
    if np.isnan(weight):
        with pytest.raises(InvalidInput, match="weight '1,500': must be a number"):
            nearer.read_triplets(file)
        file.write_text(file.read_text().replace("count", "other"))
        assert nearer.read_triplets(file).report.untimed == (2, 3, 4)
    else:
        read = nearer.read_triplets(file)
        assert read.weights.tolist() == read.seconds.tolist() == [weight] * 3
    file.write_text("1,0;2,0;0,0\n2,0;1,0;0,0\n")
    assert nearer.read_triplets(file).triplets.tolist() == [[1, 2, 0], [2, 1, 0]]


REFUSED = {
    "title": ("My study\nof May 2024\n" + table(), "line 2: has 3 fields where line 1 has 2"),
    "a row too short": ("head,near,far\na,b,c\nb,c\n", "line 3: has 2 fields where line 1 has 3"),
    "names like a header": (
        table(rows=[*ROWS, ("ape", "left", "left", "bee"), ("left", "right", "right", "left")]),
        "line 5: has 4 fields where line 1 has 3; every row needs the same columns",
    ),
    "a wide field": ("a" * 200_000 + "\n" + table(), "larger than field limit"),
    "slashes": (table("/"), "columns 1 to 1 without a known header make no answer"),
    "number": (
        table(rows=[*ROWS, ("3", "ape", "bee")]),
        "line 5: object '3' is a whole number, but",
    ),
    "missing": (
        table(rows=[*ROWS, ("NA", "ape", "bee")]),
        "line 5: head is 'NA', which means missing",
    ),
    "gap": (table(rows=[*ROWS, ("ape", "", "bee")]), "near is empty; fill it in, leave such rows"),
    "two columns": ("head,winner\nape,bee\n", "make no answer; needed are head + near + far"),
    "empty": ("", "has no rows"),
    "blank": (" \n\n", "has no rows"),
    "separators": (",,,\n,,,\n", "has no rows"),
    "page": ("<!DOCTYPE html><html></html>", "is a web page"),
    "nul": (table() + "\0", "is NUL"),
    "latin": (table().replace("ape", "äpe").encode("latin-1"), "is not UTF-8; save the file as"),
    "excel": (workbook("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook"),
    "old excel": (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Excel workbook"),
    "zip": (workbook("answers.csv"), "a zip archive, no table or JSON; unpack it"),
    "npz": (workbook("triplets.npy"), "is not a NumPy file of plain numbers (damaged"),
    "parquet": (b"PAR1\x15", "a Parquet file"),
    "study": (b"SQLite format 3\0", "nearer study export"),
    "weight": (
        table(";", "head,winner,loser,weight", [(*row, "1,5,2") for row in ROWS]),
        "line 2: weight '1,5,2': must be a number of at least 0",
    ),
    "half": ("1,5;2,0;3,0\n2,0;1,5;3,0\n", "object '1,5' is not a whole number"),
    "json": ('{"name": "x", "version": 3}', "columns name, version make no answer"),
    "deep": ("[" * 100_000, "cannot be read as JSON"),
    "deep and whole": ("[" * 100_000 + "]" * 100_000, "maximum recursion depth"),
    "deep field": ("query,shown,chosen\na," + "[" * 100_000 + ",b\n", "'b' was chosen but not"),
    "deeper than usual": ("[" * 900 + "]" * 900, "answers.csv: "),
    "list": ("[[1, 2, 3]]", "holds 1 where records are needed"),
    "cut": (
        '{"query": 0, "shown": [1, 2], "chosen": [1]}\n{"query": 0,',
        "line 2: is no JSON (Exp",
    ),
    "screen": (
        '{"query": null, "shown": ["a", "b"], "chosen": ["a"]}',
        "record 1: query is empty",
    ),
    "shown": ('{"query": "c", "shown": 5, "chosen": [5]}', "1 of 1 chosen: some and not all"),
    "places": (
        "image_1,image_2,image_3,choice\na,b,c,1\n",
        "say which: nearer.read_triplets(…, first=0) or",
    ),
}


@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_said_in_one_message(tmp_path, data, words):
    file = tmp_path / "answers.csv"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    result = CliRunner().invoke(main, ["fit", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_hdf5_that_is_none(tmp_path):
    pytest.importorskip("h5py")
    (tmp_path / "a.h5").write_bytes(b"no")
    with pytest.raises(InvalidInput, match="cannot be read as an HDF5 file"):
        nearer.read_triplets(tmp_path / "a.h5")


def test_an_extra_that_is_missing_is_named(tmp_path, monkeypatch):
    for package in ("h5py", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match=r"needs pyarrow; pip install 'nearer\[parquet\]'"):
        nearer.read_triplets(tmp_path / "t.parquet")
    (tmp_path / "t.h5").write_bytes(b"\x89HDF")
    with pytest.raises(InvalidInput, match=r"needs h5py; pip install 'nearer\[hdf5\]'"):
        nearer.read_trials(tmp_path / "t.h5")


def test_missing_rows_are_left_out_all_at_once(tmp_path):
    rows = [*ROWS, *([("NA", "ape", "bee")] * 3000)]
    file = tmp_path / "t.csv"
    file.write_text(table(rows=rows))
    result = CliRunner().invoke(
        main,
        ["fit", str(file), "--drop-bad-rows", "--dim", "1", "--seed", "0",
         "--out", str(tmp_path / "out")],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "left out, could not be read: 3,000 (lines 5, 6," in result.stderr


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("header", [True, False])
def test_a_first_line_made_for_excel_names_the_separator(tmp_path, separator, header):
    """Whatever the rows look like."""
    file = tmp_path / "t.csv"
    rows = ['"ape, b; c, d; e"', "bee", "cat; tame" if separator == "," else "cat, tame"]
    lines = [separator.join(("head", "winner", "loser")), separator.join(rows)]
    text = "\r\n".join([f"sep={separator}", *lines[not header :], ""])
    file.write_text(text)
    assert sorted(nearer.read_triplets(file, header=header).labels) == [
        "ape, b; c, d; e",
        *rows[1:],
    ]
    file.write_text(text + f"ape{separator}bee\n")
    with pytest.raises(InvalidInput, match=f"line {3 + header}: has 2 fields where line 2 has 3"):
        nearer.read_triplets(file)


def test_one_answer_is_not_called_answers(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(table(rows=[*ROWS[:1], ("ape", "ape", "cat")]))
    with pytest.warns(DroppedRows, match="an object is named twice: 1 of 2 answers, the first on"):
        read = nearer.read_triplets(file)
    assert str(read.report).startswith("2 answers, 1 triplet over 3 objects\n")
    assert repr(read) == "<1 triplet over 3 objects>"


def test_fit_says_what_it_assumed(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("0 1 2\n1 2 0\n2 1 0\n")
    with pytest.warns(AnswersWarning, match="kind='odd-one-out'"):
        nearer.fit(file, n_components=1, random_state=0)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("a,b,c", "columns a, b, c are read as head, near, far"),
        ("i,j,k", "columns i, j, k are read as head, near, far"),
        ("head,b,c", "columns head, b, c are read as head, near, far"),
        ("C,B,A", "columns A, B, C are read as head, near, far"),
    ],
)
def test_what_letters_are_taken_for_is_said(tmp_path, header, said):
    file = tmp_path / "t.csv"
    file.write_text(table(header=header))
    assert said in str(nearer.read_triplets(file).report)
    with pytest.warns(AnswersWarning, match=said):
        nearer.fit(file, n_components=1, random_state=0)
    columns = dict(zip(("item1", "item2", "odd"), header.split(","), strict=True))
    odd = nearer.read_triplets(file, columns=columns)
    assert odd.report.assumed == ""
    assert len(odd) == 2 * len(ROWS)


def test_words_are_no_assumption(tmp_path):
    file = tmp_path / "t.csv"
    for text in (table(), "head,a,b,answer\nape,bee,cat,cat\nbee,ape,cat,ape\n"):
        file.write_text(text)
        assert nearer.read_triplets(file).report.assumed == ""


def test_fit_says_whose_option_would_help(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([*ROWS, ("NA", "ape", "bee")], columns=["head", "winner", "loser"])
    call = r"nearer\.read_triplets\(…, drop_bad_rows=True\)"
    with pytest.raises(InvalidInput, match=call):
        nearer.fit(frame)
    file = tmp_path / "t.csv"
    file.write_text("x,y,z\nape,bee,cat\n")
    with pytest.raises(InvalidInput, match=r"read_triplets\(…, columns=\{.head.: .x., .*\}\)"):
        nearer.fit(file)


def test_fit_points_out_names_that_may_be_one(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(table().replace("ape,bee", "Ape,bee", 1))
    with pytest.warns(AnswersWarning, match="'Ape' and 'ape'; are there 3 objects or 4"):
        nearer.fit(file, n_components=1, random_state=0)


def test_names_that_look_the_same_are_pointed_out(tmp_path):
    """An é is one character, as most keyboards write it, or an e and an accent, as macOS does."""
    file = tmp_path / "t.csv"
    file.write_text(table().replace("ape,bee", "é,bee", 1).replace("ape", "e\u0301"), "utf-8")
    [assumption] = nearer.read_triplets(file).report.assumptions()
    assert "how letters are encoded: 'e\u0301' and 'é'; are there 3 objects or 4?" in assumption


def test_whole_numbers_of_a_frame_stay_whole_numbers():
    pandas = pytest.importorskip("pandas")
    rows = [(1003, 1001, 1002), (1001, 1002, 1003), (1002, 1001, 1003)]
    frame = pandas.DataFrame(rows, columns=["head", "winner", "loser"])
    assert nearer.fit(frame, n_components=1, random_state=0).names == (1001, 1002, 1003)
    texts = frame.astype(str).assign(trial=range(3))
    assert nearer.fit(texts, n_components=1, random_state=0).names == ("1001", "1002", "1003")
    odd = frame.set_axis(["item1", "item2", "odd"], axis=1)
    assert nearer.fit(odd, n_components=1, random_state=0).names == (1001, 1002, 1003)
    with pytest.raises(InvalidInput, match="the frame, row 1: near is empty"):
        nearer.fit(frame.assign(winner=[1001, None, 1001]), n_components=1)
    other = frame.rename(columns={"head": "ref"})
    with pytest.raises(InvalidInput, match="make no answer"):
        nearer.fit(other, n_components=1)
    columns = {"head": "ref", "near": "winner", "far": "loser"}
    assert len(nearer.read_trials(other, columns=columns, objects="names")) == 3


def test_a_missing_name_is_no_person(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    rows = np.array([rng.choice(8, 3, replace=False) for _ in range(200)])
    near = nearer.asking.PsychometricOracle(X, scale=0.3, random_state=0)(rows)
    rows = np.where(near[:, None], rows, rows[:, [0, 2, 1]])
    who = np.array(["Ann", "Bea", None, "Ann"], dtype=object)[np.arange(200) % 4]
    embedding = nearer.fit(rows, people=who, n_components=2, method="noisy", random_state=0)
    assert embedding.people["id"].tolist() == ["Ann", "Bea"]
    assert embedding.people["n_trials"].tolist() == [100, 50]
    assert np.isfinite(embedding.people["sensitivity"]).all()
    unnamed = nearer.fit(rows, people=[None] * 200, n_components=2, random_state=0)
    assert unnamed.people is None


def test_embed_uses_names_and_says_what_it_does_not_use(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("kind,name,x,y\na,ape,1,2\na,bee,3,4\nb,cat,5,1\nb,dog,2,2\n")
    out = tmp_path / "out"
    result = CliRunner().invoke(main, ["embed", str(file), "--seed", "0", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "columns not used: kind" in result.stderr
    assert (out / "embedding.csv").read_text().splitlines()[3].startswith("2,cat,")
    wrong = CliRunner().invoke(
        main, ["embed", str(file), "--method", "rand+soe", "--dim", "9", "--out", str(out)]
    )
    assert wrong.exit_code == 2
    assert "Error: --dim 9: 4 objects span at most 3 dimensions; lower --dim\n" in wrong.stderr


@pytest.mark.parametrize(("option", "words"), [
    ({"progress": "x"}, "progress='x': must be a function"),
    ({"journal": 5}, "journal=5: must be the path of a file"),
])  # fmt: skip
def test_options_of_a_wrong_type(option, words):
    X = np.arange(6.0)[:, None]
    with pytest.raises(InvalidInput, match=words):
        nearer.embed(nearer.PointOracle(X), 6, random_state=0, **{"progress": False, **option})


WORDS = ["query", "shown", "chosen", "ranked", "stimulus", "choices", "response", "button_pressed",
         "interactions", "answers", "agreement", "head", "winner", "loser", "image_1", "image_2",
         "image_3", "choice", "odd", "person", "rt", "weight", "sequence", "data", "kind", "detail",
         "stimuli", "content:query", "content:reference_0", "behavior:rank_0"]  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.sampled_from([*WORDS, ""])
)
VALUES = st.recursive(
    LEAVES,
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inside, max_size=6)
    ),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(VALUES | st.lists(VALUES, max_size=3), st.sampled_from([True, False]))
def test_any_json_is_read_or_refused(tmp_path_factory, value, drop):
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_text(json.dumps(value))
    with warnings.catch_warnings(), contextlib.suppress(InvalidInput):
        warnings.simplefilter("ignore", DroppedRows)
        nearer.read_triplets(file, drop_bad_rows=drop)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from([*WORDS, "", "NA", "0", "1", "2", "3", "1,5", "[1, 2]", '"', "#"])
        ),
        max_size=6,
    ),
    st.sampled_from(",;\t "),
    st.booleans(),
)
def test_any_table_is_read_or_refused(tmp_path_factory, rows, separator, drop):
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_text("\n".join(separator.join(row) for row in rows))
    with warnings.catch_warnings(), contextlib.suppress(InvalidInput):
        warnings.simplefilter("ignore", DroppedRows)
        nearer.read_triplets(file, drop_bad_rows=drop)


@pytest.mark.parametrize("command", [["fit", "answers.csv"], ["embed", "3dgmm"]])
def test_results_go_to_no_folder_that_has_no_name(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text(table())
    result = CliRunner().invoke(main, [*command, "--out", ""])
    assert result.exit_code == 2
    assert "'': is no path of a file; give one" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["answers.csv"]


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(InvalidInput, match="no path of a file"):
        nearer.read_triplets("half of a character \ud800.csv")
