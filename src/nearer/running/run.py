"""An asking and an oracle, put together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from nearer import checks
from nearer.asking.answers import put
from nearer.asking.memory import Memory
from nearer.asking.protocol import (
    Asking,
    Oracle,
    Ties,
    decided,
    limited,
    remembered,
    takes_doubt,
)
from nearer.errors import AnswersWarning

__all__ = ["run"]

T = TypeVar("T")


def run(
    asking: Asking[T],
    oracle: Oracle,
    *,
    budget: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> T:
    """Answer every question of an asking with an oracle and return its result.

    Parameters
    ----------
    asking
        A generator of questions, such as `nearer.choose_basis` or `nearer.rank_objects` makes.
    oracle
        Any callable from ``(m, 3)`` questions to ``(m,)`` booleans. None, NaN or `nearer.UNSURE`
        in place of a boolean is "don't know"; a number from 0.0 to 1.0 is a graded answer. An
        asking that needs to know puts such a question again; what stays open goes to the object
        of the lower number, with a warning.
    budget
        How many comparisons may be put to the oracle. An algorithm that runs out returns its
        best so far, or `nearer.errors.BudgetSpent` is raised where it has nothing.
    memory
        Answers that need not be asked again. New answers are added as they come, so that after
        an interruption the same call with the same memory goes on where it stopped.
    progress
        Called after every round with the number of comparisons and of rounds so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.rank_objects(0, 4), oracle)
    array([0, 2, 1, 3])
    """
    checks.oracle(oracle)
    ties = Ties()
    if not takes_doubt(asking):
        asking = decided(asking, ties)
    if memory is not None:
        asking = remembered(asking, memory)
    if budget is not None:
        asking = limited(asking, budget)
    comparisons = rounds = 0
    try:
        questions = next(asking)
        while True:
            answers = put(questions, oracle)
            comparisons += len(questions)
            rounds += 1
            if progress is not None:
                progress(comparisons, rounds)
            questions = asking.send(answers)
    except StopIteration as done:
        if ties.n_broken:
            warnings.warn(str(ties), AnswersWarning, stacklevel=2)
        result: T = done.value
        return result
