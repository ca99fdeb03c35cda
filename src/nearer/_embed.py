"""The friendly door: `nearer.embed` does the right thing without options."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearer import checks
from nearer.algorithms.adaptive import Economy
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
    order: Economy = "fewest-comparisons",
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
        takes, about 1.35·n·d·log2 n where the answers of many objects fit in d dimensions, at most
        1.5·n·d·log2 n + 25·n where those of few do, and 8.4 to 16·n·log2 n where they fit in none.
    noise
        ``"auto"`` asks a few cyclic and repeated questions to see whether answers are exact.
        0: they are, and are sorted by (`nearer.adaptive`). A rate above 0: they are wrong about so
        often, and only shift a posterior (`nearer.informative`). The history says what was done.
    order
        ``"fewest-comparisons"``, or ``"fewest-rounds"`` where each round is waited for, as by an
        oracle that takes seconds or by many people at once: about a hundred rounds, for up to 15 %
        more comparisons. Noisy answers come in few rounds anyway.
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
        n_objects, budget=budget, noise=noise, order=order, random_state=random_state
    )
    if progress is not True:
        return run(asking, oracle, progress=progress or None)
    with asking_progress("asking") as count:
        return run(asking, oracle, progress=count)
