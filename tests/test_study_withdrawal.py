"""A person withdraws: it costs little, and no trace of the person is left."""

import sqlite3
import threading
import time

import pytest
from click.testing import CliRunner
from studykit import Bench, Web, count, knock, only_real

from nearer.cli import main
from nearer.study import store
from nearer.study.actions import withdraw


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path / "s.db", questions=12)
    yield made
    made.close()


def test_withdrawing_reads_no_more_than_one_persons_rows(tmp_path):
    """What it costs does not grow with what others answered."""
    bench = Bench(tmp_path / "s.db", n=30, questions=400, **only_real())
    steps = {}
    for others in (1, 10):
        for _ in range(others):
            person = bench.join()
            for _ in range(100):
                bench.clock.now += 1
                bench.answer(person, bench.hand_out(person)[0].lease)
        gone = bench.join()
        for _ in range(5):
            bench.answer(gone, bench.hand_out(gone)[0].lease)
        ticks = [0]

        def tick(ticks=ticks):
            ticks[0] += 1

        # in the writer's thread, since SQLite calls the handler while it holds its lock
        bench.write(lambda _, tick=tick: bench.store._db.set_progress_handler(tick, 10))
        bench.write(withdraw, gone)
        bench.write(lambda _: bench.store._db.set_progress_handler(None, 0))
        steps[others] = ticks[0]
    assert steps[10] < 1.5 * steps[1]
    bench.close()


def test_erased_means_in_no_file(tmp_path):
    name = "5f3e-the-panel-id-of-a-person"
    bench = Bench(tmp_path / "s.db", sync=True)
    other = bench.join("prolific", "another-id-that-stays", browser="k" * 32)
    person = bench.join("prolific", name, browser="b" * 32)
    for _ in range(5):
        bench.answer(person, bench.hand_out(person)[0].lease)
    reader = bench.store.reader()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM people").fetchone()  # a reader of an older state
    bench.write(withdraw, person)
    reader.execute("COMMIT")
    for _ in range(100):
        left = [p.name for p in tmp_path.iterdir() if name.encode() in p.read_bytes()]
        if not left:
            break
        time.sleep(0.1)
    assert left == [], "in none of the study's files, while it is served"
    bench.answer(other, bench.hand_out(other)[0].lease)
    bench.close()
    assert [p.name for p in tmp_path.iterdir() if name.encode() in p.read_bytes()] == []
    assert b"another-id-that-stays" in bench.path.read_bytes()


def test_withdrawing_again_and_again_disturbs_no_other_person(web):
    strangers = [web.join() for _ in range(4)]
    mine = web.join()
    for headers in strangers:
        web.answer(headers)
        for _ in range(3):
            status = web.client.post("/api/withdraw", headers=headers).status_code
            assert status == 200
    assert web.answer(mine).json()["answered"] == 1


def test_what_a_crash_has_left_is_emptied_when_the_study_is_opened(tmp_path):
    import shutil

    name = "5f3e-the-panel-id-of-a-person"
    bench = Bench(tmp_path / "s.db", sync=True)
    person = bench.join("prolific", name)
    reader = bench.store.reader()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM people").fetchone()  # so that the log stays
    bench.write(withdraw, person)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in ("s.db", "s.db-wal"):
        shutil.copy(tmp_path / file, crashed / file)
    reader.execute("COMMIT")
    bench.close()
    files = lambda: [p.name for p in crashed.iterdir() if name.encode() in p.read_bytes()]  # noqa: E731
    assert files()
    opened = Bench(crashed / "s.db")
    for _ in range(100):
        if not files():
            break
        time.sleep(0.1)
    assert files() == [], "while it is served"
    opened.close()


def test_the_command_waits_for_whoever_still_reads(tmp_path, monkeypatch):
    name = "5f3e-the-panel-id-of-a-person"
    bench = Bench(tmp_path / "s.db", sync=True)
    bench.join("prolific", name)
    bench.close()
    monkeypatch.setattr(store, "_PATIENCE", 1)
    reader = sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM people").fetchone()
    threading.Timer(4, lambda: reader.execute("COMMIT")).start()
    said = CliRunner().invoke(main, ["study", "withdraw", str(tmp_path / "s.db"), name, "--yes"])
    assert said.exit_code == 0
    assert "as soon as no other process is reading" in said.stderr
    left = [p.name for p in tmp_path.iterdir() if name.encode() in p.read_bytes()]
    reader.close()
    assert left == []


def test_the_browser_of_a_person_who_withdrew_is_forgotten(web):
    knock(web, browser="a secret of this browser")
    headers = {"authorization": f"Bearer {knock(web, browser='another').json()['token']}"}
    assert count(web, "browsers") == 2
    assert web.client.post("/api/withdraw", headers=headers).status_code == 200
    assert count(web, "browsers") == 1
