from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearer.trials import examine

N = 7
TRIPLETS = st.lists(
    st.permutations(range(N)).map(lambda order: order[:3]), min_size=1, max_size=40
).map(np.array)


def slow_groups(rows):
    group = {i: {i} for i in range(N)}
    for row in rows.tolist():
        joined = set().union(*(group[i] for i in row))
        for i in joined:
            group[i] = joined
    return {tuple(sorted(group[i])) for i in np.unique(rows).tolist()}


@given(TRIPLETS)
def test_counts_agree_with_the_obvious_way(rows):
    report = examine(rows, [str(i) for i in range(N)])
    answers = Counter(map(tuple, rows.tolist()))
    assert report.duplicates == len(rows) - len(answers)
    questions = {(h, *sorted((a, b))) for h, a, b in answers}
    both = [q for q in questions if answers[q] and answers[q[0], q[2], q[1]]]
    assert report.contradictions == len(both)
    asked = {q: (answers[q], answers[q[0], q[2], q[1]]) for q in questions}
    repeated = [pair for pair in asked.values() if sum(pair) > 1]
    if repeated:
        assert report.disagreement == sum(map(min, repeated)) / sum(map(sum, repeated))
    else:
        assert report.disagreement is None
    assert report.never_compared == tuple(sorted(set(range(N)) - set(rows.ravel().tolist())))
    assert set(report.groups) == slow_groups(rows)
    sizes = [len(group) for group in report.groups]
    assert sizes == sorted(sizes, reverse=True)


@given(TRIPLETS, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    labels = [str(i) for i in range(N)]
    assert examine(rows, labels) == examine(rows[order], labels)


def test_long_lists_are_cut_short():
    report = examine(
        np.array([[0, 1, 2]]),
        [f"o{i}" for i in range(40)],
        rows=30,
        persons=3,
        degenerate=range(2, 22),
        unread_columns=["rt"],
    )
    text = str(report)
    assert "30 answers from 3 participants, 1 triplet over 40 objects" in text
    assert "20 (lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 10 more)" in text
    assert "o12 and 27 more" in text
    assert "columns not used: rt" in text
