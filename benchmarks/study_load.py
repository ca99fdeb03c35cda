"""Load: 200 people at once on the real server, and how many answers a second the store takes.

Server, workers and all simulated people share the machine. "Thinking" people take a second on
average, which is faster than people are; without thinking, everybody answers at once, all the time.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._study_people import answer_all, served
from benchmarks.harness import Cell, Rows, cell, distinct, pick, summary, table
from nearer.study.actions import answer, hand_out, import_answers, join, pose, set_state
from nearer.study.config import Config
from nearer.study.items import Item
from nearer.study.simulate import Crowd
from nearer.study.store import Store, new_study
from nearer.trials import Trials

TIMED = True
N_OBJECTS = 60
_SECONDS = 5.0  # for which the store alone is loaded
_SETTINGS = {"method": "random", "questions": 100_000, "quality": 1.0, "joins_per_minute": 0}


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    for seed in range(seeds or 1):
        yield cell("store", store_rate, n_people=200, seed=seed)
        yield cell("people", http_load, n_people=200, think=1.0, n_answers=5000, seed=seed)
        yield cell("people", http_load, n_people=200, think=0.0, n_answers=8000, seed=seed)
        yield cell("restart", restart, n_answers=100_000, seed=seed)


def make(path: Path, **settings: Any) -> Path:
    items = [Item(f"item {k}", "text", f"item {k}") for k in range(N_OBJECTS)]
    new_study(
        path,
        items,
        Config.of({**_SETTINGS, **settings}),
    )
    return path


def store_rate(n_people: int, seed: int) -> dict[str, float]:
    """Answers a second that the store commits, each with the next question, synced to the disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "s.db", holdout_share=0.0, repeat_share=0.0, catch_share=0.0)
        return _rate(path, n_people, seed)


def _rate(path: Path, n_people: int, seed: int) -> dict[str, float]:
    store = Store(path, rng=np.random.default_rng(seed))
    store.write(lambda ledger: set_state(ledger, "running"))
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(N_OBJECTS, 3, replace=False) for _ in range(60_000)])
    store.write(lambda ledger: pose(ledger, rows, seen=0, seconds=0.0))
    people = [store.write(lambda ledger: join(ledger, consent="1")) for _ in range(n_people)]
    ends = time.perf_counter() + _SECONDS
    waits: list[float] = []

    def take_part(person: int) -> None:
        trials = store.write(lambda ledger: hand_out(ledger, person))
        while time.perf_counter() < ends:
            lease = trials[0].lease

            def change(ledger: Any, lease: int = lease) -> Any:
                answer(ledger, person, lease, "left", 800.0)
                return hand_out(ledger, person)

            began = time.perf_counter()
            trials = store.write(change)
            waits.append(time.perf_counter() - began)

    threads = [threading.Thread(target=take_part, args=(person,)) for person in people]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    store.close()
    return {
        "answers_per_second": len(waits) / took,
        "p99_ms": 1000 * float(np.quantile(waits, 0.99)),
    }


def http_load(n_people: int, think: float, n_answers: int, seed: int = 0) -> dict[str, float]:
    """How long a reply to an answer takes while people answer over HTTP."""
    X = np.random.default_rng(seed).normal(size=(N_OBJECTS, 2))
    with tempfile.TemporaryDirectory() as folder, served(make(Path(folder) / "s.db")) as server:
        began = time.perf_counter()
        outcome = answer_all(server.port, Crowd(X, seconds=think), n_people, n_answers, seed=seed)
        took = time.perf_counter() - began
        used = processor_seconds(server.process.pid)
    waits = 1000 * np.array(outcome.seconds)
    return {
        "answers": len(waits),
        "answers_per_second": len(waits) / took,
        "median_ms": float(np.median(waits)),
        "p99_ms": float(np.quantile(waits, 0.99)),
        "longest_ms": float(waits.max()),
        "cpu_ms_an_answer": 1000 * used / len(waits),
    }


def processor_seconds(pid: int) -> float:
    """What a process has used of a processor, which says more than the clock on a busy machine."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def restart(n_answers: int, seed: int) -> dict[str, float]:
    """How long a server takes to start on a study with many answers, and what it then holds."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(N_OBJECTS, 3, replace=False).tolist() for _ in range(n_answers)]
    earlier = Trials.from_triplets(rows, people=[str(k // 50) for k in range(n_answers)])
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "s.db")
        store = Store(path)
        store.write(lambda ledger: import_answers(ledger, earlier))
        store.close()
        began, used = time.perf_counter(), time.process_time()
        Store(path).close()
        replay, replay_cpu = time.perf_counter() - began, time.process_time() - used
        began = time.perf_counter()
        with served(path) as server:
            start, start_cpu = time.perf_counter() - began, processor_seconds(server.process.pid)
            status = Path(f"/proc/{server.process.pid}/status").read_text()
    memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return {
        "replay_s": replay,
        "replay_cpu_s": replay_cpu,
        "start_s": start,
        "start_cpu_s": start_cpu,
        "memory_mb": int(memory) / 1024,
    }


def page(rows: Rows, folder: Path) -> str:
    """Three tables; many people, the store alone, starting again."""
    figures = ("answers_per_second", "median_ms", "p99_ms", "longest_ms", "cpu_ms_an_answer")
    http = [
        [n, f"{think:g}", *(summary(runs, name, 3) for name in figures)]
        for n, think in distinct(pick(rows, "people"), "n_people", "think")
        for runs in [pick(rows, "people", n_people=n, think=think)]
    ]
    head = ["people at once", "seconds they think", "answers a second", "median reply, ms", "p99",
            "longest", "processor, ms an answer"]  # fmt: skip
    stored = [
        [runs[0]["n_people"], *(summary(runs, k, 3) for k in ("answers_per_second", "p99_ms"))]
        for runs in [pick(rows, "store")]
        if runs
    ]
    parts = ("replay_s", "replay_cpu_s", "start_s", "start_cpu_s", "memory_mb")
    again = [
        [f"{runs[0]['n_answers']:,}", *(summary(runs, name, 3) for name in parts)]
        for runs in [pick(rows, "restart")]
        if runs
    ]
    return "\n".join(
        [
            table(head, http),
            table(["threads on the store", "answers a second", "p99, ms"], stored),
            table(
                ["answers in the file", "reading them, s", "of it processor",
                 "until the server answers, s", "of it processor", "memory, MB"],
                again,
            ),
        ]
    )  # fmt: skip
