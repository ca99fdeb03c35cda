"""Points and answers to try things on: drawn at random, shipped, or read from files."""

from nearer.datasets.catalogue import CATALOGUE
from nearer.datasets.points import (
    load_points,
    make_ball,
    make_cube,
    make_gaussian,
    make_mixture,
    make_sphere,
    read_points,
)
from nearer.datasets.published import (
    HUMAN,
    Cities,
    PointData,
    load_cities,
    load_classes,
    load_digits_mnist,
    load_human,
    load_newsgroups,
    load_spambase,
)

__all__ = [
    "CATALOGUE",
    "HUMAN",
    "Cities",
    "PointData",
    "load_cities",
    "load_classes",
    "load_digits_mnist",
    "load_human",
    "load_newsgroups",
    "load_points",
    "load_spambase",
    "make_ball",
    "make_cube",
    "make_gaussian",
    "make_mixture",
    "make_sphere",
    "read_points",
]
