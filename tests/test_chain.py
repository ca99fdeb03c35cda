"""Maps that noisy answers leave possible: as often as they are probable."""

import numpy as np
import pytest

from nearer import Trials
from nearer.fitting.draws import draw_maps
from nearer.fitting.likelihood import Noise, as_answers
from nearer.fitting.posterior import fit_posterior

ANSWERS = np.array([[0, 1, 2]] * 6 + [[1, 0, 2]] * 3 + [[0, 2, 1]] + [[3, 2, 0]] * 5 + [[2, 0, 3]])


def counted(distance, tail):
    squared = np.square(distance)
    return (tail + 1) / 2 * np.log1p(squared / tail) if np.ndim(tail) else distance


def margins(X, rows, tail=0):
    """By how much far is farther than near in each of many maps on a line, ``(maps, rows)``."""
    near, far = (X[:, rows[:, 0]] - X[:, rows[:, i]] for i in (1, 2))
    return counted(abs(far), tail) - counted(abs(near), tail)


def figures(X, weights=None):
    """How often this is nearer than that, and shares of distances: nothing that scale changes."""
    rows = np.array([[0, 1, 2], [1, 0, 2], [3, 2, 0], [3, 2, 1], [2, 3, 1]])
    order = (margins(X, rows) > 0).T
    share = abs(X[:, 0] - X[:, 1]) / np.ptp(X, axis=1)
    return np.array([np.average(x, weights=weights) for x in (*order, share, share**2)])


@pytest.mark.slow
@pytest.mark.parametrize("curve", ["logistic", "t"])
def test_draws_are_the_posterior_of_positions_and_noise(curve):
    """Beside maps from the prior, each of which counts by how likely it makes the answers."""
    rng = np.random.default_rng(0)
    k = 200_000
    width = np.exp(rng.uniform(np.log(1 / 16), np.log(16), size=(k, 1)))
    X = width * rng.normal(size=(k, 4))
    lapse = rng.uniform(0, 0.45, size=(k, 1))
    tail = np.exp(rng.uniform(np.log(1 / 16), np.log(16), size=(k, 1))) if curve == "t" else 0
    right = lapse + (1 - 2 * lapse) / (1 + np.exp(-np.clip(margins(X, ANSWERS, tail), -700, 700)))
    expected = figures(X, right.prod(axis=1))

    if curve == "t":
        answers = as_answers(Trials.from_triplets(ANSWERS), 4)
    else:
        answers = as_answers(ANSWERS, 4)
    fit = fit_posterior(answers, 1, Noise(tail=float(curve == "t")), rng=rng)
    drawn = draw_maps(fit, answers, 8000, rng)
    assert drawn.shape == (8000, 4, 1)
    assert figures(drawn[:, :, 0]) == pytest.approx(expected, abs=0.05)


def test_draws_come_from_the_generator_and_leave_the_fit_alone():
    answers = as_answers(ANSWERS, 4)
    fit = fit_posterior(answers, 2, Noise(40.0, lapse=0.1), rng=np.random.default_rng(0))
    before = fit.positions.copy()
    first, again = (draw_maps(fit, answers, 3, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, again)
    assert np.array_equal(fit.positions, before)
