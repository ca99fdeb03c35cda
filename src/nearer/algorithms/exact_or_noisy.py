"""Exact answers one way, noisy ones the other: what `nearer.embed` runs.

A few cyclic and repeated questions tell which (`nearer.algorithms.noise_check`). Exact answers are
worth sorting by (`nearer.adaptive`); noisy ones shift a posterior (`nearer.informative`). What the
check showed is the first phase of the history, and its answers are not asked again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from nearer.algorithms.adaptive import adaptive
from nearer.algorithms.informative import informative
from nearer.algorithms.noise_check import NoiseCheck, detect_noise
from nearer.asking.memory import Memory
from nearer.asking.noisy_sorting import check_noise
from nearer.asking.protocol import (
    Asking,
    Ties,
    decided,
    doubtful,
    limited,
    recorded,
    remembered,
)
from nearer.asking.recipe import repeatable
from nearer.asking.record import Record
from nearer.embedding import Embedding, Phase
from nearer.errors import InvalidInput

__all__ = ["Expected", "exact_or_noisy"]

Expected = float | Literal["auto"]

_FEW = 3000  # of more objects, hardly a question comes again, and a memory of millions is slow
_CYCLES = 60
_SHARE = 40  # of the budget one comparison in so many checks; a cycle takes four
_NOISY = 20  # n·log2 n comparisons, where answers are noisy and no budget is given


@repeatable
@doubtful
def exact_or_noisy(
    n_objects: int,
    *,
    budget: int | None = None,
    noise: Expected = "auto",
    random_state: int | np.random.Generator | None = None,
) -> Asking[Embedding]:
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
    if n_objects < 3:
        raise InvalidInput(
            f"n_objects={n_objects}: at least 3 objects are needed, a head and two to compare"
        )
    if budget is not None and budget < 0:
        raise InvalidInput(f"budget={budget}: must be at least 0 comparisons")
    rng = np.random.default_rng(random_state)
    if noise != "auto":
        return _go_on(int(n_objects), budget, check_noise(noise) > 0, rng)
    n_cycles = min(_CYCLES, 2 * n_objects)
    if budget is not None:
        n_cycles = min(n_cycles, budget // (4 * _SHARE))
    if n_objects < 4 or n_cycles < 1:
        return _sorting(int(n_objects), budget, rng)
    return _check_first(int(n_objects), budget, n_cycles, rng)


def _go_on(n: int, budget: int | None, noisy: bool, rng: np.random.Generator) -> Asking[Embedding]:
    if not noisy:
        return _sorting(n, budget, rng)
    if budget is None:
        budget = round(_NOISY * n * np.log2(n))
    return informative(n, budget=max(1, budget), random_state=rng)


def _sorting(n: int, budget: int | None, rng: np.random.Generator) -> Asking[Embedding]:
    """The exact way, which needs every answer: what nobody knows is asked again, then decided."""
    ties = Ties()
    asking = decided(adaptive(n, budget=budget, random_state=rng), ties)
    found = yield from (asking if budget is None else limited(asking, budget))
    if not ties.n_broken:
        return found
    return replace(found, details={**found.details, "n_ties_broken": ties.n_broken})


def _check_first(
    n: int, budget: int | None, n_cycles: int, rng: np.random.Generator
) -> Asking[Embedding]:
    record = Record()
    check: NoiseCheck = yield from recorded(
        decided(detect_noise(n, n_cycles=n_cycles, random_state=rng)), record
    )
    phase = Phase("check", record.n_comparisons, record.n_rounds, str(check))
    left = None if budget is None else budget - record.n_comparisons
    rest = _go_on(n, left, not check.exact, rng)
    if check.exact and n <= _FEW:
        rest = remembered(rest, Memory(check.triplets))
    found = yield from recorded(rest if left is None else limited(rest, left), record)
    return replace(
        found,
        triplets=record.triplets,
        n_comparisons=record.n_comparisons,
        n_rounds=record.n_rounds,
        history=(phase, *found.history),
        details={**found.details, "noise_check": check},
    )
