"""A journal read as answers."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from nearer.asking.answers import as_answers
from nearer.asking.journal import connect, read_header
from nearer.errors import InvalidInput
from nearer.questions import Floats, Objects, answered, unsure_rows, weighted
from nearer.triplets import Triplets, examine

__all__ = ["journal_seed", "load_journal"]


def load_journal(path: str | os.PathLike[str]) -> Triplets:
    """Read the answers of a journal, of a run that ended or of one that still goes on.

    Parameters
    ----------
    path
        What was given as ``journal=``.

    Returns
    -------
    answers
        `Triplets` with weights where somebody was unsure: "don't know" is a near tie, one half for
        each side. Where several answered, who gave each answer.

    Examples
    --------
    >>> import nearer, numpy as np, tempfile, pathlib
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "answers.db"
    ...     found = nearer.embed(nearer.PointOracle(X), 20, journal=file, progress=False)
    ...     answers = nearer.load_journal(file)
    >>> len(answers) == found.n_comparisons, answers.n_objects
    (True, 20)
    """
    file = Path(path)
    with closing(connect(file)) as db:
        header = read_header(file, db)
        try:
            names = [name for (name,) in db.execute("SELECT name FROM objects ORDER BY id")]
            kept = db.execute(
                "SELECT question, answer, said_by FROM answers ORDER BY round, row"
            ).fetchall()
        except sqlite3.Error as error:
            raise InvalidInput(f"{file}: is not a whole journal ({error})") from error
    rows, weights, people = _votes(kept)
    n = len(names) or header.get("n_objects") or int(rows.max(initial=-1)) + 1
    labels = tuple(names) or tuple(map(str, range(n)))
    persons, who = None, ()
    if any(person is not None for person in people):
        found, persons = np.unique([person or "" for person in people], return_inverse=True)
        who = tuple(found.tolist())
    return Triplets(
        rows,
        labels,
        report=examine(rows, labels),
        weights=None if (weights == 1).all() else weights,
        persons=persons,
        person_labels=who,
    )


def journal_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of a journal's run, given or drawn."""
    with closing(connect(Path(path))) as db:
        seed: int | None = read_header(Path(path), db).get("seed")
        return seed


def _votes(kept: list[tuple[str, str, str | None]]) -> tuple[Objects, Floats, list[str | None]]:
    """Triplets, their weights, and who gave each; several votes on a question are several."""
    ballots = [
        (json.loads(question), person, said)
        for question, answer, by in kept
        for person, said in _ballots(answer, by)
    ]
    rows: list[Objects] = [np.empty((0, 3), dtype=np.int64)]
    weights: list[Floats] = [np.empty(0)]
    people: list[str | None] = []
    # neighbours of one width and one person are taken together, in the order they were given
    for (width, person), some in groupby(ballots, key=lambda ballot: (len(ballot[0]), ballot[1])):
        group = list(some)
        nobody = np.nan if width == 3 else [np.nan] * (width - 1)
        said = np.array([nobody if x is None else x for *_, x in group], dtype=np.float64)
        questions = np.array([question for question, *_ in group], dtype=np.int64)
        answers = as_answers(said, questions)
        if answers.dtype == np.bool_ and not len(unsure_rows(answers)):
            triplets = answered(questions, answers)  # in the order they were given
            count = np.ones(len(triplets))
        else:
            triplets, count = weighted(questions, answers)
        rows.append(triplets)
        weights.append(count)
        people.extend([person] * len(count))
    return np.concatenate(rows), np.concatenate(weights), people


def _ballots(answer: str, by: str | None) -> list[tuple[str | None, Any]]:
    who = None if by is None else json.loads(by)
    return list(who.items()) if isinstance(who, dict) else [(who, json.loads(answer))]
