"""SOE here and, in full, in cblearn: same triplets, one start each, seconds, loss, ratio."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nearer
from benchmarks.harness import Cell, Rows, distinct, grid, median, pick, summary, table
from nearer.files import lock_file
from nearer.questions import answered, random_questions

TIMED = True
HOME = Path(__file__).resolve().parent.parent / ".venv-cblearn"
CASES = {
    # name: (n, triplets of a Basis run or how many random ones, at least so many times faster)
    "basis 27 K, n = 500": (500, None, 10),
    "random 38 K, n = 500": (500, 38_000, 5),
    "random 1 M, n = 10,000": (10_000, 1_000_000, 25),
}
THEIRS = """
import json, sys, time, warnings
import numpy as np
from cblearn.embedding import SOE
warnings.simplefilter("ignore")
triplets, start = np.load(sys.argv[1]), np.load(sys.argv[2])
SOE(n_components=3, n_init=1, max_iter=2).fit(triplets[:100], init=start, n_objects=len(start))
begin = time.perf_counter()
model = SOE(n_components=3, margin=1.0, n_init=1).fit(triplets, init=start, n_objects=len(start))
seconds = time.perf_counter() - begin
np.save(sys.argv[3], model.embedding_)
print(json.dumps(seconds))
"""


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    yield from grid("ours", ours, case=CASES, seed=range(seeds or 1))
    if full:
        yield from grid("theirs", theirs, case=CASES, seed=range(seeds or 1))


def ours(case: str, seed: int) -> dict[str, float]:
    triplets, start = _material(case, seed)
    nearer.SOE(1, random_state=0).fit(np.array([[0, 1, 2], [2, 1, 0]]))  # compile
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        model = nearer.SOE(3, init=start, tol=1e-7).fit(triplets, n_objects=len(start))
        times.append(time.perf_counter() - begin)
    return {"seconds": float(np.median(times)), "loss": _loss(model.embedding_, triplets)}


def theirs(case: str, seed: int) -> dict[str, float]:
    triplets, start = _material(case, seed)
    seconds, positions = _theirs(cblearn_environment(), triplets, start)
    return {"seconds": seconds, "loss": _loss(positions, triplets)}


def page(rows: Rows, folder: Path) -> str:
    lines = []
    for case in distinct(rows, "case"):
        line = [case]
        times = []
        for part in ("theirs", "ours"):
            some = pick(rows, part, case=case)
            times.append(median(some, "seconds") if some else np.nan)
            line += [summary(some, "seconds", 3), summary(some, "loss", 2)] if some else ["", ""]
        lines.append([*line, f"{times[0] / times[1]:.1f}×", f"{CASES[case][2]}×"])
    return table(["triplets", "cblearn s", "loss", "nearer s", "loss", "ratio", "wanted"], lines)


def _material(case: str, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    n, m, _ = CASES[case]
    start = np.random.default_rng(seed + 1).standard_normal((n, 3))
    return _triplets(n, m, seed), start


def _triplets(n: int, m: int | None, seed: int) -> NDArray[np.int64]:
    if m is None:
        return _of_a_basis(n, seed)
    X = nearer.datasets.make_mixture(n, 3, random_state=seed)
    questions = random_questions(n, m, np.random.default_rng(seed))
    return answered(questions, nearer.PointOracle(X)(questions))


def _of_a_basis(n: int, first: int) -> NDArray[np.int64]:
    """The answers of the first Basis run, by seed, that ranked all objects from seven heads."""
    for seed in range(100 * first, 100 * first + 100):
        X = nearer.datasets.make_mixture(n, 3, random_state=seed)
        basis = nearer.run(nearer.choose_basis(n, random_state=seed), nearer.PointOracle(X))
        if len(basis.rankings) == 7:
            return basis.triplets
    raise RuntimeError("no run with seven heads in 100 seeds")


def _loss(X: NDArray[np.float64], triplets: NDArray[np.int64]) -> float:
    """Mean soe loss at margin 1."""
    near, far = (np.linalg.norm(X[triplets[:, 0]] - X[triplets[:, c]], axis=1) for c in (1, 2))
    return float(np.mean(np.maximum(0, 1 + near - far) ** 2))


def _theirs(
    python: Path, triplets: NDArray[np.int64], start: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{name}.npy") for name in ("triplets", "start", "positions")]
        np.save(files[0], triplets)
        np.save(files[1], start)
        done = subprocess.run(
            [str(python), "-c", THEIRS, *files], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"cblearn failed:\n{done.stderr[-2000:]}")
        return float(json.loads(done.stdout.splitlines()[-1])), np.load(files[2])


def cblearn_environment() -> Path:
    """An environment of its own: cblearn 0.4.0 needs NumPy 1."""
    python = HOME / "bin" / "python"
    with lock_file(HOME.with_suffix(".lock"), wait=True):  # several cells may want it at once
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        have = [str(python), "-c", "import cblearn"]
        if subprocess.run(have, capture_output=True, check=False).returncode:
            wanted = ["cblearn==0.4.0", "numpy<2"]
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python
