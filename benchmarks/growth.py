"""Growth of ChooseBasis from 10³ to 10⁵ objects: time, memory, comparisons, and the exponents."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

import nearer


def main() -> None:
    nearer.run(nearer.choose_basis(100, random_state=0), _oracle(100))  # compile
    rows = [_measure(n) for n in (1_000, 3_162, 10_000, 31_623, 100_000)]
    print("       n  dimension  heads  comparisons  rounds  seconds  peak MiB  bytes/(n·heads)")
    for n, basis, seconds, peak in rows:
        heads = len(basis.rankings)
        print(
            f"{n:8,}  {basis.dimension:9}  {heads:5}  {basis.n_comparisons:11,}  "
            f"{basis.n_rounds:6,}  {seconds:7.3f}  {peak / 2**20:8.1f}  {peak / n / heads:15.0f}"
        )
    sizes = np.log([row[0] for row in rows])
    for what, values in {
        "seconds": [row[2] for row in rows],
        "comparisons": [row[1].n_comparisons for row in rows],
        "peak memory": [row[3] for row in rows],
    }.items():
        exponent = np.polyfit(sizes, np.log(values), 1)[0]
        print(f"{what} grow as n^{exponent:.2f}")


def _oracle(n: int) -> nearer.PointOracle:
    return nearer.PointOracle(nearer.datasets.make_cube(n, 3, random_state=n))


def _measure(n: int) -> tuple[int, nearer.Basis, float, int]:
    oracle = _oracle(n)
    times = []
    for _ in range(3 if n <= 10_000 else 1):
        start = time.perf_counter()
        basis = nearer.run(nearer.choose_basis(n, random_state=0), oracle)
        times.append(time.perf_counter() - start)
    tracemalloc.start()
    nearer.run(nearer.choose_basis(n, random_state=0), oracle)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return n, basis, min(times), peak


if __name__ == "__main__":
    main()
