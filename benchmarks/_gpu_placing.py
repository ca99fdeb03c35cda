"""Objects placed among 1,500 others on a GPU, where `nearer.embed` spends its time.

Seconds are those of choosing questions and of learning answers, two an object in each round, with
all that goes to the device and comes back; the answers themselves are not counted. Each object is
reckoned by itself, which `nearer.embed` does only once few have the same answers. NumPy, SciPy and
PyTorch are enough for ``python -m benchmarks._gpu_placing``, which prints figures of 10⁵ and 10⁶
objects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nearer.fitting.device import gpu_searches, placing_on


def _torch() -> Any:
    import torch

    return torch


def placed(n: int, d: int, heads: int) -> dict[str, float]:
    """Normal points among 1,500 others, by the searches that `nearer.embed` makes on a GPU."""
    torch, rng = _torch(), np.random.default_rng(0)
    X, anchors = rng.normal(size=(n, d)), rng.normal(size=(1_500, d))
    chain = np.sort(np.linalg.norm(anchors[:heads, None] - anchors, axis=2), axis=1)[:, 1:]
    away = np.stack([np.linalg.norm(X - head, axis=1) for head in anchors[:heads]], axis=1)
    with placing_on("cuda"):
        searched(n // 100, anchors, chain, away)  # wake it up
        torch.cuda.reset_peak_memory_stats()
        searches, seconds, asked = searched(n, anchors, chain, away)
    off = np.linalg.norm(searches.positions - X, axis=1)
    return {
        "seconds": sum(seconds),
        "begin": seconds[0],
        "slowest": max(seconds[1:]),
        "rounds": len(seconds) - 1,
        "per_object": asked / n,
        "median_error": float(np.median(off)),
        "gib": torch.cuda.max_memory_allocated() / 2**30,
    }


def searched(n: int, anchors: Any, chain: Any, away: Any) -> tuple[Any, list[float], int]:
    """The searches of n objects, the seconds of each round after those of a beginning, questions.

    Rounds and what is worth asking are as in `nearer.algorithms.slotting`, which needs Numba.
    """
    (heads, m), d = chain.shape, anchors.shape[1]
    place = np.stack([np.searchsorted(chain[h], away[:n, h]) for h in range(heads)], axis=1)
    first = np.minimum(place // (m // 8) * (m // 8), m - m // 8)  # found by bisection, in 3 rounds
    middle = anchors[:heads].mean(axis=0)
    axes = np.linalg.eigh((anchors[:heads] - middle).T @ (anchors[:heads] - middle))[1].T
    centre, sure = anchors.mean(axis=0), np.linalg.inv(1.5 * np.cov(anchors.T))
    scene = (anchors[:heads], chain, centre, sure, anchors[:150], np.vstack([axes, middle]))
    spans = {"first": first.astype(np.int32), "last": (first + m // 8).astype(np.int32)}
    with _stopwatch() as begin:
        searches = gpu_searches(*scene, start=centre + 1e-3, **spans)
    rows, seconds, asked = np.arange(n), [begin[0]], 3 * heads * n
    for turn in range(int(1.35 * d * np.log2(n) - 3 * heads) // 2):
        with _stopwatch() as choosing:
            head, member, told = searches.next_questions(rows, 1, turn == 0, 0.5)
        at = np.nonzero((head >= 0) & (told > [0.5, 0.8]))
        about, head, member = rows[at[0]], head[at], member[at]
        if not len(about):
            break
        is_nearer = away[about, head] < chain[head, member]
        with _stopwatch() as learning:
            searches.learn(about, head, member, is_nearer)
        seconds.append(choosing[0] + learning[0])
        asked += len(about)
        rows = about[np.flatnonzero(np.diff(about, prepend=-1))]
    return searches, seconds, asked


@contextmanager
def _stopwatch() -> Iterator[list[float]]:
    """Seconds until the device has done what it was told inside the block."""
    torch, seconds = _torch(), list[float]()
    start = time.perf_counter()
    yield seconds
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    seconds.append(time.perf_counter() - start)


if __name__ == "__main__":
    for _n in (100_000, 1_000_000):
        for _heads in (5, 16):
            print(json.dumps({"n": _n, "heads": _heads} | placed(_n, 3, _heads)), flush=True)
