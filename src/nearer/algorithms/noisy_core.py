"""Many objects whose answers may be wrong: a core, and the others placed among it.

Some hundred objects, drawn at random, are asked about and fitted together (`informative`): they
show the dimension and how far answers can be believed. Everybody else is placed among them by
questions chosen from its own posterior (`place`), all side by side. A newcomer's answers have
to do with many different members of the core, whose errors cancel: it comes out about as well as
they did, and nothing has to be fitted again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nearer.algorithms.budgets import noisy_budget
from nearer.algorithms.informative import informative
from nearer.algorithms.place import Placed, place_among
from nearer.asking.protocol import Strategy, accepts_uncertain, renumbered
from nearer.embedding import Embedding, Phase
from nearer.fitting.posterior import Posterior, expected_tau
from nearer.fitting.solver import disobeyed
from nearer.questions import Objects

__all__ = ["TOGETHER", "noisy_core"]

# Up to so many objects are fitted together, so many of more: time against what more dimensions than
# a few would need. `python -m benchmarks scale` shows both for doubtful answers.
TOGETHER = 500
_CORE = 300
_CAUTIOUS = 0.1  # sixty cycles do not tell a tenth of wrong answers from a fiftieth


@accepts_uncertain
def noisy_core(
    n: int,
    *,
    budget: int | None,
    noise: float,
    known: Objects | None = None,
    quality: float,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    """Embed a random core, then place the others among it.

    Parameters
    ----------
    n
        How many objects there are, more than a core has.
    budget
        At most so many comparisons, at most half of them for the core; None: what `noisy_budget`
        allows.
    known
        Answers that are there already, rows (head, near, far), about fewer objects than a core has,
        or they are left out as far as they concern others: the core holds these objects.
    noise, quality
        As for `informative`.
    rng
        Source of the core.
    """
    told = np.empty((0, 3), dtype=np.int64) if known is None else known
    objects = rng.permutation(n)
    objects = objects[np.argsort(~np.isin(objects, told), kind="stable")]  # the core first
    inside = np.argsort(objects)[told]
    inside = inside[(inside < _CORE).all(axis=1)]
    enough = noisy_budget(_CORE, max(noise, _CAUTIOUS))
    core_budget = enough if budget is None else max(1, min(enough, budget // 2))
    core = yield from renumbered(
        informative(
            _CORE,
            budget=core_budget,
            noise=noise,
            known=inside,
            quality=quality,
            random_state=rng,
        ),
        objects,
    )
    if budget is None:
        # of random questions; those that were chosen are harder
        wrong = noise if core.held_out is None else 1 - core.held_out.accuracy
        budget = noisy_budget(n, wrong)
    placing = place_among(
        core.details["posterior"],
        np.arange(_CORE, n),
        budget=max(1, budget - core.n_comparisons),
        until_spent=quality >= 1,
        rng=rng,
    )
    placed = yield from renumbered(placing, objects)
    return _all_of(core, placed, np.argsort(objects), objects)


def _all_of(
    core: Embedding,
    placed: Placed,
    places: Objects,
    objects: Objects,
) -> Embedding:
    """The core and the others as one embedding, `places` in the order in which they came."""
    old: Posterior = core.details["posterior"]
    fit = replace(
        old,
        positions=np.concatenate([old.positions, placed.positions])[places],
        covariances=np.concatenate([old.covariances, placed.covariances])[places],
    )
    triplets = objects[np.concatenate([core.triplets, placed.triplets])]
    never = np.concatenate([core.details["never_asked"], placed.never_asked])
    wrong = float(disobeyed(fit.positions, triplets).mean()) if len(triplets) else 0.5
    tau, rows = core.details["expected_tau"], np.isfinite(fit.positions).all(axis=1)
    known = replace(fit, positions=fit.positions[rows], covariances=fit.covariances[rows])
    sure = f"all but {placed.uncertain} as sure as it" if placed.uncertain else "as sure as it"
    note = f"{len(placed.positions)} objects among a core of {len(old.positions)}, {sure}"
    return replace(
        core,
        positions=fit.positions,
        triplets=triplets,
        n_comparisons=core.n_comparisons + placed.n_comparisons,
        n_rounds=core.n_rounds + placed.n_rounds,
        history=(*core.history, Phase("place", placed.n_comparisons, placed.n_rounds, note)),
        covariances=fit.covariances,
        error_rate=wrong,
        details=core.details
        | {
            "posterior": fit,
            "covariances": fit.covariances,
            "error_rate": wrong,
            # others are placed no better than the core is
            "expected_tau": min(tau, expected_tau(known, fit.curve.sharpness)),
            "never_asked": np.sort(objects[never]),
        },
    )
