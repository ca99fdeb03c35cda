"""Read trials, choices of any task, from files of records.

A record is an object of a JSON list, a line of JSON, or a row of a table with a header. What it
says is recognised by the names of its fields, where they can mean one thing only:

- ``query, shown, chosen`` (grids; ``ranked`` where the order counts): shown and chosen are lists
  of objects.
- ``stimulus, choices, response`` (jsPsych): which of the choices is most like the stimulus, the
  response being its place from 0, or the choice itself.
- ``image_1, image_2, image_3, choice`` and ``item1 …``, ``odd`` are odd one out. A choice that is
  a place is from 1 to 3 or, for a button, from 0 to 2; where both are possible, somebody must say.

``person`` (also participant, worker, subject) and ``seconds``, ``ms`` or ``rt`` (milliseconds) are
read beside them. A record without a choice says that nobody could decide.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nearer.errors import InvalidInput
from nearer.files import content_suffix, read_bytes
from nearer.trials import Trials
from nearer.triplets.collection import Triplets
from nearer.triplets.report import examine

__all__ = ["JSON", "from_trials", "holds_trials", "read_trials"]

JSON = (".json", ".jsonl", ".ndjson")

_PERSON = ("person", "participant", "participant_id", "worker", "worker_id", "subject")
_SHOWN = (("image_1", "image_2", "image_3"), ("item1", "item2", "item3"), ("i", "j", "k"))
_FORMS = (
    "query, shown, chosen; stimulus, choices, response; or image_1, image_2, image_3 with choice "
    "or odd"
)


def read_trials(path: str | os.PathLike[str], *, first: int | None = None) -> Trials:
    r"""Read choices with what was shown, by whom and how long they took.

    Parameters
    ----------
    path
        JSON, one JSON object a line, or a table with a header; compressed or not.
    first
        Whether places of an odd one out, or of a response, count from 0 or from 1; needed only
        where the file leaves both open.

    Returns
    -------
    Trials
        Objects that are not numbers from 0 get numbers in the order of their names.

    Examples
    --------
    >>> import nearer, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "screens.jsonl"
    >>> _ = file.write_text('{"query": "ape", "shown": ["bee", "cat", "dog"], "chosen": ["dog"]}\n')
    >>> trials = nearer.read_trials(file)
    >>> trials.names, trials.triplets()[0].tolist()
    (('ape', 'bee', 'cat', 'dog'), [[0, 3, 1], [0, 3, 2]])
    """
    name = os.fspath(path)
    records = _records(name, path)
    if not records:
        raise InvalidInput(f"{name}: holds no records; it needs at least one choice")
    fields = set(records[0])
    if {"query", "shown", "chosen"} <= fields:
        rows = [(r["query"], _list(r["shown"]), _chosen(r["chosen"])) for r in records]
        kind, ranked = "near", any(_true(r.get("ranked")) for r in records)
    elif {"stimulus", "choices", "response"} <= fields:
        options = [_list(r["choices"]) for r in records]
        said = [r["response"] for r in records]
        picked = _picked(name, options, said, 0 if first is None else first)
        rows = [
            (r["stimulus"], shown, chosen)
            for r, shown, chosen in zip(records, options, picked, strict=True)
        ]
        kind, ranked = "near", False
    else:
        rows, kind, ranked = _odd(name, records, fields, first), "odd-one-out", False
    return _trials(kind, ranked, rows, records)


def holds_trials(header: Sequence[str]) -> bool:
    """Whether a header's words are those of trials that a table of triplets does not know."""
    words = {word.strip() for word in header}
    odd = any(set(columns) <= words for columns in _SHOWN[:2]) and "choice" in words
    jspsych = {"stimulus", "choices", "response"} <= words
    return odd or jspsych or {"query", "shown", "chosen"} <= words


def from_trials(trials: Trials) -> Triplets:
    """Trials as triplets, which keep them."""
    rows, trial = trials.triplets()
    labels = tuple(map(str, trials.names or range(trials.n_objects)))
    persons, person_labels = None, ()
    if trials.people is not None:
        known, codes = np.unique(trials.people.astype(np.str_), return_inverse=True)
        persons, person_labels = codes[trial], tuple(known.tolist())
    undecided = (np.flatnonzero(~trials.decided) + 1).tolist()
    report = examine(
        rows, labels, rows=len(trials), persons=len(person_labels), undecided=undecided
    )
    return Triplets(
        rows,
        labels,
        persons=persons,
        person_labels=person_labels,
        choices=trials,
        report=report,
    )


def _trials(
    kind: str,
    ranked: bool,
    rows: list[tuple[Any, list[Any], list[Any] | None]],
    records: list[dict[str, Any]],
) -> Trials:
    names, number = _numbered(rows)
    shown = [[number(x) for x in row[1]] for row in rows]
    chosen = [None if row[2] is None else [number(x) for x in row[2]] for row in rows]
    also: dict[str, Any] = {
        "names": names,
        "people": _people(records),
        "seconds": _seconds(records),
    }
    if kind == "near":
        return Trials.near([number(row[0]) for row in rows], shown, chosen, ranked=ranked, **also)
    return Trials.odd_one_out(shown, [None if c is None else c[0] for c in chosen], **also)


def _odd(
    name: str, records: list[dict[str, Any]], fields: set[str], first: int | None
) -> list[tuple[Any, list[Any], list[Any] | None]]:
    columns = next((c for c in _SHOWN if set(c) <= fields), None)
    if columns is not None and "odd" in fields:
        odd = [[r["odd"]] if r["odd"] not in (None, "") else None for r in records]
        return [(None, [r[c] for c in columns], one) for r, one in zip(records, odd, strict=True)]
    if columns is None or "choice" not in fields:
        raise InvalidInput(
            f"{name}: fields {', '.join(sorted(fields))} make no trial; needed are {_FORMS}"
        )
    shown = [[r[c] for c in columns] for r in records]
    said = [r["choice"] for r in records]
    if all(_known(s, row) for s, row in zip(said, shown, strict=True) if s not in (None, "")):
        picked: list[list[Any] | None] = [None if s in (None, "") else [s] for s in said]
    else:
        picked = _picked(name, shown, said, _first(name, said, first))
    return [(None, row, chosen) for row, chosen in zip(shown, picked, strict=True)]


def _first(name: str, said: Sequence[Any], first: int | None) -> int:
    """From where places are counted: 0 or 1, never guessed."""
    if first is not None:
        return first
    places = {int(s) for s in said if s not in (None, "") and str(s).strip().isdecimal()}
    if 0 in places and 3 not in places:
        return 0
    if 3 in places and 0 not in places:
        return 1
    raise InvalidInput(
        f"{name}: choices {sorted(places)} may be places from 0 or from 1; pass first=0 or first=1"
    )


def _picked(
    name: str, options: Sequence[list[Any]], said: Sequence[Any], first: int
) -> list[list[Any] | None]:
    """The chosen of each record, said by its place or by itself."""
    picked: list[list[Any] | None] = []
    for line, (shown, answer) in enumerate(zip(options, said, strict=True), start=1):
        if answer is None or answer == "":
            picked.append(None)
        elif _known(answer, shown) and not str(answer).isdecimal():
            picked.append([next(x for x in shown if str(x) == str(answer))])
        elif str(answer).isdecimal() and first <= int(answer) < first + len(shown):
            picked.append([shown[int(answer) - first]])
        else:
            raise InvalidInput(
                f"{name}, record {line}: the answer {answer!r} is none of {shown}, nor a place "
                f"from {first} to {first + len(shown) - 1}"
            )
    return picked


def _records(name: str, path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    text = read_bytes(path).decode("utf-8-sig")
    suffix = content_suffix(path)
    if suffix in (".csv", ".tsv"):
        reader = csv.DictReader(io.StringIO(text), delimiter="\t" if suffix == ".tsv" else ",")
        return [dict(row) for row in reader]
    found: list[Any] = []
    whole = text.lstrip().startswith("[")
    for line, one in enumerate([text] if whole else text.splitlines(), start=1):
        try:
            value = json.loads(one) if one.strip() else []
        except json.JSONDecodeError as error:
            at = error.lineno if whole else line
            raise InvalidInput(f"{name}, line {at}: is no JSON ({error.msg})") from error
        found += value if isinstance(value, list) else [value]
    if not all(isinstance(r, dict) for r in found):
        raise InvalidInput(f"{name}: must hold JSON objects, with {_FORMS}")
    return [r for r in found if "stimulus" not in r or "choices" in r]  # jsPsych's other pages


def _numbered(rows: Sequence[tuple[Any, list[Any], Any]]) -> tuple[tuple[Any, ...] | None, Any]:
    """What objects are called, None where they are numbers, and their number by what is said."""
    objects = {x for query, shown, _ in rows for x in [query, *shown] if x is not None}
    numbers = {x: int(x) for x in objects if str(x).isdecimal()}
    if len(numbers) == len(objects):
        return None, int
    names = tuple(sorted(map(str, objects)))
    place = {n: i for i, n in enumerate(names)}
    return names, lambda x: place[str(x)]


def _people(records: Sequence[Mapping[str, Any]]) -> Any:
    column = next((c for c in _PERSON if c in records[0]), None)
    return None if column is None else np.array([r.get(column) for r in records])


def _seconds(records: Sequence[Mapping[str, Any]]) -> Any:
    for column, unit in (("seconds", 1.0), ("ms", 1e-3), ("rt", 1e-3)):
        if column in records[0]:
            values = [r.get(column) for r in records]
            return np.array(
                [np.nan if v in (None, "", "null") else unit * float(v) for v in values]
            )
    return None


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            value = [part.strip() for part in value.split(",")]
    return list(value)


def _chosen(value: Any) -> list[Any] | None:
    if value is None or value == "":
        return None
    if isinstance(value, str | list):
        found = _list(value) if isinstance(value, list) or value[:1] == "[" else [value]
        return found or None
    return [value]


def _known(answer: Any, shown: Sequence[Any]) -> bool:
    return str(answer) in {str(x) for x in shown}


def _true(value: Any) -> bool:
    return value is True or str(value).lower() in ("true", "1", "yes")
