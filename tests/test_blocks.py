"""Very many answers: read in blocks, stored on disk, fitted as if memory held them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blockskit import WORDS, N, shrink, triplets, write

import nearer
from nearer import _fit
from nearer.errors import InvalidInput
from nearer.fitting.solver import LOSSES, Loss, Passes
from nearer.scale import blocks
from nearer.scale.blocks import BlockPasses, as_source, lay_out, store
from nearer.scale.fit_in_blocks import in_blocks


@pytest.fixture
def small(monkeypatch):
    shrink(monkeypatch)


def all_rows(stored):
    return np.concatenate(list(stored.blocks(stored.n_stored)))


def sorted_rows(rows):
    return np.asarray(rows)[np.lexsort(np.asarray(rows).T)]


# --- reading and keeping -------------------------------------------------------------------------


def sources(folder, rows):
    npy, turned = folder / "t.npy", folder / "turned.npy"
    np.save(npy, rows)
    np.save(turned, np.asfortranarray(rows.astype(np.int32)))
    many = folder / "many"
    many.mkdir()
    for i, part in enumerate(np.array_split(rows, 3)):
        write(many / f"{i}.parquet", part)
    yield from (npy, turned, many, write(folder / "t.parquet", rows), rows)
    yield (part for part in np.array_split(rows, 7))
    yield write(folder / "floats.parquet", rows.astype(float))


def test_every_source_is_stored_as_it_is(small, tmp_path):
    rows = triplets()
    for source in sources(tmp_path, rows):
        stored = store(as_source(source))
        assert (stored.n_objects, stored.names, stored.n_rows, stored.n_stored) == (
            N,
            None,
            6000,
            6000,
        )
        np.testing.assert_array_equal(sorted_rows(all_rows(stored)), sorted_rows(rows))
        np.testing.assert_array_equal(all_rows(stored)[stored.n_seen :], stored.held_out)


def test_answers_to_one_question_are_held_out_together(small):
    rows = np.concatenate([triplets(), triplets()[:, [0, 2, 1]]])
    stored = store(as_source(rows))
    assert 50 < len(stored.held_out) <= 300
    out = {tuple(sorted(row)) for row in stored.held_out.tolist()}
    assert not out & {tuple(sorted(row)) for row in all_rows(stored)[: stored.n_seen].tolist()}


def test_what_is_held_out_does_not_depend_on_the_order(small):
    rows = triplets()
    one, other = store(as_source(rows)), store(as_source(rows[::-1].copy()))
    np.testing.assert_array_equal(sorted_rows(one.held_out), sorted_rows(other.held_out))


def test_the_sample_is_bounded(small, monkeypatch):
    monkeypatch.setattr(_fit, "MANY", 1000)
    sample = store(as_source(triplets())).sample
    assert 200 < len(sample) <= 1000


def test_no_rows_are_no_blocks(small):
    assert list(store(as_source(triplets())).blocks(0)) == []


def test_shares_make_the_whole(small):
    rows = triplets()
    shares = [store(as_source(rows), share=(i, 3)) for i in range(3)]
    together = np.concatenate([all_rows(share) for share in shares])
    np.testing.assert_array_equal(sorted_rows(together), sorted_rows(rows))
    out = {tuple(sorted(row)) for share in shares for row in share.held_out.tolist()}
    for share in shares:
        assert (share.n_objects, share.n_rows) == (N, 6000)
        assert len(share.held_out) > 0
        assert not out & {tuple(sorted(row)) for row in all_rows(share)[: share.n_seen].tolist()}


@pytest.mark.parametrize("far", [1000, 2**28])
def test_ids_with_gaps_are_names(small, far):
    ids = np.sort(np.random.default_rng(0).choice(far, N, replace=False))
    rows = triplets()
    stored = store(as_source(ids[rows]))
    assert stored.names == tuple(ids.tolist())
    np.testing.assert_array_equal(sorted_rows(all_rows(stored)), sorted_rows(rows))
    as_they_are = store(as_source(ids[rows] % 5000), n_objects=5000, renumber=False)
    assert (as_they_are.n_objects, as_they_are.names) == (5000, None)


def test_texts_are_names(small, tmp_path):
    rows = triplets()
    texts = np.array([f"object {i:02}" for i in range(N)])
    stored = store(as_source(write(tmp_path / "t.parquet", texts[rows])))
    assert stored.names == tuple(texts.tolist())
    np.testing.assert_array_equal(sorted_rows(all_rows(stored)), sorted_rows(rows))
    coded = [pa.array(texts[column]).dictionary_encode() for column in rows.T]
    pq.write_table(pa.table(dict(zip(WORDS, coded, strict=True))), tmp_path / "coded.parquet")
    again = store(as_source(tmp_path / "coded.parquet"))
    np.testing.assert_array_equal(all_rows(again), all_rows(stored))
    how = {"use_dictionary": False, "column_encoding": dict.fromkeys(WORDS, "DELTA_BYTE_ARRAY")}
    pq.write_table(
        pa.table(dict(zip(WORDS, texts[rows].T, strict=True))), tmp_path / "d.parquet", **how
    )
    np.testing.assert_array_equal(
        all_rows(store(as_source(tmp_path / "d.parquet"))), all_rows(stored)
    )


def test_a_text_that_a_file_holds_once_is_in_memory_once(small, tmp_path):
    cells = np.resize([0, 1, 2], (3000, 3)).T
    long = ["a" * 100_000, "b", "c", "never used"]
    columns = [pa.DictionaryArray.from_arrays(pa.array(x), pa.array(long)) for x in cells]
    pq.write_table(pa.table(dict(zip(WORDS, columns, strict=True))), tmp_path / "t.parquet")
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert store(as_source(tmp_path / "t.parquet")).names == tuple(long[:3])
    finally:
        pa.set_memory_pool(usual)
    assert 0 < pool.max_memory() < 30_000_000  # 300 MB unfolded


def test_bad_files_are_refused_with_one_message(small, tmp_path):
    rows = triplets(m=3000)
    strange = write(tmp_path / "strange.parquet", rows, ["x", "y", "z"])
    with pytest.raises(InvalidInput, match=r"columns x, y, z make no triplets of head"):
        as_source(strange)
    chosen = as_source(strange, {"head": "x", "near": "y", "far": "z"})
    assert store(chosen).n_rows == 3000
    holes = pa.array([None if i == 1234 else head for i, head in enumerate(rows[:, 0].tolist())])
    pq.write_table(
        pa.table({"head": holes, "winner": rows[:, 1], "loser": rows[:, 2]}), tmp_path / "h.parquet"
    )
    with pytest.raises(InvalidInput, match=r"row 1234: has an empty object"):
        store(as_source(tmp_path / "h.parquet"))
    same = rows.copy()
    same[2500, 1] = same[2500, 0]
    with pytest.raises(InvalidInput, match=r"after row 2,100: triplet 400 .* must differ"):
        store(as_source(same))
    with pytest.raises(InvalidInput, match="holds weights"):
        as_source(write(tmp_path / "w.parquet", rows, weight=np.ones(3000)))
    with pytest.raises(InvalidInput, match="objects must be whole numbers"):
        store(
            as_source(
                write(tmp_path / "f.parquet", rows + 0.5, ["half", "near", "far"]),
                {"head": "half", "near": "near", "far": "far"},
            )
        )
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(InvalidInput, match="cannot be read as a Parquet file"):
        as_source(tmp_path / "no.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="a folder without Parquet files"):
        as_source(tmp_path / "empty")
    other = tmp_path / "two"
    other.mkdir()
    write(other / "a.parquet", rows)
    write(other / "b.parquet", rows, ["head", "winner", "lost"])
    with pytest.raises(InvalidInput, match="has no column 'loser'"):
        as_source(other)
    with pytest.raises(InvalidInput, match="there are no rows"):
        store(blocks.BlockSource("here", [], 0))


def test_a_full_disk_is_said(small, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(blocks.os, "pwrite", full)
    with pytest.raises(InvalidInput, match=r"No space left on device.*set TMPDIR"):
        store(as_source(2 * triplets()))


def test_a_small_parquet_file_is_read_like_a_table(tmp_path):
    rows = triplets(m=200)
    who = np.array(["ann", "bob"])[np.arange(200) % 2]
    read = nearer.read_triplets(write(tmp_path / "t.parquet", rows, puid=who))
    np.testing.assert_array_equal(read.triplets, rows)
    assert read.people.tolist() == who.tolist()


# --- passes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_a_pass_in_blocks_is_a_pass(small, name):
    rows, X = triplets(), np.random.default_rng(1).normal(size=(N, 3))
    stored, whole = store(as_source(rows)), Passes(rows.astype(np.int32), None, N)
    seen, every = lay_out(stored)
    assert (len(seen), len(every)) == (stored.n_seen, 6000)
    value, gradient = every.sums(Loss(name), X)
    there, slope = whole.sums(Loss(name), X)
    assert value == pytest.approx(there)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9)
    assert every.share_violated(X) == pytest.approx(whole.share_violated(X))
    np.testing.assert_allclose(every.information(X, 0.1, 0.0), whole.information(X, 0.1, 0.0))


def test_some_answers_are_drawn_from_all_blocks(small):
    rows = triplets()
    _, every = lay_out(store(as_source(rows)))
    assert isinstance(every, BlockPasses)
    some = every.few(1500, np.random.default_rng(0))
    assert 1500 <= len(some) <= 1510
    X = np.random.default_rng(1).normal(size=(N, 2))
    means = [part.sums(Loss("soe"), X)[0] / part.total for part in (some, every)]
    assert means[0] == pytest.approx(means[1], rel=0.1)


# --- the door ------------------------------------------------------------------------------------


@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_the_map_is_the_one_in_memory(small, monkeypatch, flip):
    rows = triplets(m=8000, n=100, flip=flip)
    there = nearer.fit(rows, n_components=2, random_state=0)
    assert "in blocks" in there.history[0].note
    monkeypatch.setattr(_fit, "MANY", 10**6)
    here = nearer.fit(rows, n_components=2, bootstrap=0, random_state=0)
    assert there.details["method"] == here.details["method"] == ("noisy" if flip else "soe")
    assert there.error_rate == pytest.approx(here.error_rate, abs=0.015)
    assert there.held_out.accuracy == pytest.approx(here.held_out.accuracy, abs=0.04)
    assert nearer.metrics.procrustes(here.positions, there.positions).disparity < 0.015
    assert (there.covariances is not None) == (flip > 0)
    assert there.n_comparisons == 8000
    assert len(there.triplets) == 0
    assert there.predict_proba(rows[:5]).shape == (5, 2)


def test_the_dimension_comes_from_a_sample(small):
    embedding = nearer.fit(iter(np.array_split(triplets(), 5)), random_state=0)
    assert (embedding.dimension, embedding.dimension_low, embedding.dimension_high) == (2, 2, 2)


def test_a_sample_that_tells_nothing_is_said(small, monkeypatch):
    monkeypatch.setattr(_fit, "MANY", 100)
    with pytest.raises(InvalidInput, match=r"n_components='auto': .* do not determine"):
        nearer.fit(triplets(), random_state=0)


@pytest.mark.parametrize("method", ["soe", "ckl", "gnmds", "ste", "tste"])
def test_every_loss(small, method):
    embedding = nearer.fit(triplets(), n_components=2, method=method, max_iter=200, random_state=0)
    assert embedding.details["method"] == method
    assert embedding.held_out.accuracy > 0.85


def test_few_answers_stay_in_memory(small):
    rows = triplets(m=900)
    whole = nearer.fit(rows, n_components=2, bootstrap=0, random_state=0)
    parts = nearer.fit(
        (p for p in np.array_split(rows, 4)), n_components=2, bootstrap=0, random_state=0
    )
    np.testing.assert_array_equal(whole.positions, parts.positions)
    assert in_blocks(rows) is rows


class Blocks:
    """Something that yields blocks whenever it is asked to, and cannot say how many."""

    def __iter__(self):
        yield from np.array_split(triplets(), 5)


@pytest.mark.parametrize("many", [2, 1 << 22])
@pytest.mark.parametrize("bad", [None, 5, "abc", [[0, 1]], [[0, 1, 2], [3]]])
def test_what_is_no_block_is_named(small, monkeypatch, bad, many):
    monkeypatch.setattr(_fit, "MANY", many)
    rows = triplets(m=30)
    with pytest.raises(InvalidInput, match=r"block 2 .*must be \(m, 3\) rows"):
        nearer.fit(iter([rows, np.empty((0, 3), int), bad, rows]), n_components=1)


@pytest.mark.filterwarnings("ignore:.*no better than by guessing")
def test_empty_blocks_are_skipped_and_bad_rows_are_named():
    rows = triplets(m=60)
    how = {"n_components": 1, "random_state": 0, "method": "soe", "bootstrap": 0}
    embedding = nearer.fit(iter([rows[:20], [], np.empty((0, 3), int), rows[20:]]), **how)
    assert np.array_equal(embedding.positions, nearer.fit(rows, **how).positions)
    with pytest.raises(InvalidInput, match=r"triplet 61 is \[3, 3, 4\]"):
        nearer.fit(iter([rows, [], [[0, 1, 2], [3, 3, 4]]]))
    with pytest.raises(InvalidInput, match="at least one"):
        nearer.fit(iter([[], []]))


def test_every_iterable_of_blocks(small):
    options = {"n_components": 2, "method": "soe", "max_iter": 20, "random_state": 0}
    first, *others = (
        nearer.fit(many, **options)
        for many in (triplets(), Blocks(), np.array_split(triplets(), 5), iter(Blocks()))
    )
    for other in others:
        assert other.n_comparisons == 6000
        assert other.held_out == first.held_out
    few = np.array_split(triplets(m=900), 3)
    whole = nearer.fit(few, people=np.zeros(900), bootstrap=0, **options)
    assert len(whole.triplets) == 900


def test_people_and_weights_stay_in_memory(small):
    rows = triplets(m=3000)
    embedding = nearer.fit(
        rows, n_components=2, weights=np.ones(3000), method="soe", bootstrap=0, random_state=0
    )
    assert len(embedding.triplets) == 3000


def test_objects_keep_their_numbers_where_that_is_asked(small):
    embedding = nearer.fit(
        triplets(), n_components=2, n_objects=N + 5, method="soe", random_state=0
    )
    assert embedding.positions.shape == (N + 5, 2)
