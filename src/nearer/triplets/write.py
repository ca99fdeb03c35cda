"""Write triplets and trials so that they are read back as they were, here and by other tools.

docs/files.md lists the forms. ``.npz`` holds all of triplets but the seconds, ``.npy`` the array.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nearer import checks
from nearer.errors import InvalidInput
from nearer.files import content_suffix, table_text, write_bytes
from nearer.trials import A_TRIALS, Trials, Triplets
from nearer.triplets.read import distinct_labels

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
_LINES = (".jsonl", ".ndjson")


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
        The names of objects 0 … n−1, if `triplets` is an array.

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
    suffix = content_suffix(path)
    if suffix not in (*_SEPARATORS, ".npy", ".npz"):
        what, known = suffix or "a file without suffix", ", ".join(_SEPARATORS)
        raise InvalidInput(f"{os.fspath(path)}: cannot write {what}; use {known}, .npy or .npz")
    rows, names, weights, people = answers.triplets, answers.labels, answers.weights, answers.people
    beside = {"weight": weights, "participant": people, "seconds": answers.seconds}
    columns = dict(zip(("head", "winner", "loser"), rows.T.tolist(), strict=True))
    if names != tuple(map(str, range(answers.n_objects))):
        columns |= {f"{part}_name": [names[i] for i in own] for part, own in columns.items()}
    columns |= {part: own.tolist() for part, own in beside.items() if own is not None}
    held = {"triplets": rows, "labels": np.array(names), "weights": weights, "people": people}
    arrays = {part: own for part, own in held.items() if own is not None}
    content: Any = {".npy": rows, ".npz": arrays}.get(suffix, columns)
    write_bytes(path, _encoded(content, suffix))


def _collected(triplets: Triplets | ArrayLike, labels: Sequence[str] | None) -> Triplets:
    """The triplets with names that every file can hold."""
    if isinstance(triplets, Triplets):
        if labels is not None:
            raise InvalidInput("labels: these triplets have their own; pass an array with labels")
        answers = triplets
    else:
        rows, n = checks.triplets(triplets)
        names = distinct_labels(range(n) if labels is None else labels)
        if len(names) < n:
            raise InvalidInput(f"object {n - 1}: each needs a label; there are {len(names)} labels")
        answers = Triplets.of(Trials.from_triplets(rows.astype(np.int64), names=names))
    people = [] if answers.people is None else answers.people.astype(str).tolist()
    for label in (*answers.labels, *filter(None, people)):
        if not label or label != label.strip() or "\0" in label:
            rule = "is empty, or has white space around it or a NUL in it, which files cannot hold"
            raise InvalidInput(f"label {label!r}: {rule}; take it out")
    return answers


def _encoded(content: Any, suffix: str) -> bytes:
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
    elif isinstance(content, np.ndarray):
        np.savetxt(sink, content, fmt="%d")
    else:
        rows = zip(*content.values(), strict=True)
        return table_text(list(content), rows, _SEPARATORS[suffix]).encode()
    return sink.getvalue()


# --- trials --------------------------------------------------------------------------------------


def write_trials(path: str | os.PathLike[str], trials: Trials, *, form: str = "auto") -> None:
    """Write trials to a file in a form that another program reads.

    Parameters
    ----------
    path
        Where to. ``.gz``, ``.xz`` or ``.bz2`` after the suffix compresses.
    trials
        Choices with a query, or odd-one-out choices of three.
    form
        ``"screens"``, which loses nothing, ``"jspsych"``, ``"psiz"`` or ``"things"``.
        ``"auto"``: ``.jsonl`` is screens, ``.txt`` and ``.npy`` are things.

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
    checks.one("trials", trials, Trials, A_TRIALS)
    suffix = content_suffix(path)
    name = _OF_SUFFIX.get(suffix, "") if form == "auto" else form
    suffixes, takes, content = _FORMS.get(name, ((), set(), _screens))
    if suffix not in suffixes:
        written = "; ".join(f"{name}: {', '.join(own)}" for name, (own, _, _) in _FORMS.items())
        what = f"cannot write {suffix or 'a file without suffix'} with form={form!r}"
        remedy = f"use .jsonl, or one of form=: {written}"
        raise InvalidInput(f"{os.fspath(path)}: {what}; {remedy}")
    if not takes & _kind_of(trials):
        rule = f"{name} takes {' and '.join(sorted(takes))}; use another form, or write_triplets"
        raise InvalidInput(f"trials of the task {trials.kind!r}: {rule}")
    if name != "screens" and trials.weights is not None:
        raise InvalidInput("weights: only the form 'screens' (.jsonl) has them; leave them out")
    write_bytes(path, _encoded(content(trials, suffix), suffix))


def _each(
    trials: Trials, person: str, time: str, unit: float
) -> Iterator[tuple[int, int, list[int], list[int], dict[str, Any]]]:
    """Number, query, objects shown, objects chosen in order; person and time by a form's names."""
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


def _things(trials: Trials, suffix: str) -> Any:
    decided = trials[trials.decided]
    order = np.argsort(decided.chosen, axis=1, kind="stable")
    return np.take_along_axis(decided.shown, order, axis=1)


_QUERY, _THREE = "choices with a query", "odd one out of three"
_ONE = "choices of one, with a query"
# The suffixes of each form, the trials that it takes, and what a file of them holds.
_FORMS: dict[str, tuple[tuple[str, ...], set[str], Callable[[Trials, str], Any]]] = {
    "screens": (_LINES, {_QUERY, _THREE}, _screens),
    "jspsych": ((".json", ".csv", *_LINES), {_ONE}, _jspsych),
    "psiz": ((".json",), {_QUERY}, _psiz),
    "things": ((".txt", ".npy"), {_THREE}, _things),
}
_OF_SUFFIX = dict.fromkeys(_LINES, "screens") | dict.fromkeys((".txt", ".npy"), "things")


def _kind_of(trials: Trials) -> set[str]:
    """The kind of these trials, in the words of the forms."""
    if trials.kind != "near":
        is_three = trials.kind == "odd-one-out" and bool((trials.n_shown == 3).all())
        return {_THREE} if is_three else set()
    return {_QUERY, _ONE} if len(trials) and (trials.wanted == 1).all() else {_QUERY}
