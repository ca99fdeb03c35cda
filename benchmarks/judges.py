"""Judges that are slow, biased, lapsing and killed: time, τ per call, answers lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import nearer
from benchmarks.harness import Cell, Rows, cell, distinct, grid, median, pick, table
from examples.stub_server import StubServer
from nearer.asking.protocol import Strategy
from nearer.fitting.belief import Belief
from nearer.judges import ChatJudge
from nearer.questions import random_questions

TIMED = True
N = 60
WORDS = [f"text number {i:02d}" for i in range(N)]
FLIGHTS, BUDGETS = (1, 16, 64), (600, 1200, 2400)
_QUESTIONS, _ROUND = 240, 80  # of the timed run
_KILLS, _IN_FLIGHT = 10, 16


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    yield from grid("time", timed, in_flight=FLIGHTS)
    budgets, tries = (BUDGETS, 5) if full else (BUDGETS[:2], 2)
    yield from grid(
        "calls", quality, budget=budgets, chosen=(True, False), seed=range(seeds or tries)
    )
    yield cell("kill", killed, seed=0)


def _points(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    X = np.random.default_rng(seed).normal(size=(N, 2))
    return X, dict(zip(WORDS, X, strict=True))


def timed(in_flight: int) -> dict[str, float]:
    """Wall time of a run whose every call takes a second."""
    _, at = _points(0)
    strategy = nearer.adaptive(
        N, budget=_QUESTIONS, round_size=_ROUND, n_components=2, random_state=0
    )
    with StubServer(at, latency=1.0) as server:
        judge = ChatJudge("stub", endpoint=server.url, key=None)
        start = time.perf_counter()
        nearer.run(strategy, judge, objects=WORDS, max_in_flight=in_flight)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "calls": server.n_calls, "most_at_once": server.most_at_once}


def quality(budget: int, chosen: bool, seed: int) -> dict[str, float]:
    """τ from a model that lapses and favours a position, a tenth of the time each."""
    X, at = _points(seed)
    with StubServer(at, bias=0.1, lapse=0.1, random_state=seed) as server:
        judge = ChatJudge("stub", endpoint=server.url, key=None, random_state=seed)
        if chosen:
            strategy = nearer.adaptive(N, budget=budget, random_state=seed)
        else:
            strategy = _random(budget, seed)
        result = nearer.run(strategy, judge, objects=WORDS, max_in_flight=_IN_FLIGHT)
    positions = result.positions if chosen else result
    tau = nearer.metrics.mean_kendall_tau(X, positions)
    return {"tau": tau, "bias": judge.report().position_bias, "calls": server.n_calls}


def _random(budget: int, seed: int) -> Strategy[np.ndarray]:
    """Random questions, fitted as the chosen ones are."""
    rng = np.random.default_rng(seed)
    record = nearer.asking.Record()

    def ask() -> Strategy[None]:
        yield random_questions(N, budget, rng)

    yield from nearer.asking.recorded(ask(), record)
    belief = Belief(N, None, rng)
    belief.learn(record.triplets)
    belief.conclude()
    return belief.fit.positions


_SCRIPT = """
    import sys
    import numpy as np
    import nearer
    from benchmarks.judges import WORDS, _IN_FLIGHT

    judge = nearer.judges.ChatJudge("stub", endpoint=sys.argv[1], key=None)
    embedding = nearer.embed(judge, WORDS, budget=600, random_state=0, max_in_flight=_IN_FLIGHT,
                         journal=sys.argv[2], progress=False)
    np.save(sys.argv[3], embedding.positions)
"""


def killed(seed: int) -> dict[str, float]:
    """Killed with -9 ten times: what was lost, what was asked again, is the result the same."""
    _, at = _points(seed)
    again = kills = most = 0
    with tempfile.TemporaryDirectory() as folder, StubServer(at, latency=0.05) as server:
        journal, out = Path(folder) / "answers.db", Path(folder) / "out.npy"
        script = [sys.executable, "-c", textwrap.dedent(_SCRIPT), server.url, journal, out]
        stored: set[tuple[str, frozenset[str]]] = set()
        while not out.exists():
            seen, process = len(server.log), subprocess.Popen(script)
            while process.poll() is None:
                if kills < _KILLS and len(server.log) - seen >= 600 // (_KILLS + 2):
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                    break
                time.sleep(0.005)
            process.wait()
            put = [_known(text) for text in server.log[seen:]]
            again += sum(question in stored for question in put)
            before, stored = len(stored), _stored(journal)
            most = max(most, len(put) - (len(stored) - before))  # the rest was in flight
        asked = len(server.log)
        judge = ChatJudge("stub", endpoint=server.url, key=None)
        whole = nearer.embed(judge, WORDS, budget=600, random_state=0, progress=False)
        same = np.array_equal(np.load(out), whole.positions)
    return {
        "kills": kills,
        "asked": asked,
        "answers": len(stored),
        "lost": asked - len(stored),
        "most_lost": most,
        "again": again,
        "same": float(same),
    }


def _known(text: str) -> tuple[str, frozenset[str]]:
    """A question as the stand-in got it, whichever option was shown first."""
    words = [name for _, name in sorted((text.index(w), w) for w in WORDS if w in text)]
    return words[0], frozenset(words[1:])


def _stored(journal: Path) -> set[tuple[str, frozenset[str]]]:
    rows = np.asarray(nearer.load_journal(journal)).tolist()
    return {(WORDS[h], frozenset((WORDS[a], WORDS[b]))) for h, a, b in rows}


def page(rows: Rows, folder: Path) -> str:
    times = [r for r in rows if r["part"] == "time"]
    parts = [
        f"# Judges\n\n{N} texts, a stand-in for a language model.\n\n"
        f"## {_QUESTIONS} questions in rounds of {_ROUND}, each call takes 1 s\n",
        table(
            ["in flight", "seconds", "most at once"],
            [(r["in_flight"], f"{r['seconds']:.1f}", r["most_at_once"]) for r in times],
        ),
        "\n## τ for so many calls, bias .1 and lapses .1\n",
    ]
    lines = []
    for budget, chosen in distinct(pick(rows, "calls"), "budget", "chosen"):
        some = pick(rows, "calls", budget=budget, chosen=chosen)
        bias = f"{np.mean([r['bias'] for r in some]):+.3f}"
        how = "chosen" if chosen else "random"
        lines.append([budget, how, f"{median(some, 'tau'):.3f}", bias, len(some)])
    parts.append(table(["calls", "questions", "τ (median)", "position bias", "seeds"], lines))
    parts.extend(_killed(r) for r in rows if r["part"] == "kill")
    return "\n".join(parts)


def _killed(r: dict[str, float]) -> str:
    same = "identical" if r["same"] else "DIFFERENT"
    return (
        f"\n## Killed with -9\n\n{r['kills']:.0f} kills, {_IN_FLIGHT} in flight: "
        f"{r['answers']:.0f} answers in the journal, {r['lost']:.0f} lost in flight, at most "
        f"{r['most_lost']:.0f} by one kill, {r['again']:.0f} asked again that had been stored; "
        f"the result is {same}."
    )
