"""Real people's answers through the whole system: server, people, questions chosen as they answer.

Thirty people at a time answer over HTTP from the record of human_zappos85, which has one answer
to 96 % of all questions about 85 shoes; what it lacks they skip. The positions are then fitted to
the first so many answers, in as many dimensions as they need, and judged on all recorded questions
that were never asked. Nothing is told to the study that a researcher would not know.

    python -m benchmarks.study_replay [--picture FILE] [METHOD ...]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from nearer.questions import pack
from nearer.study.config import Config
from nearer.study.create import new_study
from nearer.study.imports import Item
from nearer.study.log import collected
from nearer.study.maps import draw_map
from nearer.study.pieces import COUNTED
from nearer.study.simulate import Crowd, Outcome, crowd, served
from nearer.study.store import connect

CUTS = (500, 1000, 2000, 3000, 4500, 6000)
GOALS = {3000: 0.835, 6000: 0.848}


def replay(
    folder: Path,
    method: str,
    triplets: Any,
    n: int,
    *,
    n_answers: int,
    think: float,
    seed: int,
    keep: Path | None,
) -> dict[str, Any]:
    """Collect answers with a method; the accuracy for growing numbers of them."""
    oracle = nearer.RecordedOracle(triplets)
    skipped = 0

    def answer(head: int, left: int, right: int) -> str:
        if head in (left, right):  # a catch trial
            return "left" if head == left else "right"
        question = np.array([[head, left, right]])
        if not oracle.knows(question)[0]:
            nonlocal skipped
            skipped += 1
            return "skip"
        return "left" if oracle(question)[0] else "right"

    path = folder / f"{method}.db"
    settings = {"method": method, "questions": 100, "seed": seed, "joins_per_minute": 0}
    settings |= {"holdout_share": 0.0, "repeat_share": 0.0, "catch_share": 0.0}
    new_study(path, [Item(f"shoe {k}", "text", f"shoe {k}") for k in range(n)], Config.of(settings))

    def enough(outcome: Outcome) -> bool:
        return len(outcome.acknowledged) >= n_answers + skipped

    people = Crowd(np.zeros((n, 1)), error=0.0, seconds=think)
    began = time.perf_counter()
    with served(path) as server:
        outcome = asyncio.run(
            crowd(server.port, people, 30, seed=seed, until=enough, answer=answer)
        )
        said = server.said()
    took = time.perf_counter() - began
    db = connect(path, read_only=True)
    # Every answer that a person was asked for counts, whatever it was asked for.
    given = collected(db, (*COUNTED, "holdout"))
    told = given.answers
    asked = np.array(
        db.execute(
            "SELECT query, json_extract(shown, '$[0]'), json_extract(shown, '$[1]') FROM questions"
            " WHERE purpose != 'catch'"
        ).fetchall()
    )
    if keep is not None:
        np.savez(keep / f"{method}-{seed}.npz", told=told, asked=asked)
    never = triplets[~np.isin(pack(triplets)[0], pack(asked)[0])]
    batches, filler = db.execute(
        "SELECT (SELECT count(*) FROM batches), (SELECT count(*) FROM answers a JOIN questions q"
        " ON q.id = a.question WHERE q.purpose != 'main')"
    ).fetchone()
    curve = []
    for m in [m for m in CUTS if m <= min(len(told), n_answers)]:
        found = draw_map(given.first(m), n, seed=seed, holdout=never)
        curve.append({"answers": m, "dimension": found["dimension"], "accuracy": found["accuracy"]})
    return {
        "method": method,
        "seed": seed,
        "answers": len(told),
        "skipped": skipped,
        "filler": filler,
        "batches": batches,
        "never_asked": len(never),
        "seconds": took,
        "p99_ms": 1000 * float(np.quantile(outcome.seconds, 0.99)),
        "curve": curve,
        "said": said,
    }


def draw(found: list[dict[str, Any]], picture: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for run, marker in zip(found, "os^D", strict=False):
        points = [(row["answers"], row["accuracy"]) for row in run["curve"]]
        axes.plot(*zip(*points, strict=True), marker=marker, label=run["method"])
    for m, goal in GOALS.items():
        axes.plot(m, goal, "k+", markersize=12, label="goal" if m == min(GOALS) else None)
    axes.set(xlabel="answers of people", ylabel="accuracy on questions never asked", xscale="log")
    axes.minorticks_off()
    axes.set_xticks(CUTS, [str(m) for m in CUTS])
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=150)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("methods", nargs="*", default=["informative", "random"])
    parser.add_argument("--answers", type=int, default=6000)
    parser.add_argument("--think", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for the answers that were collected")
    options = parser.parse_args(arguments or [])
    try:
        data = nearer.datasets.load_human("zappos85")
    except nearer.errors.NearerError as error:
        print(f"skipped: {error}")
        return
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for method in options.methods:
            run = replay(
                Path(folder), method, np.asarray(data.triplets), 85,
                n_answers=options.answers, think=options.think, seed=options.seed,
                keep=options.keep,
            )  # fmt: skip
            found.append(run)
            print(json.dumps({k: v for k, v in run.items() if k != "curve"}), flush=True)
            for row in run["curve"]:
                print(
                    f"  {row['answers']:>6}  {row['dimension']}  {row['accuracy']:.4f}", flush=True
                )
    if options.picture:
        draw(found, options.picture)


if __name__ == "__main__":
    main(sys.argv[1:])
