"""How sure is each position? Fit again to answers drawn again.

A bootstrap draws as many answers as there are, with replacement; how often each was drawn becomes
its weight. Every such fit starts from the positions found, is laid over them by the best motion and
scale (Procrustes), and what is left of the differences is the uncertainty of each object.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats
from nearer.metrics import procrustes
from nearer.parallel import parallel_map

__all__ = ["bootstrap_covariances"]


def bootstrap_covariances(
    positions: Floats,
    triplets: NDArray[np.integer],
    refit: Callable[[Floats, Floats], Floats],
    *,
    weights: Floats | None = None,
    n_draws: int = 20,
    rng: np.random.Generator,
) -> Floats:
    """Covariance matrix of each object's position, ``(n, d, d)``.

    Parameters
    ----------
    positions, triplets, weights
        What was found, and from which answers.
    refit
        Called with new weights of the triplets and positions to start from; returns positions.
    n_draws
        How often answers are drawn again.
    rng
        Source of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from nearer.fitting.solver import fit_positions
    >>> T = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 1, 2]])
    >>> X = fit_positions(T, 3, 1, rng=np.random.default_rng(0)).positions
    >>> def refit(weights, start):
    ...     return fit_positions(T, 3, start=start, weights=weights).positions
    >>> bootstrap_covariances(X, T, refit, n_draws=4, rng=np.random.default_rng(0)).shape
    (3, 1, 1)
    """
    if n_draws < 2:
        raise InvalidInput(f"n_draws={n_draws}: a spread needs at least 2")
    m = len(triplets)
    base = np.ones(m) if weights is None else weights
    # a seed each: what is drawn takes no room before its turn, and travels as a number
    seeds = rng.integers(1 << 63, size=n_draws)

    def again(seed: int) -> Floats:
        drawn = np.bincount(np.random.default_rng(seed).integers(m, size=m), minlength=m) * base
        found = refit(drawn if drawn.any() else base, positions)
        return np.asarray(procrustes(positions, found).aligned[:, : positions.shape[1]])

    aligned = parallel_map(again, [(seed,) for seed in seeds.tolist()])
    deviation = np.array(aligned) - positions
    return np.asarray(np.einsum("bni,bnj->nij", deviation, deviation) / (n_draws - 1))
