"""How many questions to ask where nothing else says it."""

from __future__ import annotations

import numpy as np

__all__ = ["default_budget"]


def default_budget(n_objects: int) -> int:
    """Comparisons for methods that know no end of their own: 8.5·n·log2 n, as the paper spends.

    Examples
    --------
    >>> default_budget(500)
    38104
    """
    return int(8.5 * n_objects * np.log2(n_objects))
