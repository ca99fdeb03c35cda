"""Driving strategies: run, side by side, recorded, remembered, limited."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.asking.protocol import as_answers
from nearer.errors import BudgetSpent, InvalidInput, OracleError
from nearer.questions import answered

ORACLE = nearer.PointOracle(np.random.default_rng(0).normal(size=(40, 2)))


def ask_rounds(*rounds):
    """A strategy that puts these rounds and returns all answers; cut short, those it got."""
    got = []
    for questions in rounds:
        try:
            got.append((yield np.array(questions)))
        except BudgetSpent as spent:
            got.append(spent.answers)
            break
    return np.concatenate(got)


def one_at_a_time(strategy, oracle):
    """Answer a strategy through a session, one open question at a time, the last first."""
    session = nearer.asking.Session(strategy)
    while not session.done:
        question = session.open[-1:]
        session.tell(question, oracle(question))
    return session.result


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: nearer.rank_objects(3, 40, random_state=seed),
        lambda seed: nearer.rank_objects(3, 40, order="fewest-rounds", random_state=seed),
        lambda seed: nearer.asking.farthest_object(3, 40),
        lambda seed: nearer.asking.nearest_objects(3, 40, k=7, ordered=True, random_state=seed),
    ],
)
def test_run_equals_one_question_at_a_time(make, seed):
    np.testing.assert_array_equal(nearer.run(make(seed), ORACLE), one_at_a_time(make(seed), ORACLE))


def test_a_basis_is_the_same_one_question_at_a_time():
    whole = nearer.run(nearer.choose_basis(40, random_state=1), ORACLE)
    single = one_at_a_time(nearer.choose_basis(40, random_state=1), ORACLE)
    np.testing.assert_array_equal(whole.coordinates(), single.coordinates())
    np.testing.assert_array_equal(whole.triplets, single.triplets)


def test_progress_counts_comparisons_and_rounds():
    seen = []
    record = nearer.asking.Record()
    strategy = nearer.asking.recorded(nearer.rank_objects(0, 40, random_state=0), record)
    nearer.run(strategy, ORACLE, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (record.n_comparisons, record.n_rounds)
    assert len(seen) == record.n_rounds
    assert len(record.triplets) == record.n_comparisons


def test_together_merges_rounds_and_keeps_results_apart():
    heads = [0, 5, 9]
    alone = [nearer.run(nearer.rank_objects(h, 40, random_state=0), ORACLE) for h in heads]
    record = nearer.asking.Record()
    side_by_side = nearer.asking.together(
        *(nearer.rank_objects(h, 40, random_state=0) for h in heads)
    )
    results = nearer.run(nearer.asking.recorded(side_by_side, record), ORACLE)
    np.testing.assert_array_equal(results, alone)
    single = nearer.asking.Record()
    nearer.run(nearer.asking.recorded(nearer.rank_objects(0, 40, random_state=0), single), ORACLE)
    assert record.n_rounds < 2 * single.n_rounds


def test_together_of_nothing_and_of_finished_strategies():
    assert nearer.run(nearer.asking.together(), ORACLE) == []
    done = nearer.asking.together(ask_rounds([[0, 1, 2]]), ask_rounds([[0, 1, 2]], [[0, 2, 3]]))
    first, second = nearer.run(done, ORACLE)
    assert len(first) == 1
    assert len(second) == 2


rounds = st.lists(
    st.lists(st.permutations(range(4)).map(lambda p: p[:3]), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(rounds)
def test_nothing_is_asked_twice_not_even_mirrored(rounds):
    asked = []

    def oracle(questions):
        asked.extend((h, min(a, b), max(a, b)) for h, a, b in questions.tolist())
        return ORACLE(questions)

    plain = nearer.run(ask_rounds(*rounds), ORACLE)
    strategy = nearer.asking.remembered(ask_rounds(*rounds), nearer.asking.Memory())
    remembered = nearer.run(strategy, oracle)
    np.testing.assert_array_equal(plain, remembered)
    assert len(asked) == len(set(asked))


@given(rounds, st.integers(0, 30))
def test_a_budget_holds_and_its_answers_are_not_lost(rounds, budget):
    asked = []

    def oracle(questions):
        asked.append(len(questions))
        return ORACLE(questions)

    everything = nearer.run(ask_rounds(*rounds), ORACLE)
    part = nearer.run(ask_rounds(*rounds), oracle, budget=budget)
    assert sum(asked) == min(budget, len(everything))
    np.testing.assert_array_equal(part, everything[:budget])


@given(rounds, st.integers(0, 8))
def test_a_budget_counts_only_what_is_really_asked(rounds, budget):
    memory = nearer.asking.Memory()
    asked = []

    def oracle(questions):
        asked.append(len(questions))
        return ORACLE(questions)

    strategy = nearer.asking.remembered(ask_rounds(*rounds), memory)
    part = nearer.run(strategy, oracle, budget=budget)
    everything = nearer.run(ask_rounds(*rounds), ORACLE)
    assert sum(asked) <= budget
    assert sum(asked) == len(memory)
    np.testing.assert_array_equal(part, everything[: len(part)])


def test_a_budget_reaches_into_strategies_side_by_side():
    sorts = nearer.asking.together(*(nearer.rank_objects(h, 40, random_state=0) for h in (0, 1)))
    with pytest.raises(BudgetSpent, match="budget=20"):
        nearer.run(sorts, ORACLE, budget=20)
    parts = nearer.asking.together(ask_rounds([[0, 1, 2], [0, 2, 3]]), ask_rounds([[1, 2, 3]]))
    first, second = nearer.run(parts, ORACLE, budget=1)
    assert (len(first), len(second)) == (1, 0)


def test_phases_may_each_learn_that_the_budget_is_spent():
    def phases():
        parts = []
        for _ in range(3):
            parts.append((yield from ask_rounds([[0, 1, 2], [0, 2, 3]])))  # noqa: PERF401
        return parts

    assert [len(part) for part in nearer.run(phases(), ORACLE, budget=3)] == [2, 1, 0]


def test_a_strategy_that_never_ends_is_stopped():
    def stubborn():
        while True:
            try:
                yield np.array([[0, 1, 2]])
            except BudgetSpent:
                continue

    with pytest.raises(BudgetSpent):
        nearer.run(stubborn(), ORACLE, budget=3)


def test_interrupted_and_run_again_with_the_same_memory_pays_once():
    memory = nearer.asking.Memory()
    record = nearer.asking.Record()
    calls = 0

    def impatient(questions):
        nonlocal calls
        calls += 1
        if calls == 20:
            raise KeyboardInterrupt
        return ORACLE(questions)

    def strategy():
        return nearer.rank_objects(0, 40, random_state=0)

    with pytest.raises(KeyboardInterrupt):
        nearer.run(nearer.asking.remembered(strategy(), memory), impatient)
    paid = len(memory)
    recorded = nearer.asking.recorded(strategy(), record)
    again = nearer.run(nearer.asking.remembered(recorded, memory), impatient)
    np.testing.assert_array_equal(again, nearer.run(strategy(), ORACLE))
    assert 0 < paid < record.n_comparisons == len(memory)


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (lambda q: np.ones(len(q) + 1, dtype=bool), "shape"),
        (lambda q: np.ones((len(q), 1), dtype=bool), "shape"),
        (lambda q: np.ones(len(q), dtype=int), "booleans"),
        (lambda q: ["yes"] * len(q), "booleans"),
        (lambda q: [None, "yes"] * (len(q) // 2) + [True] * (len(q) % 2), "'yes'"),
        (lambda q: np.full(len(q), 1.5), "from 0.0 to 1.0"),
    ],
)
def test_an_oracle_that_answers_nonsense_is_named(oracle, message):
    with pytest.raises(OracleError, match=message):
        nearer.run(nearer.rank_objects(0, 40), oracle)


def test_a_list_of_booleans_is_an_answer():
    assert as_answers([True], np.array([[0, 1, 2]])).tolist() == [True]


def test_a_negative_budget_is_refused():
    with pytest.raises(InvalidInput, match="budget=-1"):
        nearer.run(nearer.rank_objects(0, 40), ORACLE, budget=-1)


def test_strategies_side_by_side_may_go_on_after_the_budget_is_spent():
    def phases():
        got = []
        for questions in ([[0, 1, 2], [0, 2, 3]], [[0, 1, 3]]):
            got.append((yield from ask_rounds(questions)))  # noqa: PERF401
        return [len(part) for part in got]

    both = nearer.asking.together(phases(), phases())
    assert nearer.run(both, ORACLE, budget=3) == [[2, 0], [1, 0]]


@pytest.mark.parametrize("oracle", [ORACLE.distances, None, "oracle", np.ones((5, 2))])
def test_what_cannot_be_asked_is_no_oracle(oracle):
    with pytest.raises(InvalidInput, match="PointOracle"):
        nearer.run(nearer.rank_objects(0, 40), oracle)


def shrugging(oracle, every):
    """An oracle that does not know every so many-th answer it is asked for."""
    asked = 0

    def answer(questions):
        nonlocal asked
        known = oracle(questions).tolist()
        asked += len(known)
        return [None if (asked - i) % every == 0 else a for i, a in enumerate(known)]

    return answer


def test_dont_know_is_asked_again_and_sorts_stay_right():
    truth = nearer.run(nearer.rank_objects(0, 40, random_state=0), ORACLE)
    strategy = nearer.rank_objects(0, 40, random_state=0)
    np.testing.assert_array_equal(nearer.run(strategy, shrugging(ORACLE, 7)), truth)


def test_repeated_dont_know_is_decided_by_number_and_said():
    with pytest.warns(nearer.errors.AnswersWarning, match="lower number"):
        ranking = nearer.run(nearer.rank_objects(0, 6), lambda q: [None] * len(q))
    np.testing.assert_array_equal(ranking, np.arange(6))


def test_a_marked_strategy_gets_dont_know_through_every_wrapper():
    @nearer.asking.accepts_uncertain
    def one_round():
        return (yield np.array([[0, 1, 2], [0, 2, 3], [0, 1, 3]]))

    record, memory = nearer.asking.Record(), nearer.asking.Memory()
    strategy = nearer.asking.limited(
        nearer.asking.recorded(
            nearer.asking.remembered(nearer.asking.renumbered(one_round(), np.arange(4)), memory),
            record,
        ),
        5,
    )
    said = nearer.run(strategy, lambda q: [True, nearer.UNSURE, 0.25])
    assert said.tolist() == [1.0, None, 0.25]
    assert (len(memory), len(record.triplets)) == (2, 2)
    np.testing.assert_array_equal(record.triplets, [[0, 1, 2], [0, 3, 1]])
    rows, weights = record.weighted
    assert weights.sum() == 3
    assert len(rows) == 5


def ask_screens(screens, rounds=1):
    said = []
    for _ in range(rounds):
        said.append((yield np.array(screens)))  # noqa: PERF401
    return np.concatenate(said)


def test_screens_are_recorded_remembered_and_limited_by_rows():
    screens = [[0, 1, 2, 3, 4], [-1, 5, 6, 7, 8], [3, 1, 2, 4, 5]]
    oracle = nearer.PointOracle(np.arange(9.0), choose=2)
    record, memory = nearer.asking.Record(), nearer.asking.Memory()
    strategy = nearer.asking.recorded(ask_screens(screens, rounds=2), record)
    said = nearer.run(nearer.asking.remembered(strategy, memory), oracle, budget=3)
    assert said.shape == (6, 4)
    np.testing.assert_array_equal(said[:3], said[3:])
    np.testing.assert_array_equal(said[0], [True, True, False, False])
    np.testing.assert_array_equal(said[2], [False, True, True, False])
    assert len(memory) == 3
    assert record.n_comparisons == 6
    with pytest.raises(BudgetSpent) as spent:
        nearer.run(ask_screens(screens), oracle, budget=2)
    np.testing.assert_array_equal(spent.value.answers, said[:2])


def test_a_session_takes_screens_and_shrugs():
    screens = [[0, 1, 2, 3], [1, 0, 2, 3]]
    session = nearer.asking.Session(ask_screens(screens))
    session.tell(np.array([[0, 3, 2, 1]]), np.array([[False, True, False]]))
    np.testing.assert_array_equal(session.open, [[1, 0, 2, 3]])
    session.tell(session.open, [None])  # a sort would need to know: it is put again
    np.testing.assert_array_equal(session.open, [[1, 0, 2, 3]])
    session.tell(session.open, np.array([[True, False, False]]))
    np.testing.assert_array_equal(session.result, [[False, True, False], [True, False, False]])


@given(st.integers(3, 6), st.integers(1, 2), st.integers(0, 99))
def test_every_simulated_oracle_answers_screens(m, choose, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    screens = np.array([rng.permutation(12)[: m + 1] for _ in range(5)])
    screens[0, 0] = -1
    exact = nearer.PointOracle(X, choose=choose)
    people = [nearer.asking.Person(), nearer.asking.Person(lapse=1)]
    for oracle in (
        exact,
        nearer.DistanceOracle(np.linalg.norm(X[:, None] - X, axis=2), choose=choose),
        nearer.NoisyOracle(exact, 0.5, random_state=seed),
        nearer.NoisyOracle(exact, 0.5, noise="fresh", random_state=seed),
        nearer.asking.PsychometricOracle(X, scale=0.5, lapse=0.2, choose=choose, random_state=seed),
        nearer.asking.CrowdOracle(X, people, scale=0.5, choose=choose, random_state=seed),
    ):
        said = oracle(screens)
        assert said.dtype == bool
        assert (said.sum(axis=1) == choose).all()
    sure = nearer.asking.PsychometricOracle(X, scale=1e-9, choose=choose, random_state=seed)
    np.testing.assert_array_equal(sure(screens), exact(screens))
    doubting = nearer.asking.PsychometricOracle(X, scale=1.0, choose=choose, random_state=seed)
    np.testing.assert_array_equal(doubting(screens), doubting(screens[::-1])[::-1])


def test_the_odd_one_out_is_the_farthest_from_the_others():
    oracle = nearer.PointOracle(np.array([[0.0], [1.0], [9.0], [1.5]]))
    np.testing.assert_array_equal(
        oracle(np.array([[-1, 0, 2, 1], [-1, 3, 0, 1]])),
        [[False, True, False], [False, True, False]],
    )


def test_as_triplets_leaves_the_questions_alone():
    questions = np.array([[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(
        answered(questions, np.array([False, True])), [[0, 2, 1], [3, 4, 5]]
    )
    np.testing.assert_array_equal(questions, [[0, 1, 2], [3, 4, 5]])
