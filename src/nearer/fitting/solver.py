"""Positions that obey triplets: minimise a loss from one start.

The objective is the weighted mean loss plus ridge · ‖X‖²/2 (per triplet, so a Gaussian prior of
variance s² on every coordinate of a likelihood over m answers is ridge = 1/(m s²)). It is not
convex; which optimum is found depends on the start (`nearer.fitting.starts`). The optimiser is
L-BFGS: one evaluation costs a pass over the triplets, and a few dozen to a few hundred passes
are enough. It stops early at loss zero, which soe reaches exactly where the answers allow it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from nearer import checks
from nearer.errors import InvalidInput
from nearer.fitting.device import gpu, wants_gpu
from nearer.fitting.fit import Fit
from nearer.fitting.losses import Floats, Loss, as_loss

__all__ = [
    "Callback",
    "Fit",
    "Passes",
    "disobeyed",
    "fit_positions",
    "margins",
    "minimise",
    "prepare",
]

_MEMORY = 10  # past steps L-BFGS keeps

Evaluate = Callable[[Floats], tuple[float, Floats]]
Callback = Callable[[int, float, Any], object]


class Passes:
    """Answers laid out for many passes over them, on the processor.

    Parameters
    ----------
    rows, weights
        ``(m, 3)`` triplets and how much each counts, both checked; None: all the same.
    n_objects
        How many objects there are.
    """

    on_gpu = False

    def __init__(self, rows: NDArray[np.int32], weights: Floats | None, n_objects: int) -> None:
        self.n_objects, self.rows, self.weights = n_objects, rows, weights
        self.total = float(len(rows)) if weights is None else float(weights.sum())
        from nearer._kernels.grouping import for_passes  # noqa: PLC0415 - a GPU needs no Numba

        self._rows, self._weights = for_passes(rows, weights, n_objects)

    def __len__(self) -> int:
        return len(self.rows)

    def fit(
        self,
        loss: Loss,
        X: Floats,
        *,
        ridge: float,
        max_iter: int,
        tol: float,
        callback: Callback | None,
    ) -> Fit:
        """Minimise a loss from one start."""

        def evaluate(X: Floats) -> tuple[float, Floats]:
            value, gradient = self.sums(loss, X)
            gradient /= self.total
            return value / self.total, gradient

        return minimise(evaluate, X, ridge=ridge, max_iter=max_iter, tol=tol, callback=callback)

    def descend(
        self, loss: Loss, X: Floats, *, ridge: float, max_iter: int, tol: float
    ) -> Fit | None:
        """The same in one compiled loop, for losses above zero; None: too many answers."""
        from nearer._kernels import gradients as kernel  # noqa: PLC0415 - a GPU needs no Numba

        if not kernel.are_few(len(self), self.n_objects):
            return None
        weights = np.ones(len(self)) if self._weights is None else self._weights
        how = (ridge, max_iter, tol)
        start = np.ascontiguousarray(X, dtype=np.float64)
        rows = np.ascontiguousarray(self._rows, dtype=np.int32)
        return Fit(*kernel.descend(loss.kind, loss.number, start, rows, weights, *how))

    def sums(self, loss: Loss, X: Floats) -> tuple[float, Floats]:
        """One pass: the sum of the losses, and its gradient."""
        return loss.sums(X, self._rows, self._weights)

    def mean_loss(self, loss: Loss, X: Floats) -> float:
        """What the positions cost, on average."""
        return self.sums(loss, X)[0] / self.total

    def disobeyed(self, X: Floats) -> NDArray[np.bool_]:
        """Which answers the positions contradict, in the order in which they were given."""
        return np.asarray(self._gaps(X) <= 0)

    def share_disobeyed(self, X: Floats) -> float:
        """How much of the answers the positions contradict."""
        return float(np.average(self.disobeyed(X), weights=self.weights))

    def least_margin(self, X: Floats) -> float:
        """How narrowly the most narrowly obeyed answer is obeyed."""
        return float(self._gaps(X).min())

    def _gaps(self, X: Floats) -> Floats:
        from nearer._kernels.margins import gaps  # noqa: PLC0415 - a GPU needs no Numba

        return gaps(X, self.rows)

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        from nearer._kernels.margins import information  # noqa: PLC0415 - a GPU needs no Numba

        weights = np.ones(len(self)) if self.weights is None else self.weights
        return np.asarray(information(X, self.rows, weights, lapse, tail))

    def few(self, size: int, rng: np.random.Generator) -> Passes:
        """Some of the answers, drawn at random."""
        rows = np.sort(rng.integers(len(self), size=size))
        weights = None if self.weights is None else self.weights[rows]
        return Passes(self.rows[rows], weights, self.n_objects)


def prepare(
    triplets: ArrayLike | Passes,
    n_objects: int | None = None,
    weights: ArrayLike | None = None,
) -> Passes:
    """Check answers and lay them out where passes over them run (`nearer.fitting.device`)."""
    if isinstance(triplets, Passes):
        return triplets
    rows, n = checks.triplets(triplets, n_objects)
    row_weights = None if weights is None else checks.weights(weights, len(rows))
    passes: type[Passes] = gpu().GpuPasses if wants_gpu(len(rows), n) else Passes
    return passes(rows, row_weights, n)


def fit_positions(
    triplets: ArrayLike | Passes,
    n_objects: int | None = None,
    n_components: int = 2,
    *,
    loss: str | Loss = "soe",
    start: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    ridge: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-7,
    rng: np.random.Generator | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Minimise a loss over triplets from one start.

    Parameters
    ----------
    triplets
        ``(m, 3)`` rows (head, near, far), or what `prepare` made of them and their weights.
    n_objects
        How many objects there are; None: the largest index plus one.
    n_components
        Dimension of the positions; taken from `start` where that is given.
    loss
        A name of `nearer.fitting.losses.LOSSES`, or a `Loss` with its shape.
    start
        ``(n_objects, n_components)`` positions to begin at; None: standard normal ones from `rng`.
    weights
        One non-negative number a triplet.
    ridge
        Strength of the pull to the origin, see the module's head.
    max_iter, tol
        The optimiser stops after that many steps, or when a step gains less than `tol` relative
        to the objective.
    rng
        Source of the random start; needed only without `start`.
    callback
        Called with the step's number, the objective and the positions after every step; on a GPU
        the positions are a tensor. ``StopIteration`` from it ends the fit there.

    Examples
    --------
    >>> import numpy as np
    >>> fit = fit_positions([[0, 1, 2], [2, 1, 0]], 3, 1, rng=np.random.default_rng(0))
    >>> fit.positions.shape, fit.loss, fit.converged
    ((3, 1), 0.0, True)
    """
    passes = prepare(triplets, n_objects, weights)
    n = passes.n_objects
    if start is None:
        if rng is None:
            raise InvalidInput("start=None: pass rng, a NumPy Generator, for the random start")
        X = rng.standard_normal((n, checks.n_components(n_components)))
    else:
        X = np.array(start, dtype=np.float64)
        if X.ndim != 2 or len(X) != n or not np.isfinite(X).all():
            raise InvalidInput(
                f"start of shape {X.shape}: must be finite numbers of shape ({n}, n_components)"
            )
    return passes.fit(as_loss(loss), X, ridge=ridge, max_iter=max_iter, tol=tol, callback=callback)


def disobeyed(X: Floats, triplets: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which answers the positions contradict: near is not nearer than far."""
    return margins(X, triplets) <= 0


def margins(X: Floats, triplets: NDArray[np.integer]) -> Floats:
    """By how much far is farther from the head than near, for each answer."""
    head, near, far = triplets.T
    to_near = np.linalg.norm(X[head] - X[near], axis=1)
    to_far = np.linalg.norm(X[head] - X[far], axis=1)
    return np.asarray(to_far - to_near)


class _Objective:
    """The function to minimise, and the best positions it has seen."""

    def __init__(self, evaluate: Evaluate, shape: tuple[int, ...], ridge: float) -> None:
        self.evaluate, self.shape, self.ridge = evaluate, shape, ridge
        self.best: tuple[float, float, Floats] | None = None
        self.steps = 0

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        X = flat.reshape(self.shape)
        loss, gradient = self.evaluate(X)
        value = loss
        if self.ridge:
            value += 0.5 * self.ridge * float(np.vdot(X, X))
            gradient += self.ridge * X
        if self.best is None or value < self.best[0]:
            self.best = value, loss, X.copy()
        return value, gradient.ravel()


def minimise(
    evaluate: Evaluate,
    start: Floats,
    *,
    ridge: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-7,
    callback: Callback | None = None,
) -> Fit:
    """Minimise any mean loss that says its value and gradient; see `fit_positions` for the rest."""
    objective = _Objective(evaluate, start.shape, ridge)

    def after_step(intermediate_result: Any) -> None:
        objective.steps += 1
        if callback is not None:
            assert objective.best is not None
            callback(objective.steps, float(intermediate_result.fun), objective.best[2])
        if intermediate_result.fun == 0.0:
            raise StopIteration

    # L-BFGS multiplies tiny matrices: more threads only wait for each other, up to 20 times
    # longer than the work takes on a busy machine
    with _blas().limit(limits=1, user_api="blas"):
        result = minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            options={
                "maxiter": max_iter,
                "maxfun": 4 * max_iter,
                "maxcor": _MEMORY,
                "ftol": tol,
                "gtol": 0.0,
            },
        )
    # a line search that finds nothing better at a loss of nothing is at its end, too
    converged = bool(result.status in (0, 99) or (result.status == 2 and result.fun < 1e-9))
    assert objective.best is not None  # the optimiser evaluates the start
    _, loss, positions = objective.best
    return Fit(positions, loss, objective.steps, converged)


@cache
def _blas() -> Any:
    """What is loaded by now; looking for it takes longer than a small fit."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - a GPU needs none

    return ThreadpoolController()
