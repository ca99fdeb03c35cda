"""The same answers fitted here and by cblearn: random, our own and another program's questions.

zappos85 in three dimensions. The test is 20,000 recorded answers that no method asked for. The
other program is the ARR of salmon-triplets, with its CKL and its TSTE model; its answers are a file
of the folder that NEARER_DATA names. Accuracy on the test, median over seeds; *informative* are the
positions that `nearer.adaptive` itself ends with, beside a fit to its answers.

*Speed*: the same random answers fitted here and by cblearn, loss by loss, one start each, by
processor time in one run; beside them the logistic path of `nearer.OrdinalEmbedding`, which looks
for prior, curve and covariances as well. Each is called once before, to compile.

Short: 500, 1,000, 2,000 and 6,000 answers, two seeds. Full: 3,000, too, and six seeds where
questions are ours or random.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks.harness import Cell, Rows, cell, distinct, median, pick, table
from benchmarks.soe import cblearn_environment
from nearer.datasets.loaders import folders
from nearer.errors import MissingData
from nearer.questions import find, pack

FILE = "zappos85_chosen_by_arr.npz"
ARR = ("CKL_B25", "TSTE_B10")
THEIRS = ("CKL", "TSTE", "STE", "GNMDS", "SOE")
LOGISTIC = "OrdinalEmbedding"
SIZES = (500, 1000, 2000, 6000)
N, D, TEST = 85, 3, 20_000
SCRIPT = """
import sys, warnings
import numpy as np
import cblearn.embedding
warnings.simplefilter("ignore")
model = getattr(cblearn.embedding, sys.argv[1])(3, random_state=0)
np.save(sys.argv[3], model.fit(np.load(sys.argv[2]), n_objects=85).embedding_)
"""
TIMED_SCRIPT = """
import json, sys, time, warnings
import numpy as np
import cblearn.embedding
warnings.simplefilter("ignore")
rows, seconds = np.load(sys.argv[1]), {}
for name in sys.argv[2].split(","):
    times = []
    for _ in range(4):
        model = getattr(cblearn.embedding, name)(3, random_state=0)
        if "n_init" in model.get_params():
            model.set_params(n_init=1)
        begin = time.process_time()
        model.fit(rows, n_objects=85)
        times.append(time.process_time() - begin)
    seconds[name] = float(np.median(times[1:]))
print(json.dumps(seconds))
"""


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    sizes = sorted({*SIZES, 3000}) if full else SIZES
    more = seeds or (6 if full else 2)
    for questions in ("random", "informative", *ARR):
        for size in sizes:
            for seed in range(2 if questions in ARR else more):
                how = {"questions": questions, "size": size, "seed": seed}
                yield cell("ours", ours, **how)
                for estimator in THEIRS:
                    yield cell("theirs", theirs, estimator=estimator, **how)
    for size in sizes:
        yield cell("speed", speed, size=size)


def ours(questions: str, size: int, seed: int) -> dict[str, float]:
    rows, own = _answers(questions, size, seed)
    fit = nearer.fit(rows, n_components=D, n_objects=N, method="noisy", random_state=seed)
    figures = {"accuracy": _accuracy(fit.positions)}
    return figures if own is None else {**figures, "own": _accuracy(own)}


def theirs(questions: str, size: int, seed: int, estimator: str) -> dict[str, float]:
    rows, _ = _answers(questions, size, seed)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("triplets.npy", "positions.npy")]
        np.save(files[0], rows.astype(np.int64))
        command = [str(cblearn_environment()), "-c", SCRIPT, estimator, *files]
        subprocess.run(command, capture_output=True, check=True)
        return {"accuracy": _accuracy(np.load(files[1]))}


def speed(size: int) -> dict[str, float]:
    """Seconds of the processor for a fit to random answers: here, and in cblearn right after."""
    rows, _ = _answers("random", size, 0)
    seconds_of = {}
    for name in (*THEIRS, LOGISTIC):
        model, times = getattr(nearer, name)(D, random_state=0), []
        for _ in range(4):
            begin = time.process_time()
            model.fit(rows, n_objects=N)
            times.append(time.process_time() - begin)
        seconds_of[f"our {name}"] = float(np.median(times[1:]))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "triplets.npy"))
        np.save(file, rows.astype(np.int64))
        command = [str(cblearn_environment()), "-c", TIMED_SCRIPT, file, ",".join(THEIRS)]
        said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return seconds_of | {f"their {name}": seconds for name, seconds in json.loads(said).items()}


@lru_cache(maxsize=1)
def _material() -> tuple[Any, Any, dict[str, Any]]:
    """The test, all other answers, and the answers that the other program got."""
    path = next((f / FILE for f in folders() if (f / FILE).exists()), None)
    if path is None:
        raise MissingData(f"{FILE}: put it into the folder that NEARER_DATA names")
    with np.load(path) as file:
        chosen = dict(file)
    rows = nearer.datasets.load_human("zappos85").triplets
    keys = pack(rows)[0]
    asked = np.unique(np.concatenate([pack(some)[0] for some in chosen.values()]))
    free = rows[~find(asked, keys)[1]]
    test = np.random.default_rng(0).permutation(free)[:TEST]
    return test, rows[~find(np.unique(pack(test)[0]), keys)[1]], chosen


@lru_cache(maxsize=1)
def _answers(questions: str, size: int, seed: int) -> tuple[Any, Any]:
    """Answers, and the positions that their chooser ended with if it is ours."""
    _, pool, chosen = _material()
    if questions in ARR:
        return chosen[f"{questions}_{seed}"][:size], None
    if questions == "random":
        return np.random.default_rng(seed + 1).permutation(pool)[:size], None
    oracle = nearer.RecordedOracle(pool)
    strategy = nearer.adaptive(
        N, budget=size, n_components=D, quality=1, askable=oracle.knows, random_state=seed
    )
    result = nearer.run(strategy, oracle)
    return result.triplets, result.positions


def _accuracy(X: Any) -> float:
    head, near, far = X[_material()[0].T]
    right = np.linalg.norm(head - near, axis=1) < np.linalg.norm(head - far, axis=1)
    return float(right.mean())


def page(rows: Rows, folder: Path) -> str:
    lines = []
    for questions, size in distinct(pick(rows, "ours"), "questions", "size"):
        mine = pick(rows, "ours", questions=questions, size=size)
        line = [questions, f"{size:,}", f"{median(mine, 'accuracy'):.3f}"]
        line.append(f"{median(mine, 'own'):.3f}" if "own" in mine[0] else "")
        for estimator in THEIRS:
            some = pick(rows, "theirs", questions=questions, size=size, estimator=estimator)
            line.append(f"{median(some, 'accuracy'):.3f}" if some else "")
        lines.append([*line, len(mine)])
    head = ["questions", "answers", "nearer", "informative's own", *THEIRS, "seeds"]
    text = "# The same answers, fitted here and by cblearn\n\n" + table(head, lines)
    return text + _speed_page(rows)


def _speed_page(rows: Rows) -> str:
    """Processor time here, and how many times as long cblearn takes with the same loss."""
    lines = []
    for row in pick(rows, "speed"):
        line = [f"{row['size']:,}"]
        for name in THEIRS:
            here, there = row[f"our {name}"], row[f"their {name}"]
            line.append(f"{1e3 * here:.0f} ms, {there / here:.1f}×")
        lines.append([*line, f"{1e3 * row['our ' + LOGISTIC]:.0f} ms"])
    text = "\nProcessor time of a fit here, and how many times as long cblearn takes\n\n"
    return text + table(["answers", *THEIRS, LOGISTIC], lines) if lines else ""
