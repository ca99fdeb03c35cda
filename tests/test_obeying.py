"""When another dimension is taken: it must predict what no fit in as many as before predicts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nearer
from nearer.algorithms import frame, obeying
from nearer.algorithms.obeying import one_more_dimension
from nearer.asking.oracles import PointOracle
from nearer.fitting.fit import Fit
from nearer.fitting.solver import disobeyed
from nearer.questions import Floats, Triplets, answered, random_questions


@pytest.mark.parametrize(("fit_in_two", "expected"), [(0.003, 2), (0.5, 3)])
def test_the_fit_that_chose_the_questions_is_not_all_that_another_dimension_must_beat(
    fit_in_two: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions that a fit cannot answer are answered better by any other fit.

    Among thousands of objects a descent in as many dimensions may obey a little less than the fit
    that chose the questions, and yet predict their answers as well as one in more dimensions does.
    """
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2))
    questions = random_questions(60, 4000, rng)
    triplets = answered(questions, PointOracle(points)(questions))
    chose = points + 0.05 * rng.normal(size=points.shape)
    wrong = disobeyed(chose, triplets)
    seen, fresh = triplets[~wrong], triplets[wrong]

    def fits(*_: object) -> list[Fit]:
        def near(spread: float, d: int) -> Floats:
            X = np.hstack([points, np.zeros((60, d - 2))])
            return np.asarray(X + spread * rng.normal(size=X.shape))

        found = [near(0.001, 4), near(0.001, 3), near(fit_in_two, 2)]
        return [Fit(X, loss=0.0, n_iter=1, converged=True) for X in found]

    monkeypatch.setattr(obeying, "descend", fits)
    evidence: dict[int, dict[str, object]] = {}
    found = one_more_dimension(seen, fresh, chose, evidence, rng)
    assert found.shape[1] == expected
    assert evidence.keys() == {2, 3}


def test_where_nothing_is_left_to_ask_what_obeys_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """All objects are heads: no answer is unseen, and none tells a dimension fewer from ties."""
    line = np.arange(4.0)[:, None]
    plane = np.hstack([line, np.zeros((4, 1))])
    monkeypatch.setattr(frame, "fewest_dimensions", _two_fits(plane, line))
    known = frame.Frame(np.arange(4))
    strategy = frame.build_frame(known, 4, "fewest-comparisons", np.random.default_rng(0))
    nearer.run(strategy, PointOracle(line))
    assert len(known.heads) == 4
    assert known.dimension == 2


def _two_fits(more: Floats, fewer: Floats) -> Callable[..., list[Floats]]:
    """Nothing obeys until all objects are heads; then one dimension fewer may do, too."""

    def fits(triplets: Triplets, _: Floats, evidence: dict[int, object]) -> list[Floats]:
        evidence[more.shape[1]] = {}
        return [more, fewer] if len(np.unique(triplets[:, 0])) == len(more) else []

    return fits
