"""Questions drawn at random, and how many to ask where nothing else says it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["default_budget", "random_questions"]


def default_budget(n_objects: int) -> int:
    """Comparisons for methods that know no end of their own: 8.5·n·log2 n, as the paper spends.

    Examples
    --------
    >>> default_budget(500)
    38104
    """
    return int(8.5 * n_objects * np.log2(n_objects))


def random_questions(
    n_objects: int, n_questions: int, rng: np.random.Generator, *, first_head: int = 0
) -> NDArray[np.int64]:
    """Questions whose heads go round robin and whose other objects are drawn at random.

    No question occurs twice, mirrored or not, unless more are wanted than there are.

    Examples
    --------
    >>> import numpy as np
    >>> questions = random_questions(5, 7, np.random.default_rng(0))
    >>> questions[:, 0]
    array([0, 1, 2, 3, 4, 0, 1])
    """
    others = n_objects - 1
    pairs = others * (others - 1) // 2
    heads = (first_head + np.arange(n_questions)) % n_objects
    rounds = -(-n_questions // n_objects)
    drawn = np.empty((rounds, n_objects), dtype=np.int64)
    if rounds <= pairs // 2:
        drawn[:] = rng.integers(pairs, size=drawn.shape)
        while True:  # draw again what a head already has
            order = np.argsort(drawn, axis=0, kind="stable")
            in_order = np.take_along_axis(drawn, order, axis=0)
            again = np.zeros(drawn.shape, dtype=np.bool_)
            np.put_along_axis(again, order[1:], np.diff(in_order, axis=0) == 0, axis=0)
            if not again.any():
                break
            drawn[again] = rng.integers(pairs, size=int(again.sum()))
    else:
        for head in range(n_objects):
            laps = [rng.permutation(pairs) for _ in range(-(-rounds // pairs))]
            drawn[:, head] = np.concatenate(laps)[:rounds]
    return _pair_of(heads, drawn.ravel()[:n_questions], others, rng)


def _pair_of(
    heads: NDArray[np.int64], index: NDArray[np.int64], others: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The question with this head and the index-th pair of other objects, sides at random."""
    # pairs (a, b) with a < b are numbered b(b − 1)/2 + a
    b = ((1 + np.sqrt(1 + 8 * index.astype(np.float64))) / 2).astype(np.int64)
    b -= b * (b - 1) // 2 > index
    b += (b + 1) * b // 2 <= index
    a = index - b * (b - 1) // 2
    swap = rng.random(len(index)) < 0.5
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    return np.stack([heads, a + (a >= heads), b + (b >= heads)], axis=1)
