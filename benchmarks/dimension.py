"""The dimension from simulated answers, and how often its probabilities come true.

A file of answers is drawn by its number: points of a family, 1 to 8 dimensions, 10 to 120 objects
(every tenth file: 120 to 400), 1.5 to 60 random answers a coordinate, 0 to 30 % of them wrong, at
random or near ties.
`nearer.estimate_dimension` gives each dimension a probability. Over all pairs of a file and a
dimension, the calibration error is the mean difference of predicted and observed shares, in ten
bins. Families and random numbers are others than those that the probabilities were
fitted to (`benchmarks.dimension_fit`). Beside them: LORE, and cblearn's cross-validated test on the
first files.

Short: 40 files, without cblearn. Full: 200.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

import nearer
from benchmarks._lore import fit_low_rank
from benchmarks.harness import Cell, Rows, bins, grid, pick, table
from nearer.questions import answered, random_questions

FAMILIES = ("cube", "ball", "mixture")
FIRST = 10_000  # the first number; the files that the probabilities were fitted to begin at 0
SHORT, FULL = 40, 200
THEIRS_ON = 20  # files: cblearn's test takes minutes for some
MOST = 12  # dimensions that are tried
RATES = (0.0, 0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
THEIRS = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from cblearn.embedding import SOE, estimate_dimensionality_cv
estimate = estimate_dimensionality_cv(SOE(1), np.load(sys.argv[1]), n_jobs=1, random_state=0)
print(estimate.estimated_dimension)
"""


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    files = range(seeds or (FULL if full else SHORT))
    yield from grid("nearer", ours, file=files)
    yield from grid("LORE", lore, file=files)
    if full:
        yield from grid("cblearn", theirs, file=range(THEIRS_ON))


def ours(file: int) -> dict[str, Any]:
    triplets, n, d, rate = draw(FIRST + file, FAMILIES)
    estimate = nearer.estimate_dimension(triplets, n, max_dimension=MOST, random_state=file)
    said = {str(e): tried["probability"] for e, tried in estimate.evidence.items()}
    return {
        "truth": d,
        "found": estimate.dimension,
        "low": estimate.dimension_low,
        "high": estimate.dimension_high,
        "rate": rate,
        "said": said,
    }


def lore(file: int) -> dict[str, Any]:
    triplets, n, d, _ = draw(FIRST + file, FAMILIES)
    fit = fit_low_rank(triplets, n, max_dimension=MOST, rng=np.random.default_rng(file))
    return {"truth": d, "found": fit.positions.shape[1]}


def theirs(file: int) -> dict[str, Any]:
    from benchmarks.soe import cblearn_environment

    triplets, _, d, _ = draw(FIRST + file, FAMILIES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "triplets.npy")
        np.save(path, triplets)
        command = [str(cblearn_environment()), "-c", THEIRS, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"truth": d, "found": int(said)}


def page(rows: Rows, folder: Path) -> str:
    mine = pick(rows, "nearer")
    text = "# How many dimensions?\n\n" + (__doc__ or "").split("\n\n")[1].strip() + "\n\n"
    if mine:
        said, true = pairs(mine)
        error, low, high = error_and_interval(mine)
        inside = np.mean([row["low"] <= row["truth"] <= row["high"] for row in mine])
        sure = [row for row in mine if row["low"] == row["high"]]
        right = sum(row["found"] == row["truth"] for row in sure)
        text += (
            f"{len(mine)} files. Expected calibration error {error:.3f} (bootstrap over files: "
            f"{low:.3f} to {high:.3f}). The truth is in the range in {inside:.0%} of the files; "
            f"{len(sure)} are called determined, {right} of them rightly.\n\n"
        )
        text += table(
            ["said", "pairs", "mean said", "came true"],
            (
                [f"{k / 10:.1f} to {(k + 1) / 10:.1f}", n, f"{p:.3f}", f"{y:.3f}"]
                for k, n, p, y in bins(said, said, true)
            ),
        )
        draw_picture(said, true, folder / "dimension.png")
    lines = []
    for part in ("nearer", "LORE", "cblearn"):
        some = pick(rows, part)
        if some:
            off = np.array([row["found"] - row["truth"] for row in some])
            lines.append([part, len(some), f"{np.mean(off == 0):.0%}", f"{np.abs(off).mean():.2f}"])
    return text + "\n" + table(["method", "files", "right", "mean distance"], lines)


def draw(file: int, families: tuple[str, ...]) -> tuple[NDArray[np.int64], int, int, float]:
    """Triplets, how many objects, the true dimension and the share of wrong answers."""
    rng = np.random.default_rng(file)
    d = int(rng.integers(1, 9))
    fewest, most, answers = (120, 400, 15_000) if file % 10 == 9 else (10, 120, 7_000)
    n = max(int(np.exp(rng.uniform(np.log(fewest), np.log(most)))), 2 * d + 4)
    m = max(30, int(min(np.exp(rng.uniform(np.log(1.5), np.log(60))) * n * d, answers)))
    X = points(families[rng.integers(len(families))], n, d, rng)
    questions = random_questions(n, m, rng)
    rate, near_ties = float(rng.choice(RATES)), bool(rng.random() < 0.5)
    head, a, b = X[questions.T]
    margin = np.linalg.norm(head - b, axis=1) - np.linalg.norm(head - a, axis=1)
    if rate and near_ties:
        size = np.abs(margin)
        steep = brentq(lambda s: expit(-np.exp(s) * size).mean() - rate, -20, 20)
        near = rng.random(m) < expit(np.exp(steep) * margin)
    else:
        near = (margin > 0) ^ (rng.random(m) < rate)
    return answered(questions, near), n, d, rate


def points(family: str, n: int, d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    match family:
        case "gaussian":
            return rng.normal(size=(n, d))
        case "laplace":
            return rng.laplace(size=(n, d))
        case "uneven":
            return rng.normal(size=(n, d)) * np.linspace(1, 0.6, d)
        case "cube":
            return rng.random((n, d))
        case "ball":
            X = rng.normal(size=(n, d))
            return X / np.linalg.norm(X, axis=1)[:, None] * rng.random((n, 1)) ** (1 / d)
        case _:
            return nearer.datasets.make_mixture(n, d, random_state=int(rng.integers(2**31)))


def pairs(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The probability of each dimension of each file, and whether it is the truth."""
    said = [(p, int(d) == row["truth"]) for row in rows for d, p in row["said"].items()]
    p, y = zip(*said, strict=True)
    return np.array(p), np.array(y)


def error_and_interval(rows: Rows) -> tuple[float, float, float]:
    """The error, and its 95 % interval by a bootstrap over files."""

    def error(some: Rows) -> float:
        said, true = pairs(some)
        return sum(n * abs(p - y) for _, n, p, y in bins(said, said, true)) / len(said)

    rng = np.random.default_rng(0)
    again = [error([rows[i] for i in rng.integers(len(rows), size=len(rows))]) for _ in range(200)]
    low, high = np.quantile(again, [0.025, 0.975])
    return error(rows), float(low), float(high)


def draw_picture(said: NDArray[Any], true: NDArray[Any], path: Path) -> None:
    from matplotlib.figure import Figure

    ax = Figure(figsize=(4, 4), layout="constrained").subplots()
    bin_points = list(bins(said, said, true))
    ax.plot([0, 1], [0, 1], color="0.7")
    ax.plot([p for *_, p, _ in bin_points], [y for *_, y in bin_points], marker="o")
    for _, n, p, y in bin_points:
        ax.annotate(f"{n:,}", (p, y), (6, -12), textcoords="offset points", fontsize="small")
    ax.set(xlabel="probability said of a dimension", ylabel="share that came true (how many pairs)")
    ax.figure.savefig(path, dpi=130)
