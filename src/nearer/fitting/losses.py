r"""What it costs when positions contradict an answer: one loss, one place.

A triplet (head, near, far) says δ = ‖head − near‖ is smaller than Δ = ‖head − far‖. Each loss
turns the two distances into a number, small where the answer is obeyed:

========  ======================================  =================================================
soe       max(0, 1 + δ − Δ)²                      soft ordinal embedding (Terada, von Luxburg 2014)
logistic  −log(ε + (1 − 2ε)/(1 + exp(δ − Δ)))     doubt near a tie, and any answer wrong at rate ε
ckl       −log (μ + Δ²)/(2μ + δ² + Δ²)            crowd kernel (Tamuz et al. 2011)
gnmds     max(0, 1 + δ² − Δ²), bend rounded       generalised non-metric MDS (Agarwal et al. 2007)
ste       log(1 + exp(δ² − Δ²))                   stochastic (van der Maaten, Weinberger 2012)
tste      log(1 + ((α + δ²)/(α + Δ²))^((α+1)/2))  the same with Student's t, the same paper
========  ======================================  =================================================

All but soe and gnmds are negative log-likelihoods, so they predict probabilities. In *logistic*
the unit of distance is the noise: answers about a difference of one unit are right with
odds e : 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput

__all__ = ["LOSSES", "Loss", "as_loss"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A loss by name, with the one number its formula leaves open.

    Parameters
    ----------
    name
        A key of `LOSSES`.
    shape
        ε of logistic (default 0), μ of ckl (default 0.05), α of tste (default 1); None takes the
        default. The other losses have none.

    Attributes
    ----------
    kind, number
        The loss and its shape as the kernels know them.

    Examples
    --------
    >>> import numpy as np
    >>> X, triplets = np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1, 2], [2, 0, 1]])
    >>> value, gradient = Loss("soe").value_and_gradient(X, triplets)
    >>> float(value)
    2.0
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
            raise InvalidInput(
                f"shape={self.shape}: the loss {self.name!r} has no shape; leave it out"
            )
        shape = default if self.shape is None else self.shape
        if shape is not None and not low <= shape < high:
            raise InvalidInput(
                f"shape={shape}: the loss {self.name!r} needs a number from {low} to below {high}"
            )
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

    def probability(self, near: Floats, far: Floats) -> Floats:
        """How likely the answer "near" is, given the two distances.

        The losses without a likelihood take the logistic curve of the distance difference.
        """
        with np.errstate(over="ignore"):
            match self.name:
                case "ckl":
                    mu = self.number
                    return np.asarray((mu + far**2) / (2 * mu + near**2 + far**2))
                case "ste" | "gnmds":
                    return np.asarray(1 / (1 + np.exp(near**2 - far**2)))
                case "tste":
                    alpha = self.number
                    ratio = (alpha + near**2) / (alpha + far**2)
                    return np.asarray(1 / (1 + ratio ** ((alpha + 1) / 2)))
                case _:
                    lapse = self.number
                    return np.asarray(lapse + (1 - 2 * lapse) / (1 + np.exp(near - far)))


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
    """Return a loss by name or as it is."""
    return loss if isinstance(loss, Loss) else Loss(loss)
