"""The fewest dimensions in which answers without errors can be obeyed.

In enough dimensions there are positions that obey every answer; in too few there are none, and
however long a fit takes, some of the answers stay disobeyed. So come down from more dimensions, one
at a time (`nearer.fitting.descent`), while the answers stay obeyed.

Two things disobey a little without asking for another dimension: equal distances, which an oracle
must put in some order that no positions need share, and objects that a fit has left on the wrong
side of others. So a small share is forgiven, and with it a weak dimension, at first. When answers
about near ties cannot be obeyed, another dimension is tried on answers that no fit has seen: a weak
dimension predicts them, and equal distances nothing does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nearer.fitting.descent import descend, principal_axes
from nearer.fitting.dimension import advantage, lowest
from nearer.fitting.solver import Fit, disobeyed, fit_positions
from nearer.questions import Floats, Triplets

__all__ = ["OBEYED", "fewest_dimensions", "one_more_dimension"]

Evidence = dict[int, dict[str, Any]]

# Share of answers that may be disobeyed before another dimension is looked for: more would pass
# over weak dimensions, less makes dimensions of ties. Rankings of points on a grid disobey 1 %, a
# missing dimension of normal points 6 % and more.
OBEYED = 0.015
# Standard errors by which another dimension must predict better: where answers are disobeyed, and
# where they are not, or only as many as ties explain.
_BETTER, _CLEARLY = 1.0, 2.5
# Steps of the optimiser: enough for most data, and for far clusters, where a share below _NEARLY is
# disobeyed after the first. Time against dimensions too many.
_STEPS, _MORE_STEPS = 400, 2000
_NEARLY = 0.06


def fewest_dimensions(
    triplets: Triplets, start: Floats, evidence: Evidence, *, least: int = 1
) -> Floats | None:
    """Positions in the fewest dimensions that obey the answers.

    Parameters
    ----------
    triplets
        ``(m, 3)`` rows (head, near, far).
    start
        ``(n, d + 1)`` positions of any scale, in one dimension more than the most to be tried: a
        fit straight in d dimensions is sometimes stuck, one that comes down from d + 1 rarely is.
    evidence
        Dimension → what is known of it; what the fits show is added.
    least
        The fewest dimensions to try.

    Returns
    -------
    positions
        Or None, where not even d dimensions will do.

    Examples
    --------
    >>> import numpy as np
    >>> start, evidence = np.random.default_rng(0).normal(size=(4, 2)), {}
    >>> line = np.array([[0, 1, 2], [0, 2, 3], [3, 2, 1], [3, 1, 0]])
    >>> fewest_dimensions(line, start, evidence).shape, evidence[1]["disobeyed"]
    ((4, 1), 0.0)
    """
    scale = float(start.std())
    start = start * (np.sqrt(len(start)) / scale) if scale > 0 else start

    def obeys(fit: Fit) -> bool:
        d, share = fit.positions.shape[1], float(disobeyed(fit.positions, triplets).mean())
        evidence.setdefault(d, {}).update(loss=fit.loss, disobeyed=share)
        return share <= OBEYED or d == start.shape[1] > least

    fit = lowest(descend(partial(_fit, triplets), start, least), obeys)
    if fit is None or fit.positions.shape[1] == start.shape[1] > least:
        return None
    return fit.positions


def one_more_dimension(
    triplets: Triplets,
    fresh: Triplets,
    positions: Floats,
    evidence: Evidence,
    rng: np.random.Generator,
) -> Floats:
    """Positions in as many dimensions as before or, where that predicts better, in one more.

    Where only as many answers are disobeyed as equal distances explain, it must be clearly better.

    Parameters
    ----------
    triplets
        Answers to fit.
    fresh
        Answers to predict.
    positions
        ``(n, d)``, a fit of `triplets`; others come down from d + 2, past where it may be stuck.
    evidence
        As for `fewest_dimensions`.
    rng
        Source of the coordinates that are added.
    """
    n, d = positions.shape
    small = 0.1 * positions.std() * rng.standard_normal((n, 2))
    start = np.hstack([principal_axes(positions, d), small])
    start *= np.sqrt(n) / max(float(start.std()), 1e-12)
    _, *fits = (fit.positions for fit in descend(partial(_fit, triplets), start, d))
    more, same = fits
    same = min(same, positions, key=lambda X: disobeyed(X, triplets).mean())
    wrong = [disobeyed(X, fresh).astype(np.float64) for X in (more, same)]
    share = 0.0
    for X in (more, same):
        share = float(disobeyed(X, triplets).mean())
        evidence.setdefault(X.shape[1], {})["disobeyed"] = share
    wanted = _CLEARLY if share <= OBEYED else _BETTER
    return more if advantage(-wrong[0], -wrong[1]) > wanted else same


def _fit(triplets: Triplets, start: Floats) -> Fit:
    fit = fit_positions(triplets, len(start), start=start, max_iter=_STEPS, tol=1e-6)
    if not 0 < disobeyed(fit.positions, triplets).mean() < _NEARLY:
        return fit
    return fit_positions(triplets, len(start), start=fit.positions, max_iter=_MORE_STEPS, tol=1e-7)
