"""Running: names, many at once, patience, money, Ctrl-C."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

import nearer
from nearer.errors import BudgetSpent, InvalidInput, OracleError

X = np.random.default_rng(0).normal(size=(30, 2))
EXACT = nearer.PointOracle(X)
NAMES = [f"thing {i}" for i in range(30)]


def near(h, a, b):
    h, a, b = (X[NAMES.index(name)] for name in (h, a, b))
    return bool(np.linalg.norm(h - a) < np.linalg.norm(h - b))


def judge(questions):
    assert all(isinstance(question, tuple) and len(question) == 3 for question in questions)
    return [near(*question) for question in questions]


async def slow_judge(questions):
    await asyncio.sleep(0.001)
    return judge(questions)


# names


def test_objects_are_what_the_user_has():
    plain = nearer.embed(EXACT, 30, budget=150, random_state=0, progress=False)
    named = nearer.embed(judge, NAMES, budget=150, random_state=0, progress=False)
    np.testing.assert_array_equal(plain.positions, named.positions)
    assert plain.names is None
    assert named.names == tuple(NAMES)
    column = pd.DataFrame({"name": NAMES})["name"]
    from_column = nearer.embed(judge, column, budget=150, random_state=0, progress=False)
    np.testing.assert_array_equal(named.positions, from_column.positions)
    assert from_column.names == tuple(NAMES)
    assert {text.get_text() for text in named.plot().texts} & set(NAMES)


def test_new_objects_are_placed_by_name():
    old = nearer.embed(judge, NAMES[:25], random_state=0, progress=False)
    numbers = nearer.embed(EXACT, 25, random_state=0, progress=False)
    placed = old.place(judge, NAMES[25:])
    np.testing.assert_array_equal(
        placed.positions, numbers.place(EXACT, np.arange(25, 30)).positions
    )


def test_an_oracle_that_counts_its_objects_speaks_of_numbers():
    embedding = nearer.embed(EXACT, NAMES, random_state=0, progress=False)
    assert embedding.names == tuple(NAMES)
    with pytest.raises(InvalidInput, match="31 objects: the oracle knows only 30"):
        nearer.embed(EXACT, 31)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (["a", "b", "a"], "objects 0 and 2 are both 'a'"),
        (["a", "b"], "at least 3 objects"),
        ("30", "n_objects='30'"),
        (2.5, "n_objects=2.5"),
        (X, "pass one column"),
        (set(NAMES), "objects is a set"),
        (pd.DataFrame({"name": NAMES}), "pass one column"),
    ],
)
def test_bad_objects_are_named(objects, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.embed(judge, objects)


def test_points_instead_of_an_oracle_are_refused_with_what_an_oracle_is():
    with pytest.raises(InvalidInput, match=r"nearer\.PointOracle\(X\)"):
        nearer.embed(X, 30)


# many at once


def scrambled(questions):
    """Answers that come in another order than the questions went out."""
    time.sleep(float(questions[0].sum() % 7) / 1000)
    return EXACT(questions)


def test_the_result_is_the_same_however_many_answer():
    wanted = nearer.embed(EXACT, 30, budget=150, random_state=0, progress=False).positions
    call = {"budget": 150, "random_state": 0, "progress": False}
    with ThreadPoolExecutor(3) as pool:
        for how in ({"workers": 8}, {"workers": 3, "block_size": 7}, {"workers": pool}):
            embedding = nearer.embed(scrambled, 30, **call, **how)
            np.testing.assert_array_equal(embedding.positions, wanted)
    embedding = nearer.embed(slow_judge, NAMES, **call)
    np.testing.assert_array_equal(embedding.positions, wanted)


def test_processes_answer():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        result = nearer.run(
            nearer.algorithms.rand_soe(30, budget=60, random_state=0),
            EXACT,
            workers=pool,
            block_size=20,
        )
    wanted = nearer.run(nearer.algorithms.rand_soe(30, budget=60, random_state=0), EXACT)
    np.testing.assert_array_equal(result.positions, wanted.positions)


@pytest.mark.filterwarnings("ignore::nearer.errors.AnswersWarning")  # few answers
def test_an_async_oracle_is_asked_inside_a_running_loop():
    async def notebook():
        return nearer.embed(slow_judge, NAMES, budget=100, random_state=0, progress=False)

    assert asyncio.run(notebook()).n_comparisons == 100


@pytest.mark.parametrize("kind", ["threads", "async"])
def test_no_more_calls_are_under_way_than_allowed(kind):
    lock, now, most = threading.Lock(), 0, 0
    gate = threading.Barrier(6)  # opens when six calls are under way

    def enter(by):
        nonlocal now, most
        with lock:
            now += by
            most = max(most, now)

    def oracle(questions):
        enter(1)
        gate.wait(60)
        enter(-1)
        return EXACT(questions)

    async def later(questions):
        enter(1)
        await asyncio.sleep(0.005)
        enter(-1)
        return EXACT(questions)

    strategy = nearer.algorithms.rand_soe(30, budget=60, random_state=0)
    if kind == "threads":
        nearer.run(strategy, oracle, workers=6)
    else:
        nearer.run(strategy, later, max_in_flight=6)
    assert most == 6


def test_a_slow_block_does_not_hold_up_the_journal(tmp_path):
    """While one call hangs, the answers of all the others are on the disk already."""
    journal, stored, hanging = tmp_path / "answers.db", [], threading.Event()
    strategy = nearer.algorithms.rand_soe(30, budget=40, random_state=0)
    first = threading.Lock()

    def oracle(questions):
        if first.acquire(blocking=False):
            hanging.wait(60)
        return EXACT(questions)

    def watch(comparisons, rounds):
        stored.append(len(nearer.load_journal(journal)))
        if comparisons == 39:
            hanging.set()

    nearer.run(strategy, oracle, workers=4, journal=journal, progress=watch)
    assert stored[-1] == 40
    assert 39 in stored


# patience and money


def test_what_the_caller_names_is_tried_again():
    failures = {}
    lock = threading.Lock()

    def oracle(questions):
        key = tuple(questions[0].tolist())
        with lock:
            failures[key] = failures.get(key, 0) + 1
            if failures[key] <= 2:
                raise ConnectionError("busy")
        return EXACT(questions)

    strategy = nearer.algorithms.rand_soe(30, budget=40, random_state=0)
    result = nearer.run(strategy, oracle, workers=8, retry=ConnectionError, pause=0.001)
    assert result.n_comparisons == 40
    failures.clear()
    with pytest.raises(ConnectionError, match="busy"):
        nearer.run(
            nearer.algorithms.rand_soe(30, budget=40, random_state=0),
            oracle,
            workers=8,
            retry=(ConnectionError,),
            retries=1,
            pause=0.001,
        )
    failures.clear()
    with pytest.raises(ConnectionError):
        nearer.run(
            nearer.algorithms.rand_soe(30, budget=40, random_state=0),
            oracle,
            retry=OSError,
            retries=0,
        )


@pytest.mark.parametrize("kind", ["function", "threads", "async"])
def test_a_call_that_hangs_is_ended_and_made_again(kind):
    calls = []
    hang = threading.Event()

    def oracle(questions):
        calls.append(len(questions))
        if len(calls) == 2:
            hang.wait(60)
        return EXACT(questions)

    async def later(questions):
        calls.append(len(questions))
        if len(calls) == 2:
            await asyncio.sleep(60)
        return EXACT(questions)

    how = {"workers": 2} if kind == "threads" else {}
    result = nearer.run(
        nearer.algorithms.rand_soe(30, budget=12, random_state=0),
        later if kind == "async" else oracle,
        timeout=0.3,
        pause=0.001,
        block_size=3,
        **how,
    )
    hang.set()
    assert result.n_comparisons == 12
    assert len(calls) >= 5  # a slow machine may give up others, too


def test_an_oracle_that_always_hangs_is_named():
    async def never(questions):
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError, match=r"not answered within timeout=0\.05 seconds, 2 times"):
        nearer.run(
            nearer.algorithms.rand_soe(30, budget=12), never, timeout=0.05, retries=1, pause=0.001
        )


def test_money_runs_out_and_the_best_so_far_is_returned():
    seen = []
    embedding = nearer.embed(
        EXACT,
        30,
        noise=0.1,
        random_state=0,
        workers=4,
        cost=lambda block: 0.25 * len(block),
        max_cost=50,
        progress=lambda *counts: seen.append(counts),
    )
    assert embedding.n_comparisons == 200
    assert seen[-1][0] == 200
    assert seen[-1][2] == pytest.approx(50)
    assert seen[-1][3] == 200
    calls = nearer.run(
        nearer.algorithms.rand_soe(30, budget=100, random_state=0), EXACT, block_size=5, max_calls=7
    )
    assert calls.n_comparisons == 35


def test_a_price_that_is_known_afterwards_counts_too():
    def oracle(questions):
        return nearer.PricedAnswers(EXACT(questions).tolist(), cost=0.5)

    result = nearer.run(
        nearer.algorithms.rand_soe(30, budget=100, random_state=0),
        oracle,
        block_size=1,
        max_cost=10,
    )
    assert result.n_comparisons == 20


def test_an_algorithm_without_a_result_says_which_limit_was_reached():
    with pytest.raises(BudgetSpent, match="max_cost=1: it is spent before"):
        nearer.run(nearer.rank_objects(0, 30), EXACT, cost=len, max_cost=1)


def test_a_failure_waits_for_what_is_paid_for(tmp_path):
    journal = tmp_path / "answers.db"
    calls = []

    async def oracle(questions):
        calls.append(len(questions))
        if len(calls) == 4:
            raise RuntimeError("no more")
        await asyncio.sleep(0.05)
        return EXACT(questions)

    with pytest.raises(RuntimeError, match="no more") as failed:
        nearer.run(
            nearer.algorithms.rand_soe(30, budget=40, random_state=0),
            oracle,
            max_in_flight=4,
            journal=journal,
        )
    assert "3 answers are stored" in failed.value.__notes__[0]


CTRL_C = """
    import asyncio, sys, time
    import numpy as np
    import nearer

    X = np.random.default_rng(0).normal(size=(30, 2))
    exact = nearer.PointOracle(X)
    calls = 0

    async def oracle(questions):
        global calls
        calls += 1
        with open(sys.argv[2], "a") as log:
            log.write("x")
        await asyncio.sleep(0.05 if calls <= 8 else 60)
        return exact(questions)

    try:
        nearer.embed(oracle, 30, random_state=0, journal=sys.argv[1], max_in_flight=8,
                     progress=False)
    except KeyboardInterrupt as stop:
        print(calls, *stop.__notes__)
"""


def test_ctrl_c_stops_paying_at_once_and_keeps_what_came(tmp_path):
    journal, log = tmp_path / "answers.db", tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CTRL_C), str(journal), str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and len(log.read_text()) == 16):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)  # the calls under way take 60 seconds
    assert out.startswith("16 8 answers are stored"), out + err
    assert len(nearer.load_journal(journal)) == 8


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"workers": 0}, "workers=0"),
        ({"workers": "many"}, "workers='many'"),
        ({"max_in_flight": 1.5}, "max_in_flight=1.5"),
        ({"block_size": 0}, "block_size=0"),
        ({"timeout": -1}, "timeout=-1"),
        ({"retry": "all"}, "retry='all'"),
        ({"retries": -1}, "retries=-1"),
        ({"pause": -1}, "pause=-1"),
        ({"workers": 4, "max_in_flight": 2}, "async oracles and executors: give one"),
        ({"cost": 0.01}, "cost=0.01: must be a function"),
        ({"max_cost": -1}, "max_cost=-1"),
        ({"worker": 4}, "worker=4: no such option; there are .*workers"),
        ({"seed": 0}, "seed=0: no such option; there are .*random_state"),
    ],
)
def test_bad_options_are_named(how, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.embed(EXACT, 30, progress=False, **how)


def test_workers_of_an_async_oracle_are_in_flight():
    with pytest.raises(InvalidInput, match="max_in_flight="):
        nearer.embed(slow_judge, NAMES, workers=4)


def test_an_oracle_that_answers_wrongly_shaped_is_named():
    async def wrong(questions):
        return [True] * 3

    with pytest.raises(OracleError, match=r"shape \(3,\) for 1 questions"):
        nearer.embed(wrong, NAMES, progress=False)


@pytest.mark.filterwarnings("ignore:.*no better than by guessing")
@pytest.mark.filterwarnings("ignore::nearer.errors.AnswersWarning")  # few answers
def test_a_line_on_the_terminal_counts_what_is_paid_for(monkeypatch):
    from nearer.asking import progress

    said = []

    class Line(progress.TerminalLine):
        def update(self, task_id, *, description, **options):
            said.append(description)

    monkeypatch.setattr(progress, "TerminalLine", Line)
    nearer.embed(EXACT, 30, budget=50, noise=0.1, cost=len, random_state=0)
    assert said[-1] == "asking: 50 comparisons in 3 rounds; 3 calls, 50.00 spent"
    nearer.embed(EXACT, 30, budget=50, noise=0.1, random_state=0)
    assert said[-1] == "asking: 50 comparisons in 3 rounds"
