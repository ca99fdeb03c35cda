"""Which of a person's questions are checks: drawn by plan, not by chance.

A flag needs a number of checks before it can fire. If every trial were a check with some
probability, one person in seven would meet no catch trial at all. So a person's questions are
taken in blocks, and each block gets as many checks of every kind as its share says, never fewer
than the flags need; where in the block they come is drawn, one in each equal part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from nearer.study.config import Config

__all__ = ["FEWEST_CATCH", "FEWEST_REPEATS", "GAP", "due"]

FEWEST_CATCH = 2  # catch trials that the flag needs
FEWEST_REPEATS = 4  # repeats that both times were decided, which the flag needs
_PLANNED_REPEATS = 5  # one may meet an answer that was skipped
_LONG_ENOUGH = 20  # questions below which there is no room for so many checks
_BLOCK = 50
GAP = 5  # questions between one and its repeat, at least

#: what is due first where two kinds are due
_KINDS = ("catch", "repeat", "holdout", "own")


def due(config: Config, person: int, number: int, given: Mapping[str, int], own: bool) -> list[str]:
    """The kinds of check of which one should be a person's question of this number (from 0).

    What comes first is due first; another one is where there can be none of that kind, as no catch
    trial among odd ones out. Without any, it should be a real one.

    Parameters
    ----------
    given
        How many of each kind the person has had.
    own
        Whether the researcher brought questions.
    """
    block, place = divmod(number, _length(config.questions))
    counts = _counts(config, own)
    so_far = _plan(counts, _length(config.questions), config.seed, person, block)[place]
    return [
        kind
        for kind, count, here in zip(_KINDS, counts, so_far, strict=True)
        if block * count + here > given.get(kind, 0)
    ]


def _length(questions: int) -> int:
    """Blocks of about fifty, all of the same length."""
    return -(-questions // max(round(questions / _BLOCK), 1))


def _counts(config: Config, own: bool) -> tuple[int, int, int, int]:
    """Checks of each kind in a block."""
    length = _length(config.questions)
    room = length >= _LONG_ENOUGH
    catch, repeat = round(config.catch_share * length), round(config.repeat_share * length)
    if room and config.catch_share:
        catch = max(catch, FEWEST_CATCH)
    if room and config.repeat_share:
        repeat = max(repeat, _PLANNED_REPEATS)
    share = config.own_share if own else 0.0
    return catch, repeat, round(config.holdout_share * length), round(share * length)


@lru_cache(maxsize=4096)
def _plan(
    counts: tuple[int, ...], length: int, seed: int, person: int, block: int
) -> tuple[tuple[int, ...], ...]:
    """How many checks of each kind should have come, up to every place of a block."""
    rng = np.random.default_rng([seed, person, block])
    kind_at = np.full(length, -1)
    for kind, count in enumerate(counts):
        # A repeat needs something to repeat, in the first block.
        first = min(2 * GAP, length // 2) if kind == 1 and not block else 0
        edges = np.linspace(first, length, count + 1)
        for k in range(count):
            at = int(rng.uniform(edges[k], edges[k + 1]))
            free = np.flatnonzero(kind_at < 0)
            if len(free):
                kind_at[free[np.argmin(np.abs(free - at))]] = kind
    met = np.cumsum(kind_at[:, None] == np.arange(len(counts)), axis=0)
    return tuple(tuple(row) for row in met.tolist())
