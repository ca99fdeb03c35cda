import io

import pytest
from studykit import Web, picture, zipped

from nearer.study.actions import set_state


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path / "s.db", questions=10)
    yield made
    made.close()


def researcher_paths(web):
    api = web.client.get("/openapi.json").json()
    return [
        (m, p)
        for p, methods in api["paths"].items()
        for m in methods
        if p.startswith("/api/researcher")
    ]


def test_nothing_of_the_dashboard_is_open_without_login(web):
    paths = researcher_paths(web)
    assert len(paths) >= 9
    for method, path in paths:
        called = path.replace("{person}", "1").replace("{name}", "triplets")
        reply = web.client.request(method, called, json={})
        assert reply.status_code == 401, (method, path)
    for page in ("", "/map", "/people", "/items", "/data"):
        reply = web.client.get(f"/dashboard{page}")
        assert (reply.status_code, reply.headers["location"]) == (303, "/login")


def test_no_change_without_the_form_token(web):
    web.log_in()
    for method, path in researcher_paths(web):
        if method == "post":
            called = path.replace("{person}", "1")
            for headers in ({}, {"x-form-token": "wrong"}):
                reply = web.client.post(called, json={}, headers=headers)
                assert reply.status_code == 403, path


def test_the_set_up_link_works_once(web):
    who = {"name": "ada", "password": "correct horse"}
    assert web.client.get("/setup/wrong").status_code == 404
    assert (
        web.client.post(f"/setup/{web.setup}", data={**who, "password": "short"}).status_code == 422
    )
    assert web.client.post(f"/setup/{web.setup}", data=who).status_code == 303
    assert web.client.post(f"/setup/{web.setup}", data=who).status_code == 404
    stored = web.study.store.reader().execute("SELECT password FROM accounts").fetchone()[0]
    assert stored.startswith("scrypt$16384$8$1$")
    assert "correct" not in stored


def test_there_is_no_default_account(web):
    for name, password in (("admin", "admin"), ("", ""), ("ada", "correct horse")):
        assert web.client.post("/login", data={"name": name, "password": password}).status_code in (
            401,
            422,
        )


def test_guessing_passwords_is_slowed_down(web):
    who = {"name": "ada", "password": "correct horse"}
    web.client.post(f"/setup/{web.setup}", data=who)
    wrong = [
        web.client.post("/login", data={**who, "password": f"guess {k}"}).status_code
        for k in range(9)
    ]
    assert wrong[:5] == [401] * 5
    assert 429 in wrong[6:]
    held_back = web.client.post("/login", data=who)
    assert held_back.status_code == 429
    assert int(held_back.headers["retry-after"]) >= 1


def test_forms_from_other_sites_are_refused(web):
    who = {"name": "ada", "password": "correct horse"}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert web.client.post(f"/setup/{web.setup}", data=who, headers=headers).status_code == 403


def test_the_cookie_is_out_of_reach_of_scripts_and_a_new_password_ends_it(web):
    web.log_in()
    who = {"name": "ada", "password": "correct horse"}
    cookie = web.client.post("/login", data=who).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert web.client.get("/api/researcher/status").status_code == 200
    before = dict(web.client.cookies)
    web.study.setup = "again"
    web.client.post("/setup/again", data={**who, "password": "another horse"})
    assert web.client.get("/api/researcher/status").status_code == 200
    web.client.cookies = before
    assert web.client.get("/api/researcher/status").status_code == 401


def test_start_pause_quota_and_status(web):
    token = web.log_in()
    for state in ("paused", "running"):
        assert (
            web.client.post(
                "/api/researcher/state", json={"state": state}, headers=token
            ).status_code
            == 200
        )
        assert web.client.get("/api/researcher/status").json()["state"] == state
    body = {"settings": {"quota": 500}}
    web.client.post("/api/researcher/settings", json=body, headers=token)
    headers = web.join()
    web.answer(headers)
    status = web.client.get("/api/researcher/status").json()
    assert status["quota"] == 500
    assert status["people"]["joined"] == 1
    assert status["answers"]["all"] == 1
    assert status["trouble"] is None


def test_trouble_with_the_disk_reaches_the_dashboard(web):
    web.log_in()
    headers = web.join()
    web.study.store._db.execute("PRAGMA query_only = ON")
    web.client.post(
        "/api/answers", json={"answers": [{"lease": 1, "choice": "left"}]}, headers=headers
    )
    assert "cannot be written" in web.client.get("/dashboard").text
    web.study.store._db.execute("PRAGMA query_only = OFF")


def test_people_can_be_excluded_included_and_erased(web):
    token = web.log_in()
    headers = web.join(participant="p")
    for _ in range(10):
        web.answer(headers)
    (person,) = web.client.get("/api/researcher/people").json()
    assert person["answered"] == 10
    assert person["left_share"] == 1.0
    assert person["finished"]
    base = f"/api/researcher/people/{person['id']}"
    for verb, flag in (("exclude", True), ("include", False)):
        assert web.client.post(f"{base}/{verb}", json={}, headers=token).status_code == 200
        assert web.client.get("/api/researcher/people").json()[0]["excluded"] is flag
    status = web.client.get("/api/researcher/status").json()
    assert status["answers_per_hour"] == status["answers"]["all"] == 10, "no more than are stored"
    assert web.client.post(f"{base}/withdraw", headers=token).json() == {"erased": 10}
    counts = web.client.get("/api/researcher/status").json()["people"]
    assert (counts["excluded"], counts["withdrawn"]) == (0, 1), "no person was excluded"
    assert (
        web.client.post("/api/researcher/people/77/exclude", json={}, headers=token).status_code
        == 404
    )


def test_exports_come_as_files(web):
    web.log_in()
    headers = web.join(participant="secret-name")
    for _ in range(10):
        web.answer(headers)
    for name in ("triplets", "salmon", "triplettools", "answers"):
        reply = web.client.get(f"/api/researcher/export/{name}.csv")
        assert reply.headers["content-type"].startswith("text/csv")
        assert reply.text.count("\n") > 3
        assert "secret-name" not in reply.text
    assert "secret-name" in web.client.get("/api/researcher/export/completions.csv").text
    assert "secret-name" in web.client.get("/api/researcher/export/answers.csv?identities=1").text
    assert web.client.get("/api/researcher/export/positions.csv").status_code == 409
    assert web.client.get("/api/researcher/export/passwords.csv").status_code == 422


def upload(web, token, *files):
    return web.client.post(
        "/api/researcher/items",
        files=[("upload", (n, io.BytesIO(c))) for n, c in files],
        headers=token,
    )


def test_uploads_that_are_not_what_they_say_are_refused(tmp_path):
    web = Web(tmp_path / "s.db", start=False)
    token = web.log_in()
    bad = {
        "script.png": b"<script>alert(1)</script>",
        "page.html": b"<!doctype html><script>alert(1)</script>",
        "vector.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        "cut.png": picture()[:40],
        "jpeg.png": picture(kind="JPEG"),
        "bad.zip": b"PK\x03\x04 not a zip",
        "slip.zip": zipped({"../../evil.png": picture()}),
        "windows.zip": zipped({"..\\evil.png": picture()}),
        "root.zip": zipped({"/etc/evil.png": picture()}),
        "inner.zip": zipped({"a.png": b"GIF89a not a png"}),
        "x" * 2100 + ".png": picture(),
        "control.zip": zipped({"a\x1bb.png": picture()}),
    }
    for name, content in bad.items():
        reply = upload(web, token, (name, content))
        assert reply.status_code == 422, (name, reply.text)
    assert upload(web, token, ("dot.zip", zipped({".": picture()}))).json() == {"added": 0}
    assert len(web.study.facts.items) == 8
    good = upload(
        web, token, ("new.png", picture()), ("more.zip", zipped({"x/a.png": picture((1, 2, 3))}))
    )
    assert good.json() == {"added": 2}
    assert upload(web, token, ("new.png", picture())).status_code == 409
    assert len(web.study.facts.items) == 10
    web.study.store.write(lambda ledger: set_state(ledger, "running"))
    web.join()
    assert upload(web, token, ("late.png", picture())).status_code == 409
    web.close()


def test_scripts_in_labels_are_shown_as_text(tmp_path):
    from nearer.study.config import Config
    from nearer.study.items import Item
    from nearer.study.store import new_study

    evil = "<script>alert(1)</script>"
    items = [Item(f"{evil}{k}", "text", f"{evil}{k}") for k in range(3)]
    new_study(tmp_path / "s.db", items, Config(title=f"{evil}title", method="random"))
    web = Web(tmp_path / "s.db")
    web.log_in()
    pages = [web.client.get(p).text for p in ("/", "/login", "/dashboard", "/dashboard/items")]
    assert not any(evil in page for page in pages)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;0" in pages[-1]
    web.close()
