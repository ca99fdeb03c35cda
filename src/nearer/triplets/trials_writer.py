"""Write trials so that they are read back as they were, here and by the tools people have.

============  ================================  ====================================================
form          files                             what is kept
============  ================================  ====================================================
``screens``   ``.jsonl``                        all: ``query, shown, chosen`` or ``image_1, …, odd``
``jspsych``   ``.json``, ``.jsonl``, ``.csv``   1 of m: ``stimulus, choices, response, rt``
``psiz``      ``.json``, ``.h5``                choices with a query; HDF5 for versions up to 0.4.1
``votes``     ``.json``                         1 of 2: ``answers, agreement``; neither who nor when
``things``    ``.txt``, ``.npy``                odd one out of 3: numbers from 0, the third the odd
                                                one; neither who nor when, nor what nobody decided
============  ================================  ====================================================
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

from nearer import checks
from nearer.errors import InvalidInput
from nearer.files import content_suffix, table_text, write_bytes
from nearer.trials import Trials
from nearer.triplets.hdf5 import HDF5, hdf5_bytes

__all__ = ["write_trials"]

_LINES = (".jsonl", ".ndjson")
_36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write_trials(path: str | os.PathLike[str], trials: Trials, *, form: str = "auto") -> None:
    """Write trials to a file, as one of the tools that people have reads it.

    Parameters
    ----------
    path
        Where to. ``.gz``, ``.xz`` or ``.bz2`` after the suffix compresses.
    trials
        Choices with a query, or odd-one-out choices of three.
    form
        ``"screens"``, which keeps everything, ``"jspsych"``, ``"psiz"``, ``"votes"`` or
        ``"things"``. ``"auto"``: the one that the suffix has alone: ``.jsonl`` is screens, ``.txt``
        and ``.npy`` are things, ``.h5`` is psiz.

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
    checks.one_of("form", form, ("auto", *_FORMS))
    suffix = content_suffix(path)
    if form == "auto":
        form = next((name for name in ("screens", "things", "psiz") if suffix in _ALONE[name]), "")
        if not form:
            raise InvalidInput(
                f"{os.fspath(path)}: cannot write {suffix or 'a file without suffix'} without "
                "form=; use .jsonl, which keeps everything, or name one of "
                + "; ".join(f"{name}: {', '.join(known)}" for name, (known, *_) in _FORMS.items())
            )
    suffixes, takes, rule, write = _FORMS[form]
    if suffix not in suffixes:
        raise InvalidInput(
            f"{os.fspath(path)}: the form {form!r} is written to {', '.join(suffixes)}, not to "
            f"{suffix or 'a file without suffix'}; use one of these"
        )
    if not takes(trials):
        raise InvalidInput(
            f"trials of the task {trials.kind!r}: {form} takes {rule}; use another form, or "
            "write trials.triplets()[0] with write_triplets"
        )
    write_bytes(path, write(os.fspath(path), trials, suffix))


def _chosen(trials: Trials) -> Iterator[tuple[int, list[int], list[int]]]:
    """Number of each trial, the objects shown, and the chosen of them in order."""
    for t in range(len(trials)):
        shown = trials.shown[t, : trials.n_shown[t]].tolist()
        place = trials.chosen[t, : trials.n_shown[t]]
        order = np.argsort(place, kind="stable").tolist()
        yield t, shown, [shown[i] for i in order if place[i] > 0]


def _beside(trials: Trials, t: int, **fields: str) -> dict[str, Any]:
    """Who and when, under the names that a form has for them; others have milliseconds."""
    found: dict[str, Any] = {}
    if trials.people is not None:
        found[fields["person"]] = trials.people[t].item()
    if trials.seconds is not None:
        seconds = float(trials.seconds[t])
        unit = 1.0 if fields["time"] == "seconds" else 1e3
        found[fields["time"]] = unit * seconds if np.isfinite(seconds) else None
    return found


def _json(records: list[dict[str, Any]], suffix: str) -> bytes:
    if suffix in _LINES:
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    return (json.dumps(records, indent=1) + "\n").encode()


def _screens(path: str, trials: Trials, suffix: str) -> bytes:
    names = trials.names or range(trials.n_objects)
    records = []
    for t, shown, chosen in _chosen(trials):
        if trials.kind == "near":
            record: dict[str, Any] = {
                "query": names[trials.query[t]],
                "shown": [names[i] for i in shown],
                "chosen": [names[i] for i in chosen] or None,
            }
            if trials.ranked:
                record["ranked"] = True
        else:
            record = {f"image_{i}": names[x] for i, x in enumerate(shown, start=1)}
            record["odd"] = names[chosen[0]] if chosen else None
        records.append(record | _beside(trials, t, person="person", time="seconds"))
    return _json(records, suffix)


def _jspsych(path: str, trials: Trials, suffix: str) -> bytes:
    names = trials.names or range(trials.n_objects)
    records = [
        {
            "stimulus": names[trials.query[t]],
            "choices": [names[i] for i in shown],
            "response": shown.index(chosen[0]) if chosen else None,
            **_beside(trials, t, person="subject", time="rt"),
        }
        for t, shown, chosen in _chosen(trials)
    ]
    if suffix != ".csv":
        return _json(records, suffix)
    rows = [[json.dumps(v) if isinstance(v, list) else v for v in r.values()] for r in records]
    return table_text(list(records[0]), rows).encode()


def _psiz(path: str, trials: Trials, suffix: str) -> bytes:
    if suffix in HDF5:
        return hdf5_bytes(path, trials)
    steps = []
    for t, shown, chosen in _chosen(trials):
        said = [("content:query", int(trials.query[t]))]
        said += [(f"content:reference_{k}", x) for k, x in enumerate(shown)]
        said += [(f"behavior:rank_{k}", x) for k, x in enumerate(chosen)]
        word = "rank" if trials.ranked or trials.wanted[t] == 1 else "choose"
        step = {
            "kind": f"rank:{len(shown)}{word}{trials.wanted[t]}",
            "interactions": [{"kind": kind, "detail": _asset(x)} for kind, x in said],
            "response_time_ms": None,
        }
        steps.append(step | _beside(trials, t, person="anonymous_id", time="response_time_ms"))
    data = [
        {
            "anonymous_id": who,
            "sequence": [{k: s[k] for k in s if k != "anonymous_id"} for s in own],
        }
        for who, own in groupby(steps, key=lambda s: s.get("anonymous_id"))
    ]
    whole: dict[str, Any] = {"version": "1.0", "data": data}
    if trials.names is not None:
        whole["stimuli"] = [str(name) for name in trials.names]
    return (json.dumps(whole, indent=1) + "\n").encode()


def _asset(number: int) -> str:
    """A stimulus as psiz calls it: its set, here 000, and its number in base 36."""
    digits = ""
    for _ in range(7):
        number, digit = divmod(number, 36)
        digits = _36[digit] + digits
    return "PZ000" + digits


def _votes(path: str, trials: Trials, suffix: str) -> bytes:
    names = trials.names or range(trials.n_objects)
    counts: dict[tuple[int, int, int], list[int]] = {}
    for t, (a, b), chosen in _chosen(trials):
        head = int(trials.query[t])
        key = (head, b, a) if (head, b, a) in counts else (head, a, b)
        votes = counts.setdefault(key, [0, 0])
        for x in chosen:
            votes[key.index(x) - 1] += 1
    answers = [[names[x] for x in key] for key in counts]
    whole = {"answers": answers, "agreement": list(counts.values())}
    return (json.dumps(whole, indent=1) + "\n").encode()


def _things(path: str, trials: Trials, suffix: str) -> bytes:
    kept = trials[trials.decided]
    order = np.argsort(kept.chosen, axis=1, kind="stable")
    rows = np.take_along_axis(kept.shown, order, axis=1)
    sink = io.BytesIO()
    if suffix == ".npy":
        np.save(sink, rows)
    else:
        np.savetxt(sink, rows, fmt="%d")
    return sink.getvalue()


def _three(trials: Trials) -> bool:
    return trials.kind == "odd-one-out" and bool((trials.n_shown == 3).all())


def _with_query(trials: Trials) -> bool:
    return trials.kind == "near"


def _one(trials: Trials) -> bool:
    return _with_query(trials) and len(trials) > 0 and bool((trials.wanted == 1).all())


# form: the suffixes, which trials it takes, the same in words, and how they are written
_Form = tuple[tuple[str, ...], Callable[[Trials], bool], str, Callable[[str, Trials, str], bytes]]
_FORMS: dict[str, _Form] = {
    "screens": (
        _LINES,
        lambda t: _with_query(t) or _three(t),
        "choices with a query, and odd one out of three",
        _screens,
    ),
    "jspsych": ((".json", ".csv", *_LINES), _one, "choices of one, with a query", _jspsych),
    "psiz": ((".json", *HDF5), _with_query, "choices with a query", _psiz),
    "votes": (
        (".json",),
        lambda t: _one(t) and bool((t.n_shown == 2).all()),
        "comparisons, 1 of 2",
        _votes,
    ),
    "things": ((".txt", ".npy"), _three, "odd one out of three", _things),
}
_ALONE = {"screens": _LINES, "things": (".txt", ".npy"), "psiz": HDF5}
