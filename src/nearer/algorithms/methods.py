"""Every way to embed by asking, under the name that ``nearer embed --method`` takes.

One signature for all: ``make(n_objects, random_state=…, budget=…, n_components=…, …)`` returns an
asking whose result is an `Embedding`. A method takes the options it has a use for; one that is
given and not among them is an error, never ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from nearer.algorithms.adaptive import adaptive
from nearer.algorithms.basis import Endpoints, choose_basis
from nearer.algorithms.coordinates import locate_objects
from nearer.algorithms.crowd_kernel import crowd_kernel
from nearer.algorithms.embedding import Embedding, Phase
from nearer.algorithms.pipelines import basis_soe, extra_soe, paper_protocol, rand_soe
from nearer.asking.protocol import Asking, recorded
from nearer.asking.record import Record
from nearer.asking.sorting import Order
from nearer.errors import InvalidInput

__all__ = ["METHODS", "make_asking"]

Method = Callable[..., Asking[Embedding]]


def basis_embedding(
    n_objects: int,
    *,
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    locate: Literal["median", "linear", "binary"] = "median",
    random_state: int | np.random.Generator | None = None,
) -> Asking[Embedding]:
    """The paper's ``Basis``: coordinates on the axes found."""
    if locate not in ("median", "linear", "binary"):
        raise InvalidInput(f"locate={locate!r}: must be 'median', 'linear' or 'binary'")
    record = Record()
    basis = yield from choose_basis(
        n_objects, random_state=random_state, endpoints=endpoints, order=order
    )
    if not basis.axes:
        raise InvalidInput(
            f"budget={basis.n_comparisons}: does not complete one axis; two rankings of "
            f"{n_objects} objects take about {2 * n_objects * int(np.log2(n_objects))} "
            "comparisons; raise the budget"
        )
    history = [Phase("basis", basis.n_comparisons, basis.n_rounds, basis.stopped)]
    positions = basis.coordinates()
    if locate != "median":
        positions = yield from recorded(locate_objects(basis, search=locate), record)
        note = f"{locate} search along the axes"
        history.append(Phase("coordinates", record.n_comparisons, record.n_rounds, note))
    return Embedding(
        positions=positions,
        triplets=np.concatenate([basis.triplets, record.triplets]),
        n_comparisons=basis.n_comparisons + record.n_comparisons,
        n_rounds=basis.n_rounds + record.n_rounds,
        history=tuple(history),
        evidence={},
        details={"basis": basis},
    )


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
