"""Points drawn from the distributions of the paper's experiments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearer import checks

__all__ = ["make_ball", "make_cube", "make_gaussian", "make_mixture", "make_sphere"]

Seed = int | np.random.Generator | None
Points = NDArray[np.float64]


def make_ball(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform in the unit ball.

    Examples
    --------
    >>> X = make_ball(100, 3, random_state=0)
    >>> X.shape, bool((X**2).sum(axis=1).max() <= 1)
    ((100, 3), True)
    """
    _check(n_objects, dimension)
    rng = checks.generator(random_state)
    radius = rng.random((n_objects, 1)) ** (1 / dimension)
    return make_sphere(n_objects, dimension, random_state=rng) * radius


def make_cube(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform in the unit cube.

    Examples
    --------
    >>> make_cube(100, 5, random_state=0).shape
    (100, 5)
    """
    _check(n_objects, dimension)
    return checks.generator(random_state).random((n_objects, dimension))


def make_gaussian(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points from the standard normal distribution.

    Examples
    --------
    >>> make_gaussian(100, 2, random_state=0).shape
    (100, 2)
    """
    _check(n_objects, dimension)
    return checks.generator(random_state).normal(size=(n_objects, dimension))


def make_sphere(n_objects: int, dimension: int, *, random_state: Seed = None) -> Points:
    """Points uniform on the unit sphere of a space of this dimension.

    Examples
    --------
    >>> X = make_sphere(100, 3, random_state=0)
    >>> bool(abs((X**2).sum(axis=1) - 1).max() < 1e-12)
    True
    """
    _check(n_objects, dimension)
    X: Points = checks.generator(random_state).normal(size=(n_objects, dimension))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def make_mixture(
    n_objects: int, dimension: int, *, n_centres: int = 3, random_state: Seed = None
) -> Points:
    """Points from a mixture of isotropic unit Gaussians whose centres are standard normal.

    Examples
    --------
    >>> make_mixture(500, 3, random_state=0).shape
    (500, 3)
    """
    _check(n_objects, dimension)
    rng = checks.generator(random_state)
    centres = rng.normal(size=(n_centres, dimension))
    return centres[rng.integers(n_centres, size=n_objects)] + rng.normal(
        size=(n_objects, dimension)
    )


def _check(n_objects: int, dimension: int) -> None:
    checks.whole("n_objects", n_objects)
    checks.whole("dimension", dimension)
