"""Answers that count: small studies, waiting people, checks by plan, taking back."""

from collections import Counter

import numpy as np
import pytest
from studykit import Bench, only_real

from nearer.errors import InvalidInput
from nearer.study.actions import all_asked, change_settings, pose, stage
from nearer.study.board import Refusal
from nearer.study.conductor import questions_due
from nearer.study.config import Config
from nearer.study.exports import overview, people_report
from nearer.study.worker import Worker, triplets


def finish(bench, person, choose=lambda trial: "left"):
    """Answer until there is nothing more; the purposes."""
    kinds = []
    while trials := bench.hand_out(person):
        bench.clock.now += 2.0
        lease = bench.board.leases[trials[0].lease]
        kinds.append(bench.board.questions[lease.question].purpose)
        bench.answer(person, lease.id, choose(trials[0]))
    return kinds


def stocked(bench):
    """What the conductor does, once."""
    worker = Worker(bench.path)
    while job := questions_due(bench.board):
        reply = worker.do(job)
        done = reply.pop("done")
        rows = np.array(reply.pop("questions"), dtype=np.int64).reshape(-1, 3)
        if not bench.write(pose, rows, **reply):
            if done:
                bench.write(all_asked)
            break


@pytest.mark.parametrize("n", [4, 6, 10])
def test_in_a_small_study_everybody_gets_questions_that_count(tmp_path, n):
    bench = Bench(tmp_path / "s.db", n=n, questions=50)
    for k in range(12):
        stocked(bench)
        person = bench.join()
        kinds = Counter(finish(bench, person))
        possible = n * (n - 1) * (n - 2) // 2
        assert kinds["catch"] <= 2, f"person {k}"
        assert kinds["main"] + kinds["extra"] >= min(35, possible - kinds["holdout"] - 1)
        assert bench.write(stage, person)[0] == "finished"
    assert bench.board.exhausted
    bench.close()


def test_further_votes_go_where_they_teach_most(tmp_path):
    bench = Bench(tmp_path / "s.db", n=4, questions=12, **only_real())
    bench.write(all_asked)
    for _ in range(20):
        finish(bench, bench.join())
    votes = [len(q.votes) for q in bench.board.questions.values()]
    assert max(votes) - min(votes) <= 2, "no vote goes to a question that has many already"
    assert sum(votes) == 20 * 12
    bench.close()


def test_or_the_study_ends_and_says_so(tmp_path):
    bench = Bench(tmp_path / "s.db", n=4, questions=50, when_all_asked="finish", **only_real())
    finish(bench, bench.join())
    bench.write(all_asked)
    person = bench.join()
    assert bench.hand_out(person) == []
    assert bench.write(stage, person)[0] == "finished"
    db = bench.store.reader()
    page = overview(db, bench.board.summary(0.0), 0.0, people_report(db))
    assert page["exhausted"]
    assert page["enough"]
    bench.close()


def first_shown(trial):
    """What a person takes who chooses the first things on a screen."""
    return {"chosen": trial.shown[: trial.choose]}


@pytest.mark.parametrize(
    ("task", "n", "things", "choose", "screens"),
    [("odd", 5, 4, 1, 5), ("odd", 4, 4, 1, 1), ("choose", 4, 3, 2, 4)],
)
def test_screens_run_out_too(tmp_path, task, n, things, choose, screens):
    settings = {"task": task, "things": things, "choose": choose, "questions": 30}
    bench = Bench(tmp_path / "s.db", n=n, when_all_asked="finish", **settings)
    answered = 0
    for _ in range(4):
        person = bench.join()
        while trials := bench.hand_out(person):
            bench.clock.now += 2.0
            bench.answer(person, trials[0].lease, "chosen", **first_shown(trials[0]))
            answered += 1
        assert bench.write(stage, person)[0] == "finished"
    posed = [q for q in bench.board.questions.values() if q.purpose in ("extra", "holdout")]
    assert len(posed) == screens
    assert bench.board.counted, "hold-outs are not all of them"
    assert bench.board.exhausted
    assert answered <= 3 * screens + 10
    bench.close()


@pytest.mark.parametrize("questions", [20, 50, 60, 120])
def test_every_flag_can_judge_everybody(tmp_path, questions):
    bench = Bench(tmp_path / "s.db", n=30, questions=questions)
    for _ in range(6):
        bench.join()
        finish(bench, len(bench.board.people))
    db = bench.store.reader()
    page = overview(db, bench.board.summary(0.0), 0.0, people_report(db))
    assert {flag["judged"] for flag in page["flags"].values()} == {6}
    purposes = [Counter(p.given) for p in bench.board.people.values()]
    assert len({(c["catch"], c["repeat"], c["holdout"]) for c in purposes}) == 1, "by plan"
    bench.close()


@pytest.mark.parametrize(
    ("task", "things", "choose"), [("choose", 6, 2), ("rank", 5, 2), ("odd", 4, 1)]
)
def test_checks_judge_careful_people_on_screens_as_careful(tmp_path, task, things, choose):
    """The order of clicks is nothing where nothing is ranked, and there are no sides."""
    bench = Bench(tmp_path / "s.db", n=20, task=task, things=things, choose=choose, questions=50)
    careful, careless = bench.join(), bench.join()
    rng = np.random.default_rng(0)
    for person in (careful, careless):
        while trials := bench.hand_out(person):
            bench.clock.now += 2.0
            shown = sorted(trials[0].shown, key=lambda k: (k != trials[0].query, k))
            best = shown[:choose]
            if person == careless:
                best = trials[0].shown[:choose]  # whatever is there, and a repeat is turned round
            elif task == "choose":
                best = rng.permutation(best).tolist()
            bench.answer(person, trials[0].lease, "chosen", chosen=tuple(best), ms=1500.0)
    report = people_report(bench.store.reader())
    bad, well = report
    assert well.warnings == []
    assert well.agreement == 1.0
    assert well.catch_total == (0 if task == "odd" else 2)
    assert well.repeats_total >= 4 * choose
    assert well.left_share is None
    assert "repeats disagree" in bad.warnings
    kinds = bench.board.people[careful].given
    assert (kinds["repeat"], kinds["holdout"]) == (5, 5), "also where there can be no catch trial"
    bench.close()


def test_shares_hold_over_many_questions(tmp_path):
    bench = Bench(tmp_path / "s.db", n=30, questions=400)
    bench.join()
    kinds = Counter(finish(bench, 1))
    assert (kinds["holdout"], kinds["catch"], kinds["repeat"]) == (40, 16, 24)
    bench.close()


# Taking back -------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "s.db", **only_real())
    yield made
    made.close()


def test_the_last_answer_can_be_changed_until_the_next(bench):
    person = bench.join()
    first, second = bench.hand_out(person)
    bench.answer(person, first.lease, "left")
    assert bench.answer(person, first.lease, "right", instead=True)
    rows = bench.store.reader().execute("SELECT chosen, supersedes FROM answers").fetchall()
    assert rows == [(f"[{first.shown[0]}]", None), (f"[{first.shown[1]}]", 1)]
    near = [int(row[1]) for row in triplets(bench.store.reader())]
    assert near == [first.shown[1]], "only the new one counts"
    assert bench.board.answers == 1
    assert bench.answer(person, first.lease, "undecided", instead=True)
    assert bench.board.answers == 0
    bench.answer(person, second.lease, "left")
    with pytest.raises(Refusal, match="only the last answer can be taken back"):
        bench.answer(person, first.lease, "left", instead=True)
    report = people_report(bench.store.reader())[0]
    assert (report.taken_back, report.answered, report.undecided) == (2, 2, 1)


def test_replacing_an_answer_cannot_fill_the_disk(bench):
    person = bench.join()
    lease = bench.hand_out(person)[0].lease
    bench.answer(person, lease, "left")
    bench.answer(person, lease, "right", instead=True)
    bench.answer(person, lease, "left", instead=True)
    with pytest.raises(Refusal, match="only the last answer can be taken back"):
        bench.answer(person, lease, "right", instead=True)
    assert bench.store.reader().execute("SELECT count(*) FROM answers").fetchone() == (3,)


def test_a_slip_of_the_network_takes_nothing_back(bench):
    person = bench.join()
    lease = bench.hand_out(person)[0].lease
    bench.answer(person, lease, "left")
    with pytest.raises(Refusal, match="was answered before; that stays"):
        bench.answer(person, lease, "right")


# Settings while people answer ------------------------------------------------------------------


def test_settings_change_while_people_answer_and_every_change_is_stored(bench):
    person = bench.join()
    bench.answer(person, bench.hand_out(person)[0].lease)
    changes = bench.write(
        change_settings, {"questions": 2, "title": "New", "catch_share": 0.1, "practice": 1}
    )
    assert changes == {"questions": 2, "title": "New", "catch_share": 0.1}
    assert bench.store.facts.config.title == "New"
    bench.write(change_settings, {"consent_version": "2"})
    assert bench.write(stage, person)[0] == "consent"
    events = bench.store.reader().execute("SELECT detail FROM events WHERE kind = 'settings'")
    assert len(events.fetchall()) == 2
    for wrong in ({"seed": 3}, {"questions": 0}, {"qestions": 3}):
        with pytest.raises((Refusal, InvalidInput)):
            bench.write(change_settings, wrong)
    assert bench.board.config == Config.of({**bench.board.config.__dict__})
