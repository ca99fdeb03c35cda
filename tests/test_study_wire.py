"""Requests without end, halves of requests, connections that rest: what the door does with them."""

import asyncio
import contextlib
import hashlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from studykit import make_study

from benchmarks._study_people import served
from nearer.study import app as server_app
from nearer.study.app import create_app
from nearer.study.auth import Signer
from nearer.study.config import Config
from nearer.study.items import Item
from nearer.study.store import new_study
from nearer.study.web import Study


def test_long_tokens_are_refused_unread_and_nothing_is_stored():
    signer = Signer(b"k" * 32)
    assert signer.read("person", "x" * 8_000_000 + ".y") is None
    assert not [v for v in vars(signer).values() if hasattr(v, "cache_info")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = make_study(tmp_path_factory.mktemp("served") / "s.db", questions=1000)
    with served(path) as running:
        yield running


def say(port, *pieces, wait=5.0):
    """Raw bytes to the server; what it says until it closes or nothing comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as wire:
        said = b""
        with contextlib.suppress(OSError):
            for piece in pieces:
                wire.sendall(piece)
            while chunk := wire.recv(65536):
                said += chunk
        return said


def memory(process):
    with open(f"/proc/{process.pid}/status") as lines:
        return int(re.search(r"VmRSS:\s+(\d+)", lines.read())[1]) / 1024


def test_headers_without_end_are_cut_off(server):
    before = memory(server.process)
    long = [b"x" * 65536] * 128
    for _ in range(20):
        head = b"GET /api/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
        said = say(server.port, head, *long, b"\r\n\r\n")
        assert said == b"" or b" 400 " in said.splitlines()[0]
    assert memory(server.process) - before < 30
    assert server.said() == ""


def test_half_open_requests_do_not_close_the_door(server):
    """More connections than the server may hold, each with half a request."""
    import resource

    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)  # as it set it for itself
    half = []
    try:
        for _ in range(1500):
            with contextlib.suppress(OSError):
                wire = socket.create_connection(("127.0.0.1", server.port), timeout=5)
                wire.sendall(b"POST /api/join HTTP/1.1\r\nhost: x\r\n")
                half.append(wire)
        began = time.perf_counter()
        said = say(server.port, b"GET /api/study HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert b" 200 " in said.splitlines()[0]
        assert time.perf_counter() - began < 3
    finally:
        for wire in half:
            wire.close()


@pytest.mark.slow
def test_a_half_request_is_hung_up_on(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=50) as wire:
        wire.sendall(b"GET /api/study HTTP/1.1\r\n")
        assert wire.recv(100) == b"", "closed by the server after thirty seconds"


def test_a_head_comes_without_its_body(server):
    said = say(server.port, b"HEAD /login HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert b" 200 " in said.splitlines()[0]
    assert said.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("host", [b"", b"host: [\r\n", b"host: a b\r\n"])
@pytest.mark.parametrize("path", [b"/", b"/none", b"/login", b"/dashboard"])
def test_a_request_without_a_true_host_is_answered(server, path, host):
    head = b" HTTP/1.0\r\naccept: text/html\r\norigin: http://[\r\n" + host + b"\r\n"
    for method in (b"GET ", b"POST "):
        said = say(server.port, method + path + head)
        assert b" 500 " not in said.splitlines()[0]
    assert server.said() == ""


def test_trailers_without_end_are_cut_off(server):
    """They come after the body, where no limit on the head holds."""
    before = memory(server.process)
    for path in (b"/api/join", b"/api/researcher/items"):
        head = b"POST " + path + b" HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        say(server.port, head, b"2\r\n{}\r\n0\r\n", *[b"x: " + b"y" * 60_000 + b"\r\n"] * 500)
    assert memory(server.process) - before < 30
    assert server.said() == ""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """A server that waits two seconds instead of thirty, and what it prints."""
    path = tmp_path_factory.mktemp("impatient") / "s.db"
    sound = Item("long", "sound", mime="audio/wav", content=bytes(30_000_000))
    new_study(path, [sound, Item("a", "text", "a"), Item("b", "text", "b")], Config.of({}))
    code = "from nearer.study import app; app._SECONDS = 2.0; from nearer.cli import main; main()"
    command = [sys.executable, "-uc", code, "study", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = "".join(process.stdout.readline() for _ in range(5))
        yield process, said, hashlib.sha256(sound.content).hexdigest()
        process.terminate()


def test_serve_says_who_can_open_its_links(impatient):
    _, said, _ = impatient
    port = re.search(r"Participants: http://127\.0\.0\.1:(\d+)/\n", said)[1]
    assert "Only this computer can open these links. docs/study-deployment.md" in said
    assert f"this link works once:\nhttp://127.0.0.1:{port}/setup/" in said


@pytest.mark.skipif(sys.platform != "linux", reason="the system's limit is Linux's")
def test_a_reply_that_is_not_read_is_cut_off(impatient):
    process, said, sha = impatient
    port = int(re.search(r":(\d+)/\n", said)[1])

    def connections():
        files = [
            os.readlink(f) for f in Path(f"/proc/{process.pid}/fd").iterdir() if f.is_symlink()
        ]
        return sum("socket" in file for file in files)

    before = connections()
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            wire.sendall(f"GET /media/{sha} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        ends = time.monotonic() + 30
        while connections() > before or time.monotonic() < ends - 29:
            assert time.monotonic() < ends, "the connections stay"
            time.sleep(0.1)


class Connection:
    """What is looked at of a connection of uvicorn's."""

    def __init__(self, cycle=None, resting=False):
        self.cycle, self.timeout_keep_alive_task = cycle, object() if resting else None
        self.transport, self.ended = self, False

    def abort(self):
        self.ended = True


class Cycle:
    def __init__(self, response_complete):
        self.response_complete = response_complete


def watched(monkeypatch, connections, most=100, seconds=1.2):
    monkeypatch.setattr(server_app, "_SECONDS", 0.3)

    async def watch():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server_app.hang_up_on_silent(connections, most), seconds)

    asyncio.run(watch())
    return [c.ended for c in connections]


def test_only_a_head_is_timed(monkeypatch):
    """Neither a reply in work nor the pause after one, which uvicorn ends itself."""
    half, again = Connection(), Connection(Cycle(True))
    working, resting = Connection(Cycle(False)), Connection(Cycle(True), resting=True)
    assert watched(monkeypatch, [half, again, working, resting]) == [True, True, False, False]


def test_connections_without_a_request_in_work_make_room(monkeypatch):
    some = [Connection(Cycle(True), resting=True) for _ in range(30)]
    working = [Connection(Cycle(False)) for _ in range(10)]
    ended = watched(monkeypatch, [*working, *some], most=20, seconds=0.1)
    assert sum(ended[:10]) == 0
    assert sum(ended[10:]) >= 20


def test_a_body_that_never_ends_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(server_app, "_SECONDS", 0.3)
    study = Study(make_study(tmp_path / "s.db"), work=False)
    app, said = create_app(study), []

    async def run():
        async def receive():
            await asyncio.sleep(0.1)
            return {"type": "http.request", "body": b" ", "more_body": True}

        async def send(message):
            said.append(message)

        headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
        scope = {"type": "http", "method": "POST", "path": "/api/join", "headers": headers}
        scope |= {"query_string": b"", "client": ("127.0.0.1", 1), "scheme": "http", "app": app}
        await asyncio.wait_for(app(scope, receive, send), 5)

    asyncio.run(run())
    study.store.close()
    study.media.close()
    assert said[0]["status"] == 408
    assert (b"connection", b"close") in said[0]["headers"]
