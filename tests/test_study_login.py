"""Logging in: guesses, sessions, and what a stranger may change."""

import asyncio
import threading
import time

import pytest
from studykit import Web

from nearer.study import auth
from nearer.study.actions import change_settings
from nearer.study.auth import Guesses, Rate, Signer, network_of

WHO = {"name": "ada", "password": "correct horse"}


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path / "s.db", questions=12)
    yield made
    made.close()


def log_in(web, name="ada", password="correct horse", **options):
    return web.client.post("/login", data={"name": name, "password": password}, **options)


def test_padding_a_name_gives_no_further_guesses(web):
    web.client.post(f"/setup/{web.setup}", data=WHO)
    names = ["ada", " ada", "ada ", "\u00a0ada", "ada\t", "  ada  ", "ａda", "ada\u3000"]
    replies = [log_in(web, name, "wrong").status_code for name in names * 3]
    assert replies.count(401) <= 6


def test_guesses_at_the_same_time_are_not_checked_at_once():
    rate = Rate(5)
    gate = threading.Barrier(60)
    admitted = []

    def guess():
        gate.wait()
        admitted.append(rate.wait("address", 1) == 0.0)

    threads = [threading.Thread(target=guess) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(admitted) == 5


def test_wrong_guesses_from_one_place_do_not_lock_out_another():
    guesses = Guesses(Signer(b"k" * 32))
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


def test_names_without_end_do_not_fill_the_memory():
    guesses = Guesses(Signer(b"k" * 32))
    for k in range(3000):
        guesses.wait(f"name {k}", "192.0.2.1", "")
    assert len(guesses._names._left) < 20


def test_a_clock_that_is_set_back_locks_no_researcher_out(web, monkeypatch):
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


def test_a_session_ends_after_a_week_whatever_the_browser_keeps(web, monkeypatch):
    web.log_in()
    cookies = {"cookie": "; ".join(f"{k}={v}" for k, v in web.client.cookies.items())}
    web.client.cookies.clear()
    begun = time.time()
    for seconds, status in ((auth.SESSION_SECONDS - 60, 200), (auth.SESSION_SECONDS + 60, 401)):
        monkeypatch.setattr(time, "time", lambda now=begun + seconds: now)
        assert web.client.get("/api/researcher/status", headers=cookies).status_code == status


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


def test_no_setting_can_be_slipped_in(web):
    headers = web.log_in()
    for settings in ({"method": "basis"}, {"frame_ancestors": "x; script-src *"}, {"nope": 1}):
        body = {"settings": settings}
        reply = web.client.post("/api/researcher/settings", json=body, headers=headers)
        assert reply.status_code in (409, 422), settings
    changes = web.study.store.write(lambda ledger: change_settings(ledger, {"quota": 7}))
    assert changes == {"quota": 7}


def test_a_flood_of_logins_does_not_lock_out_the_known_browser(monkeypatch):
    guesses, done = Guesses(Signer(b"k" * 32)), threading.Event()
    monkeypatch.setattr(auth, "check_password", lambda *_: done.wait(5))

    async def flood():
        tries = [
            asyncio.create_task(guesses.check("ada", "wrong", None, f"10.0.0.{k}"))
            for k in range(30)
        ]
        await asyncio.sleep(0.2)
        waits = [guesses.wait("ada", "192.0.2.1", known) for known in ("", guesses.known_as("ada"))]
        done.set()
        await asyncio.gather(*tries)
        return waits

    stranger, known = asyncio.run(flood())
    assert stranger > 0
    assert known == 0


def test_no_invented_address_is_the_known_browser():
    guesses = Guesses(Signer(b"k" * 32))
    for _ in range(9):
        guesses.wait("ada", "known ada", "")
    assert guesses.wait("ada", "192.0.2.1", guesses.known_as("ada")) == 0


def test_one_house_counts_as_one_address():
    whole = [network_of(f"2001:db8:1:2::{k}") for k in (1, 99)]
    assert whole[0] == whole[1] != network_of("2001:db8:1:3::1")
    assert network_of("192.0.2.7") != network_of("192.0.2.8")
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7"), "as some proxies write it"
    assert network_of("?") == "?"


@pytest.mark.parametrize("origin", ["http://[", "https://evil.example", "testserver", ""])
def test_an_origin_that_is_none_is_refused(web, origin):
    assert log_in(web, headers={"origin": origin}).status_code == 403


def test_forms_in_parts_are_refused_unread(web):
    """Their sender names the encoding: some make halves of characters, some take seconds."""
    part = '--x\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    for name, password in (("\\ud800", "correct horse"), ("ada", "correct horse\\ud800")):
        body = part.format("name", name) + part.format("password", password) + "--x--\r\n"
        for charset in ("unicode_escape", "punycode"):
            kind = {"content-type": f"multipart/form-data; boundary=x; charset={charset}"}
            for path in ("/login", f"/setup/{web.setup}"):
                reply = web.client.post(path, content=body, headers=kind)
                assert reply.status_code == 415


def test_the_set_up_link_leads_to_the_dashboard(tmp_path):
    web = Web(tmp_path / "s.db")
    who = {"name": "ada", "password": "correct horse"}
    assert web.client.post(f"/setup/{web.setup}", data=who).headers["location"] == "/dashboard"
    assert web.client.get("/dashboard").status_code == 200
    web.close()


def test_a_full_disk_at_set_up_uses_up_no_link(tmp_path):
    web = Web(tmp_path / "s.db")
    web.study.store._db.execute("PRAGMA query_only = ON")
    assert web.client.post(f"/setup/{web.setup}", data=WHO).status_code == 503
    web.study.store._db.execute("PRAGMA query_only = OFF")
    assert web.client.post(f"/setup/{web.setup}", data=WHO).status_code == 303
    web.close()


def test_the_latest_tries_are_remembered_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr("nearer.study.auth._REMEMBERED", 10)
    rate = Rate(1)
    for k in range(20):
        assert rate.wait(f"address {k}", 1) == 0.0
    assert [rate.wait(f"address {k}", 1) > 0 for k in (19, 0)] == [True, False]
