"""Oracles, prices, journals and points that cannot be used; answers that are all "don't know"."""

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput, OracleError


@pytest.mark.parametrize("said", [True, None, 3, {}])
def test_an_oracle_that_answers_a_round_with_one_thing_is_named(said):
    with pytest.raises(OracleError, match=f"the oracle returned {said}, .* must return one"):
        nearer.embed(lambda questions: said, 12, progress=False)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"max_cost": "x"}, "max_cost='x'"),
        ({"cost": lambda block: "x", "max_cost": 1.0}, "cost='x'"),
        ({"cost": lambda block: np.nan, "max_cost": 1.0}, "cost=nan"),
        ({"cost": lambda block: -0.1, "max_cost": 1.0}, "cost=-0.1"),
        ({"max_cost": np.nan}, "max_cost=nan"),
    ],
)
def test_prices_that_are_no_numbers_are_named(how, message):
    oracle = nearer.PointOracle(np.arange(12.0))
    with pytest.raises(InvalidInput, match=message):
        nearer.embed(oracle, 12, progress=False, **how)


@pytest.mark.parametrize("cost", [np.nan, -1.0, "x"])
def test_a_price_that_is_known_afterwards_must_be_a_number_too(cost):
    def oracle(questions):
        return nearer.PricedAnswers([True] * len(questions), cost=cost)

    with pytest.raises(InvalidInput, match=f"cost={cost!r}"):
        nearer.run(nearer.rank_objects(0, 12), oracle, max_cost=10)


def yields(rows):
    return (yield rows)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (5, "strategy=5: must be a generator"),
        (nearer.rank_objects, "call the function that makes it"),
        ([[0, 1, 2]], r"yielded \[\[0, 1, 2\]\] in line \d+ of .*: it must yield \(m, 3\) arrays"),
        (None, "yielded None"),
        (np.ones((2, 3)), r"shape \(2, 3\) and type float64"),
        (np.arange(3), r"shape \(3,\) and type int64"),
        (np.zeros((4, 2), dtype=int), r"shape \(4, 2\)"),
    ],
)
@pytest.mark.parametrize("how", [{}, {"budget": 9}])
def test_what_is_no_strategy_and_rounds_that_are_none_are_named(strategy, message, how):
    if not callable(strategy) and not isinstance(strategy, int):
        strategy = yields(strategy)
    with pytest.raises(InvalidInput, match=message):
        nearer.run(strategy, nearer.PointOracle(np.arange(12.0)), **how)


def test_the_line_of_a_round_that_is_none_is_named_through_other_strategies():
    def passing_on():
        return (yield from yields([[0, 1, 2]]))

    line = yields.__code__.co_firstlineno + 1
    for strategy in (passing_on(), nearer.asking.together(yields([[0, 1, 2]]))):
        with pytest.raises(InvalidInput, match=f"in line {line} of .*test_bad_oracles.py"):
            nearer.run(strategy, nearer.PointOracle(np.arange(12.0)))


def test_a_folder_or_a_scrap_of_a_file_is_no_journal(tmp_path):
    oracle, scrap = nearer.PointOracle(np.arange(12.0)), tmp_path / "scrap.db"
    scrap.write_bytes(b"x")
    for path, message in ((tmp_path, "is a folder"), (scrap, "is not a journal")):
        with pytest.raises(InvalidInput, match=message):
            nearer.embed(oracle, 12, journal=path, random_state=0, progress=False)
    assert scrap.read_bytes() == b"x"


def test_many_answers_of_dont_know_do_no_harm():
    rng, X = np.random.default_rng(1), np.random.default_rng(0).normal(size=(18, 2))
    exact = nearer.PointOracle(X)

    def hesitant(questions):
        return [None if rng.random() < 0.2 else bool(a) for a in exact(questions)]

    embedding = nearer.embed(hesitant, 18, random_state=0, progress=False)
    assert [phase.name for phase in embedding.history] == ["adaptive"]
    assert embedding.dimension <= 3


@pytest.mark.parametrize("scale", [1j, 1e200, 1e-200])
def test_points_whose_distances_are_no_numbers_are_refused(scale):
    with pytest.raises(InvalidInput, match=r"complex|rescale"):
        nearer.PointOracle(np.ones((5, 2)) * scale)
