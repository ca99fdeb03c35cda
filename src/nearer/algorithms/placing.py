"""Unseen objects in an existing embedding.

All objects that have a position are anchors; a few of them are heads: those from which the
embedding ranked others, since their positions are the most certain, or else well-spread ones. The
new objects are slotted into the heads' chains (`slotting`), which moves none of the old ones. Each
costs at most 3·d·log2 n comparisons, usually less than half of that.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.algorithms.slotting import Anchors, Slots, slot_objects, spread_heads
from nearer.algorithms.twins import nearest_places
from nearer.asking.protocol import Asking, recorded
from nearer.asking.record import Record
from nearer.embedding import Embedding
from nearer.errors import BudgetSpent, InvalidInput

__all__ = ["Placed", "place_objects"]


@dataclass(frozen=True)
class Placed:
    """Where new objects are, and what it cost to find out.

    Attributes
    ----------
    objects
        ``(q,)`` the new objects.
    positions
        ``(q, d)``, in the space of the embedding.
    triplets
        Every answer paid for, as rows ``(head, near, far)``.
    n_comparisons, n_rounds
        What was asked, and in how many rounds.
    """

    objects: NDArray[np.int64]
    positions: NDArray[np.float64]
    triplets: NDArray[np.int64]
    n_comparisons: int
    n_rounds: int


def place_objects(
    embedding: Embedding, new: ArrayLike, *, most: float = 3.0, pairs: bool = False
) -> Asking[Placed]:
    """Place unseen objects among those of an embedding.

    Parameters
    ----------
    embedding
        With at least 3 objects.
    new
        The new objects' numbers, none of them below the number of old ones.
    most
        At most so many times d·log2 n comparisons an object.
    pairs
        Ask two questions of an object in each round: half the rounds for a few more questions.

    Returns
    -------
    asking
        Its result is `Placed`. Out of budget, it holds the best positions so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).normal(size=(130, 2)))
    >>> embedding = nearer.embed(oracle, 120, random_state=0, progress=False)
    >>> placed = embedding.place(oracle, np.arange(120, 130))
    >>> placed.positions.shape, placed.n_comparisons <= 10 * 3 * 2 * 7
    ((10, 2), True)
    """
    objects = np.asarray(new)
    n, d = embedding.positions.shape
    if objects.ndim != 1 or not (np.issubdtype(objects.dtype, np.integer) or not len(objects)):
        raise InvalidInput(
            f"new of shape {objects.shape} and type {objects.dtype}: must be a list of objects' "
            "numbers"
        )
    objects = objects.astype(np.int64)
    if len(objects) and objects.min() < n:
        raise InvalidInput(
            f"new holds object {objects.min()}: the embedding has objects 0 to {n - 1} already; "
            f"number new ones from {n} on"
        )
    if len(np.unique(objects)) < len(objects):
        raise InvalidInput("new holds an object twice: each is placed once")
    if n < 3:
        raise InvalidInput(f"an embedding of {n} objects: at least 3 are needed to place others")
    if "places" in embedding.details:
        return _share(embedding.positions, objects, np.asarray(embedding.details["places"]))
    heads = embedding.details.get("heads", ())
    if len(heads) < d + 2:
        heads = spread_heads(embedding.positions, d + 3)
    anchors = Anchors(np.arange(n), embedding.positions, np.asarray(heads, dtype=np.int64))
    return _place(anchors, objects, int(most * d * np.log2(n)), pairs)


def _place(anchors: Anchors, new: NDArray[np.int64], most: int, pairs: bool) -> Asking[Placed]:
    record = Record()
    slots = Slots(anchors, new)
    with suppress(BudgetSpent):
        yield from recorded(slot_objects(slots, most=most, pairs=pairs), record)
    return Placed(new, slots.positions, record.triplets, record.n_comparisons, record.n_rounds)


def _share(
    positions: NDArray[np.float64], new: NDArray[np.int64], places: NDArray[np.int64]
) -> Asking[Placed]:
    record, at = Record(), np.zeros(len(new), dtype=np.int64)
    with suppress(BudgetSpent):
        at = yield from recorded(nearest_places(new, places), record)
    where = positions[places[at]]
    return Placed(new, where, record.triplets, record.n_comparisons, record.n_rounds)
