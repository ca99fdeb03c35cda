r"""Maps that answers leave possible: draws around the positions that were found.

*Answers that may be wrong.* Around the maximum of the posterior all coordinates together are close
to a Gaussian. Its precision H is the Fisher information of the answers, with what they say about
two objects at a time, plus that of the prior. A fit takes the prior that predicts best, which is
stronger than the one that explains best, so the map is too small for its noise and H⁻¹ alone too
large for the map: its 95 % regions hold more often than they say. The answers themselves say how
far they scatter: with g their gradients (scores), the covariance is H⁻¹ (Σ g gᵀ + prior) H⁻¹, the
sandwich of Huber (1967) with the prior's share kept, so that an object that nobody was asked about
stays as unsure as it was. Where the model is right both are the same. A draw is one solution of
H x = b with b drawn from the middle matrix, which takes a pass over the answers for each step of
conjugate gradients and no matrix of all pairs.

*Answers that are all obeyed.* Positions that obey them are all equally likely but for the prior, a
Gaussian as wide as the map. A random walk visits them, one object and one line at a time
(`nearer._kernels.wandering`), beginning at the positions. These are somewhere among the draws, not
at their mean: a region is one of the draws, around their mean.

*Fits by other losses* know the covariance of each object from answers drawn again; objects are then
drawn on their own.

Answers tell of no motion and no scale. What a draw has of these is taken out: its part along
shifts, turns and growth of the positions, or the motion and scale that lay it over them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

from nearer.distances import Distances
from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats
from nearer.fitting.posterior import Noise, Posterior
from nearer.metrics import procrustes

__all__ = ["draw_positions"]

# Time against regions that hold less often than they say; `python -m benchmarks coverage`
_TOLERANCE = 1e-3  # of a draw; what is left is a thousandth of its length
_SWEEPS = 30  # of the walk between two draws
_BEFORE = 10  # draws' worth of walking before the first


def draw_positions(
    positions: Floats,
    covariances: Floats | None,
    triplets: NDArray[np.integer],
    k: int,
    *,
    posterior: Posterior | None = None,
    weights: Floats | None = None,
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
    if posterior is not None:
        counts = np.ones(len(triplets)) if weights is None else weights
        return np.asarray(positions + _scatter(posterior, triplets, counts, k, rng))
    head, near, far = triplets.T
    distances = Distances(positions)
    if len(triplets) and np.all(distances.between(head, near) < distances.between(head, far)):
        return _obedient(positions, triplets, k, rng)
    if covariances is None:
        raise InvalidInput(
            f"{k} draws: how sure these positions are is not known; nearer.fit of their answers, "
            "fit(embedding.triplets, n_objects=…), finds it"
        )
    root = np.linalg.cholesky(covariances + 1e-12 * np.eye(positions.shape[1]))
    drawn = np.einsum("nij,knj->kni", root, rng.normal(size=(k, *positions.shape)))
    return np.asarray(positions + drawn)


def _scatter(
    fit: Posterior, triplets: NDArray[np.integer], counts: Floats, k: int, rng: np.random.Generator
) -> Floats:
    """Draws of the positions' errors."""
    X, noise = fit.positions, fit.noise
    moves, told, score = _derivatives(X, triplets, noise)
    prior = 1 / noise.prior**2
    precision = moves.T @ (moves * (counts * told)[:, None]).tocsr()
    gauge = _similarities(X)

    def multiply(x: Floats) -> Floats:
        return np.asarray(precision @ x + prior * x)

    def sooner(x: Floats) -> Floats:  # each object on its own: close to the inverse
        return np.asarray(np.einsum("nij,nj->ni", fit.covariances, x.reshape(X.shape)).ravel())

    size = X.size
    H = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
    M = LinearOperator((size, size), matvec=sooner, dtype=np.float64)
    found = np.empty((k, *X.shape))
    for draw in found:
        b = moves.T @ (counts * score * rng.standard_normal(len(triplets)))
        b += np.sqrt(prior) * rng.standard_normal(size)
        x, _ = cg(H, b, rtol=_TOLERANCE, M=M)
        draw[:] = (x - gauge @ (gauge.T @ x)).reshape(X.shape)
    return found


def _derivatives(
    X: Floats, triplets: NDArray[np.integer], noise: Noise
) -> tuple[csr_array, Floats, Floats]:
    """Of each answer: its margin's gradient, what it tells about the margin, and its score."""
    d = X.shape[1]
    head, near, far = triplets.T
    (a, u), (b, w) = (_counted(X[head] - X[other], noise.tail) for other in (near, far))
    objects = np.stack([head, near, far], axis=1)
    columns = (objects[:, :, None] * d + np.arange(d)).reshape(len(triplets), -1)
    values = np.stack([w - u, u, -w], axis=1).reshape(columns.shape)
    rows = np.arange(0, columns.size + 1, 3 * d)
    moves = csr_array((values.ravel(), columns.ravel(), rows), shape=(len(triplets), X.size))
    lapse = 0.0 if noise.tail else noise.lapse
    p = expit(b - a)
    slope, right = (1 - 2 * lapse) * p * (1 - p), lapse + (1 - 2 * lapse) * p
    wrong = lapse + (1 - 2 * lapse) * expit(a - b)
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.where(slope > 0, slope**2 / (right * wrong), 0.0)
        score = np.where(slope > 0, slope / right, 0.0)
    return moves, told, score


def _counted(difference: Floats, tail: float) -> tuple[Floats, Floats]:
    """What distances count, with the gradients in the head, as `nearer._kernels.margins` has it."""
    squared = np.einsum("mk,mk->m", difference, difference)
    if tail:
        factor = (tail + 1) / (tail + squared)
        return (tail + 1) / 2 * np.log1p(squared / tail), difference * factor[:, None]
    distance = np.sqrt(squared)
    safe = np.where(distance > 0, distance, 1.0)
    return distance, difference / safe[:, None]


def _similarities(X: Floats) -> Floats:
    """An orthonormal basis of the shifts, turns and growth of positions, ``(n·d, …)``."""
    n, d = X.shape
    Z = X - X.mean(axis=0)
    ways = [np.broadcast_to(row, (n, d)).ravel() for row in np.eye(d)]
    for i in range(d):
        for j in range(i):
            turn = np.zeros((n, d))
            turn[:, i], turn[:, j] = Z[:, j], -Z[:, i]
            ways.append(turn.ravel())
    u, s, _ = np.linalg.svd(np.stack([*ways, Z.ravel()], axis=1), full_matrices=False)
    return np.asarray(u[:, s > 1e-9 * s[0]])


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
