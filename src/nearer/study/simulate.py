"""A study tried out on simulated people, to say how many answers it will take.

People with known positions of the objects in mind answer over HTTP, as a browser would: they
join, take the questions they are handed, think, err, and some of them leave. The server is a
process of its own with a fresh file made from the study's items and settings; the study itself is
not touched.

A simulated person is the library's `PsychometricOracle`: near ties are guessed, plain cases are
not. Its scale is set so that the wanted share of answers to all comparisons of two differs from the
truth; on larger screens the same person chooses one thing after the other. What they see is what a
browser gets, so they know an object by its text.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.algorithms.planning import scale_of
from nearer.asking.oracles import PointOracle
from nearer.asking.simulated_people import PsychometricOracle
from nearer.errors import InvalidInput
from nearer.fitting.pace import Pace
from nearer.metrics import triplet_accuracy
from nearer.questions import answered, random_questions
from nearer.study.exports import Collected, collected, triplets
from nearer.study.items import Item
from nearer.study.maps import draw_map
from nearer.study.store import connect, new_study, read_config


class Client:
    """A connection to a server on this machine; opened again when it was lost.

    It speaks just enough HTTP/1.1 for our own server, JSON in and out. Many simulated people share
    a core with it: a request costs 0.08 ms here and 0.9 ms with httpx, as much as the server's.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._host = host
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def close(self) -> None:
        """End the connection; the next call opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def call(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """Status and reply of one request; `OSError` or `EOFError` when there is none."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            content = b"" if body is None else json.dumps(body).encode()
            head = (
                f"{method} {path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\n"
                f"authorization: Bearer {token}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(content)}\r\n\r\n"
            )
            writer.write(head.encode() + content)
            reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = re.search(r"\ncontent-length: *(\d+)", reply)
            received = await reader.readexactly(int(length[1]) if length else 0)
            return int(reply.split()[1]), json.loads(received)
        except (OSError, EOFError, asyncio.CancelledError):
            self.close()
            raise


Floats = NDArray[np.float64]
_FEW = 100  # objects whose answers' odds are kept in a table


@dataclass(frozen=True)
class Crowd:
    """How simulated people answer.

    Parameters
    ----------
    positions
        Where the objects are in everybody's mind.
    error
        Share of answers that differ from the truth, 0 to 0.5, over all comparisons of two.
    seconds
        Mean thinking time; each time is drawn from an exponential distribution.
    dropout
        Probability that a person leaves for good before finishing.
    undecided
        Probability of "can't decide".
    names
        The text of every object, by which a person recognises it; without it, its last number.
    """

    positions: Floats
    error: float = 0.2
    seconds: float = 0.0
    dropout: float = 0.0
    undecided: float = 0.0
    names: tuple[str, ...] | None = None
    oracle: Callable[[NDArray[np.int64]], NDArray[np.bool_]] = field(init=False, repr=False)
    numbers: dict[str, int] = field(init=False, repr=False)
    table: Floats | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not 0 <= self.error < 0.5:
            raise InvalidInput(f"error={self.error}: must be from 0 to below 0.5")
        for name in ("dropout", "undecided"):
            checks.probability(name, getattr(self, name))
        if not 0 <= self.seconds < math.inf:
            raise InvalidInput(f"seconds={self.seconds}: must be at least 0")
        scale = _scale(self.positions, self.error)
        oracle: Any = PointOracle(self.positions)
        if scale:
            oracle = PsychometricOracle(self.positions, scale=scale, noise="fresh", random_state=0)
        object.__setattr__(self, "oracle", oracle)
        if scale and len(self.positions) <= _FEW:  # looked up, since many share a core
            n = len(self.positions)
            every = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
            table = oracle.probability(every).reshape(n, n, n)
            object.__setattr__(self, "table", table)
        numbers = {name: k for k, name in enumerate(self.names or ())}
        object.__setattr__(self, "numbers", numbers)

    def recognise(self, thing: dict[str, Any]) -> int:
        """Which object is shown."""
        text = thing["text"] or thing["alt"]
        if self.numbers:
            return self.numbers[text]
        return int(re.findall(r"\d+", text)[-1])

    def says(
        self, query: int, shown: Sequence[int], choose: int, rng: np.random.Generator
    ) -> list[int] | str:
        """What one person chooses of the shown, best first, or why nothing; query −1 is none."""
        if self.undecided and rng.random() < self.undecided:
            return "undecided"
        left, chosen = list(shown), []
        for _ in range(choose):
            one = query if query in left else self._best(query, left, rng)  # or a catch trial
            chosen.append(one)
            left.remove(one)
        return chosen

    def _best(self, query: int, shown: list[int], rng: np.random.Generator) -> int:
        if len(shown) == 2:
            a, b = shown
            if self.table is not None:
                return a if rng.random() < self.table[query, a, b] else b
            return a if self.oracle(np.array([[query, a, b]]))[0] else b
        return shown[int(self.oracle(np.array([[query, *shown]]))[0].argmax())]


def _scale(X: Floats, error: float) -> float:
    """The scale at which the wanted share of random answers is wrong; 0: none is."""
    head, a, b = random_questions(len(X), 4000, np.random.default_rng(0)).T
    gaps = np.linalg.norm(X[head] - X[a], axis=1) - np.linalg.norm(X[head] - X[b], axis=1)
    return scale_of(gaps, error) if error and gaps.any() else 0.0


@dataclass
class Outcome:
    """What the people saw."""

    acknowledged: list[int] = field(default_factory=list)  # leases whose answers were confirmed
    seconds: list[float] = field(default_factory=list)  # how long each reply took
    people: int = 0  # who joined
    finished: int = 0
    left: int = 0
    unreached: int = 0  # calls without a reply, tried again


async def crowd(
    port: int,
    people: Crowd,
    n_people: int,
    *,
    seed: int = 0,
    until: Callable[[Outcome], bool] = lambda _: False,
    replace: bool = True,
    patience: float = 30.0,
    outcome: Outcome | None = None,
) -> Outcome:
    """Have simulated people take part, `n_people` at a time, until enough is answered.

    Parameters
    ----------
    until
        Ends it; asked after every answer.
    replace
        Whether somebody new comes for everyone who finishes or leaves.
    patience
        Seconds for which a person tries again when the server cannot be reached.
    outcome
        Where to write down what people see, for somebody who watches.
    """
    outcome = Outcome() if outcome is None else outcome
    seeds = np.random.SeedSequence(seed)

    async def seat() -> None:
        while not until(outcome):
            rng = np.random.default_rng(seeds.spawn(1)[0])
            with closing(Client(port)) as client:
                person = _Person(client, people, rng, outcome, until, patience)
                await person.take_part()
            if not replace or person.turned_away:
                return

    await asyncio.gather(*(seat() for _ in range(n_people)))
    return outcome


@dataclass
class _Person:
    """One simulated person."""

    client: Client
    people: Crowd
    rng: np.random.Generator
    outcome: Outcome
    until: Callable[[Outcome], bool]
    patience: float
    token: str = ""
    turned_away: bool = False

    async def take_part(self) -> None:
        about = await self._call("GET", "/api/study")
        number = self.rng.integers(1 << 62)
        joined = await self._call(
            "POST",
            "/api/join",
            {
                "consent_version": about["consent_version"],
                "parameters": {"participant": f"sim-{number}"},
                "browser": f"browser-{number}",  # so joining twice is one person
            },
        )
        if joined is None:
            self.turned_away = True
            return
        self.outcome.people += 1
        self.token = joined["token"]
        standing = await self._call("POST", "/api/ready", {})
        self.turned_away = standing is None or not standing["trials"]
        if self.turned_away:  # nothing is left to ask anybody
            return
        stays = self.rng.random() >= self.people.dropout
        leaves_at = self.rng.integers(1 << 30) % max(standing["questions"], 1)
        while standing and standing["trials"] and not self.until(self.outcome):
            if not stays and standing["answered"] >= leaves_at:
                self.outcome.left += 1
                return
            standing = await self._answer_one(standing["trials"][0])
        self.outcome.finished += bool(standing) and standing["stage"] == "finished"

    async def _answer_one(self, trial: dict[str, Any]) -> Any:
        think = float(self.rng.exponential(self.people.seconds)) if self.people.seconds else 0.0
        if think:
            await asyncio.sleep(think)
        answer = {"lease": trial["lease"], "response_ms": round(1000 * think, 1)}
        answer |= self._choice(trial)
        began = time.perf_counter()
        standing = await self._call("POST", "/api/answers", {"answers": [answer]})
        self.outcome.seconds.append(time.perf_counter() - began)
        if standing and trial["lease"] in standing["stored"]:
            self.outcome.acknowledged.append(trial["lease"])
        return standing

    def _choice(self, trial: dict[str, Any]) -> dict[str, Any]:
        """What the page would send for what is chosen."""
        people, two = self.people, trial["task"] == "two"
        things = [trial["left"], trial["right"]] if two else trial["shown"]
        shown = [people.recognise(thing) for thing in things]
        query = -1 if trial["head"] is None else people.recognise(trial["head"])
        said = people.says(query, shown, trial.get("choose", 1), self.rng)
        if isinstance(said, str):
            return {"choice": said}
        if two:
            return {"choice": "left" if said == shown[:1] else "right"}
        return {"choice": "chosen", "chosen": [things[shown.index(k)]["id"] for k in said]}

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        """The reply; None when the server turned it down. Tries again while there is none."""
        ends = time.monotonic() + self.patience
        pause = 0.05
        while True:
            try:
                status, reply = await self.client.call(method, path, body, self.token)
                if status < 500:
                    return reply if status < 400 else None
            except (OSError, EOFError):
                pass
            self.outcome.unreached += 1
            if time.monotonic() > ends:
                raise InvalidInput(f"{path}: the server gave no answer for {self.patience} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)


def answer_all(port: int, people: Crowd, n_people: int, n_answers: int, **options: Any) -> Outcome:
    """Run a crowd until a number of answers is confirmed."""
    enough = lambda outcome: len(outcome.acknowledged) >= n_answers  # noqa: E731
    return asyncio.run(crowd(port, people, n_people, until=enough, **options))


@contextmanager
def served(path: Path, *options: str, port: int = 0) -> Iterator[Server]:
    """The real server in a process of its own, started on a study and ended at the end."""
    server = Server(path, options, port)
    try:
        yield server
    finally:
        server.end()


class Server:
    """A running ``nearer study serve``."""

    def __init__(self, path: Path, options: tuple[str, ...] = (), port: int = 0) -> None:
        command = [sys.executable, "-m", "nearer", "study", "serve", str(path), "--start"]
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed at the end
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "--json", *options],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            self.process.communicate()
            self._close()
            raise InvalidInput(f"the server did not start: {self.said()[-500:]}")
        found = json.loads(line)
        self.port = int(found["port"])
        self.setup = found["setup"]

    def said(self) -> str:
        """What the server wrote to standard error: nothing, when all is well."""
        if not self._errors.closed:
            self._errors.seek(0)
            self._text = self._errors.read().strip()
        return self._text

    def end(self) -> None:
        """Ask the server to stop, and wait for it."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        self.process.kill()
        self.process.communicate()
        self._close()

    def _close(self) -> None:
        self.said()
        self._errors.close()


_CUTS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_PROBES = 4000
#: nothing ends a try before it has its answers, and nothing but comparisons is asked
_TRIED: dict[str, Any] = {
    "quota": 0, "quality": 1.0, "joins_per_minute": 0, "fastest_ms": 0, "before": [], "after": [],
}  # fmt: skip


def empty_copy(study: Path, copy: Path, **changes: Any) -> list[str]:
    """A new study with the settings of another, and its items as words; the words."""
    db = connect(study, read_only=True)
    config = read_config(db)
    names = [row[0] for row in db.execute("SELECT name FROM items ORDER BY id")]
    db.close()
    items = [Item(name, "text", name) for name in names]
    new_study(copy, items, config.changed({**_TRIED, **changes}))
    return names


def plan(
    study: Path,
    folder: Path,
    *,
    n_answers: int,
    n_people: int,
    positions: NDArray[np.float64] | None,
    dim: int,
    error: float,
    seconds: float,
    dropout: float,
    seed: int,
) -> dict[str, Any]:
    """Collect answers from simulated people and say how good the map is for each number of them."""
    copy = folder / "simulated.db"
    names = empty_copy(study, copy, seed=seed)
    n = len(names)
    X = np.random.default_rng(seed).normal(size=(n, dim)) if positions is None else positions
    if len(X) != n:
        raise InvalidInput(f"positions of {len(X)} items: the study has {n}")
    people = Crowd(X, error=error, seconds=seconds, dropout=dropout, names=tuple(names))
    began = time.perf_counter()
    with served(copy) as server:
        outcome = answer_all(server.port, people, n_people, n_answers, seed=seed)
    took = time.perf_counter() - began
    if not outcome.seconds:
        raise InvalidInput(f"{study}: there is nothing to ask about {n} items")
    db = connect(copy, read_only=True)
    answers, holdout = collected(db), triplets(db, ["holdout"])
    config = read_config(db)
    stored = int(db.execute("SELECT count(*) FROM standing").fetchone()[0])
    db.close()
    think = seconds or Pace().seconds(config.as_task)
    # What a row of the table costs: all answers people gave for so many that count.
    cost = stored / max(len(answers.answers), 1)
    curve = _curve(answers, holdout, X, config.n_components, seed)
    for row in curve:
        row["answers"] = round(row["n_triplets"] * cost)
        row["people"] = math.ceil(row["answers"] / config.questions)
        row["hours"] = row["answers"] * think / 3600
    return {
        "n_objects": n,
        "method": config.method,
        "task": str(config.as_task),
        "error": error,
        "answers": len(outcome.acknowledged),
        "stored": stored,
        "counted": len(answers.answers),
        "people": outcome.people,
        "dropped_out": outcome.left,
        "seconds": took,
        "seconds_an_answer": think,
        "reply_ms": {
            "median": 1000 * float(np.median(outcome.seconds)),
            "p99": 1000 * float(np.quantile(outcome.seconds, 0.99)),
        },
        "curve": curve,
    }


def _curve(
    answers: Collected,
    holdout: NDArray[np.int64],
    X: NDArray[np.float64],
    n_components: int | None,
    seed: int,
) -> list[dict[str, Any]]:
    """Agreement with the truth and with people, for growing numbers of answers that count."""
    probes = random_questions(len(X), _PROBES, np.random.default_rng(seed))
    probes = answered(probes, PointOracle(X)(probes))
    curve = []
    for cut in _CUTS:
        m = round(cut * len(answers.answers))
        found = draw_map(
            answers.first(m), len(X), n_components=n_components, seed=seed, holdout=holdout
        )
        if found is not None:
            truth = triplet_accuracy(probes, np.array(found["positions"]))
            curve.append({"n_triplets": m, "truth": truth, "holdout": found["accuracy"]})
    return curve
