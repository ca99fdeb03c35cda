"""Fits of a file larger than memory: memory and processor time of `nearer fit`.

Positions are uniform in a square, triplets are random and right, in one Parquet file. The command
runs in a process of its own, with few steps: it measures memory and the cost of a pass. Beside it
are the bytes of the stored triplets, 12 each. The full form takes 2·10⁸ triplets, and 3 GB of
temporary files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Cell, Rows, cell, pick, table

TIMED = True
_STEPS = 4
_BLOCK = 1 << 21


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    for m in (20_000_000, 200_000_000) if full else (20_000_000,):
        for seed in range(seeds or 1):
            yield cell("fit", fitted, n=50_000, m=m, seed=seed)


def _write(path: Path, n: int, m: int, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    names = ("head", "winner", "loser")
    schema = pa.schema([(name, pa.int32()) for name in names])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, m, _BLOCK):
            size = min(_BLOCK, m - start)
            head = rng.integers(n, size=size)
            a, b = ((head + rng.integers(1, n, size=size)) % n for _ in range(2))
            b = np.where(a == b, np.where((b + 1) % n == head, (b + 2) % n, (b + 1) % n), b)
            near = np.square(X[head] - X[a]).sum(1) < np.square(X[head] - X[b]).sum(1)
            columns = (head, np.where(near, a, b), np.where(near, b, a))
            arrays = [pa.array(column.astype(np.int32)) for column in columns]
            file.write_table(pa.table(arrays, schema=schema))


def fitted(n: int, m: int, seed: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "big.parquet")
        _write(file, n, m, seed)
        command = [sys.executable, "-m", "nearer", "fit", str(file), "--out", folder, "--json"]
        command += ["--method", "soe", "--dim", "2", "--seed", str(seed), "--device", "cpu"]
        command += ["--tol", "1e-3", "--max-iter", str(_STEPS)]
        with Path(folder, "said").open("wb") as said:
            child = subprocess.Popen(command, stdout=said)
            _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"nearer fit ended with {child.returncode}")
        summary = json.loads(Path(folder, "said").read_text())
    return {
        "gib": used.ru_maxrss / 2**20,
        "stored_gib": 12 * m / 2**30,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "held_out_error": 1 - summary["held_out_accuracy"],
    }


def page(rows: Rows, folder: Path) -> str:
    heads = ["objects", "triplets", "GiB stored on disk", "GiB of memory", "processor seconds"]
    return table(
        [*heads, "held-out error"],
        (
            [
                f"{r['n']:,}",
                f"{r['m']:,}",
                f"{r['stored_gib']:.2f}",
                f"{r['gib']:.2f}",
                f"{r['processor_seconds']:.0f}",
                f"{r['held_out_error']:.4f}",
            ]
            for r in pick(rows, "fit")
        ),
    )
