"""Objects are what the user has: names, texts, paths. Inside, they are numbers.

An oracle that is asked about such objects gets a list of tuples ``(head, a, b)`` of them, in the
place of an array of numbers; a screen is a tuple of the query, None where there is none, and
whatever is shown. An oracle that says how many objects it knows (``n_objects``, as `PointOracle`
does) speaks of numbers, and only the result carries the names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from nearer import checks
from nearer.errors import InvalidInput
from nearer.questions import Questions

__all__ = ["Names", "as_names"]


class Names:
    """The objects of a run, by number."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self.objects = tuple(objects)
        first: dict[Any, int] = {}
        for number, thing in enumerate(self.objects):
            if isinstance(thing, Hashable) and first.setdefault(thing, number) != number:
                raise InvalidInput(
                    f"objects {first[thing]} and {number} are both {thing!r}: each must be there "
                    "once; list(dict.fromkeys(objects)) drops repeats"
                )

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def digest(self) -> str:
        """A few letters that other objects, or the same in another order, do not have."""
        words = "\0".join(map(str, self.objects))
        return f"{len(self)} objects, {hashlib.sha256(words.encode()).hexdigest()[:16]}"

    def tuples(self, questions: Questions) -> list[tuple[Any, ...]]:
        """Questions as the oracle gets them."""
        things = self.objects
        return [
            tuple(things[i] if i >= 0 else None for i in row)
            for row in np.asarray(questions).tolist()
        ]


def as_names(objects: Any) -> tuple[int, Names | None]:
    """How many objects there are, and their names where they have some.

    Examples
    --------
    >>> as_names(40)
    (40, None)
    >>> n, names = as_names(["cat", "dog", "eel"])
    >>> n, names.tuples([[0, 2, 1]])
    (3, [('cat', 'eel', 'dog')])
    """
    if isinstance(objects, str | bytes) or not hasattr(objects, "__len__"):
        return checks.n_objects(objects), None
    if isinstance(objects, set | frozenset) or hasattr(objects, "columns"):
        raise InvalidInput(
            f"objects is a {type(objects).__name__}: list what the objects are, one for each, in "
            "an order; of a table pass one column"
        )
    things = objects.tolist() if hasattr(objects, "tolist") else list(objects)
    if np.ndim(things) != 1 and isinstance(objects, np.ndarray):
        raise InvalidInput(
            f"objects is an array of shape {objects.shape}: say how many objects there are, or "
            "list what they are, one for each"
        )
    if len(things) < 3:
        raise InvalidInput(
            f"objects holds {len(things)}: at least 3 objects are needed, a head and 2 to compare"
        )
    return len(things), Names(things)
