"""Gradient boosting, 5 folds: Table 3's test of what an embedding is good for.

The paper names neither implementation nor settings. Here it is scikit-learn's
`GradientBoostingClassifier` as it comes (100 stages of depth 3): on few features it is as quick as
the histogram variant, and it takes sparse ones. Where there are more than 100 features a split
looks at a random √d of them; the 33,873 terms of 20 Newsgroups would take hours otherwise.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["accuracy"]

_FOLDS = 5
_MANY = 100  # features; beyond, a split looks at some of them


def accuracy(features: Any, labels: NDArray[Any], rng: np.random.Generator) -> tuple[float, float]:
    """Mean accuracy on the training and on the test part of 5 folds.

    Folds keep the share of every class as far as it has members for that.

    Parameters
    ----------
    features
        ``(n, d)``, dense or sparse.
    labels
        ``(n,)`` classes.
    rng
        Draws the folds and the boosting's own randomness.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> train, test = accuracy(X, X[:, 0] > 0, rng)
    >>> train, test > 0.9
    (1.0, True)
    """
    from sklearn.ensemble import GradientBoostingClassifier  # noqa: PLC0415 - slow to import
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415

    if sparse.issparse(features):
        features = sparse.csr_matrix(features)
    seeds = rng.integers(1 << 31, size=_FOLDS + 1).tolist()
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seeds[-1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(folds.split(np.zeros(len(labels)), labels))
    scores = []
    for (train, test), seed in zip(splits, seeds, strict=False):
        model = GradientBoostingClassifier(
            max_features="sqrt" if features.shape[1] > _MANY else None, random_state=seed
        ).fit(features[train], labels[train])
        scores.append([model.score(features[part], labels[part]) for part in (train, test)])
    train_score, test_score = np.mean(scores, axis=0).tolist()
    return train_score, test_score
