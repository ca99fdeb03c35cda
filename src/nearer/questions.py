"""The arrays that all modules share: questions, answers, triplets; docs/architecture.md lists them.

*Uncertain answers.* An answer may also be "don't know", which is masked, or a number p between 0
and 1, which counts as p for a and 1 − p for b. Certain answers are plain booleans. A screen without
a query has query −1.

*Keys.* A comparison and its mirror image, ``(head, a, b)`` and ``(head, b, a)``, are one fact,
packed into one 63-bit integer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput

Questions = NDArray[np.integer[Any]]
Answers = NDArray[np.bool_]
Said = NDArray[Any]  # answers that may be uncertain: booleans or numbers, possibly masked
Triplets = NDArray[np.integer[Any]]
Objects = NDArray[np.int64]
Floats = NDArray[np.float64]

#: "I don't know", as an oracle may say it; None and NaN mean the same
UNSURE = float("nan")

#: 2⁶⁴ divided by the golden ratio, an odd multiplier for hashes
SPREAD = np.uint64(0x9E3779B97F4A7C15)
_BITS = 21
MAX_OBJECTS = 1 << _BITS


def answered(questions: Questions, answers: Said) -> Objects:
    """Answered comparisons as rows ``(head, near, far)``.

    "Don't know" is left out; a graded answer counts as its likelier side, see `weighted`. A
    screen says that everything chosen is nearer to the query than everything that was not; a
    screen without a query has no triplets.
    """
    rows, said = np.asarray(questions, dtype=np.int64), np.asarray(answers)
    rows = rows if rows.ndim == 2 else rows.reshape(-1, 3)
    if len(unsure := unsure_rows(answers)):
        rows, said = (np.delete(each, unsure, axis=0) for each in (rows, said))
    if rows.shape[1] <= 3:
        return near_first(rows, said if said.dtype == np.bool_ else said > 0.5)
    chosen, rows = said.astype(np.bool_)[rows[:, 0] >= 0], rows[rows[:, 0] >= 0]
    screen, near, far = np.nonzero(chosen[:, :, None] & ~chosen[:, None, :])
    return np.stack([rows[screen, 0], rows[screen, 1 + near], rows[screen, 1 + far]], axis=1)


def near_first(rows: NDArray[Any], a_is_nearer: Answers) -> NDArray[Any]:
    """Questions (head, a, b) of numbers or names as (head, near, far)."""
    return np.where(a_is_nearer[:, None], rows, rows[:, [0, 2, 1]])


def weighted(questions: Questions, answers: Said) -> tuple[Objects, Floats]:
    """Answered comparisons as triplets with weights: uncertain answers count for both sides.

    A graded answer p is a triplet of weight p and its mirror image of weight 1 − p; "don't know"
    is a near tie, one half for each.
    """
    rows = np.asarray(questions, dtype=np.int64)
    if rows.shape[1] > 3:
        triplets = answered(rows, answers)
        return triplets, np.ones(len(triplets))
    p = np.ma.filled(np.ma.asarray(answers).astype(np.float64), 0.5)
    both = np.concatenate([rows, rows[:, [0, 2, 1]]])
    weights = np.concatenate([p, 1 - p])
    return both[weights > 0], weights[weights > 0]


def unsure_rows(answers: Said) -> Objects:
    """The rows that were answered by "don't know"."""
    if not isinstance(answers, np.ma.MaskedArray):
        return np.empty(0, dtype=np.int64)
    masked = np.ma.getmaskarray(answers)
    return np.flatnonzero(masked if masked.ndim == 1 else masked.any(axis=1))


def share_interval(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share that was seen in n cases (Wilson 1927)."""
    z = 1.959964
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def pack(questions: Questions) -> tuple[Objects, Answers]:
    """One integer for each comparison and its mirror image, and whether it is the mirror image."""
    q = np.asarray(questions, dtype=np.int64).reshape(-1, 3)
    if q.size and (q.min() < 0 or q.max() >= MAX_OBJECTS):
        worst, rule = q.min() if q.min() < 0 else q.max(), f"must be from 0 to {MAX_OBJECTS - 1:,}"
        why = "questions that are remembered are packed into 63 bits"
        raise InvalidInput(f"object {worst}: {rule}, since {why}; use fewer objects")
    mirrored = q[:, 1] > q[:, 2]
    low = np.minimum(q[:, 1], q[:, 2])
    high = np.maximum(q[:, 1], q[:, 2])
    return (q[:, 0] << 2 * _BITS) | (low << _BITS) | high, mirrored


def unpack(keys: Objects) -> Objects:
    """The comparison of each key, the lower of its two objects first."""
    mask = MAX_OBJECTS - 1
    return np.stack([keys >> 2 * _BITS, (keys >> _BITS) & mask, keys & mask], axis=1)


def hash_rows(rows: Objects) -> NDArray[np.uint64]:
    """A hash of each row of objects, the same for equal rows."""
    numbers = np.zeros(len(rows), dtype=np.uint64)
    for column in np.asarray(rows).astype(np.uint64).T:
        numbers = (numbers + column) * SPREAD
    return numbers


def find(table: NDArray[Any], wanted: NDArray[Any]) -> tuple[Objects, Answers]:
    """The place of each wanted value in a sorted table, and whether it is there."""
    if not len(table):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    place = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return place, table[place] == wanted


def random_questions(n_objects: int, n_questions: int, rng: np.random.Generator) -> Objects:
    """Comparisons of three different objects, each equally likely; some may repeat."""
    head = rng.integers(n_objects, size=n_questions)
    a = rng.integers(n_objects - 1, size=n_questions)
    b = rng.integers(n_objects - 2, size=n_questions)
    b += b >= a  # two different places among the n − 1 others
    return np.stack([head, a + (a >= head), b + (b >= head)], axis=1)


def balanced_questions(n_objects: int, n_questions: int, rng: np.random.Generator) -> Objects:
    """Random comparisons whose heads go round robin.

    No comparison occurs twice, mirrored or not, unless more are wanted than there are.
    """
    others = n_objects - 1
    pairs = others * (others - 1) // 2
    heads = np.arange(n_questions) % n_objects
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
    index = drawn.ravel()[:n_questions]
    # pairs (a, b) with a < b are numbered b(b − 1)/2 + a
    b = ((1 + np.sqrt(1 + 8 * index.astype(np.float64))) / 2).astype(np.int64)
    b -= b * (b - 1) // 2 > index
    b += (b + 1) * b // 2 <= index
    a = index - b * (b - 1) // 2
    swap = rng.random(len(index)) < 0.5
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    return np.stack([heads, a + (a >= heads), b + (b >= heads)], axis=1)
