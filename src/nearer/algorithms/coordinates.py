"""Where each object lies on each axis of a basis (Section 2.3 of the paper).

`Basis.coordinates` takes the median of the lens and asks nothing. Two ways here ask:

* *linear*: the member of the axis, inside the lens under x, that is nearest to x. The lens is an
  interval of the axis, and a tournament over it asks one question fewer than it has members.
  Theorem 3 of the paper bounds the error of these coordinates.
* *binary*: on an ideal axis, whose members lie on a line, distances from x fall and then rise along
  it, and comparing neighbours finds the turn in log2 of the axis' length. On a real axis the answer
  is a guess.

All objects and all axes are searched side by side.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.algorithms.axes import Axis
from nearer.algorithms.basis import Basis, Endpoints, choose_basis
from nearer.asking.protocol import Record, Strategy, recorded, repeatable, together
from nearer.asking.sort import Order, best_of, bisect
from nearer.embedding import Embedding, Phase
from nearer.errors import InvalidInput

__all__ = ["basis_embedding", "locate_objects"]


def locate_objects(
    basis: Basis, *, search: Literal["linear", "binary"] = "linear"
) -> Strategy[NDArray[np.float64]]:
    """Find each object's place on each axis by comparing axis members from that object.

    Parameters
    ----------
    basis
        What `choose_basis` returned.
    search
        ``"linear"``: the nearest axis member inside the lens under the object. ``"binary"``:
        binary search along the whole axis, right when the members lie on a line.

    Returns
    -------
    strategy
        Its result is ``(n, dimension)`` places, comparable to `Basis.coordinates`.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).random((100, 2)))
    >>> basis = nearer.run(nearer.choose_basis(100, random_state=0), oracle)
    >>> nearer.run(nearer.algorithms.locate_objects(basis), oracle).shape
    (100, 2)
    """
    checks.one_of("search", search, ("linear", "binary"))
    if not isinstance(basis, Basis):
        raise InvalidInput(f"basis is a {type(basis).__name__}: must be what choose_basis returned")
    return _locate(basis, search)


def _locate(basis: Basis, search: str) -> Strategy[NDArray[np.float64]]:
    if not basis.axes:
        return np.empty((basis.n_objects, 0))
    way = _nearest_in_lens if search == "linear" else _turning_point
    columns = yield from together(*(way(basis, axis) for axis in basis.axes))
    return np.stack(columns, axis=1)


def _nearest_in_lens(basis: Basis, axis: Axis) -> Strategy[NDArray[np.float64]]:
    first, last = axis.intervals(*(basis.rankings[p] for p in axis.endpoints))
    n, size = basis.n_objects, last - first + 1
    group = np.repeat(np.arange(n), size)
    place = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size) + first[group]
    nearest = yield from best_of(np.arange(n), axis.members[place], group, nearest=True)
    index = np.empty(n, dtype=np.int64)
    index[axis.members] = np.arange(len(axis))
    places: NDArray[np.float64] = index[nearest].astype(np.float64)
    places[axis.members] = index[axis.members]
    return places


def _turning_point(basis: Basis, axis: Axis) -> Strategy[NDArray[np.float64]]:
    objects = np.setdiff1d(np.arange(basis.n_objects), axis.members)
    low = np.zeros(len(objects), dtype=np.int64)
    high = np.full(len(objects), len(axis) - 1)

    def questions(search: NDArray[np.int64], middle: NDArray[np.int64]) -> NDArray[np.int64]:
        here, ahead = axis.members[middle], axis.members[middle + 1]
        return np.stack([objects[search], here, ahead], axis=1)

    places = np.empty(basis.n_objects)
    places[objects] = yield from bisect(low, high, questions)
    places[axis.members] = np.arange(len(axis))
    return places


@repeatable
def basis_embedding(
    n_objects: int,
    *,
    endpoints: Endpoints = "above",
    order: Order = "fewest-comparisons",
    locate: Literal["median", "linear", "binary"] = "median",
    rank_start: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """The paper's ``Basis``: coordinates on the axes found."""
    checks.one_of("locate", locate, ("median", "linear", "binary"))
    search = choose_basis(
        n_objects,
        random_state=random_state,
        endpoints=endpoints,
        order=order,
        rank_start=rank_start,
    )
    return _basis_embedding(search, locate)


def _basis_embedding(
    search: Strategy[Basis], locate: Literal["median", "linear", "binary"]
) -> Strategy[Embedding]:
    record = Record()
    basis = yield from search
    n = basis.n_objects
    if not basis.axes:
        raise InvalidInput(
            f"the budget was spent after {basis.n_comparisons} comparisons, before one axis was "
            f"complete; two rankings of {n} objects take about "
            f"{2 * n * int(np.log2(n))} comparisons; raise the budget"
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
