"""Every way to embed by asking: its name, its maker, a line about it.

The library and the command read this one list. A maker is called as
``make(n_objects, random_state=…, **options)`` and returns a strategy that gives an `Embedding`.
Its signature says which options it takes; an option that is given and not among them is an error,
never ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nearer import checks
from nearer.errors import InvalidInput

if TYPE_CHECKING:
    from nearer.asking.protocol import Strategy
    from nearer.embedding import Embedding

_SET_BY_RUNS = ("n_objects", "random_state", "begun_with")

__all__ = ["METHODS", "Method", "make_strategy", "makers"]


@dataclass(frozen=True)
class Method:
    """A way to embed by asking.

    Examples
    --------
    >>> METHODS["rand+soe"].takes
    ('budget', 'n_components')
    """

    name: str
    about: str

    @property
    def make(self) -> Callable[..., Strategy[Embedding]]:
        """From the number of objects and options, a strategy."""
        return makers()[self.name]

    @property
    def takes(self) -> tuple[str, ...]:
        """The options that may be given."""
        return tuple(k for k in inspect.signature(self.make).parameters if k not in _SET_BY_RUNS)


@cache
def makers() -> dict[str, Callable[..., Strategy[Embedding]]]:
    """Loaded when one is made: kernels take a second and 80 MB, which a server can spare."""
    from nearer.algorithms import pipelines  # noqa: PLC0415
    from nearer.algorithms.adaptive import adaptive  # noqa: PLC0415
    from nearer.algorithms.basis import basis_embedding  # noqa: PLC0415
    from nearer.algorithms.crowd_kernel_learning import crowd_kernel  # noqa: PLC0415

    return {
        "adaptive": adaptive,
        "basis": basis_embedding,
        "basis+soe": pipelines.basis_soe,
        "extra+soe": pipelines.extra_soe,
        "rand+soe": pipelines.rand_soe,
        "crowd-kernel": crowd_kernel,
        "paper": pipelines.paper_protocol,
    }


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("adaptive", "as few comparisons as positions and dimension take"),
        Method("basis", "the paper's Basis: places on the axes found"),
        Method("basis+soe", "Basis, then soft ordinal embedding of its answers"),
        Method("extra+soe", "the same, then every object's neighbourhood"),
        Method("rand+soe", "random comparisons, then soft ordinal embedding"),
        Method("crowd-kernel", "the adaptive Crowd Kernel"),
        Method("paper", "the paper's Basis+SOE with its own restarts"),
    )
}


def make_strategy(
    method: str, n_objects: int, *, random_state: int | None = None, **options: Any
) -> Strategy[Embedding]:
    """Make a method's strategy from the options that were given; None means not given.

    `budget` may be given to any method: one that does not plan with it is simply cut off by
    ``run(..., budget=)``.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(60, 2, random_state=0))
    >>> nearer.run(make_strategy("basis", 60, random_state=0), oracle).dimension
    2
    """
    way = METHODS[checks.one_of("method", method, tuple(METHODS))]
    wanted = {name: value for name, value in options.items() if value is not None}
    foreign = sorted(set(wanted) - {"budget", *way.takes})
    if foreign:
        fit = [other.name for other in METHODS.values() if set(foreign) <= set(other.takes)]
        raise InvalidInput(
            f"{', '.join(f'{name}={wanted[name]!r}' for name in foreign)}: the method {method!r} "
            f"has no such option; {', '.join(fit) or 'none'} has"
        )
    known = {name: value for name, value in wanted.items() if name in way.takes}
    return way.make(n_objects, random_state=random_state, **known)
