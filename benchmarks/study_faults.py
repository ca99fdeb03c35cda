"""Nothing is lost: the server is killed at random moments while people answer.

After every kill it is started again on the same file. At the end every acknowledged answer must
be in the file, none twice, with the choice that was made; the state replayed from the file must
equal the state built step by step as things happened; and the study must have gone on.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._study_people import Outcome, Server, crowd
from benchmarks.harness import Cell, Rows, grid, table
from nearer.study.board import (
    Answer,
    Board,
    Event,
    Lease,
    Participant,
    Question,
    Reply,
    read_rows,
)
from nearer.study.config import Config
from nearer.study.items import Item
from nearer.study.simulate import Crowd
from nearer.study.store import connect, new_study, read_config, replay, stored_items

TIMED = True
_PAUSE = (0.5, 3.0)  # seconds between kills


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    yield from grid("drill", killed, n_people=(200,), n_kills=(10,), seed=range(seeds or 1))


def killed(n_people: int, n_kills: int, seed: int) -> dict[str, Any]:
    """A drill in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return drill(Path(folder), n_people=n_people, n_kills=n_kills, pause=_PAUSE, seed=seed)


def snapshot(board: Board, now: float) -> dict[str, Any]:
    """Everything on a board that does not depend on the order of its rows."""
    board.expire(now)
    names = ("config", "state", "answers", "all_asked", "expected_tau", "people")
    names += ("questions", "leases", "active", "_counts")
    free = {person: set(ids) for person, ids in board.free.items() if ids}
    return {**{name: getattr(board, name) for name in names}, "free": free}


def as_it_happened(db: Any) -> Board:
    """The board of a server that was never interrupted: one row after the other, by the clock."""
    board = Board(read_config(db), stored_items(db))
    rows = list(read_rows(db))
    posed = iter([row for row in rows if isinstance(row, Question)])
    waiting = next(posed, None)
    for row in rows:
        if isinstance(row, Participant):
            board.apply(row)
    timed = sorted(
        (row for row in rows if isinstance(row, Lease | Answer | Reply | Event)),
        key=lambda row: (_when(row), isinstance(row, Answer), row.id),
    )
    for row in timed:
        board.expire(_when(row))
        if isinstance(row, Lease):
            while waiting is not None and waiting.id <= row.question:
                board.apply(waiting)
                waiting = next(posed, None)
        board.apply(row)
    while waiting is not None:
        board.apply(waiting)
        waiting = next(posed, None)
    return board


def _when(row: Lease | Answer | Reply | Event) -> float:
    if isinstance(row, Event | Reply):
        return row.at
    return row.issued if isinstance(row, Lease) else row.received


def drill(
    folder: Path, *, n_people: int, n_kills: int, pause: tuple[float, float], seed: int = 0
) -> dict[str, Any]:
    """Kill and restart; what was found."""
    path = folder / "drill.db"
    rng = np.random.default_rng(seed)
    n = 60
    items = [Item(f"item {k}", "text", f"item {k}") for k in range(n)]
    new_study(
        path,
        items,
        Config.of(
            {"method": "random", "questions": 100_000, "quality": 1.0, "lease_seconds": 5}
            | {"joins_per_minute": 0}
        ),
    )
    people = Crowd(rng.normal(size=(n, 2)), seconds=0.05 * n_people / 20, dropout=0.2)
    stop = threading.Event()
    outcome: list[Outcome] = []
    server = Server(path)
    port = server.port

    def take_part() -> None:
        outcome.append(
            asyncio.run(
                crowd(
                    port, people, n_people, seed=seed, until=lambda _: stop.is_set(), patience=120
                )
            )
        )

    thread = threading.Thread(target=take_part)
    thread.start()
    said = []
    for _ in range(n_kills):
        time.sleep(float(rng.uniform(*pause)))
        server.kill()
        said.append(server.said())
        server = Server(path, port=port)
    restarted = time.time()
    time.sleep(pause[1])
    stop.set()
    thread.join()
    server.end()
    said.append(server.said())

    db = connect(path, read_only=True)
    stored = [row[0] for row in db.execute("SELECT lease FROM answers")]
    acknowledged = outcome[0].acknowledged
    now = time.time() + 60
    return {
        "acknowledged": len(acknowledged),
        "stored": len(stored),
        "lost": len(set(acknowledged) - set(stored)),
        "twice": len(stored) - len(set(stored)),
        "same_state": snapshot(replay(db), now) == snapshot(as_it_happened(db), now),
        "after_last_kill": int(
            db.execute("SELECT count(*) FROM answers WHERE received > ?", (restarted,)).fetchone()[
                0
            ]
        ),
        "tried_again": outcome[0].unreached,
        "file": db.execute("PRAGMA integrity_check").fetchone()[0],
        "errors": [text for text in said if text],
    }


def page(rows: Rows, folder: Path) -> str:
    """A line for each drill."""
    names = ("acknowledged", "stored", "lost", "twice", "same_state", "after_last_kill", "file")
    head = ["people", "kills", "acknowledged", "stored", "lost", "twice", "state as it happened",
            "answers after the last kill", "file", "errors"]  # fmt: skip
    lines = [
        [row["n_people"], row["n_kills"], *(row[k] for k in names), len(row["errors"])]
        for row in rows
    ]
    return table(head, lines)
