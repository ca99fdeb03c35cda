"""A slow oracle on a cluster: two worker processes here, any number elsewhere.

python examples/dask_oracle.py          needs nearer[dask]
"""

from __future__ import annotations

import time

import numpy as np
from dask.distributed import Client, LocalCluster

import nearer


class SlowSimilarity:
    """Answers that take a while to compute. It travels to the workers, so it can be pickled."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X

    def __call__(self, questions: np.ndarray) -> np.ndarray:
        """Whether a is nearer to head than b is."""
        time.sleep(0.002 * len(questions))
        head, a, b = (self._X[column] for column in np.asarray(questions).T)
        return np.linalg.norm(head - a, axis=1) < np.linalg.norm(head - b, axis=1)


def main() -> None:
    """Ask a cluster, and compare with asking here."""
    X = np.random.default_rng(0).normal(size=(25, 2))
    asked = {"budget": 300, "random_state": 0, "progress": False}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        embedding = nearer.embed(
            SlowSimilarity(X),
            25,
            workers=executor,
            block_size=10,
            max_in_flight=4,
            **asked,
        )
    here = nearer.embed(nearer.PointOracle(X), 25, **asked)
    same = np.array_equal(embedding.positions, here.positions)
    print(f"{embedding.n_comparisons} answers from 2 workers; the same map as here: {same}")


if __name__ == "__main__":
    main()
