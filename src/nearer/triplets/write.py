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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.errors import InvalidInput
from nearer.files import content_suffix, table_text, write_bytes
from nearer.trials import Trials, Triplets
from nearer.triplets.read import distinct_labels

__all__ = ["write_trials", "write_triplets"]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
_LINES = (".jsonl", ".ndjson")
_HDF5 = (".h5", ".hdf5")


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
    if suffix not in (*_SEPARATORS, ".npy", ".npz"):
        raise InvalidInput(
            f"{os.fspath(path)}: cannot write {suffix or 'a file without suffix'}; use "
            f"{', '.join(_SEPARATORS)}, .npy or .npz"
        )
    content: Any = answers.triplets
    if suffix != ".npy":
        content = _arrays(answers) if suffix == ".npz" else _columns(answers)
    write_bytes(path, _encoded(path, content, suffix))


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


def _columns(answers: Triplets) -> dict[str, list[Any]]:
    """The columns of a table of triplets."""
    three, labels = answers.triplets.T.tolist(), answers.labels
    columns = dict(zip(("head", "winner", "loser"), three, strict=True))
    if labels != tuple(map(str, range(answers.n_objects))):
        columns |= {f"{part}_name": [labels[i] for i in own] for part, own in columns.items()}
    beside = {"weight": answers.weights, "participant": answers.people, "seconds": answers.seconds}
    return columns | {part: own.tolist() for part, own in beside.items() if own is not None}


def _arrays(answers: Triplets) -> dict[str, Any]:
    held: dict[str, Any] = {"triplets": answers.triplets, "labels": np.array(answers.labels)}
    if answers.weights is not None:
        held["weights"] = answers.weights
    if answers.people is not None:
        held["people"] = answers.people
    return held


def _encoded(path: str | os.PathLike[str], content: Any, suffix: str) -> bytes:
    """What a file with this suffix holds: records, columns by name, or arrays."""
    if suffix in _LINES:
        return "".join(json.dumps(record) + "\n" for record in content).encode()
    if suffix == ".json":
        return (json.dumps(content, indent=1) + "\n").encode()
    sink = io.BytesIO()
    if suffix == ".npy":
        np.save(sink, content)
    elif suffix == ".npz":
        np.savez_compressed(sink, **content)
    elif suffix in _HDF5:
        try:
            import h5py  # noqa: PLC0415 - an extra
        except ImportError as error:
            name = os.fspath(path)
            raise InvalidInput(f"{name}: HDF5 needs h5py; pip install 'nearer[hdf5]'") from error
        with h5py.File(sink, "w") as file:
            for key, value in content.items():
                file.create_dataset(key, data=value)
    elif isinstance(content, np.ndarray):
        np.savetxt(sink, content, fmt="%d")
    else:
        rows = zip(*content.values(), strict=True)
        return table_text(list(content), rows, _SEPARATORS[suffix]).encode()
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
    what = suffix or "a file without suffix"
    if form == "auto":
        form = _OF_SUFFIX.get(suffix, "")
        if not form:
            raise InvalidInput(
                f"{os.fspath(path)}: cannot write {what} without form=; use .jsonl, which keeps "
                "everything, or name one of "
                + "; ".join(f"{name}: {', '.join(f.suffixes)}" for name, f in _FORMS.items())
            )
    chosen = _FORMS[form]
    if suffix not in chosen.suffixes:
        raise InvalidInput(
            f"{os.fspath(path)}: the form {form!r} is written to {', '.join(chosen.suffixes)}, not "
            f"to {what}; use one of these"
        )
    if not _takes(form, trials):
        raise InvalidInput(
            f"trials of the task {trials.kind!r}: {form} takes {chosen.takes}; use another form, "
            "or write trials.triplets()[0] with write_triplets"
        )
    if form != "screens":
        trials = _without_weights(trials)
    write_bytes(path, _encoded(path, chosen.content(trials, suffix), suffix))


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


def _each(
    trials: Trials, person: str, time: str, unit: float
) -> Iterator[tuple[int, int, list[int], list[int], dict[str, Any]]]:
    """Number, query, the shown, the chosen in order, and who and when under a form's names."""
    for t, count in enumerate(trials.n_shown.tolist()):
        shown, place = trials.shown[t, :count].tolist(), trials.chosen[t, :count]
        order = np.argsort(place, kind="stable").tolist()
        beside: dict[str, Any] = {}
        if trials.people is not None:
            beside[person] = trials.people[t].item()
        if trials.seconds is not None:
            seconds = float(trials.seconds[t])
            beside[time] = unit * seconds if np.isfinite(seconds) else None
        chosen = [shown[i] for i in order if place[i] > 0]
        yield t, int(trials.query[t]), shown, chosen, beside


def _screens(trials: Trials, suffix: str) -> list[dict[str, Any]]:
    names = trials.names or range(trials.n_objects)
    records = []
    for t, query, shown, chosen, beside in _each(trials, "person", "seconds", 1.0):
        if trials.kind == "near":
            record: dict[str, Any] = {
                "query": names[query],
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
        records.append(record | beside)
    return records


def _jspsych(trials: Trials, suffix: str) -> Any:
    names = trials.names or range(trials.n_objects)
    records = [
        {
            "stimulus": names[query],
            "choices": [names[i] for i in shown],
            "response": shown.index(chosen[0]) if chosen else None,
            **beside,
        }
        for _, query, shown, chosen, beside in _each(trials, "subject", "rt", 1e3)
    ]
    if suffix != ".csv":
        return records
    columns: dict[str, Any] = {field: [r[field] for r in records] for field in records[0]}
    return columns | {"choices": map(json.dumps, columns["choices"])}


def _psiz(trials: Trials, suffix: str) -> dict[str, Any]:
    if suffix in _HDF5:
        return _psiz_arrays(trials)
    steps = []
    for t, query, shown, chosen, beside in _each(trials, "who", "response_time_ms", 1e3):
        said = [("content:query", query)]
        said += [(f"content:reference_{k}", x) for k, x in enumerate(shown)]
        said += [(f"behavior:rank_{k}", x) for k, x in enumerate(chosen)]
        word = "rank" if trials.ranked or trials.wanted[t] == 1 else "choose"
        step = {
            "kind": f"rank:{len(shown)}{word}{trials.wanted[t]}",
            # psiz calls a stimulus by its set, here 000, and its number in base 36
            "interactions": [
                {"kind": kind, "detail": "PZ000" + np.base_repr(x, 36).zfill(7)} for kind, x in said
            ],
            "response_time_ms": beside.pop("response_time_ms", None),
        }
        steps.append((beside.get("who"), step))
    data = [
        {"anonymous_id": who, "sequence": [step for _, step in own]}
        for who, own in groupby(steps, key=lambda step: step[0])
    ]
    whole: dict[str, Any] = {"version": "1.0", "data": data}
    return whole if trials.names is None else whole | {"stimuli": list(map(str, trials.names))}


def _psiz_arrays(trials: Trials) -> dict[str, Any]:
    """The arrays of psiz up to version 0.4.1; what nobody could decide is left out."""
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
    return held


def _votes(trials: Trials, suffix: str) -> dict[str, Any]:
    names = trials.names or range(trials.n_objects)
    counts: dict[tuple[int, int, int], list[int]] = {}
    for _, head, (a, b), chosen, _ in _each(trials, "", "", 1.0):
        key = (head, b, a) if (head, b, a) in counts else (head, a, b)
        votes = counts.setdefault(key, [0, 0])
        for x in chosen:
            votes[key.index(x) - 1] += 1
    answers = [[names[x] for x in key] for key in counts]
    return {"answers": answers, "agreement": list(counts.values())}


def _things(trials: Trials, suffix: str) -> Any:
    kept = trials[trials.decided]
    order = np.argsort(kept.chosen, axis=1, kind="stable")
    return np.take_along_axis(kept.shown, order, axis=1)


class _Form(NamedTuple):
    """Suffixes, the trials that are taken, and what a file of them holds."""

    suffixes: tuple[str, ...]
    takes: str
    content: Callable[[Trials, str], Any]


_QUERY, _THREE = "choices with a query", "odd one out of three"
_FORMS = {
    "screens": _Form(_LINES, f"{_QUERY}, and {_THREE}", _screens),
    "jspsych": _Form((".json", ".csv", *_LINES), "choices of one, with a query", _jspsych),
    "psiz": _Form((".json", *_HDF5), _QUERY, _psiz),
    "votes": _Form((".json",), "comparisons, 1 of 2", _votes),
    "things": _Form((".txt", ".npy"), _THREE, _things),
}
_OF_SUFFIX = dict.fromkeys(_LINES, "screens") | dict.fromkeys(_HDF5, "psiz")
_OF_SUFFIX |= dict.fromkeys((".txt", ".npy"), "things")


def _takes(form: str, trials: Trials) -> bool:
    """Whether trials can be written in a form."""
    near = trials.kind == "near"
    three = trials.kind == "odd-one-out" and bool((trials.n_shown == 3).all())
    one = near and len(trials) > 0 and bool((trials.wanted == 1).all())
    if form in ("screens", "psiz"):
        return near or (three and form == "screens")
    if form == "votes":
        return one and trials.are_comparisons
    return one if form == "jspsych" else three
