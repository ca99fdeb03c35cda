"""Sessions: answers out of order, replay at any cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearer
from nearer.errors import InvalidInput, OracleError

ORACLE = nearer.PointOracle(np.random.default_rng(3).normal(size=(25, 2)))


def basis_asking():
    return nearer.choose_basis(25, random_state=4)


def answer_some(session, rng, stop_at=None):
    """Answer open questions in random order, some at a time; stop after so many answers."""
    n_answered = 0
    while not session.done and (stop_at is None or n_answered < stop_at):
        open_now = session.open
        chosen = open_now[rng.permutation(len(open_now))[: rng.integers(1, 4)]]
        session.tell(chosen, ORACLE(chosen))
        assert not (chosen[:, None] == session.open).all(axis=2).any()
        n_answered += len(chosen)


@settings(max_examples=8)
@given(st.integers(0, 400), st.integers(0, 10))
def test_replaying_any_part_of_the_log_and_going_on_is_the_uninterrupted_run(cut, seed):
    whole = nearer.run(basis_asking(), ORACLE)
    rng = np.random.default_rng(seed)
    first = nearer.asking.Session(basis_asking())
    answer_some(first, rng, stop_at=cut)
    second = nearer.asking.Session(basis_asking(), first.triplets)
    np.testing.assert_array_equal(np.sort(first.open, axis=0), np.sort(second.open, axis=0))
    answer_some(second, rng)
    np.testing.assert_array_equal(second.result.triplets, whole.triplets)
    np.testing.assert_array_equal(second.result.coordinates(), whole.coordinates())


def test_the_first_answer_counts_and_unasked_ones_are_stored():
    session = nearer.asking.Session(nearer.rank_objects(0, 3, random_state=0))
    (question,) = session.open
    session.tell(np.array([[1, 0, 2]]), np.array([True]))
    assert not session.done
    session.tell(question[None], np.array([True]))
    assert session.done
    session.tell(question[None], np.array([False]))
    assert session.result[question[1]] == 1
    assert len(session.triplets) == 2


def test_a_result_before_its_time_and_bad_answers_are_refused():
    session = nearer.asking.Session(nearer.rank_objects(0, 5))
    with pytest.raises(InvalidInput, match="open questions"):
        session.result
    with pytest.raises(InvalidInput, match=r"must be \(m, 3\) rows"):
        session.tell(np.array([0, 1, 2]), np.array([True]))
    with pytest.raises(OracleError, match="booleans"):
        session.tell(np.array([[0, 1, 2]]), np.array([1]))


def test_a_strategy_that_asks_nothing_is_done_at_once():
    def nothing():
        return 7
        yield

    assert nearer.asking.Session(nothing()).result == 7
