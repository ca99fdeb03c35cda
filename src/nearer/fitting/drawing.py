r"""Maps that answers leave possible: draws around the positions that were found.

*Answers that may be wrong.* Each map is as probable as the answers and a Gaussian prior make it,
with the noise as unknown as the positions; a chain visits them (`nearer.fitting.chain`).

*Answers that are all obeyed*, or all but a few. Positions that obey them are all equally likely but
for the prior, a Gaussian as wide as the map. A random walk visits them, one object and one line at
a time (`nearer._kernels.wandering`), beginning at the positions. The few that these disobey hold
nobody.

In both cases the positions are somewhere among the draws, not at their mean: a region is one of the
draws, around their mean.

*Fits by other losses* know the covariance of each object from answers drawn again; objects are then
drawn on their own.

Answers tell of no motion and no scale: each draw is laid over the positions by the best ones.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from nearer.distances import Distances
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.chain import draw_maps
from nearer.fitting.choices import Choices, as_choices
from nearer.fitting.losses import Floats
from nearer.fitting.posterior import Evidence, Posterior, as_evidence
from nearer.metrics import procrustes
from nearer.trials import Trials

__all__ = ["draw_positions"]

# Time against regions that hold less often than they say; `python -m benchmarks coverage`
_SWEEPS = 30  # of the walk between two draws
_BEFORE = 10  # draws' worth of walking before the first
# Share of answers that positions may disobey and still count as obeying: what runs without errors
# leave (.1 to .3 %), against answers that are wrong
_DISOBEYED = 0.01


def draw_positions(
    positions: Floats,
    covariances: Floats | None,
    triplets: NDArray[np.integer],
    k: int,
    *,
    posterior: Posterior | None = None,
    weights: Floats | None = None,
    choices: Choices | None = None,
    rng: np.random.Generator,
) -> Floats:
    """Draw k maps, ``(k, n, d)``.

    Parameters
    ----------
    positions, covariances
        What was found, and the covariance of each object where it is known.
    triplets, weights
        The answers it was found from, and how much each counted.
    posterior
        What the answers were taken to be, where they may be wrong; None otherwise.
    choices
        The answers, with their weights, where they are more than comparisons.
    rng
        Source of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> draw_positions(
    ...     X, np.ones((3, 1, 1)), np.array([[0, 1, 2]]), 5, rng=np.random.default_rng(0)
    ... ).shape
    (5, 3, 1)
    """
    if posterior is not None and not len(triplets):
        warnings.warn(
            "the answers were not kept: every object is drawn by itself, the others held fixed, "
            "and what is computed of several seems surer than it is; nearer.embed keeps them with "
            "keep_triplets=True, nearer.fit up to four million",
            AnswersWarning,
            stacklevel=3,
        )
    elif posterior is not None:
        answers: Evidence | Choices
        if choices is not None:
            answers = choices
        elif posterior.noise.tail:  # fits by the t curve take no lapses, unless of choices
            answers = as_choices(Trials.from_triplets(triplets), len(positions), weights)
        else:
            answers = as_evidence(triplets, len(positions), weights)
        drawn = draw_maps(posterior, answers, k, rng)
        return np.array([procrustes(positions, X).aligned for X in drawn])
    head, near, far = triplets.T
    distances = Distances(positions)
    obeyed = distances.between(head, near) < distances.between(head, far)
    wrong = 1 - float(obeyed.mean()) if len(triplets) else 1.0
    if wrong <= (_DISOBEYED if covariances is None else 0):
        return _obedient(positions, triplets[obeyed], k, rng)
    if covariances is None:
        remedy = "nearer.fit of their answers, fit(embedding.triplets, n_objects=…), finds it"
        if not len(triplets):
            remedy = "their answers were not kept, as nearer.embed does with keep_triplets=True"
        raise InvalidInput(f"{k} draws: how sure these positions are is not known; {remedy}")
    root = np.linalg.cholesky(covariances + 1e-12 * np.eye(positions.shape[1]))
    drawn = np.einsum("nij,knj->kni", root, rng.normal(size=(k, *positions.shape)))
    return np.asarray(positions + drawn)


def _obedient(
    positions: Floats, triplets: NDArray[np.integer], k: int, rng: np.random.Generator
) -> Floats:
    """Draws of positions that obey all answers."""
    from nearer._kernels.wandering import wander  # noqa: PLC0415 - compiled when it is needed

    n, d = positions.shape
    X = np.ascontiguousarray(positions - positions.mean(axis=0))
    spread = float(np.sqrt(np.mean(np.square(X))))
    rows = np.argsort(triplets.ravel(), kind="stable") // 3
    first = np.searchsorted(np.sort(triplets.ravel()), np.arange(n + 1))
    found = []
    for draw in range(_BEFORE + k):
        directions = rng.standard_normal((_SWEEPS, n, d))
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        wander(X, triplets, first, rows, directions, rng.random((_SWEEPS, n, 2)), spread)
        if draw >= _BEFORE:
            found.append(procrustes(positions, X).aligned)
    return np.array(found)
