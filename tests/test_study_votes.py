from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearer.study.board import votes_wanted

votes = st.lists(st.sampled_from([True, False, None]), max_size=12)
rules = st.sampled_from(["1", "2+1", "3", "5"])


@given(rules, votes)
def test_asking_on_always_comes_to_an_end(rule, cast):
    """Whatever people say, a question is closed after a bounded number of votes."""
    cast = list(cast)
    for vote in [True, False, None] * 6:
        if not votes_wanted(rule, cast):
            return
        cast.append(vote)
    pytest.fail(f"{rule} is still open after {cast}")


@given(rules, votes, votes)
def test_late_votes_never_open_a_question_that_is_decided(rule, first, late):
    if votes_wanted(rule, first) == 0:
        assert votes_wanted(rule, first + late) == 0


@given(rules, votes)
def test_mirrored_votes_give_the_mirrored_verdict(rule, cast):
    mirrored = [None if vote is None else not vote for vote in cast]
    assert votes_wanted(rule, mirrored) == votes_wanted(rule, cast)


def test_two_who_agree_are_enough_and_a_third_decides_when_they_do_not():
    for a, b, c in product([True, False], repeat=3):
        assert votes_wanted("2+1", [a, b]) == (0 if a == b else 1)
        assert votes_wanted("2+1", [a, b, c]) == 0


@pytest.mark.parametrize(("rule", "people"), [("1", 1), ("3", 3), ("5", 5)])
def test_a_plain_rule_asks_exactly_its_number_of_people(rule, people):
    for cast in product([True, False], repeat=people):
        for k in range(people):
            assert votes_wanted(rule, cast[:k]) == people - k
        assert votes_wanted(rule, cast) == 0


def test_a_question_that_stays_undecided_is_dropped():
    assert votes_wanted("1", [None, None]) == 1
    assert votes_wanted("1", [None, None, None]) is None
