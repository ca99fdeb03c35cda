r"""Initial positions, and fits that avoid local minima.

Triplet losses have bad local minima: from a random start in d dimensions an object, or half of
them, gets stuck on the wrong side of others, and cannot pass them in d dimensions. In more
dimensions it can. So a fit *starts in more dimensions, then reduces*: a tiny random cloud with a
few extra dimensions is fitted roughly, rotated to its principal axes, loses the weakest axis, is
fitted again, and so on down to d (`fit_from_more_dimensions`).

*Other starts.* If that leaves a few answers violated, further clouds are tried, and the best fit
counts. Of 112 fits to exact answers about lines, circles, spheres and clusters of 60 and 100
objects, 35 were stuck after one start, 13 after seven.

*Exact answers* leave a region of positions at soe loss zero, and the optimiser stops where it
enters. Inside, the most probable positions under a wide prior are the result. Without a prior they
would violate more of the answers not seen: a fifth to a half more where answers are random, 6 % to
twice as many where they are whole rankings (60 to 200 objects, two and three dimensions).

*The smallest dimension.* In too few dimensions no positions satisfy all answers; in enough
dimensions the soe loss reaches zero. So fits are reduced up to the first dimension that violates
answers (`fit_onwards`). A few answers can always be satisfied, so this counts only with several
answers per coordinate, and only if held-out answers are satisfied, too (`is_exact`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.fitting import solver
from nearer.fitting.solver import Callback, Fit, Loss, Passes, as_loss, prepare
from nearer.questions import Floats

# More of each takes time and leaves fewer fits stuck (`python -m benchmarks starts`); `sensitivity`
# halves and doubles them.
EXTRA = 3  # extra dimensions at the start; posteriors are as probable with 1, 2 or 3
MOST_STARTS = 6  # tried if a fit may be stuck
ROUGH = 1e-6  # gain of a step that ends a fit that another fit continues
# If there are more than twice as many answers per coordinate, the fits in more dimensions take only
# these, to save time; the last fit takes all (`python -m benchmarks scale`).
ENOUGH = 10
# Standard deviation of positions of exact answers, in units of an answer's noise. From 64 to 512,
# the share of unseen answers that are violated differs by less than a sixth.
EXACT_PRIOR = 256.0
# Answers per coordinate; fewer do not show whether a dimension is one too many, and positions may
# satisfy them by accident.
FEWEST = 4
# Share of violated answers that a few misplaced objects can explain: runs leave .1 to .3 %. If
# more answers are wrong, further starts take many times the steps and improve nothing.
NEARLY = 0.02


def fit_from_more_dimensions(
    triplets: ArrayLike | Passes,
    n_objects: int | None = None,
    n_components: int = 2,
    *,
    loss: str | Loss = "soe",
    start: Floats | None = None,
    weights: ArrayLike | None = None,
    max_iter: int = 2000,
    tol: float = 1e-9,
    rng: np.random.Generator,
    centre: bool = True,
    callback: Callback | None = None,
) -> Fit:
    """Fit positions from a start in a few dimensions more; arguments are as in `fit_positions`.

    `start` has at least `n_components` dimensions; other starts are tried if a few answers
    remain violated. `centre`: positions with soe loss zero move on to the most probable ones there.
    """
    every, loss, d = prepare(triplets, n_objects, weights), as_loss(loss), n_components
    steps = 0

    def fit(
        X: Floats, tol: float, passes: Passes = every, loss: Loss = loss, ridge: float = 0.0
    ) -> Fit:
        nonlocal steps
        done = passes.fit(loss, X, ridge=ridge, max_iter=max_iter, tol=tol, callback=callback)
        steps += done.n_iter
        return done

    def reduced(X: Floats) -> Fit:
        some, passes = ENOUGH * X.size, every
        if X.shape[1] > d and len(every) >= 2 * some:
            passes = every.few(some, rng)
        while X.shape[1] > d:
            X = solver.principal_axes(fit(X, ROUGH, passes).positions, X.shape[1] - 1)
        if passes is not every:
            X = fit(X, ROUGH, passes).positions
        return fit(X, tol)

    def cloud() -> Floats:
        return solver.random_start(every.n_objects, d + EXTRA, rng)

    best = reduced(cloud() if start is None else start)
    for _ in range(MOST_STARTS):
        if not 0 < every.violated(best.positions).mean() < NEARLY:
            break
        best = min(best, reduced(cloud()), key=lambda other: other.loss)
    if loss.name == "soe" and not every.violated(best.positions).any():
        if centre:
            X = best.positions
            wide = X * (EXACT_PRIOR / max(float(X.std()), np.finfo(float).tiny))
            ridge = 1 / (every.total * EXACT_PRIOR**2)
            probable = fit(wide, ROUGH, every, Loss("logistic"), ridge).positions
            other = fit(probable, tol)
            best = best if every.violated(other.positions).any() else other
        best = _with_margins(best, every)
    return replace(best, n_iter=steps)


def _with_margins(fit: Fit, passes: Passes) -> Fit:
    """Scale positions that satisfy all answers until the margins are soe's, so that its loss is 0.

    Positions are not scaled if a margin is smaller than half of the digits of a number.
    """
    gap = passes.least_margin(fit.positions)
    if fit.loss == 0 or gap < np.sqrt(np.finfo(float).eps) * fit.positions.std():
        return fit
    return replace(fit, positions=fit.positions * (1 + 1e-9) / gap, loss=0.0)


def is_exact(n_wrong: int, n_held_out: int, n_fitted: int, n_parameters: int) -> bool:
    """Whether held-out answers are violated as seldom as if all answers were exact.

    With k parameters that satisfy m answers, about k/m of further ones are violated: an answer left
    out is missed only if it is one of the k that hold the positions in place. Three standard errors
    more are allowed. (The learning curve of Seung, Sompolinsky and Tishby 1992 is .62·k/m; exact
    simulated answers gave .4 to 1.1.)
    """
    if n_fitted < FEWEST * n_parameters or not n_held_out:
        return False
    rate = n_parameters / n_fitted
    error = np.sqrt(rate * (1 - rate) / n_held_out)
    return bool(n_wrong <= n_held_out * (rate + 3 * error))


def fit_onwards(
    rows: NDArray[np.int32], best: Fit, *, at_least: int = 1, rng: np.random.Generator
) -> Fit:
    """Positions that satisfy all answers, reduced one dimension at a time as far as they do so.

    A fit that violates some answers is returned unchanged.
    """
    n, d = best.positions.shape
    while d > at_least and not solver.violated(best.positions, rows).any():
        d -= 1
        X = solver.principal_axes(best.positions, d)
        lower = fit_from_more_dimensions(rows, n, d, start=X, rng=rng)
        if solver.violated(lower.positions, rows).any():
            break
        best = lower
    return best
