"""The data sets that the loaders know, and where their files are.

``catalogue.json`` lists them. Files are looked for in the folder that the environment variable
``NEARER_DATA`` names, where it is set, then in the cache folder, which is ``NEARER_CACHE`` or else
``nearer`` in the user's cache (``XDG_CACHE_HOME``, ``~/.cache``). Downloads of scikit-learn are
stored in the cache folder.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from nearer.errors import InvalidInput, MissingData
from nearer.files import sha256


@dataclass(frozen=True)
class DataFile:
    """A file by its name, its size in bytes and its SHA-256 sum."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A data set: what ``nearer data`` says of it, and how it is loaded."""

    name: str
    what: str
    objects: int  # or as many as the loader takes by default
    holds: str  # "points" or "answers"
    licence: str
    source: str
    loader: str  # the function of `nearer.datasets` that returns it
    files: tuple[DataFile, ...] = ()  # none where it comes with the package
    download: str | None = None  # the function of scikit-learn that can get it
    read_options: dict[str, Any] = field(default_factory=dict)  # of `nearer.read_triplets`


#: every data set, with its files and where they come from
CATALOGUE = tuple(
    Entry(**row | {"files": tuple(DataFile(**file) for file in row["files"])})
    for row in json.loads((files("nearer.datasets") / "catalogue.json").read_text("utf-8"))
)


def entry(name: str, holds: str = "") -> Entry:
    """The entry of that name, among those that hold points or answers where that is said."""
    entries = {data.name: data for data in CATALOGUE if holds in ("", data.holds)}
    if name not in entries:
        what = f"set of {holds}" if holds else "data set"
        raise InvalidInput(f"{name!r} is no {what}; there are {', '.join(entries)}")
    return entries[name]


def folders() -> list[Path]:
    """Where data files are looked for, in this order."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("NEARER_CACHE") or Path(user) / "nearer")
    own = os.environ.get("NEARER_DATA")
    return [Path(own), cache] if own else [cache]


def locate(file: DataFile) -> Path | None:
    """The path of a data file, or None where there is none; the content is not checked."""
    paths = (folder / file.name for folder in folders())
    return next((path for path in paths if path.is_file()), None)


def find(data: Entry) -> list[Path]:
    """The paths of the files of a data set; a file with another content is refused."""
    paths = []
    for file in data.files:
        path = locate(file)
        if path is None:
            raise MissingData(
                f"{data.name} is missing: put {file.name} ({data.source}; SHA-256 "
                f"{file.sha256[:12]}…) into {' or '.join(map(str, folders()))}, or name its folder "
                "in NEARER_DATA"
            )
        if (digest := sha256(path)) != file.sha256:
            what = f"SHA-256 {digest[:12]}… is not {file.sha256[:12]}… of {data.name}"
            raise InvalidInput(f"{path}: {what}; remove it or get it again")
        paths.append(path)
    return paths


def fetch(data: Entry, **options: Any) -> Any:
    """The path of the file of a data set, else what scikit-learn downloads with these options."""
    try:
        return find(data)[0]
    except MissingData as error:
        missing = error
    from sklearn import datasets  # noqa: PLC0415 - slow to import

    home = str(folders()[-1] / "scikit-learn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # retries and stale caches
            return getattr(datasets, data.download or "")(**options, data_home=home, n_retries=1)
    except (OSError, ValueError) as error:  # no network, no such host, a broken answer
        reason = f"{data.download} of scikit-learn could not download it ({error})"
        raise MissingData(f"{missing}; {reason}") from error
