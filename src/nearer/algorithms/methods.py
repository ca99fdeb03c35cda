"""Every way to embed by asking: its name, its maker, what it needs and takes, a line about it.

The library, the command and the studies read this one list. A maker is called as
``make(n_objects, random_state=…, **options)`` and returns a strategy that gives an `Embedding`.
Its signature says which options it takes and which of them it needs; an option that is given and
not among them is an error, never ignored.

People in a study answer when they like. Some methods work for them: those that go on *in rounds*,
from decisions that several people voted on, and those that choose the next questions as *a stream*
from whatever answers there are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from nearer import checks
from nearer.algorithms.choose_questions import default_budget
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
    #: how people's answers in a study move it on; None: it is not for studies
    in_studies: Literal["rounds", "stream"] | None = None

    @property
    def make(self) -> Callable[..., Strategy[Embedding]]:
        """From the number of objects and options, a strategy."""
        return makers()[self.name]

    @property
    def takes(self) -> tuple[str, ...]:
        """The options that may be given."""
        return tuple(self._options())

    @property
    def needs_budget(self) -> bool:
        """Whether it cannot do without a budget."""
        option = self._options().get("budget")
        return option is not None and option.default is inspect.Parameter.empty

    def _options(self) -> dict[str, inspect.Parameter]:
        options = dict(inspect.signature(self.make).parameters)
        return {k: v for k, v in options.items() if k not in _SET_BY_RUNS}


@cache
def makers() -> dict[str, Callable[..., Strategy[Embedding]]]:
    """Loaded when one is made: kernels take a second and 80 MB, which a server can spare."""
    from nearer.algorithms.adaptive import adaptive  # noqa: PLC0415
    from nearer.algorithms.coordinates import basis_embedding  # noqa: PLC0415
    from nearer.algorithms.crowd_kernel_learning import crowd_kernel  # noqa: PLC0415
    from nearer.algorithms.pipelines import (  # noqa: PLC0415
        basis_soe,
        extra_soe,
        paper_protocol,
        rand_soe,
    )

    return {
        "adaptive": adaptive,
        "informative": adaptive,
        "basis": basis_embedding,
        "basis+soe": basis_soe,
        "extra+soe": extra_soe,
        "rand+soe": rand_soe,
        "crowd-kernel": crowd_kernel,
        "paper": paper_protocol,
    }


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("adaptive", "as few comparisons as positions and dimension take", "rounds"),
        Method("informative", "answers may be wrong: asks what teaches most", "stream"),
        Method("basis", "the paper's Basis: places on the axes found", "rounds"),
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
    ``run(..., budget=)``. One that needs it and is given none gets `default_budget`.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(60, 2, random_state=0))
    >>> nearer.run(make_strategy("basis", 60, random_state=0), oracle).dimension
    2
    """
    way = METHODS[checks.one_of("method", method, tuple(METHODS))]
    given = {name: value for name, value in options.items() if value is not None}
    foreign = sorted(set(given) - {"budget", *way.takes})
    if foreign:
        fit = [other.name for other in METHODS.values() if set(foreign) <= set(other.takes)]
        raise InvalidInput(
            f"{', '.join(f'{name}={given[name]!r}' for name in foreign)}: the method {method!r} "
            f"has no such option; {', '.join(fit) or 'none'} has"
        )
    if way.needs_budget:
        given.setdefault("budget", default_budget(checks.n_objects(n_objects)))
    known = {name: value for name, value in given.items() if name in way.takes}
    return way.make(n_objects, random_state=random_state, **known)
