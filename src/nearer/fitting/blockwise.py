"""Passes over more answers than memory holds: block after block, each read again in every pass.

The sums of a pass are added up in the order of the blocks, so a fit gives the same bits every
time. All answers count the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.device import wants_gpu
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.on_gpu import GpuPasses
from nearer.fitting.solver import Passes, disobeyed

__all__ = ["BlockPasses", "Blocks", "lay_out"]

_MOST_DRAWN = 1 << 25  # answers in memory on the way down: 384 MiB
_BLOCK = 1 << 22  # … of which so many are passed over at a time, which bounds the gradients held

Watch = Callable[[float], object]


class Blocks(Protocol):
    """Triplets that can be read as often as wanted; `nearer.triplets.stored` has them on disk."""

    @property
    def n_objects(self) -> int:
        """How many objects there are."""
        ...

    @property
    def n_kept(self) -> int:
        """How many rows there are."""
        ...

    @property
    def n_seen(self) -> int:
        """How many of them, the first ones, are not held out."""
        ...

    def blocks(self, n_rows: int) -> Iterator[NDArray[np.int32]]:
        """The first rows, block by block."""
        ...


def lay_out(answers: Blocks, watch: Watch = bool) -> tuple[Passes | GpuPasses, Passes | GpuPasses]:
    """Passes over the answers that are not held out, and over all.

    On a GPU where one is wanted and has room for all of them. `watch` is told how much of a pass
    on the processor is done.
    """
    if wants_gpu(answers.n_kept, answers.n_objects):
        every = GpuPasses.of_blocks(
            answers.blocks(answers.n_kept), answers.n_kept, answers.n_objects
        )
        return every.first(answers.n_seen), every
    return BlockPasses(answers, answers.n_seen, watch), BlockPasses(answers, answers.n_kept, watch)


class BlockPasses(Passes):
    """The first rows of answers that are read block by block."""

    def __init__(self, answers: Blocks, n_rows: int, watch: Watch = bool) -> None:
        self._answers, self._n_rows, self._watch = answers, n_rows, watch
        self.n_objects, self.total = answers.n_objects, float(n_rows)

    def __len__(self) -> int:
        return self._n_rows

    def sums(self, loss: Loss, X: Floats) -> tuple[float, Floats]:
        """One pass: the sum of the losses, and its gradient."""
        value, gradient = 0.0, np.zeros(X.shape)
        for rows in self._blocks():
            more, slope = loss.sums(X, rows)
            value += more
            gradient += slope
        return value, gradient

    def share_disobeyed(self, X: Floats) -> float:
        """How much of the answers the positions contradict."""
        wrong = sum(int(disobeyed(X, rows).sum()) for rows in self._blocks())
        return wrong / max(self.total, 1.0)

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        n, d = X.shape
        told = np.zeros((n, d, d))
        for rows in self._blocks():
            told += Passes(rows, None, n).information(X, lapse, tail)
        return told

    def few(self, size: int, rng: np.random.Generator) -> Passes:
        """Some of the answers, drawn at random from every block, in memory."""
        share = min(size, _MOST_DRAWN) / max(len(self), 1)
        drawn, at = np.empty((math.ceil(share * len(self)), 3), dtype=np.int32), 0
        for rows in self._blocks():
            count = min(math.ceil(share * len(rows)), len(drawn) - at)
            drawn[at : at + count] = rows[np.sort(rng.integers(len(rows), size=count))]
            at += count
        return BlockPasses(_InMemory(drawn[:at], self.n_objects), at)

    def _blocks(self) -> Iterator[NDArray[np.int32]]:
        done = 0
        for rows in self._answers.blocks(self._n_rows):
            yield rows
            done += len(rows)
            self._watch(done / self._n_rows)


@dataclass(frozen=True)
class _InMemory:
    """Blocks of an array."""

    rows: NDArray[np.int32]
    n_objects: int

    @property
    def n_kept(self) -> int:
        return len(self.rows)

    n_seen = n_kept

    def blocks(self, n_rows: int) -> Iterator[NDArray[np.int32]]:
        for start in range(0, n_rows, _BLOCK):
            yield self.rows[start : min(start + _BLOCK, n_rows)]
