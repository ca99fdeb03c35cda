"""Attacks on a served study, each with what it got, what it cost the server, and others' waiting.

Strangers who have read the source try what they can, while honest people answer: how long those
wait for their replies, and how the server's memory grows, is measured for every attack.
The short form has 2,000 answers in the file and four people, the full one 20,000 and ten.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import re
import socket
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._study_people import Outcome, Server, crowd
from benchmarks.harness import Cell, Rows, cell, table
from nearer.study.actions import import_answers
from nearer.study.config import Config
from nearer.study.exports import completions_csv, people_report
from nearer.study.items import Item
from nearer.study.simulate import Crowd
from nearer.study.store import Store, connect, new_study
from nearer.trials import Trials

TIMED = True
N_OBJECTS = 60
FILM = 60 * 1024 * 1024


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    n_answers, n_people = (20_000, 10) if full else (2000, 4)
    for seed in range(seeds or 1):
        yield cell("attack", attacked, n_answers=n_answers, n_people=n_people, seed=seed)


def attacked(n_answers: int, n_people: int, seed: int) -> dict[str, Any]:
    """Every attack in turn on a study of its own."""
    with tempfile.TemporaryDirectory() as folder:
        rows = attack_all(Path(folder), n_answers=n_answers, n_people=n_people, seed=seed)
    return {"attacks": rows, "unsafe": unsafe(rows)}


class Site:
    """A served study with honest people on it."""

    def __init__(self, folder: Path, n_answers: int, n_people: int, seed: int) -> None:
        self.path = folder / "attacked.db"
        self.folder = folder
        items = [Item(f"item {k}", "text", f"item {k}") for k in range(N_OBJECTS)]
        film = Item(f"item {N_OBJECTS}", "video", "", f"film {N_OBJECTS}", "video/mp4", bytes(FILM))
        settings = {"method": "random", "questions": 100_000, "joins_per_minute": 60}
        new_study(self.path, [*items, film], Config.of(settings))
        store = Store(self.path)
        rng = np.random.default_rng(seed)
        rows = [rng.choice(N_OBJECTS, 3, replace=False).tolist() for _ in range(n_answers)]
        people = [str(k % 400) for k in range(n_answers)]
        earlier = Trials.from_triplets(rows, people=people)
        store.write(lambda ledger: import_answers(ledger, earlier))
        store.close()
        self.server = Server(self.path)
        self.port = self.server.port
        self._n_people = n_people

    def call(
        self, method: str, path: str, body: Any = None, token: str = "", form: Any = None
    ) -> tuple[int, Any]:
        """One call; status and what came."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            data, headers["content-type"] = json.dumps(body).encode(), "application/json"
        if form is not None:
            data = urllib.parse.urlencode(form).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with _opener().open(request, timeout=20) as reply:
                content, status = reply.read(), reply.status
        except urllib.error.HTTPError as error:
            content, status = error.read(), error.code
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content

    def join(self, **parameters: str) -> tuple[int, Any]:
        """Come with these parameters in the link."""
        return self.call("POST", "/api/join", {"consent_version": "1", "parameters": parameters})

    def admitted(self, **parameters: str) -> Any:
        """Come again until the limit on joining lets in a person who is no part of the attack."""
        status, joined = self.join(**parameters)
        while status == 429:
            time.sleep(1)
            status, joined = self.join(**parameters)
        return joined

    def memory(self) -> float:
        """Megabytes that the server holds."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+)", status)
        return int(match[1]) / 1024 if match else float("nan")

    @contextlib.contextmanager
    def people(self) -> Iterator[Outcome]:
        """Honest people, who answer until the end of this."""
        people = Crowd(np.random.default_rng(0).normal(size=(N_OBJECTS + 1, 2)), seconds=0.1)
        stop, outcome = threading.Event(), Outcome()

        def take_part() -> None:
            asyncio.run(
                crowd(self.port, people, self._n_people, seed=time.time_ns() % 1_000_000,
                      until=lambda _: stop.is_set(), outcome=outcome)
            )  # fmt: skip

        thread = threading.Thread(target=take_part)
        thread.start()
        try:
            yield outcome
        finally:
            stop.set()
            thread.join()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Stay)


def steal_an_id(site: Site) -> dict[str, Any]:
    """Join under a known panel id of another person, then erase that person."""
    site.admitted(PROLIFIC_PID="victim")
    replies = [site.join(PROLIFIC_PID="victim") for _ in range(20)]
    return {"sessions_got": sum("token" in reply for _, reply in replies), "safe_if": 0}


def long_tokens(site: Site) -> dict[str, Any]:
    """Sixty requests with a bearer token of 8 MB."""
    for _ in range(60):
        wire = socket.create_connection(("127.0.0.1", site.port), timeout=10)
        with wire, contextlib.suppress(OSError):
            wire.sendall(b"GET /api/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ")
            for _ in range(128):
                wire.sendall(b"x" * 65536)
    return {}


def films_that_nobody_reads(site: Site) -> dict[str, Any]:
    """Thirty clients that ask for a film of 60 MB and do not read it."""
    db = connect(site.path, read_only=True)
    (sha,) = db.execute("SELECT sha FROM media").fetchone()
    db.close()
    wires = []
    for _ in range(30):
        wire = socket.create_connection(("127.0.0.1", site.port), timeout=10)
        wire.sendall(f"GET /media/{sha} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        wires.append(wire)
    time.sleep(3)
    most = site.memory()
    for wire in wires:
        wire.close()
    return {"memory_while_open_mb": round(most)}


def withdraw_again_and_again(site: Site) -> dict[str, Any]:
    """Four strangers who join, answer once and withdraw, over and over."""
    done: list[float] = []

    def stranger() -> None:
        ends = time.monotonic() + 5
        while time.monotonic() < ends:
            status, joined = site.join()
            if status != 200:
                return
            token = joined["token"]
            _, standing = site.call("POST", "/api/ready", {}, token)
            answer = {"lease": standing["trials"][0]["lease"], "choice": "left"}
            site.call("POST", "/api/answers", {"answers": [answer]}, token)
            began = time.perf_counter()
            site.call("POST", "/api/withdraw", {}, token)
            done.append(1000 * (time.perf_counter() - began))

    threads = [threading.Thread(target=stranger) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"withdrawals": len(done), "median_ms": round(float(np.median(done)), 1)}


def find_what_was_erased(site: Site) -> dict[str, Any]:
    """Look for the id of a person who withdrew in every file of the study."""
    name = f"erased-{time.time_ns()}"
    joined = site.admitted(PROLIFIC_PID=name)
    site.call("POST", "/api/withdraw", {}, joined["token"])
    for _ in range(50):
        left = [p.name for p in site.folder.iterdir() if name.encode() in p.read_bytes()]
        if not left:
            break
        time.sleep(0.2)
    return {"files_that_hold_it": left, "safe_if": []}


def invent_times(site: Site) -> dict[str, Any]:
    """Finish fifty questions at once with invented times; look for equal numbers."""
    joined = site.admitted(PROLIFIC_PID=f"bot-{time.time_ns()}")
    token = joined["token"]
    _, standing = site.call("POST", "/api/ready", {}, token)
    told_apart = 0
    for _ in range(50):
        trial = standing["trials"][0]
        things = [trial["head"], *trial["shown"]]
        told_apart += len({t["id"] for t in things}) < 3
        answer = {"lease": trial["lease"], "choice": "left", "response_ms": 900}
        _, standing = site.call("POST", "/api/answers", {"answers": [answer]}, token)
    db = connect(site.path, read_only=True)
    bot = next(p for p in people_report(db) if p.external.startswith("bot-"))
    db.close()
    return {"warnings": bot.warnings, "catch_trials_told_apart": told_apart,
            "unflagged": int("times are not true" not in bot.warnings), "safe_if": 0}  # fmt: skip


def guess_passwords(site: Site) -> dict[str, Any]:
    """Sixty guesses at the same time, under names with spaces around them; then the researcher."""
    replies: list[int] = []

    def guess(k: int) -> None:
        form = {"name": " " * (k % 20) + "ada", "password": f"guess number {k}"}
        replies.append(site.call("POST", "/login", form=form)[0])

    threads = [threading.Thread(target=guess, args=(k,)) for k in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with socket.socket() as elsewhere:  # another address of this machine
        elsewhere.bind(("127.0.0.2", 0))
        elsewhere.settimeout(10)
        elsewhere.connect(("127.0.0.1", site.port))
        body = b"name=ada&password=correct+horse"
        head = (
            "POST /login HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            "content-type: application/x-www-form-urlencoded\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        elsewhere.sendall(head.encode() + body)
        first = elsewhere.recv(200).split()[1].decode()
    return {"checked": replies.count(401), "of": 60, "researcher_from_elsewhere": first,
            "locked_out": int(first != "303"), "safe_if": 0}  # fmt: skip


def half_open(site: Site) -> dict[str, Any]:
    """1,100 connections with half a request each."""
    wires = []
    for _ in range(1100):
        with contextlib.suppress(OSError):
            wire = socket.create_connection(("127.0.0.1", site.port), timeout=5)
            wire.sendall(b"POST /api/join HTTP/1.1\r\nhost: x\r\n")
            wires.append(wire)
    began = time.perf_counter()
    status, _ = site.call("GET", "/api/study")
    took = 1000 * (time.perf_counter() - began)
    time.sleep(2)
    for wire in wires:
        wire.close()
    return {"opened": len(wires), "next_call": status, "next_call_ms": round(took),
            "shut_out": int(status != 200), "safe_if": 0}  # fmt: skip


def join_without_end(site: Site) -> dict[str, Any]:
    """A thousand people from one address."""
    got = sum(site.join()[0] == 200 for _ in range(1000))
    return {"joined": got, "of": 1000, "unlimited": int(got == 1000), "safe_if": 0}


def write_formulas(site: Site) -> dict[str, Any]:
    """Names that a spreadsheet would run, and that break a row."""
    names = [f'{start}HYPERLINK("x")\r\n1,2' for start in "=+-@\t\r"]
    for name in names:
        site.admitted(participant=name)
    db = connect(site.path, read_only=True)
    rows = list(csv.DictReader(io.StringIO(completions_csv(db, str))))
    people = db.execute("SELECT count(*) FROM persons WHERE NOT withdrawn").fetchone()[0]
    db.close()
    run = [r for r in rows if r["external"][:1] in ("=", "+", "-", "@", "\t", "\r")]
    return {"rows": len(rows), "people": people, "bad": len(run) + abs(len(rows) - people),
            "safe_if": 0}  # fmt: skip


ATTACKS: tuple[Callable[[Site], dict[str, Any]], ...] = (
    steal_an_id,
    long_tokens,
    films_that_nobody_reads,
    withdraw_again_and_again,
    find_what_was_erased,
    invent_times,
    guess_passwords,
    half_open,
    write_formulas,
    join_without_end,
)


def attack_all(
    folder: Path, *, n_answers: int, n_people: int, seed: int = 0
) -> list[dict[str, Any]]:
    """Every attack in turn; a row for each, the first for nothing at all."""
    site = Site(folder, n_answers, n_people, seed)
    try:
        form = {"name": "ada", "password": "correct horse"}
        setup = urllib.parse.urlsplit(site.server.setup).path
        assert site.call("POST", setup, form=form)[0] == 303
        outcomes = []
        with site.people() as outcome:
            time.sleep(2)
            for attack in (_nothing, *ATTACKS):
                before, seen = site.memory(), len(outcome.seconds)
                began = time.perf_counter()
                got = attack(site)
                rest = 2.0 - (time.perf_counter() - began)
                time.sleep(max(rest, 0.5))
                waits = 1000 * np.array(outcome.seconds[seen:] or [float("nan")])
                outcomes.append(
                    {
                        "attack": attack.__name__.strip("_"),
                        "memory_mb": [round(before), round(site.memory())],
                        "others_ms": {
                            "answers": len(waits),
                            "median": round(float(np.median(waits)), 1),
                            "p99": round(float(np.quantile(waits, 0.99)), 1),
                        },
                        **got,
                    }
                )
        return outcomes
    finally:
        site.server.end()


def _nothing(site: Site) -> dict[str, Any]:
    time.sleep(3)
    return {}


def unsafe(rows: list[dict[str, Any]]) -> list[str]:
    """The attacks that got what they wanted."""
    bad = []
    for row in rows:
        if "safe_if" in row:
            values = list(row.values())
            if values[-2] != row["safe_if"]:
                bad.append(row["attack"])
        if row["memory_mb"][1] - row["memory_mb"][0] > 100:
            bad.append(f"{row['attack']} (memory)")
    return bad


def page(rows: Rows, folder: Path) -> str:
    """A line for each attack: what it got, and what it cost."""
    apart = ("attack", "memory_mb", "others_ms", "safe_if")
    lines = [
        [
            row["attack"].replace("_", " "),
            ", ".join(f"{k} {v}" for k, v in row.items() if k not in apart) or "–",
            " → ".join(map(str, row["memory_mb"])),
            row["others_ms"]["median"],
            row["others_ms"]["p99"],
        ]
        for run in rows
        for row in run["attacks"]
    ]
    head = ["attack", "what it got", "memory, MB", "others' median reply, ms", "p99"]
    bad = sorted({name for run in rows for name in run["unsafe"]})
    verdict = f"These attacks succeed: {', '.join(bad)}." if bad else "No attack succeeds."
    return table(head, lines) + (f"\n{verdict}\n" if rows else "")
