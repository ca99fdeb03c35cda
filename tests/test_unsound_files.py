"""NumPy files and JSON are checked as tables are: one message, or what they say."""

import gzip
import io
import json
import tracemalloc
import zipfile

import numpy as np
import openpyxl
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
    np.savez(file, triplets=ROWS, people=[1, 4, 0])
    assert nearer.read_triplets(file).people.tolist() == [1, 4, 0]


@pytest.mark.parametrize(
    ("high", "message"),
    [
        (
            2**40,
            "row 1: object '1099511627776': numbers run from 0 and at most 2,097,152; if",
        ),
        (1e300, "row 1: object '1e.300' is not a whole number"),
        (np.inf, "row 1: object 'inf' is not a whole number"),
        (np.uint64(2**63), "row 1: object '9223372036854775808': numbers run from 0"),
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
        (HALF, r"t.json: cannot be read as JSON .*\\ud800.* surrogates not allowed"),
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


BIG = 3 * 10**9


def bombs(folder):
    """Small files that ask for gigabytes."""
    with gzip.open(folder / "t.csv.gz", "wb") as file:
        file.write(b"head,near,far\n" + b"a,b,c\n" * 60_000)
    header = np.lib.format.header_data_from_array_1_0(np.zeros((1, 3)))
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, header | {"shape": (BIG, 3)})
    (folder / "t.npy").write_bytes(sink.getvalue() + bytes(24))
    with zipfile.ZipFile(folder / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("triplets.npy", bytes(3_000_000))
    with zipfile.ZipFile(folder / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(3_000_000))
    book = openpyxl.Workbook()
    book.active["A1"] = book.active["XFD9999"] = "far away"
    book.save(folder / "far.xlsx")
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, header | {"descr": "|S0", "shape": (BIG,)})
    np.savez(folder / "none.npz", triplets=ROWS)
    with zipfile.ZipFile(folder / "none.npz", "a") as archive:
        archive.writestr("labels.npy", sink.getvalue())
    return ["t.csv.gz", "t.npy", "t.npz", "t.xlsx", "far.xlsx", "none.npz"]


def test_small_files_that_ask_for_much_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARER_MAX_BYTES", "300000")
    names = bombs(tmp_path)
    for name in names:
        assert (tmp_path / name).stat().st_size < 10_000
        with pytest.raises(InvalidInput, match=r"NEARER_MAX_BYTES|damaged: "):
            nearer.read_triplets(tmp_path / name)
    monkeypatch.setenv("NEARER_MAX_BYTES", "1000000")
    assert len(nearer.read_triplets(tmp_path / names[0])) == 60_000


@pytest.mark.parametrize("limit", ["8GB", "-1", "8e9"])
def test_a_limit_that_is_no_number_is_refused(tmp_path, monkeypatch, limit):
    monkeypatch.setenv("NEARER_MAX_BYTES", limit)
    (tmp_path / "t.csv").write_text("head,near,far\na,b,c\n")
    with pytest.raises(InvalidInput, match=f"NEARER_MAX_BYTES={limit}: must be a whole number"):
        nearer.read_triplets(tmp_path / "t.csv")


def test_too_little_memory_is_one_message_of_a_command(tmp_path, monkeypatch):
    def read(path, **how):
        raise MemoryError("Unable to allocate 7.45 GiB")

    (tmp_path / "t.csv").write_text("head,near,far\na,b,c\n")
    monkeypatch.setattr("nearer.cli.fit.read_triplets", read)
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "t.csv")])
    assert result.exit_code == 2
    assert "the memory is too small (Unable to allocate 7.45 GiB); ask for less" in result.stderr


def test_too_large_a_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    with (tmp_path / "t.csv").open("wb") as file:
        file.truncate(200_000_000)
    monkeypatch.setenv("NEARER_MAX_BYTES", "100000000")
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="holds 200,000,000 bytes or more"):
        nearer.read_triplets(tmp_path / "t.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_parquet_that_claims_much_is_refused(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    column = np.zeros(200_000, dtype=np.int64)
    pq.write_table(
        pa.table({"head": column, "near": column, "far": column}), tmp_path / "t.parquet"
    )
    one = pa.ListArray.from_arrays([0, len(column)], column)
    pq.write_table(pa.table({"head": one}), tmp_path / "list.parquet")
    monkeypatch.setenv("NEARER_MAX_BYTES", "1000000")
    for name, size in (("t", "4,800"), ("list", "1,600")):
        assert (tmp_path / f"{name}.parquet").stat().st_size < 10_000
        with pytest.raises(InvalidInput, match=f"holds {size},000 bytes or more, and 1,000,000"):
            nearer.read_triplets(tmp_path / f"{name}.parquet")


def parquet(folder, first, **how):
    """A small file of triplets with these heads."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rest = {"near": ["b"] * len(first), "far": ["c"] * len(first)}
    pq.write_table(pa.table({"head": first, **rest}), folder / "t.parquet", **how)
    assert (folder / "t.parquet").stat().st_size < 10_000
    return folder / "t.parquet"


LONG = "a" * 100_000


def test_texts_that_parquet_holds_once_count_as_often_as_they_occur(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    texts, delta = pa.array([LONG] * 500), "DELTA_BYTE_ARRAY"
    heads = [
        (texts, {}),
        (texts.cast(pa.binary()), {}),
        (texts.dictionary_encode(), {}),
        (pa.array([[LONG, "b"]] * 500), {}),
        (pa.array([{"x": [LONG]}] * 500), {}),
        (pa.array([[("b", LONG)]] * 500, pa.map_(pa.string(), pa.string())), {}),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array([f'"{LONG}"'] * 500)), {}),
        (texts, {"use_dictionary": False, "column_encoding": {"head": delta}}),
        (texts.cast(pa.binary(100_000)), {}),
        (pa.array([None] * 500, pa.list_(pa.int8(), 100_000)), {}),
    ]
    monkeypatch.setenv("NEARER_MAX_BYTES", "30000000")
    for head, how in heads:
        file = parquet(tmp_path, head, compression="zstd", **how)
        with pytest.raises(InvalidInput, match="NEARER_MAX_BYTES"):
            nearer.read_triplets(file)
    monkeypatch.setenv("NEARER_MAX_BYTES", "60000000")
    assert nearer.read_triplets(parquet(tmp_path, texts)).labels == (LONG, "b", "c")


def test_every_encoding_of_parquet_is_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    texts = pa.array(["a", None, "x"])
    for encoding in ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        how = {"use_dictionary": False, "column_encoding": {"head": encoding}}
        with pytest.warns(nearer.errors.DroppedRows):
            read = nearer.read_triplets(parquet(tmp_path, texts, **how), drop_bad_rows=True)
        assert read.labels == ("a", "b", "c", "x")


def test_parquet_with_a_text_that_is_no_utf8_is_one_message(tmp_path):
    pa = pytest.importorskip("pyarrow")
    texts = pa.array([b"\xff", b"a", b"x"]).cast(pa.string(), safe=False)
    with pytest.raises(InvalidInput, match=r"t\.parquet: cannot be read as .*Parquet"):
        nearer.read_triplets(parquet(tmp_path, texts))


def test_lists_of_anything_in_parquet_are_texts_of_json(tmp_path):
    pa = pytest.importorskip("pyarrow")
    days = pa.array([[0], [1], [2]], pa.list_(pa.timestamp("s")))
    for cells, text in ((pa.array([[["a"]]] * 3), '[["a"]]'), (days, "1970-01-01")):
        table = nearer.triplets.read_table(parquet(tmp_path, cells))
        assert text in table["head"].iloc[0]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        # each person has as much room as the longest name needs
        ("head,near,far,person\n" + "a,b,c,p\n" * 999 + f"a,b,c,{LONG}\n", 10_000_000),
        ('{"answers": ["a", "b", "c"], "agreement": [10000, 0]}\n' * 20, 10_000_000),
        # each screen has as many columns as the longest
        (
            '{"query": "a", "shown": ["b", "c"], "chosen": ["b"]}\n' * 999
            + json.dumps({"query": "a", "shown": list(range(5000)), "chosen": [1]}),
            10_000_000,
        ),
        # each chosen object is nearer than each other
        (
            json.dumps({"query": "a", "shown": list(range(5000)), "chosen": list(range(2500))}),
            10_000_000,
        ),
    ],
)
def test_short_texts_that_ask_for_much_memory_are_refused(tmp_path, monkeypatch, text, limit):
    file = tmp_path / ("t.csv" if text.startswith("head") else "t.jsonl")
    file.write_text(text)
    monkeypatch.setenv("NEARER_MAX_BYTES", str(limit))
    with pytest.raises(InvalidInput, match=r"t\.(csv|jsonl): holds .*NEARER_MAX_BYTES"):
        nearer.read_triplets(file)


def test_votes_are_counts_that_can_be(tmp_path):
    (tmp_path / "t.json").write_text('[{"answers": ["a", "b", "c"], "agreement": [1000000000, 0]}]')
    with pytest.raises(InvalidInput, match="two counts of votes from 0 to 10,000"):
        nearer.read_triplets(tmp_path / "t.json")


def psiz_file(path, **arrays):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        given = {"stimulus_set": [[0, 1, 2]], "n_select": [1], "is_ranked": [False]}
        for name, values in (given | arrays).items():
            file[name] = values
    return path


def test_texts_that_hdf5_holds_once_count_as_often_as_they_occur(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    texts = h5py.string_dtype()
    with h5py.File(psiz_file(tmp_path / "t.h5"), "a") as file:
        places = file.create_dataset("stimuli", 2000, texts)
        places[0] = LONG
        start = places.id.get_offset()
    data = bytearray((tmp_path / "t.h5").read_bytes())
    data[start : start + 2000 * 16] = data[start : start + 16] * 2000  # all refer to one text
    (tmp_path / "t.h5").write_bytes(data)
    with h5py.File(psiz_file(tmp_path / "fill.h5"), "a") as file:
        file.create_dataset("stimuli", 2000, texts, fillvalue=LONG)
    monkeypatch.setenv("NEARER_MAX_BYTES", "50000000")
    for name in ("t.h5", "fill.h5"):
        assert (tmp_path / name).stat().st_size < 300_000
        with pytest.raises(InvalidInput, match=r"holds .*NEARER_MAX_BYTES"):
            nearer.read_trials(tmp_path / name)


@pytest.mark.parametrize(
    "arrays",
    [
        {"stimuli": [b"\xff", b"b", b"c"]},
        {"stimuli": [1, 2, 3]},
        {"stimulus_set": [0, 1, 2]},
        {"stimulus_set": [["a", "b", "c"]]},
        {"n_select": 1},
        {"n_select": [1, 2]},
        {"n_select": [2j]},
        {"mask_zero": [0, 0]},
        {"is_ranked": [[True, False]]},
        {"agent_id": [1, 2]},
    ],
)
def test_hdf5_of_other_shapes_is_one_message(tmp_path, arrays):
    with pytest.raises(InvalidInput, match=r"t\.h5.*: "):
        nearer.read_trials(psiz_file(tmp_path / "t.h5", **arrays))


def test_hdf5_reads_no_other_file_and_asks_for_no_more_than_it_holds(tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret.bin").write_bytes(np.arange(10, dtype=np.int64).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["stimuli"] = [b"secret"] * 10

    def written(name, fill):
        with h5py.File(tmp_path / name, "w") as file:
            file["n_select"], file["is_ranked"] = [1], [False]
            fill(file)
        return tmp_path / name

    rows = np.array([[0, 1, 2]])

    def outside(file):
        stored = [(str(tmp_path / "secret.bin"), 0, 24)]
        file.create_dataset("stimulus_set", (1, 3), np.int64, external=stored)

    def huge(file):
        file.create_dataset("stimulus_set", (BIG, 3), np.int64, chunks=(1000, 3))

    def linked(file):
        file["stimulus_set"] = rows
        file["stimuli"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "stimuli")

    with pytest.raises(InvalidInput, match="stimulus_set is in another file"):
        nearer.read_trials(written("outside.h5", outside))
    with pytest.raises(InvalidInput, match="NEARER_MAX_BYTES"):
        nearer.read_trials(written("huge.h5", huge))
    assert nearer.read_trials(written("linked.h5", linked)).names is None


def test_a_folder_is_not_searched_to_its_depths(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "b" / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match="a folder without Parquet files"):
        nearer.read_triplets(tmp_path)
