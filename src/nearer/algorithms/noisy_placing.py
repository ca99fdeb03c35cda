"""Place unseen objects where answers may be wrong: as `nearer.informative` asks, not by sorting.

The answers that placed the old objects are learned first. Then questions are drawn by what they
would teach, among those that hold exactly one new object, and every answer shifts the posterior of
all. In the end the old objects are laid over where they were, and the new ones with them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import orthogonal_procrustes

from nearer import checks
from nearer.algorithms.candidates import Candidates
from nearer.algorithms.informative import draw_round
from nearer.algorithms.placing import Placed
from nearer.asking.protocol import Asking, doubtful, renumbered
from nearer.asking.recipe import repeatable
from nearer.asking.record import Record
from nearer.embedding import Embedding
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.belief import Belief
from nearer.questions import Answers, Floats, Objects, Questions

__all__ = ["place_noisily"]

_EACH = 12  # log2 n comparisons a new object: what `nearer.embed` allows with a tenth wrong
_ROUNDS = 10  # so many, so that later questions know the earlier answers


@repeatable
@doubtful
def place_noisily(
    embedding: Embedding,
    new: Objects,
    *,
    budget: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Asking[Placed]:
    """Place unseen objects among those of an embedding whose answers may be wrong.

    Parameters
    ----------
    embedding
        With the answers it was found from.
    new
        The new objects' numbers, none of them below the number of old ones.
    budget
        At most so many comparisons; None: 12·log2 n for each new object.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(42, 2))
    >>> people = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)
    >>> old = nearer.run(nearer.informative(40, budget=1500, random_state=0), people)
    >>> placed = nearer.run(place_noisily(old, np.array([40, 41]), random_state=0), people)
    >>> placed.positions.shape, placed.n_comparisons
    ((2, 2), 128)
    """
    n, objects = len(embedding.positions), np.asarray(new, dtype=np.int64)
    if len(objects) and (objects.min() < n or len(np.unique(objects)) < len(objects)):
        raise InvalidInput(
            f"new is {objects.tolist()}: new objects must be numbered from {n} on, each once"
        )
    most = round(_EACH * np.log2(n)) * len(objects) if budget is None else checks.budget(budget)
    asking = _place(embedding, objects, most, checks.generator(random_state))
    return renumbered(asking, np.concatenate([np.arange(n), objects]))


def _place(
    embedding: Embedding, new: Objects, budget: int, rng: np.random.Generator
) -> Asking[Placed]:
    n, d = embedding.positions.shape
    total = n + len(new)

    def askable(questions: Questions) -> Answers:
        return np.asarray((questions >= n).sum(axis=1) == 1)

    belief, candidates, record = Belief(total, d, rng), Candidates(total, askable), Record()
    old = np.asarray(embedding.triplets, dtype=np.int64)
    belief.learn(old)
    candidates.exclude(old)
    size = max(1, -(-budget // _ROUNDS))
    while record.n_comparisons < budget and len(new):
        left = min(size, budget - record.n_comparisons)
        questions, _ = draw_round(belief, candidates, left, rng)
        if not len(questions):
            break
        spent = False
        try:
            answers = yield questions
        except BudgetSpent as cut:
            answers, spent = cut.answers, True
        record.add(questions[: len(answers)], answers)
        candidates.exclude(questions[: len(answers)])
        rows, weights = record.weighted
        counts = np.ones(len(rows)) if weights is None else weights
        belief.learn(
            np.concatenate([old, rows]), weights=np.concatenate([np.ones(len(old)), counts])
        )
        if spent:
            break
    where = _laid_over(embedding.positions, belief.fit.positions)
    triplets = np.concatenate([np.arange(n), new])[record.triplets]
    return Placed(new, where, triplets, record.n_comparisons, record.n_rounds)


def _laid_over(old: Floats, positions: Floats) -> Floats:
    """The new objects, moved as the first ones must be to lie where they were."""
    first = positions[: len(old)]
    centre, target = first.mean(axis=0), old.mean(axis=0)
    turn, size = orthogonal_procrustes(first - centre, old - target)
    spread = float(((first - centre) ** 2).sum())
    scale = size / spread if spread > 0 else 0.0
    return np.asarray(scale * (positions[len(old) :] - centre) @ turn + target)
