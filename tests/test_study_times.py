"""Programs that take part: the server's clock, and checks that do not give themselves away."""

import pytest
from studykit import Bench, Clock, Web

from nearer.study.actions import answer, elapsed
from nearer.study.board import Refusal
from nearer.study.store import Store


def race(bench, person, ms=900.0):
    while trials := bench.hand_out(person):
        bench.clock.now += 0.004
        bench.answer(person, trials[0].lease, ("left", "right")[trials[0].lease % 2], ms)


def test_a_bot_that_invents_its_times_is_flagged(tmp_path):
    from nearer.study.exports import people_report

    bench = Bench(tmp_path / "s.db", n=12, questions=50)
    race(bench, bench.join())
    race(bench, bench.join(), ms=None)
    silent, liar = people_report(bench.store.reader())
    assert {"very fast", "times are not true"} <= set(liar.warnings)
    assert "very fast" in silent.warnings
    assert liar.false_times == 50
    bench.close()


def test_an_answer_that_waited_without_network_is_believed(tmp_path):
    from nearer.study.actions import elapsed
    from nearer.study.exports import people_report

    bench = Bench(tmp_path / "s.db", n=12, questions=40)
    person = bench.join()

    def together(ledger, leases):
        each = elapsed(ledger, person, leases)
        return [answer(ledger, person, i, "left", 3000.0, elapsed_ms=each) for i in leases]

    while trials := bench.hand_out(person):
        bench.clock.now += 7.0  # both were looked at, then the network came back
        bench.write(together, [t.lease for t in trials])
    (report,) = people_report(bench.store.reader())
    assert (report.false_times, report.median_elapsed_ms) == (0, 3500.0)
    bench.close()


def test_a_study_can_refuse_answers_too_fast_to_have_seen_the_question(tmp_path):
    bench = Bench(tmp_path / "s.db", fastest_ms=200, refuse_false_times=True)
    person = bench.join()
    first, second = bench.hand_out(person)
    bench.clock.now += 0.1
    with pytest.raises(Refusal, match="too fast to have looked") as refusal:
        bench.answer(person, first.lease, ms=90.0)
    assert refusal.value.status == 429
    bench.clock.now += 0.9
    with pytest.raises(Refusal, match="handed out only 1000 ms ago"):
        bench.answer(person, first.lease, ms=1500.0)
    assert bench.answer(person, first.lease, ms=900.0)
    bench.clock.now += 1.0
    assert bench.answer(person, second.lease, ms=1900.0)
    bench.close()


def test_a_catch_trial_looks_like_every_other_one(tmp_path):
    """Neither numbers nor names nor addresses of the three things are ever the same."""
    from studykit import picture

    from nearer.study.config import Config
    from nearer.study.items import read_files
    from nearer.study.store import new_study

    files = [(f"{k}.png", picture((20 * k, 0, 0))) for k in range(6)]
    settings = {"questions": 30, "catch_share": 0.5, "method": "random"}
    new_study(tmp_path / "s.db", read_files(files), Config.of(settings))
    web = Web(tmp_path / "s.db")
    headers = web.join()
    for _ in range(30):
        trial = web.client.get("/api/me", headers=headers).json()["trials"][0]
        things = [trial["head"], *trial["shown"]]
        assert len({thing["id"] for thing in things}) == 3
        assert len({thing["src"] for thing in things}) == 3
        assert web.client.get(things[0]["src"]).headers["content-type"] == "image/png"
        web.answer(headers)
    catches = "SELECT count(*) FROM questions WHERE purpose = 'catch'"
    assert web.study.store.reader().execute(catches).fetchone()[0] >= 10
    web.close()


def test_a_clock_that_is_set_back_makes_no_answer_false(tmp_path):
    bench = Bench(tmp_path / "s.db", fastest_ms=200, refuse_false_times=True)
    person = bench.join()
    first, second = bench.hand_out(person)
    bench.clock.now += 1.0
    assert bench.answer(person, first.lease, ms=900.0)
    bench.clock.now -= 3600.0
    bench.hand_out(person)
    bench.clock.now += 1.0
    assert bench.answer(person, second.lease, ms=900.0)
    bench.clock.now += bench.board.config.lease_seconds + 1
    bench.hand_out(bench.join())
    assert len(bench.board.active) == 1, "leases end as if nothing had happened"
    bench.close()


def test_a_clock_that_is_set_back_while_nothing_is_served_goes_on_from_where_it_was(tmp_path):
    bench = Bench(tmp_path / "s.db", fastest_ms=200, refuse_false_times=True)
    person = bench.join()
    held = bench.hand_out(person)[0].lease
    bench.close()
    clock = Clock(bench.clock.now - 3600.0)
    store = Store(tmp_path / "s.db", clock)
    store.write(lambda ledger: ledger.now)
    clock.now += 1.0
    assert store.write(lambda ledger: answer(ledger, person, held, "left", 900.0))
    store.close()


def test_a_question_of_another_person_makes_no_answer_slower(tmp_path):
    bench = Bench(tmp_path / "s.db")
    other = bench.hand_out(bench.join())[0].lease
    bench.clock.now += 3600
    me = bench.join()
    mine = bench.hand_out(me)[0].lease
    bench.clock.now += 1
    assert bench.write(elapsed, me, [other, mine]) == 500
    bench.close()
