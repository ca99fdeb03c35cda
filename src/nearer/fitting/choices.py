"""Choices as fits take them: items, the pairs that make them, and how far each was chosen.

One form for every task, see `nearer._kernels.choosing` for the likelihood. With a query, an item is
an object shown, its one pair (query, object). Of an odd one out, an item is what stays: the pairs
among the others. Of the most central, the pairs with the others. Equal answers are one row of
greater weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from nearer import checks
from nearer.fitting.device import gpu, wants_gpu
from nearer.fitting.solver import Fit, minimise
from nearer.questions import Floats, Objects, scattered
from nearer.trials import Trials

if TYPE_CHECKING:
    from nearer.fitting.posterior import Noise, Posterior

__all__ = ["ChoiceForecast", "Choices", "as_choices", "joined"]


@dataclass(frozen=True)
class Choices:
    """Answers of any task, equal ones counted once.

    Attributes
    ----------
    starts, spans, pairs
        Items of each row, pairs of each item, objects of each pair.
    credit
        How far each item was chosen.
    wanted, ranked, log_ways
        How many were to be chosen, whether in order, and the log of how many answers there were.
    weights, odds
        How much each row counts, and how many times likelier than at random it was to be asked.
    group
        A number for each row, the same where rows are about the same objects.
    row
        For each answer that was given, its row.
    """

    starts: NDArray[np.int64]
    spans: NDArray[np.int64]
    pairs: NDArray[np.int32]
    credit: Floats
    wanted: NDArray[np.int64]
    ranked: NDArray[np.bool_]
    log_ways: Floats
    weights: Floats
    odds: Floats
    group: NDArray[np.uint64]
    row: Objects
    n_objects: int

    def __len__(self) -> int:
        return len(self.wanted)

    @property
    def terms(self) -> int:
        """How many pairs of objects a pass goes over."""
        return len(self.pairs)

    @cached_property
    def parts(self) -> dict[int, tuple[Choices, Choices, NDArray[np.int64]]]:
        """Room for the folds that predictions are made from, again and again."""
        return {}

    def part(self, rows: NDArray[np.bool_]) -> Choices:
        """Some of the rows."""
        kept = np.flatnonzero(rows)
        items, starts = _gathered(self.starts, kept)
        pairs, spans = _gathered(self.spans, items)
        some = {
            name: getattr(self, name)[kept]
            for name in ("wanted", "ranked", "log_ways", "weights", "odds", "group")
        }
        return replace(
            self,
            starts=starts,
            spans=spans,
            pairs=self.pairs[pairs],
            credit=self.credit[items],
            **some,
        )

    @property
    def total(self) -> float:
        """How many comparisons they are worth: as many as have so many possible answers."""
        return float(self.weights @ self.log_ways) / math.log(2)

    def climb(self, noise: Noise, start: Floats, max_iter: int, tol: float) -> Fit:
        """The most probable positions under this noise, from a start."""
        total = float(self.weights.sum())
        how: Any = {"ridge": noise.ridge(total), "max_iter": max_iter, "tol": tol}
        if wants_gpu(len(self.pairs), self.n_objects):
            fit: Fit = self._on_gpu.fit(start, noise.lapse, noise.tail, **how)
            return fit
        return minimise(lambda X: self.sums(X, noise), total, start, **how)

    @cached_property
    def _on_gpu(self) -> Any:
        return gpu().GpuChoices(self)

    def loss(self, X: Floats, noise: Noise) -> float:
        """Mean negative log-likelihood."""
        return self.value_and_gradient(X, noise)[0]

    def value_and_gradient(self, X: Floats, noise: Noise) -> tuple[float, Floats]:
        """Weighted mean of −log p, and its gradient in the positions."""
        total, gradient = self.sums(X, noise)
        scale = 1.0 / max(float(self.weights.sum()), np.finfo(float).tiny)
        gradient *= scale
        return total * scale, gradient

    def sums(self, X: Floats, noise: Noise) -> tuple[float, Floats]:
        """Weighted sum of −log p, and its gradient in the positions."""
        from nearer._kernels import choosing as kernel  # noqa: PLC0415 - a GPU needs none

        total, gradient = kernel.value_and_gradient(
            X, self.starts, self.spans, self.pairs, self.credit, self.wanted, self.ranked,
            self.log_ways, self.weights, noise.lapse, noise.tail,
        )  # fmt: skip
        return float(total), gradient

    def information(self, X: Floats, noise: Noise) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        from nearer._kernels import telling  # noqa: PLC0415 - a GPU needs none

        blocks: Floats = telling.information(
            X, self.starts, self.spans, self.pairs, self.wanted, self.ranked, self.log_ways,
            self.weights, noise.lapse, noise.tail,
        )  # fmt: skip
        return blocks

    def told(
        self, X: Floats, covariances: Floats, tail: float, sharpness: float, lapse: float
    ) -> tuple[Floats, Floats]:
        """What each row's answer is expected to tell, and how unsure its utilities are."""
        from nearer._kernels import telling  # noqa: PLC0415 - a GPU needs none

        told, variance = telling.expected(
            X, covariances, self.starts, self.spans, self.pairs, self.wanted, self.ranked,
            self.log_ways, sharpness, lapse, tail,
        )  # fmt: skip
        return told, variance

    def forecast(self, fit: Posterior) -> ChoiceForecast:
        """What a fit says about the answers."""
        from nearer._kernels import choosing as kernel  # noqa: PLC0415 - a GPU needs none

        X, tail = fit.positions, fit.noise.tail
        _, variance = self.told(X, fit.covariances, tail, 1.0, 0.0)
        u = kernel.utilities(X, self.spans, self.pairs, tail)
        flat = np.repeat(1 / np.sqrt(1 + np.pi / 8 * variance), np.diff(self.starts))
        return ChoiceForecast(self, u * flat)


@dataclass(frozen=True)
class ChoiceForecast:
    """Predicted utilities of the items, smaller where they are unsure, beside what was chosen."""

    choices: Choices
    utilities: Floats

    @classmethod
    def joined(cls, parts: Sequence[ChoiceForecast]) -> ChoiceForecast:
        """Several as one."""
        utilities = np.concatenate([part.utilities for part in parts])
        return cls(joined([part.choices for part in parts]), utilities)

    def scaled(self, factor: float) -> ChoiceForecast:
        """The same in another unit of distance."""
        return ChoiceForecast(self.choices, self.utilities * factor)

    def along(self, sharpness: float, lapse: float) -> tuple[Floats, Floats, Floats]:
        """Log-probability of each answer, and its slopes in the two numbers of the curve."""
        from nearer._kernels import choosing as kernel  # noqa: PLC0415 - a GPU needs none

        c = self.choices
        table = kernel.along_curve(
            self.utilities, c.starts, c.credit, c.wanted, c.ranked, c.log_ways, sharpness, lapse
        )
        return table[:, 0], table[:, 1], table[:, 2]

    @property
    def right(self) -> Floats:
        """Share of each answer that was predicted: pairs of a chosen item and one that was not."""
        from nearer._kernels import choosing as kernel  # noqa: PLC0415 - a GPU needs none

        c = self.choices
        shares: Floats = kernel.agreement(self.utilities, c.starts, c.credit, c.wanted, c.ranked)
        return shares

    @property
    def size(self) -> float:
        """A typical difference of two utilities."""
        first = self.utilities[self.choices.starts[:-1]]
        last = self.utilities[self.choices.starts[1:] - 1]
        return float(np.median(np.abs(first - last)))


def joined(parts: Sequence[Choices]) -> Choices:
    """Rows of several as one; which answers they came from is forgotten."""
    whole = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("pairs", "credit", "wanted", "ranked", "log_ways", "weights", "odds", "group")
    }
    begins = {
        name: np.concatenate([[0], np.cumsum(np.concatenate([np.diff(x) for x in ends]))])
        for name in ("starts", "spans")
        for ends in [[getattr(part, name) for part in parts]]
    }
    row = np.arange(len(whole["wanted"]))
    return Choices(**whole, **begins, row=row, n_objects=max(part.n_objects for part in parts))


def as_choices(
    trials: Trials,
    n_objects: int | None = None,
    weights: ArrayLike | None = None,
    odds: ArrayLike | None = None,
) -> Choices:
    """Trials in the form that fits use; equal answers become one row of greater weight."""
    m = len(trials)
    counts, asked = checks.weights(weights, m), checks.weights(odds, m)
    order = _chosen_first(trials)
    first, row = _distinct(trials, order)
    counts = np.bincount(row, weights=counts, minlength=len(first)).astype(np.float64)
    kept, order = trials[first], order[first]
    starts, spans, pairs = _items(kept, order)
    shown, wanted = kept.n_shown.astype(np.float64), kept.wanted.astype(np.float64)
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], kept.n_shown)
    chosen = (place < np.repeat(wanted, kept.n_shown)).astype(np.float64)
    even = np.repeat(wanted / np.maximum(shown, 1), kept.n_shown)
    credit = np.where(np.repeat(kept.decided, kept.n_shown), chosen, even)
    ranked = kept.decided & kept.ranked & (kept.wanted > 1)
    ways = gammaln(shown + 1) - gammaln(shown - wanted + 1)
    ways -= np.where(ranked, 0.0, gammaln(wanted + 1))
    group = scattered(np.sort(kept.questions, axis=1))
    n = trials.n_objects if n_objects is None else n_objects
    return Choices(
        starts, spans, pairs, credit, kept.wanted, ranked, ways, counts, asked[first], group, row, n
    )  # fmt: skip


def _chosen_first(trials: Trials) -> NDArray[np.int64]:
    """Positions of the items of each trial: the chosen in their order, the others by object."""
    place = np.where(trials.chosen > 0, trials.chosen, np.iinfo(np.int64).max)
    label = trials.shown[:, ::2] if trials.kind == "pairs" else trials.shown
    empty = np.where(label >= 0, label, np.iinfo(np.int64).max)
    return np.lexsort((empty, np.where(label >= 0, place, np.iinfo(np.int64).max)), axis=1)


def _distinct(trials: Trials, order: NDArray[np.int64]) -> tuple[Objects, Objects]:
    """The first of each set of equal answers, and for each answer its set."""
    if not len(trials):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if trials.kind == "pairs":
        return np.arange(len(trials)), np.arange(len(trials))
    ordered = np.take_along_axis(trials.shown, order, axis=1)
    state = np.take_along_axis(trials.chosen, order, axis=1)
    rows = np.column_stack([trials.query, trials.wanted, ordered, state])
    _, first, row = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, row.ravel()


def _items(
    trials: Trials, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Items and pairs of each trial, items in this order."""
    starts = np.concatenate([[0], np.cumsum(trials.n_shown)]).astype(np.int64)
    if trials.kind == "near":
        objects = np.take_along_axis(trials.shown, order, axis=1)
        objects = objects[objects >= 0]
        pairs = np.stack([np.repeat(trials.query, trials.n_shown), objects], axis=1)
        return starts, np.arange(len(pairs) + 1), pairs.astype(np.int32)
    rows = trials.shown
    if trials.kind == "pairs":
        wide = rows.reshape(len(rows), -1, 2)
        pairs = np.take_along_axis(wide, order[:, :, None], axis=1)
        pairs = pairs[pairs[:, :, 0] >= 0]
        return starts, np.arange(len(pairs) + 1), pairs.astype(np.int32)
    ordered = np.take_along_axis(rows, order, axis=1)
    sizes = np.empty(len(trials), dtype=np.int64)
    found: list[tuple[NDArray[np.int64], Objects]] = []
    for m in np.unique(trials.n_shown).tolist():
        places = _places(trials.kind, m)
        at = np.flatnonzero(trials.n_shown == m)
        found.append((at, ordered[at][:, places].reshape(len(at), -1, 2)))
        sizes[at] = places.shape[1]
    per_item = np.repeat(sizes, trials.n_shown)
    spans = np.concatenate([[0], np.cumsum(per_item)]).astype(np.int64)
    pairs = np.empty((spans[-1], 2), dtype=np.int32)
    for at, own in found:
        begin = spans[starts[at]]
        pairs[(begin[:, None] + np.arange(own.shape[1])).ravel()] = own.reshape(-1, 2)
    return starts, spans, pairs


def _places(kind: str, m: int) -> NDArray[np.int64]:
    """Of m objects shown, the places of the pairs that should be near if each is chosen."""
    if kind == "odd-one-out":
        rest = [[j for j in range(m) if j != i] for i in range(m)]
        return np.array([list(combinations(others, 2)) for others in rest])
    return np.array([[(i, j) for j in range(m) if j != i] for i in range(m)])


def _gathered(
    starts: NDArray[np.int64], kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All numbers from starts[i] to starts[i + 1] of the kept i, and where each i then begins."""
    sizes = (starts[1:] - starts[:-1])[kept]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shift = np.repeat(starts[:-1][kept] - ends[:-1], sizes)
    return np.arange(ends[-1]) + shift, ends
