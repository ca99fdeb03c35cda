"""Every limit of a setting, a questionnaire and a call: values at it pass, those beyond it fail."""

import pytest
from studykit import Web

from nearer.errors import InvalidInput
from nearer.study import app, web
from nearer.study.config import CHANGEABLE, Config, parse
from nearer.study.items import _NAME

BIG, ID, LINE, TEXT = 1e15, 1 << 53, 2_000, 20_000
FIELD = {"name": "f", "label": "F", "kind": "text"}


def length(*limits):
    """Texts as long as the limits: the shortest and the longest that pass, and one beyond each."""
    return ["x" * m for m in limits], ["x" * (m + 1) for m in limits[-1:]] + [""] * (limits[0] > 0)


def span(least, most, step=1):
    return [least, most], [least - step, most + step]


def asking(**field):
    return {"before": [{"title": "T", "ask": [FIELD | field]}]}


SETTINGS = {
    "a line": (lambda v: {"title": v}, *length(0, LINE)),
    "a text": (lambda v: {"instructions": v}, *length(0, TEXT)),
    "a short text": (lambda v: {"consent_version": v}, *length(0, 200)),
    "a word": (lambda v: {"words": {"done": v}}, *length(1, TEXT)),
    "a count": (lambda v: {"quota": v}, *span(0, 10**9)),
    "practice": (lambda v: {"practice": v}, *span(0, 100)),
    "at least one": (lambda v: {"questions": v}, *span(1, 10**9)),
    "a share": (lambda v: {"catch_share": v}, *span(0.0, 0.5, 1e-9)),
    "a probability": (lambda v: {"quality": v}, *span(0.0, 1.0, 1e-9)),
    "a switch": (lambda v: {"lab": v}, [True, False], [1, "yes"]),
    "votes": (lambda v: {"votes": v}, ["1", "2+1", 3, 5], ["2", 4]),
    "things": (lambda v: {"task": "choose", "method": "random", "things": v}, *span(2, 20)),
    "things, odd": (lambda v: {"task": "odd", "method": "random", "things": v}, *span(3, 20)),
    "a field's name": (lambda v: asking(name=v), *length(1, 60)),
    "a field's label": (lambda v: asking(label=v), *length(1, TEXT)),
    "options": (
        lambda v: asking(kind="choice", options=[str(k) for k in range(v)]),
        *span(2, 200),
    ),
    "a text's length": (lambda v: asking(most=v), *span(1, TEXT)),
    "a number's least": (lambda v: asking(kind="number", least=v), *span(-BIG, BIG, 1.0)),
    "a number's most": (lambda v: asking(kind="number", most=v), *span(-BIG, BIG, 1.0)),
    "below": (lambda v: asking(kind="number", screen_out={"below": v}), *span(-BIG, BIG, 1.0)),
    "above": (lambda v: asking(kind="number", screen_out={"above": v}), *span(-BIG, BIG, 1.0)),
    "points of a scale": (lambda v: asking(kind="scale", least=0, most=v), *span(1, 10)),
    "ends of a scale": (lambda v: asking(kind="scale", ends=["e"] * v), [0, 2], [1, 3]),
    "a page's title": (lambda v: {"before": [{"title": v, "text": "T"}]}, *length(1, LINE)),
}


@pytest.mark.parametrize(("settings", "inside", "outside"), SETTINGS.values(), ids=SETTINGS)
def test_settings_have_these_limits(settings, inside, outside):
    for value in inside:
        Config.of(settings(value))
    for value in outside:
        with pytest.raises(InvalidInput, match=": "):
            Config.of(settings(value))


@pytest.mark.parametrize(
    ("field", "inside", "outside"),
    [
        ({"kind": "text", "most": 5}, ["x" * 5], ["x" * 6]),
        ({"kind": "number", "least": 1, "most": 9}, [1, 9, 1.5], [0.9, 9.1]),
        ({"kind": "scale", "least": 1, "most": 7}, [1, 7], [0, 8, 1.5]),
        ({"kind": "choice", "options": ["a", "b"]}, ["a", "b"], ["c"]),
    ],
)
def test_replies_have_the_limits_of_their_fields(field, inside, outside):
    page = Config.of(asking(**field)).pages["before-1"]
    for value in inside:
        assert page.check({"f": value}) == ({"f": value}, False)
    for value in outside:
        with pytest.raises(InvalidInput, match="reply f"):
            page.check({"f": value})


ANSWER = {"lease": 1, "choice": "left"}
TYPES = {
    "the name of an item": (_NAME, *length(1, LINE)),
    "the number of a person": (app.PersonId, *span(0, ID)),
    "a researcher's name": (app.Name, *length(0, 100)),
    "a password": (app.Password, *length(0, 1000)),
    "changed settings": (
        app.Settings,
        [{str(k): 1 for k in range(m)} for m in (1, 100)] + [{"x" * 200: "x" * TEXT}],
        [{str(k): 1 for k in range(m)} for m in (0, 101)] + [{"x" * 201: 1}, {"x": "x" * 20_001}],
    ),
    "a lease": (web.Number, *span(0, ID)),
    "a whole reply": (web.Reply, *span(-(10**15), 10**15)),
    "a reply": (web.Reply, [-BIG, BIG, "x" * TEXT, None], [-2 * BIG, 2 * BIG, "x" * 20_001]),
    "joining": (
        web.Join,
        [
            {"consent_version": "1", "parameters": {str(k): "" for k in range(100)}},
            {"consent_version": "x" * 200, "browser": "x" * 200, "parameters": {"x" * 200: ""}},
        ],
        [
            {"consent_version": "1", "parameters": {str(k): "" for k in range(101)}},
            {"consent_version": "x" * 201},
            {"consent_version": "1", "browser": "x" * 201},
            {"consent_version": "1", "parameters": {"x" * 201: ""}},
            {"consent_version": "1", "unknown": 1},
        ],
    ),
    "an answer": (
        web.Answer,
        [ANSWER | {"response_ms": ms} for ms in (0, 1e9, None)] + [ANSWER | {"chosen": [0] * 100}],
        [ANSWER | {"response_ms": ms} for ms in (-1, 1e9 + 1, float("inf"), float("nan"))]
        + [ANSWER | {"chosen": [0] * 101}, ANSWER | {"chosen": [-1]}, ANSWER | {"choice": "up"}],
    ),
}


@pytest.mark.parametrize(("kind", "inside", "outside"), TYPES.values(), ids=TYPES)
def test_what_calls_take_has_these_limits(kind, inside, outside):
    for value in inside:
        parse(kind, value, "")
    for value in outside:
        with pytest.raises(InvalidInput):
            parse(kind, value, "")


def test_calls_check_the_limits_before_they_do_anything(tmp_path):
    """422 says that a value is beyond a limit; within it, another rule refuses or all is well."""
    served = Web(tmp_path / "s.db")
    researcher, person = served.log_in(), served.join()
    calls = {
        "/api/consent": lambda m: {"consent_version": "x" * 200 + "x" * m},
        "/api/page": lambda m: {"page": "p", "replies": {str(k): 1 for k in range(200 + m)}},
        "/api/page?": lambda m: {"page": "x" * (200 + m), "replies": {}},
        "/api/answers": lambda m: {"answers": [ANSWER | {"lease": 9}] * (200 + m)},
        "/api/answers?": lambda m: {"answers": [ANSWER | {"lease": 9}] * (1 - m)},
    }
    for path, body in calls.items():
        codes = [served.client.post(path, json=body(m), headers=person).status_code for m in (0, 1)]
        assert codes[0] != 422, path
        assert codes[1] == 422, path
    for number, code in ((0, 404), (ID, 404), (-1, 422), (ID + 1, 422)):
        path = f"/api/researcher/people/{number}/exclude"
        assert served.client.post(path, headers=researcher).status_code == code
    for name, password, code in ((100, 1000, 401), (101, 1000, 422), (100, 1001, 422)):
        form = {"name": "x" * name, "password": "x" * password}
        assert served.client.post("/login", data=form).status_code == code
    many = [("upload", (f"{k}.png", b"", "image/png")) for k in range(1001)]
    reply = served.client.post("/api/researcher/items", files=many, headers=researcher)
    assert (reply.status_code, "Maximum number of files is 1000" in reply.text) == (400, True)
    served.close()


def test_every_setting_with_a_number_is_one_of_the_limited_kinds():
    """A new setting that takes any number, or a text of any length, would pass unnoticed."""
    schema = Config.model_json_schema()
    for name in CHANGEABLE:
        said = schema["properties"][name]
        kinds = said.get("anyOf", [said])
        for kind in kinds:
            if kind.get("type") in ("integer", "number"):
                assert {"minimum", "maximum"} <= set(kind), name
            if kind.get("type") == "string" and "enum" not in kind:
                assert "maxLength" in kind, name
