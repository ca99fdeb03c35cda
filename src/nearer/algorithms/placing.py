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
from numpy.typing import ArrayLike

from nearer.algorithms.slotting import Anchors, Slots, slot_objects, spread_heads
from nearer.algorithms.twins import nearest_places
from nearer.asking.protocol import Strategy, recorded, repeatable
from nearer.asking.record import Record
from nearer.embedding import Embedding
from nearer.errors import BudgetSpent, InvalidInput
from nearer.questions import Floats, Objects

__all__ = ["Placed", "place_among", "place_objects"]


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

    objects: Objects
    positions: Floats
    triplets: Objects
    n_comparisons: int
    n_rounds: int


@repeatable
def place_objects(
    embedding: Embedding,
    new: ArrayLike,
    *,
    most: float = 3.0,
    pairs: bool = False,
    keep_triplets: bool = True,
) -> Strategy[Placed]:
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
    keep_triplets
        False: the result is without them, and they take no memory on the way.

    Returns
    -------
    strategy
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
    if not isinstance(embedding, Embedding):
        raise InvalidInput(f"embedding is a {type(embedding).__name__}: must be an Embedding")
    if (n := len(embedding.positions)) < 3:
        raise InvalidInput(f"an embedding of {n} objects: at least 3 are needed to place others")
    return place_among(
        embedding.positions,
        _check_new(new, n),
        heads=embedding.details.get("heads"),
        places=embedding.details.get("places"),
        most=most,
        pairs=pairs,
        keep_triplets=keep_triplets,
    )


def place_among(
    positions: Floats,
    new: Objects,
    *,
    ids: Objects | None = None,
    heads: Objects | None = None,
    places: Objects | None = None,
    most: float = 3.0,
    pairs: bool = False,
    keep_triplets: bool = True,
) -> Strategy[Placed]:
    """`place_objects` among objects with these positions, nothing checked.

    Parameters
    ----------
    positions, ids
        ``(m, d)`` positions, and the ``(m,)`` numbers of whom they belong to; None: 0, 1, 2, ….
    new
        The numbers of the new objects.
    heads
        Rows of `positions` to compare from; None or fewer than d + 2: well-spread ones.
    places
        Rows of `positions`, one for each place, where objects share a few places; None: they
        do not.
    most, pairs, keep_triplets
        As for `place_objects`.
    """
    ids = np.arange(len(positions)) if ids is None else ids
    n, d = positions.shape
    record = Record(keep=keep_triplets)
    if places is not None:
        at = np.zeros(len(new), dtype=np.int64)
        with suppress(BudgetSpent):
            at = yield from recorded(nearest_places(new, ids[np.asarray(places)]), record)
        where = positions[np.asarray(places)[at]]
    else:
        if heads is None or len(heads) < d + 2:
            heads = spread_heads(positions, d + 3)
        slots = Slots(Anchors(ids, positions, np.asarray(heads, dtype=np.int64)), new)
        with suppress(BudgetSpent):
            strategy = slot_objects(slots, most=int(most * d * np.log2(n)), pairs=pairs)
            yield from recorded(strategy, record)
        where = slots.positions
    return Placed(new, where, record.triplets, record.n_comparisons, record.n_rounds)


def _check_new(new: ArrayLike, n: int) -> Objects:
    objects = np.asarray(new)
    if objects.ndim != 1 or not (np.issubdtype(objects.dtype, np.integer) or not len(objects)):
        raise InvalidInput(
            f"new of shape {objects.shape} and type {objects.dtype}: must be a list of objects' "
            "numbers"
        )
    if len(objects) and objects.min() < n:
        raise InvalidInput(
            f"new holds object {objects.min()}: the embedding has objects 0 to {n - 1} already; "
            f"number new ones from {n} on"
        )
    if len(np.unique(objects)) < len(objects):
        raise InvalidInput("new holds an object twice: each is placed once")
    return objects.astype(np.int64)
