"""New objects among old ones where answers may be wrong."""

import numpy as np
import pytest

import nearer
from nearer.algorithms.noisy_placing import place_noisily
from nearer.errors import InvalidInput

X = np.random.default_rng(5).normal(size=(46, 2))
PEOPLE = nearer.NoisyOracle(nearer.PointOracle(X), 0.15, noise="fresh", random_state=0)
OLD = nearer.run(nearer.informative(40, budget=1500, n_components=2, random_state=0), PEOPLE)


def errors(placed):
    """How far from the truth the new objects are, in units of the map's spread."""
    both = np.concatenate([OLD.positions, placed.positions])
    laid = nearer.metrics.procrustes(X, both).aligned
    return np.linalg.norm(laid - X, axis=1)[40:] / X.std()


def test_noisy_answers_place_new_objects_better_than_sorting():
    asked = []

    def people(questions):
        asked.append(np.asarray(questions))
        return PEOPLE(questions)

    placed = OLD.place(people, np.arange(40, 46))
    sorted_in = nearer.run(nearer.algorithms.place_objects(OLD, np.arange(40, 46)), PEOPLE)
    rows = np.concatenate(asked)
    assert ((rows >= 40).sum(axis=1) == 1).all()
    assert len(rows) == placed.n_comparisons
    assert np.median(errors(placed)) < 0.25
    assert np.median(errors(placed)) < np.median(errors(sorted_in))


def test_a_budget_and_doubt_are_borne():
    placed = nearer.run(
        place_noisily(OLD, np.array([44, 41]), random_state=0),
        lambda questions: [None] * len(questions),
        budget=30,
    )
    assert placed.n_comparisons == 30
    assert placed.positions.shape == (2, 2)
    assert len(OLD.place(PEOPLE, np.arange(40, 40)).positions) == 0


@pytest.mark.parametrize("new", [[39], [40, 40]])
def test_old_and_repeated_objects_are_refused(new):
    with pytest.raises(InvalidInput, match="new objects must be numbered from 40 on"):
        OLD.place(PEOPLE, new)
