"""What a reader found, put together: what says nothing is left out, loudly, and reported."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import DroppedRows
from nearer.trials import Trials
from nearer.triplets.collection import Triplets
from nearer.triplets.forms import Answered
from nearer.triplets.objects import EMPTY, Coding
from nearer.triplets.report import Report, examine
from nearer.triplets.table import TextTable
from nearer.wording import amount

__all__ = ["Beside", "assemble", "coded", "from_trials", "times", "warn_of"]


@dataclass(frozen=True)
class Beside:
    """What each answer says beside itself: who gave it, how much it counts, how long it took.

    `untimed` are the rows whose time is there and no number; it is taken as unknown.
    """

    persons: NDArray[np.int64] | None = None
    person_labels: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None
    seconds: NDArray[np.float64] | None = None
    untimed: tuple[int, ...] = ()

    @classmethod
    def of_columns(cls, table: TextTable, parts: Mapping[str, int]) -> Beside:
        """The columns of a table that are not the answer."""
        found: dict[str, Any] = {}
        if "person" in parts:
            found["persons"], found["person_labels"] = coded(table.column(parts["person"]))
        if "weight" in parts:
            found["weights"] = _weights(table, parts["weight"])
        part = next((p for p in ("seconds", "ms") if p in parts), None)
        if part is not None:
            unit = 1.0 if part == "seconds" else 1e-3
            found["seconds"], found["untimed"] = times(table.column(parts[part]), unit)
        return cls(**found)


def coded(people: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """People as positions in a list of their names, −1 where nobody is named."""
    coding = Coding()
    known = np.array([person not in EMPTY for person in people], dtype=np.bool_)
    codes = np.full(len(people), -1)
    codes[known] = coding.encode([person for person in people if person not in EMPTY])
    return codes, tuple(coding.codes)


def times(values: Sequence[Any], unit: float) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Seconds, nan where they are not known, and the rows where something else stands."""
    found = np.full(len(values), math.nan)
    strange = []
    for row, value in enumerate(values):
        if value is None or str(value).strip() in EMPTY:
            continue
        try:
            found[row] = float(value) * unit
        except (TypeError, ValueError):
            strange.append(row)
    found[~(found >= 0)] = math.nan  # psiz writes -1 for a time that nobody took
    return found, tuple(strange)


def _weights(table: TextTable, column: int) -> NDArray[np.float64]:
    values = table.column(column)
    weights, strange = times(values, 1.0)
    bad = [*strange, *np.flatnonzero(np.isnan(weights)).tolist()]
    if bad or np.isinf(weights).any():
        row = min([*bad, *np.flatnonzero(np.isinf(weights)).tolist()])
        comma = " with a point, not a decimal comma" * ("," in values[row])
        raise table.error(
            row, f"weight {values[row]!r}: must be a number of at least 0{comma}; mend it"
        )
    return weights


def warn_of(report: Report, level: int) -> None:
    """Say loudly how many answers are left out, and why, at so many calls above."""
    for why, lines in (
        ("an object is named twice", report.degenerate),
        ("nobody decided", report.undecided),
        ("cannot be read", report.bad),
    ):
        if lines:
            warnings.warn(
                f"left out, {why}: {len(lines):,} of {amount(report.rows, 'answer')}, the first "
                f"on {report.unit} {min(lines)}; the report lists them",
                DroppedRows,
                stacklevel=level + 1,
            )


def assemble(
    answered: Answered,
    labels: tuple[str, ...],
    *,
    kind: str,
    lines: NDArray[np.int64],
    beside: Beside,
    unread: Sequence[str],
) -> Triplets:
    """Leave out what says nothing, and put the rest together."""
    head, near, far = answered.triplets.T
    good = (head != near) & (head != far) & (near != far)
    degenerate = np.unique(lines[answered.row[~good]]).tolist()
    undecided = lines[answered.undecided].tolist()
    row = answered.row[good]
    triplets = np.ascontiguousarray(answered.triplets[good])
    weight = None if answered.weights is None else answered.weights[good]
    if beside.weights is not None:
        weight = beside.weights[row] if weight is None else weight * beside.weights[row]
    who = None if beside.persons is None else beside.persons[row]
    read = Triplets(
        triplets,
        labels,
        weights=weight,
        persons=who,
        person_labels=beside.person_labels,
        seconds=None if beside.seconds is None else beside.seconds[row],
        report=examine(
            triplets,
            labels,
            rows=len(lines),
            persons=len(beside.person_labels),
            nameless=0 if who is None else int((who < 0).sum()),
            degenerate=degenerate,
            undecided=undecided,
            untimed=lines[list(beside.untimed)].tolist(),
            unread_columns=unread,
        ),
    )
    return read.with_choices(kind) if kind in ("odd-one-out", "most-central") else read


def from_trials(trials: Trials, **known: Any) -> Triplets:
    """Trials as triplets, which keep them; `known` goes into the report."""
    rows, trial = trials.triplets()
    labels = tuple(map(str, trials.names or range(trials.n_objects)))
    who: dict[str, Any] = {}
    if trials.people is not None:
        codes, people = coded(trials.people.astype(np.str_).tolist())
        who = {"persons": codes[trial], "person_labels": people}
        known |= {"persons": len(people), "nameless": int((codes < 0).sum())}
    return Triplets(rows, labels, choices=trials, report=examine(rows, labels, **known), **who)
