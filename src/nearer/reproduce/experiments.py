"""An experiment: one data set, one method, one seed; a pure function from those to a few figures.

Experiments are cells (`nearer.cells`): a finished one is kept and not computed again. Randomness
comes from the seed: stream 0 draws the data, stream 1 the questions and starts, stream 2 the folds.
Only ``seconds``, of processor time, differs from run to run.

*Fairness.* Rand+SOE and CK may ask as many comparisons as Basis did on the same data with the same
seed. Fits have one start (`nearer.fitting.starts`) where the paper took the best of 20 or 40 random
ones, and find their dimension themselves where the paper tried d̂ and 2·d̂; CK gets the dimension
that the paper gave it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearer import metrics
from nearer.algorithms.basis import Basis, choose_basis
from nearer.algorithms.methods import METHODS, make_strategy
from nearer.asking.oracles import PointOracle
from nearer.asking.protocol import Strategy
from nearer.asking.run import run
from nearer.cells.digest import code_digest
from nearer.cells.finished import Figures
from nearer.embedding import Embedding
from nearer.reproduce import published
from nearer.reproduce.classification import accuracy
from nearer.reproduce.material import draw, load
from nearer.reproduce.neighbours import readings

__all__ = ["OWN", "REGISTERED", "Experiment"]

#: name in the tables → name in the registry of methods
REGISTERED = {
    "Basis": "basis",
    "Basis+SOE": "basis+soe",
    "Extra+SOE": "extra+soe",
    "Rand+SOE": "rand+soe",
    "CK": "crowd-kernel",
    "nearer": "adaptive",
}
#: the method that is not the paper's
OWN = "nearer"

_ZERO = 1e-3  # of a mean loss whose margin is 1: the paper's threshold for an optimum


@dataclass(frozen=True, order=True)
class Experiment:
    """What is computed at once.

    Attributes
    ----------
    table
        ``"table1"``, ``"table2"``, ``"table3"`` or ``"neighbours"``.
    data
        A data set of Table 2; for Table 1 a family and a dimension, as ``"ball-3"``.
    method
        As the tables call it.
    n_objects, seed
        How many objects, and which draw.
    """

    table: str
    data: str
    method: str
    n_objects: int
    seed: int

    @property
    def name(self) -> str:
        """The experiment in one line.

        Examples
        --------
        >>> Experiment("table2", "spam", "Basis+SOE", 1000, 3).name
        'table2 spam Basis+SOE n=1000 seed=3'
        """
        return f"{self.table} {self.data} {self.method} n={self.n_objects} seed={self.seed}"

    @property
    def code(self) -> str:
        """The digest of the code that its figures come from."""
        known = self.method in REGISTERED
        method = METHODS[REGISTERED[self.method]].make if known else choose_basis
        return code_digest(_COMPUTE[self.table], method, without=_WITHOUT, files=_DATA)

    def compute(self) -> Figures:
        """The figures.

        Examples
        --------
        >>> Experiment("table1", "cube-1", "Basis", 50, 0).compute()["dimension"]
        1
        """
        return _COMPUTE[self.table](self)


# what is imported for what none does (new objects, pictures), for the names of methods, or to read
# and write files, whose content is data
_WITHOUT = tuple(
    f"nearer.{room}"
    for room in (
        "algorithms.placing",
        "algorithms.methods",
        "embedding",
        "files",
        "plotting",
        "triplets",
    )
)
_DATA = tuple(sorted(Path(__file__).parents[1].glob("datasets/**/*.csv")))


def _dimension(cell: Experiment) -> Figures:
    family, dimension = cell.data.rsplit("-", 1)
    points = draw(family, int(dimension), cell.n_objects, cell.seed)
    embedding, seconds = _embed(cell, points)
    return {
        "dimension": embedding.dimension,
        "comparisons": embedding.n_comparisons,
        "seconds": seconds,
    }


def _quality(cell: Experiment) -> Figures:
    points = load(cell.data, cell.n_objects, cell.seed).points
    embedding, seconds = _embed(cell, points)
    loss = embedding.details.get("loss")
    return {
        "dimension": embedding.dimension,
        "comparisons": embedding.n_comparisons,
        "rounds": embedding.n_rounds,
        "tau": metrics.mean_kendall_tau(points, embedding.positions),
        "knn": metrics.knn_precision(points, embedding.positions),
        "rmse": metrics.distance_rmse(points, embedding.positions),
        "loss": loss,
        "optimum": None if loss is None else bool(loss <= _ZERO),
        "seconds": seconds,
    }


def _accuracy(cell: Experiment) -> Figures:
    material = load(cell.data, cell.n_objects, cell.seed)
    assert material.labels is not None  # every set of Table 3 has classes
    seconds = 0.0
    if cell.method == "original":
        features = material.points
    else:
        embedding, seconds = _embed(cell, material.points)
        features = embedding.positions
    start = time.process_time()
    train, test = accuracy(features, material.labels, np.random.default_rng([cell.seed, 2]))
    return {
        "dimension": int(features.shape[1]),
        "train": train,
        "test": test,
        "seconds": seconds + time.process_time() - start,
    }


def _neighbours(cell: Experiment) -> Figures:
    points = load(cell.data, cell.n_objects, cell.seed).points
    basis = run(_basis(cell, len(points)), PointOracle(points))
    return {
        f"{reading} {measure}": value
        for reading, measured in readings(points, basis).items()
        for measure, value in measured.items()
    }


def _embed(cell: Experiment, points: Any) -> tuple[Embedding, float]:
    """Run the experiment's method, with the budget that Basis sets where the method needs one."""
    n, oracle = points.shape[0], PointOracle(points)
    options: dict[str, Any] = {}
    if cell.method == "Basis":
        options["rank_start"] = True
    if cell.method in ("Rand+SOE", "CK"):
        options["budget"] = run(_basis(cell, n), oracle).n_comparisons
    if cell.method == "CK":
        options["n_components"] = published.TABLE_2[cell.data]["CK"].dimension
    strategy = make_strategy(REGISTERED[cell.method], n, random_state=_questions(cell), **options)
    start = time.process_time()
    embedding = run(strategy, oracle)
    return embedding, time.process_time() - start


def _basis(cell: Experiment, n_objects: int) -> Strategy[Basis]:
    """The search for a basis with as many sorts as the paper's, two an axis and two more."""
    return choose_basis(n_objects, random_state=_questions(cell), rank_start=True)


def _questions(cell: Experiment) -> int:
    """The seed of what is asked and where fits begin."""
    return int(np.random.SeedSequence([cell.seed, 1]).generate_state(1)[0])


_COMPUTE: dict[str, Callable[[Experiment], Figures]] = {
    "table1": _dimension,
    "table2": _quality,
    "table3": _accuracy,
    "neighbours": _neighbours,
}
