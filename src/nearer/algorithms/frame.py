"""The frame: a few objects ranked from a few heads, and the dimension they need.

A subset of the objects is ranked from one well-spread head after another. The rankings of k heads
see at most k dimensions: in k − 1 dimensions almost anything fits. So the rankings are fitted in
k − 2 dimensions, by soft ordinal embedding from the principal axes of the ranks:

* where a loss remains, the objects fill more than k − 2 dimensions, and another head is ranked;
* where the loss is zero, dimensions are taken away, the weakest principal axis first, while it
  stays zero. The smallest dimension that fits is the estimate. The answers have to confirm it: it
  must predict answers to random questions about the subset, put to other heads, that no fit has
  seen.

Data that has no low dimension (pixels, text) never gets there, and the search for a frame ends
when it has ranked the subset from as many heads as it may; `dimension` is then None.

A fit straight in d dimensions is sometimes stuck; one that comes down from d + 1 rarely is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.asking.protocol import Asking
from nearer.asking.sorting import sort_objects
from nearer.fitting.descent import principal_axes
from nearer.fitting.solver import fit_positions
from nearer.questions import Questions, answered, balanced_questions

__all__ = ["Frame", "build_frame", "chain_triplets", "rank_another"]

Floats = NDArray[np.float64]
Objects = NDArray[np.int64]

_ZERO = 2e-3  # a mean loss below is zero; a missing dimension leaves 0.3 or more
_CHECKS = 200  # random questions that test a dimension
_CONFIRMED = 0.93  # share of them that a right dimension predicts
_STEPS = 400  # of the optimiser


@dataclass
class Frame:
    """What is known of a subset of the objects; filled while asking.

    Attributes
    ----------
    objects
        ``(m,)`` the subset.
    heads
        Places in `objects`, in the order in which they were ranked from.
    chains
        For each head, the places of all others, nearest first.
    checks
        Answers to random questions about the subset, as triplets of places.
    positions
        ``(m, d)`` of the last fit that left no loss, or None.
    dimension
        The confirmed dimension, or None.
    evidence
        Dimension → what the last fit in it left.
    """

    objects: Objects
    heads: list[int] = field(default_factory=list)
    chains: list[Objects] = field(default_factory=list)
    checks: Objects = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    positions: Floats | None = None
    dimension: int | None = None
    evidence: dict[int, dict[str, Any]] = field(default_factory=dict)

    def ranks(self) -> Floats:
        """``(m, k)``: each member's rank from each head."""
        ranks = np.zeros((len(self.objects), len(self.heads)))
        for column, chain in enumerate(self.chains):
            ranks[chain, column] = np.arange(1, len(chain) + 1)
        return ranks

    def local_triplets(self) -> Objects:
        """All that the rankings and checks say, as triplets of places in `objects`."""
        rows = [chain_triplets(h, c) for h, c in zip(self.heads, self.chains, strict=True)]
        return np.concatenate([self.checks, *rows])

    def triplets(self) -> Objects:
        """The same of objects."""
        return self.objects[self.local_triplets()]


def chain_triplets(head: int, chain: Objects) -> Objects:
    """Triplets that say what a ranking says: members 1, 2, 4, 8 … places apart.

    Neighbours alone would do, but a fit sees farther with the others.

    Examples
    --------
    >>> import numpy as np
    >>> chain_triplets(9, np.array([4, 5, 6])).tolist()
    [[9, 4, 5], [9, 5, 6], [9, 4, 6]]
    """
    rows, step = [np.empty((0, 3), dtype=np.int64)], 1
    while step < len(chain):
        near, far = chain[:-step], chain[step:]
        rows.append(np.stack([np.full(len(near), head), near, far], axis=1))
        step *= 2
    return np.concatenate(rows)


def build_frame(frame: Frame, most_heads: int, rng: np.random.Generator) -> Asking[None]:
    """Rank the subset from heads until a dimension is confirmed, or `most_heads` are used up."""
    m = len(frame.objects)
    most_heads = min(most_heads, m)
    if not frame.heads:
        yield from _rank_from(frame, int(rng.integers(m)), rng)
    while len(frame.heads) < most_heads:
        k = len(frame.heads)
        for _ in range(min(1 if 3 <= k < 8 else 2, most_heads - k)):
            yield from rank_another(frame, rng)
        fitted = _fit_below(frame, len(frame.heads) - 2, rng)
        if fitted is None:
            continue
        frame.positions = fitted
        questions = _checks(frame, rng)
        if len(questions):
            triplets = answered(questions, (yield frame.objects[questions]))
            right = float(_obeyed(fitted, triplets).mean())
            frame.checks = np.concatenate([frame.checks, triplets])
        else:
            right = 1.0  # fewer objects than make a question; whatever fits is right
        frame.evidence[fitted.shape[1]]["predicted"] = right
        if right >= _CONFIRMED:
            frame.dimension = fitted.shape[1]
            return


def rank_another(frame: Frame, rng: np.random.Generator) -> Asking[None]:
    """Rank the subset from the object that is farthest, in rank, from all heads so far."""
    if len(frame.heads) < len(frame.objects):
        yield from _rank_from(frame, int(np.argmax(frame.ranks().min(axis=1))), rng)


def _rank_from(frame: Frame, head: int, rng: np.random.Generator) -> Asking[None]:
    others = np.delete(np.arange(len(frame.objects)), head)
    objects = frame.objects
    chain = yield from sort_objects(int(objects[head]), objects[others], random_state=rng)
    place = np.argsort(objects)
    frame.heads.append(head)
    frame.chains.append(place[np.searchsorted(objects, chain, sorter=place)])


def _fit_below(frame: Frame, d: int, rng: np.random.Generator) -> Floats | None:
    """Positions in the smallest dimension, d at most, that leaves no loss; None: d is too few."""
    if d < 1:
        return None
    triplets, m = frame.local_triplets(), len(frame.objects)

    def fit(start: Floats) -> tuple[Floats, float]:
        result = fit_positions(triplets, m, start=start, max_iter=_STEPS, tol=1e-6)
        frame.evidence[start.shape[1]] = {"loss": result.loss, "n_heads": len(frame.heads)}
        return result.positions, result.loss

    above, loss = fit(_start(frame.ranks(), d + 1, rng))
    X, loss = fit(principal_axes(above, d))
    if loss >= _ZERO:
        return None
    while X.shape[1] > 1:
        fewer, loss = fit(principal_axes(X, X.shape[1] - 1))
        if loss >= _ZERO:
            break
        X = fewer
    return X


def _start(ranks: Floats, d: int, rng: np.random.Generator) -> Floats:
    """Principal axes of the ranks: seen from far away, a distance is linear in the position."""
    X = principal_axes(ranks / len(ranks), d)
    X = np.pad(X, ((0, 0), (0, d - X.shape[1])))
    X /= max(float(X.std()), 1e-12)
    return np.asarray(np.sqrt(len(ranks)) * X + 0.01 * rng.standard_normal(X.shape))


def _checks(frame: Frame, rng: np.random.Generator) -> Questions:
    m = len(frame.objects)
    if m < 4:
        return np.empty((0, 3), dtype=np.int64)
    questions = balanced_questions(m, min(_CHECKS, 2 * m), rng, first_head=int(rng.integers(m)))
    return questions[~np.isin(questions[:, 0], frame.heads)]


def _obeyed(X: Floats, triplets: Objects) -> NDArray[np.bool_]:
    head, near, far = triplets.T
    to_near = ((X[head] - X[near]) ** 2).sum(axis=1)
    return np.asarray(to_near < ((X[head] - X[far]) ** 2).sum(axis=1))
