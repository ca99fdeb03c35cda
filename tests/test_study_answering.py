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

from nearer.study.store import connect

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
        waiting = "Object.keys(localStorage).filter((k) => k.startsWith('nearer.answer.')).length"
        assert one.evaluate(waiting) == 2
        one.close()  # the first tab never comes back; its answers are sent by the other
        other.context.set_offline(False)
        wait_for_question(other, 3)
        other.reload()
        wait_for_question(other, 3)
        other.wait_for_function(f"() => {waiting} === 0")
        assert stored(other) == 2
        other.context.close()


def test_a_double_click_answers_once(browser, tmp_path):
    with study(tmp_path, texts(12), questions=12) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        page.dblclick("#left", delay=60)
        wait_for_question(page, 2)
        page.evaluate(  # a hand that slips: once more as soon as the next question is there
            """() => new Promise((done) => {
              left.click();
              const again = () => {
                if (things.classList.contains('loading')) return requestAnimationFrame(again);
                left.click();
                document.body.dispatchEvent(
                  new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
                done();
              };
              requestAnimationFrame(again);
            })"""
        )
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


def test_the_last_question_can_be_answered_again(browser, tmp_path):
    with study(tmp_path, texts(12), questions=12) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        assert not page.is_visible("#undo")
        left = page.inner_text("#left")
        choose(page, "desk", "left")
        wait_for_question(page, 2)
        second = page.inner_text("#left")
        look(page, "undo-desk")
        page.click("#undo")
        wait_for_question(page, 1)
        assert page.inner_text("#left") == left
        assert "replaces the old" in page.inner_text("#feedback")
        assert not page.is_visible("#undo")
        choose(page, "desk", "right")
        wait_for_question(page, 2)
        assert page.inner_text("#left") == second
        page.wait_for_selector("#undo:not([hidden])")  # until the next answer, again and again
        assert stored(page) == 1
        assert page.faults == []
        page.context.close()
    db = connect(tmp_path / "s.db", read_only=True)
    said = "SELECT l.shown, a.chosen, a.supersedes FROM answers a JOIN leases l ON l.id = a.lease"
    first, again = db.execute(said + " ORDER BY a.id").fetchall()
    db.close()
    assert json.loads(first[1]) == json.loads(first[0])[:1]
    assert json.loads(again[1]) == json.loads(again[0])[1:]
    assert (first[2], again[2]) == (None, 1)


def test_an_answer_that_can_no_longer_be_changed_stays(browser, tmp_path):
    with study(tmp_path, texts(12), questions=12) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        choose(page, "desk", "left")
        wait_for_question(page, 2)
        page.click("#undo")
        wait_for_question(page, 1)
        refused = {"status": 409, "json": {"detail": "a sort has gone on from it"}}
        page.route("**/api/answers", lambda route: route.fulfill(**refused))
        choose(page, "desk", "right")
        wait_for_question(page, 2)
        page.unroute("**/api/answers")
        choose(page, "desk", "left")
        wait_for_question(page, 3)
        assert stored(page) == 2
        waiting = page.evaluate("Object.keys(localStorage).filter((k) => k.includes('answer.'))")
        assert waiting == []
        page.context.close()
