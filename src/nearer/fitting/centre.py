"""The middle of what the answers allow.

Where all answers can be obeyed, a hinge loss is content with any positions that obey them, and the
optimiser stops at the border of what is allowed. The logistic loss with a normal prior goes on to
the inside: every answer pushes, the narrowly obeyed ones most. The prior's spread is counted in
units of the distance difference that is answered right with odds e : 1, so a large spread says that
even small differences were judged rightly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.solver import Fit, fit_positions

__all__ = ["fit_centre"]

Floats = NDArray[np.float64]


def fit_centre(
    triplets: NDArray[np.integer], start: Floats, spread: float, *, max_iter: int = 200
) -> Fit:
    """Positions from the logistic loss and a normal prior of the given spread.

    Parameters
    ----------
    triplets
        ``(m, 3)`` rows (head, near, far), at least one.
    start
        ``(n, d)`` positions of any scale.
    spread
        Standard deviation of the prior; for answers without errors about 0.4 n serves well: two
        objects next to each other in a ranking are then about one unit apart.
    max_iter
        Steps of the optimiser.

    Examples
    --------
    >>> import numpy as np
    >>> start = np.array([[0.0], [0.1], [1.0]])
    >>> fit_centre(np.array([[0, 1, 2], [2, 1, 0]]), start, 5.0).positions.round().ravel()
    array([-2., -0.,  2.])
    """
    X = start - start.mean(axis=0)
    scale = float(X.std())
    X = X * (spread / scale) if scale > 0 else X
    ridge = 1.0 / (len(triplets) * spread**2)
    return fit_positions(
        triplets, len(X), start=X, loss="logistic", ridge=ridge, max_iter=max_iter, tol=1e-6
    )
