r"""LORE, a published estimate of the dimension: Anand et al. 2026, arXiv 2602.04192.

Instead of one dimension after the other, fit in many, with a penalty on directions:

    minimise  mean logistic loss of the answers  +  λ Σ σᵢ(X)ᵖ,      p = 1/2,

σᵢ the singular values of the positions. For p < 1 the penalty is steepest at zero, so it removes
weak directions and shrinks strong ones little. It is minimised by an iteratively
reweighted nuclear norm: a gradient step of the loss, then every singular value is lowered by the
slope that the penalty had at its last size. The number that remains is the estimate. λ is the only
parameter; the default suits thousands of answers about hundreds of objects.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.fitting.solver import Fit, Floats, Loss

__all__ = ["fit_low_rank"]

_POWER = 0.5  # p above
_GONE = 0.01  # of the largest singular value: a direction that is left out
_LOSS = Loss("logistic")


def fit_low_rank(
    triplets: ArrayLike,
    n_objects: int | None = None,
    *,
    max_dimension: int = 10,
    strength: float = 0.006,
    max_iter: int = 500,
    tol: float = 1e-5,
    rng: np.random.Generator,
) -> Fit:
    """Fit positions in as few directions as the penalty leaves, at most `max_dimension`.

    Parameters
    ----------
    triplets, n_objects
        ``(m, 3)`` rows (head, near, far), and how many objects there are.
    max_dimension
        Directions to begin with.
    strength
        λ of the penalty.
    max_iter, tol
        Steps, and the relative change of the positions that ends them.
    rng
        Source of the random start.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> from nearer.questions import answered, balanced_questions
    >>> X = nearer.datasets.make_gaussian(100, 2, random_state=0)
    >>> questions = balanced_questions(100, 8000, np.random.default_rng(0))
    >>> answers = answered(questions, nearer.PointOracle(X)(questions))
    >>> fit_low_rank(answers, 100, rng=np.random.default_rng(0)).positions.shape
    (100, 2)
    """
    rows, n = checks.triplets(triplets, n_objects)
    X = rng.standard_normal((n, min(max_dimension, n - 1)))
    step, converged, steps = 1.0, False, 0
    for steps in range(1, max_iter + 1):  # noqa: B007 - reported
        value, slope = _LOSS.value_and_gradient(X, rows)
        last = np.linalg.svd(X, compute_uv=False)
        weight = strength * _POWER * np.maximum(last, 1e-6) ** (_POWER - 1)
        new, step = _descend(X, value, slope, weight, step, rows)
        moved = np.linalg.norm(new - X)
        X, step = new, 1.5 * step
        if moved <= tol * np.linalg.norm(X):
            converged = True
            break
    left, size, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    rank = max(1, int(np.sum(size > _GONE * size[0])))
    positions = left[:, :rank] * size[:rank]
    loss, _ = _LOSS.value_and_gradient(positions, rows)
    return Fit(positions, loss, steps, converged)


def _descend(
    X: Floats, value: float, slope: Floats, weight: Floats, step: float, rows: ArrayLike
) -> tuple[Floats, float]:
    """A gradient step short enough to be safe, then the singular values lowered."""
    while True:
        left, size, right = np.linalg.svd(X - step * slope, full_matrices=False)
        new = (left * np.maximum(size - step * weight, 0.0)) @ right
        change = new - X
        bound = value + np.vdot(slope, change) + np.vdot(change, change) / (2 * step)
        if _LOSS.value_and_gradient(new, np.asarray(rows))[0] <= bound + 1e-12 or step < 1e-6:
            return new, step
        step /= 2
