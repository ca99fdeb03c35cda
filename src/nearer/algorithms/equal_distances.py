"""Equal distances, and the rule by which an oracle puts them in order.

Equal distances are neither truth nor noise: whoever answers by a formula says something, always the
same, and mostly puts them in the order of numbers, as a stable sort does, or the other way round.
No positions obey that, but positions in more dimensions than there are predict some of it. So
before answers count as wrong, or ask for another dimension, the rule is given its chance: of two
objects that are predicted to be nearly equally far, the one with the lower number comes first, or
always the other. How near is near is read from the answers themselves; where distances are not
equal, the rule is right no more often than a coin, and no answer is near enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer.fitting.solver import margins
from nearer.questions import Floats, Triplets

__all__ = ["equal_within", "wrong_answers"]

# Share of the answers within reach of the rule that it must predict, and standard errors by which
# that must differ from a coin's half: dimensions that ties cost, against dimensions taken for ties.
# On grids and lattices .8 to .97 of some hundred to thousand were; with unequal distances a rule
# reached at most some twenty answers. `python -m benchmarks sensitivity` varies the second.
_RULED, _CLEARLY = 0.8, 4.0


def equal_within(X: Floats, triplets: Triplets) -> float:
    """The difference up to which predicted distances count as equal; 0 where none are.

    Below 0 where the higher number comes first.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(101.0)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(101, 1))
    >>> ties = np.array([(50, 50 - i, 50 + i) for i in range(1, 51)])
    >>> 0 < equal_within(X, ties) < 0.1, -0.1 < equal_within(X, ties[:, [0, 2, 1]]) < 0
    (True, True)
    """
    margin = margins(X, triplets)
    order = np.argsort(np.abs(margin), kind="stable")
    lower, obeyed = (triplets[:, 1] < triplets[:, 2])[order], (margin > 0)[order]
    best, equal = 0, 0.0
    for sign, ruled in ((1, lower), (-1, ~lower)):
        if not len(ruled) or (gain := np.cumsum(ruled.astype(np.int64) - obeyed)).max() <= best:
            continue
        last = int(np.argmax(gain))
        share, reach = float(ruled[: last + 1].mean()), last + 1
        if share >= _RULED and (2 * share - 1) * np.sqrt(reach) >= _CLEARLY:
            best, equal = int(gain[last]), sign * float(np.abs(margin[order[last]]))
    return equal


def wrong_answers(X: Floats, triplets: Triplets, equal: float) -> NDArray[np.bool_]:
    """Which answers the positions predict wrongly, or the rule, for what counts as equal."""
    margin, lower = margins(X, triplets), triplets[:, 1] < triplets[:, 2]
    ruled = lower if equal > 0 else ~lower
    tied = np.abs(margin) <= abs(equal) if equal else np.zeros(len(margin), dtype=np.bool_)
    return np.asarray(np.where(tied, ~ruled, margin <= 0))
