"""Lists that a researcher brings: questions to ask, and answers that were given before.

A table of questions has the columns ``head``, ``a``, ``b``, with names or numbers of items. A
column ``position`` fixes the trial in which everybody is asked a question; those without one are
mixed in by the setting ``own_share``, in the order of the list. A column ``answer`` says what a
careful person chooses, which makes the question a check that no program can tell from the others.

A table of answers is what `nearer study export` writes, Salmon's responses, or tripletTools' file.
Lines that choose none of two things, or that the study does not count, are left out, and said so.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nearer.errors import DroppedRows, InvalidInput
from nearer.study.config import part, read_yaml
from nearer.study.rows import (
    Answer,
    Batch,
    Lease,
    Ledger,
    Participant,
    Question,
    Refusal,
    fact,
)
from nearer.text import amount

_HEAD = ("head", "query", "center")
_NEAR = ("winner", "near", "answer")
_FAR = ("loser", "far")
_PERSON = ("person", "puid", "worker_id", "participant")
_TWICE = "an item named twice, as in checks"
_UNDECIDED = "nobody chose between two"
_NOT_COUNTED = "taken back, or of people who do not count"


class OwnQuestion(NamedTuple):
    """A question of the researcher's."""

    head: int
    a: int
    b: int
    position: int | None = None
    expected: int | None = None


class EarlierAnswer(NamedTuple):
    """An answer from another study."""

    head: int
    near: int
    far: int
    person: str = ""
    response_ms: float | None = None


def table_rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns of a table, in lower case, and its rows, each with the line that it begins on."""
    from nearer.triplets import read_table  # noqa: PLC0415 - loads pandas; serving needs none

    frame = read_table(path, encoding="cp1252")
    columns = [str(name).strip().lower() for name in frame.columns]
    records = frame.set_axis(columns, axis=1).to_dict("records")
    return columns, list(zip(frame.index.tolist(), records, strict=True))


def column(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of the wanted columns that a table has."""
    return next((name for name in wanted if name in columns), None)


def _finder(path: Path, names: Sequence[str]) -> Callable[[str, int], int]:
    """Finds items by name, or by number where no item has that name."""
    numbers = {str(k): k for k in range(len(names))} | {name: k for k, name in enumerate(names)}

    def find(text: str, line: int) -> int:
        if text not in numbers:
            raise InvalidInput(
                f"{path}: line {line} names {text!r}; must be an item's name, or a number from 0 "
                f"to {len(names) - 1}"
            )
        return numbers[text]

    return find


def read_questions(path: Path, names: Sequence[str]) -> list[OwnQuestion]:
    """A table of questions to ask."""
    columns, rows = table_rows(path)
    head = column(columns, _HEAD)
    if head is None or not {"a", "b"} <= set(columns):
        raise InvalidInput(f"{path}: has columns {columns}; must have head, a and b")
    find = _finder(path, names)
    found = []
    for line, row in rows:
        place, right = row.get("position", ""), row.get("answer", "")
        if place and (not place.isdecimal() or int(place) < 1):
            raise InvalidInput(f"{path}: line {line}: position={place!r}: must be 1, 2, …")
        found.append(
            OwnQuestion(
                find(row[head], line),
                find(row["a"], line),
                find(row["b"], line),
                position=int(place) if place else None,
                expected=find(right, line) if right else None,
            )
        )
    return _checked(found, str(path))


def _checked(questions: list[OwnQuestion], where: str) -> list[OwnQuestion]:
    seen: set[Any] = set()
    for q in questions:
        if len({q.head, q.a, q.b}) < 3:
            raise InvalidInput(f"{where}: {q[:3]} compares a thing with itself")
        if q.expected is not None and q.expected not in (q.a, q.b):
            raise InvalidInput(f"{where}: {q[:3]}: the answer must be one of the two")
        if fact(q.head, (q.a, q.b)) in seen:
            raise InvalidInput(f"{where}: {q[:3]} is listed twice")
        seen.add(fact(q.head, (q.a, q.b)))
    return questions


def check_positions(questions: Sequence[OwnQuestion], last: int) -> None:
    """Refuse questions that nobody would be asked: of a place that is taken, or after the last."""
    places = Counter(q.position for q in questions if q.position is not None)
    for place, count in places.items():
        if count > 1:
            raise InvalidInput(f"position={place}: two own questions have it; change one")
        if place > last:
            raise InvalidInput(
                f"position={place} of an own question: a person answers {last} questions; "
                "raise `questions` or choose an earlier one"
            )


def insert_questions(db: sqlite3.Connection, questions: Iterable[OwnQuestion]) -> None:
    """Put own questions into a new study."""
    db.executemany(
        "INSERT INTO questions (task, query, shown, purpose, position, expected)"
        " VALUES ('two', ?, json_array(?, ?), 'own', ?, ?)",
        questions,
    )


def read_salmon_questions(
    path: Path, n_items: int
) -> tuple[list[OwnQuestion], dict[str, Any], list[str]]:
    """What Salmon's file says about sampling: questions, settings, and what is left out, in words.

    ``details`` fix questions at places, queries of ``Validation`` are asked of everybody, ``probs``
    say in which shares; every sampler that learns becomes `informative`.
    """
    given = read_yaml(path)
    sampling, samplers = part(path, given, "sampling"), part(path, given, "samplers")
    questions: list[OwnQuestion] = []
    settings: dict[str, Any] = {}
    notes: list[str] = []
    for place, detail in part(path, sampling, "details").items():
        query = detail.get("query") if isinstance(detail, dict) else None
        if query is None or not str(place).isdecimal():
            notes.append(f"sampling.details.{place}: has no query of its own at a place 1, 2, …")
            continue
        questions.append(OwnQuestion(*_three(path, query, n_items), position=int(place)))
    probs = {str(k): _share(path, k, v) for k, v in part(path, sampling, "probs").items()}
    total = sum(probs.values()) or 1.0
    for name in samplers:
        options = part(path, samplers, name)
        if "validation" not in f"{name} {options.get('class', '')}".lower():
            continue
        listed = [OwnQuestion(*_three(path, q, n_items)) for q in options.get("queries") or ()]
        share = probs.get(str(name), 0.0) / total
        if listed:
            questions += [q for q in listed if q not in questions]
            settings["own_share"] = round(share, 4) or 0.2
        elif share:
            settings["holdout_share"] = min(round(share, 4), 0.5)
        if "n_queries" in options:
            notes.append(f"samplers.{name}.n_queries: hold-outs are drawn anew for everybody")
    others = [n for n in samplers if "validation" not in f"{n}".lower()]
    learning = [n for n in others if "random" not in n.lower() and "roundrobin" not in n.lower()]
    if others and not learning:
        settings["method"] = "random"
    if len(others) > 1:
        notes.append(f"samplers {', '.join(others)}: asked as one method, not side by side")
    known = {"probs", "details", "common"}
    notes += [f"sampling.{key}: is not read" for key in sampling if key not in known]
    read = "targets html sampling samplers d title instructions debrief max_queries skip_button"
    notes += [f"{key}: is not read" for key in sorted(set(given) - set(read.split()))]
    return _checked(questions, str(path)), settings, notes


def _share(path: Path, name: Any, value: Any) -> float:
    if isinstance(value, int | float) and 0 <= value < float("inf"):
        return float(value)
    raise InvalidInput(f"{path}: sampling.probs.{name}={value!r}: must be a number from 0")


def _three(path: Path, query: Any, n_items: int) -> tuple[int, int, int]:
    good = isinstance(query, list) and len(query) == 3 and all(isinstance(i, int) for i in query)
    if not good or not all(0 <= i < n_items for i in query):
        raise InvalidInput(
            f"{path}: query {query!r}: must be three numbers from 0 to {n_items - 1}"
        )
    head, a, b = query
    return head, a, b


def read_answers(path: Path, names: Sequence[str]) -> list[EarlierAnswer]:
    """A table of answers: head, winner, loser; or tripletTools' Center, Left, Right, Answer."""
    columns, rows = table_rows(path)
    head, near, far = (column(columns, names) for names in (_HEAD, _NEAR, _FAR))
    sides = {"left", "right"} <= set(columns)
    if head is None or near is None or (far is None and not sides):
        raise InvalidInput(f"{path}: has columns {columns}; must have head, winner and loser")
    person = column(columns, _PERSON) or ""
    find = _finder(path, names)
    found = []
    left_out: Counter[str] = Counter()
    for line, row in rows:
        if "1" in (row.get("taken_back"), row.get("excluded")):
            left_out[_NOT_COUNTED] += 1
            continue
        if not row[near] and not row.get(far or ""):
            left_out[_UNDECIDED] += 1
            continue
        h, winner = find(row[head], line), find(row[near], line)
        if far is not None:
            loser = find(row[far], line)
        else:
            left, right = find(row["left"], line), find(row["right"], line)
            if winner not in (left, right):
                raise InvalidInput(
                    f"{path}: line {line}: the answer {row[near]!r} is neither left nor right; "
                    "mend it, or take the line out"
                )
            loser = right if winner == left else left
        if len({h, winner, loser}) < 3:  # a catch trial says nothing about the items
            left_out[_TWICE] += 1
            continue
        found.append(EarlierAnswer(h, winner, loser, row.get(person, ""), _milliseconds(row)))
    why = "; ".join(f"{reason}: {count:,}" for reason, count in left_out.items())
    if not found:
        raise InvalidInput(
            f"{path}: holds no answer{f' ({why})' if why else ''}; each needs a line with three "
            "items that differ"
        )
    if why:
        lines = amount(len(rows), "line")
        warnings.warn(f"{path}: left out of {lines}, {why}", DroppedRows, stacklevel=2)
    return found


def _milliseconds(row: dict[str, str]) -> float | None:
    for name, unit in (("response_ms", 1.0), ("rt", 1.0), ("response_time", 1000.0)):
        try:
            return float(row[name]) * unit
        except (KeyError, TypeError, ValueError):
            continue
    return None


def import_answers(ledger: Ledger, answers: Sequence[EarlierAnswer]) -> int:
    """Add earlier answers, under people of their own; they count like all others."""
    board, now = ledger.board, ledger.now
    if board.config.scope == "person":
        raise Refusal(409, "in this study everybody has questions of their own; nothing to add to")
    people: dict[str, int] = {}
    batch = ledger.add(Batch(0, now, None, "import", 0, 0.0)).id
    for answer in answers:
        if answer.person not in people:
            pseudonym = f"i{ledger.rng.integers(1 << 40):010x}"
            people[answer.person] = ledger.add(Participant(0, pseudonym, now)).id
        person = people[answer.person]
        pair = (answer.near, answer.far)
        there = board.asked[None].get(fact(answer.head, pair))
        if there is None:
            there = ledger.add(Question(0, "two", answer.head, pair, "extra", 1, None, batch)).id
        lease = ledger.add(Lease(0, there, person, pair, now, now)).id
        ms = answer.response_ms
        ledger.add(Answer(0, lease, there, person, "chosen", (answer.near,), ms, None, now))
    for person in people.values():
        ledger.event("finish", person, imported=True)
    return len(answers)
