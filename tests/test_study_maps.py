"""The study's map: what it is made of, that a restart changes nothing, and when it is enough."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from studykit import Bench, Web, only_real

from nearer.asking.oracles import PointOracle
from nearer.metrics import triplet_accuracy
from nearer.questions import answered, random_questions
from nearer.study.actions import add_map, change_settings, pose
from nearer.study.conductor import map_is_due, questions_due
from nearer.study.store import connect, replay
from nearer.study.worker import Choosing, Worker, asked_facts, collected, draw_map, triplets
from nearer.trials import Trials

KEPT = Path(__file__).parent / "data" / "study.db"
X = np.random.default_rng(3).normal(size=(14, 2))


def answer_some(bench, worker, rounds, error=0.05, seed=0):
    """Two people answer what a worker chooses, some of it wrongly."""
    rng = np.random.default_rng(seed)
    people = list(bench.board.people) or [bench.join(), bench.join()]
    for _ in range(rounds):
        for person in people:
            if job := questions_due(bench.board):
                reply = worker.do(job)
                reply.pop("done")
                bench.write(pose, np.array(reply.pop("questions")), **reply)
            bench.clock.now += 1.0
            trial = bench.hand_out(person)[0]
            a, b = trial.shown
            near = np.linalg.norm(X[trial.query] - X[a]) < np.linalg.norm(X[trial.query] - X[b])
            near = bool(near) != (rng.random() < error)
            bench.answer(person, trial.lease, "left" if near else "right")


@pytest.fixture
def chosen(tmp_path):
    """A study whose questions were mostly chosen, and the worker that chose them."""
    bench = Bench(tmp_path / "s.db", n=14, method="informative", questions=400, **only_real())
    worker = Worker(bench.path)
    answer_some(bench, worker, 40)
    worker.do({"job": "map"})
    answer_some(bench, worker, 60, seed=1)
    yield bench, worker
    bench.close()


def test_a_restart_of_the_worker_changes_no_map(chosen):
    bench, worker = chosen
    maps = [w.do({"job": "map"})["map"] for w in (worker, Worker(bench.path))]
    for drawn in maps:
        drawn.pop("seconds")
    assert maps[0] == maps[1]


def test_the_map_knows_with_what_odds_questions_were_chosen(chosen):
    bench, _ = chosen
    db = bench.store.reader()
    answers = collected(db)
    assert (answers.odds > 0).all()
    assert (answers.odds > 1.2).mean() > 0.2, "many were chosen since they teach more"
    with_odds = draw_map(answers, 14, n_components=2)
    untold = draw_map(replace(answers, odds=None), 14, n_components=2)
    assert with_odds["positions"] != untold["positions"]
    assert len(answers.answers) == len(triplets(db)) == 200


def test_a_choice_after_a_restart_knows_the_odds_of_the_choices_before(chosen):
    bench, _ = chosen
    db = bench.store.reader()
    asked, odds = asked_facts(db)
    rows = triplets(db)

    def chosen_with(odds):
        choosing = Choosing("informative", 14, 2, seed=0)
        questions, _ = choosing.choose(rows, asked, odds, 12, np.random.default_rng(0))
        return questions.tolist(), choosing._belief.held_out.weights

    (once, weights), (again, _) = chosen_with(odds), chosen_with(odds)
    assert once == again
    assert np.ptp(weights) > 0
    assert np.ptp(chosen_with(np.full(len(odds), np.nan))[1]) == 0


def test_questions_drawn_at_random_have_no_odds(tmp_path):
    bench = Bench(tmp_path / "s.db", n=14, method="random", questions=50)
    answer_some(bench, Worker(bench.path), 10)
    assert np.isnan(asked_facts(bench.store.reader())[1]).all()
    assert set(collected(bench.store.reader()).odds) == {1.0}
    bench.close()


def test_a_file_without_odds_opens_and_goes_on(tmp_path):
    path = tmp_path / "s.db"
    shutil.copy(KEPT, path)
    db = connect(path, read_only=True)
    assert len(triplets(db)) == 48
    assert set(collected(db).odds) == {1.0}, "no record has them any more"
    board = replay(db)
    assert (board.config.title, board.config.quality) == ("A later kept study", 1.0)
    db.close()
    bench = Bench(path)
    answer_some(bench, Worker(path), 6)
    odds = asked_facts(bench.store.reader())[1]
    assert np.isfinite(odds).any()
    assert np.isnan(odds).any()
    bench.close()


@pytest.mark.parametrize(
    ("task", "choose"), [("choose", 2), ("rank", 2), ("odd", 1)], ids=["choose", "rank", "odd"]
)
def test_screens_are_fitted_as_they_were_answered(tmp_path, task, choose):
    bench = Bench(
        tmp_path / "s.db", n=14, task=task, things=5, choose=choose, questions=200, **only_real()
    )
    person = bench.join()
    bench.answer(person, bench.hand_out(person)[0].lease, "undecided")
    for _ in range(120):
        bench.clock.now += 1.0
        trial = bench.hand_out(person)[0]
        middle = X[list(trial.shown)].mean(axis=0) if trial.query is None else X[trial.query]
        order = np.argsort(np.linalg.norm(X[list(trial.shown)] - middle, axis=1))
        if task == "odd":
            order = order[::-1]
        best = tuple(trial.shown[k] for k in order[:choose])
        bench.answer(person, trial.lease, "chosen", chosen=best)
    drawn = Worker(bench.path).do({"job": "map"})["map"]
    assert drawn["n_triplets"] == bench.board.answers == 120, "one answer is one answer"
    assert drawn["n_undecided"] == 1
    assert not map_is_due(bench.board, drawn["n_triplets"]), "nothing has changed since"
    truth = np.linalg.norm(X[:, None] - X, axis=-1)
    positions = np.array(drawn["positions"])
    seen = np.linalg.norm(positions[:, None] - positions, axis=-1)
    assert np.corrcoef(truth.ravel(), seen.ravel())[0, 1] > 0.7
    bench.close()


def test_who_cannot_decide_says_that_it_is_a_tie(tmp_path):
    """Near ties are fitted, by the map and by who chooses; they count for no quota."""
    bench = Bench(tmp_path / "s.db", n=14, method="informative", questions=400, **only_real())
    rng, worker = np.random.default_rng(0), Worker(bench.path)
    person = bench.join()
    for k in range(300):
        bench.clock.now += 1.0
        trial = bench.hand_out(person)[0]
        head, a, b = X[[trial.query, *trial.shown]]
        gap = np.linalg.norm(head - b) - np.linalg.norm(head - a) + 0.2 * rng.logistic()
        choice = "left" if gap > 0 else "right"
        unsure = "skip" if k % 50 == 0 else "undecided" if abs(gap) < 0.3 else choice
        bench.answer(person, trial.lease, unsure)
    db = bench.store.reader()
    answers = collected(db)
    counts = [db.execute(f"SELECT count(*) FROM answers WHERE choice = '{c}'").fetchone()[0]
            for c in ("chosen", "undecided")]  # fmt: skip
    assert min(counts) > 30
    assert [answers.decided, len(answers.answers)] == [counts[0], sum(counts)]
    assert bench.board.answers == counts[0]
    assert len(triplets(db)) == counts[0]
    with_ties = draw_map(answers, 14, n_components=2)
    assert (with_ties["n_triplets"], with_ties["n_undecided"]) == tuple(counts)
    alone = Trials.from_triplets(triplets(db), people=np.full(counts[0], person))
    without = draw_map(type(answers)(alone, None, 0), 14, n_components=2)
    rows = random_questions(14, 2000, rng)
    truth = answered(rows, PointOracle(X)(rows))
    better = [triplet_accuracy(truth, np.array(m["positions"])) for m in (with_ties, without)]
    assert better[0] > better[1]
    assert worker.do({"job": "choose", "person": None, "n_questions": 5})["questions"]
    bench.close()


def test_a_map_that_is_good_enough_ends_the_study_and_pays(tmp_path):
    web = Web(tmp_path / "s.db", n=14, quality=0.9, questions=50, **only_real())
    headers = web.join()
    assert web.answer(headers).json()["stage"] == "trials"
    drawn = {"seen": 1, "n_triplets": 500, "dimension": 2, "accuracy": 0.9, "n_holdout": 50,
             "seconds": 0.1, "positions": X.tolist()}  # fmt: skip
    store = web.study.store
    store.write(lambda ledger: add_map(ledger, {**drawn, "expected_tau": 0.85}))
    assert web.answer(headers).json()["stage"] == "trials"
    store.write(lambda ledger: add_map(ledger, {**drawn, "expected_tau": 0.93}))
    assert not web.client.get("/api/study").json()["open"]
    while (standing := web.client.get("/api/me", headers=headers).json())["stage"] == "trials":
        standing = web.answer(headers).json()
    assert standing["stage"] == "finished"
    assert standing["enough"]
    assert standing["completion"]["code"]
    store.write(lambda ledger: change_settings(ledger, {"quality": 0.97}))
    assert web.client.get("/api/study").json()["open"], "more is wanted"
    web.close()


@pytest.mark.slow
def test_simulated_people_bring_a_study_to_its_quality(tmp_path):
    settings = {"method": "informative", "quality": 0.9, "questions": 2000, **only_real()}
    bench = Bench(tmp_path / "s.db", n=14, **settings)
    worker = Worker(bench.path)
    mapped = 0
    while not bench.board.full and bench.board.answers < 1500:
        answer_some(bench, worker, 5, seed=mapped)
        if map_is_due(bench.board, mapped):
            bench.write(add_map, worker.do({"job": "map"})["map"])
            mapped = bench.board.answers
    assert bench.board.full
    assert bench.board.expected_tau >= 0.9
    positions = np.array(worker.do({"job": "map"})["map"]["positions"])
    rows = np.array([np.random.default_rng(k).choice(14, 3, replace=False) for k in range(2000)])

    def says(P):
        head, a, b = P[rows.T]
        return np.linalg.norm(head - a, axis=1) < np.linalg.norm(head - b, axis=1)

    assert (says(positions) == says(X)).mean() > 0.9
    again = replay(bench.store.reader())
    assert again.full, "a restart knows it too"
    bench.close()
