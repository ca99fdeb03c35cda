"""Answers that are sometimes wrong: people, calibration, flips, ranking, dimension.

People's answers are replayed from the recorded sets, a quarter of the questions held out; where an
answer became two triplets, or a question was asked about the same three objects, all of that is
held out together. The others are simulated. Curves go to noise.png.

Short: three splits, up to 2,400 answers; calibration of fits to all answers of the smaller sets;
fewer heads and dimensions in the simulations. Full: all of it, with cblearn's dimension.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks.harness import (
    Cell,
    Rows,
    calibration_error,
    cell,
    distinct,
    grid,
    median,
    pick,
    table,
)
from benchmarks.soe import cblearn_environment
from nearer.algorithms.choose_questions import Candidates, draw_round
from nearer.fitting.belief import Belief
from nearer.questions import answered, pack, random_questions
from paper.data import draw as draw_points

HUMAN = {  # name, dimension: sizes
    ("zappos85", 3): (500, 1000, 2000, 3000, 4000, 5000, 6000),
    ("zappos85", 5): (500, 1000, 2000, 3000, 4000, 5000, 6000),
    ("alieneggs30", 2): (500, 1000, 2000, 4000),
    ("alieneggs300", 2): (500, 1000, 2400, 6000),
    ("cars", 2): (500, 1000, 2000, 4000),
    ("musicians", 3): (500, 1000, 2400, 4800),
}
SMALL = ("alieneggs30", "cars", "musicians")
PARTS = 4
THINGS = 60_000  # answers of the largest set that are fitted
GU_XU = {0.05: 1.66, 0.1: 2.28, 0.2: 4.43}  # flips: comparisons in n log2 n, Gu and Xu (2023)
THEIRS = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from cblearn.embedding import SOE, estimate_dimensionality_cv
triplets, start = np.load(sys.argv[1]), time.process_time()
estimate = estimate_dimensionality_cv(SOE(1), triplets, n_jobs=1, random_state=0)
print(estimate.estimated_dimension, time.process_time() - start)
"""


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    splits = range(101, 101 + (seeds or (5 if full else 3)))
    for (data, d), sizes in HUMAN.items():
        shown = sizes if full else sizes[:3]
        fixed = {"data": (data,), "d": (d,), "sizes": (shown,)}
        yield from grid("people", replayed, **fixed, way=("random", "chosen"), seed=splits)
    yield from _calibrations(full)
    families = ("ball", "cube", "gaussian", "sphere")
    budgets = (27_000, 80_000) if full else (27_000,)
    yield from grid("flips", under_flips, budget=budgets, flip=(0.05, 0.1, 0.2))
    yield from grid("ranking", ranked, flip=GU_XU, head=range(100 if full else 10))
    low = (2, 3, 5, 10) if full else (2, 3)
    yield from grid("basis", bases, family=families, d=low, seed=splits[:3])
    runs = range(2 * len(splits))
    yield from grid("dimension", estimated, d=(2, 3, 5), seed=runs)
    if full:
        yield cell("theirs", theirs)


def _calibrations(full: bool) -> Iterator[Cell]:
    dimensions = dict(reversed(HUMAN)) | {"things": 5}
    for data, d in dimensions.items():
        if full or data in SMALL:
            yield cell("calibration", calibrated, data=data, d=d, budget=None)
        if full and (data, d) in HUMAN:
            yield cell("calibration", calibrated, data=data, d=d, budget=HUMAN[data, d][-1])


def replayed(data: str, d: int, sizes: tuple[int, ...], way: str, seed: int) -> dict[str, Any]:
    """Accuracy on held-out answers after so many answers, chosen or random."""
    rng = np.random.default_rng(seed)
    human = nearer.datasets.load_human(data)
    n, rows = human.n_objects, majority(human.triplets)
    out = parts(rows, rng) == 0
    test, train = rows[out], rng.permutation(rows[~out])
    oracle = nearer.RecordedOracle(train)
    belief, candidates = Belief(n, d, rng), Candidates(n, oracle.knows)
    triplets, accuracy = train[:0], []
    for size in sizes:
        while len(triplets) < min(size, len(train)):
            count = min(3 * n, size - len(triplets))
            if way == "random":  # in the same order as the first ones of the other way
                questions = candidates.draw(count, rng)
                questions = questions[rng.permutation(len(questions))]
            else:
                questions, _ = draw_round(belief, candidates, count, rng)
            candidates.exclude(questions)
            if not len(questions):
                break
            triplets = np.concatenate([triplets, answered(questions, oracle(questions))])
            belief.learn(triplets)
        accuracy.append(float(np.mean(belief.fit.probability(test) > 0.5)))
    return {"accuracy": accuracy}


def parts(rows: Any, rng: np.random.Generator) -> Any:
    """A part for each answer, the same for all about the same three objects."""
    _, which = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
    return (rng.permutation(which.max() + 1) % PARTS)[which]


def majority(triplets: Any) -> Any:
    """One answer a question, the more frequent one; ties are left out."""
    keys, mirrored = pack(triplets)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    votes = np.bincount(which, np.where(mirrored == mirrored[first][which], 1, -1))
    rows = triplets[first].copy()
    rows[votes < 0, 1:] = rows[votes < 0, :0:-1]
    return rows[votes != 0]


def calibrated(data: str, d: int, budget: int | None) -> dict[str, Any]:
    """Each answer is predicted once, by a fit to the three quarters it is not in.

    Ten bins of equally many, and of equal width; even perfect probabilities show an error.
    """
    human = nearer.datasets.load_human(data)
    rows = human.triplets if budget is None else majority(human.triplets)
    rng = np.random.default_rng(101)
    part = parts(rows, rng)
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # people contradict each other
        for k in range(PARTS):
            others = rows[part != k]
            fit = _fitted(others, k, human.n_objects, d, budget)
            fits.append(fit.probability(rows[part == k]))
    p = np.concatenate(fits)
    said = np.ones(len(p), dtype=bool)
    lucky = [calibration_error(p, rng.random(len(p)) < p, equal="mass") for _ in range(20)]
    return {
        "answers": len(p),
        "accuracy": float(np.mean(p > 0.5)),
        "error": calibration_error(p, said, equal="mass"),
        "by width": calibration_error(p, said),
        "perfect": float(np.mean(lucky)),
    }


def _fitted(rows: Any, seed: int, n: int, d: int, budget: int | None) -> Any:
    """A fit to all of these answers, or to as many chosen ones."""
    if budget is None:
        some = np.random.default_rng(seed).permutation(rows)[:THINGS]
        return nearer.OrdinalEmbedding(d, n_objects=n, random_state=seed).fit(some).fit_
    oracle = nearer.RecordedOracle(rows)
    strategy = nearer.adaptive(
        n, budget=budget, n_components=d, askable=oracle.knows, random_state=seed
    )
    return nearer.run(strategy, oracle).details["posterior"]


def under_flips(budget: int, flip: float) -> dict[str, Any]:
    X = nearer.datasets.make_mixture(500, 3, random_state=101)
    oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=1)
    start = time.process_time()
    result = nearer.run(nearer.adaptive(500, budget=budget, random_state=0), oracle)
    seconds = time.process_time() - start
    return {
        "dimension": result.dimension,
        "tau": nearer.metrics.mean_kendall_tau(X, result.positions),
        "knn": nearer.metrics.knn_precision(X, result.positions),
        "estimated": result.details["noise"].lapse,
        "seconds": seconds,
    }


def ranked(flip: float, head: int) -> dict[str, Any]:
    n, count = 500, [0]
    exact = nearer.PointOracle(nearer.datasets.make_mixture(n, 3, random_state=0))
    oracle = nearer.NoisyOracle(exact, flip, noise="fresh", random_state=head)
    strategy = nearer.rank_objects(head, n, noise=flip, random_state=head)
    result = nearer.run(strategy, oracle, progress=lambda c, _: count.append(c))
    truth = nearer.run(nearer.rank_objects(head, n), exact)
    bound = GU_XU[flip] * n * np.log2(n)
    return {"exact": bool((result == truth).all()), "of the bound": count[-1] / bound}


def bases(family: str, d: int, seed: int) -> dict[str, Any]:
    exact = nearer.PointOracle(draw_points(family, d, 1000, seed))
    noisy = nearer.NoisyOracle(exact, 0.1, noise="fresh", random_state=seed)
    exact_run = nearer.run(nearer.choose_basis(1000, random_state=seed), exact)
    noisy_run = nearer.run(nearer.choose_basis(1000, random_state=seed, noise=0.1), noisy)
    return {"exact": exact_run.dimension, "noisy": noisy_run.dimension}


def estimated(d: int, seed: int) -> dict[str, Any]:
    triplets, start = flipped(d, seed), time.process_time()
    estimate = nearer.estimate_dimension(triplets, 200, random_state=seed)
    return {"dimension": estimate.dimension, "seconds": time.process_time() - start}


def theirs() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "triplets.npy")
        np.save(path, flipped(2, 0))
        command = [str(cblearn_environment()), "-c", THEIRS, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {"dimension": int(said[0]), "seconds": float(said[1])}


def flipped(d: int, seed: int) -> Any:
    X = nearer.datasets.make_gaussian(200, d, random_state=seed)
    oracle = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=seed)
    questions = random_questions(200, 20_000, np.random.default_rng(seed + 100))
    return answered(questions, oracle(questions))


def page(rows: Rows, folder: Path) -> str:
    draw(pick(rows, "people"), folder / "noise.png")
    flips = ("budget", "flip", "dimension", "tau", "knn", "estimated", "seconds")
    calibration = ("data", "budget", "answers", "accuracy", "error", "by width", "perfect")
    parts = {
        "People: accuracy on held-out answers, median of splits": _people(rows),
        "Calibration: every answer held out once": _plain(rows, "calibration", calibration),
        "3dgmm, 500 objects, dimension chosen from the answers": _plain(rows, "flips", flips),
        "Ranking 500 objects from a head by re-asking": _ranking(rows),
        "Basis, 1,000 objects of Table 1, a tenth of the answers flipped": _bases(rows),
        "Dimension from 20,000 answers about 200 objects, a tenth flipped": _dimension(rows),
    }
    return "\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)


def _plain(rows: Rows, part: str, keys: tuple[str, ...]) -> str:
    """A part whose cells are the lines of its table."""
    shown = ({key: "" if r[key] is None else r[key] for key in keys} for r in pick(rows, part))
    lines = [[f"{v:,.3g}" if isinstance(v, float) else v for v in row.values()] for row in shown]
    return table(keys, lines)


def _people(rows: Rows) -> str:
    lines = []
    for data, d, way in distinct(pick(rows, "people"), "data", "d", "way"):
        group = pick(rows, "people", data=data, d=d, way=way)
        accuracy = np.median([row["accuracy"] for row in group], axis=0)
        at = zip(group[0]["sizes"], accuracy, strict=True)
        lines.append([data, d, way, ", ".join(f"{m:,}: {a:.3f}" for m, a in at), len(group)])
    return table(["set", "d", "questions", "answers: accuracy", "splits"], lines)


def _ranking(rows: Rows) -> str:
    lines = []
    for flip in distinct(pick(rows, "ranking"), "flip"):
        group = pick(rows, "ranking", flip=flip)
        right = f"{sum(row['exact'] for row in group)} of {len(group)}"
        lines.append([f"{flip:.0%}", right, f"{median(group, 'of the bound'):.2f}"])
    return table(["flips", "exact", "comparisons of the bound of Gu and Xu (2023)"], lines)


def _bases(rows: Rows) -> str:
    lines = []
    for family in distinct(pick(rows, "basis"), "family"):
        group = pick(rows, "basis", family=family)
        same = f"{sum(row['exact'] == row['noisy'] for row in group)} of {len(group)}"
        means = (f"{np.mean([row[key] for row in group]):.2f}" for key in ("exact", "noisy"))
        lines.append([family, same, *means])
    return table(["family", "same dimension", "mean, exact", "mean, flipped"], lines)


def _dimension(rows: Rows) -> str:
    lines = []
    for d in distinct(pick(rows, "dimension"), "d"):
        group = pick(rows, "dimension", d=d)
        dimensions = " ".join(str(row["dimension"]) for row in group)
        lines.append([d, "nearer", dimensions, f"{median(group, 'seconds'):.1f}"])
    lines += [
        [2, "cblearn, 1 to 3", row["dimension"], f"{row['seconds']:.0f}"]
        for row in pick(rows, "theirs")
    ]
    return table(["d", "method", "found", "processor seconds"], lines)


def draw(rows: Rows, path: Path) -> None:
    from matplotlib.figure import Figure

    sets = distinct(rows, "data", "d")
    if not sets:
        return
    figure = Figure(figsize=(4 * len(sets), 3.2), layout="constrained")
    for ax, (data, d) in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets, strict=True):
        for way in ("random", "chosen"):
            group = pick(rows, "people", data=data, d=d, way=way)
            if group:
                accuracy = np.median([row["accuracy"] for row in group], axis=0)
                ax.plot(group[0]["sizes"], accuracy, marker="o", label=f"{way} questions")
        ax.set(title=f"{data}, d = {d}", xlabel="answers", ylabel="held-out accuracy")
        ax.legend()
    figure.savefig(path, dpi=130)
