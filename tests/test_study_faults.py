"""The small forms of the drills in benchmarks/: kills, load, trouble with the disk."""

import asyncio
import os
import resource
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from studykit import make_study

from benchmarks._study_people import Client, Server, answer_all, crowd, served
from benchmarks.study_faults import drill
from benchmarks.study_load import http_load
from nearer.study.simulate import Crowd
from nearer.study.store import connect


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed(tmp_path):
    figures = drill(tmp_path, n_people=12, n_kills=2, pause=(0.5, 1.0))
    assert (figures["lost"], figures["twice"], figures["file"], figures["errors"]) == (
        0,
        0,
        "ok",
        [],
    )
    assert figures["same_state"]
    assert figures["acknowledged"] > 10
    assert figures["after_last_kill"] > 0


@pytest.mark.slow
def test_fifty_people_at_once_all_get_their_replies(tmp_path):
    assert http_load(n_people=50, think=0.1, n_answers=300)["answers"] >= 300


def test_a_full_disk_keeps_the_answers_with_the_people_and_the_study_goes_on(tmp_path):
    """The server may write no file longer than it is now; later it may again."""
    path = make_study(tmp_path / "s.db", n=20, questions=100_000)
    server = Server(path)
    try:
        people = Crowd(np.random.default_rng(0).normal(size=(20, 2)), seconds=0.01)
        answer_all(server.port, people, 3, 30)
        size = max(os.path.getsize(p) for p in tmp_path.iterdir())
        limit = resource.prlimit(
            server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)
        )
        stop = threading.Event()
        outcome = []

        def take_part():
            enough = lambda _: stop.is_set()  # noqa: E731
            outcome.append(asyncio.run(crowd(server.port, people, 3, seed=9, until=enough)))

        thread = threading.Thread(target=take_part)
        thread.start()
        health = wait_for(server.port, 503)
        assert "cannot be written" in health["detail"]
        stop.wait(1.0)  # long enough for everyone to notice
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limit)
        assert wait_for(server.port, 200) == {"status": "ok", "detail": None}
        enough = time.monotonic() + 60
        while n_answers(path) < 90 + 40 and time.monotonic() < enough:  # 90 before
            stop.wait(0.1)
        stop.set()
        thread.join()
    finally:
        server.end()
    stored = {row[0] for row in connect(path, read_only=True).execute("SELECT lease FROM answers")}
    assert outcome[0].unreached > 0
    assert set(outcome[0].acknowledged) <= stored
    assert len(outcome[0].acknowledged) > 30


def n_answers(path):
    """How many answers the study holds."""
    return connect(path, read_only=True).execute("SELECT count(*) FROM answers").fetchone()[0]


def wait_for(port, status, tries=300):
    async def ask():
        with closing(Client(port)) as client:
            for _ in range(tries):
                health, reply = await client.call("GET", "/healthz")
                if health == status:
                    return reply
                await asyncio.sleep(0.05)
        pytest.fail(f"/healthz never said {status}")

    return asyncio.run(ask())


@pytest.mark.slow
def test_drop_outs_block_no_other_person(tmp_path):
    """Everyone leaves after a few questions; what they held comes back and is answered."""
    path = make_study(tmp_path / "s.db", n=20, questions=20, lease_seconds=1)
    people = Crowd(np.random.default_rng(0).normal(size=(20, 2)), dropout=1.0, seconds=0.1)
    with served(path) as server:
        outcome = answer_all(server.port, people, 10, 400)
        assert server.said() == ""
    assert outcome.left > 20
    db = connect(path, read_only=True)
    again = "SELECT question FROM leases GROUP BY question HAVING count(*) > 1"
    assert db.execute(f"SELECT count(*) FROM ({again})").fetchone()[0] > 0
    twice = "SELECT question FROM answers GROUP BY question, person HAVING count(*) > 1"
    assert db.execute(f"SELECT count(*) FROM ({twice})").fetchone() == (0,)
