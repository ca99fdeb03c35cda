"""Simulated people who answer over HTTP, as a browser would, and the server that they answer.

`nearer study simulate` runs people and study in one process and in simulated time. Here the real
server is loaded, killed and attacked: people join, take the questions they are handed, think, err,
and some of them leave. They see what a browser gets, so they know an object by its text.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearer.errors import InvalidInput
from nearer.study.simulate import Crowd


class Client:
    """A connection to a server on this machine; opened again when it was lost.

    It speaks just enough HTTP/1.1 for our own server, JSON in and out. Many simulated people share
    a core with it: a request costs 0.05 ms here and 0.5 ms with httpx, nearly the server's work.
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


def recognise(thing: dict[str, Any]) -> int:
    """Which object is shown: the last number of its text."""
    return int(re.findall(r"\d+", thing["text"] or thing["alt"])[-1])


@dataclass
class Outcome:
    """The observations of the people."""

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
    """Let simulated people take part, `n_people` at a time, until there are enough answers.

    Parameters
    ----------
    until
        Ends it; asked after every answer.
    replace
        Whether a new person replaces each one who finishes or leaves.
    patience
        Seconds for which a person tries again when the server cannot be reached.
    outcome
        The object to fill, which another thread may watch.
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
        if self.turned_away:  # there is nothing left to ask
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
        """The call of the page for a choice."""
        two = trial["task"] == "two"
        things = trial["shown"]
        shown = [recognise(thing) for thing in things]
        query = -1 if trial["head"] is None else recognise(trial["head"])
        said = self.people.says(query, shown, trial.get("choose", 1))
        if isinstance(said, str):
            return {"choice": said}
        if two:
            return {"choice": "left" if said == shown[:1] else "right"}
        return {"choice": "chosen", "chosen": [things[shown.index(k)]["id"] for k in said]}

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        """The reply, after repeated tries; None if the server refused the call."""
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
        output = json.loads(line)
        self.port = int(output["port"])
        self.setup = output["setup"]

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
