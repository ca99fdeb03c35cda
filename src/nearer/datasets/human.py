"""Answers of people: six published sets of comparisons."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.datasets.catalogue import CATALOGUE, entry
from nearer.datasets.folders import find
from nearer.errors import DroppedRows, InvalidInput
from nearer.triplets import Triplets, read_triplets
from nearer.triplets.table import read_table

__all__ = ["HUMAN", "HumanData", "load_human"]

#: names of the data sets that hold answers of people
HUMAN = tuple(data.name for data in CATALOGUE if data.holds == "answers")

# Musicians and cars are numbered with gaps and from 1; as names they are numbered afresh from 0.
_OPTIONS: dict[str, dict[str, Any]] = {
    "musicians": {"objects": "names"},
    "cars": {"objects": "names", "kind": "most-central"},
    "things": {"kind": "odd-one-out"},
}


@dataclass(frozen=True, eq=False)
class HumanData:
    """Answers of people.

    Attributes
    ----------
    answers
        The triplets with participants and a report, as `nearer.read_triplets` returns them.
    classes
        The class of each object where one is known (a musician's genres with ``;`` between them,
        a car's class), else None. For evaluation only.
    name, licence, source
        What it is and whose.
    """

    answers: Triplets
    classes: tuple[str, ...] | None
    name: str
    licence: str
    source: str

    @property
    def triplets(self) -> NDArray[np.int64]:
        """``(m, 3)`` rows ``(head, near, far)``."""
        return self.answers.triplets

    @property
    def labels(self) -> tuple[str, ...]:
        """What the objects are called."""
        return self.answers.labels

    @property
    def n_objects(self) -> int:
        """How many objects there are."""
        return self.answers.n_objects


def load_human(name: str) -> HumanData:
    """Answers of people: zappos85, alieneggs30, alieneggs300, musicians, cars or things.

    Rows that say nothing (17 of the musicians') are left out and listed in the report.

    Parameters
    ----------
    name
        Which set; ``nearer data`` lists them and says where their files are looked for.
    """
    if name not in HUMAN:
        raise InvalidInput(f"{name!r} is no set of answers; there are {', '.join(HUMAN)}")
    data = entry(name)
    paths = [find(data, file) for file in data.files]
    options = dict(_OPTIONS.get(name, {}))
    if name == "things":
        options["labels"] = [concept for _, concept in _pairs(paths[1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRows)  # known, and said above
        answers = read_triplets(paths[0], **options)
    classes = None
    if name in ("musicians", "cars"):
        known = dict(_pairs(paths[1]))
        classes = tuple(known[label] for label in answers.labels)
    return HumanData(answers, classes, data.name, data.licence, data.source)


def _pairs(path: Path) -> list[tuple[str, str]]:
    """The rows of a file of two columns, without its header."""
    table = read_table(path).below()
    return list(zip(table.column(0), table.column(1), strict=True))
