"""Real people's answers through the whole system: server, people, questions chosen as they answer.

Thirty people at a time answer over HTTP from the record of human_zappos85, which has one answer
to 96 % of all questions about 85 shoes; what it lacks they skip. The positions are then fitted to
the first so many answers, in as many dimensions as they need, and judged on all recorded questions
that were never asked. The study gets no information that a researcher would not have.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks._study_people import Outcome, crowd, served
from benchmarks.harness import Cell, Rows, distinct, grid, median, pick, table
from nearer.questions import pack
from nearer.study.config import Config
from nearer.study.items import Item
from nearer.study.simulate import Crowd
from nearer.study.store import connect, new_study
from nearer.study.worker import collected, draw_map

TIMED = True
METHODS = ("informative", "random")
CUTS = (500, 1000, 2000, 3000, 4500, 6000)
_THINK = 0.6  # seconds; faster than people are, so the server is no less busy than with them
_SETTINGS = {"questions": 100, "joins_per_minute": 0, "quality": 1.0}
_SETTINGS |= {"holdout_share": 0.0, "repeat_share": 0.0, "catch_share": 0.0}


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    tries = range(seeds or (3 if full else 1))
    yield from grid("replay", replay, data=("zappos85",), method=METHODS, seed=tries)


@dataclass
class Recorded(Crowd):
    """People who say what was recorded, and skip what was not."""

    triplets: Any = None
    skipped: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.oracle = nearer.RecordedOracle(self.triplets)

    def says(self, query: int, shown: Sequence[int], choose: int) -> list[int] | str:
        """As recorded."""
        if not self.oracle.knows(np.array([[query, *shown]]))[0]:
            self.skipped.append(query)
            return "skip"
        return super().says(query, shown, choose)


def replay(data: str, method: str, seed: int) -> dict[str, Any]:
    """Collect answers with a method; the accuracy for growing numbers of them."""
    triplets = np.asarray(nearer.datasets.load_human(data).triplets)
    n = int(triplets.max()) + 1
    people = Recorded(np.zeros((n, 1)), error=0.0, seconds=_THINK, triplets=triplets)

    def enough(outcome: Outcome) -> bool:
        return len(outcome.acknowledged) >= CUTS[-1] + len(people.skipped)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.db"
        config = Config.of({**_SETTINGS, "method": method, "seed": seed})
        new_study(path, [Item(f"shoe {k}", "text", f"shoe {k}") for k in range(n)], config)
        began = time.perf_counter()
        with served(path) as server:
            outcome = asyncio.run(crowd(server.port, people, 30, seed=seed, until=enough))
            said = server.said()
        took = time.perf_counter() - began
        db = connect(path, read_only=True)
        answers = collected(db)
        asked, filler = _asked(db)
        db.close()
    never = triplets[~np.isin(pack(triplets)[0], pack(asked)[0])]
    curve = {}
    for m in (m for m in CUTS if m <= len(answers.answers)):
        drawn = draw_map(answers.first(m), n, seed=seed, holdout=never)
        assert drawn is not None
        curve[str(m)] = (drawn["accuracy"], drawn["dimension"])
    return {
        "answers": len(answers.answers),
        "skipped": len(people.skipped),
        "filler": filler,
        "never_asked": len(never),
        "seconds": took,
        "p99_ms": 1000 * float(np.quantile(outcome.seconds, 0.99)),
        "curve": curve,
        "said": said,
    }


def _asked(db: Any) -> tuple[np.ndarray[Any, Any], int]:
    """All questions that were posed, and how many answers were to others than the method's."""
    rows = db.execute(
        "SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]') FROM questions"
    ).fetchall()
    (filler,) = db.execute(
        "SELECT count(*) FROM answers a JOIN questions q ON q.id = a.question"
        " WHERE q.purpose != 'main'"
    ).fetchone()
    return np.array(rows), int(filler)


def page(rows: Rows, folder: Path) -> str:
    """A table of accuracies, and a picture of them."""
    methods = distinct(rows, "method")
    if methods:
        _draw(rows, folder / "study-replay.png")
    curves = {k: _curve(pick(rows, "replay", method=k)) for k in methods}
    lines = [
        [f"{m:,}", *(f"{curve[m]:.4f}"[1:] if m in curve else "" for curve in curves.values())]
        for m in CUTS
    ]
    lines_of_maps = [
        [k, len(runs), f"{median(runs, 'filler'):.0f}", f"{median(runs, 'p99_ms'):.0f}",
         f"{median(runs, 'seconds'):.0f}"]
        for k in methods
        for runs in [pick(rows, "replay", method=k)]
    ]  # fmt: skip
    head = ["method", "runs", "answers that filled in", "p99 of a reply, ms", "seconds"]
    return (
        table(["answers", *methods], lines if methods else []) + "\n" + table(head, lines_of_maps)
    )


def _curve(runs: Rows) -> dict[int, float]:
    """The median accuracy by number of answers, as far as all runs have come."""
    reached = [m for m in CUTS if all(str(m) in run["curve"] for run in runs)]
    return {m: float(np.median([run["curve"][str(m)][0] for run in runs])) for m in reached}


def _draw(rows: Rows, picture: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for method, marker in zip(distinct(rows, "method"), "os^D", strict=False):
        curve = _curve(pick(rows, "replay", method=method))
        axes.plot(list(curve), list(curve.values()), marker=marker, label=method)
    axes.set(xlabel="answers of people", ylabel="accuracy on questions never asked", xscale="log")
    axes.minorticks_off()
    axes.set_xticks(CUTS, [str(m) for m in CUTS])
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=150)
