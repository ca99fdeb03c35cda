"""The map of the objects from the answers so far, and how well it predicts answers.

A map is what `nearer.fit` makes of answers that may be wrong, of the people who gave them, and of
the odds with which their questions were chosen. "Can't decide" says that two things are about as
near. It depends on nothing else, so a process that was started again draws the same one.

While a study runs, the hold-out questions, which no method chose and no fit saw, say how often the
map predicts what people answer. At the end nothing is held back: the map is fitted to answers of
every kind, and the held-out folds of the fit say how well it predicts.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nearer
from nearer.embedding import Embedding
from nearer.errors import AnswersWarning
from nearer.fitting.descent import principal_axes
from nearer.metrics import triplet_accuracy
from nearer.study.exports import Collected

FEWEST = 10  # answers below which no map is drawn


def draw_map(
    collected: Collected,
    n_objects: int,
    *,
    n_components: int | None = None,
    seed: int = 0,
    holdout: NDArray[np.int64] | None = None,
) -> dict[str, Any] | None:
    """What the dashboard shows; None while there are too few answers.

    Parameters
    ----------
    collected
        The answers to fit.
    n_components
        Dimension of the map; None estimates it.
    holdout
        Triplets that are not among them, to judge it by; None: the folds of the fit judge it.
    """
    if collected.decided < FEWEST:
        return None
    began = time.perf_counter()
    with warnings.catch_warnings():  # the accuracy is shown; that it begins at chance is no news
        warnings.simplefilter("ignore", AnswersWarning)
        found = nearer.fit(
            collected.answers,
            n_objects=n_objects,
            n_components=n_components or "auto",
            people=collected.people,
            odds=collected.odds,
            method="noisy",
            random_state=seed,
        )
    # the directions in which the objects differ, strongest first
    X = principal_axes(found.positions, found.dimension)
    if holdout is not None:
        judged, held = triplet_accuracy(holdout, X) if len(holdout) else None, len(holdout)
    else:
        judged = None if found.held_out is None else found.held_out.accuracy
        held = 0 if found.held_out is None else found.held_out.n_trials
    return {
        "seen": collected.seen,
        "n_triplets": collected.decided,
        "n_undecided": len(collected.answers) - collected.decided,
        "dimension": found.dimension,
        "accuracy": judged,
        "n_holdout": held,
        "expected_tau": _expected_tau(found),
        "seconds": time.perf_counter() - began,
        "positions": np.round(X, 4).tolist(),
    }


def _expected_tau(found: Embedding) -> float:
    """How good the positions are expected to be; nothing, where they probably lack dimensions."""
    more = sum(
        tried.get("probability", 0.0) for d, tried in found.evidence.items() if d > found.dimension
    )
    return float(found.details["expected_tau"]) if more <= 0.5 else 0.0
