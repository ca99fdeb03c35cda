"""Points and answers to try things on: drawn at random, shipped, or read from files."""

from nearer.datasets.cities import Cities, load_cities
from nearer.datasets.points import load_points, read_points
from nearer.datasets.synthetic import (
    make_ball,
    make_cube,
    make_gaussian,
    make_mixture,
    make_sphere,
)

__all__ = [
    "Cities",
    "load_cities",
    "load_points",
    "make_ball",
    "make_cube",
    "make_gaussian",
    "make_mixture",
    "make_sphere",
    "read_points",
]
