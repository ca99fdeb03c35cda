"""The data sets of the paper, in the units in which its errors compare.

Mixtures, cubes and e-mails (whose source is sorted by class) are drawn for every seed; cities,
digits and posts are always the same, and only the questions differ. Cities are
on the unit sphere and pixels go from 0 to 1, since those units fit the paper's RMSE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import _published as published
from nearer import datasets

__all__ = ["DATA", "DataSet", "draw", "load"]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points, dense or sparse, and their classes if they have any."""

    points: Any
    labels: NDArray[Any] | None = None


@dataclass(frozen=True)
class Source:
    """How a data set of Table 2 is made.

    Attributes
    ----------
    n_objects, dimension
        How many objects it has, and in how many dimensions.
    what
        One line about it, with its unit of distance.
    make
        Makes it, given the number of objects wanted and a generator.
    """

    n_objects: int
    dimension: int
    what: str
    make: Callable[[int, np.random.Generator], DataSet]


def _mixture(dimension: int) -> Callable[[int, np.random.Generator], DataSet]:
    return lambda n, rng: DataSet(datasets.make_mixture(n, dimension, random_state=rng))


def _cube(n: int, rng: np.random.Generator) -> DataSet:
    return DataSet(datasets.make_cube(n, 5, random_state=rng))


def _cities(n: int, _: np.random.Generator) -> DataSet:
    cities = datasets.load_cities()
    globe = cities.points / np.linalg.norm(cities.points, axis=1, keepdims=True)
    return DataSet(globe[:n], np.array(cities.continents)[:n])


def _digits(n: int, _: np.random.Generator) -> DataSet:
    data = published.load_digits_mnist(n)
    return DataSet(data.points / 255, data.labels)


def _spam(n: int, rng: np.random.Generator) -> DataSet:
    data = published.load_spambase(n, random_state=rng)
    return DataSet(data.points, data.labels)


def _posts(n: int, _: np.random.Generator) -> DataSet:
    data = published.load_newsgroups(n, terms="content")
    return DataSet(data.points, data.labels)


#: the data sets of Table 2, in the paper's order
DATA: dict[str, Source] = {
    "3dgmm": Source(500, 3, "three unit Gaussians whose centres are standard normal", _mixture(3)),
    "5dcube": Source(500, 5, "uniform in the unit cube", _cube),
    "5dgmm": Source(500, 5, "three unit Gaussians whose centres are standard normal", _mixture(5)),
    "20news": Source(
        2000, 33_873, "the first 2,000 posts with 50 terms or more, no stop words", _posts
    ),
    "cities": Source(500, 3, "the largest of each country, then by size; unit sphere", _cities),
    "digits": Source(1000, 784, "the first 1,000 of MNIST; pixels from 0 to 1", _digits),
    "spam": Source(1000, 57, "1,000 random rows of Spambase, as they are", _spam),
}


@lru_cache(maxsize=2)
def load(name: str, n_objects: int, seed: int) -> DataSet:
    """A data set of Table 2, or its beginning."""
    return DATA[name].make(n_objects, np.random.default_rng([seed, 0]))


def draw(family: str, dimension: int, n_objects: int, seed: int) -> NDArray[np.float64]:
    """Points of Table 1.

    Examples
    --------
    >>> draw("sphere", 2, 100, 0).shape
    (100, 2)
    """
    make = {
        "ball": datasets.make_ball,
        "cube": datasets.make_cube,
        "gaussian": datasets.make_gaussian,
        "sphere": datasets.make_sphere,
    }[family]
    return make(n_objects, dimension, random_state=np.random.default_rng([seed, 0]))
