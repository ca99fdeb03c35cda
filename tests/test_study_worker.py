"""How questions are chosen: methods, the worker's jobs, and what is due when."""

import json
import time

import numpy as np
import pytest
from studykit import Bench, only_real

import nearer
from nearer.questions import pack
from nearer.study.actions import add_map, exclude, pose, set_state
from nearer.study.conductor import Conductor, map_is_due, questions_due
from nearer.study.worker import Choosing, Worker, collected


@pytest.mark.parametrize("method", ["informative", "random"])
def test_choosers_ask_nothing_twice_and_stop_when_all_is_asked(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 2))
    asked = np.empty((0, 3), dtype=np.int64)
    choosing = Choosing(method, 5, 2, seed=0)
    while True:
        near = nearer.PointOracle(X)(asked) if len(asked) else np.empty(0, bool)
        sides = np.where(near[:, None], asked, asked[:, [0, 2, 1]])
        new, _ = choosing.choose(sides, asked, np.full(len(asked), np.nan), 7, rng)
        if not len(new):
            break
        asked = np.concatenate([asked, new])
    assert len(asked) == len(np.unique(pack(asked)[0])) == 5 * 4 * 3 // 2


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "s.db", n=12, questions=60, **only_real())
    yield made
    made.close()


def test_what_is_due_when(bench):
    assert questions_due(bench.board) == {"job": "choose", "person": None, "n_questions": 20}
    bench.pose([(0, k, k + 1) for k in range(1, 11)])
    assert questions_due(bench.board) is None
    people = [bench.join() for _ in range(8)]
    for person in people:
        bench.hand_out(person)
    assert questions_due(bench.board)["n_questions"] == 20, "two for each of eight, or the batch"
    assert questions_due(bench.board, taken=50)["n_questions"] == 100, (
        "people are faster than the worker"
    )
    bench.write(set_state, "paused")
    assert questions_due(bench.board) is None
    bench.board.answers = 100
    assert map_is_due(bench.board, 0)
    assert not map_is_due(bench.board, 95)


def test_the_same_log_and_seed_choose_the_same_questions(bench):
    bench.pose([(0, k, k + 1) for k in range(1, 11)])
    person = bench.join()
    for _ in range(10):
        bench.answer(person, bench.hand_out(person)[0].lease)
    job = {"job": "choose", "person": None, "n_questions": 9}
    first, second = Worker(bench.path).do(job), Worker(bench.path).do(job)
    assert first["questions"] == second["questions"]
    assert first["seen"] == 10
    assert len(first["questions"]) == 9
    asked = {(h, *sorted((a, b))) for h, a, b in first["questions"]}
    assert asked.isdisjoint({(0, k, k + 1) for k in range(1, 11)})


def test_answers_of_excluded_people_make_no_map(bench):
    bench.pose([(0, k, k + 1) for k in range(1, 11)])
    people = [bench.join(), bench.join()]
    for person in people:
        bench.answer(person, bench.hand_out(person)[0].lease)
    for excluded, counted in ((True, people[1:]), (False, people)):
        bench.write(exclude, people[0], excluded)
        assert collected(bench.store.reader()).answers.people.tolist() == counted


def test_the_map_says_how_well_it_predicts(tmp_path):
    bench = Bench(tmp_path / "s.db", n=10, questions=400, holdout_share=0.2)
    rng = np.random.default_rng(0)
    X = np.c_[np.arange(10.0), rng.normal(size=10)]
    bench.pose([rng.choice(10, 3, replace=False) for _ in range(350)])
    person = bench.join()
    worker = Worker(bench.path)
    assert worker.do({"job": "map"}) == {"map": None}
    while trials := bench.hand_out(person):
        t = trials[0]
        left, right = t.shown
        near = np.linalg.norm(X[t.query] - X[left]) < np.linalg.norm(X[t.query] - X[right])
        bench.answer(person, t.lease, "left" if near else "right")
    drawn = worker.do({"job": "map"})["map"]
    assert drawn["accuracy"] > 0.85
    assert np.array(drawn["positions"]).shape[0] == 10
    assert drawn["n_holdout"] >= 20
    bench.write(add_map, drawn)
    stored = bench.store.reader().execute("SELECT positions FROM maps").fetchone()[0]
    assert json.loads(stored) == drawn["positions"]
    bench.close()


def test_the_conductor_keeps_a_stock_and_reports_a_method_that_fails(bench, monkeypatch):
    conductor = Conductor(bench.store)
    conductor.start()
    ends = time.monotonic() + 30
    while bench.board.stock() < 20 and time.monotonic() < ends:
        time.sleep(0.02)
    assert bench.board.stock() == 20
    conductor.close()

    failing = Conductor(bench.store)
    monkeypatch.setattr(
        failing._chooser, "ask", lambda job: (_ for _ in ()).throw(RuntimeError("no"))
    )
    bench.board.free[None].clear()
    failing.start()
    for _ in range(200):
        if failing.trouble:
            break
        time.sleep(0.02)
    assert failing.trouble == "choosing questions failed: no"
    assert bench.hand_out(bench.join()), "people are served all the same"
    failing.close()


def test_everyone_can_have_questions_of_their_own(tmp_path):
    bench = Bench(tmp_path / "s.db", n=12, scope="person", questions=60, **only_real())
    one, other = bench.join(), bench.join()
    bench.hand_out(one)  # by chance, since nothing is chosen yet; from now on they are here
    job = questions_due(bench.board)
    assert job == {"job": "choose", "person": one, "n_questions": 4}
    reply = Worker(bench.path).do(job)
    questions = np.array(reply.pop("questions"))
    reply.pop("done")
    bench.write(pose, questions, **reply)
    assert bench.board.next_main(one) is not None
    assert bench.board.next_main(other) is None
    assert questions_due(bench.board) is None
    bench.close()
