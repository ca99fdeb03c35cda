"""Every endpoint of the OpenAPI description is called with whatever Hypothesis can think of.

Three times: without a login, by a participant, by a researcher. No call may end in a 5xx, the
dashboard needs a login, and no answer may be taken for a lease of another person.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from studykit import Web

EXAMPLES = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    made = Web(tmp_path_factory.mktemp("fuzz") / "s.db", questions=10_000, joins_per_minute=0)
    made.headers = {"nobody": {}}
    other = made.join(participant="victim")
    made.victim = {t["lease"] for t in made.client.get("/api/me", headers=other).json()["trials"]}
    made.headers["participant"] = made.join(participant="fuzz")
    token = made.log_in()
    made.headers["researcher"] = {
        **token,
        "cookie": f"{made.study.cookie}={made.client.cookies[made.study.cookie]}",
    }
    made.client.cookies.clear()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("mode", "n_calls"),
    [
        (GenerationMode.NEGATIVE, 4),
        pytest.param(GenerationMode.NEGATIVE, 16, marks=pytest.mark.slow),
        pytest.param(GenerationMode.POSITIVE, 8, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "who", [pytest.param("nobody", marks=pytest.mark.slow), "participant", "researcher"]
)
def test_no_call_ends_in_a_server_error(web, who, mode, n_calls):
    schema = schemathesis.openapi.from_asgi("/openapi.json", kept_open(web.client.app))
    tried = 0
    for each in schema.get_all_operations():
        operation = each.ok()
        if who != "nobody" and operation.path.endswith(("/withdraw", "/{decision}")):
            continue  # these take the fuzzing person away, as they should

        @settings(EXAMPLES, max_examples=n_calls)
        @given(case=operation.as_strategy(generation_mode=mode))
        def call(case):
            check(web, case, who)

        try:
            call()
        except Unsatisfiable:
            continue  # a call without parameters cannot be made wrongly
        tried += 1
    assert tried >= (10 if mode is GenerationMode.POSITIVE else 5)


def kept_open(app):
    """The app, started and stopped by the fixture and not by every client that comes."""

    async def served(scope, receive, send):
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    return served


def check(web, case, who):
    given_headers = {
        k: v
        for k, v in (case.headers or {}).items()
        if k.lower() not in ("authorization", "cookie")
    }
    case.headers = {**given_headers, **web.headers[who]}
    case.cookies = {}
    reply = case.call()
    assert reply.status_code < 500, (case.method, case.path, case.body, reply.text)
    if case.path.startswith("/api/researcher") and who != "researcher":
        assert reply.status_code in (401, 404, 405), (case.method, case.path, reply.text)
    leases = ",".join(map(str, web.victim))
    stolen = web.study.store.reader().execute(
        f"SELECT count(*) FROM answers WHERE lease IN ({leases})"
    )
    assert stolen.fetchone() == (0,)


@EXAMPLES
@given(lease=st.integers(-5, 60) | st.integers(), choice=st.sampled_from(["left", "right", "skip"]))
def test_no_answer_is_taken_for_a_lease_one_does_not_hold(web, lease, choice):
    mine = web.headers["participant"]
    held = {t["lease"] for t in web.client.get("/api/me", headers=mine).json()["trials"]}
    body = {"answers": [{"lease": lease, "choice": choice}]}
    reply = web.client.post("/api/answers", json=body, headers=mine)
    owner = (
        web.study.store.reader()
        .execute("SELECT person FROM leases WHERE id = ?", (min(max(lease, 0), 2**62),))
        .fetchone()
    )
    if reply.status_code == 200:
        assert lease in held or owner is not None
    else:
        assert reply.status_code in (403, 409, 422)
    assert not (reply.status_code == 200 and lease in web.victim)


CALLS = ["/api/join", "/api/answers", "/api/researcher/settings", "/login"]


@EXAMPLES
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@pytest.mark.parametrize("path", CALLS)
def test_bodies_that_are_no_json_are_refused(web, path, body):
    for kind in (
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
    ):
        reply = web.client.post(path, content=body, headers={"content-type": kind})
        assert 400 <= reply.status_code < 500


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e400", '"\\ud800"', "[]", "{}", "null"]
)
def test_odd_numbers_and_half_characters_are_refused_politely(web, value):
    raw = f'{{"answers": [{{"lease": 1, "choice": "left", "response_ms": {value}}}]}}'
    headers = {**web.headers["participant"], "content-type": "application/json"}
    reply = web.client.post("/api/answers", content=raw, headers=headers)
    assert reply.status_code in (403, 409, 422)
    raw = f'{{"consent_version": {value}}}'
    assert web.client.post("/api/join", content=raw, headers=headers).status_code in (409, 422)
