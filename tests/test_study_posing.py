from collections import Counter

import numpy as np
import pytest
from studykit import Bench, only_real

from nearer.study.actions import GAP, agree, change_settings, join, set_state, stage, withdraw
from nearer.study.board import Refusal
from nearer.study.worker import triplets


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "s.db", questions=40)
    yield made
    made.close()


@pytest.fixture
def plain(tmp_path):
    made = Bench(tmp_path / "s.db", **only_real())
    yield made
    made.close()


def test_a_closed_tab_blocks_no_other_person(plain):
    plain.pose([(0, 1, 2)])
    gone, here = plain.join(), plain.join()
    assert plain.hand_out(gone)[0].query == 0
    held = plain.board.people[here].holds.values()
    assert all(plain.board.questions[x.question].purpose != "main" for x in held)
    plain.clock.now += plain.board.config.lease_seconds + 1
    assert (plain.hand_out(here)[0].query, plain.board.stock()) == (0, 0)


def test_a_late_answer_is_stored_and_used_for_fitting(plain):
    plain.pose([(0, 1, 2)])
    late, here = plain.join(), plain.join()
    trial = plain.hand_out(late)[0]
    plain.clock.now += 1000
    other = plain.hand_out(here)[0]
    plain.answer(here, other.lease)
    assert plain.answer(late, trial.lease) is True
    assert len(triplets(plain.store.reader())) == 2


def test_refreshing_the_page_gives_the_same_questions(bench):
    person = bench.join()
    assert bench.hand_out(person) == bench.hand_out(person) != []


def test_an_answer_is_stored_once_however_often_it_is_sent(bench):
    person = bench.join()
    lease = bench.hand_out(person)[0].lease
    assert bench.answer(person, lease, "left") is True
    assert bench.answer(person, lease, "left") is False
    with pytest.raises(Refusal, match="was answered before; that stays"):
        bench.answer(person, lease, "right")
    assert bench.store.reader().execute("SELECT count(*) FROM answers").fetchone() == (1,)


def test_an_answer_needs_a_lease_of_the_same_person(bench):
    mine, other = bench.join(), bench.join()
    lease = bench.hand_out(other)[0].lease
    for wrong in (lease, 10_000, 0):
        with pytest.raises(Refusal, match="was not given to you"):
            bench.answer(mine, wrong)


def test_no_person_waits_or_repeats_a_question_except_as_planned(bench):
    """With eight real questions only, the others are extra ones, which count, and checks."""
    bench.pose([(k % 8, (k + 1) % 8, (k + 3) % 8) for k in range(8)])
    person = bench.join()
    seen = []
    while trials := bench.hand_out(person):
        question = bench.board.questions[bench.board.leases[trials[0].lease].question]
        seen.append((question.purpose, question.fact))
        bench.answer(person, trials[0].lease)
    assert len(seen) == 40
    asked = [f for purpose, f in seen if purpose in ("main", "extra", "holdout")]
    assert len(asked) == len(set(asked))
    kinds = Counter(purpose for purpose, _ in seen)
    assert kinds == {"main": 8, "extra": 21, "holdout": 4, "repeat": 5, "catch": 2}


def test_repeats_swap_the_sides(tmp_path):
    bench = Bench(tmp_path / "s.db", questions=80, repeat_share=0.5, catch_share=0.0)
    bench.pose([(h, a, b) for h in range(4) for a in range(4, 6) for b in range(6, 8)])
    person = bench.join()
    shown: dict[int, tuple[int, ...]] = {}
    repeats = 0
    while trials := bench.hand_out(person):
        trial = trials[0]
        question = bench.board.questions[bench.board.leases[trial.lease].question]
        if question.repeats is not None:
            repeats += 1
            assert trial.shown[::-1] == shown[question.repeats]
        shown[question.id] = trial.shown
        bench.answer(person, trial.lease)
    assert repeats >= 5
    bench.close()


def test_sides_are_drawn_evenly(tmp_path):
    bench = Bench(tmp_path / "s.db", n=30, questions=400, **only_real())
    rng = np.random.default_rng(0)
    bench.pose([sorted(rng.choice(30, 3, replace=False)) for _ in range(500)])
    person = bench.join()
    left = 0
    for _ in range(400):
        trial = bench.hand_out(person)[0]
        left += trial.shown[0] < trial.shown[1]
        bench.answer(person, trial.lease)
    assert 160 < left < 240
    bench.close()


def test_pausing_takes_no_answers_and_hands_nothing_out(bench):
    person = bench.join()
    first, second = bench.hand_out(person)
    bench.write(set_state, "paused")
    with pytest.raises(Refusal, match="came too late"):
        bench.answer(person, first.lease)
    assert [t.lease for t in bench.hand_out(person)] == [first.lease, second.lease]
    with pytest.raises(Refusal, match="not open"):
        bench.join()


def test_quota_closes_the_door_and_thanks_who_is_there(plain):
    plain.pose([(k % 8, (k + 1) % 8, (k + 3) % 8) for k in range(20)])
    person = plain.join()
    plain.write(change_settings, {"quota": 2})
    while trials := plain.hand_out(person):
        plain.answer(person, trials[0].lease)
    assert plain.board.answers in (2, 3)  # one more was in hand already
    assert plain.write(stage, person)[0] == "finished"
    with pytest.raises(Refusal, match="all the answers it needs"):
        plain.join()


def test_a_person_sent_by_a_panel_again_goes_on_as_the_same_in_their_browser(bench):
    first = bench.join(panel="prolific", external="abc", browser="secret")
    assert bench.join(panel="prolific", external="abc", browser="secret") == first
    assert bench.join(panel="mturk", external="abc") != first


def test_withdrawing_erases_identity_and_answers_and_is_final(plain):
    plain.pose([(k % 8, (k + 1) % 8, (k + 3) % 8) for k in range(20)])
    person = plain.join(panel="prolific", external="abc")
    for _ in range(3):
        plain.answer(person, plain.hand_out(person)[0].lease)
    assert plain.write(withdraw, person) == 3
    db = plain.store.reader()
    for table in ("answers", "identities", "leases"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert plain.board.answers == 0
    with pytest.raises(Refusal, match="withdrew") as refusal:
        plain.hand_out(person)
    assert refusal.value.status == 410


def test_consent_is_versioned(bench):
    with pytest.raises(Refusal, match="consent version '0' is not the current one, '1'"):
        bench.write(join, consent="0")
    person = bench.join()
    assert bench.write(stage, person)[0] == "instructions"
    bench.board.config = type(bench.board.config).of(
        {**bench.board.config.__dict__, "consent_version": "2"}
    )
    assert bench.write(stage, person)[0] == "consent"
    bench.write(agree, person, "2")
    assert bench.write(stage, person)[0] == "instructions"


def test_skip_and_undecided_differ_and_can_be_switched_off(tmp_path):
    bench = Bench(tmp_path / "s.db", can_skip=False)
    person = bench.join()
    lease = bench.hand_out(person)[0].lease
    with pytest.raises(Refusal, match="choice='skip': this study does not offer it"):
        bench.answer(person, lease, "skip")
    bench.answer(person, lease, "undecided")
    row = bench.store.reader().execute("SELECT choice, chosen FROM answers").fetchone()
    assert row == ("undecided", None)
    bench.close()


def test_a_person_has_one_vote_on_a_question(plain):
    plain.pose([(0, 1, 2)])
    person = plain.join()
    first = plain.hand_out(person)[0]
    plain.clock.now += 1000  # the lease ends, and the same person gets the question again
    again = next(t for t in plain.hand_out(person) if set(t.shown) == {1, 2} and t.query == 0)
    assert again.lease != first.lease
    assert plain.answer(person, first.lease, "left")
    with pytest.raises(Refusal, match="was answered before"):
        plain.answer(person, again.lease, "left")
    assert again.lease not in [t.lease for t in plain.hand_out(person)]
    assert plain.board.answers == 1


@pytest.mark.parametrize("end", ["paused", "consent", "finished"])
def test_answers_beyond_what_was_agreed_are_not_taken(plain, end):
    plain.write(change_settings, {"questions": 1})
    person = plain.join()
    plain.write(change_settings, {"questions": 2})
    first, second = plain.hand_out(person)
    if end == "paused":
        plain.write(set_state, "paused")
    elif end == "consent":
        plain.write(change_settings, {"consent_version": "2"})
    else:
        plain.write(change_settings, {"questions": 1})
        assert plain.answer(person, first.lease)
        assert not plain.answer(person, first.lease), "sending it again changes nothing"
    with pytest.raises(Refusal, match="came too late"):
        plain.answer(person, second.lease)
    assert plain.board.answers == (end == "finished")


def test_fewer_questions_than_a_person_answered_end_their_part(plain):
    person = plain.join()
    first, second = plain.hand_out(person)
    plain.answer(person, first.lease)
    plain.write(change_settings, {"questions": 1})
    with pytest.raises(Refusal, match="came too late"):
        plain.answer(person, second.lease)
    assert plain.hand_out(person) == []
    assert plain.write(stage, person)[0] in ("finished", "instructions")
    assert plain.board.people[person].finished
    assert plain.board.answers == 1


def test_no_repeat_is_due_among_the_first_questions(tmp_path):
    bench = Bench(tmp_path / "s.db", n=14, questions=40, repeat_share=0.3)
    numbers = []
    for _ in range(6):
        person = bench.join()
        for _ in range(40):
            bench.clock.now += 2
            trial = bench.hand_out(person)[0]
            lease = bench.board.leases[trial.lease]
            if bench.board.questions[lease.question].repeats is not None:
                numbers.append(trial.number)
            bench.answer(person, trial.lease)
    assert min(numbers) > 2 * GAP
    bench.close()
