"""Strangers who have read the source: what they can try, and what they get."""

import asyncio
import contextlib
import re
import socket
import threading
import time

import pytest
from studykit import Bench, Web, make_study, only_real

from nearer.study.accounts import Guesses
from nearer.study.auth import Signer, Throttle
from nearer.study.identities import Identity
from nearer.study.joining import join, withdraw
from nearer.study.refusals import Refusal
from nearer.study.simulate import served
from nearer.study.steering import change_settings, set_state

WHO = {"name": "ada", "password": "correct horse"}


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path / "s.db", questions=12)
    yield made
    made.close()


def knock(web, browser="", **parameters):
    body = {"consent_version": "1", "parameters": parameters, "browser": browser}
    return web.client.post("/api/join", json=body)


def count(web, table="answers"):
    return web.study.store.reader().execute(f"SELECT count(*) FROM {table}").fetchone()[0]


# An id is no proof ---------------------------------------------------------------------------


def test_a_taken_id_opens_nothing(web):
    victim = knock(web, "the victim's browser", PROLIFIC_PID="abc").json()["token"]
    headers = {"authorization": f"Bearer {victim}"}
    web.client.post("/api/ready", headers=headers)
    web.answer(headers)
    for browser in ("", "another browser"):
        stranger = knock(web, browser, PROLIFIC_PID="abc")
        assert stranger.status_code == 409
        assert set(stranger.json()) == {"detail"}
    assert (count(web), count(web, "people")) == (1, 1)
    again = knock(web, "the victim's browser", PROLIFIC_PID="abc").json()
    assert again["answered"] == 1, "the same browser goes on, also when its token was lost"


def test_a_browser_that_somebody_used_before_does_not_speak_for_another_id(web):
    """In a lab the next person sits at the same computer."""
    first = knock(web, "lab 7", SONA="", survey_code="1").json()["token"]
    second = knock(web, "lab 7", survey_code="2").json()["token"]
    assert first != second
    assert knock(web, "lab 7", survey_code="1").json()["token"] == first


@pytest.mark.parametrize("state", ["paused", "running"])
def test_ids_cannot_be_tried_out_on_a_study_that_is_closed(web, state):
    knock(web, "b", survey_code="1000")
    if state == "paused":
        web.study.store.write(lambda ledger: set_state(ledger, "paused"))
        replies = {knock(web, survey_code=code).text for code in ("1000", "1001")}
        assert len(replies) == 1
    else:
        assert "token" not in knock(web, survey_code="1000").json()


def test_a_personal_link_goes_on_elsewhere_if_the_researcher_chose_so(tmp_path):
    web = Web(tmp_path / "s.db", returning="link")
    joined = knock(web, "b", PROLIFIC_PID="abc").json()
    assert knock(web, PROLIFIC_PID="abc").status_code == 409
    link = joined["resume"].removeprefix("?resume=")
    assert knock(web, resume=link).json()["token"] == joined["token"]
    assert knock(web, resume=joined["token"]).status_code == 403, "a token is no link"
    assert knock(web, resume=link[:-2] + "xx").status_code == 403
    web.close()


def test_a_visit_adds_answers_and_can_neither_see_nor_erase_the_earlier_ones(tmp_path):
    web = Web(tmp_path / "s.db", returning="visit", questions=12)
    mine = {"authorization": f"Bearer {knock(web, 'b', participant='me').json()['token']}"}
    web.client.post("/api/ready", headers=mine)
    first = web.client.get("/api/me", headers=mine).json()["trials"][0]["lease"]
    web.answer(mine)
    visit = {"authorization": f"Bearer {knock(web, 'c', participant='me').json()['token']}"}
    standing = web.client.get("/api/me", headers=visit).json()
    assert (standing["stage"], standing["last"]) == ("trials", None)
    assert web.client.post("/api/withdraw", headers=visit).status_code == 403
    undo = {"answers": [{"lease": first, "choice": "right", "instead": True}]}
    assert web.client.post("/api/answers", json=undo, headers=visit).status_code == 403
    assert web.answer(visit).json()["answered"] == 2
    assert (count(web, "people"), count(web)) == (1, 2)
    web.close()


def test_a_researcher_can_give_a_person_a_link(web):
    token = web.log_in()
    joined = knock(web, "b", PROLIFIC_PID="abc").json()
    link = web.client.post("/api/researcher/people/1/link", headers=token).json()["link"]
    assert knock(web, resume=link.partition("?resume=")[2]).json()["token"] == joined["token"]


# Memory --------------------------------------------------------------------------------------


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


# Withdrawing and erasing -----------------------------------------------------------------------


def test_withdrawing_reads_no_more_than_one_persons_rows(tmp_path):
    """What it costs does not grow with what others answered."""
    bench = Bench(tmp_path / "s.db", n=30, questions=400, **only_real())
    steps = {}
    for others in (1, 10):
        for _ in range(others):
            person = bench.join()
            for _ in range(100):
                bench.clock.now += 1
                bench.answer(person, bench.hand_out(person)[0].lease)
        gone = bench.join()
        for _ in range(5):
            bench.answer(gone, bench.hand_out(gone)[0].lease)
        ticks = [0]

        def tick(ticks=ticks):
            ticks[0] += 1

        bench.store._db.set_progress_handler(tick, 10)
        bench.write(withdraw, gone)
        bench.store._db.set_progress_handler(None, 0)
        steps[others] = ticks[0]
    assert steps[10] < 1.5 * steps[1]
    bench.close()


def test_erased_means_in_no_file(tmp_path):
    name = "5f3e-the-panel-id-of-somebody"
    bench = Bench(tmp_path / "s.db", sync=True)
    kept = bench.join("prolific", "another-id-that-stays", browser="k" * 32)
    person = bench.join("prolific", name, browser="b" * 32)
    for _ in range(5):
        bench.answer(person, bench.hand_out(person)[0].lease)
    reader = bench.store.reader()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM people").fetchone()  # somebody reads an older state
    bench.write(withdraw, person)
    reader.execute("COMMIT")
    for _ in range(100):
        left = [p.name for p in tmp_path.iterdir() if name.encode() in p.read_bytes()]
        if not left:
            break
        time.sleep(0.1)
    assert left == [], "in none of the study's files, while it is served"
    bench.answer(kept, bench.hand_out(kept)[0].lease)
    bench.close()
    assert [p.name for p in tmp_path.iterdir() if name.encode() in p.read_bytes()] == []
    assert b"another-id-that-stays" in bench.path.read_bytes()


def test_withdrawing_again_and_again_disturbs_nobody(web):
    strangers = [web.join() for _ in range(4)]
    mine = web.join()
    for headers in strangers:
        web.answer(headers)
        for _ in range(3):
            status = web.client.post("/api/withdraw", headers=headers).status_code
            assert status == 200
    assert web.answer(mine).json()["answered"] == 1


# Bots ------------------------------------------------------------------------------------------


def race(bench, person, ms=900.0):
    while trials := bench.hand_out(person):
        bench.clock.now += 0.004
        bench.answer(person, trials[0].lease, ("left", "right")[trials[0].lease % 2], ms)


def test_a_bot_that_invents_its_times_is_flagged(tmp_path):
    from nearer.study.statistics import people_report

    bench = Bench(tmp_path / "s.db", n=12, questions=50)
    race(bench, bench.join())
    race(bench, bench.join(), ms=None)
    silent, liar = people_report(bench.store.reader())
    assert {"very fast", "times are not true"} <= set(liar.warnings)
    assert "very fast" in silent.warnings
    assert liar.false_times == 50
    bench.close()


def test_an_answer_that_waited_without_network_is_believed(tmp_path):
    from nearer.study.answering import GivenAnswer, answer, elapsed
    from nearer.study.statistics import people_report

    bench = Bench(tmp_path / "s.db", n=12, questions=40)
    person = bench.join()

    def together(ledger, leases):
        each = elapsed(ledger, person, leases)
        return [answer(ledger, person, GivenAnswer(i, "left", 3000.0), each) for i in leases]

    while trials := bench.hand_out(person):
        bench.clock.now += 7.0  # both were looked at, then the network came back
        bench.write(together, [t.lease for t in trials])
    (found,) = people_report(bench.store.reader())
    assert (found.false_times, found.median_elapsed_ms) == (0, 3500.0)
    bench.close()


def test_a_study_can_refuse_what_nobody_can_have_seen(tmp_path):
    bench = Bench(tmp_path / "s.db", fastest_ms=200, refuse_false_times=True)
    person = bench.join()
    first, second = bench.hand_out(person)
    bench.clock.now += 0.1
    with pytest.raises(Refusal, match="faster than anybody can look") as refusal:
        bench.answer(person, first.lease, ms=90.0)
    assert refusal.value.status == 429
    bench.clock.now += 0.9
    with pytest.raises(Refusal, match="handed out only 1000 ms ago"):
        bench.answer(person, first.lease, ms=1500.0)
    assert bench.answer(person, first.lease, ms=900.0)
    bench.clock.now += 1.0
    assert bench.answer(person, second.lease, ms=1900.0)
    bench.close()


def test_a_catch_trial_looks_like_every_other_one(tmp_path):
    """Neither numbers nor names nor addresses of the three things are ever the same."""
    from studykit import picture

    from nearer.study.config import Config
    from nearer.study.create import new_study
    from nearer.study.imports import read_files

    files = [(f"{k}.png", picture((20 * k, 0, 0))) for k in range(6)]
    settings = {"questions": 30, "catch_share": 0.5, "method": "random"}
    new_study(tmp_path / "s.db", read_files(files), Config.of(settings))
    web = Web(tmp_path / "s.db")
    headers = web.join()
    for _ in range(30):
        trial = web.client.get("/api/me", headers=headers).json()["trials"][0]
        things = [trial["head"], trial["left"], trial["right"]]
        assert len({thing["id"] for thing in things}) == 3
        assert len({thing["src"] for thing in things}) == 3
        assert web.client.get(things[0]["src"]).headers["content-type"] == "image/png"
        web.answer(headers)
    catches = "SELECT count(*) FROM questions WHERE purpose = 'catch'"
    assert web.study.store.reader().execute(catches).fetchone()[0] >= 10
    web.close()


# Logging in --------------------------------------------------------------------------------------


def log_in(web, name="ada", password="correct horse", **options):
    return web.client.post("/login", data={"name": name, "password": password}, **options)


def test_padding_a_name_gives_no_further_guesses(web):
    web.client.post(f"/setup/{web.setup}", data=WHO)
    names = ["ada", " ada", "ada ", "\u00a0ada", "ada\t", "  ada  ", "ａda", "ada\u3000"]
    replies = [log_in(web, name, "wrong").status_code for name in names * 3]
    assert replies.count(401) <= 6


def test_guesses_at_the_same_time_are_not_checked_at_once():
    throttle = Throttle()
    gate = threading.Barrier(60)
    admitted = []

    def guess():
        gate.wait()
        admitted.append(throttle.admit("address") == 0.0)

    threads = [threading.Thread(target=guess) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(admitted) == 5


def test_wrong_guesses_from_one_place_do_not_lock_out_another():
    guesses = Guesses(Signer(b"k" * 32, time.time))
    try:
        for _ in range(100):
            guesses.wait("ada", "192.0.2.1", "")
        assert guesses.wait("ada", "192.0.2.1", "") > 0
        assert guesses.wait("ada", "198.51.100.7", "") == 0.0
        for k in range(1000):  # many addresses together use up what one name has in a minute
            guesses.wait("ada", f"10.0.{k // 250}.{k % 250}", "")
        assert guesses.wait("ada", "203.0.113.9", "") > 0
        known = guesses.known_as("ada")
        assert guesses.wait("ada", "203.0.113.10", known) == 0.0, "a browser that was in before"
        assert guesses.wait("ada", "203.0.113.11", known + "x") > 0
    finally:
        guesses.close()


def test_names_without_end_do_not_fill_the_memory():
    guesses = Guesses(Signer(b"k" * 32, time.time))
    for k in range(3000):
        guesses.wait(f"name {k}", "192.0.2.1", "")
    assert len(guesses._slow._tries) < 20
    guesses.close()


def test_a_clock_that_is_set_back_locks_nobody_out(web, monkeypatch):
    web.client.post(f"/setup/{web.setup}", data=WHO)
    assert log_in(web, password="wrong").status_code == 401
    set_back = time.time() - 3600
    monkeypatch.setattr(time, "time", lambda: set_back)
    assert log_in(web).status_code == 303


def test_logging_out_ends_the_session_on_the_server(web):
    web.log_in()
    cookie = dict(web.client.cookies)
    assert web.client.get("/api/researcher/status").status_code == 200
    web.client.post("/logout")
    stolen = {"cookie": "; ".join(f"{k}={v}" for k, v in cookie.items())}
    web.client.cookies.clear()
    assert web.client.get("/api/researcher/status", headers=stolen).status_code == 401


def test_two_studies_on_one_host_leave_each_other_alone(tmp_path):
    one, other = Web(tmp_path / "a.db"), Web(tmp_path / "b.db")
    one.log_in()
    other.client.cookies.update(dict(one.client.cookies))
    other.log_in()
    one.client.cookies.update(dict(other.client.cookies))
    assert one.client.get("/api/researcher/status").status_code == 200
    assert other.client.get("/api/researcher/status").status_code == 200
    one.close()
    other.close()


def test_joining_has_a_limit(tmp_path):
    web = Web(tmp_path / "s.db", joins_per_minute=1)
    replies = [knock(web).status_code for _ in range(310)]
    assert replies[:300] == [200] * 300
    assert set(replies[302:]) == {429}
    web.close()


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


# Tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "\r\n="])
def test_a_person_cannot_write_formulas_or_break_a_row(tmp_path, start):
    import csv
    import io

    from nearer.study.exports import completions_csv, export_csv

    bench = Bench(tmp_path / "s.db")
    name = f'{start}HYPERLINK("x")\r\n1,2,3\nb\x0bc\u2028d'
    person = bench.write(join, consent="1", identity=Identity("link", name)).person
    bench.answer(person, bench.hand_out(person)[0].lease)
    db = bench.store.reader()
    for text in (
        completions_csv(db, str),
        export_csv(db, "answers", identities=True),
        export_csv(db, "salmon", identities=True),
    ):
        assert len(text.splitlines()) == 2
        (row,) = csv.DictReader(io.StringIO(text))
        cells = [cell for cell in row.values() if "HYPERLINK" in cell]
        assert cells
        assert all(cell.startswith("'") for cell in cells)
    bench.close()


def test_no_setting_can_be_slipped_in(web):
    headers = web.log_in()
    for settings in ({"method": "basis"}, {"frame_ancestors": "x; script-src *"}, {"nope": 1}):
        body = {"settings": settings}
        reply = web.client.post("/api/researcher/settings", json=body, headers=headers)
        assert reply.status_code in (409, 422), settings
    changes = web.study.store.write(lambda ledger: change_settings(ledger, {"quota": 7}))
    assert changes == {"quota": 7}


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
