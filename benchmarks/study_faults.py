"""Nothing is lost: the server is killed at random moments while people answer.

After every kill it is started again on the same file. At the end every acknowledged answer must
be in the file, none twice, with the choice that was made; the state replayed from the file must
equal the state built step by step as things happened; and the study must have gone on.

    python -m benchmarks.study_faults                 200 people, ten kills
"""

from __future__ import annotations

import asyncio
import heapq
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from nearer.study.board import Board, Lease, Question
from nearer.study.config import Config
from nearer.study.create import new_study
from nearer.study.imports import Item
from nearer.study.log import replay
from nearer.study.simulate import Crowd, Outcome, Server, crowd
from nearer.study.store import connect


def as_it_happened(db: Any, rule: str) -> Board:
    """The board of a server that was never interrupted: one event after the other, by the clock."""
    board = Board(rule)
    for (person,) in db.execute("SELECT id FROM people ORDER BY id"):
        board.add_person(person)
    posed = {
        row[0]: row
        for row in db.execute("SELECT id, head, a, b, purpose, person, repeats FROM posed")
    }
    pending = iter(sorted(posed))
    next_question = next(pending, None)
    leases = (
        (issued, 0, row)
        for issued, *row in db.execute(
            "SELECT issued, id, question, person, a_left, expires FROM leases ORDER BY id"
        )
    )
    answers = (
        (received, 1, row)
        for received, *row in db.execute(
            "SELECT received, lease, choice, near FROM answers ORDER BY id"
        )
    )
    for at, kind, row in heapq.merge(leases, answers, key=lambda event: event[:2]):
        board.expire(at)
        if kind == 0:
            lease, question, person, a_left, expires = row
            while next_question is not None and next_question <= question:
                board.add_question(Question(*posed[next_question]))
                next_question = next(pending, None)
            board.add_lease(Lease(lease, question, person, bool(a_left), expires))
        else:
            board.add_answer(*row)
    while next_question is not None:
        board.add_question(Question(*posed[next_question]))
        next_question = next(pending, None)
    return board


def drill(
    folder: Path, *, n_people: int, n_kills: int, pause: tuple[float, float], seed: int = 0
) -> dict[str, Any]:
    """Kill and restart; what was found."""
    path = folder / "drill.db"
    rng = np.random.default_rng(seed)
    n = 60
    items = [Item(f"item {k}", "text", f"item {k}") for k in range(n)]
    new_study(
        path, items, Config.of({"method": "random", "questions": 100_000, "lease_seconds": 5})
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
        "people": n_people,
        "kills": n_kills,
        "acknowledged": len(acknowledged),
        "stored": len(stored),
        "lost": len(set(acknowledged) - set(stored)),
        "twice": len(stored) - len(set(stored)),
        "same_state": replay(db, "1").snapshot(now) == as_it_happened(db, "1").snapshot(now),
        "after_last_kill": int(
            db.execute("SELECT count(*) FROM answers WHERE received > ?", (restarted,)).fetchone()[
                0
            ]
        ),
        "tried_again": outcome[0].unreached,
        "file": db.execute("PRAGMA integrity_check").fetchone()[0],
        "errors": [text for text in said if text],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = drill(
            Path(folder), n_people=200, n_kills=10, pause=(0.5, 3.0), seed=int(time.time())
        )
    print(json.dumps(found, indent=2))
    good = found["lost"] == found["twice"] == 0 and found["same_state"] and found["after_last_kill"]
    if not good or found["file"] != "ok":
        sys.exit("answers were lost, doubled or misplaced")


if __name__ == "__main__":
    main()
