"""The fewest dimensions in which answers without errors can be obeyed.

In enough dimensions there are positions that obey every answer; in too few there are none, and
however long a fit takes, some of the answers stay disobeyed. So come down from more dimensions, one
at a time (`nearer.fitting.descent`), while the answers stay obeyed.

Two things disobey a little without asking for another dimension: equal distances, which an oracle
must put in some order that no positions need share, and objects that a fit has left on the wrong
side of others. So a small share is forgiven, and with it a weak dimension, at first. Equal
distances disobey narrowly: by less than the gap between neighbours in a ranking, while a missing
dimension puts some answers farther wrong. So one dimension fewer is taken where it disobeys
somewhat more, all of it narrowly, but predicts answers that no fit has seen no worse. When answers
about near ties cannot be obeyed, another dimension is tried in the same way: a weak dimension
predicts them, and equal distances nothing does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.algorithms.equal_distances import equal_within, wrong_answers
from nearer.fitting.centre import fit_centre
from nearer.fitting.descent import descend, principal_axes
from nearer.fitting.dimension import advantage
from nearer.fitting.misplaced import relocate
from nearer.fitting.solver import Fit, disobeyed, fit_positions, margins
from nearer.questions import Floats, Triplets

__all__ = [
    "ObeyingFit",
    "fewest_dimensions",
    "is_bent",
    "one_more_dimension",
    "possible_dimensions",
    "predicts_better",
]

Evidence = dict[int, dict[str, Any]]

# `python -m benchmarks sensitivity` halves and doubles most of these, on far clusters, heavy tails
# and repeated values too.
#
# Share of answers that may be disobeyed before another dimension is looked for: more would pass
# over weak dimensions, less makes dimensions of ties. Rankings of points on a grid disobey 1 %, a
# missing dimension of normal points 6 % and more.
_OBEYED = 0.015
# … and by equal distances, at most: with a larger share, fewer dimensions are not even considered.
# Points on grids and lines with repeated values disobey 1 to 4 %.
_TIED = 0.06
# Gaps between neighbours in a ranking, by which equal distances are disobeyed at most. With points
# on grids, lines and rounded ones it came to .02 to .9, in too few dimensions, or stuck, mostly to
# 1.1 to 6, but less where the missing dimension is a thin axis: half a gap costs comparisons on
# grids (`python -m benchmarks sensitivity`).
_NARROW = 1.0
# Standard errors by which another dimension must predict better: where more is disobeyed than equal
# distances explain, and elsewhere. Dimensions too many, where rounds of detail ask again and again,
# against weak dimensions passed over: with 2.5 for both, 90 objects in 8 dimensions ended in 5
# twice of ten times, with these never.
_BETTER, _CLEARLY = 1.0, 2.5
# Steps of the optimiser: enough for most data; where no more than ties would explain is disobeyed
# after them, as with far clusters, it goes on to convergence. Time against dimensions too many.
_STEPS = 400
# Objects for each dimension that show it: with so many, 2, 3 and 4 dimensions of normal points and
# balls were found 8, 7 and 8 times of 8. `python -m benchmarks sizes` has a table of few objects.
_OBJECTS = 4
# Spread of the prior, in units of the distance difference that is answered right with odds e : 1.
# Two objects next to each other in a ranking are then about a unit apart; in small sets so narrow a
# prior pulls harder than the answers.
_SPREAD = 0.4  # times n
_LEAST_SPREAD = 100.0
_WIDER, _WIDEST = 4.0, 10_000.0  # wider by steps, up to that, for far clusters and heavy tails …
# … while a larger share of the answers is disobeyed and each step halves it; where that does not
# help, another dimension is tried. Time against positions that are bent or stuck.
_BENT = 0.003
# Doubts that refute a dimension, another having brought nothing at the 1st, 2nd, 4th and 8th: time
# against positions that are only stuck; student clouds in 18 dimensions took more than four.
_REFUTED = 8
_CENTRE_STEPS = 500  # of the optimiser: time against convergence, which lines of 1,000 objects need


def fewest_dimensions(
    triplets: Triplets, start: Floats, evidence: Evidence, *, least: int = 1
) -> list[Floats]:
    """Positions in the fewest dimensions that obey the answers, and in one fewer.

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
        None, where not even d dimensions will do; one, or two where equal distances may be all that
        one dimension fewer disobeys.

    Examples
    --------
    >>> import numpy as np
    >>> start, evidence = np.random.default_rng(0).normal(size=(4, 2)), {}
    >>> line = np.array([[0, 1, 2], [0, 2, 3], [3, 2, 1], [3, 1, 0]])
    >>> [X.shape for X in fewest_dimensions(line, start, evidence)], evidence[1]["disobeyed"]
    ([(4, 1)], 0.0)
    """
    scale = float(start.std())
    start = start * (np.sqrt(len(start)) / scale) if scale > 0 else start

    found: list[Floats] = []
    for fit in descend(partial(_fit, triplets), start, least):
        X, d = fit.positions, fit.positions.shape[1]
        share = _share_wrong(X, triplets)
        evidence.setdefault(d, {}).update(loss=fit.loss, disobeyed=share)
        if share > _OBEYED and d < start.shape[1]:
            shown = len(X) >= _OBJECTS * (d + 2)  # few objects often fit in a dimension fewer
            tied = shown and share <= _TIED and _narrowly(X, triplets)
            return [*found[-1:], X] if found and tied else found[-1:]
        if d < start.shape[1] or d == least:
            found.append(X)
    return found[-1:]


def one_more_dimension(
    triplets: Triplets,
    fresh: Triplets,
    positions: Floats,
    evidence: Evidence,
    rng: np.random.Generator,
) -> Floats:
    """Positions in as many dimensions as before, or in one more that predicts clearly better.

    Better than both fits in as many: `positions` chose the questions as those it cannot answer.

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
    obeys = min(same, positions, key=lambda X: _share_wrong(X, triplets))
    share = 0.0
    for X in (more, obeys):
        share = _share_wrong(X, triplets)
        evidence.setdefault(X.shape[1], {})["disobeyed"] = share
    missing = share > _OBEYED and not _narrowly(obeys, triplets)
    better = (
        predicts_better(more, X, triplets, fresh, clearly=not missing) for X in (same, positions)
    )
    return more if all(better) else obeys


def predicts_better(
    one: Floats, other: Floats, seen: Triplets, fresh: Triplets, *, clearly: bool
) -> bool:
    """Whether positions predict answers that no fit has seen better, or even clearly better.

    Where the answers that they were fitted to show a rule for equal distances, both know it.
    """
    if not len(fresh):
        return False
    wrong = [wrong_answers(X, fresh, equal_within(X, seen)) for X in (one, other)]
    advance = advantage(-wrong[0].astype(np.float64), -wrong[1].astype(np.float64))
    return advance > (_CLEARLY if clearly else _BETTER)


def is_bent(X: Floats, triplets: Triplets) -> bool:
    """Whether more answers are disobeyed than a fit leaves that nothing holds up."""
    return bool(disobeyed(X, triplets).mean() > _BENT)


def _share_wrong(X: Floats, triplets: Triplets) -> float:
    """Which share of the answers is disobeyed, but for equal distances in the order of numbers."""
    return float(wrong_answers(X, triplets, equal_within(X, triplets)).mean())


def _narrowly(X: Floats, triplets: Triplets) -> bool:
    """Whether all disobeyed answers are so by no more than equal distances are."""
    distances = np.linalg.norm(X[triplets[:, 0]] - X[triplets[:, 2]], axis=1)
    gap = np.sqrt(12) * distances.std() / len(X)  # as if distances were uniform
    return bool(margins(X, triplets).min() >= -_NARROW * gap)


def possible_dimensions(d: int, n_objects: int, evidence: Evidence) -> tuple[int, int]:
    """The fewest and the most dimensions that objects may have whose answers fit in d.

    Fewer are refuted where they cannot obey the answers. More are not needed, but few objects in
    more dimensions often fit in fewer, and where d does not quite obey either, it may be equal
    distances or a weak dimension, up to the next that did.

    Examples
    --------
    >>> evidence = {1: {"disobeyed": 0.2}, 2: {"disobeyed": 0.0}}
    >>> possible_dimensions(2, 20, evidence), possible_dimensions(2, 8, evidence)
    ((2, 2), (2, 7))
    >>> possible_dimensions(1, 20, {1: {"disobeyed": 0.01}, 2: {"disobeyed": 0.0}})
    (1, 2)
    """
    refuted = [e for e, found in evidence.items() if e < d and found["disobeyed"] > _OBEYED]
    obey = [e for e, found in evidence.items() if e >= d and found["disobeyed"] <= _BENT]
    if n_objects < _OBJECTS * (d + 1):
        obey = []
    return max(refuted, default=0) + 1, min(obey, default=n_objects - 1)


class ObeyingFit:
    """Positions in the middle of what answers allow, refitted as more of them come.

    Parameters
    ----------
    positions
        ``(n, d)`` to begin with.
    evidence
        As for `fewest_dimensions`.
    rng
        Source of what is tried where a fit is stuck.

    Attributes
    ----------
    positions
        The last fit.
    tied
        Whether it disobeys answers, and those as equal distances are disobeyed.
    refuted
        Whether it goes on to disobey answers, others than these, and another dimension is no help.
    """

    def __init__(self, positions: Floats, evidence: Evidence, rng: np.random.Generator) -> None:
        self.positions, self._evidence, self._rng = positions, evidence, rng
        self._spread = max(_LEAST_SPREAD, _SPREAD * len(positions))
        self._doubts = 0
        self._equal = 0.0
        self.tied = self.refuted = False

    @property
    def dimension(self) -> int:
        """Of the positions: never less than before."""
        return int(self.positions.shape[1])

    def wrong(self, triplets: Triplets) -> NDArray[np.bool_]:
        """Which answers the positions predict wrongly, but for equal distances."""
        return wrong_answers(self.positions, triplets, self._equal)

    def to(self, triplets: Triplets, n_fresh: int = 0) -> None:
        """Fit all answers; the last so many no fit has seen."""
        before = self.positions
        X, share = self._centre(before, triplets)
        moved = relocate(X, triplets.astype(np.int32), disobeyed(X, triplets), self._rng)
        if (moved != X).any():
            again, less = self._centre(moved, triplets)
            X, share = (again, less) if less < share else (X, share)
        self._doubts += int(share > _BENT and n_fresh > 0)
        # something is stuck, or a dimension is missing: tried at the 1st doubt, the 2nd, 4th, 8th …
        if share > _BENT and n_fresh and not self._doubts & (self._doubts - 1):
            seen, fresh = triplets[:-n_fresh], triplets[-n_fresh:]
            other = one_more_dimension(seen, fresh, before, self._evidence, self._rng)
            other, less = self._centre(other, triplets)
            if other.shape[1] > X.shape[1]:  # more of them may be missing: do not wait to look
                X, share, self._doubts = other, less, 0
            elif less < share:
                X, share = other, less
        self._evidence.setdefault(X.shape[1], {})["disobeyed"] = share
        self.positions, self._equal = X, equal_within(X, triplets)
        narrowly = _narrowly(X, triplets)
        self.tied = self._equal != 0 or (share > _OBEYED and narrowly)
        self.refuted = self._doubts >= _REFUTED and share > _OBEYED and not narrowly

    def unbend(self, triplets: Triplets) -> None:
        """Where it is stuck, come down to it from more dimensions."""
        if _share_wrong(self.positions, triplets) > _BENT:
            other = one_more_dimension(
                triplets, triplets[:0], self.positions, self._evidence, self._rng
            )
            other, less = self._centre(other, triplets)
            if less < _share_wrong(self.positions, triplets):
                self.positions, self._equal = other, equal_within(other, triplets)

    def _centre(self, X: Floats, triplets: Triplets) -> tuple[Floats, float]:
        """The middle of what the answers allow, with a prior wide enough to obey them."""
        X = fit_centre(triplets, X, self._spread, max_iter=_CENTRE_STEPS).positions
        share = _share_wrong(X, triplets)
        while share > _BENT and self._spread < _WIDEST:
            spread = _WIDER * self._spread
            wider = fit_centre(triplets, X, spread, max_iter=_CENTRE_STEPS).positions
            less = _share_wrong(wider, triplets)
            if less > share / 2:  # equal distances, which no prior is wide enough for
                break
            X, share, self._spread = wider, less, spread
        return X, share


def _fit(triplets: Triplets, start: Floats) -> Fit:
    fit = fit_positions(triplets, len(start), start=start, max_iter=_STEPS, tol=1e-6)
    if not 0 < disobeyed(fit.positions, triplets).mean() < _TIED:
        return fit
    return fit_positions(triplets, len(start), start=fit.positions, tol=1e-7)
