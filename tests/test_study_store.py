import json
import sqlite3
import threading

import pytest
from studykit import Bench, make_study

from benchmarks.study_faults import snapshot
from nearer.errors import InvalidInput
from nearer.study.actions import join
from nearer.study.board import Refusal, StoreTrouble
from nearer.study.store import back_up, connect, replay, serving


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "s.db", sync=True)
    yield made
    made.close()


def count(bench, table="answers"):
    return (
        connect(bench.path, read_only=True).execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    )


def test_many_who_wait_share_one_commit(bench):
    """Changes that come while a commit is under way are committed together."""
    commits = []
    bench.store._db.set_trace_callback(lambda sql: sql == "COMMIT" and commits.append(sql))
    gate = threading.Event()
    futures = [bench.store.submit(lambda _: gate.wait(5))]
    futures += [bench.store.submit(lambda ledger: join(ledger, consent="1")) for _ in range(100)]
    gate.set()
    people = [future.result(timeout=10) for future in futures[1:]]
    assert len(set(people)) == 100
    assert len(commits) <= 3


def test_a_refused_change_leaves_its_neighbours_alone(bench):
    gate = threading.Event()
    first = bench.store.submit(lambda _: gate.wait(5))
    good = bench.store.submit(lambda ledger: join(ledger, consent="1"))
    bad = bench.store.submit(lambda ledger: join(ledger, consent="no"))
    also_good = bench.store.submit(lambda ledger: join(ledger, consent="1"))
    gate.set()
    assert first.result()
    assert good.result() != also_good.result()
    with pytest.raises(Refusal):
        bad.result()
    assert count(bench, "people") == 2


def test_a_broken_change_is_taken_out_and_the_others_run_again(bench):
    def broken(ledger):
        join(ledger, consent="1")
        raise ZeroDivisionError("a fault in the program")

    gate = threading.Event()
    bench.store.submit(lambda _: gate.wait(5))
    good = bench.store.submit(lambda ledger: join(ledger, consent="1"))
    bad = bench.store.submit(broken)
    also_good = bench.store.submit(lambda ledger: join(ledger, consent="1"))
    gate.set()
    people = {good.result(), also_good.result()}
    with pytest.raises(ZeroDivisionError):
        bad.result()
    assert set(bench.board.people) == people
    assert count(bench, "people") == 2


def test_a_caller_who_goes_away_harms_no_other_call(bench):
    gate = threading.Event()
    first = bench.store.submit(lambda _: gate.wait(5))
    gone = bench.store.submit(lambda ledger: join(ledger, consent="1"))
    assert gone.cancel()
    gate.set()
    assert first.result(timeout=5)
    assert bench.join()
    assert count(bench, "people") == 1, "what was cancelled in time was not made"


def test_a_closed_store_says_so_instead_of_waiting_for_ever(tmp_path):
    bench = Bench(tmp_path / "s.db")
    bench.close()
    with pytest.raises(StoreTrouble, match="is closed"):
        bench.join()


def fill(bench):
    while True:  # until the last free page is used up
        bench.write(
            lambda ledger: ledger.db.execute(
                "INSERT INTO events (at, kind, detail) VALUES (0, 'x', ?)",
                (json.dumps({"x": "x" * 3000}),),
            )
        )


def test_a_full_disk_is_reported_and_nothing_is_acknowledged(bench):
    person = bench.join()
    trial = bench.hand_out(person)[0]
    pages = bench.store._db.execute("PRAGMA page_count").fetchone()[0]
    bench.store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreTrouble, match="cannot be written: database or disk is full"):
        fill(bench)
    bench.write(lambda ledger: ledger.db.execute("SELECT 1").fetchone())
    assert "full" in bench.store.trouble, "reading does not take it back"
    bench.store._db.execute("PRAGMA max_page_count = 1000000")
    assert bench.answer(person, trial.lease) is True
    assert bench.store.trouble is None
    now = bench.clock()
    assert snapshot(replay(bench.store.reader()), now) == snapshot(bench.board, now)


def test_a_read_only_file_is_reported(bench):
    person = bench.join()
    trial = bench.hand_out(person)[0]
    bench.store._db.execute("PRAGMA query_only = ON")  # what SQLite does with a read-only file
    with pytest.raises(StoreTrouble, match="readonly"):
        bench.answer(person, trial.lease)
    assert count(bench) == 0
    bench.store._db.execute("PRAGMA query_only = OFF")
    assert bench.answer(person, trial.lease) is True
    assert count(bench) == 1


def test_a_change_by_another_process_is_noticed(bench):
    person = bench.join()
    with connect(bench.path) as other:
        other.execute(
            "INSERT INTO events (at, kind, person, detail) VALUES (0, 'exclude', ?, '{}')",
            (person,),
        )
    bench.write(lambda _: None)
    assert bench.board.people[person].excluded


def test_the_file_itself_keeps_answers(bench):
    person = bench.join()
    bench.answer(person, bench.hand_out(person)[0].lease)
    db = connect(bench.path)
    for sql in ("DELETE FROM answers", "UPDATE answers SET choice = 'skip'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(sql)
    db.close()


def test_every_commit_is_synced_to_the_disk(bench):
    db = bench.store._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_backup_of_a_study_in_use_is_complete_and_can_be_served(bench, tmp_path):
    person = bench.join()
    bench.answer(person, bench.hand_out(person)[0].lease)
    back_up(bench.path, tmp_path / "copy.db")
    now = bench.clock()
    copy = replay(connect(tmp_path / "copy.db"))
    assert snapshot(copy, now) == snapshot(bench.board, now)
    with pytest.raises(InvalidInput, match="exists already"):
        back_up(bench.path, tmp_path / "copy.db")


def test_what_is_not_a_study_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such study"):
        connect(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 40)
    with pytest.raises(InvalidInput, match="cannot be read as a study"):
        connect(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE header (key, value)")
    with pytest.raises(InvalidInput, match="has study format None"):
        connect(tmp_path / "other.db")


def test_a_study_is_made_whole_or_not_at_all(tmp_path):
    make_study(tmp_path / "s.db")
    with pytest.raises(InvalidInput, match="exists already"):
        make_study(tmp_path / "s.db")
    with pytest.raises(InvalidInput, match="cannot be written"):
        make_study(tmp_path / "no" / "s.db")
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]


def test_one_server_at_a_time(tmp_path):
    path = make_study(tmp_path / "s.db")
    (tmp_path / "soft.db").symlink_to(path)
    for name in ("s.db", "soft.db"):
        again = serving(tmp_path / name)
        with serving(path), pytest.raises(InvalidInput, match="another server"), again:
            pass
    assert path.stat().st_mode & 0o777 == 0o600, "its owner alone can read it"
    with serving(path):
        pass
    (tmp_path / "hard.db").hardlink_to(path)
    for name in ("s.db", "hard.db"):  # SQLite would keep a log for each, and lose one
        with pytest.raises(InvalidInput, match="second name"):
            connect(tmp_path / name)
