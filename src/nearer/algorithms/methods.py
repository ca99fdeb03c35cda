"""Every way to embed by asking, under the name that ``nearer embed --method`` takes.

One signature for all: ``make(n_objects, random_state=…, budget=…, n_components=…, …)`` returns an
asking whose result is an `Embedding`. A method takes the options it has a use for; one that is
given and not among them is an error, never ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from nearer.algorithms.adaptive import adaptive
from nearer.algorithms.coordinates import basis_embedding
from nearer.algorithms.crowd_kernel import crowd_kernel
from nearer.algorithms.pipelines import basis_soe, extra_soe, paper_protocol, rand_soe
from nearer.asking.protocol import Asking
from nearer.embedding import Embedding
from nearer.errors import InvalidInput

__all__ = ["METHODS", "make_asking"]

Method = Callable[..., Asking[Embedding]]


METHODS: dict[str, Method] = {
    "adaptive": adaptive,
    "basis": basis_embedding,
    "basis+soe": basis_soe,
    "extra+soe": extra_soe,
    "rand+soe": rand_soe,
    "crowd-kernel": crowd_kernel,
    "paper": paper_protocol,
}


def make_asking(
    method: str, n_objects: int, *, random_state: int | None = None, **options: Any
) -> Asking[Embedding]:
    """Make a method's asking from the options that were given; None means not given.

    `budget` may be given to any method: one that does not plan with it is simply cut off by
    ``run(..., budget=)``.

    Examples
    --------
    >>> import nearer
    >>> oracle = nearer.PointOracle(nearer.datasets.make_cube(60, 2, random_state=0))
    >>> nearer.run(make_asking("basis", 60, random_state=0), oracle).dimension
    2
    """
    make = METHODS[method]
    takes = inspect.signature(make).parameters
    given = {name: value for name, value in options.items() if value is not None}
    foreign = sorted(name for name in given if name not in takes and name != "budget")
    if foreign:
        fit = [name for name, other in METHODS.items() if _takes(other, foreign)]
        raise InvalidInput(
            f"{', '.join(f'{name}={given[name]!r}' for name in foreign)}: the method {method!r} "
            f"has no such option; {', '.join(fit) or 'none'} has"
        )
    return make(
        n_objects,
        random_state=random_state,
        **{name: value for name, value in given.items() if name in takes},
    )


def _takes(method: Method, names: list[str]) -> bool:
    return set(names) <= set(inspect.signature(method).parameters)
