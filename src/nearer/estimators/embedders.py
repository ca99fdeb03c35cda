"""Embedders that minimise one loss, as scikit-learn estimators.

Each is a dataclass: its fields are scikit-learn's parameters, written once for all of them, and a
loss with a number of its own adds that one field.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.errors import InvalidInput
from nearer.estimators.triplet_estimator import TripletEstimator
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.on_gpu import GpuPasses
from nearer.fitting.solver import Fit, Passes, fit_positions
from nearer.fitting.starts import fit_from_above, random_start, ranking_start, triplet_ranks
from nearer.jobs import each

__all__ = ["CKL", "GNMDS", "SOE", "STE", "TSTE"]


@dataclass(eq=False, repr=False)
class _LossEstimator(TripletEstimator):
    """An embedder that minimises one loss."""

    n_components: int = 2
    _: KW_ONLY
    n_init: int = 1
    init: ArrayLike | str = "above"
    max_iter: int = 2000
    tol: float = 1e-9
    random_state: Any = None
    n_objects: int | None = None
    device: str = "auto"
    verbose: bool = False

    def _loss(self) -> Loss:
        return Loss(type(self).__name__.lower())

    def _embed(
        self,
        passes: Passes | GpuPasses,
        d: int,
        rng: np.random.Generator,
        init: Any,
        people: ArrayLike | None,  # a loss counts all answers the same
    ) -> Fit:
        options: dict[str, Any] = {
            "loss": self._loss(),
            "max_iter": checks.whole("max_iter", self.max_iter),
            "tol": checks.positive("tol", self.tol),
            "callback": _report if self.verbose else None,
        }
        above = isinstance(init, str) and init == "above"

        def once(start_rng: np.random.Generator) -> Fit:
            if above:
                return fit_from_above(passes, n_components=d, rng=start_rng, **options)
            return fit_positions(passes, start=_start(init, passes, d, start_rng), **options)

        starts = rng.spawn(checks.whole("n_init", self.n_init))
        if not isinstance(init, str):
            starts = starts[:1]  # the same array again would give the same positions again
        if isinstance(passes, GpuPasses):  # answers on a device stay there
            fits = [once(start_rng) for start_rng in starts]
        else:
            fits = each(once, [(start_rng,) for start_rng in starts])
        return min(fits, key=lambda fit: fit.loss)


_COMMON = """
    Parameters
    ----------
    n_components
        Dimension of the positions.
    n_init
        How many starts; the one with the smallest loss is kept.
    init
        ``"above"`` comes down from a few dimensions more, ``"random"`` starts from a random
        cloud, ``"rankings"`` from the rankings that the answers suggest; or an array.
    max_iter, tol
        Steps of the optimiser, and the gain of a step, relative to the loss, that ends it.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.
    n_objects
        How many objects there are; None: the largest index plus one.
    device
        ``"cuda"``: fit on a GPU (needs ``nearer[gpu]``). ``"auto"``: where there is one and the
        problem is large enough to gain. ``"cpu"``: never.
    verbose
        Print the loss after every hundredth step.

    Attributes
    ----------
    embedding_
        ``(n_objects, n_components)`` positions.
    objects_
        What the objects are called, where answers were about names; else None.
    stress_
        Weighted mean loss.
    n_iter_, converged_
        Steps of the optimiser, of all stages, and whether it ended by itself.
    n_contradictions_
        How many questions have both answers.
"""


def _example(name: str) -> str:
    """An example that suits every estimator of one loss."""
    return f"""
    Examples
    --------
    >>> import nearer
    >>> model = nearer.{name}(1, tol=1e-3, random_state=0).fit([[0, 1, 2], [2, 1, 0]])
    >>> model.embedding_.shape, model.predict([[0, 2, 1]])
    ((3, 1), array([False]))
    """


class SOE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Soft ordinal embedding: distances differ by a unit (Terada, von Luxburg 2014).
{_COMMON}{_example("SOE")}"""


@dataclass(eq=False, repr=False)
class CKL(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Crowd kernel: odds are ratios of squared distances (Tamuz et al. 2011).

    ``mu`` is added to both squared distances.
{_COMMON}{_example("CKL")}"""

    _: KW_ONLY
    mu: float = 0.05

    def _loss(self) -> Loss:
        return Loss("ckl", checks.positive("mu", self.mu))


class GNMDS(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Generalised non-metric MDS, on squared distances (Agarwal et al. 2007).
{_COMMON}{_example("GNMDS")}"""


class STE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Stochastic triplet embedding (van der Maaten, Weinberger 2012).
{_COMMON}{_example("STE")}"""


@dataclass(eq=False, repr=False)
class TSTE(_LossEstimator):  # noqa: D101 - it is built below
    __doc__ = f"""Stochastic triplet embedding with Student's t (van der Maaten, Weinberger 2012).

    ``alpha`` is the degrees of freedom.
{_COMMON}{_example("TSTE")}"""

    _: KW_ONLY
    alpha: float = 1.0

    def _loss(self) -> Loss:
        return Loss("tste", checks.positive("alpha", self.alpha))


def _start(init: Any, passes: Passes | GpuPasses, d: int, rng: np.random.Generator) -> Floats:
    n = passes.n_objects
    if not isinstance(init, str):
        start = np.asarray(init, dtype=np.float64)
        if start.shape != (n, d):
            raise InvalidInput(f"init of shape {start.shape}: must be ({n}, {d})")
        return start
    if init == "random":
        return random_start(n, d, rng)
    if init == "rankings":
        return ranking_start(triplet_ranks(passes.rows, n), d)
    raise InvalidInput(f"init={init!r}: must be 'above', 'random', 'rankings' or an array")


def _report(step: int, loss: float, _: Any) -> None:
    if step % 100 == 0:
        print(f"step {step}: loss {loss:.3e}")  # noqa: T201 - what verbose asks for
