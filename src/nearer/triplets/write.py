"""Write triplets and trials so that they are read back as they were, here and by other tools.

*Triplets* as text have the columns ``head,winner,loser`` with the objects' numbers, as Salmon and
tripletTools read them; then, where objects have names of their own, ``head_name,winner_name,
loser_name``; then ``weight``, ``participant`` and ``seconds`` where these are known. ``.npz`` holds
all of it but the seconds, objects that no triplet names included; ``.npy`` holds the array alone.

*Trials* are written in one of several forms.


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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.errors import InvalidInput
from nearer.files import content_suffix, table_text, write_bytes
from nearer.trials import Trials
from nearer.triplets.read import distinct_labels
from nearer.triplets.report import Triplets

__all__ = ["write_trials", "write_triplets"]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
_LINES = (".jsonl", ".ndjson")
_HDF5 = (".h5", ".hdf5")
_36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


# --- triplets ------------------------------------------------------------------------------------


def write_triplets(
    path: str | os.PathLike[str],
    triplets: Triplets | ArrayLike,
    *,
    labels: Sequence[str] | None = None,
) -> None:
    """Write triplets to a file: ``.csv``, ``.tsv``, ``.txt``, ``.npy`` or ``.npz``.

    Parameters
    ----------
    path
        Where to. ``.gz``, ``.xz`` or ``.bz2`` after the suffix compresses. An existing file is
        replaced when the new one is complete.
    triplets
        ``(m, 3)`` integers, rows ``(head, near, far)``, or what `read_triplets` returned.
    labels
        What objects 0 … n−1 are called, where `triplets` is an array.

    Examples
    --------
    >>> import nearer, numpy as np, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> nearer.write_triplets(file, np.array([[0, 1, 2]]), labels=["ape", "bee", "cat"])
    >>> print(file.read_text())
    head,winner,loser,head_name,winner_name,loser_name
    0,1,2,ape,bee,cat
    >>> nearer.read_triplets(file).labels
    ('ape', 'bee', 'cat')
    """
    answers = _collected(triplets, labels)
    for label in (*answers.labels, *map(str, [] if answers.people is None else answers.people)):
        if "\0" in label:
            raise InvalidInput(f"label {label!r}: holds a NUL, which no file keeps; take it out")
    suffix = content_suffix(path)
    if suffix in _SEPARATORS:
        data = _text(answers, _SEPARATORS[suffix]).encode()
    elif suffix in (".npy", ".npz"):
        data = _numpy(answers, suffix)
    else:
        raise InvalidInput(
            f"{os.fspath(path)}: cannot write {suffix or 'a file without suffix'}; use "
            f"{', '.join(_SEPARATORS)}, .npy or .npz"
        )
    write_bytes(path, data)


def _collected(triplets: Triplets | ArrayLike, labels: Sequence[str] | None) -> Triplets:
    if isinstance(triplets, Triplets):
        if labels is not None:
            raise InvalidInput("labels: these triplets have their own; pass an array with labels")
        return triplets
    rows = np.asarray(triplets)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise InvalidInput(
            f"triplets of shape {rows.shape} and type {rows.dtype}: must be (m, 3) integers "
            "(head, near, far)"
        )
    n = int(rows.max(initial=-1)) + 1
    called = distinct_labels(range(n) if labels is None else labels)
    if rows.min(initial=0) < 0 or len(called) < n:
        raise InvalidInput(
            f"object {rows.min() if rows.min() < 0 else n - 1}: objects run from 0, each with a "
            f"label; there are {len(called)} labels"
        )
    for label in called:
        if not label or label != label.strip():
            raise InvalidInput(
                f"label {label!r}: is empty or has white space around it, which no table keeps; "
                "strip it"
            )
    return Triplets.of(Trials.from_triplets(rows, names=called))


def _text(answers: Triplets, separator: str) -> str:
    header = ["head", "winner", "loser"]
    columns: list[Iterable[Any]] = [column.tolist() for column in answers.triplets.T]
    if answers.labels != tuple(map(str, range(answers.n_objects))):
        header += ["head_name", "winner_name", "loser_name"]
        columns += [[answers.labels[i] for i in column] for column in answers.triplets.T]
    beside = {
        "weight": answers.weights,
        "participant": answers.people,
        "seconds": answers.seconds,
    }
    known = {name: values.tolist() for name, values in beside.items() if values is not None}
    header += known
    columns += known.values()
    return table_text(header, zip(*columns, strict=True), separator)


def _numpy(answers: Triplets, suffix: str) -> bytes:
    sink = io.BytesIO()
    if suffix == ".npy":
        np.save(sink, answers.triplets)
        return sink.getvalue()
    held: dict[str, Any] = {
        "triplets": answers.triplets,
        "labels": np.array(answers.labels, dtype=np.str_),
    }
    if answers.weights is not None:
        held["weights"] = answers.weights
    if answers.people is not None:
        who, persons = np.unique(answers.people.astype(np.str_), return_inverse=True)
        nobody = int(who[0] == "")  # sorts first
        held |= {"persons": persons - nobody, "person_labels": who[nobody:]}
    np.savez_compressed(sink, **held)
    return sink.getvalue()


# --- trials --------------------------------------------------------------------------------------


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
    if form != "screens":
        trials = _without_weights(trials)
    write_bytes(path, write(os.fspath(path), trials, suffix))


def _without_weights(trials: Trials) -> Trials:
    """Trials for a form that has no weights: one that counts twice is there twice."""
    if trials.weights is None:
        return trials
    if (trials.weights != np.round(trials.weights)).any():
        raise InvalidInput(
            "weights that are no whole numbers: only the form 'screens' (.jsonl) has them; use it, "
            "or leave them out"
        )
    copies = np.repeat(np.arange(len(trials)), trials.weights.astype(np.int64))
    return replace(trials, weights=None)[copies]


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
        if trials.weights is not None:
            record["weight"] = float(trials.weights[t])
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
    if suffix in _HDF5:
        return _hdf5(path, trials)
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


def _hdf5(name: str, trials: Trials) -> bytes:
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
    try:
        import h5py  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InvalidInput(f"{name}: HDF5 needs h5py; pip install 'nearer[hdf5]'") from error
    sink = io.BytesIO()
    with h5py.File(sink, "w") as file:
        for key, value in held.items():
            file.create_dataset(key, data=value)
    return sink.getvalue()


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
    "psiz": ((".json", *_HDF5), _with_query, "choices with a query", _psiz),
    "votes": (
        (".json",),
        lambda t: _one(t) and bool((t.n_shown == 2).all()),
        "comparisons, 1 of 2",
        _votes,
    ),
    "things": ((".txt", ".npy"), _three, "odd one out of three", _things),
}
_ALONE = {"screens": _LINES, "things": (".txt", ".npy"), "psiz": _HDF5}
