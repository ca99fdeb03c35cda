"""Write trials so that they are read back as they were, here and by the tools people have.

One JSON object a line holds all of it: ``query, shown, chosen``, or ``image_1, image_2, image_3,
odd``, and ``person`` and ``seconds`` where these are known. Odd-one-out choices of three are also
written as THINGS, SPoSE and VICE read them, ``.txt`` or ``.npy``: numbers from 0, the third the odd
one; who chose, and what nobody could decide, is not kept there.
"""

from __future__ import annotations

import io
import json
import os
from typing import Any

import numpy as np

from nearer.errors import InvalidInput
from nearer.files import content_suffix, write_bytes
from nearer.trials import Trials

__all__ = ["write_trials"]

_LINES = (".jsonl", ".ndjson")


def write_trials(path: str | os.PathLike[str], trials: Trials) -> None:
    """Write trials to a file: ``.jsonl``, or for odd-one-out of three ``.txt`` or ``.npy``.

    Parameters
    ----------
    path
        Where to. ``.gz``, ``.xz`` or ``.bz2`` after the suffix compresses.
    trials
        Choices with a query, or odd-one-out choices of three.

    Examples
    --------
    >>> import nearer, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "screens.jsonl"
    >>> nearer.write_trials(file, nearer.Trials.near([0], [[1, 2, 3]], [[3]], people=["Ann"]))
    >>> print(file.read_text())
    {"query": 0, "shown": [1, 2, 3], "chosen": [3], "person": "Ann"}
    >>> nearer.read_trials(file).triplets()[0].tolist()
    [[0, 3, 1], [0, 3, 2]]
    """
    suffix = content_suffix(path)
    three = trials.kind == "odd-one-out" and bool((trials.n_shown == 3).all())
    if trials.kind != "near" and not three:
        raise InvalidInput(
            f"trials of the task {trials.kind!r}: only those with a query, and odd-one-out of "
            "three, have a form that others read; write trials.triplets()[0] with write_triplets"
        )
    if suffix in _LINES:
        data = "".join(json.dumps(record) + "\n" for record in _records(trials)).encode()
    elif suffix in (".txt", ".npy") and three:
        data = _things(trials, suffix)
    else:
        raise InvalidInput(
            f"{os.fspath(path)}: cannot write {suffix or 'a file without suffix'}; use .jsonl, or "
            "for odd-one-out of three .txt or .npy"
        )
    write_bytes(path, data)


def _records(trials: Trials) -> list[dict[str, Any]]:
    names = trials.names or range(trials.n_objects)
    records = []
    for t in range(len(trials)):
        shown = [names[i] for i in trials.shown[t, : trials.n_shown[t]].tolist()]
        place = trials.chosen[t, : trials.n_shown[t]]
        order = [shown[i] for i in np.argsort(place, kind="stable").tolist() if place[i] > 0]
        if trials.kind == "near":
            record: dict[str, Any] = {"query": names[trials.query[t]], "shown": shown}
            record["chosen"] = order or None
            if trials.ranked:
                record["ranked"] = True
        else:
            record = {f"image_{i}": x for i, x in enumerate(shown, start=1)}
            record["odd"] = order[0] if order else None
        if trials.people is not None:
            record["person"] = trials.people[t].item()
        if trials.seconds is not None:
            seconds = float(trials.seconds[t])
            record["seconds"] = seconds if np.isfinite(seconds) else None
        records.append(record)
    return records


def _things(trials: Trials, suffix: str) -> bytes:
    kept = trials[trials.decided]
    order = np.argsort(kept.chosen, axis=1, kind="stable")
    rows = np.take_along_axis(kept.shown, order, axis=1)
    sink = io.BytesIO()
    if suffix == ".npy":
        np.save(sink, rows)
    else:
        np.savetxt(sink, rows, fmt="%d")
    return sink.getvalue()
