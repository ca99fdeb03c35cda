"""Stop at any time, continue, pay for no answer twice.

    python examples/resume.py

The oracle here fails twice, like an API whose quota is used up. The same call is repeated each
time, and the result is that of a run without interruptions.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import nearer


class QuotaUsedUp(Exception):
    """An error that an API may raise in the middle of a run."""


def main() -> None:
    """Run three times with a journal, once without, and compare."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    exact = nearer.PointOracle(X)
    paid, quota = 0, 300

    def oracle(questions: np.ndarray) -> np.ndarray:
        nonlocal paid, quota
        if quota < len(questions):
            raise QuotaUsedUp
        quota -= len(questions)
        paid += len(questions)
        return exact(questions)

    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "answers.db"
        while True:
            try:
                embedding = nearer.embed(
                    oracle, 30, journal=journal, block_size=10, random_state=0, progress=False
                )
                break
            except QuotaUsedUp:
                print(f"stopped after {paid} answers; {len(nearer.load_journal(journal))} stored")
                quota = 300
    whole = nearer.embed(exact, 30, random_state=0, progress=False)
    same = np.array_equal(embedding.positions, whole.positions)
    print(f"{paid} answers paid for, {whole.n_comparisons} needed; the same map: {same}")


if __name__ == "__main__":
    main()
