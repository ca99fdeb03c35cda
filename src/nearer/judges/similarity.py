"""A similarity as an oracle: what a scikit-learn or PyTorch model thinks is alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nearer import checks
from nearer.errors import InvalidInput, OracleError

__all__ = ["from_similarity"]


def from_similarity(
    f: Callable[[Any, Any], Any], *, tie: float = 0.0
) -> Callable[[Any], list[bool | None]]:
    """Make an oracle of a function that says how alike things are.

    Parameters
    ----------
    f
        From m things and m other things to m numbers, the greater the more alike; arrays and
        tensors will do. Things are what is asked about: numbers as an array, others as a list.
    tie
        Similarities that differ by no more than this are a tie, answered by "don't know".

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> oracle = nearer.judges.from_similarity(lambda i, j: -((X[i] - X[j]) ** 2).sum(axis=1))
    >>> nearer.embed(oracle, 40, random_state=0, progress=False).dimension
    2
    """
    checks.oracle(f)
    if not tie >= 0:
        raise InvalidInput(f"tie={tie!r}: must be a number from 0, in the units of the similarity")

    def oracle(questions: Any) -> list[bool | None]:
        if isinstance(questions, np.ndarray):
            head, a, b = questions.T
        else:
            head, a, b = map(list, zip(*questions, strict=True))
        closer = _numbers(f(head, a), len(questions)) - _numbers(f(head, b), len(questions))
        known = np.abs(closer) > tie  # not so for NaN, which is no answer either
        return [bool(x > 0) if sure else None for x, sure in zip(closer, known, strict=True)]

    return oracle


def _numbers(said: Any, count: int) -> Any:
    if hasattr(said, "detach"):  # a tensor, perhaps on another device
        said = said.detach().cpu().numpy()
    values = np.asarray(said, dtype=np.float64)
    if values.shape != (count,):
        raise OracleError(
            f"similarities of shape {values.shape} for {count} pairs: there must be one for each"
        )
    return values
