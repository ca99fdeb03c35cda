"""Place unseen objects where answers may be wrong: by questions chosen from what is believed.

The old objects stay where they are. Each new one is asked about until it is as sure as they are
(`newcomers`), all of them side by side: one round holds some questions for each.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import orthogonal_procrustes

from nearer import checks
from nearer.algorithms.newcomers import Newcomers
from nearer.algorithms.placing import Placed
from nearer.asking.protocol import Strategy, accepts_uncertain, limited, recorded, repeatable
from nearer.asking.record import Record
from nearer.embedding import Embedding
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.belief import Belief
from nearer.questions import Floats, Objects

__all__ = ["place_among_believed", "place_noisily"]

_EACH = 12  # log2 n comparisons a new object: what `nearer.embed` allows with a tenth wrong
# `python -m benchmarks scale` shows what comes of these with doubtful answers.
_FIRST = 4  # questions a coordinate, and for the object itself, before any is chosen: a guess
_ROUND = 4  # questions an object and round: comparisons against rounds
_MOST = 12  # the same for the last ones, whom nobody else waits for


@repeatable
@accepts_uncertain
def place_noisily(
    embedding: Embedding,
    new: Objects,
    *,
    budget: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Placed]:
    """Place unseen objects among those of an embedding whose answers may be wrong.

    Parameters
    ----------
    embedding
        With the posterior that its answers led to, or with the answers.
    new
        The new objects' numbers, none of them below the number of old ones.
    budget
        At most so many comparisons; None: 12·log2 n for each new object. A new object that is as
        sure as the old ones are costs no more.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(42, 2))
    >>> people = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)
    >>> old = nearer.run(nearer.informative(40, budget=1500, random_state=0), people)
    >>> placed = nearer.run(place_noisily(old, np.array([40, 41]), random_state=0), people)
    >>> placed.positions.shape, placed.n_comparisons <= 128
    ((2, 2), True)
    """
    n, objects = len(embedding.positions), np.asarray(new, dtype=np.int64)
    if len(objects) and (objects.min() < n or len(np.unique(objects)) < len(objects)):
        raise InvalidInput(
            f"new is {objects.tolist()}: new objects must be numbered from {n} on, each once"
        )
    most = round(_EACH * np.log2(n)) * len(objects) if budget is None else checks.budget(budget)
    return _place(embedding, objects, most, checks.generator(random_state))


def _place(
    embedding: Embedding, new: Objects, budget: int, rng: np.random.Generator
) -> Strategy[Placed]:
    fit = embedding.details.get("posterior")
    if fit is None:
        n, d = embedding.positions.shape
        belief = Belief(n, d, rng)
        belief.learn(np.asarray(embedding.triplets, dtype=np.int64))
        fit = belief.fit
    record = Record()
    newcomers = Newcomers(fit, new, rng)
    yield from recorded(place_among_believed(newcomers, budget), record)
    where = _laid_over(embedding.positions, fit.positions, newcomers.positions)
    return Placed(new, where, record.triplets, record.n_comparisons, record.n_rounds)


@accepts_uncertain
def place_among_believed(
    newcomers: Newcomers, budget: int, *, to_the_end: bool = False
) -> Strategy[None]:
    """Ask about newcomers until they are as sure as the old objects are.

    Parameters
    ----------
    newcomers
        Kept up to date, so that it holds the best so far when the budget is spent.
    budget
        At most so many comparisons.
    to_the_end
        Whether to spend the budget even where everybody is sure.
    """
    return limited(_until_sure(newcomers, to_the_end), budget)


def _until_sure(newcomers: Newcomers, to_the_end: bool) -> Strategy[None]:
    q, d = newcomers.positions.shape
    count = _FIRST * (d + 1)
    questions = newcomers.first_questions(count)
    while len(questions):
        try:
            answers = yield questions
        except BudgetSpent as spent:
            newcomers.learn(count, spent.answers)
            return
        newcomers.learn(count, answers)
        if not to_the_end:
            newcomers.dismiss()
        count = min(_MOST, _ROUND * q // max(1, len(newcomers.open)))
        questions = newcomers.next_questions(count)


def _laid_over(old: Floats, first: Floats, new: Floats) -> Floats:
    """The new objects, moved as the first ones must be to lie where they were."""
    centre, target = first.mean(axis=0), old.mean(axis=0)
    turn, size = orthogonal_procrustes(first - centre, old - target)
    spread = float(((first - centre) ** 2).sum())
    scale = size / spread if spread > 0 else 0.0
    return np.asarray(scale * (new - centre) @ turn + target)
