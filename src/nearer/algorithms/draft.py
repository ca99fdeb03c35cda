"""A draft: what a strategy that embeds knows so far, good at any moment for an embedding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearer.asking.protocol import Strategy
from nearer.asking.record import Record
from nearer.embedding import Embedding, Phase
from nearer.questions import Floats, Objects, Triplets

__all__ = ["Draft"]


@dataclass
class Draft:
    """What is known so far about objects 0 to n − 1.

    Attributes
    ----------
    n
        How many objects there are.
    rng
        Source of all choices.
    known
        Answers that were there before, rows (head, near, far): learned, and no part of the record.
    record
        What was asked; whoever drives the strategy has it recorded here.
    phases, evidence
        As in `nearer.Embedding`.
    positions
        ``(n, d)`` of the last fit, or None.
    heads
        Objects whose distances to the others are known best.
    places
        Where all objects share a few places, one object for each; else None.
    span
        The dimensions that the answers leave possible; None: all.
    expected_tau
        Kendall's τ between predicted and true distances from a head, as far as it is known.
    """

    n: int
    rng: np.random.Generator
    known: Triplets = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    record: Record = field(default_factory=Record)
    phases: list[Phase] = field(default_factory=list)
    evidence: dict[int, dict[str, Any]] = field(default_factory=dict)
    positions: Floats | None = None
    heads: Objects = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    places: Objects | None = None
    span: tuple[int, int] | None = None
    expected_tau: float | None = None

    @property
    def triplets(self) -> Triplets:
        """All answers, those of the record last."""
        return np.concatenate([self.known, self.record.triplets])

    def phase(self, name: str, strategy: Strategy[str]) -> Strategy[None]:
        """Run part of a strategy as a phase of the history; its result is the phase's note."""
        comparisons, rounds = self.record.n_comparisons, self.record.n_rounds
        note = "the budget is spent"
        try:
            note = yield from strategy
        finally:
            spent = self.record.n_comparisons - comparisons
            self.phases.append(Phase(name, spent, self.record.n_rounds - rounds, note))

    def embedding(self) -> Embedding:
        """The best so far; positions that mean nothing where nothing is known."""
        positions = self.positions
        if positions is None:
            positions = self.rng.standard_normal((self.n, 1))
        low, high = self.span or (1, self.n - 1)
        details: dict[str, Any] = {"heads": self.heads}
        if self.places is not None:
            details["places"] = self.places
        if self.expected_tau is not None:
            details["expected_tau"] = self.expected_tau
        return Embedding(
            positions=positions,
            triplets=self.record.triplets,
            n_comparisons=self.record.n_comparisons,
            n_rounds=self.record.n_rounds,
            history=tuple(self.phases),
            evidence=dict(sorted(self.evidence.items())),
            determined=low == high,
            dimension_low=low,
            dimension_high=high,
            details=details,
        )
