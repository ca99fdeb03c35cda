"""The adaptive Crowd Kernel (Tamuz, Liu, Belongie, Shamir, Kalai 2011).

Fit the crowd-kernel likelihood to the answers so far. Then, for every object as a head, ask the
question from which most is expected about where the head is: the head might be at the place of any
object, believed in proportion to how likely its answers so far would be from there, and the
expected information of a question is the entropy of its predicted answer less the expected entropy
once the place is known. Fit again, and so on until the budget is spent.

The original fits after one question an object and weighs all places and all pairs. Here each object
gets a share of questions that grows with what it has, and places and pairs are sampled, which
changes the result little and the time from days to minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import entr

from nearer import checks
from nearer.algorithms.choose_questions import default_budget
from nearer.asking.protocol import Record, Strategy, recorded, repeatable
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent
from nearer.fitting.heldout import fit_smallest
from nearer.fitting.initial import fit_from_more_dimensions
from nearer.fitting.solver import Fit, Loss, fit_positions
from nearer.questions import balanced_questions, pack

__all__ = ["crowd_kernel"]

# Time against the original, which weighs everything; `python -m paper` shows what comes of it.
_FIRST = 10  # random questions an object before the first fit
_GROWTH = 0.1  # questions before the next fit, as a part of those so far
_PLACES = 60  # where a head might be
_CANDIDATES = 40  # pairs weighed for a head
_LOSS = Loss("ckl")
_MU = _LOSS.number


@repeatable
def crowd_kernel(
    n_objects: int,
    *,
    budget: int | None = None,
    n_components: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Strategy[Embedding]:
    """Ask what tells most about each object, by the crowd-kernel likelihood.

    Parameters
    ----------
    n_objects
        How many objects there are.
    budget
        How many comparisons to ask; `default_budget` if None.
    n_components
        In how many dimensions to place them; None: as many as the answers
        call for, decided anew as they grow.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import nearer
    >>> X = nearer.datasets.make_gaussian(40, 2, random_state=0)
    >>> strategy = nearer.algorithms.crowd_kernel(40, budget=1500, n_components=2, random_state=0)
    >>> embedding = nearer.run(strategy, nearer.PointOracle(X))
    >>> embedding.n_comparisons, nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.7
    (1500, True)
    """
    n = checks.n_objects(n_objects)
    budget = default_budget(n) if budget is None else checks.budget(budget, 1)
    d = None if n_components is None else checks.n_components(n_components, n)
    return _crowd_kernel(n, budget, d, checks.generator(random_state))


def _crowd_kernel(
    n: int, budget: int, d: int | None, rng: np.random.Generator
) -> Strategy[Embedding]:
    record, fits = Record(), _Fits(n, d)
    stopped = "the budget is spent"
    try:
        yield from recorded(_ask_and_fit(n, budget, fits, rng, record), record)
    except BudgetSpent as spent:
        stopped = f"only {spent.budget} comparisons were allowed"
    fit = fits.again(record.triplets, rng, last=True)
    note = f"{fits.count} fits; {stopped}"
    return Embedding(
        positions=fit.positions,
        triplets=record.triplets,
        n_comparisons=record.n_comparisons,
        n_rounds=record.n_rounds,
        history=(Phase("crowd kernel", record.n_comparisons, record.n_rounds, note),),
        evidence=fits.evidence,
        details={"loss": fit.loss, "n_starts": 1},
    )


def _ask_and_fit(
    n: int, budget: int, fits: _Fits, rng: np.random.Generator, record: Record
) -> Strategy[None]:
    yield balanced_questions(n, min(budget, _FIRST * n), rng)
    head = 0
    while record.n_comparisons < budget:
        triplets = record.triplets
        positions = fits.again(triplets, rng).positions
        wanted = min(budget - len(triplets), max(n, int(_GROWTH * len(triplets))))
        heads = (head + np.arange(wanted)) % n
        head = (head + wanted) % n
        yield _choose(positions, triplets, heads, rng)


class _Fits:
    """Fits to growing sets of answers, each from where the last one ended.

    Where no dimension is given, it is chosen again whenever the answers have doubled.
    """

    def __init__(self, n: int, d: int | None) -> None:
        self._n, self._given, self._d = n, d, d or 1
        self._positions: NDArray[np.float64] | None = None
        self._chosen_at = 0
        self.count = 0
        self.evidence: dict[int, Any] = {}

    def again(
        self, triplets: NDArray[np.int64], rng: np.random.Generator, *, last: bool = False
    ) -> Fit:
        """Fit to these answers; the last time also from a start of its own."""
        if not len(triplets):
            return Fit(np.zeros((self._n, self._d)), 0.0, 0, False)
        if self._given is None and len(triplets) >= 2 * self._chosen_at:
            fit, self.evidence = fit_smallest(triplets, self._n, at_least=self._d, rng=rng)
            self._d, self._positions = fit.positions.shape[1], None
            self._chosen_at = len(triplets)
        fit = fit_positions(
            triplets,
            self._n,
            self._d,
            loss=_LOSS,
            start=self._positions,
            rng=rng,
            max_iter=300,
            tol=1e-5,
        )
        if last:
            above = fit_from_more_dimensions(
                triplets, self._n, self._d, loss=_LOSS, max_iter=300, rng=rng
            )
            fit = min(fit, above, key=lambda f: f.loss)
        self._positions = fit.positions
        self.count += 1
        if self._given is not None:
            self.evidence = {self._d: {"loss": fit.loss}}
        return fit


def _choose(
    positions: NDArray[np.float64],
    triplets: NDArray[np.int64],
    heads: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The most informative of some random pairs for each head; a head may occur repeatedly."""
    n = len(positions)
    triplets = triplets[np.argsort(triplets[:, 0], kind="stable")]
    first = np.searchsorted(triplets[:, 0], np.arange(n + 1))
    places = rng.integers(n, size=(len(heads), min(n, _PLACES)))
    places[:, 0] = heads
    candidates = balanced_questions(n, len(heads) * _CANDIDATES, rng)[:, 1:]
    candidates = candidates.reshape(len(heads), _CANDIDATES, 2)
    clash = (candidates == heads[:, None, None]).any(axis=2)
    candidates[clash] = _other_pairs(np.nonzero(clash)[0], heads, n, rng)
    questions = np.empty((len(heads), 3), dtype=np.int64)
    for row, i in enumerate(np.argsort(heads, kind="stable")):
        answered = triplets[first[heads[i]] : first[heads[i] + 1], 1:]
        gains = expected_information(positions, places[i], answered, candidates[i])
        questions[row] = heads[i], *candidates[i, np.argmax(gains)]
    return _replace_repeats(questions, triplets, n, rng)


def expected_information(
    positions: NDArray[np.float64],
    places: NDArray[np.int64],
    answered: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> NDArray[np.float64]:
    """What the answer to each pair is expected to tell about the place of a head, in nats.

    Parameters
    ----------
    positions
        Of all objects.
    places
        Objects whose positions are where the head might be.
    answered
        ``(m, 2)`` the pairs (near, far) that the head has.
    pairs
        ``(c, 2)`` pairs that might be asked.
    """

    def probability(ends: NDArray[np.int64]) -> NDArray[np.float64]:
        squares = cdist(positions[places], positions[ends.ravel()], "sqeuclidean")
        near, far = squares[:, ::2], squares[:, 1::2]
        return np.asarray((_MU + far) / (2 * _MU + near + far))

    log = np.log(probability(answered)).sum(axis=1)
    belief = np.exp(log - log.max())
    belief /= belief.sum()
    p = probability(pairs)
    mean = belief @ p
    return np.asarray(entr(mean) + entr(1 - mean) - belief @ (entr(p) + entr(1 - p)))


def _other_pairs(
    rows: NDArray[np.int64], heads: NDArray[np.int64], n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Random pairs of two objects that are not the head of their row."""
    head = heads[rows]
    a = (head + rng.integers(1, n, size=len(rows))) % n
    b = (head + rng.integers(1, n - 1, size=len(rows))) % n
    # step over a: b is drawn from one object fewer
    offset_a, offset_b = (a - head) % n, (b - head) % n
    return np.stack([a, (head + offset_b + (offset_b >= offset_a)) % n], axis=1)


def _replace_repeats(
    questions: NDArray[np.int64],
    triplets: NDArray[np.int64],
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Put random questions in the place of those already answered, or chosen twice."""
    known = np.concatenate([pack(triplets)[0], pack(questions)[0]])
    _, index = np.unique(known, return_index=True)
    repeated = np.ones(len(questions), dtype=np.bool_)
    repeated[index[index >= len(triplets)] - len(triplets)] = False
    rows = np.flatnonzero(repeated)
    questions[rows, 1:] = _other_pairs(rows, questions[:, 0], n, rng)
    return questions
