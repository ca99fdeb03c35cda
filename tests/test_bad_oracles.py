"""Oracles, prices, journals and points that cannot be used, and answers that nobody knows."""

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput, OracleError


@pytest.mark.parametrize("said", [True, None, 3, {}])
def test_an_oracle_that_answers_a_round_with_one_thing_is_named(said):
    with pytest.raises(OracleError, match=f"the oracle returned {said} for .* must return one"):
        nearer.embed(lambda questions: said, 12, progress=False)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"max_cost": "x"}, "max_cost='x'"),
        ({"cost": lambda block: "x", "max_cost": 1.0}, "cost returned 'x'"),
    ],
)
def test_prices_that_are_no_numbers_are_named(how, message):
    oracle = nearer.PointOracle(np.arange(12.0))
    with pytest.raises(InvalidInput, match=message):
        nearer.embed(oracle, 12, progress=False, **how)


def test_a_folder_or_a_scrap_of_a_file_is_no_journal(tmp_path):
    oracle, scrap = nearer.PointOracle(np.arange(12.0)), tmp_path / "scrap.db"
    scrap.write_bytes(b"x")
    for path, message in ((tmp_path, "is a folder"), (scrap, "is not a journal")):
        with pytest.raises(InvalidInput, match=message):
            nearer.embed(oracle, 12, journal=path, random_state=0, progress=False)
    assert scrap.read_bytes() == b"x"


def test_many_answers_of_dont_know_do_no_harm():
    rng, X = np.random.default_rng(1), np.random.default_rng(0).normal(size=(30, 2))
    exact = nearer.PointOracle(X)

    def hesitant(questions):
        return [None if rng.random() < 0.2 else bool(a) for a in exact(questions)]

    found = nearer.embed(hesitant, 30, random_state=0, progress=False)
    assert [phase.name for phase in found.history] == ["adaptive"]
    assert found.dimension <= 3


@pytest.mark.parametrize("scale", [1j, 1e200, 1e-200])
def test_points_whose_distances_are_no_numbers_are_refused(scale):
    with pytest.raises(InvalidInput, match=r"complex|rescale"):
        nearer.PointOracle(np.ones((5, 2)) * scale)
