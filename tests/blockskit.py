"""What tests of very many answers share: answers, files of them, and small blocks."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearer
from nearer import _fit
from nearer.questions import answered, random_questions
from nearer.scale import blocks

N = 40
WORDS = ["head", "winner", "loser"]


def triplets(m=6000, n=N, flip=0.0, seed=0):
    rng = np.random.default_rng(seed)
    oracle = nearer.PointOracle(np.random.default_rng(0).normal(size=(n, 2)))
    if flip:
        oracle = nearer.NoisyOracle(oracle, flip, random_state=seed)
    q = random_questions(n, m, rng)
    return answered(q, oracle(q))


def write(path, rows, names=WORDS, **more):
    columns = [*np.asarray(rows).T]
    pq.write_table(pa.table({**dict(zip(names, columns, strict=True)), **more}), path)
    return path


def shrink(monkeypatch):
    """Thousands are very many, and blocks are small."""
    monkeypatch.setattr(_fit, "MANY", 2000)
    monkeypatch.setattr(blocks, "BLOCK", 700)
    monkeypatch.setattr(blocks, "READ", 900)
    monkeypatch.setattr(blocks, "HELD_OUT", 300)
