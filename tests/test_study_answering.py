"""Answering in a real browser: tabs, slips, keys, and taking the last answer back."""

import json

import pytest
from browserkit import (
    PATIENCE,
    begin,
    choose,
    look,
    needs_browser,
    open_page,
    study,
    wait_for_question,
)
from test_study_stimuli import texts

pytestmark = needs_browser


def stored(page) -> int:
    """How many answers the server has of the person on a page."""
    return page.evaluate(
        """async () => {
          const token = JSON.parse(localStorage.getItem('nearer.me')).token;
          const reply = await fetch('api/me', { headers: { authorization: 'Bearer ' + token } });
          return (await reply.json()).answered;
        }"""
    )


def test_two_tabs_do_not_lose_each_others_answers(browser, tmp_path):
    with study(tmp_path, texts(12), questions=12) as base:
        one = open_page(browser, "desk")
        begin(one, base)
        other = one.context.new_page()
        other.set_default_timeout(PATIENCE)
        other.goto(base)
        wait_for_question(other, 1)
        one.context.set_offline(True)
        choose(one, "desk", "left")
        wait_for_question(other, 2)  # the other tab goes on from there
        choose(other, "desk", "right")
        kept = "Object.keys(localStorage).filter((k) => k.startsWith('nearer.answer.')).length"
        assert one.evaluate(kept) == 2
        one.close()  # the first tab never comes back; what it was told is sent by the other
        other.context.set_offline(False)
        wait_for_question(other, 3)
        other.reload()
        wait_for_question(other, 3)
        other.wait_for_function(f"() => {kept} === 0")
        assert stored(other) == 2
        other.context.close()


def test_a_double_click_answers_once(browser, tmp_path):
    with study(tmp_path, texts(12), questions=12) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        page.dblclick("#left", delay=60)
        wait_for_question(page, 2)
        page.click("#left")
        page.wait_for_timeout(160)
        page.click("#left")  # a hand that slips, or a key held by a tremor
        page.keyboard.press("ArrowLeft")
        wait_for_question(page, 3)
        page.click("#left", click_count=2, delay=350)  # a slow one, beyond the guard
        wait_for_question(page, 4)
        assert stored(page) == 3
        page.context.close()


@pytest.mark.parametrize("length", [12, 1_900])
def test_the_down_key_answers_only_where_nothing_is_to_be_scrolled(browser, tmp_path, length):
    with study(tmp_path, texts(length), questions=12) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(300)
        scrolls = length > 1_000
        assert page.inner_text("#count").startswith("1 of" if scrolls else "2 of")
        assert (page.evaluate("scrollY") > 0) == scrolls
        assert ("can’t decide" in page.inner_text("#keys")) == (not scrolls)
        page.context.close()


@pytest.mark.parametrize("status", [200, 409])
def test_the_last_answer_can_be_taken_back(browser, tmp_path, status):
    """The page's half: it offers what the server says can be undone, and shows it again."""
    asked = []
    with study(tmp_path, texts(12), questions=12) as base:
        page = open_page(browser, "desk")
        first: dict = {}

        def answers(route):
            reply = route.fetch()
            given = json.loads(route.request.post_data)["answers"][0]["lease"]
            route.fulfill(response=reply, json={**reply.json(), "undo": given})

        def undo(route):
            asked.append(json.loads(route.request.post_data))
            again = {"stage": "trials", "answered": 0, "questions": 12, "completion": None}
            if status != 200:
                route.fulfill(status=status, json={"detail": "a sort has used it"})
            else:
                route.fulfill(json={**again, "trials": [{**first, "lease": 99}]})

        page.route("**/api/answers", answers)
        page.route("**/api/undo", undo)
        page.on("response", lambda r: "/api/ready" in r.url and first.update(r.json()["trials"][0]))
        begin(page, base)
        assert not page.is_visible("#undo")
        left = page.inner_text("#left")
        choose(page, "desk", "left")
        wait_for_question(page, 2)
        look(page, "undo-desk")
        page.click("#undo")
        page.wait_for_selector("#feedback:not([hidden])")
        assert asked == [{"lease": first["lease"]}]
        assert not page.is_visible("#undo")
        if status == 200:
            wait_for_question(page, 1)
            assert page.inner_text("#left") == left
            assert "taken back" in page.inner_text("#feedback")
        else:
            assert "no longer" in page.inner_text("#feedback")
            assert page.inner_text("#count").startswith("2 of")
            page.faults.clear()  # the browser reports the refusal, rightly
        assert page.faults == []
        page.context.close()
