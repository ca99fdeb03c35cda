"""Our own code beside the libraries that could replace it: processor time, and names on a map.

*optimiser*: fits of noisy answers by our L-BFGS and by SciPy's, from the same start to the same
loss. *pass*: one pass over 20,000 comparisons, as comparisons and as choices of one of two.
*names*: names on a map of 8 by 8 inches, ours and adjustText's; covered dots are those of objects
under a name. *request*: a request of a simulated person, and of httpx. *server*: requests to a
small application behind uvicorn, by h11 and by httptools. Parts whose library is not installed are
left out: ``pip install adjustText httptools``.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import nearer
from benchmarks.harness import Cell, Rows, cell, distinct, grid, median, pick, table
from nearer.errors import MissingData
from nearer.fitting.likelihood import Noise, as_answers
from nearer.fitting.solver import Loss, fit_positions, prepare, random_start
from nearer.questions import answered, random_questions

TIMED = True
DOCS = "bench-libraries.md"
SIZES = (60, 150, 300, 1000)
REQUESTS = 3000
APPLICATION = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    head = [(b"content-type", b"application/json"), (b"content-length", b"11")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b'{"ok":true}'})

import sys, uvicorn
uvicorn.run(app, port=int(sys.argv[1]), http=sys.argv[2], log_level="error", access_log=False)
"""


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    runs = range(seeds or (5 if full else 3))
    yield from grid("optimiser", optimiser, loss=("logistic", "soe"), n=SIZES, seed=runs)
    yield cell("pass", one_pass)
    yield from grid("names", names, n=(85, 400), by=("nearer", "adjustText"))
    yield from grid("request", request, by=("nearer", "httpx2"))
    yield from grid("server", server, by=("h11", "httptools"))


def optimiser(loss: str, n: int, seed: int) -> dict[str, float]:
    """Milliseconds of a fit by either optimiser, to within a millionth of the better loss."""
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    questions = random_questions(n, 60 * n, rng)
    oracle: Any = nearer.PointOracle(X)
    noisy = loss == "logistic"
    if noisy:
        oracle = nearer.NoisyOracle(oracle, 0.1, random_state=seed)
    passes = prepare(answered(questions, oracle(questions)), n, None)
    start = random_start(n, 3, rng)
    kind, ridge = (Loss(loss, 0.05), 1e-4) if noisy else (Loss(loss), 0.0)

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = passes.sums(kind, flat.reshape(n, 3))
        slope = gradient.ravel() / passes.total + ridge * flat
        return value / passes.total + 0.5 * ridge * float(flat @ flat), slope

    def ours() -> float:
        how: dict[str, Any] = {"ridge": ridge, "max_iter": 1000, "tol": 1e-7}
        return objective(fit_positions(passes, loss=kind, start=start, **how).positions.ravel())[0]

    def scipys() -> float:
        options = {"maxiter": 1000, "ftol": 1e-7, "gtol": 0.0}
        how: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": options}
        with threadpool_limits(1, "blas"):  # on short vectors threads only wait for each other
            return float(minimize(objective, start.ravel(), **how).fun)

    figures: dict[str, float] = {}
    for name, fit in (("ours", ours), ("scipys", scipys)):
        fit()  # compiles
        figures[f"{name} loss"], figures[f"{name} ms"] = _timed(fit)
    return figures


def one_pass() -> dict[str, float]:
    """Milliseconds of a pass over 20,000 comparisons in either form."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    questions = random_questions(100, 20_000, rng)
    rows, noise = answered(questions, nearer.PointOracle(X)(questions)), Noise(3.0, 0.05)
    forms = {"comparisons": as_answers(rows, 100)}
    forms["choices"] = as_answers(nearer.Trials.from_triplets(rows), 100)
    figures = {}
    for name, answers in forms.items():
        answers.sums(X, noise)
        figures[f"{name} ms"] = _timed(lambda answers=answers: answers.sums(X, noise))[1]
    return figures


def names(n: int, by: str) -> dict[str, float]:
    """Seconds for the names of a map; how many there are, overlap, and cover dots."""
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    X = np.random.default_rng(n).normal(size=(n, 2))
    labels = [f"object {i}" for i in range(n)]
    figure = Figure(figsize=(8, 8))
    ax = figure.add_subplot()
    start = time.process_time()
    if by == "nearer":
        nearer.plotting.plot_positions(X, labels=labels, ax=ax)
        texts = list(ax.texts)
    else:
        ax.scatter(*X.T, s=30)
        texts = [ax.text(x, y, label, fontsize=6) for (x, y), label in zip(X, labels, strict=True)]
        _library("adjustText").adjust_text(texts, ax=ax)
    figure.draw_without_rendering()
    seconds = time.process_time() - start
    written = [text for text in texts if text.get_text() in labels]
    boxes = np.array([Text.get_window_extent(text).extents for text in written])  # without lines
    dots = ax.transData.transform(X)
    inside = (dots[:, None] > boxes[:, :2] + 0.5) & (dots[:, None] < boxes[:, 2:] - 0.5)
    overlap = sum(
        bool((np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) > 0.5).all())
        for a, b in combinations(boxes, 2)
    )
    covered = int(inside.all(axis=2).any(axis=1).sum())
    return {"seconds": seconds, "names": len(boxes), "overlap": overlap, "covered": covered}


def request(by: str) -> dict[str, float]:
    """Milliseconds of processor time of the client for a request."""
    with _application("h11") as port:
        return {"ms": asyncio.run(_ask(port, by))}


def server(by: str) -> dict[str, float]:
    """Milliseconds of processor time of the server for a request, its start taken off."""
    _library(by)
    spent = []
    for count in (1, REQUESTS):
        before = _children()
        with _application(by) as port:
            asyncio.run(_ask(port, "nearer", count))
        spent.append(_children() - before)
    return {"ms": 1000 * (spent[1] - spent[0]) / (REQUESTS - 1)}


async def _ask(port: int, by: str, count: int = REQUESTS) -> float:
    from benchmarks._study_people import Client

    body = {"answers": [{"lease": 1, "choice": "left", "response_ms": 800.0}]}
    if by == "nearer":
        client = Client(port)
        start = time.process_time()
        for _ in range(count):
            await client.call("POST", "/", body, "token")
        client.close()
    else:
        async with _library(by).AsyncClient() as others:
            url, headers = f"http://127.0.0.1:{port}/", {"authorization": "Bearer token"}
            start = time.process_time()
            for _ in range(count):
                (await others.post(url, json=body, headers=headers)).json()
    return 1000 * (time.process_time() - start) / count


@contextmanager
def _application(http: str) -> Iterator[int]:
    """The small application in a process of its own; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", APPLICATION, str(port), http])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingData(f"{name} is not installed: pip install {name}.") from None


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the least milliseconds of processor time of five calls."""
    times = []
    for _ in range(5):
        start = time.process_time()
        result = work()
        times.append(1000 * (time.process_time() - start))
    return result, min(times)


def page(rows: Rows, folder: Path) -> str:
    text = "# Our own code beside libraries\n\n"
    text += (__doc__ or "").split("\n\n", 1)[1] + "\n"
    text += (
        "`python -m benchmarks libraries --full` makes this page; times are those of one thread.\n"
    )
    lines = []
    for loss, n in distinct(pick(rows, "optimiser"), "loss", "n"):
        some = pick(rows, "optimiser", loss=loss, n=n)
        ours, scipys = (median(some, f"{by} ms") for by in ("ours", "scipys"))
        more = max(row["ours loss"] - row["scipys loss"] for row in some)
        lines.append(
            [loss, n, f"{ours:.1f}", f"{scipys:.1f}", f"{ours / scipys:.2f}", f"{more:+.0e}"]
        )
    head = ["loss", "objects", "ours, ms", "SciPy, ms", "ratio", "our loss − SciPy's, at most"]
    text += "\n## Fits by L-BFGS\n\n" + table(head, lines)
    lines = [
        [f"{row['comparisons ms']:.2f}", f"{row['choices ms']:.2f}"] for row in pick(rows, "pass")
    ]
    text += "\n## A pass over 20,000 comparisons\n\n"
    text += table(["as comparisons, ms", "as choices, ms"], lines)
    figures = ("seconds", "names", "overlap", "covered")
    lines = [
        [row["n"], row["by"], f"{row['seconds']:.2f}", *(row[key] for key in figures[1:])]
        for row in pick(rows, "names")
    ]
    text += "\n## Names on a map\n\n"
    text += table(
        ["objects", "by", "seconds", "names", "pairs that overlap", "covered dots"], lines
    )
    for part, title in (("request", "A request, client"), ("server", "A request, server")):
        lines = [[row["by"], f"{row['ms']:.2f}"] for row in pick(rows, part)]
        text += f"\n## {title}\n\n" + table(["by", "ms"], lines)
    return text
