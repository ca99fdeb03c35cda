"""Pages of a questionnaire: read from YAML, filled in, stored, and left for good."""

import csv
import io
import re

import pytest
import yaml
from browserkit import (
    LOOKS,
    look,
    needs_browser,
    open_page,
    shapes,
    shown,
    study,
    wait_for_question,
)
from studykit import Web

from nearer.errors import InvalidInput
from nearer.study.config import Config, read_yaml
from nearer.study.items import read_files

PAGES = yaml.safe_load("""
before:
  - title: About you
    text: |
      Some questions **first**. See [our page](https://example.org).
      <script>document.title = 'hacked'</script> [x](javascript:alert(1))
    ask:
      - name: age
        kind: number
        label: How old are you?
        least: 0
        most: 130
        screen_out: {below: 18}
      - name: sight
        kind: choice
        label: Do you see all colours?
        options: ["Yes", "No", Not sure]
        screen_out: ["No"]
  - title: One more
    ask:
      - name: tired
        kind: scale
        label: How awake are you?
        most: 5
        ends: [very tired, wide awake]
      - name: job
        kind: text
        label: What do you do?
        required: false
        most: 40
after:
  - title: Looking back
    ask:
      - name: comment
        kind: long
        label: Is there anything you want to tell us?
        required: false
""")
REPLIES = {"before-1": {"age": 33, "sight": "Yes"}, "before-2": {"tired": 4, "job": "baker"}}


def fields(*ask):
    return [{"title": "T", "ask": list(ask)}]


AGE = {"name": "age", "kind": "number", "label": "Age?"}


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([3], "before.1=3: must be `name: value` lines"),
        ([{"title": "T"}], "must ask something"),
        ([{"ask": [AGE]}], "before.1.title: is missing"),
        ([{"title": "T", "txt": "x"}], "'txt' is not known; did you mean 'text'?"),
        (fields({**AGE, "name": "my age"}), "name='my age': must be one word"),
        (fields({**AGE, "kind": "date"}), "must be one of 'choice', 'number'"),
        (fields({**AGE, "label": ""}), "label='': must have at least 1"),
        (fields({**AGE, "required": "yes"}), "required='yes': must be true or false"),
        (fields({**AGE, "options": ["a"]}), "'options' is not known"),
        (fields({**AGE, "least": 5, "most": 5}), "most=5.0: must be above least=5.0"),
        (fields({**AGE, "least": True}), "least=True: must be a number"),
        (fields({**AGE, "screen_out": [3]}), "screen_out=[3]: must be `name: value` lines"),
        (fields({**AGE, "screen_out": {"under": 3}}), "'under' is not known"),
        (fields(AGE, AGE), "name='age': is taken"),
        (fields({**AGE, "kind": "choice"}), "options: is missing"),
        (fields({**AGE, "kind": "choice", "options": [True, False]}), "put it in quotes"),
        (
            fields({**AGE, "kind": "choice", "options": ["a", "b"], "screen_out": ["c"]}),
            "must be among the options",
        ),
        (fields({**AGE, "kind": "scale", "most": 30}), "at most 11 points"),
        (fields({**AGE, "kind": "scale", "ends": ["a"]}), "must be two texts"),
        (fields({**AGE, "kind": "text", "most": 0}), "most=0: must be at least 1"),
    ],
)
def test_faults_are_named_with_their_place(pages, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Config.of({"before": pages})


def test_no_person_is_screened_out_at_the_end():
    with pytest.raises(InvalidInput, match="comes too late"):
        Config.of({"after": PAGES["before"]})


def test_a_file_with_pages_is_read_and_stored(tmp_path):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(PAGES), encoding="utf-8")
    config = Config.of(read_yaml(tmp_path / "s.yaml"))
    assert Config.model_validate_json(config.model_dump_json()) == config
    shown = config.pages["before-1"].shown("before-1")
    assert "<strong>first</strong>" in shown["html"]
    assert "<script>" not in shown["html"]
    assert 'href="javascript' not in shown["html"], "links go to web and mail addresses alone"
    assert "out" not in str([sorted(f) for f in shown["fields"]]), (
        "the page does not say what screens out"
    )


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ({"age": 33}, "reply sight: is missing"),
        ({"age": 33, "sight": "Maybe"}, "sight='Maybe': must be one of 'Yes', 'No' or 'Not sure'"),
        ({"age": "33", "sight": "Yes"}, "age='33': must be a number"),
        ({"age": 131, "sight": "Yes"}, "age=131: must be at most 130"),
        ({"age": True, "sight": "Yes"}, "replies.age"),
        ({"age": 3, "sight": "Yes", "name": "x"}, "name='x': is not known here"),
        ({"age": None, "sight": "Yes"}, "reply age: is missing"),
    ],
)
def test_replies_that_do_not_fit_are_refused(tmp_path, replies, message):
    web = Web(tmp_path / "s.db", **PAGES)
    headers = token(web)
    body = {"page": "before-1", "replies": replies}
    reply = web.client.post("/api/page", json=body, headers=headers)
    assert reply.status_code == 422
    assert message in reply.json()["detail"]
    assert web.client.get("/api/me", headers=headers).json()["page"]["id"] == "before-1"
    web.close()


def token(web, **parameters):
    body = {"consent_version": "1", "parameters": parameters}
    reply = web.client.post("/api/join", json=body).json()
    return {"authorization": f"Bearer {reply['token']}"}


def test_pages_come_in_order_and_nothing_before_them(tmp_path):
    web = Web(tmp_path / "s.db", questions=2, **PAGES)
    headers = token(web, participant="ada")
    assert web.client.post("/api/ready", headers=headers).status_code == 409
    early = {"page": "before-2", "replies": REPLIES["before-2"]}
    assert web.client.post("/api/page", json=early, headers=headers).status_code == 409
    none = {"page": "before-9", "replies": {}}
    assert web.client.post("/api/page", json=none, headers=headers).status_code == 404
    for page, replies in REPLIES.items():
        for _ in range(2):  # sending it again changes nothing
            body = {"page": page, "replies": replies}
            reply = web.client.post("/api/page", json=body, headers=headers)
            assert reply.status_code == 200, reply.text
    assert reply.json()["stage"] == "instructions"
    assert web.client.post("/api/ready", headers=headers).json()["stage"] == "trials"
    for _ in range(2):
        last = web.answer(headers).json()
    assert (last["stage"], last["completion"]) == ("page", None), "no code before the last page"
    body = {"page": "after-1", "replies": {"comment": '=cmd("x"), really'}}
    end = web.client.post("/api/page", json=body, headers=headers).json()
    assert end["stage"] == "finished"
    assert end["completion"]["code"]

    web.log_in()
    text = web.client.get("/api/researcher/export/replies.csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["page"], r["name"], r["reply"]) for r in rows] == [
        ("before-1", "age", "33"),
        ("before-1", "sight", "Yes"),
        ("before-2", "tired", "4"),
        ("before-2", "job", "baker"),
        ("after-1", "comment", '\'=cmd("x"), really'),
    ]
    web.client.post("/api/withdraw", headers=headers)
    text = web.client.get("/api/researcher/export/replies.csv").text
    assert text.splitlines() == ["person,page,name,reply,screened_out,received"]
    web.close()


@pytest.mark.parametrize("replies", [{"age": 17, "sight": "Yes"}, {"age": 33, "sight": "No"}])
def test_whoever_is_screened_out_gets_their_own_code_and_no_question(tmp_path, replies):
    web = Web(
        tmp_path / "s.db",
        screen_out_code="OUT1",
        screen_out_redirect="https://panel.example/?cc={code}",
        **PAGES,
    )
    headers = token(web)
    body = {"page": "before-1", "replies": replies}
    reply = web.client.post("/api/page", json=body, headers=headers).json()
    assert (reply["stage"], reply["trials"]) == ("screened", [])
    assert reply["completion"] == {
        "code": "OUT1",
        "redirect": "https://panel.example/?cc=OUT1",
    }
    assert web.client.post("/api/ready", headers=headers).status_code == 409
    again = {"page": "before-1", "replies": REPLIES["before-1"]}
    second = web.client.post("/api/page", json=again, headers=headers).json()
    assert second["stage"] == "screened", "a second try changes nothing"
    web.close()


@needs_browser
@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_a_person_fills_in_every_page(browser, tmp_path, size, scheme):
    with study(tmp_path, read_files(shapes(4)), questions=1, **PAGES) as base:
        page = open_page(browser, size, color_scheme=scheme)
        page.goto(base)
        page.click("#agree")
        shown(page, "form")
        assert page.inner_text("#form-title") == "About you"
        assert page.get_attribute("#form a", "rel") == "noopener noreferrer"
        look(page, f"form-{scheme}-{size}")
        page.fill("#field-age", "many")
        page.click("#form-send")
        assert page.inner_text("#problem-age") == "Please give a number."
        assert page.inner_text("#problem-sight") == "Please answer this one."
        assert page.evaluate("document.activeElement.id") == "field-age"
        look(page, f"form-wrong-{scheme}-{size}")
        page.fill("#field-age", "200")
        page.click("#form-send")
        assert page.inner_text("#problem-age") == "Please give 130 or less."
        page.fill("#field-age", "33")
        page.check("text=Not sure")
        page.click("#form-send")
        page.wait_for_selector("#box-tired")
        look(page, f"scale-{scheme}-{size}")
        page.reload()
        page.wait_for_selector("#box-tired")
        page.check("#box-tired input[value='4']")
        page.click("#form-send")
        page.click("#begin")
        wait_for_question(page, 1)
        page.click("#left")
        shown(page, "form")
        page.fill("textarea", "It was\nfine.")
        look(page, f"after-{scheme}-{size}")
        page.click("#form-send")
        shown(page, "finished")
        assert page.title() != "hacked"
        assert page.faults == []
        page.context.close()


@needs_browser
def test_a_page_by_keyboard_alone_and_the_way_out(browser, tmp_path):
    settings = {**PAGES, "screen_out_code": "OUT1", "screen_out": "Thank you, **really**."}
    with study(tmp_path, read_files(shapes(4)), **settings) as base:
        page = open_page(browser, "desk")
        page.goto(base)
        shown(page, "consent")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        shown(page, "form")
        page.keyboard.press("Tab")  # the link
        page.keyboard.press("Tab")
        page.keyboard.type("40")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        assert page.is_checked("#box-sight input[value=No]")
        page.keyboard.press("Enter")
        shown(page, "finished")
        assert page.inner_text("#code") == "OUT1"
        assert page.query_selector("#debrief strong")
        assert not page.is_visible("#stored")
        look(page, "screened-desk")
        page.reload()
        shown(page, "finished")
        assert page.faults == []
        page.context.close()
