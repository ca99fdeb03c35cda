"""Fit in the smallest number of dimensions that the answers call for, for answers without noise.

Some answers are held out. From `at_least` dimensions upwards the others are fitted; the loss of
exact answers falls to zero at the true dimension, and the held-out ones are then predicted almost
perfectly. Data that no few dimensions explain never gets there: the search ends when two further
dimensions have not helped, and the smallest one within a standard error of the best is taken. The
fit goes on from there with all answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.solver import Fit, disobeyed, fit_positions
from nearer.fitting.starts import fit_from_above

__all__ = ["fit_smallest"]

_HELD_OUT = 0.1
_PATIENCE = 2  # further dimensions tried without success
_NEARLY = 0.95  # held-out accuracy from which on only misplaced objects explain a loss
_TRIES = 3  # to place them
_ZERO = 1e-3  # of the mean loss; far below what one dimension too few leaves (about 0.7)


def fit_smallest(
    triplets: NDArray[np.int64],
    n_objects: int,
    *,
    at_least: int = 1,
    at_most: int = 30,
    rng: np.random.Generator,
) -> tuple[Fit, dict[int, dict[str, float]]]:
    """Fit in the smallest dimension that predicts held-out answers as well as any larger one.

    Returns
    -------
    fit
        In the dimension chosen, to all triplets.
    evidence
        For each dimension tried: the loss of the answers fitted, the accuracy on those held out.
    """
    out = rng.random(len(triplets)) < _HELD_OUT
    kept, held = triplets[~out], triplets[out]
    if not len(held) or not len(kept):
        kept = held = triplets
    evidence: dict[int, dict[str, float]] = {}
    fits: dict[int, Fit] = {}
    at_most = min(at_most, n_objects - 1)
    best = min(at_least, at_most)
    for d in range(best, at_most + 1):
        fits[d] = fit_from_above(kept, n_objects, d, rng=rng)
        accuracy = 1.0 - float(disobeyed(fits[d].positions, held).mean())
        evidence[d] = {"loss": fits[d].loss, "held_out_accuracy": accuracy}
        if accuracy > evidence[best]["held_out_accuracy"] or d == best:
            best = d
        if fits[d].loss < _ZERO or d - best >= _PATIENCE:
            break
    top = evidence[best]["held_out_accuracy"]
    error = np.sqrt(max(top * (1 - top), 1 / len(held)) / len(held))
    chosen = min(d for d, e in evidence.items() if e["held_out_accuracy"] >= top - error)
    fit = fit_positions(triplets, n_objects, start=fits[chosen].positions)
    nearly_exact = evidence[chosen]["held_out_accuracy"] > _NEARLY
    for _ in range(_TRIES if nearly_exact else 0):
        if fit.loss <= _ZERO:
            break
        again = fit_from_above(triplets, n_objects, chosen, rng=rng)
        fit = min(fit, again, key=lambda f: f.loss)
    return fit, evidence
