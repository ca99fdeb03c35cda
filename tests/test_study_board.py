"""The board built while a study ran equals the board that the file gives, at every cut."""

from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from studykit import Bench, only_real

from benchmarks.study_faults import snapshot
from nearer.study.actions import exclude, withdraw
from nearer.study.board import Refusal, fact
from nearer.study.store import replay

CHOICES = ("left", "right", "undecided", "skip")
operation = st.one_of(
    st.tuples(st.just("join"), st.just(0), st.just(0)),
    st.tuples(st.just("pose"), st.integers(0, 50), st.integers(1, 6)),
    st.tuples(st.just("hand_out"), st.integers(0, 20), st.just(0)),
    st.tuples(st.just("answer"), st.integers(0, 20), st.integers(0, 3)),
    st.tuples(st.just("late"), st.integers(0, 20), st.integers(0, 3)),
    st.tuples(st.just("undo"), st.integers(0, 20), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.integers(1, 200), st.just(0)),
    st.tuples(st.just("exclude"), st.integers(0, 20), st.integers(0, 1)),
    st.tuples(st.just("withdraw"), st.integers(0, 20), st.just(0)),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["1", "2+1", "3"]), st.lists(operation, max_size=40))
def test_replay_equals_the_uninterrupted_state_at_every_cut(tmp_path_factory, rule, operations):
    folder = tmp_path_factory.mktemp("board")
    bench = Bench(folder / "s.db", n=6, votes=rule, questions=30, repeat_share=0.3)
    reader = bench.store.reader()
    people: list[int] = []
    try:
        for name, i, j in [("join", 0, 0), ("pose", 1, 6), *operations]:
            act(bench, people, name, i, j)
            now = bench.clock()
            assert snapshot(replay(reader), now) == snapshot(bench.board, now)
    finally:
        bench.close()


def act(bench, people, name, i, j):  # noqa: PLR0912 - one branch an operation
    present = [p for p in people if not bench.board.people[p].withdrawn]
    if name == "join":
        people.append(bench.join())
    elif name == "pose":
        rows = [((i + k) % 6, (i + 2 * k + 1) % 6, (i + 3 * k + 2) % 6) for k in range(j)]
        rows = [row for row in rows if len(set(row)) == 3] or [(0, 1, 2)]
        bench.pose(rows)
    elif name == "wait":
        bench.clock.now += i
    elif present:
        person = present[i % len(present)]
        if name == "hand_out":
            bench.hand_out(person)
        elif name == "answer":
            trials = bench.hand_out(person)
            if trials:
                bench.answer(person, trials[0].lease, CHOICES[j])
        elif name == "late":
            mine = [
                x for x in bench.board.leases.values() if x.person == person and x.answer is None
            ]
            if mine:
                bench.clock.now += 1000
                bench.answer(person, mine[0].id, CHOICES[j])
        elif name == "undo":
            last = bench.board.people[person].last
            if last is not None:
                with suppress(Refusal):
                    bench.answer(person, last.lease, CHOICES[j], instead=True)
        elif name == "exclude":
            bench.write(exclude, person, bool(j))
        elif name == "withdraw":
            bench.write(withdraw, person)


def test_a_fact_is_the_same_both_ways_round():
    assert fact(3, (1, 2)) == fact(3, (2, 1)) != fact(1, (3, 2))


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "s.db", votes="2+1", **only_real())
    yield made
    made.close()


def test_two_people_get_a_question_and_a_third_only_when_they_disagree(bench):
    bench.pose([(0, 1, 2)])
    question = next(q for q in bench.board.questions.values() if q.purpose == "main")
    a, b, c = bench.join(), bench.join(), bench.join()

    def holds(person):
        return [
            t for t in bench.hand_out(person) if bench.board.leases[t.lease].question == question.id
        ]

    (first,), (second,) = holds(a), holds(b)
    assert not holds(c), "two have it in hand"
    chosen = "left" if first.shown[0] == 1 else "right"
    other = "left" if second.shown[0] == 2 else "right"
    bench.answer(a, first.lease, chosen)
    bench.answer(b, second.lease, other)
    assert bench.board.next_main(c) is question
    assert bench.board.next_main(a) is None, "no person answers the same question twice"


def test_excluding_a_person_reopens_what_they_decided_and_including_closes_it_again(bench):
    bench.pose([(0, 1, 2)])
    people = [bench.join(), bench.join()]
    for person in people:
        trial = next(t for t in bench.hand_out(person) if t.query == 0 and set(t.shown) == {1, 2})
        bench.answer(person, trial.lease, "left" if trial.shown[0] == 1 else "right")
    assert bench.board.summary(0)["questions"]["decided"] == 1
    bench.write(exclude, people[0], True)
    assert bench.board.summary(0)["questions"]["decided"] == 0
    assert bench.board.next_main(bench.join()) is not None
    bench.write(exclude, people[0], False)
    assert bench.board.summary(0)["questions"]["decided"] == 1
