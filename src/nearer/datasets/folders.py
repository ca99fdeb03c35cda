"""Where data files are looked for, and the check that they are the right ones.

First the folder that the environment variable ``NEARER_DATA`` names, where it is set; then the
cache folder, which ``NEARER_CACHE`` names or else is ``nearer`` in the user's own
(``XDG_CACHE_HOME``, ``~/.cache``). What scikit-learn downloads is kept in the cache.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nearer.datasets.catalogue import DataFile, Entry
from nearer.errors import InvalidInput, MissingData
from nearer.files import sha256

__all__ = ["cache_folder", "data_folder", "fetch", "find", "folders", "look_up", "where"]

T = TypeVar("T")


def data_folder() -> Path | None:
    """The folder of data files that the user keeps, or None where NEARER_DATA names none."""
    named = os.environ.get("NEARER_DATA")
    return Path(named) if named else None


def cache_folder() -> Path:
    """The folder in which downloads are kept."""
    named = os.environ.get("NEARER_CACHE")
    if named:
        return Path(named)
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "nearer"


def folders() -> list[Path]:
    """Where data files are looked for, in this order."""
    return [folder for folder in (data_folder(), cache_folder()) if folder is not None]


def where(file: DataFile) -> Path | None:
    """The path of a data file, or None where it is not at hand; nothing is checked."""
    for folder in folders():
        if (folder / file.name).is_file():
            return folder / file.name
    return None


def look_up(data: Entry, file: DataFile) -> Path | None:
    """The path of a data file that is what it should be, or None where it is not at hand."""
    path = where(file)
    if path is not None and (found := sha256(path)) != file.sha256:
        raise InvalidInput(
            f"{path}: SHA-256 {found[:12]}… is not {file.sha256[:12]}… of {data.name}; remove it "
            "or get it again"
        )
    return path


def find(data: Entry, file: DataFile) -> Path:
    """The path of a data file that has to be there."""
    path = look_up(data, file)
    if path is None:
        raise MissingData(_what_to_put_where(data, file))
    return path


def fetch(data: Entry, download: bool, load: Callable[[str], T]) -> T:
    """What a loader of scikit-learn downloads, or finds in its own part of the cache.

    Parameters
    ----------
    data
        Which data set.
    download
        Whether the network may be used.
    load
        Loads the data, given scikit-learn's ``data_home``.
    """
    if not download:
        raise MissingData(_what_to_put_where(data, data.files[0]) + ", or pass download=True")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # retries and stale caches; the end is what matters
            return load(str(cache_folder() / "scikit-learn"))
    except (OSError, ValueError) as error:  # no network, no such host, a broken answer
        raise MissingData(
            f"{_what_to_put_where(data, data.files[0])}; {data.download} of scikit-learn could not "
            f"download it ({error})"
        ) from error


def _what_to_put_where(data: Entry, file: DataFile) -> str:
    return (
        f"{data.name} is not at hand: put {file.name} ({data.source}; SHA-256 {file.sha256[:12]}…) "
        f"into {' or '.join(map(str, folders()))}, or name its folder in NEARER_DATA"
    )
