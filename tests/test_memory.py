"""Memory against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearer
from nearer.errors import InvalidInput
from nearer.questions import MAX_OBJECTS

answered = st.lists(
    st.tuples(st.permutations(range(5)).map(lambda p: tuple(p[:3])), st.booleans()), max_size=12
)


@given(st.lists(answered, max_size=8))
def test_like_a_dictionary(batches):
    memory, facts = nearer.asking.Memory(), {}
    for batch in batches:
        if batch:
            questions = np.array([q for q, _ in batch])
            memory.add(questions, np.array([a for _, a in batch]))
        for (h, a, b), answer in batch:
            facts.setdefault((h, min(a, b), max(a, b)), answer == (a < b))
    assert len(memory) == len(facts)
    every = np.array([(h, a, b) for h in range(5) for a in range(5) for b in range(5) if a != b])
    answers, known = memory.recall(every)
    for (h, a, b), answer, is_known in zip(every.tolist(), answers, known, strict=True):
        fact = facts.get((h, min(a, b), max(a, b)))
        assert is_known == (fact is not None)
        if fact is not None:
            assert answer == (fact == (a < b))
    again = nearer.asking.Memory(memory.triplets)
    np.testing.assert_array_equal(again.recall(every), (answers, known))


def test_unknown_keeps_the_order_and_drops_repeats():
    memory = nearer.asking.Memory(np.array([[0, 1, 2]]))
    questions = np.array([[3, 2, 1], [0, 2, 1], [3, 1, 2], [4, 1, 2]])
    np.testing.assert_array_equal(memory.unknown(questions), [[3, 2, 1], [4, 1, 2]])


@pytest.mark.parametrize("bad", [-1, MAX_OBJECTS])
def test_objects_out_of_reach_are_named(bad):
    with pytest.raises(InvalidInput, match=str(bad)):
        nearer.asking.Memory().recall(np.array([[0, 1, bad]]))


def test_a_million_facts():
    rng = np.random.default_rng(0)
    memory = nearer.asking.Memory()
    for _ in range(20):
        questions = rng.integers(2000, size=(50_000, 3))
        memory.add(questions, questions[:, 1] < questions[:, 2])
    answers, known = memory.recall(questions)
    assert known.all()
    np.testing.assert_array_equal(answers, questions[:, 1] < questions[:, 2])
