"""Requests without end, halves of requests, connections that rest: what the door does with them."""

import asyncio
import contextlib
import re
import socket
import time

import pytest
from studykit import make_study

from nearer.study.auth import Signer
from nearer.study.simulate import served


def test_long_tokens_are_turned_away_unread_and_nothing_is_kept():
    signer = Signer(b"k" * 32, clock=lambda: 0.0)
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
        assert said == b"" or b" 431 " in said.splitlines()[0]
    one = b"GET /api/study HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 40_000 + b"\r\n\r\n"
    assert b" 431 " in say(server.port, one).splitlines()[0]
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


def test_a_half_request_is_hung_up_on(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
        wire.sendall(b"GET /api/study HTTP/1.1\r\n")
        assert wire.recv(100) == b"", "closed by the server after ten seconds"


async def on_wire(app, use):
    """Serve an app on our connections and use it."""
    import uvicorn

    from nearer.study.wire import Wire

    config = uvicorn.Config(app, http=Wire, ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        return await use(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await running
        listener.close()


def test_a_request_that_never_ends_is_given_up(monkeypatch):
    """The head came, the body does not; or it comes in drops."""
    from nearer.study import wire

    monkeypatch.setattr(wire, "_BODY_SECONDS", 0.3)

    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

    async def use(port):
        ends = []
        for drops in (False, True):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
            for _ in range(10 if drops else 0):
                writer.write(b"x")
                await asyncio.sleep(0.1)
            with contextlib.suppress(OSError):
                ends.append(await asyncio.wait_for(reader.read(10), 5))
            writer.close()
        return ends

    assert set(asyncio.run(on_wire(app, use))) <= {b""}


def test_a_connection_that_was_used_may_rest_and_a_long_reply_is_not_cut(monkeypatch):
    """Only the head of a request is timed: not the reply, and not the pause after it."""
    from nearer.study import wire

    monkeypatch.setattr(wire, "_HEAD_SECONDS", 0.3)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for k in range(6):
            await asyncio.sleep(0.1)
            await send({"type": "http.response.body", "body": b"x", "more_body": k < 5})

    async def use(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        replies = []
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            replies.append(await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), 5))
            await asyncio.sleep(0.6)
        writer.write(b"GET / HT")
        ended = await asyncio.wait_for(reader.read(10), 5)
        writer.close()
        return replies, ended

    replies, ended = asyncio.run(on_wire(app, use))
    assert [reply.count(b"x\r\n") for reply in replies] == [6, 6]
    assert ended == b"", "half a head is hung up on"


def test_whoever_is_silent_longest_makes_room(monkeypatch):
    """A server that may hold twenty connections, sixty half requests, and one whole one."""
    from nearer.study.wire import Wire

    monkeypatch.setattr(Wire, "most", 20)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

    async def attack(port):
        wires = []
        for _ in range(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nhost: ")
            wires.append((reader, writer))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        said = await asyncio.wait_for(reader.read(1000), 10)
        first = await asyncio.wait_for(wires[0][0].read(10), 10)
        open_now = len(Wire._open)
        for _, other in [*wires, (reader, writer)]:
            other.close()
        return said, first, open_now

    said, first, open_now = asyncio.run(on_wire(app, attack))
    assert b" 200 " in said.splitlines()[0]
    assert first == b"", "the first of the silent was hung up on"
    assert open_now <= 20
