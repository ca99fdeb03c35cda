"""SOE here and in cblearn: same triplets, one start each, seconds, loss, ratio."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nearer

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


def main() -> None:
    python = cblearn_environment()
    warm = np.array([[0, 1, 2], [2, 1, 0]])
    nearer.SOE(1, random_state=0).fit(warm)  # compile
    print(
        f"{'triplets':24} {'cblearn':>9} {'loss':>9} {'nearer':>9} {'loss':>9} {'ratio':>7}  wanted"
    )
    for name, (n, m, wanted) in CASES.items():
        triplets = _triplets(n, m)
        start = np.random.default_rng(1).standard_normal((n, 3))
        theirs, their_positions = _theirs(python, triplets, start)
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            model = nearer.SOE(3, init=start, tol=1e-7).fit(triplets, n_objects=n)
            times.append(time.perf_counter() - begin)
        ours = float(np.median(times))
        losses = [_loss(their_positions, triplets), _loss(model.embedding_, triplets)]
        print(
            f"{name:24} {theirs:8.2f}s {losses[0]:9.1e} {ours:8.3f}s {losses[1]:9.1e} "
            f"{theirs / ours:6.1f}×  {wanted}×",
            flush=True,
        )


def _triplets(n: int, m: int | None) -> NDArray[np.int64]:
    rng = np.random.default_rng(0)
    if m is None:
        return _of_a_basis(n)
    X = nearer.datasets.make_mixture(n, 3, random_state=0)
    rows = rng.integers(n, size=(m + m // 10 + 100, 3))
    distinct = (rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])
    rows = rows[distinct][:m]
    near, far = (np.sum((X[rows[:, 0]] - X[rows[:, c]]) ** 2, axis=1) for c in (1, 2))
    return np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]])


def _of_a_basis(n: int) -> NDArray[np.int64]:
    """The answers of the first Basis run, by seed, that ranked all objects from seven heads."""
    for seed in range(100):
        X = nearer.datasets.make_mixture(n, 3, random_state=seed)
        basis = nearer.run(nearer.choose_basis(n, random_state=seed), nearer.PointOracle(X))
        if len(basis.rankings) == 7:
            return basis.triplets
    sys.exit("no run with seven heads in 100 seeds")


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
            sys.exit(f"cblearn failed:\n{done.stderr[-2000:]}")
        return float(json.loads(done.stdout.splitlines()[-1])), np.load(files[2])


def cblearn_environment() -> Path:
    """An environment of its own: cblearn 0.4.0 needs NumPy 1."""
    python = HOME / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    has = subprocess.run([str(python), "-c", "import cblearn"], capture_output=True, check=False)
    if has.returncode:
        wanted = ["cblearn==0.4.0", "numpy<2"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


if __name__ == "__main__":
    main()
