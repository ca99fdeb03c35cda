"""The friendly door: `nearer.embed` does the right thing without options."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearer import checks
from nearer.algorithms.exact_or_noisy import Expected, exact_or_noisy
from nearer.asking.protocol import Oracle
from nearer.embedding import Embedding
from nearer.running.progress import asking_progress
from nearer.running.run import run

__all__ = ["embed"]


def embed(
    oracle: Oracle,
    n_objects: int,
    *,
    budget: int | None = None,
    noise: Expected = "auto",
    quality: float = 0.99,
    random_state: int | np.random.Generator | None = None,
    progress: bool | Callable[[int, int], object] = True,
) -> Embedding:
    """Find the dimension and the positions of objects by asking an oracle.

    Parameters
    ----------
    oracle
        Any callable from ``(m, 3)`` questions to ``(m,)`` booleans.
    n_objects
        How many objects there are, at least 3.
    budget
        At most so many comparisons; the best embedding for them is returned. None: as many as it
        takes, about 1.35·n·d·log2 n where the answers fit in d dimensions, 8.4 or 15.8·n·log2 n
        where they fit in none, and at most 6.4·n·log2 n for each bit that a doubtful answer
        carries: 12·n·log2 n where a tenth of them is wrong.
    noise
        ``"auto"`` asks a few cyclic and repeated questions to see whether answers are exact.
        0: they are, and are sorted by (`nearer.adaptive`). A rate above 0: they are wrong about so
        often, and only shift a posterior (`nearer.informative`). The history says what was done.
    quality
        Where answers are doubtful, stop when Kendall's τ between predicted and true distances from
        a head is expected to be this, or when the budget is spent; 1: when it is spent.
    random_state
        Seed or generator.
    progress
        True: a line on the terminal, if there is one, that counts comparisons and rounds. A
        callable gets both counts after every round. False: silence.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> found = nearer.embed(nearer.PointOracle(X), 120, random_state=0, progress=False)
    >>> found.dimension, nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97
    (2, True)
    """
    checks.oracle(oracle)
    asking = exact_or_noisy(
        n_objects, budget=budget, noise=noise, quality=quality, random_state=random_state
    )
    if progress is not True:
        return run(asking, oracle, progress=progress or None)
    with asking_progress("asking") as count:
        return run(asking, oracle, progress=count)
