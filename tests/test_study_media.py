"""Media as they are served: in parts, by HEAD, and to people who do not take them."""

import socket
from pathlib import Path

import pytest
from studykit import Web, picture

from benchmarks._study_people import served
from nearer.study.config import Config
from nearer.study.items import Item, read_files
from nearer.study.store import new_study

CONTENT = picture()


@pytest.fixture
def web(tmp_path):
    files = [(f"{k}.png", picture((k, 0, 0))) for k in range(3)]
    new_study(tmp_path / "s.db", read_files([*files, ("a b.png", CONTENT)]), Config())
    made = Web(tmp_path / "s.db")
    yield made
    made.close()


def test_media_are_served_whole_and_in_parts(web):
    src = web.study.facts.items[3]["src"]
    whole = web.client.get(src)
    assert (whole.content, whole.headers["content-type"]) == (CONTENT, "image/png")
    n = len(CONTENT)
    for span, part in (
        ("bytes=0-9", CONTENT[:10]),
        ("bytes=10-", CONTENT[10:]),
        ("bytes=-5", CONTENT[-5:]),
        (f"bytes=-{n + 5}", CONTENT),
        (f"bytes=3-{n + 5}", CONTENT[3:]),
    ):
        reply = web.client.get(src, headers={"range": span})
        assert (reply.status_code, reply.content) == (206, part)
        assert reply.headers["content-length"] == str(len(part))
        assert reply.headers["content-range"].endswith(f"/{n}")
    for span in ("bytes=999999-", "bytes=-0"):
        assert web.client.get(src, headers={"range": span}).status_code == 416
    for span in ("bytes=-", "lines=1-2", "bytes=" + "9" * 40 + "-"):
        assert web.client.get(src, headers={"range": span}).status_code in (200, 400, 416)
    assert web.client.get("/media/none").status_code == 404


def test_head_tells_what_get_would(web):
    src = web.study.facts.items[3]["src"]
    head, whole = web.client.head(src), web.client.get(src)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers == whole.headers


def test_items_that_come_later_are_served_too(web):
    from nearer.study.actions import add_items

    content = picture((9, 9, 9))
    late = read_files([("late.png", content)])
    web.study.store.write(lambda ledger: add_items(ledger, late))
    assert web.client.get(web.study.facts.items[-1]["src"]).content == content


def resident(pid: int) -> float:
    """Megabytes that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_people_who_do_not_read_hold_no_files_in_memory(tmp_path):
    """30 of them and a film of 20 MB: whole files would be 600 MB."""
    film = b"\0\0\0\x20ftypisom" + bytes(20_000_000)
    items = [Item(f"film {k}", "video", "", "", "video/mp4", film + bytes([k])) for k in range(3)]
    new_study(tmp_path / "s.db", items, Config.of({"method": "random", "practice": 1}))
    with served(tmp_path / "s.db") as server:
        import httpx2

        base = f"http://127.0.0.1:{server.port}"
        about = httpx2.get(f"{base}/api/study").json()
        src = about["practice"][0]["head"]["src"]
        before = resident(server.process.pid)
        lazy = []
        try:
            for _ in range(30):
                one = socket.create_connection(("127.0.0.1", server.port))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.sendall(f"GET {src} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                lazy.append(one)
            for one in lazy:
                assert one.recv(12) == b"HTTP/1.1 200"
            whole = httpx2.get(base + src).content  # others are served meanwhile
            grown = resident(server.process.pid) - before
        finally:
            for one in lazy:
                one.close()
        assert whole[: len(film)] == film
        assert grown < 60, f"{grown:.0f} MB more"
        assert not [p for p in tmp_path.iterdir() if not p.name.startswith("s.db")]
        assert server.said() == ""
