"""Exact answers one way, noisy ones the other: what `nearer.embed` runs.

A few cyclic and repeated questions tell which (`nearer.algorithms.noise_check`). Exact answers are
worth sorting by (`nearer.adaptive`); noisy ones shift a posterior (`nearer.informative`). What the
check showed is the first phase of the history; its answers are learned, and not asked again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.algorithms.adaptive import Economy, adaptive
from nearer.algorithms.budgets import MOST_WRONG, noisy_budget
from nearer.algorithms.informative import informative
from nearer.algorithms.noise_check import NoiseCheck, detect_noise
from nearer.algorithms.noisy_core import TOGETHER, noisy_core
from nearer.asking.protocol import (
    Strategy,
    Ties,
    accepts_uncertain,
    forced_choice,
    limited,
    recorded,
    repeatable,
)
from nearer.asking.record import Record
from nearer.embedding import Embedding, Phase

__all__ = ["Expected", "exact_or_noisy"]

Expected = float | Literal["auto"]

# Cycles: as many as objects, but at least and at most so many. A fifth of answers wrong, always in
# the same way, is overlooked one time in eight with the fewest ((1 − .16)¹²), and hardly ever with
# the most.
_FEWEST_CYCLES, _CYCLES = 12, 60
_UNSURE = 0.05  # share of "don't know" from which on sorting would build on broken ties: a guess
_SHARE = 40  # of the budget one comparison in so many checks, 2.5 %; a cycle takes four


@repeatable
@accepts_uncertain
def exact_or_noisy(
    n_objects: int,
    *,
    budget: int | None = None,
    noise: Expected = "auto",
    order: Economy = "fewest-comparisons",
    quality: float = 0.99,
    keep_triplets: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """Find positions whether or not answers can be trusted.

    Parameters are those of `nearer.embed`.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> exact = nearer.PointOracle(np.random.default_rng(0).normal(size=(60, 2)))
    >>> people = nearer.NoisyOracle(exact, flip=0.15, random_state=0)
    >>> found = nearer.run(exact_or_noisy(60, budget=2000, random_state=0), people)
    >>> [phase.name for phase in found.history], found.n_comparisons
    (['check', 'informative'], 2000)
    """
    n = checks.n_objects(n_objects)
    budget = None if budget is None else checks.budget(budget)
    checks.probability("quality", quality)
    rng = checks.generator(random_state)
    n_cycles = min(_CYCLES, max(_FEWEST_CYCLES, n))
    if budget is not None:
        n_cycles = min(n_cycles, budget // (4 * _SHARE))
    rate = 0.0 if noise == "auto" else checks.rate("noise", noise)
    if rate:
        strategy = _noisy(n, budget, rate, None, quality, rng)
    elif noise == "auto" and n >= 4 and n_cycles >= 1:
        strategy = _check_first(n, budget, n_cycles, order, quality, keep_triplets, rng)
    else:
        strategy = _sorting(n, budget, order, quality, keep_triplets, None, rng)
    return _evident(strategy)


def _evident(strategy: Strategy[Embedding]) -> Strategy[Embedding]:
    """The same; where no answer takes a side nothing is determined, and ``n_told`` is 0.

    Ties that were broken by chance are no evidence.
    """
    record = Record(keep=False)
    found = yield from recorded(strategy, record)
    if record.n_told or not record.n_comparisons:
        return found
    return replace(
        found,
        determined=False,
        dimension_low=1,
        dimension_high=len(found.positions) - 1,
        details={**found.details, "n_told": 0},
    )


def _noisy(
    n: int,
    budget: int | None,
    rate: float,
    known: NDArray[np.int64] | None,
    quality: float,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    noise = min(rate, MOST_WRONG)
    if n > TOGETHER:
        return noisy_core(n, budget=budget, noise=noise, known=known, quality=quality, rng=rng)
    if budget is None:
        budget = noisy_budget(n, rate)
    return informative(
        n, budget=max(1, budget), noise=noise, known=known, quality=quality, random_state=rng
    )


def _sorting(
    n: int,
    budget: int | None,
    order: Economy,
    quality: float,
    keep_triplets: bool,
    known: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    """The exact way, which needs every answer: what nobody knows is asked again, then decided."""
    ties = Ties()
    strategy = adaptive(
        n,
        budget=budget,
        order=order,
        quality=quality,
        keep_triplets=keep_triplets,
        known=known,
        random_state=rng,
    )
    strategy = forced_choice(strategy, ties)
    found = yield from (strategy if budget is None else limited(strategy, budget))
    if not ties.n_broken:
        return found
    return replace(found, details={**found.details, "n_ties_broken": ties.n_broken})


def _check_first(
    n: int,
    budget: int | None,
    n_cycles: int,
    order: Economy,
    quality: float,
    keep_triplets: bool,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    record = Record()
    check: NoiseCheck = yield from recorded(
        forced_choice(detect_noise(n, n_cycles=n_cycles, random_state=rng)), record
    )
    phase = Phase("check", record.n_comparisons, record.n_rounds, str(check))
    left = None if budget is None else budget - record.n_comparisons
    unsure = record.n_unsure / max(1, record.n_comparisons)
    if not check.exact or unsure > _UNSURE:
        rate = max(check.error_rate, unsure / 2)  # a coin would be right half of the time
        rest = _noisy(n, left, rate, record.triplets, quality, rng)
    else:  # triplets are kept once: here
        rest = _sorting(n, left, order, quality, False, check.triplets, rng)
    if not keep_triplets:
        record.forget()
    found = yield from recorded(rest if left is None else limited(rest, left), record)
    return replace(
        found,
        triplets=record.triplets,
        n_comparisons=record.n_comparisons,
        n_rounds=record.n_rounds,
        history=(phase, *found.history),
        details={**found.details, "noise_check": check},
    )
