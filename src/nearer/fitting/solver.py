r"""Positions from answers: minimise a loss from one start.

The objective is the weighted mean loss plus ridge · ‖X‖²/2 (per triplet, so a Gaussian prior of
variance s² on every coordinate of a likelihood over m answers is ridge = 1/(m s²)). It is not
convex; the start decides which local minimum is reached (`nearer.fitting.initial`).

The optimiser is L-BFGS, with the same loop on the processor and on a GPU. The step length satisfies
the weak Wolfe conditions, by doubling and bisection (Lewis and Overton 2013), which also works for
losses with kinks. Between two passes SciPy's optimiser takes 70 µs, as long as a pass over 1,500
answers, and this loop takes 20 µs.

*Losses.* A triplet (head, near, far) says δ = ‖head − near‖ is smaller than Δ = ‖head − far‖.
Each loss turns the two distances into a number, small where the answer is satisfied:

========  ======================================  =================================================
soe       max(0, 1 + δ − Δ)²                      soft ordinal embedding (Terada, von Luxburg 2014)
logistic  −log(ε + (1 − 2ε)/(1 + exp(δ − Δ)))     uncertain near a tie, any answer wrong at rate ε
ckl       −log (μ + Δ²)/(2μ + δ² + Δ²)            crowd kernel (Tamuz et al. 2011)
gnmds     max(0, 1 + δ² − Δ²), bend rounded       generalised non-metric MDS (Agarwal et al. 2007)
ste       log(1 + exp(δ² − Δ²))                   stochastic (van der Maaten, Weinberger 2012)
tste      log(1 + ((α + δ²)/(α + Δ²))^((α+1)/2))  the same with Student's t, the same paper
========  ======================================  =================================================

All but soe and gnmds are negative log-likelihoods, so they predict probabilities. In *logistic*
the unit of distance is the noise: answers about a difference of one unit are right with
odds e : 1.

*Where passes run.* `using` sets the device for everything that is fitted inside it. ``"auto"`` uses
a GPU if there is one, the problem is large enough to gain from it and fits into its memory.
`nearer.scale.gpu`, which imports PyTorch and Triton, is imported when a GPU is wanted, and Numba
when the processor has work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.questions import Floats

_DECREASE, _CURVATURE = 1e-4, 0.9  # of the Wolfe conditions (Nocedal and Wright 2006, chapter 3)
_CLOUD = 0.1  # spread of a random start, in units of soe's margin
# Step lengths tried in one direction: positions on a GPU have no more binary digits.
_MOST_TRIALS = np.finfo(np.float32).nmant

Sums = Callable[[Floats], tuple[float, Floats]]
Callback = Callable[[int, float, Any], object]


@dataclass(frozen=True)
class Fit:
    """Positions, the weighted mean loss of the answers without the ridge, and steps taken.

    `converged` is False if `max_iter` ended the fit.
    """

    positions: Floats
    loss: float
    n_iter: int
    converged: bool


class Passes:
    """Triplets and how much each counts, laid out for many passes over them on the processor."""

    on_gpu = False

    def __init__(self, rows: NDArray[np.int32], weights: Floats | None, n_objects: int) -> None:
        from nearer._kernels.comparisons import in_cache_order  # noqa: PLC0415

        self.n_objects, self.rows, self.weights = n_objects, rows, weights
        self.total = float(len(rows)) if weights is None else float(weights.sum())
        self._rows, self._weights = in_cache_order(rows, weights, n_objects)

    def __len__(self) -> int:
        return len(self.rows)

    def fit(self, loss: Loss, X: Floats, **how: Any) -> Fit:
        """Minimise a loss from one start; `how` are options of `minimise`."""
        return minimise(lambda Z: self.sums(loss, Z), self.total, X, **how)

    def sums(self, loss: Loss, X: Floats) -> tuple[float, Floats]:
        """One pass: the sum of the losses, and its gradient."""
        return loss.sums(X, self._rows, self._weights)

    def violated(self, X: Floats) -> NDArray[np.bool_]:
        """Which answers the positions violate, in the order of the answers."""
        return np.asarray(self._gaps(X) <= 0)

    def share_violated(self, X: Floats) -> float:
        """The share of the answers that the positions violate."""
        return float(np.average(self.violated(X), weights=self.weights))

    def least_margin(self, X: Floats) -> float:
        """The smallest margin by which an answer is satisfied."""
        return float(self._gaps(X).min())

    def _gaps(self, X: Floats) -> Floats:
        return margins(X, self.rows)

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        from nearer._kernels.comparisons import information  # noqa: PLC0415

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
    """Check answers and lay them out where passes over them run (`using`)."""
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
        A name of `LOSSES`, a `Loss` with its shape, or an object of your own with a method
        ``sums(X, triplets, weights)``: the weighted sum of the losses and its gradient in `X`. Your
        own runs on the processor.
    start
        ``(n_objects, n_components)`` positions to begin at; None: standard normal ones from `rng`.
    weights
        One non-negative number for each triplet.
    ridge
        Strength of the pull to the origin, see above.
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
        rng = checks.one("rng", rng, np.random.Generator, "a NumPy Generator; or give a start")
        X = rng.standard_normal((n, checks.n_components(n_components, n)))
    else:
        X = checks.array("start", start, (n, "n_components"), "a row for each object").copy()
    ridge, tol = checks.not_negative("ridge", ridge), checks.not_negative("tol", tol)
    how: Any = {"ridge": ridge, "max_iter": checks.whole("max_iter", max_iter), "tol": tol}
    how["callback"] = checks.one("callback", callback, Callable | None, "a function or None")
    chosen: Any = as_loss(loss)
    if not isinstance(chosen, Loss):
        value, gradient = passes.sums(chosen, X)
        checks.finite("the sum that loss.sums returned", value)
        checks.array("the gradient of loss.sums", gradient, X.shape, "one for each coordinate")
    return passes.fit(chosen, X, **how)


def violated(X: Floats, triplets: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which answers the positions violate: near is not nearer than far."""
    return margins(X, triplets) <= 0


def margins(X: Floats, triplets: NDArray[np.integer]) -> Floats:
    """By how much far is farther from the head than near, for each answer."""
    head, near, far = triplets.T
    to_near = np.linalg.norm(X[head] - X[near], axis=1)
    to_far = np.linalg.norm(X[head] - X[far], axis=1)
    return np.asarray(to_far - to_near)


def minimise(
    sums: Sums,
    total: float,
    start: Any,
    *,
    ridge: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-7,
    callback: Callback | None = None,
    memory: Any = None,
) -> Fit:
    """Minimise sums(X) / total + ridge · ‖X‖²/2 from one start, as `fit_positions` says.

    `memory` holds past steps on the same device: `nearer._kernels.comparisons.StepMemory`, or
    that of a GPU.
    """
    if memory is None:
        from nearer._kernels.comparisons import StepMemory  # noqa: PLC0415

        start = np.array(start, dtype=np.float64)
        memory = StepMemory(start.size)
    shape, x = start.shape, start.reshape(-1)

    def objective(x: Any) -> tuple[float, float, Any]:
        loss, gradient = sums(x.reshape(shape))
        flat = gradient.reshape(-1)
        return loss / total + memory.penalise(x, flat, total, ridge), loss / total, flat

    value, loss, gradient = objective(x)
    slope, step, converged = 0.0, 0, False
    while step < max_iter and not converged:
        if not slope < 0.0:  # at the start, and if rounding has spoilt the memory
            slope = memory.forget(gradient)
        if slope == 0.0:
            converged = True
            break
        tried, new = _search(objective, x, value, slope, memory)
        if not new[0] < value:  # no step is better
            converged, slope = not memory.count, 0.0
            continue
        slope, step = memory.turn(x, gradient, tried, new[2]), step + 1
        gain, x, (value, loss, gradient) = value - new[0], tried, new
        converged = value == 0.0 or gain <= tol * max(abs(value), abs(value + gain), 1.0)
        try:
            if callback is not None:
                callback(step, value, x.reshape(shape))
        except StopIteration:
            converged = True
    return Fit(x.reshape(shape), loss, step, converged)


def _search(
    objective: Callable[[Any], tuple[float, float, Any]],
    x: Any,
    value: float,
    slope: float,
    memory: Any,
) -> tuple[Any, tuple[float, float, Any]]:
    """The end of a step of acceptable length, and the objective there."""
    low, high, length = 0.0, math.inf, 1.0 if memory.count else 1.0 / math.sqrt(-slope)
    for _ in range(_MOST_TRIALS):
        tried = x + length * memory.direction
        new = objective(tried)
        if not new[0] <= value + _DECREASE * length * slope:  # also true of NaN
            high = length
        elif memory.inner(memory.direction, new[2]) >= _CURVATURE * slope:
            break
        else:
            low = length
        length = 2.0 * low if high == math.inf else 0.5 * (low + high)
    return tried, new


# --- losses --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """A loss by name, with its shape: ε of logistic, μ of ckl or α of tste.

    None is the default of `LOSSES`. The kernels take the loss as `kind` and `number`.
    """

    name: str
    shape: float | None = None
    kind: int = field(init=False, repr=False, compare=False)
    number: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise InvalidInput(f"loss={self.name!r}: must be one of {', '.join(sorted(LOSSES))}")
        kind, default, low, high = LOSSES[self.name]
        if self.shape is not None and default is None:
            rule = f"the loss {self.name!r} has no shape; leave it out"
            raise InvalidInput(f"shape={self.shape}: {rule}")
        shape = default if self.shape is None else self.shape
        if shape is not None and not low <= shape < high:
            rule = f"the loss {self.name!r} needs a number from {low} to below {high}"
            raise InvalidInput(f"shape={shape}: {rule}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "number", 0.0 if shape is None else float(shape))

    def value_and_gradient(
        self, X: Floats, triplets: NDArray[np.integer], weights: Floats | None = None
    ) -> tuple[float, Floats]:
        """Weighted mean of the loss over triplets, and its gradient in the positions."""
        total, gradient = self.sums(X, triplets, weights)
        whole = len(triplets) if weights is None else float(weights.sum())
        scale = 1.0 / max(whole, np.finfo(float).tiny)
        gradient *= scale
        return total * scale, gradient

    def sums(
        self, X: Floats, triplets: NDArray[np.integer], weights: Floats | None = None
    ) -> tuple[float, Floats]:
        """Weighted sum of the loss over triplets, and its gradient in the positions."""
        from nearer._kernels import comparisons as kernel  # noqa: PLC0415 - a GPU needs no Numba

        total, gradient = kernel.value_and_gradient(self.kind, self.number, X, triplets, weights)
        return float(total), gradient


_TINY = float(np.finfo(float).tiny)
#: name -> number in the kernels, default shape (None: has none), lowest and first too high shape
LOSSES: dict[str, tuple[int, float | None, float, float]] = {
    "soe": (0, None, 0, 0),
    "logistic": (1, 0.0, 0.0, 0.5),
    "ckl": (2, 0.05, _TINY, np.inf),
    "gnmds": (3, None, 0, 0),
    "ste": (4, None, 0, 0),
    "tste": (5, 1.0, _TINY, np.inf),
}


def as_loss(loss: str | Loss) -> Loss:
    """Return a loss, also by its name."""
    rule = "the name of a loss, or an object with a method sums(X, triplets, weights)"
    return Loss(loss) if isinstance(loss, str) else checks.one("loss", loss, "sums", rule)


# --- devices -------------------------------------------------------------------------------------


Device = Literal["auto", "cpu", "cuda"]

_device: ContextVar[str] = ContextVar("device", default="cpu")

_VECTORS = 30  # the most arrays of the size of the positions that L-BFGS holds
_WORTH = 200_000  # answers; a pass over fewer takes less than 10 ms on one core


@contextmanager
def using(device: str) -> Iterator[None]:
    """Fit on this device inside the block."""
    checks.one_of("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda":
        gpu()
    token = _device.set(device)
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's
            raise
        why = str(error).splitlines()[0]
        remedy = "use device='cpu', or fit fewer answers"
        raise InvalidInput(f"the GPU has too little memory ({why}); {remedy}") from error
    finally:
        _device.reset(token)


def gpu() -> Any:
    """The module `nearer.scale.gpu`, or an error that says what is missing."""
    try:
        from nearer.scale import gpu as room  # noqa: PLC0415 - imports PyTorch
    except (ImportError, OSError) as error:  # OSError: libraries of PyTorch are missing
        remedy = "install nearer[gpu], or use device='cpu'"
        raise InvalidInput(f"device='cuda' needs PyTorch and Triton ({error}); {remedy}") from error
    if not room.is_available():
        rule = "PyTorch sees no CUDA device here; use device='auto' or 'cpu'"
        raise InvalidInput(f"device='cuda': {rule}")
    return room


def wants_gpu(n_answers: int, n_objects: int, n_components: int = 8) -> bool:
    """Whether a problem of this size is to be fitted on a GPU."""
    device = _device.get()
    if device == "cpu" or (device == "auto" and n_answers < _WORTH):
        return False
    needed = 16 * n_answers + 4 * _VECTORS * n_objects * n_components
    try:
        free = gpu().free_memory()
    except InvalidInput:
        if device == "auto":
            return False
        raise
    if needed <= free or device == "auto":
        return bool(needed <= free)
    what = f"{n_answers:,} answers about {n_objects:,} objects need about {needed / 2**30:.1f} GiB"
    rule = f"the GPU has {free / 2**30:.1f} GiB free; use device='cpu', or fit fewer answers"
    raise InvalidInput(f"device='cuda': {what} and {rule}")


def as_array(X: Any) -> Floats:
    """Positions on the processor, wherever they are."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.double().cpu().numpy())


def random_start(n: int, d: int, rng: np.random.Generator) -> Floats:
    """A tiny random cloud: all objects nearly coincide, but without symmetry."""
    return _CLOUD * rng.standard_normal((n, checks.n_components(d)))


def principal_axes(X: Floats, d: int) -> Floats:
    """Centred positions on the first d of their principal axes; zero if there are fewer."""
    left, strength, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    # Of the two signs of a direction, the one that agrees with the input.
    side = np.where(right[np.arange(len(right)), np.abs(right).argmax(axis=1)] < 0, -1.0, 1.0)
    axes = (left * (strength * side))[:, :d]
    return np.pad(axes, ((0, 0), (0, d - axes.shape[1])))
