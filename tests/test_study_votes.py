from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearer.study.board import RULES, tally

votes = st.lists(st.sampled_from([True, False, None]), max_size=12)
rules = st.sampled_from(sorted(RULES))


@given(rules, votes)
def test_asking_on_always_comes_to_an_end(rule, cast):
    """Whatever people say, a question is closed after a bounded number of votes."""
    cast = list(cast)
    for vote in [True, False, None] * 6:
        if tally(rule, cast).wanted == 0:
            return
        cast.append(vote)
    pytest.fail(f"{rule} is still open after {cast}")


@given(rules, votes, votes)
def test_late_votes_never_overturn_a_decision(rule, first, late):
    verdict = tally(rule, first)
    if verdict.answer is not None:
        assert tally(rule, first + late).answer == verdict.answer


@given(rules, votes)
def test_mirrored_votes_give_the_mirrored_verdict(rule, cast):
    verdict = tally(rule, cast)
    mirrored = tally(rule, [None if vote is None else not vote for vote in cast])
    assert mirrored.wanted == verdict.wanted
    assert mirrored.answer == (None if verdict.answer is None else not verdict.answer)


def test_two_who_agree_are_enough_and_a_third_decides_when_they_do_not():
    for a, b, c in product([True, False], repeat=3):
        two = tally("2+1", [a, b])
        assert two.wanted == (0 if a == b else 1)
        assert tally("2+1", [a, b, c]).answer == (a + b + c >= 2)


@pytest.mark.parametrize(("rule", "people"), [("1", 1), ("3", 3), ("5", 5)])
def test_a_plain_rule_asks_exactly_its_number_of_people(rule, people):
    for cast in product([True, False], repeat=people):
        for k in range(people):
            assert tally(rule, cast[:k]).wanted == people - k
        assert tally(rule, cast) == (sum(cast) > people / 2, 0, False)


def test_a_question_nobody_can_decide_is_given_up():
    assert tally("1", [None, None]).wanted == 1
    assert tally("1", [None, None, None]) == (None, 0, True)
