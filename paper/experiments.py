"""The experiments of the paper: one data set, one method, one seed each.

An experiment is a cell (`benchmarks.cells`), a pure function of its name. Randomness comes from the
seed: stream 0 draws the data, stream 1 the questions and starts, stream 2 the folds. Only
``seconds``, of processor time, differs from run to run.

*Fairness.* Rand+SOE and CK may ask as many comparisons as Basis did on the same data with the same
seed. Fits have one start (the paper took the best of 20 or 40 random ones) and estimate their
dimension (the paper tried d̂ and 2·d̂); CK gets the dimension that the paper gave it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.cells import Figures
from nearer import Embedding, PointOracle, choose_basis, metrics, run
from nearer.algorithms.pipelines import make_strategy
from paper import published
from paper.data import DATA, draw, load
from paper.neighbours import readings

__all__ = ["FULL", "OWN", "QUICK", "REGISTERED", "TARGETS"]
__all__ += ["Experiment", "Scale", "accuracy", "list_experiments"]

TARGETS = ("table1", "table2", "table3", "figures", "all")

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


@dataclass(frozen=True, order=True)
class Experiment:
    """One run of one method.

    Attributes
    ----------
    table
        ``"table1"``, ``"table2"``, ``"table3"`` or ``"neighbours"``.
    data
        A data set of Table 2; for Table 1 a family and a dimension, as ``"ball-3"``.
    method
        As the tables call it.
    n_objects, seed
        The number of objects, and the draw.
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

    def compute(self) -> Figures:
        """The figures."""
        return _COMPUTE[self.table](self)


def _dimension(cell: Experiment) -> Figures:
    family, dimension = cell.data.rsplit("-", 1)
    embedding, seconds = _embed(cell, draw(family, int(dimension), cell.n_objects, cell.seed))
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
        # The paper calls a mean loss of at most 0.001, at margin 1, an optimum.
        "optimum": None if loss is None else bool(loss <= 1e-3),
        "seconds": seconds,
    }


def _accuracy(cell: Experiment) -> Figures:
    data = load(cell.data, cell.n_objects, cell.seed)
    assert data.labels is not None  # every set of Table 3 has classes
    if cell.method == "original":
        features, seconds = data.points, 0.0
    else:
        embedding, seconds = _embed(cell, data.points)
        features = embedding.positions
    start = time.process_time()
    train, test = accuracy(features, data.labels, np.random.default_rng([cell.seed, 2]))
    return {
        "dimension": int(features.shape[1]),
        "train": train,
        "test": test,
        "seconds": seconds + time.process_time() - start,
    }


def _neighbours(cell: Experiment) -> Figures:
    points = load(cell.data, cell.n_objects, cell.seed).points
    return {
        f"{reading} {measure}": value
        for reading, measured in readings(points, _basis(cell, points)).items()
        for measure, value in measured.items()
    }


_COMPUTE: dict[str, Callable[[Experiment], Figures]] = {
    "table1": _dimension,
    "table2": _quality,
    "table3": _accuracy,
    "neighbours": _neighbours,
}


def _embed(cell: Experiment, points: Any) -> tuple[Embedding, float]:
    """Run the method of an experiment; returns the embedding and its processor time."""
    options: dict[str, Any] = {}
    if cell.method == "Basis":
        options["rank_start"] = True
    if cell.method in ("Rand+SOE", "CK"):
        options["budget"] = _basis(cell, points).n_comparisons
    if cell.method == "CK":
        options["n_components"] = published.TABLE_2[cell.data]["CK"].dimension
    strategy = make_strategy(
        REGISTERED[cell.method], points.shape[0], random_state=_stream_1(cell), **options
    )
    start = time.process_time()
    embedding = run(strategy, PointOracle(points))
    return embedding, time.process_time() - start


def _basis(cell: Experiment, points: Any) -> Any:
    """The basis from as many sorts as the paper's: two an axis and two more."""
    strategy = choose_basis(points.shape[0], random_state=_stream_1(cell), rank_start=True)
    return run(strategy, PointOracle(points))


def _stream_1(cell: Experiment) -> int:
    """The seed of the questions and the starts of fits."""
    return int(np.random.SeedSequence([cell.seed, 1]).generate_state(1)[0])


def accuracy(features: Any, labels: NDArray[Any], rng: np.random.Generator) -> tuple[float, float]:
    """Mean accuracy of gradient boosting on the training and on the test part of 5 folds.

    The paper names neither implementation nor settings. Here it is scikit-learn's
    `GradientBoostingClassifier` with its defaults, since it is quick on few features and takes
    sparse ones. With more than 100 features a split looks at a random √d of them; the 33,873 terms
    of 20 Newsgroups would take hours otherwise. Folds keep the share of every class as far as it
    has members for that.

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
    *seeds, seed_of_folds = rng.integers(1 << 31, size=6).tolist()
    folds = StratifiedKFold(len(seeds), shuffle=True, random_state=seed_of_folds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(folds.split(np.zeros(len(labels)), labels))
    scores = []
    for (train, test), seed in zip(splits, seeds, strict=True):
        model = GradientBoostingClassifier(
            max_features="sqrt" if features.shape[1] > 100 else None, random_state=seed
        ).fit(features[train], labels[train])
        scores.append([model.score(features[part], labels[part]) for part in (train, test)])
    train_score, test_score = np.mean(scores, axis=0).tolist()
    return train_score, test_score


@dataclass(frozen=True)
class Scale:
    """How much of the paper's experiments to run.

    Attributes
    ----------
    table1, own, table2, table3
        Runs of each experiment, each with a seed of its own; `own` are those of our own estimate in
        Table 1. Experiments of which one run takes half a minute or more have fewer.
    most_objects, most_dimensions
        The most objects of a set, and the most dimensions of our own estimate; None: no limit.
    """

    table1: int
    own: int
    table2: int
    table3: int
    most_objects: int | None = None
    most_dimensions: int | None = None

    def with_runs(self, runs: int | None) -> Scale:
        """The same with this many runs of everything."""
        if runs is None:
            return self
        return replace(self, table1=runs, own=runs, table2=runs, table3=runs)

    def size(self, n_objects: int) -> int:
        """How many of `n_objects` to take."""
        return n_objects if self.most_objects is None else min(n_objects, self.most_objects)


FULL = Scale(table1=100, own=10, table2=10, table3=3)
QUICK = Scale(table1=2, own=1, table2=1, table3=1, most_objects=500, most_dimensions=5)


def list_experiments(target: str, scale: Scale, seed: int = 0) -> list[Experiment]:
    """The experiments of a table, of the figures (none) or of everything, in the order to run them.

    The paper's rows come before our own; seeds come one after the other, so that after an
    interruption the cells cover every row; large sets come first, so that the last cells are short.
    """
    tables = {"table1": _table1, "table2": _table2, "table3": _table3}
    cells = [
        Experiment(table, data, method, n, seed + i)
        for name, of in tables.items()
        if target in (name, "all")
        for table, data, method, n, runs in of(scale)
        for i in range(runs)
    ]
    return sorted(cells, key=lambda cell: (cell.method == OWN, cell.seed, -cell.n_objects))


Row = tuple[str, str, str, int, int]  # table, data, method, objects, runs


def _table1(scale: Scale) -> Iterable[Row]:
    n = scale.size(1000)
    for family in published.FAMILIES:
        for d in published.DIMENSIONS:
            data = f"{family}-{d}"
            yield "table1", data, "Basis", n, scale.table1
            if scale.most_dimensions is None or d <= scale.most_dimensions:
                # A run takes half a minute above five dimensions, minutes above ten; a sphere in
                # one dimension is two points, with nearly all distances tied.
                part = 4 if d > 10 else 2 if d > 5 or data == "sphere-1" else 1
                yield "table1", data, OWN, n, -(-scale.own // part)


def _table2(scale: Scale) -> Iterable[Row]:
    for data, rows in published.TABLE_2.items():
        n = scale.size(DATA[data].n_objects)
        for method in [*rows, OWN]:
            yield "table2", data, method, n, _runs(scale.table2, method, n)
    yield "neighbours", "spam", "Basis", scale.size(DATA["spam"].n_objects), scale.table2


def _table3(scale: Scale) -> Iterable[Row]:
    for data in published.TABLE_3:
        n = scale.size(DATA[data].n_objects)
        for method in ["original", "Basis", "Basis+SOE", OWN]:
            yield "table3", data, method, n, _runs(scale.table3, method, n)


def _runs(runs: int, method: str, n_objects: int) -> int:
    """A quarter of the runs if a fit takes half a minute."""
    return -(-runs // 4) if n_objects > 1000 and method != "Basis" else runs
