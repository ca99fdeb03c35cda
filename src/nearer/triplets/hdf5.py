"""psiz's HDF5 files, as its versions up to 0.4.1 read and write them.

``stimulus_set`` has a row a trial: the query, the chosen references in the order of choosing, the
others, and −1 where there are fewer. ``n_select`` says how many were chosen, ``is_ranked`` whether
their order counts, ``agent_id`` by whom, ``rt_ms`` how long it took (−1: nobody knows).
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from nearer.errors import InvalidInput
from nearer.files import read_bytes
from nearer.trials import Trials
from nearer.triplets.records import Records

__all__ = ["HDF5", "hdf5_bytes", "read_hdf5"]

HDF5 = (".h5", ".hdf5")


def read_hdf5(path: str | os.PathLike[str]) -> Records:
    """The trials of a file as records ``query, shown, chosen``."""
    name = os.fspath(path)
    try:
        with _h5py(name).File(io.BytesIO(read_bytes(path)), "r") as file:
            held = {key: file[key][()] for key in file if hasattr(file[key], "shape")}
    except OSError as error:
        raise InvalidInput(f"{name}: is no HDF5 file ({error}); get it again") from error
    missing = {"stimulus_set", "n_select", "is_ranked"} - set(held)
    if missing:
        raise InvalidInput(
            f"{name}: holds {', '.join(held) or 'nothing'}, and no {', '.join(sorted(missing))}; "
            "psiz writes these for ranked observations up to version 0.4.1"
        )
    if held.get("mask_zero", False):
        raise InvalidInput(
            f"{name}: mask_zero is set, so 0 is no stimulus; save it with mask_zero=False"
        )
    rows = np.asarray(held["stimulus_set"])
    people, times = held.get("agent_id"), held.get("rt_ms")
    if people is not None and len(np.unique(people)) == 1:
        people = None  # what psiz writes where nobody said who answered
    found = []
    for t, row in enumerate(rows.tolist()):
        shown = [x for x in row[1:] if x >= 0]
        record: dict[str, Any] = {"query": row[0], "shown": shown}
        record["chosen"] = shown[: int(held["n_select"][t])]
        record["ranked"] = bool(held["is_ranked"][t])
        if people is not None:
            record["person"] = int(people[t])
        if times is not None:
            record["ms"] = float(times[t])
        found.append(record)
    names = None
    if "stimuli" in held:
        names = tuple(x.decode() for x in held["stimuli"].tolist())
    return Records(name, found, list(range(1, len(found) + 1)), "trial", names)


def hdf5_bytes(name: str, trials: Trials) -> bytes:
    """A file with these trials; what nobody could decide is left out."""
    kept = trials[trials.decided]
    late = np.where(kept.shown < 0, 2, kept.chosen == 0)  # the chosen, the others, none
    order = np.lexsort((kept.chosen, late))
    m = len(kept)
    people = np.zeros(m, dtype=np.int64)
    if kept.people is not None:
        people = np.unique(kept.people, return_inverse=True)[1]
    seconds = np.full(m, np.nan) if kept.seconds is None else kept.seconds
    held = {
        "class_name": "RankObservations",  # and as the first versions called it
        "trial_type": "Observations",
        "stimulus_set": np.column_stack([kept.query, np.take_along_axis(kept.shown, order, 1)]),
        "n_select": kept.wanted,
        "is_ranked": np.full(m, kept.ranked),
        "groups": np.zeros((m, 1), dtype=np.int64),
        "group_id": np.zeros(m, dtype=np.int64),
        "agent_id": people,
        "session_id": np.zeros(m, dtype=np.int64),
        "weight": np.ones(m),
        "rt_ms": np.where(np.isfinite(seconds), 1e3 * seconds, -1.0),
    }
    if kept.names is not None:
        held["stimuli"] = [str(n).encode() for n in kept.names]
    sink = io.BytesIO()
    with _h5py(name).File(sink, "w") as file:
        for key, value in held.items():
            file.create_dataset(key, data=value)
    return sink.getvalue()


def _h5py(name: str) -> Any:
    try:
        import h5py  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InvalidInput(f"{name}: HDF5 needs h5py; pip install 'nearer[hdf5]'") from error
    return h5py
