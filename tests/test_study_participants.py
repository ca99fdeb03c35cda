import pytest
from studykit import Web

from nearer.study.actions import set_state
from nearer.study.config import to_html


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path / "s.db", questions=6)
    yield made
    made.close()


def test_the_whole_way_from_consent_to_the_code(web):
    about = web.client.get("/api/study").json()
    assert about["open"]
    assert len(about["practice"]) == 1
    headers = web.join(PROLIFIC_PID="abc", STUDY_ID="s", SESSION_ID="x")
    for k in range(6):
        standing = web.client.get("/api/me", headers=headers).json()
        assert (standing["stage"], standing["answered"]) == ("trials", k)
        assert standing["completion"] is None, "no code before the last answer is stored"
        reply = web.answer(headers, "left" if k % 2 else "right")
        assert reply.json()["stored"]
    last = reply.json()
    assert last["stage"] == "finished"
    assert len(last["completion"]["code"]) == 10
    row = (
        web.study.store.reader()
        .execute("SELECT panel, external, details FROM identities")
        .fetchone()
    )
    assert row == ("prolific", "abc", '{"STUDY_ID": "s", "SESSION_ID": "x"}')


@pytest.mark.parametrize(
    ("task", "things", "choose"),
    [("two", 2, 1), ("choose", 5, 2), ("rank", 4, 3), ("odd", 3, 1)],
)
def test_practice_is_the_studys_task_with_a_plain_answer(tmp_path, task, things, choose):
    settings = {"task": task, "things": things, "choose": choose, "practice": 5}
    web = Web(tmp_path / "s.db", **settings)
    places = set()
    practice = web.client.get("/api/study").json()["practice"]
    assert len(practice) == 5
    for trial in practice:
        assert (trial["task"], trial["choose"]) == (task, choose)
        ids = [thing["id"] for thing in trial["shown"]]
        assert len(ids) == things
        assert ids.count(trial["expected"]) == 1
        places.add(ids.index(trial["expected"]))
        if task == "odd":
            assert trial["head"] is None
            assert len(set(ids)) == 2
        else:
            assert trial["head"]["id"] == trial["expected"]
            assert len(set(ids)) == things
    assert len(places) > 1, "the right place is not always the same"
    web.close()


def test_the_redirect_is_filled_in_and_cannot_be_broken_out_of(tmp_path):
    web = Web(
        tmp_path / "s.db",
        questions=1,
        completion_code="C0DE",
        completion_redirect="https://panel.example/done?cc={code}&who={id}",
    )
    headers = web.join(survey_code="a&b=c #/")
    done = web.answer(headers).json()["completion"]
    assert done == {
        "code": "C0DE",
        "redirect": "https://panel.example/done?cc=C0DE&who=a%26b%3Dc%20%23%2F",
    }
    web.close()


def test_several_answers_at_once_after_a_pause_without_network(web):
    headers = web.join()
    trials = web.client.get("/api/me", headers=headers).json()["trials"]
    body = {
        "answers": [{"lease": t["lease"], "choice": "left"} for t in trials]
        + [{"lease": 999, "choice": "left"}]
    }
    reply = web.client.post("/api/answers", json=body, headers=headers).json()
    assert reply["stored"] == [t["lease"] for t in trials]
    assert "was not given to you" in reply["refused"]["999"]
    again = web.client.post("/api/answers", json={"answers": body["answers"][:2]}, headers=headers)
    assert again.json()["answered"] == 2


def test_a_lease_of_another_person_is_refused(web):
    one, other = web.join(), web.join()
    lease = web.client.get("/api/me", headers=one).json()["trials"][0]["lease"]
    reply = web.client.post(
        "/api/answers", json={"answers": [{"lease": lease, "choice": "left"}]}, headers=other
    )
    assert reply.status_code == 403


@pytest.mark.parametrize("token", ["", "x", "a.b", "é.b", "W3siaWQiOjF9LG51bGxd.AAAA", None])
def test_without_a_true_token_nothing_is_shown(web, token):
    web.join()
    headers = {} if token is None else {"authorization": b"Bearer " + token.encode()}
    for method, path in (("GET", "/api/me"), ("POST", "/api/answers"), ("POST", "/api/withdraw")):
        assert web.client.request(method, path, headers=headers, json={}).status_code in (401, 422)
    assert web.client.get("/api/me", headers=headers).status_code == 401


def test_a_session_token_is_no_participant_token(web):
    web.join()
    forged = web.study.signer.sign("session", "1")
    assert (
        web.client.get("/api/me", headers={"authorization": f"Bearer {forged}"}).status_code == 401
    )


def test_a_paused_study_says_so_and_a_draft_is_closed(web):
    headers = web.join()
    web.study.store.write(lambda ledger: set_state(ledger, "paused"))
    assert web.client.get("/api/me", headers=headers).json()["stage"] in ("paused", "trials")
    body = {"consent_version": "1"}
    assert web.client.post("/api/join", json=body).status_code == 409


def test_a_person_can_withdraw_by_themselves(web):
    headers = web.join(participant="me")
    web.answer(headers)
    assert web.client.post("/api/withdraw", headers=headers).json() == {"erased": 1}
    assert web.client.get("/api/me", headers=headers).status_code == 410


def test_a_store_in_trouble_says_503_and_health_says_why(web):
    headers = web.join()
    web.client.get("/api/me", headers=headers)
    web.study.store._db.execute("PRAGMA query_only = ON")
    answer = {"answers": [{"lease": 1, "choice": "left"}]}
    reply = web.client.post("/api/answers", json=answer, headers=headers)
    assert reply.status_code == 503
    assert "Nothing is lost" in reply.json()["detail"]
    health = web.client.get("/healthz")
    assert health.status_code == 503
    assert "readonly" in health.json()["detail"]
    web.study.store._db.execute("PRAGMA query_only = OFF")
    assert web.client.post("/api/answers", json=answer, headers=headers).status_code == 200
    assert web.client.get("/healthz").json() == {"status": "ok", "detail": None}


def test_every_reply_carries_the_security_headers(web):
    for path in ("/", "/api/study", "/login", "/static/style.css", "/nothing"):
        headers = web.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_a_space_in_a_setting_makes_no_header_that_cannot_be_sent(tmp_path):
    for setting, policy in (("https://a.example\t ", "https://a.example"), (" ", "'none'")):
        web = Web(tmp_path / f"{len(policy)}.db", frame_ancestors=setting)
        sent = web.client.get("/").headers["content-security-policy"]
        assert sent.endswith(f"frame-ancestors {policy}")
        web.close()


def test_long_texts_are_not_made_into_a_page_at_every_request():
    assert to_html("*a* " * 5000) is to_html("*a* " * 5000)


def test_no_page_has_inline_scripts_or_styles_or_anything_from_elsewhere(web):
    from importlib.resources import files

    pages = files("nearer.study") / "pages"
    for page in pages.iterdir():
        if page.name.endswith(".html"):
            text = page.read_text(encoding="utf-8")
            for forbidden in (
                "style=",
                "onclick",
                "<style",
                "http://",
                "https://",
                "|safe",
                "| safe",
            ):
                assert forbidden not in text, f"{page.name}: {forbidden}"
            assert "<script" not in text.replace(
                '<script type="module" src="{{ base }}/static/', ""
            ).replace('<script type="module" src="static/', "")


def test_a_long_body_is_refused(web):
    reply = web.client.post(
        "/api/join", content=b"x" * 300_000, headers={"content-type": "application/json"}
    )
    assert reply.status_code == 413
