"""Are answers exact? A few questions tell.

*Cycles.* Three objects a, b, c seen from one head, three questions: is a nearer than b, b than c, c
than a? Exact answers are never all yes or all no. With each answer wrong at rate p, independently,
p(1 − p) of the cycles are: one outcome needs the one wrong answer that closes the circle, the other
needs the two others.

*Repeats.* The first question of each cycle is asked again, mirrored. Two answers that are wrong at
rate p disagree at rate 2p(1 − p), unless the same question always gets the same answer, as from a
file or a memory; that is why cycles are asked too.

Both rates give p(1 − p), and so p. Errors that are rare except near ties, as people make them, show
up at their average over random questions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.asking.protocol import Strategy
from nearer.errors import BudgetSpent
from nearer.questions import answered

__all__ = ["NoiseCheck", "detect_noise"]

# Comparisons against errors that are overlooked: where one answer in fifty is wrong, all of so many
# cycles are in order one time in seven, and all repeats agree one time in fifty
_CYCLES = 100


@dataclass(frozen=True)
class NoiseCheck:
    """What a few cyclic and repeated questions showed.

    Attributes
    ----------
    exact
        Whether no answer contradicted another.
    error_rate
        Estimated share of wrong answers; about one half where answers mean nothing.
    n_cycles, n_cyclic
        Cycles asked, and those answered in a circle.
    n_repeats, n_contradicted
        Questions asked twice, and those answered both ways.
    triplets
        All answers, rows ``(head, near, far)``.
    """

    exact: bool
    error_rate: float
    n_cycles: int
    n_cyclic: int
    n_repeats: int
    n_contradicted: int
    triplets: NDArray[np.int64]

    def __str__(self) -> str:
        return (
            f"{self.n_cyclic} of {self.n_cycles} cycles and {self.n_contradicted} of "
            f"{self.n_repeats} repeats contradict themselves: "
            + ("exact" if self.exact else f"about {self.error_rate:.0%} of answers are wrong")
        )


def detect_noise(
    n_objects: int,
    *,
    n_cycles: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[NoiseCheck]:
    """Ask cyclic and repeated questions to see whether answers are exact.

    Parameters
    ----------
    n_objects
        How many objects there are, at least 4 for a head and a cycle.
    n_cycles
        How many cycles to ask, four comparisons each; None: 100, fewer for few objects. A rate p
        of wrong answers is overlooked with probability of at most (1 − p(1 − p))^n_cycles.
    random_state
        Seed or generator.

    Returns
    -------
    strategy
        Its result is a `NoiseCheck`; two rounds.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> exact = nearer.PointOracle(np.random.default_rng(0).normal(size=(50, 2)))
    >>> nearer.run(nearer.algorithms.detect_noise(50, random_state=0), exact).exact
    True
    >>> people = nearer.NoisyOracle(exact, flip=0.1, random_state=0)
    >>> str(nearer.run(nearer.algorithms.detect_noise(50, random_state=0), people))
    '9 of 100 cycles and 0 of 100 repeats contradict themselves: about 10% of answers are wrong'
    """
    n_objects = checks.n_objects(n_objects, least=4)
    if n_cycles is None:
        n_cycles = min(_CYCLES, 10 * n_objects)
    return _detect(n_objects, checks.whole("n_cycles", n_cycles), checks.generator(random_state))


def _detect(n: int, n_cycles: int, rng: np.random.Generator) -> Strategy[NoiseCheck]:
    h, a, b, c = np.array([rng.choice(n, 4, replace=False) for _ in range(n_cycles)]).T
    cycles = np.stack([[h, a, b], [h, b, c], [h, c, a]]).transpose(2, 0, 1).reshape(-1, 3)
    repeats = np.stack([h, b, a], axis=1)
    try:
        first = yield cycles
    except BudgetSpent as spent:
        return _judge(cycles, spent.answers, repeats, np.empty(0, dtype=np.bool_))
    try:
        second = yield repeats
    except BudgetSpent as spent:
        second = spent.answers
    return _judge(cycles, first, repeats, second)


def _judge(
    cycles: NDArray[np.int64],
    first: NDArray[np.bool_],
    repeats: NDArray[np.int64],
    second: NDArray[np.bool_],
) -> NoiseCheck:
    whole = first[: len(first) // 3 * 3].reshape(-1, 3).sum(axis=1)
    cyclic = int(((whole == 0) | (whole == 3)).sum())
    contradicted = int((first[: 3 * len(second) : 3] == second).sum())
    exact = not cyclic and not contradicted
    # repeats count only where they show anything: the same answer twice may be the same draw
    tells = len(second) if contradicted else 0
    rate = (cyclic + contradicted / 2) / max(1, len(whole) + tells)
    asked = np.concatenate([cycles[: len(first)], repeats[: len(second)]])
    return NoiseCheck(
        exact=exact,
        error_rate=(1 - float(np.sqrt(max(0.0, 1 - 4 * rate)))) / 2,
        n_cycles=len(whole),
        n_cyclic=cyclic,
        n_repeats=len(second),
        n_contradicted=contradicted,
        triplets=answered(asked, np.concatenate([first, second])),
    )
